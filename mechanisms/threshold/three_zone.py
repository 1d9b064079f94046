"""The three-zone test: a few cheap looks decide far values, and the last look is the optimal one-shot test.

At each early look the noisy distance decides the literal false (low) or true (high), or leaves it undecided. The values
are one gradual release, so a key that stops at a look has lost only that look's rate. Looks, rates and shares depend on
the contract only.

Proof: docs/proofs/three_zone.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache

from mechanisms.noise.discrete_laplace import compute_lower_tail, compute_upper_tail
from mechanisms.noise.exact import LEAST_RATE
from mechanisms.protocol import FunctionalTest, Look, SecondNoise
from mechanisms.threshold.boundary_crossing import MARGIN, Crossing, Zone
from mechanisms.threshold.one_shot import (
    LeastRate,
    calibrate_test,
    compute_acceptance,
    compute_rejection,
    compute_tail_of_two_sums,
    count_blocks_in_tolerance,
    find_least_rate,
    find_quantile_of_two_sums,
    round_rate_up,
    round_up_to_float,
)

_TIE_BITS = 32  # of a tie, as for one look
_BISECTIONS = 8  # leave 1/256 of the interval from optimum to union bound: a sixteenth showed as prices that rose
_CLEAR = 0.02  # of the interval: how far a step must be from where the shares are just met to go unworked
_SMOOTH = Fraction(1, 16)  # up to this rate the noise is so wide that excess falls evenly in the rate
_TINIEST = 1e-300  # keeps a logarithm finite
_GUESSES = 3  # of the boundary by how its tail falls, before it is bracketed
_COMPARED = 1.1  # times the cheaper one's optimum: early looks cost at most `_SURCHARGE` of either
_SURCHARGE = 0.05  # of the last rate: what early looks may cost where the contract is loose
PROMISED = 1.0 - 0.5 * MARGIN
"""The largest part of a share that `bound_false_reject` and `bound_false_accept` may reach.

