"""Questions about values of one person's own rows, over what persons bought and whom they called."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from typing import Any, TypeAlias

from hypothesis import strategies as st

from planner.catalog.catalog import Catalog, Column, Derivation, SqlType, Table, UnitRoot
from tests.proxy.sources.worlds import spelled
from tests.worlds.retail import retail

Rows: TypeAlias = Mapping[str, Sequence[tuple[Any, ...]]]
TYPES = {
    "buys": {"person": "text", "shop": "text", "bought": "timestamp", "price": "integer", "gift": "boolean"},
    "calls": {"caller": "text", "day": "date", "minutes": "numeric(8,2)"},
}
MONTHS = (date(2026, 1, 1), date(2026, 2, 1), date(2026, 3, 1))
BUYS = Table(
    name="buys",
    relation="buys",
    columns=(
        Column("person", SqlType.TEXT, "text"),
        Column("shop", SqlType.TEXT, "text", domain=("a", "b", "c")),
        Column("bought", SqlType.TIMESTAMP, "timestamp without time zone"),
        Column("month", SqlType.DATE, "date", domain=MONTHS, derivation=Derivation("date_trunc", "month", "bought")),
        Column(
            "price",
            SqlType.INTEGER,
            "integer",
            bounds=(Decimal(-5), Decimal(20)),
            grid=Decimal(1),
            per_unit=(Decimal(-200), Decimal(800)),
        ),
        Column("gift", SqlType.BOOLEAN, "boolean"),
    ),
    unit=("person",),
    groups_per_unit=40,
    rows_per_unit=40,
    row_cap=None,
    refresh="static",
    seed="buys",
)
CALLS = Table(
    name="calls",
    relation="calls",
    columns=(
        Column("caller", SqlType.TEXT, "text"),
        Column("day", SqlType.DATE, "date"),
        Column("minutes", SqlType.NUMERIC, "numeric(8,2)", bounds=(Decimal(0), Decimal(60)), grid=Decimal("0.01")),
    ),
    unit=("caller",),
    groups_per_unit=40,
    rows_per_unit=40,
    row_cap=None,
    refresh="static",
    seed="calls",
    root=UnitRoot("buys", ("person",)),
)
CATALOG: Catalog = replace(retail(), tables=(BUYS, CALLS), public_tables=())
TIGHT: Catalog = replace(
    CATALOG,
    tables=(replace(BUYS, groups_per_unit=2, rows_per_unit=2), replace(CALLS, groups_per_unit=1, rows_per_unit=2)),
)
_FIRST = "(SELECT person, min(month) AS cohort FROM buys GROUP BY person)"
_USED = "(SELECT person, count(*) AS n, max(price) AS most FROM buys WHERE shop <> 'c' GROUP BY 1)"
_CALLED = "(SELECT caller, max(day) AS last, count(DISTINCT minutes) AS n, min(minutes) AS least FROM calls GROUP BY 1)"
ASKED = (
    "WITH first AS (SELECT person, min(month) AS cohort FROM buys GROUP BY person) SELECT f.cohort, b.month FROM buys b"
    " JOIN first f USING (person) GROUP BY 1, 2 HAVING count(DISTINCT b.person) > 0",
    f"SELECT cohort AS c FROM {_FIRST} AS f JOIN buys b ON b.person = f.person WHERE b.month > f.cohort GROUP BY 1"
    " HAVING count(*) > 0",
    f"SELECT month FROM buys b, {_FIRST} f WHERE f.person = b.person AND month = cohort GROUP BY month HAVING"
    " count(*) FILTER (WHERE cohort > '2026-01-01') > 0",
    f"SELECT u.n, month FROM buys b JOIN {_USED} u ON u.person = b.person AND b.price < u.most GROUP BY month, u.n"
    " HAVING count(DISTINCT b.person) > 0",
    f"SELECT shop, CASE WHEN u.n > 2 THEN 'many' WHEN u.n > 0 THEN 'few' ELSE 'none' END AS kind FROM buys b LEFT JOIN"
    f" {_USED} u USING (person) GROUP BY 1, 2 HAVING count(*) > 0 ORDER BY kind, shop",
    "SELECT shop FROM buys b JOIN (SELECT person, min(price) FILTER (WHERE gift) AS low FROM buys WHERE month >="
    " '2026-02-01' GROUP BY person HAVING count(*) > 1) u ON b.person = u.person WHERE price >= low GROUP BY 1"
    " HAVING sum(price) > 1",
    f"SELECT shop, c.n > 1 AS often FROM buys JOIN {_CALLED} c ON person = caller WHERE bought >= c.last GROUP BY 1, 2"
    " HAVING count(*) > 0",
    "SELECT extract(month FROM f.cohort) AS m, cohort <= '2026-01-01' FROM calls c"
    f" JOIN {_FIRST} f ON c.caller = f.person JOIN {_CALLED} d ON d.caller = c.caller WHERE c.minutes > d.least"
    " GROUP BY 1, 2 HAVING count(DISTINCT c.caller) > 0",
    "SELECT date_trunc('month', last)::date AS left_in FROM buys b JOIN (SELECT person, max(bought) AS last FROM buys"
    " GROUP BY person) u ON u.person = b.person WHERE last IS NOT NULL GROUP BY 1 HAVING count(*) > 0",
)
"""Each asks for groups with rows, of persons whose rows no bound cuts: the groups are those that PostgreSQL has."""

OF_SUMS = (
    "SELECT shop FROM buys b JOIN (SELECT person, avg(price) AS own FROM buys GROUP BY person) f USING (person) WHERE"
    " price > own GROUP BY shop HAVING count(*) > 0",
    "SELECT month FROM (SELECT *, avg(price) OVER (PARTITION BY person) AS own FROM buys WHERE shop <> 'a') q WHERE"
    " price <= own GROUP BY month HAVING count(*) > 0",
    "SELECT shop, total > 5 AS much FROM buys JOIN (SELECT person, sum(price) FILTER (WHERE gift) AS total FROM buys"
    " GROUP BY 1) f USING (person) GROUP BY 1, 2 HAVING count(*) > 0",
    "SELECT month FROM buys JOIN (SELECT caller, sum(minutes) AS total, avg(minutes) AS each FROM calls GROUP BY 1)"
    " f ON person = caller WHERE total > 2 * each AND price < each GROUP BY 1 HAVING count(DISTINCT person) > 0",
    "SELECT CASE WHEN total > 60.5 THEN 'a' WHEN total > 7 THEN 'b' END AS k FROM (SELECT caller, sum(minutes) AS total"
    " FROM calls GROUP BY 1) q GROUP BY k HAVING count(*) > 0",
)
"""The same with sums and means of a unit's own values, which lie within their bounds."""

