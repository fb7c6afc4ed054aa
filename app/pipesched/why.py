"""A Result goes in, what the page says of its gaps and of its critical path comes out: parts of the answers of web.py.

Nothing of it is asked for while a slider is dragged, and none of it where it would keep the next drag waiting.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any

from pipesched import causes, critical
from pipesched.model import Cell, Gap, Message
from pipesched.run import Result
from pipesched.words import number, percent, sentence

Answer = dict[str, Any]
Say = Callable[..., str]

MOST_EXPLAINED = 50_000
"""The most operations, as causes.effort counts, whose causes a page is asked for: more would delay the next drag."""

MOST_TRIED = 60_000
"""The most operations that are simulated to find the stage that gains most."""

MOST_LINKS = 300
"""How many operations of the chain behind a gap are drawn, those nearest to it."""


def is_too_much(result: Result) -> bool:
    """Say whether causes and critical path are left out: for a deadlock, and where they would take too long."""
    return result.deadlock is not None or causes.effort(result.timeline) > MOST_EXPLAINED


def spot(result: Result, device: int, start: int, cell: Cell | None, say: Say) -> Answer:
    """Return what else is known of the block, or, where ``cell`` is None, of the gap that begins at tick ``start``."""
    if is_too_much(result):
        return {}
    gap = result.timeline.gap_at(device, start) if cell is None else None
    return _cause(result, gap, say) if gap else _slack(result, device, start, say)


def _cause(result: Result, gap: Gap, say: Say) -> Answer:
    """Return the sort of a gap, the sentences on it and on what could have run, and the chain of operations behind."""
    timeline, time, parts = result.timeline, result.timeline.costs.time, causes.shares(result.study, gap)
    most = max(parts, key=lambda part: part.end - part.start).sort
    if len(parts) == 1:
        more = [say("cause.is", sort=say(f"cause.{most}"))]
    else:
        sums = {part.sort: 0 for part in parts}
        for sort, start, end in parts:
            sums[sort] += end - start
        listed = [Message("cause.part", {"sort": say(f"cause.{s}"), "time": time(t)}) for s, t in sums.items()]
        more = [say("cause.parts", what=listed)]
    if gap.before is None:
        return {"sort": most, "more": more, "chain": []}
    first: dict[
        bool, causes.Chance
    ] = {}  # of each sort of operation the next one: a forward and what frees memory are held back differently
    for chance in causes.could_have_run(result.study, gap):
        first.setdefault(timeline.schedule.rows[gap.device][chance.place.i].ops[0].kind == "F", chance)
    rules = [causes.why_not(result.study, gap, chance, result.scenario.schedule) for chance in first.values()]
    more += [say(rule.key, **rule.params) for rule in rules or [Message("why_not.nothing")]]
    chain = islice(causes.chain(timeline, gap.device, gap.before), MOST_LINKS)
    links = [(d, time(timeline.starts[d][i]), time(timeline.ends[d][i])) for d, i in chain]
    return {"sort": most, "more": more, "chain": links}


def _slack(result: Result, device: int, start: int, say: Say) -> Answer:
    timeline = result.timeline
    slack = result.slacks[device][max(0, timeline.at(device, start))] if timeline.starts[device] else 0
    key = "slack.some" if slack else "slack.none"
    return {"more": [say(key, slack=timeline.costs.time(slack))], "slack": timeline.costs.time(slack)}


def bubble(result: Result, asked: Mapping[str, Any], say: Say) -> Answer:
    """Return the idle time of each sort, and the slow factor from which on the slow stage is the bottleneck."""
    timeline, scenario, language = result.timeline, result.scenario, asked["lang"]
    slow = (scenario.slow_stage or (timeline.schedule.stages + 1) // 2) - 1
    point = None if result.deadlock else critical.turning_point(timeline, slow, scenario.slow_factor)
    turn = point and {"value": float(point), "text": say("why.turn", factor=point, stage=slow)}
    if is_too_much(result):
        said = "" if result.deadlock else say("why.too_many", most=MOST_EXPLAINED)
        return {"sorts": {}, "said": said, "turn": turn}
    total = sum(result.bubble.values())
    sorts = {
        sort: {
            "value": timeline.costs.time(ticks),
            "text": number(timeline.costs.time(ticks), language, 3),
            "share": ticks / total,
            "percent": percent(Fraction(ticks, total), language),
        }
        for sort, ticks in result.bubble.items()
        if ticks
    }
    return {"sorts": sorts, "said": "" if sorts else say("why.none"), "turn": turn}


def what_if(result: Result, asked: Mapping[str, Any], say: Say) -> Answer:
    """Say which stage gains most by being faster; an empty text where finding out would take too long."""
    timeline = result.timeline
    best = None if is_too_much(result) else critical.best_gain(timeline, MOST_TRIED)
    if best is None:
        return {"text": ""}
    if not best.ticks:
        return {"text": say("why.what_if_none")}
    share = percent(best.ticks / timeline.end, asked["lang"])
    return {"text": say("why.what_if", stage=best.stage, gain=best.ticks / timeline.costs.ticks_per_unit, share=share)}


def path(result: Result, asked: Mapping[str, Any], say: Say) -> Answer:
    """Return the critical path as [device, start, end], in the person's unit."""
    timeline, time = result.timeline, result.timeline.costs.time
    if is_too_much(result):
        return {"spans": []}
    places = critical.critical_path(timeline)
    return {"spans": [(d, time(start), time(end)) for d, start, end in critical.spans(timeline, places)]}


