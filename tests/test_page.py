"""The page in a real Chromium with real Pyodide: what a learner does, and what a host can do to it."""

import json
import re
import time
import zipfile
from collections.abc import Iterator

import pytest

import pipesched
from hosting.names import parts_of
from pipesched import run
from pipesched.lessons import STEPS, Reading
from pipesched.presets import PRESETS
from pipesched.schedules import REGISTRY
from pipesched.words import catalogue
from site_server import STRICT, Fault, serving

pytestmark = pytest.mark.browser
READY = "html[data-state=ready]"
PATIENCE = 90_000  # ms; a machine that is busy takes a while to start Python


class Visit:
    """A page that was opened: what it shows, and what it complained of."""

    def __init__(self, chromium, url, **context):
        self.context = chromium.new_context(**{"locale": "en-US", "viewport": {"width": 1280, "height": 900}} | context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(url)

    def ready(self):
        self.page.wait_for_selector(READY)
        self.page.wait_for_selector("#chart svg")
        return self

    def until(self, truth):
        """Wait until a JavaScript expression holds; asked from outside, as the policy forbids the page to poll."""
        over = time.monotonic() + PATIENCE / 1000
        while not self.page.evaluate(truth):
            assert time.monotonic() < over, truth
            time.sleep(0.03)

    def number(self, name):
        return float(self.page.get_attribute(f"output[name={name}]", "data-value"))

    def shows(self, **numbers):
        """Wait until the page shows these numbers."""
        for name, value in numbers.items():
            self.page.wait_for_selector(f'output[name={name}][data-value="{value}"]', state="attached")

    def set(self, name, value):
        self.page.fill(f"[name={name}]", str(value))
        self.page.dispatch_event(f"[name={name}]", "change")

    def queue(self, stage):
        return int(self.page.get_attribute(f'output[data-queue="{stage}"]', "data-value"))


@pytest.fixture(scope="module")
def shared(chromium, server) -> Iterator[Visit]:
    """One page for all that do not mind what the one before did; Python starts once."""
    visit = Visit(chromium, server.url).ready()
    yield visit
    visit.context.close()


@pytest.fixture
def visit(shared, server) -> Visit:
    """The shared page, back at the first view, in English, with a history of its own."""
    shared.page.evaluate("history.pushState(null, '', location.pathname); dispatchEvent(new PopStateEvent('popstate'))")
    shared.page.evaluate("document.querySelectorAll('.notice button').forEach((close) => close.click())")
    shared.page.click("[data-language=en]")
    shared.shows(makespan=6, sequential_makespan=12)
    shared.page.wait_for_function("document.querySelector('#chart svg').dataset.end === '6'")
    shared.page.click("#first")
    return shared


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_chart_stands_there_with_scripts_off(opened, server, width, scheme):
    size = {"width": width, "height": 800}
    visit = opened(server.url, java_script_enabled=False, viewport=size, color_scheme=scheme)
    image = visit.page.locator("#chart img")
    assert image.is_visible()
    assert image.bounding_box()["height"] > 100
    assert visit.page.inner_text("output[name=makespan]") == "6"


def test_a_page_that_gets_its_size_while_python_starts_is_drawn_for_it(opened, server):
    visit = opened(server.url, viewport={"width": 400, "height": 800})
    visit.page.wait_for_selector("html[data-state=starting]")
    visit.page.wait_for_timeout(500)  # by now the first question is on its way, with the width of that moment
    visit.page.set_viewport_size({"width": 1280, "height": 800})
    visit.ready()
    drawn, room = (
        "document.querySelector('#chart svg').width.baseVal.value",
        "document.querySelector('#chart').clientWidth",
    )
    visit.until(f"Math.abs({drawn} - {room}) < 2")


def test_first_view_is_12_6_and_3(visit):
    assert [visit.number(name) for name in ("sequential_makespan", "makespan", "first_output")] == [12, 6, 3]
    assert "4 + 3 − 1 = 6" in visit.page.inner_text("#textbook")
    assert visit.page.locator("g.op").count() == 12


def test_chart_is_the_one_python_draws(visit):
    drawn = visit.page.evaluate(
        "[...document.querySelectorAll('g.op')].map(({dataset: d}) => [d.op, d.device, d.start, d.end])"
    )
    assert drawn == [[str(i.op), str(i.device), str(i.start), str(i.end)] for i in run().timeline.intervals]


def test_one_micro_batch_gains_nothing(visit):
    visit.page.focus("input[type=range][data-for=micro_batches]")
    visit.page.keyboard.press("Home")
    visit.shows(makespan=3, sequential_makespan=3, speedup=1)


def test_a_drag_lands_on_its_last_value(visit):
    slider = visit.page.locator("input[type=range][data-for=micro_batches]")
    box = slider.bounding_box()
    visit.page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2)
    visit.page.mouse.down()
    for step in range(30):
        visit.page.mouse.move(box["x"] + 20 + step * 3, box["y"] + box["height"] / 2)
    visit.page.mouse.up()
    asked = int(visit.page.input_value("[name=micro_batches]"))
    assert asked > 10
    visit.shows(makespan=asked + 2)


def test_slow_stage_makes_the_queue_stand_before_stage_2(visit):
    visit.page.check("#slow")
    visit.shows(makespan=10, sequential_makespan=16)
    longest = 0
    for _ in range(12):
        visit.page.click("#ahead")
        visit.page.wait_for_timeout(60)
        assert visit.queue(2) == 0
        longest = max(longest, visit.queue(1))
    assert longest == 2  # F3 and F4 both stand there from 4 to 5
    assert "does not apply" in visit.page.inner_text("#textbook")


def test_stepping_reaches_the_end_and_comes_back(visit):
    seen = [0.0]
    while seen[-1] < 6:
        visit.page.click("#ahead")
        visit.until(f"Number(document.querySelector('#clock').dataset.value) > {seen[-1]}")
        seen.append(float(visit.page.get_attribute("#clock", "data-value")))
    assert seen == [0, 1, 2, 3, 4, 5, 6]
    assert visit.page.locator("#moment .device.done").count() == 3
    visit.page.click("#back")
    visit.page.wait_for_selector('#clock[data-value="5"]')
    assert "Device 3 runs forward of micro-batch 4" in visit.page.inner_text("#moment")


