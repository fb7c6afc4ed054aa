"""The lessons: what they hold to be right is what closed forms and a pencil say, and every word is there twice."""

import json
import re
from fractions import Fraction

import pytest

from pipesched.lessons import NAMES, STEPS, Reading, find, judge, tell
from pipesched.reading import exact_number
from pipesched.scenario import Scenario
from pipesched.web import handle
from pipesched.words import LANGUAGES, catalogue

WORDS = ("title", "text", "question", "wrong", "right")

BY_HAND = {
    "one-portion": 3,  # three stages one after another
    "four-portions": 4 + 3 - 1,  # M + K - 1, GPipe fig. 2
    "formula": 8 + 4 - 1,
    "bubble": "1F0",  # the activation of stage s - 1
    # micro-batch j arrives at j, stage 2 starts number i at 2 i - 1: at 6 all six are there and those of 1, 3, 5 begun
    "slow-stage": 6 - 3,
    "gpipe": (8 + 4 - 1) * (1 + 2),  # (M + K - 1)(f + b)
    "1f1b": min(4, 8),  # device k keeps min(K - k, M): Megatron-LM s2.2.1
    "interleaving": 8 * 3 + Fraction((4 - 1) * 3, 2),  # M (f + b) + (K - 1)(f + b)/v: Megatron-LM s2.2.2
    "zero-bubble": 8 * 3 + (4 - 1) * (1 + 1 - 1),  # M S + (K - 1)(f + i - w): Zero Bubble, table 2
    "tensor-parallel": (8 + 2 - 1) * Fraction("1.25"),
    "one-stream": "3F0",  # a token enters when the one before it has left the last stage
    "many-streams": 4 * max(4, 4) + min(4, 4) - 1,  # n max(M, K) + min(M, K) - 1
}

READ_BY_HAND = {
    ("one-portion", "busy"): 1,
    ("four-portions", "alone"): 4 * 3,
    ("four-portions", "speedup"): 2,
    ("four-portions", "first"): 3,
    ("formula", "before"): 6,
    ("formula", "latency"): 8 + 4 - 1 + 3,
    ("bubble", "share"): Fraction(3, 7),  # (K - 1)/(M + K - 1), GPipe s2.3
    ("bubble", "more"): Fraction(3, 19),
    ("slow-stage", "total"): 4 + 5 * 2,  # sum t + (M - 1) max t
    ("slow-stage", "plain"): 6 + 3 - 1,
    ("slow-stage", "slow"): Fraction(12, 14),
    ("slow-stage", "fast"): Fraction(6, 14),
    ("gpipe", "peak"): 8,
    ("gpipe", "share"): Fraction(3, 11),
    ("1f1b", "gpipe"): 8,
    ("1f1b", "gpipe_total"): 33,
    ("1f1b", "total"): 33,
    ("1f1b", "last"): 1,
    ("interleaving", "busy"): 24,
    ("interleaving", "idle"): Fraction(9, 2),
    ("interleaving", "plain"): 33,
    ("interleaving", "plain_idle"): 9,
    ("interleaving", "peak"): Fraction((4 - 1) * 2 + (2 - 1) * 4 + 1, 2),  # warm-up 2(K - 1 - k) + (v - 1) K, and one
    ("interleaving", "plain_peak"): 4,
    ("zero-bubble", "busy"): 24,
    ("zero-bubble", "idle"): 3,
    ("zero-bubble", "plain_idle"): 9,
    ("zero-bubble", "peak"): 4,  # as in 1F1B
    ("zero-bubble", "h2_peak"): 2 * 4 - 1,  # Zero Bubble, table 2
    ("tensor-parallel", "pipeline"): 11,
    ("tensor-parallel", "share"): Fraction(1, 9),
    ("tensor-parallel", "pipeline_share"): Fraction(3, 11),
    ("tensor-parallel", "quick"): 9 * Fraction("1.1"),
    ("one-stream", "total"): 4 * 4,
    ("one-stream", "use"): Fraction(1, 4),
    ("many-streams", "one"): 16,
    ("many-streams", "use"): Fraction(16, 19),
    ("many-streams", "one_use"): Fraction(1, 4),
}


def same(found, value):
    return found == float(value) if isinstance(value, Fraction) else found == value


def ask(**more):
    request = {"do": "lesson", "settings": {}, "lang": "en", "theme": "light", "width": 720, **more}
    return json.loads(handle(json.dumps(request)))


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_the_simulation_gives_what_a_pencil_gives(step):
    expected = step.expected if isinstance(step.asks, Reading) else str(step.expected)
    assert same(expected, BY_HAND[step.name])


def test_every_further_number_of_the_words_is_what_a_pencil_gives():
    found = {(step.name, key): reading.value(step.settings) for step in STEPS for key, reading in step.values.items()}
    assert found.keys() == READ_BY_HAND.keys()
    for key, value in found.items():
        assert same(value, READ_BY_HAND[key]), key


