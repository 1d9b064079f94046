"""Noisy tables and the rows made from them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.noise.discrete_laplace import compute_mass
from mechanisms.protocol import Unachievable
from mechanisms.publishing.contingency_table import make_rows, release_table
from tests.seeded_noise import SeededNoise

FALSE_ALARM = 1e-8


def test_every_cell_has_noise_of_its_share_of_epsilon() -> None:
    """20,000 cells, most of them empty: chi-square against the law of rate epsilon / rows. False alarm 1e-8."""
    counts = np.zeros((100, 200), dtype=np.int64)
    counts[:10] = 7
    found = release_table(counts, epsilon=Fraction(3, 2), most_rows=3, noise=SeededNoise(4)) - counts
    reach = 8
    seen = [int(np.sum(found == value)) for value in range(-reach, reach + 1)]
    expected = [20_000 * compute_mass(0.5, value) for value in range(-reach, reach + 1)]
    rest = (20_000 - sum(seen), 20_000 - sum(expected))
    assert stats.chisquare([*seen, rest[0]], [*expected, rest[1]]).pvalue > FALSE_ALARM
    assert found.shape == counts.shape


def test_noise_that_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(Unachievable):
        release_table(np.zeros(2, dtype=np.int64), epsilon=Fraction(1, 1 << 60), most_rows=1, noise=SeededNoise(1))


@given(st.lists(st.integers(-30, 60), min_size=1, max_size=12))
def test_rows_are_the_nearest_counts_with_the_noisy_total(noisy: list[int]) -> None:
    """Against bisection for the amount by which all cells are lowered."""
    rows = make_rows(np.array(noisy))
    total = max(0, sum(noisy))
    assert rows.sum() == total
    assert rows.min() >= 0
    if total:
        low, high = 0.0, 100.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if np.maximum(np.array(noisy) - middle, 0).sum() > total else (low, middle)
        assert np.abs(rows - np.maximum(np.array(noisy) - low, 0)).max() <= 1 + 1e-9


def test_rows_of_a_table_without_negative_counts_are_the_counts() -> None:
    counts = np.arange(24).reshape(2, 3, 4)
    assert make_rows(counts).tolist() == counts.tolist()


def test_empty_cells_add_no_rows_on_average() -> None:
    """200 seeded tables of 1,000 empty cells and one of 5,000 rows at epsilon .5, noise of standard deviation 2.7 a
    cell: the mean of the totals has one of 6, and is within 30 with all but 1e-6. Cells set to zero one by one would
    add more than 900."""
    counts = np.zeros(1001, dtype=np.int64)
    counts[7] = 5000
    noise = SeededNoise(8)
    totals = [
        int(make_rows(release_table(counts, epsilon=Fraction(1, 2), most_rows=1, noise=noise)).sum())
        for _ in range(200)
    ]
    assert np.mean(totals) == pytest.approx(5000, abs=30)
