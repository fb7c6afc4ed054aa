"""The main journey in the two engines that are not Chromium's: Firefox's and WebKit's, as Debian ships them."""

from collections.abc import Iterator

import pytest

from engines import ENGINES, FIREFOX, PACKAGES, program
from pipesched import run
from pipesched.words import catalogue
from site_server import Fault, serving

pytestmark = pytest.mark.browser
READY = "document.documentElement?.dataset.state === 'ready' && !!document.querySelector('#chart svg')"
HOST = """<!doctype html><meta charset="utf-8"><title>A course</title><link rel="icon" href="data:,">
<script>const heard = []; addEventListener("message", ({ data, origin }) => heard.push({ ...data, origin }));</script>
"""


@pytest.fixture(scope="session", params=ENGINES)
def tab(request, tmp_path_factory) -> Iterator[object]:
    """The one tab of a browser, unless it is not on this machine; tests/__main__.py counts that and says why."""
    if not program(request.param):
        by_hand = f" or name a Firefox in ${FIREFOX}" if request.param == "firefox" else ""
        pytest.skip(f"{request.param} is not on this machine: on Debian, install {PACKAGES[request.param]}{by_hand}")
    with ENGINES[request.param](tmp_path_factory.mktemp(request.param)) as tab:
        yield tab


@pytest.fixture
def visit(tab, server):
    """The page of many files, at its first view, in English; Python starts once for all tests that use it."""
    if not tab.evaluate(f"location.href.startsWith({server.url!r}) && {READY} && !location.search.includes('embed')"):
        tab.go(server.url)
        tab.until(READY)
    tab.evaluate("(history.pushState(null, '', location.pathname), dispatchEvent(new PopStateEvent('popstate')), 0)")
    tab.evaluate("document.querySelector('[data-language=en]').click()")
    tab.until(f"document.documentElement.lang === 'en' && {shows(makespan=6, sequential_makespan=12)}")
    yield tab
    assert tab.complaints() == []


def shows(**numbers):
    """That the page shows these numbers, as an expression."""
    return " && ".join(
        f"document.querySelector('output[name={name}]')?.dataset.value === '{value}'" for name, value in numbers.items()
    )


def says(selector, text):
    return f"document.querySelector({selector!r}).textContent.includes({text!r})"


def test_first_view_is_12_6_and_3_and_the_chart_is_the_one_python_draws(visit):
    assert visit.evaluate(shows(sequential_makespan=12, makespan=6, first_output=3))
    drawn = visit.evaluate(
        "[...document.querySelectorAll('g.op')].map(({dataset: d}) => [d.op, d.device, d.start, d.end])"
    )
    assert drawn == [[str(i.op), str(i.device), str(i.start), str(i.end)] for i in run().timeline.intervals]


def test_the_slider_goes_by_keyboard_and_the_number_by_typing(visit):
    visit.click("input[type=range][data-for=micro_batches]")
    for keys, makespan in ((["Home"], 3), (["Right", "Right"], 5), (["Left"], 4), (["End"], 1024 + 2)):
        visit.press(*keys)
        visit.until(shows(makespan=makespan))
    visit.click("[name=micro_batches]")
    visit.press("a", control=True)
    visit.press("1", "2", "Tab")
    visit.until(shows(makespan=12 + 2))
    assert visit.evaluate("location.hash") == "#micro_batches=12"


