"""A Schedule and its Costs go in, the Timeline comes out: every operation as early as order and values allow.

Each device runs its row from left to right. The only freedom is to wait, and a device waits exactly for the values
that rules.py names. A device that lacks a value is parked under that value and woken by whoever makes it, so the time
is linear in the number of operations. Values are numbered (``base of what and stage + micro_batch``), for this loop is
what a drag of a slider waits for.
"""

from functools import cache
from typing import NamedTuple

from pipesched.model import Cell, Costs, DeadlockError, Op, Schedule, Timeline
from pipesched.rules import ACTIVATION, Value, needs, produces


class _Step(NamedTuple):
    """What the rules and costs say of a (stage, kind), worked out once: bases of values, and a duration."""

    needs: tuple[int, ...]
    produces: int | None
    duration: int


def simulate(schedule: Schedule, costs: Costs) -> Timeline:
    """Run ``schedule`` and return when everything happened.

    Raises
    ------
    DeadlockError
        If a device waits for a value that no device can still make.

    Examples
    --------
    >>> from pipesched.model import Op
    >>> two = Schedule(((Op(0, "F", 0), Op(0, "F", 1)), (Op(1, "F", 0), Op(1, "F", 1))))
    >>> simulate(two, Costs.exact([1, 2], [0, 0], [0, 0])).ends
    [[1, 2], [3, 5]]
    """
    rows, stages, count, latency = schedule.rows, schedule.stages, schedule.micro_batches, costs.latency
    starts: list[list[int]] = [[] for _ in rows]
    ends: list[list[int]] = [[] for _ in rows]
    bound_by: list[list[Cell | None]] = [[] for _ in rows]
    position: dict[Op, tuple[int, int]] = {}
    made: dict[int, tuple[int, int, Cell]] = {}  # value -> when, on which device, by which cell
    parked: dict[int, list[int]] = {}

    def base(value: Value) -> int:
        return ((value.what == ACTIVATION) * stages + value.stage) * count

    @cache
    def step(stage: int, kind: str) -> _Step:
        op = Op(stage, kind, 0)
        product = produces(op)
        bases = tuple(base(value) for value in needs(op, stages))
        return _Step(bases, None if product is None else base(product), costs.of(op))

    def run(device: int) -> list[int]:
        """Run ``device`` until it lacks a value; return the devices woken on the way."""
        woken: list[int] = []
        row, i = rows[device], len(starts[device])
        free = ends[device][-1] if i else 0
        while i < len(row):
            cell = row[i]
            start, cause, duration = free, row[i - 1] if i else None, 0
            for stage, kind, micro_batch in cell.ops:
                bases, _, length = step(stage, kind)
                duration += length
                for value in bases:
                    source = made.get(value + micro_batch)
                    if source is None:
                        parked.setdefault(value + micro_batch, []).append(device)
                        return woken
                    end, home, maker = source
                    arrival = end if home == device else end + latency
                    if arrival > start:
                        start, cause = arrival, maker
            free = start + duration
            starts[device].append(start)
            ends[device].append(free)
            bound_by[device].append(cause)
            for op in cell.ops:
                position[op] = (device, i)
                product = step(op.stage, op.kind).produces
                if product is not None:
                    made[product + op.micro_batch] = (free, device, cell)
                    woken += parked.pop(product + op.micro_batch, ())
            i += 1
        return woken

    runnable = list(range(len(rows)))
    while runnable:
        runnable += run(runnable.pop())

    timeline = Timeline(schedule, costs, starts, ends, bound_by, position)
    waiting = {device: row[len(starts[device])] for device, row in enumerate(rows) if len(starts[device]) < len(row)}
    if waiting:
        raise DeadlockError(waiting, timeline)
    return timeline
