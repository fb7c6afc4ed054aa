"""What the page is told of gaps and of the critical path."""

import json

import pytest
from hypothesis import given

from pipesched import run
from pipesched.web import handle
from pipesched.words import LANGUAGES
from scenarios import scenarios


def ask(do, lang="en", **settings):
    details = {"time": settings.pop("time", 0), "device": settings.pop("device", 0)}
    return json.loads(handle(json.dumps({"do": do, "settings": settings, "lang": lang, **details})))


@given(scenarios())
def test_the_page_s_shares_add_up_to_the_whole_bubble(scenario):
    metrics, sorts = run(scenario).metrics, ask("why", **scenario.changed())["sorts"]
    idle = len(metrics.busy) * metrics.makespan - sum(metrics.busy)
    assert sum(sort["value"] for sort in sorts.values()) == pytest.approx(idle, abs=1e-9)
    assert sum(sort["share"] for sort in sorts.values()) == pytest.approx(1 if sorts else 0)
    assert all(sort["value"] > 0 for sort in sorts.values())


@given(scenarios())
def test_every_point_of_the_chart_is_answered_with_a_cause_or_a_slack(scenario):
    result = run(scenario)
    time = result.timeline.costs.time
    for device in range(result.timeline.schedule.devices):
        for gap in list(result.timeline.gaps(device))[:4]:
            for lang in LANGUAGES:
                spot = ask("explain", lang, device=device, time=time(gap.start), **scenario.changed())
                assert spot["more"] and "{" not in " ".join(spot["more"])
                assert "slack" in spot or spot["sort"] in result.bubble


def test_a_device_is_asked_why_it_waits():
    spot = ask("explain", time=0, device=2)
    assert spot["sort"] == "fill"
    assert spot["chain"] == [[1, 1, 2], [0, 0, 1]]
    assert spot["more"] == [
        "Cause: fill.",
        "Nothing else in its row could have run here: no other operation had its values.",
    ]


def test_a_gap_of_several_causes_lists_them():
    spot = ask("explain", schedule="1f1b", devices=2, micro_batches=1, comm=3, time=2)
    assert spot["more"][0] == "Causes: latency 6; drain 3."


def test_without_a_bubble_it_is_said_that_there_is_none():
    assert ask("why", devices=1)["said"] == "No device is ever idle."


@pytest.mark.parametrize(
    "settings",
    [
        {"schedule": "1f1b", "devices": 32, "micro_batches": 1024},
        {"schedule": "sequential", "devices": 64, "micro_batches": 100, "comm": 1},  # few, but chains are long
    ],
)
def test_what_would_take_long_is_left_out_with_a_sentence(settings):
    assert "50\u202f000 operations" in ask("why", **settings)["said"]
    assert ask("why", **settings)["sorts"] == {}
    assert ask("path", **settings)["spans"] == []
    assert ask("what_if", **settings)["text"] == ""
    assert "more" not in ask("explain", **settings)


def test_of_a_deadlock_nothing_is_said_but_what_it_waits_for():
    settings = {"schedule": "order", "order": "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"}
    assert ask("why", **settings) == {"sorts": {}, "said": "", "turn": None, "problems": []}
    assert ask("path", **settings)["spans"] == []
    assert "more" not in ask("explain", time=3, **settings)


def test_an_engineer_with_eight_stage_times_reads_which_stage_to_shrink():
    text = ask("what_if", schedule="1f1b", devices=8, micro_batches=32, stage_times="1 1 1 1.1 1 1.6 1 1.2")["text"]
    assert "stage 6 10% faster" in text


def test_where_the_bottleneck_moves_is_marked_even_where_causes_are_left_out():
    answer = ask("why", schedule="1f1b", devices=4, micro_batches=8, slow_factor="3/2", stage_times="1 1 2.5 1")
    assert answer["turn"] == {"value": 2.5, "text": "Above 2.5, stage 2 is the bottleneck."}
    assert ask("why", devices=64, micro_batches=1024)["turn"]["value"] == 1
