"""Tolerances: how far beyond its threshold an atom may err. The setting's text, and the integer tolerance from it."""

import re
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import floor

from planner.errors import KeyholeError


@dataclass(frozen=True, slots=True)
class Amount:
    """A tolerance: in percent of a threshold's absolute value, or in the analyst's own unit.

    If it `refers_to_bounds`, it is in percent of the declared bounds, for differences whose threshold is 0. For a sum,
    this is the most that the bounds allow in a group of `min_rows` rows; for a mean, the most in any group.
    """

    number: Decimal
    is_percent: bool
    refers_to_bounds: bool = False

    @property
    def text(self) -> str:
        """The amount as the setting's text writes it."""
        return f"{self.number:f}{'%' if self.is_percent else BOUNDS_SUFFIX if self.refers_to_bounds else ''}"

    def multiply(self, factor: Decimal) -> "Amount":
        """Return the amount times a factor. A percentage is at most 100."""
        number = self.number * factor
        return replace(
            self, number=(number if not (self.is_percent or self.refers_to_bounds) else min(number, Decimal(100)))
        )

    def compute_size(self, *, threshold: Fraction, bounds: Fraction) -> Fraction:
        """Return the tolerance in the unit of the threshold.

        `bounds` is the amount that a percentage of bounds refers to.
        """
        number = Fraction(self.number)
        return (
            abs(threshold) * number / 100
            if self.is_percent
            else bounds * number / 100
            if self.refers_to_bounds
            else number
        )


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Tolerances by aggregate.

    The keys of `named_tolerances` are texts, functions or columns of aggregates. `default_tolerance` is for all
    others.
    """

    default_tolerance: Amount | None
    named_tolerances: tuple[tuple[str, Amount], ...]

    def find_amount(self, names: tuple[str, ...]) -> Amount | None:
        """Return the tolerance of an aggregate: that of the first of its names for which one is set, else the default.

        The first of its names that has a tolerance decides.
        """
        if not self.named_tolerances:
            return self.default_tolerance
        named = dict(self.named_tolerances)
        return next((named[name] for name in map(squeeze_name, names) if name in named), self.default_tolerance)


def squeeze_name(name: str) -> str:
    """Return the name in lower case, without spaces."""
    return re.sub(r"\s+", "", name).lower()


BOUNDS_SUFFIX = "% of bounds"
_HINT = "Write for example '10%', '25', 'count=25, avg(age)=2', or of a difference '5% of bounds'."


def _refuse(message: str) -> KeyholeError:
    return KeyholeError("KH402", message, hint=_HINT)


def _parse_amount(text: str) -> Amount:
    words = " ".join(text.lower().split())
    bounds = re.fullmatch(r"(\S*) ?% of bounds", words)
    percent = text.endswith("%")
    try:
        number = Decimal(bounds[1] if bounds else text.removesuffix("%").strip())
    except InvalidOperation:
        raise _refuse(f"keyhole.tolerance: {text[:40]!r} is neither a percentage nor a number") from None
    exponent = number.as_tuple().exponent  # for NaN and infinities this is a letter
    if not isinstance(exponent, int) or number < 0 or number.adjusted() > 18 or exponent < -18:
        raise _refuse(f"keyhole.tolerance: {text[:40]!r} is out of range")
    if (percent or bounds) and number > 100:
        raise _refuse("keyhole.tolerance: a percentage is at most 100 %")
    return Amount(number=number, is_percent=percent, refers_to_bounds=bounds is not None)


def split_outside_parentheses(text: str, *, by: str) -> list[str]:
    """Return the parts of a text between characters `by` outside parentheses, stripped of spaces."""
    items, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == by and depth == 0:
            items.append("")
        else:
            items[-1] += character
    return [item.strip() for item in items]


def parse_tolerances(text: str) -> Tolerances:
    """Parse the tolerances of a setting's text. Raise KH402 for a text that is no list of tolerances."""
    default: Amount | None = None
    named: dict[str, Amount] = {}
    for item in split_outside_parentheses(text, by=","):
        key, _, amount = item.rpartition("=")
        key = squeeze_name(key)
        if not key and default is not None:
            raise _refuse("keyhole.tolerance: two tolerances without a name")
        if key in named:
            raise _refuse(f"keyhole.tolerance: {key!r} is set twice")
        if key:
            named[key] = _parse_amount(amount.strip())
        else:
            default = _parse_amount(item.removeprefix("=").strip())
    return Tolerances(default_tolerance=default, named_tolerances=tuple(named.items()))


@dataclass(frozen=True, slots=True)
class StepSize:
    """The size of one integer step of a functional in the analyst's unit, for an average times `rows` rows.

    `bounds` is the amount to which a percentage of the declared bounds refers.
    """

    unit_size: Fraction
    rows: int
    bounds: Fraction = Fraction(0)


def count_allowed_steps(amount: Amount, *, threshold: Fraction, step: StepSize, hint: str | None = None) -> Fraction:
    """Return the tolerance in integer steps, not yet rounded. `hint` says what to do about a percentage of zero.

    Raise KH304 for a percentage of zero, which would be no tolerance at all.
    """
    if amount.is_percent and threshold == 0:
        raise KeyholeError(
            "KH304",
            "a percentage of the threshold 0 is no tolerance",
            detail="A tolerance in percent is a part of the threshold itself.",
            hint=hint,
        )
    return amount.compute_size(threshold=threshold, bounds=step.bounds) * step.rows / step.unit_size


def quote_literal(text: str) -> str:
    """Return the text with its quotation marks doubled, for an SQL string literal."""
    return text.replace("'", "''")


def widen_tolerances(tolerance: str, factor: Decimal) -> str:
    """Return a setting's text with all tolerances multiplied by a factor; a percentage is at most 100 %."""
    found = parse_tolerances(tolerance)

    def widen(amount: Amount) -> str:
        widened = amount.multiply(factor)
        return replace(widened, number=widened.number.normalize()).text

    texts = [] if found.default_tolerance is None else [widen(found.default_tolerance)]
    return ", ".join((*texts, *(f"{name}={widen(amount)}" for name, amount in found.named_tolerances)))


def set_amount(text: str, name: str, amount: Decimal | str) -> str:
    """Return the text of the tolerance setting with `amount` for `name`, in place of an earlier amount."""
    kept = [
        item
        for item in split_outside_parentheses(text, by=",")
        if squeeze_name(item.rpartition("=")[0]) != squeeze_name(name)
    ]
    return ", ".join((*kept, f"{name}={amount}"))


def round_allowed_steps(amount: Amount, *, threshold: Fraction, step: StepSize) -> int:
    """Return the tolerance in integer steps, rounded down. Raise KH304 for a percentage of zero."""
    return floor(count_allowed_steps(amount, threshold=threshold, step=step))
