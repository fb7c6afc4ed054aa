"""How queues and activations change over time: step functions held against the numbers, and bytes against the paper."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipesched import Scenario, ScenarioError, run
from pipesched.model import Message
from pipesched.profiles import Footprint, Profile, Sizes, activation_profile, footprint, profile
from pipesched.run import read
from pipesched.schedules import BYTES, REGISTRY
from pipesched.schedules.zb_auto import HELD_FOR_W
from scenarios import TRAINED, example, scenarios

GPT3 = {"hidden_size": 12288, "sequence_length": 2048, "heads": 96, "layers": 96}
MT_NLG = {"hidden_size": 20480, "sequence_length": 2048, "heads": 128, "layers": 105}


@given(scenarios())
def test_the_peaks_are_those_of_the_numbers(scenario):
    result = run(scenario)
    assert tuple(curve.peak for curve in result.queue_profiles) == result.metrics.peak_queue
    assume(all(result.timeline.costs.durations["F"]))  # a stage without layers keeps it for no time
    assert tuple(curve.peak for curve in result.activation_profiles) == result.metrics.peak_activations


@given(scenarios())
def test_what_is_below_a_queue_s_curve_is_the_sum_of_the_waits(scenario):
    result = run(scenario)
    for curve, waits in zip(result.queue_profiles, result.queues["forward"], strict=True):
        assert curve.integral(result.timeline.end) == sum(started - arrived for arrived, started, _ in waits)


@given(scenarios())
def test_what_is_below_an_activation_s_curve_is_how_long_each_is_kept(scenario):
    """Little's law, with the ends looked up operation by operation."""
    timeline = run(scenario).timeline
    kept = [0] * timeline.schedule.devices
    for op, (device, i) in timeline.position.items():
        if op.kind in "BW":
            home, j = timeline.position[op._replace(kind="F")]
            assert home == device
            kept[device] += timeline.ends[device][i] - timeline.starts[device][j]
    assert [curve.integral(timeline.end) for curve in run(scenario).activation_profiles] == kept


@given(scenarios())
def test_curves_rise_in_time_never_fall_below_nothing_and_end_at_nothing(scenario):
    result = run(scenario)
    for curve in (*result.queue_profiles, *result.activation_profiles):
        assert curve.ticks == sorted(set(curve.ticks))
        assert curve.ticks[0] == 0
        assert curve.ticks[-1] <= result.timeline.end
        assert min(curve.values) == 0 == curve.values[-1]
        assert all(one != other for one, other in zip(curve.values, curve.values[1:], strict=False))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-3, 3))))
def test_at_every_moment_a_profile_is_the_sum_of_the_changes_until_then(changes):
    curve = profile(changes)
    for tick in range(10):
        value = [value for at, value in zip(*curve, strict=True) if at <= tick][-1]
        assert value == sum(change for at, change in changes if at <= tick)


def test_the_queue_before_a_slow_second_stage_grows_and_shrinks():
    """Stage 1 sends at 1, 2, 3, 4; the slow stage 2 starts at 1, 3, 5, 7."""
    assert run(slow_factor=2).queue_profiles[1] == Profile([0, 2, 4, 5, 7], [0, 1, 2, 1, 0])


def test_1f1b_climbs_to_k_minus_k_and_gpipe_to_all():
    """Device k of 1F1B warms up with K - k forwards (Megatron-LM s2.2.1); GPipe keeps all M."""
    curves = run(schedule="1f1b", devices=4, micro_batches=8).activation_profiles
    assert [curve.peak for curve in curves] == [4, 3, 2, 1]
    assert curves[0].peak_at == 3  # the start of the fourth forward
    assert [curve.peak for curve in run(schedule="gpipe", devices=4, micro_batches=8).activation_profiles] == [8] * 4


@given(scenarios(["zb_auto"]))
def test_the_memory_limit_is_kept_where_half_of_an_activation_is_counted_from_i_to_w(scenario):
    timeline = run(scenario).timeline
    for device in range(scenario.devices):
        curve = activation_profile(timeline, device, kept=HELD_FOR_W)
        assert curve.peak <= (scenario.memory_limit or scenario.devices)


def test_a_deadlock_keeps_what_it_has_kept_until_then():
    result, _ = read({"schedule": "order", "order": "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"})
    assert [curve.values for curve in result.activation_profiles] == [[1], [0, 1]]
    assert len(result.queue_profiles) == 2


@pytest.mark.parametrize(("model", "scores"), [(GPT3, 80), (MT_NLG, 64)])
def test_a_layer_keeps_what_the_paper_says(model, scores):
    """Korthikanti et al. 2022 (arXiv 2205.05198) s4.1, eq. 1; s5: 5 a s / h is 80 for GPT-3 and 64 for MT-NLG."""
    print_ = footprint(Scenario(**model), 1)
    assert print_.layer == 2048 * model["hidden_size"] * (34 + scores)
    assert footprint(Scenario(**model, micro_batch_size=4), 1).layer == 4 * print_.layer