OF_EXPRESSIONS = (
    "WITH f AS (SELECT person, date_trunc('month', min(bought)) AS cohort, count(*) > 1 AS often FROM buys GROUP BY 1)"
    " SELECT f.cohort, often FROM buys b JOIN f USING (person) GROUP BY f.cohort, often HAVING count(*) > 0"
    " ORDER BY often",
    "SELECT shop FROM (SELECT shop, bought - lag(bought) OVER (PARTITION BY person ORDER BY bought, price, shop, gift)"
    " AS gap, price * 2 AS twice FROM buys) q WHERE gap > interval '5 days' AND twice > 1 GROUP BY 1"
    " HAVING count(*) > 0",
    "SELECT days > 20 AS long FROM (SELECT person, max(bought)::date - min(bought)::date AS days FROM buys"
    " WHERE price > 0 GROUP BY 1) q GROUP BY 1 HAVING count(*) > 0",
    f"SELECT month FROM buys b JOIN {_FIRST} f USING (person) WHERE month >= cohort + interval '1 month' GROUP BY 1"
    " HAVING count(DISTINCT person) > 0",
    "SELECT shop FROM buys b JOIN (SELECT caller, max(day) AS last FROM calls GROUP BY 1) c ON b.person = c.caller"
    " WHERE bought < c.last - interval '1 month 8 days' OR bought + interval '1 month' > c.last GROUP BY 1"
    " HAVING count(*) > 0",
)
"""The same with expressions of values in the subquery, and months that times are moved by."""

