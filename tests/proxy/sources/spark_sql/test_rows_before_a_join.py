"""One unit's work is bounded on engines that speak Spark SQL, too: a join reads the rows that it reads on DuckDB."""

import itertools
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.sail import SAIL
from tests.effort import examples
from tests.proxy.sources.rows.test_rows_before_a_join import (
    NAMES,
    check_joined,
    joined_rows_sql,
    load_sql,
    member,
    rows,
)
from tests.proxy.sources.rows.test_work_of_a_join import (
    ROWS,
    check_steps,
    joined_questions,
    planned_sql,
    stored_rows_sql,
)

_TIMES = {"": 1, "K": 1e3, "M": 1e6, "B": 1e9}
_files = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tables' files are."""
    return tmp_path_factory.mktemp("joined")


@examples(60, quick=4, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(found=st.lists(rows(), min_size=2, max_size=2), caps=st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_one_unit_has_a_public_number_of_joined_rows(
    connected: Any, folder: Path, found: list[list[tuple[Any, ...]]], caps: tuple[int, int]
) -> None:
    tables = [member(name, rows=cap) for name, cap in zip(NAMES, caps, strict=False)]
    files = []
    with duckdb.connect() as duck:
        for table, one in zip(tables, found, strict=True):
            for statement in load_sql(table.name, one):
                duck.execute(statement)
            path = folder / f"{table.name}{next(_files)}.parquet"
            duck.execute(f"COPY {table.name} TO '{path}'")
            files.append(replace(table, relation=f"parquet.`{path}`"))
        expected = duck.execute(joined_rows_sql(tables, DUCKDB)).fetchall()
    joined = connected.rows(joined_rows_sql(files, connected.dialect))
    assert Counter(joined) == Counter(expected)
    check_joined(found, caps, joined)


def test_no_step_gives_more_rows_than_are_stored_or_joined(connected: Any, folder: Path) -> None:
    """As Sail counts them where it executes a question."""
    if connected.dialect.name != SAIL.name:
        pytest.skip("Apache Spark does not say how many rows a step gave")
    for stored in ROWS:
        relations = {}
        with duckdb.connect() as duck:
            for name in NAMES:
                path = folder / f"{name}{next(_files)}.parquet"
                duck.execute(f"COPY ({stored_rows_sql(stored)}) TO '{path}'")
                relations[name] = f"parquet.`{path}`"
        for tables, sql in joined_questions():
            asked = planned_sql(tables, sql, connected.dialect, relations)
            ((told,),) = connected.rows(f"EXPLAIN ANALYZE {asked}")
            steps = [float(n) * _TIMES[k] for n, k in re.findall(r"output_rows=([0-9.]+) ?([KMB]?)", told)]
            check_steps(steps, tables=tables, rows=stored)
