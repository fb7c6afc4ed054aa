"""A Timeline goes in, a Chrome trace comes out: JSON that Perfetto and chrome://tracing open.

Each device is a process. Its first track holds what it computes, one event per block; further tracks hold what it
sends, where a hop takes time. Events of one track never overlap: a track that would need it is doubled. An arrow leads
from the block that makes a value to the block on another device that waits for it, through the transfer between them.

Times are whole microseconds, as the importers want them; the exact ones stand in ``args``. Rounding is monotone, so
what does not overlap in the Timeline does not in the trace.

Format: "Trace Event Format" (Google), sections on Complete, Metadata and Flow events; the same rules are in Perfetto's
documentation of "Other trace formats".
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from pipesched.explain import name
from pipesched.model import Cell, Message, Timeline
from pipesched.rules import ACTIVATION, GRADIENT, Values
from pipesched.words import sentence

Event = dict[str, Any]
COMPUTE = 1
"""The track of a device's blocks; those of its transfers follow."""


def trace(timeline: Timeline, *, microseconds: int | Fraction = 1000, language: str = "en") -> Event:
    """Return the trace of ``timeline`` as an object to be written as JSON.

    Parameters
    ----------
    microseconds
        How many make one unit of the durations: by default a unit is shown as a millisecond.

    Raises
    ------
    ValueError
        If ``microseconds`` is not positive.

    Examples
    --------
    >>> from pipesched import run
    >>> events = trace(run(devices=2, micro_batches=1).timeline)["traceEvents"]
    >>> [(event["pid"], event["ts"], event["dur"]) for event in events if event["ph"] == "X"]
    [(1, 0, 1000), (2, 1000, 1000)]
    """
    if microseconds <= 0:
        raise ValueError("microseconds must be positive")
    events = list(_Writer(timeline, Fraction(microseconds), language).events())
    return {"traceEvents": events, "displayTimeUnit": "ms"}


class _Writer:
    """What every event is made from."""

    def __init__(self, timeline: Timeline, microseconds: Fraction, language: str) -> None:
        self.timeline, self.language = timeline, language
        self.scale = microseconds / timeline.costs.ticks_per_unit
        self.values = Values(timeline.schedule)

    def events(self) -> Iterator[Event]:
        yield from self.names()
        yield from self.blocks()
        sends = list(self.sends())
        yield from self.transfers(sends)
        for number, (value, device, cell, track) in enumerate(sends):
            yield from self.arrow(number, value, device, cell, track)

    def names(self) -> Iterator[Event]:
        """Name every process and its first track, in the order of the devices."""
        for device in range(self.timeline.schedule.devices):
            about = {"ph": "M", "pid": device + 1, "tid": COMPUTE}
            yield {**about, "name": "process_name", "args": {"name": self.say("device", device=device)}}
            yield {**about, "name": "process_sort_index", "args": {"sort_index": device}}
            yield {**about, "name": "thread_name", "args": {"name": self.say("trace.compute")}}

    def blocks(self) -> Iterator[Event]:
        """Yield an event for every block that ran."""
        timeline, time = self.timeline, self.timeline.costs.time
        columns = zip(timeline.schedule.rows, timeline.starts, timeline.ends, timeline.bound_by, strict=True)
        for device, (row, starts, ends, causes) in enumerate(columns):
            for cell, start, end, cause in zip(row, starts, ends, causes, strict=False):
                facts = {"op": str(cell), "what": self.what(cell), "start": time(start), "end": time(end)}
                facts |= {"bound_by": str(cause)} if cause else {}
                yield self.span(device, COMPUTE, _short(cell), cell.ops[0].kind, start, end) | {"args": facts}

    def sends(self) -> Iterator[tuple[int, int, Cell, int]]:
        """Yield value, device and block of every first use of a value on a device that did not make it, and a track.

        Track 0 stands for none: a hop takes no time.
        """
        timeline, latency = self.timeline, self.timeline.costs.latency
        free: dict[tuple[int, str], list[int]] = {}
        seen: set[tuple[int, int]] = set()
        found = []
        for op, (device, place) in timeline.position.items():
            for base in self.values.needs(*op):
                value = base + op.micro_batch
                end, home, _ = timeline.made[value]
                if home != device and (value, device) not in seen:
                    seen.add((value, device))
                    found.append((end, home, value, device, timeline.schedule.rows[device][place]))
        for end, home, value, device, cell in sorted(found, key=lambda send: send[:4]):
            lanes = free.setdefault((home, self.sort(value)), [])
            lane = next((i for i, busy in enumerate(lanes) if busy <= end), len(lanes))
            lanes[lane : lane + 1] = [end + latency]
            yield value, device, cell, 0 if not latency else 2 + 2 * lane + (self.sort(value) == GRADIENT)

    def transfers(self, sends: list[tuple[int, int, Cell, int]]) -> Iterator[Event]:
        """Yield the tracks of the transfers and an event for each."""
        timeline, named = self.timeline, set()
        for value, device, _, track in sends:
            end, home, maker = timeline.made[value]
            if not track:
                continue
            if (home, track) not in named:
                named.add((home, track))
                about = {"ph": "M", "pid": home + 1, "tid": track, "name": "thread_name"}
                yield {**about, "args": {"name": self.say(f"trace.send.{self.sort(value)}")}}
            span = self.span(home, track, _short(maker), "transfer", end, end + timeline.costs.latency)
            yield span | {"args": {"of": str(maker), "to": self.say("device", device=device)}}

    def arrow(self, number: int, value: int, device: int, cell: Cell, track: int) -> Iterator[Event]:
        """Yield the events of the arrow from the maker of ``value`` to ``cell``.

        Each binds to the event that it lies inside of. An event that lasts no time has no inside: no arrow then.
        """
        timeline = self.timeline
        end, home, maker = timeline.made[value]
        at, place = timeline.position[cell.ops[0]]
        start = end - timeline.costs.of(maker)
        spans = [(home, COMPUTE, start, end), (at, COMPUTE, timeline.starts[at][place], timeline.ends[at][place])]
        if track:
            spans.insert(1, (home, track, end, end + timeline.costs.latency))
        if any(self.tick(last) == self.tick(first) for *_, first, last in spans):
            return
        for i, (where, tid, first, last) in enumerate(spans):
            phase = "s" if i == 0 else "f" if i == len(spans) - 1 else "t"
            moment = self.tick(last) - 1 if phase == "s" else self.tick(first)
            about = {"ph": phase, "id": number, "name": self.sort(value), "cat": "flow"}
            yield {**about, "pid": where + 1, "tid": tid, "ts": moment} | ({"bp": "e"} if phase == "f" else {})

    def span(self, device: int, track: int, label: str, category: str, start: int, end: int) -> Event:
        """Return a Complete event."""
        first, last = self.tick(start), self.tick(end)
        about = {"ph": "X", "pid": device + 1, "tid": track, "name": label, "cat": category}
        return {**about, "ts": first, "dur": last - first}

    def tick(self, tick: int) -> int:
        return round(tick * self.scale)

    def sort(self, value: int) -> str:
        return ACTIVATION if value >= self.values.stages * self.values.count else GRADIENT

    def what(self, cell: Cell) -> str:
        return sentence(name(cell, self.timeline.schedule.streams), self.language)

    def say(self, key: str, **params: Any) -> str:
        return sentence(Message(key, params), self.language)


def _short(cell: Cell) -> str:
    return "&".join(op.label() for op in cell.ops)
