"""`python -m benchmarks.bounds`: private bounds into docs/results/bounds.md and its image."""

import argparse
from pathlib import Path

from benchmarks.bounds.experiments import compare_methods, hold_contract
from benchmarks.bounds.page import write_page
from tests.seeded_noise import SeededNoise

DIRECTORY = Path(__file__).parents[2] / "docs" / "results"
SEED = 2026
RUNS = 400


def main() -> None:
    """Run, draw and write."""
    from benchmarks.bounds.plots import draw_coverage  # here: runs alone need no matplotlib

    parser = argparse.ArgumentParser(prog="benchmarks.bounds", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="all noise follows from it")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each way")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="where bounds.md goes")
    given = parser.parse_args()
    noise = SeededNoise(given.seed)
    coverage = list(compare_methods(runs=given.runs, seed=given.seed, noise=noise))
    contracts = list(hold_contract(runs=given.runs, noise=noise))
    given.directory.mkdir(parents=True, exist_ok=True)
    draw_coverage(coverage, given.directory / "bounds-coverage.png")
    page = write_page(coverage, contracts, runs=given.runs, seed=given.seed)
    (given.directory / "bounds.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
