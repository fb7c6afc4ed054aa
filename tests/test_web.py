"""The door of the page: JSON text in, JSON text out."""

import json
from dataclasses import replace

import pytest
from hypothesis import given

from pipesched import Scenario, run
from pipesched.metrics import Metrics
from pipesched.web import handle
from pipesched.words import LANGUAGES
from scenarios import scenarios


def ask(do="run", settings=None, lang="en", **more):
    request = {"do": do, "settings": settings or {}, "lang": lang, "theme": "light", "width": 720, **more}
    return json.loads(handle(json.dumps(request)))


def test_the_first_view_shows_6_and_12_and_3():
    numbers = {row["name"]: (row["value"], row["text"]) for row in ask()["numbers"]}
    assert numbers["makespan"] == (6, "6")
    assert numbers["sequential_makespan"] == (12, "12")
    assert numbers["first_output"] == (3, "3")
    assert numbers["speedup"] == (2, "2")
    assert numbers["bubble_fraction_of_total"] == (1 / 3, "≈\u202f33.3%")


@given(scenarios())
def test_every_metric_is_answered_with_its_value(scenario):
    answer, metrics = ask(settings=scenario.changed()), run(scenario).metrics
    one = {row["name"]: row["value"] for row in answer["numbers"]}
    for name in Metrics.__dataclass_fields__:
        value = getattr(metrics, name)
        if isinstance(value, tuple):
            rows = answer["stages" if name == "peak_queue" else "devices"]
            assert [row[name]["value"] for row in rows] == list(value)
        else:
            assert one[name] == value
    assert answer["problems"] == []
    assert Scenario(**answer["settings"]) == Scenario(**answer["changed"]) == scenario


@given(scenarios())
def test_no_answer_is_left_with_a_placeholder(scenario):
    for lang in LANGUAGES:
        for do in ("run", "moment", "explain", "table"):
            answer = ask(do, scenario.changed(), lang, device=0, time=1, limit=9)
            assert "{" not in "".join(texts(answer))


def texts(answer):
    if isinstance(answer, dict):
        answer = list(answer.values())
    if isinstance(answer, list):
        for part in answer:
            yield from texts(part)
    elif isinstance(answer, str):
        yield answer


def test_the_formula_is_said_where_it_holds():
    formula = ask()["formula"]
    assert formula["textbook"] == "M + K − 1 = 4 + 3 − 1 = 6 steps instead of K · M = 3 · 4 = 12"
    assert formula["why"] == []
    assert formula["text"] == "Exact for these settings: makespan = (M + K − 1) · f = (4 + 3 − 1) · 1 = 6"


def test_where_the_formula_does_not_hold_it_is_said_why_and_what_holds():
    formula = ask(settings={"slow_factor": "2"})["formula"]
    assert not formula["textbook"]
    assert len(formula["why"]) == 1
    assert "stage 2" in formula["why"][0]
    assert formula["text"].endswith("4 + (4 − 1) · 2 = 10")


@pytest.mark.parametrize(("lang", "label"), [("en", "Stages K"), ("pl", "Etapy K")])
def test_a_bad_field_runs_on_its_default_and_is_reported_in_the_language_asked(lang, label):
    answer = ask(settings={"devices": "99", "micro_batches": "8"}, lang=lang)
    assert answer["settings"]["devices"] == 3
    assert answer["settings"]["micro_batches"] == 8
    (problem,) = answer["problems"]
    assert problem["field"] == "devices"
    assert problem["text"].startswith(label)
    assert "99" in problem["text"]


def test_a_problem_offers_repairs_that_work():
    settings = {"devices": "3", "stage_times": "1;2"}
    (problem,) = ask(settings=settings)["problems"]
    assert len(problem["repairs"]) == 2
    for repair in problem["repairs"]:
        assert repair["text"]
        assert ask(settings=settings | repair["settings"])["problems"] == []


@given(scenarios())
def test_every_block_is_found_again_by_the_times_that_are_drawn(scenario):
    """Times leave as the nearest float; read back, they must mean the block they came from."""
    settings = scenario.changed()
    for interval in run(scenario).timeline.intervals:
        if interval.end > interval.start:
            answer = ask("explain", settings, device=interval.device, time=interval.start)
            assert (answer["op"], answer["start"], answer["end"]) == (str(interval.op), interval.start, interval.end)


