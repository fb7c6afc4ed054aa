"""The door of the page: JSON text in, JSON text out."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given

from pipesched import Scenario, run
from pipesched.metrics import Metrics
from pipesched.schedules import BYTES
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
        if name == "peak_queue":  # per stage; a device shows those of all its stages
            homes = run(scenario).homes
            for device, row in enumerate(answer["devices"]):
                here = [queue for stage, queue in enumerate(value) if device in homes[stage]]
                assert row[name] == {"value": max(here), "text": ", ".join(map(str, here))}
        elif isinstance(value, tuple):
            assert [row[name]["value"] for row in answer["devices"]] == list(value)
        else:
            assert one[name] == value
    assert answer["problems"] == []
    assert Scenario(**answer["settings"]) == Scenario(**answer["changed"]) == scenario


@given(scenarios())
def test_no_answer_is_left_with_a_placeholder(scenario):
    for lang in LANGUAGES:
        for do in ("run", "moment", "explain", "table", "why", "what_if", "path", "profile"):
            for of in ("queues", "activations") if do == "profile" else ("",):
                answer = ask(do, scenario.changed(), lang, device=0, time=1, limit=9, of=of)
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
    assert formula["text"] == [
        "The simulated makespan equals the closed form: (M + K − 1) · f = (4 + 3 − 1) · 1 = 6.",
        "No order of these operations on these devices can be faster: the makespan equals the lower bound.",
    ]


def test_where_the_formula_does_not_hold_it_is_said_why_and_what_holds():
    formula = ask(settings={"slow_factor": "2"})["formula"]
    assert not formula["textbook"]
    assert len(formula["why"]) == 1
    assert "stage 2" in formula["why"][0]
    assert formula["text"][0].endswith("4 + (4 − 1) · 2 = 10.")


def test_a_closed_form_that_does_not_apply_says_what_it_needs_and_the_distance_to_the_bound_is_given():
    """LB2 of f = b = 6, 3, 2 with M = 2 is 28, the best possible 30: schedules.md s9's counter-example."""
    settings = {"schedule": "1f1b", "micro_batches": 2, "stage_times": "6 3 2", "weight_grad": 0}
    closed, bound = ask(settings=settings)["formula"]["text"]
    assert closed == (
        "The closed form for the makespan, (M + K − 1) · (f + b), does not apply here. "
        "It holds only where: all stages take equally long."
    )
    assert "above the lower bound of 28" in bound


def notes(**settings):
    return {note["text"]: note["settings"] for note in ask(settings=settings)["notes"]}


def test_that_1f1b_has_no_smaller_bubble_than_gpipe_is_said_on_the_page_of_1f1b():
    (text,) = notes(schedule="1f1b", devices=4, micro_batches=8)
    assert "does not have a smaller bubble than GPipe: both take 33" in text
    assert "at most 4 activations on a device in place of 8" in text
    (text,) = notes(schedule="1f1b", devices=4, micro_batches=8, comm=1)
    assert "GPipe would take 39" in text  # 33 + 2 (K - 1) c


def test_who_refuses_ten_micro_batches_interleaved_on_four_devices_is_said_and_the_others_are_offered():
    found = notes(schedule="interleaved_1f1b", devices=4, micro_batches=10)
    assert [settings for settings in found.values() if settings] == [
        {"group": 4},
        {"micro_batches": 12, "group": ""},
    ]
    assert "groups of 5" in next(iter(found))
    assert "PyTorch's choice too" in next(iter(found))
    refused = notes(schedule="interleaved_1f1b", devices=4, micro_batches=10, group=4)
    assert any("Megatron-LM refuses" in text for text in refused)
    assert {"group": 5} in refused.values()


def test_one_f_one_b_with_few_micro_batches_runs_and_says_that_pytorch_refuses_it():
    assert any("PyTorch refuses" in text for text in notes(schedule="1f1b", devices=4, micro_batches=2))


def test_a_circle_is_drawn_up_to_where_it_stops_and_said_in_the_language_asked():
    answer = ask(settings={"schedule": "order", "order": "0F0 0B0 0F1 0B1\n1B1 1F0 1F1 1B0"}, lang="pl")
    assert answer["problems"] == []
    assert "urządzenie 2 stoi przed 1B1" in answer["deadlock"]
    assert 'data-op="0F0"' in answer["svg"]
    assert 'data-stuck="1B1"' in answer["svg"]
    assert {row["value"] for row in answer["numbers"]} == {None}
    assert answer["formula"] is None
    assert ask("explain", {"schedule": "order", "order": "0B0 0F0"}, device=0, time=0)["text"]
    assert ask("moment", {"schedule": "order", "order": "0B0 0F0"}, time=0)["devices"][0]["state"] == "waits"


def test_an_order_that_cannot_be_read_says_where():
    (problem,) = ask(settings={"schedule": "order", "order": "0F0 0B0\n0X1"})["problems"]
    assert problem["field"] == "order"
    assert "line 2, column 1" in problem["text"]


def test_transfers_in_a_pasted_order_are_left_out_and_counted():
    (text,) = notes(schedule="order", order="0F0 0SEND_F0 0B0\n1RECV_F0 1F0 1B0")
    assert text.startswith("2 transfer and sharding actions are left out")


