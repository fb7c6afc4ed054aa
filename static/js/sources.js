// @ts-check
// Where the stage times come from: the strip of who holds which layers, the best number of micro-batches for a constant
// batch, and the tables of what would be. Python decides and words everything; here it is put into the page.

import { parsed } from "./chart.js";
import { say } from "./words.js";

/** @typedef {import("./form.js").Settings} Settings */
/** @typedef {{cells: string[], settings: Settings | null, best: boolean, problem?: string}} Row */

export class Sources {
  /** @param {Document} page
   * @param {{ask: (kind: string, details: object) => Promise<any>, use: (settings: Settings) => void}} does */
  constructor(page, does) {
    this.does = does;
    /** @param {string} id */
    const part = (id) => /** @type {HTMLElement} */ (page.getElementById(id));
    this.placement = part("placement");
    this.batch = part("batch-best");
    this.tensor = part("tensor-trade");
    part("trade-batch").addEventListener("click", () => this.trade("batch", this.batch));
    part("trade-tensor").addEventListener("click", () => this.trade("tensor", this.tensor));
  }

  /** Show what an answer to `run` holds; tables of an older scenario go. @param {any} answer */
  show({ placement, batch }) {
    this.placement.hidden = !placement;
    if (placement) this.place(placement);
    this.batch.hidden = !batch;
    /** @type {HTMLElement} */ (this.batch.firstElementChild).replaceChildren(...(batch ? this.words(batch) : []));
    for (const table of [this.batch, this.tensor].map((place) => /** @type {HTMLTableElement} */ (place.querySelector("table")))) table.hidden = true;
    /** @type {HTMLElement} */ (this.tensor.querySelector("p")).textContent = "";
  }

  /** @param {{svg: string, text: string, lines: string[]}} strip */
  place({ svg, text, lines }) {
    const [, picture, caption, list] = this.placement.children;
    picture.replaceChildren(parsed(svg));
    caption.textContent = text;
    list.replaceChildren(...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
  }

  /** @param {{lines: string[], use: {text: string, settings: Settings} | null}} batch */
  words({ lines, use }) {
    const said = lines.map((line) => Object.assign(document.createElement("p"), { className: "note", textContent: line }));
    return use ? [...said, this.button(use.text, use.settings), " "] : said;
  }

  /** @param {string} text @param {Settings} settings */
  button(text, settings) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
    button.addEventListener("click", () => this.does.use(settings));
    return button;
  }

  /** Simulate the rows of a table and show them. @param {string} of @param {HTMLElement} place */
  async trade(of, place) {
    const answer = await this.does.ask("trade", { of });
    if (!answer) return;
    const note = place.querySelector("p[aria-live]");
    if (note) note.textContent = answer.text;
    const table = /** @type {HTMLTableElement} */ (place.querySelector("table"));
    table.hidden = !answer.rows.length;
    table.tBodies[0].replaceChildren(...answer.rows.map((/** @type {Row} */ row) => this.row(row, table.rows[0].cells.length, of === "batch" ? 2 : 1)));
  }

  /** @param {Row} row @param {number} width @param {number} time column of the makespan */
  row({ cells, settings, best, problem }, width, time) {
    const line = document.createElement("tr");
    for (const cell of cells) line.insertCell().textContent = cell;
    if (best) line.cells[time].className = "best";
    const last = line.insertCell();
    last.colSpan = width - cells.length;
    if (problem) last.textContent = problem;
    else if (settings) last.append(this.button(say("trade.use"), settings));
    else last.textContent = say("trade.now");
    if (best) line.cells[time].append(Object.assign(document.createElement("span"), { className: "unseen", textContent: `, ${say("trade.best")}` }));
    return line;
  }
}