The rest covers the rounding of sums of shares."""


@dataclass(frozen=True, slots=True)
class EmptyGroups:
    """Public facts about groups without rows, which may be most of a large key domain.

    Early looks may return one of them by chance. `return_probability` bounds the probability that all early looks
    together add to that of the last look. `steps_from_passing` is how far these groups are from passing, in integer
    units. In a schedule it is in steps of the noise.
    """

    steps_from_passing: int
    return_probability: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """The early looks of a test: rates as rising fractions of the last rate, and shares as parts of the error rates.

    The rates are dyadic. The shares sum to less than one, and the last look has the rest. Early looks accept an empty
    group at most as often as the last look does, or as `empty` allows, whichever is more.
    """

    rates: tuple[Fraction, ...]
    shares: tuple[float, ...]
    empty: EmptyGroups | None = None

    @property
    def last(self) -> float:
        """The part of each error rate that is left for the last look, under the union bound."""
        return 1.0 - sum(self.shares)


# parts of the last rate: more looks gain little and draw more noise; found by the search that `SCHEDULE` names
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
    is_two_sided: bool,
    most_steps: int | None = None,
    schedule: Schedule = SCHEDULE,
    empty: EmptyGroups | None = None,
) -> FunctionalTest:
    """Calibrate a progressive test of both error rates.

    The literal is decided false with probability at most `fnr` at `c + 1`, and true with at most `fpr` at `c -
    tolerance`.

    Guarantee: both rates hold over all looks together, and by monotonicity for true values further away. A value whose
    literal is decided at a look of rate `r` has lost `r * sensitivity` (with blocks: `r`). For a one-sided test the
    probabilities are exact. For a two-sided one they are bounded by the sum of the looks' tails, so that
    `bound_false_reject` and `bound_false_accept` are convex in the distance.

    Parameters:
        sensitivity, tolerance: integer units, >= 1 and >= 0.
        fnr, fpr: this functional's shares, in (0, 1).
        allow_block, most_steps: noise on block indices where that is cheaper, see `calibrate_test`.
        is_two_sided: whether the functional has literals of both directions.
        schedule: the early looks.
        empty: public facts about groups without rows. They move early boundaries outward, and hardly change the worst
            case.

    Raises:
        Unachievable: no rate within the sampler's range meets the shares.

    References: docs/proofs/three_zone.md.
    """
    schedule = cap_early_shares(schedule, find_least_rate(tolerance=tolerance, fnr=fnr, fpr=fpr))
    grains = _list_grains(sensitivity, tolerance, fnr, fpr, allow_block=allow_block, most_steps=most_steps)

    def calibrate(block: int, steps: int) -> FunctionalTest:
        own = (
            None
            if empty is None
            else EmptyGroups((empty.steps_from_passing + block) // block - 1, empty.return_probability)
        )
        shape = _calibrate_unit_test(steps, fnr, fpr, exact=not is_two_sided, schedule=replace(schedule, empty=own))
        return replace(
            shape,
            epsilon=round_up_to_float(shape.rate * (sensitivity if block == 1 else 1)),
            fnr=fnr,
            fpr=fpr,
            tolerance=tolerance,
            block=block,
        )

    return min((calibrate(*grain) for grain in grains), key=lambda test: test.epsilon)


def _list_grains(
    sensitivity: int, tolerance: int, fnr: float, fpr: float, *, allow_block: bool, most_steps: int | None
) -> list[tuple[int, int]]:
    """Return pairs of units of a block and the tolerance in steps of the noise.

    One pair is for noise on the sum, one for noise on blocks. Both are returned if early looks may decide which is
    cheaper.
    """
    on_sum = (1, tolerance)
    if not allow_block or sensitivity == 1:
        return [on_sum]
    blocks = (
        sensitivity,
        count_blocks_in_tolerance(sensitivity=sensitivity, tolerance=tolerance, most_steps=most_steps),
    )
    losses = {
        grain: max(find_least_rate(tolerance=grain[1], fnr=fnr, fpr=fpr).rate, float(LEAST_RATE)) * per_rate
        for grain, per_rate in ((on_sum, sensitivity), (blocks, 1))
    }
    return [grain for grain, loss in losses.items() if loss <= _COMPARED * min(losses.values())]


def cap_early_shares(schedule: Schedule, least: LeastRate) -> Schedule:
    """Return the schedule with smaller early shares if they would raise the last rate by more than `_SURCHARGE`."""
    surcharge = -(least.slope_fnr + least.slope_fpr) * sum(schedule.shares)
    if surcharge <= _SURCHARGE * least.rate or least.rate == 0.0:
        return schedule
    factor = _SURCHARGE * least.rate / surcharge
    return replace(schedule, shares=tuple(factor * share for share in schedule.shares))


@lru_cache(maxsize=1024)
def _calibrate_unit_test(tolerance: int, fnr: float, fpr: float, *, exact: bool, schedule: Schedule) -> FunctionalTest:
    """Return the test for sensitivity one."""
    union = _calibrate_by_union_bound(tolerance, fnr, fpr, last=schedule.last)
    if union.rate * schedule.rates[0] < LEAST_RATE or fnr + fpr >= 1.0:
        return union
    if not exact:
        return add_union_looks(union, tolerance, fnr, fpr, schedule)
    least = find_least_rate(tolerance=tolerance, fnr=fnr, fpr=fpr)
    tried = cache(lambda rate: _try_rate(rate, union, tolerance, fnr, fpr, schedule))
    for slack in (_CLEAR, math.inf) if union.rate <= _SMOOTH else (math.inf,):
        rate = _bisect_rate(tried, low=least.rate, high=float(union.rate), fall=-1.0 / least.slope_fpr, slack=slack)
        if rate is None:
            return add_union_looks(union, tolerance, fnr, fpr, schedule)
        found = tried(rate)
        if found is not None and found.test is not None:
            return found.test
    raise AssertionError("every rate was tried, and the last to meet the shares is returned")


@lru_cache(maxsize=1024)
def _calibrate_by_union_bound(tolerance: int, fnr: float, fpr: float, *, last: float) -> FunctionalTest:
    """Return the last look under the union bound, for sensitivity one. It has the part `last` of each share.

    No test of this module has a higher rate.
    """
    kept = last * (1.0 - MARGIN)
    return calibrate_test(sensitivity=1, tolerance=tolerance, fnr=fnr * kept, fpr=fpr * kept, allow_block=False)


def _bisect_rate(
    tried: Callable[[Fraction], "_RateAttempt | None"], *, low: float, high: float, fall: float, slack: float
) -> Fraction | None:
    """Return the last rate that bisection of `[low, high]` finds to keep the shares, or None if none does.

    Each trial predicts the rate at which the shares are just kept, from the speed at which false positives fall. A
    further rate is tried only if it is within `slack` times the interval of this prediction. An untried rate may be
    wrong.
    """
    low = min(low, high)
    slack *= high - low
    just: float | None = None
    best = None
    for _ in range(_BISECTIONS):
        middle = round_rate_up(0.5 * (low + high))
        if just is None or abs(float(middle) - just) <= slack:
            found = tried(middle)
            meets = found is not None and found.test is not None
            just = None if found is None else float(middle) + found.excess / fall
        else:
            meets = float(middle) > just
        if meets:
            best, high = middle, float(middle)
        else:
            low = float(middle)
    return best


def add_union_looks(test: FunctionalTest, tolerance: int, fnr: float, fpr: float, schedule: Schedule) -> FunctionalTest:
    """Add early looks to a test.

    Each early look errs at most by its share of the rates, and decides only values far from the boundary.
    """
    zones = _compute_zones(test.rate, test.shift, tolerance, fnr, fpr, schedule, beside=test.beside)
    return _add_looks(test, zones, schedule.rates)


def _compute_zones(
    rate: Fraction,
    shift: int,
    tolerance: int,
    fnr: float,
    fpr: float,
    schedule: Schedule,
    *,
    beside: SecondNoise | None = None,
) -> tuple[Zone, ...]:
    """Return the zones of values that early looks leave undecided."""
    rejecting, accepting = -shift - 1, -shift + 2
    zones: list[Zone] = []
    for part, share in zip(reversed(schedule.rates), reversed(schedule.shares), strict=True):
        early = _multiply_rate(rate, part)
        also = None if beside is None else replace(beside, rate=beside.rate * part)
        rejecting = min(rejecting, 1 + _find_quantile(early, fnr * share, also))
        accepting = max(accepting, -tolerance - _find_quantile(early, fpr * share, also))
        if schedule.empty is not None:
            chance = _bound_chance_of_empty(schedule.empty, rate, tolerance, fpr) / len(schedule.rates)
            accepting = max(accepting, -schedule.empty.steps_from_passing - _find_quantile(early, chance, also))
        zones.append(Zone(rate=early, low=rejecting + 1, high=accepting - 1))
    return tuple(reversed(zones))


def _bound_chance_of_empty(empty: EmptyGroups, rate: Fraction, tolerance: int, fpr: float) -> float:
    """Return the probability with which early looks may accept a group without rows.

    It is `empty.chance` or the last look's probability, if that is more. The latter falls from `fpr` at the tolerance
    as the noise does.
    """
    return max(empty.return_probability, fpr * math.exp(-float(rate) * max(0, empty.steps_from_passing - tolerance)))


def _multiply_rate(rate: Fraction, part: Fraction) -> float:
    """Return `float(rate * part)`, rounded once without reducing the fraction."""
    return (rate.numerator * part.numerator) / (rate.denominator * part.denominator)


def _add_looks(test: FunctionalTest, zones: Sequence[Zone], rates: Sequence[Fraction]) -> FunctionalTest:
    """Return the test with early looks at these parts of its rate."""
    looks = (
        Look(rate=test.rate * part, rejecting=zone.low - 1, accepting=zone.high + 1)
        for part, zone in zip(rates, zones, strict=True)
    )
    return replace(test, looks=tuple(looks))


def _find_quantile(rate: float, share: float, beside: SecondNoise | None = None) -> int:
    """Return the greatest `q <= 0` with `P(K <= q) <= share`, less a margin."""
    limit = share * (1.0 - MARGIN)
    if beside is not None:
        return -find_quantile_of_two_sums(rate, limit, beside)
    value = min(0, math.floor((math.log(limit) + math.log1p(math.exp(-rate))) / rate))
    while compute_lower_tail(rate, value) > limit:
        value -= 1
    return value


def calibrate_exactly_at(
    rate: Fraction, union: FunctionalTest, tolerance: int, fnr: float, fpr: float, schedule: Schedule
) -> FunctionalTest | None:
    """Return the test at a lower rate, or None if it cannot keep both error rates.

    Its last boundary is set so that false negatives use all of their share.
    """
    found = _try_rate(rate, union, tolerance, fnr, fpr, schedule)
    return None if found is None else found.test


@dataclass(frozen=True, slots=True)
class _RateAttempt:
    """The attempt to calibrate at a rate.

    `test` is set if it keeps both shares. `excess` is the logarithm of its false positives relative to their share.
    """

    test: FunctionalTest | None
    excess: float


def _try_rate(
    rate: Fraction, union: FunctionalTest, tolerance: int, fnr: float, fpr: float, schedule: Schedule
) -> _RateAttempt | None:
    if rate * schedule.rates[0] < LEAST_RATE:
        return None
    zones = _compute_zones(rate, union.shift, tolerance, fnr, fpr, schedule)
    return _try_zones(rate, zones, union, tolerance, fnr, fpr, schedule.rates)


@lru_cache(maxsize=1024)
def _try_zones(
    rate: Fraction,
    zones: tuple[Zone, ...],
    union: FunctionalTest,
    tolerance: int,
    fnr: float,
    fpr: float,
    rates: tuple[Fraction, ...],
) -> _RateAttempt | None:
    """Return the attempt at a rate with these early zones.

    It is cached, since the distance of empty groups seldom changes the zones.
    """
    crossing = Crossing.from_zones(zones, last_rate=float(rate))
    rejected = cache(lambda value: crossing.compute_probability_last_at_most(value, 1))
    early = sum(crossing.list_early_rejections(1))
    limit = fnr * (1.0 - MARGIN) - early
    boundary = _find_first_exceeding(
        limit, rejected, low=zones[-1].low - 1, high=zones[-1].high, near=-union.shift, rate=float(rate)
    )
    if boundary is None:
        return None
    below, at = rejected(boundary - 1), rejected(boundary)
    rejecting = min(1.0, max(0.0, (limit - below) / (at - below))) if at > below else 0.0
    tie = Fraction(math.ceil((1.0 - rejecting) * (1 << _TIE_BITS)), 1 << _TIE_BITS)
    found = replace(union, rate=rate, shift=-boundary, tie=tie)
    missed_at_one = early + ((1.0 - float(tie)) * at + float(tie) * below)
    kept = 1.0 - 0.75 * MARGIN
    accepted = _compute_acceptance(crossing, found, -tolerance)
    met = missed_at_one <= fnr * kept and accepted <= fpr * kept
    return _RateAttempt(
        test=_add_looks(found, zones, rates) if met else None,
        excess=math.log(max(accepted, _TINIEST) / (fpr * kept)),
    )


def _find_first_exceeding(
    limit: float, below: Callable[[int], float], *, low: int, high: int, near: int, rate: float
) -> int | None:
    """Return the least value in `(low, high]` at which `below`, which rises, exceeds the limit, or `high` if none does.

    Return None if it does at `low` already. The search starts around `near`, below which `below` falls roughly as
    `exp(rate * value)`.
    """
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


def make_crossing(test: FunctionalTest) -> Crossing:
    """Return the exact distribution of the look that decides a calibrated test's literal."""
    return Crossing.from_zones(
        [Zone(rate=float(look.rate), low=look.rejecting + 1, high=look.accepting - 1) for look in test.looks],
        last_rate=float(test.rate),
    )


