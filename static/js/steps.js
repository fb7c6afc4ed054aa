// @ts-check
// A moment of the schedule, chosen by buttons, slider or playing; what each device does then, and who queues where.

import { still } from "./options.js";
import { say } from "./words.js";

const SHOWN = 12; // queue members drawn before the rest is only counted
const WHOLE = 12_000; // ms that playing a whole schedule takes, unless that makes single events too fast to follow
const EVENT = 500; // ms that an average event should get

/** @typedef {{streams: number, time: {value: number, text: string}, previous: number, next: number,
 *   devices: {state: string, op: string | null, text: string}[],
 *   queues: {stage: number, device: number, forward: number[], backward: number[]}[]}} Moment */

export class Steps {
  /** @param {HTMLElement} section
   * @param {{ask: (time: number) => Promise<Moment | null>, moved: (time: number) => void,
   *   why: (device: number, time: number) => void}} listener */
  constructor(section, listener) {
    this.listener = listener;
    this.time = 0;
    this.end = 0;
    this.events = 1;
    /** @type {Moment | null} */
    this.moment = null;
    this.last = Promise.resolve();
    /** @param {string} id */
    const part = (id) => /** @type {HTMLElement} */ (section.querySelector(`#${id}`));
    this.slider = /** @type {HTMLInputElement} */ (part("time"));
    this.clock = /** @type {HTMLOutputElement} */ (part("clock"));
    this.list = part("moment");
    this.button = /** @type {HTMLButtonElement} */ (part("play"));
    this.controls = /** @type {NodeListOf<HTMLInputElement>} */ (section.querySelectorAll(".transport button, .transport input"));
    this.slider.addEventListener("input", () => this.jump(Number(this.slider.value)));
    this.button.addEventListener("click", () => this.toggle(!this.playing));
    /** @type {Record<string, () => number>} */
    const targets = { first: () => 0, back: () => this.moment?.previous ?? 0, ahead: () => this.moment?.next ?? 0, last: () => this.end };
    for (const [id, target] of Object.entries(targets)) {
      // One after another: where a step leads is known only when the one before it has been answered.
      part(id).addEventListener("click", () => (this.last = this.last.then(() => this.jump(target()))));
    }
  }

  /** A new schedule is shown: it ends at `end` and has about `events` moments at which something changes.
   * @param {number} end @param {number} events */
  async show(end, events) {
    this.end = end;
    this.events = Math.max(1, events);
    this.slider.max = String(end);
    for (const control of this.controls) control.disabled = false;
    await this.go(Math.min(this.time, end));
  }

  /** Go where a person wants to be; that ends playing. @param {number} time */
  jump(time) {
    this.toggle(false);
    return this.go(time);
  }

  /** @param {number} time */
  async go(time) {
    this.time = time;
    this.slider.value = String(time);
    this.listener.moved(time);
    const moment = await this.listener.ask(time);
    if (moment) this.tell(moment);
  }

  /** @param {boolean} on */
  toggle(on) {
    this.playing = on;
    this.button.textContent = on ? "❚❚" : "▶";
    this.button.setAttribute("aria-pressed", String(on));
    this.button.setAttribute("aria-label", say(on ? "steps.pause" : "steps.play"));
    if (on) this.run();
  }

  /** Move with the clock; with reduced motion, from event to event. */
  async run() {
    if (this.time >= this.end) await this.go(0);
    if (still()) {
      while (this.playing && this.time < this.end) {
        await new Promise((resolve) => setTimeout(resolve, EVENT * 2));
        if (this.playing) await this.go(this.moment?.next ?? this.end);
      }
    } else {
      const speed = this.end / Math.min(60_000, Math.max(WHOLE, EVENT * this.events));
      let before = performance.now();
      /** @param {number} now */
      const frame = (now) => {
        if (!this.playing) return;
        const time = Math.min(this.end, this.time + speed * (now - before));
        before = now;
        if (time >= (this.moment?.next ?? 0) || time === this.end) this.go(time);
        else this.glide(time);
        if (time < this.end) requestAnimationFrame(frame);
        else this.toggle(false);
      };
      requestAnimationFrame(frame);
      return;
    }
    this.toggle(false);
  }

  /** Move the head where nothing else changes. @param {number} time */
  glide(time) {
    this.time = time;
    this.slider.value = String(time);
    this.listener.moved(time);
  }

  /** @param {Moment} moment */
  tell(moment) {
    this.moment = moment;
    this.clock.textContent = moment.time.text;
    this.clock.dataset.value = String(moment.time.value);
    this.slider.setAttribute("aria-valuetext", moment.time.text);
    this.list.replaceChildren(
      ...moment.devices.map((device, index) => {
        const row = element("li", `device ${device.state}`);
        row.dataset.device = String(index);
        const queues = element("div", "queues");
        queues.append(...moment.queues.filter((queue) => queue.device === index).map((queue) => this.queue(queue, moment.streams)));
        row.append(
          queues,
          element("b", `badge ${device.state} ${kind(device)}`, badge(device, moment.streams)),
          element("span", "sentence", `${say("device", { device: index + 1 })} ${device.text}.`),
        );
        if (device.state === "waits") row.lastElementChild?.append(" ", this.why(index, moment.time.value));
        return row;
      }),
    );
  }

  /** A way from the device that waits to the reasons for its gap. @param {number} device @param {number} time */
  why(device, time) {
    const button = /** @type {HTMLButtonElement} */ (element("button", "why", say("steps.why")));
    button.type = "button";
    button.setAttribute("aria-label", `${say("device", { device: device + 1 })}: ${say("steps.why")}`);
    button.addEventListener("click", () => this.listener.why(device, time));
    return button;
  }

  /** Draw and count who stands before a stage. @param {Moment["queues"][number]} queue @param {number} streams */
  queue({ stage, forward, backward }, streams) {
    const place = element("div", "queue");
    const line = element("span", "line");
    // The head of the queue stands next to the stage: the newest comes first in reading order.
    const members = [...forward.slice(0, SHOWN)].reverse();
    if (forward.length > SHOWN) line.append(element("i", "rest", `+${forward.length - SHOWN}`));
    line.append(...members.map((member) => element("i", "F", called(member, streams))));
    const words = forward.length
      ? say(stage === 0 ? "queue.input" : "queue.forward", { n: forward.length, stage: stage + 1 })
      : say("queue.empty", { stage: stage + 1 });
    const count = document.createElement("output");
    count.dataset.queue = String(stage);
    count.dataset.value = String(forward.length);
    count.textContent = words + (backward.length ? `, ${say("queue.backward", { n: backward.length })}` : "");
    place.append(line, count);
    return place;
  }
}

/** @param {{state: string, op: string | null}} device */
const kind = ({ state, op }) => (state === "works" ? op?.match(/[A-Z]/)?.[0] : "") ?? "";

/** What a device is at, in two characters. @param {{state: string, op: string | null}} device @param {number} streams */
function badge({ state, op }, streams) {
  if (state === "done") return "✓";
  const [, letter, micro] = op?.match(/([A-Z])(\d+)/) ?? [];
  return state === "works" ? `${streams ? "" : letter}${called(Number(micro), streams)}` : "…";
}

/** A micro-batch as people count it; where there are streams, as the chart writes it: stream.token.
 * @param {number} micro @param {number} streams */
const called = (micro, streams) => (streams ? `${(micro % streams) + 1}.${Math.floor(micro / streams) + 1}` : String(micro + 1));

/** @param {string} tag @param {string} className @param {string} [text] */
function element(tag, className, text = "") {
  const node = document.createElement(tag);
  node.className = className.trim();
  node.textContent = text;
  return node;
}
