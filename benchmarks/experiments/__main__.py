"""`python -m benchmarks.experiments`: every experiment, its CSV files, its images and docs/results.md."""

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.experiments import taxi
from benchmarks.experiments.figures import EXPERIMENTS, FIGURES
from benchmarks.experiments.kept import read_csv
from benchmarks.experiments.report import About, write_page
from benchmarks.experiments.runs import Measured, measure
from benchmarks.experiments.tables import write_csv

DOCS = Path(__file__).parents[2] / "docs"
RUNS = 100
SEED = 2026


def run(*, runs: int, seed: int, progress: Progress) -> list[Measured]:
    """Every experiment in its order."""
    found: list[Measured] = []
    for name, cases_of in EXPERIMENTS.items():
        cases = cases_of(seed=seed)
        task = progress.add_task(name, total=sum(len(case.entrants) for case in cases))
        found += measure(cases, runs=runs, seed=seed, done=partial(progress.advance, task))
    return found


def read_kept(docs: Path, *, seed: int) -> list[Measured]:
    """Return what an earlier run measured on the same data, from its CSV files."""
    return [
        one
        for name, cases_of in EXPERIMENTS.items()
        for one in read_csv(docs / "results" / f"{name}.csv", cases_of(seed=seed))
    ]


def write(measured: Sequence[Measured], about: About, docs: Path) -> None:
    """The page, the images and one CSV file per experiment, below `docs`."""
    from benchmarks.experiments.plots import draw  # here: runs that write nothing need no matplotlib

    directory = docs / "results"
    directory.mkdir(parents=True, exist_ok=True)
    for name in EXPERIMENTS:
        write_csv([m for m in measured if m.experiment == name], directory / f"{name}.csv")
    for figure in FIGURES:
        draw(figure, measured, directory)
    (docs / "results.md").write_text(write_page(measured, about), encoding="utf-8")


def main() -> None:
    """Run, write, say where."""
    parser = argparse.ArgumentParser(prog="benchmarks.experiments", description=__doc__)
    parser.add_argument("--runs", type=int, default=int(os.environ.get("RUNS", RUNS)), help="runs of every mechanism")
    parser.add_argument("--seed", type=int, default=SEED, help="all data and noise follow from it")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where results.md and results/ go")
    parser.add_argument("--page", action="store_true", help="write the page again from the CSV files, without a run")
    given = parser.parse_args()
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:>16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    origin = taxi.read_trips(seed=given.seed).origin
    if given.page:
        measured = read_kept(given.docs, seed=given.seed)
        page = write_page(measured, About(max(one.runs for one in measured), given.seed, origin))
        (given.docs / "results.md").write_text(page, encoding="utf-8")
    else:
        with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
            measured = run(runs=given.runs, seed=given.seed, progress=progress)
        write(measured, About(given.runs, given.seed, origin), given.docs)
    console.print(f"wrote {given.docs / 'results.md'}")


if __name__ == "__main__":
    main()
