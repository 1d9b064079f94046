"""`python -m benchmarks.diagnostics`: curves, calibration and residuals into docs/results/diagnostics.md, and images.

`KEYHOLE_ADULT=file.parquet` names Adult; without it a stand-in is scored.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.diagnostics.data import scored
from benchmarks.diagnostics.experiments import AreaRow, SeparationRow, compare_areas, compare_separation
from benchmarks.diagnostics.residual_plots import ResidualRow, compare_plots
from benchmarks.experiments.tables import markdown
from mechanisms.noise.exact import system_noise

DIRECTORY = Path(__file__).parents[2] / "docs" / "results"
SEED = 2026


def document(
    areas: Sequence[AreaRow],
    separations: Sequence[SeparationRow],
    residuals: Sequence[ResidualRow],
    *,
    origin: str,
    runs: int,
) -> str:
    """The page."""
    parts = (*_parts(areas, separations, origin=origin, runs=runs), *_residual_parts(residuals))
    return "\n\n".join(parts) + "\n"


def _parts(areas: Sequence[AreaRow], separations: Sequence[SeparationRow], *, origin: str, runs: int) -> Iterator[str]:
    yield "# Diagnostics: scores and outcomes"
    yield (
        f"`make experiments` wrote this page and its images ({runs} runs of every curve, three times as many of every"
        f" shape, seed {SEED}; the noise is fresh). Data: {origin}. The published methods are repaired"
        " ([why](../mechanisms.md#scores-and-outcomes)), and"
        " [the proof](../proofs/score_histogram.md) says what holds of all of them."
    )
    yield "## ROC: the area under the curve"
    yield (
        "The mean distance from the area of the true scores, and in brackets the standard deviation that the curves"
        " state of themselves, from the same noise. Where a curve is mostly noise, that number is no use but to say so."
    )
    settings = list(dict.fromkeys((row.rows, row.epsilon) for row in areas))
    methods = list(dict.fromkeys(row.method for row in areas))
    cells = {(row.method, row.rows, row.epsilon): f"{row.error:.4f} ({row.told:.4f})" for row in areas}
    headings = ["method", *(f"{rows:,} rows, {float(epsilon):g}" for rows, epsilon in settings)]
    yield markdown(headings, [[f"`{name}`", *(cells[name, *one] for one in settings)] for name in methods], texts=1)
    yield "![Error of the area over epsilon](diagnostics-areas.png)"
    yield "## Calibration: telling a wrong model from a right one"
    yield (
        "5,000 rows, by the thesis's two models: the difference of the slopes of residuals right and left of one half,"
        " and the largest distance of its distribution functions under both. 1 tells them apart always."
    )
    columns = list(dict.fromkeys(row.information for row in separations))
    found = {(row.method, row.information): f"{row.separation:.2f}" for row in separations}
    names = list(dict.fromkeys(row.method for row in separations))
    rows = [[f"`{name}`", *(found[name, one] for one in columns)] for name in names]
    yield markdown(["method", *(f"n epsilon {one:,}" for one in columns)], rows, texts=1)
    yield "![How surely a wrong model is told from a right one](diagnostics-separations.png)"


def _residual_parts(residuals: Sequence[ResidualRow]) -> Iterator[str]:
    yield "## Residuals: a wrong line beside a right one"
    yield (
        "5,000 rows of the thesis's laws, fitted with a line: I is one, H has errors that grow, N is bent. The distance"
        " of the released plot from the true plot of law I, in 10 x 10 cells: 0 is the same plot, 1 another one"
        " altogether; and how well that distance tells H and N from I. `three bounds` is what `keyhole diagnose"
        " residuals` does, `prirp` the published method with plain noise: its symmetric box leaves half empty."
    )
    rows = [
        [
            f"`{row.method}`",
            f"{row.information:,}",
            *(f"{one:.3f}" for one in row.distances),
            *(f"{one:.2f}" for one in row.separations),
        ]
        for row in residuals
    ]
    headings = ["method", "n epsilon", "law I", "law H", "law N", "H told from I", "N told from I"]
    yield markdown(headings, rows, texts=1)


def main() -> None:
    """Run, draw and write."""
    from benchmarks.diagnostics.plots import draw_areas, draw_separations  # here: runs alone need no matplotlib

    parser = argparse.ArgumentParser(prog="benchmarks.diagnostics", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="runs of every curve")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="where diagnostics.md goes")
    given = parser.parse_args()
    noise = system_noise()
    areas = list(compare_areas(runs=given.runs, seed=SEED, noise_of=lambda _: noise))
    separations = list(compare_separation(runs=3 * given.runs, seed=SEED, noise_of=lambda _: noise))
    residuals = list(compare_plots(runs=3 * given.runs, seed=SEED, noise_of=lambda _: noise))
    given.directory.mkdir(parents=True, exist_ok=True)
    draw_areas(areas, given.directory / "diagnostics-areas.png")
    draw_separations(separations, residuals, given.directory / "diagnostics-separations.png")
    page = document(areas, separations, residuals, origin=scored(seed=SEED).origin, runs=given.runs)
    (given.directory / "diagnostics.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
