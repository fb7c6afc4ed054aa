// @ts-check
// A guided walk above the chart: a step is told, the learner predicts, then the chart is shown and compared. Which
// steps there are, what is right and every word is Python's; nothing is remembered but the step's name in the address.

import { focus, here, write } from "./frame.js";
import { say } from "./words.js";

/** @typedef {{name: string, number: number, total: number, back: string | null, next: string | null,
 *   asks: "number" | "pick", reads: {metric: string, place: number | null} | null, settings: import("./form.js").Settings, title: string, text: string[], question: string,
 *   unknown: string, right?: boolean | null, verdict?: string[]}} Step */

const page = document.documentElement; // its data-lesson says what is covered: number, pick; nothing is when shown

export class Lesson {
  /** @param {HTMLElement} section @param {HTMLButtonElement} start @param {HTMLElement} chart
   * @param {{ask: (details: object) => Promise<Step | null>, set: (settings: import("./form.js").Settings) => Promise<void>,
   *   address: (name: string | null) => void, notify: (text: string) => void}} listener */
  constructor(section, start, chart, listener) {
    this.section = section;
    this.start = start;
    this.listener = listener;
    /** @type {string | null} */
    this.name = null; // of the step that is open, or about to be
    /** @type {Step | null} */
    this.step = null;
    /** @type {string | null | undefined} */
    this.guess = undefined; // what was answered; null: shown without one
    /** @type {string | undefined} */
    this.pick = undefined; // the block that is outlined; empty: a gap
    this.turn = 0;
    /** @param {string} id */
    const part = (id) => /** @type {HTMLElement} */ (section.querySelector(`#${id}`));
    this.part = part;
    this.input = /** @type {HTMLInputElement} */ (part("guess"));
    this.form = /** @type {HTMLFormElement} */ (part("lesson-form"));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.check();
    });
    chart.addEventListener("keydown", (event) => event.key === "Enter" && this.picking && this.check());
    part("lesson-show").addEventListener("click", () => this.reveal(null));
    part("lesson-back").addEventListener("click", () => this.step?.back && this.go(this.step.back, true));
    part("lesson-next").addEventListener("click", () => this.step?.next && this.go(this.step.next, true));
    part("lesson-leave").addEventListener("click", () => {
      this.close();
      this.listener.address(null);
      focus(start);
    });
    start.addEventListener("click", () => {
      write(location.pathname + here.search + here.hash, "push"); // the way back to what stood here before
      this.go("", true);
    });
    start.hidden = false;
  }

  /** Whether a block is asked for, so that nobody may say yet what holds it up. */
  get picking() {
    return page.dataset.lesson === "pick";
  }

  /** Open the step that an address names, or close where it names none. Says whether there is one to open.
   * @param {string | null} name */
  restore(name) {
    if (name !== null && name === this.name) return false;
    if (name === null) this.close();
    else this.go(name, false);
    return name !== null;
  }

  /** Open a step with everything covered that it asks for. Focus stays where it is unless a person pressed something:
   * a page inside another must not take it. @param {string} name @param {boolean} pressed */
  async go(name, pressed) {
    const turn = ++this.turn;
    this.name = name;
    this.guess = this.pick = undefined;
    this.mark(null);
    page.dataset.lesson = "number";
    const step = await this.listener.ask({ step: name });
    if (turn !== this.turn) return;
    if (!step) return this.close();
    if (step.unknown) this.listener.notify(step.unknown);
    this.name = step.name;
    this.input.value = "";
    this.tell(step);
    this.section.hidden = false;
    this.start.hidden = true;
    this.listener.address(step.name);
    await this.listener.set(step.settings);
    if (turn !== this.turn) return;
    page.dataset.lesson = step.asks;
    page.dataset.step = step.name;
    if (pressed) focus(this.part("lesson-question"));
  }

  close() {
    this.turn++;
    this.name = this.step = null;
    this.mark(null);
    delete page.dataset.lesson;
    delete page.dataset.step;
    this.section.hidden = true;
    this.start.hidden = false;
  }

  /** Say the open step again, in the language of now. */
  async retell() {
    if (!this.step) return;
    const turn = this.turn;
    const { name } = this.step;
    const step = await this.listener.ask(this.guess === undefined ? { step: name } : { step: name, guess: this.guess });
    if (!step || turn !== this.turn) return;
    this.pick = undefined;
    this.tell(step);
  }

  /** @param {Step} step */
  tell(step) {
    this.step = step;
    this.part("lesson-progress").textContent = `${step.number} / ${step.total}`;
    this.part("lesson-title").textContent = step.title;
    this.part("lesson-text").replaceChildren(...step.text.map(paragraph));
    this.part("lesson-question").textContent = step.question;
    this.part("lesson-hint").textContent = "";
    this.part("picked").textContent = "";
    /** @type {HTMLElement} */ (this.input.parentElement).hidden = step.asks === "pick";
    this.form.hidden = Boolean(step.verdict);
    const verdict = this.part("lesson-verdict");
    verdict.hidden = !step.verdict;
    verdict.dataset.right = String(step.right ?? "");
    verdict.replaceChildren(...(step.verdict ?? []).map(paragraph));
    /** @type {HTMLButtonElement} */ (this.part("lesson-back")).disabled = !step.back;
    /** @type {HTMLButtonElement} */ (this.part("lesson-next")).disabled = !step.next;
  }

  /** Mark the number on the page that a step has asked for, and no other. @param {Step | null} step */
  mark(step) {
    for (const old of document.querySelectorAll("output.asked")) old.classList.remove("asked");
    if (step?.reads) document.querySelectorAll(`output[name=${step.reads.metric}]`)[step.reads.place ?? 0]?.classList.add("asked");
  }

  /** The chart was asked what stands somewhere: that is the pick now. @param {{op: string | null, text: string}} spot */
  picked({ op, text }) {
    this.pick = op ?? "";
    this.part("picked").textContent = say("lesson.picked", { what: text });
    this.part("lesson-hint").textContent = "";
  }

  check() {
    if (this.step?.asks === "pick" && this.pick === undefined) this.part("lesson-hint").textContent = say("lesson.pick_first");
    else this.reveal(this.step?.asks === "pick" ? this.pick ?? "" : this.input.value);
  }

  /** Show what was covered, and what `guess` is worth; null: no guess. @param {string | null} guess */
  async reveal(guess) {
    const turn = this.turn;
    const answer = this.step && (await this.listener.ask({ step: this.step.name, guess }));
    if (!answer || turn !== this.turn) return;
    if (answer.right === null) {
      this.part("lesson-hint").textContent = answer.verdict?.[0] ?? "";
      focus(this.input);
      return;
    }
    await this.listener.set(answer.settings); // the settings may have been turned meanwhile
    if (turn !== this.turn) return;
    this.guess = guess;
    page.dataset.lesson = "shown";
    this.tell(answer);
    this.mark(answer);
    focus(this.part("lesson-verdict"));
  }
}

/** @param {string} text */
const paragraph = (text) => Object.assign(document.createElement("p"), { textContent: text });
