"""A Timeline and a width go in, where things stand comes out: the layout of a chart, its time axis and its marks.

Whoever draws under the chart asks here, and is aligned with it. Coordinates are user units.
"""

from dataclasses import dataclass
from fractions import Fraction
from html import escape
from math import floor, log10

from pipesched.ink import Palette
from pipesched.model import Message, Timeline
from pipesched.words import number, sentence

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
FLOATS = 10**300
WIDE = 560  # user units; below this lanes carry short names


@dataclass(frozen=True)
class Layout:
    """Where things go, in user units (1 unit = 1 CSS pixel on the page)."""

    left: float
    plot: float
    lane: float
    block: float
    top: float
    ticks: float | Fraction

    def x(self, tick: float | Fraction) -> float:
        """Return where ``tick`` lies, in user units from the left."""
        return self.left + self.plot * float(tick / self.ticks)  # divided first: ticks may exceed any float

    def y(self, device: int) -> float:
        """Return where the lane of ``device`` begins, in user units from the top."""
        return self.top + self.lane * device


def layout(timeline: Timeline, width: float, longest_label: int, until: float = 0) -> Layout:
    """Divide ``width``: labels on the left as wide as they must be, lanes that shrink as devices grow in number."""
    devices = timeline.schedule.devices
    lane = max(14, min(40, 640 / max(1, devices)))
    left, right = 7.5 * longest_label + 14, 84 if timeline.stuck else 14
    ticks: float | Fraction = max(1, timeline.end)
    reach = Fraction(until) * timeline.costs.ticks_per_unit  # between two ticks, maybe: those of the other may be finer
    if reach > ticks:
        ticks = float(reach) if reach < FLOATS else reach
    return Layout(left, width - left - right, lane, lane - (6 if lane > 20 else 2), 8, ticks)


def frame(timeline: Timeline, width: float, language: str, until: float = 0) -> tuple[list[str], Layout]:
    """Return the names of the devices and where things go."""
    key = "device" if width >= WIDE else "device.short"
    team = f" ×{timeline.costs.members}" if timeline.costs.members > 1 else ""
    labels = [sentence(Message(key, {"device": i}), language) + team for i in range(timeline.schedule.devices)]
    return labels, layout(timeline, width, max(map(len, labels), default=0), until)


def axis(timeline: Timeline, place: Layout, palette: Palette, bottom: float, language: str) -> str:
    """Draw the time axis: round steps, and the makespan where they leave room for it."""
    length, end = (ticks / timeline.costs.ticks_per_unit for ticks in (place.ticks, max(1, timeline.end)))
    coarsest = length / max(2, place.plot // 64)
    power = 10.0 ** floor(log10(coarsest))
    step = next(base * power for base in (1, 2, 5, 10) if base * power >= coarsest)
    last = 16 + 8 * len(number(timeline.costs.time(timeline.end), language, 3))
    moments = [i * step for i in range(int(length / step + 1e-9) + 1)]
    keep = [moment for moment in moments if moment == 0 or not -24 < (end - moment) / length * place.plot <= last]
    parts = [f'<g class="axis" fill="{palette.faint}" stroke="none" font-size="12">']
    for moment in (*keep, end):
        x, strong = place.left + place.plot * moment / length, moment == end
        parts.append(
            f'<path d="M{n(x)} {n(place.top - 4)}V{n(bottom + 2)}" stroke="{palette.gap_line}" '
            f'stroke-width="{1 if not strong else 1.5}" stroke-dasharray="{"2 4" if not strong else "none"}"/>'
            f'<text x="{n(x)}" y="{n(bottom + 16)}" text-anchor="{"middle" if not strong else "end"}"'
            f'{f""" font-weight="700" fill="{palette.text}" """ if strong else ""}>'
            f"{escape(number(float(f'{moment:.9g}'), language, 3))}</text>"
        )
    return "".join(parts) + "</g>"


def draw_marks(marks: tuple[tuple[int, Message], ...], place: Layout, palette: Palette, y: float, language: str) -> str:
    """Point out moments under the axis, with the words on the side that has room."""
    parts = []
    for tick, message in marks:
        x = place.x(tick)
        anchor = "start" if x < place.left + place.plot / 2 else "end"
        shift = 9 if anchor == "start" else -9
        parts.append(
            f'<path d="M{n(x)} {n(y - 5)}l5 8h-10z" fill="{palette.text}"/><text x="{n(x + shift)}" y="{n(y + 4)}" '
            f'font-size="12" text-anchor="{anchor}" fill="{palette.text}">{escape(sentence(message, language))}</text>'
        )
    return "".join(parts)


def n(value: float) -> str:
    """Write a coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
