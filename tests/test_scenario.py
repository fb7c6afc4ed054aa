"""Settings: what is accepted, what is refused, and that nothing is changed silently."""

import os
import subprocess
import sys
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipesched
from pipesched import Scenario, ScenarioError, run
from pipesched.run import read
from pipesched.scenario import DEFAULTS, SETTINGS
from pipesched.schedules import REGISTRY
from pipesched.words import LANGUAGES, sentence
from scenarios import scenarios

NUMBERS = [name for name, setting in SETTINGS.items() if setting.kind in ("whole", "number")]
OPTIONAL = [name for name, setting in SETTINGS.items() if setting.optional]
CHOICES = [name for name, setting in SETTINGS.items() if setting.kind == "choice"]
HOSTILE = [
    "1e999999999",
    "1e-999999999",
    "9" * 100_000,
    "0." + "3" * 100_000,
    "1/" + "3" * 100_000,
    "nan",
    "inf",
    "-inf",
    "1/0",
    "0x10",
    "--1",
    "1 2",
    "many",
    float("nan"),
    float("inf"),
    1e300,
    10**5000,
]


def refusal(**settings):
    """Return the error that the settings meet, at once or when they are run."""
    with pytest.raises(ScenarioError) as caught:
        run(Scenario(**settings))
    return caught.value


def test_the_first_view_is_three_devices_and_four_micro_batches_forward_only():
    assert (Scenario().schedule, Scenario().devices, Scenario().micro_batches) == ("forward", 3, 4)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,5", Fraction(3, 2)),
        ("1.5", Fraction(3, 2)),
        (" 3/2 ", Fraction(3, 2)),
        ("1/3", Fraction(1, 3)),
        ("2e2", 200),
        ("5.0", 5),
        (0.1, Fraction(1, 10)),
        (18.522, Fraction(18522, 1000)),
        (1e-3, Fraction(1, 1000)),
        (Fraction(2, 7), Fraction(2, 7)),
    ],
)
def test_a_number_is_the_decimal_or_quotient_it_is_written_as(text, value):
    read_back = Scenario(forward=text).forward
    assert read_back == value
    assert isinstance(read_back, int) == (value == int(value))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2.5,1", [1, "2.5", 1]),
        ("1, 2.5, 1", [1, "2.5", 1]),
        ("1;2,5;1", [1, "2.5", 1]),
        ("1; 2,5; 1", [1, "2.5", 1]),
        ("1,0 2,5 1,0", [1, "2.5", 1]),
        ("1\t2.5\t1", [1, "2.5", 1]),
        ("1\n2.5\n1\n", [1, "2.5", 1]),
        ("1 ,2 , 3", [1, 2, 3]),
        ((1, 2.5, "1"), [1, "2.5", 1]),
        ([1, "5/2", 1], [1, "2.5", 1]),
    ],
)
def test_a_list_is_read_with_any_usual_separator(text, values):
    assert Scenario(devices=3, stage_times=text).stage_times == tuple(map(Fraction, values))


@pytest.mark.parametrize("name", NUMBERS)
def test_limits_are_inclusive_and_nothing_is_clamped(name):
    setting = SETTINGS[name]
    assert getattr(Scenario(**{name: setting.low}), name) == setting.low
    assert getattr(Scenario(**{name: setting.high}), name) == setting.high
    beyond = Fraction(1, 10**6) if setting.kind == "number" else 1
    for value in (setting.low - beyond, setting.high + beyond):
        error = refusal(**{name: value})
        assert error.field == name
        assert (error.message.params["low"], error.message.params["high"]) == (setting.low, setting.high)


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_blank_optional_field_is_an_empty_one(name):
    assert getattr(Scenario(**{name: " "}), name) is None


def test_devices_go_to_64_and_micro_batches_to_1024():
    assert SETTINGS["devices"][1:3] == (1, 64)
    assert SETTINGS["micro_batches"][1:3] == (1, 1024)


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: str(value)[:20] if not isinstance(value, int) else "int")
@pytest.mark.parametrize("name", [*NUMBERS, "stage_times"])
def test_hostile_numbers_are_refused_at_once_and_briefly(name, value):
    error = refusal(**{name: [1, 1, value] if name == "stage_times" else value})
    assert error.field == name
    assert all(len(sentence(error.message, language)) < 300 for language in LANGUAGES)