def test_the_order_of_a_schedule_can_be_taken_and_comes_out_the_same():
    settings = {"schedule": "dualpipe", "devices": 4, "micro_batches": 8}
    text = ask("order", settings)["order"]
    again = ask(settings={"schedule": "order", "order": text, "times_of": "stage"})
    assert again["problems"] == []
    assert again["numbers"] == ask(settings=settings)["numbers"]


def test_a_combination_that_is_not_possible_offers_ones_that_are():
    (problem,) = ask(settings={"schedule": "dualpipe", "devices": 5, "micro_batches": 3})["problems"][:1]
    assert problem["field"] == "devices"
    assert problem["repairs"]
    for repair in problem["repairs"]:
        assert (
            ask(settings={"schedule": "dualpipe", "devices": 5, "micro_batches": 3} | repair["settings"])["problems"]
            == []
        )


def test_letters_follow_the_convention_asked_for():
    settings = {"schedule": "zb_h1", "devices": 2, "micro_batches": 2}
    ours, theirs = (ask(settings=settings, letters=letters)["svg"] for letters in ("pytorch", "zero_bubble"))
    assert ">I1<" in ours
    assert ">B1<" in theirs
    assert ">I1<" not in theirs
    assert 'data-op="0I0"' in theirs  # the hooks do not change


def test_every_duration_is_said():
    said = ask(settings={"schedule": "dualpipe", "devices": 4, "micro_batches": 8, "overlap": "2.5", "comm": "0.1"})
    assert said["durations"] == "Per stage: f = 1, i = 1, w = 1, b = i + w = 2, F&B = 2.5, c = 0.1."
    said = ask(settings={"schedule": "interleaved_1f1b", "devices": 2, "slow_factor": 2})
    assert (
        said["durations"]
        == "Per stage: f = 0.5, i = 0.5, w = 0.5, b = i + w = 1, c = 0, times the factor of each stage."
    )


@pytest.mark.parametrize(("lang", "label"), [("en", "Devices K"), ("pl", "Urządzenia K")])
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
    for device in range(result.timeline.schedule.devices):
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
    special = {"chunks", "group", "memory_limit", "overlap", "tokens", "order", "times_of"}
    special |= {"layers", "embedding", "head", "layout", "overhead", "per_sample"}  # no split, no constant batch
    assert set(ask()["unused"]) == special | {"input_grad", "weight_grad", "recompute", "update"} | BYTES
    assert set(ask(settings={"schedule": "gpipe"})["unused"]) == special
    assert set(ask(settings={"schedule": "interleaved_1f1b"})["unused"]) == special - {"chunks", "group", "times_of"}


@given(scenarios())
def test_settings_said_to_be_unused_change_nothing(scenario):
    for field in ask(settings=scenario.changed())["unused"]:
        value = {"times_of": "stage", "recompute": "late", "order": "0F0", "precision": "32"}.get(field, 7)
        assert run(replace(scenario, **{field: value})).metrics == run(scenario).metrics


def test_tables_of_what_would_be_mark_the_least_and_carry_the_settings():
    answer = ask("trade", {"schedule": "1f1b", "devices": 4, "batch": 16, "overhead": 1}, of="batch")
    assert [row["cells"][:2] for row in answer["rows"]] == [
        ["1", "16"],
        ["2", "8"],
        ["4", "4"],
        ["8", "2"],
        ["16", "1"],
    ]
    assert [row["settings"] for row in answer["rows"]][:3] == [{"micro_batches": 1}, {"micro_batches": 2}, None]
    assert [row["best"] for row in answer["rows"]] == [False, False, False, True, False]
    answer = ask("trade", {"schedule": "1f1b", "devices": 4}, of="tensor")
    assert [row["cells"][0] for row in answer["rows"]] == ["1 × 4", "2 × 2", "4 × 1"]
    assert answer["text"].startswith("All-reduces take no time here")
    assert "not known" in ask("trade", {"stage_times": "1 2 3"}, of="tensor")["text"]


def test_a_split_comes_with_its_strip_and_a_batch_with_its_best_m():
    assert (ask()["placement"], ask()["batch"]) == (None, None)
    answer = ask(settings={"split": "even", "batch": 48, "overhead": 4})
    assert answer["placement"]["svg"].count("data-stage") == 3
    assert len(answer["placement"]["lines"]) == 3
    assert answer["batch"]["use"] is None  # M* = sqrt(2 * 48 / 4), about 4.9; 4 divides 48 and is in use
    assert ask(settings={"batch": 48, "overhead": 1})["batch"]["use"]["settings"] == {"micro_batches": "8"}


def profile(of, lang="en", **settings):
    answer = ask("profile", settings, lang, of=of)
    assert answer["svg"].startswith("<svg")
    return answer["sentences"], answer["formula"]


