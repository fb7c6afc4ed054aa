"""A Result and a language go in, sentences come out: what page and command line both say about it."""

from dataclasses import replace
from fractions import Fraction

from pipesched.batch import Optimum, optimum
from pipesched.bounds import Theory
from pipesched.model import Message
from pipesched.run import Result
from pipesched.scenario import PER_KIND, SETTINGS, Scenario
from pipesched.schedules import REGISTRY
from pipesched.trade import communication
from pipesched.words import number, percent, sentence


def theory(result: Result, language: str) -> list[str]:
    """Say how the result stands to its closed form, and how far above the lower bound it lies."""
    known, time = result.theory, result.timeline.costs.time
    bound = {"bound": time(known.bound), "makespan": result.metrics.makespan}
    excess = (result.timeline.end - known.bound) / max(1, known.bound)
    at_bound = Message("theory.above", {**bound, "share": percent(excess, language)}) if excess else AT_BOUND
    return [sentence(message, language) for message in (_closed_form(known, result, language), at_bound)]


AT_BOUND = Message("theory.at_bound")


def _closed_form(known: Theory, result: Result, language: str) -> Message:
    form, time = known.form, result.timeline.costs.time
    if form is None:
        return Message("theory.none", {"makespan": result.metrics.makespan})
    what = {"of": Message(f"theory.of.{form.of}"), "symbols": form.symbols}
    if known.value is None:
        return Message("theory.unmet", {**what, "why": list(form.unmet)})
    terms = "".join(part if isinstance(part, str) else number(time(part), language) for part in known.terms)
    return Message("theory.equals", {**what, "terms": terms, "value": time(known.value)})


def source(result: Result, language: str) -> str:
    """Name the source of the closed form; empty where there is none."""
    form = result.theory.form
    if form is None:
        return ""
    return form.source if isinstance(form.source, str) else sentence(form.source, language)


def durations(result: Result, language: str) -> str:
    """Say how long the operations of a plain stage take, each one, so that a picture can be made again."""
    scenario, schedule = result.scenario, result.timeline.schedule
    share = scenario.share(schedule.stages, schedule.devices) / scenario.tensor
    unit, talk = share * scenario.size()[1], share * scenario.tensor * scenario.reductions()
    f, i, w = scenario.forward * unit + talk, scenario.input_grad * unit + talk, scenario.weight_grad * unit
    kinds = result.timeline.kinds
    parts: list[tuple[str, int | Fraction]] = [("f", f)]
    if kinds - {"F"}:
        parts += [("i", i), ("w", w), ("b = i + w", i + w)]
    if schedule.has_pairs:
        parts.append(("F&B", (f + i + w) * scenario.overlap_share()))
    if "U" in kinds:
        parts.append(("u", scenario.update * share))
    parts.append(("c", scenario.comm))
    text = ", ".join(f"{name} = {number(value, language)}" for name, value in parts)
    uneven = len(set(scenario.factors(schedule.stages))) > 1
    key = "durations.layer" if scenario.split != "none" else "durations.uneven" if uneven else "durations"
    if set(PER_KIND) & scenario.per_stage().keys():
        key, text = "durations.of_stages", _of_stages(result, language)
    return " ".join([sentence(Message(key, {"what": text}), language), *_members(result, language)])


def _of_stages(result: Result, language: str) -> str:
    """List the durations of every kind that runs, one per stage."""
    costs, kinds = result.timeline.costs, sorted(result.timeline.kinds, key="FBIWRU".index)
    parts = [f"{kind} = {' · '.join(number(costs.time(t), language) for t in costs.durations[kind])}" for kind in kinds]
    return ", ".join([*parts, f"c = {number(costs.time(costs.latency), language)}"])


def _members(result: Result, language: str) -> list[str]:
    """Say that each device of the chart is a few that share its stages, and what their all-reduces cost."""
    scenario = result.scenario
    if scenario.tensor == 1:
        return []
    share = percent(communication(result.timeline), language)
    values = {"members": scenario.tensor, "all": scenario.tensor * scenario.devices, "share": share}
    return [sentence(Message("durations.members", values), language)]


def summary(result: Result, language: str) -> str:
    """Return the picture in one sentence, for those who cannot see it."""
    schedule, metrics = result.timeline.schedule, result.metrics
    values = {
        "schedule": Message(f"schedule.{result.scenario.schedule}"),
        "micro_batches": Message("count.micro_batches", {"n": schedule.micro_batches}),
        "stages": Message("count.stages", {"n": schedule.stages}),
        "makespan": metrics.makespan,
        "sequential": metrics.sequential_makespan,
        "first": metrics.first_output,
    }
    return sentence(Message("summary", values), language)


