"""Tensor parallelism inside each stage: what it costs, and what it trades."""

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipesched import ScenarioError, run
from pipesched.explain import block
from pipesched.report import durations
from pipesched.tensor import all_reduce_time, degrees
from pipesched.trade import communication, tensors
from pipesched.words import sentence

TIME = st.sampled_from([0, 1, Fraction(1, 3), 5])


def test_a_ring_of_two_sends_all_of_it_once_and_a_large_one_nearly_twice():
    assert all_reduce_time(1, 1, 1) == 0
    assert all_reduce_time(2, 1, 0) == 1
    assert all_reduce_time(8, 1, 0) == Fraction(7, 4)
    assert all_reduce_time(8, 0, 1) == 14


def test_volume_is_megatron_s():
    """8 b s h (t - 1)/t elements per layer, device and micro-batch (arXiv 2104.04473 s3.2), four all-reduces."""
    for t in (2, 4, 8):
        assert 4 * all_reduce_time(t, 1, 0) == Fraction(8 * (t - 1), t)


@given(st.sampled_from([1, 2, 4, 8]), TIME, TIME)
def test_a_stage_takes_its_work_by_t_and_two_all_reduces_per_layer_and_direction(t, link, latency):
    result = run(
        schedule="1f1b",
        split="even",
        layers=12,
        devices=3,
        tensor=t,
        all_reduce=link,
        all_reduce_latency=latency,
        update=6,
    )
    costs = result.timeline.costs
    talk = 4 * 2 * all_reduce_time(t, link, latency)
    expected = {"F": Fraction(4, t) + talk, "I": Fraction(4, t) + talk, "B": Fraction(8, t) + talk, "W": Fraction(4, t)}
    for kind, time in {**expected, "U": Fraction(24, t)}.items():
        assert costs.durations[kind] == (time * costs.ticks_per_unit,) * 3


def test_a_forward_that_is_run_again_is_reduced_again():
    result = run(schedule="gpipe", tensor=2, all_reduce=1, recompute="late")
    costs = result.timeline.costs
    assert costs.time(costs.durations["B"][0]) == (1 + 2) / 2 + 2 * 2


def test_an_embedding_is_shared_out_but_has_no_layers_to_reduce():
    result = run(devices=2, split="hand", layers=2, layout="E|ttL", embedding=4, tensor=2, all_reduce=1)
    costs = result.timeline.costs
    assert [costs.time(ticks) for ticks in costs.durations["F"]] == [2, 1 + 2 * 2]


def test_degrees_are_the_powers_of_two_that_leave_whole_pipes():
    assert [degrees(n) for n in (1, 6, 8, 12)] == [[1], [1, 2], [1, 2, 4, 8], [1, 2, 4]]


@pytest.mark.parametrize("split", ["none", "even"])
def test_the_bubble_falls_with_t_as_the_all_reduces_grow(split):
    """p = n/t: the bubble over the work is (n/t - 1)/m for equal stages; devices p t and the work stay the same."""
    scenario = run(schedule="1f1b", devices=8, micro_batches=8, split=split, layers=16, all_reduce="0.05").scenario
    rows = list(tensors(scenario))
    assert [row.count for row in rows] == [1, 2, 4, 8]
    for row in rows:
        p = 8 // row.count
        assert row.bubble == pytest.approx((p - 1) / (8 + p - 1))
    shares = [row.communication for row in rows]
    assert shares[0] == 0 and shares == sorted(shares)
    silent = list(tensors(run(scenario, all_reduce=0).scenario))
    assert {round(row.makespan * (1 - row.bubble), 9) for row in silent} == {round(silent[0].makespan * 8 / 15, 9)}


def test_every_row_s_settings_make_its_makespan():
    scenario = run(
        schedule="gpipe", devices=4, micro_batches=4, tensor=2, all_reduce="0.1", all_reduce_latency="0.01"
    ).scenario
    rows = list(tensors(scenario))
    assert [row.settings for row in rows if row.count == 2] == [{}]
    assert all(run(scenario, **row.settings).metrics.makespan == row.makespan for row in rows)


def test_where_a_stage_s_time_on_other_devices_is_unknown_nothing_is_traded():
    for field, settings in {
        "stage_times": {"stage_times": "1 2 3"},
        "layout": {"split": "hand", "layout": "8,8,8"},
    }.items():
        with pytest.raises(ScenarioError) as caught:
            list(tensors(run(**settings).scenario))
        assert caught.value.field == field


def test_a_pipe_the_schedule_does_not_take_is_a_row_with_the_reason():
    rows = list(tensors(run(schedule="dualpipe", devices=6, micro_batches=20).scenario))
    assert [row.problem is None for row in rows] == [True, False]


PAIR = {"schedule": "gpipe", "devices": 2, "micro_batches": 3, "tensor": 4, "all_reduce": "1/6"}
"""A forward: 1/4 of work and two all-reduces of 2 * 3/4 * 1/6, so 3/4 in all; a backward: 1/2 and as much of them."""


def test_devices_that_share_a_stage_are_lanes_of_one_block_and_their_all_reduces_its_end():
    svg = run(**PAIR).svg(width=900)
    assert re.findall(r">(Device \d[^<]*)<", svg) == ["Device 1 ×4", "Device 2 ×4"]
    blocks = svg.split('class="op"')[1:]
    assert len(blocks) == 12
    for block_ in blocks:
        lines = re.search(r'class="members" d="([^"]*)"', block_)
        assert lines and lines[1].count("M") == 3, "three lines part four devices"
        whole, talk = (float(width) + 1 for width in re.findall(r'<rect[^>]* width="([\d.]+)"', block_)[:2])
        share = 2 / 3 if re.match(' data-op=".F', block_) else 1 / 2
        assert talk / whole == pytest.approx(share, abs=0.01)


def test_a_chart_without_tensor_parallelism_has_neither():
    svg = run(schedule="gpipe").svg()
    assert "members" not in svg and "all-reduce" not in svg and "×" not in svg


def test_more_devices_than_can_be_told_apart_are_a_number_beside_the_lane():
    svg = run(**{**PAIR, "tensor": 64}).svg()
    assert "members" not in svg and "Device 1 ×64" in svg


def test_a_block_says_what_part_of_it_is_all_reduce():
    result = run(**PAIR)
    assert "0.5 of it in all-reduces" in sentence(block(result.timeline, 0, 0), "en")
    assert "all-reduce" not in sentence(block(run().timeline, 0, 0), "en")


def test_the_share_of_all_reduces_is_said_under_the_chart():
    result = run(**PAIR)
    share = Fraction(12, 2) / (2 * Fraction(result.metrics.makespan))  # twelve operations, half a unit each
    assert communication(result.timeline) == pytest.approx(float(share))
    assert "8 in all" in durations(result, "en") and f"{float(share):.1%}" in durations(result, "en")


def test_an_overlapped_pair_reduces_in_proportion():
    result = run(schedule="dualpipe", devices=2, micro_batches=4, tensor=2, all_reduce=1, overlap="1.5")
    pairs = [cell for row in result.timeline.schedule.rows for cell in row if len(cell.ops) == 2]
    costs = result.timeline.costs
    assert pairs and all(costs.time(costs.all_reduce_of(pair)) == 2 for pair in pairs), "half of 2 + 2"
