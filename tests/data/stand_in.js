// The frame's side of the protocol that README describes, with an engine that knows one formula: M + K - 1. Each engine
// counts itself, each answer says which page computed it.
const query = new URLSearchParams(location.search);
const borrows = query.get("engine") === "host";
const here = Math.random().toString(36).slice(2);
let settings = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
let engine = null; // what questions go to
let watched = null; // id of who subscribed
let waiting = []; // questions not answered yet: {settings, then}
let asked = null;

const host = (message) => parent.postMessage(message, "*");

/** An engine as a worker would be: text in, an answer out. */
function start() {
  document.documentElement.dataset.engines = Number(document.documentElement.dataset.engines ?? 0) + 1;
  return (text, answer) => setTimeout(() => {
    const { devices = "3", micro_batches = "4" } = JSON.parse(text);
    if (micro_batches === "0") answer({ problems: [{ field: "micro_batches", text: "M is at least 1." }] });
    else answer({ makespan: Number(devices) + Number(micro_batches) - 1, by: here });
  }, 20);
}

function use(newer) {
  engine = newer;
  setTimeout(() => host({ pipesched: "ready" }), settings.tokens === "9" ? 800 : 0); // tokens=9: slow to start
  if (asked) waiting.unshift(asked); // asked again of the new one
  asked = null;
  next();
}

function next() {
  if (!engine || asked || !waiting.length) return;
  const question = (asked = waiting.shift());
  engine(JSON.stringify(question.settings), (answer) => {
    if (asked !== question) return;
    asked = null;
    question.then(answer);
    next();
  });
}

function state(id, extra = {}) {
  const link = `${location.origin}${location.pathname}#${new URLSearchParams(settings)}`;
  host({ pipesched: "state", id, settings, link, numbers: { makespan: shown.makespan, by: shown.by }, ...extra });
}

let shown = {};
function simulate(wanted, done, failed = () => {}) {
  waiting.push({ settings: wanted, then: (answer) => {
    if (answer.problems) return failed(answer.problems);
    settings = wanted;
    shown = answer;
    document.body.textContent = `${answer.makespan}`;
    done();
  } });
  next();
}

addEventListener("message", ({ data, source }) => {
  if (source !== parent || !data?.pipesched) return;
  const { pipesched, id } = data;
  if (pipesched === "ping") host({ pipesched: "pong", id, version: "0", ready: false });
  if (pipesched === "get") state(id);
  if (pipesched === "subscribe") {
    watched = id;
    simulate(settings, () => state(id));
  }
  if (pipesched === "set") {
    const wanted = { ...settings };
    for (const [name, value] of Object.entries(data.settings)) {
      if (value === null) delete wanted[name];
      else wanted[name] = String(value);
    }
    simulate(wanted, () => {
      state(id);
      if (watched !== null) state(watched);
    }, (problems) => host({ pipesched: "error", id, problems }));
  }
  if (pipesched === "serve") {
    own ??= start();
    const { port } = data;
    port.onmessage = (event) => own(event.data, (answer) => port.postMessage(answer));
  }
  if (pipesched === "engine") {
    const { port } = data;
    let hears = () => {};
    port.onmessage = (event) => hears(event.data);
    use((text, answer) => {
      hears = answer;
      port.postMessage(text);
    });
  }
});

let own = null;
addEventListener("load", () => {
  host({ pipesched: "height", height: Number(query.get("theme") === "dark" ? 300 : 200) });
  if (borrows) host({ pipesched: "engine" });
  else use((own ??= start()));
});
addEventListener("keydown", ({ key }) => host({ pipesched: "key", key }));
