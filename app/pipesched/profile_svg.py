"""Step functions go in, strips under the chart come out as an SVG string: one per device or stage, on the chart's time.

The x of a moment is that of the chart drawn for the same timeline, width and language. As with the chart, size is
bounded by pixels: where a curve has more steps than columns, each column shows the highest value within it.

Hooks: ``data-strip``, ``data-peak`` and ``data-peak-at`` (a time) on every strip, ``data-limit`` on its limit line; on
the root ``data-left``, ``data-plot``, ``data-end`` and ``data-height`` (y where the strips end).
"""

from dataclasses import dataclass
from html import escape

from pipesched.frame import FONT, Layout, axis, frame
from pipesched.ink import PALETTES, Ink, Palette, Theme
from pipesched.model import Timeline
from pipesched.profiles import Profile
from pipesched.reading import Number
from pipesched.svg import COLUMN


@dataclass(frozen=True)
class Strip:
    """One curve with its name, the words at its peak (empty: none), and a sentence for who points at it."""

    label: str
    curve: Profile
    peak: str
    sentence: str
    highest: Number
    """The value at which the strip is filled."""
    second: Profile | None = None
    """Another curve, drawn as a line."""
    limit: Number | None = None


def draw(
    timeline: Timeline,
    strips: list[Strip],
    *,
    title: str,
    kind: str,
    width: float,
    theme: Theme,
    language: str,
    until: float = 0,
) -> str:
    """Return ``strips`` as SVG text; ``kind`` is the operation whose ink they have, ``title`` says what they show.

    ``until`` is a time that the axis reaches at least, as that of the chart above does.
    """
    palette, (_, chart) = PALETTES[theme], frame(timeline, width, language, until)
    lane = max(20, min(44, 400 / max(1, len(strips))))
    place = Layout(chart.left, chart.plot, lane, lane - 4, 8, chart.ticks)
    bottom, span = place.y(len(strips)), place.plot * (timeline.end / place.ticks)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {bottom + 22:g}" width="{width:g}" '
        f'height="{bottom + 22:g}" role="img" aria-label="{escape(title)}" class="profile" font-family="{FONT}" '
        f'font-size="12" data-left="{place.left:.6g}" data-plot="{span:.6g}" data-height="{bottom:g}" '
        f'data-end="{timeline.costs.time(timeline.end)}"><title>{escape(title)}</title>',
        axis(timeline, place, palette, bottom, language),
    ]
    for i, strip in enumerate(strips):
        parts.append(_strip(timeline, strip, i, place, palette, palette.kinds[kind]))
    return "".join(parts) + "</svg>\n"


def _strip(timeline: Timeline, strip: Strip, i: int, place: Layout, palette: Palette, ink: Ink) -> str:
    time, base = timeline.costs.time, place.y(i) + place.block
    peak = strip.curve.peak
    area = _path(strip.curve, place, base, strip.highest)
    parts = [
        f'<g class="strip" data-strip="{i}" data-peak="{_value(peak)}" data-peak-at="{time(strip.curve.peak_at)}">'
        f"<title>{escape(strip.sentence)}</title>"
        f'<text x="{place.left - 8:.6g}" y="{base - place.block / 2:.6g}" dominant-baseline="central" '
        f'text-anchor="end" font-size="{11 if len(strip.label) < 4 else 12}" fill="{palette.text}">'
        f"{escape(strip.label)}</text>"
        f'<path d="M{place.left:.6g} {base:.6g}h{place.plot:.6g}" stroke="{palette.gap_line}"/>'
    ]
    if area:
        parts.append(f'<path class="area" d="{area}" fill="{ink.fill}" stroke="{ink.outline}"/>')
    if strip.second:
        line = _path(strip.second, place, base, strip.highest)
        parts.append(f'<path class="second" d="{line}" fill="none" stroke="{palette.text}" stroke-width="1.5"/>')
    if strip.limit is not None:
        y, red = _y(strip.limit, place, base, strip.highest), palette.kinds["I"].outline
        parts.append(
            f'<path class="limit" data-limit="{_value(strip.limit)}" d="M{place.left:.6g} {y:.6g}h{place.plot:.6g}" '
            f'stroke="{red}" stroke-width="1.5" stroke-dasharray="6 3"/>'
        )
    if strip.peak:
        parts.append(_peak(strip, place, base, palette))
    return "".join(parts) + "</g>"


def _peak(strip: Strip, place: Layout, base: float, palette: Palette) -> str:
    """Mark where the highest value is reached first, with its value on the side that has room."""
    x, y = place.x(strip.curve.peak_at), _y(strip.curve.peak, place, base, strip.highest)
    is_left = x < place.left + place.plot / 2
    middle = min(max(y, base - place.block + 6), base - 6)
    return (
        f'<path d="M{x - 3:.6g} {y:.6g}l3 -3l3 3l-3 3z" fill="{palette.text}"/>'
        f'<text x="{x + (7 if is_left else -7):.6g}" y="{middle:.6g}" dominant-baseline="central" font-weight="600" '
        f'text-anchor="{"start" if is_left else "end"}" fill="{palette.text}" stroke="{palette.page}" '
        f'stroke-width="3" paint-order="stroke">{escape(strip.peak)}</text>'
    )


def _value(value: Number) -> str:
    return f"{value}" if isinstance(value, int) else f"{float(value):.12g}"


def _y(value: Number, place: Layout, base: float, highest: Number) -> float:
    return base - (place.block - 2) * float(value / highest) if highest else base


def _path(curve: Profile, place: Layout, base: float, highest: Number) -> str:
    """Return the outline of ``curve`` above ``base``; nothing where it is never above."""
    columns = int(place.plot // COLUMN) + 1
    if len(curve.ticks) > columns:
        steps = _highest(curve, place, columns)
    else:
        steps = [(place.x(tick), value) for tick, value in zip(curve.ticks, curve.values, strict=True)]
    path: list[str] = []
    level, end = base, place.left + place.plot
    for x, value in steps:
        y = _y(value, place, base, highest)
        if y != level:
            path.append(f"{'H' if path else f'M{x:.6g} {level:.6g}H'}{x:.6g}V{y:.6g}")
            level = y
    return "".join(path) + (f"H{end:.6g}" + (f"V{base:.6g}z" if level != base else "z")) if path else ""


def _highest(curve: Profile, place: Layout, columns: int) -> list[tuple[float, Number]]:
    """Return, per column of pixels, its x and the highest value within it."""
    highest: list[Number] = [0] * columns
    for i, value in enumerate(curve.values):
        until = curve.ticks[i + 1] if i + 1 < len(curve.ticks) else place.ticks
        first, last = ((place.x(tick) - place.left) / COLUMN for tick in (curve.ticks[i], until))
        for column in range(int(first), min(columns, max(int(first) + 1, int(last) + (last > int(last))))):
            highest[column] = max(highest[column], value)
    return [(place.left + COLUMN * column, value) for column, value in enumerate(highest)]
