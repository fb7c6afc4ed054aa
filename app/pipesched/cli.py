"""Command-line words go in, a result goes to standard output: the options are the fields of Scenario.

Bad options end in one line on standard error that names the option and what it accepts, with exit code 2.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import Any, NoReturn

import pipesched
from pipesched import cli_sweep, measured, measuring, placement, report, scenario_file, text, why
from pipesched.formats import FORMATS, to_dict
from pipesched.model import DeadlockError, Message, ScenarioError
from pipesched.presets import PRESETS
from pipesched.reading import number_text
from pipesched.run import Result, run
from pipesched.scenario import DEFAULTS, SETTINGS, Scenario
from pipesched.schedules import FAMILIES, REGISTRY
from pipesched.terminal import Colours, colours
from pipesched.watch import watch
from pipesched.words import LANGUAGES, catalogue, environment_language, number, sentence

TEXT = "text"
"""The format for people; all others are those of formats.py."""
SHOWN = (
    "makespan", "longest_span", "sequential_makespan", "first_output", "speedup",
    "bubble_fraction_of_total", "bubble_fraction_of_ideal", "bubble_rate_of_span",
)  # fmt: skip
SHOWN_PER_DEVICE = ("peak_micro_batches", "weight_versions")


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(argv: list[str] | None = None) -> int:
    """Run the command line ``argv`` (the process's own where None); return the exit code.

    >>> main(["run", "--devices", "2", "--micro-batches", "2", "--format", "order"])
    0F0 0F1
    1F0 1F1
    0
    """
    language = environment_language()
    parser = _parser(language)
    options = vars(parser.parse_args(argv))
    language = options.get("lang") or language
    try:
        COMMANDS[options["command"]](options, language)
    except ScenarioError as error:
        print(f"{parser.prog}: {_said(error, language)}", file=sys.stderr)
        return 2
    except DeadlockError as error:
        sys.stdout.write(_drawn(error, language))
        print(f"{parser.prog}: {sentence(error.message, language)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, head for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _said(error: ScenarioError, language: str) -> str:
    message = error.message._replace(params={**error.message.params, "field": _option(error.field)})
    return sentence(message, language)


def _drawn(error: DeadlockError, language: str) -> str:
    return text.draw(error.timeline, width=get_terminal_size().columns, language=language)


def _scenario(options: dict[str, Any]) -> Scenario:
    """Return what the options say: the preset comes first, then the file, then each option."""
    given: dict[str, Any] = _preset(options["preset"]) if options["preset"] else {}
    for option in ("scenario", "watch"):
        if options.get(option):
            given |= scenario_file.settings(_read(options[option], option))
    given |= {name: options[name] for name in SETTINGS if options[name] is not None}
    if options["order_file"]:
        given["order"] = _read(options["order_file"], "order_file")
    if "order" in given and options["schedule"] is None:
        given["schedule"] = "order"
    return Scenario(**given)


def _run(options: dict[str, Any], language: str) -> None:
    if options["watch"]:
        clash = [name for name in ("scenario", "measured", "out") if options[name]]
        if clash or options["format"] == "pdf":
            raise ScenarioError(next(iter(clash), "format"), "cli.not_with_watch")
        watch(Path(options["watch"]), lambda: _seen(options, language), language)
        return
    written = _written(options, language)
    if options["out"]:
        _write(options["out"], written if isinstance(written, bytes) else written.encode())
    elif isinstance(written, bytes):
        sys.stdout.buffer.write(written)
    else:
        sys.stdout.write(written)
        sys.stdout.flush()


def _seen(options: dict[str, Any], language: str) -> str:
    """Return what a file that is watched gives now, or what is wrong with it."""
    try:
        written = _written(options, language)
        return written if isinstance(written, str) else ""
    except ScenarioError as error:
        return _said(error, language) + "\n"
    except DeadlockError as error:
        return _drawn(error, language) + sentence(error.message, language) + "\n"


def _written(options: dict[str, Any], language: str) -> str | bytes:
    """Run what the options ask for; return it in the format they ask for."""
    result = run(_scenario(options))
    if options["measured"]:
        return _measured(result, options, language)
    if options["format"] == TEXT and not options["out"]:
        return _text(result, language, _colours())
    return _formatted(result, options["format"], language)


def _formatted(result: Result, name: str, language: str) -> str | bytes:
    return _text(result, language) if name == TEXT else FORMATS[name].write(result, language)


def _colours() -> Colours:
    return colours(os.environ, sys.stdout.isatty())


def _write(path: str, content: bytes) -> None:
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise ScenarioError("out", "cli.cannot_write", {"path": path, "reason": error.strerror}) from error


def _figure(options: dict[str, Any], language: str) -> None:
    """Draw a figure for a paper; Matplotlib is looked for only here."""
    try:
        from pipesched.figures import door
    except ModuleNotFoundError as error:
        raise ScenarioError("kind", "cli.no_matplotlib", {"missing": error.name}) from error
    _write(options["out"], door.file(_scenario(options), options, language, Path(options["out"]).suffix.lower()[1:]))


def _measured(result: Result, options: dict[str, Any], language: str) -> str | bytes:
    """Hold measured times against ``result``, or, with ``--adopt``, against the model in their order and mean times."""
    content, scale = _read(options["measured"], "measured"), options["measured_scale"]
    other, found = measuring.against(result, content, scale)
    if options["adopt"]:
        result = run(Scenario(**{**result.scenario.settings(), **measured.settings(found, result.scenario)}))
        other, found = measuring.against(result, content)
    if options["format"] == "json":
        both = to_dict(result) | {"measured": measuring.to_dict(result, found, other)}
        return json.dumps(both, indent=1) + "\n"
    if options["format"] != TEXT:
        return _formatted(other, options["format"], language)
    width, automatic = get_terminal_size().columns, not scale or bool(options["adopt"])
    paint = "none" if options["out"] else _colours()
    charts = [
        f"{sentence(Message(f'measured.{key}'), language)}\n{one.text(width=width, language=language, colours=paint)}"
        for key, one in (("measured", other), ("prediction", result))
    ]
    said = [fill(sentence(line, language), 100) for line in measuring.said(result, found, automatic)]
    return "\n".join([*charts, measuring.table(result, found, other, language), *said, ""])


def _preset(name: str) -> dict[str, Any]:
    for preset in PRESETS:
        if preset.name == name:
            return dict(preset.settings)
    raise ScenarioError("preset", "error.schedule", {"given": name, "names": ", ".join(p.name for p in PRESETS)})


def _read(path: str, option: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ScenarioError(option, "cli.cannot_read", {"path": path, "reason": reason}) from error


def _list(options: dict[str, str], language: str) -> None:
    """Print the schedules with what each needs, its other names and its source; or the figures of papers."""

    def say(key: str, **params: Any) -> str:
        return sentence(Message(key, params), language)

    if options["presets"]:
        for preset in PRESETS:
            print(f"{preset.name:12} {say(f'preset.{preset.name}')}\n{'':12} {preset.source}")
        return
    for family in FAMILIES:
        print(f"{say(f'family.{family}')}\n")
        for entry in (entry for entry in REGISTRY.values() if entry.family == family):
            key = f"schedule.{entry.name}.needs"
            lines = [
                say(f"schedule.{entry.name}.idea"),
                f"{say('cli.needs')} {say(key if key in catalogue(language) else 'needs.any')}",
                *([f"{say('cli.also')} {', '.join(entry.synonyms)}"] if entry.synonyms else []),
                entry.source,
            ]
            body = "\n".join(fill(line, 100, initial_indent=" " * 4, subsequent_indent=" " * 4) for line in lines)
            print(f"  {entry.name}\n{body}\n")


COMMANDS: dict[str, Callable[[dict[str, Any], str], None]] = {
    "run": _run,
    "figure": _figure,
    "sweep": cli_sweep.command,
    "list": _list,
}


def _parser(language: str) -> argparse.ArgumentParser:
    def say(key: str) -> str:
        return sentence(Message(key), language)

    parser = _Parser(prog="pipesched", description=say("cli.about"), allow_abbrev=False)
    parser.add_argument(
        "--version", action="version", version=f"pipesched {pipesched.__version__}", help=say("cli.version")
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="run | figure | sweep | list")
    runner = commands.add_parser("run", help=say("cli.run"), description=say("cli.run"), allow_abbrev=False)
    _scenario_options(runner, language)
    runner.add_argument("--watch", metavar="FILE", help=say("cli.watch"))
    runner.add_argument("--measured", metavar="FILE", help=say("cli.measured"))
    runner.add_argument("--measured-scale", metavar="M", default="", help=say("cli.measured_scale"))
    runner.add_argument("--adopt", action="store_true", help=say("cli.adopt"))
    runner.add_argument("--format", choices=(TEXT, *FORMATS), default=TEXT, help=say("cli.format"))
    runner.add_argument("--out", metavar="FILE", help=say("cli.out"))
    drawer = commands.add_parser("figure", help=say("cli.figure"), description=say("cli.figure"), allow_abbrev=False)
    _scenario_options(drawer, language)
    for name, default in FIGURE.items():
        drawer.add_argument(_option(name), default=default, help=say(f"cli.figure.{name}"), metavar=name[0].upper())
    drawer.add_argument("--out", metavar="FILE", required=True, help=say("cli.figure.out"))
    lister = commands.add_parser("list", help=say("cli.list"), description=say("cli.list"), allow_abbrev=False)
    lister.add_argument("--presets", action="store_true", help=say("cli.list_presets"))
    sweeper = commands.add_parser("sweep", help=say("cli.sweep"), description=say("cli.sweep_how"), allow_abbrev=False)
    cli_sweep.add_options(sweeper, _option, say)
    for command in (runner, drawer, sweeper, lister):
        command.add_argument("--lang", choices=LANGUAGES, help=say("cli.lang"))
    return parser


FIGURE = {
    "kind": "gantt",
    "of": "activations",
    "schedules": "",
    "axis": "micro_batches",
    "metric": "bubble_fraction_of_total",
    "width": "column",
    "height": "",
    "colours": "kind",
    "letters": "pytorch",
    "font": "sans",
    "font_size": "",
    "title": "",
}
"""The options of a figure and their defaults."""


def _scenario_options(parser: argparse.ArgumentParser, language: str) -> None:
    """Add an option per setting, and those that take many settings from elsewhere."""

    def say(key: str) -> str:
        return sentence(Message(key), language)

    for name, setting in SETTINGS.items():
        limits = (
            f" {number_text(setting.low)}–{number_text(setting.high)}"
            if setting.kind in ("whole", "number", "numbers")
            else f" {', '.join(setting.options or (REGISTRY if setting.kind == 'name' else ()))}"
        )
        default = "" if DEFAULTS[name] is None else f" [{DEFAULTS[name]}]"
        parser.add_argument(_option(name), metavar=name[0].upper(), help=f"{say(f'field.{name}')}:{limits}{default}")
    parser.add_argument("--order-file", metavar="FILE", help=say("cli.order_file"))
    parser.add_argument("--scenario", metavar="FILE", help=say("cli.scenario"))
    parser.add_argument("--preset", metavar="NAME", help=say("cli.preset"))


def _option(field: str) -> str:
    return "--" + field.replace("_", "-")


def _text(result: Result, language: str, colours: Colours = "none") -> str:
    """Return the chart and, below it, the main numbers, what theory says of them, and what to know before citing."""
    chart = result.text(width=get_terminal_size().columns, language=language, colours=colours)
    rows = [(name, number(getattr(result.metrics, name), language)) for name in SHOWN]
    for name in SHOWN_PER_DEVICE:
        rows.append((name, " ".join(number(value, language) for value in getattr(result.metrics, name))))
    labels = [sentence(Message(f"metric.{name}"), language) for name, _ in rows]
    width = max(map(len, labels)) + 2
    table = "".join(f"{label:{width}}{value}\n" for label, (_, value) in zip(labels, rows, strict=True))
    said = [report.durations(result, language), *report.theory(result, language)]
    said += [sentence(note.message, language) for note in result.notes if not note.settings]
    said += report.batch(result, language)[0]
    said += why.lines(result, language)
    if result.scenario.split != "none":
        said.append(sentence(placement.summary(result), language))
    return f"{chart}\n{table}\n" + "".join(fill(line, 100) + "\n" for line in said)
