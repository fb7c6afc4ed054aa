// @ts-check
// Joins the parts: form or URL -> question -> Python -> answer -> page. The address is the scenario: its fragment
// holds every setting that is not at its default, its query how to show it (lang, theme, path).

import { Chart } from "./chart.js";
import { Curves } from "./curves.js";
import { Figure } from "./figure.js";
import { Form } from "./form.js";
import { arrive, forwardKeys, framed, Height, here, Memory, reveal, scrollOverNumbers, tell as tellHost, whenHidden, write } from "./frame.js";
import { Host } from "./host.js";
import { Lesson } from "./lesson.js";
import { Measured } from "./measured.js";
import { apply, media, read } from "./options.js";
import { dismiss, notify, part, rows } from "./page.js";
import { Profiles } from "./profiles.js";
import { showPinned, showResult } from "./result.js";
import { drawReturns } from "./returns.js";
import { Share } from "./share.js";
import { Simulator } from "./simulator.js";
import { Sources } from "./sources.js";
import { Status } from "./status.js";
import { Steps } from "./steps.js";
import { Why } from "./why.js";
import { current, preferred, say, speak } from "./words.js";

const page = document.documentElement;
const query = new URLSearchParams(location.search);
const fixed = read(query, [...document.querySelectorAll("#scenario [name]")].map((field) => field.getAttribute("name") ?? ""));
apply(fixed);
const QUIET = 600; // ms after the last change until the summary is read out

/** @type {Record<string, any> | null} */
let pinned = null; // the settings to compare with
/** @type {Record<string, any>} */
let shown = {}; // the settings of the chart on the page
let settled = true; // whether the newest entry of the history is one that a person let go at
let turns = 0; // how often the settings were changed: an answer that comes after the next change is not the last word
let quiet = 0;
let later = 0;

document.getElementById("unstarted")?.remove();
// Without a catalogue the English of the page stands, and the loader will say what is missing.
const speaking = speak(preferred(query)).catch(() => {});

const letters = /** @type {HTMLSelectElement} */ (part("letters"));
if (query.get("letters")) letters.value = query.get("letters") ?? "";
if (!letters.value) letters.value = "pytorch";

const form = new Form(/** @type {HTMLFormElement} */ (part("scenario")), { changed: (settled) => simulate(form.settings, settled ? "push" : "replace") });
const chart = new Chart(part("chart"), { pointed, resized: redraw });
form.lock(fixed.locked);
chart.fills = fixed.embed === "slide";
const steps = new Steps(part("steps"), {
  ask: (time) => ask("moment", { time }),
  moved: (time) => {
    chart.play(time);
    profiles.play(time);
    height.explained();
  },
  why: async (device, time) => {
    await pointed(device, time);
    reveal(part("spot"));
  },
});
const curves = new Curves(/** @type {HTMLDetailsElement} */ (part("curves")), {
  ask: (kind, details, settings) => ask(kind, details, settings, "curves"),
  shown: () => shown,
  width: () => Math.max(300, Math.min(760, part("curves").clientWidth)),
  changed: () => keep("curves", curves.address),
});
new Figure(part("figure"), () => ({
  settings: shown, pinned, lang: current(), letters: letters.value,
  axis: curves.axis.value, metric: curves.metric.value, schedules: [...curves.picked].join(","),
}));
const sources = new Sources(document, { ask, use });
const profiles = new Profiles(document.querySelectorAll("details[data-of]"), part("chart"), (of) => ask("profile", { of, ...drawing() }, shown, of));
const measured = new Measured(document, {
  ask: (kind, details) => ask(kind, details),
  use,
  changed: () => simulate(form.settings, "push"),
  say: (key) => say(key),
});
const lesson = new Lesson(part("lesson"), /** @type {HTMLButtonElement} */ (part("lessons")), part("chart"), {
  ask: (details) => ask("lesson", details, {}),
  set: turned,
  address: (name) => keep("lesson", name ?? ""),
  notify: (text) => notify(text, "lesson"),
});
const status = new Status(speaking);
const simulator = new Simulator(status, fixed.borrows && framed ? () => tellHost({ pipesched: "engine" }) : null);
status.offer(() => simulator.retry());
const height = new Height();
const memory = new Memory(fixed.embed === "slide");
const host = new Host(fixed.api, { set: setByHost, asked: () => height.say(), serve: (port) => simulator.serve(port), lend: (port) => simulator.lend(port) });
const why = new Why({ ask, chart, on: query.get("path") === "1", toggled: (on) => keep("path", on ? "1" : "") });

