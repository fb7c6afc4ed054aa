"""A Scenario goes in, a Result comes out: order, time, numbers and theory joined, each made when first asked for.

>>> result = run(schedule="1f1b", devices=4, micro_batches=8)
>>> result.metrics.makespan, result.metrics.peak_activations
(33, (4, 3, 2, 1))
"""

import csv
import gc
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

from pipesched import causes, critical, notation, svg, text
from pipesched.bounds import Theory, theory
from pipesched.ink import Theme
from pipesched.metrics import Metrics, Wait, first_output, measure, queues
from pipesched.model import DeadlockError, Message, Op, ScenarioError, Timeline
from pipesched.notes import Note, notes
from pipesched.profiles import Footprint, Profile, activation_profile, footprint, queue_profile
from pipesched.scenario import DEFAULTS, Scenario
from pipesched.schedules import BYTES, MOST, REGISTRY, arrange
from pipesched.schedules.zb_auto import HELD_FOR_W
from pipesched.simulate import simulate
from pipesched.svg import Letters
from pipesched.terminal import Colours, painter


@dataclass(frozen=True, repr=False)
class Result:
    """Everything known of a scenario. It shows itself in a notebook: its chart, and its numbers below.

    >>> result = run(schedule="1f1b", devices=2, micro_batches=2)
    >>> result
    <Result of schedule='1f1b', devices=2, micro_batches=2: makespan 9, bubble ≈ 33.3% of device time>
    >>> print(result.text(width=50), end="")
    Device 1  F1──F2──········B1──────····B2──────
    Device 2  ····F1──B1──────F2──B2──────
              0                                  9
    >>> result.order().splitlines()
    ['0F0 0F1 0B0 0B1', '1F0 1B0 1F1 1B1']
    >>> {cause: ticks for cause, ticks in result.bubble.items() if ticks}
    {'fill': 1, 'drain': 3, 'finished': 2}
    """

    scenario: Scenario
    timeline: Timeline
    deadlock: DeadlockError | None = None
    """Why the timeline stops before its end; only ``read`` gives such results, ``run`` raises the error."""

    @cached_property
    def metrics(self) -> Metrics:
        """The numbers; each is defined in ``pipesched.metrics.Metrics``."""
        with _no_collection():
            return measure(self.timeline)

    @cached_property
    def theory(self) -> Theory:
        """What closed forms and bounds say of it."""
        return theory(self.scenario, self.timeline)

    @cached_property
    def queues(self) -> dict[Literal["forward", "backward"], list[list[Wait]]]:
        """Per direction and stage, when each micro-batch stood waiting."""
        return {"forward": queues(self.timeline, "F"), "backward": queues(self.timeline, "BI")}

    @cached_property
    def queue_profiles(self) -> list[Profile]:
        """Per stage, how many micro-batches stand before its forward over time; peaks as in ``metrics.peak_queue``."""
        return [queue_profile(waits) for waits in self.queues["forward"]]

    @cached_property
    def activation_profiles(self) -> list[Profile]:
        """Per device, how many activations it keeps over time; peaks as in ``metrics.peak_activations``."""
        return [activation_profile(self.timeline, device) for device in range(self.timeline.schedule.devices)]

    @cached_property
    def footprint(self) -> Footprint | Message | None:
        """How many bytes a stage keeps of a micro-batch; the message what is missing; None where that is not known."""
        if REGISTRY[self.scenario.schedule].unused >= BYTES:
            return None
        return footprint(self.scenario, self.timeline.schedule.stages)

    @cached_property
    def byte_profiles(self) -> list[Profile]:
        """Per device, the bytes of activations it keeps over time; empty where ``footprint`` does not know."""
        if not isinstance(self.footprint, Footprint):
            return []
        sizes, late = self.footprint.sizes, self.scenario.recompute == "late"
        devices = range(self.timeline.schedule.devices)
        return [activation_profile(self.timeline, device, sizes, late=late) for device in devices]

    @cached_property
    def homes(self) -> list[list[int]]:
        """Per stage, the devices that run its forwards: two where micro-batches enter at both ends."""
        homes: list[set[int]] = [set() for _ in range(self.timeline.schedule.stages)]
        for device, row in enumerate(self.timeline.schedule.rows):
            for stage in {op.stage for cell in row for op in cell.ops if op.kind == "F"}:
                homes[stage].add(device)
        return [sorted(devices) for devices in homes]

    def device_of(self, stage: int, micro_batch: int) -> int:
        """Return the device that runs ``micro_batch`` on ``stage``."""
        return self.timeline.position[Op(stage, "F", micro_batch)][0]

    @cached_property
    def study(self) -> causes.Study:
        """What the gaps are sorted by, for the functions of ``pipesched.causes``; not of a deadlock."""
        scenario, limit = self.scenario, None
        if scenario.schedule == "zb_auto":
            limit = causes.Limit(scenario.memory_limit or scenario.devices, HELD_FOR_W)
        return causes.study(self.timeline, limit)

    @cached_property
    def bubble(self) -> dict[causes.Sort, int]:
        """The idle ticks of all devices per sort of their cause."""
        return causes.totals(self.study)

    @cached_property
    def slacks(self) -> list[list[int]]:
        """Per device and operation, the ticks it may be late without lengthening the whole; not of a deadlock."""
        return critical.slacks(self.timeline)

    @cached_property
    def notes(self) -> list[Note]:
        """What a reader should know before citing the numbers."""
        return notes(self.scenario, self.timeline, self.metrics)

    def svg(
        self,
        *,
        width: float = 720,
        theme: Theme = "light",
        language: str = "en",
        letters: Letters = "pytorch",
        until: float = 0,
    ) -> str:
        """Return the chart as SVG text, ``width`` user units wide; all else as in ``pipesched.svg.draw``."""
        out = () if self.deadlock else ((first_output(self.timeline), Message("mark.first_output")),)
        return svg.draw(
            self.timeline, width=width, theme=theme, language=language, letters=letters, until=until, marks=out
        )

    def text(self, *, width: int = 80, language: str = "en", colours: Colours = "none") -> str:
        """Return the chart for a terminal of ``width`` columns that has ``colours`` (``pipesched.terminal``)."""
        paint = painter(self.timeline, colours, svg.seconds(self.timeline))
        return text.draw(self.timeline, width=width, language=language, paint=paint)

    def order(self) -> str:
        """Return the order of every device in PyTorch's notation, a line per device."""
        return notation.write(self.timeline.schedule)

    def csv(self) -> str:
        """Return the intervals as CSV: device, op, start, end, bound_by (times in the unit of the durations)."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("device", "op", "start", "end", "bound_by"))
        writer.writerows((*interval[:4], interval.bound_by or "") for interval in self.timeline.intervals)
        return file.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Return ``scenario``, ``metrics`` and ``intervals`` as JSON can hold them."""
        return {
            "scenario": self.scenario.settings(),
            "metrics": asdict(self.metrics),
            "intervals": [
                {
                    "device": interval.device,
                    "op": str(interval.op),
                    "start": interval.start,
                    "end": interval.end,
                    "bound_by": None if interval.bound_by is None else str(interval.bound_by),
                }
                for interval in self.timeline.intervals
            ],
        }

    def __repr__(self) -> str:
        from pipesched.show import result_line  # show stands above: it is only there to be looked at

        return result_line(self)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        from pipesched.show import result_html

        return result_html(self)


