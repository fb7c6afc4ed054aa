"""Measured times: what is read, what is refused and how, and that the same causes explain them."""

import json
import re
import time
from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pipesched import ScenarioError, causes, run
from pipesched.measured import Model, measure
from pipesched.measured import settings as adopted
from pipesched.measuring import LONGEST_LINK, against, per_cause
from pipesched.recording import read
from pipesched.web import handle
from pipesched.words import LANGUAGES, sentence
from scenarios import scenarios

HEADER = "device,op,start,end\n"
TWO = {"devices": 2, "micro_batches": 2}
DECIMAL = ["1", "2", "3", "0.5", "0.601", "18.522", "1,25"]
"""Times that a CSV says exactly."""


def ask(do="run", settings=None, lang="en", **more):
    request = {"do": do, "settings": settings or {}, "lang": lang, "theme": "light", "width": 720, **more}
    return json.loads(handle(json.dumps(request)))


def ran(text):
    """List what was read as (device, operation, start, end)."""
    rows = enumerate(read(text).rows)
    return [(device, str(t.cell), t.start, t.end) for device, row in rows for t in row]


def refused(text):
    with pytest.raises(ScenarioError) as caught:
        read(text)
    return {language: sentence(caught.value.message, language) for language in LANGUAGES}


def differences(result, text, scale="1"):
    return {row.sort: row.difference for row in per_cause(result, against(result, text, scale)[1]) if row.difference}


def trace(result, **more):
    """Write a result as a Chrome trace of complete events."""
    return json.dumps(
        [
            {"ph": "X", "name": str(i.op), "ts": i.start, "dur": i.end - i.start, "pid": 7, "tid": i.device, **more}
            for i in result.timeline.intervals
        ]
    )


# The round trip


@given(scenarios(times=DECIMAL))
def test_what_we_write_is_measured_with_the_same_causes(scenario):
    """Read back, every start has the cause it had, and no cause costs more or less; thirds are as exact as floats."""
    result = run(scenario)
    _, found = against(result, result.csv())
    assert found.scale == 1 and not found.skews
    assert found.timeline.bound_by == result.timeline.bound_by
    whole = all(
        Fraction(repr(i.end)) * result.timeline.costs.ticks_per_unit % 1 == 0 for i in result.timeline.intervals
    )
    for row in per_cause(result, found):
        assert row.difference == 0 if whole else abs(row.difference) < 1e-9 * max(1, row.predicted)


@given(scenarios(times=DECIMAL))
def test_the_short_form_of_a_link_says_the_same(scenario):
    recording = read(run(scenario).csv())
    again = read(recording.link)
    first = min(t.start for row in recording.rows for t in row)
    assert [[(t.cell, t.start + first, t.end + first) for t in row] for row in again.rows] == [
        [(t.cell, t.start, t.end) for t in row] for row in recording.rows
    ]
    assert re.fullmatch(r"[\w.\-\n /]*", recording.link)


@given(scenarios(times=DECIMAL, extras=False))
def test_the_model_in_the_measured_order_and_mean_times_predicts_what_was_measured(scenario):
    """Where all operations of a stage and kind take equally long, their mean is what they take."""
    result = run(scenario)
    if result.timeline.schedule.streams or result.timeline.schedule.has_pairs:
        return  # tokens are coupled beyond their order
    _, found = against(result, result.csv(), "1")
    again = run(**{**scenario.settings(), **adopted(found, scenario)})
    assert again.metrics.makespan == pytest.approx(result.metrics.makespan)
    assert [list(map(again.timeline.costs.time, c)) for c in again.timeline.starts] == [
        pytest.approx(list(map(result.timeline.costs.time, c))) for c in result.timeline.starts
    ]


