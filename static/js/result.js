// @ts-check
// An answer of Python goes in and stands on the page: numbers, tables, formula, notes, and what is pinned beside it.

import { parsed } from "./chart.js";
import { element, fill, item, part, rows } from "./page.js";
import { say } from "./words.js";

/** @typedef {import("./form.js").Settings} Settings */
/** @typedef {{use: (settings: Settings) => void, may: (settings: Settings) => boolean}} Does change settings; whether they may be */

/** @param {any} answer @param {Does} does */
export function showResult(answer, does) {
  for (const { name, value, text } of answer.numbers) {
    const output = /** @type {HTMLOutputElement | null} */ (document.querySelector(`output[name=${name}]`));
    if (output) fill(output, { value, text });
  }
  rows(part("per-device"), answer.devices.map(deviceRow));
  part("formula").hidden = !answer.formula;
  if (answer.formula) formula(answer.formula);
  notes(answer.notes, does);
  part("durations").textContent = answer.durations;
  part("decoding").textContent = answer.decoding;
  part("stream").hidden = !answer.decoding;
  part("reduces").hidden = !answer.reduces;
  for (const entry of part("legend").querySelectorAll("[data-kind]")) {
    /** @type {HTMLElement} */ (entry).hidden = !answer.kinds.includes(entry.getAttribute("data-kind"));
  }
  part("span").hidden = answer.kinds.length < 2;
  part("convention").hidden = !answer.kinds.includes("I");
  part("limits").querySelector("ul")?.replaceChildren(...answer.limits.map(item));
  const { idea, needs, also, source } = answer.about;
  part("about").replaceChildren(...[idea, needs, also].filter(Boolean).map((text) => element("span", text)), element("cite", source));
}

/** Show the pinned scenario, or what was measured, above the chart and its numbers beside the present ones.
 * @param {{svg: string, changed: Record<string, any> | null, title: string, other: string, rows: Record<string, string>[], heading?: string, note?: string, short?: string} | null} answer
 * @param {Settings | null} pinned @param {boolean} isMeasured @returns {Settings | null} what is pinned now */
export function showPinned(answer, pinned, isMeasured) {
  /** @type {HTMLButtonElement} */ (part("pin")).disabled = isMeasured;
  part("pinned").hidden = part("compare").hidden = !answer;
  part("pin").setAttribute("aria-pressed", String(Boolean(pinned)));
  part("pin").textContent = say(pinned ? "compare.unpin" : "compare.pin");
  if (!answer) return pinned;
  part("compare-change").textContent = answer.heading ?? say("compare.change");
  part("compare-note").textContent = answer.note ?? say("compare.note");
  part("pinned").replaceChildren(element("p", `A: ${answer.title}`), parsed(answer.svg), element("p", `B: ${answer.other}`));
  part("title-a").textContent = answer.title;
  part("title-b").textContent = answer.short ?? answer.other;
  rows(part("compare"), answer.rows.map(({ label, first, second, change }) => [[label], [first], [second], [change]]));
  return answer.changed ?? pinned;
}

const COLUMNS = ["utilisation", "busy", "peak_queue", "peak_activations", "peak_micro_batches", "weight_versions"];

/** One device's numbers. @param {any} device @param {number} index */
function deviceRow(device, index) {
  const bar = document.createElement("meter");
  bar.value = device.utilisation.value;
  const cells = COLUMNS.map((name) => {
    const output = document.createElement("output");
    output.name = name;
    fill(output, device[name]);
    return name === "utilisation" ? [bar, output] : [output];
  });
  return [[String(index + 1)], ...cells];
}

/** Say what to know before citing; what offers an alternative can be clicked.
 * @param {{text: string, settings: Settings | null}[]} list @param {Does} does */
function notes(list, { use, may }) {
  part("notes").hidden = !list.length;
  part("notes").querySelector("ul")?.replaceChildren(
    ...list.map(({ text, settings }) => {
      if (!settings || !may(settings)) return item(text);
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
      button.addEventListener("click", () => use(settings));
      const entry = document.createElement("li");
      entry.append(button);
      return entry;
    }),
  );
}

/** @param {any} answer */
function formula({ textbook, step, why, text, source }) {
  const lines = document.createElement(textbook ? "p" : "ul");
  lines.append(...(textbook ? [element("strong", textbook), step ? ` ${step}` : ""] : why.map(item)));
  part("textbook").replaceChildren(lines);
  part("textbook").dataset.holds = String(Boolean(textbook));
  part("exact").replaceChildren(...text.map((/** @type {string} */ line) => element("p", line)), element("cite", source));
}
