"""The command line: options are the settings, output is for people and programs."""

import csv
import io
import json
import re
from xml.etree import ElementTree

import pytest

from pipesched import DeadlockError, run
from pipesched.cli import main
from pipesched.presets import PRESETS
from pipesched.scenario import PER_KIND, SETTINGS
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
    assert answer.keys() == {
        "format",
        "version",
        "scenario",
        "metrics",
        "intervals",
        "bubble",
        "critical_path",
        "what_if",
    }
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


def test_text_says_which_stage_is_the_largest_and_which_m_is_best(capsys):
    text = output(capsys, "run --split even --head 4 --batch 24 --overhead 4")
    assert "The largest stage is stage 3 with 12 layers' time" in text
    assert "24 samples are shared by M = 4 micro-batches" in " ".join(text.split())


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_an_option(capsys, name):
    text = {"schedule": "gpipe", "stage_times": "1;2;1,5", "times_of": "stage", "recompute": "late", "send": "blocking"}
    text |= dict.fromkeys(PER_KIND, "1;0.5;2") | {"split": "balanced", "batch": "8", "precision": "32"}
    value = {"order": "0F0", **text}.get(name, "2")
    option = "--" + name.replace("_", "-")
    shown = json.loads(output(capsys, f"run {option} {value} --format json"))["scenario"]
    implied = {"schedule": "order"} if name == "order" else {}
    assert shown == run(**{name: value}, **implied).scenario.settings()


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
        ("run --schedule dualpipe --devices 5 --micro-batches 3", ["--devices", "even", "5", "4; 6"]),
        ("run --order 0X0", ["--order", "line 1, column 1", "0X0"]),
        ("run --order-file /nowhere/at/all", ["--order-file", "/nowhere/at/all"]),
        ("run --preset zigzag", ["--preset", "zigzag", "zb_v"]),
        ("run --recompute sometimes", ["--recompute", "sometimes", "none", "early", "late"]),
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
    text = " ".join(output(capsys, "list").split())
    assert all(name in text and entry.source in text for name, entry in REGISTRY.items())
    assert "needs: an even number of devices" in text
    assert all(synonym in text for entry in REGISTRY.values() for synonym in entry.synonyms)


def test_list_names_the_figures_of_papers(capsys):
    text = output(capsys, "list --presets")
    assert all(preset.name in text and preset.source in text for preset in PRESETS)


@pytest.mark.parametrize("preset", [preset.name for preset in PRESETS])
def test_a_figure_is_run_by_its_name_and_other_options_change_it(capsys, preset):
    settings = next(p.settings for p in PRESETS if p.name == preset)
    shown = json.loads(output(capsys, f"run --preset {preset} --comm 0.5 --format json"))["scenario"]
    assert shown == run(**{**settings, "comm": "0.5"}).scenario.settings()


def test_an_order_is_read_from_a_file_or_standard_input_and_written_again(capsys, tmp_path, monkeypatch):
    text = output(capsys, "run --schedule 1f1b --format order")
    assert text.splitlines()[2] == "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3"
    file = tmp_path / "order.csv"
    file.write_text(output(capsys, "run --schedule 1f1b --format order-csv"), encoding="utf-8")
    assert output(capsys, f"run --order-file {file} --format order") == text
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert output(capsys, "run --order-file - --format order") == text


def test_a_circle_is_drawn_and_named_and_ends_with_1(capsys):
    with pytest.raises(DeadlockError):
        run(schedule="order", order="0F0 0B0\n1B0 1F0")
    assert main(["run", "--order", "0F0 0B0\n1B0 1F0"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("Device 1  F1")
    assert "device 2 stands before 1B0, which needs 1F0" in err


def test_the_text_says_how_the_result_stands_to_theory(capsys):
    text = " ".join(output(capsys, "run --schedule zb_h2 --devices 4 --micro-batches 8").split())
    assert "The simulated longest span of a device equals the closed form" in text
    assert "no device is at work for longer than 24 of the 27" in text


def test_help_names_every_option_and_its_limits(capsys):
    text = output(capsys, "run --help")
    assert all("--" + name.replace("_", "-") in text for name in SETTINGS)
    assert all(name in text for name in REGISTRY)
    assert "0.001" in text


def test_an_engineer_reads_which_of_eight_uneven_stages_to_shrink(capsys):
    command = ["run", "--schedule", "1f1b", "--devices", "8", "--micro-batches", "32"]
    command += ["--stage-times", "1 1 1 1.1 1 1.6 1 1.2"]
    assert main(command) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Critical path: stage 6: " in said and "making stage 6 10% faster would shorten the whole by" in said
    assert main([*command, "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["what_if"]["stage"] == 5 == max(range(8), key=answer["critical_path"]["stages"].__getitem__)
    idle = sum(answer["metrics"]["makespan"] - busy for busy in answer["metrics"]["busy"])
    assert sum(answer["bubble"].values()) == pytest.approx(idle)


def test_measured_times_are_held_against_the_prediction(capsys, tmp_path):
    """0F1 is ready at 1 and starts at 1.5: half a unit that the model does not know, and half one that it makes."""
    file = tmp_path / "measured.csv"
    file.write_text("device,op,start,end\n0,0F0,0,1\n0,0F1,1.5,2.5\n1,1F0,1,2\n1,1F1,2.5,3.5\n")
    command = ["run", "--devices", "2", "--micro-batches", "2", "--measured", str(file)]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert re.search(r"not in the model +0.5 +0 +\+0.5\n", shown) and "Read: 4 operations on 2 devices." in shown
    assert main([*command, "--format", "json"]) == 0
    sums = json.loads(capsys.readouterr().out)["measured"]["causes"]
    assert sums["all"] == {"measured": 3, "predicted": 2, "difference": 1}
    assert main(["run", "--measured", str(file), "--adopt", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenario"]["forward_times"] == "1,1"
    assert main([*command[:-1], str(tmp_path)]) == 2
    assert "--measured: cannot read" in capsys.readouterr().err
