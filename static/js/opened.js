// @ts-check
// A classic script, the only one that runs where the page was opened as a file: modules and workers do not load there.
// It shows the words that stand ready in the page, in both languages as no catalogue can be had.

if (location.protocol === "file:") {
  document.documentElement.dataset.state = "failed";
  document.documentElement.dataset.failure = "file";
  for (const id of ["opened-as-file", "status"]) /** @type {HTMLElement} */ (document.getElementById(id)).hidden = id === "status";
}
