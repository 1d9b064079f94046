"""Several formulas on shared values: each with the contract, at the least loss for all, and shown as one answer."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import stats

from mechanisms.formula import (
    FALSE,
    TRUE,
    AllOf,
    AnyOf,
    Booleans,
    Cut,
    Formula,
    Integers,
    evaluate_formula,
    list_literals,
)
from mechanisms.keyhole.contract import EMPTY_PREDICATE_NOTE, EMPTY_PROMISE_NOTE, SEVERAL_REFUSED
from mechanisms.keyhole.noise_continuation import (
    CONTINUABLE,
    decide_on_known_values,
    decide_on_refined_paths,
    decide_with_all_revealed,
    plan_on_paths,
)
from mechanisms.keyhole.one_shot import Keyhole, find_single_thresholds
from mechanisms.keyhole.progressive import Progressive, find_empty_groups, find_two_sided_functionals
from mechanisms.protocol import Calibration, DecisionTask, Mechanism, Outcome, Unachievable
from mechanisms.registry import DEFAULT, MECHANISMS
from mechanisms.threshold.joint_loss import expose_all_functionals, expose_functional_sets
from mechanisms.threshold.three_zone import EmptyGroups, compute_exact_acceptance, compute_exact_rejection
from tests.effort import rounds
from tests.mechanisms.test_contract import patterns
from tests.seeded_noise import SeededNoise

FALSE_ALARM = 1e-9
BOTH: tuple[Mechanism, ...] = (Progressive(), Keyhole())


def count(functional: int, cut: int = 100, tolerance: int = 10, above: bool = True) -> Cut:
    return Cut(functional=functional, cut=cut, above=above, tolerance=tolerance)


def scorecard(*predicates: Formula, having: Formula = TRUE, functionals: int = 3, keys: int = 1) -> DecisionTask:
    return DecisionTask(
        formula=having,
        predicates=predicates,
        sensitivities=(1,) * functionals,
        exposures=expose_all_functionals(functionals),
        fnr=0.05,
        fpr=0.1,
        keys=keys,
    )


def alone(task: DecisionTask, formula: Formula) -> DecisionTask:
    return replace(task, formula=formula, predicates=())


def alike(values: tuple[int, ...], keys: int) -> Integers:
    return np.tile(np.array(values, dtype=np.int64)[:, np.newaxis], (1, keys))


BANDS = tuple(count(0, cut, cut // 10) for cut in (80, 100, 140, 200))
INTERVAL = AllOf((count(1), count(1, 130, 10, above=False)))
MIXED = scorecard(
    count(0, 120, 12),
    AllOf((count(0, 110, 11), count(1))),
    AnyOf((count(1), count(2, 60, 6, above=False))),
    INTERVAL,
    having=count(0, 90, 9),
)

# of each predicate of MIXED values at which missing it is most probable, and showing it wrongly
MIXED_EDGES: tuple[tuple[tuple[int, int, int], tuple[int, int, int]], ...] = (
    ((121, 0, 0), (108, 0, 0)),
    ((111, 101, 0), (99, 1000, 0)),
    ((1000, 101, 1000), (1000, 90, 67)),
    ((1000, 101, 0), (1000, 90, 0)),
)


@pytest.mark.parametrize("mechanism", BOTH, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("place", range(len(MIXED.predicates)))
def test_each_predicate_keeps_its_rates_on_worst_case_data(place: int, mechanism: Mechanism) -> None:
    """10 000 keys at a predicate's edge, thorough 100 000; false alarm 1e-9 for each binomial test."""
    keys = rounds(100_000, quick=10_000)
    calibration = mechanism.calibrate(MIXED)
    assert calibration.fnr is not None
    assert calibration.fpr is not None
    just_true, still_false = MIXED_EDGES[place]
    true = mechanism.decide(calibration, alike(just_true, keys), noise=SeededNoise(50 + place))
    missed = int(np.sum(true.passed & ~true.predicates[place]))
    assert stats.binom.sf(missed - 1, keys, calibration.fnr) > FALSE_ALARM
    false = mechanism.decide(calibration, alike(still_false, keys), noise=SeededNoise(60 + place))
    shown = int(np.sum(false.predicates[place]))
    assert stats.binom.sf(shown - 1, keys, calibration.fpr) > FALSE_ALARM


