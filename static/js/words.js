// @ts-check
// A key goes in, words in the page's language come out. The catalogues are Python's (app/pipesched/locales).

import { catalogue } from "./parts.js";

/** @typedef {Record<string, string | Record<string, string>>} Catalogue */

const ATTRIBUTES = { "data-t-label": "aria-label", "data-t-alt": "alt", "data-t-placeholder": "placeholder" };
const LANGUAGES = ["en", "pl"];

/** @type {Record<string, Catalogue>} */
const catalogues = {};
let language = "en";

/** The language asked for by `?lang=`, else the first of the browser's that we have, else English.
 * @param {URLSearchParams} query */
export function preferred(query) {
  const asked = query.get("lang");
  const wanted = asked && asked !== "auto" ? [asked] : navigator.languages;
  return wanted.map((tag) => tag.slice(0, 2)).find((tag) => LANGUAGES.includes(tag)) ?? "en";
}

export const current = () => language;

/** Make `wanted` the page's language and say everything in it that is marked with `data-t`.
 * @param {string} wanted */
export async function speak(wanted) {
  catalogues[wanted] ??= await catalogue(wanted);
  language = wanted;
  document.documentElement.lang = wanted;
  document.title = say("page.title");
  for (const choice of document.querySelectorAll("[data-language]")) {
    choice.setAttribute("aria-current", String(choice.getAttribute("data-language") === wanted));
  }
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = say(node.getAttribute("data-t") ?? "");
  for (const [mark, attribute] of Object.entries(ATTRIBUTES)) {
    for (const node of document.querySelectorAll(`[${mark}]`)) {
      node.setAttribute(node.tagName === "OPTGROUP" ? "label" : attribute, say(node.getAttribute(mark) ?? ""));
    }
  }
}

/** Say `key` with its placeholders filled; `n` chooses the plural form. Before a catalogue is there: the key itself.
 * @param {string} key
 * @param {Record<string, string | number>} [values] */
export function say(key, values = {}) {
  let text = catalogues[language]?.[key] ?? key;
  if (typeof text !== "string") text = text[new Intl.PluralRules(language).select(Number(values.n))] ?? text.other;
  return text.replace(/\{(\w+)\}/g, (_, name) => show(values[name]));
}

/** @param {string | number} value */
function show(value) {
  return typeof value === "number" ? new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(value) : value;
}
