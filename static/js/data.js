// @ts-check
// A choice of format goes in, the file Python makes of the result comes out: to copy, if it is not too long, and to save.

/** @typedef {{text: string, name: string, type: string, note: string}} Made */

export class Data {
  /** @param {HTMLDetailsElement} section
   * @param {{ask: (as: string) => Promise<Made | null>, copy: (field: HTMLTextAreaElement) => void, save: (name: string, blob: Blob) => void}} does */
  constructor(section, does) {
    this.does = does;
    /** @type {Made | null} */
    this.made = null;
    /** @param {string} name */
    const part = (name) => /** @type {HTMLElement} */ (section.querySelector(`#data-${name}`));
    this.choice = /** @type {HTMLSelectElement} */ (part("as"));
    this.field = /** @type {HTMLTextAreaElement} */ (part("text"));
    this.note = part("note");
    this.buttons = /** @type {HTMLButtonElement[]} */ ([part("copy"), part("save")]);
    this.section = section;
    section.addEventListener("toggle", () => this.show());
    this.choice.addEventListener("change", () => this.show());
    this.buttons[0].addEventListener("click", () => does.copy(this.field));
    this.buttons[1].addEventListener("click", () => this.made && does.save(this.made.name, new Blob([this.made.text], { type: this.made.type })));
  }

  /** Where it is open; the file of many operations takes a while. */
  async show() {
    if (!this.section.open) return;
    const made = await this.does.ask(this.choice.value);
    if (!made) return;
    this.made = made;
    const fits = !made.note; // it says why not all is shown
    this.field.value = fits ? made.text : made.text.slice(0, 2000);
    this.note.textContent = made.note;
    this.buttons[0].disabled = !made.text || !fits;
    this.buttons[1].disabled = !made.text;
  }
}
