"""Questions that join public tables, through the endpoint: what they answer, how it is named, what is refused."""

import psycopg
import pytest

from tests.in_turn import in_turn
from tests.worlds.house import House, unchanged

JOINED = [
    (
        "SELECT w.region FROM sales s JOIN stores w ON s.store = w.name GROUP BY w.region"
        " HAVING count(*) > 1000 AND count(*) FILTER (WHERE w.name = 'north') > 1000",
        ["region"],
        [("upper",)],
    ),
    (
        "SELECT region AS part, upper(w.region), 1 AS one FROM sales, stores w WHERE store = name GROUP BY 1"
        " HAVING count(*) > 1000 ORDER BY part DESC",
        ["part", "upper", "one"],
        [("upper", "UPPER", 1), ("lower", "LOWER", 1)],
    ),
    (
        "SELECT public.stores.region::varchar(3) FROM public.sales JOIN public.stores ON sales.store = stores.name"
        " WHERE stores.region = 'lower' GROUP BY stores.region HAVING count(*) > 1000",
        ["region"],
        [("low",)],
    ),
    (
        "SELECT w.name, s.month FROM stores w JOIN sales s ON w.name = s.store WHERE w.region IS NOT NULL"
        " GROUP BY w.name, s.month HAVING count(*) > 2000 ORDER BY w.name DESC, month",
        ["name", "month"],
        [("south", "2026-02-01"), ("north", "2026-01-01")],
    ),
    (
        "SELECT s.store, region, upper(w.region) FROM sales s JOIN stores w ON s.store = w.name"
        " GROUP BY s.store, w.region HAVING count(*) > 1000 ORDER BY w.region",
        ["store", "region", "upper"],
        [("south", "lower", "LOWER"), ("north", "upper", "UPPER")],
    ),
    (
        "SELECT month FROM sales LEFT JOIN stores ON store = name GROUP BY month"
        " HAVING count(*) FILTER (WHERE region = 'lower') > 2000",
        ["month"],
        [("2026-02-01",)],
    ),
    (
        "SELECT DISTINCT ON (w.region) w.region FROM sales s JOIN stores w ON s.store = w.name GROUP BY w.region"
        " HAVING count(*) > 1000 ORDER BY w.region LIMIT 1",
        ["region"],
        [("lower",)],
    ),
    (
        "SELECT q.region, count(*) FROM (SELECT w.region, s.month FROM sales s JOIN stores w ON s.store = w.name"
        " GROUP BY w.region, s.month HAVING count(*) > 1000) q JOIN stores USING (region) GROUP BY 1 ORDER BY 1",
        ["region", "count"],
        [("lower", 2), ("upper", 2)],
    ),
    (
        "WITH shops AS (SELECT name AS shop, region FROM stores) SELECT part, v.month, count(*) > 3 FROM (SELECT s.*,"
        " shops.region AS part FROM (SELECT store, month FROM sales WHERE NOT store = 'west') s JOIN shops ON shop ="
        " store) AS v WHERE part = 'lower' GROUP BY part, 2 HAVING count(*) > 2000",
        ["part", "month", "?column?"],
        [("lower", "2026-02-01", True)],
    ),
]


@pytest.mark.parametrize(("sql", "names", "rows"), JOINED, ids=[sql for sql, _, _ in JOINED])
def test_the_true_keys_are_returned_under_the_names_that_postgresql_gives(
    house: House, sql: str, names: list[str], rows: list[tuple[object, ...]]
) -> None:
    """All counts are 20 times the noise's scale or more from their thresholds: false alarms are rarer than 1e-8."""
    with house.connect() as connection:
        cursor = connection.execute(sql)
        assert cursor.description is not None
        assert [column.name for column in cursor.description] == names
        found = [tuple(part.isoformat() if hasattr(part, "isoformat") else part for part in row) for row in cursor]
        assert sorted(found) == sorted(rows)


def test_another_alias_is_the_same_question(house: House) -> None:
    """It is answered again for nothing."""
    text = "SELECT {0}.region FROM sales {1} JOIN stores {0} ON {1}.store = {0}.name GROUP BY 1 HAVING count(*) > 1001"
    with house.connect() as connection:
        first = connection.execute(text.format("w", "s")).fetchall()
        before = house.service.report_balances(None).unit_spent_nano, house.most_spent("sales")
        assert connection.execute(text.format("y", "x")).fetchall() == first
        assert (house.service.report_balances(None).unit_spent_nano, house.most_spent("sales")) == before


