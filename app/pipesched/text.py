"""A Timeline goes in, a chart for the terminal comes out: a line per device, a column per slice of time."""

from collections.abc import Callable
from math import gcd

from pipesched.model import Cell, Message, Timeline
from pipesched.words import number, sentence

WAITS = "·"


def draw(
    timeline: Timeline,
    *,
    width: int = 80,
    language: str = "en",
    paint: Callable[[str, Cell], str] = lambda block, cell: block,
) -> str:
    """Return the chart of ``timeline`` in at most ``width`` columns where that is possible (at least 40).

    A block shows its letter and micro-batch where they fit, else only the letter; dots are waiting, blanks are done.
    Every column stands for the same time; where the columns do not suffice for the exact picture, a column shows what
    runs at its start, and the line below says so. ``paint`` may put colour on the text of a block.

    >>> from pipesched import run
    >>> print(draw(run(devices=2, micro_batches=2).timeline, width=40), end="")
    Device 1  F1──F2──
    Device 2  ····F1──F2──
              0          3
    """
    names = [sentence(Message("device", {"device": device}), language) for device in range(timeline.schedule.devices)]
    margin = max(map(len, names)) + 2
    room = max(40, width) - margin
    moments = {tick for columns in (*timeline.starts, *timeline.ends) for tick in columns}
    step = gcd(*moments, timeline.end) or 1
    slices = timeline.end // step
    exact = slices <= room
    per_slice = max(1, min(room // max(1, slices), 4)) if exact else 0
    columns = slices * per_slice if exact else room
    lines = []
    for device, label in enumerate(names):
        line, finished = label.ljust(margin), 0
        for cell, start, end in zip(
            timeline.schedule.rows[device], timeline.starts[device], timeline.ends[device], strict=False
        ):
            first = start // step * per_slice if exact else -(-start * columns // timeline.end)
            last = end // step * per_slice if exact else -(-end * columns // timeline.end)
            block = "".join(op.label() for op in cell.ops)
            block = block if len(block) <= last - first else cell.ops[0].kind
            line += WAITS * (first - finished) + (paint(block.ljust(last - first, "─"), cell) if last > first else "")
            finished = last
        if device in timeline.stuck:
            line += WAITS * (columns - finished)
        lines.append(line.rstrip())
    makespan = number(timeline.costs.time(timeline.end), language)
    lines.append(" " * margin + "0" + makespan.rjust(max(len(makespan) + 1, columns - 1)))
    if not exact:
        lines.append(sentence(Message("text.sampled", {"columns": columns}), language))
    return "\n".join(lines) + "\n"
