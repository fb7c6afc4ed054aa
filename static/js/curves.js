// @ts-check
// Curves of a metric over M or K: the points are asked for one by one, so that a drag never waits for more than one,
// and Python draws what has come in.

import { parsed } from "./chart.js";

/** @typedef {{schedule: string, points: [number, number | null][]}} Series */

const STOPS = { micro_batches: [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64], devices: [1, 2, 3, 4, 6, 8, 12, 16] };

export class Curves {
  /** @param {HTMLDetailsElement} section
   * @param {{ask: (kind: string, details: object, settings?: object) => Promise<any>, shown: () => Record<string, any>,
   *   width: () => number, changed: () => void}} listener */
  constructor(section, listener) {
    this.section = section;
    this.listener = listener;
    this.run = 0;
    /** @param {string} id */
    const part = (id) => /** @type {HTMLElement} */ (section.querySelector(`#${id}`));
    this.axis = /** @type {HTMLSelectElement} */ (part("curve-axis"));
    this.metric = /** @type {HTMLSelectElement} */ (part("curve-metric"));
    this.more = /** @type {HTMLSelectElement} */ (part("curve-add"));
    this.list = part("curve-list");
    this.box = part("curve-box");
    this.note = part("curve-note");
    /** @type {Set<string>} */
    this.picked = new Set(["gpipe", "1f1b", "zb_h1"]);
    section.addEventListener("toggle", () => this.refresh());
    for (const choice of [this.axis, this.metric]) choice.addEventListener("change", () => this.refresh());
    this.more.addEventListener("change", () => {
      if (this.more.value) this.picked.add(this.more.value);
      this.more.value = "";
      this.refresh();
    });
  }

  /** The state of the view, for the address; empty while it is closed. */
  get address() {
    return this.section.open ? [this.axis.value, this.metric.value, ...this.picked].join(",") : "";
  }

  /** @param {string} address */
  set address(address) {
    const [axis, metric, ...schedules] = address.split(",");
    for (const [choice, value] of /** @type {[HTMLSelectElement, string][]} */ ([[this.axis, axis], [this.metric, metric]])) {
      if ([...choice.options].some((option) => option.value === value)) choice.value = value;
    }
    const known = new Set([...this.more.options].map((option) => option.value));
    if (schedules.length) this.picked = new Set(schedules.filter((name) => name && known.has(name)));
    this.section.open = true;
  }

  /** Ask for all points anew; a newer call ends an older one. */
  async refresh() {
    this.listener.changed();
    const run = ++this.run;
    if (!this.section.open) return;
    this.buttons();
    const [axis, metric, settings] = [this.axis.value, this.metric.value, this.listener.shown()];
    const schedules = [...new Set([...this.picked, ...(this.more.querySelector(`[value="${settings.schedule}"]`) ? [settings.schedule] : [])])];
    const here = Number(settings[axis]);
    const stops = [...new Set([...STOPS[/** @type {"devices" | "micro_batches"} */ (axis)], ...(here <= 64 ? [here] : [])])].sort((a, b) => a - b);
    /** @type {Series[]} */
    const series = schedules.map((schedule) => ({ schedule, points: [] }));
    for (const line of series) {
      for (const x of stops) {
        const plain = { ...settings, schedule: line.schedule, [axis]: x, stage_times: axis === "devices" ? "" : settings.stage_times, slow_stage: "", group: "" };
        const answer = await this.listener.ask("point", { metric }, plain);
        if (run !== this.run) return;
        if (answer) line.points.push([x, answer.problems.length ? null : answer.y]);
      }
      const drawn = await this.listener.ask("curves", { axis, metric, series: series.filter(({ points }) => points.length), width: this.listener.width() });
      if (run !== this.run) return;
      if (drawn) this.box.replaceChildren(parsed(drawn.svg));
    }
    this.note.hidden = axis !== "devices" || !settings.stage_times;
  }

  /** The schedules picked, each with a button that takes it away. */
  buttons() {
    this.list.replaceChildren(
      ...[...this.picked].map((name) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = `${this.more.querySelector(`[value="${name}"]`)?.textContent ?? name} ×`;
        button.addEventListener("click", () => {
          this.picked.delete(name);
          this.refresh();
        });
        return button;
      }),
    );
  }
}
