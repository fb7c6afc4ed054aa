"""The text of a measurement goes in, a Recording comes out: which operation ran on which device, from when to when.

Three forms are read, and told apart by how they begin:

CSV            a header that names at least device, op, start and end, then a line per operation, as ``Result.csv``
               writes it; other columns are left alone. Commas, semicolons or tabs separate; where no commas do, a comma
               in a number is a decimal comma.
Chrome trace   JSON, as chrome.py reads it.
links          a line per device of ``op_start_end``; a start left out is the end before it. ``Recording.link``.

Operations are those of notation.py, counted from 0. Devices are numbered in the order of their numbers in the text, so
ranks 0, 8, 16 are three devices; one without an operation is not there. Numbers stay exact.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import lcm
from typing import Any, NamedTuple

from pipesched.chrome import FIELD, NUMBER_AT_END, UNFINISHED, spans
from pipesched.model import Cell, Message, Op, Pair, ScenarioError
from pipesched.notation import MOST_DEVICES, MOST_ENTRIES, cell
from pipesched.reading import exact_number, number_text

COLUMNS = {
    "device": ("device", "rank"),
    "op": ("op", "operation", "action"),
    "start": ("start", "begin"),
    "end": ("end", "finish"),
}
NAMED = 5  # this many bad lines are named, the others counted
ROUNDED = Fraction(1, 1000)  # of the shorter of two operations: by this much rounded times may overlap
exact = lru_cache(1 << 16)(exact_number)
"""Most operations begin where another ended."""


class Timed(NamedTuple):
    """An operation as it was measured; ``line`` says where (of a trace: which event, from 1), times are as written."""

    line: int
    device: str
    cell: Cell
    start: Fraction
    end: Fraction


@dataclass(frozen=True)
class Recording:
    """What was measured: per device its operations in the order they began."""

    rows: tuple[tuple[Timed, ...], ...]
    devices: tuple[str, ...]
    """What the text calls each device."""
    left_out: int
    """Transfers, and events of a trace that are no operation."""
    rounded: int
    """How many operations ended a little after the next one began, by rounding, and were cut."""

    @cached_property
    def ticks(self) -> tuple[int, list[list[int]], list[list[int]]]:
        """How many ticks make a unit, and starts and ends in whole ticks, counted from the first start."""
        every = [timed for row in self.rows for timed in row]
        fine = lcm(*{timed.start.denominator for timed in every}, *{timed.end.denominator for timed in every})
        starts = [[t.start.numerator * (fine // t.start.denominator) for t in row] for row in self.rows]
        ends = [[t.end.numerator * (fine // t.end.denominator) for t in row] for row in self.rows]
        first = min(column[0] for column in starts)
        starts, ends = ([[tick - first for tick in column] for column in part] for part in (starts, ends))
        return fine, starts, ends

    @cached_property
    def link(self) -> str:
        """The same as short text, made of characters that an address keeps as they are; ``read`` reads it."""
        fine, *columns = self.ticks
        lines = []
        for row, starts, ends in zip(self.rows, *columns, strict=True):
            entries, free = [], None
            for timed, begin, end in zip(row, starts, ends, strict=True):
                start = "" if begin == free else number_text(Fraction(begin, fine))
                entries.append(f"{'-'.join(map(str, timed.cell.ops))}_{start}_{number_text(Fraction(end, fine))}")
                free = end
            lines.append(" ".join(entries))
        return "\n".join(lines)


class _Faults:
    """Collects what is wrong, line by line."""

    def __init__(self, unit: str) -> None:
        self.unit, self.found = unit, list[tuple[int, Message]]()

    def add(self, line: int, key: str, **params: Any) -> None:
        brief = {name: _brief(value) if isinstance(value, str) else value for name, value in params.items()}
        where = Message(f"measured.at.{self.unit}", {"number": str(line)})
        self.found.append((line, Message(f"measured.{key}", {"where": where, **brief})))

    def check(self) -> None:
        if self.found:
            self.found.sort(key=lambda fault: fault[0])
            lines: list[Message] = [message for _, message in self.found[:NAMED]]
            if len(self.found) > NAMED:
                lines.append(Message("measured.more", {"n": len(self.found) - NAMED}))
            raise ScenarioError(FIELD, "measured.faults", {"lines": lines})


@lru_cache(maxsize=2)
def read(text: str) -> Recording:
    r"""Read a measurement.

    Raises
    ------
    ScenarioError
        That names the bad lines (counted from 1) and what was expected there.

    Examples
    --------
    >>> recording = read("device,op,start,end\n0,0F0,10,11\n1,1F0,11,13")
    >>> [(str(timed.cell), int(timed.start), int(timed.end)) for row in recording.rows for timed in row]
    [('0F0', 10, 11), ('1F0', 11, 13)]
    >>> recording.link
    '0F0_0_1\n1F0_1_3'
    """
    text = text.removeprefix("\ufeff").strip("\0")
    begin = text.lstrip()[:1]
    if not begin:
        raise ScenarioError(FIELD, "measured.empty")
    faults = _Faults("event" if begin in "[{" else "line")
    if begin in "[{":
        found, left_out = _trace(text, faults)
    elif re.match(r"\s*\d+[A-Za-z]\d+[-\w]*_", text):
        found, left_out = _link(text, faults)
    else:
        found, left_out = _table(text, faults)
    if len(found) > MOST_ENTRIES:
        raise ScenarioError(FIELD, "measured.too_long", {"high": MOST_ENTRIES})
    names = _devices(found, faults)
    rows, rounded = _rows(found, names, faults)
    faults.check()
    if not found:
        raise ScenarioError(FIELD, "measured.none")
    return Recording(rows, names, left_out, rounded)


def _table(text: str, faults: _Faults) -> tuple[list[Timed], int]:
    """Read CSV."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), None)
    if first is None:
        raise ScenarioError(FIELD, "measured.empty")
    columns, separator = _header(lines[first], first + 1)
    found, left_out, needed = list[Timed](), 0, max(columns.values()) + 1
    reader = csv.reader(lines[first + 1 :], delimiter=separator, skipinitialspace=True)
    try:
        for row in reader:
            line = first + 1 + reader.line_num
            if not any(map(str.strip, row)) or row[0].lstrip().startswith("#"):
                continue
            if len(row) < needed:
                faults.add(line, "columns", wanted=needed, found=len(row))
                continue
            device, op, start, end = (row[columns[name]].strip() for name in COLUMNS)
            operation = _operation(op, line, faults)
            if operation is None:
                left_out += 1
            elif isinstance(operation, Op | Pair):
                _add(found, faults, line, device, operation, start, end, separator != ",")
    except csv.Error:
        faults.add(first + 1 + reader.line_num, "unreadable", given="")
    return found, left_out


