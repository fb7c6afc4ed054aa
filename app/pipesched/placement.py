"""A Result whose layers are split goes in, a strip of who holds what comes out, as an SVG string and as sentences.

One lane per device, the depth of the model from left to right: a loop shows as a saw, a V as a V, two directions as a
cross. Widths are times, counted in layers. Hooks: ``data-stage`` and ``data-device`` on every box.
"""

from collections.abc import Iterator
from html import escape
from itertools import accumulate
from typing import NamedTuple

from pipesched.frame import FONT, WIDE
from pipesched.ink import PALETTES, Theme, deeper
from pipesched.layers import Part
from pipesched.model import Message
from pipesched.reading import Number
from pipesched.run import Result
from pipesched.words import sentence

TOP, DIGIT = 16, 7.2  # user units: height of the line with the numbers of layers, width of a digit


class Box(NamedTuple):
    """A stage on one of its devices; ``start`` and ``weight`` in layers of time, ``first`` its first layer, from 0."""

    stage: int
    device: int
    part: Part
    start: Number
    weight: Number
    first: int


def boxes(result: Result) -> list[Box]:
    """Return what lives where, stage by stage; two boxes for a stage of a two-way schedule. Empty where not split."""
    scenario = result.scenario
    parts = scenario.parts(result.timeline.schedule.stages)
    if not parts:
        return []
    weights = [part.weight(scenario.embedding, scenario.head) for part in parts]
    starts = [0, *accumulate(weights)]
    firsts = [0, *accumulate(part.layers for part in parts)]
    return [
        Box(stage, device, part, starts[stage], weights[stage], firsts[stage])
        for stage, part in enumerate(parts)
        for device in result.homes[stage]
    ]


def say(box: Box) -> Message:
    """Return the sentence about a box."""
    part, first = box.part, box.first
    what = [Message("placement.embedding")] if part.embedding else []
    if part.layers:
        span = {"first": first + 1, "last": first + part.layers}
        what.append(Message("placement.layers" if part.layers > 1 else "placement.layer", span))
    what += [Message("placement.extra", {"n": part.extra})] if part.extra else []
    what += [Message("placement.head")] if part.head else []
    held = what or [Message("placement.nothing")]
    values = {"stage": box.stage, "device": box.device, "what": held, "weight": box.weight}
    return Message("placement.stage", values)


def summary(result: Result) -> Message:
    """Name the largest and the smallest stage: which one to shrink."""
    found = boxes(result)
    largest, smallest = max(found, key=lambda box: box.weight), min(found, key=lambda box: box.weight)
    ends = {"stage": largest.stage, "weight": largest.weight, "least": smallest.weight}
    return Message("placement.equal" if largest.weight == smallest.weight else "placement.summary", ends)


def draw(result: Result, *, width: float, theme: Theme, language: str) -> str:
    """Return the strip, ``width`` user units wide."""
    devices, found = result.timeline.schedule.devices, boxes(result)
    lane = 22 if devices <= 16 else 13
    left = 76 if width >= WIDE else 28
    total = max(float(box.start + box.weight) for box in found)
    scale = (width - left - 2) / total
    height, palette = TOP + lane * devices + 2, PALETTES[theme]
    words = escape(sentence(summary(result), language), quote=True)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height}" viewBox="0 0 {width:g} {height}"'
        f' role="img" aria-label="{words}" font-family="{FONT}" font-size="11" fill="{palette.text}">'
    ]
    for device in range(devices):
        key = "device" if width >= WIDE else "stage.short"
        label = escape(sentence(Message(key, {"device": device, "stage": device}), language))
        y = TOP + lane * device
        out.append(f'<text x="0" y="{y + lane / 2 + 4:g}" font-size="{min(11, lane - 2)}">{label}</text>')
        out.append(f'<rect x="{left}" y="{y}" width="{width - left - 2:g}" height="{lane - 3}" fill="{palette.gap}"/>')
    out += _numbers(found, left, scale, palette.faint)
    for box in found:
        ink = palette.kinds["F"]
        if box.stage // devices % 2 or box.device != result.homes[box.stage][0]:
            ink = deeper(ink)
        x, wide, y = left + float(box.start) * scale, max(1.5, float(box.weight) * scale), TOP + lane * box.device
        text = _inside(box.part, wide - 4) if lane > 16 else ""
        out.append(
            f'<g data-stage="{box.stage}" data-device="{box.device}"><title>{escape(sentence(say(box), language))}'
            f'</title><rect x="{x:.2f}" y="{y}" width="{wide:.2f}" height="{lane - 3}" rx="2" fill="{ink.fill}"'
            f' stroke="{ink.outline}"/>'
            + (
                f'<text x="{x + wide / 2:.2f}" y="{y + 14}" text-anchor="middle" fill="{ink.text}">{text}</text>'
                if text
                else ""
            )
            + "</g>"
        )
    return "".join([*out, "</svg>"])


def _inside(part: Part, wide: float) -> str:
    """Return the fullest text that fits: E, the number of layers and L, or the number alone, or nothing."""
    middle = "+".join(["E"] * part.embedding + [str(part.layers)] + ["m"] * bool(part.extra) + ["L"] * part.head)
    return next((text for text in (middle, str(part.layers)) if len(text) * DIGIT <= wide), "")


def _numbers(found: list[Box], left: float, scale: float, colour: str) -> Iterator[str]:
    """Write above each stage the number of its first layer, where there is room."""
    free = 0.0
    for box in found:
        x = left + float(box.start) * scale
        if box.part.layers and x >= free:
            text = str(box.first + 1)
            yield f'<text x="{x:.2f}" y="11" font-size="10" fill="{colour}">{text}</text>'
            free = x + len(text) * DIGIT + 6
