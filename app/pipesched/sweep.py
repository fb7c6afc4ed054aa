"""Axes of settings go in, a Grid of numbers comes out: every combination run once, the same numbers as a single run.

>>> grid = sweep({"schedule": ["gpipe", "1f1b"], "micro_batches": [4, 8]}, devices=4, metrics=["makespan"], jobs=1)
>>> grid.at(schedule="1f1b", micro_batches=8)
{'makespan': 33}

It needs the standard library only; the arrays of a Grid need NumPy.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pipesched
from pipesched.grid import Cell, Grid, unknown_metrics
from pipesched.journal import Journal
from pipesched.metrics import Metrics
from pipesched.model import DeadlockError, ScenarioError
from pipesched.reading import plain
from pipesched.run import run
from pipesched.scenario import SETTINGS, Scenario
from pipesched.schedules import REGISTRY
from pipesched.words import sentence

MEASURED = (
    "makespan", "speedup", "bubble_fraction_of_total", "bubble_fraction_of_ideal", "bubble_rate_of_span",
    "peak_micro_batches",
)  # fmt: skip
"""The metrics of a grid where none are named."""
MOST = 1_000_000
"""The most combinations of a grid."""
TOGETHER = 8
"""The most combinations that a worker is given at a time: sizes differ, and each answer is progress."""

Progress = Callable[[int, int], object]
"""Told how many combinations are done, of how many."""


def sweep(
    axes: Mapping[str, Sequence[Any]],
    *,
    metrics: Sequence[str] = MEASURED,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    file: str | os.PathLike[str] | None = None,
    language: str = "en",
    **settings: Any,
) -> Grid:
    """Run every combination of ``axes``, the first axis slowest, with the other ``settings`` the same throughout.

    Parameters
    ----------
    axes
        Fields of Scenario, each with its values in order.
    metrics
        Fields of Metrics; of those with one number per device or stage, the largest is kept.
    executor
        Who computes: any executor of ``concurrent.futures``, or Dask's ``client.get_executor()``, which is left open.
        None: a pool of ``jobs`` processes of this machine; in a browser, this one.
    jobs
        How many processes; 1: this one; None: one per processor. As with every process pool, a script that
        asks for more than one has to keep its own work below ``if __name__ == "__main__":``.
    file
        Where each answer is kept as soon as it is there. If it is there already, only what it lacks is computed.
    language
        Of the reasons why combinations are refused.

    Raises
    ------
    ScenarioError
        For a value outside its limits, an unknown field, schedule or metric, a value twice on one axis, more than
        MOST combinations, or a ``file`` that is of another grid. A combination that is not defined is no error: its
        numbers are NaN and ``Grid.refused`` says why.
    OSError
        If ``file`` cannot be read or written.

    Examples
    --------
    >>> grid = sweep({"devices": [2, 3], "comm": [0, "1/3"]}, schedule="dualpipe", metrics=["makespan"], jobs=1)
    >>> grid.shape, grid.refused[1, 0]
    ((2, 2), 'Devices K: DualPipe needs an even number of devices, not 3. Nearest that work: 2; 4.')
    """
    empty = prepared(axes, metrics, settings)
    cells: dict[int, Cell] = {}
    with ExitStack() as closing:
        journal = closing.enter_context(Journal(Path(file), empty.about(), cells)) if file is not None else None
        missing = [index for index in range(prod(empty.shape)) if index not in cells]
        total, points = prod(empty.shape), list(product(*empty.axes.values()))
        if progress:
            progress(len(cells), total)
        for answers in _computed(empty, points, missing, executor, jobs, language):
            cells |= answers
            if journal:
                journal.keep(answers)
            if progress:
                progress(len(cells), total)
    return empty.filled([cells[index] for index in range(total)])


def prepared(axes: Mapping[str, Sequence[Any]], metrics: Sequence[str], settings: Mapping[str, Any]) -> Grid:
    """Return the grid with its values read and nothing computed.

    Raises
    ------
    ScenarioError
        As ``sweep``.

    Examples
    --------
    >>> prepared({"devices": [2, "3"]}, ["makespan"], {"comm": "0.5"}).settings
    {'comm': Fraction(1, 2)}
    """
    for name in (*axes, *settings):
        if name not in SETTINGS:
            raise ScenarioError(name, "error.unknown_field", {"given": name})
    if wrong := unknown_metrics(metrics):
        names = ", ".join(item.name for item in fields(Metrics))
        raise ScenarioError("metrics", "error.schedule", {"given": wrong[0], "names": names})
    read: dict[str, tuple[Any, ...]] = {}
    for name, values in axes.items():
        read[name] = tuple(_value(name, value) for value in values)
        if not read[name]:
            raise ScenarioError(name, "error.axis_empty")
        for i, value in enumerate(read[name]):
            if value in read[name][:i]:
                raise ScenarioError(name, "error.axis_twice", {"given": str(plain(value))})
    constant = {name: _value(name, value) for name, value in settings.items() if name not in read}
    if (count := prod(map(len, read.values()))) > MOST:
        raise ScenarioError(next(iter(read)), "error.grid", {"n": count, "most": MOST})
    return Grid(read, constant, {name: () for name in dict.fromkeys(metrics)}, {}, pipesched.__version__)


def _value(name: str, value: Any) -> Any:
    """Read one value of a field as Scenario does."""
    known = getattr(Scenario(**{name: value}), name)
    if name == "schedule" and known not in REGISTRY:
        raise ScenarioError(name, "error.schedule", {"given": known, "names": ", ".join(REGISTRY)})
    return known


def _computed(
    grid: Grid,
    points: list[tuple[Any, ...]],
    missing: list[int],
    executor: Executor | None,
    jobs: int | None,
    language: str,
) -> Iterator[dict[int, Cell]]:
    """Yield the cells of ``missing`` by index, as they are done."""
    workers = 1 if sys.platform == "emscripten" else max(1, jobs or os.cpu_count() or 1)
    together = max(1, min(TOGETHER, len(missing) // (4 * workers)))
    shares = [missing[i : i + together] for i in range(0, len(missing), together)]
    names = tuple(grid.values)

    def asked(share: list[int]) -> list[dict[str, Any]]:
        return [{**grid.settings, **dict(zip(grid.axes, points[index], strict=True))} for index in share]

    if executor is None and min(workers, len(shares)) <= 1:
        for share in shares:
            yield dict(zip(share, cells_of(asked(share), names, language), strict=True))
        return
    with _pool(executor, min(workers, len(shares))) as pool:
        waiting: dict[Future[list[Cell]], list[int]] = {}
        try:
            for share in shares:
                waiting[pool.submit(cells_of, asked(share), names, language)] = share
            for future in as_completed(waiting):
                yield dict(zip(waiting[future], future.result(), strict=True))
        finally:  # an interruption or a failure: do not leave the rest running
            for future in waiting:
                future.cancel()


@contextmanager
def _pool(executor: Executor | None, workers: int) -> Iterator[Executor]:
    if executor is not None:
        yield executor
        return
    from concurrent.futures import ProcessPoolExecutor  # not there where Python runs in a browser

    with ProcessPoolExecutor(workers) as pool:
        yield pool


def cells_of(scenarios: Sequence[Mapping[str, Any]], metrics: Sequence[str], language: str) -> list[Cell]:
    """Run ``scenarios``; what each gives: its ``metrics``, or the sentence that says why it is refused.

    >>> cells_of([{"schedule": "gpipe"}, {"slow_stage": 7}], ["makespan"], "en")
    [(18,), 'Which stage is slow: needs a whole number from 1 to 3, not 7.']
    """
    return [_cell(settings, metrics, language) for settings in scenarios]


def _cell(settings: Mapping[str, Any], metrics: Sequence[str], language: str) -> Cell:
    try:
        measured = run(Scenario(**settings)).metrics
    except (ScenarioError, DeadlockError) as error:
        return sentence(error.message, language)
    values = (getattr(measured, name) for name in metrics)
    return tuple(max(value) if isinstance(value, tuple) else value for value in values)
