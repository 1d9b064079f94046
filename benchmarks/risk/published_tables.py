"""Tables published whole: what a reader of each can count, and what it gives away; on Adult, or on a stand-in.

Reference: Han's thesis, chapter 4. Public columns are generalised as there; queries are random conjunctions over them
with one value of the sensitive column.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from benchmarks.risk.adult import VARIABLE
from mechanisms.formula import Integers
from mechanisms.protocol import Noise
from mechanisms.publishing.contingency_table import release_table
from mechanisms.publishing.generalisation import merge_counts, merge_values
from mechanisms.publishing.reconstruction_privacy import Criterion, compute_published_size
from mechanisms.publishing.sampled_perturbation import sample_and_perturb
from mechanisms.publishing.uniform_perturbation import estimate_counts, perturb_uniformly

PUBLIC = ("education", "occupation", "race", "sex")
SENSITIVE = "income"
RETENTIONS = (0.1, 0.5, 0.9)
EPSILONS = (Fraction(1, 10), Fraction(1, 5), Fraction(1, 2), Fraction(1))
WITHIN, UNSURE, USUAL = 0.3, 0.3, 0.5
"""Lambda, delta, and the retention that is the published experiments' default."""

QUERIES = 1000
LEAST_SELECTIVITY = 0.001
SELECTIVITIES = (LEAST_SELECTIVITY, 0.005, 0.01)
"""Which parts of the records a query counts at least, where the same tables are asked other queries."""

_STAND_IN_ROWS = 30_162

Counts = npt.NDArray[np.float64]
Publish = Callable[[Noise], Counts]
"""One publication, as the counts by group and sensitive value that a reader makes of it."""


@dataclass(frozen=True, slots=True, eq=False)
class PublishedCounts:
    """Records by generalised public columns and the sensitive one, where they come from, and how far each column went.

    Parameters:
        domains: of each public column, how many values it has and how many are left.
    """

    counts: Integers
    origin: str
    domains: tuple[tuple[int, int], ...]

    @property
    def groups(self) -> Integers:
        """By group and sensitive value, in row-major order."""
        return self.counts.reshape(-1, self.counts.shape[-1])


@dataclass(frozen=True, slots=True)
class TableRow:
    """One way to publish: what it protects, the mean relative error of queries, and how often the largest share of a
    group beyond `compute_published_size` is told to within 30 %."""

    method: str
    protected: str
    error: float
    told: float


@dataclass(frozen=True, slots=True)
class QueryRow:
    """The mean relative error of some queries, by the epsilon of a noisy table, and of what was perturbed."""

    queries: str
    noisy: tuple[tuple[Fraction, float], ...]
    perturbed: float


def read_counts(*, seed: int) -> PublishedCounts:
    """Adult's complete rows, or as many that are drawn."""
    if VARIABLE in os.environ:
        counts, origin = count_adult(), "Adult (real; UCI, CC BY 4.0)"
    else:
        counts, origin = _draw_people(seed), "a synthetic stand-in for Adult"
    merged = merge_values(counts)
    found = merge_counts(counts, merged)
    return PublishedCounts(found, origin, tuple(zip(counts.shape[:-1], found.shape[:-1], strict=True)))


