"""Tests that look at the rates of a noise path, and at a few higher rates if its finest is too coarse.

The last look is at the first rate of the path that keeps the shares. Any room that this rate leaves in the shares goes
to the early looks, so that values stop earlier. Rates, zones and shares depend only on the contract and the path's
rates.

Proofs: docs/proofs/three_zone.md, docs/proofs/reuse.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from mechanisms.noise.exact import LEAST_RATE, check_rate
from mechanisms.protocol import FunctionalTest
from mechanisms.threshold.boundary_crossing import MARGIN
from mechanisms.threshold.one_shot import (
    calibrate_at_rate,
    calibrate_test,
    find_least_rate,
    round_rate_up,
    round_up_to_float,
)
from mechanisms.threshold.three_zone import (
    SCHEDULE,
    EmptyGroups,
    Schedule,
    add_union_looks,
    calibrate_exactly_at,
    cap_early_shares,
)

Rates = tuple[Fraction, ...]

_WIDEST = 0.8  # of the shares, to early looks at most: the last needs the rest
_FRUGAL = (1.0, 0.25, 0.0625)  # of the usual early shares, tried in this order until the contract holds
_MOST_WIDENING = float(1 << 20)  # an end to widening where usual shares are tiny
_HALVINGS = 3  # leave an eighth between the widest shares found and too wide ones
_BISECTIONS = 4  # leave a sixteenth of the interval between the optimum and the union bound
_LEAST_GROWTH = Fraction(1025, 1024)  # from one rate of a path to the next: less would reveal next to nothing
_WORTH_A_LOOK = Fraction(9, 8)  # a further look must be at least that much finer than the path's last
_ALL_EARLY = sum(SCHEDULE.shares)


def calibrate_one_shot_on_path(
    rates: Rates, *, sensitivity: int, tolerance: int, fnr: float, fpr: float
) -> FunctionalTest:
    """Return a one-look test at the first rate of the path that keeps both shares.

    If no rate of the path does, it is at the least higher rate that does.

    Parameters:
        rates: the rates of the path, per unit of the functional.
        sensitivity, tolerance, fnr, fpr: as for `calibrate_test`.

    Raises:
        Unachievable: no rate within the sampler's range meets the shares.
    """
    for rate in rates:
        found = calibrate_at_rate(rate=rate, tolerance=tolerance, fnr=fnr, fpr=fpr)
        if found is not None:
            return _scale_epsilon(found, sensitivity)
    plain = calibrate_test(sensitivity=1, tolerance=tolerance, fnr=fnr, fpr=fpr, allow_block=False)
    return _scale_epsilon(_raise_to_floor(plain, _find_next_rate(rates)), sensitivity)


def calibrate_three_zone_on_path(
    rates: Rates,
    *,
    sensitivity: int,
    tolerance: int,
    fnr: float,
    fpr: float,
    is_two_sided: bool,
    empty: EmptyGroups | None = None,
) -> FunctionalTest:
    """Return a three-zone test with looks at the path's rates, up to the first rate that keeps both shares.

    Guarantee: that of `calibrate_three_zone`, which has the same parameters. The test looks at every rate of the path
    up to its own last rate. If the path is too coarse, the last rate is the least that keeps the shares with these
    looks, and further looks lie between it and the path.

    Raises:
        Unachievable: no rate within the sampler's range meets the shares.
    """
    return _scale_epsilon(
        _calibrate_unit_test(rates, tolerance, fnr, fpr, exact=not is_two_sided, empty=empty), sensitivity
    )


@lru_cache(maxsize=1024)
def _calibrate_unit_test(
    rates: Rates, tolerance: int, fnr: float, fpr: float, *, exact: bool, empty: EmptyGroups | None
) -> FunctionalTest:
    """Return the test for sensitivity one and these shares."""
    least = find_least_rate(tolerance=tolerance, fnr=fnr, fpr=fpr).rate
    found = None
    for place, rate in enumerate(rates):
        if float(rate) >= least and found is None:
            found = _calibrate_within_path(rates[:place], rate, tolerance, fnr, fpr, exact=exact, empty=empty)
    if found is None:
        found = _calibrate_beyond_path(rates, tolerance, fnr, fpr, exact=exact, empty=empty)
    return replace(found, fnr=fnr, fpr=fpr, tolerance=tolerance)


def _calibrate_within_path(
    early: Rates,
    rate: Fraction,
    tolerance: int,
    fnr: float,
    fpr: float,
    *,
    exact: bool,
    empty: EmptyGroups | None,
) -> FunctionalTest | None:
    """Return the test with its last look at a rate of the path, or None if it cannot keep the shares.

    Its early looks get the largest shares that the contract leaves room for.
    """
    if not early:
        return calibrate_at_rate(rate=rate, tolerance=tolerance, fnr=fnr * (1.0 - MARGIN), fpr=fpr * (1.0 - MARGIN))
    base = _make_schedule(early, rate, empty)
    most = min(_WIDEST / sum(base.shares), _MOST_WIDENING)

    def calibrate_scaled(factor: float) -> FunctionalTest | None:
        return _make_test_at_rate(_scale_shares(base, factor), rate, tolerance, fnr, fpr, exact=exact)

    for low in _FRUGAL:
        best = calibrate_scaled(low)
        if best is not None:
            break
    else:
        return None
    if not exact or low < 1.0:
        return best
    for factor in _list_widenings(1.0, most):
        wider = calibrate_scaled(factor)
        if wider is None:
            break
        low, best = factor, wider
    high = min(2.0 * low, most)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        wider = calibrate_scaled(middle)
        if wider is None:
            high = middle
        else:
            low, best = middle, wider
    return best


def _calibrate_beyond_path(
    rates: Rates, tolerance: int, fnr: float, fpr: float, *, exact: bool, empty: EmptyGroups | None
) -> FunctionalTest:
    """Return the test with its last look above the path, at a rate as low as the shares allow."""
    floor = _find_next_rate(rates)
    least = find_least_rate(tolerance=tolerance, fnr=fnr, fpr=fpr)
    kept = cap_early_shares(SCHEDULE, least).last * (1.0 - MARGIN)
    union = calibrate_test(sensitivity=1, tolerance=tolerance, fnr=fnr * kept, fpr=fpr * kept, allow_block=False)
    union = _raise_to_floor(union, floor)
    early = rates
    for rate in (union.rate * part for part in SCHEDULE.rates):
        if (
            rates[-1] * _WORTH_A_LOOK < rate
            and _find_next_rate(early) <= rate
            and _find_next_rate((rate,)) <= union.rate
        ):
            early = (*early, rate)

    def schedule(rate: Fraction) -> Schedule:
        return cap_early_shares(_make_schedule(early, rate, empty), least)

    best = add_union_looks(union, tolerance, fnr, fpr, schedule(union.rate))
    if not exact:
        return best
    high = float(union.rate)
    low = min(high, max(least.rate, float(_find_next_rate(early))))
    for _ in range(_BISECTIONS):
        middle = round_rate_up(0.5 * (low + high))
        if middle >= union.rate:
            break
        found = calibrate_exactly_at(middle, union, tolerance, fnr, fpr, schedule(middle))
        if found is None:
            low = float(middle)
        else:
            best, high = found, float(middle)
    return best


def _make_schedule(early: Sequence[Fraction], last: Fraction, empty: EmptyGroups | None) -> Schedule:
    """Return a schedule with looks at these rates.

    Shares are in proportion to the rates, and sum to at most the usual sum.
    """
    parts = tuple(rate / last for rate in early)
    shares = [float(part) / 20 for part in parts]
    factor = min(1.0, _ALL_EARLY / sum(shares))
    return Schedule(rates=parts, shares=tuple(factor * share for share in shares), empty=empty)


def _make_test_at_rate(
    schedule: Schedule, rate: Fraction, tolerance: int, fnr: float, fpr: float, *, exact: bool
) -> FunctionalTest | None:
    """Return the test at a fixed last rate, or None if it cannot keep the shares.

    The exact distribution is used if `exact`, otherwise the union bound.
    """
    kept = schedule.last * (1.0 - MARGIN)
    union = calibrate_at_rate(rate=rate, tolerance=tolerance, fnr=fnr * kept, fpr=fpr * kept)
    if exact:
        near = union or calibrate_test(
            sensitivity=1, tolerance=tolerance, fnr=fnr * kept, fpr=fpr * kept, allow_block=False
        )
        found = calibrate_exactly_at(rate, near, tolerance, fnr, fpr, schedule)
        if found is not None:
            return found
    return None if union is None else add_union_looks(union, tolerance, fnr, fpr, schedule)


def _list_widenings(start: float, most: float) -> Iterator[float]:
    while 2.0 * start <= most:
        start *= 2.0
        yield start


def _scale_shares(schedule: Schedule, factor: float) -> Schedule:
    return replace(schedule, shares=tuple(factor * share for share in schedule.shares))


def _find_next_rate(rates: Rates) -> Fraction:
    """Return the least rate that may follow a path's finest rate within the sampler's range."""
    return max(rates[-1] * _LEAST_GROWTH, rates[-1] + LEAST_RATE * 2)


def _raise_to_floor(test: FunctionalTest, floor: Fraction) -> FunctionalTest:
    """Return the test, or one with the same shares at the rate `floor` if its rate is lower."""
    if test.rate >= floor:
        return test
    rate = round_rate_up(float(floor))
    check_rate(rate)
    found = calibrate_at_rate(rate=rate, tolerance=test.tolerance, fnr=test.fnr, fpr=test.fpr)
    assert found is not None, "a higher rate meets what a lower one meets"
    return found


def _scale_epsilon(test: FunctionalTest, sensitivity: int) -> FunctionalTest:
    return replace(test, epsilon=round_up_to_float(test.rate * sensitivity))