def holds(formula: Formula, accepted: frozenset[Cut]) -> bool:
    return bool(evaluate_formula(formula, lambda cut: np.array([cut in accepted]), keys=1)[0])


def exact_law(calibration: Calibration, values: tuple[int, ...]) -> dict[tuple[bool, ...], float]:
    """By enumeration of what each functional's one noisy value decides: the law of all that is shown of a key."""
    task = calibration.task
    own = [[cut for cut in dict.fromkeys(task.list_literals()) if cut.functional == f] for f in range(len(values))]
    laws = [patterns(calibration.tests[f], own[f], values[f]) for f in range(len(values))]
    found: dict[tuple[bool, ...], float] = {}
    for chosen in product(*(law.items() for law in laws)):
        held = frozenset[Cut]().union(*(pattern for pattern, _ in chosen))
        passed, *others = (holds(formula, held) for formula in task.formulas)
        shown = (passed, *(passed and value for value in others))
        found[shown] = found.get(shown, 0.0) + float(np.prod([chance for _, chance in chosen]))
    return found


@pytest.mark.parametrize("values", [(101, 100, 70), (90, 120, 66)])
def test_what_is_shown_has_the_law_of_one_noisy_value_for_each_functional(values: tuple[int, int, int]) -> None:
    """Keys, 30 000 of them, against exact enumeration; each outcome's number is binomial, false alarm 1e-9 in all."""
    keys = 30_000
    calibration = Keyhole().calibrate(MIXED)
    law = exact_law(calibration, values)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-9)
    outcome = Keyhole().decide(calibration, alike(values, keys), noise=SeededNoise(3))
    seen = Counter(zip(*(answer.tolist() for answer in (outcome.passed, *outcome.predicates)), strict=True))
    assert set(seen) <= set(law)
    level = FALSE_ALARM / (4 * len(law))
    for shown, chance in law.items():
        assert stats.binom.sf(seen[shown] - 1, keys, chance) > level
        assert stats.binom.cdf(seen[shown], keys, chance) > level


def test_the_exact_rates_of_every_predicate_are_within_the_contract() -> None:
    """One-shot laws by enumeration at each predicate's edges, for a key that is returned for sure."""
    calibration = Keyhole().calibrate(MIXED)
    shown_always = replace(calibration, task=replace(MIXED, formula=TRUE))
    for place, edges in enumerate(MIXED_EDGES):
        for values, true in zip(edges, (True, False), strict=True):
            law = exact_law(shown_always, values)
            wrong = sum(chance for shown, chance in law.items() if shown[1 + place] != true)
            assert wrong <= (MIXED.fnr if true else MIXED.fpr) * (1 + 1e-9)


def test_the_exact_rates_of_looks_on_bands_are_within_the_contract_and_the_sharpest_uses_them_up() -> None:
    (test,) = Progressive().calibrate(scorecard(*BANDS, functionals=1)).tests
    assert 0.0499 < compute_exact_rejection(test, 1) <= 0.05
    rates = [compute_exact_acceptance(test, -cut.tolerance) for cut in BANDS]
    assert rates == sorted(rates, reverse=True)
    assert 0.09 < rates[0] <= 0.1


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("mechanism", BOTH, ids=lambda mechanism: mechanism.name)
def test_bands_are_in_order_for_every_key(mechanism: Mechanism, above: bool) -> None:
    bands = tuple(replace(cut, above=above) for cut in BANDS)
    calibration = mechanism.calibrate(scorecard(*bands, functionals=1))
    values = np.random.default_rng(4).integers(50, 240, (1, 4000)).astype(np.int64)
    outcome = mechanism.decide(calibration, values, noise=SeededNoise(5))
    assert np.all(outcome.passed)
    for lower, higher in pairwise(outcome.predicates if above else outcome.predicates[::-1]):
        assert np.all(lower | ~higher)
        assert np.any(lower != higher)


