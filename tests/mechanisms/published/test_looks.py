"""PPWLM, DPPWLM and MiM: their promises on worst-case data, their ex-post losses, and exact laws by enumeration."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula, Integers, evaluate_formula
from mechanisms.noise.exact import make_system_noise
from mechanisms.protocol import DecisionTask, FunctionalTest, Knowledge, Mechanism, Unachievable
from mechanisms.published.dppwlm import Dppwlm
from mechanisms.published.expected_undecided import compute_tail_of_sum, compute_undecided_chances, expect_undecided
from mechanisms.published.mim import (
    Mim,
    MimBaseline,
    MimProgressive,
    choose_looks,
    expect_false_positives_of_one_look,
    expect_false_positives_of_two_looks,
)
from mechanisms.published.ppwlm import Ppwlm, calibrate_ppwlm_test
from mechanisms.published.progressive_looks import bound_false_accept, bound_false_reject, make_last_look
from mechanisms.threshold.joint_loss import expose_all_functionals, expose_functional_sets
from tests.in_turn import in_turn
from tests.mechanisms.threshold.crossing_by_hand import Flags, outcomes, worst_rule
from tests.seeded_noise import SeededNoise

KEYS = 40_000
FALSE_ALARM = 1e-8

D1 = Knowledge(far_keys=240, far_distance=90, near_keys=28, near_distance=75)
MECHANISMS: dict[str, Mechanism] = {
    "ppwlm": Ppwlm(),
    "ppwlm close levels": Ppwlm(looks=3, first_epsilon=0.2),
    "mim": Mim(knowledge={0: D1}),
    "mim_baseline": MimBaseline(),
    "mim_progressive": MimProgressive(),
}


def count(functional: int, cut: int = 100, tolerance: int = 10, above: bool = True) -> Cut:
    return Cut(functional=functional, cut=cut, above=above, tolerance=tolerance)


def task_of(formula: Formula, functionals: int, *, fnr: float = 0.05, fpr: float = 0.1) -> DecisionTask:
    return DecisionTask(
        formula=formula,
        sensitivities=(1,) * functionals,
        exposures=expose_all_functionals(functionals),
        fnr=fnr,
        fpr=fpr,
    )


PAIRS = AnyOf((AllOf((count(0), count(1))), AllOf((count(1), count(2)))))
FORMULAS: dict[str, tuple[Formula, int]] = {
    "one": (count(0), 1),
    "below": (count(0, above=False), 1),
    "both": (AllOf((count(0), count(1))), 2),
    "either": (AnyOf((count(0), count(1, 40, 6, above=False))), 2),
    "interval": (AllOf((count(0, 100, 10), count(0, 103, 10, above=False))), 1),
    "two cuts": (AnyOf((count(0, 140, 20), AllOf((count(0), count(1))))), 2),
    "pairs": (PAIRS, 3),
}
JUST_TRUE = {
    "one": (101,),
    "below": (100,),
    "both": (101, 101),
    "either": (101, 47),
    "interval": (101,),
    "two cuts": (101, 101),
    "pairs": (101, 101, 90),
}
STILL_FALSE = {
    "one": (90,),
    "below": (111,),
    "both": (90, 400),
    "either": (90, 47),
    "interval": (90,),
    "two cuts": (90, 400),
    "pairs": (90, 90, 90),
}


def alike(values: tuple[int, ...], keys: int = KEYS) -> Integers:
    return np.repeat(np.array(values, dtype=np.int64)[:, np.newaxis], keys, axis=1)


@in_turn("formula", FORMULAS)
@in_turn("name", MECHANISMS)
def test_false_negatives_at_the_worst_case(name: str, formula: str) -> None:
    """40,000 keys that just qualify; false alarm 1e-8 per case (binomial at the promised rate), 35 cases."""
    mechanism = MECHANISMS[name]
    calibration = mechanism.calibrate(task_of(*FORMULAS[formula]))
    assert calibration.fnr is not None
    assert calibration.fnr <= 0.05
    outcome = mechanism.decide(calibration, alike(JUST_TRUE[formula]), noise=make_system_noise())
    assert stats.binom.sf(int((~outcome.passed).sum()) - 1, KEYS, calibration.fnr) > FALSE_ALARM
    assert outcome.epsilon.max() <= calibration.worst_case_epsilon


@in_turn("formula", FORMULAS)
@in_turn("name", MECHANISMS)
def test_false_positives_at_the_worst_case(name: str, formula: str) -> None:
    """40,000 keys whose relaxed formula is just false; false alarm 1e-8 per case (binomial), 35 cases."""
    mechanism = MECHANISMS[name]
    calibration = mechanism.calibrate(task_of(*FORMULAS[formula]))
    assert calibration.fpr is not None
    assert calibration.fpr <= 0.1
    outcome = mechanism.decide(calibration, alike(STILL_FALSE[formula]), noise=make_system_noise())
    assert stats.binom.sf(int(outcome.passed.sum()) - 1, KEYS, calibration.fpr) > FALSE_ALARM
    assert outcome.epsilon.max() <= calibration.worst_case_epsilon


def path_of(test: FunctionalTest, distance: int) -> list[tuple[float, float]]:
    """Per look, the exact chances of rejection and acceptance of a literal at `distance`."""
    looks = (*test.looks, make_last_look(test))

    def zones(look: int, noise: Integers) -> tuple[Flags, Flags]:
        return noise + distance <= looks[look].rejecting, noise + distance >= looks[look].accepting

    return outcomes([float(look.rate) for look in looks], zones)


TIGHT = calibrate_ppwlm_test(sensitivity=1, tolerance=12, share=0.05, looks=4, first_epsilon=0.05, functional=0)


@pytest.mark.parametrize("distance", [-30, -12, -6, -3, 1, 8])
def test_the_path_of_a_key_has_its_exact_law(distance: int) -> None:
    """60,000 keys at a distance against exact enumeration: the number returned, and the number that stopped at each
    level. The undecided at the last look are among the returned. False alarm 1e-8 per count, 5 counts per case."""
    mechanism = Ppwlm(looks=4, first_epsilon=0.05)
    calibration = mechanism.calibrate(task_of(count(0, 100, 12), 1))
    (test,) = calibration.tests
    assert test.looks == TIGHT.looks
    path = path_of(test, distance)
    keys = 60_000
    outcome = mechanism.decide(calibration, alike((100 + distance,), keys), noise=make_system_noise())
    returned = sum(accept for _, accept in path)
    assert sum(reject for reject, _ in path) + returned == pytest.approx(1, abs=1e-9)
    counts = [(int(outcome.passed.sum()), returned)]
    for look, (reject, accept) in zip((*test.looks, make_last_look(test)), path, strict=True):
        counts.append((int(np.isclose(outcome.epsilon, float(look.rate)).sum()), reject + accept))
    for number, chance in counts:
        assert stats.binom.cdf(number, keys, chance) > FALSE_ALARM / 2
        assert stats.binom.sf(number - 1, keys, min(1.0, chance)) > FALSE_ALARM / 2


@pytest.mark.parametrize("distance", [-12, -6, -1, 1, 5])
def test_decision_and_stopping_level_lose_no_more_than_the_level(distance: int) -> None:
    """Exact: between neighbours the chance of (decision, level) changes by at most `exp(rate of that level)`."""
    here, there = path_of(TIGHT, distance), path_of(TIGHT, distance + 1)
    for look, first, second in zip((*TIGHT.looks, make_last_look(TIGHT)), here, there, strict=True):
        for chance, other in zip(first, second, strict=True):
            if min(chance, other) > 1e-12:
                assert abs(math.log(chance / other)) <= float(look.rate) * (1 + 1e-6) + 1e-9


def test_union_bounds_are_above_the_exact_rates() -> None:
    for distance in (1, 2, 5):
        assert sum(reject for reject, _ in path_of(TIGHT, distance)) <= bound_false_reject(TIGHT, distance) <= 0.05
    for distance in (-12, -20):
        assert sum(accept for _, accept in path_of(TIGHT, distance)) <= bound_false_accept(TIGHT, distance) <= 0.05


@pytest.mark.parametrize("mechanism", [Ppwlm(), Dppwlm(), MimProgressive()])
def test_far_keys_stop_early_and_are_decided_rightly(mechanism: Mechanism) -> None:
    """1,000 keys a hundred million units from every threshold; an error has probability below exp(-900)."""
    calibration = mechanism.calibrate(task_of(PAIRS, 3))
    values = np.where(np.random.default_rng(3).random((3, 1000)) < 0.5, -(10**8), 10**8)
    outcome = mechanism.decide(calibration, values, noise=make_system_noise())
    truth = evaluate_formula(PAIRS, lambda cut: cut.evaluate(values[cut.functional]), keys=1000)
    assert (outcome.passed == truth).all()
    cheaper = outcome.epsilon < 0.75 * calibration.worst_case_epsilon
    assert cheaper[~truth].all()


@pytest.mark.parametrize("name", ["ppwlm", "dppwlm", "mim"])
def test_loss_is_the_joint_loss_of_the_levels_reached(name: str) -> None:
    """Functionals that one unit cannot change together cost the greater of their levels, not the sum; same noise."""
    named: dict[str, Mechanism] = {"ppwlm": Ppwlm(), "dppwlm": Dppwlm(), "mim": Mim()}
    mechanism = named[name]
    formula = AllOf((count(0), count(1)))
    together = mechanism.calibrate(task_of(formula, 2))
    apart_task = DecisionTask(
        formula=formula,
        sensitivities=(1, 1),
        exposures=expose_functional_sets(((0,), (1,)), functionals=2),
        fnr=0.05,
        fpr=0.1,
    )
    apart = mechanism.calibrate(apart_task)
    assert apart.worst_case_epsilon == max(test.epsilon for test in apart.tests)
    values = np.random.default_rng(5).integers(0, 200, size=(2, 3000))
    joint = mechanism.decide(together, values, noise=SeededNoise(9))
    single = mechanism.decide(apart, values, noise=SeededNoise(9))
    assert joint.epsilon.max() <= together.worst_case_epsilon
    assert single.epsilon.max() <= apart.worst_case_epsilon
    assert single.epsilon.mean() < joint.epsilon.mean()


def test_a_decided_formula_asks_no_more() -> None:
    """Of `S0 > c OR S1 > c` with S0 far above, S1 near its threshold is never refined: 2,000 keys, and none pays for
    more than the level that decided S0. A wrong decision on S0 has probability below 1e-9."""
    mechanism = Ppwlm(looks=3, first_epsilon=0.01)
    calibration = mechanism.calibrate(task_of(AnyOf((count(0), count(1))), 2))
    outcome = mechanism.decide(calibration, alike((20_000, 96), 2000), noise=make_system_noise())
    assert outcome.passed.all()
    assert np.allclose(outcome.epsilon, float(calibration.tests[0].looks[0].rate), rtol=1e-12, atol=0)


@pytest.mark.parametrize("mechanism", [Ppwlm(), Dppwlm(), Mim(), MimBaseline(), MimProgressive()])
def test_constants_unused_functionals_and_no_keys(mechanism: Mechanism) -> None:
    for formula, answer in ((TRUE, True), (FALSE, False)):
        calibration = mechanism.calibrate(task_of(formula, 1))
        outcome = mechanism.decide(calibration, alike((5,), 4), noise=make_system_noise())
        assert outcome.passed.tolist() == [answer] * 4
        assert not outcome.epsilon.any()
    calibration = mechanism.calibrate(task_of(count(1), 2))
    assert calibration.tests[0].epsilon == 0.0
    empty = mechanism.decide(calibration, alike((1, 1), 0), noise=make_system_noise())
    assert empty.passed.shape == empty.epsilon.shape == (0,)


@pytest.mark.parametrize("mechanism", [Ppwlm(), Dppwlm(), Mim(), MimBaseline(), MimProgressive()])
def test_what_cannot_be_met_is_refused(mechanism: Mechanism) -> None:
    with pytest.raises(Unachievable):
        mechanism.calibrate(task_of(count(0, tolerance=0), 1))
    with pytest.raises(Unachievable):
        mechanism.calibrate(task_of(count(0, tolerance=1), 1, fnr=1e-30))
    with pytest.raises(Unachievable):
        mechanism.calibrate(task_of(count(0), 1, fnr=0.6, fpr=0.5))


@pytest.mark.parametrize(("sensitivity", "tolerance"), [(1, 1), (1, 7), (500, 40), (10**6, 10**9), (1, 10**15)])
def test_the_published_schedule(sensitivity: int, tolerance: int) -> None:
    """Levels grow by one factor up to `ln(m / (2 beta)) / u`; both rates are within the share."""
    test = calibrate_ppwlm_test(
        sensitivity=sensitivity, tolerance=tolerance, share=0.05, looks=4, first_epsilon=1e-5, functional=0
    )
    rates = [look.rate for look in test.looks] + [test.rate]
    assert float(test.rate) == pytest.approx(math.log(40) / (tolerance / 2), rel=1e-6) or tolerance == 10**15
    assert float(rates[0]) <= 1e-5 / sensitivity * 1.001
    factors = [float(fine / coarse) for coarse, fine in pairwise(rates)]
    assert factors == pytest.approx([factors[0]] * 3, rel=1e-6)
    assert bound_false_reject(test, 1) <= 0.05
    assert bound_false_accept(test, -tolerance) <= 0.05


def test_impossible_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="two looks"):
        Ppwlm(looks=1)
    with pytest.raises(ValueError, match="positive"):
        Dppwlm(first_epsilon=0.0)
    with pytest.raises(ValueError, match="at least one step"):
        Dppwlm(fine_steps=0)
    with pytest.raises(ValueError, match="public knowledge"):
        Knowledge(far_keys=1, far_distance=5, near_keys=1, near_distance=6)


@pytest.mark.parametrize("rates", [(0.1, 0.4), (0.4, 0.1), (0.3, 0.3), (0.3, 0.3 + 1e-12), (1e-5, 0.5)])
def test_the_sum_of_two_laplace_laws_by_quadrature(rates: tuple[float, float]) -> None:
    first, second = rates

    def weighted(x: float, bound: float) -> float:
        other = 0.5 * math.exp(-second * abs(bound - x))
        return first / 2 * math.exp(-first * abs(x)) * (other if bound >= x else 1 - other)

    for bound in (-30.0, -2.0, 0.0, 0.5, 7.0, 60.0):
        reach = 60 / first
        marks = sorted({-reach, min(0.0, bound), max(0.0, bound), bound - 80 / second, bound + 80 / second, reach})
        pieces = [
            integrate.quad(weighted, low, high, args=(bound,), epsabs=1e-12, limit=200)[0]
            for low, high in pairwise(marks)
            if -reach <= low < high <= reach
        ]
        found = float(compute_tail_of_sum(np.array([bound]), first_rate=first, second_rate=second)[0])
        assert found == pytest.approx(sum(pieces), abs=1e-7)


def test_expected_undecided_against_simulation() -> None:
    """Fifty keys, 40,000 pairs of Laplace variables each; the mean within 6.5 standard errors: false alarm 1e-9."""
    generator = np.random.default_rng(17)
    distances = generator.uniform(-60, 60, size=50)
    previous, following, shift = 0.05, 0.2, 18.0
    runs = 40_000
    noise = generator.laplace(scale=1 / previous, size=(runs, 50)) + generator.laplace(
        scale=1 / following, size=(runs, 50)
    )
    inside = (np.abs(distances + noise) <= shift).sum(axis=1)
    expected = expect_undecided(distances, shift=shift, previous_rate=previous, next_rate=following)
    assert abs(inside.mean() - expected) < 6.5 * inside.std() / math.sqrt(runs)
    chances = compute_undecided_chances(distances, shift=shift, previous_rate=previous, next_rate=following)
    assert chances.sum() == pytest.approx(expected)
    assert (chances >= 0).all()
    assert (chances <= 1).all()


def levels_of(shift: int, looks: int, factor: float, share: float = 0.05) -> list[float]:
    last = math.log(looks / (2 * share)) / shift
    return [last / factor ** (looks - 1 - look) for look in range(looks)]


@pytest.mark.parametrize(("looks", "coarse", "fine"), [(4, 0.0578, 0.0699), (6, 0.0647, 0.0770)])
def test_carried_shares_break_the_false_negative_rate(looks: int, coarse: float, fine: float) -> None:
    """Exact dynamic programming over all rules: as published .05 is exceeded; with every level's own part it is not."""
    levels = levels_of(150, looks, 1.5)
    assert worst_rule(levels, share=0.05, fine_steps=1, carried=True) == pytest.approx(coarse, abs=1e-4)
    assert worst_rule(levels, share=0.05, fine_steps=3, carried=True) == pytest.approx(fine, abs=1e-4)
    assert worst_rule(levels, share=0.05, fine_steps=1, carried=False) <= 0.05


