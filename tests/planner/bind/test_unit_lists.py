"""Lists of privacy units in WHERE: which subqueries are one, what they are, and what is said of all others."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.scan import rewrite
from planner.plan.question_identity import find_fingerprint, identify_paths
from tests.planner.asked import asked
from tests.proxy.sources.unit_paths.shop import compiled
from tests.worlds.retail import retail

SHOP = compiled()
_ASKED = "SELECT l_mode FROM lines l WHERE {} GROUP BY l_mode HAVING count(*) > 40"
ONE = (
    "household IN (SELECT household FROM orders WHERE o_month = 2)",
    "l.household = ANY (SELECT DISTINCT o.household FROM orders o WHERE 2 = o_month)",
    "EXISTS (SELECT 1 FROM orders o WHERE o.o_month IN (2) AND l.household = o.household)",
    "NOT (household NOT IN (SELECT household FROM public.orders WHERE (o_month = 2)))",
)
OTHERS = (
    "household NOT IN (SELECT household FROM orders WHERE o_month = 2)",
    "household IN (SELECT household FROM orders WHERE o_month = 3)",
    "household IN (SELECT household FROM orders)",
    "household IN (SELECT household FROM lines WHERE l_month = 2)",
    "l_month = 2",
)


def test_a_list_is_what_it_says_however_it_is_spelled() -> None:
    """Answers and noise are kept for the list: another list is another question, another spelling is not."""
    made = [[asked(_ASKED.format(where), catalog=SHOP) for where in some] for some in (ONE, OTHERS)]
    for identify in (find_fingerprint, lambda question: identify_paths(question, digest="")):
        same, others = ({identify(question) for question in some} for some in made)
        assert len(same) == 1
        assert len(same | others) == 1 + len(OTHERS)


OF_TOTALS = (
    "household IN (SELECT household FROM orders WHERE o_month = 2 GROUP BY household HAVING count(*) > 1)",
    "NOT EXISTS (SELECT 1 FROM orders o WHERE o_month = 2 AND o.household = l.household HAVING count(*) <= 1)",
    "2 <= (SELECT count(*) FROM orders o WHERE o_month = 2 AND o.household = l.household)",
    "NOT (SELECT count(*) AS n FROM orders o WHERE o_month = 2 AND o.household = l.household) < 2",
)
NONE_OF_BOTH = (
    "household NOT IN (SELECT household FROM orders UNION SELECT household FROM customers WHERE c_key = 1)",
    "NOT (household IN (SELECT household FROM orders) OR l.household = ANY (SELECT household FROM customers"
    " WHERE 1 = c_key))",
    "NOT EXISTS (SELECT 1 FROM customers c WHERE c.household = l.household AND c_key = 1)"
    " AND (SELECT count(*) FROM orders o WHERE o.household = l.household) = 0",
)


def test_lists_of_totals_and_sets_are_what_they_say_however_they_are_spelled() -> None:
    """Whether a total is compared in HAVING or as a value, and sets are written as such, makes no other list."""
    for some in (OF_TOTALS, NONE_OF_BOTH):
        made = {asked(_ASKED.format(where), catalog=SHOP).table.lists for where in some}
        assert len(made) == 1, made
        assert len({find_fingerprint(asked(_ASKED.format(where), catalog=SHOP)) for where in some}) == 1
    where = "household IN (SELECT household FROM orders) AND household IN (SELECT household FROM lines)"
    both = asked(_ASKED.format(where), catalog=SHOP)
    assert [one.table.name for one in both.table.unit_lists] == ["lines", "orders"]


_JOINED = "SELECT l_mode FROM lines l {} GROUP BY l_mode HAVING count(*) > 40"
_OUTER = "LEFT JOIN"
_OFTEN = "SELECT household, count(*) AS n FROM orders WHERE o_month = 2 GROUP BY household HAVING count(*) > 1"


@pytest.mark.parametrize(
    ("listed", "joined"),
    [
        (
            OF_TOTALS[0],
            (
                _JOINED.format(f"JOIN ({_OFTEN}) AS b ON b.household = l.household"),
                f"WITH b AS ({_OFTEN}) {_JOINED.format('JOIN b USING (household)')}",
                f"WITH b AS ({_OFTEN}) {_JOINED.format('WHERE household IN (SELECT household FROM b)')}",
                f"WITH b AS ({_OFTEN}), c AS (SELECT household AS h FROM b)"
                f" {_JOINED.format('INNER JOIN (SELECT DISTINCT h FROM c) d ON l.household = d.h')}",
            ),
        ),
        (
            OTHERS[0],
            (
                _JOINED.format(
                    "LEFT JOIN orders o ON o.household = l.household AND o.o_month = 2 WHERE o.household IS NULL"
                ),
                _JOINED.format(
                    "LEFT JOIN (SELECT household AS h FROM orders WHERE o_month = 2) o ON l.household = o.h"
                    " WHERE (o.h IS NULL)"
                ),
            ),
        ),
        (
            "household IN (SELECT household FROM orders WHERE o_month = 2) AND l_month = 1",
            (
                _JOINED.format(
                    ", (SELECT DISTINCT household FROM orders WHERE o_month = 2) o WHERE l.l_month = 1"
                    " AND o.household = l.household"
                ),
            ),
        ),
        (
            "household IN (SELECT household FROM orders WHERE o_month = 2 INTERSECT SELECT household FROM customers"
            " WHERE c_key = 1)",
            (
                _JOINED.format(
                    "WHERE household IN (SELECT o.household FROM customers c JOIN orders o ON c.household = o.household"
                    " AND o_month = 2 WHERE c_key = 1)"
                ),
            ),
        ),
        (
            "household NOT IN (SELECT household FROM lines WHERE amount > 2)",
            (
                _JOINED.format(
                    "WHERE household NOT IN (SELECT o.household FROM orders o JOIN lines x ON x.l_shop = o.o_shop"
                    " AND l_order = o_key WHERE x.amount > 2)"
                ),
            ),
        ),
    ],
)
def test_a_join_that_only_says_whose_rows_count_is_a_list(listed: str, joined: tuple[str, ...]) -> None:
    wanted = find_fingerprint(asked(_ASKED.format(listed), catalog=SHOP))
    assert {find_fingerprint(asked(sql, catalog=SHOP)) for sql in joined} == {wanted}


@pytest.mark.parametrize(
    "join",
    [
        "JOIN (SELECT household FROM orders) b ON b.household = l.household",
        "JOIN (SELECT DISTINCT household, o_month FROM orders) b ON b.household = l.household",
        "JOIN (SELECT household, o_month FROM orders GROUP BY 1, 2) b ON b.household = l.household",
        "JOIN (SELECT household FROM orders UNION ALL SELECT household FROM orders) b ON b.household = l.household",
        "LEFT JOIN (SELECT DISTINCT household FROM orders) b ON b.household = l.household",
        "LEFT JOIN orders b ON b.household = l.household AND b.o_month = l.l_month WHERE b.household IS NULL",
    ],
)
def test_a_join_that_repeats_rows_or_keeps_all_is_no_list(join: str) -> None:
    lists: Any = ()
    with suppress(KeyholeError):
        lists = asked(_JOINED.format(join), catalog=SHOP).table.lists
    assert not lists


def test_a_list_is_read_and_kept_with_the_tables_that_it_reads() -> None:
    """Their version, their columns and their time are the question's; rows that count are kept for no single list."""
    sql = "SELECT region FROM customers{} GROUP BY region HAVING count(DISTINCT household) > 40"
    alone, listed = (
        rewrite(asked(sql.format(where), catalog=SHOP), dialect=DUCKDB)
        for where in ("", " WHERE household IN (SELECT household FROM lines)")
    )
    assert len(alone.relations) == 1
    assert {one.relation for one in listed.relations} == {table.relation for table in SHOP.tables}
    assert alone.rollup is not None
    assert listed.rollup is None


