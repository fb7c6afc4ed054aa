// @ts-check
// What is on the page goes in; a link, code for other pages and pictures come out, as text that can be copied whatever
// the browser allows, and as files. Query: what whoever shares it fixes for the reader; fragment: the scenario.

import { parsed } from "./chart.js";
import { Data } from "./data.js";
import { whole } from "./parts.js";
import { draw } from "./raster.js";
import { say } from "./words.js";

const LONG = 500; // characters: from here on a link may not survive where people paste it
const KEPT = ["letters", "path", "curves"]; // choices of view that stand in the address already
const MAIN = ["schedule", "devices", "micro_batches", "slow_factor"]; // can always be locked; others where they are set
const SANDBOX = "allow-scripts allow-same-origin allow-downloads allow-popups";

/** @typedef {{svg: string, thumbnail: string, words: string, stem: string, frame: string, open: string}} Picture */
/** @typedef {HTMLInputElement | HTMLTextAreaElement} Text */

export class Share {
  /** @param {HTMLDialogElement} dialog @param {HTMLElement} opener
   * @param {{ask: (details: object) => Promise<Picture | null>, file: (as: string) => Promise<any>, theme: () => string, lang: () => string,
   *   here: () => {search: string, hash: string}}} listener */
  constructor(dialog, opener, listener) {
    this.dialog = dialog;
    this.opener = opener;
    this.listener = listener;
    this.withA = true;
    /** @type {Picture | null} */
    this.picture = null;
    /** @type {SVGSVGElement | null} */
    this.drawing = null;
    /** @param {string} name */
    this.part = (name) => /** @type {HTMLElement} */ (dialog.querySelector(`#share-${name}`));
    opener.addEventListener("click", () => this.open());
    const copy = (/** @type {Text} */ field) => void this.copy(field);
    this.data = new Data(/** @type {HTMLDetailsElement} */ (this.part("data")), { ask: listener.file, copy, save: (name, blob) => this.saveAs(name, blob) });
    this.listen();
  }

  listen() {
    const { dialog, part } = this;
    part("close").addEventListener("click", () => this.close());
    dialog.addEventListener("click", (event) => event.target === dialog && this.close()); // beside it
    dialog.addEventListener("keydown", (event) => event.key === "Escape" && this.close()); // where there is no dialog
    dialog.addEventListener("close", () => this.opener.focus());
    dialog.addEventListener("change", (event) => this.turned(/** @type {HTMLElement} */ (event.target)));
    part("height").addEventListener("input", () => this.write());
    part("without-a").addEventListener("click", () => {
      this.withA = false;
      this.write();
      part("link").focus();
    });
    for (const [button, field] of [["copy-link", "link"], ["copy-code", "code"], ["copy-svg", "svg"]]) {
      part(button).addEventListener("click", () => this.copy(this.text(field)));
    }
    part("link").addEventListener("focus", () => this.text("link").select());
    part("save-svg").addEventListener("click", () => this.save("svg", new Blob([this.picture?.svg ?? ""], { type: "image/svg+xml" })));
    part("save-pdf").addEventListener("click", async () => {
      const answer = await this.draw({ as: "pdf" });
      if (answer) this.save("pdf", new Blob([Uint8Array.from(atob(answer.file), (letter) => letter.charCodeAt(0))], { type: "application/pdf" }));
    });
    part("save-png").addEventListener("click", async () => this.save("png", await this.png()));
    part("copy-png").addEventListener("click", () => this.copyPicture());
    if (whole()) /** @type {HTMLElement} */ (dialog.querySelector("label:has([value=element])")).hidden = true; // its script is elsewhere
    part("copy-png").hidden = typeof ClipboardItem === "undefined" || !navigator.clipboard?.write;
    part("save-order").addEventListener("click", () => this.save("txt", new Blob([this.settings.get("order") ?? ""], { type: "text/plain" })));
  }

  /** @param {string} name */
  text(name) {
    return /** @type {Text} */ (this.part(name));
  }

