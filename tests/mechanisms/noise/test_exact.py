"""Exact noise: its law, its comparisons, its range."""

import math
import os
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from mechanisms.certified import certify_changed_noise, make_rational
from mechanisms.formula import Integers
from mechanisms.noise import random_bytes
from mechanisms.noise.discrete_laplace import compute_lower_tail, compute_mass, compute_upper_tail
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE, ExactNoise, _Coin, make_system_noise
from mechanisms.protocol import Noise, Unachievable
from tests.seeded_noise import SeededNoise

FALSE_ALARM = 1e-7


def quantile_edges(rate: float, cells: int) -> list[int]:
    """Integer edges that cut the law into roughly equal cells; below the edge `e` means `K < e`."""
    wanted = [(place + 1) / cells for place in range(cells - 1)]
    edges = []
    for share in wanted:
        side = min(share, 1 - share)
        size = max(0, round(-math.log(side * (1 + math.exp(-rate))) / rate))
        edges.append(-size if share < 0.5 else size + 1)
    return sorted(set(edges))


def cell_law(rate: float, edges: list[int]) -> list[float]:
    below = [compute_lower_tail(rate, edge - 1) for edge in edges]
    return [*np.diff([0.0, *below]), compute_upper_tail(rate, edges[-1])]


def fits(draws: Integers, rate: float) -> bool:
    edges = quantile_edges(rate, 40)
    counts = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(edges) + 1)
    expected = np.array(cell_law(rate, edges)) * draws.size
    keep = expected >= 5
    pooled_counts = np.append(counts[keep], counts[~keep].sum())
    pooled = np.append(expected[keep], max(expected[~keep].sum(), 1e-9))
    if pooled[-1] < 5:
        pooled_counts, pooled = pooled_counts[:-1], pooled[:-1]
    statistic = float(((pooled_counts - pooled) ** 2 / pooled).sum())
    return bool(stats.chi2.sf(statistic, max(1, pooled.size - 1)) > FALSE_ALARM)


@pytest.mark.parametrize("rate", ["1/281474976710656", "1/10000000", "1/1000", "1/9", "1/2", "289/100", "50"])
@pytest.mark.parametrize("noise", [SeededNoise(11), make_system_noise()])
def test_draws_follow_the_discrete_laplace_law(rate: str, noise: Noise) -> None:
    """200,000 draws in forty cells; false alarm 1e-7 per case (chi-square)."""
    draws = noise.draw_discrete_laplace(rate=Fraction(rate), size=200_000)
    assert draws.dtype == np.int64
    assert fits(draws, float(Fraction(rate)))


def test_the_check_notices_a_wrong_rate() -> None:
    """The chi-square test has power: noise drawn 3 % too small is found out (missed with probability below 1e-9)."""
    draws = SeededNoise(5).draw_discrete_laplace(rate=Fraction(103, 1000), size=200_000)
    assert not fits(draws, 0.1)


@pytest.mark.parametrize("rate", [Fraction(1, 50), Fraction(1, 2), Fraction(3)])
def test_low_digits_are_right_one_by_one(rate: Fraction) -> None:
    """200,000 draws, each integer up to ten its own cell; false alarm 1e-7 per value, 21 values per case."""
    size = 200_000
    draws = make_system_noise().draw_discrete_laplace(rate=rate, size=size)
    for value in range(-10, 11):
        count = int((draws == value).sum())
        chance = compute_mass(float(rate), value)
        assert stats.binom.cdf(count, size, chance) > FALSE_ALARM / 2
        assert stats.binom.sf(count - 1, size, chance) > FALSE_ALARM / 2