@pytest.mark.parametrize(
    "forward", ["0.1", "0.7", "1/3", "0.12345678", "999999.999999", "1.23456789012345678", "0.12345678901234567890123"]
)
def test_decimals_of_any_length_find_the_right_block(forward):
    settings = {"forward": forward, "micro_batches": 9}
    for interval in run(**settings).timeline.intervals:
        assert ask("explain", settings, device=interval.device, time=interval.start)["op"] == str(interval.op)
        state = ask("moment", settings, time=interval.start)["devices"][interval.device]
        assert (state["state"], state["op"]) == ("works", str(interval.op))


def test_a_gap_is_explained():
    answer = ask("explain", device=2, time=0.5)
    assert (answer["op"], answer["start"], answer["end"]) == (None, 0, 2)
    assert "Device 3 waits from 0 to 2" in answer["text"]
    answer = ask("explain", device=0, time=5)
    assert (answer["start"], answer["end"]) == (4, 6)
    assert answer["text"] == "Device 1 is done at 4; the others work until 6."


@given(scenarios())
def test_any_point_of_the_chart_can_be_asked_about(scenario):
    result = run(scenario)
    end = result.metrics.makespan
    for device in range(scenario.devices):
        for time in (-1, 0, end / 3, end, end + 1):
            answer = ask("explain", scenario.changed(), device=device, time=time)
            assert answer["text"]
            inside = max(0, min(time, end))
            assert answer["start"] - 1e-9 <= inside <= answer["end"] + 1e-9


@pytest.mark.parametrize("forward", ["1", "0.1", "1.37125948163507281949"])
def test_stepping_ahead_and_back_meets_every_event_once(forward):
    settings = {"schedule": "1f1b", "forward": forward, "comm": "0.3"}
    events = sorted({time for i in run(**settings).timeline.intervals for time in (i.start, i.end)})
    ahead = [0]
    while ahead[-1] < events[-1] and len(ahead) <= len(events):
        ahead.append(ask("moment", settings, time=ahead[-1])["next"])
    assert ahead == events
    back = [events[-1]]
    while back[-1] > 0 and len(back) <= len(events):
        back.append(ask("moment", settings, time=back[-1])["previous"])
    assert back == events[::-1]


def test_the_queue_grows_before_the_slow_stage():
    """Stage 1 sends at 1, 2, 3, 4; the slow stage 2 starts at 1, 3, 5, 7: from 4 to 5 micro-batches 3 and 4 stand."""
    lengths = {
        time: [len(stage["forward"]) for stage in ask("moment", {"slow_factor": 2}, time=time)["queues"]]
        for time in (0, 2, 4, 5, 7)
    }
    assert lengths == {0: [3, 0, 0], 2: [1, 1, 0], 4: [0, 2, 0], 5: [0, 1, 0], 7: [0, 0, 0]}
    assert ask("moment", {"slow_factor": 2}, time=4)["queues"][1]["forward"] == [2, 3]


def test_the_table_lists_operations_up_to_its_limit_and_says_what_it_leaves_out():
    answer = ask("table", limit=100)
    assert not answer["cut"]
    assert len(answer["rows"]) == 12
    assert answer["rows"][4] == ["Device 2", "1F0", "forward of micro-batch 1 on stage 2", "1", "2", "0F0"]
    answer = ask("table", limit=5)
    assert len(answer["rows"]) == 5
    assert "5" in answer["cut"]
    assert "12" in answer["cut"]


def test_settings_a_schedule_does_not_use_are_named():
    assert set(ask()["unused"]) == {"input_grad", "weight_grad", "chunks"}
    assert set(ask(settings={"schedule": "gpipe"})["unused"]) == {"chunks"}


@given(scenarios())
def test_settings_said_to_be_unused_change_nothing(scenario):
    for field in ask(settings=scenario.changed())["unused"]:
        if field != "chunks":
            assert run(replace(scenario, **{field: 7})).metrics == run(scenario).metrics
