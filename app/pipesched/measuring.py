"""A measurement and the Result of a scenario go in, what page and command line show of the two side by side comes out.

The measured timeline becomes a Result too, under the settings of the scenario it is held against, so that everything
that looks at results can look at it. All differences are what was measured less what is predicted.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from pipesched import causes
from pipesched.compare import differences
from pipesched.explain import name
from pipesched.measured import Measured, Model, measure, settings
from pipesched.model import Message, ScenarioError, Schedule
from pipesched.reading import exact_number
from pipesched.run import Result
from pipesched.why import MOST_EXPLAINED, is_too_much
from pipesched.words import number, sentence

Answer = dict[str, Any]

LONGEST_LINK = 16_000
"""Characters of a measurement that go into an address."""
MOST_NAMES = 16


class Cause(NamedTuple):
    """The idle device time of one ``sort``, in the unit of the model; ``sort`` None: all of it."""

    sort: causes.Sort | None
    measured: Fraction
    predicted: Fraction

    @property
    def difference(self) -> Fraction:
        """By how much more was measured."""
        return self.measured - self.predicted


def against(result: Result, text: str, scale: str = "") -> tuple[Result, Measured]:
    """Read a measurement and hold it against ``result``; return it as a result as well.

    Raises
    ------
    ScenarioError
        As ``pipesched.measured.measure``, and for a ``scale`` (empty: automatic) that is no number above 0.
    """
    factor = exact_number(scale) if scale.strip() else None
    if scale.strip() and (factor is None or factor <= 0):
        raise ScenarioError("measured_scale", "measured.bad_scale", {"given": scale.strip()[:40]})
    return _against(text, Model(result.scenario, result.timeline), factor)


@lru_cache(maxsize=4)
def _against(text: str, model: Model, scale: Fraction | None) -> tuple[Result, Measured]:
    found = measure(text, model, scale)
    return Result(model.scenario, found.timeline), found


def per_cause(result: Result, found: Measured) -> list[Cause]:
    """List the idle device time per cause, of those that there are, and of all; the last row is their sum."""
    study = causes.study(found.timeline, result.study.limit, found.doubts)
    unit, model = found.timeline.costs.ticks_per_unit, result.timeline.costs.ticks_per_unit
    sums = causes.totals(study)
    rows = [
        Cause(sort, Fraction(sums[sort], unit), Fraction(result.bubble[sort], model))
        for sort in causes.SORTS
        if sums[sort] or result.bubble[sort]
    ]
    total = sum((row.measured for row in rows), Fraction(0)), sum((row.predicted for row in rows), Fraction(0))
    return [*rows, Cause(None, *total)]


def said(result: Result, found: Measured, automatic: bool) -> list[Message]:
    """Say what was read, what was left out, how it was scaled, and where clocks disagree."""
    recording, schedule, time = found.recording, found.timeline.schedule, found.timeline.costs.time
    count = {"n": sum(map(len, recording.rows))}
    parts = [
        Message(
            "measured.read",
            {"ops": Message("measured.ops", count), "devices": Message("measured.devices", {"n": schedule.devices})},
        )
    ]
    plain = tuple(map(str, range(schedule.devices)))
    if recording.devices != plain:
        more = ["…"] * (schedule.devices > MOST_NAMES)
        parts.append(Message("measured.names", {"names": ", ".join([*recording.devices[:MOST_NAMES], *more])}))
    for key, n in (("measured.left_out", recording.left_out), ("measured.rounded", recording.rounded)):
        if n:
            parts.append(Message(key, {"n": n}))
    if automatic and found.scale != 1:
        parts.append(Message("measured.scaled", {"scale": found.scale}))
    if found.skews:
        worst, streams = found.skews[0], schedule.streams
        names = {"op": name(worst.cell, streams), "needed": name(worst.needed, streams)}
        parts.append(Message("measured.skew", {**names, "by": time(worst.ticks)}))
        if len(found.skews) > 1:
            parts.append(Message("measured.skews", {"n": len(found.skews) - 1}))
    if _shape(schedule) != _shape(result.timeline.schedule):
        both = {"measured": _shape(schedule), "model": _shape(result.timeline.schedule)}
        parts.append(Message("measured.other", both))
    return parts


def _shape(schedule: Schedule) -> Message:
    counts = {"devices": schedule.devices, "stages": schedule.stages, "micro_batches_": schedule.micro_batches}
    return Message("measured.shape", counts)


def rows(result: Result, found: Measured, language: str) -> list[dict[str, Any]]:
    """Return the causes as rows of text, with the exact difference as ``value``."""
    shown = []
    for row in per_cause(result, found):
        key = "measured.all" if row.sort is None else f"cause.{row.sort}"
        shown.append(
            {
                "sort": row.sort or "all",
                "value": float(row.difference),
                "label": sentence(Message(key), language),
                "measured": number(row.measured, language, 3),
                "predicted": number(row.predicted, language, 3),
                "difference": _signed(row.difference, language),
            }
        )
    return shown


def _signed(difference: Fraction, language: str) -> str:
    """Write a difference with its sign, the ≈ of a rounded one before it."""
    if not difference:
        return "="
    text = number(difference, language, 3)
    mark = "≈\u202f" if text.startswith("≈") else ""
    return mark + ("+" if difference > 0 else "") + text.removeprefix(mark)


def request(asked: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return text and scale of the measurement that came with a request; None without one."""
    given = asked.get("measured") or {}
    text = str(given.get("text") or "")
    return (text, str(given.get("scale") or "")) if text.strip() else None


