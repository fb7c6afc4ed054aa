"""The words of the field as immutable types: what everything else takes in and hands out.

Vocabulary (the only place where the names are defined)
    device       a processor with its own memory; K = number of devices, counted 0 .. K-1 in code
    stage        a consecutive group of layers; S = v * K stages, counted 0 .. S-1
    chunk        one of the v stages that share a device; v = 1 in one-chunk schedules
    micro-batch  a slice of the mini-batch that travels the pipe on its own; M of them, counted 0 .. M-1
    hop          a transfer between two different devices; it takes time but occupies neither

    kind         a letter, PyTorch's: F forward, B full backward, I input gradient, W weight gradient (B = I + W).
                 Zero-bubble papers write B for our I; DeepSeek writes B for ours and W for its weight part.

Code counts from 0, as the notations of the field do (``2F0``: stage 2, forward, micro-batch 0). Whatever a *person*
reads or types counts from 1: words.py adds the one, scenario.py takes it off, nobody else does either.

Time is exact. Costs turns every duration into whole *ticks* of a common fraction of the unit the person used, all
arithmetic is on these integers, and only what leaves the library is divided: a whole number stays an ``int``, anything
else becomes the ``float`` nearest to the exact quotient.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any, NamedTuple


class Message(NamedTuple):
    """What is to be said, without the words: a catalogue key and the values for its placeholders."""

    key: str
    params: Mapping[str, Any] = {}

    def __str__(self) -> str:
        from pipesched.words import sentence  # only to show a message outside page and command line

        return sentence(self, "en")


class ScenarioError(ValueError):
    """A setting cannot be used: which ``field``, why (``message``), and ``repairs``, settings that would work."""

    def __init__(
        self, field: str, key: str, params: Mapping[str, Any] | None = None, repairs: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.field = field
        self.message = Message(key, {"field": field, **(params or {})})
        self.repairs = tuple(repairs)
        super().__init__(field, key)

    def __str__(self) -> str:
        return str(self.message)


class Op(NamedTuple):
    """One block of work: ``kind`` of ``micro_batch`` on ``stage``.

    >>> str(Op(2, "F", 0))
    '2F0'
    """

    stage: int
    kind: str
    micro_batch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.micro_batch}"

    @property
    def ops(self) -> "tuple[Op, ...]":
        """Itself: what a cell of a device's row holds, one operation or an overlapped pair, is asked the same way."""
        return (self,)


class Pair(NamedTuple):
    """A forward and a backward run as one block (DualPipe's F&B): one duration, both values at its end.

    >>> str(Pair(Op(1, "F", 1), Op(0, "B", 0)))
    '(1F1;0B0)OVERLAP_F_B'
    """

    first: Op
    second: Op

    def __str__(self) -> str:
        return f"({self.first};{self.second})OVERLAP_{self.first.kind}_{self.second.kind}"

    @property
    def ops(self) -> tuple[Op, ...]:
        """The two operations."""
        return (self.first, self.second)


Cell = Op | Pair


@dataclass(frozen=True)
class Schedule:
    """The order of each device and nothing else: ``rows[device]`` is what it runs, first to last.

    Where a stage lives follows from the rows, so looped, V-shaped and two-way placements need no special case.
    """

    rows: tuple[tuple[Cell, ...], ...]

    @property
    def devices(self) -> int:
        """K, the number of devices."""
        return len(self.rows)

    @cached_property
    def stages(self) -> int:
        """S, one more than the largest stage that appears (0 for an empty schedule)."""
        return 1 + max((op.stage for row in self.rows for cell in row for op in cell.ops), default=-1)

    @cached_property
    def micro_batches(self) -> int:
        """M, one more than the largest micro-batch that appears (0 for an empty schedule)."""
        return 1 + max((op.micro_batch for row in self.rows for cell in row for op in cell.ops), default=-1)


