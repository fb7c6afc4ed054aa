"""The page in a frame of another page, in a real Chromium: what it does to the page around it, and what that may do."""

import json
import time
from collections.abc import Iterator

import pytest

from npm_package import REVEAL, fetched
from site_server import Fault, serving

pytestmark = pytest.mark.browser
PATIENCE = 90  # seconds; a machine that is busy takes a while to start Python
READY = "document.documentElement.dataset.state === 'ready' && !!document.querySelector('#chart svg')"
LISTENER = """
const heard = [];
const frame = (index) => document.querySelectorAll("iframe")[index].contentWindow;
addEventListener("message", ({ data, origin, source }) => {
  const from = [...document.querySelectorAll("iframe")].findIndex((one) => one.contentWindow === source);
  heard.push({ data, origin, from });
});
let ids = 0;
function ask(index, message) {
  const id = ++ids;
  frame(index).postMessage({ ...message, id }, "*");
  return new Promise((resolve) => {
    addEventListener("message", ({ data }) => data.id === id && resolve(data));
    setTimeout(resolve, 30_000, { pipesched: "silence" });
  });
}
"""
DENIED = """
for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches"]) {
  Object.defineProperty(window, name, { get() { throw new DOMException(name, "SecurityError"); } });
}
for (const name of ["pushState", "replaceState"]) {
  history[name] = () => { throw new DOMException(name, "SecurityError"); };
}
"""


class Course:
    """A page that frames the simulator: what is in it, and what it heard."""

    def __init__(self, chromium, address, *, init="", **context):
        self.context = chromium.new_context(**{"locale": "en-US", "viewport": {"width": 1000, "height": 700}} | context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE * 1000)
        self.complaints = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        if init:
            self.page.add_init_script(init)
        self.page.goto(address)

    def frame(self, index=0):
        return self.page.query_selector_all("iframe")[index].content_frame()

    def ready(self, index=0):
        return self.until(READY, self.frame(index))

    def until(self, truth, where=None):
        """Wait until a JavaScript expression holds; asked from outside, as the policy forbids the page to poll."""
        where, over = where or self.page, time.monotonic() + PATIENCE
        while not where.evaluate(truth):
            assert time.monotonic() < over, truth
            time.sleep(0.03)
        return where

    def heard(self, kind, index=None):
        found = self.page.evaluate("heard")
        return [m["data"] for m in found if kind(m["data"]) and index in (None, m["from"])]

    def ask(self, message, index=0):
        return self.page.evaluate("([index, message]) => ask(index, message)", [index, message])


def own(name):
    """Whether a message is one of ours called this."""
    return lambda data: isinstance(data, dict) and data.get("pipesched") == name


def shows(name, value):
    return f"document.querySelector('output[name={name}]').dataset.value === '{value}'"


def change(frame, name, value):
    frame.fill(f"[name={name}]", str(value))
    frame.dispatch_event(f"[name={name}]", "change")


@pytest.fixture(scope="module")
def server(site) -> Iterator[object]:
    with serving(site, headers={"Access-Control-Allow-Origin": "*"}) as server:
        yield server


@pytest.fixture
def course(chromium, server, tmp_path) -> Iterator[object]:
    """Open a page with these elements in it: on a host of its own (another site), or on the simulator's own."""
    courses, hosts = [], []

    def open_course(body, *, is_own=False, script="", **options) -> Course:
        body = body.replace("SITE/", server.url)
        text = f"<!doctype html><meta charset=utf-8><title>A course</title><script>{LISTENER}{script}</script>{body}"
        if is_own:
            server.faults["course.html"] = Fault(type="text/html", body=text.encode())
            server.policy, before = "", server.policy
            address = server.url + "course.html"
        else:
            (tmp_path / "index.html").write_text(text, encoding="utf-8")
            host = serving(tmp_path, policy="")
            hosts.append(host)
            address = host.__enter__().url.replace("127.0.0.1", "localhost")
        courses.append(Course(chromium, address, **options))
        if is_own:
            server.policy = before
        return courses[-1]

    yield open_course
    for each in courses:
        each.context.close()
    for host in hosts:
        host.__exit__(None, None, None)
    server.faults.clear()


