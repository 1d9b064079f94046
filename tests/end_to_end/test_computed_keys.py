"""Groups computed from columns, over the wire: rows, names and types are those of PostgreSQL on the data."""

from datetime import date

import psycopg
import pytest

from tests.effort import cases
from tests.end_to_end.plain_sql import both_answers
from tests.worlds.house import House, notices, unchanged

# Quantities are 0 to 6, a seventh of each store's sales each; amounts are 30 in north and south, else 20.
STATEMENTS = [
    "SELECT quantity > 3 AS several, store FROM sales GROUP BY 1, 2 HAVING count(*) > 811",
    "SELECT floor(amount / 10) * 10 AS price_from FROM sales GROUP BY 1 HAVING count(*) > 1811",
    "SELECT CASE WHEN quantity >= 5 THEN 'bulk' WHEN quantity < 2 THEN 'few' ELSE 'some' END AS kind, "
    "date_trunc('month', day)::date AS month FROM sales GROUP BY 1, 2 HAVING count(*) > 411",
    "SELECT extract(isodow FROM day) >= 6 AS weekend FROM sales GROUP BY 1 HAVING count(*) > 611",
    "SELECT note IS NULL, note = 'n' FROM sales GROUP BY 1, 2 HAVING count(*) > 1011",
    "SELECT day FROM sales WHERE day BETWEEN '2026-01-01' AND '2026-02-28' GROUP BY day HAVING count(*) > 41",
    "SELECT date_trunc('week', day)::date AS week FROM sales WHERE day >= '2026-01-05' AND day < '2026-02-02' "
    "GROUP BY 1 HAVING count(*) > 211",
    "SELECT left(store, 1) AS initial FROM sales GROUP BY 1 HAVING count(*) > 1411",
    "SELECT several, count(*) FROM (SELECT store, quantity > 3 AS several FROM sales GROUP BY 1, 2 "
    "HAVING count(*) > 611) q GROUP BY 1 ORDER BY 1",
    "SELECT width_bucket(cost, 0, 200, 4) AS dear, ward FROM visits GROUP BY 1, 2 "
    "HAVING count(DISTINCT patient_id) > 311",
]


@pytest.mark.parametrize(
    ("house", "sql"), cases(["duckdb", "postgres"], STATEMENTS, quick=len(STATEMENTS)), indirect=["house"]
)
def test_answers_are_those_of_plain_sql(house: House, on_postgres_url: str, sql: str) -> None:
    """Every group is far from its threshold: a false alarm has a probability below 1e-9 for each statement."""
    rows, plainly = both_answers(house, on_postgres_url, sql)
    assert sorted(rows) == sorted(plainly)
    assert plainly


def test_a_notice_says_which_rows_are_in_no_group(house: House) -> None:
    with house.connect() as connection:
        told = notices(connection)
        connection.execute("SELECT floor(amount / 20) FROM sales GROUP BY 1 HAVING count(*) > 1813")
    assert any("rows whose amount is below 0.00, or 120.00 or more, are in no group" in one for one in told)


def test_what_no_postgresql_would_show_is_refused(house: House) -> None:
    with house.connect() as connection, pytest.raises(psycopg.Error, match="KH202"):
        connection.execute("SELECT floor(score) FROM sales GROUP BY 1 HAVING count(*) > 1813")


def test_another_spelling_is_answered_from_what_was_answered(house: House) -> None:
    """Under its own labels, names and types, and for nothing; also where noise of the first is refined."""
    with house.connect() as connection:
        connection.execute("SET keyhole.tolerance = '25'")
        first = connection.execute(
            "SELECT quantity > 4, store FROM sales GROUP BY 1, 2 HAVING count(*) > 611 ORDER BY 2, 1"
        )
        rows, told = first.fetchall(), notices(connection)
        assert rows
        with unchanged(house):
            again = connection.execute(
                "SELECT CASE WHEN quantity >= 5 THEN 'many' WHEN NOT quantity > 4 THEN 'few' END AS size, store "
                "FROM sales GROUP BY 1, 2 HAVING count(*) > 611 ORDER BY 2, 1"
            )
            assert again.description is not None
            assert [column.name for column in again.description] == ["size", "store"]
            labels = {True: "many", False: "few", None: None}
            assert sorted(map(str, again)) == sorted(str((labels[large], store)) for large, store in rows)
            connection.execute("SELECT store FROM sales GROUP BY NOT (quantity <= 4), store HAVING count(*) > 611")
        told.clear()
        connection.execute("SELECT 5 <= quantity, store FROM sales GROUP BY 1, 2 HAVING count(*) > 605")
        assert any("earlier question" in one for one in told), told


