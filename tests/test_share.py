"""The share dialog: what it gives away is what the page shows, and it can be had whatever the browser allows."""

import base64
import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pypdf
import pytest

from pipesched import run
from pipesched.formats import FORMATS
from pipesched.lessons import STEPS
from pipesched.picture import thumbnail
from pipesched.words import catalogue
from test_page import Visit

pytestmark = pytest.mark.browser
GPIPE = "#micro_batches=8&schedule=gpipe&devices=4"
ORDER = "\n".join(f"{d}F" + f" {d}F".join(map(str, range(16))) for d in range(8))


class Dialog(Visit):
    """A page whose share dialog is open."""

    def __init__(self, chromium, url, **context):
        super().__init__(chromium, url, **context)
        self.ready()
        self.open()

    def open(self):
        self.page.click("#share-open")
        self.until(
            "!document.querySelector('#share-canvas').hidden && !document.querySelector('#share-save-svg').disabled"
        )

    def text(self, name):
        return self.page.input_value(f"#share-{name}")

    def said(self):
        self.page.wait_for_selector("#share-said:not(:empty)")
        return self.page.inner_text("#share-said")

    def code(self, kind):
        """Return the elements of the code, as an HTML parser reads it: (tag, attributes)."""
        self.page.check(f"[name=share-kind][value={kind}]")
        found = []
        parser = HTMLParser()
        parser.handle_starttag = lambda tag, attributes: found.append((tag, dict(attributes)))
        parser.feed(self.text("code"))
        return found


@pytest.fixture(scope="module")
def shared(chromium, server) -> Iterator[Dialog]:
    visit = Dialog(chromium, server.url + GPIPE)
    yield visit
    visit.context.close()


@pytest.fixture
def dialog(shared) -> Dialog:
    """The open dialog of a page with GPipe on 4 devices, as it opens."""
    shared.page.evaluate(f"location.hash = '{GPIPE}'")
    shared.shows(makespan=33)
    if shared.page.evaluate("document.querySelector('#share').open"):
        shared.page.keyboard.press("Escape")
    for name in ("lang", "theme", "embed", "lesson"):
        shared.page.evaluate(f"document.querySelector('#share-{name}').value = ''")
    for name in ("transparent", "motion"):
        shared.page.evaluate(f"document.querySelector('#share-{name}').checked = false")
    shared.page.evaluate("document.querySelector('[name=share-kind][value=frame]').checked = true")
    shared.open()
    return shared


@pytest.fixture
def opened(chromium) -> Iterator[object]:
    visits = []

    def open_dialog(url, **context) -> Dialog:
        visits.append(Dialog(chromium, url, **context))
        return visits[-1]

    yield open_dialog
    for visit in visits:
        visit.context.close()


def test_the_link_is_the_address_of_what_is_shown(dialog, server):
    assert dialog.text("link") == server.url + GPIPE
    assert dialog.page.inner_text("#share-length") == f"{len(server.url + GPIPE)} characters."


def test_what_is_fixed_for_the_reader_stands_in_the_query(dialog, server):
    dialog.page.select_option("#share-lang", "pl")
    dialog.page.select_option("#share-theme", "dark")
    dialog.page.select_option("#share-embed", "slide")
    dialog.page.check("#share-motion")
    for name, values in (("lock", ("devices", "schedule")), ("hide", ("steps", "notes"))):
        dialog.page.evaluate(f"document.querySelector('#share-{name}').closest('details').open = true")
        for value in values:
            dialog.page.check(f"#share-{name} [value={value}]")
    link = urlsplit(dialog.text("link"))
    assert dict(parse_qsl(link.query)) == {
        "embed": "slide", "lang": "pl", "theme": "dark", "hide": "steps,notes", "lock": "schedule,devices",
        "motion": "reduce",
    }  # fmt: skip
    assert "#" + link.fragment == GPIPE
    assert len(dialog.text("link")) < 500
    (frame,) = dialog.code("frame")
    assert frame[1]["src"] == dialog.text("link")
    (element,) = [attributes for tag, attributes in dialog.code("element") if tag == "pipeline-schedule"]
    assert element == {
        "schedule": "gpipe", "devices": "4", "micro-batches": "8", "mode": "slide", "lang": "pl", "theme": "dark",
        "hide": "steps,notes", "lock": "schedule,devices", "motion": "reduce",
    }  # fmt: skip


def test_a_lesson_brings_its_own_scenario(dialog, server):
    steps = dialog.page.eval_on_selector_all("#share-lesson option", "(all) => all.map(({ value }) => value)")
    assert steps == ["", *(step.name for step in STEPS)]
    dialog.page.select_option("#share-lesson", "slow-stage")
    assert dialog.text("link") == server.url + "?lesson=slow-stage"