def unused(scenario: Scenario, language: str) -> dict[str, str]:
    """Say of each setting that changes nothing at the moment, why it does not."""
    title = Message(f"schedule.{scenario.schedule}")
    reasons = {name: Message("unused", {"schedule": title}) for name in sorted(REGISTRY[scenario.schedule].unused)}
    if scenario.split == "none":
        idle = dict.fromkeys(("embedding", "head", "layout"), "unused.split")
        idle |= {} if scenario.hidden_size else {"layers": "unused.split"}  # memory in bytes asks for them too
    else:
        idle = {"times_of": "unused.layer_times"} | ({} if scenario.split == "hand" else {"layout": "unused.hand"})
    if scenario.batch is None:
        idle |= dict.fromkeys(("overhead", "per_sample"), "unused.batch")
    said = {name: Message(key) for name, key in idle.items()} | reasons
    return {name: sentence(message, language) for name, message in said.items()}


def batch(result: Result, language: str) -> tuple[list[str], int | None]:
    """Say what a constant batch means and which M is best, and name that M where it is another one than now."""
    scenario = result.scenario
    samples, size = scenario.size()
    if scenario.batch is None or scenario.schedule == "order":
        return [], None
    values = {"batch": scenario.batch, "n": scenario.micro_batches, "samples": samples, "size": size}
    best = None if result.theory.textbook else _best(result)
    said = [Message("batch.why", values)]
    if result.theory.textbook:
        said.append(Message("batch.other"))
    elif best is None:
        said.append(Message("batch.one_way"))
    else:
        found = {"star": best.star, "least": best.least, "whole": best.whole, "divisor": best.divisor}
        said.append(Message("batch.optimum", found))
    other = best.divisor if best and best.divisor != scenario.micro_batches else None
    return [sentence(message, language) for message in said], other


def _best(result: Result) -> Optimum | None:
    """Return the optimum of a plain pipe: its step is affine in a micro-batch's size, so two steps give a and c."""
    scenario, schedule = result.scenario, result.timeline.schedule
    if scenario.batch is None or scenario.batch < 2:
        return None
    kinds = "F" if result.timeline.kinds == {"F"} else "FB"

    def step(micro_batches: int) -> Fraction:
        costs = replace(scenario, micro_batches=micro_batches).costs(schedule.stages, schedule.devices)
        return Fraction(sum(costs.durations[kind][0] for kind in kinds), costs.ticks_per_unit)

    whole, half = step(1), step(2)
    per_sample = 2 * (whole - half) / scenario.batch
    overhead = whole - per_sample * scenario.batch
    return optimum(schedule.devices, scenario.batch, overhead, per_sample, int(SETTINGS["micro_batches"].high))


def decoding(result: Result, language: str) -> str:
    """Say why one stream cannot keep the pipe busy, how many can, and what these do; empty where nothing is decoded.

    The token after this one is there once it has gone through all stages and back, ``sum f + K c`` later, and meanwhile
    the slowest stage has time for that over ``max f`` streams (schedules.decode; the closed form in bounds.py).
    """
    timeline, metrics = result.timeline, result.metrics
    schedule, forward = timeline.schedule, timeline.costs.durations["F"]
    if not schedule.streams:
        return ""
    hops = schedule.devices if schedule.devices > 1 else 0
    loop = sum(forward) + hops * timeline.costs.latency
    tokens = schedule.micro_batches
    rule = {"K": schedule.devices, "need": -(-loop // max(forward)), "loop": timeline.costs.time(loop)}
    rate = Fraction(tokens * timeline.costs.ticks_per_unit, timeline.end)
    numbers = {
        "streams": Message("count.streams", {"n": schedule.streams}),
        "busy": percent(1 - metrics.bubble_fraction_of_total, language),
        "tokens": Message("count.tokens", {"n": tokens}),
        "makespan": metrics.makespan,
        "rate": number(rate, language, 3),
    }
    key = "rule" if not timeline.costs.blocks or not timeline.costs.latency else "rule_blocking"
    said = (Message(f"decoding.{key}", rule), Message("decoding.numbers", numbers))
    return " ".join(sentence(message, language) for message in said)