@pytest.mark.parametrize("text", ["1e9_9_9_9_9_9_9_9_9", "1E+0_9_9_9_9_9_9_9_9_9", "0.1e-9_9_9_9_9_9_9_9_9"])
def test_no_spelling_of_a_huge_exponent_is_computed(text):
    """In a process of its own: such a power would never end."""
    program = "import sys; from pipesched import Scenario; Scenario(forward=sys.argv[1])"
    path = {"PYTHONPATH": str(Path(pipesched.__file__).parents[1])}
    answer = subprocess.run(
        [sys.executable, "-c", program, text], capture_output=True, text=True, timeout=20, env=os.environ | path
    )
    assert "ScenarioError" in answer.stderr


@pytest.mark.parametrize("name", [name for name in NUMBERS if SETTINGS[name].kind == "whole"])
def test_a_count_is_whole(name):
    assert refusal(**{name: "1.5"}).message.key == "error.whole"
    assert getattr(Scenario(**{name: 1.0}), name) == 1


@pytest.mark.parametrize("value", [None, "", [], object()])
def test_what_is_no_number_is_refused(value):
    assert refusal(devices=value).field == "devices"


@pytest.mark.parametrize("value", [5, 2.5, object()])
def test_what_is_no_list_is_refused(value):
    assert refusal(stage_times=value).field == "stage_times"


@pytest.mark.parametrize("value", [None, "", ()])
def test_an_optional_setting_may_be_left_out(value):
    scenario = Scenario(**dict.fromkeys(OPTIONAL, value))
    assert [getattr(scenario, name) for name in OPTIONAL] == [None] * len(OPTIONAL)


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_is_one_of_its_names(name):
    for option in SETTINGS[name].options:
        assert getattr(Scenario(**{name: option}), name) == option
    error = refusal(**{name: "perhaps"})
    assert error.field == name
    assert all(option in str(error) for option in (*SETTINGS[name].options, "perhaps"))


def test_an_order_keeps_its_lines_and_loses_the_blanks_around_them():
    assert Scenario(order=" 0F0 0F1 \r\n\t1F0 1F1\n\n").order == "0F0 0F1\n1F0 1F1"
    assert refusal(order="x" * 1_000_001).field == "order"


def test_the_slow_stage_is_the_middle_one_unless_named():
    """One of three, two, one: a person counts from 1, and of an even number the first half's last."""
    slow = Scenario(slow_factor=2)
    assert slow.factors(3) == (1, 2, 1)
    assert slow.factors(4) == (1, 2, 1, 1)
    assert slow.factors(1) == (2,)
    assert Scenario(slow_factor=2, slow_stage=3, stage_times="1;2;1.5").factors(3) == (1, 2, 3)


def test_a_slow_stage_that_is_not_there_is_refused_with_the_limits_that_hold():
    error = refusal(devices=3, slow_stage=4)
    assert (error.field, error.message.params["low"], error.message.params["high"]) == ("slow_stage", 1, 3)
    assert refusal(slow_stage=0).field == "slow_stage"
    assert Scenario(devices=3, slow_stage=3).slow_stage == 3
    error = refusal(schedule="looped_bfs", devices=3, chunks=4, slow_stage=13)
    assert error.message.params["high"] == 12


def test_durations_are_those_of_a_device_which_its_chunks_share_unless_said_to_be_of_a_stage():
    looped = {"schedule": "looped_bfs", "devices": 2, "chunks": 4, "micro_batches": 1, "forward": 2, "overlap": 2}
    of = {whose: run(**looped, times_of=whose).timeline.costs for whose in ("device", "stage")}
    assert [costs.time(costs.durations["F"][0]) for costs in of.values()] == [0.5, 2]
    assert [costs.time(costs.durations["B"][7]) for costs in of.values()] == [0.5, 2]
    assert [costs.time(costs.paired["F"][0]) for costs in of.values()] == [0.25, 1]
    measured = run(**looped, stage_times="1 2 3 4 5 6 7 8").timeline.costs
    assert measured.durations["F"] == tuple(2 * measured.ticks_per_unit * n for n in range(1, 9))


