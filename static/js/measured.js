// @ts-check
// Measured times: text and scale go to Python with every chart that is drawn; what it says of them is put beside the
// chart. What the address keeps of them is Python's short form.

const QUIET = 400; // ms after the last key until Python is asked
const MOST = 40_000_000; // bytes of a file: beyond that, a page is the wrong tool

/** @typedef {{error: string, field?: string, link: string, said: string[], causes: Record<string, string>[]}} Answer */
/** @typedef {import("./form.js").Settings} Settings */

export class Measured {
  /** @param {Document} page
   * @param {{ask: (kind: string, details: object) => Promise<any>, use: (settings: Settings) => void, changed: () => void, say: (key: string) => string}} does */
  constructor(page, does) {
    this.does = does;
    /** @param {string} id */
    const part = (id) => /** @type {HTMLElement} */ (page.getElementById(id));
    this.box = /** @type {HTMLDetailsElement} */ (part("measured"));
    this.text = /** @type {HTMLTextAreaElement} */ (part("measured-text"));
    this.scale = /** @type {HTMLInputElement} */ (part("measured-scale"));
    this.file = /** @type {HTMLInputElement} */ (part("measured-file"));
    this.error = part("measured-error");
    this.said = part("measured-said");
    this.adopt = /** @type {HTMLButtonElement} */ (part("measured-adopt"));
    this.clear = /** @type {HTMLButtonElement} */ (part("measured-clear"));
    this.causes = part("measured-causes");
    this.link = ""; // what the address keeps
    this.long = false; // whether what is read is too long for an address
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    for (const field of [this.text, this.scale]) {
      field.addEventListener("input", () => this.later(QUIET));
      field.addEventListener("change", () => this.later(0));
    }
    this.file.addEventListener("change", () => this.load(this.file.files?.[0]));
    this.box.addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
    this.box.addEventListener("drop", (event) => {
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      this.load(event.dataTransfer.files[0]);
    });
    this.adopt.addEventListener("click", async () => {
      const answer = await does.ask("adopt", { measured: this.request });
      if (!answer?.settings.order) return;
      this.scale.value = "";
      does.use(answer.settings);
    });
    this.clear.addEventListener("click", () => {
      this.long = false;
      this.address = ["", ""];
      this.file.value = "";
      this.later(0);
      this.text.focus();
    });
  }

  /** What goes to Python; null where nothing is measured. */
  get request() {
    return this.text.value.trim() ? { text: this.text.value, scale: this.scale.value } : null;
  }

  /** What the address keeps: text and scale; what is too long for one stays where it is. @type {string[]} */
  get address() {
    return this.link ? [this.link, this.scale.value.trim()] : ["", ""];
  }

  set address([text, scale]) {
    if (!text && this.long) return;
    if (text !== this.link || !text) this.text.value = text;
    this.link = text;
    this.scale.value = scale;
    if (text) this.box.open = true;
  }

  /** @param {number} pause */
  later(pause) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.does.changed(), pause);
  }

  /** @param {File | undefined} file */
  async load(file) {
    if (!file) return;
    const text = file.size > MOST ? "\0" : await file.text().catch(() => "\0");
    if (text.includes("\0")) {
      this.complain(this.text, this.does.say("measured.no_file"));
      return;
    }
    this.text.value = text;
    this.later(0);
  }

  /** @param {HTMLElement | null} field @param {string} text */
  complain(field, text) {
    this.error.textContent = text;
    for (const one of [this.text, this.scale]) one.toggleAttribute("aria-invalid", false);
    if (text) (field ?? this.text).setAttribute("aria-invalid", "true");
  }

  /** Show what an answer to `run` says of the measurement. @param {Answer | null} answer */
  show(answer) {
    this.link = answer?.link ?? "";
    this.long = Boolean(answer && !answer.error && !answer.link);
    this.complain(answer?.field === "measured_scale" ? this.scale : this.text, answer?.error ?? "");
    const lines = (answer?.said ?? []).map((text) => Object.assign(document.createElement("li"), { textContent: text }));
    this.said.replaceChildren(...lines);
    this.clear.disabled = !this.request;
    this.adopt.disabled = !answer || Boolean(answer.error);
    const rows = answer?.causes ?? [];
    this.causes.hidden = !rows.length;
    this.causes.querySelector("tbody")?.replaceChildren(...rows.map(cause));
  }
}

/** @param {Record<string, string>} row */
function cause({ sort, value, label, measured, predicted, difference }) {
  const line = document.createElement("tr");
  line.dataset.cause = sort;
  const head = Object.assign(document.createElement("th"), { scope: "row", textContent: label });
  line.append(head);
  for (const text of [measured, predicted, difference]) line.insertCell().textContent = text;
  line.dataset.value = value;
  return line;
}
