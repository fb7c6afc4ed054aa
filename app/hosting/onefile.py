"""A drafted site goes in, the same page as one HTML file comes out that needs no server and asks for nothing.

Style, script, pictures, words and Python itself are in the page. Its policy allows the two scripts and the one style by
their hashes, a worker from a blob, pictures from the page, and no request at all. Equal sources and an equal zlib give
equal bytes.
"""

import base64
import gzip
import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from hosting.build import MANIFEST, ROOT, Fetch, new_file, vendor
from hosting.bundle import bundle
from hosting.report import HostingError, disk_trouble
from hosting.runtime import Lock

OPENED = "static/js/opened.js"
"""Says that the page cannot run from a file: here it can."""

MARK = "data-one-file"
"""What the root element of such a file says of itself."""

STYLE = re.compile(r'<link rel="stylesheet" href="(static/[^"]+)">')
SCRIPT = re.compile(r'<script( type="module"| defer)? src="(static/js/[^"]+)"></script>\n?')
ELSEWHERE = re.compile(r'<div id="unstarted">.*?</div>\n|(?<=<a )href="static/doctor\.html" ', re.DOTALL)
"""What leads to the doctor, who is not in the file and has nothing to look for where no file can be missing."""
PICTURE = re.compile(r'((?:src|srcset|href)=")(static/[^"]+\.svg)(?=")')


def build_one_file(target: Path, lock: Lock, fetch: Fetch, root: Path = ROOT) -> None:
    """Write the page of the checkout ``root`` to ``target``, one HTML file.

    Raises
    ------
    HostingError
        ``target`` is a folder or a file of another kind, or the disk or the sources fail. It is then as it was.
    """
    target = target.expanduser().resolve()
    if target.exists() and not (target.is_file() and MARK in target.read_bytes()[:1000].decode(errors="replace")):
        raise HostingError("hosting.file_foreign", file=str(target))
    core = replace(lock, files=tuple(file for file in lock.files if file.package is None))
    try:
        with TemporaryDirectory(prefix="pipesched-") as folder:
            vendor(Path(folder), core, fetch, root)
            content = one_file(root, Path(folder))
        with new_file(target) as draft:
            draft.write_bytes(content)
    except OSError as error:
        raise disk_trouble(error, target.parent, 3 * sum(file.size for file in core.files)) from error


def one_file(root: Path, files: Path) -> bytes:
    """Put the page of the checkout ``root`` and its vendor folder ``files`` into one HTML file.

    Raises
    ------
    BundleError
        Scripts of the page are written in a way that cannot be joined.
    ValueError
        The page asks for a file in a way that is not known here.
    """
    page = (root / "index.html").read_text(encoding="utf-8")
    style = "\n".join(_read(root, found[1]) for found in STYLE.finditer(page))
    modules = [Path(found[2]).name for found in SCRIPT.finditer(page) if "module" in (found[1] or "")]
    script = bundle(root / "static" / "js", modules)
    page = PICTURE.sub(lambda found: found[1] + _picture(_read(root, found[2])), page)
    page = SCRIPT.sub(lambda found: "" if Path(found[2]).name in modules or found[2] == OPENED else found[0], page)
    page = ELSEWHERE.sub("", STYLE.sub("", page))
    if left := re.search(r'\b(?:src|srcset|href)="static/[^"]*"', page):
        raise ValueError(left[0])
    style, script = f"\n{style}\n", f"\n{script}\n"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy(script, style)}">\n<style>{style}</style>\n'
    page = page.replace("<title>", head + "<title>", 1).replace("<html ", f"<html {MARK} ", 1)
    parts = "".join(_parts(root, files))
    return page.replace("</body>", f'{parts}<script type="module">{script}</script>\n</body>').encode()


def policy(script: str, style: str) -> str:
    """Write the Content-Security-Policy of the one file.

    ``blob:`` is there for the worker alone: no script of the page can be one.
    """
    return (
        f"default-src 'none'; script-src {_hash(script)} 'wasm-unsafe-eval'; style-src {_hash(style)}; "
        "worker-src blob:; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _parts(root: Path, files: Path) -> Iterator[str]:
    # What the scripts look for in the page, as elements that no browser runs.
    worker = root / "static" / "js" / "worker.js"
    found = {path.relative_to(files).as_posix(): path for path in sorted(files.rglob("*")) if path.is_file()}
    for name, path in {**found, worker.name: worker}.items():
        if name == MANIFEST or name.startswith("locales/"):
            kind, text = "application/json", path.read_text(encoding="utf-8").replace("<", "\\u003c")
        else:
            kind, text = "text/plain", base64.b64encode(gzip.compress(path.read_bytes(), 9, mtime=0)).decode()
        yield f'<script type="{kind}" data-part="{name}">{text}</script>\n'


def _read(root: Path, name: str) -> str:
    return (root / name).read_text(encoding="utf-8")


def _picture(svg: str) -> str:
    # Without a space, which would end the address in a srcset.
    return "data:image/svg+xml," + quote(svg, safe="=:/;,'()")
