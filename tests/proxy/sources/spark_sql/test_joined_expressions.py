"""Expressions over two private tables joined on their unit: Spark counts the joined rows that DuckDB counts."""

from itertools import product
from pathlib import Path
from typing import Any

import duckdb

from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from tests.planner.asked import asked_once, written_once
from tests.proxy.sources.rows.test_joined_expressions import CLINIC, FOUND, TYPES, WHERE, load_sql


def test_conditions_over_two_tables_are_those_of_duckdb(connected: Any, tmp_path: Path) -> None:
    """Each value beside each, of two people; Spark refuses what takes too many tests of a row."""
    people = [(i % 3, *row) for i, row in enumerate(product(FOUND["born"], FOUND["weight"], FOUND["height"]))]
    doses = [(i % 3, *row) for i, row in enumerate(product(FOUND["ward"], FOUND["came"], FOUND["dose"]))]
    compared = 0
    with duckdb.connect() as duck:
        for statement in load_sql({"people": people, "doses": doses}):
            duck.execute(statement)
        for name in TYPES:
            path = tmp_path / f"{name}.parquet"
            duck.execute(f"COPY {name} TO '{path}'")
            connected.execute(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM parquet.`{path}`")
        for condition in WHERE:
            joined = f"FROM doses s JOIN people p ON s.person = p.person WHERE {condition}"
            question = asked_once(f"SELECT ward {joined} GROUP BY ward HAVING count(*) > 4", CLINIC)
            try:
                sql = written_once(question, connected.dialect)
            except KeyholeError as error:
                if error.code != "KH214":
                    raise
                continue
            found = sorted(map(tuple, connected.rows(sql)))
            assert found == sorted(duck.execute(written_once(question, DUCKDB)).fetchall()), condition
            compared += any(count for _, count in found)
        for name in TYPES:
            connected.execute(f"DROP VIEW {name}")
    assert compared >= 7
