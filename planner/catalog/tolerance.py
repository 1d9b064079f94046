"""How far beyond its threshold an atom may err: the text that sets it, and the integer tolerance that follows."""

import re
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import floor

from planner.errors import KeyholeError


@dataclass(frozen=True, slots=True)
class Amount:
    """A tolerance: in percent of a threshold's absolute value, or in the analyst's own unit.

    With `bounds` it is in percent of what the declared bounds let a sum come to in a group of `min_rows` rows, or a
    mean in any: for differences, whose threshold is 0.
    """

    number: Decimal
    percent: bool
    bounds: bool = False

    @property
    def text(self) -> str:
        """The amount as a setting has it."""
        return f"{self.number:f}{'%' if self.percent else OF_BOUNDS if self.bounds else ''}"

    def times(self, factor: Decimal) -> "Amount":
        """Return the amount times a factor; percentages end at 100."""
        number = self.number * factor
        return replace(self, number=(number if not (self.percent or self.bounds) else min(number, Decimal(100))))

    def size(self, *, threshold: Fraction, bounds: Fraction) -> Fraction:
        """Return its size, in the unit of the threshold; `bounds` are those that a percentage refers to."""
        number = Fraction(self.number)
        return abs(threshold) * number / 100 if self.percent else bounds * number / 100 if self.bounds else number


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Tolerances by aggregate: `named` by its text, its function or its column; `default` for all others."""

    default: Amount | None
    named: tuple[tuple[str, Amount], ...]

    def amount(self, names: tuple[str, ...]) -> Amount | None:
        """Return the tolerance of an aggregate known by these names, the clearest first."""
        if not self.named:
            return self.default
        named = dict(self.named)
        return next((named[name] for name in map(squeeze_name, names) if name in named), self.default)


def squeeze_name(name: str) -> str:
    """Return the name in lower case, without spaces."""
    return re.sub(r"\s+", "", name).lower()


OF_BOUNDS = "% of bounds"
_HINT = "Write for example '10%', '25', 'count=25, avg(age)=2', or of a difference '5% of bounds'."


def _refusal(message: str) -> KeyholeError:
    return KeyholeError("KH402", message, hint=_HINT)


def _amount(text: str) -> Amount:
    words = " ".join(text.lower().split())
    bounds = re.fullmatch(r"(\S*) ?% of bounds", words)
    percent = text.endswith("%")
    try:
        number = Decimal(bounds[1] if bounds else text.removesuffix("%").strip())
    except InvalidOperation:
        raise _refusal(f"keyhole.tolerance: {text[:40]!r} is neither a percentage nor a number") from None
    exponent = number.as_tuple().exponent  # for NaN and infinities this is a letter
    if not isinstance(exponent, int) or number < 0 or number.adjusted() > 18 or exponent < -18:
        raise _refusal(f"keyhole.tolerance: {text[:40]!r} is out of range")
    if (percent or bounds) and number > 100:
        raise _refusal("keyhole.tolerance: a percentage is at most 100 %")
    return Amount(number=number, percent=percent, bounds=bounds is not None)


def split_outside(text: str, *, by: str) -> list[str]:
    """Return the parts of a text between characters `by` outside parentheses, without the spaces around them."""
    items, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == by and depth == 0:
            items.append("")
        else:
            items[-1] += character
    return [item.strip() for item in items]


def tolerances(text: str) -> Tolerances:
    """Parse the tolerances that a text sets. Raise KH402."""
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
    """The worth of one integer step of a functional in the analyst's unit, for an average times `rows` rows.

    And what a percentage of the declared bounds is one of.
    """

    unit_size: Fraction
    rows: int
    bounds: Fraction = Fraction(0)


def allowed_steps(amount: Amount, *, threshold: Fraction, step: Step, hint: str | None = None) -> Fraction:
    """Return the tolerance in integer steps, not yet rounded. `hint` says what to do if it is a percentage of zero.

    Raises KH304 for a percentage of zero, which would be no tolerance at all.
    """
    if amount.percent and threshold == 0:
        raise KeyholeError(
            "KH304",
            "a percentage of the threshold 0 is no tolerance",
            detail="A tolerance in percent is a part of the threshold itself.",
            hint=hint,
        )
    return amount.size(threshold=threshold, bounds=step.bounds) * step.rows / step.unit_size


def quote_literal(text: str) -> str:
    """Return the text as it stands in a string literal."""
    return text.replace("'", "''")


def widen_tolerances(tolerance: str, factor: Decimal) -> str:
    """Return all tolerances of a setting's text times a factor; percentages end at 100 %."""
    found = tolerances(tolerance)

    def wider(amount: Amount) -> str:
        widened = amount.times(factor)
        return replace(widened, number=widened.number.normalize()).text

    texts = [] if found.default is None else [wider(found.default)]
    return ", ".join((*texts, *(f"{name}={wider(amount)}" for name, amount in found.named)))


def with_amount(text: str, name: str, amount: Decimal | str) -> str:
    """Return the tolerances of a text with one of an amount for `name`, in place of its earlier one."""
    kept = [item for item in split_outside(text, by=",") if squeeze_name(item.rpartition("=")[0]) != squeeze_name(name)]
    return ", ".join((*kept, f"{name}={amount}"))


def steps(amount: Amount, *, threshold: Fraction, step: Step) -> int:
    """Return the tolerance in integer steps, rounded down. Raise KH304."""
    return floor(allowed_steps(amount, threshold=threshold, step=step))
