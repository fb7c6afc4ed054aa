"""The text of a measurement and the Timeline that a model predicts go in, a measured Timeline comes out.

The measured timeline is one like any other: drawn by svg.py, counted by metrics.py, explained by causes.py. What fixed
a start, ``bound_by``, is inferred: of the operation before it on the device and those that make what it needs
(rules.py, with the hop of the model), the one that was over last. Where an operation began later still, the rest of the
wait has no cause in the model: ``unmodelled`` in causes.py.

A stage's length is the mean of what was measured; one that never ran alone has the share of its pairs that the model
gives it, half of them where that is of another size. Times are in the unit of the model, one of which is ``scale`` of
the text, and begin with the first operation.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt, lcm
from typing import Any, NamedTuple

from pipesched.chrome import FIELD
from pipesched.model import Cell, Costs, DeadlockError, Op, ScenarioError, Schedule, Timeline
from pipesched.notation import check, write
from pipesched.reading import DIGITS, Number, number_text
from pipesched.recording import Recording, read
from pipesched.rules import Values
from pipesched.scenario import SETTINGS, Scenario
from pipesched.simulate import simulate

APART = 4  # where the working times differ more than this many times, the units do too
GRAIN = 10**12  # one part in this many of the makespan: a float rounds finer, nobody measures finer
Key = tuple[str, int]
"""A kind and a stage."""


class Skew(NamedTuple):
    """``cell`` began ``ticks`` before ``needed``, which makes what it needs, was over: clocks that disagree."""

    cell: Cell
    needed: Cell
    ticks: int


@dataclass(frozen=True)
class Measured:
    """A measured ``timeline``."""

    timeline: Timeline
    recording: Recording
    scale: Fraction
    """How many units of the text are one of the model."""
    doubts: tuple[int, ...]
    """Per stage, ticks: two standard errors of its work per micro-batch, as far as its lengths differ."""
    skews: tuple[Skew, ...]


@lru_cache(maxsize=4)
def measure(text: str, model: "Model", scale: Fraction | None = None) -> Measured:
    """Read ``text`` and time it by ``scale``; None: 1, or what makes both work equally long where units differ.

    Raises
    ------
    ScenarioError
        For what cannot be read (recording.py), an order that lacks operations (notation.check), and one in which the
        devices would wait for each other for ever.
    """
    recording = read(text)
    schedule = _schedule(recording, model.timeline.schedule)
    try:
        check(schedule)
    except ScenarioError as error:
        raise ScenarioError(FIELD, error.message.key, error.message.params) from error
    if scale is None:
        scale = _scale(recording, model.timeline)
    starts, ends, costs, doubts = _ticks(recording, schedule, model.timeline.costs, scale)
    try:
        order = simulate(schedule, costs).position
    except DeadlockError as error:
        raise ScenarioError(FIELD, "error.deadlock", dict(error.message.params)) from error
    timeline, skews = _joined(schedule, costs, starts, ends, order)
    return Measured(timeline, recording, scale, doubts, skews)


@dataclass(frozen=True)
class Model:
    """What is predicted, as something that measure() can be asked about again without doing it twice."""

    scenario: Scenario
    timeline: Timeline

    def __hash__(self) -> int:
        return hash(self.scenario)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.scenario == other.scenario


def _schedule(recording: Recording, model: Schedule) -> Schedule:
    """Return the order that was measured; in one of the model's size, tokens and updates are coupled as there."""
    rows = tuple(tuple(timed.cell for timed in row) for row in recording.rows)
    plain = Schedule(rows)
    if (plain.stages, plain.micro_batches) != (model.stages, model.micro_batches):
        return plain
    return Schedule(rows, model.streams, model.update_every)


def _scale(recording: Recording, model: Timeline) -> Fraction:
    fine, *columns = recording.ticks
    worked, ticks = (
        sum(sum(ends) - sum(starts) for starts, ends in zip(*both, strict=True))
        for both in (columns, (model.starts, model.ends))
    )
    if not worked or not ticks:
        return Fraction(1)
    ratio = Fraction(worked * model.costs.ticks_per_unit, ticks * fine)
    return Fraction(1) if 1 <= APART * ratio <= APART * APART else _short(ratio, 4)


def _short(value: Fraction, digits: int) -> Fraction:
    """Round to so many significant digits."""
    return Fraction(f"{value.numerator / value.denominator:.{digits}g}") if value.numerator < 10**300 else value


