"""The page in one file, the page opened as a file, and a start from what an earlier visit kept, in a real Chromium."""

import json
import re
from collections.abc import Iterator

import pytest

from hosting.names import parts_of
from pipesched.words import catalogue
from site_server import Fault, serving
from test_page import PATIENCE, READY

pytestmark = pytest.mark.browser


def failed(page, cause, words):
    """Wait until the page has failed for this cause, and hear it say so."""
    page.wait_for_selector(f"html[data-state=failed][data-failure={cause}]")
    page.wait_for_selector("#status button")
    assert words in page.inner_text("#status")
    assert page.locator("#chart img").is_visible()


# One file


def test_the_one_file_runs_from_a_disk_and_asks_for_nothing(opened, one_file):
    visit = opened(one_file.as_uri() + "#micro_batches=7").ready()
    visit.shows(makespan=9)
    visit.set("micro_batches", 8)
    visit.shows(makespan=10)
    visit.until("location.hash === '#micro_batches=8'")
    visit.page.click("[data-language=pl]")
    visit.page.wait_for_selector("html[lang=pl]")
    assert visit.page.title() == catalogue("pl")["page.title"]
    assert visit.page.locator("#opened-as-file").is_hidden()
    assert visit.complaints == []
    own = one_file.as_uri()
    assert {url for url in visit.requests if not url.startswith(("data:", "blob:"))} <= {own, own + "#micro_batches=7"}


def test_the_one_file_asks_its_server_for_nothing_either(opened, one_file):
    with serving(one_file.parent, policy="") as server:
        visit = opened(server.url + one_file.name).ready()
        assert [path for path in server.asked if "favicon" not in path] == ["/pipesched.html"]
        assert visit.complaints == []


FRAMES = {
    "bare": '<iframe src="pipesched.html" width="860" height="420" title="x"></iframe>',
    "sandboxed": '<iframe sandbox="allow-scripts" src="pipesched.html" width="860" height="420" title="x"></iframe>',
}


@pytest.mark.parametrize("by", ["http", "file"])
@pytest.mark.parametrize("frame", FRAMES)
def test_the_one_file_runs_in_a_frame_that_may_run_scripts_and_nothing_else(opened, one_file, by, frame):
    host = one_file.parent / f"{frame}.html"
    host.write_text(f'<!doctype html><title>course</title><link rel="icon" href="data:,">{FRAMES[frame]}')
    with serving(one_file.parent, policy="") as server:
        visit = opened(host.as_uri() if by == "file" else server.url + host.name)
        inside = visit.page.frames[1]
        inside.wait_for_selector(READY, timeout=PATIENCE)
        inside.fill("[name=micro_batches]", "6")
        inside.dispatch_event("[name=micro_batches]", "change")
        inside.wait_for_selector('output[name=makespan][data-value="8"]', state="attached")
        if frame == "sandboxed":
            assert inside.evaluate("self.origin") == "null"
        assert visit.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_first_view_of_the_one_file_stands_there_with_scripts_off(opened, one_file, width, scheme):
    size = {"width": width, "height": 800}
    visit = opened(one_file.as_uri(), java_script_enabled=False, viewport=size, color_scheme=scheme)
    image = visit.page.locator("#chart img")
    assert image.bounding_box()["height"] > 100
    assert image.evaluate("(image) => image.complete && image.naturalWidth > 0")


@pytest.mark.parametrize("part", ["pyodide/pyodide.asm.js", "pyodide/python_stdlib.zip", "pipesched.zip", "worker.js"])
def test_a_damaged_file_is_named_with_its_part(opened, one_file, tmp_path, part):
    text = one_file.read_text()
    start = text.index(f'data-part="{part}">') + 2000
    damaged = tmp_path / "damaged.html"
    damaged.write_text(text[:start] + "AAAA" * 20 + text[start + 80 :])
    failed(opened(damaged.as_uri()).page, "damaged", part)


@pytest.mark.parametrize(
    ("cause", "policy"),
    [
        ("no_blob", "worker-src 'none'"),
        ("blocked", "script-src 'unsafe-inline'; worker-src blob:"),
    ],
)
def test_what_a_host_forbids_the_one_file_is_named(opened, one_file, cause, policy):
    with serving(one_file.parent, policy=policy) as server:
        failed(opened(server.url + one_file.name).page, cause, "Content-Security" if cause == "blocked" else "blob:")


def test_an_old_browser_is_told_so(opened, one_file):
    visit = opened("about:blank")
    visit.page.add_init_script("delete self.DecompressionStream")
    visit.page.goto(one_file.as_uri())
    failed(visit.page, "too_old", "too old")


def test_the_page_of_many_files_says_in_both_languages_that_it_was_opened_as_a_file(opened, site):
    page = opened((site / "index.html").as_uri()).page
    page.wait_for_selector("html[data-state=failed][data-failure=file]")
    said = page.inner_text("#opened-as-file")
    for language in ("en", "pl"):
        assert catalogue(language)["load.file"] in said
    assert "--single-file" in said and "python3 app serve" in said
    assert page.locator("#chart img").is_visible()


