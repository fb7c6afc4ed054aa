"""Further views of a Result go out as JSON can hold them: beside a pinned one, and as curves over M or K.

Both are asked for by web.py on top of the chart, never before it.
"""

from collections.abc import Mapping
from typing import Any

from pipesched import measuring
from pipesched.compare import differences, title
from pipesched.curves import Curve, draw
from pipesched.metrics import Metrics
from pipesched.model import Message
from pipesched.run import Result, read
from pipesched.words import SHARES, sentence

Answer = dict[str, Any]

CURVED = ("bubble_fraction_of_total", "makespan", "peak_micro_batches")
"""The metrics that a curve can show; of one per device, the largest."""
AXES = {"micro_batches": "M", "devices": "K"}


def pinned(result: Result, asked: Mapping[str, Any], most: int) -> Result | None:
    """Return the pinned scenario's result, or the measurement's, which stands in its place.

    None where nothing is pinned, or one of the two cannot be run to its end.
    """
    if (other := measuring.beside(result, asked)) is not None:
        return other
    if not asked.get("pinned") or result.deadlock:
        return None
    other, errors = read(asked["pinned"], most)
    return None if errors or other.deadlock else other


def until(result: Result, other: Result | None) -> float:
    """Return the time that the axes of both have to reach; 0 where there is only one."""
    return max(other.metrics.makespan, result.metrics.makespan) if other else 0


def beside(result: Result, other: Result, asked: Mapping[str, Any], end: float) -> Answer:
    """Return the pinned ``other`` drawn up to ``end``, and how ``result`` differs from it."""
    language = asked["lang"]
    drawn = other.svg(
        width=asked["width"],
        theme=asked["theme"],
        language=language,
        letters=asked.get("letters", "pytorch"),
        until=end,
    )
    if other is measuring.beside(result, asked):
        first = sentence(Message("measured.measured"), language)
        second = sentence(Message("measured.predicted", {"title": title(result, language)}), language)
        titles = {"title": first, "other": second}
        return {"svg": drawn, "changed": None, **measuring.compared(result, other, language), **titles}
    rows = [row._asdict() for row in differences(other, result, language)]
    titles = {"title": title(other, language), "other": title(result, language)}
    return {"svg": drawn, "changed": other.scenario.changed(), "rows": rows, **titles}


def point(result: Result, asked: Mapping[str, Any]) -> Answer:
    """Return the metric of one point of a curve."""
    return {"y": None if result.deadlock else _value(result.metrics, asked["metric"])}


def curves(result: Result, asked: Mapping[str, Any]) -> Answer:
    """Draw the series of points that were asked for before, ``result`` marked where it is one of them."""
    language, axis, metric = asked["lang"], asked["axis"], asked["metric"]
    known = [
        Curve(sentence(Message(f"schedule.{line['schedule']}"), language), [(x, y) for x, y in line["points"]])
        for line in asked["series"]
    ]
    what = sentence(Message(f"metric.{metric}"), language)
    if metric == "peak_micro_batches":
        what = sentence(Message("curves.peak"), language)
    among = result.scenario.schedule in [line["schedule"] for line in asked["series"]] and not result.deadlock
    here = (getattr(result.scenario, axis), _value(result.metrics, metric)) if among else None
    svg = draw(
        known,
        axis=AXES[axis],
        title=sentence(Message("curves.chart", {"what": what, "axis": AXES[axis]}), language),
        here=here,
        is_share=metric in SHARES,
        width=asked["width"],
        theme=asked["theme"],
        language=language,
    )
    return {"svg": svg}


def _value(metrics: Metrics, name: str) -> float:
    value = getattr(metrics, name)
    return float(max(value) if isinstance(value, tuple) else value)
