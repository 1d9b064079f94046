"""What SQL has stored keeps what the planner knew of it: no question is refused for a sensitivity that does hold."""

from dataclasses import replace
from decimal import Decimal
from operator import attrgetter

import pytest

from planner.catalog.catalog import Catalog, Column, PublicTable, RowCap, SqlType, Table
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.measure import make_row_value
from planner.lower.row import RowSql
from planner.lower.scan import rewrite
from planner.plan.question_identity import find_fingerprint
from tests.planner.asked import asked
from tests.worlds.retail import retail

_LEVELS = PublicTable(
    name="levels",
    columns=(Column("q", SqlType.INTEGER, "integer"), Column("lev", SqlType.INTEGER, "integer")),
    rows=((0, 1), (1, 1), (2, 2), (3, None)),
    digest="2" * 64,
)
_CLIPPED = Table(
    name="t",
    relation="t",
    columns=(
        Column("uid", SqlType.INTEGER, "integer"),
        Column("k", SqlType.TEXT, "text", domain=("a", "b", "c")),
        Column(
            "x",
            SqlType.NUMERIC,
            "numeric(10,2)",
            bounds=(Decimal(0), Decimal(1000)),
            grid=Decimal(1),
            per_unit=(Decimal(0), Decimal(500)),
        ),
        Column("qty", SqlType.INTEGER, "integer"),
        Column("line", SqlType.INTEGER, "integer"),
    ),
    unit=("uid",),
    groups_per_unit=1,
    rows_per_unit=3,
    row_cap=None,
    refresh="static",
    seed="s",
)
_CAPPED = replace(_CLIPPED, unit=("qty",), rows_per_unit=None, row_cap=RowCap(rows=2, unique="line"))
_JOINED = "FROM t LEFT JOIN levels l ON l.q = qty GROUP BY k"


def _catalog(table: Table) -> Catalog:
    return replace(retail(), tables=(table,), public_tables=(_LEVELS,), stored_questions=())


@pytest.mark.parametrize("dialect", [POSTGRES, DUCKDB], ids=attrgetter("name"))
@pytest.mark.parametrize("refresh", ["static", "live"])
@pytest.mark.parametrize(
    ("table", "sql"),
    [
        (_CLIPPED, "SELECT k FROM t GROUP BY k HAVING sum(x) > 100"),
        (_CAPPED, f"SELECT k {_JOINED} HAVING count(DISTINCT lev) > 1"),
        (_CAPPED, "SELECT k FROM t GROUP BY k HAVING count(DISTINCT qty) > 1"),
        (_CAPPED, "SELECT k FROM t GROUP BY k HAVING count(DISTINCT qty % 5) > 1"),
        (_CAPPED, "SELECT k FROM t GROUP BY k HAVING count(DISTINCT line % 5) > 1"),
        (_CLIPPED, f"SELECT k {_JOINED} HAVING sum(coalesce(lev, 1)) > 3"),
        (replace(_CLIPPED, unit=(), rows_per_unit=None), f"SELECT k {_JOINED} HAVING sum(coalesce(lev, 1)) > 3"),
        (_CAPPED, f"SELECT k {_JOINED} HAVING sum(coalesce(lev, 1)) > 3"),
    ],
)
def test_a_sensitivity_that_holds_is_not_refused(table: Table, sql: str, refresh: str, dialect: Dialect) -> None:
    question = asked(sql, catalog=_catalog(replace(table, refresh=refresh)), tolerance="1")
    assert (rewrite(question, dialect=dialect).rollup is None) is (refresh == "live" or table.is_row_unit)


def _fingerprint(table: Table, *, domain: tuple[str, ...]) -> str:
    columns = tuple(replace(column, domain=domain) if column.name == "k" else column for column in table.columns)
    sql = "SELECT k FROM t WHERE k IN ('a', 'b') GROUP BY k HAVING count(*) > 10"
    return find_fingerprint(asked(sql, catalog=_catalog(replace(table, columns=columns))))


def test_the_whole_domain_belongs_to_a_question_where_it_decides_which_keys_count() -> None:
    """Another value of the key may take the place of one that is asked for; where every key counts, it cannot."""
    few, many = ("a", "b", "c"), ("a", "b", "c", "d")
    assert _fingerprint(_CLIPPED, domain=few) != _fingerprint(_CLIPPED, domain=many)
    everywhere = replace(_CLIPPED, groups_per_unit=9)
    assert _fingerprint(everywhere, domain=few) == _fingerprint(everywhere, domain=many)
    single = replace(_CLIPPED, unit=(), rows_per_unit=None)
    assert _fingerprint(single, domain=few) == _fingerprint(single, domain=many)


@pytest.mark.parametrize(
    ("declared", "high", "grid"),
    [("numeric(38,18)", "9e19", "100000"), ("numeric(38,20)", "9e17", "0.01"), ("numeric(38,0)", "9e37", "1e25")],
)
def test_a_measure_too_long_for_duckdb_is_refused_and_not_left_to_fail_on_data(
    declared: str, high: str, grid: str
) -> None:
    column = replace(
        _CLIPPED.get_column("x"), declared=declared, bounds=(Decimal(0), Decimal(high)), grid=Decimal(grid)
    )
    table = replace(_CLIPPED, columns=(column,))
    assert make_row_value(RowSql(table=table, dialect=POSTGRES), column).low == 0
    with pytest.raises(KeyholeError) as refused:
        make_row_value(RowSql(table=table, dialect=DUCKDB), column)
    assert refused.value.code == "KH203"
