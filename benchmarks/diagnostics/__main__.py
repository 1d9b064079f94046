"""`python -m benchmarks.diagnostics`: curves, calibration and residuals into docs/results/diagnostics.md, and images.

`KEYHOLE_ADULT=file.parquet` names Adult; without it a stand-in is scored.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.diagnostics.data import read_scored
from benchmarks.diagnostics.experiments import (
    AreaRow,
    SeparationRow,
    compare_areas,
    compare_separation,
    separate_without_noise,
)
from benchmarks.diagnostics.residual_plots import ResidualRow, compare_plots
from benchmarks.experiments.tables import write_table
from mechanisms.noise.exact import make_system_noise

DIRECTORY = Path(__file__).parents[2] / "docs" / "results"
SEED = 2026


@dataclass(frozen=True, slots=True)
class Results:
    """Results of the page: areas of scores and of saturated ones, shapes with noise and without, residual plots."""

    areas: Sequence[AreaRow]
    saturated: Sequence[AreaRow]
    separations: Sequence[SeparationRow]
    plain: Sequence[SeparationRow]
    residuals: Sequence[ResidualRow]


def write_page(results: Results, *, origin: str, runs: int) -> str:
    """Return the page."""
    parts = (
        *_write_area_parts(origin=origin, runs=runs),
        *_write_separation_parts(),
        *_write_residual_parts(results.residuals),
    )
    return "\n\n".join(parts) + "\n"


def _write_area_parts(*, origin: str, runs: int) -> Iterator[str]:
    yield "# Diagnostics: scores and outcomes"
    yield (
        f"`make experiments` wrote this page and its images: {runs} runs of every curve, three times as many of every"
        f" shape, fifteen times as many without noise, seed {SEED}, fresh noise. Data: {origin}. The published methods"
        " are repaired ([why](../mechanisms.md#rankings-releases-and-tables), [proof](../proofs/score_histogram.md))."
    )
    yield "## ROC: the area under the curve"
    yield "The figure has the mean distance from the area of the true scores."
    yield "![Error of the area over epsilon](diagnostics-areas.png)"
    yield (
        "The next figure has the same scores, raised to the power of twelve. They crowd at zero, as those of an"
        " overconfident model do. Most of them fall into one of the equal bins, and `diagnose` warns of that. For such"
        " a model, declare the logit or the rank of the score as the score."
    )
    yield "![Error of the area where scores are saturated](diagnostics-saturated.png)"


def _write_separation_parts() -> Iterator[str]:
    yield "## Calibration: telling a wrong model from a right one"
    yield (
        "5,000 rows, by the thesis's two models. The measure is the difference of the slopes of residuals right and"
        " left of one half. The figure has the largest distance between the measure's distributions for both models; at"
        " 1 it always tells them apart. Its runs without noise have the thesis's measure: bins of equally many rows,"
        " and the sum of both slopes' sizes (table 4.5)."
    )
    yield "![How surely a wrong model is told from a right one](diagnostics-separations.png)"


def _write_residual_parts(residuals: Sequence[ResidualRow]) -> Iterator[str]:
    yield "## Residuals: a wrong line beside a right one"
    yield (
        "5,000 rows of the thesis's models, fitted with a line: I is a line, H has growing errors, N is bent. The first"
        " columns have the distance of the released plot from the true plot of I, in 10 x 10 cells; 0 is the same plot."
        " The others say how well that distance tells H and N from I. `three bounds` is `keyhole diagnose residuals`,"
        " `prirp` the published method with plain noise."
    )
    rows = [
        [
            f"`{row.method}`",
            f"{row.information:,}",
            *(f"{one:.3f}" for one in row.distances),
            *(f"{one:.2f}" for one in row.separations),
        ]
        for row in residuals
        if row.information == residuals[0].information
    ]
    headings = ["method", "n epsilon", "model I", "H", "N", "H told from I", "N told from I"]
    yield write_table(headings, rows, texts=1)


def main() -> None:
    """Run, draw and write."""
    from benchmarks.diagnostics.plots import draw_areas, draw_separations  # here: runs alone need no matplotlib

    parser = argparse.ArgumentParser(prog="benchmarks.diagnostics", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="runs of every curve")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="where diagnostics.md goes")
    given = parser.parse_args()
    noise = make_system_noise()
    results = Results(
        areas=list(compare_areas(runs=given.runs, seed=SEED, noise_of=lambda _: noise)),
        saturated=list(compare_areas(runs=given.runs, seed=SEED, noise_of=lambda _: noise, saturated=True)),
        separations=list(compare_separation(runs=3 * given.runs, seed=SEED, noise_of=lambda _: noise)),
        plain=list(separate_without_noise(runs=15 * given.runs, seed=SEED)),
        residuals=list(compare_plots(runs=3 * given.runs, seed=SEED, noise_of=lambda _: noise)),
    )
    given.directory.mkdir(parents=True, exist_ok=True)
    draw_areas(results.areas, given.directory / "diagnostics-areas.png")
    draw_areas(results.saturated, given.directory / "diagnostics-saturated.png")
    draw_separations(
        (*results.plain, *results.separations), results.residuals, given.directory / "diagnostics-separations.png"
    )
    page = write_page(results, origin=read_scored(seed=SEED).origin, runs=given.runs)
    (given.directory / "diagnostics.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