def test_playing_moves_and_can_be_paused(visit):
    visit.page.click("#play")
    visit.until("Number(document.querySelector('#time').value) > 0.3")
    visit.page.click("#play")
    stopped = visit.page.input_value("#time")
    visit.page.wait_for_timeout(200)
    assert visit.page.input_value("#time") == stopped


def test_pointing_at_a_gap_says_what_it_waited_for(visit):
    box = visit.page.locator('[data-gap=waits][data-device="2"]').bounding_box()
    visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    visit.until("document.querySelector('#spot').textContent.includes('Device 3 waits from 0 to 2')")
    assert "forward of micro-batch 1 on stage 2" in visit.page.inner_text("#spot")


def test_keyboard_walks_the_chart(visit):
    visit.page.focus("#chart")
    for key in ("ArrowUp", "ArrowUp", "Home"):  # wherever the cursor was: the first block of the first device
        visit.page.keyboard.press(key)
    visit.until("document.querySelector('#spot').textContent.includes('Device 1, 0 to 1')")
    visit.page.keyboard.press("ArrowDown")
    visit.until("document.querySelector('#spot').textContent.startsWith('Device 2')")
    visit.page.keyboard.press("ArrowRight")
    visit.until("document.querySelector('#spot').textContent.includes('Device 2, 1 to 2')")


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_training_with_4_devices_and_8_micro_batches_takes_33(visit, schedule):
    visit.page.select_option("#schedule", schedule)
    visit.set("devices", 4)
    visit.set("micro_batches", 8)
    visit.shows(makespan=33)
    peaks = visit.page.locator("#per-device output[name=peak_activations]").all_inner_texts()
    assert peaks == (["8"] * 4 if schedule == "gpipe" else ["4", "3", "2", "1"])


def test_address_holds_the_scenario_and_back_undoes_a_change(visit):
    visit.set("micro_batches", 9)
    visit.shows(makespan=11)
    visit.set("devices", 5)
    visit.shows(makespan=13)
    assert visit.page.evaluate("location.hash") == "#micro_batches=9&devices=5"
    visit.page.go_back()
    visit.shows(makespan=11)
    assert visit.page.input_value("[name=devices]") == "3"
    visit.page.go_back()
    visit.shows(makespan=6)


def test_what_is_typed_while_a_link_is_still_answered_wins(visit):
    """Opening 65,536 blocks takes seconds; what a person changes meanwhile is neither lost nor written over."""
    visit.page.evaluate(
        """() => {
        history.pushState(null, "", "#schedule=1f1b&devices=64&micro_batches=1024");
        dispatchEvent(new PopStateEvent("popstate"));
        }"""
    )
    visit.page.wait_for_timeout(150)  # Python is at it
    visit.set("devices", 2)
    visit.shows(makespan=(1024 + 1) * 3)
    assert visit.page.input_value("[name=devices]") == "2"
    assert visit.page.input_value("[name=micro_batches]") == "1024"
    assert visit.page.evaluate("location.hash") == "#micro_batches=1024&schedule=1f1b&devices=2"


def test_wrong_input_is_named_where_it_was_typed_and_stays(visit):
    visit.page.click("#more summary")
    visit.set("stage_times", "1; 2,5")
    error = visit.page.wait_for_selector("#error-stage_times")
    assert "2 numbers" in error.inner_text()
    assert visit.page.input_value("[name=stage_times]") == "1; 2,5"
    assert visit.number("makespan") == 6
    visit.page.click("#error-stage_times button >> nth=0")
    visit.shows(makespan=11, sequential_makespan=14)


def test_polish_has_its_plural_forms_and_decimal_comma(visit):
    visit.page.click("[data-language=pl]")
    visit.page.wait_for_selector("text=czas bez nakładania pracy")
    visit.until("document.querySelector('#moment').textContent.includes('3 porcje jeszcze nie weszły')")
    visit.set("micro_batches", 6)
    visit.until("document.querySelector('#moment').textContent.includes('5 porcji jeszcze nie weszło')")
    visit.page.check("#slow")
    visit.set("slow_factor", "1,5")
    visit.shows(makespan=11)
    assert "2,1818" not in visit.page.inner_text("#numbers")
    assert re.search(r"\d,\d", visit.page.inner_text("#numbers"))
    assert visit.page.evaluate("document.documentElement.lang") == "pl"


def test_every_operation_is_in_the_table(visit):
    visit.page.click("#table summary")
    visit.until("document.querySelectorAll('#table tbody tr').length === 12")


def test_nothing_is_asked_of_another_host_and_nothing_is_complained_of(shared, server):
    assert all(url.startswith(server.url) or url.startswith(("data:", "blob:")) for url in shared.requests)
    assert shared.complaints == []


def test_a_shared_link_opens_its_scenario_and_names_what_it_gets_wrong(opened, server):
    visit = opened(server.url + "#micro_batches=abc&devices=4&colour=red&slow_factor=2").ready()
    visit.shows(makespan=11)
    notices = visit.page.locator(".notice")
    assert notices.count() == 2
    text = " ".join(notices.all_inner_texts())
    assert "Micro-batches" in text and "abc" in text and "colour" in text
    notices.locator("button").first.click()
    assert notices.count() == 1
    assert visit.page.input_value("[name=micro_batches]") == "4"


def test_polish_comes_from_the_address_or_the_browser(opened, server):
    assert opened(server.url + "?lang=pl").page.wait_for_selector("text=Warstwy modelu są rozłożone")
    assert opened(server.url, locale="pl-PL").page.wait_for_selector("text=Warstwy modelu są rozłożone")


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_shows_everything_without_scrolling_sideways(opened, server, width):
    visit = opened(
        server.url + "?lang=pl#schedule=1f1b&devices=4&micro_batches=8", viewport={"width": width, "height": 800}
    )
    visit.ready().shows(makespan=33)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    visit.page.wait_for_selector("#why[aria-busy=false]")
    for term in visit.page.locator(".what:visible").all():
        term.focus()
        box = term.locator("+ .definition").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width