new Share(/** @type {HTMLDialogElement} */ (part("share")), part("share-open"), {
  ask: (details) => ask("picture", { width: chart.width, pinned, ...details }),
  file: (as) => ask("export", { as }),
  theme,
  lang: current,
  here: () => here,
});

/** Ask about the scenario on the page. Resolves with null where a newer question of its lane took its place, or Python
 * failed. @param {string} kind @param {object} details @param {object} [settings] @param {string} [lane] */
async function ask(kind, details, settings = shown, lane = kind) {
  try {
    return await simulator.ask(lane, question(kind, details, settings));
  } catch (error) {
    notify(say("page.python_error", { text: /** @type {Error} */ (error).message }), "python");
    return null;
  }
}

/** @param {string} kind @param {object} details @param {object} settings */
const question = (kind, details, settings) => ({ do: kind, settings, lang: current(), theme: theme(), letters: letters.value, ...details });

/** What a drawing depends on besides the settings: its width, and what stands above it. */
const drawing = () => ({ width: chart.width, pinned, measured: measured.request });

/** Simulate `settings` and show the result; where they cannot be used, say so at the field and keep the chart.
 * @param {object} settings @param {"push" | "replace"} address */
async function simulate(settings, address) {
  turns += 1;
  const answer = await ask("run", drawing(), settings);
  if (!answer) return;
  form.complain(answer.problems);
  if (answer.problems.length) return;
  dismiss("python");
  show(answer);
  form.complain(stopped(answer));
  const there = link(answer.changed);
  // A drag makes one entry: it is pushed when the handle first moves, and follows the handle from then on.
  if (there !== location.pathname + here.search + here.hash) write(there, settled ? "push" : "replace");
  settled = address === "push";
  remember();
}

/** Change what the page around us asks for; its problems are its own and not shown here.
 * @param {Record<string, any>} wanted @returns {Promise<import("./host.js").Problem[]>} */
async function setByHost(wanted) {
  const settings = Object.fromEntries(Object.entries({ ...form.settings, ...wanted }).map(([name, value]) => [name, String(value ?? "")]));
  const turn = turns;
  try {
    const answer = await simulator.ask("set", question("run", drawing(), settings));
    if (answer?.problems.length) return answer.problems.map((/** @type {import("./host.js").Problem} */ { field, text }) => ({ field, text }));
    if (!answer || turn !== turns) return setByHost(wanted); // a person has turned something meanwhile
    turns += 1;
    form.settings = answer.settings;
    form.complain([]);
    show(answer);
    write(link(answer.changed));
    remember();
    return [];
  } catch (error) {
    return [{ field: "", text: /** @type {Error} */ (error).message }];
  }
}

/** Let a slide that is unloaded come back to where it was. */
const remember = () => page.dataset.shown && memory.keep({ hash: here.hash, time: steps.time });

/** What to say at the order where it deadlocks; the chart is shown as far as it came. @param {{deadlock: string | null}} answer */
const stopped = ({ deadlock }) => (deadlock ? [{ field: "order", text: deadlock, repairs: [] }] : []);

/** Change these settings, as a button offers. @param {import("./form.js").Settings} settings */
function use(settings) {
  form.fill({ ...Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, value ?? ""])), ...form.kept });
  simulate(form.settings, "push");
}

/** Put the settings of a lesson into the form, as a person would; the address follows without an entry of its own.
 * @param {import("./form.js").Settings} settings */
async function turned(settings) {
  form.settings = settings;
  part("spot").textContent = "";
  settled = false;
  await simulate(form.settings, "push");
}

/** Keep a choice of view in the address; an empty one leaves it. @param {string} name @param {string} value */
function keep(name, value) {
  if (value) query.set(name, value);
  else query.delete(name);
  write(location.pathname + (query.size ? `?${query}`.replaceAll("%2C", ",") : "") + here.hash);
}

