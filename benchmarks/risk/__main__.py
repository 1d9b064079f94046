"""`python -m benchmarks.risk`: what attackers learn, into docs/results/risk.md and its images.

`KEYHOLE_ADULT=file.parquet` names Adult; without it a stand-in is counted.
"""

import argparse
from pathlib import Path

from benchmarks.risk.adult import read_people
from benchmarks.risk.attacks import attack, attack_over_epsilon
from benchmarks.risk.building import draw_building
from benchmarks.risk.disclosures import count_disclosures, find_least_sizes, read_keyhole
from benchmarks.risk.page import Disclosures, Places, Secrets, Tables, write_page
from benchmarks.risk.published_tables import (
    RETENTIONS,
    WITHIN,
    compare_queries,
    compare_tables,
    find_violations,
    read_counts,
)
from benchmarks.risk.reconstruction import find_bits, find_histograms
from tests.seeded_noise import SeededNoise

DIRECTORY = Path(__file__).parents[2] / "docs" / "results"
SEED = 2026
BUILDING = 7
"""The seed of the building whose person-hours were set beforehand."""

RUNS = 20


def find_disclosures(*, seed: int) -> Disclosures:
    """Everything about shares of groups."""
    people = read_people(seed=seed)
    found = tuple(count_disclosures(people)), tuple(read_keyhole(people)), tuple(find_least_sizes())
    return Disclosures(people.origin, *found)


def find_places(*, runs: int) -> Places:
    """Everything about where people are."""
    building = draw_building(seed=BUILDING)
    found = tuple(attack(building, runs=runs))
    return Places(runs, int(building.counts.sum()), found, tuple(attack_over_epsilon(building, runs=runs)))


def find_secrets(*, runs: int, seed: int) -> Secrets:
    """Everything about secrets put together."""
    noise = SeededNoise(seed)
    bits = tuple(find_bits(runs=runs, seed=seed, noise=noise))
    return Secrets(runs, bits, tuple(find_histograms(runs=max(1, runs // 4), seed=seed, noise=noise)))


def find_tables(*, runs: int, seed: int) -> Tables:
    """Everything about tables published whole."""
    published = read_counts(seed=seed)
    groups = published.groups
    beyond = tuple((p, *find_violations(groups, retention=p, within=WITHIN)) for p in RETENTIONS)
    rows = tuple(compare_tables(published, runs=runs, seed=seed, noise=SeededNoise(seed)))
    queries = tuple(compare_queries(published, runs=runs, seed=seed, noise=SeededNoise(seed)))
    return Tables(published.origin, published.domains, beyond, runs, rows, queries)


def main() -> None:
    """Run, draw and write."""
    from benchmarks.risk.plots import draw_attacks, draw_disclosures  # here: runs alone need no matplotlib

    parser = argparse.ArgumentParser(prog="benchmarks.risk", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="made-up data follow from it")
    parser.add_argument("--runs", type=int, default=RUNS, help="of every technique, on the same people")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="where risk.md goes")
    given = parser.parse_args()
    disclosures, places = find_disclosures(seed=given.seed), find_places(runs=given.runs)
    secrets = find_secrets(runs=given.runs, seed=given.seed)
    tables = find_tables(runs=given.runs, seed=given.seed)
    given.directory.mkdir(parents=True, exist_ok=True)
    draw_disclosures(disclosures.published, given.directory / "risk-disclosures.png")
    draw_attacks(places.found, places.over_epsilon, given.directory / "risk-places.png")
    page = write_page(disclosures, places, secrets, tables, seed=given.seed)
    (given.directory / "risk.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