def count_adult() -> Integers:
    """Adult's complete rows by education, occupation, race, sex and income."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE adult AS SELECT * FROM read_parquet($1)", [os.environ[VARIABLE]])
        columns = [name for name, *_ in connection.execute("DESCRIBE adult").fetchall()]
        complete = " AND ".join(f"trim(CAST({name} AS VARCHAR)) NOT IN ('?', '')" for name in columns)
        wanted = ", ".join((*PUBLIC, SENSITIVE))
        rows = connection.execute(f"SELECT {wanted} FROM adult WHERE {complete}").fetchnumpy()
    codes = [np.unique(rows[name].astype(str), return_inverse=True) for name in (*PUBLIC, SENSITIVE)]
    counts = np.zeros([len(values) for values, _ in codes], dtype=np.int64)
    np.add.at(counts, tuple(places for _, places in codes), 1)
    return counts


def find_violations(groups: Integers, *, retention: float, within: float) -> tuple[float, float]:
    """The part of groups, and of records, that are in groups larger than the published criterion allows."""
    asked = _make_criterion(retention, groups.shape[1], within=within)
    inhabited = groups[groups.sum(axis=1) > 0]
    sizes = inhabited.sum(axis=1)
    allowed = [compute_published_size(asked, float(group.max() / group.sum())) for group in inhabited]
    beyond = sizes > np.array(allowed)
    return float(beyond.mean()), float(sizes[beyond].sum() / sizes.sum())


def compare_tables(published: PublishedCounts, *, runs: int, seed: int, noise: Noise) -> Iterator[TableRow]:
    """Every way to publish, on the same queries."""
    groups = published.groups
    queries = draw_queries(published.counts, number=QUERIES, seed=seed)
    values = groups.shape[1]

    def row(method: str, protected: str, publish: Publish) -> TableRow:
        found = [publish(noise) for _ in range(runs)]
        error = float(np.mean([_find_error(queries, groups, one) for one in found]))
        return TableRow(method, protected, error, float(np.mean([_find_told(groups, one) for one in found])))

    for retention in RETENTIONS:
        yield row(f"perturbed, p {retention:g}", "the sensitive value, somewhat", _perturb(groups, retention))
    for retention in RETENTIONS:
        asked = _make_criterion(retention, values)
        yield row(f"SPS as printed, p {retention:g}", "nothing that holds", _sample(groups, asked))
    asked = _make_criterion(USUAL, values, exact=True)
    yield row(f"SPS, exact tails, p {USUAL:g}", "shares of large groups", _sample(groups, asked))
    for epsilon in EPSILONS:
        yield row(f"noisy table, epsilon {float(epsilon):g}", "presence and value", _add_noise(groups, epsilon))


def compare_queries(published: PublishedCounts, *, runs: int, seed: int, noise: Noise) -> Iterator[QueryRow]:
    """The same ways to publish, asked queries that are drawn otherwise."""
    groups = published.groups

    def row(name: str, queries: npt.NDArray[np.int64]) -> QueryRow:
        def error(publish: Publish) -> float:
            return float(np.mean([_find_error(queries, groups, publish(noise)) for _ in range(runs)]))

        noisy = tuple((epsilon, error(_add_noise(groups, epsilon))) for epsilon in EPSILONS)
        return QueryRow(name, noisy, error(_perturb(groups, USUAL)))

    for least in SELECTIVITIES:
        drawn = draw_queries(published.counts, number=QUERIES, seed=seed, least=least)
        yield row(f"any values, {100 * least:g} % of the records or more", drawn)
    drawn = draw_queries(published.counts, number=QUERIES, seed=seed, of_records=True)
    yield row(f"the values of a record, {100 * LEAST_SELECTIVITY:g} % or more", drawn)


def draw_queries(
    counts: Integers, *, number: int, seed: int, least: float = LEAST_SELECTIVITY, of_records: bool = False
) -> npt.NDArray[np.int64]:
    """Random conjunctions of one to three public columns and a sensitive value that enough records satisfy.

    Parameters:
        least: the part of all records that satisfies each at least.
        of_records: the values are those of a random record; else any are as probable as others.

    Returns int64 of shape (number, cells): which cells of the table each adds up.
    """
    generator = np.random.default_rng(seed)
    public = counts.ndim - 1
    found: list[npt.NDArray[np.int64]] = []
    while len(found) < number:
        axes = generator.choice(public, size=min(int(generator.integers(1, 4)), public), replace=False).tolist()
        chosen = np.zeros(counts.shape, dtype=np.int64)
        place: list[slice | int] = [slice(None)] * counts.ndim
        if of_records:
            record = np.unravel_index(generator.choice(counts.size, p=counts.ravel() / counts.sum()), counts.shape)
        for axis in (*axes, public):
            place[axis] = int(record[axis] if of_records else generator.integers(counts.shape[axis]))
        chosen[tuple(place)] = 1
        if (chosen * counts).sum() >= least * counts.sum():
            found.append(chosen.ravel())
    return np.array(found)


def _find_error(queries: npt.NDArray[np.int64], groups: Integers, found: Counts) -> float:
    answers = queries @ groups.ravel()
    return float(np.mean(np.abs(queries @ found.ravel() - answers) / answers))


def _find_told(groups: Integers, found: Counts) -> float:
    """Of groups that are too large by the published criterion, how many give their largest share away."""
    sizes = groups.sum(axis=1)
    shares = groups.max(axis=1) / np.maximum(sizes, 1)
    asked = _make_criterion(USUAL, groups.shape[1])
    large = [
        place for place in np.flatnonzero(sizes) if sizes[place] > compute_published_size(asked, float(shares[place]))
    ]
    told: Sequence[bool] = [
        abs(found[place, group.argmax()] / max(found[place].sum(), 1e-9) - shares[place]) <= WITHIN * shares[place]
        for place, group in zip(large, groups[large], strict=True)
    ]
    return float(np.mean(told))


def _make_criterion(retention: float, values: int, *, within: float = WITHIN, exact: bool = False) -> Criterion:
    return Criterion(
        retention=retention, value_count=values, relative_error=within, least_tail=UNSURE, uses_exact_tails=exact
    )


def _perturb(groups: Integers, retention: float) -> Publish:
    kept = Fraction(retention).limit_denominator(1000)
    return lambda noise: estimate_counts(perturb_uniformly(groups, retention=kept, noise=noise), retention=retention)


def _sample(groups: Integers, asked: Criterion) -> Publish:
    return lambda noise: estimate_counts(
        sample_and_perturb(groups, asked, noise=noise).published_counts, retention=asked.retention
    )


def _add_noise(groups: Integers, epsilon: Fraction) -> Publish:
    return lambda noise: release_table(groups, epsilon=epsilon, most_rows=1, noise=noise).astype(np.float64)


def _draw_people(seed: int) -> Integers:
    """Columns of falling frequencies, and a sensitive value that is more frequent where the first two say so."""
    generator = np.random.default_rng(seed)
    sizes = (16, 14, 5, 2)
    columns = []
    for size in sizes:
        chances = 1 / np.arange(1, size + 1)
        columns.append(generator.choice(size, size=_STAND_IN_ROWS, p=chances / chances.sum()))
    chance = 0.1 + 0.3 * (columns[0] % 4 == 1) + 0.3 * (columns[1] % 3 == 1)
    holds = (generator.random(_STAND_IN_ROWS) < chance).astype(np.int64)
    counts = np.zeros((*sizes, 2), dtype=np.int64)
    np.add.at(counts, (*columns, holds), 1)
    return counts
