"""Layers into stages: what is split, how well, and what is refused where."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import written_out
from pipesched import Scenario, ScenarioError, run
from pipesched.layers import balanced, check, even, parse
from pipesched.placement import boxes, draw, say, summary
from pipesched.words import LANGUAGES, sentence
from scenarios import layouts

ENDS = st.sampled_from([0, 1, Fraction(1, 2), Fraction(7, 3), 3])


def counts(parts):
    return [part.layers for part in parts]


def splits(layers, stages):
    """Every way to put ``layers`` on ``stages``, empty ones too."""
    return (split for split in product(range(layers + 1), repeat=stages) if sum(split) == layers)


def largest(split, embedding, head):
    work = [Fraction(n) for n in split]
    work[0] += embedding
    work[-1] += head
    return max(work)


@given(st.integers(1, 8), st.integers(1, 4), ENDS, ENDS)
def test_no_split_has_a_smaller_largest_stage_than_the_balanced_one(layers, stages, embedding, head):
    parts = balanced(layers, stages, embedding, head)
    best = min(largest(split, embedding, head) for split in splits(layers, stages))
    assert largest(counts(parts), embedding, head) == best
    assert max(part.weight(embedding, head) for part in parts) == best


@given(st.integers(1, 200), st.integers(1, 64))
def test_an_even_split_differs_by_one_at_most_and_loses_no_layer(layers, stages):
    split = counts(even(layers, stages))
    assert sum(split) == layers
    assert max(split) - min(split) <= 1
    assert split == sorted(split, reverse=True)


def test_a_balanced_split_of_layers_alone_is_the_even_one():
    assert all(balanced(n, s, 0, 0) == even(n, s) for n in range(1, 30) for s in range(1, 9))


def test_deepseek_v3_s_layout_is_read_as_megatron_s_guide_tabulates_it():
    """61 layers and one for multi-token prediction over 16 devices of two chunks: user guide, pipeline layout."""
    parts = parse("Et*3|(tt|)*29,m|L")
    assert counts(parts) == [3] + [2] * 29 + [0, 0]
    assert [part.extra for part in parts] == [0] * 30 + [1, 0]
    assert [stage for stage, part in enumerate(parts) if part.embedding or part.head] == [0, 31]
    result = run(
        schedule="interleaved_1f1b", devices=16, micro_batches=16, split="hand", layers=61, layout="Et*3|(tt|)*29,m|L"
    )
    assert result.homes[:17] == [[device] for device in [*range(16), 0]]
    assert result.timeline.costs.durations["F"] == (3, *[2] * 29, 1, 0)


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("7,8,8,9", [7, 8, 8, 9]),
        (" 7; 8 8\t9 ", [7, 8, 8, 9]),
        ("24", [24]),
        ("Et|t|tL", [1, 1, 1]),
        ("E||t|L", [0, 0, 1, 0]),
        ("E,t*4|t*4|t*4,L", [4, 4, 4]),
        ("Et*2|(t*2|)*34,t*2L", [2] * 36),
        ("Ett|(tt|)*6L", [2] * 7 + [0]),
        ("E((t)*2|)*3tL", [2, 2, 2, 1]),
        ("E t | t L", [1, 1]),
        ("Et|*2tL", [1, 0, 1]),
        ("Et*0tL", [1]),
    ],
)
def test_a_layout_is_a_list_of_counts_or_megatron_s_text(layout, expected):
    assert counts(parse(layout)) == expected


@given(st.data(), st.integers(1, 8))
def test_a_layout_means_what_it_is_when_written_out(data, stages):
    layout, layers = data.draw(layouts(stages))
    parts, texts = parse(layout), written_out(layout)
    assert counts(parts) == [text.count("t") for text in texts]
    assert [part.embedding for part in parts] == ["E" in text for text in texts]
    assert [part.head for part in parts] == ["L" in text for text in texts]
    assert check(parts, layers, stages) is None


@pytest.mark.parametrize(
    ("layout", "key", "place"),
    [
        ("Ett|xL", "symbol", 5),
        ("Ett(t|L", "bracket", 4),
        ("Ett)t|L", "bracket", 4),
        ("Et*|tL", "repeat", 4),
        ("Et*x|tL", "repeat", 4),
        ("Et*99999|tL", "many", 4),
        ("E(((t*99)*99)*99)*99L", "many", 11),
        ("tt|tL", "embedding", 1),
        ("Et|EtL", "embedding", 4),
        ("Et|tt", "head", 6),
        ("Et|LtL", "head", 4),
        ("|", "embedding", 1),
        ("8,8,-8", "symbol", 1),
        ("8,99999", "counts", 1),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_place(layout, key, place):
    with pytest.raises(ScenarioError) as caught:
        run(devices=2, split="hand", layout=layout)
    assert (caught.value.field, caught.value.message.key) == ("layout", f"error.layout.{key}")
    assert caught.value.message.params["place"] + 1 == place
    for language in LANGUAGES:
        text = sentence(caught.value.message, language)
        assert key == "counts" or str(place) in text


@pytest.mark.parametrize(
    ("settings", "key", "repairs"),
    [
        ({"layout": "7,8,8"}, "layers", [{"layers": "23"}, {"layout": "8,8,8"}]),
        ({"layout": "Et*9|t*8|t*8L"}, "layers", [{"layers": "25"}, {"layout": "8,8,8"}]),
        ({"layout": "12,12"}, "stages", [{"devices": "2"}, {"layout": "8,8,8"}]),
        ({"layout": None}, "none", [{"layout": "8,8,8"}]),
        ({"layout": "8,8,8", "schedule": "zb_v"}, "stages", [{"layout": "4,4,4,4,4,4"}]),
    ],
)
def test_a_split_that_loses_or_doubles_layers_or_stages_is_refused_and_put_right(settings, key, repairs):
    settings = {"split": "hand", **settings}
    with pytest.raises(ScenarioError) as caught:
        run(**settings)
    assert (caught.value.field, caught.value.message.key) == ("layout", f"error.layout.{key}")
    assert list(caught.value.repairs) == repairs
    for repair in repairs:
        run(**{**settings, **repair})


def test_layers_and_times_of_stages_are_not_both_taken():
    with pytest.raises(ScenarioError) as caught:
        run(split="even", stage_times="1 2 3")
    assert caught.value.field == "split"
    assert [
        run(**{"split": "even", "stage_times": "1 2 3", **repair}).metrics.makespan for repair in caught.value.repairs
    ] == [15, 48]


def test_the_durations_are_those_of_a_layer_and_a_slow_stage_is_slow_on_top():
    """12 layers on 3 stages, an embedding of half a layer and a head of two: 4.5, 4 and 6 layers' time."""
    split = Scenario(split="even", layers=12, embedding="0.5", head=2, forward=2)
    assert split.factors(3) == (4.5, 4, 6)
    assert run(split).metrics.makespan == 2 * (4.5 + 4 + 6 + 3 * 6)
    assert run(split, slow_factor=2).metrics.makespan == 2 * (4.5 + 8 + 6 + 3 * 8)
    assert run(split, split="balanced").metrics.makespan == 2 * (4.5 + 5 + 5 + 3 * 5)


