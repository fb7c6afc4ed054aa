"""The paper figure of the page, in a real Chromium: Matplotlib in a worker of its own, the file opened by others."""

import io
import time
from xml.etree import ElementTree

import pypdf
import pytest

from hosting.runtime import read_lock
from pipesched import run
from pipesched.words import catalogue
from site_server import Fault, serving
from test_page import Visit

pytestmark = pytest.mark.browser
STAGE = "document.querySelector('#figure').dataset.stage"


@pytest.fixture(scope="module")
def visit(site, chromium):
    with serving(site) as server:
        visit = Visit(chromium, server.url + "#micro_batches=8&schedule=1f1b&devices=4").ready()
        visit.page.click("#figure > summary")
        yield visit
        visit.context.close()


def drawn(visit, **choices):
    """Draw a figure with these choices; the file, and the seconds until it was there."""
    for name, value in choices.items():
        visit.page.select_option(f"#figure-{name}", value)
    since = time.monotonic()
    with visit.page.expect_download() as download:
        visit.page.click("#figure-make")
    seconds = time.monotonic() - since
    assert visit.page.inner_text("#figure-file") == download.value.suggested_filename
    return download.value.path().read_bytes(), seconds


def test_a_figure_that_is_cancelled_while_it_loads_leaves_the_page_as_it_was(visit):
    assert not [url for url in visit.requests if "matplotlib" in url]  # nothing of it is loaded before it is asked for
    visit.page.click("#figure-make")
    visit.until("document.querySelector('#figure-progress').textContent.startsWith('Loading Matplotlib')")
    visit.page.click("#figure-cancel")
    assert visit.page.inner_text("#figure-said") == catalogue("en")["figure.cancelled"]
    assert not visit.page.is_visible("#figure-bar") and visit.page.evaluate(STAGE) == "idle"
    assert visit.page.evaluate("document.activeElement.id") == "figure-make"


def test_the_first_figure_shows_bytes_and_the_page_answers_meanwhile_the_second_is_there_at_once(visit):
    visit.page.select_option("#figure-format", "pdf")
    with visit.page.expect_download(timeout=180_000) as download:
        visit.page.click("#figure-make")
        visit.until("/of \\d+/.test(document.querySelector('#figure-progress').textContent)")
        visit.until(f"{STAGE} === 'library'")
        since = time.monotonic()
        visit.set("micro_batches", 9)
        visit.shows(makespan=36)  # (9 + 4 - 1)(1 + 2), long before Matplotlib has started
        assert time.monotonic() - since < 5 and visit.page.evaluate(STAGE) == "library"
    (page,) = pypdf.PdfReader(io.BytesIO(download.value.path().read_bytes())).pages
    assert float(page.mediabox.width) == pytest.approx(3.25 * 72, abs=0.01)
    assert "D4" in page.extract_text() and "backward" in page.extract_text()
    visit.set("micro_batches", 8)
    visit.shows(makespan=33)
    content, seconds = drawn(visit, format="pdf")
    reader = pypdf.PdfReader(io.BytesIO(content))
    assert "schedule=1f1b" in reader.metadata.title and "micro_batches=8" in reader.metadata.title
    fonts = reader.pages[0]["/Resources"]["/Font"].values()
    assert fonts and all(font.get_object()["/Subtype"] != "/Type3" for font in fonts)
    print(f"second figure: {seconds:.2f} s")
    assert seconds < 3  # under one on a quiet machine


def test_the_svg_of_the_page_has_the_blocks_of_the_timeline(visit):
    root = ElementTree.fromstring(drawn(visit, format="svg", kind="gantt", width="text")[0])
    blocks = {}
    for kind in "FB":
        (path,) = root.findall(f".//{{*}}g[@id='op-{kind}']/{{*}}path")
        blocks[kind] = path.get("d").count("z")
    result = run(schedule="1f1b", devices=4, micro_batches=8)
    assert blocks == {kind: sum(i.op.kind == kind for i in result.timeline.intervals) for kind in "FB"}


@pytest.mark.parametrize("kind", ["comparison", "profiles", "curves"])
def test_every_kind_of_figure_is_drawn_in_the_page(visit, kind):
    content, _ = drawn(visit, format="png", kind=kind, width="neurips", font="times")
    assert content.startswith(b"\x89PNG") and int.from_bytes(content[16:20], "big") == 1650  # 5.5 inches, 300 dots each
    assert not visit.complaints


def test_what_cannot_be_drawn_is_said(visit):
    visit.page.select_option("#figure-kind", "profiles")
    visit.page.select_option("#figure-of", "bytes")
    visit.page.click("#figure-make")
    visit.until("document.querySelector('#figure-said').textContent !== ''")
    assert visit.page.inner_text("#figure-said") == catalogue("en")["bytes.off"]


def test_a_file_that_the_host_lacks_is_named(chromium, site):
    wheel = next(file.name for file in read_lock().files if file.component == "matplotlib")
    with serving(site, faults={wheel: Fault(status=404, body=b"")}) as server:
        visit = Visit(chromium, server.url).ready()
        visit.page.click("#figure > summary")
        visit.page.click("#figure-make")
        visit.until("document.querySelector('#figure-said').textContent !== ''")
        said = catalogue("en")["figure.failed"].replace("{reason}", wheel)
        assert visit.page.inner_text("#figure-said") == said and visit.page.is_enabled("#figure-make")
        visit.context.close()


def test_the_words_say_how_much_is_loaded():
    packages = {file.component.lower(): file for file in read_lock().files if file.package}
    found, waiting = set(), ["matplotlib"]
    while waiting:
        name = waiting.pop().lower()
        if name not in found:
            found.add(name)
            waiting += packages[name].package["depends"]
    size = sum(packages[name].size for name in found)
    core = sum(file.size for file in read_lock().files if file.name in ("pyodide.asm.wasm", "python_stdlib.zip"))
    assert size / (size + core) == pytest.approx(0.5, abs=0.05)
    for language in ("en", "pl"):
        assert f"{(size + core + 0.5e6) / 1e6:.0f} MB" in catalogue(language)["figure.note"]  # and our own half
