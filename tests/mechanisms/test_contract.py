"""The contract of a whole question, checked against every joint law of the tests it is made of."""

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from mechanisms.formula import (
    FALSE,
    TRUE,
    AllOf,
    AnyOf,
    Booleans,
    Cut,
    Formula,
    evaluate_formula,
    list_literals,
    relax_formula,
)
from mechanisms.keyhole.contract import EMPTY_PROMISE_NOTE, TREE_NOTE
from mechanisms.keyhole.one_shot import Keyhole, list_cheaper_block_prices
from mechanisms.noise.discrete_laplace import compute_lower_tail, compute_mass, compute_upper_tail
from mechanisms.protocol import Calibration, DecisionTask, FunctionalTest, Mechanism, Unachievable
from mechanisms.published.nlm import Nlm
from mechanisms.published.tslm import Tslm
from mechanisms.threshold.joint_loss import expose_all_functionals, expose_functional_sets
from mechanisms.threshold.one_shot import find_least_rate
from tests.effort import examples
from tests.in_turn import in_turn

Pattern = frozenset[Cut]
Chances = npt.NDArray[np.float64]


def question(
    formula: Formula,
    sensitivities: tuple[int, ...],
    *,
    fnr: float = 0.05,
    fpr: float = 0.1,
    groups: tuple[frozenset[int], ...] | None = None,
) -> DecisionTask:
    size = len(sensitivities)
    exposures = expose_all_functionals(size) if groups is None else expose_functional_sets(groups, functionals=size)
    return DecisionTask(formula=formula, sensitivities=sensitivities, exposures=exposures, fnr=fnr, fpr=fpr)


def decide_combinations(formula: Formula, accepted: Sequence[Sequence[Pattern]]) -> Booleans:
    """The formula's value for every combination of one pattern from each sequence; an axis for each."""
    shape = tuple(len(own) for own in accepted)
    places = np.indices(shape).reshape(len(shape), -1)

    def holds(cut: Cut) -> Booleans:
        own = [np.array([cut in pattern for pattern in patterns]) for patterns in accepted]
        return np.asarray(np.any([known[place] for known, place in zip(own, places, strict=True)], axis=0))

    return np.asarray(evaluate_formula(formula, holds, keys=places.shape[1]).reshape(shape))


def exactly(formula: Formula, at: dict[int, int]) -> bool:
    return bool(evaluate_formula(formula, lambda cut: cut.evaluate(np.array([at[cut.functional]])), keys=1)[0])


def patterns(test: FunctionalTest, literals: list[Cut], value: int) -> dict[Pattern, float]:
    """The exact law of which literals of one functional are accepted at a true value."""
    law: dict[Pattern, float] = {}
    rate, tie = float(test.rate), float(test.tie)

    def accepted(noise: int, moved: int) -> Pattern:
        chosen = set()
        for cut in literals:
            if test.block > 1:
                offset = (value - cut.cut - 1 if cut.above else cut.cut - value) // test.block
                passes = offset + noise > -1 - test.shift - moved
            elif cut.above:
                passes = value + noise > cut.cut - test.shift - moved
            else:
                passes = value + noise < cut.cut + 1 + test.shift + moved
            if passes:
                chosen.add(cut)
        return frozenset(chosen)

    reach = 3 + abs(test.shift) + max(abs(value - cut.cut) for cut in literals)
    for noise in range(-reach, reach + 1):
        chance = compute_mass(rate, noise)
        if noise == reach:
            chance = compute_upper_tail(rate, noise)
        if noise == -reach:
            chance = compute_lower_tail(rate, noise)
        for moved, share in ((0, 1 - tie), (1, tie)):
            pattern = accepted(noise, moved)
            law[pattern] = law.get(pattern, 0.0) + chance * share
    return law


def critical(literals: list[Cut]) -> list[int]:
    values: set[int] = set()
    for cut in literals:
        edges = (cut.cut + 1, cut.cut - cut.tolerance) if cut.above else (cut.cut, cut.cut + cut.tolerance + 1)
        for edge in edges:
            values.update((edge - 1, edge, edge + 1))
    return sorted(values)