@given(scenarios(["gpipe", "1f1b", "zb_h1", "forward"], times=DECIMAL, extras=False), st.data())
def test_a_late_end_of_everything_is_the_perturbation_and_nothing_else(scenario, data):
    """The last operation starts late by d: its device idles d longer outside the model, all others d once finished."""
    result = run(scenario)
    late = Fraction(data.draw(st.sampled_from(["0.5", "3", "0.001"])))
    lines = result.csv().splitlines()
    timeline = result.timeline
    assume(len(timeline.position) > 1)  # time begins with the first one
    last = [device for device, ends in enumerate(timeline.ends) if ends[-1] == timeline.end][-1]
    text = [lines[0]]
    for line in lines[1:]:
        device, op, start, end, _ = line.split(",")
        is_last = int(device) == last and op == str(timeline.schedule.rows[last][-1])
        shift = late if is_last else Fraction(0)
        text.append(f"{device},{op},{Fraction(start) + shift},{Fraction(end) + shift}")
    found = {k: v for k, v in differences(result, "\n".join(text)).items() if abs(v) > 1e-9}  # thirds are floats there
    others = timeline.schedule.devices - 1
    want = {"unmodelled": late, "finished": late * others, None: late * (others + 1)}
    assert {k: pytest.approx(v) for k, v in want.items() if v} == found


def test_a_late_start_in_the_middle_is_a_cause_of_its_own_and_makes_the_next_wait():
    """Forward only, 2 devices, 2 micro-batches: 0F1 is ready at 1 and starts at 1.5, so 1F1 waits from 2 to 2.5."""
    late = HEADER + "0,0F0,0,1\n0,0F1,1.5,2.5\n1,1F0,1,2\n1,1F1,2.5,3.5\n"
    assert differences(run(**TWO), late) == {"unmodelled": 0.5, "forward": 0.5, None: 1}


def test_a_hop_shorter_than_measured_leaves_the_rest_outside_the_model():
    text = HEADER + "0,0F0,0,1\n0,0F1,1,2\n1,1F0,1.75,2.75\n1,1F1,2.75,3.75\n"
    result = run(**TWO, comm="0.5")  # predicted: 1F0 from 1.5
    assert differences(result, text) == {"unmodelled": 0.25, "finished": 0.25, None: 0.5}


def test_a_stage_is_slow_only_where_its_lengths_do_not_leave_it_open():
    """1.1 and 0.9 beside 1 and 1 are no slower stage; 1.9 and 2.1 are."""
    noisy = HEADER + "0,0F0,0,0.95\n0,0F1,0.95,2.1\n1,1F0,0.95,1.95\n1,1F1,2.1,3.1\n"
    slow = HEADER + "0,0F0,0,1.9\n0,0F1,1.9,4\n1,1F0,1.9,2.9\n1,1F1,4,5\n"
    for text, is_slow in ((noisy, False), (slow, True)):
        _, found = against(run(**TWO), text, "1")
        sums = causes.totals(causes.study(found.timeline, None, found.doubts))
        assert bool(sums["slow_stage"]) == is_slow


# What is read


@pytest.mark.parametrize(
    "text",
    [
        HEADER + "0,0F0,0,1.5\n1,1F0,1.5,2",
        "bound_by;Device;OP;start;end\n;0;0F0;0;1,5\n0F0;1;1F0;1,5;2\n",
        "# from a log\n\nop\tdevice\tstart\tend\n0F0\trank 0\t0\t1.5\n\n1F0\trank 1\t1.5\t2\n",
        "\ufeffrank, operation, begin, finish\r\ncuda:0, 0f0, 0, 1.5e0\r\ncuda:8, 1F0, 3/2, 2\r\n",
        "0F0_0_1.5\n1F0_1.5_2",
        '[{"ph":"X","name":"0F0","ts":0,"dur":1.5,"pid":1,"tid":1},{"ph":"X","name":"1F0","ts":1.5,"dur":0.5,"pid":1,"tid":2},',
        json.dumps(
            {
                "traceEvents": [
                    {"ph": "B", "name": "1F0", "ts": 1.5, "pid": 9, "tid": 1},
                    {"ph": "B", "name": "forward", "args": {"stage": 0, "micro_batch": 0}, "ts": 0, "pid": 3, "tid": 1},
                    {"ph": "E", "ts": 1.5, "pid": 3, "tid": 1},
                    {"ph": "E", "ts": 2, "pid": 9, "tid": 1},
                ]
            }
        ),
    ],
)
def test_the_forms_that_are_read(text):
    assert ran(text) == [(0, "0F0", 0, Fraction(3, 2)), (1, "1F0", Fraction(3, 2), 2)]


