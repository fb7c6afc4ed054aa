"""A Timeline goes in, its numbers come out, each with one definition, stated beside it.

Everything is summed in whole ticks and divided once at the end, so each number is the exact rational it claims to be,
as an int where it is whole and as the nearest float otherwise.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from pipesched.model import Cell, Op, Schedule, Timeline
from pipesched.rules import Values

Number = int | float


@dataclass(frozen=True)
class Metrics:
    """The numbers of one timeline. Times are in the person's unit; fractions lie between 0 and 1 unless said.

    >>> from pipesched import run
    >>> metrics = run(schedule="1f1b", devices=4, micro_batches=8).metrics
    >>> metrics.makespan, metrics.bubble_fraction_of_total, metrics.peak_activations
    (33, 0.2727272727272727, (4, 3, 2, 1))
    """

    makespan: Number
    """Time from 0 to the end of the last operation."""
    sequential_makespan: Number
    """Time without overlap: the length of all operations and of all hops on their way, one after another."""
    first_output: Number
    """End of the first forward on the last stage: until then nothing has come out of the pipe."""
    speedup: Number
    """``sequential_makespan / makespan``; 1 means no gain; at most K where hops take no time and no pair is overlapped
    for less than its parts."""
    bubble_fraction_of_total: Number
    """Idle share of device time, ``(K makespan - busy) / (K makespan)``. GPipe s2.3: (K-1)/(M+K-1); Chimera, Hanayo."""
    bubble_fraction_of_ideal: Number
    """Idle over working time, ``(K makespan - busy) / busy``; may exceed 1. Megatron-LM s2.2.1: (p-1)/m; Llama 3."""
    bubble_rate_of_span: Number
    """``(K span - busy) / (K span)``, span being ``longest_span``. Zero Bubble s5.3 and Controllable Memory, where all
    devices are equally busy."""
    longest_span: Number
    """Over all devices, the longest time from the start of its first to the end of its last operation. It is what the
    makespan hides where steps follow each other without a barrier (ZB-H2, ZB-V)."""
    busy: tuple[Number, ...]
    """Per device: time spent in operations."""
    utilisation: tuple[Number, ...]
    """Per device: ``busy / makespan``."""
    peak_activations: tuple[int, ...]
    """Per device: the most activations held at once, one per stage and micro-batch, from the start of F to the end of
    the B or W that consumes it; with several chunks each counts the layers of one. 0 where nothing runs backward:
    inference keeps none. With recomputation it is the inputs of the stages that are kept."""
    peak_micro_batches: tuple[Number, ...]
    """Per device: the same in micro-batches of all its layers, ``peak_activations / v``."""
    weight_versions: tuple[Number, ...]
    """Per device: the most copies of its share of the weights that it keeps at once, be it because backwards still need
    an older version (PipeDream) or because it holds stages of both directions (Chimera, DualPipe)."""
    peak_queue: tuple[int, ...]
    """Per stage: the most micro-batches whose activation had arrived and whose forward had not started. In front of
    stage 0 stand all inputs from time 0 on."""
    bottleneck_stage: int | None
    """The stage with the most work per micro-batch (the first of several); None when all have the same."""


def measure(timeline: Timeline) -> Metrics:
    """Return the numbers of a finished timeline.

    >>> from pipesched import Scenario
    >>> from pipesched.run import run
    >>> run(schedule="gpipe", devices=4, micro_batches=8).metrics.bubble_fraction_of_ideal  # (K-1)/M
    0.375
    """
    time, devices, makespan = timeline.costs.time, timeline.schedule.devices, timeline.end
    columns = list(zip(timeline.starts, timeline.ends, strict=True))
    busy = [sum(ends) - sum(starts) for starts, ends in columns]
    span = max((ends[-1] - starts[0] for starts, ends in columns if starts), default=0)
    durations, waits = timeline.costs.durations, list(arrivals(timeline))
    alone = sum(durations[op.kind][op.stage] for op in timeline.position)
    sequential = alone + timeline.costs.latency * sum(hops for *_, hops in waits)
    chunks = max(Fraction(1), Fraction(timeline.schedule.stages, devices or 1))
    peaks = [peak_memory(row) for row in timeline.schedule.rows]
    work = work_per_stage(timeline)
    return Metrics(
        makespan=time(makespan),
        sequential_makespan=time(sequential),
        first_output=time(first_output(timeline)),
        speedup=ratio(sequential, makespan),
        bubble_fraction_of_total=ratio(devices * makespan - sum(busy), devices * makespan),
        bubble_fraction_of_ideal=ratio(devices * makespan - sum(busy), sum(busy)),
        bubble_rate_of_span=ratio(devices * span - sum(busy), devices * span),
        longest_span=time(span),
        busy=tuple(time(ticks) for ticks in busy),
        utilisation=tuple(ratio(ticks, makespan) for ticks in busy),
        peak_activations=tuple(map(int, peaks)),
        peak_micro_batches=tuple(_plain(peak / chunks) for peak in peaks),
        weight_versions=tuple(_plain(copies / chunks) for copies in weight_versions(timeline.schedule)),
        peak_queue=tuple(peak(waiting) for waiting in _queues(timeline, waits, "F")),
        bottleneck_stage=None if len(set(work)) == 1 else work.index(max(work)),
    )


def ratio(part: int, whole: int) -> Number:
    """Divide two tick counts: an int where it is whole, else the nearest float; 0 of an empty timeline."""
    if whole == 0:
        return 0
    return part / whole if part % whole else part // whole


def _plain(value: Fraction) -> Number:
    return ratio(value.numerator, value.denominator)


def work_per_stage(timeline: Timeline) -> list[int]:
    """Return, per stage, the ticks that its operations on micro-batch 0 take together."""
    durations, position = timeline.costs.durations, timeline.position
    return [
        sum(durations[kind][stage] for kind in "FRBIW" if Op(stage, kind, 0) in position)
        for stage in range(timeline.schedule.stages)
    ]


def first_output(timeline: Timeline) -> int:
    """Return the tick at which the first forward of the last stage ended."""
    last = timeline.schedule.stages - 1
    forwards = (Op(last, "F", micro_batch) for micro_batch in range(timeline.schedule.micro_batches))
    places = (timeline.position[op] for op in forwards if op in timeline.position)
    return min((timeline.ends[device][i] for device, i in places), default=timeline.end)


Wait = tuple[int, int, int]
"""Ticks [arrived, started) and the micro-batch that waited between them."""


def queues(timeline: Timeline, kinds: str = "F") -> list[list[Wait]]:
    """Return, per stage, when each micro-batch waited before its operation of one of ``kinds``, by time of arrival.

    A micro-batch has arrived when the last of the values it needs is on the device.
    """
    return _queues(timeline, arrivals(timeline), kinds)


Arrival = tuple[Op, int, int, int]
"""An operation, the ticks at which its last value arrived and at which it started, and how many values had to hop."""


def arrivals(timeline: Timeline) -> Iterator[Arrival]:
    """Yield when the values of each operation that ran were on its device, in the order they were simulated."""
    values, made, latency = Values(timeline.schedule), timeline.made, timeline.costs.latency
    for op, (device, i) in timeline.position.items():
        arrived = hops = 0
        for base in values.needs(*op):
            end, home, _ = made[base + op.micro_batch]
            if home != device:
                end += latency
                hops += 1
            if end > arrived:
                arrived = end
        yield op, arrived, timeline.starts[device][i], hops


def _queues(timeline: Timeline, arrived_ops: Iterable[Arrival], kinds: str) -> list[list[Wait]]:
    waits: list[list[Wait]] = [[] for _ in range(timeline.schedule.stages)]
    for op, arrived, started, _ in arrived_ops:
        if op.kind in kinds:
            waits[op.stage].append((arrived, started, op.micro_batch))
    return [sorted(stage) for stage in waits]


def peak(waits: list[Wait]) -> int:
    """Return the most intervals that overlap at any moment."""
    return _highest([change for arrived, started, _ in waits for change in ((arrived, 1), (started, -1))])


def peak_memory(row: Iterable[Cell], kept: Fraction | int = 1) -> Fraction:
    """Return the most activations that a device running ``row`` holds at once, one per stage and micro-batch.

    An activation is there from the start of F; its whole leaves at the end of B, or all but the share ``kept`` at the
    end of I and that at the end of W (Zero Bubble s2.3: M_B until I, M_W until W; the default counts until W). A device
    runs one block after another, so the order alone decides.
    """
    row = list(row)
    trained = {(op.stage, op.micro_batch) for cell in row for op in cell.ops if op.kind in "BW"}
    level: Fraction | int = 0
    highest: Fraction | int = 0
    freed: dict[str, Fraction | int] = {"B": 1, "I": 1 - kept, "W": kept}
    for cell in row:
        for stage, kind, micro_batch in cell.ops:
            if kind == "F" and (stage, micro_batch) in trained:
                level += 1
        if level > highest:
            highest = level
        for op in cell.ops:
            level -= freed.get(op.kind, 0)
    return Fraction(highest)


def weight_versions(schedule: Schedule) -> list[int]:
    """Return, per device, the most copies of the weights of a stage that it keeps at once, summed over its stages.

    A copy is the newest version of a stage, or one that a micro-batch between its F and its B has computed with.
    """
    return [_versions(row, schedule.update_every) for row in schedule.rows]


def _versions(row: Iterable[Cell], every: int) -> int:
    ops = [op for cell in row for op in cell.ops]
    if not any(op.kind == "U" for op in ops):
        return len({op.stage for op in ops})
    newest: dict[int, int] = {}
    users: dict[int, Counter[int]] = {}
    used: dict[tuple[int, int], int] = {}
    most: dict[int, int] = {}
    for stage, kind, micro_batch in ops:
        version = newest.setdefault(stage, 0)
        in_use = users.setdefault(stage, Counter())
        if kind == "F":
            version = used[stage, micro_batch] = max(micro_batch // every - 1, 0) if every else version
            in_use[version] += 1
        elif kind in "BW" and (stage, micro_batch) in used:
            version = used.pop((stage, micro_batch))
            in_use[version] -= 1
            if not in_use[version]:
                del in_use[version]
        elif kind == "U":
            newest[stage] += 1
        most[stage] = max(most.get(stage, 1), len(in_use.keys() | {newest[stage]}))
    return sum(most.values())


def _highest(changes: list[tuple[int, int]]) -> int:
    """Return the highest running sum of (when, by how much); at one moment what goes down goes first."""
    level = highest = 0
    for _, change in sorted(changes):
        level += change
        highest = max(highest, level)
    return highest
