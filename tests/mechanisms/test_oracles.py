"""Every distribution drawn in mechanisms/ against an oracle that shares no code with it.

| drawn in | what | oracle | in, in the folder of its name |
|---|---|---|---|
| noise/exact.py | discrete Laplace | its law; OpenDP's sampler; dp-accounting's privacy loss | test_exact |
| noise/exact.py | rational coins | binomial; every first byte by hand | test_exact |
| noise/exact.py | irrational coins | decimal arithmetic; binomial | test_certified, test_gradual_release |
| noise/exact.py | words of random bits | every word in decimal arithmetic | test_inversion |
| noise/gradual_release.py | chains, refinement | convolution: rational pairs, three levels | test_gradual_release |
| keyhole/run_once.py | noise and tie | sums of the law; the linear programme | test_one_shot |
| keyhole/run_looks.py | last tie | enumeration | test_progressive |
| keyhole/noisy_values.py | looks | dynamic programming; enumeration | test_three_zone, test_progressive |
| keyhole/noisy_cells.py | every sum of every cell | convolution; cells written out one by one | test_cell_readings |
| keyhole/common_sums.py | both sums of a mean, ties | convolution; the joint law by enumeration | test_common_sums |
| ranking/run.py | values, look by look | enumeration; the law by hand | test_tiny_worlds, test_worst_cases |
| alarm/run.py | digits of a uniform number | the law in fractions; chosen digits | test_run, test_worst_cases |
| standing/sliding_noise.py | noise of ticks and blocks | both rates at the worst case | test_sliding_noise |
| streams/perturber.py | counts and sums of ticks | given draws at recorded rates | test_pegasus, test_hierarchies |
| streams/grouper.py | thresholds, deviations | all partitions by enumeration; integrals | test_grouper |
| streams/signed_tree.py | nodes of a tree | linear programmes over the draws | test_trees |
| risk/reconstruction.py | made-up counts | published figures; the bound | test_reconstruction |
| risk/attack_confidence.py | made-up answers and values | the bound of two presences; shares by hand | test_attackers |
| publishing/contingency_table.py | counts of cells | their law; an audit | test_contingency_table |
| publishing/sampled_perturbation.py | how many are kept | unbiased estimates on average | test_perturbation |
| publishing/binomials.py | coins, each by itself | means and sizes at many draws | test_perturbation |
| diagnostics/score_histogram.py | counts by bin and outcome | their law | test_score_histogram |
| diagnostics/residual_grid.py | cells of a grid | little noise: the rows themselves | test_published |
| diagnostics/interval_partition.py | costs, totals | all partitions; recorded rates; an audit | test_published |
| diagnostics/pribrp.py | sizes, sums | recorded rates; an audit | test_published |
| diagnostics/recursive_medians.py | digits of a uniform number | densities of Cauchy's law | test_private_edges |
| published/progressive_looks.py | looks by refinement | enumeration of the path, here | test_looks |
| published/sparse_vector.py | threshold, queries | convolution; law of the first positive, here | test_sparse_vector |
| published/probe.py | two phases | the contract at worst-case data; refinement as above | test_probe |

What several values reveal together (joint_loss.py) is dp-accounting's composition. False-alarm rates are stated by each
test; they sum to below 1e-6.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

import mechanisms
from mechanisms.formula import Cut, Integers
from mechanisms.noise.discrete_laplace import compute_mass
from mechanisms.noise.exact import make_system_noise
from mechanisms.noise.gradual_release import draw_chain, refine_noise
from mechanisms.protocol import DecisionTask
from mechanisms.published.ppwlm import Ppwlm
from mechanisms.published.progressive_looks import PlannedLooks, decide_look_by_look, make_last_look
from mechanisms.published.sparse_vector import run_sparse_vector
from mechanisms.threshold.joint_loss import compute_joint_loss, expose_all_functionals, expose_functional_sets
from tests.mechanisms.threshold.crossing_by_hand import Flags, outcomes

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

FALSE_ALARM = 1e-8
Floats = npt.NDArray[np.float64]

GRID = 2.0**-13
EPSILONS = (0.0, 0.125, 0.375, 0.75, 1.0625, 1.875)


def test_every_file_that_draws_is_in_the_table() -> None:
    assert mechanisms.__file__ is not None
    drawn = r"noise\.draw_(discrete_laplace|bernoulli|bernoulli_by_digits)\("
    draws = re.compile(drawn + r"|\b(draw_chain|refine_noise)\(.*noise=")
    house = Path(mechanisms.__file__).parent
    files = {str(path.relative_to(house)) for path in house.rglob("*.py") if draws.search(path.read_text())}
    assert __doc__ is not None
    listed = {line.split("|")[1].strip() for line in __doc__.splitlines() if line.startswith("| ")} - {"drawn in"}
    assert files | {"noise/exact.py"} == listed


def accountant_of(rate: float, sensitivity: int = 1) -> PrivacyLossDistribution:
    """Rates and epsilons below are multiples of its grid, so that it rounds nothing."""
    # here, since every process of the tests reads this file and few run this
    from dp_accounting.pld.privacy_loss_distribution import from_discrete_laplace_mechanism

    return from_discrete_laplace_mechanism(rate, sensitivity, value_discretization_interval=GRID)


def law(rate: float, values: Integers) -> Floats:
    a = math.exp(-rate)
    return np.asarray((1 - a) / (1 + a) * np.exp(-rate * np.abs(values)))


def increment(coarse: float, fine: float, values: Integers) -> Floats:
    """What is added to the finer noise."""
    a1, a2 = math.exp(-coarse), math.exp(-fine)
    stays = ((1 - a1) / (1 - a2)) ** 2 * a2 / a1
    return np.where(values == 0, stays, 0.0) + (1 - stays) * law(coarse, values)


def hockey_stick(here: Floats, there: Floats, epsilon: float) -> float:
    return float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum())


@pytest.mark.parametrize(("rate", "sensitivity"), [(0.5, 1), (0.25, 3), (1.125, 1), (0.0625, 7)])
def test_one_value_loses_what_dp_accounting_says(rate: float, sensitivity: int) -> None:
    """Deterministic: the largest loss, and the privacy curve below it, of the product's law."""
    accountant = accountant_of(rate, sensitivity)
    claimed = float(compute_joint_loss([Fraction(rate) * sensitivity], expose_all_functionals(1)))
    assert accountant.get_epsilon_for_delta(0.0) == pytest.approx(claimed, abs=1e-9)
    reach = math.ceil(40 / rate)
    values = range(-reach, reach + sensitivity + 1)
    here, there = (np.array([compute_mass(rate, value - moved) for value in values]) for moved in (0, sensitivity))
    for epsilon in EPSILONS:
        assert hockey_stick(here, there, epsilon) == pytest.approx(
            accountant.get_delta_for_epsilon(epsilon), rel=1e-6, abs=1e-9
        )


