"""Closed forms and lower bounds: a form equals the simulation wherever all it needs holds, no result beats a bound."""

import re
from collections import Counter
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracle import durations, lower_bound, split_lower_bound
from pipesched import run
from pipesched.bounds import FORMS, _Pipe, gpipe_makespan
from pipesched.schedules import REGISTRY
from scenarios import scenarios, settled, tidy


def test_schedules_without_a_closed_form_are_known_by_name():
    """Two greedies; no form is known for the fourth, an order of one's own has none."""
    assert set(REGISTRY) - set(FORMS) == {"zb_auto", "wave", "interleaved_zb", "order"}


def holds(scenario):
    """Tell whether the form of a scenario, if it has one that applies, is what the simulation gives."""
    result, known = run(scenario), run(scenario).theory
    timeline = result.timeline
    if known.value is None:
        return None
    idle = [timeline.end - sum(ends) + sum(starts) for starts, ends in zip(timeline.starts, timeline.ends, strict=True)]
    spans = [ends[-1] - starts[0] for starts, ends in zip(timeline.starts, timeline.ends, strict=True)]
    simulated = {"makespan": timeline.end, "longest_span": max(spans), "idle": max(idle)}[known.form.of]
    assert known.value == simulated, known.form
    return known.form.symbols


@pytest.mark.parametrize("schedule", FORMS)
@settings(max_examples=30)
@given(data=st.data())
def test_a_closed_form_gives_what_is_simulated(schedule, data):
    """For any settings: where not all it needs holds, it says nothing."""
    holds(data.draw(scenarios([schedule])))


@pytest.mark.parametrize("schedule", FORMS)
def test_a_closed_form_gives_what_is_simulated_where_it_applies(schedule):
    """For settings of the kind it is for, of which at least a sixth satisfy all it needs."""
    met = Counter()

    @settings(max_examples=40)
    @given(tidy([schedule]))
    def check(scenario):
        met[holds(scenario) is not None] += 1

    check()
    assert met[True] >= met.total() / 6, met


@pytest.mark.parametrize("schedule", FORMS)
def test_each_closed_form_applies_somewhere(schedule):
    base, applied, forms = {"schedule": schedule, "devices": 4, "micro_batches": 12}, set(), []
    for more in (
        {},
        {"slow_factor": 2},
        {"recompute": "early"},
        {"send": "blocking", "comm": 1},
        {"micro_batches": 2},
        {"input_grad": "1/2"},
    ):
        result = run(settled({**base, **more}))
        forms = FORMS[schedule](_Pipe(result.scenario, result.timeline))
        applied.add(next((place for place, form in enumerate(forms) if not form.unmet), None))
        holds(result.scenario)
    assert applied - {None} == set(range(len(forms)))


@given(scenarios())
def test_the_bound_is_no_weaker_than_the_published_ones(scenario):
    """For stage s on device s: flow shop, its extension to whole backwards, Zero Bubble's for split ones."""
    result = run(scenario)
    timeline, rows = result.timeline, result.timeline.schedule.rows
    assume(timeline.schedule.stages == len(rows) and not timeline.schedule.streams)
    assume(all(len(cell.ops) == 1 and cell.stage == device for device, row in enumerate(rows) for cell in row))
    length, M, c = durations(scenario, rows), timeline.schedule.micro_batches, Fraction(scenario.comm)
    f, b, i, w = ([length[kind, s] for s in range(len(rows))] for kind in "FBIW")
    kinds, bound = {op.kind for op in timeline.position}, Fraction(result.theory.bound, timeline.costs.ticks_per_unit)
    if kinds <= {"F", "B"}:
        assert bound >= lower_bound(f, b if "B" in kinds else None, c, M)
    elif kinds == {"F", "I", "W"}:
        assert bound >= split_lower_bound(f, i, w, c, M)


def evaluated(terms):
    """Work out a formula by Python's own arithmetic, on fractions."""
    written = "".join(f"({part})" if isinstance(part, int) else part for part in terms)
    arithmetic = written.replace("·", "*").replace("−", "-").replace("⌈", "ceil(").replace("⌉", ")")
    assert re.fullmatch(r"(\d|[\s()+*/,-]|ceil|max|min)+", arithmetic), written
    exact = re.sub(r"\d+", r"Fraction(\g<0>)", arithmetic)
    return eval(exact, {"Fraction": Fraction, "ceil": ceil, "max": max, "min": min})


@given(scenarios(tuple(FORMS)) | tidy(FORMS))
def test_the_numbers_put_into_a_formula_give_its_value(scenario):
    known = run(scenario).theory
    if known.value is None:
        assert known.form.unmet
    else:
        assert evaluated(known.terms) == known.value


@given(scenarios() | tidy(REGISTRY))
def test_where_the_textbook_is_said_to_apply_it_does(scenario):
    result = run(scenario)
    if not result.theory.textbook:
        steps = scenario.micro_batches + scenario.devices - 1
        assert result.timeline.end == steps * result.theory.step


@given(scenarios(["1f1b"]))
def test_what_gpipe_would_take_is_what_it_takes(scenario):
    result = run(scenario)
    found = gpipe_makespan(scenario, result.timeline)
    if found is not None:
        assert found == run(scenario, schedule="gpipe").timeline.end


# Each of these was a wrong number once.


@pytest.mark.parametrize(
    ("settings", "symbols"),
    [
        # One group of M < K micro-batches runs as breadth-first does; of small groups nothing is known.
        ({"schedule": "interleaved_1f1b", "devices": 2, "micro_batches": 1}, "(K · v + M − 1) · (f + b)"),
        ({"schedule": "interleaved_1f1b", "devices": 3, "micro_batches": 2, "group": 1}, None),
        ({"schedule": "looped_dfs", "devices": 2, "micro_batches": 2, "group": 1}, None),
        ({"schedule": "looped_dfs", "devices": 2, "micro_batches": 5}, "(M · v + K − 1) · (f + b)"),
        # Larger groups hide hops.
        ({"schedule": "interleaved_1f1b", "devices": 2, "micro_batches": 4, "group": 4, "comm": "1/4"}, None),
        # ZB-H1 with w > i: the last device ends later.
        (
            {"schedule": "zb_h1", "devices": 2, "micro_batches": 3, "input_grad": "1/2"},
            "M · (f + i + w) + (K − 1) · (f + i − w)",
        ),
        # An overlapped block shorter than its backward, or longer than both its parts.
        ({"schedule": "dualpipe", "devices": 4, "micro_batches": 8, "overlap": 1}, None),
        ({"schedule": "dualpipe_v", "devices": 3, "micro_batches": 6, "overlap": 4}, None),
        ({"schedule": "v_min", "devices": 1, "micro_batches": 3}, "6 · M · f"),
    ],
)
def test_a_form_is_kept_to_where_it_holds(settings, symbols):
    scenario = run(**settings).scenario
    assert holds(scenario) == symbols


@pytest.mark.parametrize(
    "settings",
    [
        {"schedule": "sequential", "devices": 2, "micro_batches": 1, "input_grad": 0, "weight_grad": 0},
        {
            "schedule": "gpipe",
            "devices": 2,
            "micro_batches": 2,
            "recompute": "early",
            "input_grad": 0,
            "weight_grad": 0,
        },
        {"schedule": "dualpipe", "devices": 4, "micro_batches": 8, "overlap": "0.001"},
    ],
)
def test_no_bound_is_above_what_is_simulated(settings):
    result = run(**settings)
    assert result.theory.bound <= result.timeline.end
