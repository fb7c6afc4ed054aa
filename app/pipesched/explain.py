"""A Timeline and a moment go in, Messages come out: what each device does then, or what it waits for.

Everything is read off the Timeline (``bound_by`` holds the reasons); nothing is computed twice and no words are chosen.
"""

from typing import Literal, NamedTuple

from pipesched.metrics import Wait
from pipesched.model import Cell, Gap, Message, Op, Stuck, Timeline

State = Literal["works", "waits", "done"]


class Moment(NamedTuple):
    """What one device is about: its ``state``, the cell it runs or waits to run, and the sentence that says so."""

    device: int
    state: State
    cell: Cell | None
    message: Message


def name(cell: Cell, streams: int = 0) -> Message:
    """Name a cell: 'forward of micro-batch 3 on stage 2', or, where there are ``streams``, 'token 1 of stream 3 …'."""
    if not isinstance(cell, Op):
        return Message("op.pair", {"first": name(cell.first), "second": name(cell.second)})
    if streams:
        token, stream = divmod(cell.micro_batch, streams)
        return Message("op.token", {"stage": cell.stage, "token": token, "stream": stream})
    return Message(f"op.{cell.kind}", {"stage": cell.stage, "micro_batch": cell.micro_batch})


def moment(timeline: Timeline, device: int, tick: int) -> Moment:
    """Say what ``device`` does at ``tick``; a block counts from its start to just before its end."""
    i = timeline.at(device, tick)
    if i >= 0 and tick < timeline.ends[device][i]:
        cell = timeline.schedule.rows[device][i]
        return Moment(device, "works", cell, Message("moment.works", {"op": _name(timeline, cell)}))
    if device in timeline.stuck and i == len(timeline.starts[device]) - 1:
        stuck = timeline.stuck[device]
        return Moment(device, "waits", stuck.cell, _why_stuck(timeline, stuck, "moment"))
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
    else:
        home, place = timeline.position[cause.ops[0]]
        sent = home == device and start > timeline.ends[home][place]
        key = "sent" if sent else "device" if home == device else "hop" if timeline.costs.latency else "value"
        reason = Message(f"bound.{key}", {"op": _name(timeline, cause), "device": home})
    values = {"device": device, "op": _name(timeline, rows[device][i]), "reason": reason}
    talk = timeline.costs.all_reduce_of(rows[device][i])
    key, more = ("block.all_reduce", {"all_reduce": time(talk)}) if talk else ("block", {})
    return Message(key, {**values, **more, "start": time(start), "end": time(timeline.ends[device][i])})


def why_idle(timeline: Timeline, gap: Gap, tick: int | None = None) -> Message:
    """Say why ``gap`` is there; with ``tick``, also how far the awaited operation is at that moment."""
    time, device = timeline.costs.time, gap.device
    span = {"device": device, "start": time(gap.start), "end": time(gap.end)}
    if gap.before is None:
        return Message("gap.done" if timeline.starts[device] else "gap.unused", span)
    if gap.before == len(timeline.starts[device]):
        return _why_stuck(timeline, timeline.stuck[device], "gap")
    cause = timeline.bound_by[device][gap.before]
    assert cause is not None  # a gap has an end, and only a value that arrives, or one that was sent, can make one
    home, i = timeline.position[cause.ops[0]]
    awaited = {
        **span,
        "next": _name(timeline, timeline.schedule.rows[device][gap.before]),
        "op": _name(timeline, cause),
        "op_start": time(timeline.starts[home][i]),
        "op_end": time(timeline.ends[home][i]),
        "home": home,
    }
    if home == device:
        return Message("gap.sends" if tick is None else "moment.sends", awaited)
    if tick is None:
        return Message("gap.waits_hop" if timeline.costs.latency else "gap.waits", awaited)
    if tick >= timeline.ends[home][i]:
        return Message("moment.travelling", awaited)
    return Message("moment.running" if tick >= timeline.starts[home][i] else "moment.later", awaited)


class Return(NamedTuple):
    """A token left the last stage, on device ``home`` at ``end``; the next of its stream begins on ``device``."""

    home: int
    end: int
    device: int
    start: int


def returns(timeline: Timeline, stream: int) -> list[Return]:
    """List the ways back of ``stream``, token by token; none where there are no streams or where all is one device."""
    schedule = timeline.schedule
    passes = range(stream, schedule.micro_batches, schedule.streams) if schedule.streams else ()
    ways = (way_back(timeline, micro_batch) for micro_batch in passes)
    return [way for way in ways if way]


def way_back(timeline: Timeline, micro_batch: int) -> Return | None:
    """Return the way back from the token that is ``micro_batch`` to the next one of its stream, None if it is not."""
    schedule, place = timeline.schedule, timeline.position
    last, first = Op(schedule.stages - 1, "F", micro_batch), Op(0, "F", micro_batch + schedule.streams)
    if not schedule.streams or last not in place or first not in place or place[last][0] == place[first][0]:
        return None
    (home, i), (device, j) = place[last], place[first]
    return Return(home, timeline.ends[home][i], device, timeline.starts[device][j])


def _why_stuck(timeline: Timeline, stuck: Stuck, what: str) -> Message:
    values = {"device": stuck.device, "next": _name(timeline, stuck.cell)}
    if stuck.missing is None:
        return Message(f"{what}.nobody", values)
    return Message(f"{what}.stuck", {**values, "op": _name(timeline, stuck.missing)})


def _name(timeline: Timeline, cell: Cell) -> Message:
    return name(cell, timeline.schedule.streams)


def standing(waits: list[Wait], tick: int) -> list[int]:
    """List the micro-batches that stand in a queue at ``tick``, in the order they arrived."""
    return [micro_batch for arrived, started, micro_batch in waits if arrived <= tick < started]