def test_strict_policy_sub_path_with_a_space_and_wrong_wasm_type_are_no_hindrance(opened, site):
    faults = {"pyodide.asm.wasm": Fault(type="text/plain")}
    with serving(site, prefix="/a/b c/", policy=STRICT, faults=faults) as server:
        visit = opened(server.url).ready()
        visit.set("micro_batches", 7)
        visit.shows(makespan=9)
        assert visit.complaints == []


def test_a_frame_pasted_without_escaping_opens_what_it_says(opened, server):
    visit = opened(server.url)
    address = f"{server.url}?lang=en#schedule=gpipe&micro_batches=6"
    visit.page.set_content(f'<iframe src="{address}" width="860" height="420" title="x"></iframe>')
    inside = visit.page.frames[1]
    inside.wait_for_selector('output[name=makespan][data-value="24"]', timeout=PATIENCE)
    assert inside.locator(".notice").count() == 0


def test_a_slow_start_says_what_it_waits_for(opened, site):
    with serving(site, faults={"python_stdlib.zip": Fault(hang=True)}) as server:
        page = opened(server.url).page
        page.wait_for_selector("#status progress", state="visible")
        assert re.search(r"Loading Python: [\d.]+ of [\d.]+ MB", page.inner_text("#status"))
        assert float(page.eval_on_selector("#status progress", "(bar) => bar.value")) > 0.1


HTML = b"<!doctype html><title>Log in</title>"


@pytest.mark.parametrize(
    ("cause", "faults", "policy"),
    [
        ("missing", {"pyodide.asm.wasm": Fault(status=404)}, STRICT),
        ("missing", {"manifest.json": Fault(status=404)}, STRICT),
        ("html", {"pyodide.asm.wasm": Fault(type="application/wasm", body=HTML)}, STRICT),
        ("html", {"pipesched.zip": Fault(type="text/html", body=HTML)}, STRICT),
        ("broken", {"pyodide.asm.wasm": Fault(type="application/wasm", body=b"\0asm\1\0\0\0")}, STRICT),
        ("missing", {"worker.js": Fault(status=404)}, STRICT),
        ("blocked", {}, STRICT.replace(" 'wasm-unsafe-eval'", "")),
        ("stalled", {"python_stdlib.zip": Fault(hang=True)}, STRICT),
    ],
)
def test_a_load_that_cannot_end_well_ends_in_a_named_error_and_a_retry(opened, site, cause, faults, policy):
    with serving(site, faults=faults, policy=policy) as server:
        page = opened(server.url).page
        page.wait_for_selector(f"html[data-state=failed][data-failure={cause}]", timeout=40_000)
        page.wait_for_selector("#status button")
        assert "cannot start" in page.inner_text("#status")
        assert page.locator("#chart img").is_visible()


def test_retry_starts_what_failed_before(opened, site):
    with serving(site, faults={"pyodide.asm.wasm": Fault(status=503)}) as server:
        visit = opened(server.url)
        visit.page.wait_for_selector("html[data-state=failed]")
        server.faults.clear()
        visit.page.click("#status button")
        visit.ready().shows(makespan=6)


def test_a_python_error_is_shown_and_the_next_change_works(opened, site, tmp_path):
    broken = tmp_path / "pipesched.zip"
    vendor = parts_of(site) / "vendor"
    with zipfile.ZipFile(vendor / "pipesched.zip") as whole, zipfile.ZipFile(broken, "w") as changed:
        for name in whole.namelist():
            code = whole.read(name)
            if name == "pipesched/web.py":
                code = code.replace(
                    b"asked = json.loads(request)", b"asked = json.loads(request); 1 / (13 != trip(asked))"
                )
                code += b"\n\ndef trip(asked):\n    return int(asked['settings'].get('micro_batches', 0))\n"
            changed.writestr(name, code)
    manifest = json.loads((vendor / "manifest.json").read_text())
    manifest["files"]["pipesched.zip"]["size"] = broken.stat().st_size
    faults = {
        "pipesched.zip": Fault(type="application/zip", body=broken.read_bytes()),
        "manifest.json": Fault(type="application/json", body=json.dumps(manifest).encode()),
    }
    with serving(site, faults=faults) as server:
        visit = opened(server.url).ready()
        visit.set("micro_batches", 13)
        notice = visit.page.wait_for_selector(".notice[data-key=python]")
        assert "ZeroDivisionError" in notice.inner_text()
        visit.set("micro_batches", 12)
        visit.shows(makespan=14)
        assert visit.page.locator(".notice[data-key=python]").count() == 0


def test_the_largest_scenario_does_not_hang(opened, server):
    visit = opened(server.url + "#schedule=1f1b&devices=64&micro_batches=1024").ready()
    visit.shows(makespan=(1024 + 63) * 3)
    visit.set("devices", 2)
    visit.shows(makespan=(1024 + 1) * 3)


def test_every_schedule_can_be_chosen_and_shows_the_numbers_that_python_gives(visit):
    visit.set("devices", 4)
    visit.set("micro_batches", 8)
    for name in REGISTRY:
        visit.page.select_option("#schedule", name)
        metrics = run(schedule=name, devices=4, micro_batches=8).metrics
        visit.until(f"document.documentElement.dataset.shown === '{name}'")
        visit.shows(makespan=metrics.makespan, longest_span=metrics.longest_span)
        peaks = visit.page.eval_on_selector_all(
            "output[name=peak_activations]", "all => all.map((o) => o.dataset.value)"
        )
        assert [int(peak) for peak in peaks] == list(metrics.peak_activations)
        assert visit.page.inner_text("#about cite") == REGISTRY[name].source
    assert not visit.page.locator("#scenario .error").count()
    assert visit.complaints == []


