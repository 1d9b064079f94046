"""How far sums of Laplace noise reach, where the chance is too small to compute."""

from typing import Any

import pytest

from mechanisms.alarm.laplace_sums import find_upper_quantile


@pytest.mark.parametrize("terms", [{"fine": 1}, {"fine": 24}, {"fine": 3, "coarse": 5, "ratio": 2.5}])
def test_chances_too_small_to_compute_are_bounded_from_above(terms: dict[str, Any]) -> None:
    """Just above the line the bound is beyond what is computed, by no more than a few scales; below it grows on."""
    computed = find_upper_quantile(1.01e-10, **terms)
    below = find_upper_quantile(0.99e-10, **terms)
    assert computed <= below <= computed + 8.0 * terms.get("ratio", 1.0)
    assert below < find_upper_quantile(1e-60, **terms) < find_upper_quantile(1e-300, **terms)