def test_two_values_lose_what_dp_accounting_composes() -> None:
    """Deterministic: functionals changed together lose the sum, and no less; apart the larger."""
    rates = (0.375, 0.75)
    first, second = (accountant_of(rate) for rate in rates)
    both = first.compose(second)
    losses = [Fraction(rate) for rate in rates]
    together = float(compute_joint_loss(losses, expose_all_functionals(2)))
    assert both.get_epsilon_for_delta(0.0) == pytest.approx(together, abs=1e-9)
    apart = float(compute_joint_loss(losses, expose_functional_sets(((0,), (1,)), functionals=2)))
    assert apart == pytest.approx(max(part.get_epsilon_for_delta(0.0) for part in (first, second)), abs=1e-9)
    values = np.arange(-100, 101)
    here, there = (
        np.multiply.outer(*(np.array([compute_mass(rate, int(value) - moved) for value in values]) for rate in rates))
        for moved in (0, 1)
    )
    for epsilon in EPSILONS:
        assert hockey_stick(here, there, epsilon) == pytest.approx(
            both.get_delta_for_epsilon(epsilon), rel=1e-6, abs=1e-9
        )


CHAIN = (Fraction(1, 2), Fraction(3, 4), Fraction(5, 4))


def chain_law(values: Integers) -> Floats:
    """The joint law of the noises of three levels, coarse to fine, by convolution from the finest."""
    coarse, middle, fine = (float(rate) for rate in CHAIN)
    steps = values[:, np.newaxis] - values[np.newaxis, :]
    return np.asarray(
        increment(coarse, middle, steps)[:, :, np.newaxis]
        * increment(middle, fine, steps)[np.newaxis, :, :]
        * law(fine, values)[np.newaxis, np.newaxis, :]
    )


def test_three_looks_lose_what_the_last_one_loses() -> None:
    """Deterministic: the privacy curve of the whole transcript is dp-accounting's for the finest level alone."""
    values = np.arange(-60, 61)
    here, there = chain_law(values)[1:, 1:, 1:], chain_law(values)[:-1, :-1, :-1]
    finest = accountant_of(float(CHAIN[-1]))
    for epsilon in (0.0, 0.375, 0.75, 1.125):
        assert hockey_stick(here, there, epsilon) == pytest.approx(
            finest.get_delta_for_epsilon(epsilon), rel=1e-4, abs=1e-7
        )
    assert finest.get_epsilon_for_delta(0.0) == pytest.approx(float(CHAIN[-1]), abs=1e-9)


def fits(counts: Floats, expected: Floats) -> bool:
    """Chi-square, cells below eight expected draws pooled."""
    keep = expected >= 8
    found, wanted = np.append(counts[keep], counts[~keep].sum()), np.append(expected[keep], expected[~keep].sum())
    if wanted[-1] < 8:
        found, wanted = found[:-1], wanted[:-1]
    return bool(stats.chi2.sf(float(((found - wanted) ** 2 / wanted).sum()), wanted.size - 1) > FALSE_ALARM)