def test_what_a_schedule_cannot_do_is_said_at_the_field_and_put_right_by_a_click(visit):
    visit.page.select_option("#schedule", "dualpipe")
    error = visit.page.locator(".control:has([name=devices]) .error")
    assert "DualPipe needs an even number of devices, not 3" in error.inner_text()
    assert visit.page.input_value("#schedule") == "dualpipe"  # what was chosen stays
    error.locator("button").last.click()
    visit.until("document.documentElement.dataset.shown === 'dualpipe'")
    assert visit.page.input_value("[name=devices]") == "4"
    assert visit.page.input_value("[name=micro_batches]") == "8"  # what else it needs came along
    assert not visit.page.locator("#scenario .error").count()


@pytest.mark.parametrize(
    ("typed", "name"),
    [("vpp", "interleaved_1f1b"), ("AFAB", "gpipe"), ("zb1p", "zb_h1"), ("Hanayo", "wave"), ("dapple", "1f1b")],
)
def test_a_schedule_is_found_under_any_of_its_names(visit, typed, name):
    visit.page.fill("#search", typed)
    visit.page.locator("#found button", has_text=catalogue("en")[f"schedule.{name}"]).first.click()
    visit.until(f"document.documentElement.dataset.shown === '{name}'")
    assert visit.page.input_value("#search") == ""
    visit.page.fill("#search", "no such thing")
    assert visit.page.inner_text("#found") == "No schedule is called that."
    visit.page.fill("#search", "")


def test_a_control_that_the_schedule_does_not_use_is_disabled_and_says_why(visit):
    visit.page.select_option("#schedule", "interleaved_1f1b")
    visit.until("document.documentElement.dataset.shown === 'interleaved_1f1b'")
    assert visit.page.locator("#own").get_attribute("open") is not None
    assert visit.page.is_enabled("[name=chunks]")
    assert visit.page.is_disabled("[name=tokens]")
    assert visit.page.inner_text(".control:has([name=tokens]) .unused") == "interleaved 1F1B does not use it."
    visit.page.select_option("#schedule", "decode")
    visit.until("document.documentElement.dataset.shown === 'decode'")
    assert visit.page.is_enabled("[name=tokens]")
    assert visit.page.is_disabled("[name=chunks]")


def test_an_order_that_is_pasted_is_drawn_measured_or_refused_with_the_reason(visit):
    visit.page.eval_on_selector("#own-order", "(details) => (details.open = true)")
    visit.set("order", "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")
    visit.until("document.documentElement.dataset.shown === 'order'")
    visit.shows(makespan=9)
    visit.set("order", "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1Q1")
    error = visit.page.locator(".control:has([name=order]) .error")
    error.wait_for()
    assert "line 2, column 13: 1Q1 is not an operation" in error.inner_text()
    assert visit.page.input_value("[name=order]").endswith("1Q1")
    visit.set("order", "0F0 0F1 0B0 0B1\n1B0 1F0 1F1 1B1")
    visit.page.wait_for_selector("[data-stuck='1B0']")
    assert "device 2 stands before 1B0, which needs 1F0" in error.inner_text()
    assert visit.page.inner_text("output[name=makespan]") == "–"
    assert visit.page.locator("g.op").count() == 2  # drawn up to where it stops


def test_the_order_of_a_schedule_can_be_taken_and_edited(visit):
    visit.page.select_option("#schedule", "1f1b")
    visit.until("document.documentElement.dataset.shown === '1f1b'")
    visit.page.eval_on_selector("#own-order", "(details) => (details.open = true)")
    visit.page.click("#take")
    visit.until("document.documentElement.dataset.shown === 'order'")
    assert visit.page.input_value("[name=order]") == run(schedule="1f1b").order()
    visit.shows(makespan=18)


@pytest.mark.parametrize("name", ["gpipe_2c", "megatron_4b", "zb_h2", "dualpipe_5"])
def test_a_figure_of_a_paper_is_one_link_and_every_duration_is_there(visit, name):
    preset = next(preset for preset in PRESETS if preset.name == name)
    visit.page.eval_on_selector("#presets", "(details) => (details.open = true)")
    visit.page.click(f"[data-preset={name}]")
    metrics = run(**preset.settings).metrics
    visit.shows(makespan=metrics.makespan, longest_span=metrics.longest_span)
    assert visit.page.inner_text("#durations").startswith("Per stage: f = ")
    assert visit.complaints == []


def test_the_letters_follow_the_papers_convention_when_asked(visit):
    visit.page.select_option("#schedule", "zb_h1")
    visit.page.wait_for_selector("g.op[data-op='0I0'] >> text=I1")
    visit.page.select_option("#letters", "zero_bubble")
    visit.page.wait_for_selector("g.op[data-op='0I0'] >> text=B1")
    assert "letters=zero_bubble" in visit.page.url
    visit.page.select_option("#letters", "pytorch")
    visit.page.wait_for_selector("g.op[data-op='0I0'] >> text=I1")


def test_a_note_that_offers_another_rule_applies_it(visit):
    visit.page.select_option("#schedule", "interleaved_1f1b")
    visit.set("devices", 4)
    visit.set("micro_batches", 10)
    visit.shows(makespan=run(schedule="interleaved_1f1b", devices=4, micro_batches=10).metrics.makespan)
    visit.page.click("#notes button >> nth=0")
    visit.until("document.querySelector('[name=group]').value === '4'")
    visit.shows(makespan=run(schedule="interleaved_1f1b", devices=4, micro_batches=10, group=4).metrics.makespan)


def test_a_pinned_scenario_stays_beside_what_changes_and_is_in_the_address(visit, opened, server):
    visit.page.select_option("#schedule", "gpipe")
    visit.until("document.documentElement.dataset.shown === 'gpipe'")
    visit.page.click("#pin")
    visit.page.wait_for_selector("#pinned svg")
    visit.page.select_option("#schedule", "1f1b")
    visit.until("document.querySelector('#title-b').textContent.startsWith('1F1B')")
    assert visit.page.inner_text("#title-a").startswith("GPipe")
    peak = visit.page.locator("#compare tbody tr", has_text="in micro-batches").inner_text().split("\t")
    assert [cell.strip() for cell in peak[1:3]] == ["4", "3"]
    again = opened(visit.page.url, viewport={"width": 390, "height": 800}).ready()
    again.page.wait_for_selector("#pinned svg")
    assert again.page.inner_text("#title-a").startswith("GPipe")
    assert again.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    visit.page.click("#pin")
    visit.until("document.querySelector('#pinned').hidden")
    assert "compare" not in visit.page.url