def lines(result: Result, language: str) -> list[str]:
    """Say, for the command line, what the bubble is made of, in which stages the critical path lies, and what if.

    Nothing where the page would be asked for none of it.
    """
    if is_too_much(result):
        return []

    def say(key: str, **params: Any) -> str:
        return sentence(Message(key, params), language)

    timeline, time = result.timeline, result.timeline.costs.time
    sums = sorted(((sort, ticks) for sort, ticks in result.bubble.items() if ticks), key=lambda item: -item[1])
    idle = [Message("cause.part", {"sort": Message(f"cause.{sort}"), "time": time(ticks)}) for sort, ticks in sums]
    spent = critical.spent_per_stage(timeline)
    order = sorted((stage for stage, ticks in enumerate(spent) if ticks), key=lambda stage: -spent[stage])
    path = [Message("cli.on_path", {"stage": stage, "time": time(spent[stage])}) for stage in order[:MOST_LISTED]]
    if rest := sum(spent[stage] for stage in order[MOST_LISTED:]):
        path.append(Message("cli.others", {"time": time(rest)}))
    if hops := timeline.end - sum(spent):
        path.append(Message("cli.hops", {"time": time(hops)}))
    said = [say("cli.bubble", what=idle) if idle else say("why.none"), say("cli.critical", what=path)]
    return [*said, *filter(None, [what_if(result, {"lang": language}, say)["text"]])]


MOST_LISTED = 8
"""How many stages the command line names."""


def to_dict(result: Result) -> Answer:
    """Return the same as JSON can hold it, with sorts, stages from 0, and times; {} where it is left out."""
    if is_too_much(result):
        return {}
    timeline, time = result.timeline, result.timeline.costs.time
    spent, best = critical.spent_per_stage(timeline), critical.best_gain(timeline, MOST_TRIED)
    return {
        "bubble": {sort: time(ticks) for sort, ticks in result.bubble.items()},
        "critical_path": {"stages": [time(ticks) for ticks in spent], "hops": time(timeline.end - sum(spent))},
        "what_if": best
        and {
            "stage": best.stage,
            "factor": float(critical.FASTER),
            "gain": float(best.ticks / timeline.costs.ticks_per_unit),
        },
    }
