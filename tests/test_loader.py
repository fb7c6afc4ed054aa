"""The loader: what a network can do to a start is healed where it can be, and named with its cure where it cannot."""

import re
import urllib.parse

import pytest

from pipesched.words import LANGUAGES, catalogue
from site_server import STRICT, Fault, serving
from test_page import READY

pytestmark = pytest.mark.browser
WASM = "pyodide.asm.wasm"


def asked_for(server, name):
    return [path for path in server.asked if urllib.parse.urlsplit(path).path.endswith(name)]


def failed(page, cause):
    page.wait_for_selector(f"html[data-state=failed][data-failure={cause}]", timeout=60_000)
    return page.inner_text("#status span")


def test_what_another_try_cures_is_cured_without_a_person(opened, site) -> None:
    faults = {
        WASM: Fault(status=403, named=True),  # a filter that goes by the end of the address
        "python_stdlib.zip": Fault(cut=1_000_000),  # it takes three connections or more to carry 2.4 MB
        "pyodide.asm.js": Fault(drop=True, times=1),
        "pipesched.zip": Fault(status=503, times=2),
        "pyodide-lock.json": Fault(type="application/json", body=b"{", times=1),
    }
    with serving(site, faults=faults) as server:
        visit = opened(server.url).ready()
        visit.shows(makespan=6)
        assert [path.partition("?")[2] for path in asked_for(server, WASM)] == ["", "", "again"]
        assert len(asked_for(server, "python_stdlib.zip")) >= 3


def test_a_second_try_goes_on_from_what_has_arrived(opened, site) -> None:
    with serving(site, faults={"python_stdlib.zip": Fault(hang=True)}) as server:
        visit = opened(server.url)
        assert "python_stdlib.zip" in failed(visit.page, "stalled")
        server.faults.clear()
        visit.page.click("#status button")
        visit.ready().shows(makespan=6)
        assert len(asked_for(server, WASM)) == 1


@pytest.mark.parametrize(
    ("cause", "faults", "policy"),
    [
        ("cut", {"python_stdlib.zip": Fault(cut=100_000)}, STRICT),
        ("refused", {WASM: Fault(status=403)}, STRICT),
        ("refused", {"manifest.json": Fault(status=401)}, STRICT),
        ("server", {"pipesched.zip": Fault(status=503)}, STRICT),
        ("network", {"pipesched.zip": Fault(drop=True)}, STRICT),
        ("filtered", {WASM: Fault(drop=True)}, STRICT),
        ("broken", {"manifest.json": Fault(type="application/json", body=b"[")}, STRICT),
        ("redirect", {"manifest.json": Fault(location="http://localhost:9/login")}, STRICT),
        ("redirect", {"manifest.json": Fault(location="/index.html")}, STRICT),
        ("policy", {}, STRICT + "; connect-src 'none'"),
        ("policy", {}, STRICT + "; worker-src 'none'"),
        ("type", {"worker.js": Fault(type="text/plain")}, STRICT),
        ("html", {"worker.js": Fault(type="text/html", body=b"<!doctype html>")}, STRICT),
    ],
)
def test_each_cause_is_named_with_its_cure(opened, site, cause, faults, policy) -> None:
    with serving(site, faults=faults, policy=policy, nosniff=True) as server:
        page = opened(server.url).page
        said = failed(page, cause)
        known = [re.escape(part) for part in re.split(r"\{\w+\}", str(catalogue("en")[f"load.{cause}"]))]
        if "connect-src" in policy:  # then there is no catalogue either
            assert "connect-src 'self'" in said
        else:
            assert re.fullmatch(".+".join(known), said)
        assert "undefined" not in said
        for end in ("button", "a"):
            assert page.is_visible(f"#status {end}")


def test_what_an_extension_blocks_is_told_from_a_lost_connection(opened, site) -> None:
    with serving(site, faults={WASM: Fault(hang=True)}) as server:
        visit = opened(server.url)
        visit.context.route(re.compile(r"\.wasm"), lambda route: route.abort("blockedbyclient"))
        server.over.set()
        visit.page.reload()
        assert "extension" in failed(visit.page, "filtered")


def test_a_lost_connection_that_comes_back_starts_the_page_by_itself(opened, site) -> None:
    with serving(site, faults={"pipesched.zip": Fault(drop=True)}) as server:
        visit = opened(server.url)
        failed(visit.page, "network")
        server.faults.clear()
        visit.page.evaluate("dispatchEvent(new Event('online'))")
        visit.page.wait_for_selector(READY)


def test_the_failure_leads_to_the_doctor(opened, site) -> None:
    with serving(site, faults={WASM: Fault(status=404)}) as server:
        page = opened(server.url).page
        failed(page, "missing")
        page.click("#status a")
        page.wait_for_selector("html[data-doctor=done]")
        assert page.locator("[data-id=files][data-state=missing]").count() == 1


def test_scripts_of_a_wrong_type_leave_a_page_that_says_so(opened, site) -> None:
    with serving(site, faults={".js": Fault(type="text/plain")}, nosniff=True) as server:
        page = opened(server.url).page
        assert not page.is_visible("#unstarted")
        page.evaluate("document.getAnimations().forEach((animation) => animation.finish())")
        assert page.is_visible("#unstarted")
        assert "text/javascript" in page.inner_text("#unstarted")
        page.click("#unstarted a")
        page.wait_for_selector("#not-run", state="visible")
        assert all(catalogue(language)["doctor.not_run"] in page.inner_text("#not-run") for language in LANGUAGES)


def test_time_left_is_told_from_the_pace_of_the_last_seconds(chromium, site) -> None:
    with serving(site) as server:
        page = chromium.new_page()
        page.goto(server.url + "doctor.html")
        told = page.evaluate(
            """async () => {
              const { Pace } = await import(new URL("pace.js", document.scripts[0].src).href);
              const pace = new Pace();
              const steady = [0, 1, 2, 3, 4].map((s) => pace.left(s, 10, s * 1000));
              const slower = [7, 10, 13, 16].map((s, i) => pace.left(5 + i, 10, s * 1000));
              return [steady, slower, pace.left(0, 10, 17000), pace.left(10, 10, 20000)];
            }"""
        )
        # 1 MB/s: 10 − 2, 10 − 3, 10 − 4 s; then 1 MB in 3 s: what is left takes three times as long, in steps of 5 s
        assert told[0] == [None, None, 8, 7, 6]
        assert told[1][-1] == 6 and told[1][-2] == 9
        assert told[2:] == [None, None]
        page.close()