def _ticks(
    recording: Recording, schedule: Schedule, model: Costs, scale: Fraction
) -> tuple[list[list[int]], list[list[int]], Costs, tuple[int, ...]]:
    """Return starts, ends and costs in whole ticks, and what is to be doubted of each stage."""
    fine, starts, ends = recording.ticks
    ticks_per_unit = fine * scale.numerator
    starts, ends = ([[tick * scale.denominator for tick in column] for column in part] for part in (starts, ends))
    same = all(len(column) == schedule.stages for column in model.durations.values())
    singles, pairs = _lengths(schedule, starts, ends, model if same else None)
    paired = {key: Fraction(sum(halves), len(halves)) for key, halves in pairs.items()}
    means = paired | {key: Fraction(sum(lengths), len(lengths)) for key, lengths in singles.items()}
    latency = Fraction(model.latency * ticks_per_unit, model.ticks_per_unit)
    finer = lcm(latency.denominator, *(mean.denominator for mean in (*means.values(), *paired.values())))

    def table(of: Mapping[Key, Fraction]) -> dict[str, tuple[int, ...]]:
        stages = range(schedule.stages)
        return {kind: tuple(int(of.get((kind, stage), 0) * finer) for stage in stages) for kind in model.durations}

    costs = Costs(table(means), table(paired), int(latency * finer), model.blocks, ticks_per_unit * finer)
    doubts = tuple(max(_doubt(singles, stage), _grain(ends)) * finer for stage in range(schedule.stages))
    columns = ([[tick * finer for tick in column] for column in columns] for columns in (starts, ends))
    return *columns, costs, doubts  # type: ignore[return-value]  # two of them


def _grain(ends: list[list[int]]) -> int:
    return max(map(max, filter(None, ends))) // GRAIN


def _lengths(
    schedule: Schedule, starts: list[list[int]], ends: list[list[int]], model: Costs | None
) -> tuple[dict[Key, list[int]], dict[Key, list[Fraction]]]:
    """Return how long the operations of each kind and stage took: alone, and, by ``model``, those in pairs."""
    singles: dict[Key, list[int]] = {}
    pairs: dict[Key, list[Fraction]] = {}
    for row, begins, overs in zip(schedule.rows, starts, ends, strict=True):
        for cell, start, end in zip(row, begins, overs, strict=True):
            if isinstance(cell, Op):
                singles.setdefault((cell.kind, cell.stage), []).append(end - start)
                continue
            whole = model.of(cell) if model else 0
            for op in cell.ops:
                alone = Fraction(model.durations[op.kind][op.stage], whole) if model and whole else Fraction(1, 2)
                pairs.setdefault((op.kind, op.stage), []).append((end - start) * alone)
    return singles, pairs


