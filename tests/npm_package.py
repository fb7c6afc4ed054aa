"""A pinned npm package goes in, a folder with its files comes out; with npm or without, fetched once.

The registry is the one that npm is set up for. Where the file came from never matters; what it hashes to does.
"""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

CACHE = Path(__file__).resolve().parents[1] / ".venv" / "npm"
SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python before 3.11.4 has no filters


class Package(NamedTuple):
    """A version of a package and the SHA-256 of its archive."""

    name: str
    version: str
    sha256: str

    @property
    def archive(self) -> str:
        return f"{self.name}-{self.version}.tgz"


REVEAL = Package("reveal.js", "5.2.1", "359b575dd51bbda32f89b2fd4c7dc46ad7389a805572158916c29252f7a27333")


def fetched(package: Package) -> Path | None:
    """Return the unpacked package, None where it cannot be had."""
    target = CACHE / f"{package.name}-{package.version}-{package.sha256[:12]}"
    if target.is_dir():
        return target
    with tempfile.TemporaryDirectory() as draft:
        for way in (by_npm, by_https):
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                archive = way(package, Path(draft))
                if hashlib.sha256(archive.read_bytes()).hexdigest() != package.sha256:
                    continue
                with tarfile.open(archive) as files:
                    files.extractall(Path(draft) / "unpacked", **SAFELY)
                CACHE.mkdir(parents=True, exist_ok=True)
                shutil.move(Path(draft) / "unpacked" / "package", target)
                return target
    return None


def by_npm(package: Package, folder: Path) -> Path:
    """Let npm get the archive: it knows its registry, proxies and passwords."""
    npm = shutil.which("npm")
    if not npm:
        raise FileNotFoundError("npm")
    call = [npm, "pack", f"{package.name}@{package.version}", "--pack-destination", str(folder), "--ignore-scripts"]
    subprocess.run(call, cwd=folder, check=True, capture_output=True, timeout=300)
    return folder / package.archive


def by_https(package: Package, folder: Path) -> Path:
    """Get the archive where npm would, without npm."""
    with urlopen(f"{registry()}{package.name}/-/{package.archive}", timeout=60) as answer:
        (folder / package.archive).write_bytes(answer.read())
    return folder / package.archive


def registry() -> str:
    """Return the registry that the environment or a person's .npmrc names; ends in a slash."""
    named = next((value for key, value in os.environ.items() if key.lower() == "npm_config_registry" and value), None)
    if not named:
        with contextlib.suppress(OSError):
            settings = (Path.home() / ".npmrc").read_text(encoding="utf-8")
            named = next(iter(re.findall(r"^registry\s*=\s*(\S+)", settings, re.MULTILINE)), None)
    if not named:
        raise FileNotFoundError("no registry is named")
    return named.rstrip("/") + "/"


if __name__ == "__main__":
    sys.exit(0 if fetched(REVEAL) else 1)
