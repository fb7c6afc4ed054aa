"""The command line: options are the settings, output is for people and programs."""

import csv
import io
import json
from xml.etree import ElementTree

import pytest

from pipesched import run
from pipesched.cli import main
from pipesched.scenario import SETTINGS
from pipesched.schedules import REGISTRY


@pytest.fixture(autouse=True)
def english_shell(monkeypatch):
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")


def call(arguments):
    """Run the command line; its exit status, whether returned or raised."""
    try:
        return main(arguments.split())
    except SystemExit as stop:
        return stop.code


def output(capsys, arguments):
    assert call(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_json_has_scenario_metrics_and_intervals(capsys):
    answer = json.loads(output(capsys, "run --schedule forward --devices 3 --micro-batches 4 --format json"))
    assert answer.keys() == {"scenario", "metrics", "intervals"}
    assert answer["scenario"].keys() == SETTINGS.keys()
    assert answer["metrics"]["makespan"] == 6
    assert answer["metrics"]["sequential_makespan"] == 12
    assert answer["metrics"]["first_output"] == 3
    assert len(answer["intervals"]) == 12
    assert answer["intervals"][4] == {"device": 1, "op": "1F0", "start": 1, "end": 2, "bound_by": "0F0"}


def test_csv_is_read_by_csv(capsys):
    text = output(capsys, "run --schedule 1f1b --devices 2 --micro-batches 2 --format csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert " ".join(row["op"] for row in rows) == "0F0 0F1 0B0 0B1 1F0 1B0 1F1 1B1"
    assert rows[4] == {"device": "1", "op": "1F0", "start": "1", "end": "2", "bound_by": "0F0"}
    assert rows[0]["bound_by"] == ""


def test_svg_is_the_chart(capsys):
    text = output(capsys, "run --format svg")
    assert text == run().svg()
    ElementTree.fromstring(text)


def test_text_shows_chart_and_numbers(capsys):
    text = output(capsys, "run")
    assert text.startswith(run().text())
    assert "time without overlap" in text


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_an_option(capsys, name):
    value = {"schedule": "gpipe", "stage_times": "1;2;1,5", "chunks": "1"}.get(name, "2")
    option = "--" + name.replace("_", "-")
    shown = json.loads(output(capsys, f"run {option} {value} --format json"))["scenario"]
    assert shown == run(**{name: value}).scenario.settings()


def test_the_library_s_words_come_in_polish(capsys):
    assert "Urządzenie 1" in output(capsys, "run --lang pl")


def test_the_shell_s_language_is_used(capsys, monkeypatch):
    monkeypatch.setenv("LANG", "pl_PL.UTF-8")
    assert "Urządzenie 1" in output(capsys, "run")
    assert "Device 1" in output(capsys, "run --lang en")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("run --devices 65", ["--devices", "1", "64", "65"]),
        ("run --devices -1", ["--devices", "1", "64", "-1"]),
        ("run --micro-batches=0", ["--micro-batches", "1", "1024", "0"]),
        ("run --devices many", ["--devices", "1", "64", "many"]),
        ("run --forward 0", ["--forward", "0.001", "1\u202f000\u202f000", "0"]),
        ("run --slow-factor 5", ["--slow-factor", "1", "4", "5"]),
        ("run --slow-stage 4", ["--slow-stage", "1", "3", "4"]),
        ("run --stage-times 1;2", ["--stage-times", "2", "3"]),
        ("run --schedule zigzag", ["--schedule", "zigzag", *REGISTRY]),
        ("run --format xml", ["--format", "xml", "json", "text", "svg", "csv"]),
        ("run --lang xx", ["--lang", "xx", "en", "pl"]),
        ("run --stages 3", ["--stages"]),
        ("run --device 3", ["--device"]),
        ("run --devices", ["--devices"]),
        ("jump", ["jump"]),
        ("", []),
        ("run --out /nowhere/at/all.svg", ["--out", "/nowhere/at/all.svg"]),
    ],
)
def test_a_bad_option_is_one_line_that_names_it_and_its_limits(capsys, arguments, parts):
    assert call(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert all(part in err for part in parts)


def test_a_bad_option_is_said_in_polish(capsys):
    assert call("run --devices 65 --lang pl") == 2
    assert "potrzebna jest liczba całkowita od 1 do 64" in capsys.readouterr().err


def test_out_writes_the_file_and_prints_nothing(capsys, tmp_path):
    file = tmp_path / "chart.svg"
    assert output(capsys, f"run --format svg --out {file}") == ""
    assert file.read_text(encoding="utf-8") == run().svg()


def test_list_names_every_schedule_with_its_source(capsys):
    text = output(capsys, "list")
    assert all(name in text and entry.source in text for name, entry in REGISTRY.items())


def test_help_names_every_option_and_its_limits(capsys):
    text = output(capsys, "run --help")
    assert all("--" + name.replace("_", "-") in text for name in SETTINGS)
    assert all(name in text for name in REGISTRY)
    assert "0.001" in text
