"""Questions over a market, on the engines: groups are those that PostgreSQL counts, and one customer moves no other.

Keys repeat where the owner vouched that they do not, lead nowhere, and hold the least and greatest values of types.
"""

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import duckdb
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from planner.functionals.cells import find_cell_reach
from planner.lower import joins
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.scan import rewrite
from planner.question.plan import Rewritten
from planner.question.question import Question
from planner.question.unit_groups import count_unit_groups
from proxy.sources.pinned_relations import DATABASE, DuckDBPins, PostgresPins
from tests.effort import examples
from tests.planner.asked import asked, asked_once, rewritten_once
from tests.proxy.sources.markets.market import load_sql, market, markets, take_away, truth_sql
from tests.proxy.sources.worlds import Engines

MARKET = market()
# What is asked, the key, and FROM and WHERE of what PostgreSQL counts over rows that have a unit.
ASKED: tuple[tuple[str, str, str], ...] = (
    (
        "FROM customers, orders, lines, suppliers WHERE c_key = o_customer AND l_order = o_key AND l_supplier = s_key"
        " AND c_nation = s_nation",
        "c_nation",
        "true_lines JOIN true_customers ON c_key = o_customer JOIN suppliers ON s_key = l_supplier"
        " WHERE c_nation = s_nation",
    ),
    (
        "FROM lines, stock, orders WHERE l_order = o_key AND k_part = l_part AND k_cost > 1"
        " AND l_supplier = k_supplier",
        "o_month",
        "true_lines JOIN stock ON k_part = l_part AND k_supplier = l_supplier WHERE k_cost > 1",
    ),
    (
        "FROM lines, suppliers WHERE (s_key = l_supplier AND s_nation = 0 AND l_late)"
        " OR (l_amount > 0 AND s_key = l_supplier AND s_nation = 1) OR (s_key = l_supplier AND l_part = 3)",
        "l_part",
        "true_lines JOIN suppliers ON s_key = l_supplier"
        " WHERE s_nation = 0 AND l_late OR l_amount > 0 AND s_nation = 1 OR l_part = 3",
    ),
    (
        "FROM lines LEFT JOIN stock ON k_part = l_part AND l_supplier = k_supplier WHERE k_cost IS NULL",
        "l_late",
        "true_lines LEFT JOIN stock ON k_part = l_part AND k_supplier = l_supplier WHERE k_cost IS NULL",
    ),
)

ROWS_OF_KEYS: tuple[tuple[str, str, str], ...] = (
    (
        "FROM orders WHERE EXISTS (SELECT * FROM lines WHERE l_order = o_key AND l_late)",
        "o_month",
        "true_orders o WHERE EXISTS (SELECT FROM true_lines l WHERE l.l_order = o.o_key"
        " AND l.o_customer = o.o_customer AND l_late)",
    ),
    (
        "FROM orders o, customers WHERE NOT EXISTS (SELECT 1 FROM lines x WHERE o_key = x.l_order AND x.l_amount > 1)"
        " AND o_customer = c_key AND o.o_key IN (SELECT l_order FROM lines WHERE l_part = 1)",
        "c_nation",
        "true_orders o JOIN true_customers ON o_customer = c_key WHERE NOT EXISTS (SELECT FROM true_lines l"
        " WHERE l.l_order = o.o_key AND l.o_customer = o.o_customer AND l_amount > 1)"
        " AND (o_key, o_customer) IN (SELECT l_order, true_lines.o_customer FROM true_lines WHERE l_part = 1)",
    ),
    (
        "FROM lines l1, orders WHERE o_key = l1.l_order AND o_price < 9 AND EXISTS (SELECT * FROM lines l2 WHERE"
        " l2.l_order = l1.l_order AND l2.l_supplier <> l1.l_supplier) AND NOT EXISTS (SELECT * FROM lines l3"
        " WHERE l3.l_order = l1.l_order AND l1.l_part < l3.l_part AND l3.l_late)",
        "o_month",
        "true_lines a WHERE o_price < 9 AND EXISTS (SELECT FROM true_lines b WHERE b.l_order = a.l_order"
        " AND b.o_customer = a.o_customer AND b.l_supplier <> a.l_supplier) AND NOT EXISTS (SELECT FROM true_lines c"
        " WHERE c.l_order = a.l_order AND c.o_customer = a.o_customer AND c.l_part > a.l_part AND c.l_late)",
    ),
    (
        "FROM orders WHERE o_key IN (SELECT l_order FROM lines WHERE l_part <> 3 GROUP BY l_order"
        " HAVING sum(l_amount) > 3 OR count(*) >= 3)",
        "o_month",
        "true_orders WHERE (o_key, o_customer) IN (SELECT l_order, o_customer FROM true_lines WHERE l_part <> 3"
        " GROUP BY 1, 2 HAVING sum(l_amount) > 3 OR count(*) >= 3)",
    ),
    (
        "FROM orders o JOIN (SELECT l_order, count(*) AS n FROM lines WHERE l_late GROUP BY 1) b ON b.l_order = o.o_key"
        " WHERE b.n > 1 AND o_price > 1",
        "o_month",
        "true_orders WHERE (o_key, o_customer) IN (SELECT l_order, o_customer FROM true_lines WHERE l_late"
        " GROUP BY 1, 2 HAVING count(*) > 1) AND o_price > 1",
    ),
    (
        "FROM customers WHERE c_key IN (SELECT o_customer FROM orders JOIN lines ON l_order = o_key WHERE l_late)",
        "c_nation",
        "true_customers WHERE c_key IN (SELECT o_customer FROM true_lines WHERE l_late)",
    ),
    (
        "FROM lines WHERE l_order IN (SELECT o_key FROM orders WHERE o_price > 1) AND l_amount > -5",
        "l_late",
        "true_lines l WHERE EXISTS (SELECT FROM true_orders o WHERE l.l_order = o.o_key AND l.o_customer = o.o_customer"
        " AND o.o_price > 1) AND l_amount > -5",
    ),
)


