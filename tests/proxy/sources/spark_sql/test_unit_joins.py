"""Private tables joined on their unit on engines that speak Spark SQL: the same tests as on DuckDB and PostgreSQL."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.planner.lower.test_joins import (
    TYPES,
    Engine,
    create_tables,
    test_one_unit_changes_no_more_than_the_sensitivities_and_its_groups,
    test_the_integers_are_those_of_an_independent_computation,
)
from tests.rows_at_once import insert

__all__ = [
    "test_one_unit_changes_no_more_than_the_sensitivities_and_its_groups",
    "test_the_integers_are_those_of_an_independent_computation",
]


@pytest.fixture
def engine(connected: Any, tmp_path: Path) -> Iterator[Engine]:
    """Rows are written by DuckDB into files, which views of the tables' names read."""
    numbers = itertools.count()
    with duckdb.connect() as duck:
        create_tables(duck.execute, kind="TABLE")

        def run(sql: str) -> list[tuple[Any, ...]]:
            if sql.startswith("DELETE"):
                duck.execute(sql)
                return []
            found: list[tuple[Any, ...]] = connected.rows(sql)
            return found

        def insert_in_file(name: str, rows: list[tuple[Any, ...]]) -> None:
            insert(duck, name, rows)
            path = tmp_path / f"{name}{next(numbers)}.parquet"
            duck.execute(f"COPY {name} TO '{path}'")
            connected.execute(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM parquet.`{path}`")

        yield Engine(connected.dialect, run, insert_in_file)
        for name in TYPES:
            connected.execute(f"DROP VIEW {name}")