def test_a_trace_s_devices_have_the_numbers_in_their_names():
    events = [
        {"ph": "M", "name": "process_name", "pid": 31, "args": {"name": "rank 1"}},
        {"ph": "M", "name": "process_name", "pid": 77, "args": {"name": "rank 0"}},
        {"ph": "X", "name": "1F0", "ts": 1, "dur": 1, "pid": 31, "tid": 4},
        {"ph": "X", "name": "0F0", "ts": 0, "dur": 1, "pid": 77, "tid": 5},
        {"ph": "X", "name": "ncclAllReduce", "ts": 0, "dur": 1, "pid": 77, "tid": 5},
        {"ph": "C", "name": "memory", "ts": 0, "pid": 77},
    ]
    recording = read(json.dumps(events))
    assert recording.devices == ("rank 0", "rank 1")
    assert [str(row[0].cell) for row in recording.rows] == ["0F0", "1F0"]
    assert recording.left_out == 2


def test_transfers_are_left_out_and_counted():
    assert read(HEADER + "0,0F0,0,1\n0,0SEND_F0,1,2\n").left_out == 1


def test_numbers_are_exact_and_times_begin_with_the_first_operation():
    text = HEADER + "0,0F0,1764500000.000000001,1764500000.100000001\n"
    other, found = against(run(devices=1, micro_batches=1), text, "1")
    assert found.timeline.starts == [[0]] and other.metrics.makespan == 0.1


def test_rounded_times_may_overlap_by_a_thousandth_and_are_cut():
    recording = read(HEADER + "0,0F0,0,1.0005\n0,0F1,1,2\n")
    assert recording.rounded == 1 and recording.rows[0][0].end == 1


def test_the_unit_of_the_file_is_found_where_it_is_another():
    result = run(**TWO)
    text = "\n".join(
        ",".join([*line.split(",")[:2], *(f"{t}000" for t in line.split(",")[2:4])])
        for line in result.csv().splitlines()[1:]
    )
    other, found = against(result, HEADER + text)
    assert found.scale == 1000 and other.metrics.makespan == 3
    assert against(result, HEADER + text, "500")[0].metrics.makespan == 6
    with pytest.raises(ScenarioError) as caught:
        against(result, text, "0")
    assert caught.value.field == "measured_scale"


def test_clocks_that_disagree_are_named_and_drawn():
    """1F0 begins at 0.75, but 0F0, which it needs, is over at 1."""
    text = HEADER + "0,0F0,0,1\n1,1F0,0.75,1.75\n"
    other, found = against(run(devices=2, micro_batches=1), text, "1")
    (skew,) = found.skews
    assert (str(skew.cell), str(skew.needed), found.timeline.costs.time(skew.ticks)) == ("1F0", "0F0", 0.25)
    assert other.svg().count('class="op"') == 2
    answer = ask(settings=TWO, measured={"text": text, "scale": "1"})["measured"]
    assert any("0.25" in line and "clocks" in line for line in answer["said"])


