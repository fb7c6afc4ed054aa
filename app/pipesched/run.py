"""A Scenario goes in, a Result comes out: order, time, numbers and theory joined, each made when first asked for.

>>> result = run(schedule="1f1b", devices=4, micro_batches=8)
>>> result.metrics.makespan, result.metrics.peak_activations
(33, (4, 3, 2, 1))
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

from pipesched import svg, text
from pipesched.bounds import Theory, theory
from pipesched.ink import Theme
from pipesched.metrics import Metrics, Wait, first_output, measure, queues
from pipesched.model import Message, Op, ScenarioError, Timeline
from pipesched.scenario import DEFAULTS, Scenario
from pipesched.schedules import arrange
from pipesched.simulate import simulate


@dataclass(frozen=True)
class Result:
    """Everything known of a scenario. It shows itself as a chart in a notebook."""

    scenario: Scenario
    timeline: Timeline

    @cached_property
    def metrics(self) -> Metrics:
        """The numbers; each is defined in ``pipesched.metrics.Metrics``."""
        return measure(self.timeline)

    @cached_property
    def theory(self) -> Theory:
        """What closed forms and bounds say of the makespan."""
        return theory(self.scenario, self.timeline.costs)

    @cached_property
    def queues(self) -> dict[Literal["forward", "backward"], list[list[Wait]]]:
        """Per direction and stage, when each micro-batch stood waiting."""
        return {"forward": queues(self.timeline, "F"), "backward": queues(self.timeline, "BI")}

    @cached_property
    def homes(self) -> list[int]:
        """Per stage, the device that runs its forwards."""
        stages = range(self.timeline.schedule.stages)
        return [self.timeline.position[Op(stage, "F", 0)][0] for stage in stages]

    def svg(self, *, width: float = 720, theme: Theme = "light", language: str = "en") -> str:
        """Return the chart as SVG text, ``width`` user units wide."""
        out = (first_output(self.timeline), Message("mark.first_output"))
        return svg.draw(self.timeline, width=width, theme=theme, language=language, marks=(out,))

    def text(self, *, width: int = 80, language: str = "en") -> str:
        """Return the chart for a terminal of ``width`` columns."""
        return text.draw(self.timeline, width=width, language=language)

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

    def _repr_svg_(self) -> str:
        return self.svg()


def run(scenario: Scenario | None = None, **settings: Any) -> Result:
    """Simulate ``scenario`` (by default the first view's) with the ``settings``, fields of Scenario, changed.

    Raises
    ------
    ScenarioError
        If a setting is outside its limits or the schedule is unknown.
    """
    return _run(replace(scenario or Scenario(), **settings))


@lru_cache(maxsize=8)
def _run(scenario: Scenario) -> Result:
    return Result(scenario, simulate(arrange(scenario), scenario.costs))


def read(values: Mapping[str, Any]) -> tuple[Result, list[ScenarioError]]:
    """Simulate what a URL or form holds; a field that cannot be used falls back to its default and is reported."""
    scenario, errors = Scenario.read(values)
    try:
        return run(scenario), errors
    except ScenarioError as error:
        kept = {**scenario.settings(), error.field: DEFAULTS[error.field]}
        return run(Scenario(**kept)), [*errors, error]
