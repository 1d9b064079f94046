"""Later questions on the noise of earlier ones: their contract, the law of refined values, and what they cost.

Statistical tests compare counts of independent keys with the calibrated rates by exact binomial tails, or values with
their exact law by chi-square; each states its false alarm.
"""

import random
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.formula import AllOf, AnyOf, Cut, Formula, Integers, list_literals
from mechanisms.keyhole.noise_continuation import (
    CONTINUABLE,
    MOST_RATES,
    Continuation,
    decide_on_known_values,
    decide_on_refined_paths,
    plan_on_paths,
)
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive
from mechanisms.protocol import DecisionTask, FunctionalTest, Mechanism, NoisePath, Outcome
from mechanisms.published.tslm import Tslm
from mechanisms.threshold.joint_loss import expose_all_functionals, expose_functional_sets
from mechanisms.threshold.one_shot import calibrate_at_rate, count_blocks_in_tolerance
from mechanisms.threshold.three_zone import compute_exact_acceptance, compute_exact_rejection
from tests.effort import cases, examples, rounds
from tests.seeded_noise import SeededNoise

KEYS = 50_000
FALSE_ALARM = 1e-9
PROGRESSIVE, KEYHOLE = Progressive(), Keyhole()
MECHANISMS: dict[str, Mechanism] = {"progressive": PROGRESSIVE, "keyhole": KEYHOLE}


def count(cut: int = 100, tolerance: int = 10, *, functional: int = 0, above: bool = True) -> Cut:
    return Cut(functional=functional, cut=cut, above=above, tolerance=tolerance)


def task_of(
    formula: Formula, *, fnr: float = 0.05, fpr: float = 0.1, sensitivities: tuple[int, ...] = ()
) -> DecisionTask:
    functionals = 1 + max(cut.functional for cut in list_literals(formula))
    return DecisionTask(
        formula=formula,
        sensitivities=sensitivities or (1,) * functionals,
        exposures=expose_all_functionals(functionals),
        fnr=fnr,
        fpr=fpr,
        blocks=frozenset(),
    )


def alike(*values: int, keys: int = KEYS) -> Integers:
    return np.tile(np.array(values, dtype=np.int64)[:, np.newaxis], (1, keys))


def laid(mechanism: Mechanism, task: DecisionTask, paths: tuple[NoisePath | None, ...]) -> Continuation:
    found = plan_on_paths(mechanism.calibrate(task), paths)
    assert found is not None
    return found


def asked(mechanism: Mechanism, task: DecisionTask, values: Integers, *, seed: int) -> Outcome:
    return mechanism.decide(mechanism.calibrate(task), values, noise=SeededNoise(seed))


def spread_values(keys: int, functionals: int = 1) -> Integers:
    generator = np.random.default_rng(11)
    return generator.integers(-50, 300, (functionals, keys)).astype(np.int64)


# the second question, with values at which missing and returning are most probable
SECOND: dict[str, tuple[Formula, float, tuple[int, ...], tuple[int, ...]]] = {
    "the same threshold": (count(100), 0.05, (101,), (90,)),
    "a lower threshold": (count(80), 0.05, (81,), (70,)),
    "a far lower threshold": (count(20), 0.05, (21,), (10,)),
    "a higher threshold": (count(125), 0.05, (126,), (115,)),
    "half the tolerance": (count(90, 5), 0.05, (91,), (85,)),
    "twice the tolerance": (count(110, 20), 0.05, (111,), (90,)),
    "no tolerance": (count(97, 0), 0.05, (98,), (97,)),
    "fewer misses": (count(105), 0.005, (106,), (95,)),
    "at most": (count(105, above=False), 0.05, (105,), (116,)),
    "between": (AllOf((count(100), count(103, above=False))), 0.05, (101,), (90,)),
    "outside": (AnyOf((count(140), count(100, above=False))), 0.05, (141,), (130,)),
}


