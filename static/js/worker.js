// @ts-check
// A classic worker: it loads Python, then passes JSON text to pipesched.web.handle and its answer back.
//
// Pyodide's own loader never settles when the wasm it gets is not wasm. So every file is fetched here first, counted,
// checked against vendor/manifest.json, and handed to Pyodide as an answer with the right type, whatever the server
// said; what goes wrong has a name (`cause`) that the page can explain.
//
// In the single-file page this script is a blob behind Pyodide's two, and may fetch nothing: its files come in the first
// message, compressed.

/** Where this script lies; in a page without an origin it runs from a blob that says so. @type {string} */
const HERE = /** @type {any} */ (self).lies ?? self.location.href;
const carried = HERE.startsWith("blob:");
const VENDOR = carried ? "https://carried.invalid/" : new URL("../vendor/", HERE).href;
const FILES = ["pyodide/pyodide.js", "pyodide/pyodide.asm.js", "pyodide/pyodide.asm.wasm", "pyodide/python_stdlib.zip"];
const WAKING = 30_000; // ms that a start from kept memory may take before it is given up: it takes a third of a start
const EMPTY_WASM = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
const TYPES = { js: "text/javascript", wasm: "application/wasm", zip: "application/zip", json: "application/json" };

/** A named reason why Python cannot start. */
class Failure extends Error {
  /** @param {string} cause @param {object} [details] @param {number} [again] ms after which another try may help */
  constructor(cause, details = {}, again = 0) {
    super(cause);
    this.details = { cause, ...details };
    this.again = again;
  }
}

/** @param {string} stage @param {object} [details] */
const progress = (stage, details = {}) => self.postMessage({ progress: { stage, ...details } });

/** How Python started: `cold`, or `warm` from the memory of an earlier visit. */
let how = "cold";

/** @param {Record<string, string>} [parts] the files that came with the page @returns {Promise<(question: string) => string>} */
async function boot(parts) {
  progress("check");
  probe();
  const manifest = JSON.parse(parts ? parts["manifest.json"] : new TextDecoder().decode(await load("manifest.json")));
  const memory = parts ? undefined : await recollection(manifest.build);
  const recalling = memory?.recall(new URL(HERE).search === "?fresh");
  const loaded = parts ? await unpackAll(parts, manifest) : await loadAll(manifest);
  const kept = await recalling;
  await memory?.begin();
  progress("python");
  try {
    const python = (await wake(loaded, kept, memory)) ?? (await start(loaded, { _makeSnapshot: !kept && memory?.usable }));
    const handle = python.pyimport("pipesched.web").handle;
    memory?.settle(python.memory);
    return handle;
  } catch (error) {
    await memory?.settle();
    throw error;
  }
}

/** Start from what was kept; where that does not work, it goes. @param {Record<string, Uint8Array>} loaded
 * @param {Uint8Array | undefined} kept @param {{drop: () => Promise<void>} | undefined} memory */
async function wake(loaded, kept, memory) {
  if (!kept) return undefined;
  // Pyodide never settles on a memory that its wasm cannot take.
  const late = new Promise((resolve) => setTimeout(resolve, WAKING));
  const python = await Promise.race([start(loaded, { _loadSnapshot: kept }), late]).catch(() => undefined);
  if (python) how = "warm";
  else await memory?.drop();
  return python;
}

/** @typedef {Record<string, {size: number, sha256: string}>} Sizes */

/** @param {{files: Sizes}} manifest */
async function loadAll({ files }) {
  const wanted = [...FILES, "pyodide/pyodide-lock.json", "pipesched.zip"];
  const total = wanted.reduce((sum, file) => sum + files[file].size, 0);
  let done = 0;
  const loading = wanted.map(async (file) => {
    const bytes = await load(file, files[file].size, (count) => {
      done += count;
      const waited = wanted.find((other) => sizeOf(arrived.get(other) ?? []) < files[other].size) ?? file;
      progress("download", { file: waited, done, total });
    });
    return [VENDOR + file, bytes];
  });
  const loaded = Object.fromEntries(await Promise.all(loading));
  arrived.clear(); // it is kept only for another try
  return whole(loaded);
}

/** @param {Record<string, string>} parts @param {{files: Sizes}} manifest */
async function unpackAll(parts, { files }) {
  const wanted = [...FILES.slice(2), "pyodide/pyodide-lock.json", "pipesched.zip"];
  const unpacking = wanted.map(async (file) => {
    try {
      const packed = Uint8Array.from(atob(parts[file]), (letter) => letter.charCodeAt(0));
      const bytes = await unpacked(packed);
      if (bytes.length === files[file].size) return [VENDOR + file, bytes];
    } catch {
      // what was cut or changed does not even unpack
    }
    throw new Failure("damaged", { file });
  });
  return whole(Object.fromEntries(await Promise.all(unpacking)));
}

/** A blob's stream would do, but WebKit refuses to read one in the worker of a page from a disk.
 * @param {Uint8Array<ArrayBuffer>} packed */