@dataclass(frozen=True)
class Event:
    """Combinations of one outcome of each functional: a table of those that count, an axis for each functional, and the
    outcomes' probabilities."""

    laws: tuple[Chances, ...]
    wanted: Booleans

    def merged(self) -> "Event":
        """The same event with one outcome for all those of a functional that count in the same combinations."""
        wanted = self.wanted
        laws: list[Chances] = []
        for axis, law in enumerate(self.laws):
            rows = np.moveaxis(wanted, axis, 0).reshape(len(law), -1)
            _, first, classes = np.unique(rows, axis=0, return_index=True, return_inverse=True)
            wanted = wanted.take(first, axis=axis)
            laws.append(np.bincount(classes, weights=law).astype(np.float64))
        return Event(laws=tuple(laws), wanted=wanted)


def largest_probabilities(events: Sequence[Event]) -> list[float]:
    """The largest probability of each event over all joint laws with its marginals: one programme for all of them."""
    if not events:
        return []
    merged = [event.merged() for event in events]
    blocks = [
        np.vstack([axis == np.arange(len(law))[:, np.newaxis] for axis, law in zip(places, event.laws, strict=True)])
        for event in merged
        for places in (np.indices(event.wanted.shape).reshape(len(event.laws), -1),)
    ]
    wanted = [event.wanted.ravel().astype(float) for event in merged]
    constrained = {
        "A_eq": sparse.block_diag(blocks, format="csr", dtype=float),
        "b_eq": np.concatenate([law for event in merged for law in event.laws]),
        "bounds": (0, None),
    }
    solved: Any = linprog(-np.concatenate(wanted), **constrained)
    if solved.status == 2:  # where it looks before it solves, it takes probabilities below 1e-7 for rounding errors
        solved = linprog(-np.concatenate(wanted), **constrained, options={"presolve": False})
    assert solved.status == 0
    shares = np.split(solved.x, np.cumsum([len(own) for own in wanted])[:-1])
    return [float(own @ share) for own, share in zip(wanted, shares, strict=True)]


def check_every_formula(calibration: Calibration) -> None:
    """Brute force for each formula of a task by itself, with the tests that they share."""
    task = calibration.task
    for formula in (formula for formula in task.formulas if any(True for _ in list_literals(formula))):
        check_contract(replace(calibration, task=replace(task, formula=formula, predicates=())))


def check_contract(calibration: Calibration, *, misses: bool = True) -> None:
    """Brute force: every critical true value, the worst joint law, against the promised rates and the contract."""
    task = calibration.task
    by_functional: dict[int, list[Cut]] = {}
    for cut in list_literals(task.formula):
        by_functional.setdefault(cut.functional, []).append(cut)
    functionals = sorted(by_functional)
    promised_fnr = calibration.fnr if calibration.fnr is not None else 1.0
    assert calibration.fpr is not None
    assert calibration.fpr <= task.fpr
    assert not misses or promised_fnr <= task.fnr
    table = {
        (f, value): patterns(calibration.tests[f], by_functional[f], value)
        for f in functionals
        for value in critical(by_functional[f])
    }
    loose = relax_formula(task.formula)
    events, limits = [], []
    for values in itertools.product(*(critical(by_functional[f]) for f in functionals)):
        at = dict(zip(functionals, values, strict=True))
        true, still_false = exactly(task.formula, at), not exactly(loose, at)
        if not still_false and not (true and misses):
            continue
        laws = [table[f, at[f]] for f in functionals]
        chances = tuple(np.array(list(law.values())) for law in laws)
        returned = decide_combinations(task.formula, [list(law) for law in laws])
        events.append(Event(laws=chances, wanted=returned if still_false else ~returned))
        limits.append(calibration.fpr if still_false else promised_fnr)
    for largest, limit in zip(largest_probabilities(events), limits, strict=True):
        assert largest <= limit + 1e-7


@st.composite
def literals(draw: st.DrawFn, *, least: int) -> Cut:
    return Cut(
        functional=draw(st.integers(0, 2)),
        cut=draw(st.sampled_from((0, 2, 5, 9))),
        above=draw(st.booleans()),
        tolerance=draw(st.integers(least, 4)),
    )


