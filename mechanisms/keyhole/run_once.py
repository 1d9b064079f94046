"""The run of one-shot tests: one noisy value for each functional and key, shared by all literals on that functional.

The randomised tie is one coin for each functional and key. It moves the cut-offs of all literals by the same unit, so
they keep the order of their thresholds.

Proof: docs/proofs/optimal_test.md.
"""

from collections.abc import Callable

import numpy as np

from mechanisms.formula import Booleans, Cut, Formula, Integers, evaluate_formula, list_literals
from mechanisms.protocol import FunctionalTest, Noise


def run_on_one_value(
    formula: Formula, tests: tuple[FunctionalTest, ...], aggregates: Integers, *, noise: Noise
) -> Booleans:
    """Return the keys that pass the formula. Every literal is decided on its functional's noisy value.

    Guarantee: for one key the values revealed are `epsilon`-private per functional as calibrated; the keys' noise is
    independent; only functionals in the formula draw noise.

    Parameters:
        aggregates: exact values, int64, shape (functionals, keys), within +-2**62.
    """
    keys = aggregates.shape[1]
    answers: dict[Cut, Booleans] = {}
    literals = tuple(dict.fromkeys(list_literals(formula)))
    for functional in sorted({cut.functional for cut in literals}):
        own = [cut for cut in literals if cut.functional == functional]
        test = tests[functional]
        values = aggregates[functional]
        drawn = noise.draw_discrete_laplace(rate=test.rate, size=keys)
        tie = noise.draw_bernoulli(probability=test.tie, size=keys)
        if test.block > 1:
            answers |= {cut: _decide_block(cut, test, values, drawn, tie) for cut in own}
        else:
            noisy = values + drawn
            answers |= {cut: _decide_value(cut, test, noisy, tie) for cut in own}
    return evaluate_formula(formula, answers.__getitem__, keys=keys)


def decide_literal(cut: Cut, test: FunctionalTest, values: Integers, *, noise: Noise) -> Booleans:
    """Decide one literal on fresh noise, for mechanisms that re-run every occurrence."""
    drawn = noise.draw_discrete_laplace(rate=test.rate, size=values.size)
    tie = noise.draw_bernoulli(probability=test.tie, size=values.size)
    return _decide_value(cut, test, values + drawn, tie)


def _decide_value(cut: Cut, test: FunctionalTest, noisy: Integers, tie: Booleans) -> Booleans:
    if cut.above:
        boundary = cut.cut - test.shift
        return _decide_with_tie(np.greater, noisy, boundary, tie)
    boundary = cut.cut + 1 + test.shift
    return _decide_with_tie(np.less, noisy, boundary, tie)


def _decide_block(cut: Cut, test: FunctionalTest, values: Integers, drawn: Integers, tie: Booleans) -> Booleans:
    index = (values - (cut.cut + 1)) // test.block + drawn
    return _decide_with_tie(np.greater, index if cut.above else -1 - index, -1 - test.shift, tie)


def _decide_with_tie(
    beyond: Callable[[Integers, int], Booleans], noisy: Integers, boundary: int, tie: Booleans
) -> Booleans:
    return np.asarray(beyond(noisy, boundary) | ((noisy == boundary) & tie), dtype=np.bool_)
