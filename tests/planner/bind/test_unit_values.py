"""Values of a unit's own rows in FROM: which subqueries have them, what they are, and what is said of all others."""

from dataclasses import replace
from decimal import Decimal

import pytest

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.scan import rewrite
from planner.plan.question_identity import find_fingerprint, identify_paths
from planner.question.unit_groups import count_unit_groups
from tests.planner.asked import asked
from tests.proxy.sources.unit_values.valued import CALLS, CATALOG

_END = "GROUP BY f.cohort, b.month HAVING count(*) > 40"
_INNER = "SELECT person, min(month) AS cohort FROM buys WHERE price > 2 GROUP BY person"
SPELLINGS = (
    f"SELECT f.cohort, b.month FROM buys b JOIN ({_INNER}) f USING (person) {_END}",
    f"WITH f AS ({_INNER}) SELECT cohort, b.month FROM buys b JOIN f ON f.person = b.person {_END}",
    f"SELECT f.cohort, b.month FROM ({_INNER}) AS f INNER JOIN buys b ON b.person = f.person {_END}",
    "SELECT f.cohort, b.month FROM buys b, (SELECT min(x.month) AS cohort, x.person AS who, max(x.price)"
    f" FROM public.buys x WHERE 2 < x.price GROUP BY 2) f WHERE f.who = b.person {_END}",
)
OTHERS = (
    SPELLINGS[0].replace("price > 2", "price > 3"),
    SPELLINGS[0].replace(" WHERE price > 2", ""),
    SPELLINGS[0].replace("min(", "max("),
    SPELLINGS[0].replace("JOIN", "LEFT JOIN"),
    SPELLINGS[0].replace("min(month)", "min(month) FILTER (WHERE gift)"),
)


def test_a_value_is_what_it_says_however_it_is_spelled() -> None:
    """Answers and noise are kept for the value: another one makes another question, another spelling does not."""
    made = [[asked(sql, catalog=CATALOG) for sql in some] for some in (SPELLINGS, OTHERS)]
    for identify in (find_fingerprint, lambda question: identify_paths(question, digest="")):
        same, others = ({identify(question) for question in some} for some in made)
        assert len(same) == 1
        assert len(same | others) == 1 + len(OTHERS)


def test_a_scalar_subquery_over_a_units_own_rows_is_a_value_of_it() -> None:
    sql = "SELECT shop FROM buys b{} WHERE price > {} GROUP BY shop HAVING count(*) > 40"
    scalar = sql.format("", "(SELECT avg(x.price) + 1 FROM buys x WHERE b.person = x.person AND gift)")
    over = " LEFT JOIN (SELECT person, avg(price) AS own FROM buys WHERE gift GROUP BY 1) f USING (person)"
    assert len({find_fingerprint(asked(one, catalog=CATALOG)) for one in (scalar, sql.format(over, "own + 1"))}) == 1
    counted = sql.format("", "(SELECT count(*) FROM calls WHERE caller = b.person)")
    over = " LEFT JOIN (SELECT caller, count(*) AS own FROM calls GROUP BY 1) f ON caller = b.person"
    joined = sql.format(over, "coalesce(own, 0)")
    assert len({find_fingerprint(asked(one, catalog=CATALOG)) for one in (counted, joined)}) == 1


@pytest.mark.parametrize(
    "scalar",
    [
        "(SELECT avg(price) FROM buys x)",
        "(SELECT avg(price) FROM buys x WHERE x.shop = b.shop)",
        "(SELECT avg(price) FROM buys x WHERE x.person = b.person AND x.shop = b.shop)",
        "(SELECT avg(price) FROM buys x WHERE x.person = b.person GROUP BY x.shop)",
        "(SELECT price FROM buys x WHERE x.person = b.person LIMIT 1)",
    ],
)
def test_a_scalar_subquery_over_other_rows_than_the_units_is_refused(scalar: str) -> None:
    sql = f"SELECT shop FROM buys b WHERE price > {scalar} GROUP BY shop HAVING count(*) > 40"
    with pytest.raises(KeyholeError, match="KH107"):
        asked(sql, catalog=CATALOG)


def test_values_of_other_rows_of_a_table_are_other_values() -> None:
    sql = f"SELECT f.cohort FROM buys b JOIN ({_INNER}) f USING (person) JOIN ({{}}) g USING (person)"
    for other, own in ((_INNER, 1), (_INNER.replace("price > 2", "gift"), 2)):
        ended = f"{sql.format(other)} WHERE g.cohort >= b.month GROUP BY 1 HAVING count(*) > 40"
        assert len(asked(ended, catalog=CATALOG).table.own) == own


