"""Questions over a market, on the engines: groups are those that PostgreSQL counts, and one customer moves no other.

Keys repeat where the owner vouched that they do not, lead nowhere, and hold the least and greatest values of types.
"""

from collections.abc import Mapping
from typing import Any

import duckdb
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.scan import rewrite
from tests.effort import examples
from tests.planner.asked import asked
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


def _truth(key: str, source: str, engines: Engines) -> Mapping[Any, int]:
    rows: Any = engines.writer.execute(f"SELECT {key}, count(*) FROM {source} GROUP BY 1".encode()).fetchall()
    return {value: count for value, count in rows if value is not None and value in (0, 1, 2, 3)}


@examples(80, quick=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=markets(), customer=st.sampled_from((1, 2, 3)))
def test_groups_count_the_rows_that_postgresql_counts(
    engines: Engines, rows: dict[str, list[tuple[Any, ...]]], customer: int
) -> None:
    """Both engines give what PostgreSQL counts over rows with a unit. Without one customer no group counts more of the
    others, or less: the change is what that customer's rows alone are counted for."""
    worlds = []
    questions = [
        asked(f"SELECT {key} {sql} GROUP BY {key} HAVING count(*) > 4", catalog=MARKET) for sql, key, _ in ASKED
    ]
    with duckdb.connect() as duck:
        for world in (rows, take_away(rows, customer)):
            for statement in load_sql(world):
                duck.execute(statement)
            engines.writer.execute("; ".join([*load_sql(world), *truth_sql()]).encode())
            answers = []
            for question, (sql, key, source) in zip(questions, ASKED, strict=True):
                expected = _truth(key, source, engines)
                found: list[Any] = [
                    duck.execute(rewrite(question, dialect=DUCKDB).sql).fetchall(),
                    engines.writer.execute(rewrite(question, dialect=POSTGRES).sql.encode()).fetchall(),
                ]
                for one in found:
                    assert {group: count for group, count in one if count} == expected, sql
                answers.append(expected)
            worlds.append(answers)
    for question, before, after in zip(questions, *worlds, strict=True):
        moved = [group for group in before.keys() | after.keys() if before.get(group, 0) != after.get(group, 0)]
        assert all(before.get(group, 0) >= after.get(group, 0) for group in moved)
        assert len(moved) <= question.table.groups_per_unit
