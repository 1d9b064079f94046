"""The law of discrete Laplace noise summed up term by term in forty digits: nothing in common with the product's."""

from decimal import Decimal, localcontext
from fractions import Fraction

DIGITS = 40
_LEAST_MASS = Decimal("1e-25")  # beyond, the law is cut off


def overtaken(rate: Fraction, *, behind: int, ahead: int, distance: int) -> Decimal:
    """`P(max of behind draws >= min of ahead draws + distance)`, to some twenty digits."""
    with localcontext(prec=DIGITS):
        masses = law(rate)
        furthest = max(masses)
        at_most, total = {-furthest - 1: Decimal(0)}, Decimal(0)
        for value in sorted(masses):
            total += masses[value]
            at_most[value] = total
        result = Decimal(0)
        for value in sorted(masses):
            below = value - distance
            falls_short = at_most[max(-furthest - 1, min(below, furthest))]
            largest = at_most[value] ** behind - at_most[value - 1] ** behind
            result += largest * (1 - (1 - falls_short) ** ahead)
        return result


def law(rate: Fraction) -> dict[int, Decimal]:
    """The masses of discrete Laplace noise, as far out as matters."""
    with localcontext(prec=DIGITS):
        decay = (-Decimal(rate.numerator) / Decimal(rate.denominator)).exp()
        middle = (1 - decay) / (1 + decay)
        found, mass, value = {0: middle}, middle, 0
        while mass > _LEAST_MASS:
            mass, value = mass * decay, value + 1
            found[value] = found[-value] = mass
        return found