def test_curves_are_drawn_while_the_page_stays_usable_and_follow_the_scenario(visit):
    visit.page.select_option("#schedule", "1f1b")
    visit.page.eval_on_selector("#curves", "(details) => (details.open = true)")
    visit.page.wait_for_selector("#curve-box [data-curve='1F1B']")
    visit.page.wait_for_selector("#curve-box [data-curve='ZB-H1']")
    assert "curves=micro_batches" in visit.page.url
    visit.page.select_option("#curve-metric", "peak_micro_batches")
    visit.set("micro_batches", 6)
    visit.shows(makespan=run(schedule="1f1b", micro_batches=6).metrics.makespan)
    visit.page.wait_for_selector("#curve-box circle[fill=none]", state="attached")
    visit.page.eval_on_selector("#curves", "(details) => (details.open = false)")
    visit.until("!location.search.includes('curves')")


def point(visit, device, time):
    """Move the mouse to a moment of a device's lane, wherever the chart stands."""
    visit.page.locator("#chart").scroll_into_view_if_needed()
    x, y = visit.page.evaluate(
        """([device, time]) => {
            const chart = document.querySelector("#chart svg");
            const frame = chart.getBoundingClientRect(), fact = chart.dataset;
            return [frame.left + Number(fact.left) + fact.plot * time / fact.end,
                    frame.top + Number(fact.top) + fact.lane * device + fact.block / 2];
        }""",
        [device, time],
    )
    visit.page.mouse.move(x, y)


def show_1f1b(visit):
    visit.page.select_option("#schedule", "1f1b")
    visit.set("devices", 4)
    visit.set("micro_batches", 8)
    visit.shows(makespan=33)
    visit.until("document.querySelector('#chart svg').dataset.end === '33'")


def test_a_gap_says_its_cause_what_else_could_have_run_and_shows_the_chain_behind_it(visit):
    """1F1B, K = 4, M = 8: device 1 waits from 4 to 10 for a gradient; F5 is at hand."""
    show_1f1b(visit)
    point(visit, 0, 7)
    visit.until("document.querySelector('#spot').dataset.sort === 'backward'")
    said = visit.page.inner_text("#spot")
    assert "Why not run forward of micro-batch 5 on stage 1 here?" in said
    assert "hold 5 activations at its peak and not 4" in said
    line = visit.page.get_attribute("path.chain", "d")
    assert line.count("L") == 2 * 7  # F on stages 1 to 4, B on stages 4 to 2
    point(visit, 0, 0.5)
    visit.until("document.querySelector('#spot').textContent.includes('It has no slack')")
    assert visit.page.locator("path.chain").count() == 0


def test_what_the_bubble_is_made_of_adds_up_and_follows_the_slider(visit):
    show_1f1b(visit)
    visit.page.wait_for_selector('output[data-sort=backward][data-value="12"]')
    values = visit.page.eval_on_selector_all("output[data-sort]", "all => all.map((o) => Number(o.dataset.value))")
    assert sum(values) == 4 * 33 - 4 * 24
    visit.page.check("#slow")
    visit.page.wait_for_selector('output[data-sort=slow_stage]:not([data-value="0"])')
    visit.until("document.querySelector('#what-if').textContent.includes('making stage 2 10% faster')")
    assert visit.page.inner_text("#turn") == "Above 1, stage 2 is the bottleneck."
    visit.page.eval_on_selector("#more", "(details) => (details.open = true)")
    visit.set("stage_times", "1 1 2 1")
    visit.page.wait_for_selector('#turn[data-value="2"]')
    assert visit.page.locator("svg.turn path").get_attribute("d") == "M2 0V1"


def test_the_critical_path_is_shown_on_demand_and_kept_in_the_address(visit):
    visit.page.click("#path")
    visit.page.wait_for_selector("path.critical")
    assert visit.page.get_attribute("path.critical", "d").count("M") == 3  # F1, F1, and F1 to F4 of the last device
    assert "path=1" in visit.page.url
    visit.set("micro_batches", 400)
    visit.until("document.querySelector('#chart svg').hasAttribute('data-dense')")
    visit.page.wait_for_selector("path.critical")  # from the geometry: a dense chart has no blocks
    visit.page.click("#path")
    visit.page.wait_for_selector("path.critical", state="detached")
    assert "path=1" not in visit.page.url
    assert visit.complaints == []


def test_stepping_leads_to_the_reason_for_a_gap(visit):
    visit.page.click("#moment li[data-device='2'] .why")
    visit.until("document.querySelector('#spot').dataset.sort === 'fill'")
    assert "Device 3 waits from 0 to 2" in visit.page.inner_text("#spot")
    assert "no other operation had its values" in visit.page.inner_text("#spot")


def test_a_chart_too_large_to_explain_says_so(visit):
    visit.set("micro_batches", 1024)
    visit.set("devices", 64)
    visit.shows(makespan=1024 + 63)
    visit.until("document.querySelector('#why-said').textContent.startsWith('With more than 50')")
    assert visit.page.locator("#why table").is_hidden()


def opened_sources(visit):
    visit.page.evaluate("document.querySelector('#sources').open = true")
    return visit.page


def test_splitting_layers_drives_the_chart_and_shows_who_holds_what(visit):
    page = opened_sources(visit)
    page.select_option("#split", "even")
    visit.shows(makespan=48)  # (4 + 3 - 1) * 8
    assert page.locator("#placement [data-stage]").count() == 3
    visit.set("head", "4")
    visit.shows(makespan=64)  # 8 + 8 + 12 + 3 * 12
    assert "stage 3 with 12" in page.inner_text("#placement figcaption")
    page.select_option("#split", "balanced")
    visit.shows(makespan=58)  # 28 layers' time: 10, 9, 9; 28 + 3 * 10
    assert page.evaluate("location.hash") == "#split=balanced&head=4"
    page.select_option("#split", "none")
    visit.shows(makespan=6)
    assert page.locator("#placement").is_hidden()