def beside(result: Result, asked: Mapping[str, Any]) -> Result | None:
    """Return the measurement of a request as a result; None where there is none, or it cannot be read."""
    given = request(asked)
    if given is None or result.deadlock:
        return None
    try:
        return against(result, *given)[0]
    except ScenarioError:
        return None


def answer(result: Result, asked: Mapping[str, Any]) -> Answer | None:
    """Return what the page says of the measurement of a request, None without one.

    ``link`` is what the address keeps of it; ``error`` and ``field`` say what is wrong, and nothing else is there then.
    """
    given = request(asked)
    if given is None:
        return None
    language = asked["lang"]

    def say(key: str, **params: Any) -> str:
        return sentence(Message(key, params), language)

    if result.deadlock:
        return {"field": "measured", "error": say("measured.stuck")}
    try:
        other, found = against(result, *given)
    except ScenarioError as error:
        return {"field": error.field, "error": sentence(error.message, language)}
    link = found.recording.link
    lines = [sentence(message, language) for message in said(result, found, not given[1].strip())]
    lines += [say("measured.no_link")] if len(link) > LONGEST_LINK else []
    much = is_too_much(result) or is_too_much(other)
    return {
        "error": "",
        "link": link if len(link) <= LONGEST_LINK else "",
        "said": [*lines, *([say("measured.too_many", most=MOST_EXPLAINED)] if much else [])],
        "causes": [] if much else rows(result, found, language),
    }


def adopt(result: Result, asked: Mapping[str, Any]) -> Answer:
    """Return the settings that take order and mean times from the measurement of a request; {} where none is read."""
    given = request(asked)
    if given is None or result.deadlock:
        return {"settings": {}}
    try:
        _, found = against(result, *given)
    except ScenarioError:
        return {"settings": {}}
    return {"settings": settings(found, result.scenario)}


def compared(result: Result, other: Result, language: str) -> Answer:
    """Return the numbers of the measurement ``other`` beside those of ``result``, as compare.py has them."""
    swapped = [row._asdict() for row in differences(result, other, language)]
    return {
        "rows": [row | {"first": row["second"], "second": row["first"]} for row in swapped],
        "heading": sentence(Message("measured.difference"), language),
        "short": sentence(Message("measured.prediction"), language),
        "note": sentence(Message("measured.beside"), language),
    }


def table(result: Result, found: Measured, other: Result, language: str) -> str:
    """Return numbers and causes of the measurement ``other`` beside those of ``result`` as columns of text."""
    names = ("measured", "prediction", "difference")
    heads = [sentence(Message(f"measured.{name}"), language) for name in names]
    lines = [["", *heads]]
    lines += [
        [row["label"], row["first"], row["second"], row["change"]] for row in compared(result, other, language)["rows"]
    ]
    lines += [["", "", "", ""], [sentence(Message("measured.causes"), language), "", "", ""]]
    lines += [
        [row["label"], row["measured"], row["predicted"], row["difference"]] for row in rows(result, found, language)
    ]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    shown = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join(shown) + "\n"


def to_dict(result: Result, found: Measured, other: Result) -> dict[str, Any]:
    """Return the comparison as JSON can hold it."""
    return {
        "metrics": other.to_dict()["metrics"],
        "scale": float(found.scale),
        "left_out": found.recording.left_out,
        "skews": [
            {"op": str(s.cell), "needs": str(s.needed), "by": found.timeline.costs.time(s.ticks)} for s in found.skews
        ],
        "causes": {
            row.sort or "all": {
                "measured": float(row.measured),
                "predicted": float(row.predicted),
                "difference": float(row.difference),
            }
            for row in per_cause(result, found)
        },
    }
