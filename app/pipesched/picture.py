"""A Result goes in, a picture to take away comes out: the chart as a file of its own, and a thumbnail of it.

The picture is the chart of the page, with a background or without one. The thumbnail is small enough to stand inside
the code that embeds the simulator, until that one wakes, and where scripts do not run; it has no words in it, so it
serves every language, and it brings its own background, as it never knows where it will stand.
"""

from collections.abc import Sequence
from html import escape
from textwrap import wrap

from pipesched.compare import title
from pipesched.frame import FONT
from pipesched.ink import PALETTES, Ink, Palette, Theme, deeper
from pipesched.model import Timeline
from pipesched.presets import PRESETS
from pipesched.run import Result
from pipesched.scenario import Scenario
from pipesched.svg import Letters, seconds

LINE = 17  # user units per line of a title
MOST = 400
"""Operations that a thumbnail shows; more would be neither small nor readable."""
WIDTH, LEFT, RIGHT, LANE, BLOCK, TOP = 480, 20, 6, 24, 20, 4  # of a thumbnail, in user units
NAMED = {"schedule", "devices", "micro_batches"}

FIGURES: dict[str, Scenario] = {
    stem: scenario
    for preset in PRESETS
    if set((scenario := Scenario(**preset.settings)).changed()) <= NAMED
    for stem in [f"{scenario.schedule}-{scenario.devices}x{scenario.micro_batches}"]
}
"""Scenarios whose thumbnail lies in static/figures/, by the name of the file: figures of papers that K and M settle."""


def stem(result: Result) -> str:
    """Return what a file with this result is called, without its ending.

    >>> from pipesched import run
    >>> stem(run(schedule="gpipe", devices=4, micro_batches=8))
    'pipesched-gpipe-4x8'
    """
    schedule = result.timeline.schedule
    return f"pipesched-{result.scenario.schedule}-{schedule.devices}x{schedule.micro_batches}"


def picture(
    result: Result,
    other: Result | None = None,
    *,
    width: float = 720,
    theme: Theme = "light",
    language: str = "en",
    letters: Letters = "pytorch",
    transparent: bool = False,
) -> str:
    """Return the chart as a file of its own; with ``other``, pinned as A, above it on the same time axis."""
    pair = {"A": other, "B": result} if other else {"": result}
    until = max(one.metrics.makespan for one in (result, other)) if other else 0
    palette, y, parts = PALETTES[theme], 0.0, []
    drawings = {
        mark: one.svg(width=width, theme=theme, language=language, letters=letters, until=until)
        for mark, one in pair.items()
    }
    if not other:
        return drawings[""] if transparent else _on(palette, drawings[""])
    for mark, one in pair.items():
        lines = wrap(f"{mark}: {title(one, language)}", int(width / 7))
        parts.append(_lines(lines, y, palette))
        y += LINE * len(lines) + 6
        parts.append(drawings[mark].rstrip().replace("<svg ", f'<svg y="{y:g}" ', 1))
        y += one.timeline.schedule.devices and _height(drawings[mark]) + 8
    name = escape(f"A: {title(other, language)} / B: {title(result, language)}")
    whole = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {y:g}" width="{width:g}" height="{y:g}" '
        f'role="img" aria-label="{name}" font-family="{FONT}" font-size="13"><title>{name}</title>'
        f"{''.join(parts)}</svg>\n"
    )
    return whole if transparent else _on(palette, whole)


def _on(palette: Palette, svg: str) -> str:
    """Put the page's colour behind a drawing."""
    return svg.replace("</title>", f'</title><rect width="100%" height="100%" fill="{palette.page}"/>', 1)


def _height(svg: str) -> float:
    return float(svg.partition(' height="')[2].partition('"')[0])