def test_a_pasted_layout_that_loses_a_layer_is_refused_at_its_field_and_put_right(visit):
    page = opened_sources(visit)
    page.select_option("#split", "hand")
    page.wait_for_selector("#error-layout")
    visit.set("layout", "Et*7|t*8|t*8L")
    visit.until("document.querySelector('#error-layout')?.textContent.includes('23 layers')")
    assert visit.number("makespan") == 6
    page.click("#error-layout button >> nth=0")
    visit.shows(makespan=47)  # 7 + 8 + 8 + 3 * 8
    assert page.input_value("[name=layers]") == "23"
    visit.set("layout", "Et*7|t*8|x")
    visit.until("document.querySelector('#error-layout')?.textContent.includes('character 10')")


def test_a_constant_batch_names_its_best_m_and_a_button_takes_it(visit):
    page = opened_sources(visit)
    visit.set("devices", 4)
    visit.set("batch", 64)
    visit.shows(makespan=112)  # a = 0: (4 + 3)(64/4)
    visit.set("overhead", "3")
    visit.shows(makespan=133)  # 7 * (3 + 16)
    assert "here 8, where it takes 121" in page.inner_text("#batch-best")
    page.click("#trade-batch")
    visit.until("document.querySelectorAll('#batch-best tbody tr').length === 7")
    page.click("#batch-best button >> nth=0")
    visit.shows(makespan=121)
    assert page.input_value("[name=micro_batches]") == "8"


