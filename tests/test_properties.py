"""What holds for every schedule that is filed, with any times."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import durations, longest_paths, lower_bound, sources
from pipesched import Costs, DeadlockError, Op, Schedule, run, simulate
from pipesched.metrics import measure
from pipesched.schedules import REGISTRY, arrange
from scenarios import scenarios


def ops(schedule):
    return [op for row in schedule.rows for cell in row for op in cell.ops]


def exact(timeline, ticks):
    return Fraction(ticks, timeline.costs.ticks_per_unit)


@given(scenarios())
def test_every_order_is_complete(scenario):
    """Forward once per stage and micro-batch; for training also a whole backward, or its two parts, once."""
    kinds = {}
    for op, times in Counter(ops(arrange(scenario))).items():
        assert times == 1, f"{op} appears {times} times"
        kinds.setdefault((op.stage, op.micro_batch), []).append(op.kind)
    wanted = {(s, j) for s in range(scenario.stages) for j in range(scenario.micro_batches)}
    assert set(kinds) == wanted
    allowed = (["F"],) if REGISTRY[scenario.schedule].family == "inference" else (["B", "F"], ["F", "I", "W"])
    assert all(sorted(found) in allowed for found in kinds.values())


@given(scenarios())
def test_a_stage_lives_on_one_device(scenario):
    homes = {}
    for device, row in enumerate(arrange(scenario).rows):
        for cell in row:
            for op in cell.ops:
                homes.setdefault(op.stage, set()).add(device)
    assert all(len(devices) == 1 for devices in homes.values())


@given(scenarios())
def test_starts_are_the_longest_paths_of_an_independent_oracle(scenario):
    timeline = run(scenario).timeline
    expected = longest_paths(timeline.schedule.rows, durations(scenario), Fraction(scenario.comm))
    assert [[exact(timeline, tick) for tick in starts] for starts in timeline.starts] == expected


@given(scenarios())
def test_blocks_last_as_long_as_the_settings_say(scenario):
    timeline, length = run(scenario).timeline, durations(scenario)
    for row, starts, ends in zip(timeline.schedule.rows, timeline.starts, timeline.ends, strict=True):
        for cell, start, end in zip(row, starts, ends, strict=True):
            assert exact(timeline, end - start) == sum(length[op.kind, op.stage] for op in cell.ops)


@given(scenarios())
def test_a_device_keeps_its_order_and_runs_one_block_at_a_time(scenario):
    timeline = run(scenario).timeline
    assert timeline.schedule == arrange(scenario)
    for starts, ends in zip(timeline.starts, timeline.ends, strict=True):
        assert all(start >= end for start, end in zip(starts[1:], ends, strict=False))


@given(scenarios())
def test_every_value_has_arrived_before_it_is_used(scenario):
    timeline = run(scenario).timeline
    latency = scenario.comm * timeline.costs.ticks_per_unit
    for op, (device, i) in timeline.position.items():
        for makers in sources(*op):
            for maker in makers:
                if maker in timeline.position:
                    home, place = timeline.position[Op(*maker)]
                    arrival = timeline.ends[home][place] + latency * (home != device)
                    assert timeline.starts[device][i] >= arrival


@given(scenarios())
def test_a_start_is_zero_or_bound_by_what_it_names_so_nothing_could_start_earlier(scenario):
    timeline = run(scenario).timeline
    latency = scenario.comm * timeline.costs.ticks_per_unit
    for device, row in enumerate(timeline.schedule.rows):
        for i, cell in enumerate(row):
            start, cause = timeline.starts[device][i], timeline.bound_by[device][i]
            if cause is None:
                assert start == 0
                continue
            home, place = timeline.position[cause.ops[0]]
            needed = {tuple(maker) for op in cell.ops for makers in sources(*op) for maker in makers}
            assert (home, place) == (device, i - 1) or needed & set(map(tuple, cause.ops))
            assert start == timeline.ends[home][place] + (latency if home != device else 0)


@given(scenarios(), st.sampled_from(["0.001", "0.7", "5"]))
def test_more_latency_never_shortens(scenario, more):
    longer = replace(scenario, comm=scenario.comm + Fraction(more))
    assert run(longer).metrics.makespan >= run(scenario).metrics.makespan


@given(scenarios(), st.data())
def test_a_slower_stage_never_shortens(scenario, data):
    times = list(scenario.stage_times or [1] * scenario.stages)
    times[data.draw(st.integers(0, scenario.stages - 1))] *= data.draw(st.sampled_from([Fraction(11, 10), 3]))
    assert run(replace(scenario, stage_times=times)).metrics.makespan >= run(scenario).metrics.makespan


@given(scenarios())
def test_one_more_micro_batch_never_shortens(scenario):
    more = replace(scenario, micro_batches=scenario.micro_batches + 1)
    assert run(more).metrics.makespan >= run(scenario).metrics.makespan


@given(scenarios())
def test_nothing_beats_the_lower_bounds(scenario):
    timeline = run(scenario).timeline
    end, length = exact(timeline, timeline.end), durations(scenario)
    for row in timeline.schedule.rows:
        assert end >= sum(length[op.kind, op.stage] for cell in row for op in cell.ops)
    if any(op.stage != device for device, row in enumerate(timeline.schedule.rows) for cell in row for op in cell.ops):
        return  # the sharper bound is for stage s on device s
    f, b = ([length[kind, s] for s in range(scenario.stages)] for kind in "FB")
    kinds = {op.kind for op in timeline.position}
    if kinds <= {"F", "B"}:
        assert end >= lower_bound(f, b if "B" in kinds else None, Fraction(scenario.comm), scenario.micro_batches)


@given(scenarios())
def test_idle_and_busy_time_fill_every_lane(scenario):
    timeline = run(scenario).timeline
    for device, (starts, ends) in enumerate(zip(timeline.starts, timeline.ends, strict=True)):
        spans = [(gap.start, gap.end) for gap in timeline.gaps(device)]
        spans += [(start, end) for start, end in zip(starts, ends, strict=True) if end > start]
        spans.sort()
        assert [start for start, _ in spans] == [0, *(end for _, end in spans[:-1])]
        assert spans[-1][1] == timeline.end


@given(scenarios())
def test_metrics_equal_their_definitions(scenario):
    result = run(scenario)
    timeline, metrics = result.timeline, result.metrics
    length, devices = durations(scenario), scenario.devices
    busy = [sum(length[op.kind, op.stage] for cell in row for op in cell.ops) for row in timeline.schedule.rows]
    end, total = exact(timeline, timeline.end), sum(busy)
    last = [op for op in timeline.position if (op.stage, op.kind) == (scenario.stages - 1, "F")]
    spans = [exact(timeline, ends[-1] - starts[0]) for starts, ends in zip(timeline.starts, timeline.ends, strict=True)]
    out = min(exact(timeline, timeline.ends[d][i]) for d, i in map(timeline.position.get, last))
    assert metrics.makespan == float(end)
    assert metrics.first_output == float(out)
    assert metrics.busy == tuple(map(float, busy))
    assert metrics.utilisation == tuple(float(b / end) for b in busy)
    assert metrics.bubble_fraction_of_total == float((devices * end - total) / (devices * end))
    assert metrics.bubble_fraction_of_ideal == float((devices * end - total) / total)
    assert metrics.longest_span == float(max(spans))
    assert metrics.bubble_rate_of_span == float((devices * max(spans) - total) / (devices * max(spans)))
    assert metrics.speedup == pytest.approx(metrics.sequential_makespan / metrics.makespan)


@given(scenarios(schedules=[name for name, entry in REGISTRY.items() if entry.family != "inference"]))
def test_time_without_overlap_is_what_the_sequential_schedule_takes(scenario):
    alone = replace(scenario, schedule="sequential")
    assert run(scenario).metrics.sequential_makespan == run(alone).metrics.makespan


@given(scenarios())
def test_without_latency_k_devices_are_at_most_k_times_faster(scenario):
    metrics = run(replace(scenario, comm=0)).metrics
    assert 1 <= metrics.speedup <= scenario.devices


@given(scenarios())
def test_peak_activations_equal_a_direct_count(scenario):
    """Held from the start of F to the end of the B or W that consumes it; counted at every start of a forward."""
    result = run(scenario)
    timeline = result.timeline
    for device, row in enumerate(timeline.schedule.rows):
        place = {op: i for i, cell in enumerate(row) for op in cell.ops}
        held = [
            (timeline.starts[device][i], timeline.ends[device][place[last]])
            for op, i in place.items()
            if op.kind == "F"
            for last in (op._replace(kind="B"), op._replace(kind="W"))
            if last in place
        ]
        counts = [sum(a <= moment < z for a, z in held) for moment, _ in held]
        assert result.metrics.peak_activations[device] == max(counts, default=0)


def test_an_order_that_waits_in_a_circle_is_a_deadlock_that_names_who_waits():
    circle = Schedule(((Op(0, "B", 0), Op(0, "F", 0)), (Op(1, "F", 0), Op(1, "B", 0))))
    with pytest.raises(DeadlockError) as caught:
        simulate(circle, Costs.exact([1, 1], [1, 1], [0, 0]))
    assert caught.value.waiting == {0: Op(0, "B", 0), 1: Op(1, "F", 0)}
    assert "1: 0B0" in str(caught.value)


def test_a_chain_may_mix_whole_and_split_backwards():
    """Stage 1 splits its backward, stage 0 does not: it waits for the input gradient only."""
    mixed = Schedule(((Op(0, "F", 0), Op(0, "B", 0)), (Op(1, "F", 0), Op(1, "I", 0), Op(1, "W", 0))))
    timeline = simulate(mixed, Costs.exact([1, 1], [1, 1], [5, 5]))
    assert timeline.ends == [[1, 3 + 6], [2, 3, 8]]


def test_a_weight_gradient_waits_for_its_input_gradient():
    with pytest.raises(DeadlockError) as caught:
        simulate(Schedule(((Op(0, "F", 0), Op(0, "W", 0), Op(0, "I", 0)),)), Costs.exact([1], [1], [1]))
    assert caught.value.waiting == {0: Op(0, "W", 0)}


def test_a_split_backward_keeps_the_activation_until_its_weight_gradient_ends():
    row = [Op(0, kind, j) for kind, j in (("F", 0), ("I", 0), ("F", 1), ("W", 0), ("I", 1), ("W", 1))]
    assert measure(simulate(Schedule((tuple(row),)), Costs.exact([1], [1], [1]))).peak_activations == (2,)
