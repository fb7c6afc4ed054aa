"""Numbers and closed forms that others published, and those worked out by hand."""

import json
import re
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import durations, lower_bound
from pipesched import run
from pipesched.bounds import FORMS
from pipesched.schedules import REGISTRY
from scenarios import scenarios

DATA = Path(__file__).parent / "data" / "published.jsonl"
ROWS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


def label(row):
    times = "-".join(str(row[key]) for key in ("t_f", "t_b", "t_w", "t_comm"))
    return f"{row['schedule']}-K{row['K']}-M{row['M']}-{times}"


@pytest.mark.parametrize("row", ROWS, ids=label)
def test_published_rows_are_reproduced(row):
    metrics = run(
        schedule=row["schedule"],
        devices=row["K"],
        micro_batches=row["M"],
        forward=row["t_f"],
        input_grad=row["t_b"],
        weight_grad=row["t_w"],
        comm=row["t_comm"],
    ).metrics
    assert metrics.makespan == row["makespan"], row["source"]
    assert metrics.longest_span == row["max_device_span"], row["source"]
    assert round(metrics.bubble_fraction_of_total, 6) == row["bubble_fraction_of_total"], row["source"]
    assert round(metrics.bubble_rate_of_span, 6) == row["bubble_rate_of_span"], row["source"]
    assert list(metrics.peak_activations) == row["peak_activations_per_device"], row["source"]
    if "published_bubble_rate" in row:
        assert round(metrics.bubble_rate_of_span, 4) == row["published_bubble_rate"], row["source"]


# Zero Bubble Pipeline Parallelism (ICLR 2024), column 1F1B of Table 5 with the profiled times of Table 6:
# devices, micro-batches, forward, input gradient, weight gradient, hop, bubble rate.
ZERO_BUBBLE_TABLE_5 = [
    (8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431),
    (8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985),
    (8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240),
    (8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347),
    (8, 32, 29.802, 29.428, 19.530, 0.577, 0.1898),
    (8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091),
    (16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552),
    (16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082),
    (16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251),
    (32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646),
    (32, 128, 10.408, 10.204, 7.703, 0.408, 0.2168),
    (32, 256, 10.402, 10.248, 7.698, 0.460, 0.1352),
]


@pytest.mark.parametrize(("K", "M", "f", "i", "w", "c", "rate"), ZERO_BUBBLE_TABLE_5)
def test_1f1b_has_the_bubble_rates_of_the_zero_bubble_paper(K, M, f, i, w, c, rate):
    metrics = run(
        schedule="1f1b", devices=K, micro_batches=M, forward=f, input_grad=i, weight_grad=w, comm=c
    ).metrics
    assert round(metrics.bubble_rate_of_span, 4) == rate


def test_three_stages_and_four_micro_batches_take_6_instead_of_12_and_give_the_first_result_at_3():
    metrics = run(devices=3, micro_batches=4).metrics
    assert (metrics.makespan, metrics.sequential_makespan, metrics.first_output, metrics.speedup) == (6, 12, 3, 2)


def test_one_micro_batch_gains_nothing():
    metrics = run(devices=3, micro_batches=1).metrics
    assert (metrics.makespan, metrics.sequential_makespan, metrics.speedup) == (3, 3, 1)


def test_a_middle_stage_twice_as_slow_takes_10_instead_of_16_and_the_queue_stands_before_it():
    metrics = run(devices=3, micro_batches=4, slow_factor=2).metrics
    assert (metrics.makespan, metrics.sequential_makespan, metrics.bottleneck_stage) == (10, 16, 1)
    inputs, slow, after = metrics.peak_queue
    assert inputs == 3  # all four are there at time 0, and the first starts at once
    assert slow == 2  # arrivals at 1 2 3 4, starts at 1 3 5 7: two wait from 4 to 5
    assert after == 0


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_gpipe_and_1f1b_take_33_for_4_devices_and_8_micro_batches(schedule):
    """(M + K - 1)(f + b) with f=1, b=2: Megatron-LM (arXiv 2104.04473) s2.2.1."""
    metrics = run(schedule=schedule, devices=4, micro_batches=8).metrics
    assert metrics.makespan == 33
    assert metrics.bubble_fraction_of_ideal == 3 / 8


