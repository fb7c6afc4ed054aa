// @ts-check
// Where the page's other parts come from: files beside it or, in the single-file page, elements of the page itself,
// which `python3 app build --single-file` puts there: text as it is, files of Python compressed (gzip) in base64.

const FRESH = new URLSearchParams(location.search).has("fresh"); // start as if this were the first visit

/** @param {string} name */
const carried = (name) => document.querySelector(`script[data-part="${name}"]`)?.textContent;

/** Whether this is the single-file page. */
export const whole = () => document.documentElement.hasAttribute("data-one-file");

/** The words of a language, as JSON. @param {string} language @returns {Promise<any>} */
export async function catalogue(language) {
  const text = carried(`locales/${language}.json`);
  if (text) return JSON.parse(text);
  const answer = await fetch(lying(`../vendor/locales/${language}.json`));
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer.json();
}

/** Where a file lies, seen from this one. @param {string} name */
const lying = (name) => new URL(name, import.meta.url);

/** Where the worker of the page lies. */
export const workerAddress = () => lying(`worker.js${FRESH ? "?fresh" : ""}`);

/** Start a worker; where a script of its is not to be had, the error's `failure` names why. @returns {Promise<Worker>} */
export async function startWorker() {
  return whole() ? startCarried() : begin(workerAddress());
}

/** Start the worker that draws figures for papers; not in the single-file page. */
export const startFigures = () => begin(lying("figure_worker.js"));

/** Start the worker at `address`. A page without an origin, in a sandboxed frame, may start none by its address; but a
 * blob, and that may load the script, which reads from `lies` where it came from. @param {URL} address */
function begin(address) {
  if (self.origin !== "null") return new Worker(address);
  return fromBlob([`self.lies = ${JSON.stringify(address.href)}; importScripts(self.lies);`]);
}

/** Start a worker whose script is these texts, one after another. @param {string[]} scripts */
function fromBlob(scripts) {
  const address = URL.createObjectURL(new Blob(scripts, { type: "text/javascript" }));
  const worker = new Worker(address);
  worker.addEventListener("message", () => URL.revokeObjectURL(address), { once: true });
  return worker;
}

/** One classic script made of three, from a blob, is what every engine runs from a file and in a frame without an
 * origin. It may load nothing, so that the files of Python are handed to it. @returns {Promise<Worker>} */
async function startCarried() {
  const worker = fromBlob(await Promise.all(["pyodide/pyodide.asm.js", "pyodide/pyodide.js", "worker.js"].map(unpacked)));
  const parts = [...document.querySelectorAll("script[data-part]")].map((part) => [part.getAttribute("data-part"), part.textContent]);
  worker.postMessage({ parts: Object.fromEntries(parts) });
  return worker;
}

/** @param {string} name */
async function unpacked(name) {
  if (typeof DecompressionStream !== "function") throw failure("too_old");
  try {
    const bytes = Uint8Array.from(atob(carried(name) ?? ""), (letter) => letter.charCodeAt(0));
    return await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text() + "\n";
  } catch {
    throw failure("damaged", name);
  }
}

/** @param {string} cause @param {string} [file] */
const failure = (cause, file) => Object.assign(new Error(cause), { failure: { cause, file } });