@pytest.mark.parametrize(("name", "second", "first"), cases(SECOND, MECHANISMS, MECHANISMS, quick=22))
def test_the_second_question_keeps_its_contract(name: str, first: str, second: str) -> None:
    """50 000 keys all at c + 1 of the second threshold, then all at c - tolerance, after a first question whose
    stopping depends on the same noise; false alarm 1e-9 for each binomial test."""
    formula, fnr, just_true, still_false = SECOND[name]
    task = task_of(formula, fnr=fnr)
    for values, true in ((just_true, True), (still_false, False)):
        before = asked(MECHANISMS[first], task_of(count()), alike(*values), seed=len(name))
        question = laid(MECHANISMS[second], task, before.paths)
        bound = question.calibration.fnr if true else question.calibration.fpr
        assert bound is not None
        assert bound <= (fnr if true else 0.1)
        outcome = decide_on_refined_paths(question, alike(*values), noise=SeededNoise(60 + len(name)))
        errors = int(np.sum(outcome.passed != true))
        assert stats.binom.sf(errors - 1, KEYS, bound) > FALSE_ALARM


@pytest.mark.parametrize("threshold", [80, 20])
def test_reading_the_finest_value_would_break_the_contract(threshold: int) -> None:
    """What docs/proofs/reuse.md warns of: each level's own cut-off misses no more than .05, but which level is the
    finest depends on the noise. 50 000 keys; the sound reading passes with false alarm 1e-9, and the biased one fails
    with a tail below 1e-9."""
    values = alike(threshold + 1)
    before = asked(PROGRESSIVE, task_of(count()), values, seed=3)
    path = before.paths[0]
    assert path is not None
    biased = 0
    for level, rate in enumerate(path.rates, start=1):
        test = calibrate_at_rate(rate=rate, tolerance=10_000, fnr=0.05, fpr=0.1)
        assert test is not None
        mine = path.values[level - 1, path.reached == level]
        coin = SeededNoise(level).draw_bernoulli(probability=test.tie, size=mine.size)
        boundary = threshold - test.shift
        biased += int(np.sum((mine < boundary) | ((mine == boundary) & ~coin)))
    assert stats.binom.sf(biased - 1, KEYS, 0.05) < FALSE_ALARM
    sound = decide_on_refined_paths(
        laid(PROGRESSIVE, task_of(count(threshold)), before.paths), values, noise=SeededNoise(4)
    )
    assert stats.binom.sf(int(np.sum(~sound.passed)) - 1, KEYS, 0.05) > FALSE_ALARM


@pytest.mark.parametrize("cut", [100, 130, 60])
def test_values_refined_after_stopping_follow_the_exact_law(cut: int) -> None:
    """50 000 keys, level by level and by the increment between neighbouring levels; chi-square against exact
    probabilities, false alarm 1e-9 a test, at most eight levels."""
    sharp = task_of(count(cut, 5))
    values = alike(101)
    before = asked(PROGRESSIVE, task_of(count()), values, seed=17)
    path = decide_on_refined_paths(laid(KEYHOLE, sharp, before.paths), values, noise=SeededNoise(18)).paths[0]
    assert path is not None
    assert np.all(path.reached == len(path.rates))
    noises = path.values - 101
    for rate, drawn in zip(path.rates, noises, strict=True):
        check_law(drawn, rate)
    for (coarse, fine), (first, second) in zip(pairwise(path.rates), pairwise(noises), strict=True):
        a, b = exp(-coarse), exp(-fine)
        unchanged = ((1 - a) / (1 - b)) ** 2 * b / a
        increments = first - second
        zero = unchanged + (1 - unchanged) * (1 - a) / (1 + a)
        assert (
            min(
                stats.binom.cdf(np.sum(increments == 0), KEYS, zero),
                stats.binom.sf(np.sum(increments == 0) - 1, KEYS, zero),
            )
            > FALSE_ALARM
        )
        for far in (second < 0, second > 3):
            size = int(far.sum())
            same = int(np.sum(increments[far] == 0))
            assert min(stats.binom.cdf(same, size, zero), stats.binom.sf(same - 1, size, zero)) > FALSE_ALARM


