"""What notebooks show: results, orders and grids, and a tutorial that runs from its first cell to its last."""

import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import settings as effort
from nbclient import NotebookClient

import pipesched
from pipesched import Op, Schedule, run
from pipesched.run import read
from pipesched.show import ROWS, table
from pipesched.sweep import sweep
from pipesched.words import catalogue
from scenarios import scenarios

ROOT = Path(__file__).resolve().parents[1]
TUTORIAL = ROOT / "static" / "tutorial.ipynb"


@pytest.fixture(autouse=True)
def english_shell(monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


class Balanced(HTMLParser):
    """Fails where a tag is closed that is not the open one."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@effort(max_examples=25)
@given(scenarios())
def test_a_result_shows_its_chart_and_its_numbers_and_is_one_line_as_text(scenario):
    result = run(scenario)
    shown = result._repr_html_()
    Balanced(shown)
    assert result.svg().strip() in shown and "<script" not in shown
    assert catalogue("en")["metric.makespan"] in shown
    for line in (repr(result), repr(result.timeline), repr(result.timeline.schedule)):
        assert "\n" not in line and len(line) < 2000
    Balanced(result.timeline.schedule._repr_html_())


def test_the_line_of_a_result_says_what_and_how_long():
    assert repr(run(schedule="gpipe", devices=4)) == (
        "<Result of schedule='gpipe', devices=4: makespan 21, bubble ≈ 42.9% of device time>"  # 3/7
    )
    assert repr(run(schedule="1f1b", devices=2).timeline.schedule) == "<Schedule of K=2, S=2, M=4: 16 blocks>"


def test_a_deadlock_shows_itself_too():
    result, _ = read({"schedule": "order", "order": "0F0 0B0\n1B0 1F0"})
    assert repr(result).endswith("deadlock>") and "Deadlock" in result._repr_html_()
    assert "Deadlock" in result.timeline.schedule._repr_html_()


@pytest.mark.parametrize("schedule", [Schedule(()), Schedule(((),)), Schedule(((Op(0, "F", 0),), ()))])
def test_orders_of_nothing_show_themselves(schedule):
    Balanced(schedule._repr_html_())


def test_an_order_of_very_many_operations_is_not_drawn():
    schedule = run(schedule="gpipe", devices=16, micro_batches=1024).timeline.schedule
    shown = schedule._repr_html_()
    assert "<svg" not in shown and len(shown) < 10_000


def test_a_grid_shows_its_table_and_of_a_long_one_the_beginning():
    grid = sweep({"devices": [2, 3]}, schedule="dualpipe", metrics=["makespan"], jobs=1)
    Balanced(grid._repr_html_())
    assert "even number of devices" in grid._repr_html_()
    assert table([("<&>",)] * 1000).count("<tr>") == ROWS + 1


def test_polish_notebooks_are_polish(monkeypatch):
    monkeypatch.setenv("LC_ALL", "pl_PL.UTF-8")
    assert catalogue("pl")["metric.makespan"] in run()._repr_html_()


def test_the_tutorial_is_valid_and_carries_no_outputs():
    notebook = nbformat.read(TUTORIAL, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) >= 8
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


def test_the_tutorial_runs_and_shows_what_it_says(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "app"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(TUTORIAL, as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    shown = [output.data for output in outputs if output.output_type in ("execute_result", "display_data")]
    printed = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")
    first = next(data for data in shown if "text/html" in data)
    expected = run(schedule="1f1b", devices=4, micro_batches=8)
    assert first["image/svg+xml"].strip() == expected.svg().strip()
    assert expected.svg().strip() in first["text/html"]
    assert first["text/plain"] == repr(expected)
    assert f"(33, {3 / 11}, {3 / 11})" in [data["text/plain"] for data in shown]
    assert "True\n" in printed and "needs an even number of devices" in printed
    assert re.search(r"time with overlap +6\n", printed) is None and "time with overlap" in printed
    assert any("array" in data["text/plain"] for data in shown)


def test_the_tutorial_names_the_wheel_that_a_build_carries():
    text = TUTORIAL.read_text(encoding="utf-8")
    assert "static/pipesched-VERSION-py3-none-any.whl" in text and pipesched.__version__ not in text