OF_SCALARS = (
    "SELECT shop FROM buys b WHERE price > (SELECT avg(price) FROM buys x WHERE x.person = b.person) GROUP BY shop"
    " HAVING count(*) > 0",
    "SELECT month FROM buys b WHERE b.bought = (SELECT min(bought) FROM buys x WHERE b.person = x.person AND gift) OR"
    " price > (SELECT count(*) FROM calls WHERE caller = b.person AND minutes > 1) GROUP BY 1 HAVING count(*) > 0",
    "SELECT (SELECT count(*) FROM calls c WHERE c.caller = person) > 1 AS calling, month FROM buys GROUP BY 1, 2"
    " HAVING count(*) FILTER (WHERE price <= (SELECT max(price) FROM buys y WHERE y.person = buys.person AND"
    " y.shop <> 'c')) > 0",
    "SELECT (SELECT count(*) FROM calls WHERE caller = b.person), gift FROM buys b GROUP BY 1, 2 HAVING count(*) > 0",
    "SELECT shop FROM buys b JOIN (SELECT person, min(price) AS low FROM buys GROUP BY 1) f USING (person) WHERE low <"
    " (SELECT count(DISTINCT day) FROM calls c WHERE c.caller = b.person) - 1 GROUP BY 1 HAVING count(*) > 0",
)
"""The same where a scalar subquery computes the value for each row."""

_BY = "ORDER BY bought{}, price, shop NULLS FIRST, gift DESC"
_PLACED = f"(SELECT *, row_number() OVER (PARTITION BY person {_BY}) AS n FROM buys{{}}) q"
OF_ROWS = (
    f"SELECT shop FROM {_PLACED.format('', '')} WHERE n = 1 GROUP BY shop HAVING count(*) > 0",
    f"SELECT n AS turn, shop FROM {_PLACED.format(' DESC', ' WHERE price > 0')} WHERE n BETWEEN 2 AND 3 GROUP BY 1, 2"
    " HAVING count(DISTINCT person) > 0",
    f"WITH q AS (SELECT DISTINCT ON (person) shop, price FROM buys b WHERE gift ORDER BY person, {_BY[9:].format('')})"
    " SELECT shop FROM q GROUP BY shop HAVING sum(price) > 2",
    "SELECT cohort, month FROM (SELECT person, month, min(month) OVER (PARTITION BY person) AS cohort FROM buys) q"
    " GROUP BY 1, 2 HAVING count(DISTINCT person) > 0",
    "SELECT month FROM (SELECT *, max(price) FILTER (WHERE gift) OVER (PARTITION BY person) AS most FROM buys WHERE"
    " shop <> 'c') q WHERE price < most GROUP BY month HAVING count(*) > 0",
    "SELECT n, last >= '2026-03-01' AS late FROM (SELECT person, count(*) AS n, max(bought) AS last FROM buys WHERE"
    " price <> 3 GROUP BY person HAVING count(*) < 5) q GROUP BY 1, 2 HAVING count(*) > 0",
    "SELECT CASE WHEN n > 2 THEN 'many' ELSE 'few' END AS kind FROM (SELECT person, count(DISTINCT shop) AS n,"
    " min(price) AS low FROM buys GROUP BY 1) q GROUP BY kind HAVING sum(n) > 1",
    f"SELECT shop, was FROM (SELECT shop, lag(shop) OVER (PARTITION BY person {_BY}) AS was FROM buys) q WHERE"
    " was <> shop GROUP BY 1, 2 HAVING count(*) > 0".format(""),
    "SELECT first, month FROM (SELECT month, person, first_value(shop) OVER (PARTITION BY person ORDER BY shop"
    " DESC NULLS LAST) AS first, rank() OVER (PARTITION BY person ORDER BY month) AS r FROM buys) q WHERE r = 1"
    " GROUP BY 1, 2 HAVING count(*) > 0",
)
"""The same over subqueries that a question reads alone: windows, each unit's first row, one row for each unit."""


