"""An SVG drawing of ours goes in, a PDF of one page with the same vectors comes out, at once and without Matplotlib.

Read is what ``svg.py``, ``frame.py`` and ``picture.py`` write, and no more: whatever else a drawing holds is refused by
its name, so that nothing is left out in silence. One user unit is 0.75 pt, as a CSS pixel is. Hatches are tiling
patterns; the same text gives the same bytes, as there is no date in them.

Letters are those of Helvetica and Helvetica-Bold, of the 14 fonts that every reader of PDF brings: they are *not*
embedded, which some printers and venues demand; ``pipesched.figures`` embeds its own. Helvetica has no ≈ and is given
its ~ there, accents that it lacks here are left off, and any other letter unknown here is drawn as a question mark; who
searches or copies meets the letter that was meant. The halo around a name on a shared stage becomes a plate under it.

Syntax: ISO 32000-1:2008, "Document management: Portable document format"; tiling patterns §8.7.3.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipesched.helvetica import CAP, FONTS, Letters, descriptor
from pipesched.pdf_file import file, n, stream

SCALE = 0.75  # points per user unit
CENTRAL = 0.35  # em; how far under the middle of a line its letters stand
CIRCLE = 0.5523  # where Bézier curves that pass for a quarter of a circle have their handles
SVG = "{http://www.w3.org/2000/svg}"

GEOMETRY = {
    "svg": {"viewBox", "width", "height", "y"},
    "g": set[str](),
    "rect": {"x", "y", "width", "height", "rx"},
    "path": {"d"},
    "text": {"x", "y"},
    "pattern": {"id", "width", "height", "patternUnits"},
    "defs": set[str](),
    "title": set[str](),
}
SILENT = {"role", "aria-label", "class", "font-family"}  # what does not show, and the font that is replaced
STYLE = {
    "fill": "#000000", "fill-opacity": "1", "stroke": "none", "stroke-opacity": "1", "stroke-width": "1",
    "stroke-dasharray": "none", "stroke-linecap": "butt", "paint-order": "normal",
    "font-size": "16", "font-weight": "400", "text-anchor": "start", "dominant-baseline": "auto",
}  # fmt: skip
CHOICES = {
    "stroke-linecap": ("butt", "round"),
    "paint-order": ("normal", "stroke"),
    "font-weight": ("400", "700"),
    "text-anchor": ("start", "middle", "end"),
    "dominant-baseline": ("auto", "central"),
    "patternUnits": ("userSpaceOnUse",),
}


def pdf(svg: str) -> bytes:
    """Return the drawing ``svg`` as a PDF of one page.

    Parameters
    ----------
    svg
        What ``picture()`` or ``Result.svg()`` made. Its first title becomes that of the document; the page has a
        background only where the drawing has one.

    Raises
    ------
    ValueError
        For what the drawings of this library do not hold, by its name.

    Examples
    --------
    >>> from pipesched import run
    >>> from pipesched.picture import picture
    >>> pdf(picture(run(schedule="gpipe", devices=4, micro_batches=8)))[:8]
    b'%PDF-1.4'
    """
    root = ET.fromstring(svg)
    width, height = _number(root, "width"), _number(root, "height")
    patterns = {node.get("id", ""): node for node in root.iter(SVG + "pattern")}
    book = _Book(width, height, patterns)
    canvas = _Canvas(book, [f"{SCALE} 0 0 -{SCALE} 0 {n(height * SCALE)} cm 4 M"])  # mitres as in SVG
    canvas.draw(root, STYLE, 0)
    return book.bound(root.findtext(SVG + "title", ""), "\n".join(canvas.parts).encode())


@dataclass
class _Book:
    """What the page of a drawing refers to, and the file that holds both."""

    width: float
    height: float
    patterns: Mapping[str, ET.Element]
    tiles: dict[tuple[str, float], bytes] = field(default_factory=dict)
    veils: dict[str, str] = field(default_factory=dict)
    letters: Letters = field(default_factory=Letters)

    def tile(self, fill: str, y: float) -> str:
        """Return the name of the tiling pattern for ``url(#...)`` in a drawing that begins at ``y``."""
        node, key = self.patterns.get(fill[5:-1]), (fill, y)
        if node is None:
            raise ValueError(f"unknown pattern {fill!r}")
        if key not in self.tiles:
            _known(node)
            canvas = _Canvas(self)
            for child in node:
                if child.tag != SVG + "path":
                    raise ValueError(f"unknown in a pattern: {child.tag.removeprefix(SVG)!r}")
                canvas.draw(child, STYLE, 0)
            step, rise = _number(node, "width"), _number(node, "height")
            self.tiles[key] = stream(
                " ".join(canvas.parts).encode(),
                "/Type /Pattern /PatternType 1 /PaintType 1 /TilingType 1 /Resources << >> "
                f"/BBox [0 0 {n(step)} {n(rise)}] /XStep {n(step)} /YStep {n(rise)} "
                f"/Matrix [{SCALE} 0 0 -{SCALE} 0 {n((self.height - y) * SCALE)}]",
            )
        return f"P{list(self.tiles).index(key)}"

    def veil(self, fill: str, stroke: str) -> str:
        """Return the name of the graphics state with these opacities."""
        return self.veils.setdefault(f"<< /ca {fill} /CA {stroke} >>", f"G{len(self.veils)}")

    def bound(self, title: str, content: bytes) -> bytes:
        """Return the file: its objects, where each lies, and which is the first."""
        size = f"[0 0 {n(self.width * SCALE)} {n(self.height * SCALE)}]"
        first = 8  # of the fonts; each is followed by its descriptor
        tile = first + 2 * len(FONTS)
        fonts = " ".join(f"/F{weight} {first + 2 * i} 0 R" for i, weight in enumerate(FONTS))
        tiles = " ".join(f"/P{i} {tile + i} 0 R" for i in range(len(self.tiles)))
        veils = " ".join(f"/{name} {state}" for state, name in self.veils.items())
        objects = [
            b"<< /Type /Catalog /Pages 2 0 R /ViewerPreferences << /DisplayDocTitle true >> >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            f"<< /Type /Page /Parent 2 0 R /MediaBox {size} /Contents 4 0 R /Resources << /Font << {fonts} >> "
            f"/Pattern << {tiles} >> /ExtGState << {veils} >> >> >>".encode(),
            stream(content),
            f"<< /Title <feff{title.encode('utf-16-be').hex()}> /Producer (pipesched) >>".encode(),
            self.letters.encoding(),
            stream(self.letters.meanings()),
        ]
        for i, weight in enumerate(FONTS):
            objects += [self.letters.font(weight, 6, 7, first + 2 * i + 1), descriptor(weight)]
        return file([*objects, *self.tiles.values()])


@dataclass
class _Canvas:
    """What is drawn, as operators of PDF in the coordinates of the SVG; what is set is remembered, and set once."""

    book: _Book
    parts: list[str] = field(default_factory=list)
    state: dict[str, str] = field(default_factory=dict)

    def draw(self, node: ET.Element, outer: Mapping[str, str], y: float) -> None:
        """Draw an element and what is in it; ``y`` is where the drawing it belongs to begins."""
        tag, style = _known(node), {**outer, **{name: value for name, value in node.items() if name in STYLE}}
        if tag in ("defs", "title"):
            return
        if tag in ("svg", "g"):
            y += _number(node, "y", 0)
            for child in node:
                self.draw(child, style, y)
        elif tag == "text":
            self.text(node, style, y)
        else:
            outline, closed = (self.box(node, y), True) if tag == "rect" else _path(node.get("d", ""), y)
            self.paint(outline, closed, style, y)

    def box(self, node: ET.Element, y: float) -> str:
        """Return the outline of a rectangle; the corners are cut to half its sides, each for itself (SVG 1.1 §9.2)."""
        x, top = _number(node, "x", 0), _number(node, "y", 0) + y
        full = self.book if node.get("width") == node.get("height") == "100%" else None
        width = full.width if full else _number(node, "width")
        height = full.height if full else _number(node, "height")
        if node.get("rx") is None:
            return _points((x, top, width, height)) + " re"
        a, b = min(_number(node, "rx"), width / 2), min(_number(node, "rx"), height / 2)
        right, low = x + width, top + height
        corners = (  # each with where it begins, lies and ends, clockwise from the upper right
            ((right - a, top), (right, top), (right, top + b)),
            ((right, low - b), (right, low), (right - a, low)),
            ((x + a, low), (x, low), (x, low - b)),
            ((x, top + b), (x, top), (x + a, top)),
        )
        path = [_points((x + a, top)) + " m"]
        for begin, corner, end in corners:
            handles = [p + CIRCLE * (q - p) for point in (begin, end) for p, q in zip(point, corner, strict=True)]
            path.append(f"{_points(begin)} l {_points((*handles, *end))} c")
        return " ".join([*path, "h"])

    def paint(self, outline: str, has_area: bool, style: Mapping[str, str], y: float) -> None:
        """Fill and stroke an outline; a line alone is not filled, which PDF would draw as thin as a reader can."""
        filled, stroked = has_area and style["fill"] != "none", style["stroke"] != "none"
        if filled:
            self.set("fill", self.colour(style["fill"], y, "rg", "scn"))
        if stroked:
            self.set("stroke", self.colour(style["stroke"], y, "RG", "SCN"))
            self.set("width", _points((_value("stroke-width", style["stroke-width"]),)) + " w")
            dashes = "" if style["stroke-dasharray"] == "none" else style["stroke-dasharray"]
            self.set("dashes", f"[{_points([_value('stroke-dasharray', part) for part in dashes.split()])}] 0 d")
            self.set("cap", f"{int(style['stroke-linecap'] == 'round')} J")
        if filled or stroked:
            self.veil(style)
            # Not B, which Ghostscript draws with thick edges where the fill is a hatch.
            self.parts += [f"{outline} {paint}" for paint, wanted in (("f", filled), ("S", stroked)) if wanted]

    def text(self, node: ET.Element, style: Mapping[str, str], y: float) -> None:
        """Write a line of text, with a plate under it where the drawing has a halo."""
        text, weight, size = node.text or "", style["font-weight"], _value("font-size", style["font-size"])
        width = self.book.letters.width(text, weight) * size
        x = _number(node, "x") - width * CHOICES["text-anchor"].index(style["text-anchor"]) / 2
        base = y + _number(node, "y") + CENTRAL * size * (style["dominant-baseline"] == "central")
        if style["stroke"] != "none":
            if style["paint-order"] != "stroke":
                raise ValueError("unknown: a stroke over the fill of text")
            edge = _value("stroke-width", style["stroke-width"]) / 2
            plate = _points((x - edge, base - CAP * size - edge, width + 2 * edge, CAP * size + 2 * edge)) + " re"
            self.paint(plate, True, {**style, "fill": style["stroke"], "stroke": "none"}, y)
        self.set("fill", self.colour(style["fill"], y, "rg", "scn"))
        self.veil(style)
        codes = self.book.letters.encoded(text).hex()
        self.parts.append(f"BT /F{weight} {n(size)} Tf 1 0 0 -1 {_points((x, base))} Tm <{codes}> Tj ET")

    def colour(self, paint: str, y: float, plain: str, pattern: str) -> str:
        """Return the operator that sets a colour or a hatch."""
        if re.fullmatch(r"url\(#[\w-]+\)", paint):
            return f"/Pattern {'cs' if pattern == 'scn' else 'CS'} /{self.book.tile(paint, y)} {pattern}"
        if not re.fullmatch("#[0-9a-f]{6}", paint):
            raise ValueError(f"unknown colour {paint!r}")
        return " ".join(f"{int(paint[i : i + 2], 16) / 255:.4g}" for i in (1, 3, 5)) + f" {plain}"

    def veil(self, style: Mapping[str, str]) -> None:
        """Set the opacities, from where something first has any."""
        fill, stroke = (n(_value(name, style[name])) for name in ("fill-opacity", "stroke-opacity"))
        if "veil" in self.state or (fill, stroke) != ("1", "1"):
            self.set("veil", f"/{self.book.veil(fill, stroke)} gs")

    def set(self, what: str, operator: str) -> None:
        """Write an operator that sets something, unless it is set so."""
        if self.state.get(what) != operator:
            self.state[what] = operator
            self.parts.append(operator)


def _known(node: ET.Element) -> str:
    """Return the tag of an element after looking at all it has."""
    tag = node.tag.removeprefix(SVG)
    if tag not in GEOMETRY:
        raise ValueError(f"unknown element {tag!r}")
    for name, value in node.items():
        if name in SILENT or name.startswith("data-"):
            continue
        if name not in GEOMETRY[tag] and name not in STYLE:
            raise ValueError(f"unknown attribute {name!r} of {tag!r}")
        if value not in CHOICES.get(name, (value,)):
            raise ValueError(f"unknown {name} {value!r}")
    if tag == "svg" and node.get("viewBox") != f"0 0 {node.get('width')} {node.get('height')}":
        raise ValueError(f"unknown viewBox {node.get('viewBox')!r}: it is not the size of the drawing")
    if tag in ("text", "rect", "path") and any(child.tag != SVG + "title" for child in node):
        raise ValueError(f"unknown in {tag!r}: {node[0].tag.removeprefix(SVG)!r}")
    return tag


def _path(d: str, y: float) -> tuple[str, bool]:
    """Return path data as operators, and whether some part of it has more than two points, so that it can be filled."""
    x, start, at, corners, most, parts = 0.0, (0.0, y), y, 0, 0, []
    if re.sub(r"[A-Za-z][^A-Za-z]*", "", d):
        raise ValueError(f"unknown path {d!r}")
    for command, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", d):
        values, kind = [_value("path", part) for part in rest.split()], command.upper()
        if len(values) != {"M": 2, "L": 2, "H": 1, "V": 1, "Z": 0}.get(kind):
            raise ValueError(f"unknown path command {command + rest!r}")
        if kind == "Z":
            (x, at), corners = start, 1
            parts.append("h")
            continue
        by_x, by_y = (x, at) if command.islower() else (0.0, y)
        x = values[0] + by_x if kind != "V" else x
        at = values[-1] + by_y if kind != "H" else at
        start, corners = ((x, at), 1) if kind == "M" else (start, corners + 1)
        most = max(most, corners)
        parts.append(f"{_points((x, at))} {'m' if kind == 'M' else 'l'}")
    return " ".join(parts), most > 2


def _number(node: ET.Element, name: str, default: float | None = None) -> float:
    text = node.get(name)
    return default if text is None and default is not None else _value(name, text or "")


def _value(name: str, text: str) -> float:
    if not re.fullmatch(r"-?(\d+\.?\d*|\.\d+)", text):
        raise ValueError(f"unknown {name} {text!r}: it is not a number")
    return float(text)


def _points(values: Iterable[float]) -> str:
    return " ".join(map(n, values))
