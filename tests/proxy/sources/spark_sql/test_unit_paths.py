"""Units that rows reach through keys, joins along these, and lists of units, on engines that speak Spark SQL.

The integers are those of stored units and joined rows, and those of DuckDB.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner.catalog.model import Catalog
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.scan import rewrite
from tests.effort import examples
from tests.planner.asked import asked
from tests.proxy.sources.unit_lists.listed import ASKED as ASKED_OF_LISTS
from tests.proxy.sources.unit_lists.listed import OF_ODD_ROWS
from tests.proxy.sources.unit_paths.shop import TYPES, load_sql, name_plainly, shops, store_units
from tests.proxy.sources.unit_paths.test_unit_paths import ASKED

_ODD_ROWS = tuple(sql for sql in OF_ODD_ROWS if " LIKE " not in sql)  # such patterns are refused on Sail (KH214)
_NAMES = (*TYPES, *(f"stored_{name}" for name in TYPES))


@contextmanager
def stored(
    rows: dict[str, list[tuple[Any, ...]]], unit: tuple[str, ...], connected: Any, folder: Path
) -> Iterator[Any]:
    """Rows that DuckDB writes into files, which views of the tables' names read; what DuckDB's tables hold, too."""
    with duckdb.connect() as duck:
        for statement in load_sql(rows, unit):
            duck.execute(statement)
        for name in _NAMES:
            path = folder / f"{name}{len(list(folder.iterdir()))}.parquet"
            duck.execute(f"COPY {name} TO '{path}'")
            connected.execute(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM parquet.`{path}`")
        yield duck
    for name in _NAMES:
        connected.execute(f"DROP VIEW {name}")


@examples(40, quick=3, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=shops(), asks=st.sampled_from(ASKED))
def test_rows_count_for_the_unit_that_they_lead_to(
    connected: Any, tmp_path: Path, rows: dict[str, list[tuple[Any, ...]]], asks: tuple[Catalog, tuple[str, ...]]
) -> None:
    catalog, statements = name_plainly(asks[0]), asks[1]
    with stored(rows, catalog.tables[0].unit, connected, tmp_path):
        for sql in statements:
            question = asked(sql, catalog=catalog)
            found, expected = (
                sorted(connected.rows(rewrite(one, dialect=connected.dialect).sql), key=repr)
                for one in (question, store_units(question))
            )
            assert found == expected, sql


@examples(40, quick=3, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=shops(), asks=st.sampled_from([*ASKED_OF_LISTS, (ASKED_OF_LISTS[0][0], "", _ODD_ROWS)]))
def test_lists_of_units_hold_those_that_duckdb_lists(
    connected: Any, tmp_path: Path, rows: dict[str, list[tuple[Any, ...]]], asks: tuple[Catalog, str, tuple[str, ...]]
) -> None:
    catalog, _, statements = asks
    with stored(rows, catalog.tables[0].unit, connected, tmp_path) as duck:
        for sql in statements:
            expected = duck.execute(rewrite(asked(sql, catalog=catalog), dialect=DUCKDB).sql).fetchall()
            question = asked(sql, catalog=name_plainly(catalog))
            found = connected.rows(rewrite(question, dialect=connected.dialect).sql)
            assert sorted(map(tuple, found), key=repr) == sorted(expected, key=repr), sql
