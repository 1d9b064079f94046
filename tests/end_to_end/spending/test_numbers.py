"""Numbers beside the keys over the wire: rows, types, notices and what they cost, by what the session chose.

Stores have 4000, 3000, 200, 50 sales and none. Thresholds lie so far from these that another answer has a probability
below 1e-9.
"""

from decimal import Decimal

import psycopg
import pytest
from psycopg import errors

from tests.end_to_end.plain_sql import both_answers
from tests.worlds.house import House, notices, unchanged

ASKED = "SELECT store, count(*) AS n FROM sales GROUP BY store HAVING count(*) > 1017 ORDER BY n DESC"


def test_keys_come_with_null_and_a_notice_says_why(house: House) -> None:
    with house.connect() as connection:
        told = notices(connection)
        cursor = connection.execute(ASKED)
        assert cursor.description is not None
        assert [(one.name, one.type_code) for one in cursor.description] == [("store", 25), ("n", 20)]
        assert cursor.fetchall() == [("north", None), ("south", None)]
        assert any("not told: n is NULL" in one and "keyhole.numbers = 'threshold'" in one for one in told)
        assert any("not sorted: the order by n is not told" in one for one in told)
        told.clear()
        connection.execute(ASKED.replace("HAVING count(*) > 1017", "") + " LIMIT 1")
        assert any("not told: n is NULL" in one for one in told)
        assert not any("HAVING" in one for one in told)


def test_what_else_stands_there_is_the_same_answer_for_nothing(house: House) -> None:
    with house.connect() as connection:
        connection.execute(ASKED)
    with house.connect() as connection, unchanged(house):
        told = notices(connection)
        connection.execute("SET keyhole.numbers = threshold")
        assert connection.execute(ASKED).fetchall() == [("north", 1018), ("south", 1018)]
        assert any("n is at least 1018, within the tolerance" in one for one in told)
        connection.execute("SET keyhole.numbers TO 'refuse'")
        with pytest.raises(errors.FeatureNotSupported, match="KH101"):
            connection.execute(ASKED)
        connection.execute("RESET keyhole.numbers")
        assert connection.execute(ASKED.replace("count(*) AS n", "17 AS n")).rowcount == 2
        assert connection.execute("SHOW keyhole.numbers").fetchone() == ("null",)


def test_bands_are_paid_for_and_sorted_by(house: House) -> None:
    sql = "SELECT store, sum(amount) AS n FROM sales GROUP BY store ORDER BY n DESC NULLS LAST, store"
    with house.connect() as connection:
        with unchanged(house), pytest.raises(errors.FeatureNotSupported, match="KH101") as refused:
            connection.execute(sql)
        assert "width_bucket(sum(amount)" in (refused.value.diag.message_hint or "")
        connection.execute("SET keyhole.numbers = 'bands'")
        told = notices(connection)
        assert connection.execute(sql).fetchall() == [
            ("north", Decimal(60037)),
            ("south", Decimal(60037)),
            ("west", Decimal(2037)),
            ("closed", Decimal(0)),
            ("east", Decimal(0)),
        ]
        assert any("bands: n from 2037, 60037." in one for one in told)
        explained = connection.execute(f"EXPLAIN {sql}").fetchall()
        assert any("sum(amount) >= 60037" in line for (line,) in explained)


def test_prepared_statements_keep_their_types_whatever_is_chosen(house: House) -> None:
    sql = "SELECT store, round(avg(amount), 2), count(*) FROM sales GROUP BY store HAVING count(*) > %s"
    with house.connect() as connection:
        for chosen, shown in (("null", None), ("threshold", None), ("null", None)):
            connection.execute(f"SET keyhole.numbers = '{chosen}'")
            cursor = connection.execute(sql, (1019,), prepare=True, binary=True)
            assert cursor.description is not None
            assert [one.type_code for one in cursor.description] == [25, 1700, 20]
            assert sorted(cursor.fetchall()) == [("north", None, shown), ("south", None, shown)]


def test_explain_and_copy_say_the_same(house: House) -> None:
    with house.connect() as connection:
        lines = [line for (line,) in connection.execute(f"EXPLAIN {ASKED}").fetchall()]
        assert any(line.startswith("not told: n is NULL") for line in lines)
        ((found,),) = connection.execute(f"EXPLAIN (FORMAT JSON) {ASKED}").fetchall()
        assert found[0]["Keyhole"]["numbers"]["columns"] == [{"name": "n", "told": "null", "says": ""}]
        with connection.cursor().copy(f"COPY ({ASKED}) TO STDOUT") as copied:
            assert list(copied.rows()) == [("north", None), ("south", None)]
        with connection.transaction():
            connection.execute(f"DECLARE c CURSOR FOR {ASKED}")
            assert connection.execute("FETCH ALL FROM c").fetchall() == [("north", None), ("south", None)]


def test_a_ranking_shows_its_first_keys_and_no_number(house: House) -> None:
    with house.connect() as connection:
        connection.execute("SET keyhole.tolerance = 'count=500'")
        rows = connection.execute(
            "SELECT store, count(*) AS n FROM sales GROUP BY store ORDER BY n DESC LIMIT 2"
        ).fetchall()
        assert rows == [("north", None), ("south", None)]


def test_keys_are_those_of_plain_sql_through_whatever_passes_numbers_on(house: House, on_postgres_url: str) -> None:
    for sql in (
        "SELECT * FROM (SELECT store, count(*) AS n FROM sales GROUP BY store) q WHERE n > 1021",
        "WITH q AS (SELECT store, sum(amount) AS s FROM sales GROUP BY store) SELECT s::int, store FROM q "
        "WHERE s > 50023",
        "SELECT region, q.* FROM (SELECT store, avg(amount) AS a FROM sales GROUP BY store HAVING count(*) > 1027) q "
        "JOIN stores ON name = store",
    ):
        rows, plainly = both_answers(house, on_postgres_url, sql)
        texts = [sorted(str(one) for one in row if isinstance(one, str)) for row in rows]
        assert sorted(texts) == sorted(sorted(str(one) for one in row if isinstance(one, str)) for row in plainly)
        assert all(None in row for row in rows)


def test_a_bad_choice_is_refused(house: House) -> None:
    with house.connect() as connection, pytest.raises(psycopg.Error, match="KH402"):
        connection.execute("SET keyhole.numbers = 'exact'")
