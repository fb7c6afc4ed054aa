"""Files to take away, each read by a reader that is not ours where there is one."""

import csv
import io
import json
from base64 import b64decode, b64encode
from pathlib import Path

import jsonschema
import pypdf
import pytest
from hypothesis import given

import pipesched
from pipesched import ScenarioError, run
from pipesched.cli import main
from pipesched.formats import FORMATS, load, to_json, to_python, to_trace
from pipesched.measuring import against, per_cause
from pipesched.notation import parse
from pipesched.web import handle
from scenarios import TRAINED, example, scenarios

SCHEMA = json.loads((Path(pipesched.__file__).parent / "result.schema.json").read_text(encoding="utf-8"))


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@given(scenarios())
def test_json_keeps_its_schema_and_reads_back_as_the_same_result(scenario):
    result = run(scenario)
    written = json.loads(to_json(result))
    jsonschema.validate(written, SCHEMA, jsonschema.Draft202012Validator)
    again = load(json.dumps(written))
    assert again.scenario == scenario and again.metrics == result.metrics
    assert written["intervals"] == json.loads(to_json(again))["intervals"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "neither JSON"),
        ("[1]", "None None"),
        ('{"format": "pipesched.result", "version": 2, "scenario": {}}', "pipesched.result 2"),
        ('{"format": "pipesched.result", "version": 1}', "pipesched.result 1"),
        ('{"format": "pipesched.result", "version": 1, "scenario": {"stages": 3}}', "stages"),
        ('{"format": "pipesched.result", "version": 1, "scenario": {"devices": 99}}', "99"),
    ],
)
def test_what_is_no_result_is_refused_with_the_reason(text, said):
    with pytest.raises(ScenarioError, match=said):
        load(text)


@given(scenarios())
def test_the_python_that_is_copied_makes_the_same_result(scenario):
    names = {}
    printed = []
    exec(to_python(run(scenario)), {"print": printed.append}, names)
    assert names["result"].scenario == scenario
    assert printed == [run(scenario).metrics.makespan]


def test_csv_is_read_by_csv():
    result = run(schedule="dualpipe", devices=4, micro_batches=8)
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"].write(result, "en"))))
    assert [(row["op"], float(row["end"])) for row in rows] == [(str(i.op), i.end) for i in result.timeline.intervals]


@pytest.mark.parametrize("name", ["order", "order-csv"])
@pytest.mark.parametrize("schedule", TRAINED)
def test_orders_read_back_as_the_same_schedule(schedule, name):
    result = run(example(schedule, 4, 8))
    assert parse(FORMATS[name].write(result, "en")).schedule.rows == result.timeline.schedule.rows


@pytest.mark.parametrize("schedule", [*TRAINED, "forward"])
def test_a_trace_that_is_read_back_as_measured_is_what_was_predicted(schedule):
    result = run(example(schedule, 4, 8, comm="0.5"))
    _, found = against(result, to_trace(result), "1000")
    assert not found.skews
    assert all(abs(cause.difference) < 1e-9 for cause in per_cause(result, found))


@pytest.mark.parametrize("name", FORMATS)
def test_the_page_gets_every_file_with_its_name_and_type(name):
    asked = {"do": "export", "settings": {"schedule": "gpipe"}, "lang": "pl", "as": name}
    answer = json.loads(handle(json.dumps(asked)))
    result = run(schedule="gpipe")
    written = FORMATS[name].write(result, "pl")
    assert answer["text"] == (written if isinstance(written, str) else b64encode(written).decode())
    assert answer["note"] == ""
    assert answer["name"].startswith("pipesched-gpipe-3x4.") and "/" in answer["type"]


def test_of_a_deadlock_only_the_order_can_be_taken():
    order = "0F0 0B0\n1B0 1F0"
    for name, form in FORMATS.items():
        asked = {"do": "export", "settings": {"schedule": "order", "order": order}, "lang": "en", "as": name}
        answer = json.loads(handle(json.dumps(asked)))
        assert bool(answer["text"]) is not form.tells_the_end
        assert ("for ever" in answer["note"]) is form.tells_the_end


def test_a_long_file_is_said_to_be_one():
    asked = {"do": "export", "settings": {"micro_batches": 1000, "devices": 8}, "lang": "en", "as": "csv"}
    assert "save the file" in json.loads(handle(json.dumps(asked)))["note"]


def test_the_page_s_picture_is_a_pdf_too():
    how = {"width": 720, "theme": "light", "transparent": False}
    asked = {"do": "picture", "settings": {"schedule": "gpipe"}, "lang": "pl", "as": "pdf", **how}
    answer = json.loads(handle(json.dumps(asked)))
    (page,) = pypdf.PdfReader(io.BytesIO(b64decode(answer["file"])), strict=True).pages
    assert "Urządzenie 1" in page.extract_text()


def test_the_command_line_writes_a_pdf(tmp_path):
    assert main(["run", "--format", "pdf", "--out", str(tmp_path / "a.pdf")]) == 0
    assert len(pypdf.PdfReader(tmp_path / "a.pdf").pages) == 1
