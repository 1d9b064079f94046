"""A private bound that few privacy units exceed: the first public candidate with few units beyond it.

Every unit has one whole number, for example its number of rows. For each candidate the number of units beyond it is
compared, with noise, with a target. The first candidate whose number is small enough is released. One unit more raises
the counts of the first few candidates by one and lowers none. So one-sided noise on the target and on every comparison
suffices, half as wide as two-sided noise would be (Lyu et al.; Durfee).

| here | the formulas |
|---|---|
| beyond, candidates | out, b; K of them |
| target | T |
| overshoot, undershoot | (2/epsilon) ln(2K/beta), (2/epsilon) ln(2/beta) |

References: M. Lyu, D. Su, N. Li, Understanding the sparse vector technique for differential privacy, PVLDB 10 (6),
2017, section 4.3 (monotone queries); D. Durfee, Unbounded differentially private quantile and maximum estimation,
NeurIPS 2023 (one-sided noise). Proof: docs/proofs/private_bounds.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from itertools import pairwise

import numpy as np

from mechanisms.formula import Integers
from mechanisms.noise.exact import LEAST_RATE, check_rate
from mechanisms.protocol import Noise, Unachievable

BETA = Fraction(1, 20)  # one scan in forty may cut more than promised; surer ones take a lower target, by a logarithm

_STEPS_PER_OCTAVE = 4  # candidates 19 % apart: finer ones come nearer to the target, and the noise grows with ln K
_MOST_UNITS = 1 << 60  # counts and their noise stay within 64-bit integers
_SAFETY = 1.0 + 1e-12  # on each logarithm; covers what floating point loses
_SHOWN = Context(prec=3, rounding=ROUND_CEILING)  # what a refusal names is enough where it is asked for again


@dataclass(frozen=True, slots=True)
class BoundScan:
    """The calibration of one scan for a bound, fixed before any data is touched. All of it is public.

    Guarantee: with probability `1 - beta / 2` at most `most_beyond` units, and so at most `cut_share * units`, lie
    beyond the released candidate, if none lies beyond the last one. With probability `1 - beta / 2` the released
    candidate is not above the first one that at most `tightness` units lie beyond. A negative `tightness` means no such
    promise. Both hold together with probability `1 - beta`. The loss is `epsilon`, whatever the data.
    Proof: docs/proofs/private_bounds.md.

    Parameters:
        candidates: in the statistic's own whole-number steps, strictly increasing, at least one.
        epsilon: the loss of the release when one unit is added or removed.
        unit_count: the number of units, as declared in public.
        cut_share: the part of them that the bound may leave beyond, above 0, at most 1.
        beta: the probability that one of the two statements fails.

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
        ValueError: a parameter outside its range.
    """

    candidates: tuple[int, ...]
    epsilon: Fraction
    unit_count: int
    cut_share: Fraction
    beta: Fraction = BETA

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        _check_contract(self.candidates, units=self.unit_count, cut=self.cut_share, beta=self.beta)
        check_rate(self.epsilon / 2)

    @property
    def overshoot(self) -> float:
        """The most units by which the released candidate exceeds the target, with probability `1 - beta / 2`."""
        return float(_compute_overshoot(self.candidates, epsilon=self.epsilon, beta=self.beta))

    @property
    def undershoot(self) -> float:
        """The distance below the target at which the scan notices a candidate, with probability `1 - beta / 2`."""
        return float(_compute_undershoot(epsilon=self.epsilon, beta=self.beta))

    @property
    def target(self) -> int:
        """The most units that may lie beyond the bound, minus the most that noise adds, rounded down."""
        return math.floor(
            self.cut_share * self.unit_count - _compute_overshoot(self.candidates, epsilon=self.epsilon, beta=self.beta)
        )

    @property
    def most_beyond(self) -> int:
        """The number of units beyond a candidate at which the scan surely stops there or earlier."""
        return math.floor(self.target + _compute_overshoot(self.candidates, epsilon=self.epsilon, beta=self.beta))

    @property
    def tightness(self) -> int:
        """The most units beyond a candidate for which the scan surely stops there or earlier.

        It is negative if the noise allows no such promise.
        """
        return math.floor(self.target - _compute_undershoot(epsilon=self.epsilon, beta=self.beta))


def list_candidates(greatest: int) -> tuple[int, ...]:
    """Return public candidates: zero, then rounded quarter octaves, and the public end as the last.

    Guarantee: exact, by whole-number roots, and the same on every machine (docs/proofs/private_bounds.md).

    Parameters:
        greatest: the greatest value that a unit can have, as is publicly known; >= 0.

    Raises:
        ValueError: a negative end.

    >>> list_candidates(20)
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16, 19, 20)
    """
    if greatest < 0:
        raise ValueError("candidates end at zero or above")
    found = [0]
    step = 0
    while (candidate := _round_power(step)) < greatest:
        if candidate > found[-1]:
            found.append(candidate)
        step += 1
    return (*found, greatest) if greatest else (0,)


def calibrate_scan(
    candidates: tuple[int, ...], *, epsilon: Fraction, units: int, cut: Fraction, beta: Fraction = BETA
) -> BoundScan:
    """Return the scan that keeps a contract, from public inputs alone. Parameters as for `BoundScan`.

    Raises:
        Unachievable: the noise alone may cut more; the reason names the least epsilon, and the least cut, that work.
        ValueError: a parameter outside its range.

    >>> calibrate_scan(list_candidates(10**5), epsilon=Fraction(1, 10), units=4372, cut=Fraction(1, 20)).target
    61
    """
    scan = BoundScan(candidates=candidates, epsilon=epsilon, unit_count=units, cut_share=cut, beta=beta)
    if scan.target < 0:
        epsilon_needed = _format_rounded_up(find_least_epsilon(candidates, units=units, cut=cut, beta=beta))
        cut_needed = find_least_cut(candidates, epsilon=epsilon, units=units, beta=beta)
        wider = f", or a cut of {_format_rounded_up(100 * cut_needed)} %" if cut_needed < 1 else ""
        raise Unachievable(
            f"noise of epsilon {float(epsilon):g} may hide more than {float(100 * cut):g} % of {units} "
            f"units; it takes an epsilon of {epsilon_needed}{wider}"
        )
    return scan


def find_least_epsilon(candidates: tuple[int, ...], *, units: int, cut: Fraction, beta: Fraction = BETA) -> float:
    """Return the least epsilon with which `calibrate_scan` keeps the contract, rounded up.

    Raise ValueError for parameters outside their range.

    >>> round(find_least_epsilon(list_candidates(10**5), units=4372, cut=Fraction(1, 20)), 4)
    0.0718
    """
    _check_contract(candidates, units=units, cut=cut, beta=beta)
    needed = _compute_overshoot(candidates, epsilon=Fraction(1), beta=beta) / (cut * units)
    return _round_up_to_float(max(needed, 2 * LEAST_RATE))


def find_least_cut(candidates: tuple[int, ...], *, epsilon: Fraction, units: int, beta: Fraction = BETA) -> float:
    """Return the least cut that `calibrate_scan` can promise, rounded up.

    A result above 1 means that no cut can be promised. Raise ValueError for parameters outside their range.

    >>> round(find_least_cut(list_candidates(10**5), epsilon=Fraction(1, 10), units=4372), 4)
    0.0359
    """
    _check_contract(candidates, units=units, cut=Fraction(1), beta=beta)
    check_rate(epsilon / 2)
    return _round_up_to_float(_compute_overshoot(candidates, epsilon=epsilon, beta=beta) / units)


def run_scan(scan: BoundScan, beyond: Sequence[int], *, noise: Noise) -> int:
    """Return the index of the released candidate: the first with few enough units beyond it, or the last one.

    Guarantee: pure `scan.epsilon`-differential privacy under adding or removing one unit, exactly. A unit adds one to
    the counts of the candidates below its value and nothing to the others. The accuracy is that of the scan. The number
    of draws does not depend on the data. Proof: docs/proofs/private_bounds.md.

    Parameters:
        beyond: for each candidate the number of units with a value beyond it; private.

    Raises:
        ValueError: not one count for each candidate, or counts that rise or are out of range. The text names no count.
    """
    if len(beyond) != len(scan.candidates):
        raise ValueError("a scan takes one count for each candidate")
    if any(before < after for before, after in pairwise(beyond)) or beyond[-1] < 0 or beyond[0] > _MOST_UNITS:
        raise ValueError("the numbers of units beyond growing candidates are not negative and do not rise")
    counts = np.array([beyond], dtype=np.int64)
    return int(find_first_passing_candidate(counts, target=scan.target, rate=scan.epsilon / 2, noise=noise)[0])


def find_first_passing_candidate(beyond: Integers, *, target: int, rate: Fraction, noise: Noise) -> Integers:
    """Run independent scans in parallel.

    Return for each row the index of the first column that is small enough, or the last.

    Guarantee: each row's index is `2 * rate`-private as for `run_scan` (docs/proofs/private_bounds.md).

    Parameters:
        beyond: int64 of shape (scans, candidates).
        rate: of the one-sided noise on the target and on each comparison, per unit.
    """
    scans, candidates = beyond.shape
    on_target = noise.draw_geometric(rate=rate, size=scans)
    on_counts = noise.draw_geometric(rate=rate, size=scans * candidates).reshape(scans, candidates)
    passing = on_counts >= beyond - target + on_target[:, np.newaxis]
    passing[:, -1] = True
    return np.asarray(passing.argmax(axis=1), dtype=np.int64)


def _check_contract(candidates: tuple[int, ...], *, units: int, cut: Fraction, beta: Fraction) -> None:
    if not candidates or any(before >= after for before, after in pairwise(candidates)):
        raise ValueError("candidates strictly increase, and there is at least one")
    if not 1 <= units <= _MOST_UNITS:
        raise ValueError("a scan is over one unit or more")
    if not 0 < cut <= 1 or not 0 < beta < 1:
        raise ValueError("the cut is above 0 and at most 1, beta between 0 and 1")


def _round_power(step: int) -> int:
    """Return `2**(step / 4)` rounded. It is never halfway, since twice the power is even or irrational."""
    doubled = math.isqrt(math.isqrt(1 << (step + _STEPS_PER_OCTAVE)))
    return (doubled + 1) // 2


def _compute_overshoot(candidates: tuple[int, ...], *, epsilon: Fraction, beta: Fraction) -> Fraction:
    return 2 * _bound_logarithm(2 * len(candidates) / beta) / epsilon


def _compute_undershoot(*, epsilon: Fraction, beta: Fraction) -> Fraction:
    return 2 * _bound_logarithm(2 / beta) / epsilon


def _bound_logarithm(value: Fraction) -> Fraction:
    """Return an upper bound on the natural logarithm of a value above 1."""
    return Fraction(math.log(value) * _SAFETY)


def _round_up_to_float(value: Fraction) -> float:
    return math.nextafter(float(value), math.inf)


def _format_rounded_up(value: float) -> str:
    return f"{_SHOWN.create_decimal_from_float(value):f}"