def test_a_drag_lands_on_its_last_value(visit):
    x, y, width = visit.evaluate(
        """(() => {
        const slider = document.querySelector("input[type=range][data-for=micro_batches]");
        slider.scrollIntoView({ block: "center" });
        const box = slider.getBoundingClientRect();
        return [Math.round(box.x), Math.round(box.y + box.height / 2), Math.round(box.width)];
        })()"""
    )
    moves = [{"type": "pointerMove", "x": x + 20 + width * step // 40, "y": y} for step in range(12)]
    moves.insert(1, {"type": "pointerDown", "button": 0})
    visit.act([{"type": "pointer", "id": "mouse", "actions": [*moves, {"type": "pointerUp", "button": 0}]}])
    asked = int(visit.evaluate("document.querySelector('[name=micro_batches]').value"))
    assert asked > 10
    visit.until(shows(makespan=asked + 2))


def test_training_by_1f1b_takes_33_and_keeps_4_3_2_1(visit):
    visit.choose("#schedule", "1f1b")
    visit.choose("[name=devices]", "4")
    visit.choose("[name=micro_batches]", "8")
    visit.until(shows(makespan=33))
    peaks = "[...document.querySelectorAll('#per-device output[name=peak_activations]')].map((one) => one.textContent)"
    assert visit.evaluate(peaks) == ["4", "3", "2", "1"]


def test_a_slow_stage_is_stepped_through_and_a_gap_says_what_it_waited_for(visit):
    visit.click("#slow")
    visit.until(shows(makespan=10, sequential_makespan=16))
    for step in range(3):
        visit.click("#ahead")
        visit.until(f"Number(document.querySelector('#clock').dataset.value) > {step}")
    visit.click("[data-gap=waits][data-device='2']")
    visit.until(says("#spot", "Device 3 waits"))
    assert visit.evaluate(says("#spot", "forward of micro-batch 1 on stage 2"))


def test_polish_is_said_with_its_decimal_comma(visit):
    visit.click("[data-language=pl]")
    visit.until("document.documentElement.lang === 'pl'")
    visit.until(r"/\d,\d/.test(document.querySelector('#numbers').textContent)")
    assert visit.evaluate("document.title") == catalogue("pl")["page.title"]


def test_a_lesson_is_answered_and_left(visit):
    visit.click("#lessons")
    visit.until("document.activeElement.id === 'lesson-question'")
    visit.click("#guess")
    visit.press("3")
    visit.click("#lesson-form [type=submit]")
    visit.until("document.activeElement.id === 'lesson-verdict'")
    assert visit.evaluate(says("#lesson-verdict", "Right: "))
    visit.click("#lesson-leave")
    visit.until("document.querySelector('#lesson').hidden && !location.search.includes('lesson')")


def test_back_undoes_a_change(visit):
    for name, value, makespan in (("micro_batches", "9", 11), ("devices", "5", 13)):
        visit.choose(f"[name={name}]", value)
        visit.until(shows(makespan=makespan))
    visit.back()
    visit.until(shows(makespan=11) + " && location.hash === '#micro_batches=9'")
    visit.back()
    visit.until(shows(makespan=6))


def test_a_second_visit_by_the_shared_link_starts_warm_and_shows_the_same(visit):
    visit.choose("[name=micro_batches]", "7")
    visit.until(shows(makespan=9))
    visit.click("#share-open")
    link = visit.until("document.querySelector('#share-link').value")
    visit.until("caches.keys().then(async ([name]) => !!name && !!(await (await caches.open(name)).keys()).length)")
    assert visit.complaints() == []
    visit.go("about:blank")
    visit.go(link)
    visit.until(f"{READY} && {shows(makespan=9)}")
    assert visit.evaluate("document.documentElement.dataset.start") == "warm"


def test_nothing_stands_out_of_a_narrow_page_with_everything_open(visit):
    """A Firefox shows its scroll bars; WebKit's window is never narrower than its tool bar."""
    try:
        visit.size(360, 900)
        visit.evaluate("document.querySelector('[data-language=pl]').click()")
        visit.choose("#schedule", "1f1b")
        visit.until("document.documentElement.lang === 'pl' && !!document.querySelector('#why tbody tr')")
        visit.evaluate("document.querySelectorAll('main details').forEach((details) => details.open = true)")
        assert visit.evaluate("document.documentElement.scrollWidth <= innerWidth")
        beyond = """[...document.querySelectorAll("#numbers output, #numbers dt")].filter((one) => one.offsetParent)
          .map((one) => one.getBoundingClientRect().right - one.closest("div").getBoundingClientRect().right)"""
        assert max(visit.evaluate(beyond)) <= 0
    finally:
        visit.size(1280, 900)
        visit.evaluate("document.querySelectorAll('main details').forEach((details) => details.open = false)")


def test_the_first_view_has_the_colours_that_the_address_asks_for(tab, site):
    with serving(site, faults={"python_stdlib.zip": Fault(hang=True)}) as server:
        for theme in ("dark", "light"):
            tab.go(f"{server.url}?theme={theme}")
            dark = "document.querySelector('#chart img').currentSrc.includes('-dark')"
            tab.until(
                f"document.documentElement.dataset.theme === '{theme}' && {dark} === {str(theme == 'dark').lower()}"
            )
        tab.go("about:blank")


def test_a_frame_tells_its_height(tab, server, tmp_path):
    frame = f'<iframe src="{server.url}?embed=1#micro_batches=5" width="360" height="500" title="x"></iframe>'
    (tmp_path / "index.html").write_text(HOST + frame)
    with serving(tmp_path, policy="") as host:
        tab.go(host.url.replace("127.0.0.1", "localhost"))
        tab.until(f"{READY} && {shows(makespan=7)}", frame=0)
        height = "heard.findLast((one) => one.pipesched === 'height')"
        tab.until(f"{height}?.height > 300")
        assert tab.evaluate(f"{height}.origin") == server.url.rstrip("/")
        assert tab.evaluate("document.documentElement.scrollWidth", frame=0) <= 360
    assert tab.complaints() == []


def test_the_one_file_runs_from_a_disk(tab, one_file):
    tab.go(one_file.as_uri() + "#micro_batches=7")
    tab.until(f"{READY} && {shows(makespan=9)}")
    tab.choose("[name=micro_batches]", "8")
    tab.until(shows(makespan=10) + " && location.hash === '#micro_batches=8'")
    assert tab.complaints() == []


def test_the_one_file_runs_in_a_frame_that_may_run_scripts_and_nothing_else(tab, one_file):
    host = one_file.parent / "host.html"
    host.write_text(HOST + '<iframe sandbox="allow-scripts" src="pipesched.html" width="860" height="420"></iframe>')
    with serving(one_file.parent, policy="") as server:
        tab.go(server.url + host.name)
        tab.until(READY, frame=0)
        tab.choose("[name=micro_batches]", "6", frame=0)
        tab.until(shows(makespan=8), frame=0)
        assert tab.evaluate("self.origin", frame=0) == "null"
    assert tab.complaints() == []