def iframe(query="", width=320, height=500, more=""):
    return f'<iframe src="SITE/{query}" width="{width}" height="{height}" title="Pipeline schedule" {more}></iframe>'


FAR = '<p style="height: 1500px">…</p>'


@pytest.mark.parametrize("is_own", [True, False], ids=["same_origin", "cross_site"])
def test_a_bare_frame_works_and_leaves_the_page_around_it_alone(course, is_own):
    body = f"<input id=note autofocus>{iframe('?embed=1', width=320)}{FAR}"
    visit = course(body, is_own=is_own)
    frame = visit.ready()
    visit.page.wait_for_timeout(300)
    assert visit.page.evaluate("document.activeElement.id") == "note"
    assert visit.page.evaluate("scrollY") == 0
    assert frame.evaluate("document.documentElement.scrollWidth") == 320
    assert not frame.is_visible("header") and not frame.is_visible("footer") and not frame.is_visible("#formula")
    assert frame.is_visible("#chart svg") and frame.is_visible("output[name=makespan]") and frame.is_visible("#full")
    entries = visit.page.evaluate("history.length")
    change(frame, "micro_batches", 9)
    visit.until(shows("makespan", 11), frame)
    frame.click("[data-step='1'][data-for=micro_batches]")
    visit.until(shows("makespan", 12), frame)
    assert frame.evaluate("location.hash") == "#micro_batches=10"
    frame.hover("#full")
    assert frame.get_attribute("#full", "href").endswith("/#micro_batches=10")
    frame.click("button.why >> nth=0")  # shows the reason, which stands above
    visit.until("document.querySelector('#spot').dataset.sort === 'fill'", frame)
    assert visit.page.evaluate("scrollY") == 0
    assert visit.page.evaluate("history.length") == entries
    assert visit.complaints == []


def test_a_link_to_a_figure_adds_nothing_to_the_history_of_the_page_around(course):
    visit = course(iframe(width=900))
    frame = visit.ready()
    entries = visit.page.evaluate("history.length")
    frame.eval_on_selector("#presets", "(details) => (details.open = true)")
    frame.click("[data-preset=megatron_4a]")
    visit.until(shows("makespan", 33), frame)
    assert frame.evaluate("location.hash") == "#micro_batches=8&schedule=1f1b&devices=4"
    frame.click("#lessons")
    visit.until("document.activeElement.id === 'lesson-question'", frame)
    assert visit.page.evaluate("history.length") == entries


def test_with_storage_and_history_denied_it_works_and_remembers_nothing(course):
    visit = course(iframe("?embed=slide", width=800), init=DENIED)
    frame = visit.ready()
    change(frame, "micro_batches", 9)
    visit.until(shows("makespan", 11), frame)
    frame.hover("#full")
    assert frame.get_attribute("#full", "href").endswith("/#micro_batches=9")  # though the address cannot say so
    assert frame.evaluate("location.hash") == ""
    assert visit.complaints == []


HEIGHTS = (
    own("height"),
    lambda data: isinstance(data, dict) and data.get("subject") == "lti.frameResize",
    lambda data: isinstance(data, dict) and data.get("subject") == "org.imsglobal.lti.frameResize",
    lambda data: isinstance(data, dict) and (data.get("sentinel"), data.get("type")) == ("amp", "embed-size"),
)
OBEY = """
addEventListener("message", ({ data }) => {
  if (data.pipesched === "height") document.querySelector("iframe").style.height = `${data.height + extra}px`;
});
"""
FITS = "Math.abs(innerHeight - document.documentElement.getBoundingClientRect().height) < 4"