HIDING = [
    "SELECT a.store FROM sales a JOIN sales b ON a.store = b.store GROUP BY a.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s JOIN visits v ON s.store = v.ward GROUP BY s.store HAVING count(*) > 10",
    "SELECT w.name FROM stores w LEFT JOIN sales s ON s.store = w.name GROUP BY w.name HAVING count(*) > 10",
    "SELECT w.name FROM sales s RIGHT JOIN stores w ON s.store = w.name GROUP BY w.name HAVING count(*) > 10",
    "SELECT w.name FROM sales s FULL JOIN stores w ON s.store = w.name GROUP BY w.name HAVING count(*) > 10",
    "SELECT s.store FROM sales s CROSS JOIN stores w GROUP BY s.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s, stores w GROUP BY s.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s JOIN stores w ON true GROUP BY s.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s JOIN stores w ON s.store = w.region GROUP BY s.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s JOIN stores w ON s.store = w.name OR true GROUP BY s.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s JOIN stores w ON s.store >= w.name GROUP BY s.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s JOIN stores w ON s.quantity = w.name GROUP BY s.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s JOIN stores w ON lower(s.store) = w.name GROUP BY s.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s NATURAL JOIN stores GROUP BY s.store HAVING count(*) > 10",
    "WITH stores AS (SELECT 'north' AS name UNION ALL SELECT 'north') SELECT s.store FROM sales s"
    " JOIN stores w ON s.store = w.name GROUP BY s.store HAVING count(*) > 10",
    "WITH sales AS (SELECT name AS store FROM stores) SELECT s.store FROM sales s JOIN stores w ON s.store = w.name"
    " GROUP BY s.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s JOIN (SELECT * FROM stores UNION ALL SELECT * FROM stores) w ON s.store = w.name"
    " GROUP BY s.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s JOIN generate_series(1, 2) w ON true GROUP BY s.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s JOIN (sales w CROSS JOIN stores) ON true GROUP BY s.store HAVING count(*) > 10",
    "SELECT w.name FROM stores w JOIN sales s ON s.store = w.name",
    "SELECT w.name, s.quantity FROM stores w JOIN sales s ON s.store = w.name GROUP BY 1 HAVING count(*) > 10",
    "SELECT w.region FROM sales s JOIN stores w ON s.store = w.name AND w.name IN (SELECT store FROM sales)"
    " GROUP BY w.region HAVING count(*) > 10",
    "SELECT s.store FROM sales s JOIN busy w ON s.store = w.store GROUP BY s.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s JOIN keyhole.budget w ON s.store = w.key GROUP BY s.store HAVING count(*) > 10",
    "SELECT s.store FROM sales s JOIN pg_catalog.pg_class w ON s.store = w.relname GROUP BY s.store HAVING count(*)>1",
]


@in_turn("sql", HIDING)
def test_a_join_that_could_count_a_row_twice_or_hide_a_private_table_is_refused(on_postgres: House, sql: str) -> None:
    with unchanged(on_postgres), on_postgres.connect() as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(sql)
        assert caught.value.sqlstate is not None
        assert caught.value.sqlstate[:2] in ("42", "0A")


def test_a_refused_join_points_at_the_analysts_own_text(on_postgres: House) -> None:
    sql = "SELECT store FROM sales JOIN stores ON store = region GROUP BY store HAVING count(*) > 10"
    with on_postgres.connect() as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(sql)
        told = caught.value.diag
        assert told.message_primary == "KH107: stores.region holds NULL in the pinned copy"
        assert sql[int(told.statement_position or 0) - 1 :].startswith("store = region")


def test_the_demos_regions(demo: House) -> None:
    """The question of docs/asking.md over the demo's countries; EXPLAIN costs nothing.

    Sizes are so far from 500 that a wrong key has a probability below 1e-7.
    """
    sql = (
        "SELECT c.region FROM sales s JOIN countries c ON s.country = c.name WHERE s.month = '2011-11-01' "
        "GROUP BY c.region HAVING count(DISTINCT s.customer_id) > 500"
    )
    with demo.connect("demo", "demo") as connection:
        with unchanged(demo):
            plan = connection.execute(f"EXPLAIN {sql}").fetchall()
        assert plan[0][0].startswith("Question over 6 groups of sales (region)")
        connection.execute("SET keyhole.mechanism = 'keyhole'")
        assert connection.execute(sql).fetchall() == [("British Isles",)]
