"""A checkout goes in, what a browser needs comes out: ``static/vendor/`` in place, or a whole static folder elsewhere.

Both hold the same bytes for the same checkout, so a site owner can compare two builds file by file.
"""

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pipesched
from hosting.names import PAGES, name_by_content, parts_of, version_before
from hosting.report import HostingError, disk_trouble, progress_line
from hosting.runtime import (
    Lock,
    LockedFile,
    cache_folder,
    copy_verified,
    fetch_runtime,
    pyodide_index,
    read_lock,
)
from hosting.sources import all_sources
from hosting.wheel import files_of, stored, wheel, wheel_name

ROOT = Path(__file__).resolve().parents[2]
VENDOR = Path("static") / "vendor"
MANIFEST = "manifest.json"
WHEELS = "pipesched-*.whl"
DRAFT = ".pipesched-draft"  # inside the target: the same file system, even where the target is a mount of its own
DOCTOR = "doctor.html"
OURS = ("static", *PAGES, ".nojekyll")
"""All that a built folder holds at its top: a rebuild replaces these and nothing else."""

Fetch = Callable[[Sequence[LockedFile]], Mapping[str, Path]]
"""Given files of the lock, make sure they are on this machine and say where: see runtime.fetch_runtime."""


def fetch_with_progress(files: Sequence[LockedFile]) -> Mapping[str, Path]:
    """Fetch files of our own lock into the user's cache, showing on stderr what arrives."""
    cache = cache_folder()
    with progress_line(sys.stderr) as progress:
        return fetch_runtime(files, cache, all_sources(read_lock(), cache), progress)


