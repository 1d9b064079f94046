"""The loss of tables against exact sums over all places and moves, and the values that are known beforehand."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from accountant.unit_balance import NO_UNIT_LOSS, UnitRoom
from mechanisms.arc.acceptance_law import AcceptanceLaw
from mechanisms.arc.divergences import compute_divergences, compute_pure_loss, list_convex_divergences
from mechanisms.arc.look_table import MIXED_WORDS, WORDS, BlockGrid, choose_slope, make_last_look, make_looks
from mechanisms.protocol import LookTable
from mechanisms.threshold.renyi import ORDERS, to_nano
from tests.effort import rounds
from tests.mechanisms.arc.reference_contracts import make_reference_looks

FIRST_ORDERS = (4.88e-4, 7.442e-4, 1.009e-3, 1.282e-3, 1.563e-3, 2.153e-3, 2.778e-3, 3.44e-3)
LAST_LOOK = (*FIRST_ORDERS, 4.875e-3, 8.167e-3, 1.592e-2, 3.259e-2)
EARLY_LOOKS = ((4.776e-6, 2.175e-4), (4.326e-5, 2.475e-3))
DELTA = 1e-9
CAP_NANO = 8 * 10**9


def compute_by_listing(table: LookTable, moves: int, order: int) -> Decimal:
    """The largest divergence over all places and all moves up to `moves`, in exact fractions."""
    accepted, rejected = [list(map(int, outcome)) for outcome in (table.accepted, table.rejected)]
    laws = [(yes, no, WORDS - yes - no) for yes, no in zip(accepted, rejected, strict=True)]
    laws = [laws[0]] * moves + laws + [laws[-1]] * moves
    largest = Fraction(1)
    for move in range(1, moves + 1):
        for one, other in zip(laws, laws[move:], strict=False):
            for moved, still in ((one, other), (other, one)):
                moment = sum(
                    (Fraction(p**order, q ** (order - 1) * WORDS) for p, q in zip(moved, still, strict=True) if q),
                    start=Fraction(0),
                )
                largest = max(largest, moment)
    with localcontext(prec=60):
        return (Decimal(largest.numerator) / Decimal(largest.denominator)).ln() / (order - 1)


def compute_pure_by_listing(table: LookTable, moves: int) -> Decimal:
    """The largest log-ratio of any outcome over all places and all moves up to `moves`."""
    accepted, rejected = [list(map(int, outcome)) for outcome in (table.accepted, table.rejected)]
    laws = [(yes, no, WORDS - yes - no) for yes, no in zip(accepted, rejected, strict=True)]
    largest = max(
        Fraction(max(one, other), min(one, other))
        for move in range(1, moves + 1)
        for pair in zip(laws, laws[move:], strict=False)
        for one, other in zip(*pair, strict=True)
        if one or other
    )
    with localcontext(prec=60):
        return (Decimal(largest.numerator) / Decimal(largest.denominator)).ln()


def make_small_tables() -> list[LookTable]:
    """Tables that are listed in exact fractions: one step a unit and several, last looks and early ones."""
    found: list[LookTable] = []
    for sensitivity, tolerance, in_full in ((1, 5, True), (3, 8, False), (70, 120, False)):
        grid = BlockGrid.from_contract(sensitivity=sensitivity, tolerance=tolerance, in_full=in_full)
        slope = choose_slope(grid=grid, fnr=0.03, fpr=0.2, multiple=1.5)
        found += make_looks(grid=grid, fnr=0.03, fpr=0.2, slope=slope, early=(0.5,), early_share=0.1)
    return found


@pytest.mark.parametrize("place", range(4))
def test_divergences_bound_the_exact_ones_and_are_near(place: int) -> None:
    table = make_small_tables()[place]
    for order in ORDERS if table.moves == 1 else (2, 5, 24):
        exact = compute_by_listing(table, table.moves, order)
        found = compute_divergences(table, table.moves)[ORDERS.index(order)]
        assert exact <= found <= exact + Decimal("1e-12")
    exact = compute_pure_by_listing(table, table.moves)
    assert exact <= compute_pure_loss(table, table.moves) <= exact + Decimal("1e-12")


def test_the_farthest_move_is_the_worst_of_a_last_look() -> None:
    """What lets all moves but one be left out: over all moves, divergences grow."""
    for table in make_small_tables():
        if table.is_last:
            rows = [compute_divergences(table, moves) for moves in range(1, table.moves + 1)]
            assert rows == sorted(rows)
            assert compute_by_listing(table, table.moves, 6) <= compute_divergences(table, table.moves)[4]


def test_divergences_are_convex_in_the_move() -> None:
    """Then parts of a move cost no more than their parts of a table's list, and the list is not raised."""
    drawn = np.random.default_rng(11)
    for _ in range(rounds(30, quick=3)):
        sensitivity = int(drawn.integers(2, 100))
        tolerance = int(sensitivity * drawn.uniform(6, 15))
        grid = BlockGrid.from_contract(sensitivity=sensitivity, tolerance=tolerance, in_full=False)
        fnr, fpr = (float(10 ** drawn.uniform(-4, -0.7)) for _ in range(2))
        slope = choose_slope(grid=grid, fnr=fnr, fpr=fpr, multiple=1.5)
        table = make_last_look(grid=grid, fnr=fnr, fpr=fpr, slope=slope)
        raised = list_convex_divergences(table)
        assert len(raised) == grid.moves + 1
        for moves, row in enumerate(raised):
            for bound, own in zip(row, compute_divergences(table, moves), strict=True):
                assert own <= bound <= own * Decimal("1.000001") + Decimal("1e-12")