@pytest.mark.parametrize("mechanism", BOTH, ids=lambda mechanism: mechanism.name)
def test_ordered_thresholds_cost_what_the_sharpest_costs(mechanism: Mechanism) -> None:
    together = mechanism.calibrate(scorecard(*BANDS, functionals=1)).worst_case_epsilon
    each = [mechanism.calibrate(alone(scorecard(functionals=1), cut)).worst_case_epsilon for cut in BANDS]
    assert max(each) * (1 - 1e-9) <= together <= 1.02 * max(each)
    assert together < 0.6 * sum(each)


@pytest.mark.parametrize("mechanism", BOTH, ids=lambda mechanism: mechanism.name)
def test_one_predicate_of_all_keys_is_the_question_with_it_as_its_formula(mechanism: Mechanism) -> None:
    for formula in (count(0), INTERVAL, AnyOf((count(0), AllOf((count(1), count(2, 60, 6)))))):
        asked = mechanism.calibrate(alone(MIXED, formula))
        shown = mechanism.calibrate(scorecard(formula))
        assert shown.tests == asked.tests
        assert (shown.fnr, shown.fpr, shown.worst_case_epsilon) == (asked.fnr, asked.fpr, asked.worst_case_epsilon)
        values = np.random.default_rng(6).integers(60, 160, (3, 500)).astype(np.int64)
        one, other = (mechanism.decide(made, values, noise=SeededNoise(7)) for made in (asked, shown))
        assert np.array_equal(one.passed, other.predicates[0])
        assert np.array_equal(one.epsilon, other.epsilon)
        assert np.all(other.passed)


@pytest.mark.parametrize("mechanism", BOTH, ids=lambda mechanism: mechanism.name)
def test_every_formula_is_decided_as_it_is_alone_on_the_same_noise(mechanism: Mechanism) -> None:
    """All noise is drawn first and boundaries are accepted without a coin; then each formula is decided by itself."""
    calibration = mechanism.calibrate(MIXED)
    calibration = replace(calibration, tests=tuple(replace(test, tie=Fraction(1)) for test in calibration.tests))
    values = np.random.default_rng(8).integers(50, 150, (3, 3000)).astype(np.int64)
    full = decide_with_all_revealed(calibration, values, noise=SeededNoise(9))

    def on_the_same_noise(task: DecisionTask) -> Outcome:
        laid = plan_on_paths(replace(calibration, task=task), full.paths)
        assert laid is not None
        found = decide_on_known_values(
            replace(laid, calibration=replace(calibration, task=task)), noise=SeededNoise(10)
        )
        assert found is not None
        return found

    outcome = on_the_same_noise(MIXED)
    each = [on_the_same_noise(alone(MIXED, formula)).passed for formula in MIXED.formulas]
    for found in (full, outcome):
        assert np.array_equal(found.passed, each[0])
        for shown, own in zip(found.predicates, each[1:], strict=True):
            assert np.array_equal(shown, each[0] & own)
            assert np.any(shown)
    assert np.all(outcome.epsilon <= calibration.worst_case_epsilon)
    assert outcome.fresh is not None
    assert np.all(outcome.fresh == 0.0)


def test_nothing_is_looked_at_for_the_predicates_of_a_key_that_is_not_returned() -> None:
    """Far from every threshold, so that one look decides; false alarm below 1e-9."""
    far = 10**5
    task = scorecard(count(1), count(2), having=count(0))
    calibration = Progressive().calibrate(task)
    first = [float(test.looks[0].rate) for test in calibration.tests]
    for value, cost in ((-far, first[0]), (far, sum(first))):
        outcome = Progressive().decide(calibration, alike((value, far, far), 300), noise=SeededNoise(11))
        assert np.all(outcome.passed == (value > 0))
        assert all(np.array_equal(shown, outcome.passed) for shown in outcome.predicates)
        assert outcome.epsilon == pytest.approx(np.full(300, cost), rel=1e-12)
        reached = [path.reached[0] if path is not None else 0 for path in outcome.paths]
        assert reached == [1, value > 0, value > 0]


