"""The progressive mechanism: contract at worst-case data, loss as revealed, sound short cuts."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import exp

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula, Integers, evaluate_formula, list_literals
from mechanisms.keyhole import key_parts
from mechanisms.keyhole.key_parts import KEYS_AT_ONCE
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive, find_empty_groups
from mechanisms.keyhole.run_looks import decide_on_fresh_noise
from mechanisms.noise.exact import ExactNoise, make_system_noise
from mechanisms.noise.random_bytes import draw_random_bytes
from mechanisms.protocol import DecisionTask, Unachievable
from mechanisms.three_valued import find_undecided_keys, settle_formula
from mechanisms.threshold.joint_loss import expose_all_functionals, expose_functional_sets
from mechanisms.threshold.three_zone import EmptyGroups
from tests.effort import examples, rounds
from tests.in_turn import in_turn
from tests.seeded_noise import SeededNoise

KEYS = 60_000
FALSE_ALARM = 1e-9
PROGRESSIVE = Progressive()


def count(functional: int, cut: int = 100, tolerance: int = 10, above: bool = True) -> Cut:
    return Cut(functional=functional, cut=cut, above=above, tolerance=tolerance)


def task_of(
    formula: Formula, sensitivities: tuple[int, ...], *, groups: tuple[frozenset[int], ...] | None = None
) -> DecisionTask:
    return DecisionTask(
        formula=formula,
        sensitivities=sensitivities,
        exposures=expose_functional_sets(groups or (range(len(sensitivities)),), functionals=len(sensitivities)),
        fnr=0.05,
        fpr=0.1,
    )


FORMULAS: dict[str, tuple[Formula, tuple[int, ...]]] = {
    "one": (count(0), (1,)),
    "below": (count(0, above=False), (1,)),
    "zero tolerance": (count(0, tolerance=0), (1,)),
    "blocks": (count(0, tolerance=3), (5,)),
    "blocks below": (count(0, tolerance=3, above=False), (5,)),
    "both": (AllOf((count(0), count(1))), (1, 1)),
    "either": (AnyOf((count(0), count(1, 40, 5, above=False))), (1, 3)),
    "interval": (AllOf((count(0, 100, 10), count(0, 103, 10, above=False))), (1,)),
    "outside": (AnyOf((count(0, 140, 10), count(0, 100, 10, above=False))), (1,)),
    "two cuts": (AnyOf((count(0, 140), AllOf((count(0, 100), count(1))))), (1, 1)),
    "majority": (AnyOf(tuple(AllOf((count(i), count(j))) for i, j in ((0, 1), (1, 2), (0, 2)))), (1, 1, 1)),
}

# true values at which missing (or returning) is most probable, per formula
JUST_TRUE: dict[str, tuple[int, ...]] = {
    "one": (101,),
    "below": (100,),
    "zero tolerance": (101,),
    "blocks": (101,),
    "blocks below": (100,),
    "both": (101, 101),
    "either": (101, 46),
    "interval": (101,),
    "outside": (141,),
    "two cuts": (101, 101),
    "majority": (101, 101, 90),
}
STILL_FALSE: dict[str, tuple[int, ...]] = {
    "one": (90,),
    "below": (111,),
    "zero tolerance": (100,),
    "blocks": (97,),
    "blocks below": (104,),
    "both": (90, 400),
    "either": (90, 46),
    "interval": (90,),
    "outside": (130,),
    "two cuts": (130, 90),
    "majority": (90, 90, 400),
}


def alike(values: tuple[int, ...], keys: int = KEYS) -> Integers:
    return np.tile(np.array(values, dtype=np.int64)[:, np.newaxis], (1, keys))


@pytest.mark.parametrize("name", FORMULAS)
def test_contract_holds_on_worst_case_data(name: str) -> None:
    """60 000 keys all at c + 1, then all at c - tolerance; false alarm 1e-9 for each binomial test."""
    calibration = PROGRESSIVE.calibrate(task_of(*FORMULAS[name]))
    assert calibration.fnr is not None
    assert calibration.fpr is not None
    assert calibration.fnr <= 0.05
    assert calibration.fpr <= 0.1
    noise = SeededNoise(20 + len(name))
    true = PROGRESSIVE.decide(calibration, alike(JUST_TRUE[name]), noise=noise)
    missed = int(np.sum(~true.passed))
    assert stats.binom.sf(missed - 1, KEYS, calibration.fnr) > FALSE_ALARM
    false = PROGRESSIVE.decide(calibration, alike(STILL_FALSE[name]), noise=noise)
    returned = int(np.sum(false.passed))
    assert stats.binom.sf(returned - 1, KEYS, calibration.fpr) > FALSE_ALARM


@pytest.mark.parametrize("name", ["one", "below", "blocks"])
def test_a_single_literal_uses_up_its_rates(name: str) -> None:
    """60 000 keys at c + 1: realised within eight standard deviations of the rate; false alarm below 1e-9."""
    calibration = PROGRESSIVE.calibrate(task_of(*FORMULAS[name]))
    outcome = PROGRESSIVE.decide(calibration, alike(JUST_TRUE[name]), noise=SeededNoise(5))
    spread = (0.05 * 0.95 / KEYS) ** 0.5
    assert abs(np.mean(~outcome.passed) - 0.05) < 8 * spread


@in_turn("name", FORMULAS)
def test_loss_is_never_above_the_worst_case(name: str) -> None:
    calibration = PROGRESSIVE.calibrate(task_of(*FORMULAS[name]))
    generator = np.random.default_rng(7)
    values = generator.integers(-200, 400, (len(calibration.task.sensitivities), 3000))
    outcome = PROGRESSIVE.decide(calibration, values.astype(np.int64), noise=SeededNoise(8))
    assert np.all(outcome.epsilon <= calibration.worst_case_epsilon)
    assert np.all(outcome.epsilon > 0.0)


@pytest.mark.parametrize("name", [name for name in FORMULAS if name not in ("interval", "outside")])
def test_worst_case_is_near_the_one_shot_mechanism_and_far_keys_cost_far_less(name: str) -> None:
    """2 000 keys per distance; the least gap between a bound and the mean it bounds is over ten standard deviations."""
    task = task_of(*FORMULAS[name])
    calibration, one_shot = PROGRESSIVE.calibrate(task), Keyhole().calibrate(task)
    assert calibration.worst_case_epsilon <= 1.06 * one_shot.worst_case_epsilon
    generator = np.random.default_rng(9)
    sides = generator.choice([-1, 1], (len(task.sensitivities), 2000))
    for distance, most in ((400, 0.45), (100_000, 0.11)):
        outcome = PROGRESSIVE.decide(calibration, (100 + distance * sides).astype(np.int64), noise=SeededNoise(10))
        assert outcome.epsilon.mean() <= most * one_shot.worst_case_epsilon


def test_clear_keys_are_decided_by_their_first_look_alone() -> None:
    """False alarm below 1e-9: a wrong decision or a second look needs noise 30 times its scale."""
    formula = AnyOf((count(0), count(1)))
    calibration = PROGRESSIVE.calibrate(task_of(formula, (1, 1)))
    first = [float(test.looks[0].rate) for test in calibration.tests]
    far = 10**5
    for values, cost, answer in (
        ((far, far), first[0], True),
        ((far, -far), first[0], True),
        ((-far, far), sum(first), True),
        ((-far, -far), sum(first), False),
    ):
        outcome = PROGRESSIVE.decide(calibration, alike(values, 500), noise=SeededNoise(11))
        assert np.all(outcome.passed == answer)
        # equal rates: whichever functional comes first
        assert outcome.epsilon == pytest.approx(np.full(500, cost), rel=1e-12)


def test_empty_groups_of_a_large_domain_do_not_stray_into_the_answer() -> None:
    """Three answers over 60,000 groups without rows, at tolerance 20 %: .2 strays in the mean, where looks that know
    nothing of the domain's size return 40. More than 7 come of .2 with a probability below 1e-9."""
    task = replace(task_of(count(0, 1000, 200), (1,)), keys=KEYS)
    calibration = PROGRESSIVE.calibrate(task)
    zeros = np.zeros((1, KEYS), dtype=np.int64)
    strays = sum(int(PROGRESSIVE.decide(calibration, zeros, noise=make_system_noise()).passed.sum()) for _ in range(3))
    assert strays <= 7