def test_absent_units_are_said_to_be_somebody() -> None:
    assert any("NOT IN means NOT EXISTS" in one for one in asked(_ASKED.format(OTHERS[0]), catalog=SHOP).warnings)
    assert asked(_ASKED.format(ONE[3]), catalog=SHOP).warnings == asked(_ASKED.format(ONE[0]), catalog=SHOP).warnings


_FOREIGN = replace(SHOP, tables=tuple(replace(one, root=None, path=None) for one in SHOP.tables))
_OF_ROWS = replace(SHOP, tables=tuple(replace(one, unit=(), root=None, path=None) for one in SHOP.tables))
_SALES = "SELECT country FROM sales WHERE {} GROUP BY country HAVING count(*) > 40"


@pytest.mark.parametrize(
    ("catalog", "sql", "message", "hint"),
    [
        (_FOREIGN, _ASKED.format(ONE[0]), "cannot select rows", "same_unit_as"),
        (_OF_ROWS, _ASKED.format(ONE[2]), "its own privacy unit", "privacy_unit"),
        (
            retail(),
            _SALES.format("customer_id IN (SELECT customer_id FROM sales)"),
            "exactly their",
            "(customer_id, ",
        ),
        (SHOP, _ASKED.format("household IN (SELECT l_shop FROM lines)"), "exactly their", "household IN (SELECT"),
        (SHOP, _ASKED.format("EXISTS (SELECT 1 FROM orders WHERE o_month = 2)"), "exactly their", "household IN ("),
        (SHOP, _ASKED.format("household IN (SELECT household FROM orders LIMIT 3)"), "LIMIT", "WHERE"),
        (SHOP, _ASKED.format("household IN (SELECT max(household) FROM orders)"), "AGGREGATE", "WHERE"),
        *(
            (SHOP, _ASKED.format(f"household IN (SELECT o.household FROM orders o JOIN {joined})"), "JOIN", "WHERE")
            for joined in (
                "lines x ON x.household = o.household AND l_month = o_month",
                "lines x ON x.household = o.household WHERE l_month = 1 OR o_month = 1",
                "lines x ON l_shop = o_shop AND l_order = o_key WHERE o_month = 1",
                "lines x ON l_order = o_key",
                "lines x ON l_month = 1",
            )
        ),
        (
            SHOP,
            _ASKED.format("EXISTS (SELECT 1 FROM orders o WHERE o.household = l.household AND o_shop <> l.l_shop)"),
            "l.l_shop is no column of the list",
            "with constants",
        ),
        (
            SHOP,
            _ASKED.format("household IN (SELECT household FROM orders GROUP BY o_month HAVING count(*) > 1)"),
            "group by all their columns",
            "GROUP BY household HAVING",
        ),
        (
            SHOP,
            _ASKED.format("household IN (SELECT household FROM orders GROUP BY 1 HAVING stddev(o_price) > 1)"),
            "is not a total of one privacy unit",
            "count(DISTINCT x)",
        ),
        (
            SHOP,
            _ASKED.format("household IN (SELECT household FROM orders EXCEPT ALL SELECT household FROM lines)"),
            "subqueries",
            "",
        ),
        (
            SHOP,
            _ASKED.format("(SELECT length(max(o_shop)) FROM orders o WHERE o.household = l.household) = 1"),
            "without rows",
            "",
        ),
        (
            SHOP,
            _ASKED.format("household IN (SELECT household FROM (SELECT household FROM lines) b WHERE amount > 2)"),
            "A SUBQUERY IN FROM",
            "",
        ),
        (SHOP, _ASKED.format("l_month = 2 OR l_shop IN (SELECT o_shop FROM orders)"), "subqueries", ""),
        (
            SHOP,
            "SELECT l_mode FROM lines GROUP BY l_mode"
            " HAVING count(*) FILTER (WHERE l_shop IN (SELECT o_shop FROM orders)) > 40",
            "behind IN or EXISTS",
            "Move the condition to WHERE",
        ),
    ],
)
def test_what_is_no_list_of_units_is_refused_with_ways_out(catalog: Catalog, sql: str, message: str, hint: str) -> None:
    with pytest.raises(KeyholeError) as refused:
        asked(sql, catalog=catalog)
    assert refused.value.code == "KH107", refused.value
    assert message in refused.value.message
    assert hint in (refused.value.hint or "")
    if hint in ("same_unit_as", "privacy_unit"):
        assert "a view of the source" in (refused.value.hint or "")
