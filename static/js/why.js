// @ts-check
// Why there are gaps and what the whole depends on: asked for once the chart stands there and nothing has changed for a
// moment, in lanes of its own, so that no drag waits for it.

const QUIET = 250; // ms after the last change until Python is asked

/** @typedef {{value: number, text: string, share: number, percent: string}} Sum */
/** @typedef {(kind: string, details: object) => Promise<any>} Ask */

export class Why {
  /** @param {{ask: Ask, chart: import("./chart.js").Chart, on: boolean, toggled: (on: boolean) => void}} page */
  constructor({ ask, chart, on, toggled }) {
    this.ask = ask;
    this.chart = chart;
    this.on = on;
    this.shows = 0; // how many scenarios were shown; an answer to an earlier one comes too late
    this.button = part("path");
    this.press();
    this.button.addEventListener("click", () => {
      this.on = !this.on;
      this.press();
      toggled(this.on);
      this.path();
    });
  }

  press() {
    this.button.setAttribute("aria-pressed", String(this.on));
  }

  /** A new chart stands on the page. */
  shown() {
    this.shows += 1;
    part("why").setAttribute("aria-busy", "true");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.sums();
      this.path();
    }, QUIET);
  }

  /** The answer to `kind`, null if the page has moved on meanwhile. @param {string} kind */
  async answer(kind) {
    const asked = this.shows;
    const answer = await this.ask(kind, {});
    return asked === this.shows ? answer : null;
  }

  async sums() {
    const answer = await this.answer("why");
    if (!answer) return;
    part("why").hidden = false;
    part("why-said").textContent = answer.said;
    /** @type {HTMLElement} */ (part("why").querySelector("table")).hidden = !Object.keys(answer.sorts).length;
    for (const row of part("why").querySelectorAll("tr[data-sort]")) sum(/** @type {HTMLElement} */ (row), answer.sorts[row.getAttribute("data-sort") ?? ""]);
    mark(answer.turn);
    const guess = await this.answer("what_if");
    if (!guess) return;
    part("what-if").textContent = guess.text;
    part("why").setAttribute("aria-busy", "false");
  }

  async path() {
    const answer = this.on ? await this.answer("path") : { spans: [] };
    if (!answer) return;
    this.chart.stress(answer.spans);
    part("path-note").hidden = !answer.spans.length;
  }
}

/** @param {HTMLElement} row @param {Sum | undefined} found */
function sum(row, found) {
  row.hidden = !found;
  const output = /** @type {HTMLOutputElement} */ (row.querySelector("output"));
  output.textContent = found?.text ?? "";
  output.dataset.value = String(found?.value ?? 0);
  const [bar, percent] = /** @type {[HTMLMeterElement, HTMLElement]} */ (/** @type {unknown} */ (row.lastElementChild?.children));
  bar.value = found?.share ?? 0;
  percent.textContent = found?.percent ?? "";
}

/** Mark on the slider where the bottleneck moves. @param {{value: number, text: string} | null} turn */
function mark(turn) {
  const scale = /** @type {SVGElement} */ (document.querySelector("svg.turn"));
  scale.toggleAttribute("hidden", !turn);
  if (turn) scale.firstElementChild?.setAttribute("d", `M${turn.value} 0V1`);
  part("turn").textContent = turn?.text ?? "";
  part("turn").dataset.value = String(turn?.value ?? "");
}

/** @param {string} id */
function part(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}