@in_turn(
    ("formula", "distance"),
    [
        (count(0, 1000, 100), 1000),
        (AnyOf((count(0, 1000, 100), count(0, 400, 100))), 400),
        (AnyOf((count(0, 1000, 100), count(0, 90, 100))), 1000),
        (count(0, -500, 100, above=False), 499),
        (count(0, 500, 100, above=False), None),
        (count(0, 0, 100), None),
        (count(0, -5, 0), None),
    ],
)
def test_an_empty_group_fails_by_its_nearest_literal_beyond_the_tolerance(
    formula: Formula, distance: int | None
) -> None:
    task = replace(task_of(formula, (1,)), keys=1000)
    found = find_empty_groups(task, 0, 100)
    assert found == (None if distance is None else EmptyGroups(distance, 0.05 / 1000))


def test_functionals_that_no_unit_changes_together_cost_the_larger_only() -> None:
    formula = AllOf((count(0), count(1)))
    apart = task_of(formula, (1, 1), groups=(frozenset({0}), frozenset({1})))
    calibration = PROGRESSIVE.calibrate(apart)
    outcome = PROGRESSIVE.decide(calibration, alike((10**5, 10**5), 200), noise=SeededNoise(12))
    first = max(float(test.looks[0].rate) for test in calibration.tests)
    assert outcome.epsilon == pytest.approx(np.full(200, first), rel=1e-12)