@st.composite
def questions(draw: st.DrawFn, *, least: int = 0) -> DecisionTask:
    terms = draw(st.lists(st.lists(literals(least=least), min_size=1, max_size=3), min_size=1, max_size=3))
    formula: Formula = AnyOf(tuple(AllOf(tuple(term)) for term in terms))
    if draw(st.booleans()):
        formula = AllOf(tuple(AnyOf(tuple(term)) for term in terms))
    groups = draw(st.sampled_from(((frozenset({0, 1, 2}),), (frozenset({0, 1}), frozenset({2})))))
    return question(
        formula,
        tuple(draw(st.sampled_from((1, 1, 3))) for _ in range(3)),
        fnr=draw(st.sampled_from((0.05, 0.3, 0.001))),
        fpr=draw(st.sampled_from((0.1, 0.02, 0.4))),
        groups=groups,
    )


@examples(40, quick=6, derandomize=True)
@given(questions())
def test_keyhole_keeps_the_contract_under_every_joint_law(task: DecisionTask) -> None:
    check_contract(Keyhole().calibrate(task))


@examples(25, quick=2, derandomize=True)
@given(st.lists(questions(), min_size=2, max_size=3))
def test_each_formula_of_several_keeps_the_contract_under_every_joint_law(tasks: list[DecisionTask]) -> None:
    first, *others = tasks
    check_every_formula(Keyhole().calibrate(replace(first, predicates=tuple(task.formula for task in others))))


@examples(15, quick=4, derandomize=True)
@given(questions(least=1))
def test_tslm_and_nlm_keep_what_they_promise(task: DecisionTask) -> None:
    check_contract(Tslm().calibrate(task))
    plain = Nlm().calibrate(task)
    assert plain.fnr is None
    check_contract(plain, misses=False)


@examples(40, derandomize=True)
@given(questions())
def test_the_loss_is_the_dearest_set_of_exact_epsilons(task: DecisionTask) -> None:
    calibration = Keyhole().calibrate(task)
    for functional, test in enumerate(calibration.tests):
        width = 1 if test.block > 1 else task.sensitivities[functional]
        assert test.epsilon >= test.rate * width
        assert test.epsilon <= float(test.rate * width) * (1 + 1e-15)
    epsilons = [test.epsilon for test in calibration.tests]
    sums = [sum(float(part) * loss for part, loss in zip(one, epsilons, strict=True)) for one in task.exposures]
    assert calibration.worst_case_epsilon == pytest.approx(max(sums), rel=1e-12)
    assert calibration.worst_case_epsilon >= max(sums) * (1 - 1e-15)


def count(functional: int, cut: int = 100, tolerance: int = 10, above: bool = True) -> Cut:
    return Cut(functional=functional, cut=cut, above=above, tolerance=tolerance)


def conj(*children: Formula) -> AllOf:
    return AllOf(children)


def disj(*children: Formula) -> AnyOf:
    return AnyOf(children)


@pytest.mark.parametrize("width", [1, 2, 5, 20])
def test_intervals_split_only_what_their_width_demands(width: int) -> None:
    """One unit wide, an interval needs half the rate on each side; wider, its loss nears one side's."""
    task = question(conj(count(0, 50), count(0, 50 + width, above=False)), (1,))
    calibration = Keyhole().calibrate(task)
    check_contract(calibration)
    single = Keyhole().calibrate(question(count(0, 50), (1,))).worst_case_epsilon
    halved = find_least_rate(tolerance=10, fnr=0.025, fpr=0.1).rate
    assert single * (1 - 1e-9) <= calibration.worst_case_epsilon <= halved * (1 + 1e-6)
    if width == 1:
        assert calibration.worst_case_epsilon == pytest.approx(halved, rel=1e-4)
    assert calibration.fnr is not None
    assert calibration.fnr > 0.048


@pytest.mark.parametrize(("fnr", "fpr"), [(0.7, 0.2), (0.2, 0.7), (0.9, 0.05), (0.55, 0.4)])
def test_rates_beyond_one_half(fnr: float, fpr: float) -> None:
    for formula in (
        conj(count(0, 50, 3), count(0, 53, 3, above=False)),
        disj(count(0, 60, 3), count(0, 50, 3, above=False)),
    ):
        check_contract(Keyhole().calibrate(question(formula, (1,), fnr=fnr, fpr=fpr)))


