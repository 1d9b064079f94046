"""The parsing of numbers and shares that people type after a flag.

For a text in another form, the error shows the accepted form with the typed number.
"""

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

_MOST_CHARACTERS = 40  # of a number: more is none, and is not repeated
_DIGITS = re.compile(r"-?\d*[.,]?\d+", re.ASCII)
_THOUSANDS = re.compile(r"-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)  # or a decimal comma before three digits
_MOST_EPSILON = 1000  # more is no protection, and rather a slip of the finger


def read_number(text: str) -> Decimal:
    """Parse a finite number. Raise ValueError with a message for the person who typed it.

    >>> read_number("0.2")
    Decimal('0.2')
    >>> read_number("0,2")
    Traceback (most recent call last):
    ...
    ValueError: 0,2 is not a number: write 0.2
    """
    typed = text.strip()
    value = _read_plain_decimal(typed)
    if value is None:
        raise ValueError(f"{typed[:_MOST_CHARACTERS]} is not a number{_correct_number(typed)}")
    return value


def read_epsilon(text: str) -> Fraction:
    """Parse a privacy loss above 0. Raise ValueError as `read_number` does."""
    value = read_number(text)
    if not 0 < value <= _MOST_EPSILON:
        raise ValueError(f"more than 0, at most {_MOST_EPSILON}")
    return Fraction(value)


def read_share(text: str) -> Fraction:
    """Parse a share between 0 and 1, typed as a number or in percent.

    Raise ValueError, in words for the person who typed it.

    >>> read_share("5%") == read_share("0.05")
    True
    >>> read_share("5")
    Traceback (most recent call last):
    ...
    ValueError: 5 is no share between 0 and 1: write 5%
    """
    typed = text.strip()
    head, percent = typed.removesuffix("%").strip(), typed.endswith("%")
    value = _read_plain_decimal(head)
    if value is None:
        raise ValueError(f"{typed[:_MOST_CHARACTERS]} is not a share{_correct_share(head, is_percent=percent)}")
    share = Fraction(value) / (100 if percent else 1)
    if not 0 < share < 1:
        correct = f": write {head}%" if not percent and 1 < value < 100 else ""
        raise ValueError(f"{typed} is no share between 0 and 1{correct}")
    return share


def find_shares(text: str) -> list[str]:
    """Return the numbers in a text, each written as `read_share` accepts it.

    >>> find_shares("from 0,5 to 60 percent")
    ['0.5', '60%']
    """
    found = re.finditer(r"(\d*[.,]?\d+)\s*(%|percent|per cent)?", text, re.ASCII)
    return [one[1].replace(",", ".") + ("%" if one[2] else "") for one in found]


def _read_plain_decimal(text: str) -> Decimal | None:
    try:
        value = Decimal(text) if len(text) <= _MOST_CHARACTERS else Decimal("NaN")
    except InvalidOperation:
        return None
    return value if value.is_finite() and "_" not in text else None


def _correct_number(typed: str) -> str:
    """Return the corrected form of a mistyped number, as the end of a sentence. Return "" if there is none."""
    if _THOUSANDS.fullmatch(typed):
        return f": write {typed.replace(',', '')} without commas, or {typed.replace(',', '.', 1)} with a decimal point"
    if (
        typed.endswith("%")
        and (value := _read_plain_decimal(_write_point(typed.removesuffix("%").strip()))) is not None
    ):
        return f": write {(value / 100).normalize():f}"
    found = [one.group() for one in _DIGITS.finditer(typed)]
    if len(found) == 1 and _read_plain_decimal(_write_point(found[0])) is not None:
        return f": write {_write_point(found[0])}"
    return ": write one such as 0.5"


def _correct_share(head: str, *, is_percent: bool) -> str:
    value = _read_plain_decimal(_write_point(head))
    if value is None:
        return ": write one such as 5% or 0.05"
    return f": write {_write_point(head)}{'%' if is_percent or value >= 1 else ''}"


def _write_point(text: str) -> str:
    return text.replace(",", ".", 1)
