"""What holds for every schedule that is filed, with any times."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oracle import count_stages, durations, lasts, longest_paths, lower_bound, sources, split_lower_bound
from pipesched import Costs, DeadlockError, Op, ScenarioError, Schedule, run, simulate
from pipesched.metrics import measure
from pipesched.model import Pair
from pipesched.schedules import REGISTRY, arrange
from scenarios import GREEDY, TRAINED, scenarios

TWO_WAY = ("chimera", "dualpipe")
STEADY = tuple(name for name in REGISTRY if name not in GREEDY)
"""A greedy changes its order with the times, and may do worse where it could do better."""
GROUPED = ("interleaved_1f1b", "interleaved_zb", "looped_dfs")
"""One micro-batch more may give larger groups, which hide more of a hop or of a slow stage: another order."""


def ops(schedule):
    return [op for row in schedule.rows for cell in row for op in cell.ops]


def exact(timeline, ticks):
    return Fraction(ticks, timeline.costs.ticks_per_unit)


def makespan(scenario):
    timeline = run(scenario).timeline
    return exact(timeline, timeline.end)


def makers(timeline, op):
    """Return, for each value that ``op`` needs, the operation of the timeline that makes it."""
    wanted = sources(*op, timeline.schedule.stages, timeline.schedule.streams)
    return [Op(*maker) for value in wanted for maker in value if maker in timeline.position]


@given(scenarios())
def test_every_order_is_complete(scenario):
    """Forward once per stage and micro-batch; for training also a whole backward, or its two parts, once."""
    schedule, kinds = arrange(scenario), {}
    for op, times in Counter(ops(schedule)).items():
        assert times == 1, f"{op} appears {times} times"
        kinds.setdefault((op.stage, op.micro_batch), set()).add(op.kind)
    passes = scenario.micro_batches * (scenario.tokens if scenario.schedule == "decode" else 1)
    if scenario.schedule != "order":
        assert (schedule.devices, schedule.micro_batches) == (scenario.devices, passes)
    wanted = {(s, j) for s in range(schedule.stages) for j in range(schedule.micro_batches)}
    assert set(kinds) == wanted
    family = REGISTRY[scenario.schedule].family
    whole, split = {"F", "B"}, {"F", "I", "W"}
    allowed = [{"F"}] if family == "inference" else [whole, split] if family != "own" else [{"F"}, whole, split]
    for found in kinds.values():
        assert found - {"R", "U"} in allowed
        if family != "own":
            assert ("R" in found) == (family != "inference" and scenario.recompute == "early")


@given(scenarios(schedules=TRAINED))
def test_updates_are_one_per_stage_and_flush_or_as_many_as_the_schedule_says(scenario):
    """A synchronous order ends with one of every stage on the device, if it takes time; an asynchronous has its own."""
    every = {"pipedream": 1, "pipedream_2bw": scenario.group or scenario.devices}.get(scenario.schedule)
    for row in arrange(scenario).rows:
        here = [op for cell in row for op in cell.ops]
        updates, stages = [op for op in here if op.kind == "U"], {op.stage for op in here}
        if every:
            assert [op.micro_batch for op in updates] == list(range(every - 1, scenario.micro_batches, every))
        elif scenario.update:
            assert here[-len(stages) :] == updates
            assert {op.stage for op in updates} == stages
        else:
            assert not updates


@given(scenarios())
def test_a_micro_batch_finds_a_stage_on_one_device_and_a_stage_lives_on_two_only_in_two_way_schedules(scenario):
    of_pair, of_stage = {}, {}
    for device, row in enumerate(arrange(scenario).rows):
        for op in (op for cell in row for op in cell.ops):
            of_pair.setdefault((op.stage, op.micro_batch), set()).add(device)
            of_stage.setdefault(op.stage, set()).add(device)
    assert all(len(devices) == 1 for devices in of_pair.values())
    most = 2 if scenario.schedule in (*TWO_WAY, "order") else 1
    assert all(len(devices) <= most for devices in of_stage.values())


@given(scenarios())
def test_every_device_holds_equally_many_stages(scenario):
    schedule = arrange(scenario)
    held = {len({op.stage for cell in row for op in cell.ops}) for row in schedule.rows}
    if scenario.micro_batches > 1:  # a single micro-batch goes one way
        assert len(held) == 1


@given(scenarios())
def test_a_stage_is_at_home_on_the_devices_that_run_its_forwards(scenario):
    result = run(scenario)
    for stage, devices in enumerate(result.homes):
        ran = {home for op, (home, _) in result.timeline.position.items() if op[:2] == (stage, "F")}
        assert devices == sorted(ran)


@given(scenarios())
def test_starts_are_the_longest_paths_of_an_independent_oracle(scenario):
    timeline = run(scenario).timeline
    expected = longest_paths(scenario, timeline.schedule.rows, timeline.schedule.streams)
    assert [[exact(timeline, tick) for tick in starts] for starts in timeline.starts] == expected


@given(scenarios())
def test_blocks_last_as_long_as_the_settings_say(scenario):
    timeline = run(scenario).timeline
    length = durations(scenario, timeline.schedule.rows)
    for row, starts, ends in zip(timeline.schedule.rows, timeline.starts, timeline.ends, strict=True):
        for cell, start, end in zip(row, starts, ends, strict=True):
            assert exact(timeline, end - start) == lasts(cell, scenario, length)


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
        for maker in makers(timeline, op):
            home, place = timeline.position[maker]
            assert timeline.starts[device][i] >= timeline.ends[home][place] + latency * (home != device)


@given(scenarios())
def test_a_start_is_zero_or_bound_by_what_it_names_so_nothing_could_start_earlier(scenario):
    """Where sending blocks, the block before may hold its device for a hop longer."""
    timeline = run(scenario).timeline
    latency = scenario.comm * timeline.costs.ticks_per_unit
    for device, row in enumerate(timeline.schedule.rows):
        for i, cell in enumerate(row):
            start, cause = timeline.starts[device][i], timeline.bound_by[device][i]
            if cause is None:
                assert start == 0
                continue
            home, place = timeline.position[cause.ops[0]]
            needed = {maker for op in cell.ops for maker in makers(timeline, op)}
            assert (home, place) == (device, i - 1) or needed & set(cause.ops)
            waited = start - timeline.ends[home][place]
            held_up = home == device and place == i - 1 and scenario.send == "blocking"
            assert waited in ({0, latency} if held_up else {latency if home != device else 0})


OWN = """0F0 3F0 0F1 3F1 3B0 (0F2;3B1)OVERLAP_F_B 3F2 0B0 3B2 0B1 0B2
1F0 2F0 1F1 2F1 2B0 1F2 2B1 2F2 1B0 2B2 1B1 1B2"""
OTHERS = {
    "chunks": [1, 3, 4],
    "devices": [2, 6],
    "group": [5, 8],
    "input_grad": [0, 5],
    "memory_limit": [2],
    "micro_batches": [3, 9, 14],
    "order": ["0F0 0F1"],
    "overlap": [5],
    "recompute": ["early", "late"],
    "times_of": ["stage"],
    "tokens": [1, 7],
    "update": [3],
    "weight_grad": [0, 7],
}


def shown(**settings):
    """Return all that a page shows of a scenario that is not in the settings themselves."""
    result = run(**settings)
    timeline, known = result.timeline, result.theory
    ticks = (timeline.end, known.bound, known.value or 0, *(tick for starts in timeline.starts for tick in starts))
    return timeline.schedule, result.metrics, known.form, *(exact(timeline, tick) for tick in ticks)


@pytest.mark.parametrize("schedule", REGISTRY)
def test_the_settings_said_to_be_unused_are_those_that_change_nothing(schedule):
    base = {"schedule": schedule, "devices": 4, "micro_batches": 12, "order": OWN, "comm": "0.5", "slow_factor": 2}
    unused = set()
    for name, others in OTHERS.items():
        found = {str(shown(**base))}
        for value in others:
            try:
                found.add(str(shown(**{**base, name: value})))
            except ScenarioError as error:
                assert error.field == name or (schedule, name) == ("dualpipe", "devices")
        if len(found) == 1:
            unused.add(name)
    assert unused == set(OTHERS) & REGISTRY[schedule].unused


@given(scenarios(STEADY), st.sampled_from(["0.001", "0.7", "5"]))
def test_more_latency_never_shortens(scenario, more):
    assert makespan(replace(scenario, comm=scenario.comm + Fraction(more))) >= makespan(scenario)


@given(scenarios(STEADY), st.data())
def test_a_slower_stage_never_shortens(scenario, data):
    scenario = replace(scenario, all_reduce=0, all_reduce_latency=0)  # what is reduced is no multiple of the factor
    stages, given = arrange(scenario).stages, scenario.stage_times or scenario.split != "none"
    times = [factor * Fraction(1 if given else share(scenario)) for factor in scenario.factors(stages)]
    assume(all(times))  # a stage without layers has no time to be typed
    level = replace(scenario, slow_factor=1, split="none", stage_times=times)
    assert makespan(level) == makespan(scenario)
    times[data.draw(st.integers(0, stages - 1))] *= data.draw(st.sampled_from([Fraction(11, 10), 3]))
    assert makespan(replace(level, stage_times=times)) >= makespan(scenario)


def share(scenario):
    """Return what part of the durations belongs to a stage."""
    schedule = arrange(scenario)
    return Fraction(schedule.devices, schedule.stages) if scenario.times_of == "device" else 1


@given(scenarios())
def test_a_sender_that_is_held_up_never_shortens(scenario):
    free = replace(scenario, send="free")
    assert makespan(replace(scenario, send="blocking")) >= makespan(free)


@given(scenarios(STEADY), st.sampled_from(["early", "late"]))
def test_recomputation_never_shortens(scenario, recompute):
    assert makespan(replace(scenario, recompute=recompute)) >= makespan(replace(scenario, recompute="none"))


@given(scenarios(STEADY), st.sampled_from(["0.5", "3"]))
def test_a_longer_update_never_shortens(scenario, more):
    assert makespan(replace(scenario, update=scenario.update + Fraction(more))) >= makespan(scenario)


@given(scenarios(tuple(name for name in STEADY if name not in (*GROUPED, "order"))))
def test_one_more_micro_batch_never_shortens(scenario):
    """Two more, where they must be even; of one size, since more of a constant batch are smaller."""
    scenario = replace(scenario, batch=None)
    more = scenario.micro_batches + 1
    try:
        longer = replace(scenario, micro_batches=more)
        run(longer)
    except ScenarioError as error:
        assume(error.field == "micro_batches")
        longer = replace(scenario, micro_batches=more + 1)
    assert makespan(longer) >= makespan(scenario)


@given(scenarios(GROUPED))
def test_one_more_group_never_shortens(scenario):
    whole = replace(scenario, micro_batches=2 * scenario.devices, group=None, batch=None)
    assert makespan(replace(whole, micro_batches=3 * scenario.devices)) >= makespan(whole)


@given(scenarios())
def test_nothing_beats_the_lower_bounds(scenario):
    result = run(scenario)
    timeline, rows = result.timeline, result.timeline.schedule.rows
    assert timeline.end >= result.theory.bound
    end, length = exact(timeline, timeline.end), durations(scenario, rows)
    for row in rows:
        assert end >= sum(lasts(cell, scenario, length) for cell in row)
    if any(
        len(cell.ops) > 1 or op.stage != device for device, row in enumerate(rows) for cell in row for op in cell.ops
    ):
        return  # the sharper bounds are for stage s on device s
    kinds, latency = {op.kind for op in timeline.position} - {"R", "U"}, Fraction(scenario.comm)
    f, b, i, w = ([length[kind, s] for s in range(count_stages(rows))] for kind in "FBIW")
    if kinds <= {"F", "B"}:
        passes = timeline.schedule.micro_batches
        assert end >= lower_bound(f, b if "B" in kinds else None, latency, passes)
    elif kinds == {"F", "I", "W"}:
        assert end >= split_lower_bound(f, i, w, latency, timeline.schedule.micro_batches)


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
    timeline, metrics, rows = result.timeline, result.metrics, result.timeline.schedule.rows
    length, devices, stages = durations(scenario, rows), len(rows), count_stages(rows)
    busy = [sum(lasts(cell, scenario, length) for cell in row) for row in rows]
    end, total = exact(timeline, timeline.end), sum(busy)
    last = [op for op in timeline.position if (op.stage, op.kind) == (stages - 1, "F")]
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
    assert metrics.peak_micro_batches == tuple(float(Fraction(p * devices, stages)) for p in metrics.peak_activations)
    work = [
        sum(length[op.kind, s] for op in timeline.position if op[::2] == (s, 0) and op.kind != "U")
        for s in range(stages)
    ]
    assert metrics.bottleneck_stage == (None if len(set(work)) == 1 else work.index(max(work)))


@given(scenarios())
def test_time_without_overlap_is_every_operation_and_every_hop_one_after_another(scenario):
    timeline = run(scenario).timeline
    length = durations(scenario, timeline.schedule.rows)
    hops = sum(
        timeline.position[maker][0] != device
        for op, (device, _) in timeline.position.items()
        for maker in makers(timeline, op)
    )
    alone = sum(length[op.kind, op.stage] for op in timeline.position)
    assert run(scenario).metrics.sequential_makespan == float(alone + hops * Fraction(scenario.comm))


@given(scenarios(TRAINED, extras=False))
def test_time_without_overlap_is_what_the_sequential_schedule_takes(scenario):
    """On as many devices as there are stages: where chunks share a device, some hops are none."""
    assume(arrange(scenario).stages == scenario.devices)
    alone = replace(scenario, schedule="sequential")
    assert run(scenario).metrics.sequential_makespan == run(alone).metrics.makespan


@given(scenarios())
def test_without_latency_k_devices_are_at_most_k_times_faster(scenario):
    result = run(replace(scenario, comm=0, overlap=None))
    assert 1 <= result.metrics.speedup <= result.timeline.schedule.devices


@given(scenarios())
def test_peak_activations_equal_a_direct_count(scenario):
    """Held from the start of F to the end of the B or W that consumes it; counted at every start of a forward."""
    result = run(scenario)
    timeline = result.timeline
    assume(all(timeline.costs.durations["F"]))  # on a stage without layers no moment lies between start and end
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
    stuck = caught.value.timeline.stuck
    assert {device: link.cell for device, link in stuck.items()} == {0: Op(0, "B", 0), 1: Op(1, "F", 0)}
    assert caught.value.circle == ((0, Op(0, "B", 0), Op(0, "F", 0)),)
    assert "device 1 stands before 0B0, which needs 0F0" in str(caught.value)


def test_a_chain_may_mix_whole_and_split_backwards():
    """Stage 1 splits its backward, stage 0 does not: it waits for the input gradient only."""
    mixed = Schedule(((Op(0, "F", 0), Op(0, "B", 0)), (Op(1, "F", 0), Op(1, "I", 0), Op(1, "W", 0))))
    timeline = simulate(mixed, Costs.exact([1, 1], [1, 1], [5, 5]))
    assert timeline.ends == [[1, 3 + 6], [2, 3, 8]]


def test_a_weight_gradient_waits_for_its_input_gradient():
    with pytest.raises(DeadlockError) as caught:
        simulate(Schedule(((Op(0, "F", 0), Op(0, "W", 0), Op(0, "I", 0)),)), Costs.exact([1], [1], [1]))
    assert caught.value.circle == ((0, Op(0, "W", 0), Op(0, "I", 0)),)


def test_both_values_of_an_overlapped_pair_are_there_at_its_end():
    pair = Pair(Op(0, "F", 1), Op(0, "B", 0))
    rows = ((Op(0, "F", 0), pair, Op(0, "B", 1)), (Op(1, "F", 0), Op(1, "B", 0), Op(1, "F", 1), Op(1, "B", 1)))
    timeline = simulate(Schedule(rows), Costs.exact([1, 1], [1, 1], [1, 1], overlap=Fraction(1, 2)))
    assert [[timeline.costs.time(end) for end in ends] for ends in timeline.ends] == [[1, 5.5, 10.5], [2, 4, 6.5, 8.5]]


def test_a_split_backward_keeps_the_activation_until_its_weight_gradient_ends():
    row = [Op(0, kind, j) for kind, j in (("F", 0), ("I", 0), ("F", 1), ("W", 0), ("I", 1), ("W", 1))]
    assert measure(simulate(Schedule((tuple(row),)), Costs.exact([1], [1], [1]))).peak_activations == (2,)


def test_who_blocks_while_sending_is_whoever_makes_what_another_device_needs():
    """Forwards on device 0, backwards on device 1: each forward is sent, and holds device 0 up for a hop."""
    forwards, backwards = [Op(0, "F", 0), Op(0, "F", 1)], [Op(0, "B", 0), Op(0, "B", 1)]
    costs = Costs.exact([1], [1], [1], 5, blocks=True)
    assert simulate(Schedule((tuple(forwards), tuple(backwards))), costs).starts == [[0, 6], [6, 12]]
