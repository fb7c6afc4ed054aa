// @ts-check
// The address of a worker that did not start goes in, the named cause comes out.

/** @type {string[]} */
const stopped = [];
document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) => {
  if (/worker\.js/.test(blockedURI)) stopped.push(effectiveDirective);
});

/** @param {URL} address @returns {Promise<import("./simulator.js").Failure>} */
export async function whyNoWorker(address) {
  const file = "worker.js";
  await new Promise((resolve) => setTimeout(resolve, 50)); // the event about a policy comes after the error
  if (stopped.length) return { cause: "policy", file, directive: stopped[0].startsWith("worker") ? stopped[0] : "worker-src" };
  try {
    const answer = await fetch(address, { cache: "no-store" });
    const type = answer.headers.get("content-type") ?? "";
    if (!answer.ok) return { cause: "missing", file, status: answer.status };
    if (type.startsWith("text/html")) return { cause: answer.redirected ? "redirect" : "html", file };
    if (!/(java|ecma)script/.test(type)) return { cause: "type", file, type: type || "?" };
  } catch {
    if (!navigator.onLine) return { cause: "offline" };
  }
  return { cause: "no_worker", file };
}