@pytest.mark.parametrize("mode", ["1", "min"])
def test_the_height_is_told_as_hosts_want_to_hear_it_and_settles(course, mode):
    visit = course(iframe(f"?embed={mode}", width=500), script="const extra = 0;" + OBEY)
    frame = visit.ready()
    visit.until(FITS, frame)
    before = visit.heard(own("height"))[-1]["height"]
    frame.evaluate("location.hash = '#devices=9'")
    visit.until(f"heard.findLast(({{data}}) => data.pipesched === 'height').data.height > {before} + 100")
    visit.until(FITS, frame)
    visit.page.wait_for_timeout(500)
    told = [[data["height"] for data in visit.heard(kind)] for kind in HEIGHTS]
    assert told[0] == told[1] == told[2] == told[3]
    assert told[0][-1] > before
    assert frame.evaluate(FITS)


def test_a_host_that_makes_the_page_grow_by_obeying_is_not_obeyed_for_ever(course):
    visit = course(iframe("?embed=min", width=500), script="const extra = 40;" + OBEY)
    frame = visit.ready()
    visit.page.wait_for_timeout(500)
    before = len(visit.heard(own("height")))
    frame.evaluate("document.body.style.minHeight = '100vh'")  # the defect that makes such loops
    visit.page.wait_for_timeout(1500)
    after = visit.heard(own("height"))
    assert before < len(after) <= before + 5
    frame.evaluate("document.body.style.minHeight = ''")
    visit.page.wait_for_timeout(300)
    assert visit.heard(own("height"))[-1]["height"] < after[-1]["height"]  # it still tells that it shrinks


def test_commands_of_the_own_origin_get_set_and_follow_the_scenario(course):
    visit = course(iframe("?embed=1&lock=devices", width=800), is_own=True)
    frame = visit.frame()
    visit.until("window.frames[0] && document.querySelector('iframe').contentDocument.readyState === 'complete'")
    first = visit.ask({"pipesched": "get"})  # before Python has started: answered once it has
    assert (first["pipesched"], first["settings"], first["numbers"]["makespan"]) == ("state", {}, 6)
    pong = visit.ask({"pipesched": "ping"})
    assert (pong["pipesched"], pong["ready"]) == ("pong", True)
    assert pong["version"] == frame.evaluate("document.documentElement.dataset.version")
    assert len(visit.heard(own("ready"))) == 1

    state = visit.ask({"pipesched": "set", "settings": {"schedule": "1f1b", "devices": 4, "micro_batches": 8}})
    assert state["settings"] == {"schedule": "1f1b", "devices": 4, "micro_batches": 8}
    assert state["numbers"]["makespan"] == 33
    assert state["link"] == visit.page.url.replace("course.html", "#micro_batches=8&schedule=1f1b&devices=4")
    assert frame.input_value("[name=devices]") == "4"  # locked for people, not for the host
    assert frame.is_disabled("[name=devices]")

    wrong = visit.ask({"pipesched": "set", "settings": {"micro_batches": "many", "colour": "red"}})
    assert wrong["pipesched"] == "error"
    assert {problem["field"] for problem in wrong["problems"]} == {"micro_batches", "colour"}
    assert frame.input_value("[name=micro_batches]") == "8" and not frame.query_selector("#scenario .error")

    visit.page.evaluate("frame(0).postMessage({ pipesched: 'subscribe', id: 'mine' }, '*')")
    change(frame, "micro_batches", 9)
    visit.until("heard.filter(({data}) => data.id === 'mine').length === 2")
    told = visit.heard(lambda data: data.get("id") == "mine")
    assert [data["settings"]["micro_batches"] for data in told] == [8, 9]
    several = "[3, 5, 7].map((n) => ask(0, { pipesched: 'set', settings: { micro_batches: n } }))"
    answers = visit.page.evaluate(
        f"Promise.all([...{several}, ask(0, {{ pipesched: 'set', settings: {{ comm: 1 }} }})])"
    )
    assert [answer["pipesched"] for answer in answers] == ["state"] * 4  # every one is answered
    assert (answers[-1]["settings"]["micro_batches"], answers[-1]["settings"]["comm"]) == (7, 1)


