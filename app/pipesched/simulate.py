"""A Schedule and its Costs go in, the Timeline comes out: every operation as early as order and values allow.

Each device runs its row from left to right. The only freedom is to wait, and a device waits exactly for the values
that rules.py names. A device that lacks a value is parked under that value and woken by whoever makes it, so the time
is linear in the number of operations.
"""

from collections.abc import Callable

from pipesched.model import Cell, Costs, DeadlockError, Op, Schedule, Stuck, Timeline
from pipesched.rules import Values


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
    rows, latency, durations = schedule.rows, costs.latency, costs.durations
    starts: list[list[int]] = [[] for _ in rows]
    ends: list[list[int]] = [[] for _ in rows]
    bound_by: list[list[Cell | None]] = [[] for _ in rows]
    position: dict[Op, tuple[int, int]] = {}
    made: dict[int, tuple[int, int, Cell]] = {}
    parked: dict[int, list[int]] = {}
    values = Values(schedule)
    sends = _senders(schedule, values) if costs.blocks and latency else None
    products = {(stage, kind): values.produces(stage, kind) for kind in durations for stage in range(schedule.stages)}

    def run(device: int) -> list[int]:
        """Run ``device`` until it lacks a value; return the devices woken on the way."""
        woken: list[int] = []
        row, i = rows[device], len(starts[device])
        free = ends[device][-1] if i else 0
        if i and sends and sends(row[i - 1]):
            free += latency
        while i < len(row):
            cell = row[i]
            ops: tuple[Op, ...] = (cell,) if isinstance(cell, Op) else cell
            start, cause = free, row[i - 1] if i else None
            for stage, kind, micro_batch in ops:
                for base in values.needs(stage, kind, micro_batch):
                    source = made.get(base + micro_batch)
                    if source is None:
                        parked.setdefault(base + micro_batch, []).append(device)
                        return woken
                    end, home, maker = source
                    arrival = end if home == device else end + latency
                    if arrival > start:
                        start, cause = arrival, maker
            end = start + (durations[kind][stage] if len(ops) == 1 else costs.of(cell))
            free = end + latency if sends and sends(cell) else end
            starts[device].append(start)
            ends[device].append(end)
            bound_by[device].append(cause)
            for op in ops:
                position[op] = (device, i)
                product = products[op.stage, op.kind]
                if product is not None:
                    product += op.micro_batch
                    made[product] = (end, device, cell)
                    if product in parked:
                        woken += parked.pop(product)
            i += 1
        return woken

    runnable = list(range(len(rows)))
    while runnable:
        runnable += run(runnable.pop())

    stuck = _stuck(schedule, starts, values, made)
    timeline = Timeline(schedule, costs, starts, ends, bound_by, position, made, stuck)
    if stuck:
        raise DeadlockError(_circle(stuck, schedule), timeline)
    return timeline


def _senders(schedule: Schedule, values: Values) -> Callable[[Cell], bool]:
    """Return a test whether what a cell makes is needed on another device than its own."""
    leaving = values.leaving(schedule)
    return lambda cell: any(values.product(op) in leaving for op in cell.ops)


def _stuck(
    schedule: Schedule, starts: list[list[int]], values: Values, made: dict[int, tuple[int, int, Cell]]
) -> dict[int, Stuck]:
    """Return, for each device that did not finish, what it stands before and what would have to run first."""
    unfinished = [device for device, row in enumerate(schedule.rows) if len(starts[device]) < len(row)]
    to_come: dict[int, Cell] = {}
    for device in unfinished:
        for cell in schedule.rows[device][len(starts[device]) :]:
            for op in cell.ops:
                product = values.product(op)
                if product is not None:
                    to_come[product] = cell
    stuck = {}
    for device in unfinished:
        cell = schedule.rows[device][len(starts[device])]
        needed = [base + op.micro_batch for op in cell.ops for base in values.needs(*op)]
        missing = next(number for number in needed if number not in made)
        stuck[device] = Stuck(device, cell, to_come.get(missing))
    return stuck


def _circle(stuck: dict[int, Stuck], schedule: Schedule) -> list[Stuck]:
    """Follow who waits for whom until a device comes up again, or nobody is waited for."""
    homes = {cell: device for device in stuck for cell in schedule.rows[device]}
    path: list[Stuck] = []
    link = next(iter(stuck.values()))
    while link not in path:
        if link.missing is None:
            return [link]
        path.append(link)
        link = stuck[homes[link.missing]]
    return path[path.index(link) :]
