"""The joint histogram: its noise, its edges, the curves that are read from it and what they say of their own error."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from benchmarks.diagnostics.data import CELLS, Scored
from mechanisms.diagnostics.calibration_curve import compute_expected_error, make_calibration_curve
from mechanisms.diagnostics.isotonic import fit_isotonic
from mechanisms.diagnostics.roc_curve import RocCurve, make_roc_curve
from mechanisms.diagnostics.score_histogram import (
    ScoreHistogram,
    choose_bins,
    compute_laplace_variance,
    cut_cells_equally,
    release_adaptive,
    release_scores,
)
from mechanisms.formula import Integers
from mechanisms.noise.discrete_laplace import compute_mass
from tests.effort import rounds
from tests.seeded_noise import SeededNoise

FALSE_ALARM = 1e-8


def sample(*, rows: int = 3000, seed: int = 1) -> Scored:
    """Logits of a positive around .7 and of a negative around -2.4, as the stand-in for real scores has them."""
    generator = np.random.default_rng(seed)
    outcomes = (generator.random(rows) < 0.25).astype(np.int64)
    logits = np.where(outcomes == 1, 0.7, -2.4) + generator.normal(0, 1.7, rows)
    return Scored(1 / (1 + np.exp(-logits)), outcomes, "drawn")


def area_by_ranks(scored: Scored) -> float:
    ranks = stats.rankdata(scored.scores)
    positives = int(scored.outcomes.sum())
    negatives = len(ranks) - positives
    above = float(ranks[scored.outcomes == 1].sum()) - positives * (positives + 1) / 2
    return above / (positives * negatives)


def released(counts: Integers, *, bins: int, epsilon: str, seed: int, most_rows: int = 1) -> ScoreHistogram:
    edges = cut_cells_equally(len(counts), bins=bins)
    return release_scores(counts, edges=edges, epsilon=Fraction(epsilon), most_rows=most_rows, noise=SeededNoise(seed))


def curve(histogram: ScoreHistogram) -> RocCurve:
    found = make_roc_curve(histogram)
    assert found is not None
    return found


def test_noise_of_the_whole_epsilon_stands_on_each_count() -> None:
    """20,000 counts: chi-square against the law of rate epsilon / rows. False alarm 1e-8."""
    counts = np.full((10_000, 2), 7)
    found = release_scores(
        counts, edges=tuple(range(10_001)), epsilon=Fraction(3, 2), most_rows=3, noise=SeededNoise(4)
    )
    drawn = (found.counts - counts).ravel()
    reach = 8
    seen = [int(np.sum(drawn == value)) for value in range(-reach, reach + 1)]
    expected = [20_000 * compute_mass(0.5, value) for value in range(-reach, reach + 1)]
    rest = (20_000 - sum(seen), 20_000 - sum(expected))
    assert stats.chisquare([*seen, rest[0]], [*expected, rest[1]]).pvalue > FALSE_ALARM
    assert found.variance == compute_laplace_variance(0.5) == pytest.approx(2 * np.exp(-0.5) / (1 - np.exp(-0.5)) ** 2)


def test_bins_are_sums_of_cells() -> None:
    counts = np.arange(20).reshape(10, 2)
    found = released(counts, bins=4, epsilon="60", seed=1)
    assert found.edges == (0, 2, 5, 8, 10)
    assert found.counts.tolist() == [[2, 4], [18, 21], [36, 39], [34, 36]]
    assert cut_cells_equally(3, bins=16) == (0, 1, 2, 3)


@pytest.mark.parametrize(("rows", "epsilon", "bins"), [(684, 0.5, 16), (3000, 1.0, 32), (30_000, 1.0, 64)])
def test_how_many_bins(rows: int, epsilon: float, bins: int) -> None:
    assert choose_bins(rows, epsilon=epsilon) == bins


@pytest.mark.parametrize(
    ("bins", "epsilon", "printed"), [(32, "0.3", 0.0083), (32, "1", 0.0024), (64, "0.3", 0.0116), (64, "1", 0.0033)]
)
def test_the_area_knows_its_error(bins: int, epsilon: str, printed: float) -> None:
    """3,000 rows: what the curve says of its error is what repetitions show, to within a quarter, and what is printed.

    Of 100 runs (quick) the standard deviation is known to 7 %; a quarter is three and a half times that, and the seeds
    are fixed.
    """
    counts = sample().count_cells()
    found = [curve(released(counts, bins=bins, epsilon=epsilon, seed=seed)) for seed in range(rounds(400, quick=100))]
    told = float(np.mean([one.noise_sd for one in found]))
    assert told == pytest.approx(float(np.std([one.area for one in found])), rel=0.25)
    assert told == pytest.approx(printed, rel=0.2)


@pytest.mark.parametrize("epsilon", ["0.3", "1"])
def test_the_rates_know_their_errors(epsilon: str) -> None:
    """Between the first tenth and the last, where cumulative counts seldom have to be made to rise, what the curve says
    of its points is what repetitions show, to within a quarter, in the root mean square; the ends are exact."""
    counts = sample().count_cells()
    found = [curve(released(counts, bins=32, epsilon=epsilon, seed=seed)) for seed in range(rounds(400, quick=100))]
    for name, of_rates in (("false_sds", "false_positives"), ("true_sds", "true_positives")):
        rates = np.array([getattr(one, of_rates) for one in found])
        told = np.sqrt(np.mean([getattr(one, name) ** 2 for one in found], axis=0))
        inner = (rates.mean(axis=0) > 0.1) & (rates.mean(axis=0) < 0.9)
        assert inner.sum() >= 4
        shown = np.sqrt(np.mean(rates.std(axis=0)[inner] ** 2))
        assert np.sqrt(np.mean(told[inner] ** 2)) == pytest.approx(shown, rel=0.25)
        assert [getattr(one, name)[[0, -1]].tolist() for one in found] == [[0.0, 0.0]] * len(found)


def test_the_bias_of_bins_is_bounded() -> None:
    """Without noise (epsilon 60) the area differs from that of the ranks by no more than the curve says."""
    for seed in range(20):
        scored = sample(rows=400, seed=seed)
        for bins in (4, 16, 64):
            found = curve(released(scored.count_cells(), bins=bins, epsilon="60", seed=1))
            assert abs(found.area - area_by_ranks(scored)) <= found.binning_bias + 1e-9


def test_a_curve_rises_from_nothing_to_all() -> None:
    for seed in range(20):
        found = curve(released(sample(rows=300).count_cells(), bins=32, epsilon="0.5", seed=seed))
        for shares in (found.false_positives, found.true_positives):
            assert (shares[0], shares[-1]) == (0.0, 1.0)
            assert np.all(np.diff(shares) >= 0)
        assert found.edges[0] == CELLS
        assert found.edges[-1] == 0
        assert 0 <= found.separation <= 1
        assert np.all((found.precision >= 0) & (found.precision <= 1))


def test_without_rows_there_is_no_curve() -> None:
    empty = ScoreHistogram((0, 1, 2), np.array([[0.0, -3.0], [2.0, 0.0]]), 1.0)
    assert make_roc_curve(empty) is None
    assert make_calibration_curve(empty, middles=(0.25, 0.75), epsilon_per_count=1.0) == ()
    assert compute_expected_error(()) is None


def test_saturated_scores_are_told_and_adaptive_edges_help() -> None:
    """Scores to the twelfth power: most lie in the first equal bin. On a grid of logits medians of medians split them.

    The mean error of 20 seeded runs with adaptive edges is at most half of that with equal bins.
    """
    scored = sample()
    saturated = Scored(scored.scores**12, scored.outcomes, "saturated")
    equal = [curve(released(saturated.count_cells(), bins=32, epsilon="1", seed=seed)) for seed in range(20)]
    assert all(one.is_saturated for one in equal)
    logits = np.clip(np.log(saturated.scores) - np.log1p(-saturated.scores), -16, 16)
    spread = Scored((logits + 16) / 32 * (1 - 1e-12), scored.outcomes, "spread").count_cells()
    adaptive = [
        curve(release_adaptive(spread, epsilon=Fraction(1), most_rows=1, noise=SeededNoise(seed))) for seed in range(20)
    ]
    truth = area_by_ranks(scored)
    errors = [float(np.mean([abs(one.area - truth) for one in found])) for found in (equal, adaptive)]
    assert errors[1] <= errors[0] / 2


def test_a_calibrated_model_stays_within_its_bands() -> None:
    """Outcomes drawn from their scores: 95 of 100 bins within the band; of some 300 bins and more at least 90 are, and
    of a model whose scores are a fifth off fewer than 70. The seeds are fixed."""
    within = []
    for shift in (0.0, 0.2):
        inside: list[bool] = []
        for seed in range(20):
            generator = np.random.default_rng(seed)
            scores = generator.uniform(0, 1, 4000)
            outcomes = (generator.random(4000) < np.clip(scores + shift, 0, 1)).astype(np.int64)
            histogram = released(Scored(scores, outcomes, "drawn").count_cells(), bins=16, epsilon="1", seed=seed)
            middles = [(place + 0.5) / 16 for place in range(16)]
            inside += [
                not one.is_outside_band
                for one in make_calibration_curve(histogram, middles=middles, epsilon_per_count=1.0)
            ]
        within.append(float(np.mean(inside)))
    assert within[0] > 0.9
    assert within[1] < 0.7


def test_calibrated_bins_have_rows_enough_and_cover_all() -> None:
    histogram = ScoreHistogram((0, 2, 4, 6, 8), np.array([[9.0, 1.0], [30.0, 10.0], [4.0, 30.0], [1.0, 1.0]]), 2.0)
    found = make_calibration_curve(histogram, middles=(1, 3, 5, 7), epsilon_per_count=1.0)
    assert [(one.low, one.high, one.rows) for one in found] == [(0, 4, 50.0), (4, 8, 36.0)]
    assert [one.outcome for one in found] == [11 / 50, 31 / 36]
    assert found[0].score == (10 * 1 + 40 * 3) / 50
    assert compute_expected_error(found) == pytest.approx(
        (50 * abs(found[0].residual) + 36 * abs(found[1].residual)) / 86
    )


def test_isotonic_is_the_nearest_that_does_not_fall() -> None:
    generator = np.random.default_rng(3)
    for _ in range(50):
        values = generator.normal(0, 1, int(generator.integers(1, 9)))
        found = fit_isotonic(values)
        assert np.all(np.diff(found) >= -1e-12)
        minimax = [
            max(
                min(float(np.mean(values[low : high + 1])) for high in range(place, len(values)))
                for low in range(place + 1)
            )
            for place in range(len(values))
        ]
        assert found == pytest.approx(minimax)


def test_edges_that_do_not_rise_are_refused() -> None:
    with pytest.raises(ValueError, match="rise"):
        ScoreHistogram((0, 2, 2), np.zeros((2, 2)), 1.0)
    with pytest.raises(ValueError, match="two counts"):
        ScoreHistogram((0, 2, 4), np.zeros((3, 2)), 1.0)