  /** @param {string} name */
  value(name) {
    return /** @type {HTMLInputElement | HTMLSelectElement} */ (this.part(name)).value;
  }

  /** @param {string} name */
  ticked(name) {
    return /** @type {HTMLInputElement} */ (this.part(name)).checked;
  }

  async open() {
    const query = new URLSearchParams(this.listener.here().search);
    for (const name of ["lang", "theme", "embed", "lesson"]) {
      const field = /** @type {HTMLSelectElement} */ (this.part(name));
      field.value = query.get(name) ?? "";
      if (field.selectedIndex < 0) field.value = "";
    }
    /** @type {HTMLInputElement} */ (this.part("motion")).checked = query.get("motion") === "reduce";
    /** @type {HTMLSelectElement} */ (this.part("ink")).value = this.listener.theme();
    this.offer(query);
    this.withA = true;
    this.say("");
    this.part("local").hidden = /^https?:$/.test(location.protocol);
    this.saving();
    /** @type {HTMLDetailsElement} */ (this.part("options")).open = this.opener.ownerDocument.documentElement.clientWidth > 760;
    this.write();
    if (this.dialog.showModal) this.dialog.showModal();
    else {
      for (const [name, value] of [["open", ""], ["role", "dialog"], ["aria-modal", "true"]]) this.dialog.setAttribute(name, value);
      this.part("close").focus();
    }
    await this.ask();
    await this.data.show();
  }

  close() {
    if (!this.dialog.open && !this.dialog.hasAttribute("open")) return;
    if (typeof (/** @type {any} */ (this.dialog).close) === "function") return this.dialog.close();
    this.dialog.removeAttribute("open");
    this.opener.focus();
  }

  /** Offer to lock what is set, and tick what the address locks and hides already. @param {URLSearchParams} query */
  offer(query) {
    const [locked, hidden] = ["lock", "hide"].map((name) => (query.get(name) ?? "").split(","));
    const fields = new Set([...MAIN, ...this.settings.keys(), ...locked]);
    const boxes = [...fields].filter((name) => name && name !== "compare").map((name) => {
      const label = document.createElement("label");
      const box = Object.assign(document.createElement("input"), { type: "checkbox", value: name, checked: locked.includes(name) });
      label.append(box, " ", say(`field.${name}`));
      return label;
    });
    this.part("lock").replaceChildren(...boxes);
    for (const box of this.boxes("hide")) box.checked = hidden.includes(box.value);
  }

  /** @param {string} name @returns {NodeListOf<HTMLInputElement>} */
  boxes(name) {
    return this.part(name).querySelectorAll("input");
  }

  /** What the address says of the scenario. */
  get settings() {
    return new URLSearchParams(this.listener.here().hash.slice(1));
  }

  get covered() {
    return ["number", "pick"].includes(document.documentElement.dataset.lesson ?? "");
  }

  /** @param {HTMLElement} target */
  turned(target) {
    this.write();
    if (["share-lang", "share-theme", "share-ink", "share-transparent"].includes(target.id)) {
      if (target.id === "share-theme" && this.value("theme")) /** @type {HTMLSelectElement} */ (this.part("ink")).value = this.value("theme");
      this.ask();
    }
    if (target.id === "share-size") this.paint();
  }

  /** @param {object} details @returns {Promise<any>} */
  draw(details) {
    return this.listener.ask({ theme: this.value("ink"), lang: this.value("lang") || this.listener.lang(), transparent: this.ticked("transparent"), ...details });
  }

  /** Have Python draw it. */
  async ask() {
    const picture = await this.draw({});
    if (!picture) return;
    this.picture = picture;
    this.drawing = parsed(picture.svg);
    this.text("svg").value = picture.svg;
    for (const name of ["save-svg", "save-png", "save-pdf", "copy-png", "copy-svg"]) /** @type {HTMLButtonElement} */ (this.part(name)).disabled = false;
    this.part("waits").hidden = true;
    this.write();
    this.paint();
  }

