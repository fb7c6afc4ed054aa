"""Sweeps: the numbers of single runs, whoever computes them, resumed where they stopped, and read back the same."""

import io
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from pipesched import DeadlockError, Scenario, ScenarioError, run
from pipesched.cli import main
from pipesched.cli_sweep import values_of
from pipesched.grid import Grid
from pipesched.metrics import Metrics
from pipesched.schedules import REGISTRY
from pipesched.sweep import sweep

ROOT = Path(__file__).resolve().parents[1]
NAMES = [name for name in Metrics.__dataclass_fields__ if name != "bottleneck_stage"]
NAMED = sorted(set(REGISTRY) - {"order"})

axes = st.fixed_dictionaries(
    {
        "schedule": st.lists(st.sampled_from(NAMED), min_size=1, max_size=3, unique=True),
        "devices": st.lists(st.integers(1, 5), min_size=1, max_size=2, unique=True),
        "comm": st.lists(st.sampled_from([0, "0.5", "1/3"]), min_size=1, max_size=2, unique=True),
    },
    optional={"micro_batches": st.lists(st.integers(1, 6), min_size=1, max_size=2, unique=True)},
)
grids = st.builds(
    lambda chosen, slow, names: sweep(chosen, slow_factor=slow, slow_stage=2, metrics=names, jobs=1),
    axes,
    st.sampled_from([1, "1.5"]),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True),
)


@pytest.fixture(scope="module")
def small():
    return sweep({"schedule": ["gpipe", "dualpipe"], "devices": [2, 3, 4], "comm": [0, "1/3"]}, jobs=1, micro_batches=8)


@effort(max_examples=30)
@given(grids)
def test_a_grid_holds_the_numbers_of_single_runs(grid):
    for row in grid.table():
        chosen = Scenario(**{name: row[name] for name in grid.axes}, **grid.settings)
        try:
            single = run(chosen).metrics
        except (ScenarioError, DeadlockError) as error:
            assert row["refused"] == str(error.message)
            assert all(row[name] is None for name in grid.values)
            continue
        assert row["refused"] == ""
        for name in grid.values:
            value = getattr(single, name)
            assert row[name] == (max(value) if isinstance(value, tuple) else value)
            assert grid.at(**{axis: row[axis] for axis in grid.axes})[name] == row[name]


@effort(max_examples=30)
@given(grids)
def test_every_form_reads_back_as_the_same_grid(grid):
    for again in (
        Grid.from_csv(grid.to_csv()),
        Grid.from_json(grid.to_json()),
        Grid.from_npz(grid.to_npz()),
    ):
        assert again == grid


def test_gpipe_s_bubble_is_the_closed_form_over_the_whole_grid():
    """GPipe s2.3: (K-1)/(M+K-1), with equal stages."""
    devices, micro_batches = [1, 2, 4, 8], [1, 3, 8, 32]
    axes = {"devices": devices, "micro_batches": micro_batches}
    grid = sweep(axes, schedule="gpipe", metrics=["bubble_fraction_of_total"], jobs=1)
    k, m = np.array(devices)[:, None], np.array(micro_batches)[None, :]
    assert grid.metrics["bubble_fraction_of_total"] == pytest.approx((k - 1) / (m + k - 1))


def test_what_a_schedule_refuses_is_nan_with_its_reason(small):
    assert small.shape == (2, 3, 2)
    assert np.argwhere(np.isnan(small.metrics["makespan"])).tolist() == [[1, 1, 0], [1, 1, 1]]
    assert set(small.refused) == {(1, 1, 0), (1, 1, 1)}
    assert "even number of devices, not 3" in small.refused[1, 1, 0]
    assert not small.metrics["makespan"].flags.writeable


def test_a_grid_shows_itself_in_a_line(small):
    assert repr(small).startswith("Grid(schedule: 2 × devices: 3 × comm: 2; makespan, ")


def axes_of(grid):
    return {name: list(values) for name, values in grid.axes.items()}


@pytest.mark.parametrize("jobs", [2])
def test_processes_compute_the_same(small, jobs):
    told = []
    assert sweep(axes_of(small), micro_batches=8, jobs=jobs, progress=lambda *now: told.append(now)) == small
    assert told[0] == (0, 12) and told[-1] == (12, 12) and told == sorted(told)


def test_any_executor_will_do_and_stays_open(small):
    with ThreadPoolExecutor(2) as executor:
        assert sweep(axes_of(small), micro_batches=8, executor=executor) == small
        assert executor.submit(int, "7").result() == 7


