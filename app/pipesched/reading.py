"""What a person typed goes in, exact numbers come out; and back: they are written so that they read back the same."""

import re
from fractions import Fraction
from typing import Any, TypeAlias

Number: TypeAlias = int | Fraction
"""An exact rational; whole ones are kept as int."""

DIGITS = 24  # of numerator and of denominator: nobody measures finer, and arithmetic stays quick
NUMBER = re.compile(r"[+-]?(\d+/\d+|(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d\d?)?)", re.ASCII | re.IGNORECASE)


def exact_number(value: Any) -> Fraction | None:
    """Read a number or a text exactly; None for what is no number, or one with more than DIGITS digits.

    >>> exact_number("1,5"), exact_number("3/2"), exact_number("one")
    (Fraction(3, 2), Fraction(3, 2), None)
    """
    if isinstance(value, int | Fraction):
        exact = Fraction(value)
    else:  # a float means the decimal a person wrote, not its binary neighbour: 0.1 is one tenth
        text = brief(value)
        if not NUMBER.fullmatch(text) or re.search("/0+$", text):
            return None
        exact = Fraction(text.replace(",", "."))
    return exact if max(abs(exact.numerator), exact.denominator) < 10**DIGITS else None


def brief(value: Any) -> str:
    """Return ``value`` as text, cut where it is longer than any setting can be."""
    if isinstance(value, int) and abs(value) >= 10**DIGITS:
        return "…"  # writing out a number of a million digits takes seconds
    text = str(value).strip()
    return text if len(text) <= 64 else text[:40] + "…"


def split_list(text: str) -> list[str]:
    """Split a typed list. Where blanks or ``;`` stand between the numbers, a comma inside one is a decimal comma.

    >>> split_list("1, 2.5, 1"), split_list("1,5; 2; 1"), split_list("1,2,3")
    (['1', '2.5', '1'], ['1,5', '2', '1'], ['1', '2', '3'])
    """
    text = text.strip(" \t\r\n;,")
    if re.search(r"[;\s]", text):
        return re.split(r"\s*;\s*|\s*,\s+|\s+,\s*|\s+", text)
    return text.split(",")


def plain(value: Any) -> Any:
    """Return a value as JSON and URL can hold it, reading back as the same."""
    if isinstance(value, tuple):
        return list_text(value)
    return number_text(value) if isinstance(value, Fraction) else value


def list_text(values: tuple[Number, ...]) -> str:
    """Write a list of numbers so that it reads back as the same.

    >>> list_text((1, Fraction(3, 2)))
    '1,1.5'
    """
    return ",".join(number_text(value) for value in values)


def number_text(value: Number) -> str:
    """Write a rational as a decimal where that is exact and short, else as a quotient; it reads back as the same.

    >>> number_text(Fraction(3, 2)), number_text(Fraction(1, 3)), number_text(7)
    ('1.5', '1/3', '7')
    """
    exact = Fraction(value)
    digits = next((n for n in range(DIGITS) if 10**n % exact.denominator == 0), None)
    if digits is None:
        return str(exact)
    text = str(abs(exact.numerator) * 10**digits // exact.denominator).rjust(digits + 1, "0")
    sign = "-" if exact < 0 else ""
    return sign + (f"{text[:-digits]}.{text[-digits:]}" if digits else text)
