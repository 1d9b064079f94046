"""Units that rows reach through keys, and joins along these, on engines that speak Spark SQL: the integers are those of
stored units and joined rows."""

from pathlib import Path
from typing import Any

import duckdb
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner.catalog.model import Catalog
from planner.lower.scan import rewrite
from tests.effort import examples
from tests.planner.asked import asked
from tests.proxy.sources.unit_paths.shop import TYPES, load_sql, name_plainly, shops, store_units
from tests.proxy.sources.unit_paths.test_unit_paths import ASKED

_NAMES = (*TYPES, *(f"stored_{name}" for name in TYPES))


@examples(40, quick=3, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=shops(), asks=st.sampled_from(ASKED))
def test_rows_count_for_the_unit_that_they_lead_to(
    connected: Any, tmp_path: Path, rows: dict[str, list[tuple[Any, ...]]], asks: tuple[Catalog, tuple[str, ...]]
) -> None:
    """Rows are written by DuckDB into files, which views of the tables' names read."""
    catalog, statements = name_plainly(asks[0]), asks[1]
    with duckdb.connect() as duck:
        for statement in load_sql(rows, catalog.tables[0].unit):
            duck.execute(statement)
        for name in _NAMES:
            path = tmp_path / f"{name}{len(list(tmp_path.iterdir()))}.parquet"
            duck.execute(f"COPY {name} TO '{path}'")
            connected.execute(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM parquet.`{path}`")
    for sql in statements:
        question = asked(sql, catalog=catalog)
        found, expected = (
            sorted(connected.rows(rewrite(one, dialect=connected.dialect).sql), key=repr)
            for one in (question, store_units(question))
        )
        assert found == expected, sql
    for name in _NAMES:
        connected.execute(f"DROP VIEW {name}")
