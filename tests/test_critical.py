"""Critical path, slack and what-ifs, held against an independent longest path."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import longest_paths
from pipesched import run
from pipesched.critical import best_gain, critical_path, gain, slacks, spans, turning_point
from scenarios import scenarios


def length(timeline, place):
    return timeline.ends[place.device][place.i] - timeline.starts[place.device][place.i]


@given(scenarios())
def test_lengths_and_hops_of_the_critical_path_are_the_makespan(scenario):
    timeline = run(scenario).timeline
    path = critical_path(timeline)
    hops = 0
    for one, next_one in pairwise(path):
        waited = timeline.starts[next_one.device][next_one.i] - timeline.ends[one.device][one.i]
        assert waited in (0, timeline.costs.latency)
        hops += waited
    assert timeline.starts[path[0].device][path[0].i] == 0
    assert sum(length(timeline, place) for place in path) + hops == timeline.end


@given(scenarios())
def test_there_is_no_slack_on_the_critical_path_and_none_is_negative(scenario):
    timeline = run(scenario).timeline
    found = slacks(timeline)
    assert [len(row) for row in found] == [len(row) for row in timeline.schedule.rows]
    assert min(slack for row in found for slack in row) == 0
    assert all(found[place.device][place.i] == 0 for place in critical_path(timeline))


@given(scenarios(), st.data())
def test_an_operation_late_by_its_slack_delays_nothing_and_by_more_delays_the_end(scenario, data):
    """Simulated anew by an independent longest path, with one operation that takes longer."""
    timeline = run(scenario).timeline
    rows, unit = timeline.schedule.rows, timeline.costs.ticks_per_unit
    device = data.draw(st.integers(0, len(rows) - 1))
    if not rows[device]:
        return
    i = data.draw(st.integers(0, len(rows[device]) - 1))
    slack = slacks(timeline)[device][i]
    assert end_with(scenario, timeline, (device, i), Fraction(slack, unit)) == Fraction(timeline.end, unit)
    assert end_with(scenario, timeline, (device, i), Fraction(slack + 1, unit)) == Fraction(timeline.end + 1, unit)


def end_with(scenario, timeline, late, by):
    """The makespan, in units, where the operation at ``late`` takes ``by`` longer."""
    rows = timeline.schedule.rows
    starts = longest_paths(scenario, rows, timeline.schedule.streams, {late: by})
    unit = timeline.costs.ticks_per_unit
    return max(
        start + Fraction(timeline.costs.of(cell), unit) + (by if (device, i) == late else 0)
        for device, row in enumerate(rows)
        for i, (cell, start) in enumerate(zip(row, starts[device], strict=True))
    )


@given(scenarios())
def test_spans_cover_the_critical_path_and_no_more(scenario):
    timeline = run(scenario).timeline
    path = critical_path(timeline)
    covered = list(spans(timeline, path))
    assert sum(end - start for _, start, end in covered) == sum(length(timeline, place) for place in path)
    for place in path:
        start, end = timeline.starts[place.device][place.i], timeline.ends[place.device][place.i]
        assert any(d == place.device and a <= start and end <= b for d, a, b in covered)


@given(scenarios())
def test_the_stage_that_gains_most_is_found_without_trying_all(scenario):
    timeline = run(scenario).timeline
    gains = [gain(timeline, stage) for stage in range(timeline.schedule.stages)]
    best = best_gain(timeline, 10**9)
    assert best.ticks == max(one.ticks for one in gains) >= 0
    assert gains[best.stage] == best
    assert best_gain(timeline, len(timeline.position) - 1) is None


@given(scenarios(schedules=["forward", "gpipe", "1f1b", "sequential"], extras=False))
def test_a_stage_faster_by_a_tenth_is_one_with_nine_tenths_of_its_time(scenario):
    """Typed as stage times, instead of scaled ticks; these schedules' orders do not depend on the times."""
    result = run(scenario)
    timeline, stages = result.timeline, result.timeline.schedule.stages
    factors = [Fraction(factor) * scenario.share(stages, scenario.devices) for factor in scenario.factors(stages)]
    for stage in range(stages):
        times = [factor * Fraction(9, 10) if s == stage else factor for s, factor in enumerate(factors)]
        faster = run(scenario, stage_times=times, slow_factor=1).timeline
        saved = Fraction(timeline.end, timeline.costs.ticks_per_unit) - Fraction(
            faster.end, faster.costs.ticks_per_unit
        )
        assert gain(timeline, stage).ticks == saved * timeline.costs.ticks_per_unit


@pytest.mark.parametrize(
    ("times", "slow", "point"),
    [
        ("1 1 1", 1, 1),
        ("1 2 3", 1, Fraction(3, 2)),
        ("1 2 3", 0, 3),
        ("1 2 3", 2, None),  # it is the bottleneck whatever the factor
        ("1 9 1", 0, None),  # 9 is more than the slider has
        ("0.75 1 1", 0, Fraction(4, 3)),
    ],
)
@pytest.mark.parametrize("factor", [1, 2, Fraction(7, 3)])
def test_the_bottleneck_moves_where_the_slow_stage_has_as_much_work_as_the_others(times, slow, point, factor):
    settings = {"stage_times": times, "slow_stage": slow + 1}
    timeline = run(**settings, slow_factor=factor).timeline
    assert turning_point(timeline, slow, factor) == point
    if point and point > 1:
        assert run(**settings, slow_factor=point * Fraction(101, 100)).metrics.bottleneck_stage == slow
        assert run(**settings, slow_factor=point * Fraction(99, 100)).metrics.bottleneck_stage != slow


def test_one_stage_alone_has_nowhere_to_move_the_bottleneck_to():
    assert turning_point(run(devices=1).timeline, 0, 1) is None