def test_even_two_levels_break_it_by_their_fine_steps() -> None:
    """A fine step inside the last interval leaves a last look with another part of beta: three parts of two."""
    levels = levels_of(40, 2, 4.0)
    assert worst_rule(levels, share=0.05, fine_steps=1, carried=True) <= 0.05
    assert worst_rule(levels, share=0.05, fine_steps=3, carried=True) > 0.06


def test_dppwlm_stays_below_the_worst_rule() -> None:
    """Keys that just qualify, 400 at a time, 100 independent runs; the bound holds for any rule. The mean of the runs
    is within six standard errors of it or below: false alarm 1e-8."""
    mechanism = Dppwlm(first_epsilon=0.05)
    calibration = mechanism.calibrate(task_of(count(0, 100, 12), 1))
    assert calibration.fnr is None
    assert calibration.fpr is None
    (test,) = calibration.tests
    levels = [float(look.rate) for look in test.looks] + [float(test.rate)]
    bound = worst_rule(levels, share=test.fnr, fine_steps=3, carried=True)
    lost = np.empty(100)
    for run in range(100):
        outcome = mechanism.decide(calibration, alike((101,), 400), noise=make_system_noise())
        lost[run] = (~outcome.passed).mean()
        assert outcome.epsilon.max() <= calibration.worst_case_epsilon
    assert lost.mean() > 0.0
    assert lost.mean() - bound < 6 * lost.std() / math.sqrt(100)


