"""Splitting error rates: the published rules, Keyhole's, and the table that compares them."""

import math
import random
from collections import Counter

import numpy as np
import pytest

from mechanisms.apportionment.clauses import Constraint, derive_constraints
from mechanisms.apportionment.convex_split import SplitProgram, minimise_largest_objective
from mechanisms.apportionment.equal_split import split_bound_equally
from mechanisms.apportionment.keyhole import Objective, Shares, apportion_by_clauses, apportion_by_trees
from mechanisms.apportionment.probe import split_by_probe
from mechanisms.apportionment.tree import bound_shares, bound_tree, build_shares_tree, share_in_closed_form
from mechanisms.formula import AllOf, AnyOf, Cut, Formula, list_literals
from mechanisms.threshold.joint_loss import expose_functional_sets
from tests.in_turn import in_turn

BETA = 0.05


def leaf(functional: int, cut: int = 100, tolerance: int = 10, above: bool = True) -> Cut:
    return Cut(functional=functional, cut=cut, above=above, tolerance=tolerance)


def both(*children: Formula) -> AllOf:
    return AllOf(children)


def either(*children: Formula) -> AnyOf:
    return AnyOf(children)


def published_loss(functional: int, fnr: float, fpr: float) -> tuple[float, float, float]:
    return math.log(1 / (2 * fnr)), -1.0, 0.0


def objective(formula: Formula, groups: tuple[frozenset[int], ...] | None = None) -> Objective:
    used = tuple(sorted({cut.functional for cut in list_literals(formula)}))
    return Objective(
        formulas=(formula,),
        used_functionals=used,
        functional_count=max(used) + 1,
        exposures=expose_functional_sets(
            [[used.index(f) for f in group] for group in groups or (used,)], functionals=len(used)
        ),
        loss=published_loss,
        fnr=BETA,
        fpr=0.1,
        is_tied=False,
    )


def shares_of(formula: Formula) -> Shares:
    found = derive_constraints(formula)
    assert found is not None
    return apportion_by_clauses(
        objective(formula), fnr=found.fnr, fpr=found.fpr, weigh_fnr=lambda f, d: 1.0, weigh_fpr=lambda f, d: 1.0
    )


def keyhole_total(shares: Shares) -> float:
    return sum(math.log(1 / (2 * share)) for share in shares.fnr)


def probe_total(formula: Formula) -> float:
    occurrences = len(list(list_literals(formula)))
    return sum(math.log(1 / (2 * share)) for share in split_by_probe(bound=BETA, weights=[1.0] * occurrences))


def row_of(size: int) -> list[Cut]:
    return [leaf(place) for place in range(size)]


PAIRS = [both(leaf(2 * place), leaf(2 * place + 1)) for place in range(3)]
TABLE: list[tuple[Formula, float, float]] = [
    *((both(*row_of(n)), v, v) for n, v in zip(range(1, 7), (2.30, 5.99, 10.20, 14.76, 19.56, 24.57), strict=True)),
    *(
        (either(*row_of(n)), published, ours)
        for n, published, ours in zip(
            range(2, 7), (5.99, 10.20, 14.76, 19.56, 24.57), (4.61, 6.91, 9.21, 11.51, 13.82), strict=True
        )
    ),
    (both(either(leaf(0), leaf(1)), either(leaf(0), leaf(2))), 14.76, 8.29),
    (either(both(leaf(0), leaf(1)), both(leaf(0), leaf(2))), 14.76, 8.82),
    (either(*PAIRS[:2]), 14.76, 11.98),
    (either(*PAIRS), 24.57, 17.97),
    (either(leaf(0), both(leaf(1), leaf(2))), 10.20, 8.29),
    (either(both(leaf(0), leaf(1)), both(leaf(1), leaf(2)), both(leaf(0), leaf(2))), 24.57, 8.99),
]


@in_turn(("formula", "published", "ours"), TABLE)
def test_reference_table(formula: Formula, published: float, ours: float) -> None:
    assert round(probe_total(formula), 2) == published
    assert round(keyhole_total(shares_of(formula)), 2) == ours


