"""DPPWLM under its worst rule: the certified bound against exact enumeration, and the mechanism that keeps it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula
from mechanisms.noise.exact import make_system_noise
from mechanisms.protocol import DecisionTask, Look, Unachievable
from mechanisms.published.dppwlm import Dppwlm, DppwlmBounded, bound_worst_rates
from mechanisms.published.ppwlm import calibrate_ppwlm_test, make_published_look
from mechanisms.published.share_carryover import (
    CELLS,
    RefinedNoise,
    bound_any_rule,
    find_zones_of_misses,
    make_zones_of_returns,
)
from mechanisms.threshold.joint_loss import expose_all_functionals
from tests.effort import examples, rounds
from tests.in_turn import in_turn
from tests.mechanisms.threshold.crossing_by_hand import worst_rule

EVERY_INTEGER = 1 << 30


def levels_of(shift: int, looks: int, factor: int, share: float) -> list[Fraction]:
    """Shifts away from whole numbers, so that rounding the rates moves no cut-off."""
    last = Fraction(math.log(looks / (2 * share)) / (shift + 0.37))
    return [last / Fraction(factor, 2) ** (looks - 1 - look) for look in range(looks)]


def bound(levels: list[Fraction], *, share: float, fine_steps: int, cells: int, tolerance: int | None = None) -> float:
    def look_of(rate: Fraction, parts: int) -> Look:
        return make_published_look(rate, share=share * parts / len(levels))

    zones = find_zones_of_misses if tolerance is None else make_zones_of_returns(tolerance)
    return bound_any_rule(levels, fine_steps=fine_steps, look_of=look_of, zones_of=zones, cells=cells)


@in_turn("tolerance", [None, 30, 60, 90])
@in_turn(("looks", "factor", "fine_steps"), [(2, 8, 3), (3, 4, 2), (4, 3, 1), (4, 3, 3), (5, 3, 2)])
def test_the_bound_is_the_exact_worst_rule_on_whole_integers(
    looks: int, factor: int, fine_steps: int, tolerance: int | None
) -> None:
    """Two derivations, no randomness: conditional laws in closed form here, convolutions and Bayes there."""
    levels = levels_of(30, looks, factor, 0.05)
    exact = worst_rule(
        [float(level) for level in levels], share=0.05, fine_steps=fine_steps, carried=True, tolerance=tolerance
    )
    found = bound(levels, share=0.05, fine_steps=fine_steps, cells=EVERY_INTEGER, tolerance=tolerance)
    assert found == pytest.approx(exact, rel=1e-6, abs=1e-12)
    assert found >= exact * (1 - 1e-9)


@given(
    st.integers(2, 30),
    st.integers(2, 4),
    st.integers(3, 4),
    st.integers(1, 3),
    st.integers(1, 60),
    st.sampled_from((0.01, 0.05, 0.2)),
)
@examples(40)
def test_cells_never_lower_the_bound(
    shift: int, looks: int, factor: int, fine_steps: int, cells: int, share: float
) -> None:
    levels = levels_of(shift, looks, factor, share)
    for tolerance in (None, 2 * shift):
        exact = bound(levels, share=share, fine_steps=fine_steps, cells=EVERY_INTEGER, tolerance=tolerance)
        assert bound(levels, share=share, fine_steps=fine_steps, cells=cells, tolerance=tolerance) >= exact * (1 - 1e-8)


@pytest.mark.parametrize("tolerance", [10, 300, 30_000, 10**9])
def test_the_usual_number_of_cells_comes_within_two_per_cent(tolerance: int) -> None:
    """Wide tolerances: against eight times as many cells, twice at quick, whose own excess is an eighth, or half."""
    finer = rounds(8, quick=2)
    test = calibrate_ppwlm_test(
        sensitivity=1, tolerance=tolerance, share=0.05, looks=4, first_epsilon=1e-3, functional=0
    )
    levels = [*(look.rate for look in test.looks), test.rate]
    usual = bound_worst_rates(test, share=0.05, fine_steps=3)[0]
    fine = bound(levels, share=0.05, fine_steps=3, cells=finer * CELLS)
    assert fine * (1 - 1e-9) <= usual <= (1 + 0.02 * (1 - 1 / finer)) * fine


@pytest.mark.parametrize(("coarse", "fine"), [(0.01, 1.0), (0.02, 0.021), (0.05, 0.3), (0.5, 2.5), (2.0, 6.0)])
def test_the_finer_noise_grows_with_the_coarser_one(coarse: float, fine: float) -> None:
    """Step 3 of the proof: its distribution function falls in the coarser noise, on both sides of zero. The increment
    between them is not log-concave."""
    value, bound = np.arange(-60.0, 61.0), np.arange(-200.0, 201.0)
    assert (
        np.diff(RefinedNoise(coarse=coarse, fine=fine, value=value).compute_cumulative_probability(bound), axis=0).max()
        < 1e-12
    )
    first, second = np.exp(-coarse * np.arange(1, 3))
    zero = (1 - math.exp(-coarse)) ** 2 * math.exp(coarse - fine) / (1 - math.exp(-fine)) ** 2
    moved = (1 - zero) * (1 - first) / (1 + first)
    assert (moved * first) ** 2 < (zero + moved) * moved * second


def cut(functional: int, at: int, tolerance: int, above: bool = True) -> Cut:
    return Cut(functional=functional, cut=at, above=above, tolerance=tolerance)


def task_of(formula: Formula, functionals: int, *, fnr: float = 0.05, fpr: float = 0.1) -> DecisionTask:
    return DecisionTask(
        formula=formula,
        sensitivities=(1,) * functionals,
        exposures=expose_all_functionals(functionals),
        fnr=fnr,
        fpr=fpr,
    )


FORMULAS: dict[str, Formula] = {
    "one": cut(0, 100, 12),
    "both": AllOf((cut(0, 100, 12), cut(1, 50, 300))),
    "either": AnyOf((cut(0, 100, 12), cut(1, 50, 300, above=False))),
    "interval": AllOf((cut(0, 100, 12), cut(0, 103, 40, above=False))),
}


@pytest.mark.parametrize("formula", list(FORMULAS)[: rounds(4, quick=1)])
def test_both_rates_are_promised_and_cost_little_more(formula: str) -> None:
    """Deterministic: the smaller share's own worst rule stays within the share, which the contract adds up."""
    task = task_of(FORMULAS[formula], 2)
    bounded, published = DppwlmBounded().calibrate(task), Dppwlm().calibrate(task)
    assert bounded.fnr is not None
    assert bounded.fpr is not None
    assert bounded.fnr <= 0.05
    assert bounded.fpr <= 0.1
    assert published.fnr is None
    surcharge = bounded.worst_case_epsilon / published.worst_case_epsilon
    assert 1.0 < surcharge < (1.3 if formula == "interval" else 1.1)
    for test in bounded.tests:
        if test.looks:
            # the last level of PPWLM gives the share that was used
            used = 2 * math.exp(-float(test.rate) * test.tolerance / 2)
            assert max(bound_worst_rates(test, share=used, fine_steps=3)) <= test.fnr * (1 + 1e-6)