def vendor(target: Path, lock: Lock, fetch: Fetch, root: Path = ROOT) -> None:
    """Make ``target`` hold the runtime, the library and the catalogues of the checkout ``root``, and a manifest.

    Only what differs is written, each file whole or not at all, the manifest last.
    """
    pinned = {f"pyodide/{file.name}": file for file in lock.files}
    try:
        made = generated_files(lock, root)
        known = _read_manifest(target)
        stale = {name: file for name, file in pinned.items() if not _is_held(target / name, file, known.get(name))}
        cached = fetch(list(stale.values()))
        for name, file in stale.items():
            with new_file(target / name) as path:
                copy_verified(file, cached[file.name], path)
        files = {name: {"size": file.size, "sha256": file.sha256} for name, file in pinned.items()}
        for name, content in made.items():
            _write(target / name, content)
            files[name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        _remove_others(target, {*files, MANIFEST})
        _write(target / MANIFEST, manifest(files))
    except OSError as error:
        raise disk_trouble(error, target, sum(file.size for file in lock.files)) from error


def write_wheel(static: Path, root: Path = ROOT) -> None:
    """Lay the library of the checkout ``root`` into the folder ``static`` as a wheel, in place of older versions.

    Beside the vendor folder, not in it: notebooks of others install it by its address, which has to last.
    """
    name = wheel_name("pipesched", pipesched.__version__)
    _write(static / name, wheel(root / "app" / "pipesched", ROOT, pipesched.__version__))
    for path in static.glob(WHEELS):
        if path.name != name:
            path.unlink()


def manifest(files: Mapping[str, Mapping[str, Any]]) -> bytes:
    """List the files of a vendor folder; ``build`` names all of them at once: what runs on them may be kept by it."""
    listed = dict(sorted(files.items()))
    digest = hashlib.sha256(_json(listed)).hexdigest()
    return _json({"version": pipesched.__version__, "build": digest, "files": listed})


def generated_files(lock: Lock, root: Path = ROOT) -> dict[str, bytes]:
    """Make the vendor files that are not fetched: name to bytes."""
    library = root / "app" / "pipesched"
    catalogues = {f"locales/{path.name}": path.read_bytes() for path in (library / "locales").glob("*.json")}
    return {
        "pyodide/pyodide-lock.json": _json(pyodide_index(lock)),
        "pipesched.zip": zipped(library),
        "LICENSES.txt": notice(lock).encode(),
        **catalogues,
    }


def zipped(package: Path) -> bytes:
    """Zip a package so that unpacking beside other packages installs it; equal sources give equal bytes."""
    return stored(files_of(package))


def notice(lock: Lock) -> str:
    """Write the notice that names each file of other authors with its version and licence."""
    lines = [
        "This folder carries files of other projects, unchanged.",
        "Licences are given as SPDX expressions; the full texts are inside each wheel (*.dist-info).",
        f"Pyodide {lock.info['version']} and its sources: the project pyodide/pyodide on GitHub.",
        "pipesched itself (pipesched.zip, its wheel, locales): MIT.",
        "",
    ]
    for file in lock.files:
        lines += [file.name, f"    {file.component} {file.version}, {file.licence}"]
    return "\n".join(lines) + "\n"


def build(target: Path, lock: Lock, fetch: Fetch, root: Path = ROOT) -> None:
    """Make ``target`` a self-contained static folder of the checkout ``root``, its parts named by their content.

    The parts of the version before stay too, and only they: a page that somebody has open, or that a cache still
    hands out, finds what it asks for.

    Raises
    ------
    HostingError
        ``target`` holds something else or is part of the checkout's page, there is no page to build, or the disk or
        the sources fail. The target is then as it was.
    """
    target = target.expanduser().resolve()
    if not (root / "index.html").is_file():
        raise HostingError("hosting.no_page", folder=str(root))
    _refuse_unless_ours(target, root)
    is_new, draft = not target.exists(), target / DRAFT
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        shutil.copytree(root / "static", draft / "static", ignore=_not_for_the_web(root / "static"))
        shutil.copyfile(root / "index.html", draft / "index.html")
        lift_doctor(draft)
        (draft / ".nojekyll").touch()  # GitHub Pages: take the files as they are
        vendor(draft / VENDOR, lock, fetch, root)
        write_wheel(draft / "static", root)
        _put_in_place(draft, target, version_before(target, name_by_content(draft)))
        is_new = False
    except OSError as error:
        raise disk_trouble(error, target, sum(file.size for file in lock.files)) from error
    finally:
        shutil.rmtree(target if is_new else draft, ignore_errors=True)


def lift_doctor(site: Path) -> None:
    """Move the doctor's page of a drafted ``site`` from ``static/`` to the top, where people find it."""
    below, page = site / "static" / DOCTOR, site / "index.html"
    if not below.is_file():
        return
    text = re.sub(r'((?:src|href)=")(?=(?:css|img|js)/)', r"\1static/", below.read_text(encoding="utf-8"))
    (site / DOCTOR).write_bytes(text.replace('href="../index.html"', 'href="index.html"').encode())
    below.unlink()
    linked = page.read_text(encoding="utf-8").replace(f'href="static/{DOCTOR}"', f'href="{DOCTOR}"')
    page.write_bytes(linked.encode())


def _refuse_unless_ours(target: Path, root: Path) -> None:
    real, page = target.resolve(), (root / "static").resolve()
    if real == root.resolve() or real.is_relative_to(page) or page.is_relative_to(real):
        raise HostingError("hosting.target_in_page", folder=str(target))
    if target.exists() and not target.is_dir():
        raise HostingError("hosting.target_foreign", folder=str(target))
    parts = parts_of(target)
    is_ours = parts is not None and bool(_read_manifest(parts / VENDOR.name))
    if target.is_dir() and {path.name for path in target.iterdir()} - {DRAFT} and not is_ours:
        raise HostingError("hosting.target_foreign", folder=str(target))


def _not_for_the_web(static: Path) -> Callable[[str, list[str]], set[str]]:
    def ignored(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name.startswith(".") or Path(folder, name) == static / VENDOR.name}

    return ignored


def _put_in_place(draft: Path, target: Path, kept: Path | None) -> None:
    # Renames only, ``kept`` out of what is replaced too. Entries that a site owner added (a CNAME, a .git) stay; should
    # a rename fail, the old come back.
    old = draft / "replaced"
    old.mkdir()
    steps = [step for name in OURS for step in ((target / name, old / name), (draft / name, target / name))]
    if kept:
        steps.insert(2, (old / "static" / kept.name, kept))
    moved: list[tuple[Path, Path]] = []
    try:
        for source, place in steps:
            if source.exists():
                source.rename(place)
                moved.append((source, place))
    except BaseException:
        for source, place in reversed(moved):
            place.rename(source)
        raise


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Read which files a vendor folder is said to hold: none if there is no manifest or it is not one of ours."""
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return files if isinstance(files, dict) else {}


def _is_held(path: Path, file: LockedFile, entry: object) -> bool:
    # By what the manifest says, to start fast: it is written last, after every file was verified on the way in.
    return entry == {"size": file.size, "sha256": file.sha256} and _size(path) == file.size


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Hand out a place to write to that takes the name ``path`` if all went well and vanishes otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    if _size(path) == len(content) and path.read_bytes() == content:
        return
    with new_file(path) as draft:
        draft.write_bytes(content)


def _remove_others(target: Path, wanted: set[str]) -> None:
    """Delete what an earlier version left in a vendor folder."""
    for path in target.rglob("*"):
        if path.is_file() and path.relative_to(target).as_posix() not in wanted:
            path.unlink()


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
