"""A Message and a language go in, a sentence comes out. All words of page, command line and Python are in locales/.

A catalogue maps keys to text with ``{placeholders}``, or to the plural forms of one (CLDR categories, chosen by the
parameter ``n``). Parameters called ``device``, ``home`` (a device too), ``stage``, ``micro_batch``, ``token``,
``stream`` or ``place`` (in a text) count from 0; people count from 1, and the one is added here and nowhere else. The
page reads the same catalogues in words.js.
"""

import json
import os
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from pipesched.model import Message

LOCALES = Path(__file__).parent / "locales"
LANGUAGES = tuple(sorted(path.stem for path in LOCALES.glob("*.json")))
COUNTED = {"device", "home", "stage", "micro_batch", "token", "stream", "place"}
SHARES = {"bubble_fraction_of_total", "bubble_fraction_of_ideal", "bubble_rate_of_span", "utilisation"}
"""The metrics that people read in percent."""


@cache
def catalogue(language: str) -> Mapping[str, Any]:
    """Return the catalogue of ``language`` ("en", "pl")."""
    texts: dict[str, Any] = json.loads((LOCALES / f"{language}.json").read_text(encoding="utf-8"))
    return texts


def environment_language(environment: Mapping[str, str] = os.environ) -> str:
    """Return the language a shell asks for (LC_ALL, LC_MESSAGES, LANG in this order), English if we lack it."""
    wanted = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "en")
    return wanted[:2] if wanted[:2] in LANGUAGES else "en"


def sentence(message: Message, language: str) -> str:
    """Say ``message`` in ``language``.

    >>> sentence(Message("op.F", {"stage": 1, "micro_batch": 2}), "en")
    'forward of micro-batch 3 on stage 2'
    >>> [sentence(Message("count.micro_batches", {"n": n}), "pl") for n in (1, 2, 5, 22)]
    ['1 porcja', '2 porcje', '5 porcji', '22 porcje']
    """
    text = catalogue(language)[message.key]
    if isinstance(text, dict):
        text = text[plural(message.params["n"], language)]

    def fill(match: re.Match[str]) -> str:
        name, value = match[1], message.params[match[1]]
        if name == "field":  # a setting is called by its label; what is no setting keeps the name it was given
            return str(catalogue(language).get(f"field.{value}", value))
        return _show(value + 1 if name in COUNTED else value, language)

    return re.sub(r"\{(\w+)\}", fill, text)


def plural(n: float, language: str) -> str:
    """Return the CLDR plural category of the number ``n``.

    >>> [plural(n, "pl") for n in (1, 2, 5, 12, 22, 1.5)]
    ['one', 'few', 'many', 'many', 'few', 'other']
    """
    if n == 1:
        return "one"
    if language != "pl" or n != int(n):
        return "other"
    return "few" if n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14) else "many"


def number(value: float | Fraction, language: str, digits: int = 4) -> str:
    """Write a number as people of ``language`` do, rounded to ``digits`` decimals and marked ≈ where that changed it.

    >>> number(2.5, "pl"), number(12345, "en"), number(1 / 3, "en", 2)
    ('2,5', '12\\u202f345', '≈\\u202f0.33')
    """
    exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    units = round(abs(exact) * 10**digits)
    point = "," if language == "pl" else "."
    if units == 0 != exact:  # too small for these digits: never show a plain zero for it
        return f"≈\u202f{float(value):.2e}".replace(".", point)
    whole, rest = divmod(units, 10**digits)
    text = f"{whole:,}".replace(",", "\u202f" if whole >= 10_000 else "")
    text += (point + str(rest).rjust(digits, "0").rstrip("0")) if rest else ""
    mark = "" if Fraction(units, 10**digits) == abs(exact) else "≈\u202f"
    return mark + ("−" if exact < 0 else "") + text


def percent(share: float | Fraction, language: str) -> str:
    """Write a share as a percentage with at most one decimal.

    >>> percent(0.5, "en"), percent(1 / 3, "pl")
    ('50%', '≈\\u202f33,3\\xa0%')
    """
    exact = Fraction(repr(share)) if isinstance(share, float) else Fraction(share)
    return number(exact * 100, language, 1) + ("\u00a0%" if language == "pl" else "%")


def _show(value: Any, language: str) -> str:
    if isinstance(value, Message):
        return sentence(value, language)
    if isinstance(value, list):
        return "; ".join(_show(part, language) for part in value)
    if isinstance(value, int | float | Fraction):
        return number(value, language)
    return str(value)
