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
from typing import Any, NoReturn

from pipesched.model import DeadlockError, Message, ScenarioError
from pipesched.run import Result, run
from pipesched.scenario import DEFAULTS, SETTINGS, Scenario, number_text
from pipesched.schedules import REGISTRY
from pipesched.words import LANGUAGES, environment_language, number, sentence

FORMATS: dict[str, Callable[[Result, str], str]] = {
    "json": lambda result, language: json.dumps(result.to_dict(), indent=1) + "\n",
    "text": lambda result, language: _text(result, language),
    "svg": lambda result, language: result.svg(language=language),
    "csv": lambda result, language: result.csv(),
}
SHOWN = ("makespan", "sequential_makespan", "first_output", "speedup", "bubble_fraction_of_total")


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(argv: list[str] | None = None) -> int:
    """Run the command line ``argv`` (the process's own where None); return the exit code."""
    language = environment_language()
    parser = _parser(language)
    options = vars(parser.parse_args(argv))
    language = options.get("lang") or language
    try:
        COMMANDS[options["command"]](options, language)
    except ScenarioError as error:
        message = error.message._replace(params={**error.message.params, "field": _option(error.field)})
        print(f"{parser.prog}: {sentence(message, language)}", file=sys.stderr)
        return 2
    except DeadlockError as error:
        print(f"{parser.prog}: {sentence(error.message, language)}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, head for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _run(options: dict[str, str], language: str) -> None:
    given: dict[str, Any] = {name: options[name] for name in SETTINGS if options[name] is not None}
    written = FORMATS[options["format"]](run(Scenario(**given)), language)
    if options["out"]:
        try:
            Path(options["out"]).write_text(written, encoding="utf-8")
        except OSError as error:
            values = {"path": options["out"], "reason": error.strerror}
            raise ScenarioError("out", "cli.cannot_write", values) from error
    else:
        sys.stdout.write(written)
        sys.stdout.flush()


def _list(options: dict[str, str], language: str) -> None:
    for name, entry in REGISTRY.items():
        print(f"{name:12} {sentence(Message(f'schedule.{name}.idea'), language)}\n{'':12} {entry.source}")


COMMANDS: dict[str, Callable[[dict[str, str], str], None]] = {"run": _run, "list": _list}


def _parser(language: str) -> argparse.ArgumentParser:
    def say(key: str) -> str:
        return sentence(Message(key), language)

    parser = _Parser(prog="pipesched", description=say("cli.about"), allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="run | list")
    runner = commands.add_parser("run", help=say("cli.run"), description=say("cli.run"), allow_abbrev=False)
    for name, setting in SETTINGS.items():
        limits = (
            f" {number_text(setting.low)}–{number_text(setting.high)}"
            if setting.kind != "name"
            else f" {', '.join(REGISTRY)}"
        )
        default = "" if DEFAULTS[name] is None else f" [{DEFAULTS[name]}]"
        runner.add_argument(_option(name), metavar=name[0].upper(), help=f"{say(f'field.{name}')}:{limits}{default}")
    runner.add_argument("--format", choices=FORMATS, default="text", help=say("cli.format"))
    runner.add_argument("--out", metavar="FILE", help=say("cli.out"))
    lister = commands.add_parser("list", help=say("cli.list"), description=say("cli.list"), allow_abbrev=False)
    for command in (runner, lister):
        command.add_argument("--lang", choices=LANGUAGES, help=say("cli.lang"))
    return parser


def _option(field: str) -> str:
    return "--" + field.replace("_", "-")


def _text(result: Result, language: str) -> str:
    """Return the chart and, below it, the main numbers, a line each."""
    chart = result.text(width=get_terminal_size().columns, language=language)
    rows = [(sentence(Message(f"metric.{name}"), language), getattr(result.metrics, name)) for name in SHOWN]
    width = max(len(label) for label, _ in rows) + 2
    return f"{chart}\n" + "".join(f"{label:{width}}{number(value, language)}\n" for label, value in rows)
