"""The doctor: run in the frame that awaits the simulator, it names what stops it, the cure, and the code to paste."""

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipesched.words import LANGUAGES, catalogue
from site_server import STRICT, Fault, serving
from test_house import Page

ROOT = Path(__file__).resolve().parents[1]
DOCTOR = ROOT / "static" / "doctor.html"
SCRIPTS = [ROOT / "static" / "js" / name for name in ("doctor.js", "doctor-page.js")]
DONE = "html[data-doctor=done]"
PATIENCE = 60_000  # ms
HTML = b"<!doctype html><title>Log in</title>"
browser = pytest.mark.browser


def between(text: str, name: str, content: str) -> str:
    return re.sub(rf"(?s)(<!-- {name} -->\n).*(?=<!-- /{name} -->)", lambda found: found[1] + content, text)


def words(language: str) -> str:
    """Write the doctor's words in a language as they stand in its page."""
    entries = sorted((key, text) for key, text in catalogue(language).items() if key.startswith("doctor."))
    lines = [f"<dt>{key}</dt><dd>{html.escape(text, quote=False)}</dd>\n" for key, text in entries]
    label = f"<dt>page.language</dt><dd>{catalogue(language)['page.language']}</dd>\n"
    return f'<template id="words-{language}"><dl>\n{"".join(lines)}{label}</dl></template>\n'


def test_the_doctor_carries_its_words_in_every_language() -> None:
    """Set UPDATE_GOLDEN=1 to write them there."""
    there = DOCTOR.read_text(encoding="utf-8")
    lines = [f'<p lang="{name}">{html.escape(str(catalogue(name)["doctor.not_run"]))}</p>\n' for name in LANGUAGES]
    wanted = between(between(there, "words", "".join(map(words, LANGUAGES))), "not run", "".join(lines))
    if os.environ.get("UPDATE_GOLDEN"):
        DOCTOR.write_text(wanted, encoding="utf-8")
    assert DOCTOR.read_text(encoding="utf-8") == wanted, "set UPDATE_GOLDEN=1"


def test_the_doctor_s_english_is_the_catalogue_s() -> None:
    for element in Page(DOCTOR.read_text(encoding="utf-8")).elements:
        if "data-t" in element:
            assert element["text"] == catalogue("en")[element["data-t"]]


def test_what_the_page_says_where_no_script_runs_is_the_catalogue_s() -> None:
    page = Page((ROOT / "index.html").read_text(encoding="utf-8")).elements
    polish = [element["text"] for element in page if element["tag"] == "p" and element.get("lang") == "pl"]
    assert catalogue("pl")["load.unstarted"] in polish


def test_every_word_of_the_doctor_is_used_and_what_it_says_is_there() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (*SCRIPTS, DOCTOR))
    keys = {key for key in catalogue("en") if key.startswith("doctor.") and key != "doctor.not_run"}
    assert set(re.findall(r'say\("(doctor\.[\w.]+)"', code)) <= keys
    for _, *parts in (key.split(".") for key in keys):
        assert all(re.search(rf'\b{part}["`.:]', code) for part in parts if part != "cure"), parts


