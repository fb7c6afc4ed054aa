"""A Timeline and a Sheet go in, blocks, bubbles and names are drawn on it; and the entries of their legend.

All blocks of an ink are one path, so that many cost little.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from pipesched.figures.paper import Look, Sheet
from pipesched.ink import PALETTES, Ink, deeper
from pipesched.model import Message, Timeline
from pipesched.svg import LETTERS, Pen, names, seconds
from pipesched.words import sentence

VECTORS = 10_000
"""The most blocks or steps that are drawn as vectors."""
PIECE = 4_000  # rectangles per path: the renderer of pixels takes no path of any length
THIN = 3.0  # points; narrower blocks, on average, are drawn without outline, hatch and name
NAMED = 2_500  # names; more would be slow to place
SMALLEST = 4.5  # points
BLOCK = 0.84  # of a lane
HATCHED = 0.4  # how far from fill to outline the colour of hatches is
ORDER = "FBIWRU"
HATCHES = {"F": "", "B": "////", "I": "----", "W": "||||", "R": "\\\\\\\\", "U": "++++"}
SHADES = {"F": 0.0, "W": 0.25, "R": 0.35, "B": 0.5, "I": 0.65, "U": 0.8}
"""How far from fill to outline a kind is coloured where there is no room for hatches, so that greys differ too."""
PALETTE = PALETTES["light"]
BATCH_INKS = [
    *PALETTE.kinds.values(),
    Ink("#bfe9ea", "#8fd0d2", "#1f7478", "#06383a"),
    Ink("#e4e0d8", "#c5beb0", "#6a6252", "#2e2a20"),
]


class Box(NamedTuple):
    """A rectangle: times and lanes."""

    start: float
    end: float
    top: float
    bottom: float


class Brush(NamedTuple):
    """How the blocks of an ink are filled."""

    ink: Ink
    hatch: str


def draw(axes: Axes, timeline: Timeline, page: Sheet, end: float, thin: bool) -> None:
    """Draw bubbles, blocks and their names."""
    look, time = page.figure.look, timeline.costs.time
    pen = Pen(PALETTE, look.language, LETTERS[look.letters], seconds(timeline), timeline.schedule.streams)
    many = sum(map(len, timeline.starts)) > VECTORS
    gaps = [
        Box(time(gap.start), time(gap.end), device - BLOCK / 2, device + BLOCK / 2)
        for device in range(timeline.schedule.devices)
        for gap in timeline.gaps(device)
    ]
    _fill(axes, "gap", gaps, PALETTE.gap, many=many)
    boxes, talks = _boxes(timeline, pen, look)
    for (kind, brush), some in sorted(boxes.items()):
        ink, name = brush.ink, f"op-{kind}"
        if thin:
            _fill(axes, name, some, mixed(ink.fill, ink.outline, SHADES[kind]), many=many)
            continue
        _fill(axes, name, some, ink.fill, brush.hatch, mixed(ink.fill, ink.outline, HATCHED))
        _fill(axes, "outline", some, "none", edge=ink.outline, linewidth=0.4)
    _fill(axes, "all-reduce", talks, "#00000070", many=many)
    if not thin and not many:
        _write(axes, timeline, pen, page, end)
    for device, stuck in timeline.stuck.items():
        at = time(timeline.ends[device][-1]) if timeline.ends[device] else 0
        axes.text(
            at, device, f" × {stuck.cell}?", color=PALETTE.kinds["I"].outline, va="center", fontsize=look.size - 1
        )


def _boxes(timeline: Timeline, pen: Pen, look: Look) -> tuple[dict[tuple[str, Brush], list[Box]], list[Box]]:
    """Return the blocks by kind and ink, a pair as two halves of its block; and the all-reduces at their ends."""
    boxes: defaultdict[tuple[str, bool, int], list[Box]] = defaultdict(list)
    talks, unit, inks = [], timeline.costs.ticks_per_unit, len(BATCH_INKS) if look.colours == "micro_batch" else 1
    for interval in timeline.intervals:
        part = BLOCK / len(interval.op.ops)
        for i, op in enumerate(interval.op.ops):
            top = interval.device - BLOCK / 2 + i * part
            key = (op.kind, pen.is_second(op), op.micro_batch % inks)
            boxes[key].append(Box(interval.start, interval.end, top, top + part))
        if talk := timeline.costs.all_reduce_of(interval.op):
            y = interval.device - BLOCK / 2
            talks.append(Box(interval.end - talk / unit, interval.end, y, y + BLOCK))
    return {(kind, _brush(kind, second, batch, look)): some for (kind, second, batch), some in boxes.items()}, talks


def _brush(kind: str, is_second: bool, micro_batch: int, look: Look) -> Brush:
    ink = PALETTE.kinds[kind] if look.colours == "kind" else BATCH_INKS[micro_batch % len(BATCH_INKS)]
    return Brush(deeper(ink) if is_second else ink, HATCHES[kind])


def _fill(
    axes: Axes,
    gid: str,
    boxes: Sequence[Box],
    colour: str,
    hatch: str = "",
    edge: str = "none",
    linewidth: float = 0,
    many: bool = False,
) -> None:
    """Draw ``boxes`` as one path, or as a few where they are very many."""
    for i in range(0, len(boxes), PIECE):
        x0, x1, y0, y1 = np.array(boxes[i : i + PIECE], dtype=float).T
        corners = np.stack([np.stack([x0, x1, x1, x0], -1), np.stack([y0, y0, y1, y1], -1)], -1)
        axes.add_artist(
            PathPatch(
                Path.make_compound_path_from_polys(corners), facecolor=colour, edgecolor=edge, linewidth=linewidth,
                hatch=hatch or None, gid=gid, rasterized=many, clip_on=False, joinstyle="miter",
            )
        )  # fmt: skip


def _write(axes: Axes, timeline: Timeline, pen: Pen, page: Sheet, end: float) -> None:
    """Write names on the blocks: long ones where all fit, else short ones, in one size that most can have."""
    look, labels = page.figure.look, []
    for interval in timeline.intervals:
        talk = timeline.costs.all_reduce_of(interval.op) / timeline.costs.ticks_per_unit
        part = BLOCK / len(interval.op.ops)
        room = (interval.end - talk - interval.start) / end * page.plot - 1
        for i, op in enumerate(interval.op.ops):
            y = interval.device - BLOCK / 2 + (i + 0.5) * part
            labels.append(((interval.start + interval.end - talk) / 2, y, op, room, 0.72 * part * page.lane))
    for which in (0, 1):  # long, short
        words = [names(op, pen)[which] for _, _, op, _, _ in labels]
        fits = [room / (0.62 * len(word)) for word, (_, _, _, room, _) in zip(words, labels, strict=True)]
        if min(fits, default=0) >= look.size - 2:
            break
    size = max(SMALLEST, min(look.size - 1, *fits))
    shown = [i for i, fit in enumerate(fits) if fit >= size]
    for i in shown if len(shown) <= NAMED else ():
        x, y, op, _, high = labels[i]
        if min(size, high) >= SMALLEST - 1:
            colour = _brush(op.kind, pen.is_second(op), op.micro_batch, look).ink.text
            axes.text(
                x, y, words[i], ha="center", va="center_baseline", fontsize=min(size, high), color=colour, gid="name"
            )


def entries(timelines: Sequence[Timeline], look: Look) -> dict[str, str]:
    """Return what the legend says: of every kind where there are several, and of bubbles (under an empty kind)."""
    kinds = sorted({kind for timeline in timelines for kind in timeline.kinds}, key=ORDER.index)
    letters, found = LETTERS[look.letters], {}
    for kind in kinds if len(kinds) > 1 else ():
        found[kind] = f"{letters.get(kind, kind)} {sentence(Message(f'legend.{kind}'), look.language)}"
    lanes = ((timeline, device) for timeline in timelines for device in range(timeline.schedule.devices))
    if any(True for timeline, device in lanes for _ in timeline.gaps(device)):
        found[""] = sentence(Message("figure.bubble"), look.language)
    return found


def patch(kind: str, look: Look, thin: bool) -> Patch:
    """Return the square that stands for ``kind`` in a legend; an empty one for a bubble."""
    if not kind:
        return Patch(facecolor=PALETTE.gap, edgecolor=PALETTE.gap_line, linewidth=0.4)
    ink = PALETTE.kinds[kind] if look.colours == "kind" else BATCH_INKS[-1]
    if thin:
        return Patch(facecolor=mixed(ink.fill, ink.outline, SHADES[kind]), linewidth=0)
    edge = mixed(ink.fill, ink.outline, HATCHED)
    return Patch(facecolor=ink.fill, edgecolor=edge, hatch=HATCHES[kind] or None, linewidth=0.4)


def is_thin(timeline: Timeline, page: Sheet, end: float) -> bool:
    """Say whether there is no room for outlines, hatches and names."""
    busy = sum(map(sum, timeline.ends)) - sum(map(sum, timeline.starts))
    long = busy / timeline.costs.ticks_per_unit / end * page.plot
    return page.lane < THIN or long < THIN * sum(map(len, timeline.starts))


def mixed(colour: str, other: str, share: float) -> str:
    """Return ``colour`` with a ``share`` of ``other`` in it."""
    first, second = np.array(to_rgb(colour)), np.array(to_rgb(other))
    return to_hex(tuple((1 - share) * first + share * second))