def test_late_recomputation_lengthens_every_backward_by_the_forward():
    costs = run(schedule="zb_h1", forward=3, input_grad=5, weight_grad=7, recompute="late").timeline.costs
    assert {kind: times[0] for kind, times in costs.durations.items() if kind in "FBIW"} == {
        "F": 3,
        "B": 15,
        "I": 8,
        "W": 7,
    }


def test_an_unknown_schedule_is_refused_with_those_there_are():
    with pytest.raises(ScenarioError) as caught:
        run(schedule="zigzag")
    assert all(name in str(caught.value) for name in ("zigzag", *REGISTRY))


@pytest.mark.parametrize(
    "settings",
    [
        {"devices": 3, "stage_times": "1,2"},
        {"devices": 3, "stage_times": "1,2,3,4"},
        {"devices": 64, "stage_times": "1"},
        {"devices": 2, "stage_times": ",".join(["1"] * 65)},
        {"devices": 3, "slow_stage": 9},
        {"devices": 2, "stage_times": "1/3, 0.001, 7"},
        {"schedule": "looped_bfs", "devices": 4, "chunks": 3, "stage_times": "1,2,3,4,5,6"},
        {"schedule": "looped_bfs", "devices": 4, "chunks": 3, "stage_times": "1"},
        {"schedule": "zb_v", "devices": 4, "stage_times": "1,2,3,4"},
        {"schedule": "zb_auto", "devices": 4, "stage_times": "1,2"},
        {"schedule": "order", "stage_times": "1"},
    ],
)
def test_every_repair_that_is_offered_works(settings):
    error = refusal(**settings)
    assert error.repairs
    for repair in error.repairs:
        run(Scenario(**{**settings, **repair}))


@pytest.mark.parametrize(
    ("settings", "offered"),
    [
        (
            {"schedule": "dualpipe", "devices": 5, "micro_batches": 8},
            [{"devices": 4}, {"devices": 6, "micro_batches": 12}],
        ),
        ({"schedule": "chimera", "devices": 4, "stage_times": "1,2,3"}, [{"stage_times": "1,2,3,1"}]),
    ],
)
def test_a_repair_that_breaks_another_rule_brings_the_repair_of_that_or_is_not_offered(settings, offered):
    _, (error, *_) = read(settings)
    assert [{name: str(value) for name, value in repair.items()} for repair in error.repairs] == [
        {name: str(value) for name, value in repair.items()} for repair in offered
    ]
    for repair in error.repairs:
        run(Scenario(**{**settings, **repair}))


@given(scenarios())
def test_changed_settings_make_the_same_scenario_again(scenario):
    assert Scenario(**scenario.changed()) == scenario
    assert Scenario(**scenario.settings()) == scenario
    assert Scenario.read(scenario.changed()) == (scenario, [])
    assert eval(repr(scenario)) == scenario
    assert all(isinstance(value, int | str | None) for value in scenario.settings().values())
    assert hash(Scenario(**scenario.changed())) == hash(scenario)


@pytest.mark.parametrize("text", ["549755813889/549755813888", "1234567890123456789/1111111111111111111"])
def test_a_long_number_reads_back_as_the_same(text):
    scenario = Scenario(forward=text, stage_times=[text, 1, 1])
    assert Scenario(**scenario.changed()) == scenario


@pytest.mark.parametrize("text", ["1.37125948163507281949", "1234567890123456789/1111111111111111111"])
def test_a_number_that_was_accepted_stays_acceptable(text):
    scenario = Scenario(forward=text)
    assert Scenario.read({"forward": text}) == (scenario, [])
    assert replace(scenario, devices=4).forward == scenario.forward


def test_defaults_are_left_out_of_what_changed():
    assert Scenario().changed() == {}
    assert Scenario(devices="3", slow_factor="1.0").changed() == {}
    assert Scenario(forward="1,5").changed() == {"forward": "1.5"}