def triples_fit(drawn: Integers) -> bool:
    """Draws of three levels, shape (3, size), against the joint law in cells of one integer up to four."""
    values = np.arange(-80, 81)
    place = np.clip(values, -4, 4) + 4
    expected = np.zeros((9, 9, 9))
    np.add.at(expected, np.ix_(place, place, place), chain_law(values))
    assert expected.sum() == pytest.approx(1.0, abs=1e-9)
    cells = np.clip(drawn, -4, 4) + 4
    counts = np.bincount(cells[0] * 81 + cells[1] * 9 + cells[2], minlength=729)
    return fits(counts.astype(np.float64), expected.ravel() * drawn.shape[1])


@pytest.mark.parametrize("way", ["chain", "refined twice"])
def test_three_levels_follow_their_joint_law(way: str) -> None:
    """400,000 triples in 9 x 9 x 9 cells; false alarm 1e-8 per case (chi-square)."""
    size, noise = 400_000, make_system_noise()
    if way == "chain":
        drawn = draw_chain(CHAIN, size=size, noise=noise)
    else:
        first = noise.draw_discrete_laplace(rate=CHAIN[0], size=size)
        second = refine_noise(first, coarse=CHAIN[0], fine=CHAIN[1], noise=noise)
        drawn = np.stack((first, second, refine_noise(second, coarse=CHAIN[1], fine=CHAIN[2], noise=noise)))
    assert triples_fit(drawn)


def test_the_check_of_triples_notices_fresh_noise() -> None:
    """The chi-square test has power: a third level drawn anew is missed with probability below 1e-9."""
    size, noise = 400_000, make_system_noise()
    first, second = draw_chain(CHAIN[:2], size=size, noise=noise)
    drawn = np.stack((first, second, noise.draw_discrete_laplace(rate=CHAIN[2], size=size)))
    assert not triples_fit(drawn)


@pytest.mark.parametrize("distance", [-14, -5, 0, 3, 12])
def test_refined_looks_follow_the_path_by_enumeration(distance: int) -> None:
    """60,000 keys through `decide_look_by_look`, each look a refinement: the number returned and the number that
    stopped at each level. False alarm 1e-8 per case (chi-square over levels and answers)."""
    cut = Cut(functional=0, cut=100, above=True, tolerance=12)
    task = DecisionTask(formula=cut, sensitivities=(1,), exposures=expose_all_functionals(1), fnr=0.05, fpr=0.1)
    calibration = Ppwlm(looks=4, first_epsilon=0.05).calibrate(task)
    (test,) = calibration.tests
    looks = (*test.looks, make_last_look(test))

    def zones(look: int, noise: Integers) -> tuple[Flags, Flags]:
        return noise + distance <= looks[look].rejecting, noise + distance >= looks[look].accepting

    keys = 60_000
    values = np.full((1, keys), 100 + distance, dtype=np.int64)
    outcome = decide_look_by_look(calibration, values, rule=lambda _: PlannedLooks(looks), noise=make_system_noise())
    expected, counts = [], []
    for look, chances in zip(looks, outcomes([float(look.rate) for look in looks], zones), strict=True):
        here = np.isclose(outcome.epsilon, float(look.rate), rtol=1e-9, atol=0.0)
        counts += [float((here & ~outcome.passed).sum()), float((here & outcome.passed).sum())]
        expected += [keys * chance for chance in chances]
    assert sum(counts) == keys
    assert fits(np.array(counts), np.array(expected))


def test_the_first_positive_follows_its_law() -> None:
    """300,000 streams of six queries with a limit of one: which is the first positive, if any, by convolution over the
    noisy threshold. False alarm 1e-8 (chi-square)."""
    distances, threshold_rate, query_rate = (-2, 0, 1, -1, 3, 0), Fraction(1, 2), Fraction(1, 4)
    thresholds = np.arange(-100, 101)
    span = np.arange(-400, 401)
    alive, expected = law(float(threshold_rate), thresholds), []
    for distance in distances:
        above = np.array([law(float(query_rate), span[span + distance >= t]).sum() for t in thresholds])
        expected.append((alive * above).sum())
        alive = alive * (1.0 - above)
    expected.append(alive.sum())
    streams = 300_000
    positive = run_sparse_vector(
        np.tile(np.array(distances, dtype=np.int64), (streams, 1)),
        least=0,
        threshold_rate=threshold_rate,
        query_rate=query_rate,
        most_positives=1,
        noise=make_system_noise(),
    )
    first = np.where(positive.any(axis=1), positive.argmax(axis=1), len(distances))
    counts = np.bincount(first, minlength=len(distances) + 1).astype(np.float64)
    assert positive.sum(axis=1).max() == 1
    assert fits(counts, np.array(expected) * streams)
