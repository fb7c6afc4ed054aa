"""A constant batch: the optimum is where theory puts it, and the simulation agrees."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipesched import Scenario, ScenarioError, run
from pipesched.batch import optimum, total
from pipesched.report import batch
from pipesched.trade import batches

NUMBER = st.sampled_from([1, 2, Fraction(1, 3), Fraction(5, 2), 7, 40])


@given(st.integers(2, 16), st.integers(1, 300), NUMBER, NUMBER, st.sampled_from([7, 64, 1024]))
def test_the_best_whole_numbers_are_the_best_of_all_of_them(devices, size, a, c, most):
    best = optimum(devices, size, a, c, most)
    counts = range(1, min(size, most) + 1)
    assert best.whole == min(counts, key=lambda m: (total(m, devices, size, a, c), m))
    divisors = [m for m in counts if size % m == 0]
    assert best.divisor == min(divisors, key=lambda m: (total(m, devices, size, a, c), m))
    assert best.least <= float(total(best.whole, devices, size, a, c)) * (1 + 1e-12)


def test_m_star_is_that_of_the_formula():
    """M* = sqrt((K-1) c B / a), T* = (sqrt(cB) + sqrt((K-1) a))^2: here sqrt(3·64/3) = 8 and (8 + 3)^2 = 121."""
    best = optimum(4, 64, 3, 1, 1024)
    assert (best.star, best.least, best.whole) == (8, 121, 8)
    assert total(8, 4, 64, 3, 1) == 121


def test_without_a_fixed_cost_or_with_one_device_there_is_nothing_to_weigh():
    assert optimum(4, 64, 0, 1, 1024) is None
    assert optimum(1, 64, 1, 1, 1024) is None


@given(
    st.sampled_from(["forward", "gpipe", "1f1b"]),
    st.integers(2, 5),
    st.integers(1, 12),
    st.integers(1, 5),
    NUMBER,
    NUMBER,
)
def test_the_simulation_takes_what_the_formula_says(schedule, devices, count, more, a, c):
    """(M + K - 1)(a + cB/M) in units of f + b."""
    size = count * more + more // 2
    result = run(schedule=schedule, devices=devices, micro_batches=count, batch=size, overhead=a, per_sample=c)
    unit = 1 if schedule == "forward" else 3
    assert result.metrics.makespan == pytest.approx(float(unit * total(count, devices, size, a, c)), rel=1e-12)
    assert not result.theory.textbook


def test_the_best_m_is_offered_and_is_the_best_of_the_simulated_ones():
    result = run(schedule="1f1b", devices=4, micro_batches=4, batch=64, overhead=3)
    lines, best = batch(result, "en")
    assert best == 8
    assert "here 8, where it takes 363" in lines[1]
    rows = list(batches(result.scenario))
    assert [row.count for row in rows] == [1, 2, 4, 8, 16, 32, 64]
    assert min(rows, key=lambda row: row.makespan).count == best
    assert [row.settings for row in rows][2:4] == [{}, {"micro_batches": 8}]


@given(st.sampled_from([1, 2, 4]), st.sampled_from([0, 1, Fraction(1, 3)]), st.sampled_from([0, Fraction(1, 2)]))
def test_all_reduces_and_their_latency_move_the_optimum_as_they_move_the_step(t, link, latency):
    settings = {"schedule": "gpipe", "devices": 4, "micro_batches": 6, "batch": 48, "overhead": 1, "tensor": t}
    result = run(**settings, all_reduce=link, all_reduce_latency=latency)
    _, best = batch(result, "en")
    rows = list(batches(result.scenario))
    least = min(rows, key=lambda row: row.makespan).count
    assert (best or 6) == least


def test_a_pipe_that_is_not_plain_gets_no_formula():
    lines, best = batch(run(schedule="zb_h1", devices=4, micro_batches=8, batch=64, overhead=1), "en")
    assert best is None
    assert "does not apply" in lines[1]
    assert batch(run(), "en") == ([], None)


def test_more_micro_batches_than_samples_are_refused():
    with pytest.raises(ScenarioError) as caught:
        run(batch=3)
    assert caught.value.field == "batch"
    assert [run(**{"batch": 3, **repair}).metrics.makespan for repair in caught.value.repairs] == [5, 6]


def test_a_batch_of_as_many_samples_as_micro_batches_changes_nothing():
    assert run(batch=4).metrics == run().metrics


def test_samples_that_do_not_divide_are_noted():
    assert [note.message.key for note in run(micro_batches=4, batch=10).notes] == ["note.batch"]
    assert run(micro_batches=4, batch=12).notes == []


@given(st.integers(1, 8), st.integers(1, 40))
def test_the_work_is_the_same_whatever_m(count, size):
    assume(count <= size)
    result = run(micro_batches=count, batch=size)
    assert sum(result.metrics.busy) == pytest.approx(3 * size)


def test_a_weight_update_does_not_depend_on_the_batch():
    costs = Scenario(batch=8, update=5, overhead=1).costs(3, 3)
    assert costs.time(costs.durations["U"][0]) == 5
    assert costs.time(costs.durations["F"][0]) == 3
