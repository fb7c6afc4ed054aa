"""Results go in, Matplotlib figures for papers come out: schedules, profiles and curves, as vectors, to scale.

>>> from pipesched import figures, run
>>> figure = figures.gantt(run(schedule="1f1b", devices=4, micro_batches=8), width="neurips")
>>> figures.save(figure, "/tmp/1f1b.pdf")  # doctest: +SKIP

Coordinates are those of the Timeline: x is time in its unit, y the device, counted from 0. All blocks of an ink are one
path, so that many cost little. More than ``VECTORS`` blocks are put into the file as pixels, which bounds its size;
letters, axes and legend stay vectors.

Needs Matplotlib (``pip install pipesched[figures]``); nothing else of the library imports this.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from pipesched import views
from pipesched.curves import DASHES, LINES
from pipesched.figures.blocks import BLOCK, PALETTE, VECTORS, draw, entries, is_thin, patch
from pipesched.figures.heat import heat_map
from pipesched.figures.paper import FORMATS, WIDTHS, Look, encode, no_choice, save, sheet, style
from pipesched.frame import frame
from pipesched.model import DeadlockError, Message, ScenarioError, Timeline
from pipesched.profiles import Profile
from pipesched.run import Result, run
from pipesched.scenario import PER_KIND, Scenario
from pipesched.schedules import REGISTRY
from pipesched.strips import data
from pipesched.words import SHARES, number, percent, sentence

__all__ = ["FORMATS", "WIDTHS", "Look", "comparison", "curves", "encode", "gantt", "heat_map", "profiles", "save"]

STOPS = {"micro_batches": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64), "devices": (1, 2, 3, 4, 6, 8, 12, 16)}
Of = Literal["activations", "queues", "bytes"]


def gantt(result: Result, look: Look | None = None, *, title: str = "", **changes: Any) -> Figure:
    """Draw the schedule of ``result``: a lane per device, a block per operation, bubbles grey.

    ``changes`` are fields of ``Look``. What deadlocks is drawn as far as it came.

    >>> from pipesched import run
    >>> figure = gantt(run(schedule="gpipe"), width="column", colours="micro_batch")
    >>> [float(inches) for inches in figure.get_size_inches().round(2)][0]
    3.25
    """
    return comparison([result], look, names=[title], **changes)


def comparison(
    results: Sequence[Result], look: Look | None = None, *, names: Sequence[str] | None = None, **changes: Any
) -> Figure:
    """Draw the schedules of ``results`` below one another on one axis of time, each with its makespan and bubble.

    ``names`` replaces the lines above them (empty: none); ``changes`` are fields of ``Look``.
    """
    look = replace(look or Look(), **changes)
    lines = [_head(result, look) for result in results] if names is None else list(names)
    end = max((end for result in results if (end := _time(result.timeline))), default=1.0)
    legend = entries([result.timeline for result in results], look)
    labels = [frame(result.timeline, 0 if look.inches < 4 else 999, look.language)[0] for result in results]
    with style(look):
        page = sheet(
            look,
            [result.timeline.schedule.devices for result in results],
            about="; ".join(map(_about, results)),
            labels=[label for some in labels for label in some],
            titles=lines,
            legend=list(legend.values()),
        )
        thin = any(is_thin(result.timeline, page, end) for result in results)
        for result, axes, here in zip(results, page.axes, labels, strict=True):
            _time_axis(axes, end, look, last=axes is page.axes[-1])
            _lanes(axes, here, page.lane, look)
            draw(axes, result.timeline, page, end, thin)
        page.explain([patch(kind, look, thin) for kind in legend], list(legend.values()))
    return page.figure


def profiles(
    result: Result, look: Look | None = None, *, of: Of = "activations", title: str = "", **changes: Any
) -> Figure:
    """Draw what changes over time, a lane per device or stage, its peak at the right.

    ``of`` says what: the ``activations`` a device keeps, in numbers or in ``bytes``, or the ``queues`` before the
    forwards of the stages. All lanes have one scale, but for the first queue: all inputs stand there.

    Raises
    ------
    ScenarioError
        If bytes are asked for and a setting is missing without which they are not known.
    """
    look = replace(look or Look(), **changes)
    steps, labels, peaks = _profiles(result, of, look)
    highest = max((float(step.peak) for step in (steps[1:] if of == "queues" else steps)), default=0)
    ink, timeline, end = PALETTE.kinds["F" if of == "queues" else "B"], result.timeline, _time(result.timeline)
    with style(look):
        page = sheet(
            look, [len(steps)], about=_about(result), labels=labels, values=peaks, titles=[title], lane=1.6 * look.size
        )
        axes = page.axes[0]
        _time_axis(axes, end, look)
        _lanes(axes, labels, page.lane, look)
        many = sum(len(step.ticks) for step in steps) > VECTORS
        for lane, (step, peak) in enumerate(zip(steps, peaks, strict=True)):
            top = float(step.peak) if of == "queues" and not lane else highest
            path = _area(step, timeline, lane, top)
            axes.add_artist(
                PathPatch(
                    path, facecolor=ink.fill, edgecolor=ink.outline, linewidth=0.4, gid=f"profile-{lane}",
                    rasterized=many, clip_on=False,
                )
            )  # fmt: skip
            if page.lane * 1.1 >= look.size - 1:
                axes.text(
                    1, lane, f" {peak}", transform=axes.get_yaxis_transform(), va="center", fontsize=look.size - 1
                )
    return page.figure


def curves(
    scenario: Scenario | None = None,
    look: Look | None = None,
    *,
    axis: str = "micro_batches",
    metric: str = "bubble_fraction_of_total",
    schedules: Sequence[str] = ("gpipe", "1f1b", "zb_h1"),
    stops: Iterable[int] | None = None,
    title: str = "",
    **changes: Any,
) -> Figure:
    """Draw a metric against M or K (``axis``), a curve per schedule, all else as in ``scenario``.

    ``metric`` is one of ``views.CURVED``; ``stops`` are the values along the axis. What a schedule refuses is left out
    of its curve. Along K, times of single stages are left out, as they belong to one K.

    Raises
    ------
    ScenarioError
        If ``axis``, ``metric`` or a schedule is unknown.
    """
    look, scenario = replace(look or Look(), **changes), scenario or Scenario()
    asked = [("axis", axis, views.AXES), ("metric", metric, views.CURVED)]
    for field, given, choices in (*asked, *(("schedules", name, REGISTRY) for name in schedules)):
        if given not in choices:
            raise no_choice(field, given, choices)
    xs = sorted(set(stops or STOPS[axis]))
    lines = [_curve(scenario, schedule, axis, metric, xs) for schedule in schedules]
    texts = [sentence(Message(f"schedule.{schedule}"), look.language) for schedule in schedules]
    what = "curves.peak" if metric == "peak_micro_batches" else f"metric.{metric}"
    with style(look):
        page = sheet(
            look, [1], about=f"{metric} ({', '.join(schedules)}); {_address(scenario)}", labels=["100 000"],
            titles=[title or sentence(Message(what), look.language)], lane=0.5 * look.inches * 72,
            legend=texts,
        )  # fmt: skip
        axes = page.axes[0]
        strokes = [
            axes.plot(xs, ys, gid=f"curve-{schedules[i]}", clip_on=False, zorder=3, **_stroke(i, len(lines)))[0]
            for i, ys in enumerate(lines)
        ]
        page.explain(strokes, texts)
        _curve_axes(axes, xs, axis, metric, look)
    return page.figure


def _curve_axes(axes: Axes, xs: Sequence[int], axis: str, metric: str, look: Look) -> None:
    write = percent if metric in SHARES else number
    axes.set_xscale("log", base=2)
    axes.set_xlim(xs[0], xs[-1] if len(xs) > 1 else xs[0] + 1)
    axes.set_xticks(xs, [str(x) for x in xs], fontsize=look.size - 1)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: _plain(write(float(f"{y:.9g}"), look.language))))
    axes.tick_params(labelsize=look.size - 1, length=2, width=0.6)
    axes.grid(axis="y", linewidth=0.3, color=PALETTE.gap_line)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(sentence(Message(f"curves.axis.{axis}"), look.language), fontsize=look.size, labelpad=1)


def _stroke(i: int, count: int) -> dict[str, Any]:
    """Return how the ``i``-th of ``count`` curves is drawn: later ones thinner, so that none hides another."""
    colour, dash = LINES["light"][i % len(LINES["light"])], DASHES[i % len(DASHES)]
    pattern: Any = "-" if dash == "none" else (0, tuple(float(part) / 2 for part in dash.split()))
    line = {"color": colour, "linestyle": pattern, "linewidth": 1 + 0.9 * (count - 1 - i) / count}
    return line | {"marker": "osD^vP"[i % 6], "markersize": 2.2}


def _curve(scenario: Scenario, schedule: str, axis: str, metric: str, xs: Sequence[int]) -> list[float]:
    ys = []
    for x in xs:
        changes: dict[str, Any] = {"schedule": schedule, axis: x, "slow_stage": None, "group": None}
        if axis == "devices":
            changes |= dict.fromkeys(("stage_times", *PER_KIND))
        try:
            y = views.point(run(scenario, **changes), {"metric": metric})["y"]
        except (ScenarioError, DeadlockError):
            y = None
        ys.append(np.nan if y is None else y)
    return ys


def _lanes(axes: Axes, labels: Sequence[str], lane: float, look: Look) -> None:
    every = max(1, -(-(look.size + 1) // max(lane, 0.1)))
    shown = range(0, len(labels), int(every))
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_yticks(list(shown), [labels[i] for i in shown])
    axes.tick_params(axis="y", length=0, pad=2, labelsize=look.size - 1)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _time_axis(axes: Axes, end: float, look: Look, last: bool = True) -> None:
    axes.set_xlim(0, end)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=max(2, int(look.inches * 2)), steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda x, _: _plain(number(float(f"{x:.9g}"), look.language, 3))) if last else lambda *_: ""
    )
    axes.tick_params(axis="x", length=2, width=0.6, pad=2, labelsize=look.size - 1)
    if last:
        axes.set_xlabel(sentence(Message("figure.time"), look.language), fontsize=look.size, labelpad=1)


def _profiles(result: Result, of: Of, look: Look) -> tuple[list[Profile], list[str], list[str]]:
    """Return the step functions, their names and their peaks in words."""
    if of not in ("activations", "queues", "bytes"):
        raise no_choice("of", of, ("activations", "queues", "bytes"))
    short = look.inches < 4
    if of == "queues":
        key = "profile.stage" if short else "stage"
        found = result.queue_profiles
        labels = [sentence(Message(key, {"stage": stage}), look.language) for stage in range(len(found))]
        return found, labels, [_plain(number(step.peak, look.language, 2)) for step in found]
    found = result.byte_profiles if of == "bytes" else result.activation_profiles
    if of == "bytes" and not found:
        missing = result.footprint if isinstance(result.footprint, Message) else Message("bytes.off")
        raise ScenarioError("of", missing.key, missing.params)
    labels = frame(result.timeline, 0 if short else 999, look.language)[0]
    write = data if of == "bytes" else number
    return found, labels, [_plain(write(step.peak, look.language)) for step in found]


def _area(step: Profile, timeline: Timeline, lane: int, highest: float) -> Path:
    """Return the area below a step function: the lane is as high as ``highest``."""
    xs = np.array([float(timeline.costs.time(tick)) for tick in (*step.ticks, max(timeline.end, step.ticks[-1]))])
    base = lane + BLOCK / 2
    ys = base - BLOCK * np.array([float(value) for value in step.values]) / (highest or 1)
    x, y = np.repeat(xs, 2), np.concatenate([[base], np.repeat(ys, 2), [base]])
    return Path(np.stack([x, y], -1), closed=False)


def _head(result: Result, look: Look) -> str:
    """Return the schedule's name, its makespan and its bubble; of what never ends, the name alone."""
    name = sentence(Message(f"schedule.{result.scenario.schedule}"), look.language)
    if result.deadlock:
        return name
    share = percent(result.metrics.bubble_fraction_of_total, look.language)
    values = {"name": name, "makespan": result.metrics.makespan, "bubble": share}
    return _plain(sentence(Message("figure.head", values), look.language))


def _time(timeline: Timeline) -> float:
    """Return the makespan, or, where nothing ran, a time that an axis can show."""
    return float(timeline.costs.time(timeline.end)) or 1.0


def _about(result: Result) -> str:
    return _address(result.scenario)


def _address(scenario: Scenario) -> str:
    """Return what is not at its default, as in the address of the page."""
    changed: Mapping[str, Any] = scenario.changed()
    return "&".join(f"{name}={value}" for name, value in changed.items()) or "pipesched"


def _plain(text: str) -> str:
    """Return ``text`` without the narrow space that few fonts have."""
    return text.replace("\u202f", "\u00a0")
