// @ts-check
// Small tools for the page: its parts by name, rows of tables, outputs that carry their exact value, notices.

import { say } from "./words.js";

/** @param {string} id */
export const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {string} tag @param {string} text */
export const element = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
/** @param {string} text */
export const item = (text) => element("li", text);

/** @param {HTMLElement} place @param {(string | Node)[][][]} content */
export function rows(place, content) {
  place.querySelector("tbody")?.replaceChildren(
    ...content.map((cells) => {
      const row = document.createElement("tr");
      for (const cell of cells) row.insertCell().append(...cell);
      return row;
    }),
  );
}

/** @param {HTMLOutputElement} output @param {{value: number | null, text: string}} number */
export function fill(output, { value, text }) {
  output.textContent = text;
  output.dataset.value = String(value);
}

/** A dismissible notice; a newer one with the same `key` takes its place. @param {string} text @param {string} key */
export function notify(text, key) {
  dismiss(key);
  const notice = document.createElement("p");
  notice.className = "notice";
  notice.dataset.key = key;
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "×" });
  close.setAttribute("aria-label", say("page.dismiss"));
  close.addEventListener("click", () => notice.remove());
  notice.append(text, close);
  part("notices").append(notice);
}

/** @param {string} key */
export function dismiss(key) {
  document.querySelector(`.notice[data-key="${CSS.escape(key)}"]`)?.remove();
}
