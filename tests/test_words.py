"""Both catalogues say the same things, in the grammar of their language."""

import json
import re

import pytest
from babel import Locale

from pipesched import Message, Op, run
from pipesched.model import DeadlockError, ScenarioError, Stuck
from pipesched.schedules import FAMILIES, REGISTRY
from pipesched.words import LANGUAGES, LOCALES, catalogue, environment_language, number, percent, plural, sentence

THIN = "\u202f"


def forms(text):
    return list(text.values()) if isinstance(text, dict) else [text]


def placeholders(text):
    return {frozenset(re.findall(r"\{(\w+)\}", form)) for form in forms(text)}


def test_polish_and_english_are_there():
    assert LANGUAGES == ("en", "pl")


@pytest.mark.parametrize("language", LANGUAGES)
def test_catalogues_have_the_same_keys_and_placeholders(language):
    english, other = catalogue("en"), catalogue(language)
    assert other.keys() == english.keys()
    assert {key: placeholders(text) for key, text in other.items()} == {
        key: placeholders(text) for key, text in english.items()
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_catalogues_are_sorted_and_name_no_key_twice(language):
    pairs = json.loads((LOCALES / f"{language}.json").read_text(encoding="utf-8"), object_pairs_hook=list)
    keys = [key for key, _ in pairs]
    assert keys == sorted(keys)
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_empty_or_has_a_stray_brace(language):
    for key, text in catalogue(language).items():
        for form in forms(text):
            assert form == form.strip() != "", key
            assert not re.search(r"[{}]", re.sub(r"\{\w+\}", "", form)), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_plural_texts_have_exactly_the_forms_the_language_has(language):
    categories = set(Locale(language).plural_form.tags) | {"other"}
    for key, text in catalogue(language).items():
        if isinstance(text, dict):
            assert set(text) == categories, key


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("n", [*range(201), 1000, 1002, 1012, 1_000_001, 0.5, 1.5, 2.25, 12.5])
def test_plural_categories_are_those_of_cldr(language, n):
    assert plural(n, language) == Locale(language).plural_form(n)


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0 porcji"), (1, "1 porcja"), (2, "2 porcje"), (5, "5 porcji"), (12, "12 porcji"), (22, "22 porcje")],
)
def test_polish_counts_micro_batches_as_poles_do(n, text):
    assert sentence(Message("count.micro_batches", {"n": n}), "pl") == text


@pytest.mark.parametrize(
    ("value", "language", "text"),
    [
        (6, "en", "6"),
        (0, "en", "0"),
        (2.5, "en", "2.5"),
        (2.5, "pl", "2,5"),
        (0.1, "en", "0.1"),
        (0.30000000000000004, "en", f"≈{THIN}0.3"),
        (1 / 3, "en", f"≈{THIN}0.3333"),
        (1 / 3, "pl", f"≈{THIN}0,3333"),
        (9999, "en", "9999"),
        (1234567, "en", f"1{THIN}234{THIN}567"),
        (-2.5, "en", "−2.5"),
        (1e-9, "en", f"≈{THIN}1.00e-09"),
        (100, "en", "100"),
        (2**63 + 1, "en", f"9{THIN}223{THIN}372{THIN}036{THIN}854{THIN}775{THIN}809"),
    ],
)
def test_numbers_are_written_as_people_do_and_rounding_is_marked(value, language, text):
    assert number(value, language) == text


def test_a_tiny_number_in_polish_has_a_decimal_comma():
    assert number(1e-9, "pl") == f"≈{THIN}1,00e-09"


@pytest.mark.parametrize(
    ("share", "language", "text"),
    [(0.5, "en", "50%"), (1 / 3, "en", f"≈{THIN}33.3%"), (1 / 3, "pl", f"≈{THIN}33,3\u00a0%"), (1, "pl", "100\u00a0%")],
)
def test_shares_are_written_as_percentages(share, language, text):
    assert percent(share, language) == text


def test_people_count_from_one():
    assert sentence(Message("op.F", {"stage": 0, "micro_batch": 0}), "en") == "forward of micro-batch 1 on stage 1"
    assert str(Op(0, "F", 0)) == "0F0"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_schedule_family_and_kind_has_its_words(language):
    keys = catalogue(language).keys()
    assert {f"schedule.{name}" for name in REGISTRY} <= keys
    assert {f"schedule.{name}.idea" for name in REGISTRY} <= keys
    assert {f"family.{family}" for family in FAMILIES} <= keys
    assert {f"op.{kind}" for kind in "FBIWRU"} <= keys
    assert {f"legend.{kind}" for kind in "FBIWRU"} <= keys


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_metric_has_a_name_and_a_definition(language):
    for metric in vars(run().metrics):
        assert {f"metric.{metric}", f"metric.{metric}.definition"} <= catalogue(language).keys()


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "pl_PL.UTF-8"}, "pl"),
        ({"LANG": "C"}, "en"),
        ({"LANG": "pl_PL.UTF-8", "LC_ALL": "en_GB.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8", "LC_MESSAGES": "pl_PL"}, "pl"),
        ({"LANG": "pl", "LC_ALL": ""}, "pl"),
    ],
)
def test_a_shell_is_answered_in_its_language(environment, language):
    assert environment_language(environment) == language


@pytest.mark.parametrize("language", LANGUAGES)
def test_errors_can_be_said(language):
    errors = [
        DeadlockError([Stuck(0, Op(0, "B", 0), Op(0, "F", 0)), Stuck(1, Op(1, "B", 0), None)], None),
        ScenarioError("devices", "error.whole", {"low": 1, "high": 64, "given": "x"}),
        ScenarioError("stage_times", "error.stage_times", {"n": 2, "stages": 3}),
        ScenarioError("nothing", "error.unknown_field", {"given": "nothing"}),
    ]
    for error in errors:
        assert "{" not in sentence(error.message, language)
        assert str(error) == sentence(error.message, "en")
