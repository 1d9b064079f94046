"""`python -m benchmarks.streams`: every experiment on streams, its table, its images and docs/results/streams.md."""

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.streams.data import list_streams
from benchmarks.streams.experiments import measure_picture, plan_jobs, run_jobs
from benchmarks.streams.page import (
    COUNTS,
    CURVES,
    EVENTS,
    HIERARCHY,
    SMOOTHERS,
    WINDOWS,
    AboutStreams,
    write_page,
    write_rows,
)
from benchmarks.streams.rows import Row

DIRECTORY = Path(__file__).parents[2] / "docs" / "results"
MOST_RUNS = 10  # side by side over thousands of ticks: means are steady to some .01 by logarithm
SEED = 2026
SCALED, ABSOLUTE = "log10 of the scaled total L1 error", "log10 of the mean absolute error"
FIGURES = {COUNTS: SCALED, SMOOTHERS: SCALED, WINDOWS: ABSOLUTE, EVENTS: "", HIERARCHY: ABSOLUTE}


def write(rows: Sequence[Row], about: AboutStreams, directory: Path) -> None:
    """The page and its table."""
    directory.mkdir(parents=True, exist_ok=True)
    curves = [row for row in rows if row.experiment.startswith(CURVES)]
    write_rows([row for row in rows if row not in curves], directory / "streams.csv")
    write_rows(curves, directory / "streams-curves.csv", x="others reported, thousandths")
    (directory / "streams.md").write_text(write_page(rows, about), encoding="utf-8")


def draw(rows: Sequence[Row], figures: Sequence[str], directory: Path) -> None:
    """The named images of `FIGURES`."""
    from benchmarks.streams.plots import draw_curves, draw_errors, draw_windows  # here: runs alone need no matplotlib

    for name in figures:
        own, path = [row for row in rows if row.experiment == name], directory / f"streams-{name}.png"
        if name == WINDOWS:
            draw_windows(own, path)
        elif name == EVENTS:
            draw_curves([row for row in rows if row.experiment.startswith(CURVES)], path)
        else:
            draw_errors(own, path, heading=FIGURES[name])


def main() -> None:
    """Run, write, say where."""
    from benchmarks.streams.plots import draw_picture  # here: runs alone need no matplotlib

    parser = argparse.ArgumentParser(prog="benchmarks.streams", description=__doc__)
    runs = min(MOST_RUNS, int(os.environ.get("RUNS", MOST_RUNS)))
    parser.add_argument("--runs", type=int, default=runs, help="runs of every mechanism")
    parser.add_argument("--seed", type=int, default=SEED, help="all data and noise follow from it")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="where streams.md goes")
    given = parser.parse_args()
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:>16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    jobs = plan_jobs(runs=given.runs, seed=given.seed)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("streams", total=len(jobs))
        rows = run_jobs(jobs, done=partial(progress.advance, task))
    about = AboutStreams(given.runs, given.seed, list_streams(seed=given.seed))
    write(rows, about, given.directory)
    draw(rows, tuple(FIGURES), given.directory)
    draw_picture(*measure_picture(seed=given.seed), given.directory / "streams-picture.png")
    console.print(f"wrote {given.directory / 'streams.md'}")


if __name__ == "__main__":
    main()