@given(scenarios(times=DECIMAL), st.integers(1, 30), st.integers(0, 3))
def test_every_idle_tick_of_any_measurement_has_one_cause(scenario, late, which):
    """However clocks disagree, shares are in order, in their gap, and add up to it."""
    result = run(scenario)
    lines = result.csv().splitlines()
    text = [lines[0]]
    for line in lines[1:]:
        device, op, start, end, _ = line.split(",")
        shift = Fraction(late, 4) * (int(device) == which)
        text.append(f"{device},{op},{Fraction(start) + shift},{Fraction(end) + shift}")
    _, found = against(result, "\n".join(text))
    study = causes.study(found.timeline, result.study.limit, found.doubts)
    for device in range(found.timeline.schedule.devices):
        for gap in found.timeline.gaps(device):
            parts = causes.shares(study, gap)
            assert [parts[0].start, *(p.end for p in parts)] == [*(p.start for p in parts), gap.end]
            assert parts[0].start == gap.start and all(p.start < p.end for p in parts)


# What is refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" \n", "nothing to read"),
        ("device,op,start\n0,0F0,0", "line 1: a header that names device, op, start and end is needed"),
        (HEADER, "no operation in it"),
        (HEADER + "0,0F0,0", "line 2: 4 columns are needed, 3 are there"),
        (HEADER + "\n0,0X0,0,1", "line 3: an operation is stage, kind and micro-batch, such as 2F0, not “0X0”"),
        (HEADER + "gpu,0F0,0,1", "line 2: a device is a number or a name that ends in one"),
        (HEADER + "0,0F0,soon,1", "line 2: start and end of 0F0 are numbers, “soon” is none"),
        (HEADER + '0,0F0,"0,5",1', "line 2: start and end of 0F0 are numbers, “0,5” is none"),
        (HEADER + "0,0F0,0,1/0", "“1/0” is none"),
        (HEADER + "0,0F0,0,1e99", "“1e99” is none"),
        (HEADER + "0,0F0,2,1", "line 2: 0F0 ends at 1, before it starts at 2"),
        (HEADER + "0,0F0,0,1\n0,0F1,1,2\n1,0F0,5,6", "line 4: 0F0 a second time; the first is number 2"),
        (HEADER + "0,0F0,0,2\n0,0F1,1,3", "line 3: 0F1 starts at 1, while 0F0 (number 2) keeps device 0 busy until 2"),
        ("[1, 2", "no operation"),
        ("[{}, nothing]", "not JSON from line 1, column 6"),
        ('{"traceEvents": 3}', "list of events"),
        ('{"a": ' * 3000, "not JSON"),
        ('[{"ph":"X","name":"0F0","ts":0,"tid":0}]', "event 1: start and end of 0F0 are numbers"),
        ('[{"ph":"B","name":"0F0","ts":0,"tid":0}]', "event 1: 0F0 begins and never ends"),
        ('[{"ph":"X","name":"0F0","ts":[],"dur":[1],"tid":0}]', "event 1: start and end of 0F0 are numbers"),
        ('[{"ph":"X","name":"0F0","ts":NaN,"dur":1,"tid":0}]', "“NaN” is none"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_what_was_expected(text, said):
    found = refused(text)
    assert said in found["en"]
    assert found["pl"] != found["en"] and "{" not in found["pl"]


def test_every_bad_line_is_named_up_to_a_few_and_the_rest_counted():
    text = HEADER + "".join(f"0,?,{i},{i + 1}\n" for i in range(9))
    assert refused(text)["en"].count("line ") == 5 and "and 4 more" in refused(text)["en"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEADER + "0,0F0,0,1\n0,0F1,1,2\n1,1F0,1,2", "1F1"),
        (HEADER + "0,0F0,0,1\n0,0B0,1,2\n1,1B0,2,3\n1,1F0,3,4", "Deadlock"),
    ],
)
def test_an_order_that_cannot_be_is_refused_with_the_reason(text, said):
    with pytest.raises(ScenarioError) as caught:
        against(run(**TWO), text)
    assert caught.value.field == "measured" and said in str(caught.value)


@example("# comments alone")
@given(st.text(max_size=60) | st.text('0123456789FBIW_-,;.\n[]{}":devicopstarn ', max_size=90))
def test_any_text_is_read_or_refused(text):
    for content in (text, HEADER + text, "[" + text, "0F0_0_1 " + text):
        try:
            against(run(**TWO), content)
        except ScenarioError as error:
            assert "{where}" not in sentence(error.message, "en")