def compute_exact_rejection(test: FunctionalTest, distance: int) -> float:
    """Return the probability that any look decides the literal false, at a distance in steps of the noise."""
    return _compute_rejection(make_crossing(test), test, distance)


def compute_exact_acceptance(test: FunctionalTest, distance: int) -> float:
    """Return the probability that any look decides the literal true, accurate even if it is tiny."""
    return _compute_acceptance(make_crossing(test), test, distance)


def _compute_rejection(crossing: Crossing, test: FunctionalTest, distance: int) -> float:
    boundary = -test.shift
    last = (1.0 - float(test.tie)) * crossing.compute_probability_last_at_most(boundary, distance)
    last += float(test.tie) * crossing.compute_probability_last_at_most(boundary - 1, distance)
    return sum(crossing.list_early_rejections(distance)) + last


def _compute_acceptance(crossing: Crossing, test: FunctionalTest, distance: int) -> float:
    boundary = -test.shift
    last = float(test.tie) * crossing.compute_probability_last_at_least(boundary, distance)
    last += (1.0 - float(test.tie)) * crossing.compute_probability_last_at_least(boundary + 1, distance)
    return sum(crossing.list_early_acceptances(distance)) + last


def bound_false_reject(test: FunctionalTest, distance: int) -> float:
    """Return a bound on the probability that the literal is decided false at a distance, convex from distance one."""
    if test.beside is not None:
        fine = test.beside.scale * distance
        tails = sum(compute_tail_of_two_sums(test, look.rate, fine - look.rejecting) for look in test.looks)
    else:
        tails = sum(
            compute_lower_tail(float(look.rate), look.rejecting - _convert_to_steps(test, distance))
            for look in test.looks
        )
    total = tails + compute_rejection(test, distance)
    return min(total, PROMISED * test.fnr) if distance >= 1 else min(total, 1.0)


