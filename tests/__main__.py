"""A checkout goes in, a verdict comes out: ``python3 tests [pytest arguments]`` sets itself up and runs every check.

The last line says how many passed and failed; linter, types and each thing that could not be had count as one test.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

import engines
import web_servers

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "pipesched-tests.txt"
BROWSER = "PIPESCHED_CHROMIUM"
COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "~/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "%ProgramFiles%/Google/Chrome/Application/chrome.exe",
    "%ProgramFiles(x86)%/Google/Chrome/Application/chrome.exe",
    "%LocalAppData%/Google/Chrome/Application/chrome.exe",
)


def main(arguments: list[str]) -> int:
    """Run all steps and print the verdict."""
    steps: list[bool] = []
    if not make_environment():
        return verdict(0, 1)
    browser = find_browser()
    if browser:
        os.environ[BROWSER] = browser
    else:
        say("No Chromium could be found or installed: install one, or name its program in $" + BROWSER + ".")
        arguments = ["-m", "not browser", *arguments]
        steps.append(False)
    steps += [False] * len(missing(web_servers.PACKAGES, web_servers.program, "behind"))
    steps += [False] * len(missing(engines.PACKAGES, engines.program, "in"))
    if not make_vendor():
        steps.append(False)
    if browser and not make_deck():
        say("reveal.js could not be had (is npm here?): the tests of slides are skipped.")
        steps.append(False)
    steps.append(run("ruff", "check", "."))
    steps.append(run("mypy"))
    passed, failed = run_pytest(arguments)
    return verdict(passed + steps.count(True), failed + steps.count(False))


def verdict(passed: int, failed: int) -> int:
    """Print the last line and return the exit status."""
    say(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def say(text: str) -> None:
    """Print at once: what the steps print must stand in order with it, in a log too."""
    print(text, flush=True)


def make_environment() -> bool:
    """Make ``.venv`` with the tools that pyproject.toml names, unless it has just these already."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]["test"]
    wanted = "\n".join(tools)
    if STAMP.is_file() and STAMP.read_text(encoding="utf-8") == wanted and works(PYTHON):
        return True
    say("== Installing the test tools into .venv: " + ", ".join(tools))
    try:
        if not works(PYTHON):
            venv.create(VENV, with_pip=True, clear=True)
        install = ["-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input", *tools]
        subprocess.run([PYTHON, *install], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"The test tools could not be installed (on Debian, is python3-venv there?): {error}")
        return False
    STAMP.write_text(wanted, encoding="utf-8")
    return True


def make_vendor() -> bool:
    """Have the browser's Python in ``static/vendor``; a process of its own, as the library may not even import."""
    say("== Python for the browser")
    return subprocess.run([PYTHON, "app", "vendor"], cwd=ROOT).returncode == 0


def make_deck() -> bool:
    """Have reveal.js, in which the tests show the page as a slide."""
    say("== reveal.js")
    return subprocess.run([PYTHON, ROOT / "tests" / "npm_package.py"]).returncode == 0


def find_browser() -> str | None:
    """Find a Chromium that runs, or get one; None if all fails. A browser named by hand is the only one tried."""
    if named := os.environ.get(BROWSER):
        return named if works(named) else None
    found = next((browser for browser in installed_browsers() if works(browser)), None)
    return found or next((browser for browser in newly_installed_browsers() if works(browser)), None)


def installed_browsers() -> Iterator[str]:
    """List the browsers that may be here: on the path, in the usual places, Playwright's own."""
    yield from filter(None, map(shutil.which, COMMANDS))
    yield from (os.path.expandvars(os.path.expanduser(place)) for place in PLACES)
    yield from playwright_browser()


def newly_installed_browsers() -> Iterator[str]:
    """Install a Chromium in the ways that may work, one after the other."""
    say("== No Chromium here; getting Playwright's own")
    if quietly(str(PYTHON), "-m", "playwright", "install", "chromium"):
        yield from playwright_browser()
    if shutil.which("apt-get") and os.geteuid() == 0:
        say("== Installing the package chromium")
        quietly("apt-get", "update")
        quietly("apt-get", "install", "-y", "--no-install-recommends", "chromium")
        yield from filter(None, map(shutil.which, COMMANDS))


def missing(packages: Mapping[str, str], program: Callable[[str], str | None], where: str) -> list[str]:
    """Name what should be here for the tests and is not, after trying to install it.

    Web servers and other engines come as Debian packages; on other systems, and without the right to install, what is
    there is tested.
    """
    lacking = {name: package for name, package in packages.items() if not program(name)}
    if not lacking:
        return []
    if not shutil.which("apt-get") or os.geteuid() != 0:
        say(f"Not tested {where} {', '.join(lacking)}: not installed here, and only root on Debian can install them.")
        return []
    say("== Installing the packages " + " ".join(lacking.values()))
    quietly("apt-get", "update")
    with no_service_starts():
        for package in lacking.values():
            quietly("apt-get", "install", "-y", "--no-install-recommends", *package.split())
    left = [name for name in lacking if not program(name)]
    for name in left:
        say(f"The package {lacking[name]} could not be installed.")
    return left


@contextlib.contextmanager
def no_service_starts() -> Iterator[None]:
    """Keep Debian from starting what it installs: these servers are run by the tests alone."""
    policy = Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            policy.unlink(missing_ok=True)


def playwright_browser() -> Iterator[str]:
    """Say where Playwright would have put its browser."""
    program = (
        "from playwright.sync_api import sync_playwright\n"
        "with sync_playwright() as p: print(p.chromium.executable_path)"
    )
    answer = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True)
    if answer.returncode == 0:
        yield answer.stdout.strip()


def works(program: str | Path) -> bool:
    """Whether a program is there and starts. On Windows a browser asked for its version opens a window: not asked."""
    if not shutil.which(program):
        return False
    return os.name == "nt" or quietly(str(program), "--version", seconds=60)


def quietly(*command: str, seconds: float = 600) -> bool:
    """Run a command without its output; whether it succeeded in time."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        return subprocess.run(command, capture_output=True, timeout=seconds, env=quiet).returncode == 0
    return False


def run(tool: str, *arguments: str) -> bool:
    """Run a tool of the environment on the checkout, showing what it prints."""
    say("== " + " ".join((tool, *arguments)))
    return subprocess.run([PYTHON, "-m", tool, *arguments], cwd=ROOT).returncode == 0


def run_pytest(arguments: list[str]) -> tuple[int, int]:
    """Run pytest; how many tests passed and failed. A test that was skipped did neither, and pytest names it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        is_well = run("pytest", f"--junitxml={report}", "-ra", *arguments)
        try:
            suites = list(ElementTree.parse(report).iter("testsuite"))
        except (OSError, ElementTree.ParseError):
            return 0, 1

    def count(kind: str) -> int:
        return sum(int(suite.get(kind, 0)) for suite in suites)

    failed = count("failures") + count("errors")
    return count("tests") - failed - count("skipped"), failed or int(not is_well)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