@pytest.mark.parametrize("keys", [40, 4_000, 30_000])
def test_dppwlm_looks_at_levels_of_its_grid_alone(keys: int) -> None:
    mechanism = Dppwlm(first_epsilon=0.02, fine_steps=3)
    calibration = mechanism.calibrate(task_of(count(0, 100, 30), 1))
    (test,) = calibration.tests
    plan = [look.rate for look in test.looks] + [test.rate]
    grid = {plan[0]} | {low + (high - low) * Fraction(step, 3) for low, high in pairwise(plan) for step in (1, 2, 3)}
    values = np.random.default_rng(8).integers(-300, 500, size=(1, keys))
    seen = set(mechanism.decide(calibration, values, noise=make_system_noise()).epsilon.tolist())
    assert len(seen) > 1
    for epsilon in seen:
        assert min(abs(epsilon - float(rate)) for rate in grid) < 1e-12


def test_false_positive_models_are_the_printed_equations() -> None:
    """Equations 4 to 6 as printed, on the paper's data sets (table 1), beta = .05."""
    beta = 0.05
    sets = (D1, Knowledge(far_keys=300, far_distance=90, near_keys=60, near_distance=60))
    for known in sets:
        for rate in (0.1, 0.2, 0.4):
            once, twice = math.log(1 / (2 * beta)) / rate, math.log(1 / beta) / rate
            first_rate = math.log(1 / beta) / known.near_distance
            first = math.log(1 / beta) / first_rate
            keys = known.far_keys + known.near_keys
            equation_4 = keys * 0.5 * (2 * beta) ** ((known.near_distance - once) / once)
            equation_5 = known.far_keys * 0.5 * beta ** ((known.far_distance - first) / first) + known.near_keys
            equation_6 = equation_5 * 0.5 * beta ** ((known.near_distance - twice) / twice)
            assert expect_false_positives_of_one_look(known, rate=rate, share=beta) == pytest.approx(equation_4)
            two = expect_false_positives_of_two_looks(known, first_rate=first_rate, rate=rate, share=beta)
            assert two == pytest.approx(equation_6)


def test_the_model_chooses_by_where_the_keys_are() -> None:
    """Many far keys make two looks worth it; without any, the halved share of the last look costs more."""
    assert choose_looks(Knowledge(10_000, 95, 10, 40), shift=20, share=0.05) == 2
    assert choose_looks(Knowledge(0, 95, 1000, 40), shift=20, share=0.05) == 1
    informed = Mim(knowledge={0: Knowledge(10_000, 95, 10, 40), 1: Knowledge(0, 95, 1000, 40)})
    formula = AnyOf((count(0, tolerance=40), count(1, tolerance=40), count(2, tolerance=40)))
    calibration = informed.calibrate(task_of(formula, 3))
    assert [len(test.looks) for test in calibration.tests] == [1, 0, 1]
