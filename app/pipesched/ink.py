"""The colours and patterns of the drawings: a theme goes in, its Palette comes out.

Kinds differ by hue, by pattern and by letter, so that none of the three is needed alone.
"""

from typing import Literal, NamedTuple

Theme = Literal["light", "dark"]


class Ink(NamedTuple):
    """Fill, pattern line and outline of a kind, and the colour of the text on it."""

    fill: str
    line: str
    outline: str
    text: str


class Palette(NamedTuple):
    """The colours of a theme. Contrast of text on fill is at least 4.5, of outline on page at least 3 (WCAG 2)."""

    page: str
    text: str
    faint: str
    gap: str
    gap_line: str
    kinds: dict[str, Ink]


PALETTES: dict[Theme, Palette] = {
    "light": Palette(
        "#ffffff", "#1b2430", "#5b6675", "#f1f3f6", "#b4bdc9",
        {
            "F": Ink("#bcdcff", "#bcdcff", "#2166ac", "#0a2a4d"),
            "B": Ink("#ffd9a3", "#f6bf72", "#a85c00", "#4a2800"),
            "I": Ink("#ffc9bd", "#f5a795", "#b03a20", "#4f1406"),
            "W": Ink("#c4e8cb", "#9fd6ab", "#26774a", "#0b3a20"),
            "R": Ink("#e3d5f7", "#cbb4ec", "#6b3fa0", "#2c1350"),
            "U": Ink("#f6e793", "#dcc75c", "#7a6300", "#352a00"),
        },
    ),
    "dark": Palette(
        "#11161d", "#e8edf3", "#9aa7b6", "#1a212b", "#465364",
        {
            "F": Ink("#1d4b80", "#1d4b80", "#76b5ff", "#eaf3ff"),
            "B": Ink("#6b430c", "#845514", "#ffb454", "#fff0d8"),
            "I": Ink("#6d2a1c", "#86382a", "#ff8f78", "#ffe8e2"),
            "W": Ink("#1b5434", "#276b45", "#66d193", "#e2f9ea"),
            "R": Ink("#46306b", "#593e85", "#c3a2f2", "#f3ebff"),
            "U": Ink("#514300", "#665600", "#e6c84a", "#fff8d8"),
        },
    ),
}  # fmt: skip

# One pattern per kind besides the hue, as path data on an 8 x 8 tile: forward is plain.
PATTERNS = {
    "B": "M-2 10L10 -2M-2 2L2 -2M6 10L10 6",
    "I": "M0 4H8",
    "W": "M4 0V8",
    "R": "M-2 -2L10 10M-2 6L2 10M6 -2L10 2",
    "U": "M0 4H8M4 0V8",
}


def deeper(ink: Ink) -> Ink:
    """Return the same kind's ink for the second chunk of a device, or the second direction: nearer its outline.

    >>> deeper(Ink("#ffffff", "#ffffff", "#000000", "#000000")).fill
    '#bfbfbf'
    """
    return ink._replace(fill=_mixed(ink.fill, ink.outline), line=_mixed(ink.line, ink.outline))


def _mixed(colour: str, other: str) -> str:
    """Return ``colour`` with a quarter of ``other`` in it."""
    pairs = ((int(colour[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{(3 * a + b) // 4:02x}" for a, b in pairs)
