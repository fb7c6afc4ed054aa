"""The Chrome trace, held against the format's rules by a checker that knows nothing of how it is written."""

import json
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipesched import run
from pipesched.rules import Values
from pipesched.trace import trace
from scenarios import scenarios

PHASES = {"M", "X", "s", "t", "f"}


def check(found):
    """Hold a trace against "Trace Event Format": fields, nesting per track, flows inside the events they bind to."""
    text = json.dumps(found)
    events = json.loads(text)["traceEvents"]
    tracks, flows = defaultdict(list), defaultdict(list)
    for event in events:
        assert event["ph"] in PHASES and isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert event["name"] in {"process_name", "process_sort_index", "thread_name"} and event["args"]
            continue
        assert isinstance(event["ts"], int) and event["ts"] >= 0, "importers round what is not whole"
        if event["ph"] == "X":
            assert isinstance(event["dur"], int) and event["dur"] >= 0
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        else:
            flows[event["cat"], event["name"], event["id"]].append(event)
    for spans in tracks.values():
        for (_, end), (start, _) in pairwise(sorted(spans)):
            assert start >= end, "complete events of a track must not overlap"
    for steps in flows.values():
        assert [step["ph"] for step in steps] == ["s", *["t"] * (len(steps) - 2), "f"]
        assert steps[-1]["bp"] == "e", "else it binds to the next event of the track"
        assert [step["ts"] for step in steps] == sorted(step["ts"] for step in steps)
        for step in steps:
            around = tracks[step["pid"], step["tid"]]
            assert sum(start <= step["ts"] < end for start, end in around) == 1
    return events, flows


@given(scenarios(), st.sampled_from([1, 1000, Fraction(1, 3), 12345]))
def test_every_trace_keeps_the_rules_of_the_format(scenario, microseconds):
    check(trace(run(scenario).timeline, microseconds=microseconds))


@given(scenarios())
def test_blocks_are_those_of_the_timeline(scenario):
    timeline = run(scenario).timeline
    events, _ = check(trace(timeline))
    blocks = [event for event in events if event["ph"] == "X" and event["tid"] == 1]
    expected = [(one.device + 1, str(one.op), one.start, one.end) for one in timeline.intervals]
    assert [(e["pid"], e["args"]["op"], e["args"]["start"], e["args"]["end"]) for e in blocks] == expected
    for event in blocks:
        assert abs(event["ts"] - 1000 * event["args"]["start"]) <= 0.5001


@given(scenarios())
def test_an_arrow_leads_from_each_value_to_each_other_device_that_needs_it(scenario):
    timeline = run(scenario).timeline
    values, hops = Values(timeline.schedule), set()
    for op, (device, _) in timeline.position.items():
        needed = [base + op.micro_batch for base in values.needs(*op)]
        hops |= {(value, device) for value in needed if timeline.made[value][1] != device}
    lasting = all(ticks for row in timeline.ends for ticks in row)
    _, flows = check(trace(timeline, microseconds=10**6))
    if lasting and all(
        a < b for s, e in zip(timeline.starts, timeline.ends, strict=True) for a, b in zip(s, e, strict=True)
    ):
        assert len(flows) == len(hops)


def test_a_hop_that_takes_time_is_a_track_of_its_own_and_the_arrow_passes_through_it():
    events, flows = check(trace(run(schedule="gpipe", devices=2, micro_batches=2, comm="0.5").timeline))
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names == {
        (1, 1): "compute", (2, 1): "compute", (1, 2): "sends activations", (2, 3): "sends gradients",
    }  # fmt: skip
    sent = [(e["pid"], e["tid"], e["ts"], e["dur"]) for e in events if e["ph"] == "X" and e["tid"] > 1]
    assert sorted(sent) == [(1, 2, 1000, 500), (1, 2, 2000, 500), (2, 3, 5500, 500), (2, 3, 7500, 500)]
    assert {tuple(step["tid"] for step in steps) for steps in flows.values()} == {(1, 2, 1), (1, 3, 1)}


def test_transfers_that_overlap_get_tracks_of_their_own():
    events, _ = check(trace(run(devices=2, micro_batches=4, comm=3).timeline))
    assert len({e["tid"] for e in events if e["ph"] == "X" and e["pid"] == 1}) == 1 + 3


def test_what_an_overlapped_pair_is_called_and_that_devices_have_names():
    events, _ = check(trace(run(schedule="dualpipe", devices=2, micro_batches=4).timeline, language="pl"))
    assert any(e["name"] == "F4&B1" for e in events)
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["Urządzenie 1", "Urządzenie 2"]


@pytest.mark.parametrize("microseconds", [0, -1])
def test_a_scale_that_is_not_positive_is_refused(microseconds):
    with pytest.raises(ValueError, match="positive"):
        trace(run().timeline, microseconds=microseconds)