def bound_false_accept(test: FunctionalTest, distance: int) -> float:
    """Return a bound on the probability that the literal is decided true at a distance, convex below `-tolerance`."""
    if test.beside is not None:
        fine = test.beside.scale * distance
        tails = sum(compute_tail_of_two_sums(test, look.rate, look.accepting - fine) for look in test.looks)
    else:
        tails = sum(
            compute_upper_tail(float(look.rate), look.accepting - _convert_to_steps(test, distance))
            for look in test.looks
        )
    total = tails + compute_acceptance(test, distance)
    return min(total, PROMISED * test.fpr) if distance <= -test.tolerance else min(total, 1.0)


def compute_expected_rate(test: FunctionalTest, distance: int) -> float:
    """Return the mean rate at which the only literal on a functional is decided, at a distance in steps of the noise.

    If the value is far from its threshold, this is a fraction of the rate at the threshold:

    >>> test = calibrate_three_zone(
    ...     sensitivity=1, tolerance=100, fnr=0.05, fpr=0.1, allow_block=False, is_two_sided=False
    ... )
    >>> [round(compute_expected_rate(test, distance) / float(test.rate), 2) for distance in (1, 500, 2000)]
    [0.97, 0.38, 0.12]
    """
    rates = [float(look.rate) for look in test.looks] + [float(test.rate)]
    reached = (1.0, *make_crossing(test).list_undecided_chances(distance))
    return sum((rate - before) * chance for rate, before, chance in zip(rates, [0.0, *rates], reached, strict=False))


def _convert_to_steps(test: FunctionalTest, distance: int) -> int:
    return (distance - 1) // test.block + 1