def test_a_dask_cluster_computes_the_same(small):
    """In a process of its own: the cluster's threads and warnings are not this suite's."""
    program = (
        "from distributed import Client\n"
        "from pipesched.grid import Grid\n"
        "from pipesched.sweep import sweep\n"
        "import sys\n"
        "small = Grid.from_json(sys.stdin.read())\n"
        "with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:\n"
        "    grid = sweep(small.axes, executor=client.get_executor(), **small.settings)\n"
        "assert grid == small, grid\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], input=small.to_json(), capture_output=True, text=True, cwd=ROOT / "app"
    )
    assert answer.returncode == 0, answer.stderr


class Stopped(Exception):
    pass


@pytest.mark.parametrize("spoiled", ["", '{"5": [1', '{"5": [1, 2]}'])
def test_an_interrupted_sweep_computes_only_what_is_missing(small, tmp_path, monkeypatch, spoiled):
    file = tmp_path / "grid.partial"

    def stop(done, _):
        if done >= 5:
            raise Stopped

    with pytest.raises(Stopped):
        sweep(axes_of(small), micro_batches=8, jobs=1, file=file, progress=stop)
    file.write_text(file.read_text() + spoiled)  # a last line that was not written to its end
    kept = sum(len(json.loads(line)) for line in file.read_text().splitlines()[1 : None if not spoiled else -1])
    assert 5 <= kept < 12
    asked = []
    monkeypatch.setattr("pipesched.sweep.run", lambda scenario: asked.append(scenario) or run(scenario))
    assert sweep(axes_of(small), micro_batches=8, jobs=1, file=file) == small
    assert len(asked) == 12 - kept
    asked.clear()
    assert sweep(axes_of(small), micro_batches=8, jobs=1, file=file) == small
    assert asked == []


@pytest.mark.parametrize(
    "other",
    [
        {"micro_batches": 9},
        {"metrics": ["makespan"]},
        {"axes": {"devices": [2]}},
        {"version": "0.0.1"},
        {"text": "7,8\n"},
    ],
)
def test_a_file_of_another_grid_is_refused_and_left_as_it_is(small, tmp_path, monkeypatch, other):
    file = tmp_path / "grid.partial"
    sweep(axes_of(small), micro_batches=8, jobs=1, file=file)
    if "text" in other:
        file.write_text(other["text"])
    if "version" in other:
        monkeypatch.setattr("pipesched.__version__", other["version"])
    before = file.read_bytes()
    more = {"metrics": other["metrics"]} if "metrics" in other else {}
    with pytest.raises(ScenarioError, match=r"another sweep|no grid"):
        sweep(other.get("axes", axes_of(small)), micro_batches=other.get("micro_batches", 8), jobs=1, file=file, **more)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"axes": {"devises": [1]}}, "devises"),
        ({"axes": {"devices": [1]}, "stages": 3}, "stages"),
        ({"axes": {"devices": [0]}}, "devices"),
        ({"axes": {"devices": []}}, "devices"),
        ({"axes": {"comm": ["0.5", "1/2"]}}, "comm"),
        ({"axes": {"schedule": ["gpipe", "zigzag"]}}, "schedule"),
        ({"axes": {"devices": [1]}, "metrics": ["bubble"]}, "metrics"),
        ({"axes": {"forward": range(1, 1002), "comm": range(1000)}}, "forward"),
    ],
)
def test_what_can_never_be_run_is_an_error_that_names_the_field(asked, field):
    with pytest.raises(ScenarioError) as caught:
        sweep(jobs=1, **asked)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("read", "content"),
    [
        (Grid.from_csv, "devices,makespan\n2,3\n"),
        (Grid.from_csv, "devices,comm,makespan,refused\n2,0,3,\n2,1,3,\n3,0,3,\n"),
        (Grid.from_csv, ""),
        (Grid.from_json, "{}"),
        (Grid.from_json, "[1"),
        (Grid.from_npz, b"PK"),
        (Grid.from_npz, b""),
    ],
)
def test_what_is_no_grid_is_refused(read, content):
    with pytest.raises(ScenarioError, match="no grid"):
        read(content)


def test_values_are_ranges_with_both_ends_lists_and_lists_of_lists():
    assert values_of("devices", "2:16:2") == [2, 4, 6, 8, 10, 12, 14, 16]
    assert values_of("devices", "16:2:-7") == [16, 9, 2]
    assert values_of("devices", "1,2,4:6") == ["1", "2", 4, 5, 6]
    assert values_of("comm", "0:0.3:0.1") == [0, "0.1", "0.2", "0.3"]
    assert values_of("forward_times", "1,2|1;1,5") == ["1,2", "1;1,5"]
    assert values_of("order", '["0F0 0F1", "0F1 0F0"]') == ["0F0 0F1", "0F1 0F0"]


