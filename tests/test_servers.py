"""The built folder behind the web servers people have: any of them will do, wherever the folder lies."""

import gzip
import os
import re
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from site_server import Fault, serving
from test_page import Visit
from web_servers import PACKAGES, program, web_server

SERVERS = ("python", *PACKAGES)
DEEP = "a b/c/"
browser = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(site) -> Iterator[Path]:
    """The built site at the top and at ``a b/c/`` below it, where a server without rights can read it."""
    place = Path(tempfile.mkdtemp(prefix="pipesched-servers-"))
    place.chmod(0o755)
    try:
        for target in (place / "site", place / "site" / DEEP):
            shutil.copytree(site, target, dirs_exist_ok=True)
        for path in place.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield place / "site"
    finally:
        shutil.rmtree(place)


@pytest.fixture
def started(folder, tmp_path) -> Iterator[object]:
    """Start a server, unless it is not on this machine; tests/__main__.py counts that and says why."""
    running = []

    def start(name: str, **options: object) -> str:
        if name != "python" and not program(name):
            pytest.skip(f"{name} is not on this machine; python3 tests installs the package {PACKAGES[name]} on Debian")
        work = Path(tempfile.mkdtemp(dir=tmp_path))
        running.append(web_server(name, folder, work, **options))
        return running[-1].__enter__()

    yield start
    for server in running:
        server.__exit__(None, None, None)


def get(url: str, **headers: str):
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.status, answer.headers, answer.read()


def files(folder: Path) -> list[str]:
    """Name what a start asks for, and a file of each other kind."""
    inside = folder / DEEP
    named = [path.relative_to(inside).as_posix() for path in inside.rglob("*") if path.is_file()]
    return [name for name in named if not name.endswith((".whl", ".nojekyll"))]


@pytest.mark.parametrize(
    ("name", "zipped"),
    [(name, zipped) for name in SERVERS for zipped in (False, True) if not (name == "python" and zipped)],
)
def test_every_file_arrives_as_it_was_built(started, folder, name, zipped) -> None:
    address = started(name, gzip=zipped)
    packed = 0
    for file in files(folder):
        for prefix in ("", quote(DEEP)):
            _, headers, body = get(address + prefix + quote(file), **{"Accept-Encoding": "gzip"})
            if headers["Content-Encoding"] == "gzip":
                body, packed = gzip.decompress(body), packed + 1
            assert body == (folder / DEEP / file).read_bytes(), file
            if file.endswith(".js"):
                assert "javascript" in headers["Content-Type"], file
    assert bool(packed) == zipped


@pytest.mark.parametrize("name", SERVERS)
def test_a_broken_connection_can_be_continued_or_begun_anew(started, folder, name) -> None:
    address = started(name)
    wasm = next(file for file in files(folder) if file.endswith(".wasm"))
    status, headers, body = get(address + wasm, Range="bytes=1000-")
    whole = (folder / wasm).read_bytes()
    if status == 206:
        assert headers["Content-Range"].startswith("bytes 1000-")
        assert body == whole[1000:]
    else:
        assert (name, status, body) == ("python", 200, whole)


@pytest.mark.parametrize("name", SERVERS)
def test_what_is_not_there_is_answered_with_404(started, name) -> None:
    with pytest.raises(urllib.error.HTTPError) as answer:
        get(started(name) + "static/nowhere.js")
    assert answer.value.code == 404
    answer.value.close()


@browser
@pytest.mark.parametrize(
    ("name", "below", "options"),
    [
        ("python", "", {}),
        ("nginx", quote(DEEP), {"gzip": True, "nosniff": True}),
        ("nginx", "", {"types": "wrong", "nosniff": True}),
        ("caddy", quote(DEEP), {"gzip": True}),
        ("caddy", "", {"types": "wrong", "nosniff": True}),
        ("apache2", quote(DEEP), {"gzip": True, "types": "wrong", "nosniff": True}),
    ],
)
def test_the_page_starts_behind_any_server(started, chromium, name, below, options) -> None:
    visit = Visit(chromium, started(name, **options) + below)
    try:
        visit.ready()
        visit.set("micro_batches", 7)
        visit.shows(makespan=9)
        assert visit.complaints == []
    finally:
        visit.context.close()


@browser
def test_files_compressed_beforehand_load_with_a_progress_that_ends_at_the_whole(folder, started, chromium) -> None:
    wasm = next(path for path in (folder / "static").rglob("*.wasm"))
    packed = wasm.with_name(wasm.name + ".gz")
    packed.write_bytes(gzip.compress(wasm.read_bytes(), 1))
    watch = """addEventListener("DOMContentLoaded", () => {
      const bar = document.querySelector("#status progress");
      window.seen = [];
      new MutationObserver(() => window.seen.push(bar.value)).observe(bar, { attributes: true });
    });"""
    try:
        address = started("nginx", gzip=True)
        length = get(address + wasm.relative_to(folder).as_posix(), **{"Accept-Encoding": "gzip"})[1]["Content-Length"]
        assert int(length) == packed.stat().st_size  # of what travels, less than what arrives
        context = chromium.new_context()
        context.add_init_script(watch)
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("html[data-state=ready]", timeout=90_000)
        seen = page.evaluate("window.seen")
        assert max(seen, default=0) <= 1
        context.close()
    finally:
        packed.unlink()


# GitHub Pages: no headers of one's own, a page of one's own for what is missing, no names that Jekyll would drop


def test_no_name_needs_more_than_a_plain_host_gives(site) -> None:
    assert (site / ".nojekyll").is_file()
    names = [path.relative_to(site).as_posix() for path in site.rglob("*")]
    assert not [name for name in names if re.search(r"(^|/)_", name)]
    assert len({name.lower() for name in names}) == len(names)  # Windows and macOS know no case
    assert not [name for name in names if re.search(r'[<>:"|?*\\]', name)]
    assert not any(name.endswith(".mjs") for name in names)
    assert max(os.path.getsize(site / name) for name in names) < 25 * 1024 * 1024  # the smallest limit of common hosts


@browser
def test_a_host_that_sends_no_header_and_answers_with_its_own_404_will_do(site, chromium) -> None:
    missing = Fault(type="text/html; charset=utf-8", status=404, body=b"<!doctype html><title>404</title>")
    with serving(site, prefix="/project/", policy="", faults={"warm.js": missing}) as server:
        visit = Visit(chromium, server.url)
        visit.ready().shows(makespan=6)
        visit.context.close()
        server.faults["pipesched.zip"] = missing
        visit = Visit(chromium, server.url)
        visit.page.wait_for_selector("html[data-failure=missing]")
        visit.context.close()
