// @ts-check
// Python's SVG goes in; play head, cursor, pointing and zoom are added on top. What is under the pointer is worked out
// from the geometry that the chart states about itself, so a dense chart answers as a sparse one does.

const SVG = "http://www.w3.org/2000/svg";
const ZOOMS = [1, 2, 4, 8];
const [SMALLEST, LARGEST] = [0.5, 3]; // scales of a drawing that fills its box
const NARROW = 420; // user units; a drawing is not scaled up to fewer of them across

/** @typedef {[device: number, start: number, end: number]} Span */

const DRAWN = new Set(["svg", "g", "defs", "pattern", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "title", "desc", "marker", "clipPath"]);

/** A drawing of Python's as an element. Where another frame's Python drew it, this page does not know whose it is: so
 * nothing that could run or load comes through. @param {string} text */
export function parsed(text) {
  const svg = /** @type {SVGSVGElement} */ (/** @type {any} */ (new DOMParser().parseFromString(text, "image/svg+xml").documentElement));
  for (const node of [svg, ...svg.querySelectorAll("*")]) {
    if (!DRAWN.has(node.localName)) node.remove();
    for (const { name } of [...node.attributes]) if (/^on|^style$|href$/i.test(name)) node.removeAttribute(name);
  }
  return svg;
}

export class Chart {
  /** @param {HTMLElement} box
   * @param {{pointed: (device: number, time: number, move?: number, picked?: boolean) => Promise<void>, resized: () => void}} listener */
  constructor(box, listener) {
    this.box = box;
    this.listener = listener;
    this.zoom = 0;
    this.fills = false; // whether the drawing is as large as the height of the box allows, as on a slide
    this.scale = 1;
    this.end = 0;
    this.last = Promise.resolve();
    /** @type {SVGSVGElement | null} */
    this.svg = null;
    this.cursor = { device: 0, time: 0 };
    box.addEventListener("pointermove", (event) => event.pointerType === "mouse" && this.point(event));
    box.addEventListener("click", (event) => this.point(event));
    box.addEventListener("keydown", (event) => this.key(event));
    let width = 0;
    new ResizeObserver(() => {
      const other = this.fit();
      if (Math.abs(box.clientWidth - width) < 2 && !other) return;
      width = box.clientWidth;
      listener.resized();
    }).observe(box);
  }

  /** Width to draw at, in CSS pixels. */
  get width() {
    return (Math.max(260, this.box.clientWidth) * ZOOMS[this.zoom]) / this.scale;
  }

  /** Whether the drawing was made for another width than the box has now. */
  get isStale() {
    return this.svg !== null && Math.abs(this.svg.viewBox.baseVal.width - this.width) >= 2;
  }

  /** Find the scale at which the drawing fills the box; says whether it should be drawn anew for it. */
  fit() {
    if (!this.fills || !this.svg) return false;
    const high = this.svg.viewBox.baseVal.height;
    const scale = Math.min(LARGEST, Math.max(SMALLEST, Math.min((0.99 * this.box.clientHeight) / high, Math.max(1, this.box.clientWidth / NARROW))));
    if (Math.abs(scale / this.scale - 1) < 0.03) return false;
    this.scale = scale;
    return true;
  }

  /** @param {1 | -1} way */
  magnify(way) {
    this.zoom = Math.max(0, Math.min(ZOOMS.length - 1, this.zoom + way));
  }

  /** Show a new drawing. @param {string} text */
  draw(text) {
    const svg = parsed(text);
    this.svg = svg;
    if (this.fills) for (const side of /** @type {const} */ (["width", "height"])) svg.setAttribute(side, String(svg.viewBox.baseVal[side] * this.scale));
    this.head = /** @type {SVGPathElement} */ (document.createElementNS(SVG, "path"));
    this.head.setAttribute("class", "head");
    this.outline = /** @type {SVGRectElement} */ (document.createElementNS(SVG, "rect"));
    this.outline.setAttribute("class", "outline");
    this.outline.setAttribute("visibility", "hidden");
    svg.append(this.outline, this.head);
    this.box.replaceChildren(svg);
    this.end = this.fact("end");
    if (this.fit()) this.listener.resized();
  }

  /** A number the drawing states about itself. @param {string} name */
  fact(name) {
    return Number(this.svg?.dataset[name]);
  }

  /** @param {number} time */
  x(time) {
    return this.fact("left") + (this.fact("plot") * time) / (this.end || 1);
  }