def test_the_longest_queue_is_named_with_its_time_and_what_all_waiting_adds_up_to():
    """Stage 1 sends at 1, 2, 3, 4; the slow stage 2 starts at 1, 3, 5, 7: they wait 0 + 1 + 2 + 3."""
    assert profile("queues", slow_factor=2)[0] == [
        "The longest queue: 2 micro-batches before stage 2, from time 4 on.",
        "Behind stage 1 the waiting of all micro-batches adds up to 6 units of time.",
        "Before stage 1 stand up to 3 inputs; that strip has a scale of its own.",
    ]
    assert profile("queues", devices=2, micro_batches=1)[0][0] == "Behind stage 1 nobody ever stands in a queue."


def test_the_most_activations_are_named_and_where_nothing_is_kept_that_is_said():
    assert profile("activations")[0] == ["Nothing is kept: without a backward no activation is needed again."]
    (most,), formula = profile("activations", schedule="1f1b", devices=4, micro_batches=8)
    assert most == "Most is kept on device 1: 4 activations, from time 3 on."
    assert formula == ["Give the size of a Transformer among the settings, and it is said in bytes too."]
    (most,), _ = profile("activations", schedule="interleaved_1f1b", devices=4, micro_batches=8)
    assert most.startswith("Most is kept on device 1: 11 activations of a chunk each, as much as 5.5 micro-batches")


def test_bytes_come_with_their_formula_and_source():
    """96 layers of GPT-3 in 16 bits: 96 · 2048 · 12288 · 114 bytes = 275.4 GB (Korthikanti et al. 2022, s4.2.3)."""
    gpt3 = {"hidden_size": 12288, "sequence_length": 2048, "heads": 96, "layers": 96}
    said, formula = profile("activations", schedule="1f1b", devices=4, micro_batches=8, **gpt3)
    assert said[1] == "In bytes: at most ≈\u202f275.41\xa0GB, on device 1, from time 3 on."
    assert "s · b · h · (34 + 5 · a · s / h)" in formula[0]
    assert "With L / S = 24 layers, a stage keeps ≈\u202f68.85\xa0GB" in formula[0]
    assert "2205.05198" in formula[-1]
    _, formula = profile("activations", schedule="1f1b", recompute="early", precision="32", **gpt3)
    assert "s · b · h · 66 + a · s² · b · 9" in formula[0]
    assert [line for line in formula if "masks" in line]
    assert [line for line in formula if "only the input of the stage" in line]
    assert profile("activations", schedule="1f1b", heads=96)[1] == [
        "To say it in bytes, this is missing: Hidden size h; Sequence length s."
    ]
    assert profile("activations", schedule="terapipe", heads=96)[1] == []


def test_curves_of_a_deadlock_are_shown_as_far_as_it_came():
    settings = {"schedule": "order", "order": "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"}
    assert profile("activations", **settings)[0] == ["Most is kept on device 1: 1 activation, from time 0 on."]
    assert profile("queues", **settings)[0]


@pytest.mark.parametrize(
    ("devices", "streams", "need", "busy", "tokens", "makespan"),
    # n = 4 tokens: n max(M, K) + min(M, K) - 1 steps, in which K devices run n M K blocks
    [
        (4, 1, 4, "25%", "4 tokens", 16),
        (3, 2, 3, "≈\u202f61.5%", "8 tokens", 13),
        (2, 4, 2, "≈\u202f94.1%", "16 tokens", 17),
    ],
)
def test_what_the_streams_make_of_the_devices_is_said(devices, streams, need, busy, tokens, makespan):
    text = ask(settings={"schedule": "decode", "devices": devices, "micro_batches": streams})["decoding"]
    assert f"one stream keeps at most 1/{devices} of the devices busy" in text
    assert f"from M = {need} streams on" in text
    assert f"devices busy for {busy} of the time, {tokens} in {makespan} units of time" in text
    assert ask(settings={"devices": devices})["decoding"] == ""


@given(scenarios(["decode"]))
def test_from_the_number_of_streams_that_is_said_on_the_slowest_stage_never_waits(scenario):
    """Between its first and its last block, that is; and one stream less would not do."""
    scenario = replace(scenario, send="free", tokens=5, batch=None)
    text = ask(settings=scenario.changed())["decoding"]
    need = int(re.search(r"from M = (\d+) streams", text)[1])
    for streams in {max(1, need - 1), need, need + 1}:
        if streams > 200:
            return
        timeline = run(replace(scenario, micro_batches=streams)).timeline
        durations = timeline.costs.durations["F"]
        slowest = durations.index(max(durations))
        starts, ends = timeline.starts[slowest], timeline.ends[slowest]
        assert (starts[1:] == ends[:-1]) == (streams >= need)


def test_a_token_that_is_pointed_at_comes_with_its_ways_back():
    """One stream on 3 devices: token 1 leaves at 3, token 2 runs from 3 to 6."""
    spot = ask("explain", {"schedule": "decode", "micro_batches": 1}, device=1, time=4.5)
    assert spot["op"] == "1F1"
    assert spot["returns"] == [
        {"from": {"device": 2, "time": 3}, "to": {"device": 0, "time": 3}},
        {"from": {"device": 2, "time": 6}, "to": {"device": 0, "time": 6}},
    ]
    assert ask("explain", device=1, time=1.5)["returns"] == []
