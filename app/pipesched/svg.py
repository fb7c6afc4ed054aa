"""A Timeline goes in, a chart comes out as an SVG string: the one drawing that page, notebook and files show.

The chart stands alone: presentation attributes only, no style sheet, no script, no foreignObject, a system font. Its
size is bounded by its pixels: where blocks would be too narrow to tell apart, a lane becomes a stack of shares, one
path per kind, in which each column of pixels is filled as far as the device was busy during it.

Hooks (kept stable, see README): ``data-op``, ``data-device``, ``data-start``, ``data-end`` on every block, ``data-gap``
(``waits`` or ``done``) with the same on every gap; on the root ``data-left``, ``data-plot`` (x of time 0 and width of
the makespan), ``data-top``, ``data-lane``, ``data-block`` (y of the first lane, its pitch and the height of a block;
all in user units), ``data-devices`` and ``data-end`` (the makespan).
"""

from dataclasses import dataclass
from html import escape
from math import floor, log10

from pipesched.explain import name
from pipesched.ink import PALETTES, PATTERNS, Ink, Palette, Theme
from pipesched.model import Message, Op, Timeline
from pipesched.words import number, sentence

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
NARROWEST = 5  # user units; below this a block cannot be told from its neighbour
WIDE = 560  # user units; below this lanes carry short names
COLUMN = 2  # user units; the width of one column of a stacked lane


@dataclass(frozen=True)
class Layout:
    """Where things go, in user units (1 unit = 1 CSS pixel on the page)."""

    left: float
    plot: float
    lane: float
    block: float
    top: float
    ticks: int

    def x(self, tick: int) -> float:
        return self.left + self.plot * (tick / self.ticks)  # divided first: ticks may exceed any float

    def y(self, device: int) -> float:
        return self.top + self.lane * device


def layout(timeline: Timeline, width: float, longest_label: int) -> Layout:
    """Divide ``width``: labels on the left as wide as they must be, lanes that shrink as devices grow in number."""
    devices = timeline.schedule.devices
    lane = max(14, min(40, 640 / max(1, devices)))
    left = 7.5 * longest_label + 14
    return Layout(left, width - left - 14, lane, lane - (6 if lane > 20 else 2), 8, max(1, timeline.end))


def draw(
    timeline: Timeline,
    *,
    width: float = 720,
    theme: Theme = "light",
    language: str = "en",
    marks: tuple[tuple[int, Message], ...] = (),
) -> str:
    """Return the chart of ``timeline`` as SVG text.

    Parameters
    ----------
    width
        In user units, which are CSS pixels where the chart is shown at its natural size.
    marks
        Moments to point out under the axis, as (tick, what to call it).
    """
    key = "device" if width >= WIDE else "device.short"
    labels = [sentence(Message(key, {"device": i}), language) for i in range(timeline.schedule.devices)]
    palette, place = PALETTES[theme], layout(timeline, width, max(map(len, labels), default=0))
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
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" '
        f'height="{_n(height)}" role="img" aria-label="{escape(title)}" class="chart" font-family="{FONT}" '
        f'font-size="13" data-left="{_n(place.left)}" data-plot="{_n(place.plot)}" data-top="{_n(place.top)}" '
        f'data-lane="{_n(place.lane)}" data-block="{_n(place.block)}" data-devices="{timeline.schedule.devices}" '
        f'data-end="{timeline.costs.time(timeline.end)}"{density}>',
        f"<title>{escape(title)}</title>",
        _definitions(timeline, palette),
        _axis(timeline, place, palette, bottom, language),
        _marks(marks, place, palette, bottom + 26, language),
    ]
    for device, label in enumerate(labels):
        parts.append(_label(label, device, place, palette))
        parts += _gaps(timeline, device, place, palette, dense)
        parts += (
            _stack(timeline, device, place, palette) if dense else _blocks(timeline, device, place, palette, language)
        )
    return "".join(parts) + "</svg>\n"