/** Draw the same scenario for another width, language or theme; what a person is about to change goes first. */
async function redraw() {
  const before = shown;
  if (!page.dataset.shown) return;
  const answer = await ask("run", drawing(), before, "redraw");
  if (answer && shown === before) show(answer);
}

/** Read the address: what it gets wrong is named in a notice, and the default stands in; what is locked stays, but for
 * the first time. @param {import("./form.js").Settings} [kept] */
async function open(kept = form.kept) {
  const step = new URLSearchParams(here.search).get("lesson");
  if (step === null) query.delete("lesson");
  if (lesson.restore(step)) return;
  // In HTML that was pasted unescaped, "&micro_batches" has become "µ_batches".
  const fragment = here.hash.slice(1).replace(/&?(µ|%C2%B5)_batches=/g, "&micro_batches=");
  const { compare, measured: times = "", measured_scale: scale = "", ...settings } = Object.fromEntries(new URLSearchParams(fragment));
  measured.address = [times, scale];
  pinned = compare === undefined ? null : Object.fromEntries(new URLSearchParams(compare));
  for (const old of document.querySelectorAll(".notice[data-key^=link-]")) old.remove();
  Object.assign(settings, kept);
  form.settings = { ...form.defaults, ...settings }; // who is faster than Python changes what the link says
  const turn = ++turns;
  const answer = await ask("run", drawing(), settings);
  if (!answer) return;
  for (const problem of answer.problems) notify(say("page.from_link", { text: problem.text }), `link-${problem.field}`);
  show(answer);
  if (chart.isStale) redraw(); // Python may take a while to start, and its page to get its size
  if (turn !== turns) return; // the form holds something newer by now
  form.settings = answer.settings;
  form.complain(stopped(answer));
  settled = true;
  remember();
}

/** Begin: where a slide was when it was unloaded, else as the address says. */
async function begin() {
  for (const { name, value, known } of fixed.unknown) {
    const values = { name, value: value.slice(0, 40), known: known.join(", ") };
    notify(say(name === "lock" ? "embed.unknown_field" : "embed.unknown", values), `query-${name}-${value}`);
  }
  const before = memory.recall();
  if (before) {
    write(location.pathname + here.search + before.hash);
    steps.time = before.time;
  }
  await open({});
}

/** The address, relative to the host, of `changed` settings. @param {Record<string, string | number>} changed */
function link(changed) {
  // Micro-batches first: after an "&" that nobody escaped, HTML would read "&micro" as the sign µ.
  const names = Object.keys(changed).sort((a, b) => Number(b === "micro_batches") - Number(a === "micro_batches"));
  const values = new URLSearchParams(names.map((name) => [name, String(changed[name])]));
  if (pinned) values.append("compare", new URLSearchParams(pinned).toString());
  const [times, scale] = measured.address;
  if (times) values.append("measured", times);
  if (times && scale) values.append("measured_scale", scale);
  const fragment = values.toString().replaceAll("%2C", ",").replaceAll("%2F", "/");
  return location.pathname + here.search + (fragment && `#${fragment}`);
}

