"""The values of constant expressions, and the context on which they may depend."""

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from planner.catalog.catalog import Value
from planner.errors import KeyholeError
from planner.parser.tree import find_position

_MOST_PLAIN = 60  # digits of a whole number that is in range without a look at its exponent


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number. It `is_integral` if PostgreSQL would compute with it as an integer."""

    value: Fraction
    is_integral: bool


@dataclass(frozen=True, slots=True)
class Untyped:
    """A quoted text, which takes the type of the value that it is compared with."""

    text: str


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval as PostgreSQL stores it: months, days and microseconds apart."""

    months: int
    days: int
    microseconds: int


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """A time of day without time zone, as the microseconds since midnight."""

    microseconds: int


@dataclass(frozen=True, slots=True)
class ForeignValue:
    """A value of a type that Keyhole does not compute with, and the text to which PostgreSQL casts it."""

    declared: str
    text: str

    @property
    def is_text(self) -> bool:
        """Return True if PostgreSQL treats the value as text, although its type is not `text`."""
        return self.declared in ("name", '"char"', "character")


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """A one-dimensional array; None stands for a NULL member."""

    members: tuple["ParameterValue | None", ...]


Constant: TypeAlias = (
    Number | Untyped | Interval | TimeOfDay | ForeignValue | ArrayValue | str | bool | date | datetime | None
)
ParameterValue: TypeAlias = Value | Interval | ForeignValue | ArrayValue
ParameterCast: TypeAlias = tuple[int, tuple[str, ...]]
"""A parameter's number, and the types to which a text casts it one after the other, by the parser's names."""


class NotConstant(Exception):
    """The error for an expression that is not constant. `node` is the part that is not."""

    def __init__(self, node: exp.Expr) -> None:
        super().__init__("not a constant")
        self.node = node


@dataclass(frozen=True, slots=True)
class ConstantContext:
    """The values on which constants depend: the parameters' values by number, and the day of the question.

    `casts` are the values of casts of parameters, as PostgreSQL computed them. `columns` are the columns with one known
    value, by qualifier and name as written. If the session's TimeZone `is_utc`, timestamps with time zone can be
    compared with timestamps without one.
    """

    parameters: Mapping[int, ParameterValue | None]
    today: date
    casts: Mapping[ParameterCast, ParameterValue | None] = field(default_factory=dict)
    columns: Mapping[tuple[str, str], Constant] = field(default_factory=dict)
    is_utc: bool = False


def refuse_constant(
    node: exp.Expr, message: str, *, detail: str | None = None, hint: str | None = None
) -> KeyholeError:
    """Return KH212 for a constant that does not fit its use."""
    return KeyholeError(
        "KH212",
        message,
        detail=detail or "Constants are computed before any row is read, exactly as PostgreSQL would.",
        hint=hint
        or "Write the value itself, as a number, date '2026-12-31', timestamp '2026-12-31 23:59:59' or 'text'.",
        position=find_position(node),
    )


def read_number(text: str, node: exp.Expr) -> Number:
    """Return the number that a literal spells, with PostgreSQL's type for it."""
    if text.isascii() and text.isdecimal() and len(text) <= _MOST_PLAIN:
        return Number(Fraction(int(text)), is_integral=True)
    cleaned = text.strip().replace("_", "")
    try:
        value = Decimal(cleaned)
    except InvalidOperation:
        raise refuse_constant(node, f"{text[:40]!r} is not a number") from None
    if not value.is_finite() or abs(value.adjusted()) > 60 or len(cleaned) > 100:
        raise refuse_constant(node, f"{text[:40]!r} is out of range")
    return Number(Fraction(value), re.fullmatch(r"[+-]?\d+", cleaned) is not None)


def round_to_real(value: Fraction) -> Decimal | None:
    """Return the `real` value that PostgreSQL reads from the number's decimal text, as an exact decimal.

    Return None if it is out of range. The result may differ from rounding to double first: rounding twice could give
    the neighbouring `real`.
    """
    try:
        (near,) = struct.unpack("<f", struct.pack("<f", float(value)))
    except (OverflowError, struct.error):
        return None
    (bits,) = struct.unpack("<i", struct.pack("<f", near))
    candidates = [
        struct.unpack("<f", struct.pack("<i", bits + step))[0] for step in (-1, 0, 1) if (bits + step) & 0x7FFFFFFF
    ]
    finite = [found for found in (*candidates, near) if abs(found) < float("inf") and found == found]
    best = min(
        finite, key=lambda found: (abs(Fraction(found) - value), struct.unpack("<i", struct.pack("<f", found))[0] & 1)
    )
    if value and best == 0:
        return None
    return Decimal(best)