def test_the_minimum_needs_four_attributes_and_the_recommended_code_fits_a_sandbox(dialog, server):
    ((tag, bare),) = dialog.code("bare")
    assert tag == "iframe" and set(bare) == {"src", "width", "height", "title"}
    assert bare["src"] == server.url + "?embed=1" + GPIPE
    assert bare["title"] == "Simulator: GPipe; Devices K: 4; Micro-batches M: 8"
    ((_, full),) = dialog.code("frame")
    assert set(full["sandbox"].split()) == {"allow-scripts", "allow-same-origin", "allow-downloads", "allow-popups"}
    assert (full["allow"], full["loading"]) == ("fullscreen; clipboard-write", "lazy")
    dialog.page.fill("#share-height", "900")
    assert 'height="900"' in dialog.text("code")


def test_the_component_carries_a_small_figure_and_a_link_for_where_scripts_are_stripped(dialog, server):
    script, element, image, link = dialog.code("element")
    assert script[1]["src"] == server.url + "static/js/pipeline-schedule.js"
    assert element[1] == {"schedule": "gpipe", "devices": "4", "micro-batches": "8"}
    assert image[1]["alt"].startswith("GPipe: 8 micro-batches pass through 4 stages in 33 units of time")
    kind, drawing = image[1]["src"].split(",", 1)
    assert kind == "data:image/svg+xml"
    expected = thumbnail(run(schedule="gpipe", devices=4, micro_batches=8).timeline)
    assert ET.canonicalize(unquote(drawing)) == ET.canonicalize(expected)
    assert link[1]["href"] == server.url + GPIPE
    assert len(dialog.text("code")) < 4500


def test_the_component_s_figure_is_drawn_by_browsers(dialog):
    _, _, image, _ = dialog.code("element")
    other = dialog.context.new_page()
    other.set_content("<img>")
    other.evaluate("(src) => (document.querySelector('img').src = src)", image[1]["src"])
    other.wait_for_function("document.querySelector('img').naturalWidth === 480")
    other.close()


def test_a_pinned_scenario_goes_along(opened, server):
    pinned = "&compare=micro_batches%3D8%26schedule%3D1f1b%26devices%3D4"
    visit = opened(server.url + GPIPE + pinned)
    assert visit.text("link") == server.url + GPIPE + pinned
    _, element, *_ = visit.code("element")
    assert element[1] == {"scenario": (GPIPE + pinned)[1:]}
    assert visit.text("svg").count("<svg ") == 3


def test_a_link_that_grew_too_long_is_called_so_and_what_to_do_is_offered(opened, server):
    pinned = "&compare=micro_batches%3D8%26schedule%3D1f1b%26devices%3D4"
    visit = opened(server.url + "#schedule=order&order=" + ORDER.replace("\n", "%0A").replace(" ", "+") + pinned)
    assert len(visit.text("link")) > 500
    assert "near 2,000 characters" in visit.page.inner_text("#share-long")
    visit.page.click("#share-without-a")
    assert "compare" not in visit.text("link")
    with visit.page.expect_download() as found:
        visit.page.click("#share-save-order")
    assert found.value.suggested_filename == "pipesched-order-8x16.txt"
    assert Path(found.value.path()).read_text(encoding="utf-8") == ORDER


def test_copying_uses_the_clipboard_where_it_may(dialog):
    dialog.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for name in ("link", "code", "svg"):
        dialog.page.click(f"#share-copy-{name}")
        assert dialog.said().startswith("Copied: ")
        dialog.until(
            f"navigator.clipboard.readText().then((text) => text === document.querySelector('#share-{name}').value)"
        )
    dialog.page.click("#share-copy-png")
    dialog.until("navigator.clipboard.read().then(([item]) => item.types.includes('image/png'))")
    assert dialog.said() == "Copied: Picture."


def test_without_the_permission_it_is_copied_as_of_old_and_last_of_all_selected(dialog):
    dialog.page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject(new Error('not here')))")
    dialog.page.evaluate("void (window.used = [])")
    dialog.page.evaluate("void (document.execCommand = (name) => used.push(name))")
    dialog.page.click("#share-copy-link")
    assert dialog.said() == "Copied: Link."
    assert dialog.page.evaluate("used") == ["copy"]
    dialog.page.evaluate("void (document.execCommand = () => false)")
    dialog.page.click("#share-copy-code")
    dialog.until("document.querySelector('#share-said').textContent.includes('Ctrl+C')")
    field = "document.querySelector('#share-code')"
    assert dialog.page.evaluate(f"document.activeElement === {field}")
    assert dialog.page.evaluate(f"{field}.selectionEnd - {field}.selectionStart === {field}.value.length")
    dialog.page.evaluate("delete document.execCommand; delete navigator.clipboard.writeText")


