"""The numbers of a sweep as one immutable value: a Grid; it is written as CSV, JSON or .npz and read back the same.

Arrays and .npz files need NumPy, imported when they are asked for; all else is the standard library.
"""

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipesched.metrics import Metrics
from pipesched.model import ScenarioError
from pipesched.reading import plain
from pipesched.scenario import SETTINGS, Scenario

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Number = int | float | None
Cell = tuple[Number, ...] | str
"""The numbers of one combination, or why it is refused."""
FORMAT = "pipesched grid 1"
"""Says in a file what it is; the number rises when older readers would not understand it."""


@dataclass(frozen=True, repr=False)
class Grid:
    """The metrics of every combination of some settings.

    Attributes
    ----------
    axes
        Per swept field of Scenario, its values in order.
    settings
        The other settings that were given, the same throughout.
    values
        Per metric, one number per combination, the first axis slowest; None where it is refused.
    refused
        Why combinations are refused, by their index on each axis.
    version
        The version of pipesched that computed it.

    Examples
    --------
    >>> grid = Grid({"devices": (2, 4)}, {"schedule": "gpipe"}, {"makespan": (15, 21)}, {}, "0.1.0")
    >>> grid
    Grid(devices: 2; makespan)
    >>> print(grid.to_csv(), end="")
    devices,makespan,refused,schedule
    2,15,,gpipe
    4,21,,gpipe
    >>> Grid.from_csv(grid.to_csv()).at(devices=4)
    {'makespan': 21}
    """

    axes: Mapping[str, tuple[Any, ...]]
    settings: Mapping[str, Any]
    values: Mapping[str, tuple[Number, ...]]
    refused: Mapping[tuple[int, ...], str]
    version: str = field(default="", compare=False)

    def __repr__(self) -> str:
        sizes = " × ".join(f"{name}: {len(values)}" for name, values in self.axes.items())
        return f"Grid({sizes}; {', '.join(self.values)})"

    def _repr_html_(self) -> str:
        from pipesched.show import table  # only to show a grid in a notebook

        rows = [[str(_blank(plain(value))) for value in row.values()] for row in self.table()]
        return table(rows, (*self.axes, *self.values, "refused"))

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(map(len, self.axes.values()))

    @cached_property
    def metrics(self) -> dict[str, "NDArray[np.float64]"]:
        """Per metric an array with one dimension per axis; NaN where refused. A whole number above 2**53 is rounded.

        Raises
        ------
        ImportError
            If NumPy is not installed.
        """
        import numpy as np

        arrays = {}
        for name, values in self.values.items():
            array = np.array([np.nan if value is None else value for value in values], float).reshape(self.shape)
            array.flags.writeable = False
            arrays[name] = array
        return arrays

    def at(self, **point: Any) -> dict[str, Number]:
        """Return the metrics of one combination: a value for each axis.

        Raises
        ------
        KeyError
            If an axis is missing, or a value is not on its axis.
        """
        place = 0
        for name, values in self.axes.items():
            value = _read(name, point[name])
            if value not in values:
                raise KeyError(f"{name}={point[name]}")
            place = place * len(values) + values.index(value)
        return {name: values[place] for name, values in self.values.items()}

    def table(self) -> list[dict[str, Any]]:
        """Return a row per combination: the value on each axis, its metrics, and ``refused``, the reason or ""."""
        rows = []
        for place, index in enumerate(product(*map(range, self.shape))):
            row = {name: self.axes[name][i] for name, i in zip(self.axes, index, strict=True)}
            row |= {name: values[place] for name, values in self.values.items()}
            rows.append(row | {"refused": self.refused.get(index, "")})
        return rows

    def filled(self, cells: Sequence[Cell]) -> "Grid":
        """Return this grid with ``cells``, one per combination."""
        indices = list(product(*map(range, self.shape)))
        refused = {index: cell for index, cell in zip(indices, cells, strict=True) if isinstance(cell, str)}
        values = {
            name: tuple(None if isinstance(cell, str) else cell[i] for cell in cells)
            for i, name in enumerate(self.values)
        }
        return Grid(self.axes, self.settings, values, refused, self.version)

    def about(self) -> dict[str, Any]:
        """Return what grid this is, without its numbers, as JSON can hold it."""
        axes = {name: [plain(value) for value in values] for name, values in self.axes.items()}
        settings = {name: plain(value) for name, value in self.settings.items()}
        known = {"format": FORMAT, "pipesched": self.version, "axes": axes, "settings": settings}
        return known | {"metrics": list(self.values)}

    def to_csv(self) -> str:
        """Return the table as CSV: axes, metrics, ``refused``, then the settings that are the same throughout."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*self.axes, *self.values, "refused", *self.settings))
        same = [_blank(plain(value)) for value in self.settings.values()]
        writer.writerows([*(_blank(plain(value)) for value in row.values()), *same] for row in self.table())
        return file.getvalue()

    @classmethod
    def from_csv(cls, content: str) -> "Grid":
        """Read what ``to_csv`` wrote.

        Raises
        ------
        ScenarioError
            If it is not such a table, whole and in its order.
        """
        with _reading():
            header, *rows = csv.reader(io.StringIO(content))
            end = header.index("refused")
            names = [name for name in header[:end] if name in SETTINGS]
            axes = {name: tuple(dict.fromkeys(_read(name, row[i]) for row in rows)) for i, name in enumerate(names)}
            settings = {name: _read(name, rows[0][i]) for i, name in enumerate(header) if i > end}
            empty = cls(axes, settings, {name: () for name in header[len(names) : end]}, {})
            found = [tuple(_read(name, row[i]) for i, name in enumerate(names)) for row in rows]
            if found != list(product(*axes.values())):
                raise ValueError
            return empty.filled([row[end] or tuple(map(_number, row[len(names) : end])) for row in rows])

    def to_json(self) -> str:
        """Return the grid as JSON: ``about()``, each metric as nested lists (null: refused), and the reasons."""
        values = {name: _nested(list(numbers), self.shape) for name, numbers in self.values.items()}
        reasons = [{"index": list(index), "why": why} for index, why in self.refused.items()]
        return json.dumps(self.about() | {"metrics": values, "refused": reasons}, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, content: str) -> "Grid":
        """Read what ``to_json`` wrote.

        Raises
        ------
        ScenarioError
            If it is something else.
        """
        with _reading():
            known = json.loads(content)
            empty = _empty(cls, known)
            values = {name: tuple(_flat(lists, len(empty.axes))) for name, lists in known["metrics"].items()}
            reasons = {tuple(item["index"]): str(item["why"]) for item in known["refused"]}
            if any(len(numbers) != prod(empty.shape) for numbers in values.values()):
                raise ValueError
            return cls(empty.axes, empty.settings, values, reasons, empty.version)

    def to_npz(self) -> bytes:
        """Return a .npz file: an array per metric by its name, one per axis as ``axis_…``, ``refused`` and ``about``.

        Raises
        ------
        ImportError
            If NumPy is not installed.
        """
        import numpy as np

        reasons = np.array([self.refused.get(index, "") for index in product(*map(range, self.shape))], str)
        axes = {
            f"axis_{name}": np.array([plain(value) if isinstance(value, tuple) else value for value in values])
            if all(isinstance(value, int | str) for value in values)
            else np.array([str(plain(value)) for value in values])
            for name, values in self.axes.items()
        }
        about = np.array(json.dumps(self.about()))
        file = io.BytesIO()
        arrays: dict[str, Any] = {**self.metrics, **axes, "refused": reasons.reshape(self.shape), "about": about}
        np.savez(file, **arrays)
        return file.getvalue()

    @classmethod
    def from_npz(cls, content: bytes) -> "Grid":
        """Read what ``to_npz`` wrote.

        Raises
        ------
        ScenarioError
            If it is something else.
        ImportError
            If NumPy is not installed.
        """
        import numpy as np

        with _reading(), np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            known = json.loads(str(arrays["about"]))
            empty = _empty(cls, known)
            reasons = [str(reason) for reason in arrays["refused"].ravel()]
            columns = [[_whole(float(value)) for value in arrays[name].ravel()] for name in empty.values]
            rows = zip(*columns, strict=True) if columns else [()] * len(reasons)
            return empty.filled([why or row for why, row in zip(reasons, rows, strict=True)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``path``, whole or not at all, as its ending says: .csv, .json or .npz.

        Raises
        ------
        ScenarioError
            For another ending.
        """
        write, _ = _form(path)
        content = write(self)
        write_whole(Path(path), content.encode() if isinstance(content, str) else content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Grid":
        """Read a file that ``save`` wrote.

        Raises
        ------
        ScenarioError
            If it is something else.
        """
        _, read = _form(path)
        return read(Path(path).read_bytes())


FORMS: dict[str, tuple[Callable[[Grid], str | bytes], Callable[[bytes], Grid]]] = {
    ".csv": (Grid.to_csv, lambda content: Grid.from_csv(content.decode())),
    ".json": (Grid.to_json, lambda content: Grid.from_json(content.decode())),
    ".npz": (Grid.to_npz, Grid.from_npz),
}


def _form(path: str | os.PathLike[str]) -> tuple[Callable[[Grid], str | bytes], Callable[[bytes], Grid]]:
    ending = Path(path).suffix.lower()
    if ending not in FORMS:
        raise ScenarioError("out", "error.schedule", {"given": ending or Path(path).name, "names": ", ".join(FORMS)})
    return FORMS[ending]


def write_whole(path: Path, content: bytes) -> None:
    """Give ``path`` its new content at once: whoever looks sees the old file or the whole new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def unknown_metrics(names: Sequence[str]) -> list[str]:
    """Return which of ``names`` are no metrics.

    >>> unknown_metrics(["makespan", "bubble"])
    ['bubble']
    """
    known = {item.name for item in fields(Metrics)}
    return [name for name in names if name not in known]


@contextmanager
def _reading() -> Iterator[None]:
    """Whatever is odd about a file, it is not a grid."""
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError, OSError) as error:
        raise ScenarioError("file", "error.not_a_grid") from error


def _empty(cls: type[Grid], known: Mapping[str, Any]) -> Grid:
    """Return the grid that ``about`` speaks of, without numbers."""
    if known["format"] != FORMAT:
        raise ValueError
    axes = {name: tuple(_read(name, value) for value in values) for name, values in known["axes"].items()}
    settings = {name: _read(name, value) for name, value in known["settings"].items()}
    return cls(axes, settings, {name: () for name in known["metrics"]}, {}, known["pipesched"])


def _read(name: str, value: Any) -> Any:
    return getattr(Scenario(**{name: value}), name)


def _number(text: str) -> Number:
    if not text:
        return None
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _whole(value: float) -> Number:
    if value != value:
        return None
    return int(value) if value.is_integer() else value


def _blank(value: Any) -> Any:
    return "" if value is None else value


def _nested(values: list[Number], shape: tuple[int, ...]) -> Any:
    """Cut a flat list into lists of lists.

    >>> _nested([1, 2, 3, 4, 5, 6], (2, 3))
    [[1, 2, 3], [4, 5, 6]]
    """
    for size in reversed(shape[1:]):
        values = [values[i : i + size] for i in range(0, len(values), size)]  # type: ignore[misc]  # lists of lists
    return values if shape else values[0]


def _flat(lists: Any, depth: int) -> Iterator[Number]:
    if depth == 0:
        yield lists
        return
    for part in lists:
        yield from _flat(part, depth - 1)
