"""The experiments on streams: data of the printed shapes, measures against their definitions, every figure drawn."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.experiments.taxi import VARIABLE
from benchmarks.streams import data, events, experiments
from benchmarks.streams.__main__ import FIGURES, draw, write
from benchmarks.streams.events import CLOSE, EVERY_TICK, calibrate_close
from benchmarks.streams.experiments import BUSY, PRINTED, Job, measure_picture
from benchmarks.streams.measures import (
    WindowSums,
    compute_area_under_curve,
    compute_changes,
    compute_curve,
    compute_found_share,
    compute_scaled_error,
    estimate_counts,
    sum_windows,
)
from benchmarks.streams.page import COUNTS, CURVES, EVENTS, HIERARCHY, SMOOTHERS, AboutStreams
from benchmarks.streams.rows import EPSILONS, PEGASUS, SLIDING, ZEROS, Row
from benchmarks.streams.sliding import choose_block, release_window_sums
from mechanisms.formula import Cut
from mechanisms.standing.window_noise import shape_window
from mechanisms.streams.pegasus import Pegasus, PegasusState
from mechanisms.streams.stream import Tick
from mechanisms.streams.stream_names import SMOOTHERS as BY_NAME
from mechanisms.streams.window_sum import WindowGroups, WindowSumSmoother
from tests.effort import is_quick

SEED = 5
MADE_UP = data.Stream(BUSY, np.tile([0, 0, 1, 2, 40, 41], 10), "made up")


def test_stand_ins_have_the_printed_totals_a_tick() -> None:
    """Over four weeks within a quarter: rates follow a shock of 40 % that is forgotten in hours. The seed is fixed."""
    for stream in data.draw_stand_ins(seed=SEED):
        assert stream.counts.size == data.TICKS
        assert stream.counts.min() >= 0
        assert stream.counts.sum() / data.TICKS == pytest.approx(
            data.TOTALS[stream.name] / data.PRINTED_TICKS, rel=0.25
        )
    again, other = (data.draw_stand_ins(seed=seed)[2].counts for seed in (SEED, SEED + 1))
    assert np.array_equal(again, data.draw_stand_ins(seed=SEED)[2].counts)
    assert not np.array_equal(again, other)


def test_a_hierarchy_has_128_streams_of_all_sizes() -> None:
    counts = data.draw_hierarchy(seed=SEED, ticks=2 * data.TICKS_A_DAY)
    totals = counts.sum(axis=0)
    assert counts.shape == (2 * data.TICKS_A_DAY, 128)
    assert totals.max() > 20 * np.median(totals)


def test_real_sales_come_by_hour() -> None:
    stream = data.count_sales_by_hour()
    assert stream.counts.sum() == 531_285
    assert stream.counts.size == 8_957
    assert np.median(stream.counts) == 0


def test_trips_are_there_where_a_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert data.count_trips_by_hour() is None
    assert [stream.name for stream in data.list_streams(seed=SEED)] == [*data.TOTALS, "sales by hour"]


def test_measures_are_what_they_say() -> None:
    rng = np.random.default_rng(SEED)
    counts, estimates = rng.integers(0, 9, 30), rng.normal(size=(30, 2))
    expected = [sum(abs(estimates[t, run] - counts[t]) for t in range(30)) / counts.sum() for run in range(2)]
    assert compute_scaled_error(estimates, counts) == pytest.approx(expected)
    assert sum_windows(estimates, 4)[3] == pytest.approx(estimates[3:7].sum(axis=0))
    assert compute_changes(estimates, 4)[3] == pytest.approx(np.abs(estimates[6] - estimates[3]))
    events = rng.random(30) < 0.4
    scores = rng.integers(0, 5, (30, 2)).astype(np.float64)
    alert, quiet = int(events.sum()), int((~events).sum())
    for run in range(2):
        ranked = stats.mannwhitneyu(scores[events, run], scores[~events, run]).statistic
        assert compute_area_under_curve(scores, events)[run] == pytest.approx(ranked / (alert * quiet))
        cut = np.sort(scores[~events, run])[::-1][int(0.1 * quiet)]
        assert compute_found_share(scores, events, false_rate=0.1)[run] == (scores[events, run] > cut).mean()
        corners = compute_curve(scores, events, np.linspace(0.0, 1.0, 2001))[:, run]
        assert float(np.mean(corners)) == pytest.approx(compute_area_under_curve(scores, events)[run], abs=2e-3)
    assert compute_curve(np.zeros((30, 1)), events, np.array([0.0, 0.25, 1.0]))[:, 0] == pytest.approx([0.0, 0.25, 1.0])


def test_window_sums_are_those_of_the_smoother() -> None:
    counts, sums = np.repeat([3, 3, 40, 0, 7], 9).astype(np.int64), WindowSums()
    smoothers = {window: WindowSumSmoother(window=window) for window in (1, 2, 7, 30)}
    states: dict[int, tuple[WindowGroups, ...]] = {
        window: (smoother.start(),) * 3 for window, smoother in smoothers.items()
    }
    expected: dict[int, list[list[float]]] = {window: [] for window in smoothers}

    def look(tick: Tick[PegasusState]) -> None:
        sums.look(tick)
        for window, smoother in smoothers.items():
            found = smoother.advance(states[window], tick)
            states[window] = found.states
            expected[window].append([float(total) for total in found.estimates])

    estimate_counts(Pegasus(epsilon=Fraction(1, 2), sensitivity=1), counts, runs=3, seed=SEED, look=look)
    for window in smoothers:
        assert sums.get_sums(window) == pytest.approx(np.array(expected[window]))


@pytest.mark.parametrize("window", [3, 70])
def test_sliding_noise_is_drawn_once_for_ticks_and_blocks(window: int) -> None:
    """Unbiased, and of the variance of the ticks and blocks that a window is put together from: over 2,000 draws a
    mean is off by five of its standard deviations with probability 1e-6, a variance by a quarter with one far smaller.
    The seed is fixed."""
    counts, epsilon = np.arange(90, dtype=np.int64), Fraction(1, 4)
    noise = release_window_sums(counts, window, epsilon=epsilon, runs=2000, seed=SEED)
    noise = noise - sum_windows(counts[:, np.newaxis].astype(np.float64), window)
    shape = shape_window(window, fnr=0.05, fpr=0.1)
    assert (choose_block(window) > 1) == (window == 70)
    variances = [
        sum(
            2.0 * count * math.exp(-rate) / (1.0 - math.exp(-rate)) ** 2
            for count, rate in zip(
                terms, (epsilon * shape.loss_share_of_ticks, epsilon * (1 - shape.loss_share_of_ticks)), strict=True
            )
            if count
        )
        for terms in shape.term_counts
    ]
    assert noise.var(axis=1).max() == pytest.approx(max(variances), rel=0.25)
    assert np.abs(noise.mean(axis=1)).max() < 5.0 * math.sqrt(max(variances) / 2000)


def test_a_close_has_the_least_tolerance_that_epsilon_pays_for() -> None:
    jump = (Cut(0, 99, above=True, tolerance=0), Cut(0, -100, above=False, tolerance=0))
    test = calibrate_close(Fraction(1, 10), jump, most=100)
    assert test is not None
    assert test.calibration.tests[0].tolerance == 39
    assert test.worst_case_epsilon <= 0.1
    assert calibrate_close(Fraction(1, 100), jump, most=100) is None


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Two runs of everything on an hour or five."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "WINDOWS", (2, 4))
        patch.setattr(events, "JUMPS", ((3, 20),))
        patch.setattr(events, "LOW_SIGNALS", ((4, 40),))
        patch.setattr(experiments, "draw_hierarchy", lambda seed: data.draw_hierarchy(seed=seed, ticks=2))
        found: list[Row] = []
        for epsilon in EPSILONS:
            found += Job(BUSY, epsilon, 2, SEED, MADE_UP).run()
            found += Job("Multi_5", epsilon, 1, SEED).run()
        return found


def test_zeros_stand_in_every_figure(rows: list[Row]) -> None:
    told = tuple(f"{measure}, " for measure in ("tolerance", "missed", "reported", "wrong"))  # of the alarm alone
    figures = {(row.experiment, row.data, row.epsilon, row.x) for row in rows if not row.experiment.startswith(told)}
    assert figures == {(row.experiment, row.data, row.epsilon, row.x) for row in rows if row.label == ZEROS}
    assert {row.mean for row in rows if row.label == ZEROS and row.experiment == COUNTS} == {1.0}
    assert {row.mean for row in rows if row.label == ZEROS and row.experiment.startswith("events")} == {0.5}
    smoothers = {row.label for row in rows if row.experiment == SMOOTHERS}
    assert smoothers >= {PRINTED, *BY_NAME}
    assert {CLOSE, EVERY_TICK, SLIDING} <= {row.label for row in rows if row.experiment.startswith(EVENTS)}
    assert PRINTED not in {row.label for row in rows if row.experiment == COUNTS}
    assert not any("printed" in row.label for row in rows if row.experiment == HIERARCHY)


def test_zeros_stand_in_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "draw_stand_ins", lambda seed: (MADE_UP,))
    counts, found = measure_picture(seed=SEED)
    labels = [label for label, _ in found]
    assert labels == [*labels[:4], *labels[:4]]
    assert ZEROS in labels
    assert all(
        not values.any() and len(values) == len(counts) for (label, _), values in found.items() if label == ZEROS
    )


def test_results_follow_from_the_seed_alone() -> None:
    stream = data.Stream("any", np.arange(20), "made up")
    first, again, other = (
        [row.mean for row in Job("any", Fraction(1, 10), 2, seed, stream).run() if row.label == PEGASUS]
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_the_page_and_its_table_are_written(rows: list[Row], tmp_path: Path) -> None:
    write(rows, AboutStreams(runs=2, seed=SEED, streams=(MADE_UP,)), tmp_path)
    page = (tmp_path / "streams.md").read_text(encoding="utf-8")
    for slug in ("picture", *FIGURES):
        assert f"(streams-{slug}.png)" in page
    assert "[all areas](streams.csv)" in page
    tables = [
        (tmp_path / name).read_text(encoding="utf-8").splitlines() for name in ("streams.csv", "streams-curves.csv")
    ]
    assert len(tables[0]) + len(tables[1]) == len(rows) + 2
    assert len(tables[1]) == sum(row.experiment.startswith(CURVES) for row in rows) + 1


def test_images_are_drawn(rows: list[Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them at full size, and at quick two bars of one: text takes its time."""
    from benchmarks.streams.plots import draw_picture  # here: few tests need matplotlib

    figures = [*FIGURES] if not is_quick() else [HIERARCHY]
    few = [row for row in rows if row.label in ("hs_laplace", ZEROS)]
    draw(few if is_quick() else rows, figures, tmp_path)
    if not is_quick():
        monkeypatch.setattr(experiments, "draw_stand_ins", lambda seed: (MADE_UP,))
        draw_picture(*measure_picture(seed=SEED), tmp_path / "streams-picture.png")
        figures.append("picture")
    for slug in figures:
        assert (tmp_path / f"streams-{slug}.png").read_bytes().startswith(b"\x89PNG")
