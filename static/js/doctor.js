// @ts-check
// Tests what the simulator needs, in the very frame it is to stand in, and tells each finding to the page by an event
// (doctor-page.js). A classic script in plain old style on purpose: it must run where modules, workers or wasm do not.

(() => {
  "use strict";

  const PARTS = new URL("../", /** @type {HTMLScriptElement} */ (document.currentScript).src);
  const CORE = ["pyodide/pyodide.js", "pyodide/pyodide.asm.js", "pyodide/pyodide.asm.wasm", "pyodide/python_stdlib.zip", "pyodide/pyodide-lock.json", "pipesched.zip"];
  const WASM = CORE[2];
  const PACKED = 0.41; // of its size is what Python's core takes when it is compressed
  const PATIENCE = 8000; // ms until what gives no answer has failed
  // (module (func (export "f") (result i32) i32.const 42))
  const ANSWER = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 6, 1, 4, 0, 65, 42, 11]);
  const NEEDED = { Worker: "Worker", DecompressionStream: "DecompressionStream", ReadableStream: "ReadableStream", structuredClone: "structuredClone" };

  /** @type {{directive: string, what: string}[]} */
  const violations = [];
  document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) => violations.push({ directive: effectiveDirective, what: blockedURI }));

  /** @param {string} name @param {object} detail */
  const tell = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));
  /** @param {string} id @param {string} state @param {"ok" | "info" | "warn" | "bad"} level @param {object} [values] */
  const found = (id, state, level, values = {}) => tell("doctor:found", { id, state, level, values });
  /** @param {string} name @param {unknown} value */
  const fact = (name, value) => tell("doctor:fact", { name, value: String(value) });
  /** @param {number} time */
  const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
  /** @param {() => any} attempt what goes wrong is told as text */
  const trying = async (attempt) => {
    try {
      await attempt();
      return "";
    } catch (error) {
      return String(/** @type {Error} */ (error).message || error);
    }
  };
  const framed = window !== window.top;
  const opaque = window.origin === "null";
  /** The element we are in, where we may see it. */
  const element = (() => {
    try {
      return window.frameElement;
    } catch {
      return null;
    }
  })();

  function browser() {
    const agent = navigator.userAgent;
    const names = [["Edg", "Edge"], ["OPR", "Opera"], ["SamsungBrowser", "Samsung Internet"], ["Firefox", "Firefox"], ["FxiOS", "Firefox"], ["CriOS", "Chrome"], ["Chrome", "Chrome"], ["Version", "Safari"]];
    const [mark, name] = names.find(([mark]) => agent.includes(`${mark}/`)) || ["", "?"];
    const version = mark ? ` ${agent.split(`${mark}/`)[1].split(/[ .]/)[0]}` : "";
    const system = (/Android [\d.]+|iPhone OS [\d_]+|iPad|CPU OS [\d_]+|Windows NT [\d.]+|CrOS|Mac OS X [\d_.]+|Linux/.exec(agent) || ["?"])[0].replaceAll("_", ".");
    const missing = Object.keys(NEEDED).filter((feature) => !(feature in window));
    fact("browser", agent);
    fact("languages", navigator.languages.join(", "));
    found("browser", missing.length ? "old" : "ok", missing.length ? "bad" : "ok", { browser: name + version, system, missing: missing.join(", ") });
  }

  function place() {
    const around = Array.from(location.ancestorOrigins || []);
    const parent = around[0] || (document.referrer && new URL(document.referrer).origin) || "?";
    const attributes = element && Array.from(element.attributes, ({ name, value }) => `${name}="${value}"`).join(" ");
    fact("address", location.href);
    fact("framed", framed);
    fact("origin", window.origin);
    fact("pages around it", around.join(" < ") || (framed ? "not told" : "none"));
    fact("referrer", document.referrer || "none");
    if (attributes) fact("frame element", attributes);
    fact("secure context", window.isSecureContext);
    if (location.protocol === "file:") return found("place", "file", "bad");
    if (!framed) return found("place", "top", "info", { code: `<iframe src="${location.href.replace(/[?#].*$/, "")}" width="100%" height="640" title="doctor"></iframe>` });
    found("place", opaque ? "sandbox" : "frame", opaque ? "warn" : "ok", { parent });
  }

  function size() {
    const [width, height] = [window.innerWidth, window.innerHeight];
    fact("size", `${width} x ${height} CSS pixels, ${window.devicePixelRatio} device pixels each, screen ${screen.width} x ${screen.height}`);
    fact("visible", document.visibilityState);
    const none = !width || !height;
    const small = width < 320 || height < 360;
    found("size", none ? "none" : small ? "small" : "ok", none || small ? "warn" : "ok", { width, height });
  }

  async function wasm() {
    if (typeof WebAssembly !== "object") return found("wasm", "none", "bad");
    const reason = await trying(async () => {
      const instance = new WebAssembly.Instance(new WebAssembly.Module(ANSWER));
      if (/** @type {Function} */ (instance.exports.f)() !== 42) throw new Error("wrong answer");
    });
    fact("WebAssembly", reason || "runs");
    found("wasm", reason ? "blocked" : "ok", reason ? "bad" : "ok", { reason });
  }

  /** @param {string | URL} address @returns {Promise<{runs?: boolean, reason?: string}>} */
  const ask = (address) =>
    new Promise((resolve) => {
      try {
        const worker = new Worker(address);
        /** @param {object} answer */
        const end = (answer) => {
          worker.terminate();
          resolve(answer);
        };
        worker.onmessage = ({ data }) => end(data);
        worker.onerror = (event) => {
          event.preventDefault();
          end({ reason: event.message || "error" });
        };
        worker.postMessage(ANSWER);
        setTimeout(() => end({ reason: "no answer" }), PATIENCE);
      } catch (error) {
        resolve({ reason: String(error) });
      }
    });

  /** Where a worker starts from: its address or, in a page without an origin, a blob that loads it, as parts.js has it.
   * @param {string} name */
  function lying(name) {
    const address = new URL(name, PARTS).href;
    if (self.origin !== "null") return address;
    const script = `self.lies = ${JSON.stringify(address)}; importScripts(self.lies);`;
    return URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  }

  async function worker() {
    const before = violations.length;
    const { runs, reason = "" } = await ask(lying("js/doctor-worker.js"));
    await pause(50); // the event about a policy comes after the error
    const stopped = violations.slice(before).find(({ directive }) => /^(worker|child|script|default)-src/.test(directive));
    fact("worker", runs ? "runs WebAssembly" : reason);
    if (runs) found("worker", "ok", "ok");
    else if (runs === false) found("worker", "wasm", "bad");
    else if (stopped) found("worker", "policy", "bad", stopped);
    else found("worker", "blocked", "bad", { reason });
  }

  /** The way of the single file. */
  async function blob() {
    const source = `onmessage = ({ data }) => { try { postMessage({ runs: new WebAssembly.Instance(new WebAssembly.Module(data)).exports.f() === 42 }); } catch (error) { postMessage({ runs: false, reason: String(error) }); } };`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const { runs, reason } = await ask(address);
    URL.revokeObjectURL(address);
    fact("worker from a blob", runs ? "runs WebAssembly" : reason || "no WebAssembly");
    found("blob", runs ? "ok" : "blocked", runs ? "ok" : "info");
  }

  async function scripts() {
    const address = new URL("js/words.js", PARTS).href;
    const reason = await trying(() => import(address));
    if (!reason) return found("scripts", "ok", "ok");
    const { type, ok } = await look(address);
    fact("modules", `${reason}; type ${type}`);
    const odd = ok && !/^(text|application)\/(x-)?(java|ecma)script/.test(type);
    found("scripts", odd ? "type" : "blocked", "bad", { reason, type: type || "?" });
  }

  /** What the server says of a file, and how it begins, without fetching it whole.
   * @param {string} address @returns {Promise<{ok: boolean, status: number, type: string, encoding: string, length: number, start: Uint8Array, redirected: boolean, cache: string, error?: string}>} */
  async function look(address) {
    const nothing = { ok: false, status: 0, type: "", encoding: "", length: 0, start: new Uint8Array(), redirected: false, cache: "" };
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), PATIENCE);
    try {
      const answer = await fetch(address, { signal: stop.signal, cache: "no-cache", credentials: "same-origin" });
      const reader = answer.body && answer.body.getReader();
      const { value } = reader ? await reader.read() : { value: undefined };
      const of = (/** @type {string} */ name) => answer.headers.get(name) || "";
      return { ok: answer.ok, status: answer.status, type: of("content-type"), encoding: of("content-encoding"), length: Number(of("content-length")), start: value || nothing.start, redirected: answer.redirected, cache: of("cache-control") };
    } catch (error) {
      return { ...nothing, error: String(/** @type {Error} */ (error).message || error) };
    } finally {
      clearTimeout(timer);
      stop.abort();
    }
  }

  /** @param {Uint8Array} start */
  const isHtml = (start) => /^\s*<(!doctype|html)/i.test(new TextDecoder().decode(start.subarray(0, 64)));

  /** @param {string} name @param {number} size @param {Awaited<ReturnType<typeof look>>} seen */
  function trouble(name, size, seen) {
    if (seen.error) return "filtered";
    if ([401, 403, 407, 451, 511].includes(seen.status)) return "refused";
    if (!seen.ok) return "missing";
    if (isHtml(seen.start)) return "html";
    if (name === WASM && !ANSWER.subarray(0, 4).every((byte, i) => seen.start[i] === byte)) return "wrong";
    return !seen.encoding && seen.length && seen.length !== size ? "wrong" : "";
  }

  async function files() {
    const listed = await look(new URL("vendor/manifest.json", PARTS).href);
    fact("vendor/manifest.json", listed.error || `${listed.status} ${listed.type}${listed.redirected ? " after a redirect" : ""}`);
    if (listed.error) return found("files", "unreachable", "bad", { reason: violations.map(({ directive }) => directive).find((name) => name === "connect-src") || listed.error });
    const { version, files } = await manifest();
    if (!files) {
      const state = isHtml(listed.start) && listed.ok ? "html" : trouble("", 0, listed) || "wrong";
      return found("files", state, "bad", { list: "static/vendor/manifest.json", status: listed.status });
    }
    fact("version", version);
    const names = Object.keys(files);
    const all = await Promise.all(names.map(async (name) => /** @type {const} */ ([name, await look(new URL(`vendor/${name}`, PARTS).href)])));
    const bad = all.map(([name, seen]) => ({ name, seen, state: trouble(name, files[name].size, seen) })).filter(({ state }) => state);
    for (const { name, seen, state } of bad) fact(name, `${state}: ${seen.error || `${seen.status} ${seen.type} ${seen.length}`}`);
    const megabytes = (/** @type {string[]} */ some) => Math.round(some.reduce((sum, name) => sum + files[name].size, 0) / 1e5) / 10;
    for (const state of new Set(bad.map(({ state }) => state))) {
      const these = bad.filter((one) => one.state === state);
      const core = these.some(({ name }) => CORE.includes(name));
      found("files", state, core ? "bad" : "warn", { list: these.map(({ name }) => name).join(", "), status: these[0].seen.status });
    }
    const needed = megabytes(CORE);
    tell("doctor:size", { megabytes: needed });
    if (!bad.length) found("files", "ok", "ok", { count: names.length, megabytes: megabytes(names), needed });
    const seen = Object.fromEntries(all);
    served(seen, needed);
    await speed(files, seen[WASM].encoding ? needed * PACKED : needed);
  }

  async function manifest() {
    try {
      return await (await fetch(new URL("vendor/manifest.json", PARTS).href, { cache: "no-cache" })).json();
    } catch {
      return {};
    }
  }

  /** Types and compression. @param {Record<string, any>} seen @param {number} needed */
  function served(seen, needed) {
    const expected = [[WASM, "application/wasm"], [CORE[0], "javascript"], [CORE[4], "application/json"]];
    const odd = expected.filter(([name, type]) => seen[name].ok && !seen[name].type.includes(type)).map(([name]) => `${name}: ${seen[name].type || "?"}`);
    for (const name of CORE.slice(0, 4)) fact(name, `${seen[name].status} ${seen[name].type}; ${seen[name].encoding || "not compressed"}; cache-control: ${seen[name].cache || "none"}`);
    found("types", odd.length ? "odd" : "ok", odd.length ? "info" : "ok", { list: odd.join(", ") });
    const { encoding } = seen[WASM];
    if (seen[WASM].ok) found("gzip", encoding ? "ok" : "none", encoding ? "ok" : "info", { encoding, needed, small: Math.round(needed * PACKED * 10) / 10 });
  }

  /** @param {Record<string, {size: number}>} files @param {number} megabytes what travels at a first start */
  async function speed(files, megabytes) {
    const name = CORE[3];
    const began = performance.now();
    try {
      const bytes = await (await fetch(new URL(`vendor/${name}`, PARTS).href, { cache: "no-store" })).arrayBuffer();
      const rate = bytes.byteLength / 1e6 / ((performance.now() - began) / 1000);
      if (bytes.byteLength !== files[name].size) return;
      const seconds = Math.max(1, Math.round(megabytes / rate));
      fact("speed", `${rate.toFixed(2)} MB/s`);
      found("speed", seconds > 20 ? "slow" : "ok", seconds > 20 ? "warn" : "ok", { rate: rate < 1 ? Number(rate.toPrecision(1)) : Math.round(rate), seconds });
    } catch {
      // the file itself is among the findings
    }
  }

  async function storage() {
    /** @type {[string, () => any][]} */
    const ways = [
      ["localStorage", () => keep(localStorage)],
      ["sessionStorage", () => keep(sessionStorage)],
      ["Cache Storage", async () => {
        await caches.open("pipesched-doctor");
        await caches.delete("pipesched-doctor");
      }],
      ["cookies", () => {
        document.cookie = "pipesched-doctor=1; max-age=9; SameSite=Lax";
        const kept = document.cookie.includes("pipesched-doctor");
        document.cookie = "pipesched-doctor=; max-age=0; SameSite=Lax";
        if (!kept) throw new Error("not kept");
      }],
    ];
    const denied = [];
    for (const [name, way] of ways) {
      const reason = await trying(way);
      fact(name, reason || "allowed");
      if (reason && name !== "cookies") denied.push(name); // the page has none
    }
    found("storage", denied.length ? "some" : "ok", denied.length ? "info" : "ok", { list: denied.join(", ") });
  }

  /** @param {Storage} place */
  function keep(place) {
    place.setItem("pipesched-doctor", "1");
    place.removeItem("pipesched-doctor");
  }

  /** What the frame allows, where the browser tells; undefined where it does not. @param {string} feature @returns {boolean | undefined} */
  const allows = (feature) => {
    const policy = /** @type {any} */ (document).permissionsPolicy || /** @type {any} */ (document).featurePolicy;
    return policy && policy.features().includes(feature) ? policy.allowsFeature(feature) : undefined;
  };

  function permissions() {
    const clipboard = !navigator.clipboard ? "no secure context" : allows("clipboard-write") === false ? "clipboard-write" : "";
    fact("clipboard", clipboard || "allowed");
    found("clipboard", clipboard ? "old_way" : "ok", clipboard ? "warn" : "ok", { reason: clipboard });
    const full = document.fullscreenEnabled;
    fact("full screen", full ? "allowed" : "not allowed");
    found("fullscreen", full ? "ok" : "off", full ? "ok" : "warn");
    const sandbox = element && element.getAttribute("sandbox");
    const forbidden = typeof sandbox === "string" && !sandbox.includes("allow-downloads");
    const unknown = framed && (opaque || !element);
    found("downloads", forbidden ? "forbidden" : unknown ? "sandbox" : "ok", forbidden ? "warn" : unknown ? "info" : "ok");
  }

  async function address() {
    const reason = await trying(() => history.replaceState(history.state, "", location.href));
    fact("history.replaceState", reason || "allowed");
    found("address", reason ? "blocked" : "ok", reason ? "info" : "ok", { reason });
  }

  async function policy() {
    await pause(50);
    try {
      const { headers } = await fetch(location.href, { method: "HEAD" });
      for (const name of ["content-security-policy", "permissions-policy", "x-frame-options", "x-content-type-options", "server", "via"]) fact(`header ${name}`, headers.get(name) || "none");
    } catch {
      fact("headers", "cannot be read");
    }
    const ours = violations.filter(({ what }) => !what.startsWith("blob")); // that one we provoked, and it is said above
    const list = [...new Set(ours.map(({ directive, what }) => `${directive} (${what})`))].join(", ");
    found("policy", list ? "seen" : "ok", list ? "info" : "ok", { list });
  }

  /** Start the simulator's own worker, as the page does. */
  function start() {
    const began = performance.now();
    /** @param {string} state @param {object} values @param {Worker} [worker] */
    const end = (state, values, worker) => {
      if (worker) worker.terminate();
      fact("start of Python", JSON.stringify({ state, ...values }));
      found("start", state, state === "ok" ? "ok" : "bad", values);
      tell("doctor:done", { full: true });
    };
    try {
      const worker = new Worker(lying("js/worker.js"));
      worker.onerror = () => end("failed", { cause: "no_worker" }, worker);
      worker.onmessage = ({ data }) => {
        if (data.ready) end("ok", { seconds: Math.round((performance.now() - began) / 100) / 10 }, worker);
        if (data.failure) end("failed", data.failure, worker);
      };
    } catch (error) {
      end("failed", { cause: String(error) });
    }
  }

  async function all() {
    for (const test of [browser, place, size, wasm, worker, blob, scripts, files, storage, permissions, address, policy]) {
      const reason = await trying(test);
      if (reason) fact(`test ${test.name}`, reason);
    }
    tell("doctor:done", { full: false });
  }

  document.addEventListener("doctor:full", start);
  all();
})();
