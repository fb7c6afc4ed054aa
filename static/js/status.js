// @ts-check
// News of the start go in; what the page says of them comes out: how far it is, what stops it, and the cure.

import { Pace } from "./pace.js";
import { part } from "./page.js";
import { current, say } from "./words.js";

const SLOW_START = 1000; // ms: a start shorter than this needs no words
const LOST = new Set(["offline", "network", "cut", "stalled"]); // failures that a new connection may cure
const page = document.documentElement;

export class Status {
  /** @param {Promise<void>} speaking until then only English is there */
  constructor(speaking) {
    this.speaking = speaking;
    this.pace = new Pace();
    this.slow = 0;
    const [words, bar, retry, doctor] = part("status").children;
    this.words = words;
    this.bar = /** @type {HTMLProgressElement} */ (bar);
    this.retry = /** @type {HTMLButtonElement} */ (retry);
    this.doctor = /** @type {HTMLAnchorElement} */ (doctor);
  }

  /** Try again when asked to, or when there is a connection again. @param {() => void} retry */
  offer(retry) {
    this.retry.addEventListener("click", retry);
    addEventListener("online", () => LOST.has(page.dataset.failure ?? "") && retry());
  }

  /** @param {string} text @param {{done?: number, total?: number, failed?: boolean}} [state] */
  say(text, { done, total, failed = false } = {}) {
    this.words.textContent = text;
    this.bar.hidden = total === undefined;
    if (total) this.bar.value = (done ?? 0) / total;
    this.retry.hidden = !failed;
    this.doctor.hidden = !failed || page.hasAttribute("data-one-file");
    this.doctor.search = `?lang=${current()}`;
    part("status").hidden = !text;
  }

  /** @param {import("./simulator.js").Progress} news */
  progress(news) {
    page.dataset.state = "starting";
    clearTimeout(this.slow);
    this.slow = setTimeout(() => this.tell(news), SLOW_START - performance.now());
  }

  /** @param {import("./simulator.js").Progress} news */
  tell({ stage, done = 0, total }) {
    const megabytes = (/** @type {number} */ bytes) => Math.round(bytes / 1e5) / 10;
    const seconds = total ? this.pace.left(done, total) : null;
    const values = { done: megabytes(done), total: megabytes(total ?? 0), seconds: seconds ?? 0 };
    this.say(say(seconds === null ? `load.${stage}` : "load.left", values), { done, total });
  }

  /** @param {string} how `cold`, or `warm` from what an earlier visit kept */
  ready(how) {
    clearTimeout(this.slow);
    page.dataset.start = how;
    part("opened-as-file").hidden = true; // a browser that was told to trust files
    page.dataset.state = "ready";
    delete page.dataset.failure;
    this.say("");
  }

  /** @param {import("./simulator.js").Failure} failure */
  async failed({ cause, ...details }) {
    clearTimeout(this.slow);
    page.dataset.state = "failed";
    page.dataset.failure = cause;
    await this.speaking;
    const words = say(`load.${cause}`, details);
    this.say(words.startsWith("load.") ? part("status").dataset.fallback ?? cause : words, { failed: true });
  }
}