@pytest.mark.parametrize(
    ("api", "is_heard"),
    [("", False), ("&api=https://a.example", False), ("&api=1", True), ("&api=https://a.example,HOST", True)],
    ids=["nothing_said", "another_named", "anybody", "named"],
)
def test_commands_from_elsewhere_need_leave(course, chromium, server, api, is_heard):
    visit = course("<script>document.write(location.origin)</script>")
    src = f"{server.url}?embed=min{api.replace('HOST', visit.page.inner_text('body'))}"
    visit.page.evaluate("(src) => document.body.append(Object.assign(document.createElement('iframe'), { src }))", src)
    visit.until("heard.some(({ data }) => data.pipesched === 'ready')")
    visit.page.evaluate("() => { for (const pipesched of ['ping', 'get', 'subscribe']) ask(0, { pipesched }) }")
    visit.page.evaluate("() => { ask(0, { pipesched: 'set', settings: { micro_batches: 9 } }) }")
    if is_heard:
        visit.until("heard.some(({ data }) => data.pipesched === 'state' && data.settings.micro_batches === 9)")
    else:
        visit.page.wait_for_timeout(1500)
        assert not visit.heard(lambda data: isinstance(data, dict) and data.get("pipesched") in ("pong", "state"))
        assert visit.frame().evaluate(shows("makespan", 6))


def test_the_wheel_scrolls_the_page_around_even_over_a_number_with_the_focus(course):
    visit = course(iframe("?embed=1", width=800, height=1200) + FAR)
    frame = visit.ready()
    for place in ("#chart svg", "[name=micro_batches]"):
        visit.page.evaluate("scrollTo(0, 0)")
        frame.click(place)
        box = frame.query_selector(place).bounding_box()
        visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        visit.page.mouse.wheel(0, 120)
        visit.until("scrollY === 120")
    assert frame.input_value("[name=micro_batches]") == "4"


def test_what_the_query_fixes_is_fixed_and_what_it_gets_wrong_is_named(course):
    query = "?embed=3&hide=steps,curtains&lock=all,speed&theme=red&motion=reduce&api=nobody#schedule=1f1b&devices=4"
    visit = course(iframe(query, width=800))
    frame = visit.ready()
    notices = frame.eval_on_selector_all(".notice", "all => all.map((one) => one.firstChild.textContent)")
    for value in ("embed=3", "hide=curtains", "lock=speed", "theme=red", "api=nobody"):
        assert any(value in notice for notice in notices), (value, notices)
    assert len(notices) == 5
    assert not frame.is_visible("#steps")
    enabled = "[...document.querySelectorAll('#scenario :is(input, select, textarea, button):enabled')]"
    assert frame.evaluate(enabled + ".filter((one) => one.checkVisibility()).map((one) => one.outerHTML)") == []
    assert frame.evaluate("document.documentElement.dataset.motion") == "reduce"
    visit.until(shows("makespan", 21), frame)


def test_a_lock_holds_one_setting_through_all_that_would_change_it(course):
    visit = course(iframe("?lock=devices,slow_factor#devices=5", width=800))
    frame = visit.ready()
    visit.until(shows("makespan", 8), frame)
    for part in ("[name=devices]", "[data-for=devices] >> nth=0", "#slow", "[name=slow_factor]"):
        assert frame.is_disabled(part)
    frame.eval_on_selector("#presets", "(details) => (details.open = true)")
    frame.click("[data-preset=megatron_4a]")  # 4 devices
    visit.until(shows("makespan", 36), frame)
    frame.select_option("#schedule", "dualpipe")
    visit.until("document.querySelectorAll('#scenario .error').length > 0", frame)
    assert not frame.query_selector_all("#scenario .error button")  # each repair would change the number of devices
    frame.click("[type=reset]")
    visit.until(shows("makespan", 8), frame)
    assert frame.input_value("[name=devices]") == "5"
    assert frame.is_disabled("[name=devices]") and frame.is_enabled("[name=micro_batches]")


