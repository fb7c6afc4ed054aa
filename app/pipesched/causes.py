"""A Timeline goes in, why its devices idle comes out: every idle tick of every device has exactly one sort.

A gap is a time in which a device runs nothing. It is cut into shares; of the sorts that fit a tick the first one of
this list is its own:

``finished``      after the last operation of the device (all of the makespan where it has none)
``fill``          before the first one: whatever it waits for, nothing has reached the device yet
``latency``       a value is under way: the one that the device waits for, one that the chain behind it waited for in
                  the meantime, or one that the device itself has to send first (where sending blocks)
``slow_stage``    starved by a stage with more work per micro-batch than the heaviest one of the device's own. It is
                  looked for in the awaited operation and in those behind it, as far as each waited for a value of
                  another device; the one that its own device kept waiting is the last
``order``         a later operation of the row that is no forward had all its values: only the order of the schedule
                  holds it back (a weight gradient that was put off, say)
``memory_limit``  a later forward had all its values, and the memory limit that the schedule keeps to forbids it
``drain``         waits for the gradient of the next stage, and the device has no forwards left
``backward``      waits for the gradient of the next stage; at most forwards could have run, which would cost memory
``order``         (again) waits for an activation while another forward had all its values
``forward``       waits for the activation of the previous stage or of the previous token, and nothing else could run
``unmodelled``    only in a measured timeline (measured.py): device and values were ready, and still nothing started

What could have run is an operation later in the row whose values were on the device, which takes time, and is no weight
update: an update has to come after the gradients it adds up. Work per stage is that of metrics.work_per_stage.

The sorts are this project's own; the parts of a bubble that papers name (GPipe s2.3, Megatron-LM s2.2.1: the pipe fills
and drains) are ``fill``, ``drain``, ``backward`` and ``finished``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from pipesched.explain import name
from pipesched.metrics import arrivals, peak_memory, work_per_stage
from pipesched.model import Cell, Gap, Message, Timeline
from pipesched.rules import Values

Sort = Literal[
    "fill", "latency", "slow_stage", "order", "memory_limit", "drain", "backward", "forward", "finished",
    "unmodelled",
]  # fmt: skip
SORTS: tuple[Sort, ...] = get_args(Sort)
"""All sorts, as they are listed."""


class Share(NamedTuple):
    """The part of a gap from ``start`` to ``end`` (ticks) that has one ``sort``."""

    sort: Sort
    start: int
    end: int


class Place(NamedTuple):
    """Where an operation stands: the ``i``-th of the row of ``device``."""

    device: int
    i: int


class Limit(NamedTuple):
    """At most ``most`` activations on a device; of each, ``kept`` stays from its I to its W, the rest leaves with I."""

    most: int
    kept: Fraction | int = 1


@dataclass(frozen=True)
class Study:
    """What the gaps of a timeline are sorted by; made once, in time linear in the number of operations.

    ``arrivals[device][i]`` is the tick at which all values of a cell are on its device. The columns that begin with
    ``soonest`` are one longer than the row: at ``i``, the smallest arrival of a cell that could run from place ``i`` on
    (``timeline.end + 1``: of none), of those with and of those without a forward.
    """

    timeline: Timeline
    values: Values
    limit: Limit | None
    arrivals: list[list[int]]
    soonest_forward: list[list[int]]
    soonest_other: list[list[int]]
    heaviest: list[list[int]]
    """Per place: the most work of a stage among the operations that ``slow_stage`` looks at."""
    own: list[int]
    """Per device: the most work of a stage of its own."""
    senders: frozenset[Place]
    """The places that hold up their device to send; empty unless sending blocks."""
    full: list[set[int]]
    """Per device: the places before which one more activation would exceed the limit."""
    last_forward: list[int]
    """Per device: the place of its last forward, -1: it has none."""


def study(timeline: Timeline, limit: Limit | None = None, doubts: Sequence[int] = ()) -> Study:
    """Look up what the gaps of a finished ``timeline`` are sorted by; ``limit``: what the schedule had to keep to.

    ``doubts``: per stage, by how many ticks its work may differ from what is known of it (none: exact); a stage is
    slower than another where it is so in any case.
    """
    values, work = Values(timeline.schedule), work_per_stage(timeline)
    doubts = doubts or [0] * len(work)
    least, most = ([ticks + sign * doubt for ticks, doubt in zip(work, doubts, strict=True)] for sign in (-1, 1))
    columns, rows = _arrivals(timeline), timeline.schedule.rows
    forward = [_soonest(timeline, row, column, True) for row, column in zip(rows, columns, strict=True)]
    other = [_soonest(timeline, row, column, False) for row, column in zip(rows, columns, strict=True)]
    return Study(
        timeline,
        values,
        limit,
        columns,
        forward,
        other,
        _heaviest(timeline, least),
        [max((most[op.stage] for cell in row for op in cell.ops), default=0) for row in rows],
        senders(timeline),
        [_full(row, limit) if limit else set() for row in rows],
        [max((i for i, cell in enumerate(row) if any(op.kind == "F" for op in cell.ops)), default=-1) for row in rows],
    )


def effort(timeline: Timeline) -> int:
    """Return about how many operations are looked at to sort all gaps: each once, and where hops take time, chains too.

    A chain is followed for as long as the gap lasts, which makes a device of many that work one at a time expensive.
    """
    count, latency = len(timeline.position), timeline.costs.latency
    if not latency:
        return count
    busy = sum(sum(ends) - sum(starts) for starts, ends in zip(timeline.starts, timeline.ends, strict=True))
    idle = timeline.schedule.devices * timeline.end - busy
    return count + idle * count // (busy + latency * count)


def shares(study: Study, gap: Gap) -> list[Share]:
    """Cut ``gap`` into shares of one sort each, in order; together they are the gap.

    >>> from pipesched.run import run
    >>> timeline = run(schedule="gpipe", devices=2, micro_batches=1).timeline
    >>> [share for gap in timeline.gaps(0) for share in shares(study(timeline), gap)]
    [Share(sort='drain', start=1, end=4)]
    """
    if gap.before is None:
        return [Share("finished", gap.start, gap.end)]
    ready = max(_free(study, gap, gap.before), study.arrivals[gap.device][gap.before])
    if ready < gap.end:  # in what was measured; a simulated operation starts when it can
        before = [*shares(study, gap._replace(end=ready))] if ready > gap.start else []
        return [*before, Share("unmodelled", ready, gap.end)]
    if gap.before == 0:
        return [Share("fill", gap.start, gap.end)]
    reasons = _reasons(study, gap, gap.before)
    found: list[Share] = []
    for start, end, travels in _pieces(study, gap, gap.before):
        if travels:
            found.append(Share("latency", start, end))
            continue
        cuts = sorted({start, end, *(tick for _, tick in reasons if start < tick < end)})
        for low, high in pairwise(cuts):
            found.append(Share(next(sort for sort, tick in reasons if tick <= low), low, high))
    return _joined(found)


def totals(study: Study) -> dict[Sort, int]:
    """Return the idle ticks of all devices per sort; they add up to K times the makespan less the working time.

    >>> from pipesched import run
    >>> {sort: ticks for sort, ticks in totals(run(devices=2, micro_batches=3).study).items() if ticks}
    {'fill': 1, 'finished': 1}
    """
    timeline, sums = study.timeline, dict.fromkeys(SORTS, 0)
    for device in range(timeline.schedule.devices):
        for gap in timeline.gaps(device):
            for sort, start, end in shares(study, gap):
                sums[sort] += end - start
    return sums


def chain(timeline: Timeline, device: int, i: int) -> Iterator[Place]:
    """Yield the places behind the start of the ``i``-th operation of ``device``, nearest first, back to time 0.

    Each one's end (and the hop after it, where the next one is on another device) fixed the start of the one before.
    """
    cause = timeline.bound_by[device][i]
    while cause is not None:
        place = Place(*timeline.position[cause.ops[0]])
        yield place
        cause = timeline.bound_by[place.device][place.i]


class Chance(NamedTuple):
    """The cell at ``place`` could have started at ``ready`` (ticks), in a gap before its turn."""

    place: Place
    ready: int


def could_have_run(study: Study, gap: Gap) -> list[Chance]:
    """List what had its values in ``gap`` and stands later in the row, in the order of the row.

    Where the device still sends when the gap begins, only what could have run after that.
    """
    if gap.before is None:
        return []
    timeline, device = study.timeline, gap.device
    free = _free(study, gap, gap.before)
    chances: list[Chance] = []
    for i in range(gap.before + 1, len(timeline.starts[device])):
        ready = max(free, study.arrivals[device][i])
        if ready < gap.end and _could_run(timeline, timeline.schedule.rows[device][i]):
            chances.append(Chance(Place(device, i), ready))
    return chances


def why_not(study: Study, gap: Gap, chance: Chance, schedule: str) -> Message:
    """Say which rule of ``schedule`` (a name in the registry) kept ``chance`` from running in ``gap``.

    Either the memory it would cost: the most activations that the device would then hold, where it holds fewer now or
    must not hold more; or else nothing but the order.
    """
    timeline, before, i = study.timeline, gap.before, chance.place.i
    assert before is not None  # a device that is done has no chances
    row = timeline.schedule.rows[gap.device]
    moved = (*row[:before], row[i], *row[before:i], *row[i + 1 :])
    streams = timeline.schedule.streams
    values = {
        "op": name(row[i], streams),
        "ready": timeline.costs.time(chance.ready),
        "next": name(row[before], streams),
        "schedule": Message(f"schedule.{schedule}"),
    }
    if study.limit and peak_memory(moved, study.limit.kept) > study.limit.most:
        return Message("why_not.limit", {**values, "most": study.limit.most})
    would, keeps = peak_memory(moved), peak_memory(row)
    if would > keeps:
        return Message("why_not.memory", {**values, "would": int(would), "keeps": int(keeps)})
    return Message("why_not.order", values)


def senders(timeline: Timeline) -> frozenset[Place]:
    """Return the places whose values are needed on another device, where sending blocks; else none."""
    if not (timeline.costs.blocks and timeline.costs.latency):
        return frozenset()
    values = Values(timeline.schedule)
    leaving = values.leaving(timeline.schedule)
    return frozenset(Place(*place) for op, place in timeline.position.items() if values.product(op) in leaving)


def _arrivals(timeline: Timeline) -> list[list[int]]:
    columns = [[0] * len(starts) for starts in timeline.starts]
    for op, arrived, *_ in arrivals(timeline):
        device, i = timeline.position[op]
        columns[device][i] = max(columns[device][i], arrived)
    return columns


def _could_run(timeline: Timeline, cell: Cell) -> bool:
    return timeline.costs.of(cell) > 0 and all(op.kind != "U" for op in cell.ops)


def _soonest(timeline: Timeline, row: Sequence[Cell], arrivals: list[int], forwards: bool) -> list[int]:
    soonest = [timeline.end + 1] * (len(arrivals) + 1)
    for i in range(len(arrivals) - 1, -1, -1):
        fits = any(op.kind == "F" for op in row[i].ops) == forwards and _could_run(timeline, row[i])
        soonest[i] = min(arrivals[i], soonest[i + 1]) if fits else soonest[i + 1]
    return soonest


def _heaviest(timeline: Timeline, work: Sequence[int]) -> list[list[int]]:
    heaviest = [[0] * len(starts) for starts in timeline.starts]
    for op, (device, i) in timeline.position.items():  # in the order they were simulated: causes come first
        most, cause = max(work[op.stage], heaviest[device][i]), timeline.bound_by[device][i]
        if cause is not None:
            home, place = timeline.position[cause.ops[0]]
            most = max(most, heaviest[home][place]) if home != device else most
        heaviest[device][i] = most
    return heaviest


def _full(row: Sequence[Cell], limit: Limit) -> set[int]:
    unit, kept = Fraction(limit.kept).denominator, Fraction(limit.kept).numerator  # in whole parts of an activation
    change, level = {"F": unit, "B": -unit, "I": kept - unit, "W": -kept}, 0
    full = set()
    for i, cell in enumerate(row):
        if level + unit > limit.most * unit:
            full.add(i)
        level += sum(change.get(op.kind, 0) for op in cell.ops)
    return full


def _free(study: Study, gap: Gap, before: int) -> int:
    """Return when the device could run again: at the start of the gap, or once it has sent what it made."""
    sends = Place(gap.device, before - 1) in study.senders
    return min(gap.end, gap.start + study.timeline.costs.latency) if sends else gap.start


def _pieces(study: Study, gap: Gap, before: int) -> list[tuple[int, int, bool]]:
    """Cut the gap into (start, end, whether a value travels then), in order."""
    timeline, free = study.timeline, _free(study, gap, before)
    pieces: list[tuple[int, int, bool]] = []
    end, place = gap.end, Place(gap.device, before)
    while end > free:
        cause = timeline.bound_by[place.device][place.i]
        if cause is None or not timeline.costs.latency:  # without hops the chain need not be followed
            pieces.append((free, end, False))
            break
        place = Place(*timeline.position[cause.ops[0]])
        done, began = (min(end, column[place.device][place.i]) for column in (timeline.ends, timeline.starts))
        arrived = min(end, done + timeline.costs.latency)  # the end, unless measured
        pieces.append((max(free, arrived), end, False))
        pieces.append((max(free, done), max(free, arrived), True))
        pieces.append((max(free, began), max(free, done), False))
        end = began
    pieces.append((gap.start, free, True))
    return [piece for piece in reversed(pieces) if piece[0] < piece[1]]


def _reasons(study: Study, gap: Gap, before: int) -> list[tuple[Sort, int]]:
    """List the sorts, most important first, that fit the gap where nothing travels, each with the tick it fits from."""
    timeline, device, after = study.timeline, gap.device, before + 1
    cause = timeline.bound_by[device][before]
    if cause is None:
        return [("forward", gap.start)]  # not reached: what waits for nothing starts at once
    home, place = timeline.position[cause.ops[0]]
    if study.heaviest[home][place] > study.own[device]:
        return [("slow_stage", gap.start)]
    reasons: list[tuple[Sort, int]] = [("order", study.soonest_other[device][after])]
    forward = study.soonest_forward[device][after]
    if not _awaits_gradient(study, device, before, cause):
        return [*reasons, ("order", forward), ("forward", gap.start)]
    if before in study.full[device]:
        reasons.append(("memory_limit", forward))
    return [*reasons, ("drain" if before > study.last_forward[device] else "backward", gap.start)]


def _awaits_gradient(study: Study, device: int, i: int, cause: Cell) -> bool:
    """Say whether the value that the cell waited for longest is a gradient that ``cause`` made."""
    timeline, values = study.timeline, study.values
    arrived, latency = study.arrivals[device][i], timeline.costs.latency
    awaited = {base + op.micro_batch for op in timeline.schedule.rows[device][i].ops for base in values.needs(*op)}
    for op in cause.ops:
        product = values.product(op)
        if product is not None and product in awaited:
            end, home, _ = timeline.made[product]
            if end + latency * (home != device) == arrived:
                return op.kind != "F"
    return False


def _joined(parts: list[Share]) -> list[Share]:
    """Make one of neighbours that have the same sort."""
    joined: list[Share] = []
    for part in parts:
        if joined and joined[-1].sort == part.sort:
            joined[-1] = joined[-1]._replace(end=part.end)
        else:
            joined.append(part)
    return joined
