"""A Timeline goes in, what its makespan depends on comes out: the critical path, every operation's slack, what-ifs.

All of it keeps the order of every device as it is. Method: the critical path method of project planning (Kelley and
Walker 1959), whose forward pass the simulation has done; here is the backward pass. Ticks throughout.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from pipesched.causes import Place, chain, senders
from pipesched.metrics import work_per_stage
from pipesched.model import Costs, Timeline
from pipesched.rules import Values
from pipesched.simulate import simulate

FASTER = Fraction(9, 10)
"""How long a stage takes in the what-if, of what it takes now: 10 % less."""


def critical_path(timeline: Timeline) -> list[Place]:
    """Return the operations, first to last, whose lengths and the hops between them add up to the makespan.

    It ends with the operation that ends last, on the first such device; each one's start was fixed by the end of the
    one before it. Where several paths are as long, this is one of them.

    >>> from pipesched.run import run
    >>> [str(run().timeline.schedule.rows[place.device][place.i]) for place in critical_path(run().timeline)]
    ['0F0', '1F0', '2F0', '2F1', '2F2', '2F3']
    """
    last = [(ends[-1], -device) for device, ends in enumerate(timeline.ends) if ends]
    if not last:
        return []
    device = -max(last)[1]
    final = Place(device, len(timeline.ends[device]) - 1)
    return [*reversed(list(chain(timeline, *final))), final]


def slacks(timeline: Timeline) -> list[list[int]]:
    """Return, aligned with the rows, how much later each operation could end without lengthening the makespan.

    All others start as early as they then can. 0 means critical.

    >>> from pipesched.run import run
    >>> slacks(run(stage_times="1 2 1").timeline)
    [[0, 1, 2, 3], [0, 0, 0, 0], [3, 2, 1, 0]]
    """
    costs, rows, values = timeline.costs, timeline.schedule.rows, Values(timeline.schedule)
    latest = [[timeline.end] * len(ends) for ends in timeline.ends]
    sending, done = senders(timeline), None
    for op, (device, i) in reversed(timeline.position.items()):  # whoever waits for a value was simulated after it
        start = latest[device][i] - costs.of(rows[device][i])
        if i and done != (device, i):  # both of an overlapped pair stand in one place
            hop = costs.latency if (device, i - 1) in sending else 0
            latest[device][i - 1] = min(latest[device][i - 1], start - hop)
            done = (device, i)
        for base in values.needs(*op):
            _, _, maker = timeline.made[base + op.micro_batch]
            home, place = timeline.position[maker.ops[0]]
            hop = costs.latency if home != device else 0
            latest[home][place] = min(latest[home][place], start - hop)
    return [
        [late - end for late, end in zip(row, ends, strict=True)]
        for row, ends in zip(latest, timeline.ends, strict=True)
    ]


def spent_per_stage(timeline: Timeline) -> list[int]:
    """Return, per stage, the ticks that its operations take on the critical path; the rest of it are hops.

    >>> from pipesched.run import run
    >>> spent_per_stage(run(stage_times="1 2 1").timeline)
    [1, 8, 1]
    """
    spent = [0] * timeline.schedule.stages
    for device, i in critical_path(timeline):
        cell = timeline.schedule.rows[device][i]
        for op in cell.ops:
            table = timeline.costs.durations if len(cell.ops) == 1 else timeline.costs.paired
            spent[op.stage] += table[op.kind][op.stage]
    return spent


class Gain(NamedTuple):
    """With ``stage`` faster, everything is over ``ticks`` earlier: exact, and with that a fraction of a tick."""

    stage: int
    ticks: Fraction


def gain(timeline: Timeline, stage: int, factor: Fraction = FASTER) -> Gain:
    """Simulate the same order with all operations of ``stage`` taking ``factor`` of their time.

    >>> from pipesched.run import run
    >>> gain(run(micro_batches=20, stage_times="1 2 1").timeline, 1)  # a tenth of 2 for each micro-batch
    Gain(stage=1, ticks=Fraction(4, 1))
    """
    faster = simulate(timeline.schedule, _with(timeline.costs, stage, factor))
    return Gain(stage, timeline.end - Fraction(faster.end, factor.denominator))


def best_gain(timeline: Timeline, most: int) -> Gain | None:
    """Return the gain of the stage that gains most by being faster (the first of several).

    A stage can gain no more than what it shortens the critical path by, so few have to be simulated; None where that
    would be more than ``most`` operations in all.

    >>> from pipesched import run
    >>> best_gain(run(micro_batches=20, stage_times="1 2 1").timeline, most=1000)
    Gain(stage=1, ticks=Fraction(4, 1))
    """
    spent = spent_per_stage(timeline)
    best: Gain | None = None
    for stage in sorted(range(len(spent)), key=lambda stage: (-spent[stage], stage)):
        if best and best.ticks >= spent[stage] * (1 - FASTER):
            break
        most -= len(timeline.position)
        if most < 0:
            return None
        new = gain(timeline, stage)
        best = new if best is None or (new.ticks, -new.stage) > (best.ticks, -best.stage) else best
    return best


def turning_point(
    timeline: Timeline, slow: int, factor: Fraction | int, low: int = 1, high: int = 4
) -> Fraction | None:
    """Return how slow the stage ``slow`` has to be to become the bottleneck; None outside ``low`` to ``high``.

    With work ``w_s`` per micro-batch and stage, without the ``factor`` that ``slow`` is slowed by at present, it has
    the most work from ``max(w_s for s != slow) / w_slow`` on.

    >>> from pipesched.run import run
    >>> turning_point(run(stage_times="1 2 3").timeline, 1, 1)
    Fraction(3, 2)
    """
    work = work_per_stage(timeline)
    others = max((ticks for stage, ticks in enumerate(work) if stage != slow), default=0)
    if not others or not work[slow]:
        return None
    point = Fraction(others) * factor / work[slow]
    return point if low <= point <= high else None


def spans(timeline: Timeline, places: Sequence[Place]) -> Iterator[tuple[int, int, int]]:
    """Yield (device, start, end) of ``places`` in order of time; those that follow each other on a device are one."""
    device = start = end = -1
    for place in places:
        begins, ends = timeline.starts[place.device][place.i], timeline.ends[place.device][place.i]
        if (device, end) != (place.device, begins):
            if device >= 0:
                yield device, start, end
            device, start = place.device, begins
        end = ends
    if device >= 0:
        yield device, start, end


def _with(costs: Costs, stage: int, factor: Fraction) -> Costs:
    """Return ``costs`` in ticks finer by the denominator of ``factor``, those of ``stage`` that many times as long."""
    fine = factor.denominator

    def scaled(column: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(time * (factor.numerator if s == stage else fine) for s, time in enumerate(column))

    return replace(
        costs,
        durations={kind: scaled(column) for kind, column in costs.durations.items()},
        paired={kind: scaled(column) for kind, column in costs.paired.items()},
        latency=costs.latency * fine,
        ticks_per_unit=costs.ticks_per_unit * fine,
    )