def test_the_curve_of_the_last_look_known_beforehand() -> None:
    """To three digits, as the maximum over all positions of the values between two steps."""
    law = AcceptanceLaw(speed=0.021820024, slope=0.058680345)
    most = [Decimal(0)] * len(ORDERS)
    for start in range(10):
        listed = law.tabulate(Fraction(start, 20) - 900, 1800, scale=WORDS - 2 * MIXED_WORDS)
        accepted = np.array(listed, dtype=np.uint64) + np.uint64(MIXED_WORDS)
        table = LookTable(first=0, accepted=accepted, rejected=np.uint64(0) - accepted, block=1, moves=1)
        most = list(map(max, most, compute_divergences(table, 1)))
    assert [float(value) for value in most] == pytest.approx(LAST_LOOK, rel=1e-3)
    *early, last = make_reference_looks(tolerance=99)
    assert [float(value) for value in compute_divergences(last, 1)] == pytest.approx(LAST_LOOK, rel=6e-3)
    for table, (least, largest) in zip(early, EARLY_LOOKS, strict=True):
        found = compute_divergences(table, 1)
        assert (float(found[0]), float(found[-1])) == pytest.approx((least, largest), rel=1e-3)


@pytest.mark.parametrize(
    ("groups", "fnr", "fpr", "tolerance", "known"),
    [
        (52, 0.05, 0.1, 100, 43),
        (52, 0.01, 0.01, 100, 18),
        (52, 0.001, 0.001, 100, 10),
        (52, 0.05, 0.1, 50, 10),
        (12, 0.05, 0.1, 100, 190),
        (12, 0.05, 0.1, 50, 43),
        (12, 0.05, 0.1, 25, 9),
        (12, 0.01, 0.01, 100, 81),
    ],
)
def test_questions_below_a_cap_known_beforehand(
    groups: int, fnr: float, fpr: float, tolerance: int, known: int
) -> None:
    """With both early looks reserved, in the worst case. The tables span the whole tolerance, which is a step more."""
    looks = make_reference_looks(tolerance=tolerance, fnr=fnr, fpr=fpr)
    rows = [compute_divergences(table, 1) for table in looks]
    curve = tuple(to_nano(groups * sum(column, start=Decimal(0))) for column in zip(*rows, strict=True))
    pure = to_nano(groups * sum((compute_pure_loss(table, 1) for table in looks), start=Decimal(0)))
    room = UnitRoom(NO_UNIT_LOSS, CAP_NANO, DELTA)
    assert known <= room.count_further_questions(pure, curve) <= known * (1 + 1 / tolerance) ** 2 + 2
