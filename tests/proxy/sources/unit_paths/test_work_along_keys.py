"""One row's work is bounded along keys, in lists and in values of units: no step gives more rows than tables have.

Nothing is timed. Rows are counted by the engine, for each step of the plan that it executed.
"""

import json
from collections.abc import Mapping, Sequence

import duckdb
import pytest

from planner.catalog.catalog import Catalog
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from tests.planner.asked import asked
from tests.proxy.sources.markets.market import TYPES as OF_MARKET
from tests.proxy.sources.markets.market import market
from tests.proxy.sources.test_work_of_a_row import walk
from tests.proxy.sources.unit_paths.shop import TYPES, compiled
from tests.proxy.sources.worlds import Engines

ROWS = 300
_NUMBERS = f"generate_series(1, {ROWS}) AS t(i)"
EVEN = {
    "customers": "i, 'h' || CAST(i AS text), 'north'",
    "orders": "'a', i, i, 1 + i % 3, 5",
    "lines": "'a', i, 'air', 1 + i % 3, 1",
}
# Each as no constraint would have it: what one table holds in the place of its even rows.
SKEWED = {
    "no key repeats": {},
    "every order has one key": {"orders": "'a', 7, i, 1, 5"},
    "every line is of one order": {"lines": "'a', 7, 'air', 1, 1"},
    "every order and every line have one key": {"orders": "'a', 7, i, 1, 5", "lines": "'a', 7, 'air', 1, 1"},
    "every customer has one key": {"customers": "7, 'h' || CAST(i AS text), 'north'", "orders": "'a', i, 7, 1, 5"},
    "one household has everything": {"customers": "i, 'ann', 'north'"},
    "keys are NULL": {"orders": "NULL, i, i, 1, 5", "lines": "'a', NULL, 'air', 1, 1"},
}
_KEY = "l_shop = o_shop AND l_order = o_key"
ASKED = (
    "SELECT l_mode FROM lines WHERE l_month > 1 GROUP BY l_mode HAVING sum(amount) > 4 AND count(*) > 4",
    "SELECT l_mode FROM lines GROUP BY l_mode HAVING count(DISTINCT household) > 4",
    f"SELECT o_month, region FROM lines JOIN orders ON {_KEY} JOIN customers ON o_customer = c_key GROUP BY 1, 2"
    " HAVING count(*) > 4 AND sum(o_price) > 4",
    "SELECT l_mode FROM lines WHERE household IN (SELECT household FROM orders WHERE o_month = 1) AND household NOT IN"
    " (SELECT household FROM customers WHERE region = 'south') GROUP BY l_mode HAVING count(*) > 4",
    "SELECT region FROM customers c WHERE household IN (SELECT household FROM lines GROUP BY household, l_month HAVING"
    " sum(amount) > 3 AND count(DISTINCT l_mode) < 2) AND household NOT IN (SELECT household FROM orders GROUP BY 1"
    " HAVING avg(o_price) > 5 OR max(o_month) = 1) AND (SELECT count(*) FROM orders o WHERE o.household = c.household)"
    " > 1 GROUP BY region HAVING count(*) > 4",
    "SELECT l_mode FROM lines JOIN (SELECT household, count(*) AS n, min(o_price) AS low, avg(o_price) AS mean FROM"
    " orders GROUP BY 1 HAVING max(o_month) > 1) o USING (household) WHERE amount < mean OR n > 2 GROUP BY 1"
    " HAVING count(*) > 4",
    "SELECT l_mode FROM (SELECT *, row_number() OVER (PARTITION BY household ORDER BY l_month, amount) AS n,"
    " lag(amount) OVER (PARTITION BY household ORDER BY l_month) AS was FROM lines) q WHERE n < 9 AND was = amount"
    " GROUP BY 1 HAVING count(*) > 4",
)

