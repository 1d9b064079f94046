"""The true error rates of an answer, and a bound on them that needs no truth.

`count_realised_rates` compares a key set with the truth, for data owners and benchmarks, never for an analyst.
`bound_realised_fpr` is computed from the noisy values alone, so it costs nothing and may be shown to anyone. ProBE's
`EstimateFPs` (eq. 22-23) is meant for the same purpose and is no bound: it takes the probability of a high noisy value
given a negative for that of a negative given a high noisy value.

References: ProBE section 5. Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from scipy import stats

from mechanisms.apportionment.clauses import derive_constraints
from mechanisms.apportionment.tree import bound_tree
from mechanisms.formula import Booleans, Cut, Formula, Integers, evaluate_formula, list_literals, relax_formula
from mechanisms.noise.discrete_laplace import compute_upper_tail


@dataclass(frozen=True, slots=True)
class RealisedRates:
    """The numbers of right and wrong keys of one answer, from which error rates are computed.

    They give the papers' rates and the contract's. `positives` counts the keys for which the formula holds, `negatives`
    the others. `relaxed_negatives` counts the negatives whose relaxed formula fails, too. `missed_positives`,
    `wrong_negatives` and `wrong_relaxed_negatives` count the wrongly decided keys of each kind. A rate over no key is
    zero.
    """

    positives: int
    missed_positives: int
    negatives: int
    wrong_negatives: int
    relaxed_negatives: int
    wrong_relaxed_negatives: int

    @property
    def fnr(self) -> float:
        """The share of true keys that are missing."""
        return self.missed_positives / max(self.positives, 1)

    @property
    def fpr(self) -> float:
        """The share of false keys that were returned, as the papers count."""
        return self.wrong_negatives / max(self.negatives, 1)

    @property
    def fpr_beyond_tolerance(self) -> float:
        """The share of keys false by more than the tolerances that were returned, which the contract bounds."""
        return self.wrong_relaxed_negatives / max(self.relaxed_negatives, 1)


def count_realised_rates(formula: Formula, aggregates: Integers, passed: Booleans) -> RealisedRates:
    """Count the errors of one answer against the true aggregates. The result is as private as these.

    Parameters:
        aggregates: exact values, int64, shape (functionals, keys).
        passed: the answer, shape (keys,).
    """
    keys = aggregates.shape[1]
    truth = evaluate_formula(formula, lambda cut: cut.evaluate(aggregates[cut.functional]), keys=keys)
    loose = evaluate_formula(relax_formula(formula), lambda cut: cut.evaluate(aggregates[cut.functional]), keys=keys)
    return RealisedRates(
        positives=int(truth.sum()),
        missed_positives=int((truth & ~passed).sum()),
        negatives=int((~truth).sum()),
        wrong_negatives=int((passed & ~truth).sum()),
        relaxed_negatives=int((~loose).sum()),
        wrong_relaxed_negatives=int((passed & ~loose).sum()),
    )


@dataclass(frozen=True, slots=True)
class RealisedBound:
    """A bound on an answer's errors.

    At most `false_positives` returned keys are false, and at least `negatives` keys are false.

    It holds with the confidence that was asked for. `fpr` is the quotient, at most one.
    """

    false_positives: int
    negatives: int
    fpr: float


def bound_realised_fpr(
    formula: Formula,
    noisy: Integers,
    passed: Booleans,
    *,
    rates: Sequence[Sequence[float]],
    shifts: Sequence[Sequence[int]],
    delta: float,
) -> RealisedBound:
    """Bound the share of false keys that were returned, from noisy values alone.

    Guarantee: whatever the data and however `passed` was chosen, all three numbers hold together with probability `1 -
    delta` at least. So if an answer is withheld when `fpr` exceeds alpha, `P(answered and realised FPR > alpha) <=
    delta`. Let every threshold be tightened by a shift `s`. A false key that still passes on the noisy values needs an
    error above `s` in some literal of a false clause. So the number of such keys is at most binomial, with the largest
    clause's tails. The same holds for true keys that fail with every threshold loosened. Both numbers are bounded by
    quantiles at `1 - delta / (2 |shifts|)`, and the best shift is taken.

    Parameters:
        noisy: each key's last revealed values, int64, shape (functionals, keys); independent over keys.
        passed: the answer, shape (keys,).
        rates: per functional, the noise rate of every look that can have been a key's last; one for one-shot tests.
        shifts: a public grid, fixed before the noise was seen: per point one shift >= 0 per functional, in its units.
        delta: probability of failure, in (0, 1).

    Raises:
        ValueError: an empty grid, or a delta outside (0, 1).
    """
    if not shifts or not 0.0 < delta < 1.0:
        raise ValueError("the bound needs a grid of shifts and a delta strictly between 0 and 1")
    keys = passed.size
    level = 1.0 - delta / (2.0 * len(shifts))
    false_positives, negatives = int(passed.sum()), 0
    looks = tuple(tuple(own) for own in rates)
    for shift in shifts:
        strict = _evaluate_on_noisy(_shift_thresholds(formula, shift, outward=-1), noisy)
        loose = _evaluate_on_noisy(_shift_thresholds(formula, shift, outward=1), noisy)
        wrong, missed = _bound_errors(formula, looks, tuple(shift), keys=keys, level=level)
        false_positives = min(false_positives, int((passed & ~strict).sum()) + wrong)
        negatives = max(negatives, int((~loose).sum()) - missed)
    fpr = 0.0 if false_positives == 0 else min(1.0, false_positives / negatives) if negatives else 1.0
    return RealisedBound(false_positives=false_positives, negatives=negatives, fpr=fpr)


def _evaluate_on_noisy(formula: Formula, noisy: Integers) -> Booleans:
    return evaluate_formula(formula, lambda cut: cut.evaluate(noisy[cut.functional]), keys=noisy.shape[1])


@lru_cache(maxsize=1024)
def _bound_errors(
    formula: Formula, rates: tuple[tuple[float, ...], ...], shift: tuple[int, ...], *, keys: int, level: float
) -> tuple[int, int]:
    """Return the quantiles at `level` of the numbers of wrongly decided false keys and true keys, for any data."""

    def tail(functional: int) -> float:
        return min(1.0, sum(compute_upper_tail(rate, shift[functional] + 1) for rate in rates[functional]))

    wrong, missed = (stats.binom.ppf(level, keys, _bound_chance(formula, tail, is_fnr=fnr)) for fnr in (False, True))
    return int(wrong), int(missed)


def _shift_thresholds(formula: Formula, shift: Sequence[int], *, outward: int) -> Formula:
    """Return the formula with every threshold loosened (`outward` 1) or tightened (-1) by its functional's shift.

    Tolerances become zero.
    """

    def shift_cut(literal: Cut) -> Cut:
        step = shift[literal.functional] * outward
        return replace(literal, cut=literal.cut - step if literal.above else literal.cut + step, tolerance=0)

    return formula.map_literals(shift_cut)


def _bound_chance(formula: Formula, tail: Callable[[int], float], *, is_fnr: bool) -> float:
    """Bound the probability that some literal of a term or clause errs.

    For false negatives it is a term whose literals all hold, for false positives a clause whose literals all fail.
    """
    bound, _ = bound_tree(formula, lambda cut: tail(cut.functional), is_fnr=is_fnr)
    last = max((literal.functional for literal in list_literals(formula)), default=-1)
    exact = derive_constraints(_shift_thresholds(formula, [0] * (1 + last), outward=1))
    if exact is not None:
        sets = exact.fnr if is_fnr else exact.fpr
        bound = min(bound, max((c.bound_probability(lambda f, _: tail(f)) for c in sets), default=0.0))
    return min(1.0, bound)