def check_law(drawn: Integers, rate: Fraction) -> None:
    a = exp(-rate)
    edges = np.unique(np.round(np.linspace(-6, 6, 25) / float(rate)).astype(np.int64))

    def at_most(value: int) -> float:
        return 1 - a ** (value + 1) / (1 + a) if value >= 0 else a ** (-value) / (1 + a)

    cumulative = np.array([0.0, *(at_most(int(edge)) for edge in edges), 1.0])
    expected = np.diff(cumulative) * drawn.size
    seen = np.bincount(np.searchsorted(edges, drawn), minlength=edges.size + 1)
    assert expected.min() > 20
    statistic = float(np.sum((seen - expected) ** 2 / expected))
    assert stats.chi2.sf(statistic, expected.size - 1) > FALSE_ALARM


@pytest.mark.parametrize("first", MECHANISMS)
@pytest.mark.parametrize("second", MECHANISMS)
def test_fresh_losses_add_up_to_the_finest_level(first: str, second: str) -> None:
    """Exact in rationals but for the rounding up of each amount: a part in 1e12 at most, and never below."""
    values = spread_values(3000)
    outcome = asked(MECHANISMS[first], task_of(count()), values, seed=1)
    total = outcome.epsilon.copy()
    for seed, formula in enumerate((count(110), count(150, 20), count(95, 4), count(95, 3), count(60))):
        question = laid(MECHANISMS[second], task_of(formula), outcome.paths)
        outcome = decide_on_refined_paths(question, values, noise=SeededNoise(seed))
        assert outcome.fresh is not None
        assert np.all(outcome.fresh <= outcome.epsilon)
        assert np.all(outcome.fresh <= question.fresh_by_key)
        assert np.all(question.fresh_by_key <= question.fresh_worst)
        assert np.all(outcome.epsilon <= question.calibration.worst_case_epsilon)
        total += outcome.fresh
        path = outcome.paths[0]
        assert path is not None
        finest = np.array([float(rate) for rate in (Fraction(0), *path.rates)])[path.reached]
        assert np.all(finest <= total)
        assert np.all(total <= finest * (1 + 1e-12))