async function unpacked(packed) {
  const { readable, writable } = new DecompressionStream("gzip");
  const writer = writable.getWriter();
  const written = Promise.all([writer.write(packed), writer.close()]);
  const [bytes] = await Promise.all([new Response(readable).arrayBuffer(), written]);
  return new Uint8Array(bytes);
}

/** @param {Record<string, Uint8Array>} loaded */
function whole(loaded) {
  if (EMPTY_WASM.subarray(0, 4).every((byte, i) => loaded[VENDOR + FILES[2]][i] === byte)) return loaded;
  throw new Failure("broken", { file: FILES[2] });
}

/** What keeps Python's memory between visits, if its script is there. @param {string} build */
async function recollection(build) {
  try {
    importScripts(new URL("warm.js", HERE).href);
    return new Memory(new URL(".", VENDOR.replace(/static\/.*/, "")).href, build);
  } catch {
    return undefined;
  }
}

/** Start Python on `loaded` files, with the library in it. @param {Record<string, Uint8Array>} loaded
 * @param {{_loadSnapshot?: Uint8Array, _makeSnapshot?: boolean}} options @returns {Promise<any>} */
async function start(loaded, options) {
  const plainFetch = self.fetch;
  self.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : new URL(String(input), HERE).href;
    const bytes = loaded[url];
    return bytes ? new Response(/** @type {any} */ (bytes), { headers: { "content-type": type(url) } }) : plainFetch(input, init);
  };
  try {
    if (!carried) importScripts(`${VENDOR}pyodide/pyodide.js`);
  } catch {
    throw new Failure("no_worker", { file: FILES[0] });
  }
  try {
    // @ts-expect-error loadPyodide comes from the script above
    const python = await self.loadPyodide({ indexURL: `${VENDOR}pyodide/`, lockFileURL: `${VENDOR}pyodide/pyodide-lock.json`, ...options });
    progress("library");
    python.unpackArchive(loaded[`${VENDOR}pipesched.zip`].slice().buffer, "zip");
    python.runPython("import pipesched.web");
    if (options._makeSnapshot) python.memory = snapshot(python);
    return python;
  } finally {
    self.fetch = plainFetch;
  }
}

/** @param {any} python */
function snapshot(python) {
  try {
    return python.makeMemorySnapshot();
  } catch {
    return undefined; // short of memory, most likely: the next start will be as this one
  }
}

/** Find out before any download whether wasm may run here. */
function probe() {
  if (typeof WebAssembly !== "object") throw new Failure("no_wasm");
  try {
    new WebAssembly.Module(EMPTY_WASM);
  } catch {
    throw new Failure("blocked");
  }
}

/** What has arrived of each file, so that another try goes on from there. @type {Map<string, Uint8Array[]>} */
const arrived = new Map();
let halt = new AbortController();
let forbidden = "";
self.addEventListener("securitypolicyviolation", (event) => (forbidden = event.effectiveDirective));

const TRIES = 3;
const LATEST = 8000; // ms to wait at most before another try: less than the page's patience
/** @param {number} time */
const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
const sizeOf = (/** @type {Uint8Array[]} */ parts) => parts.reduce((sum, part) => sum + part.length, 0);

/** Fetch `file` of the vendor folder whole, trying twice more what another try may cure.
 * @param {string} file @param {number} [size] what it should have @param {(count: number) => void} [count]
 * @returns {Promise<Uint8Array>} */
async function load(file, size, count = () => {}) {
  const { signal } = halt;
  const parts = arrived.get(file) ?? [];
  arrived.set(file, parts);
  count(sizeOf(parts));
  for (let attempt = 1; ; attempt += 1) {
    const had = sizeOf(parts);
    try {
      if (!size || sizeOf(parts) !== size) await attemptLoad(file, parts, size, attempt, count);
      return joined(parts);
    } catch (error) {
      signal.throwIfAborted();
      const failure = error instanceof Failure ? error : await whyNot(file, sizeOf(parts));
      if (size && sizeOf(parts) - had > size / 20) attempt = 0; // it gets on: such a try does not count
      if (attempt === TRIES || !failure.again) throw failure;
      await pause(Math.min(failure.again * (attempt || 1) ** 2, LATEST));
      signal.throwIfAborted();
    }
  }
}

/** Fetch what `parts` lack. The last try goes round every cache and asks under another name: some filters stop files
 * by the end of their address.
 * @param {string} file @param {Uint8Array[]} parts @param {number | undefined} size @param {number} attempt
 * @param {(count: number) => void} count */