def test_a_slide_hands_over_the_keys_that_turn_slides_and_keeps_those_its_controls_need(course):
    visit = course(iframe("?embed=slide", width=960, height=540))
    frame = visit.ready()
    frame.focus("input[type=range][data-for=micro_batches]")
    for key in ("PageDown", "PageUp", "Escape", "ArrowRight"):
        visit.page.keyboard.press(key)
    visit.until(shows("makespan", 7), frame)  # the arrow moved the slider, by one
    frame.click("#play")
    for key in ("ArrowRight", "Shift+ArrowRight", "Control+PageDown"):
        visit.page.keyboard.press(key)
    visit.page.wait_for_timeout(200)
    told = [data["key"] for data in visit.heard(own("key"))]
    assert told == ["PageDown", "PageUp", "Escape", "ArrowRight", "ArrowRight"]
    assert frame.evaluate("document.documentElement.scrollHeight") == 540  # it fills the frame, no more
    assert frame.evaluate("document.querySelector('#chart svg').getBoundingClientRect().height") > 170
    assert visit.heard(own("height")) == [] or visit.heard(own("height"))[-1]["height"] == 540


def test_playing_pauses_when_the_frame_is_out_of_sight(course):
    visit = course(iframe("?embed=1", width=800, height=600) + FAR + FAR)
    frame = visit.ready()
    frame.click("#play")
    visit.until("Number(document.querySelector('#time').value) > 0", frame)
    visit.page.evaluate("scrollTo(0, 2000)")
    visit.until("document.querySelector('#play').getAttribute('aria-pressed') === 'false'", frame)


DECK = """
<link rel=stylesheet href=dist/reveal.css>
<div class=reveal><div class=slides>
  <section><h2>One</h2></section>
  <section><iframe data-src="SITE/?embed=slide" width=940 height=560 title="Pipeline schedule"></iframe></section>
  <section><h2>Three</h2></section>
</div></div>
<script src=dist/reveal.js></script>
<script>Reveal.initialize({ transition: "none", history: false })</script>
"""


def test_in_a_deck_it_survives_being_left_and_returned_to_and_turns_the_slides(course, tmp_path):
    package = fetched(REVEAL)
    if not package:
        pytest.skip("reveal.js could not be had")
    (tmp_path / "dist").symlink_to(package / "dist")
    visit = course(DECK)
    visit.until("window.Reveal && Reveal.isReady()")
    visit.page.keyboard.press("ArrowRight")
    frame = visit.ready()
    assert visit.page.evaluate("document.activeElement === document.body")  # no focus taken
    change(frame, "devices", 5)
    visit.until(shows("makespan", 8), frame)
    frame.click("#ahead")
    visit.until("document.querySelector('#clock').dataset.value === '1'", frame)
    visit.page.keyboard.press("PageDown")  # in the frame, where the focus is
    visit.until("Reveal.getState().indexh === 2")
    visit.until("!(document.querySelector('iframe').getAttribute('src') ?? '').startsWith('http')")  # unloaded
    visit.page.evaluate("Reveal.prev()")
    visit.until("(document.querySelector('iframe').getAttribute('src') ?? '').startsWith('http')")
    visit.page.wait_for_timeout(300)
    frame = visit.ready()
    visit.until(shows("makespan", 8), frame)
    visit.until("document.querySelector('#clock').dataset.value === '1'", frame)
    assert frame.input_value("[name=devices]") == "5"
    box = frame.query_selector("g.op >> nth=3").bounding_box()  # pointing hits in a scaled slide too
    visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    visit.until("document.querySelector('#spot').textContent.startsWith('Device 1, 3 to 4')", frame)


ENGINE = """
let server = 0;
const wanting = new Set();
function join(index) {
  const { port1, port2 } = new MessageChannel();
  frame(server).postMessage({ pipesched: "serve" }, "*", [port1]);
  frame(index).postMessage({ pipesched: "engine", port: port2 }, "*", [port2]);
}
addEventListener("message", ({ data, source }) => {
  if (data.pipesched !== "engine") return;
  const index = [...document.querySelectorAll("iframe")].findIndex((one) => one.contentWindow === source);
  wanting.add(index);
  join(index);
});
"""


def workers(server):
    return sum(path.split("?")[0].endswith("worker.js") for path in server.asked)