# The page


def test_the_measured_chart_stands_above_on_the_same_axis_with_its_causes_beside():
    text = HEADER + "0,0F0,0,1\n0,0F1,1.5,2.5\n1,1F0,1,2\n1,1F1,2.5,3.5\n"
    answer = ask(settings=TWO, measured={"text": text})
    assert answer["pinned"]["title"] == "measured" and answer["pinned"]["other"].startswith("predicted: ")
    row = next(row for row in answer["pinned"]["rows"] if row["name"] == "makespan")
    assert (row["first"], row["second"], row["change"]) == ("3.5", "3", "+0.5 (+16.7%)")
    plots = [re.search(r'data-plot="([\d.]+)"', svg)[1] for svg in (answer["pinned"]["svg"], answer["svg"])]
    assert float(plots[1]) == pytest.approx(float(plots[0]) * 3 / 3.5, abs=0.1)
    shown = {
        row["sort"]: (row["measured"], row["predicted"], row["difference"]) for row in answer["measured"]["causes"]
    }
    assert shown["unmodelled"] == ("0.5", "0", "+0.5")
    assert shown["all"] == ("3", "2", "+1")
    again = ask(settings=TWO, measured={"text": answer["measured"]["link"]})
    assert again["pinned"]["svg"] == answer["pinned"]["svg"]


def test_what_cannot_be_read_is_said_and_the_chart_stays():
    answer = ask(settings=TWO, measured={"text": "device,op\n"})
    assert "header" in answer["measured"]["error"] and answer["pinned"] is None and answer["problems"] == []
    assert ask(settings=TWO)["measured"] is None
    assert ask("adopt", TWO, measured={"text": "?"})["settings"] == {}


def test_the_button_makes_the_prediction_the_same_order_in_mean_times():
    """Stage 1 takes 1 and 2, so 1.5 on the mean: 1F1 is over at 2 + ... as the model has it."""
    text = HEADER + "0,0F0,0,1000\n0,0F1,1000,2000\n1,1F0,1000,2000\n1,1F1,2000,4000\n"
    given = ask("adopt", {"schedule": "gpipe", "slow_factor": "2"}, measured={"text": text})["settings"]
    answer = ask(settings=given, measured={"text": text})
    assert answer["problems"] == []
    assert given["forward_times"] == "1000;1500"
    assert next(row["value"] for row in answer["numbers"] if row["name"] == "makespan") == 4000


@pytest.mark.parametrize(("unit", "times"), [("1e-6", "0.025;0.025"), ("1e9", "25000;25000"), ("1", "25;25")])
def test_times_too_long_or_short_for_a_field_are_taken_in_another_unit(unit, times):
    long = Fraction(unit) * 25
    text = HEADER + f"0,0F0,0,{long}\n1,1F0,{long},{2 * long}\n"
    assert ask("adopt", {}, measured={"text": text})["settings"]["forward_times"] == times


def test_a_measurement_too_long_for_a_link_says_so():
    result = run(devices=8, micro_batches=300)
    answer = ask(settings=result.scenario.changed(), measured={"text": result.csv()})["measured"]
    assert len(read(result.csv()).link) > LONGEST_LINK
    assert answer["link"] == "" and any("link" in line for line in answer["said"])


def test_ten_thousand_lines_are_read_in_well_under_two_seconds():
    result = run(schedule="1f1b", devices=8, micro_batches=625, forward="1.037", comm="0.1")
    text = result.csv()
    assert text.count("\n") == 10_001
    begun = time.process_time()
    against(result, text)
    assert time.process_time() - begun < 2
    measure.cache_clear()
    assert measure(text, Model(result.scenario, result.timeline)).timeline.bound_by == result.timeline.bound_by
