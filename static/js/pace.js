// @ts-check
// How much of a download is done goes in, how many seconds it will still take comes out.

const WINDOW = 5000; // ms that the pace is taken over: long enough to be steady, short enough to follow a change
const ENOUGH = 1500; // ms of download before a pace can be told

export class Pace {
  constructor() {
    /** @type {{at: number, done: number}[]} */
    this.seen = [];
  }

  /** Seconds left, in steps that do not flicker; null while there is no telling.
   * @param {number} done @param {number} total @param {number} [now] */
  left(done, total, now = performance.now()) {
    if (this.seen.length && done < this.seen[this.seen.length - 1].done) this.seen = []; // it began anew
    this.seen.push({ at: now, done });
    while (this.seen.length > 2 && now - this.seen[1].at > WINDOW) this.seen.shift();
    const [first] = this.seen;
    if (now - first.at < ENOUGH || done <= first.done || done >= total) return null;
    const seconds = ((total - done) * (now - first.at)) / (done - first.done) / 1000;
    const step = seconds > 60 ? 30 : seconds > 10 ? 5 : 1;
    return Math.ceil(seconds / step) * step;
  }
}