def run(scenario: Scenario | None = None, **settings: Any) -> Result:
    """Simulate ``scenario`` (by default the first view's) with the ``settings``, fields of Scenario, changed.

    Raises
    ------
    ScenarioError
        If a setting is outside its limits, the schedule is unknown, or its order is not defined for these settings.
    DeadlockError
        If the devices of an ``order`` that was given wait for each other.

    Examples
    --------
    >>> run(schedule="gpipe", devices=4, micro_batches=8, stage_times="1; 1.5; 1; 1").metrics.makespan
    45
    >>> run(schedule="dualpipe", devices=5)
    Traceback (most recent call last):
        ...
    pipesched.model.ScenarioError: Devices K: DualPipe needs an even number of devices, not 5. Nearest that work: 4; 6.
    """
    return _run(replace(scenario or Scenario(), **settings), MOST)


@lru_cache(maxsize=8)
def _run(scenario: Scenario, most: int) -> Result:
    try:
        with _no_collection():
            schedule = arrange(scenario, most)
            return Result(scenario, simulate(schedule, scenario.costs(schedule.stages, schedule.devices)))
    except DeadlockError as error:
        if scenario.schedule == "order":
            raise
        raise ScenarioError("group", "error.group", dict(error.message.params), [{"group": ""}]) from error


@contextmanager
def _no_collection() -> Iterator[None]:
    """Stop looking for circular references: many operations are many tuples, none in a circle, all looked at again.

    A third of the time of a million operations (tests/benchmark.py).
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def read(values: Mapping[str, Any], most: int = MOST) -> tuple[Result, list[ScenarioError]]:
    """Simulate what a URL or form holds; what cannot be used is reported and something that works stands in.

    A setting falls back to its default, or, where that does not go with the others, to the nearest one that does.

    >>> result, errors = read({"devices": "99", "micro_batches": "8"})
    >>> result.scenario, [str(error) for error in errors]
    (Scenario(micro_batches=8), ['Devices K: needs a whole number from 1 to 64, not 99.'])
    """
    scenario, errors = Scenario.read(values)
    while True:
        try:
            return _run(scenario, most), errors
        except DeadlockError as error:
            return Result(scenario, error.timeline, error), errors
        except ScenarioError as error:
            errors.append(
                ScenarioError(error.field, error.message.key, error.message.params, _working(scenario, error, most))
            )
            scenario = _instead(scenario, errors[-1])


def _instead(scenario: Scenario, error: ScenarioError) -> Scenario:
    """Return a scenario nearer to one that works."""
    if getattr(scenario, error.field) != DEFAULTS[error.field]:
        return replace(scenario, **{error.field: DEFAULTS[error.field]})
    if error.repairs:
        return replace(scenario, **error.repairs[0])
    return replace(scenario, schedule=DEFAULTS["schedule"])


def _working(scenario: Scenario, error: ScenarioError, most: int) -> list[dict[str, Any]]:
    """Return the repairs of ``error`` that work, each with whatever else has to change for it."""
    working = []
    for repair in error.repairs:
        settings = dict(repair)
        for _ in range(3):
            try:
                changed = replace(scenario, **settings)
                schedule = arrange(changed, most)
                changed.costs(schedule.stages, schedule.devices)
            except ScenarioError as another:
                if not another.repairs:
                    break
                settings |= another.repairs[0]
            else:
                working.append(settings)
                break
    return working