def test_functionals_that_no_unit_changes_together_cost_the_larger_only() -> None:
    task = scorecard(count(0), count(1), functionals=2)
    apart = replace(task, exposures=expose_functional_sets(((0,), (1,)), functionals=2))
    together = Progressive().calibrate(task).worst_case_epsilon
    assert Progressive().calibrate(apart).worst_case_epsilon == pytest.approx(together / 2, rel=1e-3)


def test_blocks_serve_one_threshold_of_all_formulas_together() -> None:
    once = replace(
        scorecard(count(0, 100, 3), AnyOf((count(0, 100, 3), count(1))), functionals=2), sensitivities=(5, 1)
    )
    twice = replace(once, predicates=(*once.predicates, count(0, 140, 3)))
    assert find_single_thresholds(once) == {0, 1}
    assert find_single_thresholds(twice) == {1}
    for mechanism in BOTH:
        assert mechanism.calibrate(once).tests[0].block > 1
        assert mechanism.calibrate(twice).tests[0].block == 1


OPPOSITE = replace(scorecard(count(0), count(0, above=False), functionals=1), sensitivities=(40,))


@pytest.mark.parametrize("mechanism", BOTH, ids=lambda mechanism: mechanism.name)
def test_a_predicate_beside_its_negation_costs_what_it_costs_alone(mechanism: Mechanism) -> None:
    """On blocks, too, which are aligned at their one threshold; looks at both directions cost some per cent more."""
    both, one = (mechanism.calibrate(task) for task in (OPPOSITE, alone(OPPOSITE, count(0))))
    assert both.tests[0].block == one.tests[0].block == 40
    assert one.worst_case_epsilon * (1 - 1e-9) <= both.worst_case_epsilon <= 1.05 * one.worst_case_epsilon


class _Laid(SeededNoise):
    """Every draw of each size is that of a list."""

    def __init__(self, drawn: Integers, *, tie: bool) -> None:
        super().__init__(0)
        self._drawn, self._tie = drawn, tie

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        assert size == self._drawn.size
        return self._drawn.copy()

    def draw_bernoulli(self, *, probability: Fraction, size: int) -> Booleans:
        return np.full(size, self._tie)


@pytest.mark.parametrize("tie", [False, True])
def test_a_predicate_and_its_negation_read_one_noisy_block_index(tie: bool) -> None:
    """What is shown of a value in the next block is what is shown of this one where the noise is one more: so both
    together tell no more than the noisy index."""
    calibration = Keyhole().calibrate(OPPOSITE)
    drawn = np.arange(-60, 61, dtype=np.int64)

    def shown(value: int) -> list[tuple[bool, ...]]:
        outcome = Keyhole().decide(calibration, alike((value,), drawn.size), noise=_Laid(drawn, tie=tie))
        return list(zip(*(answer.tolist() for answer in outcome.predicates), strict=True))

    for value in (21, 60, 61, 100, 101, 140, 141):
        here, there = shown(value), shown(value + 40)
        assert there[:-1] == here[1:]
        assert (True, False) in here
        assert (False, True) in here


@pytest.mark.parametrize("mechanism", BOTH, ids=lambda mechanism: mechanism.name)
def test_a_predicate_and_its_negation_keep_their_rates_on_blocks(mechanism: Mechanism) -> None:
    """10 000 keys at each edge, thorough 100 000; false alarm 1e-9 for each binomial test. Both are never false."""
    keys = rounds(100_000, quick=10_000)
    calibration = mechanism.calibrate(OPPOSITE)
    for seed, (value, true, near) in enumerate([(101, 0, True), (100, 1, True), (90, 0, False), (111, 1, False)]):
        found = mechanism.decide(calibration, alike((value,), keys), noise=SeededNoise(70 + seed)).predicates
        wrong, rate = (~found[true], OPPOSITE.fnr) if near else (found[true], OPPOSITE.fpr)
        assert stats.binom.sf(int(wrong.sum()) - 1, keys, rate) > FALSE_ALARM
        assert calibration.tests[0].shift >= 0
        assert np.all(found[0] | found[1])


