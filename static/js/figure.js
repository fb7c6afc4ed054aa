// @ts-check
// What is on the page goes in, a figure for a paper comes out as a file. Matplotlib is loaded on first use, in a worker
// of its own: the page stays quick meanwhile, and to cancel is to end that worker.

import { startFigures, whole } from "./parts.js";
import { say } from "./words.js";

/** @typedef {{file: string, name: string, type: string, size: string, problem?: string}} Made */

export class Figure {
  /** @param {HTMLElement} section @param {() => object} about what the page shows: settings, language, what is pinned */
  constructor(section, about) {
    this.section = section;
    this.about = about;
    /** @type {Worker | null} */
    this.worker = null;
    /** @param {string} name */
    this.part = (name) => /** @type {HTMLElement} */ (section.querySelector(`#figure-${name}`));
    this.bar = /** @type {HTMLProgressElement} */ (this.part("bar"));
    this.link = /** @type {HTMLAnchorElement} */ (this.part("file"));
    this.make = /** @type {HTMLButtonElement} */ (this.part("make"));
    this.make.addEventListener("click", () => this.draw());
    this.part("cancel").addEventListener("click", () => this.cancel());
    this.part("kind").addEventListener("change", () => this.offer());
    this.make.disabled = whole(); // the single-file page has no room for Matplotlib
    this.part("whole").hidden = !whole();
    this.offer();
  }

  /** @param {string} name */
  value(name) {
    return /** @type {HTMLSelectElement | HTMLInputElement} */ (this.part(name)).value;
  }

  /** Show the choices that the kind of figure has. */
  offer() {
    const kind = this.value("kind");
    for (const [name, kinds] of Object.entries({ of: ["profiles"], colours: ["gantt", "comparison"], from: ["comparison", "curves"] })) {
      const part = this.part(name);
      (part.closest("label") ?? part).hidden = !kinds.includes(kind);
    }
  }

  draw() {
    this.busy(true);
    try {
      this.worker ??= this.start();
    } catch (error) {
      this.fail(String(/** @type {Error} */ (error).message ?? error)); // a frame that may start no worker
      return;
    }
    const choices = Object.fromEntries(["kind", "of", "width", "colours", "font", "format"].map((name) => [name, this.value(name)]));
    this.worker.postMessage(JSON.stringify({ ...this.about(), ...choices }));
  }

  start() {
    const worker = startFigures();
    worker.onmessage = ({ data }) => {
      if (worker === this.worker) this.hear(data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      if (worker === this.worker) this.fail(event.message ?? "");
    };
    return worker;
  }

  cancel() {
    this.worker?.terminate();
    this.worker = null;
    this.busy(false);
    this.say(say("figure.cancelled"));
  }

  /** @param {{progress?: {stage: string, done: number, total: number}, failure?: string, answer?: string}} data */
  hear(data) {
    if (data.progress) this.progress(data.progress);
    else if (data.failure !== undefined) this.fail(data.failure);
    else this.show(JSON.parse(data.answer ?? ""));
  }

  /** @param {{stage: string, done: number, total: number}} news */
  progress({ stage, done, total }) {
    const megabytes = (/** @type {number} */ bytes) => Math.round(bytes / 1e5) / 10;
    const loading = stage === "download";
    if (loading) this.bar.value = done / total;
    else this.bar.removeAttribute("value");
    this.part("progress").textContent = say(`figure.${stage}`, loading ? { done: megabytes(done), total: megabytes(total) } : {});
    this.section.dataset.stage = stage;
  }

  /** @param {string} reason */
  fail(reason) {
    this.worker?.terminate();
    this.worker = null;
    this.busy(false);
    this.say(say("figure.failed", { reason }));
  }

  /** @param {Made} made */
  show(made) {
    this.busy(false);
    if (made.problem) {
      this.say(made.problem);
      return;
    }
    const bytes = Uint8Array.from(atob(made.file), (letter) => letter.charCodeAt(0));
    URL.revokeObjectURL(this.link.href);
    this.link.href = URL.createObjectURL(new Blob([bytes], { type: made.type }));
    this.link.download = this.link.textContent = made.name;
    this.link.hidden = false;
    this.link.click();
    this.say(made.size);
  }

  /** @param {string} text */
  say(text) {
    this.part("said").textContent = text;
  }

  /** @param {boolean} on */
  busy(on) {
    const held = this.part("busy").contains(document.activeElement);
    this.make.disabled = on;
    this.part("busy").hidden = !on;
    this.section.dataset.stage = on ? "start" : "idle";
    if (!on) {
      if (held) this.make.focus(); // a keyboard stays where it was
      return;
    }
    this.link.hidden = true;
    this.say("");
    this.part("progress").textContent = say("figure.draw");
    this.bar.removeAttribute("value");
    this.part("cancel").focus();
  }
}
