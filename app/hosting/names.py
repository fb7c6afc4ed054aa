"""A drafted site goes in, the same site with names that tell its content comes out.

All parts of a version lie in one folder, ``static/<hash>/``, whose name is the hash of everything in it. A page and its
parts are then always of one version, whatever a cache keeps: only the pages at the top, which name the folder, change
in place. What other sites link to keeps its name (``STABLE``).
"""

import hashlib
import re
from pathlib import Path

PAGES = ("index.html", "doctor.html")
"""What a built folder may hold at its top for people to open; each names its parts as ``static/...``."""

STABLE = ("js/pipeline-schedule.js", "figures/", "tutorial.ipynb", "pipesched-")
"""What stays where it is, below ``static/``: the script in the pages of others and the still figures it shows; the
tutorial, and the wheel that notebooks install. They must need no other part but the page itself, as what they sat
beside is now elsewhere."""

LENGTH = 12
"""Hexadecimal digits of a name: 48 bits, no two versions of a site will ever share them."""

REFERENCE = re.compile(r'((?:src|srcset|href)=")static/(?!' + "|".join(map(re.escape, STABLE)) + r')(?=[^"])')


def name_by_content(site: Path) -> str:
    """Move the parts of the drafted ``site`` into the folder named by their content, make its pages say so, name it."""
    static = site / "static"
    files = sorted((path for path in static.rglob("*") if path.is_file()), key=Path.as_posix)
    parts = [path for path in files if not path.relative_to(static).as_posix().startswith(STABLE)]
    digest = hashlib.sha256()
    for path in parts:
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(f"{path.relative_to(static).as_posix()}\0{content}\n".encode())
    name = digest.hexdigest()[:LENGTH]
    for path in parts:
        place = static / name / path.relative_to(static)
        place.parent.mkdir(parents=True, exist_ok=True)
        path.rename(place)
    for folder in sorted((path for path in static.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()
    for page in filter(Path.is_file, (site / name for name in PAGES)):
        text = page.read_text(encoding="utf-8")
        page.write_bytes(REFERENCE.sub(rf"\g<1>static/{name}/", text).encode())
    return name


def parts_of(site: Path) -> Path | None:
    """Find the folder that holds the parts of a built site: the one its page names, or ``static`` in an old build."""
    try:
        named = re.search(rf'"static/([0-9a-f]{{{LENGTH}}})/', (site / "index.html").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    folder = site / "static" / named[1] if named else site / "static"
    return folder if folder.is_dir() else None


def version_before(site: Path, name: str) -> Path | None:
    """Find the parts of a built site to keep beside those called ``name``: what its page names; if that is the same
    version once more, the one that was kept before."""
    folders = [path for path in (site / "static").glob("[0-9a-f]" * LENGTH) if path.name != name]
    named = parts_of(site)
    return named if named in folders else next(iter(folders), None)
