"""A Timeline goes in, a chart comes out as an SVG string: the one drawing that page, notebook and files show.

The chart stands alone: presentation attributes only, no style sheet, no script, no foreignObject, a system font. Its
size is bounded by its pixels: where blocks would be too narrow to tell apart, a lane becomes a stack of shares, one
path per kind, in which each column of pixels is filled as far as the device was busy during it.

Hooks (kept stable, see README): ``data-op``, ``data-device``, ``data-start``, ``data-end`` on every block, ``data-gap``
(``waits``, ``done`` or ``stuck``) with the same on every gap, ``data-stuck`` on the mark where a device waits for ever;
on the root ``data-left``, ``data-plot`` (x of time 0 and width of the makespan), ``data-top``, ``data-lane``,
``data-block`` (y of the first lane, its pitch and the height of a block; all in user units), ``data-devices`` and
``data-end`` (the makespan).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from math import hypot
from typing import Literal

from pipesched.explain import Return, name, returns
from pipesched.frame import FONT, Layout, axis, draw_marks, frame, n
from pipesched.ink import PALETTES, PATTERNS, Ink, Palette, Theme, deeper
from pipesched.model import Message, Op, Timeline
from pipesched.words import sentence

Letters = Literal["pytorch", "zero_bubble"]
LETTERS: dict[Letters, dict[str, str]] = {"pytorch": {}, "zero_bubble": {"B": "BW", "I": "B"}}
"""What each convention writes for a kind, where that is not our letter."""

NARROWEST = 5  # user units; below this a block cannot be told from its neighbour
FEW = 96  # operations; in a chart of more, the arrows of a stream would hide the blocks
THINNEST = 4  # user units; lanes of one block that are thinner than this are not drawn apart
COLUMN = 2  # user units; the width of one column of a stacked lane


@dataclass(frozen=True)
class Pen:
    """How things are drawn and named."""

    palette: Palette
    language: str
    letters: Mapping[str, str]
    is_second: Callable[[Op], bool]
    """Whether an operation is of a second (fourth, ...) chunk of its device, of the second direction, or token."""
    streams: int = 0

    def ink(self, op: Op) -> Ink:
        """Return the ink of an operation."""
        ink = self.palette.kinds[op.kind]
        return deeper(ink) if self.is_second(op) else ink


def draw(
    timeline: Timeline,
    *,
    width: float = 720,
    theme: Theme = "light",
    language: str = "en",
    letters: Letters = "pytorch",
    until: float = 0,
    marks: tuple[tuple[int, Message], ...] = (),
) -> str:
    """Return the chart of ``timeline`` as SVG text.

    Parameters
    ----------
    width
        In user units, which are CSS pixels where the chart is shown at its natural size.
    letters
        Whose letters stand on the blocks: ``pytorch`` writes B for a full backward and I for an input gradient,
        ``zero_bubble``, as the papers on it do, BW and B.
    until
        A time that the axis reaches at least, so that charts under one another can share it.
    marks
        Moments to point out under the axis, as (tick, what to call it).

    Examples
    --------
    >>> from pipesched import run
    >>> picture = draw(run().timeline, width=400, theme="dark")
    >>> picture[:4], picture.count('class="op"')
    ('<svg', 12)
    """
    labels, place = frame(timeline, width, language, until)
    pen = Pen(PALETTES[theme], language, LETTERS[letters], seconds(timeline), timeline.schedule.streams)
    palette = pen.palette
    bottom = place.y(timeline.schedule.devices)
    height = bottom + 26 + 18 * bool(marks)
    title = sentence(
        Message(
            "chart.title",
            {"devices": timeline.schedule.devices, "makespan": timeline.costs.time(timeline.end)},
        ),
        language,
    )
    dense = _is_dense(timeline, place)
    density = ' data-dense=""' if dense else ""
    span = place.plot * float(timeline.end / place.ticks)  # divided first, as in x
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {n(width)} {n(height)}" width="{n(width)}" '
        f'height="{n(height)}" role="img" aria-label="{escape(title)}" class="chart" font-family="{FONT}" '
        f'font-size="13" data-left="{n(place.left)}" data-plot="{n(span)}" data-top="{n(place.top)}" '
        f'data-lane="{n(place.lane)}" data-block="{n(place.block)}" data-devices="{timeline.schedule.devices}" '
        f'data-end="{timeline.costs.time(timeline.end)}"{density}>',
        f"<title>{escape(title)}</title>",
        _definitions(timeline, pen),
        axis(timeline, place, palette, bottom, language),
        draw_marks(marks, place, palette, bottom + 26, language),
    ]
    for device, label in enumerate(labels):
        parts.append(_label(label, device, place, palette))
        parts += _gaps(timeline, device, place, palette, dense)
        if device in timeline.stuck:
            parts.append(_stop(timeline, device, place, palette))
        parts += _stack(timeline, device, place, palette) if dense else _blocks(timeline, device, place, pen)
    if not dense and len(timeline.position) <= FEW:
        parts += [_return(one, place, palette) for one in returns(timeline, 0)]
    return "".join(parts) + "</svg>\n"


def _is_dense(timeline: Timeline, place: Layout) -> bool:
    """Say whether some lane has more blocks than fit, or blocks that are lines on average."""
    for starts, ends in zip(timeline.starts, timeline.ends, strict=True):
        busy = (sum(ends) - sum(starts)) / place.ticks * place.plot
        if len(starts) * NARROWEST > place.plot or busy < 2 * len(starts):
            return True
    return False


def _definitions(timeline: Timeline, pen: Pen) -> str:
    """Return the patterns this chart uses; the names carry the palette, so that two charts may share a page."""
    inks = {(op.kind, pen.ink(op)) for op in timeline.position if op.kind in PATTERNS}
    tiles = [_tile("gap", pen.palette.gap, pen.palette.gap_line, "M-2 10L10 -2M-2 2L2 -2M6 10L10 6", 1)]
    tiles += [_tile(kind, ink.fill, ink.line, PATTERNS[kind], 2) for kind, ink in sorted(inks)]
    return f"<defs>{''.join(tiles)}</defs>"


def seconds(timeline: Timeline) -> Callable[[Op], bool]:
    """Return what says whether an operation is of a second (fourth, ...) chunk, of the second direction, or token."""
    devices, entrance = timeline.schedule.devices, timeline.position.get(Op(0, "F", 0), (0, 0))[0]
    if streams := timeline.schedule.streams:
        return lambda op: op.micro_batch // streams % 2 == 1
    if timeline.schedule.stages > devices:
        return lambda op: op.stage // devices % 2 == 1
    others = {op.micro_batch for op, (home, _) in timeline.position.items() if op[:2] == (0, "F") and home != entrance}
    return lambda op: op.micro_batch in others


def _tile(kind: str, fill: str, line: str, path: str, thick: int) -> str:
    return (
        f'<pattern id="ps-{kind}{fill[1:]}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<path d="M0 0H8V8H0Z" fill="{fill}"/><path d="{path}" stroke="{line}" stroke-width="{thick}"/></pattern>'
    )


def _fill(kind: str, ink: Ink) -> str:
    return f"url(#ps-{kind}{ink.fill[1:]})" if kind in PATTERNS else ink.fill


def _label(label: str, device: int, place: Layout, palette: Palette) -> str:
    size = ' font-size="11"' if place.lane < 20 else ""
    y = place.y(device) + place.block / 2
    return (
        f'<text x="{n(place.left - 8)}" y="{n(y)}" dominant-baseline="central" text-anchor="end" '
        f'fill="{palette.text}"{size}>{escape(label)}</text>'
    )


def _gaps(timeline: Timeline, device: int, place: Layout, palette: Palette, dense: bool) -> list[str]:
    """Draw the bubbles: hatched while the device waits, an empty dotted outline once it is done."""
    time, parts, y, many = timeline.costs.time, [], place.y(device), ""
    for gap in timeline.gaps(device):
        x, width = place.x(gap.start), place.x(gap.end) - place.x(gap.start)
        if dense and gap.before is not None and gap.before < len(timeline.starts[device]):
            # One path for all; what is narrower than a column is left unfilled in its column of the stack.
            many += f"M{n(x)} {n(y)}h{n(width)}v{n(place.block)}h{n(-width)}z" if width >= COLUMN else ""
            continue
        stuck = gap.before == len(timeline.starts[device])
        sort = "done" if gap.before is None else "stuck" if stuck else "waits"
        fill = "none" if sort == "done" else f"url(#ps-gap{palette.gap[1:]})"
        parts.append(
            f'<g class="gap" data-gap="{sort}" data-device="{device}" data-start="{time(gap.start)}" '
            f'data-end="{time(gap.end)}"><rect x="{n(x + 0.5)}" y="{n(y + 0.5)}" '
            f'width="{n(max(0.2, width - 1))}" height="{n(place.block - 1)}" rx="2" fill="{fill}" '
            f'stroke="{palette.gap_line}" stroke-dasharray="{"2 3" if sort == "done" else "none"}"/></g>'
        )
    if many:
        facts = f'class="gap" data-gap="waits" data-device="{device}"'
        parts.append(f'<path {facts} d="{many}" fill="url(#ps-gap{palette.gap[1:]})"/>')
    return parts


def _stop(timeline: Timeline, device: int, place: Layout, palette: Palette) -> str:
    """Mark where a device waits for ever, with the operation it stands before."""
    ends, cell = timeline.ends[device], timeline.stuck[device].cell
    x, y, red = place.x(ends[-1] if ends else 0), place.y(device) + place.block / 2, palette.kinds["I"].outline
    return (
        f'<g class="stuck" data-stuck="{cell}" data-device="{device}">'
        f'<path d="M{n(x + 5)} {n(y - 5)}l10 10m0 -10l-10 10" stroke="{red}" stroke-width="3"/>'
        f'<text x="{n(x + 20)}" y="{n(y)}" dominant-baseline="central" fill="{palette.text}">{cell}?</text></g>'
    )


def _blocks(timeline: Timeline, device: int, place: Layout, pen: Pen) -> list[str]:
    """Draw every block of a lane: fill, outline, and as much of its name as fits."""
    time, parts, y = timeline.costs.time, [], place.y(device)
    row = zip(timeline.schedule.rows[device], timeline.starts[device], timeline.ends[device], strict=False)
    for cell, start, end in row:
        x, width = place.x(start), place.x(end) - place.x(start)
        parts.append(
            f'<g class="op" data-op="{cell}" data-device="{device}" data-start="{time(start)}" data-end="{time(end)}">'
            f"<title>{escape(sentence(name(cell, timeline.schedule.streams), pen.language))}</title>"
        )
        for i, op in enumerate(cell.ops):  # an overlapped pair is drawn as two halves of one block
            ink, height = pen.ink(op), place.block / len(cell.ops)
            top = y + i * height
            parts.append(
                f'<rect x="{n(x + 0.5)}" y="{n(top + 0.5)}" width="{n(max(0.2, width - 1))}" '
                f'height="{n(height - 1)}" rx="2" fill="{_fill(op.kind, ink)}" stroke="{ink.outline}"/>'
            )
            talk, halo = timeline.costs.all_reduce_of(cell) / place.ticks * place.plot, ""
            if timeline.costs.members > 1:
                parts.append(_members(timeline.costs.members, x, top, width, height, talk, ink))
                halo = f' stroke="{ink.fill}" stroke-width="4" paint-order="stroke"'
            text = _fitting(*names(op, pen), width - talk, height)
            if text:
                parts.append(
                    f'<text x="{n(x + (width - talk) / 2)}" y="{n(top + height / 2)}" dominant-baseline="central" '
                    f'text-anchor="middle" fill="{ink.text}"{_size(height)}{halo}>{text}</text>'
                )
        parts.append("</g>")
    return parts


def _members(members: int, x: float, top: float, width: float, height: float, talk: float, ink: Ink) -> str:
    """Draw the devices that share a stage as lanes of one block, and across them its all-reduces, put at its end."""
    end = x + width - talk
    lanes = [top + height * i / members for i in range(1, members)] if height >= THINNEST * members else []
    lines = "".join(f"M{n(x + 1)} {n(y)}H{n(end)}" for y in lanes)
    parts = [f'<path class="members" d="{lines}" stroke="{ink.outline}" stroke-opacity="0.45"/>'] if lines else []
    if talk > 1:
        parts.append(
            f'<rect class="all-reduce" x="{n(end)}" y="{n(top + 1)}" width="{n(talk - 1)}" height="{n(height - 2)}" '
            f'fill="{ink.outline}" fill-opacity="0.6"/>'
        )
    return "".join(parts)


def names(op: Op, pen: Pen) -> tuple[str, str]:
    """Return a long and a short name of a block: letter and micro-batch, or in decoding stream and token."""
    if pen.streams:
        token, stream = divmod(op.micro_batch, pen.streams)
        return f"{stream + 1}.{token + 1}", str(stream + 1 if pen.streams > 1 else token + 1)
    return op.label(pen.letters), str(op.micro_batch + 1)


def _fitting(long: str, short: str, width: float, height: float) -> str:
    """Return the long name, the short one, or nothing, whichever fits."""
    for text in (long, short):
        if 8 * len(text) - 4 * text.count(".") + 3 <= width and height >= 9:
            return text
    return ""


def _size(height: float) -> str:
    return f' font-size="{n(height - 2)}"' if height < 15 else ""


def _return(one: Return, place: Layout, palette: Palette) -> str:
    """Draw the way of a token from the end of the last stage to where the next one of its stream begins."""
    x, y = place.x(one.end), place.y(one.home) + place.block / 2
    to_x, to_y = place.x(one.start), place.y(one.device) + place.block / 2
    along, up = (to_x - x) / hypot(to_x - x, to_y - y), (to_y - y) / hypot(to_x - x, to_y - y)
    tip = "".join(
        f"M{n(to_x)} {n(to_y)}L{n(to_x - 9 * along + 4 * side * up)} {n(to_y - 9 * up - 4 * side * along)}"
        for side in (1, -1)
    )
    line = f'd="M{n(x)} {n(y)}L{n(to_x)} {n(to_y)}{tip}" fill="none" stroke-linecap="round"'
    return (
        f'<path {line} stroke="{palette.page}" stroke-width="5"/><path {line} stroke="{palette.text}" '
        f'stroke-width="1.75" class="return" data-from="{one.home}" data-to="{one.device}"/>'
    )


def _stack(timeline: Timeline, device: int, place: Layout, palette: Palette) -> list[str]:
    """Draw a lane too dense for blocks: per kind one path, as high in each column as the kind's share of its time."""
    columns = int(place.plot // COLUMN) + 1
    shares: dict[str, list[float]] = {}
    row = zip(timeline.schedule.rows[device], timeline.starts[device], timeline.ends[device], strict=False)
    for cell, start, end in row:
        part = 1 / len(cell.ops)  # of an overlapped pair, each kind gets half
        for kind in (op.kind for op in cell.ops):
            share = shares.setdefault(kind, [0.0] * columns)
            first, last = (tick / place.ticks * place.plot / COLUMN for tick in (start, end))
            column = int(first)
            while first < last:
                border = min(last, column + 1)
                share[column] += part * (border - first)
                first, column = border, column + 1
    floor, parts = [0.0] * columns, []
    for kind, share in sorted(shares.items(), key=lambda item: "UBIWRF".index(item[0])):
        ink = palette.kinds[kind]
        path = _bars(floor, share, place, place.y(device) + place.block)
        parts.append(
            f'<path class="op" data-kind="{kind}" data-device="{device}" d="{path}" fill="{_fill(kind, ink)}"/>'
        )
        floor = [a + b for a, b in zip(floor, share, strict=True)]
    return parts


def _bars(floor: list[float], share: list[float], place: Layout, bottom: float) -> str:
    """Return the outline of bars standing on ``floor``; neighbours that look the same become one."""
    path, start, shown = [], 0, (0, 0)
    levels = [
        (round(place.block * low), round(place.block * (low + high))) for low, high in zip(floor, share, strict=True)
    ]
    for column, level in enumerate([*levels, (0, 0)]):
        if level != shown:
            if shown[1] > shown[0]:
                low, high = shown
                x, width = place.left + start * COLUMN, (column - start) * COLUMN
                path.append(f"M{n(x)} {n(bottom - low)}v{low - high}h{width}v{high - low}z")
            start, shown = column, level
    return "".join(path)
