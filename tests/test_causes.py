"""Every idle tick has one sort; what could have run had its values; what is said of it can be said."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given

from oracle import sources
from pipesched import run
from pipesched.causes import SORTS, Limit, chain, could_have_run, shares, study, totals, why_not
from pipesched.metrics import peak_memory
from pipesched.words import LANGUAGES, sentence
from scenarios import scenarios


def studied(**settings):
    return run(**settings).study


def sums(**settings):
    """Idle time per sort, without those that there is nothing of."""
    seen = studied(**settings)
    return {sort: seen.timeline.costs.time(ticks) for sort, ticks in totals(seen).items() if ticks}


@given(scenarios())
def test_every_idle_tick_has_exactly_one_sort(scenario):
    seen = run(scenario).study
    timeline = seen.timeline
    for device in range(timeline.schedule.devices):
        for gap in timeline.gaps(device):
            parts = shares(seen, gap)
            assert [gap.start, *(part.end for part in parts)] == [*(part.start for part in parts), gap.end]
            assert all(part.start < part.end and part.sort in SORTS for part in parts)
            assert all(one.sort != other.sort for one, other in pairwise(parts))


@given(scenarios())
def test_the_sorts_of_all_devices_add_up_to_the_bubble(scenario):
    seen = run(scenario).study
    timeline = seen.timeline
    busy = sum(sum(ends) - sum(starts) for starts, ends in zip(timeline.starts, timeline.ends, strict=True))
    assert sum(totals(seen).values()) == timeline.schedule.devices * timeline.end - busy


@given(scenarios())
def test_before_the_first_operation_it_is_fill_and_after_the_last_one_finished(scenario):
    seen = run(scenario).study
    timeline = seen.timeline
    found = totals(seen)
    assert found["fill"] == sum(starts[0] for starts in timeline.starts if starts)
    assert found["finished"] == sum(timeline.end - (ends[-1] if ends else 0) for ends in timeline.ends)


@given(scenarios())
def test_what_could_have_run_had_all_its_values_and_stood_later_in_the_row(scenario):
    """Arrivals are counted anew, from the papers' rules."""
    seen = run(scenario).study
    timeline, schedule = seen.timeline, seen.timeline.schedule
    for device, row in enumerate(schedule.rows):
        for gap in timeline.gaps(device):
            if gap.before is None:
                assert could_have_run(seen, gap) == []
                continue
            free = gap.start
            if gap.before and (device, gap.before - 1) in seen.senders:
                free += timeline.costs.latency
            expected = {}
            for i in range(gap.before + 1, len(row)):
                if timeline.costs.of(row[i]) and all(op.kind != "U" for op in row[i].ops):
                    ready = max(free, *(arrived(timeline, device, op) for op in row[i].ops))
                    if ready < gap.end:
                        expected[i] = ready
            assert {chance.place.i: chance.ready for chance in could_have_run(seen, gap)} == expected


def arrived(timeline, device, op):
    """When everything that ``op`` needs is on ``device``."""
    schedule, latest = timeline.schedule, 0
    for makers in sources(*op, schedule.stages, schedule.streams):
        for maker in makers:
            if maker in timeline.position:
                home, i = timeline.position[maker]
                latest = max(latest, timeline.ends[home][i] + timeline.costs.latency * (home != device))
    return latest


@given(scenarios())
def test_order_is_said_only_where_something_could_have_run_and_forward_only_where_nothing_could(scenario):
    seen = run(scenario).study
    for device, row in enumerate(seen.timeline.schedule.rows):
        for gap in seen.timeline.gaps(device):
            chances = could_have_run(seen, gap)
            for sort, start, end in shares(seen, gap):
                ready = [row[chance.place.i] for chance in chances if chance.ready < end]
                if sort in ("order", "memory_limit"):
                    assert any(chance.ready <= start for chance in chances)
                elif sort == "forward":
                    assert not ready
                elif sort in ("backward", "drain"):
                    assert all(op.kind == "F" for cell in ready for op in cell.ops) or all(
                        any(op.kind == "F" for op in cell.ops) for cell in ready
                    )


@given(scenarios())
def test_without_latency_nothing_is_put_down_to_it_and_with_equal_stages_nothing_to_a_slow_one(scenario):
    seen = run(scenario).study
    found = totals(seen)
    if not scenario.comm:
        assert found["latency"] == 0
    if run(scenario).metrics.bottleneck_stage is None:
        assert found["slow_stage"] == 0
    if scenario.schedule != "zb_auto":
        assert found["memory_limit"] == 0


@given(scenarios())
def test_a_chain_leads_back_to_time_0_and_each_end_fixed_the_next_start(scenario):
    timeline = run(scenario).timeline
    for device, starts in enumerate(timeline.starts):
        if not starts:
            continue
        later = (device, len(starts) - 1)
        for place in chain(timeline, *later):
            waited = timeline.starts[later[0]][later[1]] - timeline.ends[place.device][place.i]
            assert waited in (0, timeline.costs.latency)
            later = place
        assert timeline.starts[later[0]][later[1]] == 0