def test_svg_png_and_pdf_are_saved_without_a_network_under_names_that_say_what_they_are(dialog):
    dialog.context.set_offline(True)
    with dialog.page.expect_download() as svg:
        dialog.page.click("#share-save-svg")
    with dialog.page.expect_download() as png:
        dialog.page.click("#share-save-png")
    with dialog.page.expect_download() as pdf:
        dialog.page.click("#share-save-pdf")
    dialog.context.set_offline(False)
    assert pdf.value.suggested_filename == "pipesched-gpipe-4x8.pdf"
    assert "Device 4" in pypdf.PdfReader(pdf.value.path()).pages[0].extract_text()
    assert svg.value.suggested_filename == "pipesched-gpipe-4x8.svg"
    assert png.value.suggested_filename == "pipesched-gpipe-4x8.png"
    drawn = Path(svg.value.path()).read_text(encoding="utf-8")
    root = ET.fromstring(drawn)
    shown = dialog.page.evaluate("document.querySelector('#chart svg').outerHTML")
    assert root.get("width") == ET.fromstring(shown).get("width")
    assert drawn.count('data-op="') == 64 and 'fill="#ffffff"' in drawn
    content = Path(png.value.path()).read_bytes()
    assert content.startswith(b"\x89PNG")
    size = [int.from_bytes(content[at : at + 4]) for at in (16, 20)]
    assert size == [2 * float(root.get("width")), 2 * float(root.get("height"))]


def test_data_is_saved_and_copied_as_python_writes_it(dialog):
    result = run(schedule="gpipe", devices=4, micro_batches=8)
    dialog.page.click("#share-data summary")
    for name in dialog.page.eval_on_selector_all("#data-as option", "options => options.map(({ value }) => value)"):
        dialog.page.select_option("#data-as", name)
        expected = FORMATS[name].write(result, "en")
        dialog.until(f"document.querySelector('#data-text').value === {json.dumps(expected)}")
        with dialog.page.expect_download() as saved:
            dialog.page.click("#data-save")
        assert saved.value.suggested_filename == f"pipesched-gpipe-4x8.{FORMATS[name].ending}"
        assert Path(saved.value.path()).read_text(encoding="utf-8") == expected
    dialog.context.grant_permissions(["clipboard-read", "clipboard-write"])
    dialog.page.click("#data-copy")
    dialog.until("document.querySelector('#share-said').textContent.includes('The file')")
    assert dialog.page.evaluate("navigator.clipboard.readText()") == expected
    dialog.context.clear_permissions()
    dialog.page.click("#share-data summary")


# How much two pictures differ at the size of the second: on average, and in how many places by a lot.
DIFFERENCE = """async (sources) => {
  const [one, other] = await Promise.all(sources.map(async (src) => {
    const image = Object.assign(new Image(), { src });
    await image.decode();
    return image;
  }));
  const pixels = [one, other].map((image) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: other.width, height: other.height });
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0, other.width, other.height);
    return pen.getImageData(0, 0, other.width, other.height).data;
  });
  const off = pixels[0].map((value, i) => Math.abs(value - pixels[1][i]));
  const far = off.filter((value) => value > 90);
  return [off.reduce((sum, value) => sum + value, 0) / off.length, far.length / off.length];
}"""