@in_turn(("formula", "published", "ours"), TABLE)
def test_the_tree_form_is_sound_and_exact_where_nothing_repeats(
    formula: Formula, published: float, ours: float
) -> None:
    shares = apportion_by_trees(objective(formula))
    assert bound_tree(formula, lambda cut: shares.fnr[cut.functional], is_fnr=True)[0] <= BETA * (1 + 1e-12)
    assert bound_tree(formula, lambda cut: shares.fpr[cut.functional], is_fnr=False)[0] <= 0.1 * (1 + 1e-12)
    assert keyhole_total(shares) >= ours - 0.006
    functionals = [cut.functional for cut in list_literals(formula)]
    if len(functionals) == len(set(functionals)):
        assert round(keyhole_total(shares), 2) == ours


def random_formula(drawn: random.Random, depth: int) -> Formula:
    if depth == 0 or drawn.random() < 0.2:
        return leaf(drawn.randrange(6))
    return drawn.choice((AllOf, AnyOf))(
        tuple(random_formula(drawn, depth - 1) for _ in range(drawn.choice((0, 1, 2, 3))))
    )


def test_bounds_of_shares_are_the_bounds_of_the_tree() -> None:
    """The same floats, and the same leaves; where these may not change, no shares change them."""
    drawn = random.Random(11)
    for _ in range(400):
        formula = random_formula(drawn, drawn.choice((0, 1, 2, 3, 4)))
        for fnr in (True, False):
            tree, seen = build_shares_tree(formula, is_fnr=fnr), set()
            for _ in range(4):
                shares = [drawn.choice((0.01, 0.02, 0.03)) for _ in range(6)]
                value, leaves = bound_shares(tree, shares)

                def rate(cut: Cut, shares: list[float] = shares) -> float:
                    return shares[cut.functional]

                assert (value, Counter(leaves)) == bound_tree(formula, rate, is_fnr=fnr)
                seen.add(leaves)
            assert tree.depends_on_shares or len(seen) == 1


def test_a_programme_in_two_halves_has_the_solution_of_the_whole() -> None:
    drawn = np.random.default_rng(3)
    for _ in range(5):
        upper, lower = (np.vstack((drawn.integers(0, 3, (9, 16)), np.eye(16))) / 0.05 for _ in range(2))
        rows = np.block([[upper, np.zeros_like(upper)], [np.zeros_like(lower), lower]])
        whole = SplitProgram(rows=rows, weights=drawn.uniform(0.5, 2.0, (1, 32)), offsets=np.zeros(1))
        halves = SplitProgram(rows=rows, weights=whole.weights, offsets=whole.offsets, upper=len(upper))
        start = -np.log((rows * rows.astype(bool).sum(axis=1)[:, np.newaxis]).max(axis=0))
        found = minimise_largest_objective(halves, start=start, gap=1e-6)
        assert found == pytest.approx(minimise_largest_objective(whole, start=start, gap=1e-6), rel=1e-9)
        assert (rows @ np.exp(found)).max() < 1.0


def test_weights_count_in_the_published_rule() -> None:
    assert split_by_probe(bound=0.06, weights=[1.0, 2.0]) == pytest.approx((0.02, 0.04))
    assert split_bound_equally(bound=0.06, occurrences=3) == pytest.approx((0.02,) * 3)


@pytest.mark.parametrize("fnr", [True, False])
def test_constants_take_no_share(fnr: bool) -> None:
    """Empty nodes, alone, nested and beside literals: no division by nothing; literals have their shares as without."""
    for constant in (both(), either(), both(both(), either()), either(both(either()))):
        assert share_in_closed_form(constant, bound=0.06, weights=[], is_fnr=fnr) == {}
        alone = share_in_closed_form(both(leaf(0), leaf(1)), bound=0.06, weights=[1.0, 2.0], is_fnr=fnr)
        beside = both(both(leaf(0), constant), constant, leaf(1))
        assert share_in_closed_form(beside, bound=0.06, weights=[1.0, 2.0], is_fnr=fnr) == pytest.approx(alone)


def test_closed_form_splits_by_the_weights_below() -> None:
    formula = both(leaf(0), either(leaf(1), leaf(2)))
    shares = share_in_closed_form(formula, bound=0.06, weights=[1.0, 1.0, 1.0], is_fnr=True)
    assert shares == pytest.approx({0: 0.02, 1: 0.04, 2: 0.04})
    assert share_in_closed_form(formula, bound=0.06, weights=[1.0, 1.0, 2.0], is_fnr=False) == pytest.approx(
        {0: 0.06, 1: 0.02, 2: 0.04}
    )


