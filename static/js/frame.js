// @ts-check
// The page inside another one keeps out of its way: it writes no history, takes no focus, scrolls nothing but itself,
// and tells how high it is. Each of these is refused somewhere (a sandbox, a blocked storage, a file), so each may fail.

export const framed = window.parent !== window;

const CLOSE = 4; // px; a height that differs by less is not told
const MOST = 5; // growths that nothing here explains: more of them, and the page around us is what makes us grow
const SCROLLBAR = 20; // px; a width that changes by less may come from our own height
const KEYS = ["PageDown", "PageUp", "Escape"];
const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
const CODES = { PageDown: 34, PageUp: 33, Escape: 27, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 };

/** Tell the page around us. Nothing private is said, so whoever it is may hear it. @param {unknown} message */
export const tell = (message) => framed && window.parent.postMessage(message, "*");

/** The address of the page, also where the browser does not let us write it. */
export const here = { search: location.search, hash: location.hash };

/** Take over the address that somebody else has set: the back button, a link. */
export function arrive() {
  here.search = location.search;
  here.hash = location.hash;
}

let late = 0;

/** Change the address; in a frame without an entry, as the back button is the host's. @param {string} to a path with
 * query and fragment @param {"push" | "replace"} entry */
export function write(to, entry = "replace") {
  const [, search = "", hash = ""] = /^[^?#]*(\?[^#]*)?(#[^]*)?$/.exec(to) ?? [];
  Object.assign(here, { search, hash });
  clearTimeout(late);
  try {
    if (entry === "push" && !framed) history.pushState(null, "", to);
    else history.replaceState(null, "", to);
  } catch {
    // Refused for ever (about:srcdoc), or for coming too often (Safari takes a hundred in half a minute).
    if (location.protocol.startsWith("http")) late = setTimeout(() => write(to), 5000);
  }
}

/** Bring `element` into view, scrolling this document and none around it, as scrollIntoView would.
 * @param {HTMLElement} element */
export function reveal(element) {
  const { top, bottom } = element.getBoundingClientRect();
  if (top < 0) window.scrollBy(0, top);
  else if (bottom > window.innerHeight) window.scrollBy(0, Math.min(top, bottom - window.innerHeight));
}

/** Move the focus where a person's own action leads, without scrolling the page around us. @param {HTMLElement} element */
export function focus(element) {
  element.focus({ preventScroll: true });
  reveal(element);
}

/** Tells the height of the page in the conventions that hosts listen to; must not take part in a growth loop, where a
 * host that makes us higher makes us grow. */
export class Height {
  constructor() {
    this.sent = 0;
    this.growths = 0;
    this.width = window.innerWidth;
    if (!framed) return;
    for (const kind of ["pointerdown", "keydown", "input"]) addEventListener(kind, () => this.explained(), { capture: true, passive: true });
    addEventListener("resize", () => {
      if (Math.abs(window.innerWidth - this.width) < SCROLLBAR) return;
      this.width = window.innerWidth;
      this.explained();
    });
    new ResizeObserver(() => this.measure()).observe(document.documentElement);
  }

  /** Something of ours has changed: what grows now has a reason. */
  explained() {
    this.growths = 0;
  }

  measure() {
    const height = Math.ceil(document.documentElement.getBoundingClientRect().height);
    if (!height || Math.abs(height - this.sent) < CLOSE) return;
    if (height > this.sent && ++this.growths > MOST) return;
    this.sent = height;
    this.say();
  }

  say() {
    if (!this.sent) return;
    const { sent: height } = this;
    tell({ pipesched: "height", height });
    tell({ subject: "lti.frameResize", height }); // Canvas
    tell({ subject: "org.imsglobal.lti.frameResize", height }); // Brightspace, Blackboard
    tell({ sentinel: "amp", type: "embed-size", height });
  }
}

/** In a slide, keys that turn slides are the host's, wherever the focus is; arrows are, where no control needs them. */
export function forwardKeys() {
  addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const used = /** @type {HTMLElement} */ (target).closest?.("input, select, textarea, #chart") ?? null;
    if (!KEYS.includes(key) && (!ARROWS.includes(key) || used)) return;
    event.preventDefault();
    tell({ pipesched: "key", key });
    tell(JSON.stringify({ method: "triggerKey", args: [CODES[/** @type {keyof CODES} */ (key)]] })); // reveal.js
  });
}

/** Call when the page can no longer be seen: another tab, another slide, scrolled away. @param {() => void} left */
export function whenHidden(left) {
  document.addEventListener("visibilitychange", () => document.hidden && left());
  new IntersectionObserver(([{ isIntersecting }]) => isIntersecting || left()).observe(document.body);
}

/** A wheel over a number that has the focus would turn the number: it scrolls, as elsewhere. */
export function scrollOverNumbers() {
  const loosen = () => document.activeElement instanceof HTMLInputElement && document.activeElement.type === "number" && document.activeElement.blur();
  addEventListener("wheel", loosen, { passive: true });
}

const OURS = "pipesched slide";

/** What a slide was at when its deck unloaded it. It stands in the name of the frame, which outlives what the frame
 * shows: that is nowhere denied, as storage is, and each slide has its own. A name that the deck has given stays. */
export class Memory {
  /** @param {boolean} on */
  constructor(on) {
    this.on = on && framed;
    this.key = `${OURS} ${location.search}${location.hash}`;
  }

  /** @returns {{hash: string, time: number} | null} */
  recall() {
    try {
      const { key, ...state } = JSON.parse(window.name);
      return this.on && key === this.key ? state : null;
    } catch {
      return null; // it has another name, or none
    }
  }

  /** @param {{hash: string, time: number}} state */
  keep(state) {
    if (this.on && (!window.name || window.name.includes(OURS))) window.name = JSON.stringify({ key: this.key, ...state });
  }
}