/** The address of the whole page with what this part of it shows. */
function full(fragment = here.hash) {
  const view = new URLSearchParams([...query].filter(([name]) => ["lang", "theme", "letters", "path", "lesson"].includes(name)));
  return location.href.replace(/[?#].*$/s, "") + (view.size ? `?${view}` : "") + fragment;
}

/** @param {any} answer */
function show(answer) {
  shown = answer.settings;
  height.explained();
  page.dataset.shown = answer.settings.schedule;
  chart.draw(answer.svg);
  measured.show(answer.measured);
  pinned = showPinned(answer.pinned, pinned, Boolean(measured.request));
  showResult(answer, { use, may: (settings) => form.may(settings) });
  form.disable(answer.unused);
  sources.show(answer);
  clearTimeout(quiet);
  quiet = setTimeout(() => (part("summary").textContent = answer.summary), QUIET);
  if (/** @type {HTMLDetailsElement} */ (part("table")).open) table();
  profiles.show();
  steps.show(answer.end, answer.events);
  clearTimeout(later);
  later = setTimeout(() => curves.refresh(), QUIET);
  why.shown();
  const numbers = Object.fromEntries(answer.numbers.map((/** @type {{name: string, value: number | null}} */ { name, value }) => [name, value]));
  host.shows({ settings: answer.changed, link: full(/#.*$/s.exec(link(answer.changed))?.[0] ?? ""), numbers });
}

/** Say what is at a point of the chart; of a block that a lesson asks for, only its name, once it is picked.
 * @param {number} device @param {number} time @param {number} [move] @param {boolean} [picked] not just pointed at */
async function pointed(device, time, move = 0, picked = false) {
  const { picking } = lesson;
  if (picking && !picked) return;
  const spot = await ask(picking ? "lesson" : "explain", { device, time, move }, shown, "explain");
  if (!spot) return;
  if (picking) lesson.picked(spot);
  chart.select(spot);
  chart.follow(spot.chain ?? [], spot.device, spot.end);
  drawReturns(chart, spot.returns ?? []);
  part("spot").textContent = [spot.text, ...(spot.more ?? [])].join(" ");
  part("spot").dataset.sort = spot.sort ?? "";
}

async function table() {
  const answer = await ask("table", { limit: 500 });
  if (!answer) return;
  rows(part("table"), answer.rows.map((/** @type {string[]} */ row) => row.map((cell) => [cell])));
  /** @type {HTMLElement} */ (part("table").querySelector(".note")).textContent = answer.cut || "";
}

/** @returns {"light" | "dark"} */
function theme() {
  const asked = query.get("theme");
  if (asked === "light" || asked === "dark") return asked;
  return media("(prefers-color-scheme: dark)")?.matches ? "dark" : "light";
}

/** @param {string} language */
async function changeLanguage(language) {
  await speak(language);
  keep("lang", language);
  redraw();
  lesson.retell();
}

letters.addEventListener("change", () => {
  keep("letters", letters.value);
  redraw();
});
part("pin").addEventListener("click", () => {
  pinned = pinned ? null : { ...shown };
  simulate(form.settings, "push");
});
part("take").addEventListener("click", async () => {
  const answer = await ask("order", {});
  if (answer) use({ order: answer.order, schedule: "order" });
});
part("languages").addEventListener("click", (event) => {
  const choice = /** @type {HTMLElement} */ (event.target).closest("[data-language]");
  if (!choice) return;
  event.preventDefault();
  changeLanguage(choice.getAttribute("data-language") ?? "en");
});
part("table").addEventListener("toggle", () => /** @type {HTMLDetailsElement} */ (part("table")).open && table());
for (const [id, way] of /** @type {[string, 1 | -1][]} */ ([["zoom-in", 1], ["zoom-out", -1]])) {
  part(id).addEventListener("click", () => {
    chart.magnify(way);
    redraw();
  });
}
addEventListener("popstate", () => {
  arrive();
  open();
});
media("(prefers-color-scheme: dark)")?.addEventListener?.("change", () => redraw());
if (["light", "dark"].includes(query.get("theme") ?? "")) {
  page.dataset.theme = theme();
  // The first view, too, is in the colours that the address asks for, not in the browser's.
  for (const picture of /** @type {NodeListOf<HTMLSourceElement>} */ (document.querySelectorAll("#chart source"))) {
    picture.media = picture.media.replace("(prefers-color-scheme: dark)", theme() === "dark" ? "(min-width: 0px)" : "(max-width: 0px)");
  }
}
if (query.get("curves")) curves.address = query.get("curves") ?? "";
if (query.has("lesson")) page.dataset.lesson = "number"; // covered from the start
if (fixed.embed === "slide") forwardKeys();
scrollOverNumbers();
whenHidden(() => steps.playing && steps.toggle(false));
addEventListener("pagehide", remember);
for (const kind of ["pointerenter", "focus", "click"]) part("full").addEventListener(kind, () => /** @type {HTMLAnchorElement} */ (part("full")).href = full());
part("full").hidden = !fixed.embed;
// In a frame, a link to a figure must not add to the history of the page around it.
if (framed) {
  document.addEventListener("click", (event) => {
    const address = /** @type {HTMLElement} */ (event.target).closest("a[href^='#']")?.getAttribute("href");
    if (!address || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    write(location.pathname + here.search + (address === "#" ? "" : address));
    open();
  });
}
speaking.then(begin);
