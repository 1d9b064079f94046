"""A unit that is divided over its groups, as DuckDB computes it: what a neighbour changes in all groups together."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pytest

from benchmarks.oracle.worlds import CATALOG, TABLES, TYPES, Row, draw_rows
from mechanisms.formula import Integers
from planner.bind.bind_question import bind_question
from planner.extract.outer_query import Asking
from planner.functionals.cell_readings import list_cell_sums
from planner.lower.scan import rewrite
from planner.question.question import Measure, Question
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from proxy.sources.open import Source, open_source
from tests.effort import rounds

_STATEMENTS = (
    "SELECT ward FROM clipped GROUP BY ward HAVING {n} > 0.2 * (SELECT {n} FROM clipped)",
    "SELECT ward, level FROM clipped GROUP BY ward, level HAVING {n} > 0.2 * (SELECT {n} FROM clipped)",
    "SELECT ward, level FROM clipped c GROUP BY ward, level "
    "HAVING {n} > 0.2 * (SELECT {n} FROM clipped x WHERE x.ward = c.ward)",
    "SELECT month FROM clipped WHERE insured GROUP BY month HAVING {n} > 0.2 * (SELECT {n} FROM clipped)",
)
_CELL = ("ward", "level", "seen")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("divided")


@pytest.fixture(scope="module")
def source(folder: Path) -> Iterator[Source]:
    found = open_source("duckdb://", directory=folder)
    yield found
    found.close()


def ask(sql: str, groups: int) -> Question:
    tables = tuple(replace(one, groups_per_unit=groups) if one.unit else one for one in TABLES)
    catalog = replace(CATALOG, tables=tables)
    statement = classify(sql.format(n="count(DISTINCT person)"), catalog)
    assert isinstance(statement, Asking)
    wanted = read_accuracy({"keyhole.tolerance": "0", "keyhole.guard": "refuse"}, catalog.defaults)
    today = date(2026, 1, 1)
    return bind_question(statement.questions[0], catalog, accuracy=wanted, parameters={}, today=today)


class Sums:
    """The sums of a question's groups without some rows of a world."""

    def __init__(self, question: Question, rows: list[Row], source: Source, folder: Path) -> None:
        functionals, _ = list_cell_sums(question)
        self.sensitivities = np.array([[one.sensitivity] for one in functionals])
        self.is_divided = np.array([one.measure is Measure.UNIT_PARTS for one in functionals])
        self._question, self._source = replace(question, functionals=functionals), source
        self._folder, self._connection, self._number = folder, duckdb.connect(), 0
        self._connection.execute(f"CREATE TABLE stored ({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})")
        self._connection.executemany(
            f"INSERT INTO stored VALUES ({', '.join('?' for _ in TYPES)})",
            [[row[name] for name in TYPES] for row in rows],
        )

    def compute(self, without: str = "false") -> Integers:
        self._number += 1
        path = self._folder / f"rows{self._number}.parquet"
        self._connection.execute(f"COPY (SELECT * FROM stored WHERE NOT coalesce({without}, false)) TO '{path}'")
        table = replace(self._question.table, relation=f"read_parquet('{path}')")
        question = replace(self._question, table=table)
        rewritten = rewrite(question, dialect=self._source.dialect)
        count = len(self.sensitivities)
        found = self._source.read_aggregates(rewritten, question.keys, functionals=count, timeout_ms=60_000)
        path.unlink()
        return found.values


@pytest.mark.parametrize("statement", _STATEMENTS)
def test_a_unit_changes_all_parts_by_one_whole(statement: str, source: Source, folder: Path) -> None:
    """Without a unit, the parts of a total's groups sink by one unit at most.

    Without one of its cells all parts change by no more, or by twice that if groups are chosen among more. In six
    worlds of sixty rows at each number of groups, two at quick. False alarms are impossible.
    """
    drawn = random.Random(20261130)
    largest = 0.0
    for groups in (2, 4, 12):
        question = ask(statement, groups)
        for _ in range(rounds(6, quick=1)):
            rows = next(found for found in iter(lambda: draw_rows(drawn), None) if len(found) == 60)
            sums = Sums(question, rows, source, folder)
            whole = sums.compute()
            for person in range(1, 7):
                change = np.abs(sums.compute(f"person = {person}") - whole) / sums.sensitivities
                totals = groups if "x.ward" in statement else 1  # of which a unit may be in several
                assert change[sums.is_divided].sum() <= totals + 1e-9
                assert (change.max(axis=0) <= 1).all()
                cells = {tuple(row[name] for name in _CELL) for row in rows if row["person"] == person}
                for cell in sorted(cells, key=repr)[: rounds(20, quick=2)]:
                    tests = (
                        f"{name} IS NOT DISTINCT FROM {_spell(value)}" for name, value in zip(_CELL, cell, strict=True)
                    )
                    change = np.abs(sums.compute(f"person = {person} AND {' AND '.join(tests)}") - whole)
                    in_all = (change / sums.sensitivities).sum(axis=1)
                    assert (in_all <= (2 if groups < 12 else 1) + 1e-9).all()
                    largest = max(largest, *in_all[sums.is_divided])
    assert largest >= 1


def _spell(value: object) -> str:
    return "NULL" if value is None else f"'{value}'".replace("o'hare", "o''hare")