@pytest.mark.parametrize(("value", "true"), [(101, True), (88, False)])
def test_the_contract_holds_on_worst_case_data(value: int, true: bool) -> None:
    """400 keys alike in each of 100 independent runs: keys of one run share its levels, so runs are compared. The mean
    of the runs is within six standard errors of the promise or below: false alarm 1e-8 per case."""
    mechanism = DppwlmBounded(first_epsilon=0.05)
    calibration = mechanism.calibrate(task_of(cut(0, 100, 12), 1))
    promised = calibration.fnr if true else calibration.fpr
    assert promised is not None
    wrong = np.empty(100)
    for run in range(100):
        outcome = mechanism.decide(calibration, np.full((1, 400), value, dtype=np.int64), noise=make_system_noise())
        wrong[run] = (outcome.passed != true).mean()
        assert outcome.epsilon.max() <= calibration.worst_case_epsilon
    assert wrong.mean() - promised < 6 * wrong.std() / math.sqrt(100)


def test_constants_and_refusals() -> None:
    mechanism = DppwlmBounded()
    for formula, answer in ((TRUE, True), (FALSE, False)):
        outcome = mechanism.decide(
            mechanism.calibrate(task_of(formula, 1)), np.full((1, 3), 5, dtype=np.int64), noise=make_system_noise()
        )
        assert outcome.passed.tolist() == [answer] * 3
        assert not outcome.epsilon.any()
    with pytest.raises(Unachievable):
        mechanism.calibrate(task_of(cut(0, 100, 0), 1))
    with pytest.raises(Unachievable):
        mechanism.calibrate(task_of(cut(0, 100, 1), 1, fnr=1e-30))
    with pytest.raises(ValueError, match="at least one step"):
        DppwlmBounded(fine_steps=0)