# Two customers have an order with the same key, whose lines are of several suppliers, and the first one's.
SHARED: dict[str, list[tuple[Any, ...]]] = {
    "customers": [(1, 0), (2, 1)],
    "orders": [(1, 1, 1, 2), (1, 2, 2, 7), (2, 2, 3, 7)],
    "lines": [(1, 1, 1, True, 5), (1, 2, 2, False, 2), (1, 3, 2, False, 9), (2, 1, 1, True, -9), (2, 3, 1, False, 2)],
}


_LARGE: dict[tuple[int, str], tuple[Question, Rewritten]] = {}


def _truth(key: str, source: str, engines: Engines) -> Mapping[Any, int]:
    rows: Any = engines.writer.execute(f"SELECT {key}, count(*) FROM {source} GROUP BY 1".encode()).fetchall()
    return {value: count for value, count in rows if value is not None and value in (0, 1, 2, 3)}


def _write(question: Question, dialect: Dialect, large: bool) -> Rewritten:
    """The question in a dialect, with its public rows in the statement or, if they are taken as `large`, beside it."""
    if not large:
        return rewritten_once(question, dialect)
    key = id(question), dialect.name
    if key not in _LARGE:
        with patch.object(joins, "MOST_SPELLED", 0):
            _LARGE[key] = question, rewrite(question, dialect=dialect)
    return _LARGE[key][1]


@examples(160, quick=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    rows=markets(),
    customer=st.sampled_from((1, 2, 3)),
    asks=st.sampled_from((ASKED, ROWS_OF_KEYS)),
    large=st.booleans(),
)
@example(rows=SHARED, customer=1, asks=ROWS_OF_KEYS, large=False)
@example(rows=SHARED, customer=1, asks=ASKED, large=True)
def test_groups_count_the_rows_that_postgresql_counts(
    engines: Engines,
    rows: dict[str, list[tuple[Any, ...]]],
    customer: int,
    asks: tuple[tuple[str, str, str], ...],
    large: bool,
) -> None:
    """Both engines give what PostgreSQL counts over rows with a unit. Without one customer no group counts more of the
    others, or less: the change is what that customer's rows alone are counted for.

    Public tables may be taken as too large to stand in a statement.
    """
    worlds = []
    questions = [asked_once(f"SELECT {key} {sql} GROUP BY {key} HAVING count(*) > 4", MARKET) for sql, key, _ in asks]
    postgres_pins = PostgresPins()
    with duckdb.connect() as duck:
        duck.execute(f"ATTACH ':memory:' AS {DATABASE}")
        duck_pins = DuckDBPins(duck)
        for world in (rows, take_away(rows, customer)):
            for statement in load_sql(world):
                duck.execute(statement)
            engines.writer.execute("; ".join([*load_sql(world), *truth_sql()]).encode())
            answers = []
            for question, (sql, key, source) in zip(questions, asks, strict=True):
                expected = _truth(key, source, engines)
                on_duck, on_postgres = (_write(question, dialect, large) for dialect in (DUCKDB, POSTGRES))
                with duck_pins.provide_tables(on_duck.sql, on_duck.pinned_relations) as text:
                    found: list[Any] = [duck.execute(text).fetchall()]
                found.append(
                    postgres_pins.run(engines.writer, on_postgres.sql, on_postgres.pinned_relations).fetchall()
                )
                for one in found:
                    assert {group: count for group, count in one if count} == expected, sql
                answers.append(expected)
            worlds.append(answers)
    for question, before, after in zip(questions, *worlds, strict=True):
        moved = [group for group in before.keys() | after.keys() if before.get(group, 0) != after.get(group, 0)]
        assert all(before.get(group, 0) >= after.get(group, 0) for group in moved)
        assert len(moved) <= count_unit_groups(question)


def test_cells_pay_twice_where_rows_come_and_go() -> None:
    """What a cell takes away makes rows vanish behind EXISTS alone. Else other rows can come, in other groups."""
    doubled = [
        find_cell_reach(asked_once(f"SELECT {key} {sql} GROUP BY {key} HAVING count(*) > 4", MARKET))
        for sql, key, _ in ROWS_OF_KEYS
    ]
    assert [one.is_doubled for one in doubled] == [False, True, True, True, True, False, False]
    assert all(one.reaches_other_groups and one.changes_all_groups for one in doubled)
    signs = "SELECT l_late FROM lines WHERE l_order IN (SELECT o_key FROM orders) GROUP BY 1 HAVING sum(l_amount) > 9"
    assert find_cell_reach(asked(signs, catalog=MARKET)).is_doubled