def supports(sums: tuple[Constraint, ...]) -> set[frozenset[int]]:
    return {frozenset(part.functional for part in constraint.parts) for constraint in sums}


def test_terms_and_clauses_of_the_majority() -> None:
    found = derive_constraints(either(both(leaf(0), leaf(1)), both(leaf(1), leaf(2)), both(leaf(0), leaf(2))))
    assert found is not None
    pairs = {frozenset(pair) for pair in ((0, 1), (1, 2), (0, 2))}
    assert supports(found.fnr) == pairs
    assert supports(found.fpr) == pairs


def test_thresholds_on_one_functional_imply_each_other() -> None:
    """S > 500 fails whenever S > 100 does: the clause (S > 100 or Y) never binds beside (S > 100 or S > 500)."""
    formula = either(both(leaf(0, 100), leaf(1)), both(leaf(0, 500), leaf(2)))
    found = derive_constraints(formula)
    assert found is not None
    assert supports(found.fnr) == {frozenset({0, 1}), frozenset({0, 2})}
    assert frozenset({0}) in supports(found.fpr)
    assert frozenset({0, 2}) not in supports(found.fpr)


def test_impossible_terms_and_clauses_are_left_out() -> None:
    never = both(leaf(0, 500), leaf(0, 100, above=False))
    found = derive_constraints(never)
    assert found is not None
    assert found.fnr == ()
    outside = derive_constraints(either(leaf(0, 5, tolerance=3), leaf(0, 4, tolerance=3, above=False)))
    assert outside is not None
    assert outside.fpr == ()


def test_intervals_carry_both_distances() -> None:
    found = derive_constraints(both(leaf(0, 100), leaf(0, 150, above=False)))
    assert found is not None
    assert [part.scenarios for part in found.fnr[0].parts] == [((1, 50), (50, 1))]


def test_too_many_literals_are_not_enumerated() -> None:
    assert derive_constraints(both(*row_of(13))) is None
    assert derive_constraints(either(*(both(leaf(2 * i), leaf(2 * i + 1)) for i in range(6)))) is not None


def test_fair_split_beats_random_splits_and_its_optimum_is_known() -> None:
    """Proportional fairness under random rows: no random feasible split is better; a single row gives w / sum(w)."""
    numbers = np.random.default_rng(4)
    weights = np.array([[1.0, 2.0, 5.0]])
    known = minimise_largest_objective(
        SplitProgram(rows=np.ones((1, 3)), weights=weights, offsets=np.zeros(1)), start=np.full(3, -1.2), gap=1e-7
    )
    assert np.exp(known) == pytest.approx(weights[0] / 8.0, rel=1e-5)
    for _ in range(20):
        rows = numbers.integers(0, 2, size=(4, 4)).astype(float) + np.eye(4)
        groups = numbers.uniform(0, 2, size=(3, 4)) * numbers.integers(0, 2, size=(3, 4)) + 0.01
        start = np.full(4, -math.log(rows.sum(axis=1).max()))
        found = minimise_largest_objective(
            SplitProgram(rows=rows, weights=groups, offsets=np.zeros(3)), start=start, gap=1e-7
        )
        assert (rows @ np.exp(found)).max() < 1.0
        value = float((-groups @ found).max())
        for _ in range(200):
            other = np.log(numbers.dirichlet(np.ones(4)))
            other -= math.log((rows @ np.exp(other)).max())
            assert value <= float((-groups @ other).max()) * (1 + 1e-2)


def test_exact_form_agrees_with_brute_force_over_false_literals() -> None:
    """Random monotone formulas: a clause set is a minimal hitting set of the terms, by enumeration of all subsets."""
    chance = random.Random(9)
    for _ in range(30):
        terms = [chance.sample(range(5), chance.randint(1, 3)) for _ in range(chance.randint(1, 4))]
        formula = either(*(both(*(leaf(place) for place in term)) for term in terms))
        found = derive_constraints(formula)
        assert found is not None
        hitting = [
            frozenset(place for place in range(5) if mask >> place & 1)
            for mask in range(32)
            if all(any(mask >> place & 1 for place in term) for term in terms)
        ]
        assert supports(found.fpr) == {one for one in hitting if not any(other < one for other in hitting)}
        whole = [frozenset(term) for term in terms]
        assert supports(found.fnr) == {one for one in whole if not any(other < one for other in whole)}
