"""The criterion as printed and with exact tails: reference values, and what a size gives away."""

import math

import numpy as np
import pytest

from mechanisms.publishing.reconstruction_privacy import (
    Criterion,
    compute_error_tails,
    compute_published_size,
    find_exact_size,
    find_least_chance,
    infer_share,
)


def criterion(retention: float, values: int, *, within: float = 0.3, unsure: float = 0.3) -> Criterion:
    return Criterion(
        retention=retention, value_count=values, relative_error=within, least_tail=unsure, uses_exact_tails=False
    )


@pytest.mark.parametrize(
    ("retention", "values", "sizes"),
    [
        (0.3, 2, {0.5: 594.6, 0.7: 339.7, 0.9: 227.5}),
        (0.5, 2, {0.5: 214.0, 0.7: 131.0, 0.9: 92.5}),
        (0.7, 2, {0.5: 109.2, 0.7: 71.3, 0.9: 52.6}),
        (0.5, 50, {0.1: 642.1, 0.3: 190.3, 0.9: 60.8}),
    ],
)
def test_sizes_as_printed(retention: float, values: int, sizes: dict[float, float]) -> None:
    asked = criterion(retention, values)
    assert {share: round(compute_published_size(asked, share), 1) for share in sizes} == sizes


@pytest.mark.parametrize(
    ("retention", "share", "values", "size", "within"),
    [(0.5, 0.76, 2, 116, 0.9963), (0.5, 0.3, 10, 237, 0.9711), (0.3, 0.1, 50, 1308, 0.9285)],
)
def test_at_the_printed_size_an_estimate_is_good(
    retention: float, share: float, values: int, size: int, within: float
) -> None:
    asked = criterion(retention, values)
    assert math.floor(compute_published_size(asked, share)) == size
    assert 1 - sum(compute_error_tails(asked, share, size=size)) == pytest.approx(within, abs=5e-5)


def test_the_chance_is_the_least_over_shares() -> None:
    asked = criterion(0.5, 2)
    least = find_least_chance(asked)
    assert 0.98 < least < 0.9963
    for share in (0.5, 0.6, 0.76, 0.95):
        size = math.floor(compute_published_size(asked, share))
        assert 1 - sum(compute_error_tails(asked, share, size=size)) >= least - 2e-3


def test_sizes_with_exact_tails() -> None:
    pairs = ((0.5, 0.76), (0.5, 0.9), (0.3, 0.76), (0.7, 0.76))
    assert [find_exact_size(criterion(retention, 2), share) for retention, share in pairs] == [8, 6, 20, 0]
    assert 1 - sum(compute_error_tails(criterion(0.5, 2), 0.76, size=8)) == pytest.approx(0.3197, abs=5e-5)


def test_no_larger_size_would_do() -> None:
    """All sizes up to the printed one, which no exact one exceeds."""
    for retention, share, values in ((0.5, 0.76, 2), (0.3, 0.6, 3), (0.2, 0.3, 10)):
        asked = criterion(retention, values)
        able = [
            size
            for size in range(1, math.floor(compute_published_size(asked, share)) + 1)
            if min(compute_error_tails(asked, share, size=size)) >= asked.least_tail
        ]
        assert find_exact_size(asked, share) == max(able, default=0)


def test_tails_are_those_of_counted_outcomes() -> None:
    """Every outcome of seven records by hand: three holders, a third kept, three values."""
    asked = criterion(1 / 3, 3, within=0.5)
    floor, kept = 2 / 9, 1 / 3 + 2 / 9
    above = below = 0.0
    for own in range(4):
        for other in range(5):
            chance = math.comb(3, own) * kept**own * (1 - kept) ** (3 - own)
            chance *= math.comb(4, other) * floor**other * (1 - floor) ** (4 - other)
            estimate = ((own + other) / 7 - floor) * 3
            above += chance * (estimate > 3 / 7 * 1.5 + 1e-12)
            below += chance * (estimate < 3 / 7 * 0.5 - 1e-12)
    assert compute_error_tails(asked, 3 / 7, size=7) == pytest.approx((above, below))


def test_a_thinned_size_tells_the_share() -> None:
    asked = criterion(0.5, 2)
    rounded = {
        share: round(infer_share(asked, round(compute_published_size(asked, share))), 4) for share in (0.76, 0.84, 0.95)
    }
    assert rounded == {0.76: 0.7587, 0.84: 0.8377, 0.95: 0.9498}
    for share in np.linspace(0.5, 1, 11):
        assert infer_share(asked, compute_published_size(asked, share)) == pytest.approx(share)


@pytest.mark.parametrize("wrong", [{"retention": 1.0}, {"within": 0.0}, {"unsure": 1.0}, {"values": 1}])
def test_what_is_out_of_range_is_refused(wrong: dict[str, float]) -> None:
    given = {"retention": 0.5, "values": 2, "within": 0.3, "unsure": 0.3} | wrong
    with pytest.raises(ValueError, match="retention"):
        Criterion(
            retention=given["retention"],
            value_count=int(given["values"]),
            relative_error=given["within"],
            least_tail=given["unsure"],
            uses_exact_tails=False,
        )
