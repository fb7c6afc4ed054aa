"""Letters go in, codes, widths and the objects of two fonts come out: the text of a PDF, for ``pdf.py``.

The fonts are Helvetica and Helvetica-Bold, of the 14 that every reader of PDF brings; nothing is embedded. A code is a
byte: that of ASCII, or one given in the order in which letters are met. What the fonts lack is drawn as something like
it, and means what it was to whoever searches or copies.

Syntax: ISO 32000-1:2008, "Document management: Portable document format", fonts §9.6, text that can be copied §9.10.
Widths: Adobe's Font Metrics of the core fonts, Helvetica and Helvetica-Bold 002.000 (1997).
"""

from dataclasses import dataclass, field
from typing import NamedTuple
from unicodedata import normalize

FIRST, OWN, LAST = 32, 128, 255  # codes: ASCII from FIRST on, letters of this text from OWN to LAST
CAP = 0.718  # em; the height of capital letters, the same in both fonts


class Font(NamedTuple):
    """A standard font, with what a reader must know to put another in its place."""

    name: str
    widths: tuple[int, ...]
    """Of the letters of ASCII from the space on, in thousandths of an em."""
    box: str
    """What all its letters fit into, in the same unit."""
    stem: int


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


FONTS = {
    "400": Font(
        "Helvetica",
        _numbers(
            "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 "
            "278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 "
            "611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 "
            "556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584"
        ),
        "-166 -225 1000 931",
        88,
    ),
    "700": Font(
        "Helvetica-Bold",
        _numbers(
            "278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 "
            "333 333 584 584 584 611 975 722 722 722 722 667 611 778 722 278 556 722 611 833 722 778 667 778 722 667 "
            "611 722 667 944 667 667 611 333 278 333 584 556 333 556 611 556 611 556 333 611 611 278 278 556 278 889 "
            "611 611 611 611 389 556 333 611 556 778 556 556 500 389 280 389 584"
        ),
        "-170 -228 1003 962",
        140,
    ),
}
GLYPHS = {
    "ą": ("aogonek", 556, 556), "ć": ("cacute", 500, 556), "ę": ("eogonek", 556, 556), "ł": ("lslash", 222, 278),
    "ń": ("nacute", 556, 611), "ó": ("oacute", 556, 611), "ś": ("sacute", 500, 556), "ź": ("zacute", 500, 500),
    "ż": ("zdotaccent", 500, 500), "Ą": ("Aogonek", 667, 722), "Ć": ("Cacute", 722, 722), "Ę": ("Eogonek", 667, 667),
    "Ł": ("Lslash", 556, 611), "Ń": ("Nacute", 722, 722), "Ó": ("Oacute", 778, 778), "Ś": ("Sacute", 667, 667),
    "Ź": ("Zacute", 611, 611), "Ż": ("Zdotaccent", 611, 611), "×": ("multiply", 584, 584), "−": ("minus", 584, 584),
    "–": ("endash", 556, 556), "—": ("emdash", 1000, 1000), "…": ("ellipsis", 1000, 1000),
    "·": ("periodcentered", 278, 278), "≥": ("greaterequal", 549, 549), "≤": ("lessequal", 549, 549),
    "√": ("radical", 453, 549), "²": ("twosuperior", 333, 333), "„": ("quotedblbase", 333, 500),
    "“": ("quotedblleft", 333, 500), "”": ("quotedblright", 333, 500), "’": ("quoteright", 222, 278),
    "µ": ("mu", 556, 611), "≈": ("asciitilde", 584, 584),
    "\u00a0": ("space", 278, 278), "\u202f": ("space", 278, 278),
}  # fmt: skip
"""Letters beyond ASCII: the name of their glyph and its width in either font."""


