"""Two Results go in, what differs between them comes out: names, numbers, and by how much."""

from typing import Any, NamedTuple

from pipesched.model import Message
from pipesched.run import Result
from pipesched.words import SHARES, number, percent, sentence

COMPARED = (
    "makespan", "longest_span", "first_output", "speedup",
    "bubble_fraction_of_total", "bubble_fraction_of_ideal", "bubble_rate_of_span",
)  # fmt: skip
LARGEST = ("peak_micro_batches", "weight_versions")
"""Metrics per device, of which the largest is compared."""


class Difference(NamedTuple):
    """One row of the comparison: what is compared, its two values, and the second less the first, as text."""

    name: str
    label: str
    first: str
    second: str
    change: str


def differences(first: Result, second: Result, language: str) -> list[Difference]:
    """List the numbers of two finished results side by side.

    Shares change by percentage points, everything else by its own unit and, where the first is not 0, in percent.

    >>> from pipesched import run
    >>> differences(run(schedule="gpipe"), run(schedule="1f1b"), "en")[0][2:]
    ('18', '18', '=')
    """
    rows = [_row(name, getattr(first.metrics, name), getattr(second.metrics, name), language) for name in COMPARED]
    for name in LARGEST:
        rows.append(_row(name, max(getattr(first.metrics, name)), max(getattr(second.metrics, name)), language))
    return rows


def _row(name: str, first: float, second: float, language: str) -> Difference:
    is_share = name in SHARES
    label = sentence(Message(f"metric.{name}"), language)
    if name in LARGEST:
        label = sentence(Message("compare.largest", {"what": label}), language)
    write = percent if is_share else number
    change = "=" if first == second else _change(first, second, language, is_share)
    return Difference(name, label, write(first, language), write(second, language), change)


def _change(first: float, second: float, language: str, is_share: bool) -> str:
    by = second - first
    if is_share:
        return sentence(Message("compare.points", {"points": _signed(by * 100, language, 1)}), language)
    return _signed(by, language, 4) + (f" ({_signed(by / first * 100, language, 1)}%)" if first else "")


def _signed(value: float, language: str, digits: int) -> str:
    """Write a change with its sign; rounded to ``digits``, and never shown as a plain nothing."""
    short = round(value, digits)
    return ("+" if short > 0 else "") + number(short, language, digits) if short else "≈ 0"


def title(result: Result, language: str) -> str:
    """Name a result: its schedule and what else is not at its default."""
    changed: dict[str, Any] = {k: v for k, v in result.scenario.changed().items() if k not in ("schedule", "order")}
    parts = [sentence(Message(f"schedule.{result.scenario.schedule}"), language)]
    parts += [
        f"{sentence(Message('name_of', {'field': field}), language)}: {value}" for field, value in changed.items()
    ]
    return "; ".join(parts)