def test_every_problem_the_doctor_can_name_has_a_cure() -> None:
    keys = [key for key in catalogue("en") if re.fullmatch(r"doctor\.\w+\.\w+", key)]
    fine = ("ok", "frame", "blocked", "seen", "top")
    for key in keys:
        _, name, state = key.split(".")
        if name not in ("verdict", "level", "snippet", "report", "simulator") and state not in fine:
            assert f"{key}.cure" in catalogue("en"), key
    assert "doctor.worker.blocked.cure" in catalogue("en")


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Iterator[str]:
    """The address of a page on another site, to put frames into."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "index.html").write_text("<!doctype html><title>Course</title>")
    with serving(folder, policy="") as server:
        yield server.url.replace("127.0.0.1", "localhost")


@pytest.fixture
def examine(chromium) -> Iterator[object]:
    """Open the doctor by itself, or in a frame with these attributes; return its frame when it is done."""
    contexts = []

    def open_doctor(url, attributes=None, query="", host=None, **context):
        contexts.append(chromium.new_context(**{"locale": "en-US"} | context))
        page = contexts[-1].new_page()
        page.complaints = []
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.set_default_timeout(PATIENCE)
        if attributes is None:
            page.goto(url + "doctor.html" + query)
            page.wait_for_selector(DONE)
            return page.main_frame
        page.goto(host or url + "nowhere")  # our own policy, and no script
        page.set_content(f'<iframe src="{url}doctor.html{query}" title="x" {attributes}></iframe>')
        frame = page.frames[1]
        frame.wait_for_selector(DONE)
        return frame

    yield open_doctor
    for context in contexts:
        assert context.pages[0].complaints == []
        context.close()


def states(frame) -> dict[str, str]:
    listed = frame.eval_on_selector_all("section li", "all => all.map(({dataset: d}) => [d.id, d.state])")
    return dict(listed)


FINE = ("browser", "wasm", "worker", "blob", "scripts", "files", "types", "storage", "address", "policy")


@browser
def test_where_all_is_well_the_doctor_says_so_and_leaves_nothing(examine, site) -> None:
    with serving(site, policy=STRICT + "; worker-src 'self' blob:") as server:
        frame = examine(server.url)
        seen = states(frame)
        assert {name: seen[name] for name in FINE} == dict.fromkeys(FINE, "ok")
        assert seen["place"] == "top"
        assert frame.get_attribute("html", "data-verdict") == "ok"
        assert frame.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0
        assert frame.evaluate("caches.keys()") == []
        assert f'src="{server.url}?embed=1&amp;lang=en"' in frame.input_value("#snippet")
        report = frame.input_value("#report")
        assert "Chrom" in report and "--- measured" in report and "{" not in report.split("--- measured")[0]
        assert all(url.startswith(server.url) for url in [frame.url])
        frame.click("#full")
        frame.wait_for_selector("[data-id=start]", state="attached")
        assert states(frame)["start"] == "ok"


@browser
def test_the_doctor_speaks_polish(examine, site) -> None:
    with serving(site) as server:
        frame = examine(server.url, query="?lang=pl")
        text = frame.inner_text("body")
        assert "Symulator może tu działać" in text and "Co zrobić:" in text
        assert "doctor." not in text.replace("doctor.html", "").replace("doctor.js", "")
        assert "[Uwaga]" in frame.input_value("#report")


@browser
@pytest.mark.parametrize(
    ("policy", "faults", "finding", "state"),
    [
        (STRICT.replace(" 'wasm-unsafe-eval'", ""), {}, "wasm", "blocked"),
        (STRICT + "; worker-src 'none'", {}, "worker", "policy"),
        (STRICT + "; connect-src 'none'", {}, "files", "unreachable"),
        (STRICT, {"pyodide.asm.wasm": Fault(status=404)}, "files", "missing"),
        (STRICT, {"pyodide.asm.wasm": Fault(status=403)}, "files", "refused"),
        (STRICT, {"pyodide.asm.wasm": Fault(type="application/wasm", body=HTML)}, "files", "html"),
        (STRICT, {"manifest.json": Fault(type="text/html", body=HTML)}, "files", "html"),
        (STRICT, {"manifest.json": Fault(status=404)}, "files", "missing"),
        (STRICT, {"python_stdlib.zip": Fault(type="application/zip", body=b"PK")}, "files", "wrong"),
        (STRICT, {"words.js": Fault(type="text/plain")}, "scripts", "type"),
        (STRICT, {"doctor-worker.js": Fault(status=404)}, "worker", "blocked"),
        (STRICT, {"pyodide.asm.wasm": Fault(type="text/plain")}, "types", "odd"),
    ],
)
def test_the_doctor_names_what_stops_the_simulator(examine, site, policy, faults, finding, state) -> None:
    with serving(site, policy=policy, faults=faults) as server:
        frame = examine(server.url)
        assert states(frame)[finding] == state
        assert frame.get_attribute("html", "data-verdict") == ("ok" if finding == "types" else "bad")
        cure = catalogue("en")[f"doctor.{finding}.{state}.cure"].split("{")[0]
        assert cure in frame.inner_text(f"section [data-id={finding}] .cure")
        if finding != "types":
            assert frame.get_attribute("section li >> nth=0", "data-level") == "bad"


@browser
def test_in_a_sandbox_without_origin_the_doctor_points_to_the_single_file(examine, site, course) -> None:
    with serving(site, policy=STRICT + "; worker-src 'self' blob:") as server:
        frame = examine(server.url, 'sandbox="allow-scripts" width="700" height="500"', host=course)
        seen = states(frame)
        assert (seen["place"], seen["worker"], seen["storage"], seen["blob"]) == ("sandbox", "ok", "some", "ok")
        assert frame.get_attribute("html", "data-snippet") == "single"


@browser
def test_a_frame_of_another_site_shows_which_permissions_it_lacks(examine, site, course) -> None:
    with serving(site) as server:
        bare = examine(server.url, 'width="700" height="500"', host=course)
        assert (states(bare)["place"], states(bare)["fullscreen"]) == ("frame", "off")
        assert 'allow="fullscreen; clipboard-write"' in bare.input_value("#snippet")
        rights = 'width="300" height="200" allow="fullscreen; clipboard-write"'
        allowed = examine(server.url, rights, host=course)
        assert (states(allowed)["fullscreen"], states(allowed)["clipboard"], states(allowed)["size"]) == (
            "ok",
            "ok",
            "small",
        )


@browser
def test_a_sandboxed_frame_that_forbids_downloads_is_told_what_to_add(examine, site) -> None:
    with serving(site) as server:
        frame = examine(server.url, 'sandbox="allow-scripts allow-same-origin" width="700" height="500"')
        assert states(frame)["downloads"] == "forbidden"
        assert "allow-downloads" in frame.input_value("#snippet")
        assert "allow-same-origin" not in frame.input_value(
            "#snippet"
        )  # on the host's own origin it would open the box


@browser
def test_where_no_script_runs_the_doctor_s_page_says_so(chromium, site) -> None:
    with serving(site, faults={"doctor.js": Fault(status=404), "doctor-page.js": Fault(status=404)}) as server:
        page = chromium.new_page()
        page.goto(server.url + "doctor.html")
        assert page.is_visible("#not-run") and "text/javascript" in page.inner_text("#not-run")
        page.close()


@browser
@pytest.mark.parametrize("width", [320, 800])
def test_the_doctor_fits_its_frame(examine, site, width) -> None:
    with serving(site) as server:
        frame = examine(server.url, query="?lang=pl", viewport={"width": width, "height": 700})
        assert frame.evaluate("document.documentElement.scrollWidth") <= width
