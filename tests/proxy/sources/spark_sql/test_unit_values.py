"""Values of units' own rows on engines that speak Spark SQL: the integers are those of DuckDB, whatever rows hold."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.scan import rewrite
from tests.effort import examples
from tests.planner.asked import asked
from tests.proxy.sources.unit_values.doubles import DOUBLES, OF_DOUBLES, PERSONS, load_doubles_sql
from tests.proxy.sources.unit_values.valued import (
    ASKED,
    CATALOG,
    ODD,
    OF_EXPRESSIONS,
    OF_ROWS,
    OF_SUMS,
    TIGHT,
    TYPES,
    Rows,
    draw_rows,
    load_sql,
)

_DEAR = tuple(sql for sql in ODD if " LIKE " in sql)
_OF_PARTS = (
    "SELECT extract(dow FROM bought) IN (0, 6) AS weekend, extract(hour FROM bought) >= 18 AS evening FROM buys"
    " GROUP BY 1, 2 HAVING count(*) > 0",
    "SELECT month = cohort AS new, month FROM (SELECT person, month, min(month) OVER (PARTITION BY person) AS cohort"
    " FROM buys) q GROUP BY 1, 2 HAVING count(DISTINCT person) > 0",
)
_FAMILIES = ((*ASKED, *_OF_PARTS), OF_ROWS, (*OF_SUMS, *OF_EXPRESSIONS, *(sql for sql in ODD if sql not in _DEAR)))


@examples(
    60,
    quick=3,
    phases=[Phase.explicit, Phase.generate],  # a smaller case takes seconds as well
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=draw_rows(odd=True), statements=st.sampled_from(_FAMILIES), catalog=st.sampled_from((CATALOG, TIGHT)))
def test_values_are_those_of_duckdb(
    connected: Any, tmp_path: Path, rows: Rows, statements: tuple[str, ...], catalog: Catalog
) -> None:
    with connected.tables(load_sql(rows), tuple(TYPES), tmp_path) as duck:
        for sql in statements:
            _compare(sql, catalog, connected, duck)


def test_dear_conditions_of_values_are_refused_by_their_text(connected: Any) -> None:
    assert _DEAR
    for sql in _DEAR:
        with pytest.raises(KeyholeError, match="KH214"):
            rewrite(asked(sql, catalog=CATALOG, tolerance="0"), dialect=connected.dialect)


def test_doubles_that_are_no_finite_numbers_are_ordered_as_on_duckdb(connected: Any, tmp_path: Path) -> None:
    """In whatever order rows come, and with whatever sign a zero is written."""
    with connected.tables(load_doubles_sql(PERSONS), ("buys",), tmp_path) as duck:
        for sql in OF_DOUBLES:
            _compare(sql, DOUBLES, connected, duck)


def _compare(sql: str, catalog: Catalog, connected: Any, duck: Any) -> None:
    question = asked(sql, catalog=catalog, tolerance="0")
    expected = duck.execute(rewrite(question, dialect=DUCKDB).sql).fetchall()
    found = connected.rows(rewrite(question, dialect=connected.dialect).sql)
    assert sorted(found, key=repr) == sorted(expected, key=repr), sql