@pytest.mark.parametrize("schedule", ["gpipe", "zb_v", "dualpipe"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_png_is_what_a_browser_makes_of_the_svg(dialog, schedule, theme):
    dialog.page.keyboard.press("Escape")
    dialog.page.evaluate(f"location.hash = 'micro_batches=8&schedule={schedule}&devices=4'")
    dialog.page.wait_for_selector(f"html[data-shown={schedule}]")
    dialog.open()
    before = dialog.text("svg")
    dialog.page.select_option("#share-ink", theme)
    dialog.until(
        "document.querySelector('#share-svg').value.includes('" + {"light": "#ffffff", "dark": "#11161d"}[theme] + "')"
    )
    dialog.page.wait_for_timeout(100)
    svg, png = dialog.text("svg"), dialog.page.evaluate("document.querySelector('#share-canvas').toDataURL()")
    assert before
    other = dialog.context.new_page()
    inline = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    mean, far = other.evaluate(DIFFERENCE, [inline, png])
    other.close()
    assert mean < 1 and far < 0.001


def test_a_transparent_background_is_transparent(dialog):
    corner = "document.querySelector('#share-canvas').getContext('2d').getImageData(2, 2, 1, 1).data[3]"
    assert dialog.page.evaluate(corner) == 255
    dialog.page.check("#share-transparent")
    dialog.until(f"{corner} === 0")
    assert "#ffffff" not in dialog.text("svg").split("</title>")[1][:80]


def test_picture_and_titles_are_in_the_reader_s_language(dialog):
    dialog.page.select_option("#share-lang", "pl")
    dialog.until("document.querySelector('#share-svg').value.includes('Urządzenie 1')")
    ((_, frame),) = dialog.code("frame")
    assert frame["title"] == "Symulator: GPipe; Urządzenia K: 4; Porcje (micro-batche) M: 8"
    assert "Otwórz symulator" in (dialog.code("element"), dialog.text("code"))[1]


def test_the_keyboard_opens_walks_and_closes_it_and_focus_comes_back(dialog):
    dialog.page.keyboard.press("Escape")
    assert not dialog.page.evaluate("document.querySelector('#share').open")
    assert dialog.page.evaluate("document.activeElement.id") == "share-open"
    dialog.page.keyboard.press("Enter")
    reached = set()
    for _ in range(50):
        dialog.page.keyboard.press("Tab")
        reached.add(dialog.page.evaluate("document.activeElement.id || document.activeElement.name"))
    fields = {
        "link",
        "code",
        "svg",
        "lang",
        "theme",
        "embed",
        "lesson",
        "motion",
        "ink",
        "size",
        "transparent",
        "height",
    }
    buttons = {"close", "copy-link", "copy-code", "copy-svg", "save-svg", "save-png", "save-pdf"}
    assert {f"share-{name}" for name in fields | buttons} <= reached


def test_where_there_is_no_dialog_element_it_still_opens_and_closes(chromium, server):
    visit = Visit(chromium, server.url + GPIPE).ready()
    visit.page.evaluate("delete HTMLDialogElement.prototype.showModal; delete HTMLDialogElement.prototype.close")
    visit.page.click("#share-open")
    assert visit.page.is_visible("#share-link")
    assert visit.page.get_attribute("#share", "role") == "dialog"
    visit.page.keyboard.press("Escape")
    assert not visit.page.is_visible("#share-link")
    assert visit.page.evaluate("document.activeElement.id") == "share-open"
    visit.context.close()


@pytest.mark.parametrize(("sandbox", "saves"), [("allow-scripts allow-same-origin", False), (None, True)])
def test_a_frame_that_forbids_downloads_is_named_instead_of_failing(chromium, server, sandbox, saves):
    attribute = f' sandbox="{sandbox}"' if sandbox else ""
    visit = Visit(chromium, server.url)
    course = (
        f'<!doctype html><title>a course</title><iframe width="700" height="600" src="./{GPIPE}"{attribute}></iframe>'
    )
    visit.page.route("**/course", lambda route: route.fulfill(body=course, content_type="text/html"))
    visit.page.goto(server.url + "course")
    frame = visit.page.frame_locator("iframe")
    frame.locator("html[data-state=ready]").wait_for()
    frame.locator("#share-open").click()
    assert frame.locator("#share-save-svg").is_visible() == saves
    assert frame.locator("#share-downloads").is_visible() != saves
    if not saves:
        assert "forbids saving" in frame.locator("#share-downloads").inner_text()
    visit.context.close()


@pytest.mark.parametrize("language", ["en", "pl"])
def test_nothing_stands_out_of_a_narrow_screen(opened, server, language):
    visit = opened(f"{server.url}?lang={language}{GPIPE}", viewport={"width": 320, "height": 640}, color_scheme="dark")
    visit.page.click("#share-options > summary")
    for box in ("#share", "html"):
        assert visit.page.evaluate(
            "(at) => (([box]) => box.scrollWidth <= box.clientWidth)(document.querySelectorAll(at))", box
        )
    out = "[...document.querySelectorAll('#share *')].filter((node) => node.getBoundingClientRect().right > 320)"
    assert visit.page.evaluate(f"{out}.length") == 0
    assert visit.page.inner_text("#share-title") == catalogue(language)["share.title"]
    assert visit.complaints == []


def test_a_lesson_that_covers_the_chart_does_not_give_it_away_here(chromium, server):
    visit = Visit(chromium, server.url + "?lesson=gpipe")
    visit.page.wait_for_selector("html[data-step=gpipe]")
    visit.page.click("#share-open")
    assert not visit.page.is_visible("#share-picture") and not visit.page.is_visible("#share-data")
    visit.page.check("[name=share-kind][value=element]")
    assert visit.page.input_value("#share-lesson") == "gpipe"
    visit.page.select_option("#share-lesson", "")
    assert "<img" not in visit.page.input_value("#share-code")
    visit.context.close()