def _lines(lines: Sequence[str], y: float, palette: Palette) -> str:
    return "".join(
        f'<text x="8" y="{y + LINE * (i + 1) - 2:g}" fill="{palette.text}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )


def thumbnail(timeline: Timeline, theme: Theme = "light") -> str:
    """Return a small drawing of ``timeline`` as SVG text of a few kilobytes; empty where there is too much to draw.

    Blocks carry the number of their micro-batch where there are fewer than ten, devices and the makespan theirs.
    """
    devices, total = timeline.schedule.devices, len(timeline.position)
    if not 0 < total <= MOST or devices > 16:
        return ""
    palette, bottom = PALETTES[theme], TOP + LANE * devices
    names = "".join(
        f'<text x="{LEFT - 6}" y="{TOP + LANE * device + 14}">{device + 1}</text>' for device in range(devices)
    )
    end = f"{timeline.costs.time(timeline.end):.6g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 16}" width="{WIDTH}" '
        f'height="{bottom + 16}" font-family="system-ui,sans-serif" font-size="11" text-anchor="middle">'
        f'<rect width="100%" height="100%" fill="{palette.page}"/>'
        f"{_waits(timeline, palette)}{_work(timeline, palette)}"
        f'<g fill="{palette.faint}" text-anchor="end">{names}<text x="{LEFT + 6}" y="{bottom + 11}">0</text>'
        f'<text x="{WIDTH - RIGHT}" y="{bottom + 11}">{end}</text></g></svg>'
    )


def _x(timeline: Timeline, tick: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (tick / max(1, timeline.end))


def _box(timeline: Timeline, start: int, end: int, top: float, height: float) -> str:
    left = _x(timeline, start) + 0.5
    width = max(0.5, _x(timeline, end) - left - 0.5)
    return f"M{_n(left)} {_n(top)}h{_n(width)}v{_n(height)}h-{_n(width)}z"


def _waits(timeline: Timeline, palette: Palette) -> str:
    """Draw the gaps of devices that will go on."""
    boxes = [
        _box(timeline, gap.start, gap.end, TOP + LANE * device, BLOCK)
        for device in range(timeline.schedule.devices)
        for gap in timeline.gaps(device)
        if gap.before is not None
    ]
    return f'<path d="{"".join(boxes)}" fill="{palette.gap}" stroke="{palette.gap_line}"/>' if boxes else ""


def _work(timeline: Timeline, palette: Palette) -> str:
    """Draw the blocks, one path and one text per ink: a list of x puts every digit where it belongs."""
    is_second, boxes = seconds(timeline), dict[Ink, list[str]]()
    digits: dict[Ink, dict[float, list[tuple[float, str]]]] = {}
    for device, row in enumerate(timeline.schedule.rows):
        for cell, start, end in zip(row, timeline.starts[device], timeline.ends[device], strict=False):
            for i, op in enumerate(cell.ops):
                ink = palette.kinds[op.kind]
                ink = deeper(ink) if is_second(op) else ink
                height = BLOCK / len(cell.ops)
                top = TOP + LANE * device + i * height
                boxes.setdefault(ink, []).append(_box(timeline, start, end, top, height))
                if _is_numbered(timeline, start, end) and height == BLOCK:
                    middle = (_x(timeline, start) + _x(timeline, end)) / 2
                    digits.setdefault(ink, {}).setdefault(top + 14, []).append((middle, str(op.micro_batch + 1)))
    parts = []
    for ink, drawn in boxes.items():
        parts.append(f'<path d="{"".join(drawn)}" fill="{ink.fill}" stroke="{ink.outline}"/>')
        texts = "".join(
            f'<text x="{" ".join(_n(x) for x, _ in line)}" y="{_n(y)}">{"".join(digit for _, digit in line)}</text>'
            for y, line in digits.get(ink, {}).items()
        )
        parts.append(f'<g fill="{ink.text}">{texts}</g>' if texts else "")
    return "".join(parts)


def _is_numbered(timeline: Timeline, start: int, end: int) -> bool:
    return timeline.schedule.micro_batches < 10 and _x(timeline, end) - _x(timeline, start) >= 9


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
