"""A package and its pyproject.toml go in, the bytes of its wheel come out: equal sources give equal bytes.

Written with the standard library, as a site owner's machine may have no build tools and no network. The layout is that
of the specification of binary distributions (PyPA, "Binary distribution format", 1.0) with core metadata 2.1, which
every pip and micropip reads. The tests hold it against what setuptools makes of the same pyproject.toml.
"""

import hashlib
import tomllib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

TAG = "py3-none-any"


def wheel_name(name: str, version: str) -> str:
    """Return the file's name.

    >>> wheel_name("pipesched", "0.1.0")
    'pipesched-0.1.0-py3-none-any.whl'
    """
    return f"{name}-{version}-{TAG}.whl"


def wheel(package: Path, project: Path, version: str) -> bytes:
    """Return the wheel of the folder ``package`` with the metadata, readme and licence of the folder ``project``."""
    about = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    folder = f"{about['name']}-{version}.dist-info"
    readme = (project / about["readme"]).read_text(encoding="utf-8")
    files = files_of(package) | {
        f"{folder}/METADATA": metadata(about, version, readme).encode(),
        f"{folder}/WHEEL": f"Wheel-Version: 1.0\nGenerator: pipesched\nRoot-Is-Purelib: true\nTag: {TAG}\n".encode(),
        f"{folder}/entry_points.txt": _entry_points(about).encode(),
        **{f"{folder}/{name}": (project / name).read_bytes() for name in about["license-files"]},
    }
    lines = [f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items()]
    record = f"{folder}/RECORD"
    return stored(files | {record: "".join([*lines, f"{record},,\n"]).encode()})


def metadata(about: Mapping[str, Any], version: str, readme: str) -> str:
    """Return the METADATA of a project: its table ``[project]``, and the readme as its description."""
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {about['name']}",
        f"Version: {version}",
        f"Summary: {about['description']}",
        *(f"Author: {author['name']}" for author in about["authors"]),
        f"License: {about['license']}",
        f"Keywords: {','.join(about['keywords'])}",
        f"Requires-Python: {about['requires-python']}",
        "Description-Content-Type: text/markdown",
        *(f"License-File: {name}" for name in about["license-files"]),
    ]
    for extra, needs in about.get("optional-dependencies", {}).items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {need}; extra == "{extra}"' for need in needs)]
    return "\n".join(lines) + "\n\n" + readme


def _entry_points(about: Mapping[str, Any]) -> str:
    return "[console_scripts]\n" + "".join(f"{name} = {target}\n" for name, target in about["scripts"].items())


def _digest(content: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def files_of(package: Path) -> dict[str, bytes]:
    """Read the files of a package, by their names beside other packages, in order; caches and hidden ones left out."""
    found = {}
    for path in sorted(package.rglob("*"), key=lambda path: path.relative_to(package).as_posix()):
        inside = path.relative_to(package.parent)
        if path.is_file() and not any(part == "__pycache__" or part.startswith(".") for part in inside.parts):
            found[inside.as_posix()] = path.read_bytes()
    return found


def stored(files: Mapping[str, bytes]) -> bytes:
    """Zip files so that equal files give equal bytes.

    Stored, not deflated: zlib's output differs between its versions, and web servers compress anyway.
    """
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            entry = ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()
