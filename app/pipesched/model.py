"""The words of the field as immutable types: what everything else takes in and hands out.

Vocabulary (the only place where the names are defined)
    device       a processor with its own memory; K = number of devices, counted 0 .. K-1 in code
    stage        a consecutive group of layers; S = v * K stages, counted 0 .. S-1
    chunk        one of the v stages that share a device; v = 1 in one-chunk schedules
    micro-batch  a slice of the mini-batch that travels the pipe on its own; M of them, counted 0 .. M-1
    hop          a transfer between two different devices; it takes time but occupies neither

    kind         a letter, PyTorch's: F forward, B full backward, I input gradient, W weight gradient (B = I + W);
                 ours: R recomputation of a forward whose activations were dropped, U weight update, numbered by the
                 last micro-batch that it includes.
                 Zero-bubble papers write B for our I; DeepSeek writes B for ours and W for its weight part.
    direction    in two-way schedules each device holds two stages, and a micro-batch enters at either end of the pipe

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
from itertools import chain
from math import lcm
from types import MappingProxyType
from typing import Any, NamedTuple


class Message(NamedTuple):
    """What is to be said, without the words: a catalogue key and the values for its placeholders.

    >>> print(Message("op.F", {"stage": 1, "micro_batch": 2}))
    forward of micro-batch 3 on stage 2
    """

    key: str
    params: Mapping[str, Any] = {}

    def __str__(self) -> str:
        from pipesched.words import sentence  # only to show a message outside page and command line

        return sentence(self, "en")


class ScenarioError(ValueError):
    """A setting cannot be used: which ``field``, why (``message``), and ``repairs``, settings that would work.

    >>> error = ScenarioError("devices", "error.whole", {"low": 1, "high": 64, "given": 65}, [{"devices": 64}])
    >>> print(error)
    Devices K: needs a whole number from 1 to 64, not 65.
    """

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

    def label(self, letters: Mapping[str, str] = MappingProxyType({})) -> str:
        """Return what stands on its block: the kind, as ``letters`` write it, and the micro-batch, counted from 1.

        >>> Op(2, "F", 0).label()
        'F1'
        """
        return f"{letters.get(self.kind, self.kind)}{self.micro_batch + 1}"


class Pair(NamedTuple):
    """A forward and a backward run as one block (DualPipe's F&B): one duration, both values at its end.

    >>> str(Pair(Op(1, "F", 1), Op(0, "B", 0)))
    '(1F1;0B0)OVERLAP_F_B'
    """

    first: Op
    second: Op

    def __str__(self) -> str:
        return f"({self.first};{self.second})OVERLAP_F_B"  # PyTorch's name of it, whatever the two are

    @property
    def ops(self) -> tuple[Op, ...]:
        """The two operations."""
        return (self.first, self.second)


Cell = Op | Pair


@dataclass(frozen=True, repr=False)
class Schedule:
    """The order of each device and nothing else: ``rows[device]`` is what it runs, first to last.

    Where a stage lives follows from the rows, so looped, V-shaped and two-way placements need no special case.

    Attributes
    ----------
    streams
        Not 0 in token-by-token decoding: micro-batch ``j`` is then token ``j // streams`` of stream ``j % streams``,
        and enters the pipe only after the token before it has left it.
    update_every
        Not 0 where forwards do not use the newest weights but those of two updates' worth of micro-batches before:
        micro-batch ``j`` computes with version ``max(j // update_every - 1, 0)`` (PipeDream-2BW).

    Examples
    --------
    >>> two = Schedule(((Op(0, "F", 0), Op(0, "F", 1)), (Op(1, "F", 0), Op(1, "F", 1))))
    >>> two, two.stages
    (<Schedule of K=2, S=2, M=2: 4 blocks>, 2)
    """

    rows: tuple[tuple[Cell, ...], ...]
    streams: int = 0
    update_every: int = 0

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

    @cached_property
    def has_pairs(self) -> bool:
        """Whether some operations overlap in pairs."""
        return any(isinstance(cell, Pair) for row in self.rows for cell in row)

    def __repr__(self) -> str:
        blocks = sum(map(len, self.rows))
        return f"<Schedule of K={self.devices}, S={self.stages}, M={self.micro_batches}: {blocks} blocks>"

    def _repr_html_(self) -> str:
        from pipesched.show import schedule_html  # only to show an order in a notebook

        return schedule_html(self)


Units = Sequence[Fraction | int]
"""A time for each stage, in the person's unit."""


@dataclass(frozen=True)
class Costs:
    """How long things take, in whole ticks; ``ticks_per_unit`` of them make one unit of the person's time.

    ``durations[kind][stage]`` is the length of an operation, ``paired`` the same where it is half of an overlapped
    pair; ``latency`` is that of a hop between two devices, which holds up the sender too where sending ``blocks``.

    With tensor parallelism a device is really ``members`` devices that share each stage, and
    ``all_reduce[kind][stage]`` is the part of a duration in which they add up what each has computed.

    >>> costs = Costs.exact([1, 1], [1, 1], [1, 1], comm=Fraction(1, 2))  # forward, input and weight gradient; a hop
    >>> costs.ticks_per_unit, costs.durations["B"], costs.latency, costs.time(costs.latency)
    (2, (4, 4), 1, 0.5)
    """

    durations: Mapping[str, tuple[int, ...]]
    paired: Mapping[str, tuple[int, ...]]
    latency: int
    blocks: bool
    ticks_per_unit: int
    all_reduce: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    paired_all_reduce: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    members: int = 1

    @classmethod
    def exact(
        cls,
        forward: Units,
        input_grad: Units,
        weight_grad: Units,
        comm: Fraction | int = 0,
        *,
        update: Units | None = None,
        recompute_late: bool = False,
        overlap: Fraction | int = 1,
        blocks: bool = False,
        all_reduce: Units | None = None,
        members: int = 1,
    ) -> "Costs":
        """Make costs from durations per stage (sequences of length S, any unit) and the latency of a hop.

        ``update`` is the time of a weight update (none: 0). With ``recompute_late`` a backward starts by running the
        forward again. A pair takes ``overlap`` times as long as its two operations one after the other. ``all_reduce``
        says how much of each forward, and as much of each input gradient, is spent in all-reduces (none: 0).

        >>> Costs.exact([1, Fraction("1.5")], [1, 1], [1, 1]).durations["F"]
        (2, 3)
        """
        given = [forward, input_grad, weight_grad, update or (), all_reduce or ()]
        ratio = Fraction(overlap)
        ticks = lcm(*(Fraction(time).denominator for time in (comm, *chain(*given)))) * ratio.denominator
        f, i, w, u, talk = ([int(time * ticks) for time in times] or [0] * len(forward) for times in given)
        durations = _per_kind(f, i, w, u, recompute_late)
        reduces = _per_kind(talk, talk, [0] * len(talk), [0] * len(talk), recompute_late)
        paired, paired_reduces = (
            {kind: tuple(int(time * ratio) for time in times) for kind, times in table.items()} if ratio != 1 else table
            for table in (durations, reduces)
        )
        return cls(durations, paired, int(comm * ticks), blocks, ticks, reduces, paired_reduces, members)

    def all_reduce_of(self, cell: Cell) -> int:
        """Return the ticks of ``cell`` that go into all-reduces."""
        if not self.all_reduce:
            return 0
        if isinstance(cell, Op):
            return self.all_reduce[cell.kind][cell.stage]
        return sum(self.paired_all_reduce[op.kind][op.stage] for op in cell)

    def of(self, cell: Cell) -> int:
        """Return the ticks that ``cell`` occupies its device."""
        if isinstance(cell, Op):
            return self.durations[cell.kind][cell.stage]
        return sum(self.paired[op.kind][op.stage] for op in cell)

    def time(self, ticks: int) -> int | float:
        """Return ``ticks`` in the person's unit: an int where it is whole, else the nearest float."""
        whole, rest = divmod(ticks, self.ticks_per_unit)
        return ticks / self.ticks_per_unit if rest else whole


def _per_kind(f: list[int], i: list[int], w: list[int], u: list[int], again: bool) -> dict[str, tuple[int, ...]]:
    """Return what each kind takes on each stage; with ``again``, a backward runs the forward once more."""
    more = f if again else [0] * len(f)
    grad = [a + b for a, b in zip(i, more, strict=True)]
    whole = [a + b for a, b in zip(grad, w, strict=True)]
    return {kind: tuple(times) for kind, times in zip("FIBWRU", (f, grad, whole, w, f, u), strict=True)}


class Interval(NamedTuple):
    """``op`` ran on ``device`` from ``start`` to ``end`` (units of time); the end of ``bound_by`` fixed the start.

    ``bound_by`` is the operation this one had to wait for longest: the one before it on the device, or the maker of a
    value it needs. It is None for a start at time 0.

    >>> from pipesched import run
    >>> first, second, *_ = run(devices=2, micro_batches=2).timeline.intervals
    >>> second.device, str(second.op), second.start, second.end, str(second.bound_by)
    (0, '0F1', 1, 2, '0F0')
    """

    device: int
    op: Cell
    start: int | float
    end: int | float
    bound_by: Cell | None


class Gap(NamedTuple):
    """``device`` ran nothing from ``start`` to ``end`` (ticks); position ``before`` comes next, None: it is done.

    >>> from pipesched import run
    >>> list(run(devices=2, micro_batches=2).timeline.gaps(1))
    [Gap(device=1, start=0, end=1, before=0)]
    """

    device: int
    start: int
    end: int
    before: int | None


@dataclass(frozen=True, repr=False)
class Timeline:
    """When everything happened: columns of ticks, one list per device, aligned with ``schedule.rows``.

    ``bound_by[device][i]`` says which cell's end fixed ``starts[device][i]``, so a critical path and "why idle?" are
    look-ups and never comparisons of floats. A deadlocked run has columns shorter than its rows.

    ``made`` says of every value, by the number that rules.py gives it, when, on which device and by which cell it was
    made.

    >>> from pipesched import run
    >>> timeline = run(schedule="1f1b", devices=2, micro_batches=2).timeline
    >>> timeline.starts[0], timeline.ends[0], timeline.end
    ([0, 1, 4, 7], [1, 2, 6, 9], 9)
    """

    schedule: Schedule
    costs: Costs
    starts: list[list[int]]
    ends: list[list[int]]
    bound_by: list[list[Cell | None]]
    position: dict[Op, tuple[int, int]] = field(repr=False)
    """Where each operation ran: its device and its place in the row."""
    made: dict[int, tuple[int, int, Cell]] = field(repr=False)
    stuck: "Mapping[int, Stuck]" = field(default_factory=dict)
    """The devices that wait for ever; empty unless the order deadlocks."""

    @cached_property
    def end(self) -> int:
        """The makespan in ticks, from time 0 to the end of the last operation."""
        return max((ends[-1] for ends in self.ends if ends), default=0)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of the operations that ran."""
        return frozenset(op.kind for op in self.position)

    @property
    def intervals(self) -> Iterator[Interval]:
        """Every block, device by device in order, made on demand."""
        time = self.costs.time
        for device, columns in enumerate(zip(self.schedule.rows, self.starts, self.ends, self.bound_by, strict=True)):
            for cell, start, end, bound_by in zip(*columns, strict=False):  # a deadlock leaves rows unfinished
                yield Interval(device, cell, time(start), time(end), bound_by)

    def __repr__(self) -> str:
        return f"<Timeline of {self.schedule!r} until {self.costs.time(self.end)}>"

    def gaps(self, device: int) -> Iterator[Gap]:
        """Yield the times in which ``device`` runs nothing, in order; the last one may be that it is done."""
        free = 0
        for i, (start, end) in enumerate(zip(self.starts[device], self.ends[device], strict=True)):
            if start > free:
                yield Gap(device, free, start, i)
            free = end
        if free < self.end:
            yield Gap(device, free, self.end, self._next(device, len(self.starts[device])))

    def gap_at(self, device: int, tick: int) -> Gap | None:
        """Return the gap of ``device`` that ``tick`` lies in, None where it runs something."""
        i = self.at(device, tick)
        start = self.ends[device][i] if i >= 0 else 0
        is_last = i + 1 == len(self.starts[device])
        end = self.end if is_last else self.starts[device][i + 1]
        return Gap(device, start, end, self._next(device, i + 1)) if start <= tick < end else None

    def _next(self, device: int, i: int) -> int | None:
        return i if i < len(self.schedule.rows[device]) else None

    def at(self, device: int, tick: int) -> int:
        """Return the position of the last block of ``device`` that started at or before ``tick``; -1: none has."""
        return bisect_right(self.starts[device], tick) - 1


class Stuck(NamedTuple):
    """``device`` stands before ``cell``, which needs what ``missing`` makes; None: nothing in the order makes it."""

    device: int
    cell: Cell
    missing: Cell | None


class DeadlockError(ValueError):
    """The order cannot be finished: some devices wait for each other, or for an operation that never comes.

    ``circle`` holds the devices that wait for each other in a circle, each for the next one and the last for the first,
    or the one device that waits for what nobody makes; ``timeline`` is what ran until then, ``timeline.stuck`` all who
    wait.

    >>> from pipesched import run
    >>> try:
    ...     run(schedule="order", order="0F0 0B0\\n1B0 1F0")
    ... except DeadlockError as error:
    ...     [(link.device, str(link.cell), str(link.missing)) for link in error.circle]
    [(1, '1B0', '1F0')]
    """

    def __init__(self, circle: Sequence[Stuck], timeline: Timeline) -> None:
        self.circle = tuple(circle)
        self.timeline = timeline
        links = [
            Message(
                "deadlock.nobody" if link.missing is None else "deadlock.waits",
                {"device": link.device, "op": str(link.cell), "missing": str(link.missing)},
            )
            for link in circle
        ]
        self.message = Message("error.deadlock", {"where": links})
        super().__init__(self.message.key)

    def __str__(self) -> str:
        return str(self.message)
