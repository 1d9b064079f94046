"""Values that the sensitive column does not tell apart: the test, and what is merged; Adult where it is there."""

import os

import numpy as np
import pytest
from scipy import stats

from benchmarks.risk.adult import VARIABLE
from benchmarks.risk.published_tables import count_adult, find_violations
from mechanisms.publishing.generalisation import compute_chi_square, merge_counts, merge_values


def test_the_statistic_is_that_of_a_table_of_two_samples() -> None:
    """With unequal totals it is the usual one, which has one degree of freedom less than there are values."""
    first, second = np.array([30, 50, 20, 0]), np.array([500, 1100, 390, 0])
    usual = stats.chi2_contingency(np.array([first, second])[:, :3], correction=False)
    assert compute_chi_square(first, second) == pytest.approx(usual.statistic)
    assert usual.dof == 2


def test_values_are_joined_by_chains_and_empty_ones_stay_alone() -> None:
    counts = np.array([[300, 100], [0, 0], [320, 140], [335, 180], [10, 400]])
    assert merge_values(counts) == ((0, 1, 0, 0, 2),)
    one = np.array([[300, 100]])
    assert compute_chi_square(counts[0], counts[3]) > stats.chi2.ppf(0.95, 1)  # joined by what lies between them
    assert merge_values(one) == ((0,),)


def test_each_column_is_merged_by_itself() -> None:
    generator = np.random.default_rng(2)
    counts = generator.integers(0, 50, (3, 4, 2))
    counts[0] = counts[1]
    merged = merge_values(counts)
    assert merged[0][0] == merged[0][1]
    found = merge_counts(counts, merged)
    assert found.shape == (max(merged[0]) + 1, max(merged[1]) + 1, 2)
    assert found.sum(axis=(0, 1)).tolist() == counts.sum(axis=(0, 1)).tolist()
    for place in np.ndindex(3, 4):
        assert (found[merged[0][place[0]], merged[1][place[1]]] >= counts[place]).all()


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"needs {VARIABLE}, a parquet file of UCI Adult's training rows")
def test_adult_is_generalised_and_violated_as_published() -> None:
    """Exact: nothing is drawn. Domains of 16, 14, 5 and 2 values to 7, 4, 2 and 2; groups and records beyond s_g."""
    counts = count_adult()
    assert counts.shape == (16, 14, 5, 2, 2)
    merged = merge_values(counts)
    assert [max(numbers) + 1 for numbers in merged] == [7, 4, 2, 2]
    groups = merge_counts(counts, merged).reshape(-1, 2)
    assert (groups.sum(axis=1) > 0).sum() == 96
    by_retention = {p: find_violations(groups, retention=p, within=0.3) for p in (0.1, 0.3, 0.5, 0.7, 0.9)}
    assert {p: (round(one[0], 3), round(one[1], 3)) for p, one in by_retention.items()} == {
        0.1: (0.052, 0.481),
        0.3: (0.240, 0.845),
        0.5: (0.344, 0.928),
        0.7: (0.479, 0.969),
        0.9: (0.521, 0.977),
    }
    for within, expected in ((0.1, (0.062, 0.507)), (0.5, (0.521, 0.977))):
        found = find_violations(groups, retention=0.5, within=within)
        assert tuple(round(part, 3) for part in found) == expected