def test_frames_of_one_page_share_one_engine_and_outlive_the_one_that_has_it(course, server):
    server.asked.clear()
    body = iframe("?embed=min#devices=2", width=400) + iframe("?embed=min&engine=host#devices=4", width=400)
    body += iframe("?embed=1&engine=host#devices=5", width=400)
    visit = course(body, script=ENGINE)
    for index, makespan in enumerate((5, 7, 8)):
        visit.until(shows("makespan", makespan), visit.ready(index))
    assert workers(server) == 1
    last = visit.frame(2)
    change(last, "micro_batches", 10)
    visit.until(shows("makespan", 14), last)
    # The one with the engine is taken away in the middle of a question: the next one becomes the server.
    last.eval_on_selector("[name=micro_batches]", "(field) => (field.value = 11)")
    last.dispatch_event("[name=micro_batches]", "change")
    visit.page.evaluate("document.querySelector('iframe').remove(); server = 0; join(1)")
    visit.until(shows("makespan", 15), visit.frame(1))
    assert workers(server) == 2
    visit.ready(0)
    assert visit.complaints == []


def test_without_anybody_to_lend_one_a_frame_starts_an_engine_of_its_own(course):
    visit = course(iframe("?embed=min&engine=host", width=400))
    visit.until(shows("makespan", 6), visit.ready())


def test_a_sandboxed_frame_without_an_origin_works_and_remembers_nothing(course, server):
    """Where a worker may not be loaded from its address, with the engine of a neighbour."""
    body = iframe("?embed=min", width=400)
    body += iframe("?embed=slide&engine=host#micro_batches=5", width=600, more='sandbox="allow-scripts"')
    visit = course(body, script=ENGINE)
    frame = visit.ready(1)
    assert frame.evaluate("self.origin") == "null"
    visit.until(shows("makespan", 7), frame)
    change(frame, "micro_batches", 6)
    visit.until(shows("makespan", 8), frame)
    assert visit.complaints == []


def test_a_sandboxed_frame_without_an_origin_starts_an_engine_of_its_own_from_a_blob(course, server):
    before = server.policy
    server.policy = f"{before}; worker-src 'self' blob:"
    visit = course(iframe("?embed=1#micro_batches=5", width=600, more='sandbox="allow-scripts"'))
    frame = visit.ready()
    server.policy = before
    assert frame.evaluate("self.origin") == "null"
    visit.until(shows("makespan", 7), frame)
    change(frame, "micro_batches", 6)
    visit.until(shows("makespan", 8), frame)
    assert visit.complaints == []


def test_a_drawing_that_comes_through_a_port_cannot_bring_a_script(course):
    """A page around us that lends a port may answer anything."""
    evil = json.dumps(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" onload="evil = 1" data-devices="1" data-end="1">'
        '<script>evil = 1</script><a href="javascript:evil = 1"><text>x</text></a><rect onclick="evil = 1"/>'
        "<foreignObject><b>html</b></foreignObject></svg>"
    )
    script = f"""
    addEventListener("message", ({{ data, source }}) => {{
      if (data.pipesched !== "engine") return;
      const {{ port1, port2 }} = new MessageChannel();
      port1.onmessage = ({{ data: text }}) => {{
        const asked = JSON.parse(text);
        if (asked.do === "run") port1.postMessage({{ answer: JSON.stringify({{ problems: [], svg: {evil}, numbers: [],
          devices: [], notes: [], kinds: [], limits: [], about: {{}}, unused: {{}}, changed: {{}},
          settings: asked.settings, pinned: null, deadlock: null, end: 1, events: 1, decoding: "", durations: "",
          summary: "" }}) }});
      }};
      source.postMessage({{ pipesched: "engine" }}, "*", [port2]);
      port1.postMessage({{ ready: true }});
    }});
    """
    visit = course(iframe("?embed=min&engine=host", width=400), script=script)
    frame = visit.ready()
    drawn = frame.eval_on_selector("#chart svg", "(svg) => svg.outerHTML")
    assert "evil" not in drawn and "html" not in drawn
