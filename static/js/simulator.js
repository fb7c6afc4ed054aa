// @ts-check
// A question goes in, a promise of its answer comes out. Python runs in a worker; one question is with it at a time,
// and of several that wait in the same lane only the newest is ever asked, so a drag queues no stale work and its
// last value always lands.
//
// Several frames of one page can share one Python: a frame may ask through a port that the page around it hands out
// (`lend`), and answer for others (`serve`). What goes through a port is what goes to and from a worker.

import { whyNoWorker } from "./diagnose.js";
import { startWorker, whole, workerAddress } from "./parts.js";

const SILENCE = 15_000; // ms without a byte, or without the next stage of the start, before we call it stalled
const START = 90_000; // ms that starting Python may take once everything is loaded: old phones need most of it
/** After these the worker is well and has what arrived: another try goes on from there. */
const RESUMABLE = new Set(["network", "offline", "cut", "server", "refused", "redirect", "html", "missing", "filtered", "stalled"]);

const NEIGHBOUR = 5_000; // ms the page around us may take to hand out a port before we start a Python of our own

/** @typedef {{cause: string, file?: string, status?: number, text?: string, seconds?: number, type?: string, directive?: string}} Failure */
/** @type {Failure} */
const REFUSED = whole() ? { cause: "no_blob" } : { cause: "no_worker", file: "worker.js" };

/** @typedef {{stage: string, done?: number, total?: number}} Progress */
/** @typedef {{lane: string, text: string, resolve: (answer: string | null) => void, reject: (error: Error) => void}} Question */

export class Simulator {
  /** @param {{progress: (p: Progress) => void, ready: (how: string) => void, failed: (f: Failure) => void}} listener
   * @param {(() => void) | null} [borrow] asks for a port to the Python of another frame */
  constructor(listener, borrow = null) {
    this.listener = listener;
    this.borrow = borrow;
    /** @type {Set<MessagePort>} */
    this.served = new Set();
    this.clients = 0;
    /** @type {{progress: Progress} | {ready: string} | {failure: Failure}} */
    this.news = { progress: { stage: "check" } }; // the latest of the start, for those that are served
    /** @type {Map<string, Question>} */
    this.waiting = new Map();
    /** @type {Question | null} */
    this.asked = null;
    this.ready = false;
    this.turn = 0;
    this.start();
  }

  /** Start, or start afresh after a failure. */
  start() {
    this.stop();
    this.ready = false;
    this.again();
    if (this.borrow) {
      if (this.waiting.size) this.call();
      return;
    }
    this.open(this.turn);
    this.watch(SILENCE, { cause: "stalled", file: "worker.js" });
  }

  /** @param {number} turn the start that asks; a newer one ends it */
  async open(turn) {
    try {
      const worker = await startWorker();
      if (turn !== this.turn) return worker.terminate();
      this.worker = worker;
      worker.onmessage = ({ data }) => this.hear(data);
      worker.onerror = (event) => {
        event.preventDefault();
        if (!this.ready) this.fail(REFUSED);
      };
    } catch (error) {
      if (turn === this.turn) this.fail(/** @type {any} */ (error).failure ?? REFUSED);
    }
  }

  /** Try again after a failure, with what has arrived already if it can be kept. */
  retry() {
    if (!this.worker || this.borrow) return this.start();
    this.watch(SILENCE, { cause: "stalled", file: "worker.js" });
    this.worker.postMessage({ again: true });
  }

  stop() {
    this.turn += 1;
    clearTimeout(this.watchdog);
    if (this.worker instanceof MessagePort) this.worker.close();
    else this.worker?.terminate();
    this.worker = undefined;
    this.called = false;
  }

  /** Ask the page around us for a port, once there is something to compute. */
  call() {
    if (this.called) return;
    this.called = true;
    this.borrow?.();
    this.watch(NEIGHBOUR, null);
  }

  /** Python is at the other end of `port`; what was asked through an earlier one is asked again.
   * @param {MessagePort} port */
  lend(port) {
    if (!this.borrow) return port.close(); // it came too late: there is one here
    this.stop();
    this.ready = false;
    this.again();
    this.called = true;
    this.worker = port;
    port.onmessage = ({ data }) => this.hear(data);
    this.watch(SILENCE, null);
  }

  /** Answer what comes through `port` too. @param {MessagePort} port */
  serve(port) {
    if (this.borrow) this.own();
    const lane = `port ${(this.clients += 1)}`;
    this.served.add(port);
    port.addEventListener("close", () => this.served.delete(port)); // where browsers tell
    port.onmessage = async ({ data }) => {
      try {
        const answer = await this.relay(lane, String(data));
        if (answer !== null) port.postMessage({ answer });
      } catch (error) {
        port.postMessage({ error: /** @type {Error} */ (error).message, fatal: false });
      }
    };
    port.postMessage(this.news);
  }

  /** Borrow no longer. */
  own() {
    this.borrow = null;
    this.start();
  }

  /** Put the question that was with Python back, before all others, unless its lane has a newer one. */
  again() {
    const question = this.asked;
    this.asked = null;
    if (!question) return;
    if (this.waiting.has(question.lane)) question.resolve(null);
    else this.waiting = new Map([[question.lane, question], ...this.waiting]);
  }

  /** Ask Python; resolves with its answer, or with null when a newer question in the same lane took its place.
   * @param {string} lane @param {object} question @returns {Promise<any>} */
  async ask(lane, question) {
    const answer = await this.relay(lane, JSON.stringify(question));
    return answer === null ? null : JSON.parse(answer);
  }

  /** The same with both as text. @param {string} lane @param {string} text @returns {Promise<string | null>} */
  relay(lane, text) {
    this.waiting.get(lane)?.resolve(null);
    return new Promise((resolve, reject) => {
      this.waiting.set(lane, { lane, text, resolve, reject });
      if (this.borrow && !this.worker) this.call();
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
      this.pass(data);
    } else if (data.failure) {
      this.fail(data.failure);
    } else if (data.ready) {
      clearTimeout(this.watchdog);
      this.ready = true;
      this.listener.ready(data.ready);
      this.pass(data);
      this.next();
    } else {
      const question = this.asked;
      this.asked = null;
      if (data.error) question?.reject(new Error(data.error));
      else question?.resolve(data.answer);
      if (data.fatal) this.start(); // the interpreter itself is gone; the next question finds a fresh one
      else this.next();
    }
  }

  /** Tell those that are served how the start is going. @param {Simulator["news"]} news */
  pass(news) {
    this.news = news;
    for (const port of this.served) port.postMessage(news);
  }

  /** @param {number} time @param {Failure | null} failure null: another frame is silent, and we do without it */
  watch(time, failure) {
    clearTimeout(this.watchdog);
    const patience = this.borrow && this.worker ? Math.max(time, START) : time; // another frame's start may be silent for long
    this.watchdog = setTimeout(() => (failure && !this.borrow ? this.fail(failure) : this.own()), patience);
  }

  /** @param {Failure} failure */
  async fail(failure) {
    clearTimeout(this.watchdog);
    const inWorker = failure.file === "worker.js";
    // A port stays: the frame at its other end may try again.
    if (!this.borrow && (inWorker || !RESUMABLE.has(failure.cause))) this.stop();
    const named = inWorker && failure.cause === "no_worker" ? await whyNoWorker(workerAddress()) : failure;
    this.listener.failed(named);
    this.pass({ failure: named });
  }
}
