// @ts-check
// A question goes in, a promise of its answer comes out. Python runs in a worker; one question is with it at a time,
// and of several that wait in the same lane only the newest is ever asked, so a drag queues no stale work and its
// last value always lands.

import { whyNoWorker } from "./diagnose.js";

const SILENCE = 15_000; // ms without a byte, or without the next stage of the start, before we call it stalled
const START = 90_000; // ms that starting Python may take once everything is loaded: old phones need most of it
/** After these the worker is well and has what arrived: another try goes on from there. */
const RESUMABLE = new Set(["network", "offline", "cut", "server", "refused", "redirect", "html", "missing", "filtered", "stalled"]);

/** @typedef {{cause: string, file?: string, status?: number, text?: string, seconds?: number, type?: string, directive?: string}} Failure */
/** @typedef {{stage: string, done?: number, total?: number}} Progress */
/** @typedef {{lane: string, text: string, resolve: (answer: any) => void, reject: (error: Error) => void}} Question */

export class Simulator {
  /** @param {{progress: (p: Progress) => void, ready: () => void, failed: (f: Failure) => void}} listener */
  constructor(listener) {
    this.listener = listener;
    /** @type {Map<string, Question>} */
    this.waiting = new Map();
    /** @type {Question | null} */
    this.asked = null;
    this.ready = false;
    this.start();
  }

  /** Start, or start afresh after a failure. */
  start() {
    this.stop();
    this.ready = false;
    try {
      this.worker = new Worker(new URL("worker.js", import.meta.url));
    } catch {
      this.fail({ cause: "no_worker", file: "worker.js" });
      return;
    }
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      if (!this.ready) this.fail({ cause: "no_worker", file: "worker.js" });
    };
    this.watch(SILENCE, { cause: "stalled", file: "worker.js" });
  }

  /** Try again after a failure, with what has arrived already if it can be kept. */
  retry() {
    if (!this.worker) return this.start();
    this.watch(SILENCE, { cause: "stalled", file: "worker.js" });
    this.worker.postMessage({ again: true });
  }

  stop() {
    clearTimeout(this.watchdog);
    this.worker?.terminate();
    this.worker = undefined;
  }

  /** Ask Python; resolves with its answer, or with null when a newer question in the same lane took its place.
   * @param {string} lane @param {object} question @returns {Promise<any>} */
  ask(lane, question) {
    this.waiting.get(lane)?.resolve(null);
    return new Promise((resolve, reject) => {
      this.waiting.set(lane, { lane, text: JSON.stringify(question), resolve, reject });
      this.next();
    });
  }

  next() {
    if (!this.ready || this.asked) return;
    const [question] = this.waiting.values();
    if (!question) return;
    this.waiting.delete(question.lane);
    this.asked = question;
    this.worker?.postMessage(question.text);
  }

  /** @param {any} data */
  hear(data) {
    if (data.progress) {
      const { stage, file } = data.progress;
      if (stage === "download") this.watch(SILENCE, { cause: "stalled", file });
      else this.watch(START, { cause: "slow", seconds: START / 1000 });
      this.listener.progress(data.progress);
    } else if (data.failure) {
      this.fail(data.failure);
    } else if (data.ready) {
      clearTimeout(this.watchdog);
      this.ready = true;
      this.listener.ready();
      this.next();
    } else {
      const question = this.asked;
      this.asked = null;
      if (data.error) question?.reject(new Error(data.error));
      else question?.resolve(JSON.parse(data.answer));
      if (data.fatal) this.start(); // the interpreter itself is gone; the next question finds a fresh one
      else this.next();
    }
  }

  /** @param {number} time @param {Failure} failure */
  watch(time, failure) {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => this.fail(failure), time);
  }

  /** @param {Failure} failure */
  async fail(failure) {
    clearTimeout(this.watchdog);
    const inWorker = failure.file === "worker.js";
    if (inWorker || !RESUMABLE.has(failure.cause)) this.stop();
    this.listener.failed(inWorker && failure.cause === "no_worker" ? await whyNoWorker(new URL("worker.js", import.meta.url)) : failure);
  }
}