  /** Put the play head at `time`. @param {number} time */
  play(time) {
    const bottom = this.fact("top") + this.fact("lane") * this.fact("devices");
    this.head?.setAttribute("d", `M${this.x(time)} 2V${bottom}`);
  }

  /** Outline what stands on `device` from `start` to `end`, and every block of the same micro-batch.
   * @param {{device: number, start: number, end: number, op: string | null}} spot */
  select({ device, start, end, op }) {
    this.cursor = { device, time: start };
    const box = { x: this.x(start), y: this.fact("top") + this.fact("lane") * device, width: this.x(end) - this.x(start), height: this.fact("block") };
    for (const [name, value] of Object.entries(box)) this.outline?.setAttribute(name, String(value));
    this.outline?.setAttribute("visibility", "visible");
    const micro = op?.match(/\d+$/)?.[0];
    for (const block of this.svg?.querySelectorAll("g.op") ?? []) {
      block.classList.toggle("same", micro !== undefined && block.getAttribute("data-op")?.match(/\d+$/)?.[0] === micro);
    }
  }

  /** Draw the line through the blocks behind a gap, nearest first; none: take it away.
   * @param {Span[]} links @param {number} device @param {number} end of the gap */
  follow(links, device, end) {
    this.line?.remove();
    if (!links.length) return;
    // Low in the blocks, so that it does not strike out their names.
    const low = (/** @type {number} */ lane) => this.fact("top") + this.fact("lane") * lane + this.fact("block") * 0.85;
    const corners = links.map(([lane, from, to]) => `L${this.x(to)} ${low(lane)}L${this.x(from)} ${low(lane)}`);
    this.line = this.over("chain", `M${this.x(end)} ${low(device)}${corners.join("")}`);
  }

  /** Outline these spans and grey all else. From the geometry alone, so it holds in a dense chart too.
   * @param {Span[]} spans none: take it away */
  stress(spans) {
    for (const part of this.stressed ?? []) part.remove();
    if (!spans.length) return;
    const [top, lane, block] = ["top", "lane", "block"].map((name) => this.fact(name));
    const boxes = spans.map(([device, from, to]) => `M${this.x(from)} ${top + lane * device}H${this.x(to)}v${block}H${this.x(from)}z`).join("");
    const all = `M${this.fact("left")} ${top}h${this.fact("plot")}v${lane * this.fact("devices")}h${-this.fact("plot")}z`;
    this.stressed = [this.over("veil", all + boxes), this.over("critical", boxes)];
  }

  /** A path over the blocks and under the outline of what is selected. @param {string} name @param {string} d */
  over(name, d) {
    const path = /** @type {SVGPathElement} */ (document.createElementNS(SVG, "path"));
    path.setAttribute("class", name);
    path.setAttribute("d", d);
    this.svg?.insertBefore(path, this.outline ?? null);
    return path;
  }

  /** @param {PointerEvent | MouseEvent} event */
  point(event) {
    if (!this.svg) return;
    const frame = this.svg.getBoundingClientRect();
    const scale = this.svg.viewBox.baseVal.width / frame.width; // holds inside scaled slides too
    const device = Math.floor(((event.clientY - frame.top) * scale - this.fact("top")) / this.fact("lane"));
    const time = (((event.clientX - frame.left) * scale - this.fact("left")) / this.fact("plot")) * this.end;
    if (device >= 0 && device < this.fact("devices") && time >= 0 && time <= this.end) this.listener.pointed(device, time, 0, event.type === "click");
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    /** @type {Record<string, (at: {device: number, time: number}) => [number, number, number?]>} */
    const moves = {
      ArrowRight: ({ device, time }) => [device, time, 1],
      ArrowLeft: ({ device, time }) => [device, time, -1],
      ArrowUp: ({ device, time }) => [Math.max(0, device - 1), time],
      ArrowDown: ({ device, time }) => [Math.min(this.fact("devices") - 1, device + 1), time],
      Home: ({ device }) => [device, 0],
      End: ({ device }) => [device, this.end],
    };
    const move = moves[event.key];
    if (!this.svg || !move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    // One after another: where a key leads from is known only when the one before it has been answered.
    this.last = this.last.then(() => {
      const [device, time, step] = move(this.cursor);
      return this.listener.pointed(device, time, step, true);
    });
  }
}
