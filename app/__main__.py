"""Words of a command line go in, an exit status comes out: ``python3 app [serve | build DIR | vendor | ...]``."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # said here in words, not as a SyntaxError further down
    sys.exit("pipesched needs Python 3.11 or newer; this is Python " + sys.version.split()[0] + ".")

import argparse
import signal
from pathlib import Path

from hosting.report import HostingError, say
from pipesched.model import Message

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: list[str]) -> int:
    """Run one command; without one, serve."""
    command, rest = (arguments[0], arguments[1:]) if arguments else ("serve", [])
    if command in ("-h", "--help", "help"):
        return show_help()
    if command.startswith("-"):  # `python3 app --port 9000` means serve
        command, rest = "serve", arguments
    if command not in OURS:
        from pipesched.cli import main as library

        return library(arguments)
    try:
        return OURS[command](rest)
    except HostingError as error:
        print(say(error.message), file=sys.stderr)
        return 1


def serve_command(arguments: list[str]) -> int:
    """Make ``static/vendor`` ready and serve the checkout."""
    parser = argparse.ArgumentParser(prog="python3 app serve", description=word("hosting.help_serve"))
    parser.add_argument("--port", type=port_number, default=8000, help=word("hosting.help_port"))
    parser.add_argument("--no-open", action="store_true", help=word("hosting.help_no_open"))
    options = parser.parse_args(arguments)
    from hosting.serve import serve

    prepare()
    serve(ROOT, options.port, not options.no_open)
    return 0


def build_command(arguments: list[str]) -> int:
    """Build a static folder, one file, or both."""
    parser = argparse.ArgumentParser(prog="python3 app build", description=word("hosting.help_build"))
    parser.add_argument("folder", type=Path, metavar="DIR", nargs="?", help=word("hosting.help_folder"))
    parser.add_argument("--single-file", type=Path, metavar="FILE", help=word("hosting.help_single_file"))
    options = parser.parse_args(arguments)
    if not options.folder and not options.single_file:
        parser.error(word("hosting.nothing_to_build"))
    from hosting.build import build, fetch_with_progress
    from hosting.onefile import build_one_file
    from hosting.runtime import read_lock

    if options.folder:
        build(options.folder, read_lock(), fetch_with_progress)
        print(say(Message("hosting.built", {"folder": str(options.folder)})))
    if options.single_file:
        build_one_file(options.single_file, read_lock(), fetch_with_progress)
        megabytes = round(options.single_file.stat().st_size / 1e6, 1)
        print(say(Message("hosting.built_file", {"file": str(options.single_file), "megabytes": megabytes})))
    return 0


def vendor_command(arguments: list[str]) -> int:
    """Make ``static/vendor`` ready."""
    argparse.ArgumentParser(prog="python3 app vendor", description=word("hosting.help_vendor")).parse_args(arguments)
    prepare()
    return 0


def prepare() -> None:
    """Fetch and write what the page of this checkout lacks."""
    from hosting.build import VENDOR, fetch_with_progress, vendor, write_wheel
    from hosting.runtime import read_lock

    vendor(ROOT / VENDOR, read_lock(), fetch_with_progress)
    write_wheel(ROOT / "static")


OURS = {"serve": serve_command, "build": build_command, "vendor": vendor_command}


def show_help() -> int:
    """List every command: our own, then the library's list."""
    print("python3 app [command] [options]\n")
    for command in OURS:
        print(f"  {command:<10}{word('hosting.help_' + command)}")
    print(flush=True)
    from pipesched.cli import main as library

    return library(["--help"])


def port_number(text: str) -> int:
    """Read a TCP port."""
    port = int(text)
    if not 0 <= port <= 65535:
        raise ValueError(text)
    return port


def word(key: str) -> str:
    """Say a sentence that has no values; argparse wants its percent signs doubled."""
    return say(Message(key)).replace("%", "%%")


def stop(*_: object) -> None:
    """Leave by way of an exception, so that temporary folders go too."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal that lacks a letter shows "?"
    signal.signal(signal.SIGTERM, stop)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
