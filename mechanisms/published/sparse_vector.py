"""The sparse vector technique: one noisy threshold for the whole question, and a limit on positive answers.

The original (algorithm 1, `svt`) compares values with one public threshold; the generalised form (algorithm 8,
`svt_generalised`) gives every query a threshold of its own, which may itself depend on the data. Both are
`run_sparse_vector` below on distances `value - threshold`, whose sensitivity is the sum of the value's and the
threshold's.
A question with several literals is one distance per key too: a literal's is `S - c` or `d + 1 - S`, AND takes the
least, OR the greatest; so the formula holds from distance 1 on, and the distance moves by no more than the largest
sensitivity. That takes the generalised form. Conditions on different functionals are first brought to one scale:
whole-number `weights` that make their sensitivities nearly equal, since otherwise the largest sensitivity would be
paid for at the least tolerance, whatever their units.

What is printed but does not hold: algorithm 8 resets its count inside the loop, so that as printed it never stops, and
its theorem 7 fails; the count belongs before the loop. Variants without a limit (algorithms 2 to 5) are not private
at any finite loss; they live in the tests of the auditor alone.

**What one key costs.** With threshold noise of rate `r1`, query noise of rate `r2` and at most `c` positives the whole
question costs `L = D (r1 + 2 c r2)`, however many keys one unit changes, each by up to `D`. If a unit is in one key
alone, only that key's factor of the transcript's probability changes: with all else fixed, threshold noise included,
by `exp(r2 D)`, and no other loss occurs. So one key's own loss is `r2 D`, less than `L`, and for disjoint groups the
technique gives nothing that independent tests do not give for less: its limit pays only where one unit is in
many groups. The charge is `L` to every key, sound in both cases, and `L` once to a whole unit, however many keys it is
in (`Calibration.whole_question`).

| here | the thesis |
|---|---|
| most_positives | c |
| threshold_rate, query_rate | epsilon / 2 Delta, epsilon / 4 c Delta |

References: Chen's thesis, algorithms 1 and 8, theorems 2 and 7. Proof: docs/proofs/sparse_vector.md.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mechanisms.apportionment.clauses import derive_constraints
from mechanisms.formula import AllOf, Booleans, Cut, Formula, Integers, list_literals
from mechanisms.keyhole.contract import EMPTY_PROMISE_NOTE, check_task, list_tolerances, make_idle_test
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.protocol import Calibration, DecisionTask, FunctionalTest, Noise, Outcome, Unachievable
from mechanisms.threshold.one_shot import round_rate_up, round_up_to_float

_SAFETY = 1.0 - 1e-9  # of each rate; covers what floating point loses
_HALVINGS = 200  # an end to the bisection, which stops at a relative 1e-12
_MOST_WIDENINGS = 30  # each doubles what is added to the rate: the last doubles the rate itself
_FARTHEST = 1 << 61  # keeps weighted distances and their noise within 64-bit integers
_FINENESS = 16  # steps of the widest tolerance's scale: finer weights against larger integers


class SparseVector:
    """The published sparse vector: one public threshold, and no answer after the limit is reached.

    Guarantee: false positives as in the contract, for every key. A key for which the formula holds is tested and
    rejected with probability `task.fnr` at most. But keys that come after the limit, in the order of the key domain,
    are not tested, so there is no bound on false negatives (`Calibration.fnr` is None). The loss of the whole question
    is `worst_case_epsilon`, whichever keys one unit changes, and every key is charged all of it.

    Parameters:
        most_positives: the limit for tasks without one, >= 1, or None to use only the task's limit.

    References: algorithm 1, theorem 2.
    """

    name = "svt"
    summary = "sparse vector: few positives expected, one threshold, stops at a limit"

    def __init__(self, *, most_positives: int | None = None) -> None:
        self._most_positives = _check_limit(most_positives)

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate the thesis's split of the loss, with half of it for the threshold, so that the contract holds.

        Raise `Unachievable` if that fails, without a limit, or for several literals.
        """
        check_task(task)
        thresholds = len(set(list_literals(task.formula)))
        if thresholds > 1:
            raise Unachievable(
                f"the sparse vector as published compares with one threshold, and this question has {thresholds}",
                instead=GeneralisedSparseVector.name,
            )
        return _calibrate_with_limit(self.name, task, most_positives=self._most_positives)

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide keys in order, until the limit of passing keys is reached.

        The loss is that of the whole question, the same for every key.
        """
        return _decide_in_order(calibration, aggregates, noise)


class GeneralisedSparseVector:
    """The generalised sparse vector: any formula as one distance for each key, up to a limit of positives.

    Guarantee and parameters as for `SparseVector`.

    References: algorithm 8, theorem 7, the count of positives kept over the whole loop.
    """

    name = "svt_generalised"
    summary = "sparse vector on any formula: few positives expected, stops at a limit"

    def __init__(self, *, most_positives: int | None = None) -> None:
        self._most_positives = _check_limit(most_positives)

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate as `SparseVector` does, for the largest weighted sensitivity and the least weighted tolerance.

        Raise `Unachievable` if that is impossible.
        """
        return _calibrate_with_limit(self.name, task, most_positives=self._most_positives)

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide keys in order, until the limit of passing keys is reached.

        The loss is that of the whole question, the same for every key.
        """
        return _decide_in_order(calibration, aggregates, noise)


def _check_limit(most_positives: int | None) -> int | None:
    if most_positives is not None and most_positives < 1:
        raise ValueError("a limit on positives is at least one")
    return most_positives


def _calibrate_with_limit(mechanism: str, task: DecisionTask, *, most_positives: int | None) -> Calibration:
    check_task(task)
    literals = tuple(list_literals(task.formula))
    used = sorted({cut.functional for cut in literals})
    tests = [make_idle_test(task)] * len(task.sensitivities)
    if not used:
        return Calibration(mechanism=mechanism, task=task, tests=tuple(tests), worst_case_epsilon=0.0, fnr=0.0, fpr=0.0)
    limit = most_positives if task.most_positives is None else task.most_positives
    if limit is None or limit < 1:
        raise Unachievable("a sparse vector needs a limit of at least one on the groups it may return")
    scale = choose_weights(task)
    certain = min(scale[functional] for functional in used)
    tolerance = min(scale[cut.functional] * min(cut.tolerance, _FARTHEST) for cut in literals) + certain - 1
    query_rate, shift = _find_least_rate(limit, tolerance, fnr=task.fnr, fpr=task.fpr)
    sensitivity = max(scale[functional] * task.sensitivities[functional] for functional in used)
    epsilon = round_up_to_float(
        compute_whole_loss(query_rate=query_rate, most_positives=limit, sensitivity=sensitivity)
    )
    test = FunctionalTest(
        epsilon=epsilon,
        rate=query_rate,
        shift=shift,
        tie=Fraction(0),
        fnr=task.fnr,
        fpr=task.fpr,
        tolerance=tolerance,
    )
    near = list_tolerances(task.formula, len(task.sensitivities))
    for functional in used:
        tests[functional] = replace(test, tolerance=near[functional])
    rates = {"threshold_rate": float(2 * limit * query_rate), "query_rate": float(query_rate)}
    groups = "1 group is" if limit == 1 else f"{limit} groups are"
    notes = (
        f"At most {groups} returned, in the order of the key domain; groups after that are not tested.",
        "Every group is charged the whole sparse vector, its noisy threshold and all its positives; "
        "a privacy unit is charged once, even if it is in many groups.",
    )
    exact = derive_constraints(task.formula)
    always = exact is not None and not exact.fpr
    return Calibration(
        mechanism=mechanism,
        task=replace(task, most_positives=limit),
        tests=tuple(tests),
        worst_case_epsilon=epsilon,
        fnr=None,
        fpr=compute_difference_tail(tolerance + 1 - shift, **rates),
        notes=(*notes, EMPTY_PROMISE_NOTE) if always else notes,
        whole_question=True,
    )


def _decide_in_order(calibration: Calibration, aggregates: Integers, noise: Noise) -> Outcome:
    task = calibration.task
    keys = aggregates.shape[1]
    tested = sorted({cut.functional for cut in list_literals(task.formula)})
    if not tested:
        constant = compute_signed_distance(task.formula, aggregates) > 0
        return Outcome(passed=np.asarray(constant, dtype=np.bool_), epsilon=np.zeros(keys))
    test = calibration.tests[tested[0]]
    limit = task.most_positives
    assert limit is not None, "calibrated with a limit"
    scale = choose_weights(task)
    passed = run_sparse_vector(
        compute_signed_distance(task.formula, aggregates, weights=scale)[np.newaxis, :],
        least=min(scale[functional] for functional in tested) - test.shift,
        threshold_rate=2 * limit * test.rate,
        query_rate=test.rate,
        most_positives=limit,
        noise=noise,
    )[0]
    return Outcome(passed=passed, epsilon=np.full(keys, calibration.worst_case_epsilon))


def run_sparse_vector(
    distances: Integers,
    *,
    least: int,
    threshold_rate: Fraction,
    query_rate: Fraction,
    most_positives: int,
    noise: Noise,
) -> Booleans:
    """Return True for each query that is answered positive, by stream. After the limit all answers are negative.

    Guarantee: for distances that change by at most `D` each, one stream's answers are `D (threshold_rate + 2
    most_positives query_rate)`-private, whatever the number of queries.

    Parameters:
        distances: `value - threshold` of each query, int64, shape (streams, queries), within +-2**61. Thresholds may
            differ and, if `D` covers their change, depend on the data.
        least: the distance at and above which an answer is positive, before noise.

    References: the thesis's algorithms 1 and 8, the count kept over the whole loop.
    """
    streams, queries = distances.shape
    threshold = least + noise.draw_discrete_laplace(rate=threshold_rate, size=streams)[:, np.newaxis]
    noisy = distances + noise.draw_discrete_laplace(rate=query_rate, size=streams * queries).reshape(streams, queries)
    above = noisy >= threshold
    return np.asarray(above & (np.cumsum(above, axis=1) <= most_positives), dtype=np.bool_)


def compute_whole_loss(*, query_rate: Fraction, most_positives: int, sensitivity: int) -> Fraction:
    """Return the loss of all answers together under the thesis's split, in which half is for the threshold."""
    return 4 * most_positives * query_rate * sensitivity


def choose_weights(task: DecisionTask) -> tuple[int, ...]:
    """Return whole-number weights, each at least 1, with which the functionals have nearly the same sensitivity.

    With weights `w` a distance changes by `max w D` at most. It is at least `min w` if the formula holds, and at most
    `-min w tolerance` if the relaxed formula fails. No weighted tolerance exceeds the farthest distance.
    """
    widest: dict[int, int] = {}
    for cut in list_literals(task.formula):
        widest[cut.functional] = max(widest.get(cut.functional, 0), cut.tolerance)
    scale = [1] * len(task.sensitivities)
    largest = max((task.sensitivities[functional] for functional in widest), default=1)
    for functional, tolerance in widest.items():
        even = _FINENESS * largest // task.sensitivities[functional]
        scale[functional] = max(1, min(even, _FARTHEST // (tolerance + 1)))
    common = math.gcd(*(scale[functional] for functional in widest)) or 1
    return tuple(weight // common if functional in widest else 1 for functional, weight in enumerate(scale))


def compute_signed_distance(formula: Formula, aggregates: Integers, *, weights: Sequence[int] = ()) -> Integers:
    """Return each key's signed distance: the least over AND, the greatest over OR. The formula holds from 1 on.

    Parameters:
        weights: the weight of a step of each functional, at least 1, or 1 if none are given. A literal's distance is
            limited to +-2**61.
    """
    keys = aggregates.shape[1]
    if isinstance(formula, Cut):
        values = aggregates[formula.functional]
        weight = weights[formula.functional] if weights else 1
        steps = values - formula.cut if formula.above else formula.cut + 1 - values
        farthest = _FARTHEST // weight
        return np.asarray(np.clip(steps, -farthest, farthest) * weight, dtype=np.int64)
    conjunction = isinstance(formula, AllOf)
    result = np.full(keys, _FARTHEST if conjunction else -_FARTHEST, dtype=np.int64)
    for child in formula.children:
        distance = compute_signed_distance(child, aggregates, weights=weights)
        (np.minimum if conjunction else np.maximum)(result, distance, out=result)
    return result


def compute_difference_tail(distance: int, *, threshold_rate: float, query_rate: float) -> float:
    """Return `P(V - R >= distance)` for discrete Laplace noises V of the query's rate and R of the threshold's.

    The threshold's rate is the larger one.

    Guarantee: to a relative 1e-12. Let `a`, `b` be the exponentials of minus the rates. Given `R = j`, the tail is
    `a**(distance + j) / (1 + a)` or its complement, and each of three ranges of `j` has a geometric sum.
    """
    if distance < 1:
        return 1.0 - compute_difference_tail(1 - distance, threshold_rate=threshold_rate, query_rate=query_rate)
    a, b = math.exp(-query_rate), math.exp(-threshold_rate)
    both = -math.expm1(-query_rate - threshold_rate)
    share = -math.expm1(-threshold_rate) / (1.0 + b)
    right = math.exp(-query_rate * distance) / ((1.0 + a) * both)
    apart = threshold_rate - query_rate
    middle = math.exp(-query_rate * (distance - 1) - threshold_rate) / (1.0 + a)
    middle *= math.expm1(-apart * distance) / math.expm1(-apart)
    far = math.exp(-threshold_rate * (distance + 1))
    left = far * (1.0 / -math.expm1(-threshold_rate) - a * a / ((1.0 + a) * both))
    return share * (right + middle + left)


def _find_least_rate(most_positives: int, tolerance: int, *, fnr: float, fpr: float) -> tuple[Fraction, int]:
    """Return the least query rate, rounded up, and the shift that goes with it.

    With both, the error rates hold under the thesis's split.
    """
    most = float(GREATEST_RATE) / (2 * most_positives)
    low, high = float(LEAST_RATE), most
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        if high <= low * (1.0 + 1e-12):
            break
        if _find_shift(middle, most_positives, tolerance, fnr=fnr, fpr=fpr) is None:
            low = middle
        else:
            high = middle
    for widening in range(_MOST_WIDENINGS):
        rate = round_rate_up(high * (1.0 + 2.0 ** (widening - 30)))
        if 2 * most_positives * rate > GREATEST_RATE:
            break
        shift = _find_shift(float(rate), most_positives, tolerance, fnr=fnr, fpr=fpr)
        if shift is not None:
            return rate, shift
    raise Unachievable("a sparse vector with this limit needs a wider tolerance for error rates this small")


def _find_shift(query_rate: float, most_positives: int, tolerance: int, *, fnr: float, fpr: float) -> int | None:
    """Return a threshold shift in [0, tolerance] that meets both rates, or None."""
    rates = {"threshold_rate": 2 * most_positives * query_rate, "query_rate": query_rate}
    low, high = 0, tolerance
    while low < high:
        middle = (low + high) // 2
        if compute_difference_tail(middle + 1, **rates) <= fnr * _SAFETY:
            high = middle
        else:
            low = middle + 1
    missed = compute_difference_tail(low + 1, **rates)
    wrong = compute_difference_tail(tolerance + 1 - low, **rates)
    return low if missed <= fnr * _SAFETY and wrong <= fpr * _SAFETY else None
