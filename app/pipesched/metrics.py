"""A Timeline goes in, its numbers come out, each with one definition, stated beside it.

Everything is summed in whole ticks and divided once at the end, so each number is the exact rational it claims to be,
as an int where it is whole and as the nearest float otherwise.
"""

from dataclasses import dataclass

from pipesched.model import Op, Timeline
from pipesched.rules import needs, produces

Number = int | float


@dataclass(frozen=True)
class Metrics:
    """The numbers of one timeline. Times are in the person's unit; fractions lie between 0 and 1 unless said."""

    makespan: Number
    """Time from 0 to the end of the last operation."""
    sequential_makespan: Number
    """Time without overlap: the length of all operations and of all hops on their way, one after another."""
    first_output: Number
    """End of the first forward on the last stage: until then nothing has come out of the pipe."""
    speedup: Number
    """``sequential_makespan / makespan``; 1 means no gain; at most K where hops take no time."""
    bubble_fraction_of_total: Number
    """Idle share of device time, ``(K makespan - busy) / (K makespan)``. GPipe s2.3: (K-1)/(M+K-1)."""
    bubble_fraction_of_ideal: Number
    """Idle time over working time, ``(K makespan - busy) / busy``; may exceed 1. Megatron-LM s2.2.1: (p-1)/m."""
    bubble_rate_of_span: Number
    """``(K span - busy) / (K span)``, span being ``longest_span``. Zero Bubble s5.3, where all devices are equal."""
    longest_span: Number
    """Over all devices, the longest time from the start of its first to the end of its last operation."""
    busy: tuple[Number, ...]
    """Per device: time spent in operations."""
    utilisation: tuple[Number, ...]
    """Per device: ``busy / makespan``."""
    peak_activations: tuple[int, ...]
    """Per device: the most activations held at once, one per stage and micro-batch, from the start of F to the end of
    the B or W that consumes it. 0 where nothing runs backward: inference keeps none."""
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
    sequential = sum(busy) + timeline.costs.latency * _hops(timeline)
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
        peak_activations=tuple(_peak_activations(timeline, device) for device in range(devices)),
        peak_queue=tuple(peak(waiting) for waiting in queues(timeline)),
        bottleneck_stage=None if len(set(work)) == 1 else work.index(max(work)),
    )


def ratio(part: int, whole: int) -> Number:
    """Divide two tick counts: an int where it is whole, else the nearest float; 0 of an empty timeline."""
    if whole == 0:
        return 0
    return part / whole if part % whole else part // whole


def work_per_stage(timeline: Timeline) -> list[int]:
    """Return, per stage, the ticks that its operations on micro-batch 0 take together."""
    durations, position = timeline.costs.durations, timeline.position
    return [
        sum(durations[kind][stage] for kind in durations if Op(stage, kind, 0) in position)
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
    maker = {produces(op): op for op in timeline.position}
    waits: list[list[Wait]] = [[] for _ in range(timeline.schedule.stages)]
    for op, (device, i) in timeline.position.items():
        if op.kind in kinds:
            values = needs(op, timeline.schedule.stages)
            arrived = max((timeline.arrival(maker[value], device) for value in values), default=0)
            waits[op.stage].append((arrived, timeline.starts[device][i], op.micro_batch))
    return [sorted(stage) for stage in waits]


def peak(waits: list[Wait]) -> int:
    """Return the most intervals that overlap at any moment."""
    return _highest([change for arrived, started, _ in waits for change in ((arrived, 1), (started, -1))])


def _peak_activations(timeline: Timeline, device: int) -> int:
    """Return the most activations ``device`` holds at once; freed before taken where both happen at one moment."""
    freed_by = {}
    for cell, end in zip(timeline.schedule.rows[device], timeline.ends[device], strict=True):
        for op in cell.ops:
            if op.kind in "BW":
                freed_by[op.stage, op.micro_batch] = end
    changes = []
    for cell, start in zip(timeline.schedule.rows[device], timeline.starts[device], strict=True):
        for op in cell.ops:
            if op.kind == "F" and (op.stage, op.micro_batch) in freed_by:
                changes += [(start, 1), (freed_by[op.stage, op.micro_batch], -1)]
    return _highest(changes)


def _highest(changes: list[tuple[int, int]]) -> int:
    """Return the highest running sum of (when, by how much); at one moment what goes down goes first."""
    level = highest = 0
    for _, change in sorted(changes):
        level += change
        highest = max(highest, level)
    return highest


def _hops(timeline: Timeline) -> int:
    """Count the values that travel between devices, each once per device that waits for it."""
    maker = {produces(op): device for op, (device, _) in timeline.position.items()}
    return sum(
        maker[value] != device
        for op, (device, _) in timeline.position.items()
        for value in needs(op, timeline.schedule.stages)
    )