def test_pipeline_is_traded_for_tensor_lanes(visit):
    page = opened_sources(visit)
    visit.set("devices", 4)
    visit.shows(makespan=7)
    visit.set("all_reduce", "0.25")
    visit.until("location.hash.includes('all_reduce')")
    page.click("#trade-tensor")
    visit.until("document.querySelectorAll('#tensor-trade tbody tr').length === 3")
    # p = 4, 2, 1: (4 + p - 1) steps of 1, of 2/2 + 2 * 2 * 1/4, and of 4/4 + 4 * 2 * 3/2 * 1/4
    times = page.locator("#tensor-trade tbody td:nth-child(2)").all_inner_texts()
    assert [text.split(",")[0].strip() for text in times] == ["7", "10", "16"]
    page.locator("#tensor-trade tbody button").first.click()
    visit.shows(makespan=10)
    assert [page.input_value(f"[name={name}]") for name in ("tensor", "devices")] == ["2", "2"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_inputs_of_the_stage_times_fit_a_phone(opened, server, scheme):
    link = "#schedule=zb_v&devices=4&micro_batches=8&split=balanced&batch=96&overhead=2&tensor=2&all_reduce=0.1"
    visit = opened(server.url + link, viewport={"width": 360, "height": 740}, color_scheme=scheme).ready()
    page = opened_sources(visit)
    page.click("#trade-tensor")
    visit.until("document.querySelectorAll('#tensor-trade tbody tr').length > 1")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator("#placement [data-stage]").count() == 8


def open_strips(visit, of):
    """Open what stands under the chart, unless it is, and wait until it is that of the chart shown."""
    if not visit.page.evaluate(f"document.querySelector('details[data-of={of}]').open"):
        visit.page.click(f"details[data-of={of}] summary")
    visit.until(f"Boolean(document.querySelector('details[data-of={of}]:not([data-stale]) svg'))")


def peaks(visit, of):
    return visit.page.eval_on_selector_all(f"details[data-of={of}] .strip", "all => all.map((one) => one.dataset.peak)")


def test_queues_and_activations_over_time_are_asked_for_when_opened_and_follow_the_settings(visit):
    assert visit.page.locator(".over-time svg").count() == 0
    open_strips(visit, "queues")
    open_strips(visit, "activations")
    assert peaks(visit, "queues") == ["3", "0", "0"]
    visit.page.select_option("[name=schedule]", "1f1b")
    visit.until("document.querySelector('[data-of=activations] .strip')?.dataset.peak === '3'")
    assert peaks(visit, "activations") == ["3", "2", "1"]
    assert "Most is kept on device 1: 3 activations" in visit.page.inner_text("[data-of=activations] .peaks")
    visit.page.click("[data-language=pl]")
    visit.until("document.querySelector('[data-of=activations] .peaks').textContent.startsWith('Najwięcej')")


def test_the_strips_are_aligned_with_the_chart_zoomed_scrolled_and_at_the_play_head(visit):
    open_strips(visit, "queues")
    visit.page.click("#zoom-in")
    facts = "((svg) => [svg.dataset.left, svg.dataset.plot, svg.dataset.end].join())"
    aligned = (
        f"{facts}(document.querySelector('#chart svg')) === {facts}(document.querySelector('[data-of=queues] svg'))"
    )
    visit.until(f"document.querySelector('#chart svg').clientWidth > innerWidth && {aligned}")
    visit.page.evaluate("document.querySelector('#chart').scrollLeft = 200")
    visit.until("document.querySelector('[data-of=queues] .strips').scrollLeft === 200")
    visit.page.click("#last")
    x = "(document.querySelector('{} .head').getAttribute('d') ?? '').match(/^M([\\d.]+)/)?.[1]"
    visit.until(f"Number({x.format('#chart')}) > 900 && {x.format('#chart')} === {x.format('[data-of=queues]')}")
    visit.page.click("#zoom-out")
    visit.until(f"document.querySelector('#chart svg').clientWidth < innerWidth && {aligned}")


def test_the_size_of_a_transformer_says_the_peaks_in_bytes_and_stands_in_the_address(visit):
    open_strips(visit, "activations")
    visit.page.select_option("[name=schedule]", "gpipe")
    visit.page.click("#bytes summary")
    for name, value in {"hidden_size": 12288, "sequence_length": 2048, "heads": 96, "layers": 96}.items():
        visit.set(name, value)
    visit.until("location.hash.includes('layers=96')")
    open_strips(visit, "activations")
    visit.until("document.querySelector('[data-of=activations] .formula').textContent.includes('2205.05198')")
    assert "4 · ≈\u202f367.22\xa0GB" in visit.page.text_content("[data-of=activations] .strip >> nth=0")
    visit.page.click("#bytes summary")


def test_a_token_that_is_tapped_shows_its_way_back_and_the_streams_are_named(visit):
    visit.page.select_option("[name=schedule]", "decode")
    visit.set("micro_batches", 1)
    visit.shows(makespan=12)
    visit.until("document.querySelectorAll('#chart .return').length === 3")
    visit.page.click('#chart g.op[data-op="1F1"]')
    visit.until("document.querySelectorAll('#chart .way-back').length === 2")
    assert visit.page.text_content('#chart g.op[data-op="1F1"] text') == "1.2"
    assert "one stream keeps at most 1/3 of the devices busy" in visit.page.inner_text("#decoding")
    assert visit.page.is_visible("#stream")
    visit.page.click("#ahead")
    visit.until("document.querySelector('#moment .badge.works')?.textContent.includes('1.1')")


def predict(visit, step):
    """Answer a step of the lessons as a learner does: type the number, or click the block."""
    guess = str(step.expected)
    if not isinstance(step.asks, Reading):
        visit.page.click(f'#chart [data-op="{guess}"]')
        visit.until("document.querySelector('#picked').textContent !== ''")
    else:
        visit.page.fill("#guess", guess)
    visit.page.click("#lesson-form [type=submit]")
    visit.page.wait_for_selector("#lesson-verdict", state="visible")


COVERED = ("#steps", "#formula", "#detail", "#summary")


def test_the_lessons_are_walked_to_the_end_by_predicting_right(visit):
    visit.page.click("#lessons")
    for step in STEPS:
        visit.until(f"document.documentElement.dataset.step === '{step.name}'")
        assert visit.page.evaluate("document.activeElement.id") == "lesson-question"
        assert visit.page.evaluate("new URLSearchParams(location.search).get('lesson')") == step.name
        assert not any(visit.page.is_visible(part) for part in COVERED)
        asks_number = isinstance(step.asks, Reading)
        assert visit.page.is_visible("#chart svg") != asks_number
        assert visit.page.is_visible("output[name=makespan]") != asks_number
        predict(visit, step)
        assert visit.page.inner_text("#lesson-verdict").startswith("Right: ")
        assert visit.page.evaluate("document.activeElement.id") == "lesson-verdict"
        assert visit.page.is_visible("#chart svg") and visit.page.is_visible("#steps")
        visit.shows(makespan=step.result.metrics.makespan)
        marked = visit.page.eval_on_selector_all("output.asked", "all => all.map((o) => o.dataset.value)")
        assert marked == ([str(step.expected)] if asks_number else [])
        for name, value in step.settings.items():
            assert visit.page.input_value(f"[name={name}]") == str(value)
        if step != STEPS[-1]:
            visit.page.click("#lesson-next")
    assert "That was the last step" in visit.page.inner_text("#lesson-verdict")
    assert visit.page.is_disabled("#lesson-next")
    visit.page.click("#lesson-leave")
    assert not visit.page.is_visible("#lesson")
    assert "lesson" not in visit.page.evaluate("location.search")
    visit.shows(makespan=19)  # the last scenario stays, to be played with
    assert visit.complaints == []


def test_a_wrong_prediction_is_compared_and_explained_and_enter_is_enough(visit):
    visit.page.click("#lessons")
    visit.until("document.activeElement.id === 'lesson-question'")
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.type("one")
    visit.page.keyboard.press("Enter")
    visit.until("document.querySelector('#lesson-hint').textContent.includes('not a number')")
    assert not visit.page.is_visible("#chart svg")
    visit.page.fill("#guess", "1")
    visit.page.keyboard.press("Enter")
    visit.until("document.activeElement.id === 'lesson-verdict'")
    text = visit.page.inner_text("#lesson-verdict")
    assert "You said: 1. The answer is: 3." in text and "1 + 1 + 1 = 3" in text
    visit.page.click("#lesson-next")
    visit.until("document.documentElement.dataset.step === 'four-portions'")
    visit.page.click("#lesson-show")
    visit.until("document.activeElement.id === 'lesson-verdict'")
    assert visit.page.inner_text("#lesson-verdict").startswith("The answer is: 6.")
    visit.page.click("#lesson-back")
    visit.until("document.documentElement.dataset.step === 'one-portion'")
    assert visit.page.input_value("#guess") == ""  # nothing is remembered
    assert not visit.page.is_visible("#lesson-verdict")


def test_a_block_is_picked_by_keyboard_and_nobody_says_beforehand_what_held_it_up(visit):
    visit.page.evaluate("history.pushState(null, '', '?lesson=bubble'); dispatchEvent(new PopStateEvent('popstate'))")
    visit.until("document.documentElement.dataset.step === 'bubble'")
    visit.page.click("#lesson-form [type=submit]")
    assert visit.page.inner_text("#lesson-hint") == "Pick a block of the chart first."
    visit.page.hover('#chart [data-op="2F0"]')
    visit.page.focus("#chart")
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "Home", "ArrowDown", "ArrowDown", "ArrowRight"):
        visit.page.keyboard.press(key)
    visit.until("document.querySelector('#picked').textContent.includes('forward of micro-batch 1 on stage 3')")
    assert "It started" not in visit.page.inner_text("#spot")
    visit.page.keyboard.press("Enter")
    visit.until("document.activeElement.id === 'lesson-verdict'")
    assert "The answer is: forward of micro-batch 1 on stage 2." in visit.page.inner_text("#lesson-verdict")
    visit.page.click('#chart [data-op="2F0"]')
    visit.until("document.querySelector('#spot').textContent.includes('It started when')")