def test_keys_may_hold_parameters(house: House, on_postgres_url: str) -> None:
    """As psycopg binds them on the server; the answer is that of the same text with the values in it."""
    asked: list[tuple[str, tuple[object, ...], str]] = [
        ("SELECT width_bucket(cost, 0, 200, %s) AS dear, ward FROM visits GROUP BY 1, 2 "
         "HAVING count(DISTINCT patient_id) > %s", (4, 311),
         "SELECT width_bucket(cost, 0, 200, 4) AS dear, ward FROM visits GROUP BY 1, 2 "
         "HAVING count(DISTINCT patient_id) > 311"),
        ("SELECT CASE WHEN quantity > %s THEN 'it''s many' ELSE %s END AS kind FROM sales GROUP BY 1 "
         "HAVING count(*) > %s", (3, "it's few", 811), ""),
        ("SELECT date_bin(%s::interval, day::timestamp, timestamp '2026-01-05')::date AS week FROM sales "
         "WHERE day >= %s AND day < '2026-02-02' GROUP BY 1 HAVING count(*) > 211", ("7 days", date(2026, 1, 5)), ""),
        ("SELECT left(store, %s) AS initial FROM sales GROUP BY 1 HAVING count(*) > 1411", (1,), ""),
        ("SELECT day > %s AS late, floor(amount / 10) AS tens FROM sales GROUP BY 1, 2 HAVING count(*) > 211",
         (date(2026, 2, 1),), ""),
    ]  # fmt: skip
    with psycopg.connect(on_postgres_url) as plain, house.connect() as connection:
        for sql, values, written in asked:
            found = connection.execute(sql.encode(), values, prepare=True).fetchall()
            assert sorted(found) == sorted(plain.execute(sql.encode(), values).fetchall()), sql
            assert found
            if written:
                with unchanged(house):
                    assert connection.execute(written.encode()).fetchall() == found
        several = "SELECT quantity >= %s AS several FROM sales GROUP BY 1 HAVING count(*) > 811"
        for least in (2, 4, 2):
            found = connection.execute(several.encode(), [least], prepare=True).fetchall()
            assert sorted(found) == sorted(plain.execute(several.encode(), [least]).fetchall())


def test_a_value_of_a_key_changes_nothing_but_the_key(house: House) -> None:
    """Quotes are doubled, what a setting could turn is refused, and so is what makes no groups."""
    sql = "SELECT CASE WHEN note = %s THEN 'a' ELSE 'b' END AS kind FROM sales GROUP BY 1 HAVING count(*) > 4811"
    with house.connect() as connection:
        assert connection.execute(sql, ["' = 'x' OR 'y"]).fetchall() == [("b",)]
        assert connection.execute(sql, [None]).fetchall() == [("b",)]
        with unchanged(house), pytest.raises(psycopg.Error, match="KH202"):
            connection.execute(sql, ["\\' OR true"])
        with unchanged(house), pytest.raises(psycopg.Error, match="KH202"):
            connection.execute("SELECT width_bucket(amount, %s, 5, 3) FROM sales GROUP BY 1 HAVING count(*) > 9", [5])
        with unchanged(house), pytest.raises(psycopg.Error, match="KH202"):
            connection.execute("SELECT note || %s FROM sales GROUP BY 1 HAVING count(*) > 9", ["!"])