@pytest.fixture
def shell(monkeypatch, capsys):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")

    def call(*words):
        status = main(["sweep", *words])
        return status, *capsys.readouterr()

    return call


def test_the_command_writes_what_the_ending_says(shell, tmp_path, small):
    words = [
        "--schedule",
        "gpipe,dualpipe",
        "--devices",
        "2:4",
        "--comm",
        "0,1/3",
        "--micro-batches",
        "8",
        "--jobs",
        "1",
    ]
    status, out, err = shell(*words)
    assert (status, err) == (0, "12 of 12 combinations\n")
    assert Grid.from_csv(out) == small
    for ending in ("csv", "json", "npz"):
        path = tmp_path / f"grid.{ending}"
        assert shell(*words, "--out", str(path))[:2] == (0, "")
        assert Grid.load(path) == small
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grid.csv", "grid.json", "grid.npz"]
    with np.load(io.BytesIO((tmp_path / "grid.npz").read_bytes())) as arrays:
        assert arrays["makespan"].shape == (2, 3, 2)
        assert arrays["axis_devices"].tolist() == [2, 3, 4]


def test_the_command_goes_on_where_it_was_interrupted(shell, tmp_path, monkeypatch):
    words = ["--devices", "2:8", "--metrics", "makespan", "--jobs", "1", "--out", str(tmp_path / "grid.csv")]
    count = []

    def interrupted(scenario):
        count.append(scenario)
        if len(count) == 4:
            raise KeyboardInterrupt
        return run(scenario)

    monkeypatch.setattr("pipesched.sweep.run", interrupted)
    status, _, err = shell(*words)
    assert status == 130 and "--resume" in err and "grid.csv.partial" in err
    assert not (tmp_path / "grid.csv").exists()
    status, _, err = shell(*words)
    assert status == 2 and "--out" in err and "--resume goes on" in err  # nothing computed is lost by a slip
    status, _, err = shell(*words, "--comm", "1", "--resume")
    assert status == 2 and err.startswith("pipesched: --resume: ") and "another sweep" in err
    assert shell(*words, "--resume")[0] == 0
    assert len(count) == 4 + 4
    assert Grid.load(tmp_path / "grid.csv").at(devices=8) == {"makespan": 11}  # M + K - 1


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("", ["--devices", "2:16:2"]),
        ("--devices 4", ["2:16:2"]),
        ("--devices 2:65", ["--devices", "64", "65"]),
        ("--devices 2:4:0", ["--devices", "2:4:0"]),
        ("--devices 4:2", ["--devices", "4:2"]),
        ("--devices 2:4:1:1", ["--devices", "2:4:1:1"]),
        ("--comm 0:1e6:0.001", ["--comm", "100\u202f000"]),
        ("--devices 2,2", ["--devices", "2"]),
        ("--devices [2", ["--devices", "[2"]),
        ("--devices 2:4 --jobs many", ["--jobs", "many"]),
        ("--devices 2:4 --metrics bubble", ["--metrics", "bubble", "makespan"]),
        ("--devices 2:4 --out grid.xls", ["--out", ".xls", ".csv", ".npz"]),
        ("--devices 2:4 --resume", ["--resume", "--out"]),
        ("--devices 2:4 --out /nowhere/at/all.csv", ["--out", "/nowhere/at/all.csv"]),
    ],
)
def test_a_bad_option_of_a_sweep_is_one_line_that_names_it(shell, words, parts):
    status, out, err = shell(*words.split())
    assert status == 2 and out == "" and all(part in err for part in parts)
    assert err.count("\n") == 1


def test_a_grid_needs_no_numpy_until_arrays_are_asked_for(tmp_path):
    program = (
        "import sys\n"
        "sys.modules['numpy'] = None\n"
        "from pipesched.cli import main\n"
        "assert main(['sweep', '--devices', '2:4', '--jobs', '1', '--out', sys.argv[1] + '/grid.json']) == 0\n"
        "assert main(['sweep', '--devices', '2:4', '--jobs', '1', '--out', sys.argv[1] + '/grid.npz']) == 2\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    answer = subprocess.run(command, cwd=ROOT / "app", capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert "--out: .npz files need NumPy" in answer.stderr
