"""A Scenario goes in, rows of what would be come out: the same work with another number to turn, each row simulated.

``batches``: a constant batch in more or fewer micro-batches. ``tensors``: the same devices, p = K of them in a pipe and
t = n/p to a stage (Megatron-LM, arXiv 2104.04473, s3.2: bubble against communication, takeaway 1).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from pipesched.metrics import measure
from pipesched.model import Message, ScenarioError, Timeline
from pipesched.scenario import SETTINGS, Scenario
from pipesched.schedules import arrange
from pipesched.simulate import simulate
from pipesched.tensor import degrees

MOST = 60_000
"""The most operations of a row: a table is a side dish."""
ROWS = 24
WORK = ("forward", "input_grad", "weight_grad", "update", "overlap", "all_reduce", "all_reduce_latency")
"""What a device has more of where it holds more layers."""


@dataclass(frozen=True)
class Row:
    """What would be with ``count`` (M, or t). Either numbers or the ``problem`` that keeps it from being simulated."""

    count: int
    settings: Mapping[str, Any]
    """The settings to change for it; none in the row that is the scenario as it stands."""
    makespan: int | float | None = None
    bubble: float | None = None
    """Idle share of device time."""
    communication: float | None = None
    """Share of device time spent in all-reduces."""
    problem: Message | None = None


def batches(scenario: Scenario) -> Iterator[Row]:
    """Yield a row for each M that divides the batch, the smallest first, as far as there are ``ROWS``."""
    if scenario.batch is None:
        return
    most = min(scenario.batch, int(SETTINGS["micro_batches"].high))
    counts = [count for count in range(1, most + 1) if scenario.batch % count == 0]
    for count in counts[:ROWS]:
        yield _row(scenario, count, {"micro_batches": count})


def tensors(scenario: Scenario) -> Iterator[Row]:
    """Yield a row for each t = 1, 2, 4, … that divides the n = K t devices there are.

    Where layers are split, they are split anew over the stages there are then; elsewhere a device with twice the layers
    takes twice the durations.

    Raises
    ------
    ScenarioError
        Where it is not known what a stage would take: times of each stage, or a split by hand.
    """
    given = scenario.per_stage()
    if given or scenario.split == "hand" or scenario.schedule == "order":
        field = next(iter(given)) if given else "layout" if scenario.split == "hand" else "order"
        raise ScenarioError(field, "trade.fixed")
    total = scenario.devices * scenario.tensor
    for degree in degrees(total):
        if degree > SETTINGS["tensor"].high:
            return
        pipe = total // degree
        settings: dict[str, Any] = {"tensor": degree, "devices": pipe}
        if scenario.split == "none":
            more = Fraction(scenario.devices, pipe)
            settings |= {name: value * more for name in WORK if (value := getattr(scenario, name)) is not None}
        yield _row(scenario, degree, settings)


def _row(scenario: Scenario, count: int, settings: dict[str, Any]) -> Row:
    try:
        other = replace(scenario, **settings)
        schedule = arrange(other, MOST)
        timeline = simulate(schedule, other.costs(schedule.stages, schedule.devices))
    except ScenarioError as error:
        return Row(count, {}, problem=error.message)
    metrics = measure(timeline)
    before, after = scenario.settings(), other.settings()
    changed = {name: value for name, value in after.items() if value != before[name]}
    return Row(count, changed, metrics.makespan, metrics.bubble_fraction_of_total, communication(timeline))


def communication(timeline: Timeline) -> float:
    """Return the share of device time, K times the makespan, that goes into all-reduces.

    >>> from pipesched.run import run
    >>> lone = run(schedule="forward", devices=1, micro_batches=1, tensor=2, all_reduce="1/8")
    >>> communication(lone.timeline)  # 1/2 of work, two all-reduces of 1/8
    0.3333333333333333
    """
    talk = sum(timeline.costs.all_reduce_of(cell) for row in timeline.schedule.rows for cell in row)
    return talk / (timeline.end * timeline.schedule.devices) if timeline.end else 0.0
