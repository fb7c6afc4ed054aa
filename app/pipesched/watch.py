"""A file goes in, what it means is shown, again whenever it changes, until Ctrl+C."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from shutil import get_terminal_size

from pipesched.model import Message
from pipesched.words import sentence

PATIENCE = 0.25
"""Seconds between two looks at the file."""
CLEAR = "\x1b[H\x1b[2J\x1b[3J"
"""To the top left, erase the window and what has scrolled out of it."""


def watch(path: Path, show: Callable[[], str], language: str) -> None:
    """Print what ``show`` returns, now and whenever ``path`` or the size of the window has changed."""
    seen: object = None
    try:
        while True:
            now = _state(path)
            if now != seen:
                seen = now
                said = sentence(Message("cli.watching", {"path": str(path)}), language)
                sys.stdout.write(f"{CLEAR if sys.stdout.isatty() else ''}{show()}\n{said}\n")
                sys.stdout.flush()
            time.sleep(PATIENCE)
    except KeyboardInterrupt:
        sys.stdout.write("\n")


def _state(path: Path) -> tuple[object, ...]:
    """Return what differs when the file has been written, replaced or removed, or the window has another size."""
    try:
        found = os.stat(path)
    except OSError:
        return (None, get_terminal_size())
    return (found.st_mtime_ns, found.st_size, found.st_ino, get_terminal_size())