def test_the_hot_last_stage_of_a_big_head_is_named():
    result = run(devices=4, split="even", layers=32, head=4)
    assert sentence(summary(result), "en") == "The largest stage is stage 4 with 12 layers' time; the smallest has 8."


@pytest.mark.parametrize(
    ("schedule", "homes"),
    [
        ("interleaved_1f1b", {0: [0, 4], 1: [1, 5], 2: [2, 6], 3: [3, 7]}),
        ("zb_v", {0: [0, 7], 1: [1, 6], 2: [2, 5], 3: [3, 4]}),
        ("chimera", {0: [0, 3], 1: [1, 2], 2: [1, 2], 3: [0, 3]}),
    ],
)
def test_the_strip_shows_loops_vs_and_both_directions(schedule, homes):
    result = run(schedule=schedule, devices=4, micro_batches=8, split="even", layers=32)
    found = {}
    for box in boxes(result):
        found.setdefault(box.device, []).append(box.stage)
    assert {device: sorted(stages) for device, stages in found.items()} == homes
    text = draw(result, width=328, theme="dark", language="pl")
    assert text.count("data-stage") == 8


def test_every_layer_is_said_once_where_it_lives():
    said = [sentence(say(box), "en") for box in boxes(run(devices=3, split="hand", layers=5, layout="Et*2|t|t*2mL"))]
    assert said == [
        "Stage 1 on device 1: embedding; layers 1–2. Layers' time: 2.",
        "Stage 2 on device 2: layer 3. Layers' time: 1.",
        "Stage 3 on device 3: layers 4–5; 1 multi-token-prediction layer; head and loss. Layers' time: 3.",
    ]
    assert boxes(run()) == []
