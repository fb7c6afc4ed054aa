"""The text of a Chrome trace goes in, the events that are operations come out.

A trace is JSON, a list of events or ``{"traceEvents": [...]}``, of which the complete events (``X``: ``ts``, ``dur``)
and the pairs ``B`` and ``E`` are read. The operation is the event's name, or ``op`` or ``stage``, ``micro_batch`` and
``kind`` of its ``args``; the device is ``device`` or ``rank`` of them, or else the process (thread, where there is one
process), under its name where that ends in a number. Source: Trace Event Format, chromium.org.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pipesched.model import Cell, ScenarioError
from pipesched.notation import cell
from pipesched.reading import exact_number

FIELD = "measured"
KINDS = {"forward": "F", "fwd": "F", "backward": "B", "bwd": "B", "input": "I", "weight": "W"}
"""What else than its letter a trace may call a kind."""
NUMBER_AT_END = re.compile(r".*?(\d{1,9})\s*", re.ASCII | re.DOTALL)
UNFINISHED = object()
"""The end of what begins and never ends."""

Event = dict[str, Any]


class Span(NamedTuple):
    """Event ``number`` (from 1): ``cell`` ran on ``device`` from ``start`` to ``end``, whatever stands there."""

    number: int
    device: str
    cell: Cell
    start: Any
    end: Any


def spans(text: str) -> tuple[list[Span], int]:
    """Return the operations of a trace, in its order, and how many events are none.

    Raises
    ------
    ScenarioError
        For what is no trace.

    Examples
    --------
    >>> [span] = spans('[{"ph": "X", "name": "0F0", "ts": 5, "dur": 2, "pid": 0, "tid": 3}]')[0]
    >>> span.device, str(span.cell), int(span.start), int(span.end)
    ('3', '0F0', 5, 7)
    """
    events = _events(text)
    names = {place: name for event in events if isinstance(event, dict) for place, name in _naming(event)}
    found, left_out = list[tuple[int, Event, Cell, Any]](), 0
    open_: dict[tuple[str, str], list[tuple[int, Event]]] = {}
    for number, event in enumerate(events, 1):
        phase = event.get("ph") if isinstance(event, dict) else ""
        if phase == "M":
            continue
        if phase == "B":
            open_.setdefault(_place(event), []).append((number, event))
            continue
        began, end = (number, event), _end(event) if phase == "X" else None
        if phase == "E" and open_.get(_place(event)):
            began, end = open_[_place(event)].pop(), event.get("ts")
        ran = _ran(began[1]) if phase == "X" or began[1] is not event else None
        if ran is None:
            left_out += 1
        else:
            found.append((*began, ran, end))
    left = [(*began, ran, UNFINISHED) for place in open_.values() for began in place if (ran := _ran(began[1]))]
    left_out += sum(map(len, open_.values())) - len(left)
    many = len({_place(event)[0] for _, event, *_ in found}) > 1
    return [
        Span(n, _home(event, names, many), ran, event.get("ts"), end) for n, event, ran, end in found + left
    ], left_out


def _events(text: str) -> Sequence[Any]:
    """Return the events of a trace; one that broke off is read as far as it came, which the format allows."""
    options: dict[str, Any] = {"parse_float": str, "parse_constant": str}
    try:
        try:
            whole = json.loads(text, **options)
        except json.JSONDecodeError:
            if not text.lstrip().startswith("["):
                raise
            whole = json.loads(text.rstrip().rstrip(",") + "]", **options)
    except json.JSONDecodeError as error:
        raise ScenarioError(FIELD, "measured.json", {"line": str(error.lineno), "column": str(error.colno)}) from error
    except (ValueError, RecursionError) as error:
        raise ScenarioError(FIELD, "measured.json", {"line": "1", "column": "1"}) from error
    events = whole.get("traceEvents") if isinstance(whole, dict) else whole
    if not isinstance(events, list):
        raise ScenarioError(FIELD, "measured.events")
    return events


def _place(event: Event) -> tuple[str, str]:
    return str(event.get("pid")), str(event.get("tid"))


def _naming(event: Event) -> Iterator[tuple[tuple[str, str | None], str]]:
    """Yield which process or thread the event names, and how."""
    pid, tid = _place(event)
    if event.get("ph") == "M" and event.get("name") in ("process_name", "thread_name"):
        yield (pid, None if event["name"] == "process_name" else tid), str(_args(event).get("name", ""))


def _end(event: Event) -> Any:
    """Return when a complete event ended; what is no number is left as it is."""
    start, length = exact_number(event.get("ts")), exact_number(event.get("dur"))
    return event.get("dur") if start is None or length is None else start + length


def _args(event: Event) -> Event:
    args = event.get("args")
    return args if isinstance(args, dict) else {}


def _ran(event: Event) -> Cell | None:
    """Return the operation that an event is about, None where it is about something else."""
    args, name = _args(event), str(event.get("name", "")).strip()
    kind = str(args.get("kind", name)).strip()
    letter = KINDS.get(kind.casefold(), kind)
    said = f"{args.get('stage')}{letter}{args.get('micro_batch', args.get('microbatch'))}"
    for text in (str(args.get("op", "")), name, said):
        try:
            return cell(text)
        except ScenarioError:
            continue
    return None


def _home(event: Event, names: dict[tuple[str, str | None], str], many: bool) -> str:
    """Return what the device of an event is called."""
    args, (pid, tid) = _args(event), _place(event)
    for given in (args.get("device"), args.get("rank")):
        if given is not None:
            return str(given)
    name = names.get((pid, None if many else tid), "")
    return name if NUMBER_AT_END.fullmatch(name) else pid if many else tid