def test_directions_and_empty_groups_are_those_of_all_formulas() -> None:
    task = scorecard(count(0, 1000, 100), count(0, 400, 100), count(1, 50, 5, above=False), having=count(1), keys=1000)
    assert find_two_sided_functionals(task) == {1}
    assert find_empty_groups(task, 0, 100) == EmptyGroups(400, 0.05 / 1000)


def test_a_wide_tolerance_leaves_the_other_functionals_what_it_does_not_need() -> None:
    """`count > 2000` within 200 hardly errs on a value that tells 50 from 45, and all of fpr is left for the sum."""
    narrow, wide, beside = count(0, 50, 5), count(0, 2000, 200), count(1, 200, 20)
    calibration = Progressive().calibrate(scorecard(narrow, AnyOf((wide, beside)), functionals=2))
    asked = Progressive().calibrate(alone(scorecard(functionals=2), AnyOf((narrow, beside)))).worst_case_epsilon
    apart = sum(
        Progressive().calibrate(alone(scorecard(functionals=2), f)).worst_case_epsilon for f in (narrow, beside)
    )
    assert calibration.worst_case_epsilon < 1.01 * apart < asked


def test_no_random_split_of_the_rates_costs_less() -> None:
    """Random feasible shares of three predicates never beat the apportionment by more than a half percent."""
    predicates = (AnyOf((count(0), count(1, 100, 3))), AllOf((count(1, 100, 3), count(2, 100, 30))), count(2, 100, 30))
    terms, clauses = ({0}, {1}, {1, 2}), ({0, 1}, {1}, {2})
    task = scorecard(*predicates)
    ours = Keyhole().calibrate(task).worst_case_epsilon
    kind, numbers = Keyhole().make_kind(task), np.random.default_rng(3)
    for _ in range(200):
        shares = []
        for bound, sets in ((0.05, terms), (0.1, clauses)):
            drawn = numbers.dirichlet(np.ones(3))
            shares.append(drawn * bound / max(sum(drawn[f] for f in members) for members in sets))
        assert ours <= 1.005 * sum(kind.loss(f, float(shares[0][f]), float(shares[1][f]))[0] for f in range(3))


def test_constant_predicates_cost_nothing_and_are_what_they_are() -> None:
    for mechanism in BOTH:
        calibration = mechanism.calibrate(scorecard(TRUE, FALSE, count(0), having=TRUE))
        assert calibration.tests == mechanism.calibrate(alone(MIXED, count(0))).tests
        outcome = mechanism.decide(calibration, alike((10**6, 0, 0), 5), noise=SeededNoise(12))
        assert [shown.tolist() for shown in outcome.predicates] == [[True] * 5, [False] * 5, [True] * 5]
        nothing = mechanism.decide(mechanism.calibrate(scorecard(TRUE)), alike((0, 0, 0), 5), noise=SeededNoise(13))
        assert np.all(nothing.epsilon == 0.0)
        assert np.all(nothing.predicates[0])
        assert mechanism.decide(calibration, alike((0, 0, 0), 0), noise=SeededNoise(14)).predicates[2].size == 0


def test_a_predicate_that_always_holds_within_its_tolerances_is_announced() -> None:
    always = AnyOf((count(0, 5), count(0, 4, above=False)))
    notes = Progressive().calibrate(scorecard(count(0), always)).notes
    assert notes == (EMPTY_PREDICATE_NOTE.format(2),)
    assert Progressive().calibrate(scorecard(count(0), having=always)).notes == (EMPTY_PROMISE_NOTE,)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in {*CONTINUABLE, "arc", "arc_looks"}])
def test_mechanisms_that_decide_one_formula_name_one_that_decides_several(name: str) -> None:
    task = replace(scorecard(count(0), having=AllOf((count(1), count(1, 130)))), most_positives=3)
    with pytest.raises(Unachievable) as refusal:
        MECHANISMS[name].calibrate(task)
    assert refusal.value.reason == SEVERAL_REFUSED
    assert refusal.value.instead == DEFAULT
    MECHANISMS[DEFAULT].calibrate(task)


