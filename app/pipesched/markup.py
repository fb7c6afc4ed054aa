"""A Timeline goes in, text for other people's tools comes out: TikZ for a paper, Mermaid for a page of Markdown."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from pipesched.ink import PALETTES
from pipesched.model import Message, Timeline
from pipesched.words import number, sentence

WIDTH, LANE = 12, 0.6
"""Of the TikZ picture, in cm: its plot, and the pitch of its lanes."""


def tikz(timeline: Timeline, *, letters: Mapping[str, str] | None = None, language: str = "en") -> str:
    r"""Return ``timeline`` as a ``tikzpicture`` for LaTeX; it needs the package tikz and nothing else.

    The plot is 12 cm wide at ``x=1cm``: not in the unit of the durations, as TeX holds no number above 16383. How each
    kind looks is a style (``F/.style``) that a paper may set anew. ``letters`` names kinds otherwise than we do, as
    Zero Bubble papers do.

    >>> from pipesched import run
    >>> print(tikz(run(devices=1, micro_batches=1).timeline).splitlines()[-3])
      \draw[F] (0,-0.4) rectangle node {F1} (12,0.4);
    """
    palette = PALETTES["light"]
    head = [f"\\begin{{tikzpicture}}[x=1cm, y=-{LANE}cm, font=\\scriptsize,"]
    for kind in sorted(timeline.kinds):
        ink = palette.kinds[kind]
        rgb, line = (f"{{rgb,255:red,{r};green,{g};blue,{b}}}" for r, g, b in map(_rgb, (ink.fill, ink.outline)))
        head.append(f"    {kind}/.style={{fill={rgb}, draw={line}}},")
    head.append("  ]")
    lines = [*head, *_lanes(timeline, letters or {}, language), "\\end{tikzpicture}"]
    return "\n".join(lines) + "\n"


def _lanes(timeline: Timeline, letters: Mapping[str, str], language: str) -> Iterator[str]:
    columns = zip(timeline.schedule.rows, timeline.starts, timeline.ends, strict=True)
    for device, (row, starts, ends) in enumerate(columns):
        label = sentence(Message("device", {"device": device}), language)
        yield f"  \\node[left] at (0,{device}) {{{label}}};"
        for cell, start, stop in zip(row, starts, ends, strict=False):
            height = Fraction(8, 10) / len(cell.ops)
            for i, op in enumerate(cell.ops):
                top = device - Fraction(4, 10) + i * height
                corner = f"({_centimetres(timeline, start)},{_decimal(top)})"
                other = f"({_centimetres(timeline, stop)},{_decimal(top + height)})"
                yield f"  \\draw[{op.kind}] {corner} rectangle node {{{op.label(letters)}}} {other};"
    below = timeline.schedule.devices - Fraction(4, 10)
    makespan = number(timeline.costs.time(timeline.end), language)
    yield f"  \\draw[->] (0,{_decimal(below)}) -- ({WIDTH},{_decimal(below)}) node[below left] {{{makespan}}};"


def mermaid(timeline: Timeline, *, language: str = "en") -> str:
    """Return ``timeline`` as a Mermaid gantt chart; a unit of the durations is one second of its axis.

    Mermaid counts in milliseconds: finer times are rounded.

    >>> from pipesched import run
    >>> print(mermaid(run(devices=1, micro_batches=1).timeline).splitlines()[-1])
        F1 :0, 1000
    """
    title = {"devices": timeline.schedule.devices, "makespan": timeline.costs.time(timeline.end)}
    lines = ["gantt", f"    title {_plain(sentence(Message('chart.title', title), language))}"]
    lines += ["    dateFormat x", "    axisFormat %s"]
    columns = zip(timeline.schedule.rows, timeline.starts, timeline.ends, strict=True)
    for device, (row, starts, ends) in enumerate(columns):
        lines.append(f"    section {sentence(Message('device', {'device': device}), language)}")
        for cell, start, end in zip(row, starts, ends, strict=False):
            first, last = (round(1000 * Fraction(tick, timeline.costs.ticks_per_unit)) for tick in (start, end))
            names = " & ".join(op.label() for op in cell.ops)
            lines.append(f"    {names} :{first}, {last}")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Drop what ends a statement in Mermaid."""
    return text.replace(";", ",").replace("#", "").replace(":", " –")


def _centimetres(timeline: Timeline, tick: int) -> str:
    return _decimal(Fraction(WIDTH * tick, max(1, timeline.end)))


def _decimal(value: Fraction) -> str:
    """Write a coordinate with at most five decimals, as many as TeX tells apart."""
    return f"{float(value):.5f}".rstrip("0").rstrip(".")


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