@examples(40)
@given(
    first=st.sampled_from(["progressive", "keyhole"]),
    questions=st.lists(
        st.tuples(
            st.sampled_from(["progressive", "keyhole"]),
            st.integers(0, 200),
            st.integers(0, 60),
            st.sampled_from([0.001, 0.05, 0.3, 0.49]),
            st.booleans(),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_paths_only_grow_at_the_top(first: str, questions: list[tuple[str, int, int, float, bool]]) -> None:
    values = spread_values(40)
    outcome = asked(MECHANISMS[first], task_of(count()), values, seed=2)
    path = outcome.paths[0]
    for name, cut, tolerance, share, above in questions:
        mechanism = MECHANISMS[name]
        task = task_of(count(cut, tolerance, above=above), fnr=share, fpr=share)
        assert path is not None
        question = plan_on_paths(mechanism.calibrate(task), (path,))
        if question is None:
            continue
        assert question.calibration.fnr is not None
        assert question.calibration.fnr <= share
        assert question.calibration.fpr is not None
        assert question.calibration.fpr <= share
        last = question.calibration.tests[0].rate
        assert question.public_fresh_worst == pytest.approx(float(max(Fraction(0), last - path.rates[-1])))
        known = decide_on_known_values(question, noise=SeededNoise(5))
        outcome = decide_on_refined_paths(question, values, noise=SeededNoise(6))
        after = outcome.paths[0]
        assert after is not None
        assert after.rates[: len(path.rates)] == path.rates
        assert np.all(after.reached >= path.reached)
        seen = np.arange(len(path.rates))[:, np.newaxis] < path.reached
        assert np.array_equal(after.values[: len(path.rates)][seen], path.values[seen])
        unseen = np.arange(len(after.rates))[:, np.newaxis] >= after.reached
        assert not np.any(after.values[unseen])
        if known is not None:
            assert known.fresh is not None
            assert not np.any(known.fresh)
            assert known.paths == ()
            assert outcome.fresh is not None
            assert not np.any(outcome.fresh)
        path = after


@pytest.mark.parametrize("seed", range(rounds(12, quick=2)))
def test_any_questions_on_one_path_keep_their_bounds(seed: int) -> None:
    """Thirty questions in a row about three functionals, of any tolerances, rates, directions and sensitivities: each
    verifies its contract, by the exact law too where looks are early, and no loss exceeds what was announced."""
    chosen = random.Random(seed)
    sensitivities = tuple(chosen.choice((1, 5, 100)) for _ in range(3))
    widths = [round(10 ** chosen.uniform(0, 6)) for _ in range(3)]
    values = np.array([[chosen.randint(-3 * width, 3 * width) for _ in range(20)] for width in widths], dtype=np.int64)
    paths: tuple[NoisePath | None, ...] = (None,) * 3
    for turn in range(30):
        literals = tuple(
            Cut(
                functional=f,
                cut=chosen.randint(-widths[f], widths[f]),
                above=chosen.random() < 0.6,
                tolerance=round(widths[f] * chosen.choice((0, 0.3, 0.9, 1, 3))),
            )
            for f in chosen.choices(range(3), k=chosen.randint(1, 4))
        )
        task = DecisionTask(
            formula=chosen.choice((AllOf, AnyOf))(literals),
            sensitivities=sensitivities,
            exposures=expose_all_functionals(3),
            fnr=chosen.choice((0.4, 0.05, 1e-6)),
            fpr=chosen.choice((0.4, 0.05, 1e-6)),
        )
        mechanism = chosen.choice((PROGRESSIVE, KEYHOLE))
        question = plan_on_paths(mechanism.calibrate(task), paths)
        if question is None:
            outcome = mechanism.decide(mechanism.calibrate(task), values, noise=SeededNoise(turn))
        else:
            told = question.calibration
            assert told.fnr is not None
            assert told.fpr is not None
            assert told.fnr <= task.fnr
            assert told.fpr <= task.fpr
            for test in told.tests:
                if test.looks:
                    assert compute_exact_rejection(test, 1) <= test.fnr
                    assert compute_exact_acceptance(test, -block_distance(test)) <= test.fpr
            outcome = decide_on_refined_paths(
                question, values, noise=SeededNoise(turn), reads_known_first=chosen.random() < 0.5
            )
            assert outcome.fresh is not None
            assert np.all(outcome.fresh <= question.fresh_by_key)
            assert np.all(outcome.fresh <= outcome.epsilon)
            assert np.all(outcome.epsilon <= told.worst_case_epsilon)
        paths = tuple(new or old for new, old in zip(outcome.paths, paths, strict=True))


def block_distance(test: FunctionalTest) -> int:
    """The tolerance in steps of the test's noise."""
    if test.block == 1:
        return test.tolerance
    return count_blocks_in_tolerance(sensitivity=test.block, tolerance=test.tolerance)


def test_what_known_values_settle_is_settled_as_they_say() -> None:
    """One-shot paths without ties are read alike by everybody, so the two ways of answering agree key by key."""
    values = spread_values(2000)
    before = asked(KEYHOLE, task_of(count(tolerance=4)), values, seed=8)
    question = laid(PROGRESSIVE, task_of(count(120)), before.paths)
    tests = tuple(replace(test, tie=Fraction(1)) for test in question.calibration.tests)
    question = replace(question, calibration=replace(question.calibration, tests=tests))
    known = decide_on_known_values(question, noise=SeededNoise(1))
    assert known is not None
    assert np.array_equal(known.passed, decide_on_refined_paths(question, values, noise=SeededNoise(2)).passed)
    assert np.all(known.epsilon == question.calibration.worst_case_epsilon)


def test_coins_of_the_boundary_are_tossed_once() -> None:
    """Keys that lie on a boundary pass with the tie's probability whether or not `settle` was tried first: 20 000 keys,
    each of the other half still open; binomial, false alarm 1e-9."""
    question = laid(KEYHOLE, task_of(count()), asked(KEYHOLE, task_of(count()), alike(100, keys=4), seed=1).paths)
    test = question.calibration.tests[0]
    keys = 40_000
    at_boundary = NoisePath(
        rates=question.paths[0].rates if question.paths[0] else (),
        values=np.full((1, keys), 100 - test.shift, dtype=np.int64),
        reached=np.repeat(np.array([1, 0], dtype=np.int8), keys // 2),
    )
    question = replace(question, paths=(at_boundary,))
    assert decide_on_known_values(question, noise=SeededNoise(2)) is None
    passed = int(
        decide_on_refined_paths(question, alike(100, keys=keys), noise=SeededNoise(3)).passed[: keys // 2].sum()
    )
    chance = float(test.tie)
    assert 0.01 < chance < 0.99
    assert min(stats.binom.cdf(passed, keys // 2, chance), stats.binom.sf(passed - 1, keys // 2, chance)) > FALSE_ALARM


def test_values_far_beyond_do_not_overflow() -> None:
    """Values of +-2**62 are refined as any other; a wrong answer needs noise of 2**61, false alarm below 1e-9."""
    values = np.array([[2**62, -(2**62), 0, 100]], dtype=np.int64)
    before = asked(PROGRESSIVE, task_of(count()), values, seed=3)
    for mechanism in (PROGRESSIVE, KEYHOLE):
        outcome = decide_on_refined_paths(
            laid(mechanism, task_of(count(90, 2)), before.paths), values, noise=SeededNoise(4)
        )
        assert outcome.passed[0]
        assert not outcome.passed[1]
        path = outcome.paths[0]
        assert path is not None
        shown = np.arange(len(path.rates))[:, np.newaxis] < path.reached
        assert np.all(np.abs(path.values - values)[shown] < 10**4)


def test_functionals_without_a_path_are_drawn_anew() -> None:
    values = spread_values(2000, 2)
    before = asked(PROGRESSIVE, task_of(count()), values[:1], seed=3)
    task = task_of(AllOf((count(), count(functional=1))))
    question = laid(PROGRESSIVE, task, (*before.paths, None))
    assert question.paths == (*before.paths, None)
    outcome = decide_on_refined_paths(question, values, noise=SeededNoise(4))
    path, drawn_anew = before.paths[0], outcome.paths[1]
    assert path is not None
    assert drawn_anew is not None
    known, anew = question.calibration.tests
    assert drawn_anew.rates == (*(look.rate for look in anew.looks), anew.rate)
    fresh = float(anew.rate + max(Fraction(0), known.rate - path.rates[-1]))
    assert question.public_fresh_worst <= fresh * (1 + 1e-9) < question.calibration.worst_case_epsilon
    assert outcome.fresh is not None
    assert outcome.fresh.mean() < outcome.epsilon.mean()


def test_what_known_values_decide_is_not_refined_for_others() -> None:
    """A known functional that is false for sure settles an AND before the other is looked at; false alarm 1e-9."""
    values = np.vstack((np.full(1000, -(10**5)), np.full(1000, 10**5))).astype(np.int64)
    before = asked(PROGRESSIVE, task_of(count()), values[:1], seed=3)
    question = laid(PROGRESSIVE, task_of(AllOf((count(), count(functional=1, tolerance=40)))), (*before.paths, None))
    known = decide_on_known_values(question, noise=SeededNoise(4))
    assert known is not None
    assert not np.any(known.passed)


@pytest.mark.parametrize("known_first", [False, True])
def test_the_order_of_looks_changes_no_answer(known_first: bool) -> None:
    """Both functionals near their thresholds, one known far better than the other; 50 000 keys, false alarm 1e-9 for
    each of the two binomial tests."""
    formula = AllOf((count(functional=0), count(functional=1, tolerance=30)))
    for values, true in (((101, 101), True), ((90, 101), False)):
        before = asked(KEYHOLE, task_of(count(tolerance=6)), alike(values[0]), seed=3)
        question = laid(PROGRESSIVE, task_of(formula), (*before.paths, None))
        outcome = decide_on_refined_paths(question, alike(*values), noise=SeededNoise(5), reads_known_first=known_first)
        bound = question.calibration.fnr if true else question.calibration.fpr
        errors = int(np.sum(outcome.passed != true))
        assert bound is not None
        assert stats.binom.sf(errors - 1, KEYS, bound) > FALSE_ALARM


def test_what_a_question_reads_does_not_tell_what_others_have_revealed() -> None:
    """The same values, known to the end or only as far as others went, without ties, so that no chance is left: keys
    that need nothing more lose the same, unless known values are read first; then more keys need nothing more."""
    values = spread_values(3000, 2)
    task = task_of(AllOf((count(), count(functional=1, tolerance=15))))
    question = laid(PROGRESSIVE, task, asked(PROGRESSIVE, task, values, seed=1).paths)
    tests = tuple(replace(test, tie=Fraction(1)) for test in question.calibration.tests)
    question = replace(question, calibration=replace(question.calibration, tests=tests))
    to_the_end = decide_on_refined_paths(
        replace(question, calibration=replace(question.calibration, mechanism="keyhole")), values, noise=SeededNoise(2)
    ).paths
    generator = np.random.default_rng(3)
    partly = tuple(shortened(path, generator.integers(0, 7, 3000)) for path in to_the_end if path is not None)
    whole = decide_on_refined_paths(replace(question, paths=to_the_end), values, noise=SeededNoise(4))
    lazy, greedy = (
        decide_on_refined_paths(
            replace(question, paths=partly), values, noise=SeededNoise(4), reads_known_first=known_first
        )
        for known_first in (False, True)
    )
    assert lazy.fresh is not None
    assert greedy.fresh is not None
    enough = lazy.fresh == 0
    assert 100 < enough.sum() < 2900
    assert np.array_equal(whole.epsilon[enough], lazy.epsilon[enough])
    assert np.array_equal(whole.passed[enough], lazy.passed[enough])
    spared = greedy.fresh == 0
    assert np.any(whole.epsilon[spared] != greedy.epsilon[spared])
    assert greedy.fresh.mean() < lazy.fresh.mean()


def shortened(path: NoisePath, reached: Integers) -> NoisePath:
    shown = np.arange(len(path.rates))[:, np.newaxis] < reached
    return NoisePath(rates=path.rates, values=np.where(shown, path.values, 0), reached=reached.astype(np.int8))


def test_disjoint_functionals_cost_the_larger_difference() -> None:
    task = replace(
        task_of(AnyOf((count(), count(functional=1)))), exposures=expose_functional_sets(((0,), (1,)), functionals=2)
    )
    values = spread_values(500, 2)
    before = asked(KEYHOLE, task, values, seed=3)
    sharper = replace(task, formula=AnyOf((count(tolerance=6), count(functional=1, tolerance=7))))
    question = laid(KEYHOLE, sharper, before.paths)
    above = [
        float(test.rate - path.rates[-1])
        for test, path in zip(question.calibration.tests, before.paths, strict=True)
        if path is not None
    ]
    assert question.public_fresh_worst == pytest.approx(max(above))
    outcome = decide_on_refined_paths(question, values, noise=SeededNoise(4))
    assert outcome.fresh == pytest.approx(max(above))


def test_which_paths_are_there_is_public() -> None:
    """Every functional of the formula has one, looked at or not, with all rates of its test; a caller may say no."""
    values = np.vstack((np.full(9, -(10**6)), np.full(9, 100))).astype(np.int64)
    formula = AllOf((count(), count(functional=1, tolerance=40)))
    for mechanism in (PROGRESSIVE, KEYHOLE):
        calibration = mechanism.calibrate(task_of(formula))
        outcome = mechanism.decide(calibration, values, noise=SeededNoise(1))
        for path, test in zip(outcome.paths, calibration.tests, strict=True):
            assert path is not None
            assert path.rates == (*(look.rate for look in test.looks), test.rate)
        assert mechanism.decide(calibration, values, noise=SeededNoise(1), keeps_paths=False).paths == ()


def test_noise_on_block_indices_leaves_no_path() -> None:
    task = replace(task_of(count(tolerance=3), sensitivities=(5,)), blocks=None)
    calibration = PROGRESSIVE.calibrate(task)
    assert calibration.tests[0].block > 1
    outcome = PROGRESSIVE.decide(calibration, alike(100, keys=5), noise=SeededNoise(1))
    assert outcome.paths == (None,)
    assert plan_on_paths(calibration, outcome.paths) is None


def test_long_paths_grow_no_longer() -> None:
    rates = tuple(Fraction(level, 1 << 20) for level in range(1, MOST_RATES + 1))
    path = NoisePath(rates=rates, values=np.zeros((MOST_RATES, 1), dtype=np.int64), reached=np.zeros(1, dtype=np.int8))
    assert plan_on_paths(PROGRESSIVE.calibrate(task_of(count())), (path,)) is None
    assert plan_on_paths(PROGRESSIVE.calibrate(task_of(count(tolerance=500_000))), (path,)) is not None


def test_other_mechanisms_are_not_continued() -> None:
    before = asked(PROGRESSIVE, task_of(count()), alike(100, keys=5), seed=1)
    assert Tslm.name not in CONTINUABLE
    assert plan_on_paths(Tslm().calibrate(task_of(count())), before.paths) is None


def test_paths_are_of_the_questions_keys() -> None:
    calibration = PROGRESSIVE.calibrate(task_of(count()))
    before = asked(PROGRESSIVE, task_of(count()), alike(100, keys=5), seed=1)
    with pytest.raises(ValueError, match="one path or None for each part with noise"):
        plan_on_paths(calibration, (*before.paths, None))
    with pytest.raises(ValueError, match="of the same keys"):
        decide_on_refined_paths(
            laid(PROGRESSIVE, task_of(count()), before.paths), alike(100, keys=6), noise=SeededNoise(1)
        )


def test_paths_are_well_formed() -> None:
    values, reached = np.zeros((2, 3), dtype=np.int64), np.zeros(3, dtype=np.int8)
    with pytest.raises(ValueError, match="strictly increase"):
        NoisePath(rates=(Fraction(1), Fraction(1)), values=values, reached=reached)
    with pytest.raises(ValueError, match="one row of values per rate"):
        NoisePath(rates=(Fraction(1),), values=values, reached=reached)


@pytest.mark.parametrize(
    ("second", "most_of_fresh"),
    [(count(1100, 100), 0.10), (count(1500, 100), 0.25), (count(1000, 50), 0.25)],
    ids=["+10 %", "+50 %", "half the tolerance"],
)
def test_a_later_question_costs_a_small_part_of_one_asked_anew(second: Cut, most_of_fresh: float) -> None:
    """As in docs/mechanisms.md: 4 000 values from 100 to 10 000, evenly by logarithm; means of 4 000 losses, at
    least ten standard deviations below the bound."""
    generator = np.random.default_rng(1)
    values = np.exp(generator.uniform(np.log(100), np.log(10_000), (1, 4000))).astype(np.int64)
    before = asked(PROGRESSIVE, task_of(count(1000, 100)), values, seed=1)
    later = decide_on_refined_paths(laid(PROGRESSIVE, task_of(second), before.paths), values, noise=SeededNoise(2))
    anew = asked(PROGRESSIVE, task_of(second), values, seed=3)
    assert later.fresh is not None
    assert later.fresh.mean() <= most_of_fresh * anew.epsilon.mean()
