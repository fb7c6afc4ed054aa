// @ts-check
// A classic worker: it loads Python, then passes JSON text to pipesched.web.handle and its answer back.
//
// Pyodide's own loader never settles when the wasm it gets is not wasm. So every file is fetched here first, counted,
// checked against vendor/manifest.json, and handed to Pyodide as an answer with the right type, whatever the server
// said; what goes wrong has a name (`cause`) that the page can explain.
//
// In the single-file page this script is a blob behind Pyodide's two, and may fetch nothing: its files come in the first
// message, compressed.

const carried = self.location.protocol === "blob:";
const VENDOR = carried ? "https://carried.invalid/" : new URL("../vendor/", self.location.href).href;
const FILES = ["pyodide/pyodide.js", "pyodide/pyodide.asm.js", "pyodide/pyodide.asm.wasm", "pyodide/python_stdlib.zip"];
const WAKING = 30_000; // ms that a start from kept memory may take before it is given up: it takes a third of a start
const EMPTY_WASM = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
const TYPES = { js: "text/javascript", wasm: "application/wasm", zip: "application/zip", json: "application/json" };

/** A named reason why Python cannot start. */
class Failure extends Error {
  /** @param {string} cause @param {object} [details] */
  constructor(cause, details = {}) {
    super(cause);
    this.details = { cause, ...details };
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
  const recalling = memory?.recall(self.location.search === "?fresh");
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
      progress("download", { file, done, total });
    });
    return [VENDOR + file, bytes];
  });
  return whole(Object.fromEntries(await Promise.all(loading)));
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
    importScripts(new URL("warm.js", self.location.href).href);
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
    const url = input instanceof Request ? input.url : new URL(String(input), self.location.href).href;
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

/** Fetch `file` of the vendor folder whole, trying twice more where the network fails.
 * @param {string} file @param {number} [size] what it should have @param {(count: number) => void} [count]
 * @returns {Promise<Uint8Array>} */
async function load(file, size, count = () => {}) {
  for (let attempt = 1; ; attempt += 1) {
    let got = 0;
    try {
      return await attemptLoad(file, size, (bytes) => {
        got += bytes;
        count(bytes);
      });
    } catch (error) {
      if (error instanceof Failure) throw error;
      if (attempt === 3) throw new Failure("network", { file });
      count(-got);
      await new Promise((resolve) => setTimeout(resolve, 400 * attempt));
    }
  }
}

/** @param {string} file @param {number | undefined} size @param {(count: number) => void} count */
async function attemptLoad(file, size, count) {
  const answer = await fetch(VENDOR + file, { credentials: "same-origin" });
  if (!answer.ok) throw new Failure("missing", { file, status: answer.status });
  if ((answer.headers.get("content-type") ?? "").startsWith("text/html")) throw new Failure("html", { file });
  const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
  const parts = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
    count(value.length);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  if (looksLikeHtml(bytes)) throw new Failure("html", { file });
  if (size !== undefined && size !== length) throw new Failure("broken", { file });
  return bytes;
}

/** @param {Uint8Array} bytes */
function looksLikeHtml(bytes) {
  const start = new TextDecoder().decode(bytes.subarray(0, 64)).trimStart().toLowerCase();
  return start.startsWith("<!doctype") || start.startsWith("<html");
}

/** @param {string} url */
const type = (url) => TYPES[/** @type {keyof TYPES} */ (url.split(".").pop())] ?? "application/octet-stream";

/** @type {Promise<(question: string) => string>} */
const handle = carried
  ? new Promise((resolve) => self.addEventListener("message", ({ data }) => resolve(data.parts), { once: true })).then(boot)
  : boot();

handle.then(
  () => self.postMessage({ ready: how }),
  (error) => self.postMessage({ failure: error.details ?? { cause: "crash", text: String(error.message ?? error) } }),
);

self.onmessage = async ({ data }) => {
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
