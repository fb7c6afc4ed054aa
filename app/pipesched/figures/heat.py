"""A Grid goes in, a heat map of one of its metrics over two of its axes comes out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from pipesched.figures.blocks import PALETTE
from pipesched.figures.paper import Look, no_choice, sheet, style
from pipesched.grid import Grid
from pipesched.model import Message
from pipesched.reading import plain
from pipesched.words import SHARES, number, percent, sentence

COLOURS = "cividis"
"""Even steps look even, in grey and to the colour-blind too."""
FEW = 14  # cells of a row; in more there is no room for numbers


def heat_map(
    grid: Grid,
    metric: str = "bubble_fraction_of_total",
    look: Look | None = None,
    *,
    x: str = "",
    y: str = "",
    title: str = "",
    fixed: dict[str, Any] | None = None,
    **changes: Any,
) -> Figure:
    """Draw ``metric`` over the axes ``x`` and ``y`` of ``grid``, by default its last and the one before.

    ``fixed`` picks a value of every other axis; the first where it names none. What a schedule refuses is left empty.

    Raises
    ------
    ScenarioError
        If the grid has no such metric, axis or value.

    Examples
    --------
    >>> from pipesched.sweep import sweep
    >>> grid = sweep({"devices": [2, 4], "micro_batches": [4, 8, 16]}, schedule="1f1b", jobs=1)
    >>> heat_map(grid).axes[0].get_xlabel()
    'Micro-batches M'
    """
    look = replace(look or Look(), **changes)
    names = list(grid.axes)
    x, y = x or names[-1], y or next((name for name in reversed(names) if name != (x or names[-1])), names[-1])
    for field, given in (("x", x), ("y", y)):
        if given not in names:
            raise no_choice(field, given, names)
    if metric not in grid.values:
        raise no_choice("metric", metric, grid.values)
    cells = _cells(grid, metric, x, y, fixed or {})
    write = percent if metric in SHARES else number
    rows = [_value(value) for value in grid.axes[y]]
    what = "curves.peak" if metric == "peak_micro_batches" else f"metric.{metric}"
    head = title or sentence(Message(what), look.language)
    room = [f"{row}000" for row in rows]  # the name of the axis stands left of them
    with style(look):
        page = sheet(
            look, [len(rows)], about=f"{metric} over {x} and {y}", labels=room, titles=[head],
            lane=min(2.2 * look.size, 240 / len(rows)),
        )  # fmt: skip
        axes = page.axes[0]
        known = cells[np.isfinite(cells)]
        scale = Normalize(known.min(), known.max()) if known.size else Normalize(0, 1)
        axes.set_facecolor(PALETTE.gap)
        axes.pcolormesh(np.ma.masked_invalid(cells), cmap=COLOURS, norm=scale, linewidth=0.4, edgecolors="white")
        _ticks(axes, [_value(value) for value in grid.axes[x]], rows, look)
        for which, name in ((axes.set_xlabel, x), (axes.set_ylabel, y)):
            which(sentence(Message(f"field.{name}"), look.language), fontsize=look.size, labelpad=2)
        if len(grid.axes[x]) <= FEW:
            _numbers(axes, cells, scale, lambda value: write(float(f"{value:.3g}"), look.language), look)
    return page.figure


def _cells(grid: Grid, metric: str, x: str, y: str, fixed: dict[str, Any]) -> Any:
    """Return an array of the metric, a row per value of ``y``."""
    place: list[Any] = []
    for name, values in grid.axes.items():
        if name in (x, y):
            place.append(slice(None))
            continue
        wanted = fixed.get(name, values[0])
        if wanted not in values:
            raise no_choice(name, wanted, map(str, values))
        place.append(values.index(wanted))
    cells = grid.metrics[metric][tuple(place)]
    if x == y:
        return cells.reshape(1, -1)
    return cells if list(grid.axes).index(y) < list(grid.axes).index(x) else cells.T


def _value(value: Any) -> str:
    return "–" if value is None else str(plain(value))


def _ticks(axes: Axes, columns: Sequence[str], rows: Sequence[str], look: Look) -> None:
    """Name the cells, the first row on top, as many columns as there is room for."""
    every = max(1, -(-len(columns) // max(1, int(look.inches * 6))))
    shown = range(0, len(columns), every)
    axes.set_xticks([i + 0.5 for i in shown], [columns[i] for i in shown], fontsize=look.size - 1)
    axes.set_yticks([i + 0.5 for i in range(len(rows))], rows, fontsize=look.size - 1)
    axes.invert_yaxis()
    axes.tick_params(length=0, pad=2)
    axes.spines[:].set_visible(False)


def _numbers(axes: Axes, cells: Any, scale: Normalize, write: Any, look: Look) -> None:
    """Write every number into its cell, light on dark and dark on light."""
    for (row, column), value in np.ndenumerate(cells):
        text = "–" if np.isnan(value) else write(value).replace("\u202f", "").replace("≈", "")
        dark = np.isnan(value) or scale(value) > 0.55
        axes.text(
            column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=look.size - 2,
            color=PALETTE.text if dark else "white",
        )  # fmt: skip
