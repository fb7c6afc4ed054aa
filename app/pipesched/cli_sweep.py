"""``pipesched sweep``: options that hold several values go in, a grid of numbers comes out, in a file or printed.

An option takes one value, as with ``run``, or several, which make it an axis: ``4,8,16``, a range with both ends
``2:16:2`` (step 1 where none is given), or both, ``1,2,4:16:4``. Settings that are lists themselves are set apart by
``|``: ``--stage-times "1,1,2|1,2,1"``. Any option takes a JSON list too, ``--order '["0F0", "0F0 0F1"]'``.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pipesched.model import Message, ScenarioError
from pipesched.reading import exact_number, plain
from pipesched.scenario import SETTINGS
from pipesched.words import number, sentence

LONGEST = 100_000
"""The most values of one axis."""


def add_options(parser: argparse.ArgumentParser, option: Callable[[str], str], say: Callable[[str], str]) -> None:
    """Give ``parser`` an option per setting and those of the sweep itself."""
    for name in SETTINGS:
        parser.add_argument(option(name), metavar="VALUES", help=say(f"field.{name}"))
    parser.add_argument("--metrics", metavar="NAMES", help=say("cli.metrics"))
    parser.add_argument("--jobs", metavar="N", help=say("cli.jobs"))
    parser.add_argument("--out", metavar="FILE", help=say("cli.sweep_out"))
    parser.add_argument("--resume", action="store_true", help=say("cli.resume"))


def command(options: dict[str, Any], language: str) -> None:
    """Compute the grid that ``options`` ask for.

    Raises
    ------
    ScenarioError
        If an option cannot be used.
    """
    from pipesched.grid import FORMS
    from pipesched.sweep import MEASURED, sweep

    given = {name: values_of(name, options[name]) for name in SETTINGS if options[name] is not None}
    axes = {name: values for name, values in given.items() if len(values) != 1}
    settings = {name: values[0] for name, values in given.items() if len(values) == 1}
    if "order" in given:
        settings.setdefault("schedule", "order")
    if not axes:
        raise ScenarioError("devices", "error.no_axis", {})
    jobs = exact_number(options["jobs"]) if options["jobs"] is not None else None
    if options["jobs"] is not None and (jobs is None or jobs.denominator != 1 or not 1 <= jobs <= 1024):
        raise ScenarioError("jobs", "error.whole", {"low": 1, "high": 1024, "given": options["jobs"]})
    out = Path(options["out"]) if options["out"] else None
    if out and out.suffix.lower() not in FORMS:
        raise ScenarioError("out", "error.schedule", {"given": out.suffix or out.name, "names": ", ".join(FORMS)})
    if options["resume"] and not out:
        raise ScenarioError("resume", "error.resume", {})
    if out and out.suffix.lower() == ".npz" and find_spec("numpy") is None:
        raise ScenarioError("out", "error.no_numpy", {})
    metrics = options["metrics"].replace(",", " ").split() if options["metrics"] else MEASURED
    with _kept(out, options["resume"], language) as file, _progress_line(language) as progress:
        try:
            grid = sweep(
                axes,
                metrics=metrics,
                jobs=int(jobs) if jobs else None,
                progress=progress,
                file=file,
                language=language,
                **settings,
            )
            if out:
                grid.save(out)
        except OSError as error:
            if out is None:
                raise
            raise ScenarioError("out", "cli.cannot_write", {"path": str(out), "reason": error.strerror}) from error
    if out is None:
        sys.stdout.write(grid.to_csv())
        sys.stdout.flush()


def values_of(name: str, text: str) -> list[Any]:
    """Read what an option of the setting ``name`` holds.

    >>> values_of("devices", "2:8:2"), values_of("comm", "0,0.5:1:0.25"), values_of("stage_times", "1,2|2,1")
    ([2, 4, 6, 8], ['0', '0.5', '0.75', 1], ['1,2', '2,1'])
    >>> values_of("schedule", "gpipe,1f1b"), values_of("order", "0F0, 0F1")
    (['gpipe', '1f1b'], ['0F0, 0F1'])

    Raises
    ------
    ScenarioError
        If a range has no end or too many steps, or a JSON list cannot be read.
    """
    kind = SETTINGS[name].kind
    if text.lstrip().startswith("["):
        try:
            return list(json.loads(text))
        except ValueError:
            raise ScenarioError(name, "error.values", {"given": text}) from None
    if kind == "text":
        return [text]
    if kind == "numbers":
        return [part.strip() for part in text.split("|")]
    return [value for part in text.split(",") for value in (_range(name, part) if ":" in part else [part.strip()])]


def _range(name: str, text: str) -> list[Any]:
    """Count from the first to the last number, both included, by the step."""
    numbers = [exact_number(part.strip()) for part in text.split(":")]
    first, last, step = (*numbers, 1)[:3] if len(numbers) in (2, 3) else (None, None, None)
    if first is None or last is None or not step or (last - first) / step < 0:
        raise ScenarioError(name, "error.values", {"given": text})
    count = int((last - first) / step) + 1
    if count > LONGEST:
        raise ScenarioError(name, "error.grid", {"n": count, "most": LONGEST})
    return [
        plain(int(value) if value.denominator == 1 else value) for value in (first + i * step for i in range(count))
    ]


@contextmanager
def _kept(out: Path | None, is_resumed: bool, language: str) -> Iterator[Path | None]:
    """Hand out the file beside ``out`` that keeps what is computed until ``out`` itself is written."""
    if out is None:
        yield None
        return
    file = out.with_name(out.name + ".partial")
    if file.exists() and not is_resumed:
        raise ScenarioError("out", "error.partial", {"path": str(file)})
    try:
        yield file
    except ScenarioError as error:
        field = "resume" if error.field == "file" else error.field
        raise ScenarioError(field, error.message.key, {**error.message.params, "field": field}) from error
    except KeyboardInterrupt:
        print("\n" + sentence(Message("cli.interrupted", {"path": str(file)}), language), file=sys.stderr)
        raise
    file.unlink(missing_ok=True)


@contextmanager
def _progress_line(language: str) -> Iterator[Callable[[int, int], None]]:
    """Say on standard error how far it is: on a terminal one line that changes, else nothing until the end."""
    is_live, said = sys.stderr.isatty(), [0, 0]

    def show(done: int, total: int) -> None:
        said[:] = done, total
        if is_live:
            print(f"\r{line(done, total)}", end="", file=sys.stderr, flush=True)

    def line(done: int, total: int) -> str:
        values = {"done": number(done, language), "total": Message("count.combinations", {"n": total})}
        return sentence(Message("cli.progress", values), language)

    try:
        yield show
    finally:
        if is_live and said[1]:
            print(file=sys.stderr)
    if not is_live:
        print(line(*said), file=sys.stderr)