def test_with_another_precision_all_scales_but_the_masks():
    """The terms of s4.1 one by one: what is a value takes p bytes, a dropout mask one."""
    s, b, h, a = 512, 3, 1024, 16
    for bits, p in (("8", 1), ("16", 2), ("32", 4)):
        attention = p * s * b * h + 2 * p * s * b * h  # shared input of Q, K, V; Q and K
        attention += p * a * s * s * b + a * s * s * b + p * a * s * s * b + p * s * b * h  # softmax, mask, dropout, V
        attention += p * s * b * h + s * b * h  # input of the projection, mask after it
        mlp = p * s * b * h + 4 * p * s * b * h + 4 * p * s * b * h + s * b * h  # two inputs, that of GeLU, mask
        norms = 2 * p * s * b * h
        settings = {"sequence_length": s, "micro_batch_size": b, "hidden_size": h, "heads": a, "layers": 8}
        print_ = footprint(Scenario(**settings, precision=bits), 4)
        assert print_ == (attention + mlp + norms, 2, p * s * b * h)


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_the_first_device_of_1f1b_keeps_all_layers_of_one_micro_batch(devices):
    """Korthikanti et al. 2022, s4.2.3: p micro-batches of L / p layers, whatever p."""
    result = run(schedule="1f1b", devices=devices, micro_batches=16, **GPT3)
    assert result.byte_profiles[0].peak == 96 * result.footprint.layer


@pytest.mark.parametrize(("devices", "chunks"), [(2, 2), (4, 2), (4, 3), (8, 2)])
def test_interleaving_keeps_the_factor_more_that_the_paper_says(devices, chunks):
    """Korthikanti et al. 2022, s4.2.3: L (1 + (p - 1) / (p m)) layers for m interleaving stages."""
    result = run(schedule="interleaved_1f1b", devices=devices, chunks=chunks, micro_batches=4 * devices, **GPT3)
    layers = 96 * (1 + Fraction(devices - 1, devices * chunks))
    assert result.byte_profiles[0].peak == layers * result.footprint.layer


@pytest.mark.parametrize("recompute", ["early", "late"])
def test_with_recomputation_all_inputs_are_kept_and_all_activations_of_one(recompute):
    """GPipe s2.3: the boundaries of all micro-batches and, while one is recomputed, its L / K layers."""
    result = run(schedule="gpipe", devices=4, micro_batches=8, recompute=recompute, **GPT3)
    whole, entry = result.footprint.sizes
    assert [curve.peak for curve in result.byte_profiles] == [7 * entry + whole] * 4


@given(scenarios(TRAINED))
def test_bytes_are_activations_times_their_size_where_nothing_is_recomputed(scenario):
    size = {"layers": 840, "split": "none", "hidden_size": 64, "sequence_length": 8, "heads": 2}
    result = run(replace(scenario, recompute="none", **size))
    if any(op.kind == "R" for op in result.timeline.position) or not result.byte_profiles:
        return
    for held, sized in zip(result.activation_profiles, result.byte_profiles, strict=True):
        assert sized == (held.ticks, [value * result.footprint.sizes.whole for value in held.values])


@given(scenarios(TRAINED))
def test_recomputation_never_keeps_more(scenario):
    result = run(scenario)
    for device in range(result.timeline.schedule.devices):
        late = scenario.recompute == "late"
        curve = activation_profile(result.timeline, device, Sizes(10, 1), late=late)
        assert min(curve.values) == 0 == curve.values[-1]
        assert curve.peak <= 10 * result.activation_profiles[device].peak


@pytest.mark.parametrize("schedule", REGISTRY)
def test_bytes_are_said_where_something_is_kept_and_the_formula_is_known(schedule):
    result = run(example(schedule, 4, 8, **GPT3))
    known = not (REGISTRY[schedule].unused >= BYTES)
    assert isinstance(result.footprint, Footprint) == known == bool(result.byte_profiles)
    assert known == (REGISTRY[schedule].family != "inference" and schedule != "terapipe")


def test_what_is_missing_for_bytes_is_named():
    assert run(schedule="gpipe").footprint.key == "bytes.off"
    missing = run(schedule="gpipe", hidden_size=64, layers=12).footprint
    assert missing == Message("bytes.missing", {"what": [Message("field.sequence_length"), Message("field.heads")]})
    assert run(schedule="gpipe", devices=4, **GPT3 | {"layers": 3}).footprint.key == "bytes.few_layers"


@pytest.mark.parametrize(("field", "value"), [("hidden_size", 0), ("precision", "12"), ("layers", "1.5")])
def test_sizes_outside_their_limits_are_refused(field, value):
    with pytest.raises(ScenarioError):
        Scenario(**{field: value})
