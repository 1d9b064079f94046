"""Published baselines that run every occurrence of a literal as a separate sub-query with fresh noise.

They do not share noise or use the joint loss, so the worst case is the plain sum over occurrences.

Proof: docs/proofs/apportionment.md, "The published rules"; docs/proofs/probe.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count

import numpy as np

from mechanisms.apportionment.tree import bound_tree
from mechanisms.formula import AllOf, AnyOf, Booleans, Cut, Formula, Integers, evaluate_formula, list_literals
from mechanisms.keyhole.contract import check_task, make_idle_test
from mechanisms.keyhole.run_once import decide_literal
from mechanisms.protocol import Calibration, DecisionTask, FunctionalTest, Noise, Outcome
from mechanisms.published.tslm import calibrate_tslm_test, refuse_zero_tolerance
from mechanisms.threshold.one_shot import compute_acceptance, compute_rejection, round_up_to_float

_FAR = 1 << 60  # keeps distances within 64-bit integers


def calibrate_occurrences(
    mechanism: str, task: DecisionTask, *, fnr: Sequence[float], fpr: Sequence[float]
) -> Calibration:
    """Calibrate a TSLM test for each occurrence, in order of appearance, each with the smaller of its two shares.

    Guarantee: by the union bound over occurrences, both of the contract's rates, if the shares sum to them.

    Raises:
        Unachievable: a rate beyond the sampler's range.
    """
    check_task(task)
    tests = tuple(
        calibrate_tslm_test(
            sensitivity=task.sensitivities[cut.functional],
            tolerance=cut.tolerance,
            share=min(missed, wrong),
            functional=cut.functional,
        )
        for cut, missed, wrong in zip(list_literals(task.formula), fnr, fpr, strict=True)
    )
    leaves = number_occurrences(task.formula)
    return Calibration(
        mechanism=mechanism,
        task=task,
        tests=_list_tests_by_functional(task, tests),
        worst_case_epsilon=round_up_to_float(_sum_losses(task, tests)),
        fnr=bound_tree(leaves, lambda cut: compute_rejection(tests[cut.functional], 1), is_fnr=True)[0],
        fpr=bound_tree(leaves, lambda cut: compute_acceptance(tests[cut.functional], -cut.tolerance), is_fnr=False)[0],
        notes=("Every occurrence of a condition is re-run with fresh noise, as published.",),
        occurrences=tests,
    )


def decide_occurrences(calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
    """Decide every occurrence of a literal on fresh noise. Every key loses the worst case."""
    formula = calibration.task.formula
    answers = [
        decide_literal(cut, test, aggregates[cut.functional], noise=noise)
        for cut, test in zip(list_literals(formula), calibration.occurrences, strict=True)
    ]
    passed = evaluate_formula(
        number_occurrences(formula), lambda cut: answers[cut.functional], keys=aggregates.shape[1]
    )
    return Outcome(passed=passed, epsilon=np.full(passed.size, calibration.worst_case_epsilon))


def number_occurrences(formula: Formula) -> Formula:
    """Return the formula with each functional replaced by the number of its occurrence, in order of appearance."""
    places = count()
    return formula.map_literals(lambda literal: replace(literal, functional=next(places)))


def evaluate_in_order(leaves: Formula, run: Callable[[int], Booleans], *, keys: int) -> Booleans:
    """Run ProBE's algorithm 2: walk the tree in pre-order, and leave a conjunction once no key passes.

    Parameters:
        leaves: a formula that `number_occurrences` returned.
        run: returns the keys that an occurrence accepts. It is not called for skipped occurrences.
    """
    match leaves:
        case Cut():
            return run(leaves.functional)
        case AllOf(children):
            passing = np.ones(keys, dtype=np.bool_)
            for child in children:
                if not passing.any():
                    break
                passing &= evaluate_in_order(child, run, keys=keys)
            return passing
        case AnyOf(children):
            passing = np.zeros(keys, dtype=np.bool_)
            for child in children:
                passing |= evaluate_in_order(child, run, keys=keys)
            return passing


def list_shift_weights(task: DecisionTask) -> list[float]:
    """Return `sensitivity / u` of every occurrence, `u = tolerance / 2`.

    Raise `Unachievable` for a tolerance of zero.
    """
    refuse_zero_tolerance(task)
    return [2 * task.sensitivities[cut.functional] / cut.tolerance for cut in list_literals(task.formula)]


def compute_noisy_distances(cut: Cut, noisy: Integers) -> Integers:
    """Return the distance of each noisy value from the literal's threshold, positive if the literal holds.

    The distance is 1 if the literal just holds. Distances are limited to 2**60.
    """
    distances = np.clip(noisy, cut.cut - _FAR, cut.cut + _FAR) - cut.cut
    return distances if cut.above else 1 - distances


def _sum_losses(task: DecisionTask, tests: Sequence[FunctionalTest]) -> Fraction:
    losses = (
        test.rate * task.sensitivities[cut.functional]
        for cut, test in zip(list_literals(task.formula), tests, strict=True)
    )
    return sum(losses, start=Fraction(0))


def _list_tests_by_functional(task: DecisionTask, tests: Sequence[FunctionalTest]) -> tuple[FunctionalTest, ...]:
    """Return for display each functional's least noisy test, with the epsilon of all its occurrences together."""
    shown = [make_idle_test(task)] * len(task.sensitivities)
    totals = [Fraction(0)] * len(task.sensitivities)
    for cut, test in zip(list_literals(task.formula), tests, strict=True):
        totals[cut.functional] += test.rate * task.sensitivities[cut.functional]
        if test.rate > shown[cut.functional].rate:
            shown[cut.functional] = test
    return tuple(replace(test, epsilon=round_up_to_float(total)) for test, total in zip(shown, totals, strict=True))