@pytest.mark.parametrize(("formula", "answer"), [(TRUE, True), (FALSE, False)])
def test_a_settled_formula_reveals_nothing(formula: Formula, answer: bool) -> None:
    calibration = PROGRESSIVE.calibrate(task_of(formula, (1,)))
    outcome = PROGRESSIVE.decide(calibration, alike((5,), 10), noise=make_system_noise())
    assert np.all(outcome.passed == answer)
    assert np.all(outcome.epsilon == 0.0)


def test_no_keys_and_more_keys_than_one_block() -> None:
    calibration = PROGRESSIVE.calibrate(task_of(count(0), (1,)))
    assert PROGRESSIVE.decide(calibration, alike((5,), 0), noise=make_system_noise()).passed.size == 0
    many = np.where(np.arange(2 * KEYS_AT_ONCE + 4464) % 2 == 0, 10**6, -(10**6)).astype(np.int64)[np.newaxis]
    assert np.array_equal(PROGRESSIVE.decide(calibration, many, noise=make_system_noise()).passed, many[0] > 0)


@pytest.mark.parametrize("everything", [False, True])
def test_keys_decided_side_by_side_are_decided_as_one_by_one(everything: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five parts on three threads, at quick of an eighth of the keys: each key has its own part's answer and a path of
    its own noise, told by nobody else's; and its loss is that of the looks it took."""
    at_once = rounds(KEYS_AT_ONCE, quick=KEYS_AT_ONCE // 8)
    monkeypatch.setattr(key_parts, "KEYS_AT_ONCE", at_once)
    keys = 5 * at_once - 1
    calibration = PROGRESSIVE.calibrate(task_of(count(0), (1,)))
    values = np.arange(keys, dtype=np.int64)[np.newaxis] % 8009 - 4000  # the same ones in no two parts at one place
    noise = ExactNoise(draw_random_bytes, threads=3)
    outcome = decide_on_fresh_noise(calibration, values, looks_at_everything=everything, keeps_paths=True, noise=noise)
    (path,) = outcome.paths
    assert path is not None
    assert np.array_equal(outcome.passed[np.abs(values[0]) > 3000], (values[0] > 0)[np.abs(values[0]) > 3000])
    drawn = path.values[0] - values[0]
    assert np.all(path.reached > 0)
    assert np.abs(drawn).max() < 3000
    whole = drawn[: 4 * at_once].reshape(4, at_once)
    assert all(np.mean(one == other) < 0.5 for one, other in combinations(whole, 2))
    if not everything:
        losses = np.array([0.0, *(float(rate) for rate in path.rates)])
        np.testing.assert_allclose(outcome.epsilon, losses[path.reached], rtol=1e-12)


@pytest.mark.parametrize("keys", [4_000, 20_000], ids=["few", "many"])
@pytest.mark.parametrize("name", FORMULAS)
def test_keys_are_decided_alike_whether_paths_are_kept_or_not(name: str, keys: int) -> None:
    """And what is kept has nothing that was not revealed, though noise is added for all where many take a look."""
    formula, sensitivities = FORMULAS[name]
    calibration = PROGRESSIVE.calibrate(task_of(formula, sensitivities))
    values = np.random.default_rng(5).integers(30, 180, (len(sensitivities), keys))
    kept = PROGRESSIVE.decide(calibration, values, noise=SeededNoise(3), keeps_paths=True)
    unkept = PROGRESSIVE.decide(calibration, values, noise=SeededNoise(3), keeps_paths=False)
    assert np.array_equal(kept.passed, unkept.passed)
    assert np.array_equal(kept.epsilon, unkept.epsilon)
    assert unkept.paths == ()
    for path in kept.paths:
        if path is not None:
            hidden = np.arange(len(path.rates))[:, np.newaxis] >= path.reached
            assert not path.values[hidden].any()


def test_what_fails_for_one_part_fails_the_whole() -> None:
    class Failing(ExactNoise):
        def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
            if size < KEYS_AT_ONCE:
                raise MemoryError
            return super().draw_discrete_laplace(rate=rate, size=size)

    calibration = PROGRESSIVE.calibrate(task_of(count(0), (1,)))
    values = np.zeros((1, 3 * KEYS_AT_ONCE - 1), dtype=np.int64)
    with pytest.raises(MemoryError):
        PROGRESSIVE.decide(calibration, values, noise=Failing(draw_random_bytes, threads=2))


def test_rates_that_promise_nothing_are_refused() -> None:
    with pytest.raises(Unachievable):
        PROGRESSIVE.calibrate(
            DecisionTask(formula=count(0), sensitivities=(1,), exposures=expose_all_functionals(1), fnr=0.5, fpr=0.5)
        )


def test_outcome_and_loss_are_as_private_as_the_loss_says() -> None:
    """For neighbours that differ in both functionals and each outcome (answer, loss): `P <= exp(loss) P'`.

    200 000 keys per database; Clopper-Pearson at 1e-12 per bound, at most 200 bounds: false alarm below 1e-9.
    """
    calibration = PROGRESSIVE.calibrate(task_of(AnyOf((count(0, tolerance=1), count(1, tolerance=1))), (1, 1)))
    keys, level = 200_000, 1e-12
    laws = []
    for place, values in enumerate(((99, 100), (100, 101))):
        outcome = PROGRESSIVE.decide(calibration, alike(values, keys), noise=SeededNoise(30 + place))
        laws.append(Counter(zip(outcome.passed.tolist(), outcome.epsilon.tolist(), strict=True)))
    for first, second in (laws, laws[::-1]):
        for seen, times in first.items():
            least = stats.beta.ppf(level, times, keys - times + 1)
            most = stats.beta.ppf(1 - level, second[seen] + 1, keys - second[seen])
            assert least <= exp(seen[1]) * most


LITERALS = tuple(count(functional, cut) for functional, cut in ((0, 100), (0, 200), (1, 100), (2, 100)))


def trees(*, fewest: int) -> st.SearchStrategy[Formula]:
    return st.recursive(
        st.sampled_from(LITERALS),
        lambda inner: st.builds(
            lambda children, every: AllOf(tuple(children)) if every else AnyOf(tuple(children)),
            st.lists(inner, min_size=fewest, max_size=3),
            st.booleans(),
        ),
        max_leaves=8,
    )


TERMS = st.frozensets(
    st.frozensets(st.sampled_from(LITERALS), min_size=1, max_size=3).map(tuple), min_size=1, max_size=5
)


def pivotal(formula: Formula, known: dict[Cut, int]) -> tuple[int, set[int]]:
    """By enumeration of all completions: the settled value (0 if open), and the functionals that can change it."""
    unknown = [cut for cut, verdict in known.items() if verdict == 0]

    def value(completion: dict[Cut, bool]) -> bool:
        return bool(evaluate_formula(formula, lambda cut: np.array([completion[cut]]), keys=1)[0])

    values, moving = set(), set()
    for guess in product((False, True), repeat=len(unknown)):
        completion = {cut: verdict == 1 for cut, verdict in known.items()} | dict(zip(unknown, guess, strict=True))
        values.add(value(completion))
        for cut in unknown:
            if value(completion) != value(completion | {cut: not completion[cut]}):
                moving.add(cut.functional)
    return (0 if len(values) == 2 else 1 if values == {True} else -1), moving


def every_state(formula: Formula) -> list[tuple[dict[Cut, int], int, set[int]]]:
    literals = tuple(dict.fromkeys(list_literals(formula)))
    states = product((-1, 0, 1), repeat=len(literals))
    return [(known := dict(zip(literals, state, strict=True)), *pivotal(formula, known)) for state in states]


@given(formula=trees(fewest=0))
@example(formula=AnyOf((AnyOf((LITERALS[0],)), AnyOf((LITERALS[0], LITERALS[2])))))
@example(formula=AllOf((AllOf((LITERALS[0],)), AllOf((LITERALS[0], LITERALS[2])))))
@examples(60)
def test_short_cuts_are_sound_on_every_tree(formula: Formula) -> None:
    """A settled answer is the answer of every completion; a functional that can change it is never left out."""
    for known, value, moving in every_state(formula):
        verdicts = {cut: np.array([verdict], dtype=np.int8) for cut, verdict in known.items()}
        assert settle_formula(formula, verdicts, keys=1)[0] in (value, 0)
        asked = find_undecided_keys(formula, verdicts, keys=1)
        assert moving <= {functional for functional, matters in asked.items() if matters[0]}


@given(formula=trees(fewest=1), seed=st.integers(0, 2**32))
@examples(60)
def test_every_tree_is_decided_and_as_if_run_to_the_end_on_clear_data(formula: Formula, seed: int) -> None:
    """200 keys far from every threshold: a wrong answer needs noise of 30 times its scale, below 1e-9 in all."""
    calibration = PROGRESSIVE.calibrate(task_of(formula, (1, 1, 1)))
    values = np.random.default_rng(seed).choice([-(10**6), 10**6], (3, 200)).astype(np.int64)
    outcome = PROGRESSIVE.decide(calibration, values, noise=SeededNoise(seed))
    assert np.array_equal(
        outcome.passed, evaluate_formula(formula, lambda cut: cut.evaluate(values[cut.functional]), keys=200)
    )
    near = np.full((3, 200), 101, dtype=np.int64)
    assert np.all(PROGRESSIVE.decide(calibration, near, noise=SeededNoise(seed)).epsilon >= 0.0)


@given(terms=TERMS, dual=st.booleans())
@examples(60)
def test_short_cuts_are_exact_on_disjunctions_of_conjunctions_and_their_duals(
    terms: frozenset[tuple[Cut, ...]], dual: bool
) -> None:
    turned: Formula = AnyOf(tuple(map(AllOf, terms)))
    if dual:
        turned = AllOf(tuple(map(AnyOf, terms)))
    for known, value, moving in every_state(turned):
        verdicts = {cut: np.array([verdict], dtype=np.int8) for cut, verdict in known.items()}
        assert settle_formula(turned, verdicts, keys=1)[0] == value
        asked = find_undecided_keys(turned, verdicts, keys=1)
        assert moving == {functional for functional, matters in asked.items() if matters[0]}
