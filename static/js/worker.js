// @ts-check
// A classic worker: it loads Python, then passes JSON text to pipesched.web.handle and its answer back.
//
// Pyodide's own loader never settles when the wasm it gets is not wasm. So every file is fetched here first, counted,
// checked against vendor/manifest.json, and handed to Pyodide as an answer with the right type, whatever the server
// said; what goes wrong has a name (`cause`) that the page can explain.

const VENDOR = new URL("../vendor/", self.location.href).href;
const FILES = ["pyodide/pyodide.js", "pyodide/pyodide.asm.js", "pyodide/pyodide.asm.wasm", "pyodide/python_stdlib.zip"];
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

async function boot() {
  progress("check");
  probe();
  const manifest = JSON.parse(new TextDecoder().decode(await load("manifest.json")));
  const wanted = [...FILES, "pyodide/pyodide-lock.json", "pipesched.zip"];
  const total = wanted.reduce((sum, file) => sum + manifest.files[file].size, 0);
  let done = 0;
  const loaded = Object.fromEntries(
    await Promise.all(
      wanted.map(async (file) => {
        const bytes = await load(file, manifest.files[file].size, (count) => {
          done += count;
          progress("download", { file, done, total });
        });
        return [VENDOR + file, bytes];
      }),
    ),
  );
  if (!EMPTY_WASM.subarray(0, 4).every((byte, i) => loaded[VENDOR + FILES[2]][i] === byte)) {
    throw new Failure("broken", { file: FILES[2] });
  }

  progress("python");
  const plainFetch = self.fetch;
  self.fetch = async (input, options) => {
    const url = input instanceof Request ? input.url : new URL(String(input), self.location.href).href;
    const bytes = loaded[url];
    delete loaded[url]; // each is asked for once: do not keep twelve megabytes for nothing
    return bytes ? new Response(bytes, { headers: { "content-type": type(url) } }) : plainFetch(input, options);
  };
  const library = loaded[`${VENDOR}pipesched.zip`];
  try {
    importScripts(`${VENDOR}pyodide/pyodide.js`);
  } catch {
    throw new Failure("no_worker", { file: FILES[0] });
  }
  // @ts-expect-error loadPyodide comes from the script above
  const python = await self.loadPyodide({ indexURL: `${VENDOR}pyodide/`, lockFileURL: `${VENDOR}pyodide/pyodide-lock.json` });
  self.fetch = plainFetch;

  progress("library");
  python.unpackArchive(library.buffer, "zip");
  return python.pyimport("pipesched.web").handle;
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

const handle = boot();

handle.then(
  () => self.postMessage({ ready: true }),
  (error) => self.postMessage({ failure: error.details ?? { cause: "crash", text: String(error.message ?? error) } }),
);

self.onmessage = async ({ data }) => {
  try {
    self.postMessage({ answer: (await handle)(data) });
  } catch (caught) {
    const error = /** @type {Error} */ (caught);
    // A PythonError is ours to show and the interpreter lives on; anything else took it down.
    const lines = String(error.message ?? error).trim().split("\n");
    self.postMessage({ error: lines[lines.length - 1], fatal: error.name !== "PythonError" });
  }
};