async function attemptLoad(file, parts, size, attempt, count) {
  const from = size ? sizeOf(parts) : 0;
  const answer = await fetch(VENDOR + file + (attempt === TRIES ? "?again" : ""), {
    credentials: "same-origin",
    signal: halt.signal,
    cache: attempt === 1 ? "default" : "reload",
    headers: from ? { range: `bytes=${from}-` } : {},
  });
  judge(file, answer);
  const goesOn = answer.status === 206 && (answer.headers.get("content-range") ?? "").startsWith(`bytes ${from}-`);
  if (!goesOn) count(-sizeOf(parts.splice(0)));
  const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    count(value.length);
  }
  const got = sizeOf(parts);
  const isHtml = looksLikeHtml(parts[0]);
  if (!isHtml && (size === undefined ? isJson(parts) : got === size && (!goesOn || (await isGenuine(file, parts))))) return;
  const cause = isHtml ? "html" : "broken";
  if (cause === "html" || got >= (size ?? 0)) count(-sizeOf(parts.splice(0))); // what is only short is kept
  throw new Failure(cause, { file }, cause === "broken" ? 400 : 0);
}

/** What the head of an answer tells. @param {string} file @param {Response} answer */
function judge(file, answer) {
  const { status } = answer;
  const again = 1000 * Number(answer.headers.get("retry-after")) || 400;
  if ([401, 403, 407, 451, 511].includes(status)) throw new Failure("refused", { file, status }, 400);
  if (status === 416) throw new Failure("broken", { file }, 400);
  if (status === 429 || status >= 500) throw new Failure("server", { file, status }, again);
  if (!answer.ok) throw new Failure("missing", { file, status });
  if (!(answer.headers.get("content-type") ?? "").startsWith("text/html")) return;
  throw new Failure(answer.redirected ? "redirect" : "html", { file });
}

/** Why there was no answer, or only the beginning of one. @param {string} file @param {number} had */
async function whyNot(file, had) {
  if (!navigator.onLine) return new Failure("offline", { file });
  if (had) return new Failure("cut", { file }, 400);
  const probe = await fetch(VENDOR + file, { redirect: "manual", cache: "no-store", signal: halt.signal }).catch(() => null);
  probe?.body?.cancel();
  if (probe?.type === "opaqueredirect") return new Failure("redirect", { file });
  if (forbidden) return new Failure("policy", { file, directive: forbidden }); // said where a redirect is forbidden, too
  const others = [...arrived].some(([name, parts]) => name !== file && name !== "manifest.json" && parts.length);
  return new Failure(file === FILES[2] && others ? "filtered" : "network", { file }, 400);
}

/** @param {Uint8Array[]} parts */
function isJson(parts) {
  try {
    return Boolean(JSON.parse(new TextDecoder().decode(joined(parts))).files);
  } catch {
    return false;
  }
}

/** Whether a file put together from two answers is the one that belongs there, as far as this page may compute that.
 * @param {string} file @param {Uint8Array[]} parts */
async function isGenuine(file, parts) {
  if (!self.crypto?.subtle) return true;
  const manifest = JSON.parse(new TextDecoder().decode(joined(arrived.get("manifest.json") ?? [])));
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {any} */ (joined(parts))));
  return Array.from(sum, (byte) => byte.toString(16).padStart(2, "0")).join("") === manifest.files[file].sha256;
}

/** @param {Uint8Array[]} parts */
function joined(parts) {
  const bytes = new Uint8Array(sizeOf(parts));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** @param {Uint8Array} [bytes] */
function looksLikeHtml(bytes = new Uint8Array()) {
  const start = new TextDecoder().decode(bytes.subarray(0, 64)).trimStart().toLowerCase();
  return start.startsWith("<!doctype") || start.startsWith("<html");
}

/** @param {string} url */
const type = (url) => TYPES[/** @type {keyof TYPES} */ (url.split(".").pop())] ?? "application/octet-stream";

/** The files that came with the page, once it hands them over. @type {Promise<Record<string, string>> | undefined} */
const given = carried ? new Promise((resolve) => self.addEventListener("message", ({ data }) => resolve(data.parts), { once: true })) : undefined;

let handle = attempt();

/** Start, and say how that went unless another start has taken its place. */
function attempt() {
  const start = given ? given.then(boot) : boot();
  start.then(
    () => start === handle && self.postMessage({ ready: how }),
    (error) => {
      if (start !== handle) return;
      halt.abort(); // the other files would report progress that leads nowhere
      self.postMessage({ failure: error.details ?? named(error) });
    },
  );
  return start;
}

/** @param {Error} error */
function named(error) {
  const text = String(error.message ?? error);
  return { cause: error instanceof RangeError && /memory/i.test(text) ? "memory" : "crash", text };
}

/** Begin anew with what has arrived. */
function again() {
  halt.abort();
  halt = new AbortController();
  forbidden = "";
  handle = attempt();
}

self.onmessage = async ({ data }) => {
  if (data.again) return again();
  if (typeof data !== "string") return; // the files of the page
  try {
    self.postMessage({ answer: (await handle)(data) });
  } catch (caught) {
    const error = /** @type {Error} */ (caught);
    // A PythonError is ours to show and the interpreter lives on; anything else took it down.
    const lines = String(error.message ?? error).trim().split("\n");
    self.postMessage({ error: lines[lines.length - 1], fatal: error.name !== "PythonError" });
  }
};
