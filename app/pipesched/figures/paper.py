"""A Look goes in, a blank sheet comes out; a drawn one goes in, the same bytes come out every time.

Nothing global is touched: no pyplot, and the settings of the process (``rcParams``) neither show nor change.
Fonts are those that come with Matplotlib, embedded as TrueType (type 42, which publishers take; type 3 many do not).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import pipesched
from pipesched.model import ScenarioError
from pipesched.svg import LETTERS, Letters
from pipesched.words import LANGUAGES

INCH = 72.27
"""TeX points per inch."""
WIDTHS = {
    "column": 3.25,
    "text": 6.75,
    "acl-column": 7.7 / 2.54,
    "acl-text": 16 / 2.54,
    "acm-column": 241.14749 / INCH,
    "acm-text": 506.295 / INCH,
    "icml-column": 234.8775 / INCH,
    "icml-text": 487.8225 / INCH,
    "ieee-column": 252 / INCH,
    "ieee-text": 516 / INCH,
    "lncs": 12.2 / 2.54,
    "neurips": 5.5,
}
"""Inches, as the classes of the venues set them; ``column`` and ``text`` are ICML's, rounded."""
FONTS = {"sans": "DejaVu Sans", "serif": "DejaVu Serif", "times": "STIXGeneral"}
FORMATS = {"pdf": "application/pdf", "svg": "image/svg+xml", "png": "image/png"}
NARROWEST, WIDEST = 1, 40  # inches
DPI = {"png": 300, "pdf": 600, "svg": 600}
"""Dots per inch; in a vector format, of the parts that are too many to be drawn as vectors."""
PRIVATE = ("backend", "interactive", "toolbar", "timezone", "webagg", "tk.", "docstring", "keymap", "animation", "date")


@dataclass(frozen=True)
class Look:
    """How a figure looks. Sizes are in inches, the size of the letters in points.

    Attributes
    ----------
    width
        A name of ``WIDTHS`` or inches.
    height
        None: as high as the lanes need.
    colours
        What the colour of a block tells: its ``kind``, or its ``micro_batch``, the hatch then telling the kind.
    letters, language
        As in ``pipesched.svg.draw``.
    font
        ``sans`` and ``serif`` are DejaVu's, ``times`` is STIX, which goes with Times.
    font_size
        Of names and numbers at the axes; None: 7 in a column, 8 in a wider figure.

    Raises
    ------
    ScenarioError
        If one of them is not among its choices or outside its limits.
    """

    width: str | float = "column"
    height: float | None = None
    colours: str = "kind"
    letters: Letters = "pytorch"
    language: str = "en"
    font: str = "sans"
    font_size: float | None = None

    def __post_init__(self) -> None:
        choices: Iterable[str]
        for name, choices in (
            ("colours", ("kind", "micro_batch")), ("letters", LETTERS), ("language", LANGUAGES), ("font", FONTS),
        ):  # fmt: skip
            if getattr(self, name) not in choices:
                raise no_choice(name, getattr(self, name), choices)
        if isinstance(self.width, str) and self.width not in WIDTHS:
            raise no_choice("width", self.width, WIDTHS)
        for name, low, high in (
            ("width", NARROWEST, WIDEST), ("height", 0.5, WIDEST), ("font_size", 3, 30),
        ):  # fmt: skip
            value = getattr(self, name)
            if isinstance(value, int | float) and not low <= value <= high:
                raise ScenarioError(name, "error.number", {"low": low, "high": high, "given": value})

    @property
    def inches(self) -> float:
        """The width."""
        return WIDTHS[self.width] if isinstance(self.width, str) else self.width

    @property
    def size(self) -> float:
        """The size of the letters in points."""
        return self.font_size or (7 if self.inches < 4 else 8)

    def long(self, texts: Sequence[str]) -> float:
        """Return about how many points the longest of ``texts`` takes, a little more rather than less."""
        return 0.6 * self.size * max(map(len, texts), default=0)


def no_choice(field: str, given: object, choices: Iterable[str]) -> ScenarioError:
    """Return the error that ``given`` is not among the ``choices`` of ``field``."""
    return ScenarioError(field, "error.schedule", {"given": str(given), "names": ", ".join(choices)})


@cache
def _defaults() -> Any:
    defaults = matplotlib.rcParamsDefault
    return {key: defaults[key] for key in defaults if not key.startswith(PRIVATE)}


@contextmanager
def style(look: Look) -> Iterator[None]:
    """Draw as Matplotlib does out of the box, with our fonts; then everything is as it was."""
    ours: Any = {
        "font.family": [FONTS[look.font]],
        "font.size": look.size,
        "axes.linewidth": 0.6,
        "hatch.linewidth": 0.5,
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "svg.fonttype": "path",
        "svg.hashsalt": "pipesched",
    }
    with matplotlib.rc_context(_defaults() | ours):
        yield