ODD = (
    f"SELECT month FROM buys b JOIN {_USED} u ON u.person = b.person"
    " WHERE b.price * 2000000000 + u.most * 2000000000 > u.n GROUP BY month HAVING count(*) > 0",
    f"SELECT shop FROM buys b LEFT JOIN {_USED} u USING (person) WHERE 10 / (u.most - b.price) > u.n - 3 GROUP BY 1"
    " HAVING count(DISTINCT person) > 0",
    "SELECT u.n FROM buys b JOIN (SELECT person, count(*) FILTER (WHERE shop LIKE '%a%b%' OR price / 0 > 1) AS n FROM"
    " buys WHERE price - 2147483647 < 0 GROUP BY 1) u USING (person) GROUP BY 1 HAVING count(*) > 0",
)
"""Conditions that plain SQL fails on, or that take long, where rows hold the least or greatest value of their types."""

_FOUND: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "buys": {
        "person": ("ann", "ann", "bob", "zoë", "ANN", "", None),
        "shop": ("a", "b", "c"),
        "bought": tuple(datetime(2026, month, day, hour) for month in (1, 2, 3) for day, hour in ((1, 0), (28, 23))),
        "price": (-5, 1, 3, 3, 20, None),
        "gift": (True, False, None),
    },
    "calls": {
        "caller": ("ann", "bob", "zoë", "eve", None),
        "day": (date(2026, 1, 5), date(2026, 2, 28), date(2026, 3, 31), None),
        "minutes": (Decimal("0.5"), Decimal("7.25"), Decimal(60), None),
    },
}
_ODD: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "buys": {
        "shop": ("a", "b", "zz", None),
        "bought": (datetime(1, 1, 1), datetime(9999, 12, 31, 23), datetime(2026, 2, 1), None),
        "price": (-(2**31), 2**31 - 1, 0, 2, None),
    },
    "calls": {
        "day": (date(1, 1, 1), date(9999, 12, 31), None),
        "minutes": (Decimal("-999999.99"), Decimal("999999.99")),
    },
}


def _values(table: str, column: str, *, odd: bool) -> tuple[Any, ...]:
    return _FOUND[table][column] + (_ODD[table].get(column, ()) if odd else ())


def crowd(person: str, table: str) -> list[tuple[Any, ...]]:
    """Rows of one person with every combination of what columns may hold, the ends of their types as well."""
    others = list(TYPES[table])[1:]
    return [(person, *row) for row in product(*(_values(table, column, odd=True) for column in others))]


def draw_rows(*, odd: bool) -> st.SearchStrategy[dict[str, list[tuple[Any, ...]]]]:
    """Rows of a few persons, some of nobody; `odd` ones hold the ends of their types as well."""
    rows = {
        table: st.lists(
            st.tuples(*(st.sampled_from(_values(table, column, odd=odd)) for column in types)), max_size=most
        )
        for (table, types), most in zip(TYPES.items(), (16, 8), strict=True)
    }
    return st.fixed_dictionaries(rows)


def load_sql(rows: Rows, *, of_somebody: bool = False) -> list[str]:
    """The statements that make the tables, `of_somebody` without the rows that have no person."""
    statements = []
    for table, types in TYPES.items():
        kept = [row for row in rows[table] if row[0] is not None or not of_somebody]
        columns = ", ".join(f"{column} {kind}" for column, kind in types.items())
        values = ", ".join(f"({', '.join(map(spelled, row, types.values()))})" for row in kept)
        statements += [f"DROP TABLE IF EXISTS {table} CASCADE", f"CREATE TABLE {table} ({columns})"]
        statements += [f"INSERT INTO {table} VALUES {values}"] if values else []
    return statements


def take_away(rows: Rows, person: str) -> dict[str, list[tuple[Any, ...]]]:
    """The rows without those of one person, in both tables."""
    return {table: [row for row in found if row[0] != person] for table, found in rows.items()}
