"""Each schedule is what its source says: order, memory, copies of the weights, and the cases it refuses."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipesched import DeadlockError, Op, Scenario, ScenarioError, run
from pipesched.metrics import peak_memory
from pipesched.notation import write
from pipesched.presets import PRESETS
from pipesched.run import read
from pipesched.scenario import DEFAULTS
from pipesched.schedules import REGISTRY, arrange
from pipesched.schedules.interleaved_1f1b import accepted, group_size
from reproduced import TORCH, torch_agrees, torch_settings
from scenarios import TRAINED, scenarios

UNIT = {"forward": 1, "input_grad": 1, "weight_grad": 1}
SIZES = list(product(range(1, 8), (1, 2, 3, 5, 8, 13, 24)))


def peaks(**settings):
    return run(**settings).metrics.peak_activations


# Orders


@pytest.mark.parametrize("name", dict.fromkeys(row["schedule"] for row in TORCH))
def test_the_order_is_pytorch_s_op_for_op(name):
    """torch 2.13.0, torch.distributed.pipelining; for every K, M and v that it accepts, of those in the data."""
    assert [torch_settings(row) for i, row in enumerate(TORCH) if row["schedule"] == name and not torch_agrees(i)] == []


def test_of_each_order_of_pytorch_there_are_many_cases():
    cases = Counter(row["schedule"] for row in TORCH)
    assert set(cases) == {"gpipe", "1f1b", "interleaved_1f1b", "looped_bfs", "interleaved_zb", "zb_v", "dualpipe_v"}
    assert min(cases.values()) >= 32


@pytest.mark.parametrize(("K", "M"), [(K, M) for K, M in SIZES if M >= K])
def test_zb_h1_is_the_interleaved_zero_bubble_of_one_chunk(K, M):
    """Two descriptions, Zero Bubble s2.3 and torch ScheduleInterleavedZeroBubble, of one order where M >= K."""
    one = arrange(Scenario(schedule="zb_h1", devices=K, micro_batches=M))
    assert one == arrange(Scenario(schedule="interleaved_zb", devices=K, micro_batches=M, chunks=1))


@pytest.mark.parametrize("M", [1, 7, 8])
@pytest.mark.parametrize("K", [1, 4, 5])
def test_interleaved_1f1b_of_one_chunk_is_eager_1f1b(K, M):
    eager = arrange(Scenario(schedule="eager_1f1b", devices=K, micro_batches=M))
    assert eager == arrange(Scenario(schedule="interleaved_1f1b", devices=K, micro_batches=M, chunks=1))


@pytest.mark.parametrize(("K", "M"), SIZES)
def test_1f1b_runs_in_the_slots_of_deepspeed(K, M):
    """Its TrainSchedule has F of j on stage s in slot 2j+s and B in slot 2j+2K-1-s."""
    for s, row in enumerate(arrange(Scenario(schedule="1f1b", devices=K, micro_batches=M)).rows):
        slots = {2 * op.micro_batch + (s if op.kind == "F" else 2 * K - 1 - s): op for op in row}
        assert [slots[slot] for slot in sorted(slots)] == list(row)


@pytest.mark.parametrize("name", ["pipedream", "pipedream_2bw"])
@given(data=st.data())
def test_pipedream_is_1f1b_with_updates(name, data):
    scenario = data.draw(scenarios([name], uneven=False, extras=False))
    rows = arrange(scenario).rows
    plain = arrange(Scenario(schedule="1f1b", devices=scenario.devices, micro_batches=scenario.micro_batches)).rows
    assert tuple(tuple(op for op in row if op.kind != "U") for row in rows) == plain
    for row in rows:
        for before, op in pairwise(row):
            assert op.kind != "U" or before == op._replace(kind="B")


@given(scenarios(["terapipe"], extras=False))
def test_a_slice_s_gradient_waits_for_those_of_all_later_slices(scenario):
    """Causal attention: TeraPipe (arXiv 2102.07988) s3."""
    for row in arrange(scenario).rows:
        assert [op.micro_batch for op in row if op.kind == "B"] == list(reversed(range(scenario.micro_batches)))


@given(scenarios(TRAINED, uneven=False))
def test_early_recomputation_comes_right_before_its_backward(scenario):
    """GPipe s2.3; with an overlapped pair, before the pair."""
    early = arrange(Scenario(**{**scenario.settings(), "recompute": "early"}))
    for row in early.rows:
        for cell, after in pairwise(row):
            for op in cell.ops:
                if op.kind == "R":
                    assert {op._replace(kind="B"), op._replace(kind="I")} & set(after.ops)
        again = [op for cell in row for op in cell.ops if op.kind == "R"]
        assert len(again) == sum(op.kind in "BI" for cell in row for op in cell.ops)


# Memory


@pytest.mark.parametrize(("K", "M"), SIZES)
def test_peaks_of_one_chunk_schedules(K, M):
    """Device k: sequential 1; GPipe, TeraPipe M; 1F1B, PipeDream min(M, K-k); eager min(M, 2(K-k)-1)."""
    size = {"devices": K, "micro_batches": M}
    assert peaks(schedule="forward", **size) == peaks(schedule="decode", **size) == (0,) * K
    assert peaks(schedule="sequential", **size) == (1,) * K
    assert peaks(schedule="gpipe", **size) == peaks(schedule="terapipe", **size) == (M,) * K
    for name in ("1f1b", "pipedream", "pipedream_2bw"):
        assert peaks(schedule=name, **size) == tuple(min(M, K - k) for k in range(K))
    assert peaks(schedule="eager_1f1b", **size) == tuple(min(M, 2 * (K - k) - 1) for k in range(K))


@pytest.mark.parametrize(("K", "M"), SIZES)
@pytest.mark.parametrize("v", [1, 2, 3])
def test_peaks_of_looped_schedules(K, M, v):
    """Device k: interleaved min(Mv, (v-1)g + 2(K-1-k) + 1), fewer by K-1-k where split; breadth and depth first Mv."""
    size = {"devices": K, "micro_batches": M, "chunks": v}
    g = group_size(Scenario(schedule="interleaved_1f1b", **size))
    expected = tuple(min(M * v, (v - 1) * g + 2 * (K - 1 - k) + 1) for k in range(K))
    assert peaks(schedule="interleaved_1f1b", **size) == expected
    assert peaks(schedule="looped_bfs", **size) == peaks(schedule="looped_dfs", **size) == (M * v,) * K


@pytest.mark.parametrize(
    ("K", "v", "g", "M"), [(4, 2, 4, 8), (4, 2, 6, 12), (4, 3, 8, 16), (2, 4, 5, 10), (3, 2, 9, 9)]
)
def test_peaks_of_interleaved_1f1b_grow_with_the_group(K, v, g, M):
    found = peaks(schedule="interleaved_1f1b", devices=K, micro_batches=M, chunks=v, group=g)
    assert found == tuple(min(M * v, (v - 1) * g + 2 * (K - 1 - k) + 1) for k in range(K))


def memory(**settings):
    """Per device, as Zero Bubble s2.3 counts: 1 (M_B) until the end of I, then 0.4 (M_W, say) until the end of W."""
    return [peak_memory(row, Fraction(2, 5)) for row in run(**settings).timeline.schedule.rows]


@pytest.mark.parametrize("K", range(1, 9))
@pytest.mark.parametrize("more", [0, 1, 5])
def test_peaks_of_the_handcrafted_zero_bubble_schedules(K, more):
    """Zero Bubble, table 2: worker i of H1 (p-i+1) M_B + (i-1) M_W, of H2 (2p-2i+1) M_B + (2i-2) M_W; M >= 2p - 1."""
    share, size = Fraction(2, 5), {"devices": K, "micro_batches": 2 * K - 1 + more}
    assert memory(schedule="zb_h1", **size) == [K - k + k * share for k in range(K)]
    assert memory(schedule="zb_h2", **size) == [2 * (K - k) - 1 + 2 * k * share for k in range(K)]


@pytest.mark.parametrize("K", range(1, 9))
def test_zb_v_keeps_k_micro_batches_on_every_device(K):
    """2K chunks, as much as the first device of 1F1B: Zero Bubble (arXiv version) s6."""
    metrics = run(schedule="zb_v", devices=K, micro_batches=2 * K + 1).metrics
    assert set(metrics.peak_activations) == {2 * K}
    assert set(metrics.peak_micro_batches) == {K}


@pytest.mark.parametrize("K", range(2, 17))
def test_v_min_keeps_a_third_and_v_half_a_half(K):
    """2 floor((K+4)/3) and 2 floor((K+2)/2) chunks: Controllable memory (arXiv 2405.15362); M >= 3K.

    On every device; of V-Min, every third has one micro-batch less where K mod 3 is 2.
    """
    size = {"devices": K, "micro_batches": 3 * K}
    most = 2 * ((K + 4) // 3)
    assert peaks(schedule="v_min", **size) == tuple(most - 2 * (K % 3 == 2 and k % 3 == 0) for k in range(K))
    assert set(peaks(schedule="v_half", **size)) == {2 * ((K + 2) // 2)}


@pytest.mark.parametrize(("K", "n"), [(2, 1), (2, 3), (4, 1), (4, 2), (6, 2), (8, 1), (8, 3)])
def test_chimera_keeps_from_half_the_micro_batches_of_a_unit_to_all(K, n):
    """[D/2 + 1, D] from the ends to the middle: Chimera (arXiv 2107.06925), table 2."""
    found = peaks(schedule="chimera", devices=K, micro_batches=n * K)
    assert found == tuple(min(K, K // 2 + 1 + min(k, K - 1 - k)) for k in range(K))


@pytest.mark.parametrize("K", [2, 4, 6, 8])
@pytest.mark.parametrize("more", [0, 2, 10])
def test_dualpipe_keeps_one_micro_batch_more_than_devices(K, more):
    """PP + 1: DeepSeek-V3, table 2. DualPipeV on half the devices keeps as many chunks."""
    assert set(peaks(schedule="dualpipe", devices=K, micro_batches=2 * K + more)) == {K + 1}
    assert set(peaks(schedule="dualpipe_v", devices=K // 2, micro_batches=K + more)) == {K + 1}


@given(scenarios(["wave"]))
def test_a_wave_keeps_at_most_k_micro_batches(scenario):
    assert max(run(scenario).metrics.peak_micro_batches) <= scenario.devices


@given(scenarios(["zb_auto"]))
def test_zb_auto_keeps_to_its_limit(scenario):
    """Counted as it counts: half an activation from I to W."""
    limit = scenario.memory_limit or scenario.devices
    assert max(peak_memory(row, Fraction(1, 2)) for row in run(scenario).timeline.schedule.rows) <= limit


# Copies of the weights


@pytest.mark.parametrize(("K", "M"), SIZES)
def test_pipedream_stashes_k_minus_k_versions(K, M):
    """K on the first device, 1 on the last, once M >= 2(K-k-1) have filled the pipe: PipeDream s3.3."""
    found = run(schedule="pipedream", devices=K, micro_batches=M).metrics.weight_versions
    for k in range(K):
        assert (found[k] == K - k) == (max(2 * (K - k - 1), K - k) <= M)


@given(scenarios(["pipedream_2bw"]))
def test_pipedream_2bw_needs_two_versions_at_most_and_always_has_the_one_it_uses(scenario):
    """Micro-batch j computes with max(j // g - 1, 0), g >= K: PipeDream-2BW (arXiv 2006.09503) s3.1."""
    assert max(run(scenario).metrics.weight_versions) <= 2
    every = arrange(scenario).update_every
    assert every >= scenario.devices
    for row in arrange(scenario).rows:
        newest = 0
        for op in row:
            newest += op.kind == "U"
            assert op.kind != "F" or max(op.micro_batch // every - 1, 0) <= newest


@given(scenarios(TRAINED))
def test_every_other_schedule_has_one_copy_or_one_per_direction(scenario):
    if REGISTRY[scenario.schedule].family == "asynchronous":
        return
    two = scenario.schedule in ("chimera", "dualpipe") and scenario.micro_batches > 1
    assert set(run(scenario).metrics.weight_versions) == {2 if two else 1}


def test_an_update_in_the_middle_of_an_own_order_makes_a_second_version():
    """F0 has computed with the version before the update, and its backward is still to come."""
    assert run(schedule="order", order="0F0 0F1 0B0 0U0 0B1").metrics.weight_versions == (2,)
    assert run(schedule="order", order="0F0 0B0 0U0 0F1 0B1 0U1").metrics.weight_versions == (1,)


# Refusals


REFUSED = [
    ("chimera", {"devices": 5}, "devices", ["4", "6"]),
    ("chimera", {"devices": 1}, "devices", ["2"]),
    ("dualpipe", {"devices": 3, "micro_batches": 20}, "devices", ["2", "4"]),
    ("dualpipe", {"devices": 4, "micro_batches": 7}, "micro_batches", ["8"]),
    ("dualpipe", {"devices": 4, "micro_batches": 11}, "micro_batches", ["10", "12"]),
    ("dualpipe_v", {"devices": 4, "micro_batches": 7}, "micro_batches", ["8"]),
    ("wave", {"chunks": 3}, "chunks", ["2", "4"]),
    ("wave", {"chunks": 1}, "chunks", ["2"]),
    ("pipedream_2bw", {"devices": 4, "group": 2}, "group", ["4"]),
]


@pytest.mark.parametrize(("schedule", "settings", "field", "near"), REFUSED)
def test_what_an_order_is_not_defined_for_is_refused_with_the_nearest_values_that_work(schedule, settings, field, near):
    scenario = Scenario(schedule=schedule, **settings)
    with pytest.raises(ScenarioError) as caught:
        arrange(scenario)
    assert caught.value.field == field
    assert [repair[field] for repair in caught.value.repairs] == near
    for repair in caught.value.repairs:
        run(scenario, **repair)
    low, high = scenario.settings()[field], {int(value) for value in near}
    between = range(min({low, *high}), max({low, *high}) + 1)
    for value in set(between) - high:  # nothing nearer works
        with pytest.raises(ScenarioError):
            run(scenario, **{field: value})


@pytest.mark.parametrize("schedule", [name for name in REGISTRY if name != "order"])
def test_a_link_to_a_case_that_is_refused_shows_the_nearest_that_is_not(schedule):
    """read() gives a result, and says which settings it changed."""
    for K, M, v in product(range(1, 7), (1, 3, 4, 8, 11), (1, 2)):
        given = {"schedule": schedule, "devices": K, "micro_batches": M, "chunks": v}
        result, errors = read(given)
        changed = {name for name, value in given.items() if getattr(result.scenario, name) != value}
        assert changed <= {error.field for error in errors} | {name for e in errors for r in e.repairs for name in r}
        for error in errors:
            assert error.repairs, error
            for repair in error.repairs:
                run(Scenario(**{**given, **repair}))
        assert result.scenario.schedule == schedule


def test_more_operations_than_memory_and_patience_allow_are_refused_with_a_number_that_works():
    scenario = Scenario(schedule="interleaved_zb", devices=64, micro_batches=128, chunks=4)
    assert sum(map(len, arrange(scenario).rows)) == 64 * 128 * 4 * 3
    with pytest.raises(ScenarioError) as caught:
        arrange(scenario, most=50_000)
    assert (caught.value.field, caught.value.message.key) == ("micro_batches", "error.too_many")
    (repair,) = caught.value.repairs
    fewer = arrange(Scenario(**{**scenario.settings(), **repair}), most=50_000)
    assert 49_000 < sum(map(len, fewer.rows)) <= 50_000


@pytest.mark.parametrize("schedule", [name for name in REGISTRY if name != "order"])
def test_too_many_operations_are_refused_before_the_second_device(schedule, monkeypatch):
    """Millions would take seconds; the row of one device tells how many there would be."""
    entry, taken = REGISTRY[schedule], []

    def watched(scenario):
        for row in entry.order(scenario):
            taken.append(len(list(row)))
            yield [Op(0, "F", 0)] * taken[-1]

    monkeypatch.setitem(REGISTRY, schedule, replace(entry, order=watched))
    largest = {"devices": 64, "micro_batches": 256, "chunks": 8, "tokens": 64}
    with pytest.raises(ScenarioError) as caught:
        arrange(Scenario(schedule=schedule, **largest), most=16_000)
    assert caught.value.message.key == "error.too_many"
    assert len(taken) <= 1  # the greedy ones, which make all rows at once, are refused before they begin
    assert all(caught.value.message.params["n"] == 64 * count for count in taken)


# Groups of interleaved schedules

SMALL = [(K, v, M) for K in range(1, 7) for v in range(1, 5) for M in range(1, 3 * K + 1)]


def chosen(K, M):
    return group_size(Scenario(schedule="interleaved_1f1b", devices=K, micro_batches=M))


@pytest.mark.parametrize("K", range(1, 17))
def test_the_group_is_the_smallest_that_megatron_accepts_and_pytorch_s_where_pytorch_has_one(K):
    """K where K divides M; M // rounds where M is a multiple of rounds = max(1, M // K); M where M < K."""
    for M in range(1, 6 * K + 1):
        g, rounds = chosen(K, M), max(1, M // K)
        if M < K:
            assert g == M
        else:
            assert accepted(g, M, K)
            assert not any(accepted(smaller, M, K) for smaller in range(1, g))
        if M % K == 0:
            assert g == K
        if M % rounds == 0:
            assert g == M // rounds


@pytest.mark.parametrize("schedule", ["interleaved_1f1b", "interleaved_zb", "looped_dfs"])
def test_the_group_that_is_chosen_never_deadlocks(schedule):
    for K, v, M in SMALL:
        run(schedule=schedule, devices=K, chunks=v, micro_batches=M)


def test_no_group_that_megatron_accepts_deadlocks_or_lengthens_the_bubble():
    """(Mv + K - 1)(f + b), in times of a chunk, whatever the group."""
    for K, v, M in SMALL:
        for g in (g for g in range(1, M + 1) if accepted(g, M, K)):
            settings = {"devices": K, "chunks": v, "micro_batches": M, "group": g, "times_of": "stage"}
            assert run(schedule="interleaved_1f1b", **settings).metrics.makespan == 3 * (M * v + K - 1)


def test_ten_micro_batches_on_four_devices_run_in_groups_of_five_and_what_the_alternatives_give():
    """Filling up to 12 costs the work of two; groups of four, which Megatron refuses, leave two alone at the end."""
    base = {"schedule": "interleaved_1f1b", "devices": 4, "chunks": 2, "micro_batches": 10, "times_of": "stage"}
    assert chosen(4, 10) == 5
    makespans = {g: run(**base, group=g).metrics.makespan for g in (5, 10, 4, 3)}
    assert run(**base).metrics.makespan == makespans[5] == makespans[10] == 3 * (10 * 2 + 3)
    assert run(**{**base, "micro_batches": 12}).metrics.makespan == 3 * (12 * 2 + 3)
    assert not accepted(4, 10, 4) and makespans[4] > makespans[5]
    assert not accepted(3, 10, 4) and makespans[3] > makespans[4]
    assert max(peaks(**base, group=5)) < max(peaks(**base, group=10))
    for too_small in (1, 2):
        with pytest.raises(ScenarioError):
            run(**base, group=too_small)


def test_a_group_that_deadlocks_is_refused_and_the_repair_is_to_leave_it_to_us():
    settings = {"schedule": "interleaved_1f1b", "devices": 4, "chunks": 3, "micro_batches": 5, "group": 4}
    with pytest.raises(ScenarioError) as caught:
        run(**settings)
    assert (caught.value.field, caught.value.message.key) == ("group", "error.group")
    assert caught.value.repairs == ({"group": ""},)
    run(**{**settings, "group": ""})


def test_a_group_larger_than_m_is_m():
    size = {"schedule": "interleaved_1f1b", "devices": 4, "micro_batches": 6}
    assert arrange(Scenario(**size, group=6)) == arrange(Scenario(**size, group=1024))


# Orders of one's own


def test_an_order_of_one_s_own_that_deadlocks_names_the_circle():
    """Device 0 wants the gradient before it sends the second forward that device 1 waits for."""
    text = "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"
    with pytest.raises(DeadlockError) as caught:
        run(schedule="order", order=text)
    circle = [(link.device, str(link.cell), str(link.missing)) for link in caught.value.circle]
    assert circle == [(0, "0B0", "1B0"), (1, "1F1", "0F1")]
    assert caught.value.timeline.ends == [[1], [2]]
    result, errors = read({"schedule": "order", "order": text})
    assert not errors
    assert result.deadlock.circle == caught.value.circle
    assert result.timeline.stuck.keys() == {0, 1}


@pytest.mark.parametrize("devices", [2, 3, 9])
def test_a_circle_may_go_round_all_devices(devices):
    """Two chunks per device, and each wants to run its second one first."""
    text = "\n".join(f"{devices + s}F0 {s}F0" for s in range(devices))
    with pytest.raises(DeadlockError) as caught:
        run(schedule="order", order=text)
    circle = caught.value.circle
    assert {link.device for link in circle} == set(range(devices))
    rows = caught.value.timeline.schedule.rows
    for link, after in zip(circle, (*circle[1:], circle[0]), strict=True):
        assert link.missing in rows[after.device]


def test_who_waits_for_the_circle_is_not_part_of_it():
    text = "0F0 0B0\n1F0 1B0\n3F0 2F0 2B0 3B0"
    with pytest.raises(DeadlockError) as caught:
        run(schedule="order", order=text)
    assert [link.device for link in caught.value.circle] == [2]
    assert caught.value.timeline.stuck.keys() == {0, 1, 2}


@given(scenarios([name for name in REGISTRY if name not in ("decode", "order", "pipedream_2bw", "wave", "zb_auto")]))
def test_the_order_of_a_schedule_as_one_s_own_takes_the_same_time(scenario):
    """Streams, update versions and batches are not part of the notation; greedies choose by the times."""
    result = run(replace(scenario, batch=None))
    own = {**result.scenario.settings(), "schedule": "order", "order": write(result.timeline.schedule)}
    assert run(**own).timeline.starts == result.timeline.starts


@pytest.mark.parametrize("order", ["0F0 0B0\n0F1 0B1", "0F0 0B0 0F1 0B1\n1:"])
def test_a_device_that_shares_a_stage_or_has_none_makes_no_stage_slower(order):
    """Chunks share the time of a device where there are more stages than devices, not where there are fewer."""
    result = run(schedule="order", order=order)
    assert (result.timeline.starts[0][:2], result.timeline.ends[0][:2]) == ([0, 1], [1, 3])
    assert result.metrics.peak_activations == result.metrics.peak_micro_batches
    assert set(result.metrics.weight_versions) <= {0, 1}


# Figures of the papers

BY_NAME = {preset.name: run(**preset.settings).metrics for preset in PRESETS}


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_every_preset_is_a_scenario_that_runs_as_it_is(preset):
    scenario = Scenario(**preset.settings)
    assert read({name: str(value) for name, value in preset.settings.items()})[1] == []
    assert run(scenario).deadlock is None
    assert set(preset.settings) <= set(DEFAULTS)


@pytest.mark.parametrize(
    ("name", "makespan"),
    [
        ("first_view", 6),  # (M + K - 1) f
        ("gpipe_2b", 12),  # M K (f + b), M = 1
        ("gpipe_2c", 21),  # (M + K - 1)(f + b), f = 1, b = 2
        ("megatron_3", 33),
        ("megatron_4a", 33),
        ("megatron_4b", 28.5),  # M (f + b) + (K - 1)(f + b) / v
        ("zb_h1", 27),  # M (f + i + w) + (K - 1)(f + i - w)
        ("zb_h2", 27),  # the same; the gain is in the span
        ("zb_v", 51),  # 6M + K - 1, times of a chunk
        ("chimera", 10),  # K f + (2K - 2) b, b = f
    ],
)
def test_a_preset_takes_as_long_as_its_figure(name, makespan):
    assert BY_NAME[name].makespan == makespan


def test_presets_have_the_spans_idle_times_and_peaks_of_their_figures():
    assert (BY_NAME["zb_h2"].longest_span, BY_NAME["zb_v"].longest_span) == (24, 48)  # M S: no bubble in the span
    dualpipe = BY_NAME["dualpipe_5"]
    assert {dualpipe.makespan - busy for busy in dualpipe.busy} == {6}
    assert set(dualpipe.peak_activations) == {9}
    assert BY_NAME["megatron_4a"].peak_activations == (4, 3, 2, 1)
    assert set(BY_NAME["megatron_3"].peak_activations) == {8}


def test_the_figure_of_gpipe_runs_the_backwards_in_reverse():
    rows = arrange(Scenario(**next(p.settings for p in PRESETS if p.name == "gpipe_2c"))).rows
    assert [op.micro_batch for op in rows[0]] == [0, 1, 2, 3, 3, 2, 1, 0]
