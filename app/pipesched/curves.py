"""Series of points go in, a chart of curves comes out as SVG text: a metric against M or K, a line per schedule."""

from collections.abc import Sequence
from html import escape
from math import floor, log10
from typing import NamedTuple

from pipesched.frame import FONT
from pipesched.ink import PALETTES, Theme
from pipesched.words import number, percent

LINES = {"light": ("#2166ac", "#a85c00", "#26774a", "#b03a20", "#6b3fa0", "#7a6300"),
         "dark": ("#76b5ff", "#ffb454", "#66d193", "#ff8f78", "#c3a2f2", "#e6c84a")}  # fmt: skip
DASHES = ("none", "7 3", "2 3", "9 3 2 3", "none", "4 2")
"""Curves differ by colour, by dash and by the name at their end, so that none of the three is needed alone."""
LEFT, TOP, BOTTOM = 56, 12, 34


class Curve(NamedTuple):
    """The points of one schedule as (x, y); a y of None is a case that the schedule refuses."""

    name: str
    points: Sequence[tuple[int, float | None]]


def draw(
    curves: Sequence[Curve],
    *,
    axis: str,
    title: str,
    here: tuple[int, float] | None,
    is_share: bool,
    width: float = 640,
    theme: Theme = "light",
    language: str = "en",
) -> str:
    """Return the chart of ``curves``.

    Parameters
    ----------
    axis, title
        What is along x, and what the whole shows; both are said.
    here
        The point of the scenario on the page, marked; None: not among the curves.
    is_share
        Whether y is a share of 1, to be written in percent.
    """
    palette, height = PALETTES[theme], max(220.0, min(340.0, width * 0.5))
    xs = sorted({x for curve in curves for x, _ in curve.points})
    ys = [y for curve in curves for _, y in curve.points if y is not None]
    right = 7 * max((len(curve.name) for curve in curves), default=0) + 16
    plot, tall = width - LEFT - right, height - TOP - BOTTOM
    top = _ceiling(max(ys, default=1) or 1)

    def at(x: int, y: float) -> tuple[float, float]:
        place = xs.index(x) / max(1, len(xs) - 1)  # the values grow geometrically; even steps keep them apart
        return LEFT + plot * place, TOP + tall * (1 - y / top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{escape(title)}" '
        f'class="curves" font-family="{FONT}" font-size="12">'
        f"<title>{escape(title)}</title>"
    ]
    for step in range(5):
        y = TOP + tall * (1 - step / 4)
        mark = float(f"{top * step / 4:.6g}")
        value = percent(mark, language) if is_share else number(mark, language, 2)
        parts.append(
            f'<path d="M{LEFT} {y:.1f}H{LEFT + plot:.1f}" stroke="{palette.gap_line}" stroke-dasharray="2 4"/>'
            f'<text x="{LEFT - 6}" y="{y:.1f}" text-anchor="end" dominant-baseline="central" '
            f'fill="{palette.faint}">{escape(value)}</text>'
        )
    for x in xs:
        parts.append(
            f'<text x="{at(x, 0)[0]:.1f}" y="{height - 18}" text-anchor="middle" fill="{palette.faint}">{x}</text>'
        )
    parts.append(
        f'<text x="{LEFT + plot / 2:.1f}" y="{height - 3}" text-anchor="middle" fill="{palette.text}">{axis}</text>'
    )
    taken: list[float] = []
    for i, curve in enumerate(curves):
        parts += _line(curve, [at(x, y) if y is not None else None for x, y in curve.points], i, theme, taken)
    if here and here[0] in xs:
        left, up = at(*here)
        parts.append(
            f'<circle cx="{left:.1f}" cy="{up:.1f}" r="6" fill="none" stroke="{palette.text}" stroke-width="2.5"/>'
        )
    return "".join(parts) + "</svg>\n"


def _line(
    curve: Curve, places: list[tuple[float, float] | None], i: int, theme: Theme, taken: list[float]
) -> list[str]:
    """Draw one curve, broken where the schedule refuses the case, with a dot per point and its name at the end."""
    colour, dash = LINES[theme][i % len(LINES[theme])], DASHES[i % len(DASHES)]
    path, dots, pen = "", "", "M"
    for place in places:
        if place is None:
            pen = "M"
            continue
        path += f"{pen}{place[0]:.1f} {place[1]:.1f}"
        dots += f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="2.5" fill="{colour}"/>'
        pen = "L"
    last = next((place for place in reversed(places) if place), None)
    if last is None:
        return []
    y = last[1]
    while any(abs(y - other) < 13 for other in taken):  # names that would cover each other move apart
        y += 13
    taken.append(y)
    return [
        f'<g data-curve="{escape(curve.name)}"><path d="{path}" fill="none" stroke="{colour}" stroke-width="2" '
        f'stroke-dasharray="{dash}"/>{dots}<text x="{last[0] + 8:.1f}" y="{y:.1f}" dominant-baseline="central" '
        f'fill="{colour}">{escape(curve.name)}</text></g>'
    ]


def _ceiling(value: float) -> float:
    """Return the next round number from ``value`` on, of which a quarter is round too."""
    power: float = 10.0 ** floor(log10(value))
    return next(base * power for base in (1, 2, 4, 8, 10) if base * power >= value * (1 - 1e-9))
