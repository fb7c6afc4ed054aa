// @ts-check
// A drawing of Python's goes in, the same on a canvas comes out. The browser could draw an SVG as an image, but not under
// a policy without blob: and data:, and in some browsers not back out again. Known is what those drawings use: rect,
// path, text, patterns, groups, a drawing inside a drawing; nothing else.

const MOST = 16e6; // pixels; some phones refuse a larger canvas
const TILE = 8; // user units, of every pattern

/** Draw `svg` on `canvas`, `scale` pixels per user unit, fewer where that would be too many.
 * @param {HTMLCanvasElement} canvas @param {Element} svg @param {number} scale */
export function draw(canvas, svg, scale) {
  const [width, height] = [number(svg, "width"), number(svg, "height")];
  const fits = Math.min(scale, Math.sqrt(MOST / (width * height)));
  canvas.width = Math.round(width * fits);
  canvas.height = Math.round(height * fits);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.scale(fits, fits);
  children(pen, svg, { svg, width, height, scale: fits });
}

/** @typedef {{svg: Element, width: number, height: number, scale: number}} Sheet */

/** @param {CanvasRenderingContext2D} pen @param {Element} parent @param {Sheet} sheet */
function children(pen, parent, sheet) {
  for (const node of parent.children) {
    pen.save();
    if (node.tagName === "g") children(pen, node, sheet);
    else if (node.tagName === "svg") {
      pen.translate(number(node, "x"), number(node, "y"));
      children(pen, node, { ...sheet, svg: node, width: number(node, "width"), height: number(node, "height") });
    } else if (node.tagName === "rect") shape(pen, node, sheet, box(node, sheet));
    else if (node.tagName === "path") shape(pen, node, sheet, new Path2D(node.getAttribute("d") ?? ""));
    else if (node.tagName === "text") text(pen, node, sheet);
    pen.restore();
  }
}

/** @param {Element} node @param {string} name */
const number = (node, name) => Number(node.getAttribute(name) ?? 0);
/** What holds for a node: its own attribute, else that of what it stands in. @param {Element} node @param {string} name */
const holds = (node, name) => node.closest(`[${name}]`)?.getAttribute(name);

/** @param {Element} node @param {Sheet} sheet */
function box(node, { width, height }) {
  const path = new Path2D();
  const share = (/** @type {string} */ name, /** @type {number} */ whole) => (node.getAttribute(name) === "100%" ? whole : number(node, name));
  path.roundRect(number(node, "x"), number(node, "y"), share("width", width), share("height", height), number(node, "rx"));
  return path;
}

/** @param {CanvasRenderingContext2D} pen @param {Element} node @param {Sheet} sheet @param {Path2D} path */
function shape(pen, node, sheet, path) {
  const fill = paint(pen, holds(node, "fill") ?? "#000", sheet);
  if (fill) {
    pen.fillStyle = fill;
    pen.fill(path);
  }
  const stroke = holds(node, "stroke");
  if (!stroke || stroke === "none") return;
  pen.strokeStyle = stroke;
  pen.lineWidth = Number(holds(node, "stroke-width") ?? 1);
  pen.lineCap = /** @type {CanvasLineCap} */ (holds(node, "stroke-linecap") ?? "butt");
  pen.setLineDash((holds(node, "stroke-dasharray") ?? "").match(/[\d.]+/g)?.map(Number) ?? []);
  pen.stroke(path);
}

/** A colour, a pattern, or null for nothing. @param {CanvasRenderingContext2D} pen @param {string} fill @param {Sheet} sheet */
function paint(pen, fill, { svg, scale }) {
  const id = /^url\(#(.+)\)$/.exec(fill)?.[1];
  if (!id) return fill === "none" ? null : fill;
  const tile = document.createElement("canvas");
  const found = svg.querySelector(`[id="${id}"]`);
  if (!found) return null;
  tile.width = tile.height = Math.ceil(TILE * scale);
  const brush = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
  brush.scale(tile.width / TILE, tile.width / TILE);
  children(brush, found, { svg, scale, width: TILE, height: TILE });
  const pattern = pen.createPattern(tile, "repeat");
  pattern?.setTransform(new DOMMatrix().scale(TILE / tile.width));
  return pattern;
}

/** @param {CanvasRenderingContext2D} pen @param {Element} node @param {Sheet} sheet */
function text(pen, node, sheet) {
  pen.font = `${holds(node, "font-weight") ?? 400} ${holds(node, "font-size") ?? 13}px ${holds(node, "font-family") ?? "sans-serif"}`;
  pen.fillStyle = paint(pen, holds(node, "fill") ?? "#000", sheet) ?? "transparent";
  pen.textAlign = /** @type {CanvasTextAlign} */ ({ middle: "center", end: "end" }[holds(node, "text-anchor") ?? ""] ?? "start");
  const words = node.textContent ?? "";
  const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = pen.measureText(words);
  const lower = node.getAttribute("dominant-baseline") === "central" ? (up - down) / 2 : 0; // canvas's own middle is another
  pen.fillText(words, number(node, "x"), number(node, "y") + lower);
}
