"""The chance that a key overtakes others, held against a sum in forty digits."""

from fractions import Fraction

import pytest

from mechanisms.ranking.overtaking import MARGIN, bound_overtaken, compute_swap_probability
from tests.mechanisms.ranking.law_by_hand import overtaken

# rate, behind, ahead, distance: both ends of each, and what questions ask
CASES = [
    (Fraction(3, 2), 1, 1, 1),
    (Fraction(1, 2), 3, 2, 4),
    (Fraction(1, 10), 1, 20, 60),
    (Fraction(1, 10), 480, 20, 200),
    (Fraction(1, 20), 495, 1, 180),
    (Fraction(1, 20), 1, 5, 1),
]


@pytest.mark.parametrize(("rate", "behind", "ahead", "distance"), CASES)
def test_chances_are_bounded_from_above_and_exact_where_the_law_is_short(
    rate: Fraction, behind: int, ahead: int, distance: int
) -> None:
    """Beyond rounding the bound is too large by the tails that count in full, one part in 1e10."""
    exact = float(overtaken(rate, behind=behind, ahead=ahead, distance=distance))
    found = bound_overtaken(rate=float(rate), behind=behind, ahead=ahead, distance=distance)
    assert exact * (1.0 - MARGIN / 100) <= found <= exact * (1.0 + MARGIN)
    if behind == ahead == 1:
        assert compute_swap_probability(rate=float(rate), distance=distance) == pytest.approx(exact, rel=MARGIN / 100)


@pytest.mark.parametrize(("behind", "ahead"), [(1, 1), (1, 5), (495, 1), (495, 5)])
def test_a_long_law_in_blocks_is_bounded_from_above_by_a_hundredth_at_most(behind: int, ahead: int) -> None:
    """The same chance on a grid a thousand times as fine, where rate and distance keep their product: it tends to the
    continuous law's, from which the coarse one differs by less than what is left here."""
    rate, distance = Fraction(1, 40), 300
    finer = bound_overtaken(rate=float(rate / 1000), behind=behind, ahead=ahead, distance=1000 * distance)
    shorter, longer = (
        float(overtaken(rate, behind=behind, ahead=ahead, distance=one)) for one in (distance + 1, distance - 1)
    )
    assert shorter < finer < 1.01 * longer
    if behind == ahead == 1:
        exact = compute_swap_probability(rate=float(rate / 1000), distance=1000 * distance)
        assert exact <= finer <= 1.01 * exact


def test_nothing_overtakes_by_more_than_all_there_is() -> None:
    """Chances near one and next to nothing are no trouble."""
    assert 1.0 - 1e-9 <= bound_overtaken(rate=1e-6, behind=10**6, ahead=10**6, distance=1) <= 1.0
    assert 0.0 <= bound_overtaken(rate=10.0, behind=10, ahead=10, distance=10**5) < 1e-300
