"""What a sweep has computed is kept in a file as it comes, and read again when the sweep goes on.

The first line says what grid it is; then a JSON object per line, index to cell. Lines are only ever added, so an
interruption can spoil the last one at most, and that one is computed again.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from pipesched.grid import Cell, write_whole
from pipesched.model import ScenarioError


class Journal:
    """The file of one sweep, open for what is still to come.

    Raises
    ------
    ScenarioError
        If the file is of another grid, of another version of pipesched, or no such file at all.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with Journal(Path(folder, "kept"), {"format": "mine"}, {}) as journal:
    ...         journal.keep({3: (21,)})
    ...     known = {}
    ...     with Journal(Path(folder, "kept"), {"format": "mine"}, known):
    ...         known
    {3: (21,)}
    """

    def __init__(self, path: Path, about: Mapping[str, Any], cells: dict[int, Cell]) -> None:
        self.path = path
        if not path.exists():
            write_whole(path, json.dumps(about).encode() + b"\n")
        end = _recall(path, about, cells)
        self.file: BinaryIO = path.open("r+b")
        self.file.seek(end)
        self.file.truncate()

    def keep(self, cells: Mapping[int, Cell]) -> None:
        """Add ``cells``; after a crash of this process they are there."""
        self.file.write(json.dumps(cells, ensure_ascii=False).encode() + b"\n")
        self.file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()


def _recall(path: Path, about: Mapping[str, Any], cells: dict[int, Cell]) -> int:
    """Put what ``path`` holds into ``cells``; return where its last whole line ends."""
    end = 0
    with path.open("rb") as lines:
        for line in lines:
            try:
                known = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                known = None
            if end == 0 and known != about:
                is_grid = isinstance(known, dict) and known.get("format") == about["format"]
                key = "error.another_grid" if is_grid else "error.not_a_grid"
                raise ScenarioError("file", key, {"path": str(path)})
            if known is None:
                break
            if end:
                cells.update((int(i), cell if isinstance(cell, str) else tuple(cell)) for i, cell in known.items())
            end += len(line)
    if end == 0:
        raise ScenarioError("file", "error.not_a_grid", {"path": str(path)})
    return end
