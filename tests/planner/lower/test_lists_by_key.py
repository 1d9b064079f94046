"""Lists by the key that leads to a row's own unit do not reach the units of their rows."""

import re

import pytest

from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.scan import rewrite
from tests.planner.asked import asked
from tests.proxy.sources.markets.market import market

MARKET = market()


def count_compared_units(sql: str) -> tuple[int, int]:
    """How many lists a question's rows meet by a unit, and how many joins with owners of repeated keys there are."""
    question = asked(f"SELECT {sql} GROUP BY 1 HAVING count(*) > 4", catalog=MARKET)
    written = rewrite(question, dialect=DUCKDB).sql
    return len(set(re.findall(r"= (keyhole_l\d_0)\b", written))), len(re.findall(r" AS owners\d ON ", written))


@pytest.mark.parametrize(
    ("sql", "owners"),
    [
        pytest.param("o_month FROM orders WHERE EXISTS (SELECT * FROM lines WHERE l_order = o_key)", 1, id="its key"),
        pytest.param(
            "o_month FROM orders WHERE o_key IN (SELECT l_order FROM lines GROUP BY l_order HAVING sum(l_amount) > 3)",
            1,
            id="totals of its key",
        ),
        pytest.param(
            "c_nation FROM orders, customers WHERE o_customer = c_key AND o_key NOT IN (SELECT l_order FROM lines)",
            1,
            id="the key of a joined table",
        ),
        pytest.param(
            "l_part FROM lines l WHERE EXISTS (SELECT * FROM lines m WHERE m.l_order = l.l_order AND m.l_late)",
            0,
            id="the key that leads to its unit",
        ),
        pytest.param(
            "o_month FROM lines l JOIN orders ON l_order = o_key WHERE EXISTS (SELECT * FROM lines m WHERE m.l_order ="
            " o_key AND m.l_part <> l.l_part)",
            0,
            id="the key of the row that it is led to",
        ),
    ],
)
def test_a_list_by_the_key_of_a_rows_own_unit_has_no_units(sql: str, owners: int) -> None:
    """Of rows that others are led to one for each key counts: the others meet nothing."""
    assert count_compared_units(sql) == (0, owners)


def test_a_list_of_units_has_them() -> None:
    assert count_compared_units("c_nation FROM customers WHERE c_key IN (SELECT c_key FROM customers)") == (1, 0)