@pytest.mark.parametrize("K", [1, 2, 3, 7])
@pytest.mark.parametrize("M", [1, 5])
def test_sequential_leaves_k_minus_1_of_k_idle(K, M):
    """Naive model parallelism: GPipe (arXiv 1811.06965) figure 2b."""
    assert run(schedule="sequential", devices=K, micro_batches=M).metrics.bubble_fraction_of_total == (K - 1) / K


def letters(scenario):
    length = durations(scenario)
    f, b = ([length[kind, s] for s in range(scenario.devices)] for kind in "FB")
    return scenario.devices, scenario.micro_batches, f, b, Fraction(scenario.comm)


def makespan(scenario):
    timeline = run(scenario).timeline
    return Fraction(timeline.end, timeline.costs.ticks_per_unit)


@given(scenarios(["sequential"]))
def test_sequential_takes_m_whole_journeys(scenario):
    K, M, f, b, c = letters(scenario)
    assert makespan(scenario) == M * (sum(f) + sum(b) + 2 * (K - 1) * c)
    assert set(run(scenario).metrics.peak_activations) == {1}


@given(scenarios(["forward"]))
def test_forward_only_is_a_flow_shop(scenario):
    """sum f + (K-1) c + (M-1) max f: permutation flow shop with identical jobs; (M+K-1) f for equal stages."""
    K, M, f, _, c = letters(scenario)
    assert makespan(scenario) == sum(f) + (K - 1) * c + (M - 1) * max(f)


@given(scenarios(["gpipe"]))
def test_gpipe_is_two_flow_shops_one_after_the_other(scenario):
    """GPipe (arXiv 1811.06965) s2.3, (M+K-1)(f+b) + 2(K-1)c for equal stages, M activations on every device."""
    K, M, f, b, c = letters(scenario)
    assert makespan(scenario) == sum(f) + sum(b) + 2 * (K - 1) * c + (M - 1) * (max(f) + max(b))
    assert set(run(scenario).metrics.peak_activations) == {M}


@given(scenarios(["1f1b"], uneven=False))
def test_1f1b_pays_for_each_round_trip_of_the_micro_batches_in_flight(scenario):
    """Megatron-LM s2.2.1 without latency; with it, K micro-batches in flight share one round trip."""
    K, M, (f, *_), (b, *_), c = letters(scenario)
    assert makespan(scenario) == (M + K - 1) * (f + b) + 2 * c * (K - 1 + M - 1 - ceil(Fraction(M - 1, K)))


@given(scenarios(["1f1b"]))
def test_1f1b_keeps_at_most_k_minus_k_activations(scenario):
    """min(M, K - k) on device k, whatever the times: Megatron-LM s2.2.1."""
    K, M, *_ = letters(scenario)
    assert run(scenario).metrics.peak_activations == tuple(min(M, K - k) for k in range(K))


def test_every_schedule_has_its_theory():
    assert set(FORMS) == set(REGISTRY)


@pytest.mark.parametrize("schedule", REGISTRY)
@given(data=st.data())
def test_theory_equals_the_simulation_or_bounds_it(schedule, data):
    scenario = data.draw(scenarios([schedule]))
    result = run(scenario)
    formula = result.theory.formula
    if formula.relation == "equals":
        assert formula.ticks == result.timeline.end
    else:
        _, M, f, b, c = letters(scenario)
        assert formula.ticks <= result.timeline.end
        assert Fraction(formula.ticks, result.timeline.costs.ticks_per_unit) == lower_bound(f, b, c, M)


@given(scenarios())
def test_the_numbers_put_into_a_formula_give_its_value(scenario):
    formula = run(scenario).theory.formula
    written = "".join(f"({part})" if isinstance(part, int) else part for part in formula.terms)
    arithmetic = written.replace("·", "*").replace("−", "-")
    assert re.fullmatch(r"[\d\s()+*/-]+", arithmetic), written
    assert eval(arithmetic) == formula.ticks


@given(scenarios())
def test_where_the_textbook_is_said_to_apply_it_does(scenario):
    result = run(scenario)
    steps = scenario.micro_batches + scenario.devices - 1
    if not result.theory.textbook:
        assert result.timeline.end == steps * result.theory.step
