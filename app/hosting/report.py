"""What hosting tells a person: catalogue keys and byte counts in, one sentence or one progress line out."""

import errno
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from pipesched.model import Message
from pipesched.words import environment_language, sentence

Progress = Callable[[str, int, int], None]
"""Called with a source's name, the bytes it has sent and the bytes it will send in all."""

MEGABYTE = 1_000_000


class HostingError(Exception):
    """Something only a person can put right; ``message`` says what, as a catalogue key with its values."""

    def __init__(self, key: str, **params: Any) -> None:
        self.message = Message(key, params)
        super().__init__(key, params)

    def __str__(self) -> str:
        return say(self.message, "en")


def say(message: Message, language: str | None = None) -> str:
    """Turn a message into a sentence, by default in the language of the shell."""
    return sentence(message, language or environment_language())


def disk_trouble(error: OSError, folder: object, needed: int) -> HostingError:
    """Translate what the file system refused in ``folder``, where ``needed`` bytes were to be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HostingError("hosting.disk_full", folder=str(folder), megabytes=-(-needed // MEGABYTE))
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return HostingError("hosting.no_permission", folder=str(error.filename or folder))
    return HostingError("hosting.disk_error", folder=str(error.filename or folder), why=error.strerror or str(error))


@contextmanager
def progress_line(stream: TextIO, language: str | None = None) -> Iterator[Progress]:
    """Hand out a Progress that redraws one line on a terminal, or adds a line every ten megabytes elsewhere."""
    draw = _Terminal(stream, language) if stream.isatty() else _Log(stream, language)
    try:
        yield draw
    finally:
        draw.close()


class _Log:
    """Progress for a file or a pipe: few lines, each complete in itself."""

    step = 10 * MEGABYTE

    def __init__(self, stream: TextIO, language: str | None) -> None:
        self.stream, self.language = stream, language
        self.source, self.next_at = "", 0

    def __call__(self, source: str, done: int, total: int) -> None:
        if source != self.source:
            self.source, self.next_at = source, 0
        if done < self.next_at:
            return
        print(_fetching(source, self.language), amount(done, total), file=self.stream, flush=True)
        self.next_at = total + 1 if done >= total else min(done - done % self.step + self.step, total)

    def close(self) -> None:
        """Nothing is ever left open."""


class _Terminal:
    """Progress for a person who watches: one line, drawn at most ten times a second."""

    cells = 24

    def __init__(self, stream: TextIO, language: str | None) -> None:
        self.stream, self.language = stream, language
        self.source, self.width, self.drawn_at = "", 0, 0.0

    def __call__(self, source: str, done: int, total: int) -> None:
        if source != self.source:
            self.close()
            self.source = source
        elif done < total and time.monotonic() - self.drawn_at < 0.1:
            return
        label, numbers = _fetching(source, self.language), amount(done, total)
        columns = shutil.get_terminal_size().columns - 1  # a line that wraps could not be redrawn
        cells = max(0, min(self.cells, columns - len(f"{label} [] {numbers}")))
        line = f"{label} [{'#' * (cells * done // max(total, 1)):<{cells}}] {numbers}"[:columns]
        self.stream.write("\r" + line.ljust(self.width))
        self.stream.flush()
        self.width, self.drawn_at = len(line), time.monotonic()

    def close(self) -> None:
        """End the open line, so that what follows starts on a line of its own."""
        if self.width:
            self.stream.write("\n")
            self.stream.flush()
        self.width = 0


def amount(done: int, total: int) -> str:
    """Say how far a transfer has come.

    >>> amount(1_250_000, 26_791_643)
    '1.2 / 26.8 MB'
    """
    return f"{done / MEGABYTE:.1f} / {total / MEGABYTE:.1f} MB"


def _fetching(source: str, language: str | None) -> str:
    return say(Message("hosting.fetching", {"source": source}), language)
