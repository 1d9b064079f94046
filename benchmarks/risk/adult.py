"""Groups of people and who of them has a sensitive value: of Adult's complete rows, or of a stand-in.

The file of Adult may not be there; `KEYHOLE_ADULT=file.parquet` names one with the columns as published. Without it as
many rows are drawn: public columns have a few values of falling frequency, and one value of the sensitive column in
three is far more frequent where a public column has one certain value.
"""

import itertools
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

VARIABLE = "KEYHOLE_ADULT"
_STAND_IN_ROWS = 30_162
_STAND_IN_VALUES = {
    "sex": 2,
    "race": 5,
    "marital_status": 7,
    "occupation": 14,
    "education": 16,
}

Texts = npt.NDArray[np.str_]


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """One text of each column for everybody."""

    columns: dict[str, Texts]
    origin: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A group that agrees on two public columns, how many of it have a sensitive value, and how many of everybody."""

    group: int
    holders: int
    base_rate: float


def read_people(*, seed: int) -> People:
    """Adult's complete rows, or the stand-in."""
    path = os.environ.get(VARIABLE)
    return _draw_stand_in(seed) if path is None else _read_adult(path)


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """Of every pair of public columns all cells that somebody is in, and all counts, those of nobody, too: of the
    groups, and of each group with each sensitive value."""

    cells: list[Cell]
    answers: npt.NDArray[np.int64]


def count_marginals(people: People, *, public: tuple[str, ...], sensitive: str) -> Marginals:
    """Count everybody once for each pair of public columns."""
    values, own = np.unique(people.columns[sensitive], return_inverse=True)
    base_rates = np.bincount(own) / len(own)
    cells, answers = [], []
    for pair in itertools.combinations(public, 2):
        _, first = np.unique(people.columns[pair[0]], return_inverse=True)
        _, second = np.unique(people.columns[pair[1]], return_inverse=True)
        counts = np.zeros((first.max() + 1, second.max() + 1, len(values)), dtype=np.int64)
        np.add.at(counts, (first, second, own), 1)
        answers += [counts.ravel(), counts.sum(axis=2).ravel()]
        for group in counts.reshape(-1, len(values)):
            size = int(group.sum())
            cells += [Cell(size, int(group[value]), float(base_rates[value])) for value in np.flatnonzero(group)]
    return Marginals(cells, np.concatenate(answers))


def _draw_stand_in(seed: int) -> People:
    generator = np.random.default_rng(seed)
    drawn = {}
    for name, values in _STAND_IN_VALUES.items():
        chances = 1 / np.arange(1, values + 1)
        drawn[name] = generator.choice(values, size=_STAND_IN_ROWS, p=chances / chances.sum())
    for one, other in (("occupation", "education"), ("education", "occupation")):
        tied = (generator.random(_STAND_IN_ROWS) < 0.2) & (drawn[one] % 3 == 1)
        drawn[other] = np.where(tied, drawn[one] % _STAND_IN_VALUES[other], drawn[other])
    columns = {name: values.astype(str) for name, values in drawn.items()}
    return People(columns, "a synthetic stand-in for Adult")


def _read_adult(path: str) -> People:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE adult AS SELECT * FROM read_parquet($1)", [path])
        columns = [name for name, *_ in connection.execute("DESCRIBE adult").fetchall()]
        complete = " AND ".join(f"trim(CAST({name} AS VARCHAR)) NOT IN ('?', '')" for name in columns)
        wanted = ", ".join(_STAND_IN_VALUES)
        rows: dict[str, Any] = connection.execute(f"SELECT {wanted} FROM adult WHERE {complete}").fetchnumpy()
    texts = {name: np.asarray(values, dtype=str) for name, values in rows.items()}
    return People(texts, "Adult (real; UCI, CC BY 4.0)")