EVEN_MARKET = {"customers": "i, 1", "orders": "i, i, 1 + i % 3, 5", "lines": "i, 1 + i % 3, i, i % 2 = 0, 1"}
SKEWED_MARKET = {
    "every order has one key": {"orders": "7, i, 1, 5"},
    "every order and every line have one key": {"orders": "7, i, 1, 5", "lines": "7, i, i, true, 1"},
    "one customer has everything": {"orders": "i, 1, 1 + i % 3, 5", "lines": "7, i, i, true, 1"},
}
LISTS_OF_KEYS = (
    "SELECT o_month FROM orders WHERE EXISTS (SELECT 1 FROM lines WHERE l_order = o_key AND l_late) AND o_key IN"
    " (SELECT l_order FROM lines GROUP BY 1 HAVING sum(l_amount) > 3 OR count(DISTINCT l_part) < 9) GROUP BY 1"
    " HAVING count(*) > 4",
    "SELECT l_late FROM lines a WHERE NOT EXISTS (SELECT 1 FROM lines b WHERE b.l_order = a.l_order AND b.l_supplier <>"
    " a.l_supplier) GROUP BY 1 HAVING count(*) > 4",
)


def _load(name: str, columns: str, types: Mapping[str, str]) -> str:
    declared = ", ".join(f"{column} {kind}" for column, kind in types.items())
    made = f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} ({declared})"
    return f"{made}; INSERT INTO {name} SELECT {columns} FROM {_NUMBERS}"


@pytest.mark.parametrize(
    ("catalog", "types", "even", "skewed", "statements"),
    [
        pytest.param(compiled(), TYPES, EVEN, SKEWED, ASKED, id="paths, lists and values"),
        pytest.param(market(), OF_MARKET, EVEN_MARKET, SKEWED_MARKET, LISTS_OF_KEYS, id="lists of keys"),
    ],
)
def test_no_step_gives_more_rows_than_a_table_has(
    engines: Engines,
    catalog: Catalog,
    types: Mapping[str, Mapping[str, str]],
    even: Mapping[str, str],
    skewed: Mapping[str, Mapping[str, str]],
    statements: Sequence[str],
) -> None:
    """Keys repeat in one table or in two, one unit has all rows, or nobody has any: no join multiplies rows.

    Two branches that are put together may give each row once, and one key more.
    """
    plans = [
        {
            dialect: plan_question(asked(sql, catalog=catalog), dialect=dialect).rewritten
            for dialect in (DUCKDB, POSTGRES)
        }
        for sql in statements
    ]
    apart = [
        (sql, {dialect: one.from_kept_steps for dialect, one in written.items() if one.from_kept_steps is not None})
        for sql, written in zip(statements, plans, strict=True)
    ]
    every = [*zip(statements, plans, strict=True), *(one for one in apart if one[1])]
    engines.writer.execute("SET enable_nestloop = off")  # as a source has it
    with duckdb.connect() as duck:
        for name, odd in skewed.items():
            loads = "; ".join(_load(table, columns, types[table]) for table, columns in {**even, **odd}.items())
            duck.execute(loads)
            engines.writer.execute(f"{loads}; ANALYZE {', '.join(types)}".encode())
            for sql, written in every:
                told = duck.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {written[DUCKDB].sql}").fetchone()
                assert told is not None
                steps = [one["intermediate_rows"] for one in walk(json.loads(told[1])["operator"][0], "children")]
                assert max(steps) <= ROWS + 1, (name, sql, steps)
                told = engines.writer.execute(
                    f"EXPLAIN (ANALYZE, FORMAT JSON) {written[POSTGRES].sql}".encode()
                ).fetchone()
                assert told is not None
                nodes = walk(told[0][0]["Plan"], "Plans")
                steps = [one["Actual Rows"] * one["Actual Loops"] for one in nodes]
                assert max(steps) <= ROWS + 1, (name, sql, steps)
    engines.writer.execute(f"DROP TABLE {', '.join(types)}; RESET enable_nestloop".encode())
