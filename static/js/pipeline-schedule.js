// @ts-check
// The element <pipeline-schedule>: one script, classic or module, from any host, that needs no other. It shows a still
// figure, and when seen or clicked wakes the simulator in a frame. Several on one page share one Python: the first
// frame that wakes serves the others, and when it goes, another takes over.
//
//   <script defer src="https://host/pipesched/static/js/pipeline-schedule.js"></script>
//   <pipeline-schedule schedule="gpipe" devices="4" micro-batches="8" lang="en"></pipeline-schedule>
//
// Attributes are the fields of a scenario (dashes for underscores) and the choices of view below. What stands inside the
// element is shown until it wakes, and where scripts do not run. Messages to and from the frame: see README.

(() => {
  const NAME = "pipeline-schedule";
  if (customElements.get(NAME)) return; // loaded twice

  // All in ASCII: a page without a charset has scripts read in another one. Tests hold these against Python: the fields of Scenario, its first three defaults, and the figures that lie ready.
  const FIELDS = ["schedule", "devices", "chunks", "micro_batches", "tokens", "group", "memory_limit", "forward", "input_grad", "weight_grad", "times_of", "overlap", "recompute", "update", "slow_stage", "slow_factor", "stage_times", "forward_times", "input_grad_times", "weight_grad_times", "comm", "send", "split", "layers", "embedding", "head", "layout", "batch", "overhead", "per_sample", "tensor", "all_reduce", "all_reduce_latency", "order", "hidden_size", "sequence_length", "micro_batch_size", "heads", "precision"];
  const DEFAULTS = { schedule: "forward", devices: "3", micro_batches: "4" };
  const FIGURES = ["forward-3x4", "sequential-4x1", "gpipe-4x8", "1f1b-4x8", "interleaved_1f1b-4x8", "zb_h1-4x8", "zb_h2-4x8"];
  const WORDS = {
    en: {
      "component.failed": "The simulator does not answer from here.",
      "component.open": "Open it in a tab of its own",
      "component.start": "Run the simulator",
      "component.title": "Simulator: {what}",
      "component.waking": "Starting \u2026",
      "component.what": "{schedule}, devices: {devices}, micro-batches: {micro_batches}",
    },
    pl: {
      "component.failed": "Symulator st\u0105d nie odpowiada.",
      "component.open": "Otw\u00f3rz go w osobnej karcie",
      "component.start": "Uruchom symulator",
      "component.title": "Symulator: {what}",
      "component.waking": "Uruchamianie \u2026",
      "component.what": "{schedule}, urz\u0105dzenia: {devices}, porcje: {micro_batches}",
    },
  };
  /** Attribute: name in the query of the frame. @type {Record<string, string>} */
  const VIEW = { mode: "embed", lang: "lang", theme: "theme", hide: "hide", lock: "lock", lesson: "lesson", motion: "motion", letters: "letters", path: "path", curves: "curves" };
  const OWN = ["scenario", "src-fragment", "src", "height", "wake"];
  const KEYS = /** @type {Record<string, number>} */ ({ PageUp: 33, PageDown: 34, Escape: 27, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 });
  const ASK_AGAIN = 1000; // ms between two pings of a frame that has not answered yet
  const PATIENCE = 10_000; // ms after a frame has loaded until we say that it does not answer
  const STARTING = 12_000; // ms that the figure stays while the frame starts; then the frame says itself what it waits for
  const TALLEST = 20_000; // px
  const FIRST_HEIGHT = 560; // px, of a frame that has not said how tall it is

  /** @typedef {Record<string, string | number | null>} Settings */
  /** @typedef {{settings: Settings, link: string, numbers: Record<string, any> | null}} State */

  const SCRIPT = here();
  const SHEET = `
    :host { display: block; position: relative; margin-block: 1em; }
    :host([hidden]) { display: none; }
    :host([data-state="waking"]) { overflow: clip; }
    .still { display: grid; gap: 8px; justify-items: start; cursor: pointer; }
    .still img, ::slotted(img) { display: block; width: 100%; max-width: 720px; height: auto; border-radius: 6px; }
    ::slotted(a[rel="alternate"]) { display: none; }
    .still p { margin: 0; padding: 1.5em 1em; border: 1px dashed; border-radius: 6px; }
    button { font: inherit; min-height: 44px; padding: 6px 16px; border: 0; border-radius: 8px; background: #1d62b0; color: #fff; cursor: pointer; }
    button::before { content: "\\25b6"; margin-inline-end: 0.6em; font-size: 0.8em; }
    button:focus-visible { outline: 3px solid #1d62b0; outline-offset: 2px; }
    button[aria-disabled="true"] { opacity: 0.75; cursor: progress; }
    button[aria-disabled="true"]::before { content: none; }
    iframe { display: block; width: 100%; border: 0; }
    iframe[data-waiting] { position: absolute; inset: 0; opacity: 0; pointer-events: none; }
    [hidden] { display: none !important; }
    @media print { button { display: none; } }
  `;

  /** Where this script came from. A module has no currentScript, and a classic script may not say import.meta; a stack
   * names the file in both. */
  function here() {
    const script = /** @type {HTMLScriptElement | null} */ (document.currentScript);
    if (script?.src) return script.src;
    const [trace] = /[a-z][a-z+.-]*:\/\/[^\s()]*?pipeline-schedule\.js[^\s():]*/i.exec(new Error().stack ?? "") ?? [];
    const tag = /** @type {HTMLScriptElement | null} */ (document.querySelector("script[src*='pipeline-schedule.js']"));
    return trace ?? tag?.src ?? document.baseURI;
  }

  /** The frames of one simulator on this page, and which of them has the Python that all of them use. */
  class Pool {
    constructor() {
      /** @type {Set<Frame>} */
      this.frames = new Set();
      /** @type {Frame | null} */
      this.server = null;
    }

    /** @param {Frame} frame @returns {boolean} whether it is to serve the others */
    join(frame) {
      this.frames.add(frame);
      if (this.server) return false;
      this.server = frame;
      return true;
    }

    /** @param {Frame} frame */
    leave(frame) {
      this.frames.delete(frame);
      if (this.server !== frame) return;
      this.server = null;
      setTimeout(() => this.settle()); // several may be leaving at once, or one only be moving
    }

    /** Give every frame that lost its engine another one. */
    settle() {
      this.server ??= [...this.frames][0] ?? null;
      for (const frame of this.frames) if (frame.asked) this.connect(frame);
    }

    /** @param {Frame} client */
    connect(client) {
      client.asked = true;
      if (!this.server) return; // it is settled in a moment
      const { port1, port2 } = new MessageChannel();
      this.server.tell({ pipesched: "serve", port: port2 }, [port2]);
      client.post({ pipesched: "engine", port: port1 }, [port1]); // it has just spoken, so it listens
    }
  }

  /** @type {Map<string, Pool>} by the address of their simulator */
  const pools = new Map();

  /** @typedef {{heard: () => void, ready: () => void, changed: (state: State) => void, lost: () => void, failed: () => void,
   *   grow: (height: number) => void, press: (key: string) => void}} Listener */

  /** One frame, from when it is put into the page to when it is taken out. */
  class Frame {
    /** @param {Listener} listener @param {string} page address of the simulator @param {Pool} pool */
    constructor(listener, page, pool) {
      this.listener = listener;
      this.pool = pool;
      this.origin = /^https?:/.test(page) ? new URL(page).origin : "*";
      this.asked = false; // for an engine of the host
      this.listening = false;
      this.loads = 0;
      this.ids = 0;
      /** @type {[object, MessagePort[]][]} what waits until it listens */
      this.unsent = [];
      /** @type {Map<unknown, {resolve: (state: any) => void, reject: (error: Error) => void}>} */
      this.questions = new Map();
      this.element = document.createElement("iframe");
      this.element.dataset.waiting = "";
      this.element.inert = true; // until it is shown
      this.element.allow = "fullscreen; clipboard-write";
      this.element.referrerPolicy = "strict-origin-when-cross-origin";
      this.element.addEventListener("load", () => this.loaded());
      this.hears = (/** @type {MessageEvent} */ event) => this.hear(event);
      addEventListener("message", this.hears, { capture: true }); // before a deck of slides hears it
    }

    loaded() {
      this.loads += 1;
      if (this.loads > 1) this.lost();
      this.ping();
      clearTimeout(this.watchdog);
      this.watchdog = setTimeout(() => {
        clearTimeout(this.pinging);
        if (!this.listening) this.listener.failed(); // until it says that it is ready after all
      }, PATIENCE);
    }

    /** It has been loaded again, by itself or its reader: ports into the old page are dead. */
    lost() {
      this.listening = this.asked = false;
      this.listener.lost();
      if (this.pool.server === this) this.pool.settle();
    }

    ping() {
      clearTimeout(this.pinging);
      if (this.listening || !this.element.isConnected) return;
      this.post({ pipesched: "ping", id: `ping ${++this.ids}` }, []);
      this.pinging = setTimeout(() => this.ping(), ASK_AGAIN);
    }

    /** @param {object} message @param {MessagePort[]} ports */
    post(message, ports) {
      this.element.contentWindow?.postMessage(message, this.origin, ports);
    }

    /** Post once it listens. @param {object} message @param {MessagePort[]} [ports] */
    tell(message, ports = []) {
      if (this.listening) this.post(message, ports);
      else this.unsent.push([message, ports]);
    }

    /** Ask, and resolve with what it answers under the same id. @param {object} message @returns {Promise<any>} */
    ask(message) {
      const id = `ask ${++this.ids}`;
      return new Promise((resolve, reject) => {
        this.questions.set(id, { resolve, reject });
        this.tell({ ...message, id });
      });
    }

    /** @param {MessageEvent} event */
    hear(event) {
      if (event.source !== this.element.contentWindow || !event.data) return;
      // What the frame tells reveal.js in its own words comes as a key of this element: not twice.
      if (typeof event.data === "string" && event.data.includes('"triggerKey"')) event.stopImmediatePropagation();
      if (typeof event.data !== "object") return;
      if (this.origin !== "*" && event.origin !== this.origin) return;
      const { pipesched, id, ...rest } = event.data;
      if (typeof pipesched === "string") this.listener.heard();
      if (pipesched === "pong" || pipesched === "ready") this.answered(pipesched === "ready" || rest.ready);
      else if (pipesched === "height") this.listener.grow(Number(rest.height));
      else if (pipesched === "key" && rest.key in KEYS) this.listener.press(rest.key);
      else if (pipesched === "engine") this.pool.connect(this);
      else if (pipesched === "state" && id === "watch") this.listener.changed(rest);
      else if (pipesched === "state") this.questions.get(id)?.resolve(rest);
      else if (pipesched === "error") this.questions.get(id)?.reject(Object.assign(new Error(complaint(rest.problems)), { problems: rest.problems ?? [] }));
      if (pipesched === "state" || pipesched === "error") this.questions.delete(id);
    }

    /** @param {boolean} ready */
    answered(ready) {
      clearTimeout(this.watchdog);
      if (!this.listening) {
        this.listening = true;
        clearTimeout(this.pinging);
        for (const [message, ports] of this.unsent.splice(0)) this.post(message, ports);
      }
      if (ready) this.listener.ready();
    }

    close() {
      removeEventListener("message", this.hears, { capture: true });
      clearTimeout(this.pinging);
      clearTimeout(this.watchdog);
      this.element.remove();
      this.pool.leave(this);
      for (const { reject } of this.questions.values()) reject(new Error("the simulator was taken away"));
    }
  }

  /** @param {{field: string, text: string}[]} [problems] */
  const complaint = (problems = []) => problems.map(({ text }) => text).join(" ");
  /** @param {string} name */
  const dashed = (name) => name.replaceAll("_", "-");
  /** @param {string} name */
  const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

  class PipelineSchedule extends HTMLElement {
    /** @type {Frame | null} */
    #frame = null;
    /** @type {State | null} */
    #state = null; // what the frame said last
    #sent = "{}"; // the settings of the attributes that the frame was opened with or told last
    #isReady = false;
    #wasAwake = false; // before it was taken out of the page
    #focus = false; // whether the reader's focus is to follow into the frame
    /** @type {{promise: Promise<State>, resolve: (state: State) => void} | null} */
    #waking = null;
    /** @type {number | undefined} */
    #starting;
    /** @type {IntersectionObserver | undefined} */
    #watcher;
    #still = Object.assign(document.createElement("div"), { className: "still" });
    #slot = document.createElement("slot");
    #button = Object.assign(document.createElement("button"), { type: "button" });
    #note = document.createElement("p");

    constructor() {
      super();
      const root = this.attachShadow({ mode: "open" });
      this.#still.setAttribute("part", "figure");
      this.#button.setAttribute("part", "start");
      this.#note.setAttribute("role", "status");
      this.#note.hidden = true;
      this.#still.append(this.#slot, this.#button, this.#note);
      root.append(this.#still);
      try {
        const sheet = new CSSStyleSheet(); // a policy of the host page may forbid <style>
        sheet.replaceSync(SHEET);
        root.adoptedStyleSheets = [sheet];
      } catch {
        root.append(Object.assign(document.createElement("style"), { textContent: SHEET }));
      }
      this.#still.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.composedPath().some((node) => node === this.#note)) return;
        event.preventDefault(); // the figure may be a link, for where this script does not run
        this.wake();
        this.#focus = event.detail === 0; // pressed on the keyboard: focus goes where the button was
      });
      new MutationObserver((records) => this.#turned(records.map(({ attributeName }) => attributeName ?? ""))).observe(this, { attributes: true, childList: true });
    }

    connectedCallback() {
      for (const name of Object.keys(this)) {
        const value = /** @type {any} */ (this)[name]; // set before this script was there: it hides the property
        delete (/** @type {any} */ (this)[name]);
        /** @type {any} */ (this)[name] = value;
      }
      this.#draw();
      if (this.#wasAwake) this.wake();
      else this.#watch();
    }

    disconnectedCallback() {
      this.#wasAwake = this.#frame !== null;
      this.#watcher?.disconnect();
      this.#sleep();
    }

    // --- what a page can ask of it

    /** Start the simulator in its frame; resolves with its first state. @returns {Promise<State>} */
    wake() {
      if (this.#waking) return this.#waking.promise;
      /** @type {(state: State) => void} */
      let resolve = () => {};
      this.#waking = { promise: new Promise((done) => (resolve = done)), resolve: (state) => resolve(state) };
      this.#watcher?.disconnect();
      if (!this.isConnected) this.#wasAwake = true; // connectedCallback goes on from here
      else this.#open();
      return this.#waking.promise;
    }

    /** What the simulator shows; while it sleeps, what it would show. @returns {Promise<State>} */
    async get() {
      if (!this.#waking || !this.#frame) return { settings: this.#settings, link: this.#address(this.#settings, false), numbers: null };
      await this.#waking.promise;
      return this.#frame ? this.#frame.ask({ pipesched: "get" }) : this.get();
    }

    /** Change settings (null: back to the default). Resolves once simulated; rejects with an Error whose `problems`
     * name the fields. While it sleeps, the attributes change. @param {Settings} settings @returns {Promise<State>} */
    async set(settings) {
      if (!this.#waking || !this.#frame) {
        for (const [name, value] of Object.entries(settings)) {
          if (value === null) this.removeAttribute(dashed(name));
          else this.setAttribute(dashed(name), String(value));
        }
        return this.get();
      }
      await this.#waking.promise;
      if (!this.#frame) return this.set(settings);
      const state = await this.#frame.ask({ pipesched: "set", settings: { ...this.#state?.settings, ...settings } });
      this.#state = state;
      return state;
    }

    /** What the simulator said last; null while it sleeps. */
    get state() {
      return this.#state;
    }

    // --- what it is told by its frame

    /** The frame takes the place of the figure. */
    #show() {
      if (!this.#frame || this.dataset.state === "awake") return;
      this.dataset.state = "awake";
      delete this.#frame.element.dataset.waiting;
      this.#frame.element.inert = false;
      this.#still.hidden = true;
      if (this.#focus) this.#frame.element.focus();
      this.#focus = false;
    }

    #ready() {
      if (this.#isReady || !this.#frame) return;
      this.#isReady = true;
      this.#show();
      this.#frame.tell({ pipesched: "subscribe", id: "watch" });
    }

    /** @param {State} state */
    #changed(state) {
      const is_first = this.#state === null;
      this.#state = state;
      if (is_first) this.#waking?.resolve(state);
      if (is_first) this.#turned(["schedule"]); // an attribute may have changed while it woke
      this.dispatchEvent(new CustomEvent(is_first ? "ready" : "change", { detail: state, bubbles: true }));
    }

    #failed() {
      if (!this.#frame) return;
      this.dataset.state = "failed";
      const link = Object.assign(document.createElement("a"), { href: this.#address(this.#settings, false), target: "_blank", textContent: this.#say("open") });
      this.#note.replaceChildren(this.#say("failed"), " ", link);
      this.#note.hidden = false;
      this.#button.hidden = true;
    }

    /** @param {number} height */
    #grow(height) {
      if (!this.#frame || this.hasAttribute("height") || !(height > 0)) return;
      const before = parseFloat(this.#frame.element.style.height);
      if (!(Math.abs(before - height) < 2)) this.#frame.element.style.height = `${Math.min(TALLEST, Math.ceil(height))}px`;
    }

    /** A key that the frame leaves to the page around it, a deck of slides for instance. @param {string} key */
    #press(key) {
      this.dispatchEvent(new KeyboardEvent("keydown", { key, code: key, keyCode: KEYS[key], bubbles: true, composed: true, cancelable: true }));
    }

    // --- its own

    /** Sleep until seen, or clicked where data is dear. */
    #watch() {
      const saves = /** @type {any} */ (navigator).connection?.saveData || matchMedia("(prefers-reduced-data: reduce)").matches;
      if ((this.getAttribute("wake") ?? (saves ? "click" : "seen")) !== "seen" || !("IntersectionObserver" in window)) return;
      this.#watcher = new IntersectionObserver((entries) => entries.some(({ isIntersecting }) => isIntersecting) && this.wake());
      this.#watcher.observe(this);
    }

    #open() {
      const page = this.#page;
      if (!pools.has(page)) pools.set(page, new Pool());
      /** @type {Listener} */
      const listener = {
        heard: () => (this.#starting ??= setTimeout(() => this.#show(), STARTING)),
        ready: () => this.#ready(),
        changed: (state) => this.#changed(state),
        lost: () => (this.#isReady = false),
        failed: () => this.#failed(),
        grow: (height) => this.#grow(height),
        press: (key) => this.#press(key),
      };
      const frame = new Frame(listener, page, /** @type {Pool} */ (pools.get(page)));
      const serves = frame.pool.join(frame);
      const settings = this.#state ? { ...this.#state.settings, ...this.#fresh } : this.#settings;
      this.#frame = frame;
      this.#state = null;
      this.#isReady = false;
      this.#sent = JSON.stringify(this.#settings);
      this.dataset.state = "waking";
      this.#button.textContent = this.#say("waking");
      this.#button.setAttribute("aria-disabled", "true");
      frame.element.title = this.#say("title", { what: this.#what });
      frame.element.style.height = `${Number(this.getAttribute("height")) || FIRST_HEIGHT}px`;
      frame.element.src = this.#address(settings, true, serves);
      this.shadowRoot?.append(frame.element);
    }

    /** Back to the figure. */
    #sleep() {
      clearTimeout(this.#starting);
      this.#starting = undefined;
      this.#frame?.close();
      this.#frame = this.#waking = null;
      this.#still.hidden = false;
      this.#draw();
    }

    /** Attributes have changed. @param {string[]} names */
    #turned(names) {
      if (!this.#frame) {
        if (names.some((name) => name !== "data-state")) this.#draw();
        return;
      }
      if (names.includes("height")) this.#frame.element.style.height = `${Number(this.getAttribute("height")) || FIRST_HEIGHT}px`;
      if (names.some((name) => name in VIEW || name === "src")) {
        const asked = this.#waking;
        this.#sleep(); // how to show it stands in the query: the frame opens anew, with the settings it had
        this.wake().then(asked?.resolve);
        return;
      }
      const fresh = this.#fresh;
      if (!this.#state || !Object.keys(fresh).length) return;
      this.#sent = JSON.stringify(this.#settings);
      this.set(fresh).catch((error) => {
        this.dispatchEvent(new CustomEvent("error", { detail: { problems: error.problems ?? [], text: error.message } }));
      });
    }

    /** What the attributes say now and did not say when the frame was last told; null: what they say no more.
     * @returns {Settings} */
    get #fresh() {
      const [before, after] = [JSON.parse(this.#sent), this.#settings];
      const gone = Object.keys(before).filter((name) => !(name in after));
      const fresh = Object.entries(after).filter(([name, value]) => before[name] !== value);
      return Object.fromEntries([...gone.map((name) => [name, null]), ...fresh]);
    }

    #draw() {
      if (this.#frame) return;
      this.dataset.state = "asleep";
      this.#button.hidden = false;
      this.#button.removeAttribute("aria-disabled");
      this.#button.textContent = this.#say("start");
      this.#button.setAttribute("aria-label", `${this.#say("start")}: ${this.#what}`);
      this.#note.hidden = true;
      if (this.firstElementChild || this.textContent?.trim()) {
        this.#slot.replaceChildren(); // what stands inside is the figure
        return;
      }
      const { schedule, devices, micro_batches } = { ...DEFAULTS, ...this.#settings };
      const name = `${schedule}-${devices}x${micro_batches}`;
      const others = Object.keys(this.#settings).some((field) => !(field in DEFAULTS));
      this.#slot.replaceChildren(others || !FIGURES.includes(name) ? this.#caption() : this.#picture(name));
    }

    #caption() {
      return Object.assign(document.createElement("p"), { textContent: this.#what });
    }

    /** @param {string} name */
    #picture(name) {
      const picture = document.createElement("picture");
      const { theme } = this.#view;
      const file = (/** @type {string} */ end) => new URL(`../figures/${name}${end}.svg`, this.#base).href;
      if (theme !== "light" && theme !== "dark") {
        picture.append(Object.assign(document.createElement("source"), { srcset: file("-dark"), media: "(prefers-color-scheme: dark)" }));
      }
      const image = document.createElement("img");
      image.alt = this.#what;
      image.addEventListener("error", () => picture.replaceWith(this.#caption()));
      image.src = file(theme === "dark" ? "-dark" : "");
      picture.append(image);
      return picture;
    }

    /** Address of this script, or of the `src` that stands for it. */
    get #base() {
      const src = this.getAttribute("src");
      return src === null ? SCRIPT : new URL("static/js/", new URL(src, document.baseURI)).href;
    }

    get #page() {
      return new URL("../../index.html", this.#base).href.replace(/[?#].*/, "");
    }

    /** The whole link in `scenario`, or its fragment, in parts. */
    get #link() {
      const text = this.getAttribute("scenario") ?? this.getAttribute("src-fragment") ?? "";
      const [before, fragment] = text.includes("#") ? text.split("#", 2) : ["", text];
      return { query: new URLSearchParams(before.split("?", 2)[1] ?? ""), fragment: new URLSearchParams(fragment) };
    }

    /** @returns {Record<string, string>} */
    get #settings() {
      const settings = Object.fromEntries(this.#link.fragment);
      for (const field of FIELDS) {
        const value = this.getAttribute(dashed(field));
        if (value !== null) settings[field] = value;
      }
      return settings;
    }

    /** @returns {Record<string, string>} */
    get #view() {
      const view = Object.fromEntries(this.#link.query);
      for (const [attribute, name] of Object.entries(VIEW)) {
        const value = this.getAttribute(attribute);
        if (value !== null) view[name] = value;
      }
      view.lang ??= /^(pl|en)\b/.exec(this.closest("[lang]")?.getAttribute("lang") ?? "")?.[0] ?? "";
      return view;
    }

    /** @param {Settings} settings @param {boolean} framed @param {boolean} [serves] */
    #address(settings, framed, serves = true) {
      const query = new URLSearchParams(Object.entries(this.#view).filter(([name, value]) => value && (framed || name !== "embed")));
      if (framed && !query.has("embed")) query.set("embed", "1");
      if (framed) query.set("api", location.origin === "null" || location.protocol === "file:" ? "1" : location.origin);
      if (!serves) query.set("engine", "host");
      const names = Object.keys(settings).filter((name) => settings[name] !== null);
      names.sort((a, b) => Number(b === "micro_batches") - Number(a === "micro_batches"));
      const fragment = String(new URLSearchParams(names.map((name) => [name, String(settings[name])]))).replaceAll("%2C", ",");
      return this.#page + (query.size ? `?${query}`.replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%2F", "/") : "") + (fragment && `#${fragment}`);
    }

    get #what() {
      return this.#say("what", { ...DEFAULTS, ...this.#settings });
    }

    /** @param {keyof WORDS["en"] extends `component.${infer Key}` ? Key : never} key @param {Record<string, string>} [values] */
    #say(key, values = {}) {
      const language = (this.#view.lang || navigator.language).startsWith("pl") ? "pl" : "en";
      return WORDS[language][`component.${key}`].replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
    }
  }

  // Every attribute is a property too: element.microBatches = 16.
  for (const name of [...FIELDS, ...Object.keys(VIEW), ...OWN.map((name) => name.replaceAll("-", "_"))]) {
    if (camel(name) in PipelineSchedule.prototype && name !== "lang") continue;
    Object.defineProperty(PipelineSchedule.prototype, camel(name), {
      configurable: true,
      enumerable: true,
      get() {
        return this.getAttribute(dashed(name));
      },
      set(value) {
        if (value === null || value === undefined) this.removeAttribute(dashed(name));
        else this.setAttribute(dashed(name), String(value));
      },
    });
  }

  customElements.define(NAME, PipelineSchedule);
})();