def test_the_outside_of_an_interval() -> None:
    for gap in (21, 25, 60):
        task = question(disj(count(0, 50 + gap), count(0, 50, above=False)), (1,))
        check_contract(Keyhole().calibrate(task))


def test_an_empty_promise_is_announced() -> None:
    calibration = Keyhole().calibrate(question(disj(count(0, 5), count(0, 4, above=False)), (1,)))
    assert EMPTY_PROMISE_NOTE in calibration.notes
    assert calibration.fpr == 0.0


def test_many_literals_take_the_tree_form() -> None:
    wide = disj(*(conj(count(2 * place), count(2 * place + 1)) for place in range(8)))
    calibration = Keyhole().calibrate(question(wide, (1,) * 16))
    assert TREE_NOTE in calibration.notes
    assert calibration.fnr is not None
    assert calibration.fpr is not None
    assert 0.0499 < calibration.fnr <= 0.05
    assert 0.0999 < calibration.fpr <= 0.1
    repeated = conj(*(disj(count(place % 5), count(place % 4, 300)) for place in range(20)))
    checked = Keyhole().calibrate(question(repeated, (1,) * 5))
    assert checked.fnr is not None
    assert checked.fpr is not None
    assert checked.fnr <= 0.05
    assert checked.fpr <= 0.1


def test_the_tree_form_keeps_the_contract_by_brute_force() -> None:
    """Fourteen literals on three functionals, so no enumeration; critical values and joint laws as above."""
    levels = [count(place % 3, 5 * place, 2) for place in range(14)]
    formula = disj(*(conj(levels[place], levels[(place + 4) % 14]) for place in range(14)))
    calibration = Keyhole().calibrate(question(formula, (1, 1, 1), fnr=0.2, fpr=0.2))
    assert TREE_NOTE in calibration.notes
    few = replace(calibration, task=replace(calibration.task, formula=disj(*formula.children[:3])))
    check_contract(few)


def test_a_tree_among_formulas_with_constraints_keeps_the_contract_by_brute_force() -> None:
    """Fourteen literals in one formula, so no enumeration of it; the rates of the others are all used."""
    levels = [count(place % 2, 5 * place, 2) for place in range(14)]
    tree = disj(*(conj(levels[place], levels[(place + 3) % 14]) for place in range(14)))
    others = (disj(levels[0], levels[1]), conj(levels[2], levels[3]))
    calibration = Keyhole().calibrate(
        replace(question(tree, (1, 1), fnr=0.2, fpr=0.2), formula=TRUE, predicates=(*others, tree))
    )
    assert TREE_NOTE in calibration.notes
    assert calibration.fnr is not None
    assert 0.15 < calibration.fnr <= 0.2
    few = replace(calibration.task, predicates=(*others, disj(*tree.children[:3])))
    check_every_formula(replace(calibration, task=few))


def test_constant_formulas_cost_nothing() -> None:
    for formula in (TRUE, FALSE):
        calibration = Keyhole().calibrate(question(formula, (1, 1)))
        assert calibration.worst_case_epsilon == 0.0
        assert (calibration.fnr, calibration.fpr) == (0.0, 0.0)


def test_functionals_outside_the_formula_cost_nothing() -> None:
    calibration = Keyhole().calibrate(question(count(1), (1, 1, 1)))
    assert [test.epsilon > 0 for test in calibration.tests] == [False, True, False]


def test_disjoint_functionals_cost_the_dearest() -> None:
    formula = conj(count(0), count(1))
    together = Keyhole().calibrate(question(formula, (1, 1)))
    apart = Keyhole().calibrate(question(formula, (1, 1), groups=(frozenset({0}), frozenset({1}))))
    assert apart.worst_case_epsilon == pytest.approx(together.worst_case_epsilon / 2, rel=1e-3)


