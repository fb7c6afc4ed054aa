"""A Result and a language go in, what stands under its chart comes out: strips drawn, and the same in sentences."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from pipesched.frame import WIDE, frame
from pipesched.ink import Theme
from pipesched.model import Message
from pipesched.profile_svg import Strip, draw
from pipesched.profiles import SOURCE, Footprint, Profile, activation_profile
from pipesched.reading import Number
from pipesched.run import Result
from pipesched.schedules import REGISTRY
from pipesched.schedules.zb_auto import HELD_FOR_W
from pipesched.words import number, sentence


class Drawing(NamedTuple):
    """The strips as SVG; their peaks in ``sentences``; the ``formula`` of what is said in bytes, or why it is not."""

    svg: str
    sentences: list[str]
    formula: list[str]


def queues(result: Result, *, width: float, theme: Theme, language: str, until: float = 0) -> Drawing:
    """Draw the queue before each stage over time. Before stage 1 stand all inputs: it has a scale of its own."""
    timeline, curves = result.timeline, result.queue_profiles
    time, highest = timeline.costs.time, max((curve.peak for curve in curves[1:]), default=0)
    strips = []
    for stage, curve in enumerate(curves):
        label = Message("stage" if width >= WIDE else "profile.stage", {"stage": stage})
        here = {"stage": stage, "n": curve.peak, "time": time(curve.peak_at)}
        strips.append(
            Strip(
                sentence(label, language),
                curve,
                number(curve.peak, language) if curve.peak else "",
                sentence(Message("profile.queue.strip", here), language),
                highest if stage else curve.peak,
            )
        )
    said = [_longest_queue(result, highest)]
    if highest:
        waited = sum(curve.integral(timeline.end) for curve in curves[1:])
        said.append(Message("profile.queue.sum", {"sum": Fraction(waited) / timeline.costs.ticks_per_unit}))
    said.append(Message("profile.queue.inputs", {"n": curves[0].peak if curves else 0}))
    title = sentence(Message("profile.queue.title"), language)
    svg = draw(timeline, strips, title=title, kind="F", width=width, theme=theme, language=language, until=until)
    return Drawing(svg, [sentence(message, language) for message in said], [])


def _longest_queue(result: Result, highest: Number) -> Message:
    if not highest:
        return Message("profile.queue.none")
    curves, time = result.queue_profiles, result.timeline.costs.time
    stage = next(stage for stage, curve in enumerate(curves) if stage and curve.peak == highest)
    where = {"stage": stage, "time": time(curves[stage].peak_at)}
    return Message("profile.queue.longest", {"what": Message("count.micro_batches", {"n": highest}), **where})


def activations(result: Result, *, width: float, theme: Theme, language: str, until: float = 0) -> Drawing:
    """Draw what each device keeps for its backwards over time: in activations, or in bytes where these differ."""
    timeline, scenario, held, sized = result.timeline, result.scenario, result.activation_profiles, result.byte_profiles
    labels, _ = frame(timeline, width, language)
    in_bytes = bool(sized) and _runs_again(result)
    curves, limit, seconds = (sized if in_bytes else held), None, []
    if not in_bytes and "memory_limit" not in REGISTRY[scenario.schedule].unused:
        limit = scenario.memory_limit or scenario.devices
        seconds = [activation_profile(timeline, device, kept=HELD_FOR_W) for device in range(len(held))]
    highest = max((curve.peak for curve in curves), default=0)
    strips = []
    for device, curve in enumerate(curves):
        peak = number(held[device].peak, language) + (f" · {data(sized[device].peak, language)}" if sized else "")
        here = {"device": device, "peak": peak, "time": timeline.costs.time(curve.peak_at)}
        words = sentence(Message("profile.activations.strip", here), language)
        second = seconds[device] if seconds else None
        top = max(highest, limit or 0)
        strips.append(Strip(labels[device], curve, peak if curve.peak else "", words, top, second, limit))
    said = _most_activations(result, language)
    if limit:
        said.append(Message("profile.activations.limit", {"n": limit}))
    if in_bytes:
        said.append(Message("profile.bytes.shape"))
    title = sentence(Message("profile.activations.title"), language)
    svg = draw(timeline, strips, title=title, kind="B", width=width, theme=theme, language=language, until=until)
    return Drawing(svg, [sentence(message, language) for message in said], formula(result, language) if highest else [])


def _runs_again(result: Result) -> bool:
    return result.scenario.recompute != "none" or "R" in result.timeline.kinds


def _most_activations(result: Result, language: str) -> list[Message]:
    held, time = result.activation_profiles, result.timeline.costs.time
    device, curve = _highest(held)
    if not curve.peak:
        return [Message("profile.activations.none")]
    what = Message("count.activations", {"n": curve.peak})
    values: dict[str, Any] = {"device": device, "what": what, "time": time(curve.peak_at)}
    said = [Message("profile.activations.most", values)]
    if (micro_batches := result.metrics.peak_micro_batches[device]) != curve.peak:
        values["micro_batches"] = number(micro_batches, language, 2)
        said = [Message("profile.activations.most_chunks", values)]
    if result.byte_profiles:
        device, curve = _highest(result.byte_profiles)
        values = {"device": device, "bytes": data(curve.peak, language), "time": time(curve.peak_at)}
        said.append(Message("profile.bytes.most", values))
    return said


def _highest(curves: Sequence[Profile]) -> tuple[int, Profile]:
    device = max(range(len(curves)), key=lambda device: curves[device].peak)
    return device, curves[device]


def formula(result: Result, language: str) -> list[str]:
    """Say how large an activation is, by which formula and whose; or what is missing; nothing where none is known."""
    print_, scenario = result.footprint, result.scenario
    if print_ is None:
        return []
    if not isinstance(print_, Footprint):
        return [sentence(print_, language)]
    value = int(scenario.precision) // 8
    plain = "s · b · h · (34 + 5 · a · s / h)"
    values = {
        "symbols": plain if value == 2 else f"s · b · h · {16 * value + 2} + a · s² · b · {2 * value + 1}",
        "layer": data(print_.layer, language),
        "layers": number(print_.layers, language, 2),
        "whole": data(print_.sizes.whole, language),
        "entry": data(print_.entry, language),
        "value": value,
        "source": SOURCE,
    }
    again = ["bytes.entry"] if _runs_again(result) else []
    keys = ["bytes.layer", *(["bytes.scaled"] if value != 2 else []), *again, "bytes.source"]
    return [sentence(Message(key, values), language) for key in keys]


def data(count: Number, language: str) -> str:
    """Write a number of bytes with at most two decimals, in the largest unit that leaves at least 1.

    >>> data(2868903936, "en"), data(1500, "pl"), data(34, "en")
    ('≈\\u202f2.87\\xa0GB', '1,5\\xa0kB', '34\\xa0B')
    """
    unit, size = next(
        ((unit, size) for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)) if count >= size),
        ("B", 1),
    )
    return f"{number(Fraction(count) / size, language, 2)}\u00a0{unit}"
