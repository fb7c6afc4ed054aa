// @ts-check
// The form is the Scenario: names, limits and defaults are its inputs' own. Whole settings go in and come out as
// {name: text}; sliders and steppers are other handles on the same inputs.

import { say } from "./words.js";

/** @typedef {Record<string, string | number | null>} Settings */
/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field */
/** @typedef {{field: string, text: string, repairs: {settings: Settings, text: string}[]}} Problem */

const SWITCHED_ON = "2"; // how slow the slow stage is when it is first switched on

/** Values a slider of whole numbers stops at: every one up to 16, then never more than an eighth apart.
 * @param {number} low @param {number} high */
function stops(low, high) {
  const values = [];
  for (let value = low; value <= high; value += 2 ** Math.max(0, Math.floor(Math.log2(value)) - 3)) values.push(value);
  return values;
}

export class Form {
  /** @param {HTMLFormElement} form @param {{changed: (settled: boolean) => void}} listener
   * `settled` tells a released handle from one still dragged. */
  constructor(form, listener) {
    this.form = form;
    this.listener = listener;
    /** @type {Map<string, Field>} */
    this.fields = new Map();
    this.schedule = /** @type {HTMLSelectElement} */ (form.querySelector("#schedule"));
    for (const field of form.querySelectorAll("[name]")) this.fields.set(field.getAttribute("name") ?? "", /** @type {Field} */ (field));
    /** @type {Set<string>} */
    this.locked = new Set(); // fields that only the page around us may change
    this.shown = ""; // the schedule whose settings were last opened or closed
    this.slow = /** @type {HTMLInputElement} */ (form.querySelector("#slow"));
    this.sliders = /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("input[type=range]"));
    for (const slider of this.sliders) {
      if (slider.step !== "0.1") slider.max = String(this.stops(slider).length - 1);
    }
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", (event) => this.moved(/** @type {HTMLInputElement} */ (event.target), false));
    form.addEventListener("change", (event) => this.moved(/** @type {HTMLInputElement} */ (event.target), true));
    form.addEventListener("click", (event) => {
      const button = /** @type {HTMLElement} */ (event.target).closest("[data-step]");
      if (button) this.step(/** @type {HTMLElement} */ (button));
    });
    const search = /** @type {HTMLInputElement} */ (form.querySelector("#search"));
    search.addEventListener("input", () => this.find(search));
    search.addEventListener("keydown", (event) => event.key === "Enter" && /** @type {HTMLElement | null} */ (form.querySelector("#found button"))?.click());
    form.addEventListener("reset", () => {
      const kept = this.kept;
      setTimeout(() => {
        this.fill(kept);
        listener.changed(true);
      });
    });
  }

  /** Let nobody change these fields here; the page around us and a lesson may. @param {string[]} names */
  lock(names) {
    this.locked = new Set(names);
    for (const name of names) {
      const control = this.fields.get(name)?.closest(".control");
      control?.setAttribute("data-locked", "");
      for (const part of control?.querySelectorAll("input, select, textarea, button") ?? []) /** @type {HTMLInputElement} */ (part).disabled = true;
    }
    /** @type {HTMLButtonElement} */ (this.form.querySelector("#take")).disabled = this.locked.has("order");
    this.form.toggleAttribute("data-locked", this.locked.size === this.fields.size);
  }

  /** What the locked fields hold. @returns {Settings} */
  get kept() {
    return Object.fromEntries([...this.locked].map((name) => [name, this.fields.get(name)?.value ?? ""]));
  }

  /** Whether a button that sets these may do so. @param {Settings} settings */
  may(settings) {
    return !Object.keys(settings).some((name) => this.locked.has(name));
  }

  /** @param {HTMLInputElement} slider */
  stops(slider) {
    const field = this.field(slider);
    return stops(Number(field.min), Number(field.max));
  }

  /** The field that a slider or stepper is another handle on. @param {HTMLElement} handle */
  field(handle) {
    return /** @type {HTMLInputElement} */ (this.fields.get(handle.dataset.for ?? ""));
  }

  /** @returns {Settings} */
  get settings() {
    return Object.fromEntries([...this.fields].map(([name, field]) => [name, field.value]));
  }

  /** @returns {Settings} */
  get defaults() {
    return Object.fromEntries([...this.fields].map(([name, field]) => [name, usual(field)]));
  }

  /** Show all `settings`, as Python read them. @param {Settings} settings */
  set settings(settings) {
    this.fill(Object.fromEntries([...this.fields.keys()].map((name) => [name, settings[name] ?? ""])));
  }

  /** Write the `settings` that are given into their fields, as they are. @param {Settings} settings */
  fill(settings) {
    for (const [name, value] of Object.entries(settings)) {
      const field = this.fields.get(name);
      if (field) field.value = String(value);
    }
    this.arrange();
  }

  /** @param {HTMLInputElement} target @param {boolean} settled */
  moved(target, settled) {
    if (target.id === "search") return; // it changes nothing until something is picked
    if (target.name === "order") this.schedule.value = "order";
    if (target === this.slow) {
      const factor = /** @type {Field} */ (this.fields.get("slow_factor"));
      factor.value = this.slow.checked ? SWITCHED_ON : "1";
    } else if (target.type === "range") {
      const field = this.field(target);
      field.value = target.step === "0.1" ? target.value : String(this.stops(target)[Number(target.value)]);
    }
    this.arrange(target);
    this.listener.changed(settled);
  }

  /** List the schedules whose name, in either language of the form, or synonym holds what is typed.
   * @param {HTMLInputElement} search */
  find(search) {
    /** @param {string} text */
    const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
    const wanted = plain(search.value);
    const list = /** @type {HTMLElement} */ (this.form.querySelector("#found"));
    const fits = [...this.schedule.options].filter((option) => [option.text, option.value, option.dataset.also ?? ""].some((text) => plain(text).includes(wanted)));
    const picks = fits.map((option) => {
      const button = document.createElement("button");
      button.type = "button";
      const synonym = (option.dataset.also ?? "").split(", ").find((text) => plain(text).includes(wanted));
      button.textContent = option.text + (synonym && !plain(option.text).includes(wanted) ? ` = ${synonym}` : "");
      button.addEventListener("click", () => {
        this.schedule.value = option.value;
        search.value = "";
        list.replaceChildren();
        this.listener.changed(true);
      });
      return button;
    });
    list.replaceChildren(...(wanted ? (picks.length ? picks : [say("page.no_match")]) : []).map((content) => wrapped(content)));
  }

  /** @param {HTMLElement} button */
  step(button) {
    const field = this.field(button);
    const [low, high] = [field.min || field.dataset.min, field.max || field.dataset.max].map(Number);
    const value = Number(field.value.replace(",", ".")) + Number(button.dataset.step);
    field.value = String(Math.min(high, Math.max(low, Number.isFinite(value) ? value : low)));
    this.arrange();
    this.listener.changed(true);
  }

  /** Bring sliders, switch and stepper buttons in line with the fields; never the handle in use.
   * @param {HTMLElement} [held] */
  arrange(held) {
    const factor = /** @type {HTMLInputElement} */ (this.fields.get("slow_factor"));
    if (held !== this.slow && held !== factor && held?.dataset.for !== "slow_factor") this.slow.checked = factor.value !== "1";
    for (const part of this.form.querySelectorAll("[data-for=slow_factor], [name=slow_factor]")) {
      /** @type {HTMLInputElement} */ (part).disabled = !this.slow.checked || this.locked.has("slow_factor");
    }
    for (const slider of this.sliders) {
      const value = Number(this.field(slider).value.replace(",", "."));
      if (slider !== held && Number.isFinite(value)) {
        const at = slider.step === "0.1" ? value : this.stops(slider).findLastIndex((stop) => stop <= value);
        slider.value = String(Math.max(Number(slider.min), at));
      }
      slider.setAttribute("aria-valuetext", this.field(slider).value);
    }
  }

  /** Show what is wrong at the field it is wrong in, and the settings that would put it right.
   * @param {Problem[]} problems */
  complain(problems) {
    for (const old of this.form.querySelectorAll(".error")) old.remove();
    for (const field of this.fields.values()) {
      field.removeAttribute("aria-invalid");
      field.removeAttribute("aria-describedby");
    }
    for (const { field: name, text, repairs } of problems) {
      const field = this.fields.get(name);
      const control = field?.closest(".control");
      if (!field || !control) continue;
      const note = document.createElement("p");
      note.className = "error";
      note.id = `error-${name}`;
      note.append(text);
      for (const repair of repairs.filter(({ settings }) => this.may(settings))) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = repair.text;
        button.addEventListener("click", () => {
          this.settings = { ...this.settings, ...repair.settings };
          this.listener.changed(true);
        });
        note.append(" ", button);
      }
      control.append(note);
      field.disabled = this.locked.has(name); // what is wrong can be put right, whatever the settings before made of it
      control.closest("details")?.setAttribute("open", "");
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", note.id);
    }
  }

  /** Disable what the schedule does not use, and say why; open the settings that only some schedules have where this
   * one has any. @param {Record<string, string>} unused field: reason */
  disable(unused) {
    for (const [name, field] of this.fields) {
      if (name === "slow_factor" || name === "order") continue; // a switch of its own; choosing it by typing
      const off = name in unused || this.locked.has(name);
      field.disabled = off;
      field.title = unused[name] ?? (this.locked.has(name) ? say("embed.locked") : "");
      for (const handle of this.form.querySelectorAll(`[data-for=${name}]`)) /** @type {HTMLInputElement} */ (handle).disabled = off;
      const control = field.closest(".control");
      control?.querySelector(".unused")?.remove();
      if (name in unused) control?.append(Object.assign(document.createElement("small"), { className: "unused", textContent: unused[name] }));
    }
    const own = /** @type {HTMLDetailsElement} */ (this.form.querySelector("#own"));
    if (this.shown !== this.schedule.value) own.open = own.querySelector("[name]:enabled") !== null;
    this.shown = this.schedule.value;
  }
}

/** The value a field has before anybody touches it. @param {Field} field */
function usual(field) {
  if (!(field instanceof HTMLSelectElement)) return field.defaultValue;
  return ([...field.options].find((option) => option.defaultSelected) ?? field.options[0]).value;
}

/** @param {Node | string} content */
function wrapped(content) {
  const row = document.createElement("li");
  row.append(content);
  return row;
}
