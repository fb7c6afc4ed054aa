// @ts-check
// The query goes in, what it fixes about the page comes out: how much of it there is, what may be turned, how it moves.
// Whoever puts the page into another writes the query; the fragment is the scenario and changes as people turn things.

/** @typedef {{name: string, value: string, known: string[]}} Unknown */
/** @typedef {{embed: string, hidden: string[], locked: string[], still: boolean, api: "own" | "any" | string[],
 *   borrows: boolean, unknown: Unknown[]}} Options */

/** What can be hidden, by name. @type {Record<string, string>} */
export const PARTS = {
  header: "header",
  footer: "footer",
  languages: "#languages",
  lessons: "#lessons",
  legend: "#legend",
  pin: "#legend li:has(#pin)",
  path: "#legend li:has(#path)",
  letters: "#convention",
  zoom: ".zoom",
  spot: "#spot",
  durations: "#durations",
  profiles: "[data-of]",
  numbers: "#numbers",
  span: "#span",
  definitions: ".what",
  placement: "#placement",
  controls: "#scenario",
  search: "#search, #found",
  about: "#about",
  own: "#own",
  more: "#more",
  sources: "#sources",
  bytes: "#bytes",
  order: "#own-order",
  presets: "#presets",
  reset: "[type=reset]",
  steps: "#steps",
  moment: "#moment",
  compare: "#compare",
  why: "#why",
  notes: "#notes",
  formula: "#formula",
  detail: "#detail",
  curves: "#curves",
  measured: "#measured",
  limits: "#limits",
  full: "#full",
};

const READING = ["header", "footer", "pin", "letters", "durations", "profiles", "placement", "search", "about", "sources", "bytes", "order", "presets", "compare", "why", "notes", "formula", "detail", "curves", "measured", "limits"];
const AROUND = [...READING, "path", "zoom", "span", "definitions", "own", "more", "reset", "moment"];

/** What each way to embed leaves out. @type {Record<string, string[]>} */
const MODES = { 1: READING, slide: AROUND, min: [...AROUND, "legend", "spot", "controls", "steps"] };

const CHOICES = { lang: ["en", "pl", "auto"], theme: ["light", "dark", "auto"], motion: ["reduce", "auto"], letters: ["pytorch", "zero_bubble"], engine: ["host"] };

/** Read a query. What it says that is not known is named, and the rest holds.
 * @param {URLSearchParams} query @param {string[]} fields of the form @returns {Options} */
export function read(query, fields) {
  /** @type {Unknown[]} */
  const unknown = [];
  /** @param {string} name @param {string[]} known */
  const list = (name, known) =>
    (query.get(name) ?? "").split(",").filter((value) => {
      if (value && !known.includes(value)) unknown.push({ name, value, known });
      return known.includes(value);
    });
  for (const [name, known] of Object.entries(CHOICES)) list(name, known);
  const asked = query.get("embed") ?? "0";
  const [embed = ""] = asked === "" ? ["1"] : asked === "0" ? [] : list("embed", Object.keys(MODES));
  const locked = list("lock", [...fields, "all"]);
  return {
    embed,
    hidden: [...(MODES[embed] ?? []), ...list("hide", [...Object.keys(PARTS), ...fields])],
    locked: locked.includes("all") ? fields : locked.includes("schedule") ? [...locked, "order"] : locked,
    still: query.get("motion") === "reduce",
    api: api(query.get("api"), unknown),
    borrows: query.get("engine") === "host",
    unknown,
  };
}

/** Who may send commands. @param {string | null} asked @param {Unknown[]} unknown @returns {Options["api"]} */
function api(asked, unknown) {
  if (!asked || asked === "0") return "own";
  if (asked === "1") return "any";
  return asked.split(",").filter((value) => {
    const holds = value === origin(value);
    if (!holds) unknown.push({ name: "api", value, known: ["1", "https://course.example"] });
    return holds;
  });
}

/** The origin of an address; null of what is none. @param {string} address */
function origin(address) {
  try {
    return new URL(address).origin;
  } catch {
    return null;
  }
}

/** Make the page look as the options say, before anything is drawn. @param {Options} options */
export function apply({ embed, hidden, still }) {
  const page = document.documentElement;
  if (embed) page.dataset.embed = embed;
  if (still) page.dataset.motion = "reduce";
  for (const name of hidden) {
    const found = PARTS[name] ? document.querySelectorAll(PARTS[name]) : controls(name);
    for (const part of found) part.setAttribute("data-hidden", "");
  }
}

/** Where a field of the form stands. @param {string} name */
function controls(name) {
  const control = document.getElementById(name)?.closest(".control");
  return control ? [control] : [];
}

/** Whether things should not move by themselves. */
export const still = () => document.documentElement.dataset.motion === "reduce" || Boolean(media("(prefers-reduced-motion: reduce)")?.matches);

/** A question about the screen; null where it cannot be asked. @param {string} query */
export const media = (query) => globalThis.matchMedia?.(query) ?? null;
