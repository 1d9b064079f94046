"""One row's work is bounded along keys and in lists of units: no step of an engine gives more rows than tables have.

Nothing is timed. Rows are counted by the engine, for each step of the plan that it executed.
"""

import json

import duckdb

from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan
from tests.planner.asked import asked
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
    "SELECT l_mode FROM lines GROUP BY l_mode HAVING count(DISTINCT household) > 4",
    f"SELECT o_month, region FROM lines JOIN orders ON {_KEY} JOIN customers ON o_customer = c_key GROUP BY 1, 2"
    " HAVING count(*) > 4 AND sum(o_price) > 4",
    "SELECT l_mode FROM lines WHERE household IN (SELECT household FROM orders WHERE o_month = 1) AND household NOT IN"
    " (SELECT household FROM customers WHERE region = 'south') GROUP BY l_mode HAVING count(*) > 4",
)


def _load(name: str, columns: str) -> str:
    types = ", ".join(f"{column} {kind}" for column, kind in TYPES[name].items())
    made = f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} ({types})"
    return f"{made}; INSERT INTO {name} SELECT {columns} FROM {_NUMBERS}"


def test_no_step_gives_more_rows_than_a_table_has(engines: Engines) -> None:
    """Keys repeat in one table or in two, one unit has all rows, or nobody has any: no join multiplies rows.

    Two branches that are put together may give each row once, and one key more.
    """
    plans = [
        {dialect: plan(asked(sql, catalog=compiled()), dialect=dialect).rewritten.sql for dialect in (DUCKDB, POSTGRES)}
        for sql in ASKED
    ]
    with duckdb.connect() as duck:
        for name, odd in SKEWED.items():
            loads = "; ".join(_load(table, columns) for table, columns in (EVEN | odd).items())
            duck.execute(loads)
            engines.writer.execute(f"{loads}; ANALYZE {', '.join(TYPES)}".encode())
            for sql, written in zip(ASKED, plans, strict=True):
                told = duck.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {written[DUCKDB]}").fetchone()
                assert told is not None
                steps = [one["intermediate_rows"] for one in walk(json.loads(told[1])["operator"][0], "children")]
                assert max(steps) <= ROWS + 1, (name, sql, steps)
                told = engines.writer.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {written[POSTGRES]}".encode()).fetchone()
                assert told is not None
                nodes = walk(told[0][0]["Plan"], "Plans")
                steps = [one["Actual Rows"] * one["Actual Loops"] for one in nodes]
                assert max(steps) <= ROWS + 1, (name, sql, steps)
    engines.writer.execute(f"DROP TABLE {', '.join(TYPES)}".encode())
