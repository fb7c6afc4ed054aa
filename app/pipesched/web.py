"""JSON text goes in, JSON text comes out: the one door of the page. No word of JavaScript is known here.

Requests (``do`` names them; ``settings`` are Scenario fields as typed, ``lang`` and ``theme`` how to say and draw it):

===========  =========================================  ========================================================
do           with                                       answers
===========  =========================================  ========================================================
``run``      settings, width, letters, pinned, measured settings as read, problems, svg, numbers, formula, ...
``moment``   settings, time                             what each device does then, the queues, the next events
``explain``  settings, device, time, move               the block or gap at that point, its cause or slack, the chain
``table``    settings, limit                            the intervals as rows of text
``order``    settings                                   the order of every device in PyTorch's notation
``point``    settings, metric                           one point of a curve
``curves``   settings, axis, metric, series, width      the curves through the points asked for before
``why``      settings                                   what the bubble is made of, where the bottleneck moves
``what_if``  settings                                   which stage gains most by being faster, in a sentence
``path``     settings                                   the critical path as [device, start, end]
``trade``    settings, of (``batch`` or ``tensor``)     rows: the same work with another M, or other degrees t
``profile``  settings, of, width, pinned, measured      ``queues`` or ``activations`` over time: svg and sentences
``adopt``    settings, measured                         settings: order and mean times of the measurement
``lesson``   step; device, time, move or guess          a step of the lessons; what a guess is worth
``picture``  settings, width, letters, pinned,          the chart as a file of its own (svg), a thumbnail, what both
             transparent                                show in words, how its file is called; as ``pdf``: that file
``export``   settings, as (a name of formats.py)        a file's text, name and media type; why it is not all shown
===========  =========================================  ========================================================
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from itertools import islice
from math import floor
from typing import Any

from pipesched import lessons, measuring, report, sources, strips, views, why
from pipesched.explain import block, moment, name, standing, way_back, why_idle
from pipesched.metrics import Metrics
from pipesched.model import Cell, Gap, Message, Op, ScenarioError
from pipesched.run import Result, read
from pipesched.scenario import Scenario
from pipesched.schedules import REGISTRY
from pipesched.words import SHARES, catalogue, number, percent, sentence

Answer = dict[str, Any]
Say = Callable[..., str]

MOST = 400_000
"""The most operations that a page is asked to simulate: half a minute in a browser; the command line takes more."""


def handle(request: str) -> str:
    """Answer one request of the page.

    >>> asked = {"do": "run", "settings": {"devices": 2}, "lang": "en", "theme": "light", "width": 400}
    >>> answer = json.loads(handle(json.dumps(asked)))
    >>> answer["end"], answer["changed"], answer["problems"]
    (5, {'devices': 2}, [])
    """
    asked = json.loads(request)
    result, errors = read(asked["settings"], MOST)
    language = asked["lang"]

    def say(key: str, **params: Any) -> str:
        return sentence(Message(key, params), language)

    answer = ANSWERS[asked["do"]](result, asked, say)
    return json.dumps(answer | {"problems": [_problem(error, say) for error in errors]})


def _run(result: Result, asked: Mapping[str, Any], say: Say) -> Answer:
    scenario, language = result.scenario, asked["lang"]
    letters = asked.get("letters", "pytorch")
    pinned = views.pinned(result, asked, MOST)
    until = views.until(result, pinned)
    drawn = {
        "settings": scenario.settings(),
        "changed": scenario.changed(),
        "svg": result.svg(width=asked["width"], theme=asked["theme"], language=language, letters=letters, until=until),
        "pinned": pinned and views.beside(result, pinned, asked, until),
        "measured": measuring.answer(result, asked),
        "end": result.timeline.costs.time(result.timeline.end),
        "kinds": sorted(result.timeline.kinds),
        "reduces": any(map(any, result.timeline.costs.all_reduce.values())),
        "events": max(map(len, result.timeline.starts), default=0),
        "limits": _limits(result, say),
        "unused": report.unused(scenario, language),
        "placement": sources.placed(result, asked),
        "about": _about(scenario, say),
        "durations": report.durations(result, language),
        "decoding": "" if result.deadlock else report.decoding(result, language),
        "deadlock": result.deadlock and sentence(result.deadlock.message, language),
    }
    if result.deadlock:  # what did not end has no numbers
        nothing = [{"name": item.name, "value": None, "text": "–"} for item in fields(Metrics)]
        return drawn | {
            "numbers": nothing,
            "devices": [],
            "formula": None,
            "batch": None,
            "notes": [],
            "summary": drawn["deadlock"],
        }
    metrics = result.metrics
    return drawn | {
        "numbers": _numbers(metrics, language),
        "devices": _devices(result, language),
        "formula": _formula(result, say, language),
        "batch": sources.batch(result, language),
        "notes": [{"text": sentence(note.message, language), "settings": note.settings} for note in result.notes],
        "summary": report.summary(result, language),
    }


def _about(scenario: Scenario, say: Say) -> Answer:
    entry = REGISTRY[scenario.schedule]
    return {
        "idea": say(f"schedule.{entry.name}.idea"),
        "source": entry.source,
        "needs": say("page.needs", needs=say(f"schedule.{entry.name}.needs")) if entry.name in NEEDY else "",
        "also": say("page.also", names=", ".join(entry.synonyms)) if entry.synonyms else "",
    }


def _numbers(metrics: Metrics, language: str) -> list[Answer]:
    """Return the metrics that are one number each, as value and as text."""
    rows = []
    for item in fields(metrics):
        value = getattr(metrics, item.name)
        if not isinstance(value, tuple):
            rows.append({"name": item.name, "value": value, "text": _text(item.name, value, language)})
    return rows


def _devices(result: Result, language: str) -> list[Answer]:
    """Return the numbers that there is one of per device; of the queues, those of all its stages."""
    metrics, homes = result.metrics, result.homes
    names = ("utilisation", "busy", "peak_activations", "peak_micro_batches", "weight_versions")
    rows = []
    for device in range(result.timeline.schedule.devices):
        queues = [peak for stage, peak in enumerate(metrics.peak_queue) if device in homes[stage]]
        row: Answer = {"peak_queue": {"value": max(queues, default=0), "text": ", ".join(map(str, queues))}}
        for metric in names:
            value = getattr(metrics, metric)[device]
            row[metric] = {"value": value, "text": _text(metric, value, language)}
        rows.append(row)
    return rows


def _text(name: str, value: Any, language: str) -> str:
    if value is None:
        return "–"
    if name == "bottleneck_stage":
        return sentence(Message("stage.short", {"stage": value}), language)
    return percent(value, language) if name in SHARES else number(value, language, 3)


def _formula(result: Result, say: Say, language: str) -> Answer:
    """Return the closed form with the numbers in it, and M + K - 1 against K M or why these do not apply."""
    time, theory, scenario = result.timeline.costs.time, result.theory, result.scenario
    steps, alone = scenario.micro_batches + scenario.devices - 1, scenario.micro_batches * scenario.devices
    textbook = {"M": scenario.micro_batches, "K": scenario.devices, "steps": steps, "alone": alone}
    return {
        "textbook": not theory.textbook and say("textbook.holds", **textbook),
        "step": theory.step != result.timeline.costs.ticks_per_unit
        and say("textbook.step", step=time(theory.step), makespan=result.metrics.makespan, steps=steps),
        "why": [sentence(message, language) for message in theory.textbook],
        "text": report.theory(result, language),
        "source": report.source(result, language),
    }


def _limits(result: Result, say: Say) -> list[str]:
    """List what the model leaves out, for the settings at hand."""
    scenario = result.scenario
    decoding = scenario.schedule == "decode"
    keys = ["forward_only" if result.timeline.kinds <= {"F"} else "training"]
    keys += ["no_transfers" if not scenario.comm else "blocking" if scenario.send == "blocking" else "latency"]
    size = "constant_batch" if scenario.batch and scenario.schedule != "order" else "constant_size"
    keys += [size] if decoding else [size, "independent"]
    return [say(f"limits.{key}") for key in keys]


NEEDY = frozenset(name for name in REGISTRY if f"schedule.{name}.needs" in catalogue("en"))
"""Schedules that do not take any K and M."""


def _moment(result: Result, asked: Mapping[str, Any], say: Say) -> Answer:
    timeline, language = result.timeline, asked["lang"]
    tick, columns = _tick(result, asked["time"]), (*timeline.starts, *timeline.ends)
    at = [moment(timeline, device, tick) for device in range(timeline.schedule.devices)]
    earlier = [column[i - 1] for column in columns if (i := bisect_left(column, tick))]
    later = [column[i] for column in columns if (i := bisect_right(column, tick)) < len(column)]
    return {
        "streams": timeline.schedule.streams,
        "time": {"value": timeline.costs.time(tick), "text": number(timeline.costs.time(tick), language)},
        "previous": timeline.costs.time(max((tick_ for tick_ in earlier), default=0)),
        "next": timeline.costs.time(min(later, default=timeline.end)),
        "devices": [
            {
                "state": here.state,
                "op": None if here.cell is None else str(here.cell),
                "text": sentence(here.message, language),
            }
            for here in at
        ],
        "queues": [
            {"stage": stage, "device": device, **_standing(result, stage, device, tick)}
            for stage, homes in enumerate(result.homes)
            for device in homes
        ],
    }


def _standing(result: Result, stage: int, device: int, tick: int) -> Answer:
    """Return, per direction, the micro-batches that wait before ``stage`` on ``device`` at ``tick``."""
    found: Answer = {}
    for way, waits in result.queues.items():
        here = standing(waits[stage], tick)
        if len(result.homes[stage]) > 1:
            here = [micro_batch for micro_batch in here if result.device_of(stage, micro_batch) == device]
        found[way] = here
    return found


def _order(result: Result, asked: Mapping[str, Any], say: Say) -> Answer:
    return {"order": result.order()}


def _explain(result: Result, asked: Mapping[str, Any], say: Say) -> Answer:
    """Say what is at a point of the chart, or, with ``move`` 1 or -1, what comes after or before it."""
    timeline, device, time = result.timeline, asked["device"], result.timeline.costs.time
    start, end, cell, message = _spot(result, device, _tick(result, asked["time"]))
    if move := asked.get("move", 0):
        start, end, cell, message = _spot(result, device, min(end, timeline.end) if move > 0 else max(0, start - 1))
    text = sentence(message, asked["lang"])
    spot = {"device": device, "op": cell and str(cell), "text": text, "start": time(start), "end": time(end)}
    return spot | why.spot(result, device, start, cell, say) | {"returns": _returns(result, cell)}


def _returns(result: Result, cell: Cell | None) -> list[Answer]:
    """Return how the token of ``cell`` came back to the first stage, and how it goes there after the last one."""
    streams, time = result.timeline.schedule.streams, result.timeline.costs.time
    if not streams or not isinstance(cell, Op):
        return []
    ways = [way_back(result.timeline, cell.micro_batch - streams), way_back(result.timeline, cell.micro_batch)]
    return [
        {"from": {"device": way.home, "time": time(way.end)}, "to": {"device": way.device, "time": time(way.start)}}
        for way in ways
        if way
    ]


def _profile(result: Result, asked: Mapping[str, Any], say: Say) -> Answer:
    draw = {"queues": strips.queues, "activations": strips.activations}[asked["of"]]
    until = views.until(result, views.pinned(result, asked, MOST))
    drawing = draw(result, width=asked["width"], theme=asked["theme"], language=asked["lang"], until=until)
    return drawing._asdict() | {"of": asked["of"]}


def _picture(result: Result, asked: Mapping[str, Any], say: Say) -> Answer:
    from pipesched import takeaway  # a start is not held up by what few ask for

    return takeaway.take(result, views.pinned(result, asked, MOST), asked)


def _export(result: Result, asked: Mapping[str, Any], say: Say) -> Answer:
    from pipesched import takeaway

    return takeaway.export(result, asked)


def _spot(result: Result, device: int, tick: int) -> tuple[int, int, Cell | None, Message]:
    """Return start, end, cell (None for a gap) and explanation of what ``device`` is about at ``tick``."""
    timeline = result.timeline
    gap = timeline.gap_at(device, min(tick, timeline.end - 1))  # the very end belongs to what reaches it
    if device in timeline.stuck and timeline.at(device, tick) == len(timeline.starts[device]) - 1 and not gap:
        over = timeline.ends[device][-1] if timeline.ends[device] else 0
        if tick >= over:  # it stands at the very end of the picture, where no gap is left to point at
            gap = Gap(device, over, timeline.end, len(timeline.starts[device]))
    if gap:
        return gap.start, gap.end, None, why_idle(timeline, gap)
    i = max(0, timeline.at(device, tick))
    start, end = timeline.starts[device][i], timeline.ends[device][i]
    return start, end, timeline.schedule.rows[device][i], block(timeline, device, i)


def _lesson(result: Result, asked: Mapping[str, Any], say: Say) -> Answer:
    """Tell a step of the lessons; with ``guess``, also what it is worth (null: it is to be shown).

    With ``time``, name the block at a point of the chart and keep why it is there to itself: a step may ask just that.
    """
    if "time" in asked:
        spot = _explain(result, asked, say)
        what = lessons.named(result, spot["op"], asked["lang"])
        span = {name: number(spot[name], asked["lang"]) for name in ("start", "end")}
        return spot | {"text": say("lesson.at", device=spot["device"], op=what, **span)}
    step, wanted = lessons.find(asked["step"]), asked["step"]
    unknown = say("lesson.unknown", given=wanted[:40]) if wanted and wanted != step.name else ""
    answer = lessons.tell(step, asked["lang"]) | {"unknown": unknown}
    return answer | lessons.judge(step, asked["guess"], asked["lang"]) if "guess" in asked else answer


def _table(result: Result, asked: Mapping[str, Any], say: Say) -> Answer:
    language = asked["lang"]
    rows = [
        [
            say("device", device=interval.device),
            str(interval.op),
            sentence(name(interval.op, result.timeline.schedule.streams), language),
            number(interval.start, language),
            number(interval.end, language),
            "–" if interval.bound_by is None else str(interval.bound_by),
        ]
        for interval in islice(result.timeline.intervals, asked["limit"])
    ]
    total = sum(map(len, result.timeline.starts))
    cut = total > len(rows) and say("table.cut", shown=len(rows), n=total)
    return {"rows": rows, "cut": cut}


def _tick(result: Result, time: float) -> int:
    """Return the tick that governs ``time``: that of the event shown as this float, else the last one before it."""
    timeline = result.timeline
    shown = timeline.costs.time
    for column in (*timeline.starts, *timeline.ends):
        i = bisect_left(column, time, key=shown)
        if i < len(column) and shown(column[i]) == time:
            return column[i]
    return max(0, min(floor(Fraction(time) * timeline.costs.ticks_per_unit), timeline.end))


def _problem(error: ScenarioError, say: Say) -> Answer:
    """Return what is wrong with a field, and settings that would put it right."""
    repairs = [
        {"settings": repair, "text": say("repair", what=", ".join(_assignment(repair, say)))}
        for repair in error.repairs
    ]
    return {"field": error.field, "text": say(error.message.key, **error.message.params), "repairs": repairs}


def _assignment(repair: Mapping[str, Any], say: Say) -> list[str]:
    return [f"{say('name_of', field=field)}: {value or say('automatic')}" for field, value in repair.items()]


ANSWERS: dict[str, Callable[[Result, Mapping[str, Any], Say], Answer]] = {
    "run": _run,
    "moment": _moment,
    "explain": _explain,
    "table": _table,
    "order": _order,
    "point": lambda result, asked, say: views.point(result, asked),
    "curves": lambda result, asked, say: views.curves(result, asked),
    "why": why.bubble,
    "what_if": why.what_if,
    "path": why.path,
    "adopt": lambda result, asked, say: measuring.adopt(result, asked),
    "trade": lambda result, asked, say: sources.traded(result, asked),
    "profile": _profile,
    "lesson": _lesson,
    "picture": _picture,
    "export": _export,
}
