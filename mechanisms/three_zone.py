"""The three-zone test: a few cheap looks decide far values, the last look is the optimal one-shot test.

At each early look the noisy distance decides the literal false (low), true (high) or leaves it undecided; the values
are one gradual release, so a key that stops at a look has paid that look's rate alone. Looks, rates and shares depend
on the contract only.

References: MATHS M5, M8. Proof: docs/proofs/three_zone.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from mechanisms.crossing import MARGIN, Crossing, Zone
from mechanisms.discrete_laplace import lower_tail, upper_tail
from mechanisms.noise import LEAST_RATE
from mechanisms.protocol import FunctionalTest, Look
from mechanisms.threshold_test import (
    LeastRate,
    acceptance,
    at_least,
    block_tolerance,
    calibrate_test,
    least_rate,
    rejection,
    rounded_up,
)

_TIE_BITS = 32
_BISECTIONS = 4
_GUESSES = 3
_SURCHARGE = 0.05
_PROMISED = 1.0 - 0.5 * MARGIN


@dataclass(frozen=True, slots=True)
class Schedule:
    """How early looks relate to the last: rates as parts of its rate (dyadic, rising), shares as parts of its shares.

    The shares sum to less than one; the last look has the rest.
    """

    rates: tuple[Fraction, ...]
    shares: tuple[float, ...]

    @property
    def last(self) -> float:
        """What of each rate the last look keeps under the union bound."""
        return 1.0 - sum(self.shares)


_RATES = (Fraction(1, 16), Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))

SCHEDULE = Schedule(rates=_RATES, shares=tuple(float(rate) / 20 for rate in _RATES))
"""Found by search over contracts and distances (docs/proofs/three_zone.md): 92 % of the shares on the last look."""


def calibrate_three_zone(
    *,
    sensitivity: int,
    tolerance: int,
    fnr: float,
    fpr: float,
    allow_block: bool,
    two_sided: bool,
    schedule: Schedule = SCHEDULE,
) -> FunctionalTest:
    """A progressive test decided false with at most `fnr` at `c + 1` and true with at most `fpr` at `c - tolerance`.

    Guarantee: both hold over all looks together, for true values beyond by monotonicity; a value whose literal is
    decided at a look of rate `r` has lost `r * sensitivity` (block form: `r`). One-sided, the crossing probabilities
    are exact; two-sided, they are bounded by the sum of the looks' tails, so that `missed` and `wrong` are convex in
    the distance.

    Parameters:
        sensitivity, tolerance: integer units, >= 1 and >= 0.
        fnr, fpr: this functional's shares, in (0, 1).
        allow_block: noise on block indices where that is cheaper, see `calibrate_test`.
        two_sided: whether the functional has literals of both directions.
        schedule: the early looks.

    Raises:
        Unachievable: no rate within the sampler's range meets the shares.

    References: MATHS M8; docs/proofs/three_zone.md.
    """
    schedule = affordable(schedule, least_rate(tolerance=tolerance, fnr=fnr, fpr=fpr))
    one_shot = calibrate_test(
        sensitivity=sensitivity,
        tolerance=tolerance,
        fnr=fnr * schedule.last,
        fpr=fpr * schedule.last,
        allow_block=allow_block,
    )
    steps = tolerance if one_shot.block == 1 else block_tolerance(sensitivity=sensitivity, tolerance=tolerance)
    shape = _shape(steps, fnr, fpr, exact=not two_sided, schedule=schedule)
    return replace(
        shape,
        epsilon=at_least(shape.rate * (sensitivity if one_shot.block == 1 else 1)),
        fnr=fnr,
        fpr=fpr,
        tolerance=tolerance,
        block=one_shot.block,
    )


def affordable(schedule: Schedule, least: LeastRate) -> Schedule:
    """Smaller early shares where the contract is so loose that they would raise the last rate by over `_SURCHARGE`."""
    surcharge = -(least.slope_fnr + least.slope_fpr) * sum(schedule.shares)
    if surcharge <= _SURCHARGE * least.rate or least.rate == 0.0:
        return schedule
    factor = _SURCHARGE * least.rate / surcharge
    return replace(schedule, shares=tuple(factor * share for share in schedule.shares))


@lru_cache(maxsize=1024)
def _shape(tolerance: int, fnr: float, fpr: float, *, exact: bool, schedule: Schedule) -> FunctionalTest:
    """The test for sensitivity one."""
    kept = schedule.last * (1.0 - MARGIN)
    union = calibrate_test(sensitivity=1, tolerance=tolerance, fnr=fnr * kept, fpr=fpr * kept, allow_block=False)
    if union.rate * schedule.rates[0] < LEAST_RATE or fnr + fpr >= 1.0:
        return union
    best = with_looks(union, tolerance, fnr, fpr, schedule)
    if not exact:
        return best
    high = float(union.rate)
    low = min(high, least_rate(tolerance=tolerance, fnr=fnr, fpr=fpr).rate)
    for _ in range(_BISECTIONS):
        middle = rounded_up(0.5 * (low + high))
        found = exact_at(middle, union, tolerance, fnr, fpr, schedule)
        if found is None:
            low = float(middle)
        else:
            best, high = found, float(middle)
    return best


def with_looks(test: FunctionalTest, tolerance: int, fnr: float, fpr: float, schedule: Schedule) -> FunctionalTest:
    """Early looks whose tails stay within their shares and whose zones are nested around the last boundary."""
    rejecting, accepting = -test.shift - 1, -test.shift + 2
    looks: list[Look] = []
    for part, share in reversed(list(zip(schedule.rates, schedule.shares, strict=True))):
        rate = test.rate * part
        rejecting = min(rejecting, 1 + _quantile(float(rate), fnr * share))
        accepting = max(accepting, -tolerance - _quantile(float(rate), fpr * share))
        looks.append(Look(rate=rate, rejecting=rejecting, accepting=accepting))
    return replace(test, looks=tuple(reversed(looks)))


def _quantile(rate: float, share: float) -> int:
    """The greatest `q <= 0` with `P(K <= q) <= share`, with a margin."""
    limit = share * (1.0 - MARGIN)
    value = min(0, math.floor((math.log(limit) + math.log1p(math.exp(-rate))) / rate))
    while lower_tail(rate, value) > limit:
        value -= 1
    return value


def exact_at(
    rate: Fraction, union: FunctionalTest, tolerance: int, fnr: float, fpr: float, schedule: Schedule
) -> FunctionalTest | None:
    """The test at a lower rate, its last boundary moved until the false negatives are just met, if both rates hold."""
    if rate * schedule.rates[0] < LEAST_RATE:
        return None
    test = with_looks(replace(union, rate=rate), tolerance, fnr, fpr, schedule)
    crossing = crossing_of(test)
    early = sum(crossing.early_rejections(1))
    limit = fnr * (1.0 - MARGIN) - early
    boundary = _first_above(
        limit,
        lambda value: crossing.last_at_most(value, 1),
        low=test.looks[-1].rejecting,
        high=test.looks[-1].accepting - 1,
        near=-union.shift,
        rate=float(rate),
    )
    if boundary is None:
        return None
    below, at = crossing.last_at_most(boundary - 1, 1), crossing.last_at_most(boundary, 1)
    rejecting = min(1.0, max(0.0, (limit - below) / (at - below))) if at > below else 0.0
    tie = Fraction(math.ceil((1.0 - rejecting) * (1 << _TIE_BITS)), 1 << _TIE_BITS)
    found = replace(test, shift=-boundary, tie=tie)
    missed_at_one = early + ((1.0 - float(tie)) * at + float(tie) * below)
    kept = 1.0 - 0.75 * MARGIN
    met = missed_at_one <= fnr * kept and _accepted(crossing, found, -tolerance) <= fpr * kept
    return found if met else None


def _first_above(
    limit: float, below: Callable[[int], float], *, low: int, high: int, near: int, rate: float
) -> int | None:
    """The least value in `(low, high]` at which `below` (rising) exceeds the limit, `high` if none; None where it does
    at `low` already. Looked for around `near`, from which `below` falls about as `exp(rate * value)`."""
    for _ in range(_GUESSES):
        chance = below(near) if low < near < high else 0.0
        if chance <= 0.0 or limit <= 0.0:
            break
        near += round(math.log(limit / chance) / rate)
    if low < near < high:
        step = 1
        if below(near) > limit:
            while near > low and below(near) > limit:
                high, near, step = near, max(low, near - step), 2 * step
            low = near
        else:
            while near < high and below(near) <= limit:
                low, near, step = near, min(high, near + step), 2 * step
            high = near
    if below(low) > limit:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if below(middle) <= limit else (low, middle)
    return high


def crossing_of(test: FunctionalTest) -> Crossing:
    """The law of a calibrated test's path."""
    return Crossing.of(
        [Zone(rate=float(look.rate), low=look.rejecting + 1, high=look.accepting - 1) for look in test.looks],
        last_rate=float(test.rate),
    )


