"""Units that rows reach through keys, joins along these, and lists of units, on engines that speak Spark SQL.

The integers are those of stored units and joined rows, and those of DuckDB.
"""

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
from tests.proxy.sources.markets import market
from tests.proxy.sources.markets.test_markets import ASKED as ASKED_OF_MARKETS
from tests.proxy.sources.markets.test_markets import MARKET, ROWS_OF_KEYS
from tests.proxy.sources.unit_lists.listed import ASKED as ASKED_OF_LISTS
from tests.proxy.sources.unit_lists.listed import OF_ODD_ROWS
from tests.proxy.sources.unit_paths.shop import TYPES, compiled, load_sql, name_plainly, shops, store_units
from tests.proxy.sources.unit_paths.test_unit_paths import ASKED
from tests.worlds.policies import changed

_DEAR = tuple(sql for sql in OF_ODD_ROWS if " LIKE " in sql or "1 / min(o_price)" in sql)
_ODD_ROWS = tuple(sql for sql in OF_ODD_ROWS if sql not in _DEAR)
_NAMES = (*TYPES, *(f"stored_{name}" for name in TYPES))
# Smaller cases of a failure are not looked for: a case takes seconds.
_PHASES = [Phase.explicit, Phase.generate]
_SETTLED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@examples(40, quick=3, phases=_PHASES, suppress_health_check=_SETTLED)
@given(rows=shops(), asks=st.sampled_from(ASKED))
def test_rows_count_for_the_unit_that_they_lead_to(
    connected: Any, tmp_path: Path, rows: dict[str, list[tuple[Any, ...]]], asks: tuple[Catalog, tuple[str, ...]]
) -> None:
    catalog, statements = name_plainly(asks[0]), asks[1]
    with connected.tables(load_sql(rows, catalog.tables[0].unit), _NAMES, tmp_path):
        for sql in statements:
            question = asked(sql, catalog=catalog)
            found, expected = (
                sorted(connected.rows(rewrite(one, dialect=connected.dialect).sql), key=repr)
                for one in (question, store_units(question))
            )
            assert found == expected, sql


@examples(40, quick=3, phases=_PHASES, suppress_health_check=_SETTLED)
@given(rows=shops(), asks=st.sampled_from([*ASKED_OF_LISTS, (ASKED_OF_LISTS[0][0], "", _ODD_ROWS)]))
def test_lists_of_units_hold_those_that_duckdb_lists(
    connected: Any, tmp_path: Path, rows: dict[str, list[tuple[Any, ...]]], asks: tuple[Catalog, str, tuple[str, ...]]
) -> None:
    catalog, _, statements = asks
    with connected.tables(load_sql(rows, catalog.tables[0].unit), _NAMES, tmp_path) as duck:
        for sql in statements:
            expected = duck.execute(rewrite(asked(sql, catalog=catalog), dialect=DUCKDB).sql).fetchall()
            question = asked(sql, catalog=name_plainly(catalog))
            found = connected.rows(rewrite(question, dialect=connected.dialect).sql)
            assert sorted(map(tuple, found), key=repr) == sorted(expected, key=repr), sql


def test_dear_conditions_of_lists_are_refused_by_their_text(connected: Any) -> None:
    for sql in _DEAR:
        with pytest.raises(KeyholeError, match="KH214"):
            rewrite(asked(sql, catalog=ASKED_OF_LISTS[0][0]), dialect=connected.dialect)


@examples(40, quick=2, phases=_PHASES, suppress_health_check=_SETTLED)
@given(rows=market.markets(), asks=st.sampled_from((ASKED_OF_MARKETS, ROWS_OF_KEYS)))
def test_rows_of_one_key_are_those_of_duckdb(
    connected: Any, tmp_path: Path, rows: dict[str, list[tuple[Any, ...]]], asks: tuple[tuple[str, str, str], ...]
) -> None:
    with connected.tables(market.load_sql(rows), tuple(market.TYPES), tmp_path) as duck:
        for sql, key, _ in asks:
            statement = f"SELECT {key} {sql} GROUP BY {key} HAVING count(*) > 4"
            expected = duck.execute(rewrite(asked(statement, catalog=MARKET), dialect=DUCKDB).sql).fetchall()
            question = asked(statement, catalog=name_plainly(MARKET))
            found = connected.rows(rewrite(question, dialect=connected.dialect).sql)
            assert sorted(found, key=repr) == sorted(expected, key=repr), sql


def test_a_zero_with_a_sign_or_any_nan_chooses_no_other_row_of_a_key(connected: Any, tmp_path: Path) -> None:
    types = {**market.TYPES, "orders": {**market.TYPES["orders"], "a_rate": "double precision"}}
    catalog = compiled(changed(("o_key = {}", "o_key = {}\na_rate = {}"), text=market.POLICY), types)
    found: dict[str, list[tuple[Any, ...]]] = {
        "customers": [],
        "orders": [(1, 1, 2, 0, "-0"), (1, 1, 1, 0, "0"), (2, 1, 1, 0, "-nan"), (2, 1, 3, 0, "5")],
        "lines": [(1, 1, 1, True, 1), (2, 1, 1, True, 1), (2, 1, 2, True, 1)],
    }
    made = [
        f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in of.items())})"
        for name, of in types.items()
    ]
    made += [f"INSERT INTO {name} VALUES {', '.join(map(str, rows))}" for name, rows in found.items() if rows]
    sql = "SELECT o_month FROM lines, orders WHERE l_order = o_key GROUP BY o_month HAVING count(*) > 4"
    with connected.tables(made, tuple(types), tmp_path) as duck:
        expected = duck.execute(rewrite(asked(sql, catalog=catalog), dialect=DUCKDB).sql).fetchall()
        answer = connected.rows(rewrite(asked(sql, catalog=name_plainly(catalog)), dialect=connected.dialect).sql)
        assert sorted(answer) == sorted(expected) == [(1, 1), (3, 2)]