# Starting warm


class Visits:
    """One person who comes to the same site again and again."""

    def __init__(self, chromium, server):
        self.context, self.server = chromium.new_context(locale="en-US"), server

    def come(self, query="", settled=True):
        """Open the page, wait until it works, and go; how Python started."""
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(self.server.url + query)
        page.wait_for_selector(READY)
        page.wait_for_selector("#chart svg")
        page.fill("[name=micro_batches]", "9")
        page.dispatch_event("[name=micro_batches]", "change")
        page.wait_for_selector('output[name=makespan][data-value="11"]', state="attached")
        how = page.get_attribute("html", "data-start")
        if settled:  # keeping goes on beside the first answers
            for _ in range(100):
                if any(re.search("memory-[0-9a-f]+$", url) for url in self.kept(page)):
                    break
                page.wait_for_timeout(50)
        page.close()
        return how

    def kept(self, page=None):
        """Addresses of all that the site keeps."""
        return self.do("[...await shelf.keys()].map(({ url }) => url)", page)

    def do(self, expression, page=None):
        """Evaluate an expression on the shelf of what is kept."""
        own = page or self.context.new_page()
        if not page:
            own.goto(self.server.url + "none")
        try:
            return own.evaluate(f"""async () => {{
              const names = await caches.keys();
              if (names.length > 1) throw new Error(names);
              const shelf = names.length ? await caches.open(names[0]) : {{ keys: () => [] }};
              return {expression};
            }}""")
        finally:
            if not page:
                own.close()


@pytest.fixture
def visits(chromium, site) -> Iterator[Visits]:
    with serving(site, prefix="/a b/c/") as server:
        visits = Visits(chromium, server)
        yield visits
        visits.context.close()


def test_a_second_visit_starts_from_what_the_first_one_kept(visits):
    assert visits.come() == "cold"
    (kept,) = visits.kept()
    assert kept.startswith(visits.server.url + "memory-")
    assert visits.come() == "warm"
    assert visits.come("?fresh") == "cold"


BROKEN = {
    "cut short": "new Response(new Uint8Array(9))",
    "not ours": "new Response(new Blob(['x'.repeat(1 << 20)]).stream().pipeThrough(new CompressionStream('gzip')))",
    "not a memory": """new Response(
      new Blob([new Uint8Array(1 << 25)]).stream().pipeThrough(new CompressionStream('gzip')),
      { headers: { 'x-length': String(1 << 25) } },
    )""",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_memory_is_thrown_away_and_the_start_is_as_ever(visits, broken):
    visits.come()
    visits.do(f"await shelf.put((await shelf.keys())[0], {BROKEN[broken]})")
    found_out = broken == "not a memory"  # only when Python was to start from it: then none is made at once
    assert visits.come(settled=not found_out) == "cold"
    assert len(visits.kept()) == (0 if found_out else 1)
    if not found_out:
        assert visits.do("(await (await shelf.match((await shelf.keys())[0])).blob()).size") > 1e6


def test_another_build_keeps_its_own_memory_alone(visits, site):
    visits.come()
    (first,) = visits.kept()
    manifest = json.loads((parts_of(site) / "vendor" / "manifest.json").read_text())
    manifest["build"] = "b" * 64
    visits.server.faults["manifest.json"] = Fault(type="application/json", body=json.dumps(manifest).encode())
    assert visits.come() == "cold"
    (second,) = visits.kept()
    assert second != first and second.endswith("b" * 64)


def test_a_start_that_took_the_browser_down_is_not_tried_again(visits):
    visits.come()
    visits.do("await shelf.put(new URL('memory-in-use', location.href), new Response())")
    assert visits.come(settled=False) == "cold"
    assert visits.kept() == []


DENIED = {
    "no storage": "Object.defineProperty(self, 'caches', { get() { throw new Error('denied'); } });",
    "silent": "caches.open = () => new Promise(() => {});",
    "full": "Cache.prototype.put = () => Promise.reject(new DOMException('full', 'QuotaExceededError'));",
}


@pytest.mark.parametrize("how", DENIED)
def test_where_storage_is_denied_the_page_starts_as_ever_and_says_nothing(opened, site, how):
    worker = DENIED[how] + (parts_of(site) / "js" / "worker.js").read_text()
    with serving(site, faults={"worker.js": Fault(type="text/javascript", body=worker.encode())}) as server:
        visit = opened(server.url).ready()
        visit.set("micro_batches", 8)
        visit.shows(makespan=10)
        assert visit.page.inner_text("#notices") == ""
        assert visit.complaints == []


def test_without_the_script_that_keeps_it_the_page_still_starts(opened, site):
    with serving(site, faults={"warm.js": Fault(status=404)}) as server:
        opened(server.url).ready().shows(makespan=6)
