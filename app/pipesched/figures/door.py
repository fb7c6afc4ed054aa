"""What a person chose goes in, the file of a figure comes out: for the command line, and as JSON text for the page.

The page asks ``handle`` in a worker of its own, so that Matplotlib never holds up the chart.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from pipesched import figures
from pipesched.figures.paper import FORMATS, Look, encode, no_choice
from pipesched.model import Message, ScenarioError
from pipesched.run import Result, read, run
from pipesched.scenario import Scenario
from pipesched.words import number, sentence

KINDS = ("gantt", "comparison", "profiles", "curves")
MOST = 400_000
"""The most operations that a page is asked to simulate, as in ``web.py``."""


def file(scenario: Scenario, options: Mapping[str, Any], language: str, format: str) -> bytes:
    """Return the figure of ``scenario`` that the ``options`` of the command line ask for, as ``format``.

    Raises
    ------
    ScenarioError
        If an option is not among its choices, or the scenario cannot be drawn in this way.
    """
    if format not in FORMATS:
        raise no_choice("out", format, [f".{name}" for name in FORMATS])
    return encode(_drawn(run(scenario), options, language), format)


def handle(request: str) -> str:
    """Answer the page: ``settings``, ``lang``, ``format``, options as in ``file``, and ``pinned`` settings to compare.

    The answer holds the ``file`` (base64), its ``name``, ``type`` and ``size`` in words; or the ``problem``.
    """
    asked = json.loads(request)
    language, format = asked["lang"], asked["format"]
    result, errors = read(asked["settings"], MOST)
    try:
        if errors:
            raise errors[0]
        content = encode(_drawn(result, asked, language), format)
    except ScenarioError as error:
        return json.dumps({"problem": sentence(error.message, language)})
    size = number(round(len(content) / 1000, 1), language)
    return json.dumps(
        {
            "file": b64encode(content).decode(),
            "name": f"pipesched-{result.scenario.schedule}-{asked['kind']}.{format}",
            "type": FORMATS[format],
            "size": sentence(Message("figure.done", {"size": size}), language),
        }
    )


def _drawn(result: Result, options: Mapping[str, Any], language: str) -> Figure:
    kind, title = options["kind"], options.get("title") or ""
    look = Look(
        width=_inches(options, "width") or 3.25,
        height=_number(options, "height"),
        colours=options["colours"],
        letters=options["letters"],
        language=language,
        font=options["font"],
        font_size=_number(options, "font_size"),
    )
    names = [name for name in (options.get("schedules") or "").split(",") if name]
    if kind == "gantt":
        return figures.gantt(result, look, title=title)
    if kind == "profiles":
        return figures.profiles(result, look, of=options["of"], title=title)
    if kind == "comparison":
        return figures.comparison(_several(result, names, options.get("pinned")), look)
    if kind == "curves":
        what = {"axis": options["axis"], "metric": options["metric"]}
        return figures.curves(result.scenario, look, schedules=names or ["gpipe", "1f1b", "zb_h1"], title=title, **what)
    raise no_choice("kind", kind, KINDS)


def _several(result: Result, names: list[str], pinned: Mapping[str, Any] | None) -> list[Result]:
    """Return what is to be compared: the pinned scenario and this one, or this one in several schedules."""
    if pinned:
        other, errors = read(pinned, MOST)
        if not errors:
            return [other, result]
    if len(names) < 2:
        raise ScenarioError("schedules", "figure.no_pair")
    return [run(replace(result.scenario, schedule=name)) for name in names]


def _inches(options: Mapping[str, Any], name: str) -> str | float | None:
    """Read a width: a name, or a number."""
    text = str(options[name])
    return _number(options, name) if text[:1].isdigit() else text


def _number(options: Mapping[str, Any], name: str) -> float | None:
    text = str(options.get(name) or "")
    try:
        return float(text.replace(",", ".")) if text else None
    except ValueError as error:
        raise ScenarioError(name, "error.number", {"low": 0.5, "high": 40, "given": text}) from error