def test_a_window_over_units_is_what_a_join_with_them_is() -> None:
    joined = SPELLINGS[0].replace("GROUP BY f.cohort", "WHERE b.price > 2 GROUP BY f.cohort")
    over = "SELECT person, month, min(month) OVER (PARTITION BY person) AS cohort FROM buys WHERE price > 2"
    window = f"SELECT cohort, month FROM ({over}) q GROUP BY cohort, month HAVING count(*) > 40"
    assert len({find_fingerprint(asked(sql, catalog=CATALOG)) for sql in (joined, window)}) == 1
    first = "SELECT shop FROM ({}) q GROUP BY shop HAVING count(*) > 40"
    places = "*, row_number() OVER (PARTITION BY person ORDER BY bought DESC) AS n FROM buys"
    numbered = first.format(f"SELECT {places}").replace("GROUP", "WHERE n = 1 GROUP")
    distinct = first.format("SELECT DISTINCT ON (person) * FROM buys ORDER BY person, bought DESC")
    assert len({find_fingerprint(asked(sql, catalog=CATALOG)) for sql in (numbered, distinct)}) == 1


@pytest.mark.parametrize(
    ("where", "places", "rows"),
    [
        ("n = 1", (1,), 1),
        ("n < 4", (1, 2, 3), 3),
        ("n BETWEEN 2 AND 3 AND n <> 2", (3,), 1),
        ("n IN (1, 5)", (1, 5), 2),
        ("n > 2", (), 7),
        ("n <= 2 OR gift", (), 7),
        ("n <= 60", tuple(range(1, 61)), 7),
    ],
)
def test_a_unit_has_no_more_rows_than_places_are_left(where: str, places: tuple[int, ...], rows: int) -> None:
    """Nor is it in more groups, and its totals are those of so many rows."""
    buys = replace(CATALOG.tables[0], groups_per_unit=9, rows_per_unit=7)
    catalog = replace(CATALOG, tables=(buys, CALLS))
    over = "SELECT *, row_number() OVER (PARTITION BY person ORDER BY bought) AS n FROM buys"
    sql = f"SELECT shop FROM ({over}) q WHERE {where} GROUP BY shop HAVING sum(price) > 40"
    table = asked(sql, catalog=catalog).table
    assert [key.values for key in table.fixed] == ([places] if places else [])
    assert (table.rows_per_unit, table.groups_per_unit) == (rows, min(9, len(places) or 9))
    most = len(places) or 99
    assert table.get_column("price").per_unit == (Decimal(max(-200, -5 * most)), Decimal(min(800, 20 * most)))


def test_a_unit_is_in_a_group_of_each_of_its_rows_where_a_window_tells_them_apart() -> None:
    """A value that its rows come to together puts it into one group."""
    over = "SELECT *, {} OVER (PARTITION BY person ORDER BY bought) AS n FROM buys"
    by_value = "SELECT n FROM ({}) q WHERE n IN (1, 2, 3) GROUP BY n HAVING count(*) > 40"
    asks = [over.format(one) for one in ("row_number()", "rank()", "lag(price)", "lead(price)", "first_value(price)")]
    asks.append("SELECT *, count(*) OVER (PARTITION BY person) AS n FROM buys")
    groups = [count_unit_groups(asked(by_value.format(inner), catalog=CATALOG)) for inner in asks]
    assert groups == [3, 3, 3, 3, 1, 1]


def test_a_value_is_read_and_kept_with_its_table() -> None:
    sql = "SELECT month FROM buys b JOIN (SELECT caller, count(*) AS n FROM calls GROUP BY 1) c ON caller = person"
    question = asked(f"{sql} WHERE n > 3 GROUP BY month HAVING count(*) > 40", catalog=CATALOG)
    made = rewrite(question, dialect=DUCKDB)
    assert {one.relation for one in made.relations} == {"buys", "calls"}
    assert made.rollup is None


_FOREIGN = replace(CATALOG, tables=(CATALOG.tables[0], replace(CALLS, root=None)))
_OF_ROWS = replace(CATALOG, tables=tuple(replace(one, unit=(), root=None) for one in CATALOG.tables))
_ASKED = "SELECT f.n FROM buys b {} GROUP BY 1 HAVING count(*) > 40"
_CALLS = "JOIN (SELECT caller, count(*) AS n FROM calls GROUP BY caller) f ON f.caller = b.person"
_OVER = "SELECT shop FROM (SELECT shop, {} AS n FROM buys) q WHERE n = 1 GROUP BY shop HAVING count(*) > 40"
_BUYS = _CALLS.replace("calls", "buys").replace("caller", "person")


