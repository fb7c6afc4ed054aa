"""Where stage times come from, as the page shows it: who holds what, the best M, tables of what would be."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pipesched import placement, report, trade
from pipesched.model import Message, ScenarioError
from pipesched.run import Result
from pipesched.words import number, percent, sentence

Answer = dict[str, Any]


def placed(result: Result, asked: Mapping[str, Any]) -> Answer | None:
    """Return the strip of who holds which layers, None where layers are not split."""
    found = placement.boxes(result)
    if not found:
        return None
    how: dict[str, Any] = {"width": asked["width"], "theme": asked["theme"], "language": asked["lang"]}
    return {
        "svg": placement.draw(result, **how),
        "text": sentence(placement.summary(result), asked["lang"]),
        "lines": [sentence(placement.say(box), asked["lang"]) for box in found],
    }


def batch(result: Result, language: str) -> Answer | None:
    """Return what a constant batch means here, and the button that takes the best M; None without one."""
    lines, best = report.batch(result, language)
    if not lines:
        return None
    text = sentence(Message("batch.use", {"n": best}), language)
    return {"lines": lines, "use": {"text": text, "settings": {"micro_batches": str(best)}} if best else None}


def traded(result: Result, asked: Mapping[str, Any]) -> Answer:
    """Simulate what would be with another M of the same batch, or with other devices per stage."""
    scenario, language = result.scenario, asked["lang"]
    try:
        rows = list(trade.batches(scenario) if asked["of"] == "batch" else trade.tensors(scenario))
    except ScenarioError as error:
        return {"rows": [], "text": sentence(error.message, language)}
    least = min((row.makespan for row in rows if row.makespan is not None), default=None)
    shown: list[Answer] = []
    for row in rows:
        if asked["of"] == "tensor":
            cells = [f"{row.count} × {scenario.devices * scenario.tensor // row.count}"]
        else:
            cells = [number(row.count, language), number(Fraction(scenario.batch or 0, row.count), language)]
        if row.problem or row.makespan is None or row.bubble is None or row.communication is None:
            problem = row.problem and sentence(row.problem, language)
            shown.append({"cells": cells, "problem": problem, "settings": None, "best": False})
            continue
        cells += [number(row.makespan, language, 3), percent(row.bubble, language)]
        cells += [percent(row.communication, language)] if asked["of"] == "tensor" else []
        shown.append({"cells": cells, "settings": row.settings or None, "best": row.makespan == least})
    free = asked["of"] == "tensor" and not scenario.all_reduce and not scenario.all_reduce_latency
    return {"rows": shown, "text": sentence(Message("trade.free"), language) if free else ""}
