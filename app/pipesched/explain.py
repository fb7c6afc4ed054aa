"""A Timeline and a moment go in, Messages come out: what each device does then, or what it waits for.

Everything is read off the Timeline (``bound_by`` holds the reasons); nothing is computed twice and no words are chosen.
"""

from typing import Literal, NamedTuple

from pipesched.metrics import Wait
from pipesched.model import Cell, Gap, Message, Op, Timeline

State = Literal["works", "waits", "done"]


class Moment(NamedTuple):
    """What one device is about: its ``state``, the cell it runs or waits to run, and the sentence that says so."""

    device: int
    state: State
    cell: Cell | None
    message: Message


def name(cell: Cell) -> Message:
    """Name a cell: 'forward of micro-batch 3 on stage 2'."""
    if isinstance(cell, Op):
        return Message(f"op.{cell.kind}", {"stage": cell.stage, "micro_batch": cell.micro_batch})
    return Message("op.pair", {"first": name(cell.first), "second": name(cell.second)})


def moment(timeline: Timeline, device: int, tick: int) -> Moment:
    """Say what ``device`` does at ``tick``; a block counts from its start to just before its end."""
    i = timeline.at(device, tick)
    if i >= 0 and tick < timeline.ends[device][i]:
        cell = timeline.schedule.rows[device][i]
        return Moment(device, "works", cell, Message("moment.works", {"op": name(cell)}))
    gap = timeline.gap_at(device, tick)
    if gap is None:
        return Moment(device, "done", None, Message("moment.end", {"time": timeline.costs.time(tick)}))
    if gap.before is None:
        return Moment(device, "done", None, Message("moment.done", {"start": timeline.costs.time(gap.start)}))
    return Moment(device, "waits", timeline.schedule.rows[device][gap.before], why_idle(timeline, gap, tick))


def block(timeline: Timeline, device: int, i: int) -> Message:
    """Say what the ``i``-th block of ``device`` is and what its start waited for."""
    time, rows = timeline.costs.time, timeline.schedule.rows
    start, cause = timeline.starts[device][i], timeline.bound_by[device][i]
    if cause is None:
        reason = Message("bound.nothing")
    elif timeline.position[cause.ops[0]][0] == device:
        reason = Message("bound.device", {"op": name(cause)})
    elif timeline.costs.latency:
        reason = Message("bound.hop", {"op": name(cause), "device": timeline.position[cause.ops[0]][0]})
    else:
        reason = Message("bound.value", {"op": name(cause)})
    values = {"device": device, "op": name(rows[device][i]), "reason": reason}
    return Message("block", {**values, "start": time(start), "end": time(timeline.ends[device][i])})


def why_idle(timeline: Timeline, gap: Gap, tick: int | None = None) -> Message:
    """Say why ``gap`` is there; with ``tick``, also how far the awaited operation is at that moment."""
    time, device = timeline.costs.time, gap.device
    span = {"device": device, "start": time(gap.start), "end": time(gap.end)}
    if gap.before is None:
        return Message("gap.done" if timeline.starts[device] else "gap.unused", span)
    cause = timeline.bound_by[device][gap.before]
    assert cause is not None  # a gap has an end, and only a value that arrives can make one
    home, i = timeline.position[cause.ops[0]]
    awaited = {
        **span,
        "next": name(timeline.schedule.rows[device][gap.before]),
        "op": name(cause),
        "op_start": time(timeline.starts[home][i]),
        "op_end": time(timeline.ends[home][i]),
        "home": home,
    }
    if tick is None:
        return Message("gap.waits_hop" if timeline.costs.latency else "gap.waits", awaited)
    if tick >= timeline.ends[home][i]:
        return Message("moment.travelling", awaited)
    return Message("moment.running" if tick >= timeline.starts[home][i] else "moment.later", awaited)


def standing(waits: list[Wait], tick: int) -> list[int]:
    """List the micro-batches that stand in a queue at ``tick``, in the order they arrived."""
    return [micro_batch for arrived, started, micro_batch in waits if arrived <= tick < started]
