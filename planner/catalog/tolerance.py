"""How far beyond its threshold an atom may err: the text that sets it, and the integer tolerance that follows."""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import floor

from planner.errors import KeyholeError


@dataclass(frozen=True, slots=True)
class Amount:
    """A tolerance: in percent of a threshold's absolute value, or in the analyst's own unit."""

    number: Decimal
    percent: bool


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Tolerances by aggregate: `named` by its text, its function or its column; `default` for all others."""

    default: Amount | None
    named: tuple[tuple[str, Amount], ...]

    def amount(self, names: tuple[str, ...]) -> Amount | None:
        """The tolerance of an aggregate known by these names, the most telling first."""
        if not self.named:
            return self.default
        named = dict(self.named)
        return next((named[name] for name in map(squeeze_name, names) if name in named), self.default)


def squeeze_name(name: str) -> str:
    """The name in lower case, without spaces."""
    return re.sub(r"\s+", "", name).lower()


_HINT = "Write for example '10%', '25', or 'count=25, avg(age)=2'."


def _refusal(message: str) -> KeyholeError:
    return KeyholeError("KH402", message, hint=_HINT)


def _amount(text: str) -> Amount:
    percent = text.endswith("%")
    try:
        number = Decimal(text.removesuffix("%").strip())
    except InvalidOperation:
        raise _refusal(f"keyhole.tolerance: {text[:40]!r} is neither a percentage nor a number") from None
    exponent = number.as_tuple().exponent  # for NaN and infinities this is a letter
    if not isinstance(exponent, int) or number < 0 or number.adjusted() > 18 or exponent < -18:
        raise _refusal(f"keyhole.tolerance: {text[:40]!r} is out of range")
    if percent and number > 100:
        raise _refusal("keyhole.tolerance: a percentage is at most 100 %")
    return Amount(number=number, percent=percent)


def split_outside(text: str, *, by: str) -> list[str]:
    """The parts of a text between characters `by` that stand outside parentheses, without the spaces around them."""
    items, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == by and depth == 0:
            items.append("")
        else:
            items[-1] += character
    return [item.strip() for item in items]


def tolerances(text: str) -> Tolerances:
    """The tolerances that a text sets. Raises KH402."""
    default: Amount | None = None
    named: dict[str, Amount] = {}
    for item in split_outside(text, by=","):
        key, _, amount = item.rpartition("=")
        key = squeeze_name(key)
        if not key and default is not None:
            raise _refusal("keyhole.tolerance: two tolerances without a name")
        if key in named:
            raise _refusal(f"keyhole.tolerance: {key!r} is set twice")
        if key:
            named[key] = _amount(amount.strip())
        else:
            default = _amount(item.removeprefix("=").strip())
    return Tolerances(default=default, named=tuple(named.items()))


@dataclass(frozen=True, slots=True)
class Step:
    """What one integer step of a functional is worth in the analyst's unit, for an average times `rows` rows."""

    unit_size: Fraction
    rows: int


def allowed_steps(
    amount: Amount, *, threshold: Fraction, step: Step, name: str = "avg", setting: str = "10%"
) -> Fraction:
    """The tolerance in integer steps, not yet rounded; `name` is what an absolute one would be set for in `setting`.

    Raises KH304 for a percentage of zero, which would be no tolerance at all.
    """
    if amount.percent and threshold == 0:
        raise KeyholeError(
            "KH304",
            "a percentage of the threshold 0 is no tolerance",
            detail="A tolerance in percent is a part of the threshold itself.",
            hint="Set an absolute tolerance for it: "
            f"SET keyhole.tolerance = '{quote_literal(with_amount(setting, name, Decimal('0.5')))}';",
        )
    size = abs(threshold) * Fraction(amount.number) / 100 if amount.percent else Fraction(amount.number)
    return size * step.rows / step.unit_size


def quote_literal(text: str) -> str:
    """The text as it stands in a string literal."""
    return text.replace("'", "''")


def with_amount(text: str, name: str, amount: Decimal) -> str:
    """The tolerances of a text with one of an amount for `name`, in place of what it said of it."""
    kept = [item for item in split_outside(text, by=",") if squeeze_name(item.rpartition("=")[0]) != squeeze_name(name)]
    return ", ".join((*kept, f"{name}={amount}"))


def steps(amount: Amount, *, threshold: Fraction, step: Step) -> int:
    """The tolerance in integer steps, rounded down. Raises KH304."""
    return floor(allowed_steps(amount, threshold=threshold, step=step))
