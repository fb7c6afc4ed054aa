// @ts-check
// The ways of a token back from the last stage to the first, drawn on the chart for the block that a person selects.

const SVG = "http://www.w3.org/2000/svg";
const TIP = 9; // CSS pixels

/** @typedef {{device: number, time: number}} Place */

/** Draw `ways`, in place of those drawn before. @param {import("./chart.js").Chart} chart
 * @param {{from: Place, to: Place}[]} ways */
export function drawReturns(chart, ways) {
  for (const old of chart.svg?.querySelectorAll(".way-back") ?? []) old.remove();
  const at = (/** @type {Place} */ { device, time }) => [chart.x(time), chart.fact("top") + chart.fact("lane") * device + chart.fact("block") / 2];
  for (const { from, to } of ways) {
    const [x, y] = at(from);
    const [toX, toY] = at(to);
    const long = Math.hypot(toX - x, toY - y);
    const [along, up] = [(toX - x) / long, (toY - y) / long];
    const tip = [1, -1].map((side) => `M${toX} ${toY}L${toX - TIP * along + 5 * side * up} ${toY - TIP * up - 5 * side * along}`);
    const arrow = document.createElementNS(SVG, "path");
    arrow.setAttribute("class", "way-back");
    arrow.setAttribute("d", `M${x} ${y}L${toX} ${toY}${tip.join("")}`);
    chart.svg?.append(arrow);
  }
}
