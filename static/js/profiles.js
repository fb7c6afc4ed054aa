// @ts-check
// What stands under the chart, on its time axis: curves that Python draws once a person opens them. They are asked for
// when the settings have come to rest, each in its own lane, so that a drag never waits for them.

import { parsed } from "./chart.js";

const SVG = "http://www.w3.org/2000/svg";
const REST = 150; // ms without a newer chart until the curves are asked for

/** @typedef {{svg: string, sentences: string[], formula: string[]}} Drawing */

export class Profiles {
  /** @param {NodeListOf<HTMLDetailsElement>} places each with the `data-of` it shows
   * @param {HTMLElement} chart whose box scrolls with theirs
   * @param {(of: string) => Promise<Drawing | null>} ask */
  constructor(places, chart, ask) {
    this.places = [...places];
    this.chart = chart;
    this.ask = ask;
    this.time = 0;
    this.timer = 0;
    this.charts = 0; // how many have been shown: an answer about an older one is not drawn
    for (const place of this.places) {
      place.addEventListener("toggle", () => place.open && this.draw(place));
      const box = this.box(place);
      box.addEventListener("scroll", () => (chart.scrollLeft = box.scrollLeft));
    }
    chart.addEventListener("scroll", () => this.align());
  }

  /** @param {HTMLElement} place */
  box(place) {
    return /** @type {HTMLElement} */ (place.querySelector(".strips"));
  }

  /** Another chart is shown: what is open follows once it has stayed for a moment. */
  show() {
    clearTimeout(this.timer);
    this.charts += 1;
    for (const place of this.places) place.dataset.stale = "";
    this.timer = setTimeout(() => this.places.forEach((place) => place.open && this.draw(place)), REST);
  }

  /** @param {HTMLDetailsElement} place */
  async draw(place) {
    if (!("stale" in place.dataset)) return;
    const chart = this.charts;
    const drawing = await this.ask(place.dataset.of ?? "");
    if (!drawing || chart !== this.charts) return; // a newer question has taken its place, or is about to
    delete place.dataset.stale;
    const svg = parsed(drawing.svg);
    const head = document.createElementNS(SVG, "path");
    head.setAttribute("class", "head");
    svg.append(head);
    this.box(place).replaceChildren(svg);
    for (const [name, lines] of /** @type {[string, string[]][]} */ ([[".peaks", drawing.sentences], [".formula", drawing.formula]])) {
      /** @type {HTMLElement} */ (place.querySelector(name)).textContent = lines.join(" ");
    }
    this.align();
    this.play(this.time);
  }

  align() {
    for (const place of this.places) {
      const box = this.box(place);
      if (box.scrollLeft !== this.chart.scrollLeft) box.scrollLeft = this.chart.scrollLeft;
    }
  }

  /** Put the play heads at `time`. @param {number} time */
  play(time) {
    this.time = time;
    for (const place of this.places) {
      const svg = place.querySelector("svg");
      if (!svg) continue;
      const fact = (/** @type {string} */ name) => Number(svg.dataset[name]);
      const x = fact("left") + (fact("plot") * Math.min(time, fact("end"))) / (fact("end") || 1);
      svg.querySelector(".head")?.setAttribute("d", `M${x} 2V${fact("height")}`);
    }
  }
}
