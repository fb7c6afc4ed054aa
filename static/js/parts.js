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
  const answer = await fetch(new URL(`../vendor/locales/${language}.json`, import.meta.url));
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer.json();
}

export const workerAddress = () => new URL(`worker.js${FRESH ? "?fresh" : ""}`, import.meta.url);

/** Start a worker; where a script of its is not to be had, the error's `failure` names why. @returns {Promise<Worker>} */
export async function startWorker() {
  return whole() ? startCarried() : new Worker(workerAddress());
}

/** One classic script made of three, from a blob, is what every engine runs from a file and in a frame without an
 * origin. It may load nothing, so that the files of Python are handed to it. @returns {Promise<Worker>} */
async function startCarried() {
  const scripts = await Promise.all(["pyodide/pyodide.asm.js", "pyodide/pyodide.js", "worker.js"].map(unpacked));
  const address = URL.createObjectURL(new Blob(scripts, { type: "text/javascript" }));
  const worker = new Worker(address);
  const parts = [...document.querySelectorAll("script[data-part]")].map((part) => [part.getAttribute("data-part"), part.textContent]);
  worker.postMessage({ parts: Object.fromEntries(parts) });
  worker.addEventListener("message", () => URL.revokeObjectURL(address), { once: true });
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
