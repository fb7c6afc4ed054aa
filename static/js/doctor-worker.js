// @ts-check
// A worker that tells the doctor whether workers start here and may run WebAssembly: the answer that carries a worker's
// script can have a policy of its own. It does without other parts, so that it also runs from a blob.

self.onmessage = ({ data }) => {
  try {
    const instance = new WebAssembly.Instance(new WebAssembly.Module(data));
    self.postMessage({ runs: /** @type {Function} */ (instance.exports.f)() === 42 });
  } catch (error) {
    self.postMessage({ runs: false, reason: String(error) });
  }
};
