"""The law of an alarm's outcome by decimal arithmetic and fractions, from the formulas of its proof alone."""

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from math import floor, isqrt

from mechanisms.alarm.calibration import AlarmCalibration, AlarmTask, calibrate_alarm
from mechanisms.alarm.shapes import Regime
from mechanisms.certified import bound_exponentials

PRECISION = 120  # decimal places: weights have 39 significant ones
BITS = 400  # of certified exponentials; what is compared differs by 2**-124 at least
ROOT_BITS = 4000  # of roots: what lies between two of them may have a chance of 1e-600

EXPONENTS = {
    Regime.GROWING: (0, Fraction(1)),
    Regime.COMING_AND_GOING: (1, Fraction(1)),
    Regime.SIGNED: (2, Fraction(1)),
    Regime.SLIDING: (0, Fraction(1, 2)),
}
"""`s` and `q` of each regime's law."""

FACTORS = {Regime.GROWING: 1, Regime.COMING_AND_GOING: 2, Regime.SIGNED: 3, Regime.SLIDING: 2}


def calibrated(
    regime: Regime = Regime.GROWING,
    *,
    looks: int = 3,
    cut: int = 0,
    tolerance: int = 1,
    sensitivity: int = 1,
    fnr: float = 0.05,
    fpr: float = 0.1,
    least: int | None = -20,
) -> AlarmCalibration:
    return calibrate_alarm(
        AlarmTask(
            looks=looks,
            cut=cut,
            tolerance=tolerance,
            sensitivity=sensitivity,
            fnr=fnr,
            fpr=fpr,
            regime=regime,
            least_value=least,
        )
    )


@cache
def weight_by_hand(rate: Fraction, steps: int) -> int:
    """`exp(rate * steps) * 2**127`, the first 128 binary digits of it."""
    with localcontext() as context:
        context.prec = PRECISION
        exact = (Decimal(rate.numerator) * steps / Decimal(rate.denominator)).exp() * 2**127
        excess = max(0, floor(exact).bit_length() - 128)
        return floor(exact / (1 << excess)) << excess


def rung_by_hand(calibration: AlarmCalibration, totals: Sequence[int]) -> list[Fraction]:
    """The chance to have rung by each total; where it is irrational, to 4,000 binary digits."""
    s, q = EXPONENTS[calibration.task.regime]
    low, high = q / (1 + s + q), (1 + s) / (1 + s + q)
    chances = []
    for total in totals:
        over = Fraction(total, calibration.threshold_step)
        if over <= 1:
            chances.append(low * over ** (1 + s))
        elif q == 1:
            chances.append(1 - high / over)
        else:
            chances.append(1 - high * _root(1 / over))
    return chances


def totals_by_hand(calibration: AlarmCalibration, values: Sequence[int]) -> list[int]:
    """The sum of weights by each look; in the growing regime each value counts as the highest so far."""
    counted = accumulate(values, max) if calibration.task.regime is Regime.GROWING else values
    steps = [max(0, value - calibration.lowest_value) for value in counted]
    return list(accumulate(weight_by_hand(calibration.rate, one) for one in steps))


def outcomes_by_hand(calibration: AlarmCalibration, values: Sequence[int]) -> list[Fraction]:
    """The chance to ring at each look, and at last that of never ringing."""
    return outcomes_of_totals(calibration, totals_by_hand(calibration, values))


def outcomes_of_totals(calibration: AlarmCalibration, totals: Sequence[int]) -> list[Fraction]:
    rung = [Fraction(0), *rung_by_hand(calibration, totals), Fraction(1)]
    return [after - before for before, after in pairwise(rung)]


def within(ours: Fraction, theirs: Fraction, loss: Fraction) -> bool:
    """Whether `ours <= exp(loss) * theirs`, certainly."""
    bits = BITS + 2 * floor(loss)  # as the exponential gets smaller, more digits of it are needed
    ((_, most),) = bound_exponentials(loss, 0, bits)
    return bool(ours * most <= theirs * (1 << bits))


def _root(value: Fraction) -> Fraction:
    scaled = value * 4**ROOT_BITS
    return Fraction(isqrt(scaled.numerator // scaled.denominator), 2**ROOT_BITS)
