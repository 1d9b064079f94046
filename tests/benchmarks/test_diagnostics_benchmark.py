"""The experiments on scores: the bars that were set beforehand, the stand-in's shape, the page."""

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.diagnostics import data, experiments
from benchmarks.diagnostics.__main__ import document
from benchmarks.diagnostics.experiments import AreaRow, SeparationRow, area_by_ranks, compare_separation, measure_shape
from tests.effort import rounds
from tests.seeded_noise import SeededNoise


def test_a_quarter_of_the_stand_in_is_positive_and_scores_separate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(data.VARIABLE, raising=False)
    found = data.scored(seed=5)
    assert found.outcomes.mean() == pytest.approx(0.25, abs=0.02)
    assert area_by_ranks(found) == pytest.approx(0.9, abs=0.02)
    assert found.cells().sum() == len(found.scores)


def test_calibration_tells_a_wrong_model_at_2000(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar is .85 at n epsilon 2,000, over as many runs as there is time for; the seeds are fixed."""
    monkeypatch.setattr(experiments, "INFORMATION", (2000,))
    rows = list(compare_separation(runs=rounds(60, quick=8), seed=5, noise_of=SeededNoise))
    found = {row.method: row.separation for row in rows}
    assert found["32 bins"] >= 0.85
    assert found["32 bins"] >= found["pribrp, repaired"]


def test_a_shape_is_a_difference_of_slopes() -> None:
    scores = np.linspace(0, 1, 20)
    bent = np.where(scores < 0.5, -scores, scores)
    assert measure_shape(scores.tolist(), bent.tolist(), [1.0] * 20) == pytest.approx(2.0)
    assert measure_shape([0.1, 0.9], [1.0, 1.0], [1.0, 1.0]) == 0.0


def test_the_page_has_every_method() -> None:
    areas = [AreaRow(684, Fraction(1, 10), "16 bins", 0.01, 0.02), AreaRow(684, Fraction(1, 10), "priroc", 0.1, 0.2)]
    page = document(areas, [SeparationRow(2000, "32 bins", 0.9)], origin="made up", runs=3)
    assert "| `16 bins` | 0.0100 (0.0200) |" in page
    assert "| `32 bins` | 0.90 |" in page
