"""Tensor parallelism inside each stage: what it costs, and what it trades."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipesched import ScenarioError, run
from pipesched.tensor import all_reduce_time, degrees
from pipesched.trade import tensors

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