def _header(text: str, line: int) -> tuple[dict[str, int], str]:
    """Return at which column of the header each thing stands, and what separates the columns."""
    for separator in "\t;,":
        names = [name.strip().strip('"').casefold() for name in text.split(separator)]
        columns = {what: names.index(name) for what, ways in COLUMNS.items() for name in ways if name in names}
        if len(columns) == len(COLUMNS):
            return columns, separator
    where = Message("measured.at.line", {"number": str(line)})
    raise ScenarioError(FIELD, "measured.header", {"where": where, "given": _brief(text)})


def _operation(text: str, line: int, faults: _Faults) -> Cell | bool | None:
    """Read what ran; None: a transfer; False: nothing that is known, which is reported."""
    try:
        return cell(text)
    except ScenarioError:
        faults.add(line, "op", given=text)
        return False


def _add(
    found: list[Timed], faults: _Faults, line: int, device: str, ran: Cell, start: Any, end: Any, commas: bool = False
) -> None:
    """Add an operation, unless its times are none."""
    times = []
    for text in (start, end):
        readable = isinstance(text, int | Fraction) or (isinstance(text, str) and (commas or "," not in text))
        time = exact(text) if readable else None
        if time is None:
            faults.add(line, "time", op=str(ran), given=str(text))
            return
        times.append(time)
    if times[1] < times[0]:
        faults.add(line, "backwards", op=str(ran), start=str(start), end=str(end))
        return
    found.append(Timed(line, device, ran, *times))


def _link(text: str, faults: _Faults) -> tuple[list[Timed], int]:
    """Read the form of links."""
    found: list[Timed] = []
    for line, content in enumerate(text.splitlines(), 1):
        free = "0"
        for entry in content.split():
            op, _, times = entry.partition("_")
            start, _, end = times.partition("_")
            pair = op.split("-")
            ran = _operation(f"({';'.join(pair)})OVERLAP_F_B" if len(pair) > 1 else op, line, faults)
            if isinstance(ran, Op | Pair):
                _add(found, faults, line, str(line - 1), ran, start or free, end)
            free = end
    return found, 0


def _trace(text: str, faults: _Faults) -> tuple[list[Timed], int]:
    """Read a Chrome trace."""
    found = list[Timed]()
    events, left_out = spans(text)
    for event in events:
        if event.end is UNFINISHED:
            faults.add(event.number, "unfinished", op=str(event.cell))
        else:
            _add(found, faults, event.number, event.device, event.cell, event.start, event.end)
    return found, left_out


def _devices(found: Iterable[Timed], faults: _Faults) -> tuple[str, ...]:
    """Return what the devices are called, in the order of the numbers in their names."""
    numbers: dict[str, int] = {}
    for timed in found:
        if timed.device not in numbers:
            match = NUMBER_AT_END.fullmatch(timed.device)
            if not match:
                faults.add(timed.line, "device", given=timed.device)
            numbers[timed.device] = int(match[1]) if match else -1
    if len(numbers) > MOST_DEVICES:
        raise ScenarioError(FIELD, "notation.devices", {"high": MOST_DEVICES})
    return tuple(sorted(numbers, key=lambda name: (numbers[name], name)))


def _rows(found: Iterable[Timed], names: Sequence[str], faults: _Faults) -> tuple[tuple[tuple[Timed, ...], ...], int]:
    """Sort by device and time; report what is there twice or overlaps, and cut what does so by rounding."""
    rows: dict[str, list[Timed]] = {name: [] for name in names}
    seen: dict[Op, int] = {}
    for timed in found:
        for op in timed.cell.ops:
            if op in seen:
                faults.add(timed.line, "twice", op=str(op), first=str(seen[op]))
            seen.setdefault(op, timed.line)
        rows[timed.device].append(timed)
    rounded = 0
    for row in rows.values():
        row.sort(key=lambda timed: (timed.start, timed.end))
        for i, timed in _overlapping(row):
            after = row[i + 1]
            if timed.end - after.start > ROUNDED * min(timed.end - timed.start, after.end - after.start):
                values = {"op": str(after.cell), "start": number_text(after.start), "which": timed.device}
                values |= {"other": str(timed.cell), "first": str(timed.line), "end": number_text(timed.end)}
                faults.add(after.line, "overlap", **values)
            else:
                row[i] = timed._replace(end=after.start)
                rounded += 1
    return tuple(map(tuple, rows.values())), rounded


def _overlapping(row: Sequence[Timed]) -> Iterator[tuple[int, Timed]]:
    return ((i, timed) for i, timed in enumerate(row[:-1]) if timed.end > row[i + 1].start)


def _brief(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
