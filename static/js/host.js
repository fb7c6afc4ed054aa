// @ts-check
// Messages of the page around us (or of the one that opened us) go in, answers go out: ping, get, set, subscribe; and
// ports to a shared engine. README says what each message holds.

import { framed, tell } from "./frame.js";

/** @typedef {{settings: Record<string, unknown>, link: string, numbers: Record<string, number | null>}} State */
/** @typedef {{field: string, text: string}} Problem */
/** @typedef {{source: MessageEventSource, origin: string, id: unknown}} Asker */

export class Host {
  /** @param {import("./options.js").Options["api"]} api who may send commands
   * @param {{set: (settings: Record<string, unknown>) => Promise<Problem[]>, asked: () => void,
   *   serve: (port: MessagePort) => void, lend: (port: MessagePort) => void}} page */
  constructor(api, page) {
    this.api = api;
    this.page = page;
    /** @type {State | null} */
    this.state = null;
    /** @type {Asker[]} */
    this.waiting = []; // for the first state
    /** @type {Asker[]} */
    this.subscribed = [];
    /** @type {{settings: Record<string, unknown>, askers: Asker[]} | null} */
    this.next = null; // what is to be set once the page has taken what was set before
    this.busy = false;
    addEventListener("message", (event) => this.hear(event));
  }

  /** @param {string} origin "null" is everybody's who has none */
  allows(origin) {
    if (this.api === "any") return true;
    return origin !== "null" && (origin === location.origin || this.api.includes(origin));
  }

  /** @param {MessageEvent} event */
  hear({ data, source, origin, ports }) {
    if (!source || typeof data?.pipesched !== "string") return;
    if (framed && source === window.parent && ports[0]) {
      if (data.pipesched === "engine") this.page.lend(ports[0]);
      if (data.pipesched === "serve") this.page.serve(ports[0]);
    } else if (this.allows(origin)) {
      this.obey(data, { source, origin, id: data.id });
    }
  }

  /** @param {any} data @param {Asker} asker */
  obey({ pipesched: command, settings }, asker) {
    if (command === "ping") {
      answer(asker, { pipesched: "pong", version: document.documentElement.dataset.version, ready: Boolean(this.state) });
      this.page.asked();
    } else if (command === "get") {
      this.report(asker);
    } else if (command === "subscribe") {
      this.subscribed = this.subscribed.filter(({ source, id }) => source !== asker.source || id !== asker.id);
      this.subscribed.push(asker);
      if (this.state) this.report(asker);
    } else if (command === "set") {
      if (!settings || typeof settings !== "object") answer(asker, { pipesched: "error", problems: [{ field: "settings", text: "settings: {name: value}" }] });
      else this.set(settings, asker);
    }
  }

  /** Tell the state, once there is one. @param {Asker} asker */
  report(asker) {
    if (this.state) answer(asker, { pipesched: "state", ...this.state });
    else this.waiting.push(asker);
  }

  /** One after another, as each changes a part only; those that wait are set together. @param {Record<string, unknown>} settings
   * @param {Asker} asker */
  async set(settings, asker) {
    this.next ??= { settings: {}, askers: [] };
    Object.assign(this.next.settings, settings);
    this.next.askers.push(asker);
    if (this.busy) return;
    this.busy = true;
    while (this.next) {
      const { settings: wanted, askers } = this.next;
      this.next = null;
      const problems = await this.page.set(wanted);
      for (const each of askers) {
        if (problems.length) answer(each, { pipesched: "error", problems });
        else this.report(each);
      }
    }
    this.busy = false;
  }

  /** The page shows something. @param {State} state */
  shows(state) {
    const first = !this.state;
    const changed = JSON.stringify(state) !== JSON.stringify(this.state);
    this.state = state;
    if (first) tell({ pipesched: "ready" });
    for (const asker of this.waiting.splice(0)) this.report(asker);
    if (changed) for (const asker of this.subscribed) this.report(asker);
  }
}

/** @param {Asker} asker @param {object} message */
function answer({ source, origin, id }, message) {
  const target = origin === "null" ? "*" : origin; // a page without an origin cannot be named
  source.postMessage({ ...message, id }, { targetOrigin: target });
}
