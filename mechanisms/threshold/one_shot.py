"""The optimal one-shot threshold test: least epsilon for two bounded error rates and a tolerance.

With one noisy value `y = S + K`, the test accepts `S > c` if `y > c - shift` and rejects it if `y < c - shift`. On the
boundary it accepts with probability `tie`. Distances are in the literal's own direction: `d = S - c` for `S > c` and `d
= c + 1 - S` for `S <= c`, so the literal holds from `d = 1` on and its relaxation is false up to `d = -tolerance`.

References: Awan and Slavkovic (Tulap, without its uniform part). Proof: docs/proofs/optimal_test.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from mechanisms.noise import weighted_sum
from mechanisms.noise.discrete_laplace import compute_lower_tail, compute_mass, compute_upper_tail
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.protocol import FunctionalTest, SecondNoise, Unachievable

_RATE_BITS = 30  # of a rate: exact as a float, quick to exponentiate, and too large by 2e-9 at most
_TIE_BITS = 32  # of a tie: rounding it up moves at most 2**-32 of the boundary's mass
_SURELY = 1e-6  # of a logarithm: many times what solving for a rate leaves; a tie is solved for
_SAFETY = 1.0 - 1e-12  # of each share; covers what floating point loses
_MOST_WIDENINGS = 60  # each doubles what is added to the rate: the thirty-first doubles the rate itself


@dataclass(frozen=True, slots=True)
class LeastRate:
    """The least noise rate of a test, and its slopes in the logarithms of the shares (both <= 0)."""

    rate: float
    slope_fnr: float
    slope_fpr: float


def find_least_rate(*, tolerance: int, fnr: float, fpr: float) -> LeastRate:
    """Return the least noise rate at which some test of sensitivity one keeps both shares.

    It is the solution of a linear programme, by its recursion.

    Guarantee: solves `fpr = a**(n2) * (1 - fnr * a**(-n1))`, `n1 + n2 = tolerance + 1`, `n1` the number of steps that
    the acceptance probability falls by the complement's ratio; zero when the shares sum to one or more.

    Parameters:
        tolerance: width of the band in which errors are allowed, integer units, >= 0.
        fnr, fpr: shares, in (0, 1).

    Twice the tolerance costs about half as much:

    >>> [round(find_least_rate(tolerance=width, fnr=0.05, fpr=0.1).rate, 4) for width in (100, 200)]
    [0.0387, 0.0195]
    """
    return _solve_least_rate(tolerance, fnr, fpr)


@lru_cache(maxsize=1024)
def _solve_least_rate(tolerance: int, fnr: float, fpr: float) -> LeastRate:
    if fnr + fpr >= 1.0:
        return LeastRate(rate=0.0, slope_fnr=0.0, slope_fpr=0.0)
    log_fnr, log_fpr = math.log(fnr), math.log(fpr)
    low, high = 0.0, max(-log_fnr, (math.log1p(-fnr) - log_fpr) / (tolerance + 1))
    rate = min(high, max((-log_fnr - log_fpr - 2.0 * math.log(2.0)) / (tolerance + 1), 0.25 * high))
    logarithm, odds, fall = _compute_false_positives(rate, tolerance, fnr, log_fnr)
    for _ in range(200):
        excess = logarithm - log_fpr
        if excess > 0.0:
            low = rate
        else:
            high = rate
        if abs(excess) <= 1e-13 or high - low <= 1e-15 * high:
            break
        newton = rate + excess / fall
        rate = newton if low < newton < high else 0.5 * (low + high)
        logarithm, odds, fall = _compute_false_positives(rate, tolerance, fnr, log_fnr)
    return LeastRate(rate=rate, slope_fnr=-odds / fall, slope_fpr=-1.0 / fall)


def _is_too_low(rate: float, tolerance: int, fnr: float, fpr: float) -> bool:
    """Return True if `find_least_rate` is surely above a rate. This is faster than solving for it."""
    if rate <= 0.0:
        return False
    return _compute_false_positives(rate, tolerance, fnr, math.log(fnr))[0] > math.log(fpr) + _SURELY


def _compute_false_positives(rate: float, tolerance: int, fnr: float, log_fnr: float) -> tuple[float, float, float]:
    """Return ln of the false-positive rate at `c - tolerance` when the false-negative rate is exactly the share.

    Return with it the odds of rejection there, and the speed at which the logarithm falls in the rate.
    """
    lead = -rate - math.log1p(math.exp(-rate)) - log_fnr
    steps = 0 if lead <= 0.0 else tolerance + 1 if lead >= rate * (tolerance + 1) else math.ceil(lead / rate)
    rejected = min(fnr * math.exp(rate * steps), 1.0 - 1e-16)
    rest = tolerance + 1 - steps
    odds = rejected / (1.0 - rejected)
    return -rate * rest + math.log1p(-rejected), odds, max(rest + odds * steps, 1e-12)


def count_blocks_in_tolerance(*, sensitivity: int, tolerance: int, most_steps: int | None = None) -> int:
    """Return the tolerance in whole blocks of `sensitivity` units that are aligned at the threshold.

    The result is at most `most_steps - 1`.

    >>> [count_blocks_in_tolerance(sensitivity=20, tolerance=tolerance) for tolerance in (100, 10)]
    [5, 0]
    >>> count_blocks_in_tolerance(sensitivity=20, tolerance=100, most_steps=2)
    1
    """
    whole = -(-(tolerance + 1) // sensitivity) - 1
    return whole if most_steps is None else min(whole, most_steps - 1)


def find_least_epsilon(
    *, sensitivity: int, tolerance: int, fnr: float, fpr: float, allow_block: bool, most_steps: int | None = None
) -> tuple[float, float, float]:
    """Return the least epsilon of a test, without rounding, and its slopes in `ln fnr` and `ln fpr`.

    Apportionment minimises it.

    Parameters as for `calibrate_test`.

    For a unit of twenty rows and a tolerance of a hundred, blocks of twenty cost a sixth less than noise on the count.

    >>> question = {"sensitivity": 20, "tolerance": 100, "fnr": 0.05, "fpr": 0.1}
    >>> [round(find_least_epsilon(**question, allow_block=allowed)[0], 2) for allowed in (False, True)]
    [0.77, 0.64]
    """
    best, scale = None, 1.0
    if allow_block and sensitivity > 1:
        coarse = count_blocks_in_tolerance(sensitivity=sensitivity, tolerance=tolerance, most_steps=most_steps)
        best = find_least_rate(tolerance=coarse, fnr=fnr, fpr=fpr)
    if best is None or not _is_too_low(best.rate / sensitivity, tolerance, fnr, fpr):
        plain = find_least_rate(tolerance=tolerance, fnr=fnr, fpr=fpr)
        if best is None or best.rate >= sensitivity * plain.rate:
            best, scale = plain, float(sensitivity)
    return scale * best.rate, scale * best.slope_fnr, scale * best.slope_fpr


def calibrate_test(
    *, sensitivity: int, tolerance: int, fnr: float, fpr: float, allow_block: bool, most_steps: int | None = None
) -> FunctionalTest:
    """Calibrate the test of least epsilon that keeps both error rates.

    False negatives are <= `fnr` at `c + 1`, false positives <= `fpr` at `c - tolerance`.

    Guarantee: `epsilon`-indistinguishable acceptance for inputs that differ by `sensitivity`; both rates hold with a
    relative margin of 1e-12 after the rate is rounded up to thirty binary digits and the tie to thirty-two.

    Parameters:
        sensitivity: most that one privacy unit changes S, integer units, >= 1.
        tolerance: integer units, >= 0.
        fnr, fpr: this functional's shares, in (0, 1); sums of one or more get the least rate of all.
        allow_block: True to put noise on the index of blocks of `sensitivity` units if that is cheaper. It is only
            sound for a functional with one literal whose noisy value serves nothing else.
        most_steps: the most blocks of the tolerance that a test in blocks uses, None for all of them.

    Raises:
        Unachievable: no rate within the sampler's range meets the shares.

    References: docs/proofs/optimal_test.md.

    `count(*) > 1000` with a tolerance of a hundred rows, each of a privacy unit of its own:

    >>> test = calibrate_test(sensitivity=1, tolerance=100, fnr=0.05, fpr=0.1, allow_block=False)
    >>> round(test.epsilon, 4), test.shift
    (0.0387, 58)
    >>> [round(compute_acceptance(test, distance), 4) for distance in (-100, 0, 1, 100)]
    [0.1, 0.948, 0.95, 0.9989]
    """
    block, steps = 1, tolerance
    if allow_block:
        block = choose_block(sensitivity=sensitivity, tolerance=tolerance, fnr=fnr, fpr=fpr, most_steps=most_steps)
    if block > 1:
        steps = count_blocks_in_tolerance(sensitivity=sensitivity, tolerance=tolerance, most_steps=most_steps)
    least = find_least_rate(tolerance=steps, fnr=fnr, fpr=fpr).rate
    rate, shift, tie = _round_rate(least=least, tolerance=steps, fnr=fnr, fpr=fpr)
    return FunctionalTest(
        epsilon=round_up_to_float(rate * (sensitivity if block == 1 else 1)),
        rate=rate,
        shift=shift,
        tie=tie,
        fnr=fnr,
        fpr=fpr,
        tolerance=tolerance,
        block=block,
    )


def choose_block(*, sensitivity: int, tolerance: int, fnr: float, fpr: float, most_steps: int | None = None) -> int:
    """Return the units of a block if noise on block indices costs less than noise on the sum, otherwise one.

    Parameters as for `calibrate_test`.
    """
    if sensitivity == 1:
        return 1
    coarse = count_blocks_in_tolerance(sensitivity=sensitivity, tolerance=tolerance, most_steps=most_steps)
    plain = find_least_rate(tolerance=tolerance, fnr=fnr, fpr=fpr).rate
    block = find_least_rate(tolerance=coarse, fnr=fnr, fpr=fpr).rate
    return sensitivity if max(block, float(LEAST_RATE)) < sensitivity * max(plain, float(LEAST_RATE)) else 1


def calibrate_at_rate(*, rate: Fraction, tolerance: int, fnr: float, fpr: float) -> FunctionalTest | None:
    """Return the test of sensitivity one at a given rate, or None if it cannot keep both shares.

    False negatives use all of their share, so that false positives are as rare as possible.

    Parameters:
        rate: within the sampler's range, exact as a float.
        tolerance, fnr, fpr: as for `calibrate_test`.
    """
    shift, tie = _find_boundary(float(rate), fnr * _SAFETY)
    missed, wrong = (
        _compute_rejection(float(rate), shift, tie, 1),
        _compute_acceptance(float(rate), shift, tie, -tolerance),
    )
    if missed > fnr * _SAFETY * (1.0 + 1e-13) or wrong > fpr * _SAFETY:
        return None
    return FunctionalTest(
        epsilon=round_up_to_float(rate), rate=rate, shift=shift, tie=tie, fnr=fnr, fpr=fpr, tolerance=tolerance
    )


def _round_rate(*, least: float, tolerance: int, fnr: float, fpr: float) -> tuple[Fraction, int, Fraction]:
    """Round a noise rate up until an exact boundary keeps both error shares.

    Return the rate, and the shift and tie of the boundary.
    """
    floor = max(least, float(LEAST_RATE))
    for widening in range(_MOST_WIDENINGS):
        rate = round_rate_up(floor * (1.0 + 2.0 ** (widening - _RATE_BITS)))
        if rate > GREATEST_RATE:
            break
        shift, tie = _find_boundary(float(rate), fnr * _SAFETY)
        missed = _compute_rejection(float(rate), shift, tie, 1)
        wrong = _compute_acceptance(float(rate), shift, tie, -tolerance)
        if missed <= fnr * _SAFETY * (1.0 + 1e-13) and wrong <= fpr * _SAFETY:
            return rate, shift, tie
    raise Unachievable("error rates this small at this tolerance need more noise levels than can be drawn exactly")


def _find_boundary(rate: float, fnr: float) -> tuple[int, Fraction]:
    """Return the shift and the tie with the greatest false-negative rate at distance one that is at most `fnr`.

    At distance one the boundary is at `K = q = -shift - 1`. The tie has 32 bits.
    """
    spread = math.log1p(math.exp(-rate))
    if math.log(fnr) + spread <= 0.0:
        quantile = -max(0, math.ceil(-(math.log(fnr) + spread) / rate) - 1)
    else:
        quantile = max(0, math.ceil(-(math.log1p(-fnr) + spread) / rate) - 1)
    while compute_lower_tail(rate, quantile - 1) > fnr:
        quantile -= 1
    while compute_lower_tail(rate, quantile) <= fnr:
        quantile += 1
    rejecting = (fnr - compute_lower_tail(rate, quantile - 1)) / compute_mass(rate, quantile)
    tie = min(1 << _TIE_BITS, max(0, math.ceil((1.0 - rejecting) * (1 << _TIE_BITS))))
    return -quantile - 1, Fraction(tie, 1 << _TIE_BITS)


def round_rate_up(rate: float) -> Fraction:
    """Return `rate` rounded up to thirty significant binary digits: exact as a float and quick to exponentiate."""
    mantissa, exponent = math.frexp(rate)
    units, places = math.ceil(math.ldexp(mantissa, _RATE_BITS)), exponent - _RATE_BITS
    return Fraction(units << places) if places >= 0 else Fraction(units, 1 << -places)


def round_up_to_float(value: Fraction) -> float:
    """Return the least float that is not below an exact value, so that a printed epsilon is never too small.

    >>> round_up_to_float(Fraction(1, 4)), Fraction(round_up_to_float(Fraction(1, 3))) >= Fraction(1, 3)
    (0.25, True)
    """
    numerator, denominator = value.numerator, value.denominator
    nearest = numerator / denominator  # rounded once, as float(value) is
    whole, parts = nearest.as_integer_ratio()
    return nearest if whole * denominator >= numerator * parts else math.nextafter(nearest, math.inf)


def _compute_acceptance(rate: float, shift: int, tie: Fraction, distance: int) -> float:
    boundary = -shift - distance
    return compute_upper_tail(rate, boundary + 1) + float(tie) * compute_mass(rate, boundary)


def _compute_rejection(rate: float, shift: int, tie: Fraction, distance: int) -> float:
    boundary = -shift - distance
    return compute_lower_tail(rate, boundary - 1) + float(1 - tie) * compute_mass(rate, boundary)


def compute_acceptance(test: FunctionalTest, distance: int) -> float:
    """Return the probability that the literal is accepted at `distance` (integer units of the functional)."""
    if test.table is not None:
        return round_up_to_float(test.table.compute_acceptance(distance))
    if test.beside is not None:
        return compute_tail_of_two_sums(test, test.rate, 1 - test.shift - test.beside.scale * distance)
    return _compute_acceptance(float(test.rate), test.shift, test.tie, _convert_to_blocks(test, distance))


def compute_rejection(test: FunctionalTest, distance: int) -> float:
    """Return the probability that the literal is rejected at `distance`, accurate even if it is tiny."""
    if test.table is not None:
        return round_up_to_float(test.table.compute_rejection(distance))
    if test.beside is not None:
        return compute_tail_of_two_sums(test, test.rate, test.shift + test.beside.scale * distance)
    return _compute_rejection(float(test.rate), test.shift, test.tie, _convert_to_blocks(test, distance))


def compute_tail_of_two_sums(test: FunctionalTest, rate: Fraction, value: int) -> float:
    """Return the probability that the noise on a test's two sums is at least `value`, at a look of this rate."""
    assert test.beside is not None
    assert not test.tie, "what is read off two noisy sums is decided without a coin"
    # `beside.rate * rate / test.rate`, rounded once: a quotient of fractions would first look for common divisors
    beside, own = test.beside.rate, test.rate
    above = beside.numerator * rate.numerator * own.denominator
    other = above / (beside.denominator * rate.denominator * own.numerator)
    return weighted_sum.compute_upper_tail(float(rate), value, times=test.beside.factor, beside=other)


def find_quantile_of_two_sums(rate: float, limit: float, beside: SecondNoise) -> int:
    """Return the least `q >= 0` that the sum of two noises reaches with probability `limit` at most."""
    other = float(beside.rate)

    def is_likelier(value: int) -> bool:
        return weighted_sum.compute_upper_tail(rate, value, times=beside.factor, beside=other) > limit

    low, high = -1, 0
    while is_likelier(high):
        low, high = high, 2 * high + max(1, int(1.0 / rate))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_likelier(middle) else (low, middle)
    return high


def _convert_to_blocks(test: FunctionalTest, distance: int) -> int:
    return (distance - 1) // test.block + 1
