"""What a terminal can show goes in, the paint for its chart comes out: each block in the colours of its kind.

Blocks carry their own background and the text that is readable on it, so that dark and light windows do alike; second
chunks and directions are a shade deeper, as on the page. The letter says the kind too.
"""

import os
from collections.abc import Callable, Mapping
from typing import Literal

from pipesched.ink import PALETTES, Ink, deeper
from pipesched.model import Cell, Op, Timeline

Colours = Literal["none", "8", "256", "true"]
BASIC = {"F": 44, "B": 43, "I": 41, "W": 42, "R": 45, "U": 46}
"""Backgrounds of a terminal that has eight colours (ECMA-48, 8.3.117)."""
LEVELS = (0, 95, 135, 175, 215, 255)
"""Of red, green and blue in the colour cube of 256-colour terminals (xterm's, 16 + 36 r + 6 g + b)."""


def colours(environment: Mapping[str, str], is_terminal: bool, system: str = os.name) -> Colours:
    """Say what to paint with: nothing where the text goes into a file or pipe, or NO_COLOR (no-color.org) is set.

    FORCE_COLOR paints all the same, for ``less -R`` and for logs that show colours.

    >>> colours({"TERM": "xterm-256color"}, True), colours({"TERM": "xterm", "COLORTERM": "truecolor"}, True)
    ('256', 'true')
    >>> colours({"TERM": "xterm-256color", "NO_COLOR": "1"}, True), colours({"TERM": "xterm-256color"}, False)
    ('none', 'none')
    """
    term = environment.get("TERM", "")
    if environment.get("NO_COLOR") or not (is_terminal or environment.get("FORCE_COLOR")):
        return "none"
    if environment.get("COLORTERM") in ("truecolor", "24bit") or "direct" in term or environment.get("WT_SESSION"):
        return "true"
    if "256" in term:
        return "256"
    return "none" if term in ("", "dumb") and not environment.get("FORCE_COLOR") else "8"


def painter(
    timeline: Timeline, which: Colours, is_second: Callable[[Op], bool] = lambda op: False
) -> Callable[[str, Cell], str]:
    """Return what paints the text of a block; ``is_second`` says which operations are a shade deeper.

    >>> from pipesched import run
    >>> timeline = run(devices=1, micro_batches=1).timeline
    >>> painter(timeline, "8")("F1", timeline.schedule.rows[0][0])
    '\\x1b[97;44mF1\\x1b[0m'
    """
    kinds = PALETTES["light"].kinds

    def paint(block: str, cell: Cell) -> str:
        if which == "none":
            return block
        painted, ops = "", cell.ops
        for i, op in enumerate(ops):  # an overlapped pair is painted as two halves of one block
            room = (i + 1) * len(block) // len(ops) - i * len(block) // len(ops)
            name = op.label()
            ink = deeper(kinds[op.kind]) if is_second(op) else kinds[op.kind]
            if room:
                line = "\x1b[4m" if which == "8" and is_second(op) else ""  # eight colours have no shades
                painted += line + code(op.kind, ink, which) + (name if len(name) <= room else op.kind).ljust(room)
                painted += "\x1b[24m" if line else ""
        return painted + "\x1b[0m"

    return paint


def code(kind: str, ink: Ink, which: Colours) -> str:
    """Return the control sequence of an ink.

    >>> code("F", PALETTES["light"].kinds["F"], "true")
    '\\x1b[38;2;10;42;77;48;2;188;220;255m'
    >>> code("F", PALETTES["light"].kinds["F"], "256"), code("F", PALETTES["light"].kinds["F"], "8")
    ('\\x1b[38;5;17;48;5;153m', '\\x1b[97;44m')
    """
    if which == "8":
        return f"\x1b[{97 if kind in 'FIR' else 30};{BASIC[kind]}m"
    text, fill = (tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in (ink.text, ink.fill))
    if which == "256":
        return f"\x1b[38;5;{_cube(text)};48;5;{_cube(fill)}m"
    return f"\x1b[38;2;{';'.join(map(str, text))};48;2;{';'.join(map(str, fill))}m"


def _cube(colour: tuple[int, ...]) -> int:
    """Return the nearest of the 216 colours of the cube."""
    red, green, blue = (min(range(6), key=lambda i: abs(LEVELS[i] - part)) for part in colour)
    return 16 + 36 * red + 6 * green + blue
