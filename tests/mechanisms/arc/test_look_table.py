"""Tables of arc looks: exact error rates, places, draws, and all paths of several looks."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.arc.acceptance_law import AcceptanceLaw
from mechanisms.arc.divergences import compute_divergences, compute_pure_loss
from mechanisms.arc.look_table import (
    MIXED_WORDS,
    MOST_STEPS,
    WORDS,
    BlockGrid,
    LookShares,
    choose_slope,
    decide_by_words,
    make_early_look,
    make_last_look,
)
from mechanisms.protocol import LookTable, Unachievable
from mechanisms.threshold.renyi import ORDERS
from tests.effort import examples, rounds
from tests.mechanisms.arc.reference_contracts import make_reference_looks

MOST_USED = 0.97


def list_law(table: LookTable, place: int) -> list[Fraction]:
    """The probabilities of accepted, rejected and undecided, at a place of the table."""
    entry = min(max(place - table.first, 0), table.accepted.size - 1)
    accepted, rejected = int(table.accepted[entry]), int(table.rejected[entry])
    return [Fraction(part, WORDS) for part in (accepted, rejected, WORDS - accepted - rejected)]


def test_random_contracts_keep_their_rates_and_use_them() -> None:
    """No rate is exceeded, and at least .97 of it is used, at 500 contracts at full size: read off the integers."""
    drawn = np.random.default_rng(27)
    for _ in range(rounds(500, quick=40)):
        sensitivity, in_full = int(drawn.integers(1, 200)), bool(drawn.integers(2))
        tolerance = int(sensitivity * drawn.uniform(0.0, 150.0)) if in_full else int(sensitivity * drawn.uniform(0, 4))
        fnr, fpr = (float(10 ** drawn.uniform(-6, -0.4)) for _ in range(2))
        grid = BlockGrid.from_contract(sensitivity=sensitivity, tolerance=tolerance, in_full=in_full)
        slope = choose_slope(grid=grid, fnr=fnr, fpr=fpr, multiple=float(drawn.uniform(1.25, 2.0)))
        table = make_last_look(grid=grid, fnr=fnr, fpr=fpr, slope=slope)
        missed, wrong = table.compute_rejection(1), table.compute_acceptance(-tolerance)
        assert MOST_USED * fnr <= missed <= Fraction(fnr)
        assert MOST_USED * fpr <= wrong <= Fraction(fpr)
        for distance in (2, sensitivity, 3 * sensitivity + 1, 10**9):
            assert table.compute_rejection(distance) <= missed
            assert table.compute_acceptance(-tolerance - distance) <= wrong


@given(
    sensitivity=st.integers(1, 400),
    tolerance=st.integers(0, 1000),
    in_full=st.booleans(),
    value=st.integers(-2000, 2000),
    changed=st.integers(0, 400),
)
@examples(500, quick=100)
def test_places(sensitivity: int, tolerance: int, in_full: bool, value: int, changed: int) -> None:
    """A literal holds from place 0 on, its relaxation fails up to `-steps`, and one unit moves a place by `moves`."""
    grid = BlockGrid.from_contract(sensitivity=sensitivity, tolerance=tolerance, in_full=in_full)
    changed = min(changed, sensitivity)

    def place(distance: int) -> int:
        return (distance - 1) // grid.block

    assert (place(value) >= 0) == (value >= 1)
    if value <= -tolerance:
        assert place(value) <= -grid.steps
    assert place(-tolerance) == -grid.steps
    assert grid.moves <= grid.bound_moves(Fraction(sensitivity)) < grid.moves + 1
    moved = place(value + changed) - place(value)
    assert moved <= grid.moves
    assert moved <= (grid.bound_moves(Fraction(changed)) if changed else 0)


def test_wide_tolerances_have_tables_of_bounded_size() -> None:
    for sensitivity, in_full in ((1, True), (1, False), (1000, False), (10**6, True)):
        grid = BlockGrid.from_contract(sensitivity=sensitivity, tolerance=10**9, in_full=in_full)
        assert grid.steps <= MOST_STEPS
        slope = choose_slope(grid=grid, fnr=0.05, fpr=0.1, multiple=1.5)
        table = make_last_look(grid=grid, fnr=0.05, fpr=0.1, slope=slope)
        assert table.accepted.size < 17 * MOST_STEPS
        assert table.compute_acceptance(-(10**9)) <= 0.1
        assert table.compute_rejection(1) <= 0.05
    # a change of any size below the sensitivity may move a value by a whole step
    assert BlockGrid.from_contract(sensitivity=1000, tolerance=10**9, in_full=False).bound_moves(Fraction(1)) == 1


def test_no_outcome_is_ever_impossible() -> None:
    for table in make_reference_looks(tolerance=40):
        outcomes = [table.accepted, table.rejected]
        if not table.is_last:
            undecided = np.uint64(0) - table.accepted - table.rejected
            assert np.all(table.accepted.astype(object) + table.rejected.astype(object) + undecided == WORDS)
            outcomes.append(undecided)
        assert all(int(outcome.min()) >= MIXED_WORDS for outcome in outcomes)


def test_a_word_decides_exactly() -> None:
    """The words below `accepted` accept, the last `rejected` words reject, and no others."""
    for table in make_reference_looks(tolerance=20):
        for distance in (-400, -21, -20, -7, 0, 1, 300):
            accepted, rejected, _ = (int(part * WORDS) for part in list_law(table, distance - 1))
            edges = [0, accepted - 1, accepted, WORDS - rejected - 1, WORDS - rejected, WORDS - 1]
            words = np.array(edges, dtype=np.uint64)
            yes, no = decide_by_words(table, np.full(len(edges), distance), words)
            assert yes.tolist() == [edge < accepted for edge in edges]
            assert no.tolist() == [edge >= WORDS - rejected for edge in edges]


def test_early_looks_keep_their_shares() -> None:
    early, late, last = make_reference_looks(tolerance=100)
    for table in (early, late):
        assert 0.97 * 0.002 <= table.compute_rejection(1) <= 0.002
        assert 0.97 * 0.004 <= table.compute_acceptance(-100) <= 0.004
        for place in range(-1500, 1500):
            assert list_law(table, place)[0] <= list_law(table, place + 1)[0]
            assert list_law(table, place)[1] >= list_law(table, place + 1)[1]
    assert last.compute_rejection(1) <= 0.046


def decide_all(looks: tuple[LookTable, ...], place: int) -> list[Fraction]:
    """The probabilities with which all looks together accept and reject."""
    left, found = Fraction(1), [Fraction(0), Fraction(0)]
    for table in looks:
        accepted, rejected, undecided = list_law(table, place)
        found, left = [found[0] + left * accepted, found[1] + left * rejected], left * undecided
    assert left == 0
    return found


def test_looks_together_keep_both_rates() -> None:
    drawn = np.random.default_rng(5)
    for _ in range(rounds(40, quick=4)):
        tolerance, fnr, fpr = int(drawn.integers(5, 60)), *(float(10 ** drawn.uniform(-4, -0.7)) for _ in range(2))
        looks = make_reference_looks(tolerance=tolerance, fnr=fnr, fpr=fpr, multiple=float(drawn.uniform(1.25, 2)))
        assert decide_all(looks, 0)[1] <= Fraction(fnr)
        assert decide_all(looks, -tolerance - 1)[0] <= Fraction(fpr)


@pytest.mark.parametrize("order", [2, 5, 16, 80])
def test_what_did_not_run_costs_nothing(order: int) -> None:
    """Over all paths, with the looks of two keys in whatever order: the mean of `exp((a-1) (L - curves that ran))`.

    It is at most one, whichever values both keys have and whichever way a unit moves each. The next look is chosen for
    the largest mean, from the outcomes so far.
    """
    looks = make_reference_looks(tolerance=12)
    curves = [float(compute_divergences(table, 1)[ORDERS.index(order)]) for table in looks]
    worst = 0.0
    places = range(-80, 80, rounds(1, quick=4))
    for sign in (1, -1):
        for place in places:
            ahead = 1.0  # the mean of the looks that follow
            for table, curve in zip(reversed(looks), reversed(curves), strict=True):
                means = [
                    math.exp(order * math.log(one) - (order - 1) * (math.log(other) + curve))
                    for one, other in zip(
                        map(float, list_law(table, place)), map(float, list_law(table, place + sign)), strict=True
                    )
                    if one
                ]
                settled = sum(means[:2])
                assert settled + (means[2] if len(means) > 2 else 0.0) <= 1 + 1e-9
                # one may stop, or take the next look of this key; the other key's factor is another such mean
                ahead = settled + (means[2] * max(1.0, ahead) if len(means) > 2 else 0.0)
            worst = max(worst, ahead)
    assert 0.5 < worst <= 1 + 1e-9


def test_looks_on_the_same_words_would_reveal_everything() -> None:
    """The trap: an early look and the last one that read one word. "Open, then accepted" is impossible far below.

    The early look's foot is flatter, so there its accepting words hold those of the last look. Beside the place where
    this ends, the joint outcome has a probability: an infinite divergence.
    """
    early, _, last = make_reference_looks(tolerance=40)

    def is_possible(place: int) -> bool:
        return list_law(last, place)[0] > list_law(early, place)[0]

    assert [is_possible(place) for place in (-300, 0)] == [False, True]
    assert any(is_possible(place) != is_possible(place + 1) for place in range(-300, 0))


def test_a_floor_in_the_place_of_the_mixture_would_be_infinite() -> None:
    """The trap: with probabilities raised to a floor, "undecided" is impossible beside values at which it is not."""
    law = AcceptanceLaw(speed=0.2, slope=0.5)
    accepted = law.tabulate(Fraction(-300), 600, scale=WORDS)
    rejected = law.tabulate(Fraction(-299), 600, scale=WORDS)[::-1]
    floored = [(max(one, MIXED_WORDS), max(other, MIXED_WORDS)) for one, other in zip(accepted, rejected, strict=True)]
    undecided = [max(0, WORDS - one - other) for one, other in floored]
    assert any((one == 0) != (other == 0) for one, other in pairwise(undecided))


def test_missing_feet_would_cost_more_than_the_slope() -> None:
    """The trap: a sine down to zero has no bound on the change of its logarithm but that of the mixture."""
    grid = BlockGrid.from_contract(sensitivity=1, tolerance=40, in_full=True)
    slope = choose_slope(grid=grid, fnr=0.05, fpr=0.1, multiple=1.5)
    with_feet = compute_pure_loss(make_last_look(grid=grid, fnr=0.05, fpr=0.1, slope=slope), 1)
    without = compute_pure_loss(make_last_look(grid=grid, fnr=0.05, fpr=0.1, slope=1e3), 1)
    assert float(with_feet) == pytest.approx(slope, rel=1e-6)
    assert without > 100 * with_feet


@pytest.mark.parametrize(("sensitivity", "tolerance", "fnr", "fpr"), [(1, 20, 1e-15, 0.1), (1, 20, 0.05, 1e-15)])
def test_refusals(sensitivity: int, tolerance: int, fnr: float, fpr: float) -> None:
    grid = BlockGrid.from_contract(sensitivity=sensitivity, tolerance=tolerance, in_full=True)
    slope = choose_slope(grid=grid, fnr=fnr, fpr=fpr, multiple=1.5)
    with pytest.raises(Unachievable):
        make_last_look(grid=grid, fnr=fnr, fpr=fpr, slope=slope)


def test_an_early_look_that_leaves_nothing_open_is_refused() -> None:
    with pytest.raises(Unachievable):
        make_early_look(
            grid=BlockGrid(1, 21, 1, is_whole=True),
            last=AcceptanceLaw(0.1, 0.3),
            look=LookShares(part=1.0, fnr=0.3, fpr=0.4),
        )