@pytest.mark.parametrize(
    ("catalog", "from_", "message", "hint"),
    [
        (_FOREIGN, _CALLS, "cannot be joined with rows", "same_unit_as"),
        (_OF_ROWS, _BUYS, "its own privacy unit", "privacy_unit"),
        (
            CATALOG,
            _BUYS.replace("GROUP BY person", "GROUP BY person, shop"),
            "one privacy unit",
            "Group the subquery",
        ),
        (CATALOG, _BUYS.replace("f.person = ", "f.n = "), "one privacy unit", "join it on all of these columns"),
        (CATALOG, _BUYS.replace("f.person = b.person", "true"), "one privacy unit", "join it on all of these columns"),
        (
            CATALOG,
            f"{_BUYS} JOIN (SELECT person, max(price) AS most FROM buys GROUP BY 1) g ON g.most > f.n",
            "one privacy unit",
            "join it on all of these columns",
        ),
        (
            CATALOG,
            _BUYS.replace("count(*)", "max(shop)"),
            "cannot be compared with max(shop)",
            "min(x), max(x) of numbers",
        ),
        (CATALOG, _BUYS.replace("count(*)", "string_agg(shop, ',')"), "cannot be compared with", "count(DISTINCT x)"),
        (CATALOG, _BUYS.replace(") f", " LIMIT 5) f"), "LIMIT", "GROUP BY"),
        (CATALOG, _BUYS.replace("GROUP", "WHERE price > (SELECT 1) GROUP"), "SUBQUERY", "GROUP BY"),
        (CATALOG, _BUYS.replace("JOIN", "LEFT JOIN") + " AND b.price > 2", "LEFT JOIN", "GROUP BY"),
        # NULL in SQL where the subquery has no row, which a row's own unit never is
        (
            CATALOG,
            _BUYS.replace("JOIN", "LEFT JOIN") + " WHERE f.person IS NULL OR n > 1",
            "f.person of a LEFT JOIN",
            "NULL",
        ),
        (
            CATALOG,
            _BUYS.replace("JOIN", "LEFT JOIN") + " JOIN (SELECT person, max(price) AS most FROM buys WHERE gift"
            " GROUP BY person) g ON g.person = f.person AND g.most > 2",
            "f.person of a LEFT JOIN",
            "of the private table instead",
        ),
        # NULL where the subquery has no row, which the same expression around it is not
        *(
            (
                CATALOG,
                _BUYS.replace("JOIN", "LEFT JOIN").replace("count(*)", made),
                "cannot be compared with",
                "count(*)",
            )
            for made in (
                "coalesce(max(price), 0)",
                "greatest(max(price), 3)",
                "CASE WHEN count(*) > 1 THEN 2 ELSE 1 END",
                "max(price) IS NULL",
                "count(*) > 1 OR 1 = 1",
            )
        ),
        (CATALOG, _BUYS.replace("JOIN", "RIGHT JOIN"), "RIGHT JOIN", "GROUP BY"),
        (
            CATALOG,
            _OVER.format("row_number() OVER (PARTITION BY shop ORDER BY bought)"),
            "one privacy unit",
            "Group the",
        ),
        (
            CATALOG,
            _OVER.format("row_number() OVER (PARTITION BY person ORDER BY price * 2)"),
            "cannot be ordered by",
            "ORDER BY",
        ),
        (
            CATALOG,
            _OVER.format("ntile(4) OVER (PARTITION BY person ORDER BY price)"),
            "cannot be compared with",
            "min(x)",
        ),
        (
            CATALOG,
            _OVER.format("count(*) OVER (PARTITION BY person ORDER BY price ROWS 2 PRECEDING)"),
            "A FRAME",
            "GROUP BY",
        ),
        (
            _OF_ROWS,
            _OVER.format("row_number() OVER (PARTITION BY person ORDER BY bought)"),
            "own privacy unit",
            "owner",
        ),
    ],
)
def test_what_is_no_value_of_one_unit_is_refused_with_ways_out(
    catalog: Catalog, from_: str, message: str, hint: str
) -> None:
    sql = _ASKED.format(from_) if "JOIN" in from_ else from_
    with pytest.raises(KeyholeError) as refused:
        asked(sql, catalog=catalog)
    assert refused.value.code == "KH107", refused.value
    assert message in refused.value.message
    assert hint in (refused.value.hint or "")
