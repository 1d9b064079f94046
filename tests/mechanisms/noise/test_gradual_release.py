"""Gradual release: marginals, joint law and loss of a chain, and refinement of stored noise."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from mechanisms.certified import certify_noise_not_risen, certify_unchanged_noise
from mechanisms.formula import Integers
from mechanisms.noise.discrete_laplace import compute_lower_tail, compute_mass, compute_upper_tail
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE, ExactNoise, make_system_noise
from mechanisms.noise.gradual_release import draw_chain, refine_noise
from mechanisms.protocol import Unachievable
from tests.seeded_noise import SeededNoise

FALSE_ALARM = 1e-8
Floats = npt.NDArray[np.float64]

PARAMETERS = [
    (Fraction(1, 2), Fraction(1, 4)),
    (Fraction(9, 10), Fraction(4, 5)),
    (Fraction(3, 4), Fraction(1, 100)),
    (Fraction(99, 100), Fraction(98, 100)),
]
RATES = [
    (Fraction(1, 10), Fraction(1, 5)),
    (Fraction(1, 2), Fraction(3)),
    (Fraction(1), Fraction(11, 10)),
    (Fraction(1, 3), Fraction(34, 100)),
]


def staying(a1: Fraction, a2: Fraction) -> Fraction:
    return ((1 - a1) / (1 - a2)) ** 2 * a2 / a1


def laplace(a: Fraction, value: int) -> Fraction:
    return (1 - a) / (1 + a) * a ** abs(value)


def joint(a1: Fraction, a2: Fraction, coarse: int, fine: int) -> Fraction:
    """`P(V1 = coarse, V2 = fine)` of the chain, in rationals."""
    stays = staying(a1, a2)
    return laplace(a2, fine) * (stays * (coarse == fine) + (1 - stays) * laplace(a1, coarse - fine))


def three_parts(a1: Fraction, a2: Fraction, v: int, value: int) -> Fraction:
    """`P(V2 = value | V1 = v)`, `v >= 0`, as docs/proofs/gradual_release.md states it."""
    r, s = a2 / a1, a1 * a2
    atom = r ** (v + 1) * (1 - a1**2) / (1 - a2**2)
    left, middle, right = s / (1 - s), sum(r**t for t in range(v + 1)), r**v * s / (1 - s)
    if value < 0:
        part = left * (1 - s) * s ** (-1 - value)
    elif value <= v:
        part = r**value
    else:
        part = right * (1 - s) * s ** (value - v - 1)
    return atom * (value == v) + (1 - atom) * part / (left + middle + right)


def as_drawn(a1: Fraction, a2: Fraction, v: int, value: int) -> Fraction:
    """The law that `refine` draws from, its geometric series summed."""
    r, s = a2 / a1, a1 * a2
    if value < v:
        least = max(0, -value)
        return (1 - s) * (1 - r) * s**least * r ** (value + least) / (1 - s * r)
    stays = (1 - a1**2) * r / (1 - s)
    return (1 - s) * r**v / (1 - s * r) * (stays * (value == v) + (1 - stays) * (1 - s) * s ** (value - v))


@pytest.mark.parametrize(("a1", "a2"), PARAMETERS)
def test_the_mixture_convolved_with_the_fine_law_is_the_coarse_law(a1: Fraction, a2: Fraction) -> None:
    """Exact: fine = coarse / (mixture) as generating functions, checked coefficient by coefficient in rationals."""
    stays = staying(a1, a2)
    assert 0 < stays < 1
    for value in range(30):
        # sum over t of a2^|t| a1^|value - t| in closed form
        s, r = a1 * a2, a2 / a1
        overlap = a1**value * (sum(r**t for t in range(value + 1)) + s / (1 - s) * (1 + r**value))
        convolved = (1 - a1) / (1 + a1) * (1 - a2) / (1 + a2) * overlap
        assert stays * laplace(a2, value) + (1 - stays) * convolved == laplace(a1, value)


@pytest.mark.parametrize(("a1", "a2"), PARAMETERS)
def test_three_parts_are_the_conditional_law(a1: Fraction, a2: Fraction) -> None:
    """Exact, in rationals, by Bayes from the joint law of the chain."""
    for v, value in itertools.product(range(8), range(-12, 20)):
        assert three_parts(a1, a2, v, value) == joint(a1, a2, v, value) / laplace(a1, v)


@pytest.mark.parametrize(("a1", "a2"), PARAMETERS)
def test_what_is_drawn_is_the_conditional_law(a1: Fraction, a2: Fraction) -> None:
    """Exact, in rationals: the construction that `refine` draws from is what the chain implies."""
    for v, value in itertools.product(range(8), range(-12, 20)):
        assert as_drawn(a1, a2, v, value) == three_parts(a1, a2, v, value)


@pytest.mark.parametrize(("a1", "a2"), PARAMETERS)
def test_both_looks_together_lose_the_last_level_alone(a1: Fraction, a2: Fraction) -> None:
    """Exact: between neighbours the joint law of two looks changes by at most `1 / a2`, and that is attained."""
    worst = Fraction(0)
    for coarse, fine in itertools.product(range(-6, 7), repeat=2):
        ratio = joint(a1, a2, coarse, fine) / joint(a1, a2, coarse + 1, fine + 1)
        worst = max(worst, ratio, 1 / ratio)
    assert worst == 1 / a2


def test_certified_digits_agree_with_decimal_arithmetic() -> None:
    pairs = [(LEAST_RATE, 2 * LEAST_RATE), (Fraction(1, 3), Fraction(5, 7)), (Fraction(1), GREATEST_RATE)]
    with localcontext() as context:
        context.prec = 160
        for coarse, fine in [*pairs, (LEAST_RATE, GREATEST_RATE)]:
            a1, a2 = ((-Decimal(rate.numerator) / Decimal(rate.denominator)).exp() for rate in (coarse, fine))
            same = ((1 - a1) / (1 - a2)) ** 2 * a2 / a1
            stays = (1 - a1**2) / (1 - a1 * a2) * a2 / a1
            for bits in (8, 72, 136, 300):
                assert certify_unchanged_noise(coarse=coarse, fine=fine).read_prefix(bits) == int(
                    same * Decimal(2) ** bits
                )
                assert certify_noise_not_risen(coarse=coarse, fine=fine).read_prefix(bits) == int(
                    stays * Decimal(2) ** bits
                )


def cells(draws: Integers, edges: list[int]) -> Integers:
    return np.searchsorted(edges, draws, side="right")


def edges_of(rate: float) -> list[int]:
    spread = max(1.0, 1.0 / rate)
    return sorted({round(spread * step) for step in (-4, -2.5, -1.5, -0.8, -0.3, 0, 0.3, 0.8, 1.5, 2.5, 4)} | {0, 1})


def cell_law(rate: float, edges: list[int]) -> Floats:
    below = [compute_lower_tail(rate, edge - 1) for edge in edges]
    return np.array([*np.diff([0.0, *below]), compute_upper_tail(rate, edges[-1])])


def fits(counts: Integers, law: Floats) -> bool:
    expected = law * counts.sum()
    keep = expected >= 8
    pooled = np.append(expected[keep], expected[~keep].sum())
    found = np.append(counts[keep], counts[~keep].sum())
    if pooled[-1] < 8:
        pooled, found = pooled[:-1], found[:-1]
    statistic = float(((found - pooled) ** 2 / pooled).sum())
    return bool(stats.chi2.sf(statistic, pooled.size - 1) > FALSE_ALARM)


def conditional_cells(coarse: float, fine: float, value: int, edges: list[int]) -> Floats:
    """The law of the fine noise given the coarse one, in cells, by summing the joint law of the chain."""
    reach = math.ceil(45.0 / fine) + abs(value)
    points = np.arange(-reach, reach + 1)
    a1, a2 = math.exp(-coarse), math.exp(-fine)
    stays = ((1 - a1) / (1 - a2)) ** 2 * a2 / a1
    weights = np.exp(-fine * np.abs(points) - coarse * np.abs(value - points)) * (1 - stays) * (1 - a1) / (1 + a1)
    weights += np.where(points == value, stays * np.exp(-fine * np.abs(points)), 0.0)
    law = np.bincount(cells(points, edges), weights=weights, minlength=len(edges) + 1)
    return np.asarray(law / law.sum())


@pytest.mark.parametrize("noise", [SeededNoise(31), make_system_noise()])
def test_every_level_of_a_chain_follows_its_own_law(noise: ExactNoise) -> None:
    """200,000 chains over five decades of rates; false alarm 1e-8 per level (chi-square), 7 levels."""
    rates = [Fraction(1, 10**5), Fraction(1, 1000), Fraction(1, 20), Fraction(1, 19), Fraction(1, 2), Fraction(5)]
    chain = draw_chain(rates, size=200_000, noise=noise)
    assert chain.shape == (6, 200_000)
    assert chain.dtype == np.int64
    for rate, level in zip(rates, chain, strict=True):
        edges = edges_of(float(rate))
        counts = np.bincount(cells(level, edges), minlength=len(edges) + 1)
        assert fits(counts, cell_law(float(rate), edges))


@pytest.mark.parametrize(("coarse", "fine"), RATES)
@pytest.mark.parametrize("way", ["chain", "refine"])
def test_pairs_follow_the_joint_law(coarse: Fraction, fine: Fraction, way: str) -> None:
    """400,000 pairs; for each coarse value -3 .. 3 the finer one in cells. False alarm 1e-8 per coarse value, 7."""
    noise = make_system_noise()
    if way == "chain":
        first, second = draw_chain([coarse, fine], size=400_000, noise=noise)
    else:
        first = noise.draw_discrete_laplace(rate=coarse, size=400_000)
        second = refine_noise(first, coarse=coarse, fine=fine, noise=noise)
    edges = sorted({*range(-4, 6), *edges_of(float(fine))})
    for value in range(-3, 4):
        counts = np.bincount(cells(second[first == value], edges), minlength=len(edges) + 1)
        assert fits(counts, conditional_cells(float(coarse), float(fine), value, edges))


def test_the_pair_check_notices_fresh_noise() -> None:
    """The check has power: independent noise at both levels is found out (missed with probability below 1e-9)."""
    coarse, fine = RATES[0]
    noise = make_system_noise()
    first, second = (noise.draw_discrete_laplace(rate=rate, size=400_000) for rate in (coarse, fine))
    edges = sorted({*range(-4, 6), *edges_of(float(fine))})
    counts = np.bincount(cells(second[first == 2], edges), minlength=len(edges) + 1)
    assert not fits(counts, conditional_cells(float(coarse), float(fine), 2, edges))


def test_refinement_composes_with_the_chain_and_with_itself() -> None:
    """300,000 values: a chain's last level refined twice; every joint of neighbours and the last marginal fit.
    False alarm 1e-8 per check, 3 checks."""
    rates = [Fraction(1, 8), Fraction(1, 5), Fraction(1, 3), Fraction(2, 3)]
    noise = make_system_noise()
    first, second = draw_chain(rates[:2], size=300_000, noise=noise)
    third = refine_noise(second, coarse=rates[1], fine=rates[2], noise=noise)
    fourth = refine_noise(third, coarse=rates[2], fine=rates[3], noise=noise)
    edges = edges_of(float(rates[3]))
    assert fits(np.bincount(cells(fourth, edges), minlength=len(edges) + 1), cell_law(float(rates[3]), edges))
    # given the third value, the fourth does not depend on the first: compare halves split by the first
    middle = third == 1
    for value in (0, 1):
        at = fourth[middle] == value
        high = first[middle] > second[middle]
        table = [[int((at & high).sum()), int((~at & high).sum())], [int((at & ~high).sum()), int((~at & ~high).sum())]]
        assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


def test_refinement_keeps_shapes_and_large_values() -> None:
    """At a rate beyond 30 a fine value other than zero has probability below 1e-12 per draw."""
    value = np.array([[0, -(10**15)], [10**15, 7]])
    finer = refine_noise(value, coarse=Fraction(1, 10**12), fine=Fraction(30), noise=make_system_noise())
    assert finer.shape == value.shape
    assert np.abs(finer).max() == 0
    high = refine_noise(np.array([0]), coarse=GREATEST_RATE - 1, fine=GREATEST_RATE, noise=make_system_noise())
    assert high.tolist() == [0]


def test_chance_of_no_change_is_the_certified_one() -> None:
    """500,000 refinements of zero; false alarm 1e-8 per side."""
    coarse, fine = Fraction(1, 4), Fraction(1, 3)
    stays = float(Fraction(certify_unchanged_noise(coarse=coarse, fine=fine).read_prefix(60), 1 << 60))
    expected = (stays + (1 - stays) * compute_mass(0.25, 0)) * compute_mass(1 / 3, 0) / compute_mass(0.25, 0)
    finer = refine_noise(np.zeros(500_000, dtype=np.int64), coarse=coarse, fine=fine, noise=make_system_noise())
    same = int((finer == 0).sum())
    assert stats.binom.cdf(same, 500_000, expected) > FALSE_ALARM
    assert stats.binom.sf(same - 1, 500_000, expected) > FALSE_ALARM


def test_unordered_rates_and_rates_out_of_range_are_refused() -> None:
    noise = make_system_noise()
    for rates in ([], [Fraction(1), Fraction(1)], [Fraction(2), Fraction(1)]):
        with pytest.raises(ValueError, match="increase"):
            draw_chain(rates, size=1, noise=noise)
    with pytest.raises(ValueError, match="increase"):
        refine_noise(np.zeros(1, dtype=np.int64), coarse=Fraction(1), fine=Fraction(1), noise=noise)
    with pytest.raises(Unachievable):
        refine_noise(np.zeros(1, dtype=np.int64), coarse=Fraction(1), fine=GREATEST_RATE + 1, noise=noise)
    with pytest.raises(Unachievable):
        draw_chain([LEAST_RATE / 2, Fraction(1)], size=1, noise=noise)


def test_no_values_no_draws() -> None:
    noise = make_system_noise()
    assert draw_chain([Fraction(1), Fraction(2)], size=0, noise=noise).shape == (2, 0)
    assert refine_noise(np.zeros(0, dtype=np.int64), coarse=Fraction(1), fine=Fraction(2), noise=noise).shape == (0,)