def glyph(letter: str) -> tuple[str, int, int]:
    """Return the name of the glyph that stands for a letter beyond ASCII, and its width in either font.

    >>> glyph("ł")[0], glyph("é")[0], glyph("図")[0]
    ('lslash', 'e', 'question')
    """
    if letter in GLYPHS:
        return GLYPHS[letter]
    base = normalize("NFKD", letter)[0]
    code = ord(base) - FIRST if base.isascii() and base.isalpha() else ord("?") - FIRST
    regular, bold = (font.widths[code] for font in FONTS.values())
    return base if code != ord("?") - FIRST else "question", regular, bold


@dataclass
class Letters:
    """The letters of a text beyond ASCII, each with the code it was given.

    >>> Letters().encoded("2 × ż").hex(" ")
    '32 20 80 20 81'
    """

    codes: dict[str, int] = field(default_factory=dict)

    def encoded(self, text: str) -> bytes:
        """Return the codes of ``text``; a letter for which none is left becomes a question mark."""
        return bytes(map(self._code, text))

    def _code(self, letter: str) -> int:
        if " " <= letter <= "~":
            return ord(letter)
        if letter not in self.codes and OWN + len(self.codes) > LAST:
            return ord("?")
        return self.codes.setdefault(letter, OWN + len(self.codes))

    def _widths(self, weight: str) -> list[int]:
        """Return the width of every code from FIRST on; 127 is none of ours."""
        own = [(regular, bold)[weight == "700"] for _, regular, bold in map(glyph, self.codes)]
        return [*FONTS[weight].widths, 278, *own]

    def width(self, text: str, weight: str) -> float:
        """Return how wide ``text`` is, in em.

        >>> Letters().width("F1", "400")
        1.167
        """
        codes, widths = self.encoded(text), self._widths(weight)
        return sum(widths[code - FIRST] for code in codes) / 1000

    def encoding(self) -> bytes:
        """Return the object that names the glyph of each code."""
        names = " ".join("/" + glyph(letter)[0] for letter in self.codes) or "/space"
        return f"<< /Type /Encoding /BaseEncoding /WinAnsiEncoding /Differences [{OWN} {names}] >>".encode()

    def font(self, weight: str, encoding: int, meanings: int, descriptor: int) -> bytes:
        """Return the object of a font, which refers to the other three by their numbers."""
        widths = self._widths(weight)
        return (
            f"<< /Type /Font /Subtype /Type1 /BaseFont /{FONTS[weight].name} /FirstChar {FIRST} "
            f"/LastChar {FIRST + len(widths) - 1} /Widths [{' '.join(map(str, widths))}] "
            f"/Encoding {encoding} 0 R /ToUnicode {meanings} 0 R /FontDescriptor {descriptor} 0 R >>"
        ).encode()

    def meanings(self) -> bytes:
        """Return the CMap that says which letter a code stands for (§9.10.3); at most 100 of them in a block."""
        lines = [f"<{code:02x}> <{letter.encode('utf-16-be').hex()}>" for letter, code in self.codes.items()]
        blocks = [lines[i : i + 100] for i in range(0, len(lines), 100)]
        own = "".join(f"{len(block)} beginbfchar\n" + "\n".join(block) + "\nendbfchar\n" for block in blocks)
        return (
            "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CIDSystemInfo << /Registry (Adobe) "
            "/Ordering (UCS) /Supplement 0 >> def\n/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n"
            "1 begincodespacerange\n<00> <ff>\nendcodespacerange\n1 beginbfrange\n<20> <7e> <0020>\nendbfrange\n"
            f"{own}endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n"
        ).encode()


def descriptor(weight: str) -> bytes:
    """Return the object that describes a font to readers that put another in its place (§9.8)."""
    font = FONTS[weight]
    return (
        f"<< /Type /FontDescriptor /FontName /{font.name} /Flags 32 /FontBBox [{font.box}] /ItalicAngle 0 "
        f"/Ascent 718 /Descent -207 /CapHeight {CAP * 1000:.0f} /StemV {font.stem} >>"
    ).encode()