@in_turn("mechanism", [Keyhole(), Tslm(), Nlm()])
@in_turn(("fnr", "fpr"), [(0.5, 0.5), (0.0, 0.1), (0.1, 1.0), (0.7, 0.6)])
def test_empty_promises_are_refused(mechanism: Mechanism, fnr: float, fpr: float) -> None:
    with pytest.raises(Unachievable):
        mechanism.calibrate(question(count(0), (1,), fnr=fnr, fpr=fpr))


def test_a_refusal_names_the_functional() -> None:
    with pytest.raises(Unachievable) as refusal:
        Keyhole().calibrate(question(conj(count(0), count(1, 5, 0)), (1, 1), fnr=1e-40))
    assert refusal.value.functional == 1


def test_malformed_tasks_are_errors() -> None:
    with pytest.raises(ValueError, match="sensitivities"):
        Keyhole().calibrate(question(count(0), (0,)))
    with pytest.raises(ValueError, match="unknown functional"):
        Keyhole().calibrate(question(count(3), (1,)))
    with pytest.raises(ValueError, match="at once"):
        Keyhole().calibrate(question(conj(count(0), count(1)), (1, 1), groups=(frozenset({0}),)))


def test_no_random_split_of_the_rates_costs_less() -> None:
    """Random feasible shares over five formulas never beat the apportionment by more than a half percent."""
    numbers = np.random.default_rng(3)
    formulas: list[tuple[Formula, list[set[int]], list[set[int]]]] = [
        (conj(count(0), count(1, tolerance=3)), [{0, 1}], [{0}, {1}]),
        (disj(count(0), count(1, tolerance=3)), [{0}, {1}], [{0, 1}]),
        (disj(count(0), conj(count(1, tolerance=3), count(2, tolerance=30))), [{0}, {1, 2}], [{0, 1}, {0, 2}]),
        (
            disj(conj(count(0), count(1, tolerance=3)), conj(count(0), count(2, tolerance=30))),
            [{0, 1}, {0, 2}],
            [{0}, {1, 2}],
        ),
        (
            disj(
                conj(count(0), count(1, tolerance=3)),
                conj(count(0), count(2, tolerance=30)),
                conj(count(1, tolerance=3), count(2, tolerance=30)),
            ),
            [{0, 1}, {0, 2}, {1, 2}],
            [{0, 1}, {0, 2}, {1, 2}],
        ),
    ]
    tolerance = {0: 10, 1: 3, 2: 30}
    for formula, terms, clauses in formulas:
        size = len({cut.functional for cut in list_literals(formula)})
        for groups in ((frozenset(range(size)),), (frozenset({0, 1}), frozenset(range(1, size)))):
            ours = Keyhole().calibrate(question(formula, (1,) * size, groups=groups)).worst_case_epsilon
            for _ in range(300):
                shares = []
                for bound, sets in ((0.05, terms), (0.1, clauses)):
                    drawn = numbers.dirichlet(np.ones(size))
                    shares.append(drawn * bound / max(sum(drawn[f] for f in members) for members in sets))
                losses = [
                    find_least_rate(tolerance=tolerance[f], fnr=float(shares[0][f]), fpr=float(shares[1][f])).rate
                    for f in range(size)
                ]
                assert ours <= max(sum(losses[f] for f in group) for group in groups) * 1.005


def test_sharing_a_value_tells_what_it_costs() -> None:
    two_thresholds = disj(conj(count(0, 500, 0), count(1)), count(0, 900, 0))
    calibration = Keyhole().calibrate(question(two_thresholds, (40, 1)))
    gaps = list_cheaper_block_prices(calibration)
    assert set(gaps) == {0}
    assert gaps[0] < calibration.tests[0].epsilon / 10
    single = Keyhole().calibrate(question(count(0, 500, 0), (40,)))
    assert single.tests[0].block == 40
    assert list_cheaper_block_prices(single) == {}
    assert single.worst_case_epsilon == pytest.approx(math.log(0.9 / 0.05), rel=1e-6)


def test_planning_takes_steps_not_seconds() -> None:
    """Twelve literals in a ring of pairs: a coarse guard against exponential work, not a benchmark."""
    ring = disj(*(conj(count(place), count((place + 1) % 12)) for place in range(12)))
    started = time.process_time()
    Keyhole().calibrate(question(ring, (1,) * 12))
    assert time.process_time() - started < 5
