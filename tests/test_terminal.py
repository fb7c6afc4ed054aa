"""The terminal: colours where it has them, plain text where not, and a file of settings that is watched."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from pipesched import Scenario, ScenarioError, run
from pipesched.cli import main
from pipesched.ink import PALETTES
from pipesched.scenario_file import settings
from pipesched.terminal import colours, painter
from pipesched.text import WAITS, draw
from scenarios import scenarios

ROOT = Path(__file__).resolve().parents[1]
ESCAPE = re.compile("\x1b\\[[0-9;]*m")
unix = pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals and signals are POSIX's")


@pytest.fixture(autouse=True)
def english_shell(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS", "WT_SESSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.mark.parametrize(
    ("environment", "is_terminal", "expected"),
    [
        ({"TERM": "xterm-256color"}, True, "256"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, True, "true"),
        ({"TERM": "xterm", "COLORTERM": "24bit"}, True, "true"),
        ({"TERM": "xterm-direct"}, True, "true"),
        ({"TERM": "linux"}, True, "8"),
        ({"TERM": "dumb"}, True, "none"),
        ({}, True, "none"),
        ({"WT_SESSION": "1"}, True, "true"),
        ({"TERM": "xterm-256color"}, False, "none"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, True, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, True, "256"),
        ({"TERM": "xterm-256color", "FORCE_COLOR": "1"}, False, "256"),
        ({"FORCE_COLOR": "1"}, False, "8"),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, "none"),
    ],
)
def test_colours_are_those_of_the_terminal_and_none_where_they_are_not_wanted(environment, is_terminal, expected):
    assert colours(environment, is_terminal) == expected


@effort(max_examples=40)
@given(scenarios(), st.sampled_from(["8", "256", "true"]), st.integers(40, 140))
def test_paint_changes_no_place_and_names_every_block_s_kind(scenario, which, width):
    result = run(scenario)
    plain, painted = result.text(width=width).splitlines(), result.text(width=width, colours=which).splitlines()
    assert len(plain) == len(painted)
    for line, coloured in zip(plain, painted, strict=True):
        bare = ESCAPE.sub("", coloured)
        assert len(bare.rstrip()) <= len(line) <= max(len(bare), len(line))
        assert [i for i, sign in enumerate(bare) if sign == WAITS] == [i for i, s in enumerate(line) if s == WAITS]
        assert coloured.endswith("\x1b[0m") or "\x1b" not in coloured or coloured.rstrip(WAITS).endswith("\x1b[0m")


def test_a_kind_has_the_colour_of_the_page_and_a_second_chunk_a_deeper_one():
    line = run(schedule="interleaved_1f1b", devices=2, micro_batches=2).text(colours="true").splitlines()[0]
    fills = re.findall(r"48;2;(\d+;\d+;\d+)m([A-Z])1", line)
    fill = PALETTES["light"].kinds["F"].fill
    assert fills[0] == (";".join(str(int(fill[i : i + 2], 16)) for i in (1, 3, 5)), "F")
    assert len({colour for colour, kind in fills if kind == "F"}) == 2
    assert len({colour for colour, kind in fills if kind == "B"}) == 2


def test_an_overlapped_pair_is_two_halves():
    result = run(schedule="dualpipe", devices=4, micro_batches=8)
    line = draw(result.timeline, width=120, paint=painter(result.timeline, "8")).splitlines()[0]
    assert re.search("\x1b\\[97;44mF4 +\x1b\\[30;43mB6 +\x1b\\[0m", line)


@unix
@pytest.mark.parametrize("columns", [46, 90])
def test_in_a_window_the_chart_is_coloured_and_fits(columns):
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": "app"}
    command = [sys.executable, "app", "run", "--schedule", "1f1b", "--devices", "8", "--micro-batches", "32"]
    program = subprocess.Popen(command, cwd=ROOT, stdout=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # Linux says so that the other side is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert program.wait() == 0
    chart = [line.rstrip("\r") for line in shown.decode().split("\n") if line.startswith("Device")]
    assert len(chart) == 8 and all("\x1b[38;5;" in line for line in chart)
    assert max(len(ESCAPE.sub("", line)) for line in chart) <= columns


def test_in_a_pipe_and_in_a_file_the_chart_is_plain(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    assert main(["run"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["run", "--out", str(tmp_path / "chart.txt")]) == 0
    assert "\x1b" not in (tmp_path / "chart.txt").read_text()


SAME = {"devices": 4, "schedule": "1f1b", "micro_batches": 8, "stage_times": "1,1.5,1,1"}


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(SAME),
        json.dumps({"scenario": run(**SAME).scenario.settings()}),
        'devices = 4\nschedule = "1f1b"\nmicro-batches = 8\nstage_times = [1, 1.5, 1, 1]  # one is slow\n',
        "# a comment first\ndevices = 4\nschedule = '1f1b'\nmicro_batches = 8\nstage_times = '1,1.5,1,1'",
        "devices=4&schedule=1f1b&micro_batches=8&stage_times=1,1.5,1,1",
        "#devices=4&schedule=1f1b&micro_batches=8&stage_times=1%2C1.5%2C1%2C1\n",
        "https://example.org/x/?lang=pl#devices=4&schedule=1f1b&micro_batches=8&stage_times=1,1.5,1,1&compare=devices%3D2",
    ],
)
def test_a_scenario_file_is_json_toml_a_link_or_a_fragment(content):
    assert Scenario(**settings(content)) == Scenario(**SAME)


def test_an_empty_file_is_the_first_view():
    assert all(settings(content) == {} for content in ("", "\n", "#", "{}", "https://example.org/"))


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("[1]", "scenario"),
        ("{", "scenario"),
        ("devices 4", "scenario"),
        ("devices = true", "scenario"),
        ("[devices]\nn = 1", "scenario"),
        ("devises = 4", "devises"),
        ("#devises=4", "devises"),
        ("[" * 100_000, "scenario"),
    ],
)
def test_what_is_no_scenario_is_refused(content, field):
    with pytest.raises(ScenarioError) as caught:
        settings(content)
    assert caught.value.field == field


def test_a_file_gives_the_settings_and_options_change_them(capsys, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('schedule = "gpipe"\ndevices = 4\n')
    assert main(["run", "--scenario", str(file), "--devices", "2", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)["scenario"]
    assert shown == run(schedule="gpipe", devices=2).scenario.settings()
    assert main(["run", "--scenario", str(tmp_path / "none")]) == 2
    assert "--scenario: cannot read" in capsys.readouterr().err
    assert main(["run", "--watch", str(file), "--scenario", str(file)]) == 2
    assert "--scenario" in capsys.readouterr().err


@unix
def test_a_watched_file_is_drawn_again_errors_are_named_and_ctrl_c_ends_it(tmp_path):
    file, shown = tmp_path / "mine.toml", tmp_path / "shown.txt"
    file.write_text("devices = 2")
    command = [sys.executable, "app", "run", "--watch", str(file)]
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a test run in the background ignores Ctrl-C
    with shown.open("w") as out:
        program = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.PIPE, text=True, preexec_fn=heard)

    def until(part):
        end = time.monotonic() + 60
        while part not in shown.read_text(encoding="utf-8"):
            assert time.monotonic() < end and program.poll() is None, shown.read_text(encoding="utf-8")
            time.sleep(0.05)

    try:
        until("Ctrl+C ends")
        assert "Device 3" not in shown.read_text(encoding="utf-8")
        file.write_text("devices = 99")
        until("--devices: needs a whole number from 1 to 64, not 99.")
        file.unlink()
        until("--watch: cannot read")
        file.write_text("devices = 5")
        until("Device 5")
        file.write_text("order = '''\n0F0 0B0\n1B0 1F0'''")
        until("Deadlock")
        program.send_signal(signal.SIGINT)
        err = program.communicate(timeout=60)[1]
    finally:
        program.kill()
        program.communicate()
    assert (program.returncode, err) == (0, "")