def test_malformed_predicates_are_errors() -> None:
    with pytest.raises(ValueError, match="unknown functional"):
        Progressive().calibrate(scorecard(count(3)))


def coarser(task: DecisionTask) -> DecisionTask:
    def widen(cut: Cut) -> Cut:
        return replace(cut, tolerance=3 * cut.tolerance)

    return replace(
        task, formula=task.formula.map_literals(widen), predicates=tuple(p.map_literals(widen) for p in task.predicates)
    )


@pytest.mark.parametrize("place", range(len(MIXED.predicates)))
def test_a_scorecard_on_the_noise_of_a_plain_question_keeps_every_rate(place: int) -> None:
    """5 000 keys at a predicate's edge, thorough 50 000, whose sums an earlier question left noisy; false alarm 1e-9
    each. Nothing is lost beyond what the finest value tells."""
    keys = rounds(50_000, quick=5_000)
    mechanism = Progressive()
    before = mechanism.calibrate(alone(MIXED, coarser(MIXED).predicates[place]))
    calibration = mechanism.calibrate(MIXED)
    for values, true in zip(MIXED_EDGES[place], (True, False), strict=True):
        exact = alike(values, keys)
        earlier = mechanism.decide(before, exact, noise=SeededNoise(20 + place))
        laid = plan_on_paths(calibration, earlier.paths)
        assert laid is not None
        assert laid.calibration.fnr is not None
        assert laid.calibration.fpr is not None
        assert laid.calibration.fnr <= MIXED.fnr
        assert laid.calibration.fpr <= MIXED.fpr
        outcome = decide_on_refined_paths(laid, exact, noise=SeededNoise(30 + place))
        shown = outcome.predicates[place]
        wrong = int(np.sum(outcome.passed & ~shown if true else shown))
        assert stats.binom.sf(wrong - 1, keys, laid.calibration.fnr if true else laid.calibration.fpr) > FALSE_ALARM
        assert outcome.fresh is not None
        assert np.all(outcome.fresh <= np.minimum(outcome.epsilon, laid.fresh_by_key))
        assert np.mean(outcome.fresh) < np.mean(outcome.epsilon)


def test_a_plain_question_on_the_noise_of_a_scorecard_pays_for_what_is_finer_alone() -> None:
    values = np.random.default_rng(15).integers(50, 240, (1, 2000)).astype(np.int64)
    mechanism = Progressive()
    first = mechanism.decide(mechanism.calibrate(scorecard(*BANDS, functionals=1)), values, noise=SeededNoise(16))
    later = plan_on_paths(mechanism.calibrate(alone(scorecard(functionals=1), BANDS[0])), first.paths)
    assert later is not None
    assert later.public_fresh_worst == 0.0
    outcome = decide_on_refined_paths(later, values, noise=SeededNoise(17))
    assert outcome.fresh is not None
    assert np.mean(outcome.fresh) < 0.05 * np.mean(outcome.epsilon)
    assert outcome.predicates == ()


def test_more_keys_than_are_decided_at_once() -> None:
    keys = 40_000
    far = np.where(np.arange(keys) % 2 == 0, 10**6, -(10**6)).astype(np.int64)
    values = np.array([np.full(keys, 10**6), far])
    calibration = Progressive().calibrate(scorecard(count(1), having=count(0), functionals=2))
    outcome = Progressive().decide(calibration, values, noise=SeededNoise(18))
    assert np.array_equal(outcome.predicates[0], far > 0)
    assert np.all(outcome.passed)


def test_every_functional_of_a_formula_is_read_in_full_where_all_noise_is_drawn_at_once() -> None:
    calibration = Progressive().calibrate(MIXED)
    outcome = decide_with_all_revealed(calibration, alike((1000, 1000, 1000), 50), noise=SeededNoise(19))
    assert np.all(outcome.epsilon == calibration.worst_case_epsilon)
    for functional, path in enumerate(outcome.paths):
        assert path is not None
        assert path.rates[-1] == calibration.tests[functional].rate
        assert np.all(path.reached == len(path.rates))
    assert len({cut.functional for formula in MIXED.formulas for cut in list_literals(formula)}) == len(outcome.paths)
