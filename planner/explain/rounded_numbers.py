"""Numbers in EXPLAIN, written as an analyst would, and rounded so that they stay bounds."""

from decimal import ROUND_DOWN, ROUND_UP, Decimal

_NOISE = Decimal("1e-6")  # of a share: what calibration rounds by, far below what is shown
_CENT = Decimal("0.01")  # what epsilons are rounded to for people, to the safe side; sums are kept exactly elsewhere


def spell_number(number: Decimal) -> str:
    """Return a number as an analyst writes it: no exponent, no trailing zeros, at most six decimals."""
    text = format(round(number, 6), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def write_ceiling(epsilon: float) -> str:
    """Return a loss rounded up to two decimals."""
    return format(Decimal(str(epsilon)).quantize(_CENT, rounding=ROUND_UP), "f")


def write_floor(epsilon: float) -> str:
    """Return a balance rounded down to two decimals."""
    return format(Decimal(str(epsilon)).quantize(_CENT, rounding=ROUND_DOWN), "f")


def write_share(rate: float, *, of: float) -> str:
    """Return one literal's share of a promised error rate in percent, as text.

    It is rounded up to two decimals, but never above the promise: calibration may exceed the promise by a rounding
    error.
    """
    shown = (Decimal(str(rate)) * 100 * (1 - _NOISE)).quantize(_CENT, rounding=ROUND_UP)
    most = Decimal(str(of)) * 100
    return f"{shown} %" if shown <= most else f"{most if most.adjusted() < -2 else most.quantize(_CENT)} %"


def write_percent(rate: float, *, places: int = 6) -> str:
    """Return a rate in percent as text, rounded up."""
    hundredths = (Decimal(str(rate)) * 100).quantize(Decimal(1).scaleb(-places), rounding=ROUND_UP)
    return f"{hundredths if places == 2 else spell_number(hundredths)} %"
