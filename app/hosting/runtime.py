"""The lock file goes in, verified copies of the files it names come out, each in a local cache under its SHA-256.

Where a file came from never matters; what it hashes to does. Sources are asked in turn until nothing is missing.
"""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hosting.report import HostingError, Progress, disk_trouble

LOCK_FILE = Path(__file__).with_name("runtime.lock.json")
STAGING = ".fetch-"


@dataclass(frozen=True)
class LockedFile:
    """One pinned file; ``package`` holds what Pyodide's package index needs to know if it is a Python package."""

    name: str
    component: str
    version: str
    licence: str
    size: int
    sha256: str
    package: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class LockedWheel:
    """A wheel that carries the pinned files under ``folder``; pip knows where ``requirement`` is to be had."""

    requirement: str
    file_name: str
    folder: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Lock:
    """The pinned runtime: its files, what Pyodide says about itself (``info``), and where the files may be had."""

    info: Mapping[str, str]
    files: tuple[LockedFile, ...]
    cdn: str
    wheel: LockedWheel


@dataclass(frozen=True)
class Source:
    """A place to get files from.

    ``obtain(files, folder, progress)`` yields each file with the path of its unverified bytes, which it may put in
    ``folder``; it raises HostingError when it has to give up. ``extra`` is the room it needs besides the files.
    """

    name: str
    obtain: Callable[[Sequence[LockedFile], Path, Progress], Iterable[tuple[LockedFile, Path]]]
    extra: int = 0


def read_lock(path: Path = LOCK_FILE) -> Lock:
    """Read a runtime lock file."""
    lock = json.loads(path.read_text(encoding="utf-8"))
    return Lock(
        info=lock["info"],
        files=tuple(LockedFile(**file) for file in lock["files"]),
        cdn=lock["sources"]["cdn"],
        wheel=LockedWheel(**lock["sources"]["wheel"]),
    )


def pyodide_index(lock: Lock) -> dict[str, Any]:
    """Make the ``pyodide-lock.json`` of the packages we ship: the official one also names hundreds we do not."""
    packages = {
        file.component.lower(): {
            "name": file.component,
            "version": file.version,
            "file_name": file.name,
            "sha256": file.sha256,
            **file.package,
        }
        for file in lock.files
        if file.package is not None
    }
    return {"info": dict(lock.info), "packages": packages}


def cache_folder(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Find the folder that keeps fetched files: ``$PIPESCHED_CACHE``, else the platform's place for such things."""
    if chosen := environment.get("PIPESCHED_CACHE"):
        return Path(chosen).expanduser().absolute()
    if platform == "win32":
        base = environment.get("LOCALAPPDATA") or "~/AppData/Local"
    elif platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = environment.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "pipesched" / "runtime"


def fetch_runtime(
    files: Sequence[LockedFile], cache: Path, sources: Sequence[Source], progress: Progress
) -> dict[str, Path]:
    """Make sure the cache holds every file and say where; only what is missing is asked of the sources.

    Raises
    ------
    HostingError
        No source had the right bytes, or the cache folder cannot take them. Whole files that did arrive stay.
    """
    needed = sum(file.size for file in files) + max((source.extra for source in sources), default=0)
    try:
        missing = _missing(files, cache)
        if missing:
            cache.mkdir(parents=True, exist_ok=True)
            with _staging(cache) as folder:
                _ask_in_turn(missing, cache, folder, sources, progress)
    except OSError as error:
        raise disk_trouble(error, cache, needed) from error
    return {file.name: cache / file.sha256 for file in files}


def copy_verified(file: LockedFile, cached: Path, target: Path) -> None:
    """Copy a cached file, hashing on the way; a damaged one is dropped from the cache and reported."""
    digest = hashlib.sha256()
    with cached.open("rb") as source, target.open("wb") as copy:
        while block := source.read(1 << 20):
            digest.update(block)
            copy.write(block)
    if digest.hexdigest() != file.sha256:
        target.unlink()
        cached.unlink()
        raise HostingError("hosting.damaged_cache", file=file.name)


def is_pinned(path: Path, size: int, sha256: str) -> bool:
    """Whether the bytes at ``path`` are the pinned ones."""
    if path.stat().st_size != size:
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == sha256


def _missing(files: Iterable[LockedFile], cache: Path) -> list[LockedFile]:
    # By size only, to start fast: hashes were checked on the way in and are again when a file is copied out.
    def is_held(file: LockedFile) -> bool:
        path = cache / file.sha256
        return path.is_file() and path.stat().st_size == file.size

    return [file for file in files if not is_held(file)]


def _ask_in_turn(
    missing: list[LockedFile], cache: Path, folder: Path, sources: Sequence[Source], progress: Progress
) -> None:
    refusals = []
    for source in sources:
        try:
            for file, path in source.obtain(missing, folder, progress):
                if not is_pinned(path, file.size, file.sha256):
                    raise HostingError("hosting.wrong_file", file=file.name, source=source.name)
                os.replace(path, cache / file.sha256)
        except HostingError as error:
            refusals.append(error.message)
        missing = _missing(missing, cache)
        if not missing:
            return
    only_wrong = refusals and all(refusal.key == "hosting.wrong_file" for refusal in refusals)
    key = "hosting.refused" if only_wrong else "hosting.no_source"
    raise HostingError(key, reasons=refusals, folder=str(cache))


@contextmanager
def _staging(cache: Path) -> Iterator[Path]:
    # Inside the cache, so that moving a verified file to its place is one atomic rename. What a killed run left
    # is swept away once it is old enough not to belong to one that still runs.
    for left_over in cache.glob(STAGING + "*"):
        if time.time() - left_over.stat().st_mtime > 24 * 3600:
            shutil.rmtree(left_over, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=STAGING, dir=cache, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
