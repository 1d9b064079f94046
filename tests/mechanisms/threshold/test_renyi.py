"""Rényi curves against sums of the law, their limits, reference values and dp-accounting's accountant."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import AllOf, Cut
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive
from mechanisms.noise.discrete_laplace import compute_mass
from mechanisms.protocol import DecisionTask
from mechanisms.threshold.joint_loss import expose_all_functionals, expose_functional_sets
from mechanisms.threshold.renyi import (
    ORDERS,
    bound_curve,
    bound_divergence,
    compute_curve,
    compute_divergence,
    convert_to_epsilon,
    to_nano,
)
from tests.in_turn import in_turn

DELTA = 1e-9
ROUNDED = Decimal("1e-24")
RATES = st.fractions(Fraction(1, 20), Fraction(3), max_denominator=20)
MOVES = st.integers(0, 12)
SMALL_ORDERS = st.sampled_from((2, 3, 4, 5))


def summed(rate: float, moved: int, order: int) -> float:
    """By listing both laws."""
    reach = range(-math.ceil(40 * order / rate) - moved, math.ceil(40 * order / rate) + 2 * moved)
    front = math.log((1 - math.exp(-rate)) / (1 + math.exp(-rate)))
    logs = [front - rate * (order * abs(seen) + (1 - order) * abs(seen - moved)) for seen in reach]
    return math.log(math.fsum(map(math.exp, logs))) / (order - 1)


@given(rate=RATES, moved=MOVES, order=SMALL_ORDERS)
def test_the_divergence_is_the_sum_over_the_law(rate: Fraction, moved: int, order: int) -> None:
    found = compute_divergence(rate=rate, moved=Fraction(moved), order=order)
    assert float(found) == pytest.approx(summed(float(rate), moved, order), rel=1e-9, abs=1e-12)


@given(rate=RATES, moved=st.integers(1, 12), order=st.sampled_from(ORDERS))
def test_the_divergence_is_convex_in_the_move_and_below_the_pure_loss(rate: Fraction, moved: int, order: int) -> None:
    """What makes corners enough, and randomised response the worst of all with this pure loss."""
    before, here, after = (
        compute_divergence(rate=rate, moved=Fraction(moved + step), order=order) for step in (-1, 0, 1)
    )
    assert 2 * here <= before + after + ROUNDED
    assert before < here
    pure = Decimal(rate.numerator) / rate.denominator * moved
    assert here <= bound_divergence(epsilon=pure, order=order) + ROUNDED


@in_turn("order", ORDERS)
def test_fine_noise_tends_to_the_continuous_law(order: int) -> None:
    epsilon, a = 0.0496, order
    limit = a / (2 * a - 1) * math.exp((a - 1) * epsilon) + (a - 1) / (2 * a - 1) * math.exp(-a * epsilon)
    found = compute_divergence(rate=Fraction(496, 10**10), moved=Fraction(10**6), order=order)
    assert float(found) == pytest.approx(math.log(limit) / (a - 1), rel=1e-9)


REFERENCE = {  # values of one unit, epsilon of each: the balance after some questions, and how many fit below 8
    (36, "0.0496"): ({1: 1.65, 5: 4.28, 10: 6.29, 20: 9.27, 50: 15.7, 100: 23.7}, 15),
    (52, "0.0391"): ({}, 16),
    (12, "0.13"): ({}, 7),
    (12, "0.37"): ({}, 1),
}


@pytest.mark.parametrize(("values", "epsilon"), REFERENCE)
def test_reference_values(values: int, epsilon: str) -> None:
    balances, fit = REFERENCE[values, epsilon]
    rate, moved = Fraction(epsilon) / 10**6, Fraction(10**6)
    one = [to_nano(values * compute_divergence(rate=rate, moved=moved, order=order)) for order in ORDERS]

    def balance(questions: int) -> float:
        return min(questions * each + added for each, added in zip(one, convert_to_epsilon(DELTA), strict=True)) / 1e9

    for questions, expected in balances.items():
        assert float(f"{balance(questions):.3g}") == expected
    assert balance(fit) <= 8 < balance(fit + 1)


@pytest.mark.parametrize(
    "losses", [{0.0496: 36}, {0.0391: 52, 0.13: 12}, {0.37: 12}, {0.01: 500}, {0.2: 3, 0.05: 40, 0.5: 2}]
)
def test_fixed_lists_come_to_what_dp_accounting_says(losses: dict[float, int]) -> None:
    # here, since every process of the tests reads this file and few run this
    from dp_accounting import LaplaceDpEvent
    from dp_accounting.rdp import RdpAccountant

    oracle = RdpAccountant(orders=list(ORDERS))
    total = [Decimal(0)] * len(ORDERS)
    for epsilon, count in losses.items():
        oracle.compose(LaplaceDpEvent(1 / epsilon), count)
        rate = Fraction(epsilon) / 10**6
        total = [
            known + count * compute_divergence(rate=rate, moved=Fraction(10**6), order=order)
            for known, order in zip(total, ORDERS, strict=True)
        ]
    found = min(to_nano(known) + added for known, added in zip(total, convert_to_epsilon(DELTA), strict=True)) / 1e9
    assert found == pytest.approx(oracle.get_epsilon(DELTA / len(ORDERS)), rel=1e-6)


BOTH = AllOf((Cut(0, 40, True, 6), Cut(1, 300, True, 40)))


@pytest.mark.parametrize("mechanism", [Keyhole(), Progressive()])
def test_a_questions_curve_is_the_largest_of_its_exposures(mechanism: Keyhole | Progressive) -> None:
    """Every move that a unit can make, by listing: none diverges by more, and one by as much but for rounding."""
    task = DecisionTask(
        formula=BOTH, sensitivities=(1, 5), exposures=expose_all_functionals(2), fnr=0.05, fpr=0.1, blocks=frozenset()
    )
    apart = DecisionTask(
        formula=BOTH,
        sensitivities=(1, 5),
        exposures=expose_functional_sets([[0], [1]], functionals=2),
        fnr=0.05,
        fpr=0.1,
    )
    for one, moves in ((task, [(a, b) for a in (0, 1) for b in range(6)]), (apart, [(1, 0), (0, 5), (0, 3)])):
        made = mechanism.calibrate(one)
        found = compute_curve(made, groups=4)
        for place, order in enumerate(ORDERS[:4]):
            worst = max(
                sum(
                    summed(float(test.rate), move if test.block == 1 else bool(move), order)
                    for test, move in zip(made.tests, both, strict=True)
                )
                for both in moves
            )
            assert found[place] / 1e9 == pytest.approx(4 * worst, rel=1e-6)
        most = bound_curve(to_nano(Decimal(made.worst_case_epsilon)), groups=4)
        assert all(map(int.__le__, found, most))


def test_a_refinement_diverges_by_more_than_the_curves_differ() -> None:
    """Why noise that is charged in Rényi divergences is never refined: after an unlucky coarse value the fine one tells
    more than the difference, and whether to refine may depend on it."""
    coarse, fine, order, reach = 0.2, 0.6, 4, 200
    weight = ((1 - math.exp(-coarse)) / (1 - math.exp(-fine))) ** 2 * math.exp(coarse - fine)

    def fine_given(seen: int, moved: int) -> np.ndarray:
        """The law of the fine value, once the coarse one was seen, where the true value is `moved`."""
        law = np.array(
            [
                compute_mass(fine, value - moved)
                * ((1 - weight) * compute_mass(coarse, seen - value) + weight * (seen == value))
                for value in range(-reach, reach + 1)
            ]
        )
        return np.asarray(law / law.sum())

    def diverges(seen: int) -> float:
        ours, theirs = fine_given(seen, 0), fine_given(seen, 3)
        return math.log(float(np.sum(ours**order * theirs ** (1 - order)))) / (order - 1)

    finest, known = (compute_divergence(rate=Fraction(rate), moved=Fraction(3), order=order) for rate in ("0.6", "0.2"))
    assert max(diverges(seen) for seen in range(-8, 9)) > 1.2 * float(finest - known)


@given(st.floats(1e-3, 8.0), st.sampled_from(ORDERS))
def test_two_moves_cost_two_curves_of_randomised_response_or_more_and_four_of_laplace_or_less(
    epsilon: float, order: int
) -> None:
    """Of a cell that may move a group twice, and of a unit that bounds cut (docs/proofs/cells.md)."""
    one, two = (bound_divergence(epsilon=Decimal(times * epsilon), order=order) for times in (1, 2))
    assert two >= 2 * one * Decimal("0.999999999")
    rate = Fraction(epsilon).limit_denominator(10**6)
    once, twice = (compute_divergence(rate=rate, moved=Fraction(moved), order=order) for moved in (1, 2))
    assert once <= twice <= 4 * once * Decimal("1.000000001")