def _is_dense(timeline: Timeline, place: Layout) -> bool:
    """Say whether some lane has more blocks than fit, or blocks that are lines on average."""
    for starts, ends in zip(timeline.starts, timeline.ends, strict=True):
        busy = (sum(ends) - sum(starts)) / place.ticks * place.plot
        if len(starts) * NARROWEST > place.plot or busy < 2 * len(starts):
            return True
    return False


def _definitions(timeline: Timeline, palette: Palette) -> str:
    """Return the patterns this chart uses; the names carry the palette, so that two charts may share a page."""
    kinds = {op.kind for op in timeline.position}
    tiles = [
        _tile("gap", palette.gap, palette.gap_line, "M-2 10L10 -2M-2 2L2 -2M6 10L10 6", 1),
        *(
            _tile(kind, palette.kinds[kind].fill, palette.kinds[kind].line, PATTERNS[kind], 2)
            for kind in PATTERNS
            if kind in kinds
        ),
    ]
    return f"<defs>{''.join(tiles)}</defs>"


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
        f'<text x="{_n(place.left - 8)}" y="{_n(y)}" dominant-baseline="central" text-anchor="end" '
        f'fill="{palette.text}"{size}>{escape(label)}</text>'
    )


def _gaps(timeline: Timeline, device: int, place: Layout, palette: Palette, dense: bool) -> list[str]:
    """Draw the bubbles: hatched while the device waits, an empty dotted outline once it is done."""
    time, parts, y, many = timeline.costs.time, [], place.y(device), ""
    for gap in timeline.gaps(device):
        x, width = place.x(gap.start), place.x(gap.end) - place.x(gap.start)
        if dense and gap.before is not None:
            # One path for all; what is narrower than a column is left unfilled in its column of the stack.
            many += f"M{_n(x)} {_n(y)}h{_n(width)}v{_n(place.block)}h{_n(-width)}z" if width >= COLUMN else ""
            continue
        sort = "done" if gap.before is None else "waits"
        fill = "none" if sort == "done" else f"url(#ps-gap{palette.gap[1:]})"
        parts.append(
            f'<g class="gap" data-gap="{sort}" data-device="{device}" data-start="{time(gap.start)}" '
            f'data-end="{time(gap.end)}"><rect x="{_n(x + 0.5)}" y="{_n(y + 0.5)}" '
            f'width="{_n(max(0.2, width - 1))}" height="{_n(place.block - 1)}" rx="2" fill="{fill}" '
            f'stroke="{palette.gap_line}" stroke-dasharray="{"2 3" if sort == "done" else "none"}"/></g>'
        )
    if many:
        facts = f'class="gap" data-gap="waits" data-device="{device}"'
        parts.append(f'<path {facts} d="{many}" fill="url(#ps-gap{palette.gap[1:]})"/>')
    return parts


def _blocks(timeline: Timeline, device: int, place: Layout, palette: Palette, language: str) -> list[str]:
    """Draw every block of a lane: fill, outline, and as much of its name as fits."""
    time, parts, y = timeline.costs.time, [], place.y(device)
    row = zip(timeline.schedule.rows[device], timeline.starts[device], timeline.ends[device], strict=False)
    for cell, start, end in row:
        x, width = place.x(start), place.x(end) - place.x(start)
        parts.append(
            f'<g class="op" data-op="{cell}" data-device="{device}" data-start="{time(start)}" data-end="{time(end)}">'
            f"<title>{escape(sentence(name(cell), language))}</title>"
        )
        for i, op in enumerate(cell.ops):  # an overlapped pair is drawn as two halves of one block
            ink, height = palette.kinds[op.kind], place.block / len(cell.ops)
            top = y + i * height
            parts.append(
                f'<rect x="{_n(x + 0.5)}" y="{_n(top + 0.5)}" width="{_n(max(0.2, width - 1))}" '
                f'height="{_n(height - 1)}" rx="2" fill="{_fill(op.kind, ink)}" stroke="{ink.outline}"/>'
            )
            text = _fitting(op, width, height)
            if text:
                parts.append(
                    f'<text x="{_n(x + width / 2)}" y="{_n(top + height / 2)}" dominant-baseline="central" '
                    f'text-anchor="middle" fill="{ink.text}"{_size(height)}>{text}</text>'
                )
        parts.append("</g>")
    return parts


