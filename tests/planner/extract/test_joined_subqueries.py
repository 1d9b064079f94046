"""Subqueries that only filter and project a join are the join, and names of a unit find the table that stores it."""

import pytest

from planner.statements.classify import Asking, classify
from tests.planner.asked import asked
from tests.proxy.sources.markets.market import market

MARKET = market()
PLAIN = (
    "SELECT o_month, n.s_nation FROM suppliers n, lines l, orders WHERE n.s_key = l.l_supplier AND o_key = l_order"
    " AND (o_price > 2 OR l_late) GROUP BY o_month, n.s_nation HAVING sum(l_amount) > 30"
)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT m, nation FROM (SELECT o_month AS m, n.s_nation AS nation, l_amount AS much FROM suppliers n, lines l,"
        " orders WHERE n.s_key = l.l_supplier AND o_key = l_order AND (o_price > 2 OR l_late)) AS v"
        " GROUP BY m, nation HAVING sum(much) > 30 ORDER BY m",
        "WITH v AS (SELECT o_month, n.s_nation, l_amount, l_late, o_price FROM suppliers n JOIN lines l"
        " ON n.s_key = l.l_supplier JOIN orders ON o_key = l_order) SELECT v.o_month, s_nation FROM v"
        " WHERE v.o_price > 2 OR l_late GROUP BY v.o_month, s_nation HAVING sum(l_amount) > 30",
    ],
)
def test_a_join_inside_a_subquery_is_the_join(sql: str) -> None:
    assert asked(sql, catalog=MARKET) == asked(PLAIN, catalog=MARKET)


def test_a_units_name_without_a_table_is_that_of_the_table_which_stores_it() -> None:
    """PostgreSQL, too, shall read the one that the source has: the shadow shows it in both."""
    joined = "SELECT c_nation FROM lines l, orders o, customers WHERE l_order = o_key AND {0}o_customer = c_key"
    end = " GROUP BY c_nation HAVING count(DISTINCT {0}o_customer) > 20"
    bare, qualified = ((joined + end).format(name) for name in ("", "o."))
    alone = "SELECT l_part FROM lines GROUP BY l_part HAVING count(DISTINCT o_customer) > 20"
    for sql, spelled in ((bare, qualified), (qualified, ""), (alone, "")):
        statement = classify(sql, MARKET)
        assert isinstance(statement, Asking)
        assert statement.shadow_text == spelled
    assert asked(bare, catalog=MARKET) == asked(qualified, catalog=MARKET)