def exact_rejection(test: FunctionalTest, distance: int) -> float:
    """The probability of being decided false, at whichever look, at a distance in steps of the noise."""
    return _rejected(crossing_of(test), test, distance)


def exact_acceptance(test: FunctionalTest, distance: int) -> float:
    """The probability of being decided true, accurate where it is tiny."""
    return _accepted(crossing_of(test), test, distance)


def _rejected(crossing: Crossing, test: FunctionalTest, distance: int) -> float:
    boundary = -test.shift
    last = (1.0 - float(test.tie)) * crossing.last_at_most(boundary, distance)
    last += float(test.tie) * crossing.last_at_most(boundary - 1, distance)
    return sum(crossing.early_rejections(distance)) + last


def _accepted(crossing: Crossing, test: FunctionalTest, distance: int) -> float:
    boundary = -test.shift
    last = float(test.tie) * crossing.last_at_least(boundary, distance)
    last += (1.0 - float(test.tie)) * crossing.last_at_least(boundary + 1, distance)
    return sum(crossing.early_acceptances(distance)) + last


def missed(test: FunctionalTest, distance: int) -> float:
    """A bound on the probability that the literal is decided false at a distance, convex from distance one on."""
    tails = sum(lower_tail(float(look.rate), look.rejecting - _steps(test, distance)) for look in test.looks)
    total = tails + rejection(test, distance)
    return min(total, _PROMISED * test.fnr) if distance >= 1 else min(total, 1.0)


def wrong(test: FunctionalTest, distance: int) -> float:
    """A bound on the probability that the literal is decided true at a distance, convex from `-tolerance` down."""
    tails = sum(upper_tail(float(look.rate), look.accepting - _steps(test, distance)) for look in test.looks)
    total = tails + acceptance(test, distance)
    return min(total, _PROMISED * test.fpr) if distance <= -test.tolerance else min(total, 1.0)


def expected_rate(test: FunctionalTest, distance: int) -> float:
    """The mean rate at which a literal alone on its functional stops, at a distance in steps of the noise."""
    rates = [float(look.rate) for look in test.looks] + [float(test.rate)]
    reached = (1.0, *crossing_of(test).undecided(distance))
    return sum((rate - before) * chance for rate, before, chance in zip(rates, [0.0, *rates], reached, strict=False))


def _steps(test: FunctionalTest, distance: int) -> int:
    return (distance - 1) // test.block + 1