def _fitting(op: Op, width: float, height: float) -> str:
    """Return letter and number, the number alone, or nothing, whichever fits."""
    digits = str(op.micro_batch + 1)
    for text in (op.kind + digits, digits):
        if 8 * len(text) + 3 <= width and height >= 9:
            return text
    return ""


def _size(height: float) -> str:
    return f' font-size="{_n(height - 2)}"' if height < 15 else ""


def _stack(timeline: Timeline, device: int, place: Layout, palette: Palette) -> list[str]:
    """Draw a lane too dense for blocks: per kind one path, as high in each column as the kind's share of its time."""
    columns = int(place.plot // COLUMN) + 1
    shares: dict[str, list[float]] = {}
    row = zip(timeline.schedule.rows[device], timeline.starts[device], timeline.ends[device], strict=False)
    for cell, start, end in row:
        share = shares.setdefault(cell.ops[0].kind, [0.0] * columns)
        first, last = (tick / place.ticks * place.plot / COLUMN for tick in (start, end))
        column = int(first)
        while first < last:
            border = min(last, column + 1)
            share[column] += border - first
            first, column = border, column + 1
    floor, parts = [0.0] * columns, []
    for kind, share in sorted(shares.items(), key=lambda item: "BIWF".index(item[0])):
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
                path.append(f"M{_n(x)} {_n(bottom - low)}v{low - high}h{width}v{high - low}z")
            start, shown = column, level
    return "".join(path)


def _axis(timeline: Timeline, place: Layout, palette: Palette, bottom: float, language: str) -> str:
    """Draw the time axis: round steps, and the makespan where the last of them leaves room for it."""
    length = place.ticks / timeline.costs.ticks_per_unit
    coarsest = length / max(2, place.plot // 64)
    power = 10.0 ** floor(log10(coarsest))
    step = next(base * power for base in (1, 2, 5, 10) if base * power >= coarsest)
    last = 16 + 8 * len(number(timeline.costs.time(timeline.end), language, 3))
    moments = [i * step for i in range(int(length / step + 1e-9) + 1)]
    keep = [moment for moment in moments if (1 - moment / length) * place.plot > last or moment == 0]
    parts = [f'<g class="axis" fill="{palette.faint}" stroke="none" font-size="12">']
    for moment in (*keep, length):
        x, strong = place.left + place.plot * moment / length, moment == length
        parts.append(
            f'<path d="M{_n(x)} {_n(place.top - 4)}V{_n(bottom + 2)}" stroke="{palette.gap_line}" '
            f'stroke-width="{1 if not strong else 1.5}" stroke-dasharray="{"2 4" if not strong else "none"}"/>'
            f'<text x="{_n(x)}" y="{_n(bottom + 16)}" text-anchor="{"middle" if not strong else "end"}"'
            f'{f""" font-weight="700" fill="{palette.text}" """ if strong else ""}>'
            f"{escape(number(float(f'{moment:.9g}'), language, 3))}</text>"
        )
    return "".join(parts) + "</g>"


def _marks(marks: tuple[tuple[int, Message], ...], place: Layout, palette: Palette, y: float, language: str) -> str:
    """Point out moments under the axis, with the words on the side that has room."""
    parts = []
    for tick, message in marks:
        x = place.x(tick)
        anchor = "start" if x < place.left + place.plot / 2 else "end"
        shift = 9 if anchor == "start" else -9
        parts.append(
            f'<path d="M{_n(x)} {_n(y - 5)}l5 8h-10z" fill="{palette.text}"/><text x="{_n(x + shift)}" y="{_n(y + 4)}" '
            f'font-size="12" text-anchor="{anchor}" fill="{palette.text}">{escape(sentence(message, language))}</text>'
        )
    return "".join(parts)


def _n(value: float) -> str:
    """Write a coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