def _doubt(singles: Mapping[Key, Sequence[int]], stage: int) -> int:
    """Return two standard errors of the work of ``stage``, rounded up: 0 where its operations are equally long.

    The square of a mean's standard error is the variance over n; those of independent means add up.
    """
    square = Fraction(0)
    for (_, where), lengths in singles.items():
        if where == stage:
            n, total = len(lengths), sum(lengths)
            square += Fraction(n * sum(length * length for length in lengths) - total * total, n**3)
    ceiling = -(-4 * square.numerator // square.denominator)
    return isqrt(ceiling - 1) + 1 if ceiling else 0


def _joined(
    schedule: Schedule,
    costs: Costs,
    starts: list[list[int]],
    ends: list[list[int]],
    order: Mapping[Op, tuple[int, int]],
) -> tuple[Timeline, tuple[Skew, ...]]:
    """Find what each start waited for; ``order`` names causes before their effects.

    A start that differs from what it waited for by no more than a float rounds is put there.
    """
    values, rows = Values(schedule), schedule.rows
    leaving = values.leaving(schedule) if costs.blocks and costs.latency else frozenset()
    bound_by: list[list[Cell | None]] = [[None] * len(row) for row in rows]
    made: dict[int, tuple[int, int, Cell]] = {}
    skews: list[Skew] = []
    grain = _grain(ends)
    done = None
    for device, i in order.values():
        if done == (device, i):  # both of a pair stand in one place
            continue
        done, cell, start = (device, i), rows[device][i], starts[device][i]
        ready = ends[device][i - 1] if i else 0
        if i and leaving and any(values.product(op) in leaving for op in rows[device][i - 1].ops):
            ready += costs.latency
        bound_by[device][i] = rows[device][i - 1] if i else None
        for op in cell.ops:
            for base in values.needs(*op):
                end, home, maker = made[base + op.micro_batch]
                arrival = end if home == device else end + costs.latency
                if arrival > ready + grain:
                    ready, bound_by[device][i] = arrival, maker
                if end > start + grain:
                    skews.append(Skew(cell, maker, end - start))
        if abs(start - ready) <= grain and ready <= ends[device][i]:
            starts[device][i] = ready
        for op in cell.ops:
            product = values.product(op)
            if product is not None:
                made[product] = (ends[device][i], device, cell)
    skews.sort(key=lambda skew: -skew.ticks)
    return Timeline(schedule, costs, starts, ends, bound_by, dict(order), made), tuple(skews)


FINEST, COARSEST = SETTINGS["forward"].low, SETTINGS["forward"].high


def settings(measured: Measured, scenario: Scenario) -> dict[str, Any]:
    """Return the settings with which the model runs the order that was measured, in the mean times measured.

    Times are in the unit of the text, or a thousand times (a million times, ...) that where a field would not take
    them. Where a stage runs both whole backwards and halves, the halves count; where it runs whole ones
    alone, input and weights have half of it each.
    """
    timeline, scale = measured.timeline, measured.scale
    unit = Fraction(timeline.costs.ticks_per_unit) / scale
    lengths = {kind: [ticks / unit for ticks in timeline.costs.durations[kind]] for kind in ("F", "B", "I", "W")}
    halves = [bool(i or w) for i, w in zip(lengths["I"], lengths["W"], strict=True)]
    inputs = [i if cut else b / 2 for i, b, cut in zip(lengths["I"], lengths["B"], halves, strict=True)]
    weights = [w if cut else b / 2 for w, b, cut in zip(lengths["W"], lengths["B"], halves, strict=True)]
    updates = [ticks / unit for ticks in timeline.costs.durations["U"] if ticks]
    comm = scenario.comm * scale
    power = _power([*lengths["F"], *inputs, *weights, *updates, comm])
    trains = any(inputs) or any(weights)
    means = {"forward": lengths["F"], "input_grad": inputs, "weight_grad": weights}
    shown = {
        f"{name}_times": ";".join(_written(time / power, name) for time in column) for name, column in means.items()
    }
    if not trains:
        shown |= {"input_grad_times": "", "weight_grad_times": ""}
    return {
        "schedule": "order",
        "order": write(timeline.schedule),
        **shown,
        "comm": _written(comm / power),
        "update": _written(sum(updates, start=Fraction(0)) / max(1, len(updates)) / power),
        "overlap": _overlap(timeline, scenario),
        **dict.fromkeys(("stage_times", "slow_stage"), ""),
        **{"slow_factor": "1", "split": "none", "tensor": "1", "recompute": "none"},
    }


def _power(times: Sequence[Fraction]) -> Fraction:
    """Return the power of 1000 in whose multiples all ``times`` are within the limits of a field."""
    power = Fraction(1)
    while max(times) / power > COARSEST:
        power *= 1000
    least = min((time for time in times if time), default=Fraction(1))
    while least / power < FINEST and max(times) * 1000 / power <= COARSEST:
        power /= 1000
    return power


def _written(time: Fraction, name: str = "comm") -> str:
    """Write a time so that it reads back as the same, or to 12 digits where it has too many for a field.

    What is shorter than the setting ``name`` takes is as short as it takes.
    """
    time = max(time, Fraction(SETTINGS[name].low))
    fits = max(time.numerator, time.denominator) < 10 ** (DIGITS - 1) and len(number_text(time)) < 40
    return number_text(time if fits else _short(time, 12))


def _overlap(timeline: Timeline, scenario: Scenario) -> str:
    """Return the duration of a pair, in the plain durations that stay, that makes pairs as long as measured."""
    together = alone = 0
    for cell, start, end in _cells(timeline):
        if not isinstance(cell, Op):
            together += end - start
            alone += sum(timeline.costs.durations[op.kind][op.stage] for op in cell.ops)
    if not alone or not together:
        return ""
    plain: Number = scenario.forward + scenario.input_grad + scenario.weight_grad
    return _written(Fraction(plain * together, alone))


def _cells(timeline: Timeline) -> Iterator[tuple[Cell, int, int]]:
    for columns in zip(timeline.schedule.rows, timeline.starts, timeline.ends, strict=True):
        yield from zip(*columns, strict=True)