@given(scenarios())
def test_why_not_can_be_said_and_counts_the_memory_of_the_changed_row(scenario):
    seen = run(scenario).study
    timeline = seen.timeline
    for device, row in enumerate(timeline.schedule.rows):
        for gap in timeline.gaps(device):
            for chance in could_have_run(seen, gap)[:2]:
                message = why_not(seen, gap, chance, scenario.schedule)
                for language in LANGUAGES:
                    assert "{" not in sentence(message, language)
                if message.key == "why_not.memory":
                    assert message.params["keeps"] == peak_memory(row) < message.params["would"]


def test_the_first_view_only_fills_and_finishes():
    """GPipe fig. 2: device k waits k steps for the first micro-batch and is done K - 1 - k steps before the others."""
    assert sums() == {"fill": 3, "finished": 3}


def test_gpipe_fills_drains_and_finishes_with_k_minus_1_times_f_and_b_each_device():
    """(K - 1)(f + b) per device in all (Megatron-LM s2.2.1), k f of it before and k b after device k's work."""
    found = sums(schedule="gpipe", devices=4, micro_batches=8)
    assert found == {"fill": 0 + 1 + 2 + 3, "finished": 2 * (0 + 1 + 2 + 3), "drain": 36 - 18}


def test_the_warm_up_of_1f1b_waits_for_the_next_stage_s_backward_and_its_end_drains():
    found = sums(schedule="1f1b", devices=4, micro_batches=8)
    assert sum(found.values()) == 36
    assert (found["fill"], found["finished"]) == (6, 12)
    assert set(found) == {"fill", "finished", "backward", "drain"}


def test_a_device_behind_a_slow_stage_is_starved_by_it_at_any_distance():
    """Stage 2 gives one micro-batch in 2 steps, stages 3 and 4 take 1: each waits 1 step before every later one."""
    found = sums(devices=4, micro_batches=5, slow_stage=2, slow_factor=2)
    assert found["slow_stage"] == 2 * (5 - 1)
    assert set(found) == {"fill", "slow_stage", "finished"}


def test_one_stream_of_tokens_waits_for_the_token_before():
    """K = 3, one stream: each token leaves a device idle for the 2 steps the others take."""
    found = sums(schedule="decode", devices=3, micro_batches=1, tokens=4)
    assert found == {"fill": 3, "forward": 3 * 2 * 3, "finished": 3}


def test_a_blocking_send_is_latency():
    found = sums(devices=2, micro_batches=2, comm=2, send="blocking")
    assert found["latency"] == 2 + 2  # device 1 between its forwards; device 2, whose wait that causes
    assert set(found) == {"fill", "latency", "finished"}


def test_every_hop_of_the_round_trip_is_latency():
    """1F1B, K = 2, M = 1: device 1 waits for F and B of stage 2, there and back over one hop each."""
    assert sums(schedule="1f1b", devices=2, micro_batches=1, comm=3)["latency"] == 6
    (gap,) = (gap for gap in run(schedule="1f1b", devices=2, micro_batches=1, comm=3).timeline.gaps(0))
    parts = shares(studied(schedule="1f1b", devices=2, micro_batches=1, comm=3), gap)
    assert [(part.sort, part.end - part.start) for part in parts] == [("latency", 3), ("drain", 3), ("latency", 3)]


def test_a_tight_memory_limit_is_what_holds_zb_auto_back():
    tight = sums(schedule="zb_auto", devices=4, micro_batches=8, memory_limit=2)
    wide = sums(schedule="zb_auto", devices=4, micro_batches=8, memory_limit=16)
    assert tight["memory_limit"] > 0
    assert "memory_limit" not in wide


def test_a_weight_gradient_put_off_past_a_gap_is_held_back_by_the_order_alone():
    order = "0F0 0I0 0F1 0I1 0W0 0W1\n1F0 1I0 1F1 1I1 1W0 1W1"
    seen = studied(schedule="order", order=order)
    gap = list(seen.timeline.gaps(0))[1]  # before 0I1
    assert [part.sort for part in shares(seen, gap)] == ["order"]
    (weight,) = could_have_run(seen, gap)
    message = why_not(seen, gap, weight, "order")
    assert message.key == "why_not.order"


def test_why_1f1b_does_not_run_forward_5_in_its_first_gap():
    seen = studied(schedule="1f1b", devices=4, micro_batches=8)
    gap = next(seen.timeline.gaps(0))
    chance = could_have_run(seen, gap)[0]
    assert sentence(why_not(seen, gap, chance, "1f1b"), "en") == (
        "Why not run forward of micro-batch 5 on stage 1 here? It could have started at 4, but then the device would "
        "hold 5 activations at its peak and not 4: the order of 1F1B first runs backward of micro-batch 1 on stage 1."
    )


@pytest.mark.parametrize("kept", [1, Fraction(1, 2)])
def test_a_limit_is_full_where_one_more_activation_would_exceed_it(kept):
    timeline = run(schedule="zb_h1", devices=4, micro_batches=8).timeline
    seen = study(timeline, Limit(4, kept))
    for device, row in enumerate(timeline.schedule.rows):
        for i in range(len(row)):
            held = sum({"F": 1, "I": kept - 1, "W": -kept}[cell.kind] for cell in row[:i])
            assert (i in seen.full[device]) == (held + 1 > 4)
