// @ts-check
// A classic worker beside the page's own: it loads Python with Matplotlib, then passes JSON text to
// pipesched.figures.door.handle and its answer back. Drawing never holds up the chart, and ending it ends all of this.
//
// The page's Python runs already, from the same folder: what can be wrong with a host was said there. Here bytes are
// counted, and a wheel that is not there is named instead of ending in an import that fails.

const VENDOR = new URL("../vendor/", /** @type {any} */ (self).lies ?? self.location.href).href;
const CORE = ["pyodide/pyodide.asm.wasm", "pyodide/python_stdlib.zip", "pyodide/pyodide-lock.json", "pipesched.zip"];
const WASM = { headers: { "content-type": "application/wasm" } }; // whatever the host says of it

let done = 0;
let total = 0;
let missing = "";

/** @param {string} stage */
const progress = (stage) => self.postMessage({ progress: { stage, done, total } });

const plainFetch = self.fetch;

/** Fetch as always, counting what comes. @param {RequestInfo | URL} input @param {RequestInit} [options] */
async function counted(input, options) {
  const url = input instanceof Request ? input.url : String(input);
  const file = url.slice(url.lastIndexOf("/") + 1);
  const answer = await plainFetch(input, options).catch(() => null); // of another hash, too
  if (!answer?.ok || !answer.body || (answer.headers.get("content-type") ?? "").startsWith("text/html")) {
    missing = file;
    throw new Error(file);
  }
  const body = answer.body.pipeThrough(
    new TransformStream({
      transform(chunk, out) {
        done += chunk.length;
        progress("download");
        out.enqueue(chunk);
      },
    }),
  );
  return new Response(body, file.endsWith(".wasm") ? WASM : {});
}

/** The names of all files that `name` needs. @param {Record<string, {file_name: string, depends: string[]}>} packages
 * @param {string} name @param {Set<string>} [found] @returns {Set<string>} */
function needed(packages, name, found = new Set()) {
  const { file_name, depends } = packages[name.toLowerCase()];
  if (!found.has(`pyodide/${file_name}`)) {
    found.add(`pyodide/${file_name}`);
    for (const other of depends) needed(packages, other, found);
  }
  return found;
}

async function boot() {
  const [manifest, lock] = await Promise.all(
    ["manifest.json", "pyodide/pyodide-lock.json"].map(async (file) => (await plainFetch(VENDOR + file)).json()),
  );
  const wanted = [...CORE, ...needed(lock.packages, "matplotlib")];
  total = wanted.reduce((sum, file) => sum + manifest.files[file].size, 0);
  progress("download");
  self.fetch = counted;
  importScripts(`${VENDOR}pyodide/pyodide.js`);
  const [python, library] = await Promise.all([
    // @ts-expect-error loadPyodide comes from the script above
    self.loadPyodide({ indexURL: `${VENDOR}pyodide/`, lockFileURL: `${VENDOR}pyodide/pyodide-lock.json` }),
    counted(`${VENDOR}pipesched.zip`).then((answer) => answer.arrayBuffer()),
  ]);
  await python.loadPackage("matplotlib", { messageCallback: () => {}, errorCallback: () => {} });
  if (missing) throw new Error(missing);
  self.fetch = plainFetch;
  progress("library");
  python.unpackArchive(library, "zip");
  return python.pyimport("pipesched.figures.door").handle;
}

const handle = boot();
handle.catch((error) => self.postMessage({ failure: missing || String(error.message ?? error) }));

self.onmessage = async ({ data }) => {
  const answer = await handle.catch(() => null);
  if (!answer) return; // said above
  try {
    progress("draw");
    self.postMessage({ answer: answer(data) });
  } catch (caught) {
    const lines = String(/** @type {Error} */ (caught).message ?? caught).trim().split("\n");
    self.postMessage({ failure: lines[lines.length - 1] });
  }
};