class Paper(Figure):
    """A figure that is saved as it was drawn, whatever the settings of the process are, and shows itself in notebooks.

    ``about`` says what it shows and goes into the file as its title.
    """

    look: Look
    about: str

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save as Matplotlib's figures do, with fonts embedded."""
        with style(self.look):
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        return encode(self, "png", 150)


def encode(figure: Figure, format: str = "pdf", dpi: float | None = None) -> bytes:
    """Return ``figure`` as a file: pdf, svg or png. The same figure gives the same bytes: no date is in them.

    ``dpi``: dots per inch of a png, or of what is drawn as pixels in the others; None: as in ``DPI``.
    """
    if format not in FORMATS:
        raise no_choice("format", format, FORMATS)
    about, maker = getattr(figure, "about", "pipesched"), f"pipesched {pipesched.__version__}"
    metadata: dict[str, dict[str, str | None]] = {
        "pdf": {"CreationDate": None, "Title": about, "Creator": maker},
        "svg": {"Date": None, "Title": about, "Creator": maker},
        "png": {"Title": about, "Software": maker},
    }
    file = BytesIO()
    with style(getattr(figure, "look", Look())):
        figure.savefig(file, format=format, dpi=dpi or DPI[format], metadata=metadata[format])
    return file.getvalue()


def save(figure: Figure, path: str | Path, format: str | None = None, dpi: float | None = None) -> None:
    """Write ``figure`` to ``path``, by default in the format that its name ends in; the rest as in ``encode``."""
    Path(path).write_bytes(encode(figure, format or Path(path).suffix.lower().lstrip("."), dpi))


@dataclass(frozen=True)
class Sheet:
    """A blank figure with room for ``axes``, one below another, which share their left and right ends.

    ``plot`` is their width and ``lane`` the height of a lane, in points.
    """

    figure: Paper
    axes: list[Axes]
    plot: float
    lane: float
    columns: int

    def explain(self, handles: Sequence[Artist], texts: Sequence[str]) -> None:
        """Put the legend where room was left for it."""
        if texts:
            self.figure.legend(
                handles, texts, loc="lower center", ncols=self.columns, frameon=False, fontsize=self.figure.look.size,
                handlelength=1.3, handletextpad=0.4, columnspacing=0.9, labelspacing=0.25, borderaxespad=0.2,
                borderpad=0,
            )  # fmt: skip


def sheet(
    look: Look,
    lanes: Sequence[float],
    *,
    about: str,
    labels: Sequence[str] = (),
    values: Sequence[str] = (),
    titles: Sequence[str] = (),
    legend: Sequence[str] = (),
    lane: float = 12,
) -> Sheet:
    """Lay out a figure: ``lanes[i]`` are the lanes of its i-th axes, ``labels`` stand left, ``values`` right of them.

    For the texts of the ``legend`` room is left. A lane is ``lane`` points high, less where they are many, or whatever
    the height of the look leaves.
    """
    size, width = look.size, look.inches * 72
    left, right = look.long(labels) + 8, look.long(values) + 10
    rows, columns = _rows(look, legend, width)
    under = 2.7 * size + (rows * 1.35 * size + 2 if rows else 0)
    heads = [1.5 * size + 4 if title else 3.0 for title in (titles or [""] * len(lanes))]
    between = 0.8 * size * (len(lanes) - 1)
    lane = min(lane, max(2.0, 300 / sum(lanes)))
    if look.height:
        lane = max(0.2, (look.height * 72 - sum(heads) - between - under) / sum(lanes))
    height = lane * sum(lanes) + sum(heads) + between + under
    figure = Paper(figsize=(look.inches, look.height or height / 72))
    figure.look, figure.about = look, about
    axes, top = [], height
    for i, (count, head) in enumerate(zip(lanes, heads, strict=True)):
        top -= head + lane * count
        place = (left / width, top / height, (width - left - right) / width, lane * count / height)
        axes.append(figure.add_axes(place))
        if titles and titles[i]:
            axes[-1].set_title(titles[i], loc="left", fontsize=size, pad=3)
        top -= 0.8 * size
    return Sheet(figure, axes, width - left - right, lane, columns)


def _rows(look: Look, legend: Sequence[str], width: float) -> tuple[int, int]:
    """Return the fewest rows, and their columns, in which the entries of a legend fit."""
    for rows in range(1, len(legend) + 1):
        columns = ceil(len(legend) / rows)
        piles = [legend[i : i + rows] for i in range(0, len(legend), rows)]
        if sum(look.long(pile) + 2.6 * look.size for pile in piles) <= width or columns == 1:
            return rows, columns
    return 0, 1