def test_there_are_twelve_steps_in_one_walk():
    assert len(STEPS) == len(set(NAMES)) == 12
    walked, name = [], ""
    while name is not None:
        told = tell(find(name), "en")
        walked.append(told["name"])
        assert told["back"] == (walked[-2] if len(walked) > 1 else None)
        assert (told["number"], told["total"]) == (len(walked), 12)
        name = told["next"]
    assert tuple(walked) == NAMES


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_step_has_its_words_and_no_word_lacks_a_step(language):
    of_steps = {key for key in catalogue(language) if re.fullmatch(r"lesson\.[^.]+\.\w+", key)}
    assert of_steps == {f"lesson.{name}.{word}" for name in NAMES for word in WORDS}


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_words_use_every_number_that_is_read_for_them_and_the_answer_only_afterwards(step, language):
    used = {word: set(re.findall(r"\{(\w+)\}", catalogue(language)[f"lesson.{step.name}.{word}"])) for word in WORDS}
    assert set().union(*used.values()) | {"answer"} == set(step.values) | {"answer"}
    assert "answer" not in used["title"] | used["text"] | used["question"]


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_what_is_told_before_reads_nothing_that_the_step_covers(step):
    """A number of the step's own scenario may be told ahead only where it does not answer the question."""
    before = "".join(catalogue("en")[f"lesson.{step.name}.{word}"] for word in ("text", "question"))
    own = {key for key in re.findall(r"\{(\w+)\}", before) if step.values[key].settings is None}
    assert own <= {"alone", "busy"}


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_right_wrong_and_shown_are_told_apart_and_always_explained(step, language):
    right = BY_HAND[step.name]
    for guess, verdict in ((str(right), True), ("7777", False), (None, False)):
        answer = judge(step, guess, language)
        assert answer["right"] is verdict
        assert "{" not in "".join(answer["verdict"])
        assert len(answer["verdict"]) == 2 + (not verdict) + (step.name == NAMES[-1])
    assert "7777" in judge(step, "7777", language)["verdict"][0] or not isinstance(step.asks, Reading)


def test_a_decimal_comma_a_point_and_a_quotient_are_the_same_number():
    step = find("interleaving")
    assert all(judge(step, typed, "pl")["right"] for typed in ("28,5", " 28.5 ", "57/2", "28.50"))
    assert not judge(step, "28.4999", "pl")["right"]


@pytest.mark.parametrize("typed", ["", "six", "1e999999", "9" * 25, "1/0", "--3", "٣"])
def test_what_is_no_number_is_not_held_against_the_learner(typed):
    assert exact_number(typed) is None
    answer = judge(find("formula"), typed, "en")
    assert answer["right"] is None
    assert "number" in answer["verdict"][0]


def test_a_gap_or_a_block_of_another_chart_is_a_wrong_pick():
    assert judge(find("bubble"), "", "en")["verdict"][0].startswith(
        "Not quite. You said: an idle place. The answer is: forward"
    )
    assert judge(find("bubble"), "9F9", "en")["right"] is False
    assert "token 1" in judge(find("one-stream"), "2F0", "en")["verdict"][0]


def test_the_page_gets_all_settings_of_a_step_and_no_answer_before_a_guess():
    for step in STEPS:
        answer = ask(step=step.name)
        assert Scenario(**answer["settings"]) == Scenario(**step.settings)
        assert not {"right", "verdict", "answer"} & answer.keys()
        assert answer["problems"] == []


def test_an_unknown_step_is_named_and_the_first_stands_in():
    answer = ask(step="quantum")
    assert answer["name"] == NAMES[0]
    assert "quantum" in answer["unknown"]
    assert ask(step="")["unknown"] == ask(step="gpipe")["unknown"] == ""


def test_a_point_of_the_chart_is_named_without_saying_what_held_it_up():
    settings = dict(find("bubble").settings)
    block = ask(settings=settings, device=2, time=2.5)
    assert (block["op"], block["text"]) == ("2F0", "Device 3, 2 to 3: forward of micro-batch 1 on stage 3.")
    gap = ask(settings=settings, device=2, time=1)
    assert (gap["op"], gap["text"]) == (None, "Device 3, 0 to 2: an idle place.")
    after = ask(settings=settings, device=2, time=0, move=1)
    assert after["op"] == "2F0"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_block_that_is_asked_for_is_drawn_with_the_name_the_question_uses(language):
    for step in STEPS:
        if not isinstance(step.asks, Reading):
            question = tell(step, language)["question"]
            assert f"F{step.asks.op.micro_batch + 1} " in question
            assert re.search(rf"(device|urządzeniu) {step.asks.op.stage + 1}\b", question)