@dataclass(frozen=True)
class Costs:
    """How long things take, in whole ticks; ``ticks_per_unit`` of them make one unit of the person's time.

    ``durations[kind][stage]`` is the length of an operation, ``latency`` that of a hop between two devices.
    """

    durations: Mapping[str, tuple[int, ...]]
    latency: int
    ticks_per_unit: int

    @classmethod
    def exact(
        cls,
        forward: Sequence[Fraction | int],
        input_grad: Sequence[Fraction | int],
        weight_grad: Sequence[Fraction | int],
        comm: Fraction | int = 0,
    ) -> "Costs":
        """Make costs from durations per stage (sequences of length S, any unit) and the latency of a hop.

        >>> Costs.exact([1, Fraction("1.5")], [1, 1], [1, 1]).durations["F"]
        (2, 3)
        """
        ticks = lcm(*(Fraction(t).denominator for t in (*forward, *input_grad, *weight_grad, comm)))

        def whole(times: Sequence[Fraction | int]) -> tuple[int, ...]:
            return tuple(int(t * ticks) for t in times)

        f, i, w = whole(forward), whole(input_grad), whole(weight_grad)
        b = tuple(x + y for x, y in zip(i, w, strict=True))
        return cls({"F": f, "B": b, "I": i, "W": w}, int(comm * ticks), ticks)

    def of(self, cell: Cell) -> int:
        """Return the ticks that ``cell`` occupies its device; a pair takes as long as its two operations."""
        if isinstance(cell, Op):
            return self.durations[cell.kind][cell.stage]
        return self.of(cell.first) + self.of(cell.second)

    def time(self, ticks: int) -> int | float:
        """Return ``ticks`` in the person's unit: an int where it is whole, else the nearest float."""
        whole, rest = divmod(ticks, self.ticks_per_unit)
        return ticks / self.ticks_per_unit if rest else whole


class Interval(NamedTuple):
    """``op`` ran on ``device`` from ``start`` to ``end`` (units of time); the end of ``bound_by`` fixed the start.

    ``bound_by`` is the operation this one had to wait for longest: the one before it on the device, or the maker of a
    value it needs. It is None for a start at time 0.
    """

    device: int
    op: Cell
    start: int | float
    end: int | float
    bound_by: Cell | None


class Gap(NamedTuple):
    """``device`` ran nothing from ``start`` to ``end`` (ticks); ``before`` is the position it then ran, None: done."""

    device: int
    start: int
    end: int
    before: int | None


@dataclass(frozen=True)
class Timeline:
    """When everything happened: columns of ticks, one list per device, aligned with ``schedule.rows``.

    ``bound_by[device][i]`` says which cell's end fixed ``starts[device][i]``, so a critical path and "why idle?" are
    look-ups and never comparisons of floats. A deadlocked run has columns shorter than its rows.
    """

    schedule: Schedule
    costs: Costs
    starts: list[list[int]]
    ends: list[list[int]]
    bound_by: list[list[Cell | None]]
    position: dict[Op, tuple[int, int]] = field(repr=False)
    """Where each operation ran: its device and its place in the row."""

    @cached_property
    def end(self) -> int:
        """The makespan in ticks, from time 0 to the end of the last operation."""
        return max((ends[-1] for ends in self.ends if ends), default=0)

    @property
    def intervals(self) -> Iterator[Interval]:
        """Every block, device by device in order, made on demand."""
        time = self.costs.time
        for device, columns in enumerate(zip(self.schedule.rows, self.starts, self.ends, self.bound_by, strict=True)):
            for cell, start, end, bound_by in zip(*columns, strict=False):  # a deadlock leaves rows unfinished
                yield Interval(device, cell, time(start), time(end), bound_by)

    def gaps(self, device: int) -> Iterator[Gap]:
        """Yield the times in which ``device`` runs nothing, in order; the last one may be that it is done."""
        free = 0
        for i, (start, end) in enumerate(zip(self.starts[device], self.ends[device], strict=True)):
            if start > free:
                yield Gap(device, free, start, i)
            free = end
        if free < self.end:
            yield Gap(device, free, self.end, None)

    def gap_at(self, device: int, tick: int) -> Gap | None:
        """Return the gap of ``device`` that ``tick`` lies in, None where it runs something."""
        i = self.at(device, tick)
        start = self.ends[device][i] if i >= 0 else 0
        is_last = i + 1 == len(self.starts[device])
        end = self.end if is_last else self.starts[device][i + 1]
        return Gap(device, start, end, None if is_last else i + 1) if start <= tick < end else None

    def at(self, device: int, tick: int) -> int:
        """Return the position of the last block of ``device`` that started at or before ``tick``; -1: none has."""
        return bisect_right(self.starts[device], tick) - 1

    def arrival(self, op: Op, device: int) -> int:
        """Return the tick at which what ``op`` made is usable on ``device``."""
        home, i = self.position[op]
        return self.ends[home][i] + (self.costs.latency if home != device else 0)


class DeadlockError(ValueError):
    """The order cannot be finished: some devices wait for each other, or for an operation that never comes.

    ``waiting`` maps each unfinished device to the operation it stands before; ``timeline`` holds what ran until then.
    """

    def __init__(self, waiting: Mapping[int, Cell], timeline: Timeline) -> None:
        self.waiting = dict(waiting)
        self.timeline = timeline
        where = [Message("deadlock.device", {"device": device, "op": cell}) for device, cell in sorted(waiting.items())]
        self.message = Message("error.deadlock", {"where": where})
        super().__init__(self.message.key)

    def __str__(self) -> str:
        return str(self.message)