def test_agrees_with_opendp() -> None:
    """4,000 draws of OpenDP's exact sampler against 200,000 of ours, scale 3; false alarm 1e-7 (chi-square)."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    theirs = np.array(dp.m.make_laplace(*space, scale=3.0)([0] * 4_000))
    ours = make_system_noise().draw_discrete_laplace(rate=Fraction(1, 3), size=200_000)
    edges = [-9, -6, -4, -2, -1, 0, 1, 2, 3, 5, 7, 10]
    table = [np.bincount(np.searchsorted(edges, draws, side="right"), minlength=13) for draws in (theirs, ours)]
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


@pytest.mark.parametrize("rate", ["1/281474976710656", "1/1000", "1/20", "1/2", "3"])
def test_thinned_draws_follow_their_law(rate: str) -> None:
    """200,000 draws: how many are zero, by the binomial law, and the others in forty cells of a geometric variable and
    by their signs. False alarm 1e-7 for each of the four checks of a case."""
    size, coarse = 200_000, Fraction(rate)
    moved = certify_changed_noise(coarse=coarse, fine=2 * coarse)
    chance = moved.read_prefix(60) / 2**60
    draws = SeededNoise(14).draw_thinned_laplace(rate=coarse, nonzero=moved, size=size)
    others = draws[draws != 0]
    assert stats.binom.cdf(others.size, size, chance) > FALSE_ALARM / 2
    assert stats.binom.sf(others.size - 1, size, chance) > FALSE_ALARM / 2
    assert fits_geometric(np.abs(others) - 1, float(coarse))
    for sign in (-1, 1):
        same = np.abs(others[np.sign(others) == sign]) - 1
        assert fits_geometric(same, float(coarse))
        assert stats.binom.sf(same.size - 1, others.size, 0.5) > FALSE_ALARM / 2


@pytest.mark.parametrize("probability", [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1, 2**40), Fraction(1)])
def test_coins_have_their_probability(probability: Fraction) -> None:
    """100,000 flips; false alarm 1e-7 per side."""
    flips = int(make_system_noise().draw_bernoulli(probability=probability, size=100_000).sum())
    assert stats.binom.cdf(flips, 100_000, float(probability)) > FALSE_ALARM
    assert stats.binom.sf(flips - 1, 100_000, float(probability)) > FALSE_ALARM


class Scripted(ExactNoise):
    """The sampler on a given stream of bytes."""

    def __init__(self, stream: bytes) -> None:
        super().__init__(self._next)
        self.stream = stream

    def _next(self, count: int) -> bytes:
        head, self.stream = self.stream[:count], self.stream[count:]
        assert len(head) == count
        return head


@pytest.mark.parametrize("probability", [Fraction(1, 3), Fraction(5, 8), Fraction(1, 256), Fraction(200, 201)])
def test_every_first_byte_is_compared_rightly(probability: Fraction) -> None:
    """All 256 first bytes: one success per whole cell below the probability; later bytes settle the tie."""
    coin = make_rational(probability)
    tie = coin.read_prefix(8)
    exact = probability * 256 == tie
    for later in (b"\xff" * 8,) if exact else (b"\x00" * 8, b"\xff" * 8):
        flips = Scripted(bytes(range(256)) + later).draw_bernoulli(probability=probability, size=256)
        assert flips.sum() == tie + (later == b"\x00" * 8)


def test_a_long_tie_is_settled_by_later_digits() -> None:
    digits = int(_Coin.from_probability(make_rational(Fraction(1, 3))).next_digits)
    tied = bytes([0x55]) + np.uint64(digits).tobytes() + (0x5555_5555_5555_5555).to_bytes(8, "big")
    assert Scripted(tied + (0x5555_5555_5555_5554).to_bytes(8, "big")).draw_bernoulli(
        probability=Fraction(1, 3), size=1
    )[0]
    assert not Scripted(tied + (0x5555_5555_5555_5556).to_bytes(8, "big")).draw_bernoulli(
        probability=Fraction(1, 3), size=1
    )[0]


def test_seeded_noise_repeats_and_system_noise_does_not() -> None:
    first, second = (SeededNoise(3).draw_discrete_laplace(rate=Fraction(1, 100), size=50) for _ in range(2))
    assert (first == second).all()
    system = make_system_noise()
    one, other = (system.draw_discrete_laplace(rate=Fraction(1, 10**6), size=50) for _ in range(2))
    assert (one != other).any()


def test_the_product_draws_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, drawn = [], os.urandom

    def urandom(size: int) -> bytes:
        asked.append(size)
        return drawn(size)

    monkeypatch.setattr(random_bytes, "os", os)  # not the bytes that tests repeat
    monkeypatch.setattr(os, "urandom", urandom)
    make_system_noise().draw_discrete_laplace(rate=Fraction(1, 4), size=9)
    assert sum(asked) >= 9


def test_rates_outside_the_range_are_refused() -> None:
    for rate in (LEAST_RATE / 2, GREATEST_RATE + 1, Fraction(0)):
        with pytest.raises(Unachievable):
            make_system_noise().draw_discrete_laplace(rate=rate, size=1)
        with pytest.raises(Unachievable):
            make_system_noise().draw_geometric(rate=rate, size=1)


def test_no_keys_no_draws() -> None:
    assert make_system_noise().draw_discrete_laplace(rate=Fraction(1), size=0).shape == (0,)
    assert make_system_noise().draw_geometric(rate=Fraction(1), size=0).shape == (0,)
    moved = certify_changed_noise(coarse=Fraction(1), fine=Fraction(2))
    assert make_system_noise().draw_thinned_laplace(rate=Fraction(1), nonzero=moved, size=0).shape == (0,)
    assert make_system_noise().draw_bernoulli(probability=Fraction(1, 2), size=0).shape == (0,)


def fits_geometric(draws: Integers, rate: float) -> bool:
    """A chi-square test in forty cells about equally likely, of `P(G >= n) = exp(-rate n)`."""
    edges = sorted({max(1, round(-math.log1p(-place / 40) / rate)) for place in range(1, 40)})
    counts = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(edges) + 1)
    expected = -np.diff([1.0, *(math.exp(-rate * edge) for edge in edges), 0.0]) * draws.size
    return bool(stats.chisquare(counts, expected, sum_check=False).pvalue > FALSE_ALARM)


@pytest.mark.parametrize("rate", ["1/281474976710656", "1/1000", "1/20", "1/2", "289/100"])
def test_one_sided_draws_follow_the_geometric_law(rate: str) -> None:
    """100,000 draws in forty cells; false alarm 1e-7 per case (chi-square)."""
    draws = SeededNoise(12).draw_geometric(rate=Fraction(rate), size=100_000)
    assert draws.dtype == np.int64
    assert draws.min() >= 0
    assert fits_geometric(draws, float(Fraction(rate)))


def test_the_check_notices_a_wrong_one_sided_rate() -> None:
    """Noise drawn 4 % too small is found out; missed with probability below 1e-9."""
    assert not fits_geometric(SeededNoise(5).draw_geometric(rate=Fraction(104, 1000), size=200_000), 0.1)


@pytest.mark.parametrize("rate", [Fraction(1, 50), Fraction(1, 2), Fraction(3)])
def test_low_digits_of_one_sided_draws_are_right_one_by_one(rate: Fraction) -> None:
    """100,000 draws, each integer up to ten its own cell; false alarm 1e-7 per value, 11 values per case."""
    size = 100_000
    draws = SeededNoise(13).draw_geometric(rate=rate, size=size)
    for value in range(11):
        count = int((draws == value).sum())
        chance = -math.expm1(-float(rate)) * math.exp(-float(rate) * value)
        assert stats.binom.cdf(count, size, chance) > FALSE_ALARM / 2
        assert stats.binom.sf(count - 1, size, chance) > FALSE_ALARM / 2