def test_controls_stay_real_in_a_lesson_and_back_undoes_them(visit):
    visit.page.click("#lessons")
    visit.until("document.documentElement.dataset.step === 'one-portion'")
    visit.set("micro_batches", 9)  # while the question stands: covered all the same, and put back for the answer
    visit.shows(makespan=11)
    assert not visit.page.is_visible("output[name=makespan]")
    visit.page.click("#lesson-show")
    visit.shows(makespan=3)
    visit.until("document.documentElement.dataset.lesson === 'shown'")
    visit.set("micro_batches", 5)
    visit.shows(makespan=7)
    visit.page.go_back()
    visit.shows(makespan=3)
    assert visit.page.is_visible("#lesson-verdict")  # the step stays answered
    visit.page.click("#lesson-leave")
    assert visit.page.evaluate("document.activeElement.id") == "lessons"


def test_a_link_opens_a_step_covered_in_polish_without_taking_the_focus(opened, server):
    visit = opened(server.url + "?lang=pl&lesson=slow-stage", viewport={"width": 360, "height": 740})
    visit.until("document.documentElement.dataset.lesson === 'number'")  # before Python has started
    assert not visit.page.is_visible("#chart")
    visit.until("document.documentElement.dataset.step === 'slow-stage'")
    assert visit.page.inner_text("#lesson-title") == "Wolniejszy etap i jego kolejka"
    assert visit.page.evaluate("document.activeElement === document.body")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert visit.page.inner_text("#lesson-progress") == "5 / 12"
    assert visit.page.input_value("[name=slow_factor]") == "2" and visit.page.is_checked("#slow")
    visit.page.fill("#guess", "2")
    visit.page.press("#guess", "Enter")
    visit.page.wait_for_selector("#lesson-verdict", state="visible")
    assert "Niezupełnie. Twoja odpowiedź: 2. Poprawna: 3." in visit.page.inner_text("#lesson-verdict")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360
    visit.page.click("[data-language=en]")
    visit.until("document.querySelector('#lesson-verdict').textContent.startsWith('Not quite. You said: 2.')")
    assert visit.complaints == []


def test_an_unknown_lesson_is_named_and_the_first_one_opens(opened, server):
    visit = opened(server.url + "?lesson=quantum")
    visit.until("document.documentElement.dataset.step === 'one-portion'")
    assert "no lesson called quantum" in visit.page.inner_text(".notice")
    assert visit.page.evaluate("location.search") == "?lesson=one-portion"


MEASURED = "device,op,start,end\n0,0F0,0,1\n0,0F1,1.5,2.5\n1,1F0,1,2\n1,1F1,2.5,3.5\n"


def test_measured_times_stand_above_the_prediction_and_go_into_the_link(visit, server):
    visit.set("devices", 2)
    visit.set("micro_batches", 2)
    visit.shows(makespan=3)
    visit.page.click("#measured > summary")
    visit.page.dispatch_event("[name=devices]", "change")  # its answer comes while the text waits to be asked about
    visit.page.fill("#measured-text", "device,op\n0,0F0")
    visit.until("document.querySelector('#measured-error').textContent.includes('line 1')")
    assert visit.page.get_attribute("#measured-text", "aria-invalid") == "true"
    file = {"name": "m.csv", "mimeType": "text/csv", "buffer": MEASURED.encode()}
    visit.page.set_input_files("#measured-file", file)
    visit.until("document.querySelector('tr[data-cause=unmodelled]')?.dataset.value === '0.5'")
    assert visit.page.inner_text("#measured-error") == ""
    assert visit.page.locator("#pinned svg .op").count() == 4
    assert visit.page.inner_text("#pinned p >> nth=0") == "A: measured"
    link = visit.page.url
    assert "measured=0F0_0_1+0F1_1.5_2.5" in link and "%2C" not in link
    visit.page.click("#measured-adopt")
    visit.shows(makespan=3)
    assert visit.page.input_value("[name=forward_times]") == "1;1"
    visit.page.click("#measured-clear")
    visit.until("document.querySelector('#pinned').hidden && document.querySelector('#measured-causes').hidden")
    assert "measured" not in visit.page.url
    visit.page.evaluate("url => { location.href = url }", link)
    visit.until("document.querySelector('tr[data-cause=all]')?.dataset.value === '1'")
    assert visit.page.input_value("#measured-text").startswith("0F0_0_1 0F1_1.5_2.5")


INSTALL = """
async () => {
  const vendor = VENDOR;
  const script = document.createElement("script");
  script.src = vendor + "pyodide/pyodide.js";
  await new Promise((resolve, reject) => {
    script.onload = resolve;
    script.onerror = reject;
    document.head.append(script);
  });
  const pyodide = vendor + "pyodide/";
  const python = await loadPyodide({ indexURL: pyodide, lockFileURL: pyodide + "pyodide-lock.json" });
  await python.loadPackage("micropip");
  python.globals.set("wheel", new URL("static/" + WHEEL, location.href).href);
  return await python.runPythonAsync(`
import micropip
await micropip.install(wheel)
import pipesched, importlib.metadata
from pipesched.sweep import sweep
result = pipesched.run(schedule="1f1b", devices=4, micro_batches=8)
grid = sweep({"devices": [2, 4]}, schedule="gpipe", metrics=["makespan"])
" ".join([importlib.metadata.version("pipesched"), str(result.metrics.makespan), str(grid.values["makespan"]),
          str("<svg" in result._repr_html_())])
`);
}
"""


def test_micropip_installs_the_wheel_from_the_page_s_own_folder(visit, site, server):
    """As JupyterLite does; sweeps, too, run there, where there are no processes."""
    visit.requests.clear()
    name = json.dumps(f"pipesched-{pipesched.__version__}-py3-none-any.whl")
    vendor = json.dumps(f"{server.url}{parts_of(site).relative_to(site).as_posix()}/vendor/")
    said = visit.page.evaluate(INSTALL.replace("WHEEL", name).replace("VENDOR", vendor))
    assert said == f"{pipesched.__version__} 33 (15, 21) True"
    assert all(url.startswith(visit.page.url.split("#")[0].rsplit("/", 1)[0]) for url in visit.requests)
