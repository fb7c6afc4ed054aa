// @ts-check
// What the tests find (doctor.js) goes in as events; words, a report and the code to embed come out. Its words stand in
// doctor.html itself, in both languages: the folder with the catalogues may be what is missing.

(() => {
  "use strict";

  const LEVELS = ["bad", "warn", "info", "ok"];
  const page = document.documentElement;
  /** @param {string} id */
  const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
  /** @typedef {{id: string, state: string, level: string, values: Record<string, string | number>}} Finding */
  /** @type {Finding[]} */
  const findings = [];
  /** @type {string[]} */
  const facts = [];
  let megabytes = 12;

  const asked = new URLSearchParams(location.search).get("lang");
  const wanted = asked && asked !== "auto" ? [asked] : navigator.languages;
  const language = wanted.map((tag) => tag.slice(0, 2)).find((tag) => document.getElementById(`words-${tag}`)) || "en";
  /** @type {Record<string, string>} */
  const words = {};
  for (const name of /** @type {HTMLTemplateElement} */ (part(`words-${language}`)).content.querySelectorAll("dt")) {
    words[name.textContent || ""] = (name.nextElementSibling && name.nextElementSibling.textContent) || "";
  }

  /** @param {string} key @param {Record<string, string | number>} [values] */
  function say(key, values = {}) {
    const number = (/** @type {string | number} */ value) => (typeof value === "number" ? new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(value) : value);
    return (words[key] || key).replace(/\{(\w+)\}/g, (_, name) => String(number(values[name])));
  }

  /** @param {Finding} finding @returns {[string, string, string]} its name, what was found and why, and the cure */
  function told({ id, state, values }) {
    const key = `doctor.${id}.${state}`;
    return [say(`doctor.${id}`), say(key, values), words[`${key}.cure`] ? say("doctor.cure", { text: say(`${key}.cure`, values) }) : ""];
  }

  /** @param {string} tag @param {string} text @param {string} [kind] */
  const element = (tag, text, kind = "") => Object.assign(document.createElement(tag), { textContent: text, className: kind });

  /** Show a finding, the worst first. @param {Finding} finding */
  function show(finding) {
    const rank = LEVELS.indexOf(finding.level);
    const entry = document.createElement("li");
    entry.dataset.id = finding.id;
    entry.dataset.state = finding.state;
    entry.dataset.level = finding.level;
    const [name, text, cure] = told(finding);
    entry.append(element("span", say(`doctor.level.${finding.level}`), "level"), element("strong", name), element("p", text));
    if (cure) entry.append(element("p", cure, "cure"));
    const list = finding.level === "ok" ? /** @type {HTMLElement} */ (part("fine").lastElementChild) : part("findings");
    const after = Array.from(list.children).find((other) => LEVELS.indexOf(/** @type {HTMLElement} */ (other).dataset.level || "") > rank);
    list.insertBefore(entry, after || null);
    part("fine").hidden = !part("fine").querySelector("li");
    /** @type {HTMLElement} */ (part("fine").firstElementChild).textContent = say("doctor.fine", { count: part("fine").querySelectorAll("li").length });
  }

  /** @param {string} id @param {...string} states */
  const is = (id, ...states) => findings.some((finding) => finding.id === id && (states.length ? states.includes(finding.state) : finding.level === "bad"));

  /** The code that serves this place best, and the key of what to say of it. */
  function best() {
    const there = /** @type {HTMLAnchorElement} */ (part("simulator")).href.replace(/(index\.html)?\?.*$/, "");
    const title = say("doctor.simulator.title");
    const size = 'width="100%" height="640"';
    const rights = ' allow="fullscreen; clipboard-write" allowfullscreen loading="lazy"';
    const several = findings.some(({ level }) => level === "bad");
    if (several && is("blob", "ok") && !is("wasm") && !is("browser")) return { kind: "single", code: `<iframe src="pipesched.html"\n  ${size} title="${title}"\n  sandbox="allow-scripts allow-downloads"${rights}></iframe>` };
    if (several) return { kind: "link", code: `<a href="https://…/" target="_blank" rel="noopener">${title}</a>` };
    const foreign = Array.from(location.ancestorOrigins || []).every((origin) => origin !== location.origin);
    const boxed = is("place", "sandbox") || is("downloads", "forbidden");
    const sandbox = boxed && foreign ? `\n  sandbox="allow-scripts allow-same-origin allow-downloads allow-popups"` : boxed ? `\n  sandbox="allow-scripts allow-downloads allow-popups"` : "";
    return { kind: boxed ? "sandbox" : "frame", code: `<iframe src="${there}?embed=1&amp;lang=${language}"\n  ${size} title="${title}"${sandbox}\n ${rights}></iframe>` };
  }

  /** @param {{kind: string, code: string}} snippet @param {string} verdict */
  function report({ kind, code }, verdict) {
    const lines = LEVELS.flatMap((level) => findings.filter((finding) => finding.level === level)).flatMap((finding) => {
      const [name, text, cure] = told(finding);
      return [`[${say(`doctor.level.${finding.level}`)}] ${name}: ${text}`, ...(cure ? [`    ${cure}`] : [])];
    });
    const now = new Date().toISOString().slice(0, 16).replace("T", " ");
    return [`pipesched doctor · ${now} UTC`, say(`doctor.verdict.${verdict}`), "", ...lines, "", `--- ${say("doctor.snippet")}`, say(`doctor.snippet.${kind}`), code, "", "--- measured", ...facts, ""].join("\n");
  }

  function done() {
    const verdict = ["bad", "warn"].find((level) => findings.some((finding) => finding.level === level)) || "ok";
    const snippet = best();
    const text = report(snippet, verdict);
    page.dataset.verdict = verdict;
    part("verdict").textContent = say(`doctor.verdict.${verdict}`);
    part("snippet-note").textContent = say(`doctor.snippet.${snippet.kind}`);
    page.dataset.snippet = snippet.kind;
    /** @type {HTMLTextAreaElement} */ (part("snippet")).value = snippet.code;
    /** @type {HTMLTextAreaElement} */ (part("report")).value = text;
    /** @type {HTMLAnchorElement} */ (part("save")).href = `data:text/plain;charset=utf-8,${encodeURIComponent(text)}`;
    part("best").hidden = part("whole").hidden = false;
    part("full").hidden = verdict === "bad" || is("start", "ok");
    part("full").textContent = say("doctor.full", { megabytes });
    page.dataset.doctor = "done";
  }

  /** Copy the modern way, else the old one, else leave the text selected. @param {HTMLTextAreaElement} box @param {HTMLElement} word */
  async function copy(box, word) {
    let copied = false;
    try {
      await navigator.clipboard.writeText(box.value);
      copied = true;
    } catch {
      box.focus();
      box.select();
      copied = document.execCommand("copy");
    }
    word.textContent = say(copied ? "doctor.copied" : "doctor.copy_failed");
  }

  page.lang = language;
  document.title = say("doctor.title");
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = say(node.getAttribute("data-t") || "");
  for (const node of document.querySelectorAll("[data-t-label]")) node.setAttribute("aria-label", say(node.getAttribute("data-t-label") || ""));
  for (const choice of document.querySelectorAll("[data-language]")) choice.setAttribute("aria-current", String(choice.getAttribute("data-language") === language));
  const theme = new URLSearchParams(location.search).get("theme");
  if (theme === "light" || theme === "dark") page.dataset.theme = theme;
  part("not-run").hidden = true;
  part("verdict").textContent = say("doctor.running");
  const simulator = /** @type {HTMLAnchorElement} */ (part("simulator"));
  simulator.search = `?lang=${language}`;

  /** @type {Record<string, (detail: any) => void>} */
  const heard = {
    "doctor:found": (finding) => {
      findings.push(finding);
      show(finding);
    },
    "doctor:fact": ({ name, value }) => facts.push(`${name}: ${value}`),
    "doctor:size": (size) => (megabytes = size.megabytes),
    "doctor:done": done,
  };
  for (const [name, hear] of Object.entries(heard)) document.addEventListener(name, (event) => hear(/** @type {CustomEvent} */ (event).detail));
  part("again").addEventListener("click", () => location.reload());
  part("full").addEventListener("click", () => {
    part("full").hidden = true;
    part("verdict").textContent = say("doctor.starting");
    document.dispatchEvent(new CustomEvent("doctor:full"));
  });
  for (const button of document.querySelectorAll("[data-copy]")) {
    const box = /** @type {HTMLTextAreaElement} */ (part(button.getAttribute("data-copy") || ""));
    button.addEventListener("click", () => copy(box, /** @type {HTMLElement} */ (/** @type {HTMLElement} */ (button.parentElement).querySelector("[role=status]"))));
  }
})();