  paint() {
    if (!this.drawing || !this.picture) return;
    const canvas = /** @type {HTMLCanvasElement} */ (this.part("canvas"));
    canvas.hidden = false;
    canvas.setAttribute("aria-label", this.picture.words);
    canvas.dataset.transparent = String(this.ticked("transparent"));
    draw(canvas, this.drawing, Number(this.value("size")));
  }

  /** Write link and code anew. */
  write() {
    const link = this.address(false);
    const settings = this.settings;
    this.text("link").value = link;
    this.part("length").textContent = say("share.length", { n: link.length });
    const isLong = link.length > LONG;
    this.part("long").hidden = !isLong;
    this.part("without-a").hidden = !(isLong && settings.has("compare") && this.withA);
    this.part("save-order").hidden = !(isLong && settings.has("order")) || this.downloads === "no";
    const kind = /** @type {HTMLInputElement} */ (this.dialog.querySelector("[name=share-kind]:checked")).value;
    this.text("code").value = { bare: this.bare, frame: this.frame, element: this.element }[kind] ?? "";
    this.part("note").textContent = say(`share.${kind}.note`);
    this.part("tall").hidden = kind === "element";
  }

  /** The address to share. @param {boolean} framed in a frame, where the whole page would be too much */
  address(framed) {
    const query = new URLSearchParams();
    const add = (/** @type {string} */ name, /** @type {string} */ value) => value && query.append(name, value);
    const list = (/** @type {string} */ name) => [...this.boxes(name)].filter(({ checked }) => checked).map(({ value }) => value).join(",");
    add("embed", this.value("embed") || (framed ? "1" : ""));
    for (const name of ["lang", "theme", "lesson"]) add(name, this.value(name));
    for (const name of ["hide", "lock"]) add(name, list(name));
    add("motion", this.ticked("motion") ? "reduce" : "");
    for (const name of KEPT) add(name, new URLSearchParams(this.listener.here().search).get(name) ?? "");
    const search = query.size ? `?${query}`.replaceAll("%2C", ",") : "";
    const fragment = this.value("lesson") ? "" : this.fragment;
    return location.href.replace(/[?#].*/, "") + search + (fragment && `#${fragment}`);
  }

  get fragment() {
    const settings = this.settings;
    if (this.withA || !settings.has("compare")) return this.listener.here().hash.slice(1);
    settings.delete("compare");
    return settings.toString().replaceAll("%2C", ",").replaceAll("%2F", "/");
  }

  get title() {
    return this.picture?.frame ?? document.title;
  }

  get bare() {
    return `<iframe src="${quoted(this.address(true))}" width="100%" height="${this.height}" title="${quoted(this.title)}"></iframe>`;
  }

  get height() {
    return Math.round(Number(this.value("height"))) || 640;
  }

  get frame() {
    return [
      `<iframe src="${quoted(this.address(true))}"`,
      `  title="${quoted(this.title)}"`,
      `  width="100%" height="${this.height}" frameborder="0" loading="lazy"`,
      `  allow="fullscreen; clipboard-write" referrerpolicy="strict-origin-when-cross-origin"`,
      `  sandbox="${SANDBOX}"></iframe>`,
    ].join("\n");
  }

  /** The code of the web component; a small figure and a link stand in it for where scripts do not run. */
  get element() {
    const script = new URL("static/js/pipeline-schedule.js", location.href.replace(/[?#].*/, ""));
    const [settings, query] = [new URLSearchParams(this.fragment), new URL(this.address(true)).searchParams];
    const attributes = settings.has("compare") ? [["scenario", this.fragment]] : sorted(settings).map(([name, value]) => [name.replaceAll("_", "-"), value]);
    if (query.has("lesson")) attributes.length = 0;
    if (query.get("embed") === "1") query.delete("embed"); // it is so by itself
    for (const [name, value] of query) attributes.push([name === "embed" ? "mode" : name, value]);
    const { thumbnail = "", words = "", open = say("share.open_link") } = this.picture ?? {};
    const image = thumbnail && !this.covered && !query.has("lesson") ? [`  <img width="480" alt="${quoted(words)}" src="${quoted(inline(thumbnail))}">`] : [];
    return [
      `<script defer src="${quoted(script.href)}"></script>`, // not a module: from another host that would need CORS
      `<pipeline-schedule${attributes.map(([name, value]) => ` ${name}="${quoted(value)}"`).join("")}>`,
      ...image,
      `  <a rel="alternate" href="${quoted(this.address(false))}">${quoted(open)}</a>`,
      "</pipeline-schedule>",
    ].join("\n");
  }

  /** Whether files can be saved from here: "yes", "no", or "perhaps" where the frame does not tell.
   * @returns {"yes" | "no" | "perhaps"} */
  get downloads() {
    if (window.parent === window) return "yes";
    try {
      const frame = /** @type {HTMLIFrameElement | null} */ (window.frameElement);
      if (!frame) return "perhaps";
      return frame.hasAttribute("sandbox") && !frame.sandbox.contains("allow-downloads") ? "no" : "yes";
    } catch {
      return "perhaps";
    }
  }

  /** Offer to save where that can work, and say what to do where it cannot. */
  saving() {
    const { downloads } = this;
    for (const name of ["save-svg", "save-png", "save-pdf"]) this.part(name).hidden = downloads === "no";
    this.data.buttons[1].hidden = downloads === "no";
    const note = this.part("downloads");
    note.hidden = downloads === "yes";
    if (downloads === "yes") return;
    /** @type {HTMLElement} */ (note.firstElementChild).textContent = say(downloads === "no" ? "share.no_downloads" : "share.maybe_downloads");
    /** @type {HTMLAnchorElement} */ (note.lastElementChild).href = this.address(false);
  }

  /** Copy a field: by the clipboard, else as of old, else select it for the reader's own hand. @param {Text} field */
  async copy(field) {
    let copied = false;
    try {
      await navigator.clipboard.writeText(field.value);
      copied = true;
    } catch {
      field.focus();
      field.select();
      try {
        copied = document.execCommand("copy");
      } catch {
        // nothing is left but to leave it selected
      }
    }
    this.say(copied ? say("share.copied", { what: field.getAttribute("aria-label") ?? "" }) : say("share.selected"));
  }

  async copyPicture() {
    try {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": this.png() })]);
      this.say(say("share.copied", { what: say("share.picture") }));
    } catch {
      this.say(say("share.not_copied"));
    }
  }

  /** @returns {Promise<Blob>} */
  png() {
    const canvas = /** @type {HTMLCanvasElement} */ (this.part("canvas"));
    return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png"));
  }

  /** Save with the name of the picture. @param {string} ending @param {Blob} blob */
  save(ending, blob) {
    this.saveAs(`${this.picture?.stem ?? "pipesched"}.${ending}`, blob);
  }

  /** @param {string} file @param {Blob} blob */
  saveAs(file, blob) {
    const link = Object.assign(document.createElement("a"), { download: file, href: URL.createObjectURL(blob) });
    this.dialog.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    this.say(say("share.saved", { file }));
  }

  /** @param {string} text */
  say(text) {
    this.part("said").textContent = text;
  }
}

/** @param {string} text */
const quoted = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\n", "&#10;");

/** Settings as a person would write them: the main ones first. @param {URLSearchParams} settings */
function sorted(settings) {
  const rank = (/** @type {string} */ name) => (MAIN.includes(name) ? MAIN.indexOf(name) : MAIN.length);
  return [...settings].sort(([one], [other]) => rank(one) - rank(other));
}

/** A drawing as an address of its own, as short as can be. @param {string} svg */
function inline(svg) {
  const escaped = svg.replaceAll('"', "'").replace(/[%#<>]/g, encodeURIComponent);
  return `data:image/svg+xml,${escaped}`;
}