def test_reading_a_link_replaces_only_what_cannot_be_used_and_reports_each():
    link = {"devices": "65", "micro_batches": "8", "forward": "fast", "colour": "red", "comm": "0,5"}
    scenario, errors = Scenario.read(link)
    assert scenario == Scenario(micro_batches=8, comm="0.5")
    assert sorted(error.field for error in errors) == ["colour", "devices", "forward"]
    assert all(error.field in link for error in errors)


def test_reading_a_link_reports_fields_that_do_not_fit_together():
    result, errors = read({"devices": "2", "stage_times": "1,2,3", "slow_stage": "3"})
    assert result.scenario == Scenario(devices=2)
    assert sorted(error.field for error in errors) == ["slow_stage", "stage_times"]


def test_reading_a_link_with_an_unknown_schedule_runs_the_default():
    result, errors = read({"schedule": "zigzag", "devices": "4", "forward": "1.5"})
    assert result.scenario == Scenario(devices=4, forward="1.5")
    assert [error.field for error in errors] == ["schedule"]


TYPED = st.one_of(st.text("0123456789.,;/-+_eE xż", max_size=12), st.integers(), st.none())


@given(st.dictionaries(st.sampled_from(list(SETTINGS)), TYPED), st.sampled_from(["", *REGISTRY]))
def test_any_link_shows_something_and_says_what_it_changed(values, schedule):
    """``read`` never fails; what is shown differs from the link only in fields reported, or repaired for them."""
    link = {**values, "schedule": schedule}
    result, errors = read(link)
    assert result.timeline.schedule.devices
    reported = {error.field for error in errors} | {name for e in errors for repair in e.repairs for name in repair}
    asked = Scenario.read(link)[0]
    assert all(getattr(result.scenario, name) == getattr(asked, name) for name in set(SETTINGS) - reported)


@given(st.dictionaries(st.sampled_from(list(SETTINGS)), TYPED))
def test_reading_anything_gives_a_scenario_that_differs_only_where_it_says_so(values):
    scenario, errors = Scenario.read(values)
    reported = {error.field for error in errors}
    for item in fields(Scenario):
        if item.name not in values or item.name in reported:
            assert getattr(scenario, item.name) == DEFAULTS[item.name]
    assert reported <= set(values)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_refusal_names_field_value_and_limits(language):
    error = refusal(micro_batches=2000)
    text = sentence(error.message, language)
    label = sentence(error.message._replace(key="field.micro_batches"), language)
    assert text.startswith(label)
    assert "1\u202f024" in text or "1024" in text
    assert "2000" in text


def test_each_kind_may_have_a_time_per_stage():
    """B is the gradient of the input and of the weights; a factor per stage still applies to all kinds."""
    costs = run(
        schedule="gpipe",
        devices=2,
        forward_times="1 2",
        input_grad_times="3 0",
        weight_grad_times="0.5 1",
        slow_factor=2,
    ).timeline.costs
    assert [costs.time(t) for t in costs.durations["F"]] == [2, 2]  # the first of two is the slow one
    assert [costs.time(t) for t in costs.durations["B"]] == [7, 1]
    looped = run(schedule="looped_bfs", devices=2, chunks=2, forward_times="1 2 3 4").timeline.costs
    assert looped.durations["F"] == (1, 2, 3, 4) and looped.durations["I"] == (1, 1, 1, 1)


@pytest.mark.parametrize("name", ["forward_times", "input_grad_times", "weight_grad_times"])
def test_times_of_a_kind_that_do_not_fit_the_stages_are_refused_with_repairs(name):
    result, (error,) = read({"schedule": "gpipe", "devices": "3", name: "1,2"})
    assert error.field == name and {"devices": "2"} in error.repairs and {name: "1,2,2"} in error.repairs
    assert result.scenario.devices == 3
    _, errors = read({"schedule": "gpipe", "devices": "3", "split": "even", name: "1,2,3"})
    assert [error.field for error in errors] == ["split"]


def test_a_quotient_by_any_zero_is_no_number():
    assert refusal(forward="1/00").field == "forward"
