"""Predicates in the select list: what stands around them gives what PostgreSQL gives, and sizes stay unseen."""

import psycopg
import pytest
from psycopg import errors

from planner.scorecard.select_list import read_select_list
from proxy.pipeline import stages as pipeline
from tests.effort import cases
from tests.end_to_end.certainty import asked, truth
from tests.end_to_end.plain_sql import both_answers
from tests.worlds.house import House, notices, unchanged

# Stores have 4000, 3000, 200, 50 sales of 30 and 20, and none; wards 900, 600, 30 visits of 100, and none.
STATEMENTS = [
    "SELECT store, sum(amount) > 41007 AS big FROM sales GROUP BY store ORDER BY store",
    "SELECT store, CASE WHEN sum(amount) > 41007 THEN 'high' WHEN sum(amount) > 2007 THEN 'mid' ELSE 'low' END, "
    "(count(*) > 707)::int FROM sales GROUP BY store ORDER BY count(*) > 707 DESC, store",
    "SELECT upper(store) AS s, coalesce(avg(amount) > 5 AND count(amount) > 1207, false) FROM sales GROUP BY store",
    "SELECT store, count(*) > 2207 FROM sales GROUP BY store HAVING count(*) > 907",
    "SELECT count(*) > 1207 AS many, count(*) > 71207 FROM sales",
    "SELECT DISTINCT count(*) > 1307 FROM sales GROUP BY store",
    "SELECT big, count(*) FROM (SELECT store, sum(amount) > 43007 AS big FROM sales GROUP BY store) q GROUP BY big",
    "WITH cards AS (SELECT store, date_trunc('month', day) AS m, count(*) > 1407 AS busy FROM sales GROUP BY 1, 2) "
    "SELECT store, bool_or(busy), count(*) FILTER (WHERE busy) FROM cards GROUP BY store",
    "SELECT ward, count(DISTINCT patient_id) > 307 AND sum(cost) > 20007 AS busy FROM visits GROUP BY ward",
    "SELECT store, width_bucket(count(*), ARRAY[1007, 1507]) FROM sales GROUP BY store",
    "SELECT store, count(*) FILTER (WHERE quantity > 2) > 1117 AND NOT (count(*) > 21117) FROM sales GROUP BY store",
    "SELECT store, CASE WHEN n > 1707 THEN 'high' ELSE 'low' END, (s > 41009)::int, width_bucket(n, ARRAY[1009, 1509]) "
    "FROM (SELECT store, count(*) AS n, sum(amount) AS s FROM sales GROUP BY store) t ORDER BY n > 1707 DESC, store",
    "WITH q AS (SELECT store, count(*) AS n FROM sales GROUP BY store) SELECT store, n > 1709, abs((n > 911)::int) "
    "FROM q WHERE n > 909",
    "SELECT count(*) FILTER (WHERE n > 1711) AS many, bool_or(n > 71711) FROM (SELECT ward, count(*) AS n FROM visits "
    "GROUP BY ward) t",
    "SELECT n > 1713, count(*) FROM (SELECT store, count(*) AS n FROM sales GROUP BY store) q GROUP BY n > 1713",
    "SELECT store, count(*) > 1517 AS busy, lag(count(*) > 1517) OVER (ORDER BY store), (row_number() OVER w)::int, "
    "sum((count(*) > 1517)::int) OVER w, max(store) FILTER (WHERE store > 'o') OVER w FROM sales GROUP BY store "
    "HAVING count(*) > 107 WINDOW w AS (ORDER BY store DESC) ORDER BY store",
    "SELECT region, count(*) > 1617 FROM sales JOIN stores ON store = name WHERE region IS NOT NULL GROUP BY region "
    "ORDER BY 2 DESC, 1",
]


@pytest.mark.parametrize(
    ("house", "sql"), cases(["duckdb", "postgres"], STATEMENTS, quick=len(STATEMENTS)), indirect=["house"]
)
def test_answers_are_those_of_plain_sql(house: House, on_postgres_url: str, sql: str) -> None:
    """Where all groups have rows, all rows; a false alarm has a probability below 1e-9 for each statement."""
    rows, plainly = both_answers(house, on_postgres_url, sql)
    empty = [row for row in rows if row[0] in ("closed", "CLOSED", "D")]  # groups without rows are rows here
    if " q GROUP BY" not in sql:
        kept = [row for row in rows if row not in empty]
        assert (kept == plainly) if "ORDER BY" in sql else (sorted(kept) == sorted(plainly))
    assert all(not any(row[1:]) or row[1] == "low" for row in empty)


def test_rows_are_all_values_of_the_keys_and_say_so(house: House) -> None:
    sql = "SELECT ward, count(*) > 311 AS busy FROM visits GROUP BY ward"
    assert truth(house.service, sql) == [("A", "true"), ("B", "true"), ("C", "false"), ("D", "false")]
    with house.connect() as connection:
        told = notices(connection)
        assert connection.execute(sql).fetchall() == [("A", True), ("B", True), ("C", False), ("D", False)]
    assert any("every value of ward is a row, with rows of data or without" in one for one in told)
    assert any("a predicate that truly holds for a group is shown as false at most 5 %" in one for one in told)


def test_explain_says_what_each_predicate_is(house: House) -> None:
    with house.connect() as connection:
        lines = [
            line
            for (line,) in connection.execute(
                "EXPLAIN VERBOSE SELECT ward, count(*) > 313 AS busy, sum(cost) > 20013 OR count(*) > 313 FROM visits "
                "GROUP BY ward HAVING count(*) > 13"
            ).fetchall()
        ]
    assert lines[1].startswith("  Rows: A        minimal")
    assert lines[2].startswith("  busy: B        minimal")
    assert lines[3].startswith("  predicate 2: B or C        minimal")


SHOWN = (
    "store, count(*) > 1207 AS busy, NOT (count(*) > 71207)",
    "CASE WHEN count(*) > 1207 THEN 'high' WHEN count(*) > 207 THEN 'mid' END AS band, store AS shop",
    "store, CASE WHEN count(*) > 1207 THEN 1 ELSE 0 END, CASE WHEN count(*) > 7 THEN NULL ELSE (count(*) > 7)::int END",
    "store, width_bucket(count(*), ARRAY[107, 1207]), (count(*) > 107)::int + (count(*) > 1207)::int + 5",
    "coalesce(count(*) > 1207, true), coalesce(CASE WHEN count(*) > 1207 THEN 'a''b' END, 'c'), store",
    "(count(*) > 1207) IS NOT TRUE, (count(*) > 1207 OR count(*) > 107) IS NULL, true AND count(*) > 7, NULL IS NULL",
    "CASE WHEN count(*) > 7 THEN NULL END IS NULL AND false, NULL AND count(*) > 1207, NULL OR count(*) > 1207, store",
    "(count(*) > 1207) IS NOT NULL, (CASE WHEN count(*) > 107 THEN count(*) > 1207 END) NOTNULL, NULL IS NOT NULL",
    "store IS NULL, CASE WHEN count(*) > 1207 THEN 'a' END IS NOT NULL, ((count(*) > 1207)::int + NULL::int) IS NULL",
    "'all' AS what, 5, true, NULL, CASE WHEN count(*) > 1207 THEN true ELSE false END",
)


@pytest.mark.parametrize("shown", SHOWN)
def test_a_select_list_over_rest_is_postgresqls(on_duckdb: House, shown: str) -> None:
    """Names and values, of the same answer: a stored one, so that nothing is left to chance."""
    service, sql = on_duckdb.service, f"SELECT {shown} FROM sales GROUP BY store"
    asked_ = asked(service, sql)
    answer = pipeline.answer(service, pipeline.plan_asked_question(service, asked_), asked_)
    read = read_select_list(asked_.question)
    assert read is not None
    with on_duckdb.connect() as connection:
        found = connection.execute(sql.encode())
        assert [one.name for one in found.description or ()] == list(read.names)
        assert [list(row) for row in found.fetchall()] == [read.show(key) for key in answer.keys.keys]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT store, sum(amount) > 41007, sum(amount) FROM sales GROUP BY store",
        "SELECT store, CASE WHEN count(*) > 707 THEN count(*) END FROM sales GROUP BY store",
        "SELECT store, count(*) > 707 FROM sales GROUP BY store ORDER BY store, count(*)",
        "SELECT store, count(*) > 707, sum(count(*)) OVER (ORDER BY count(*)) FROM sales GROUP BY store",
        "SELECT store, count(*) > 707, max(note) FROM sales GROUP BY store",
        "SELECT count(*) > 707, note FROM sales",
    ],
)
def test_a_size_beside_a_predicate_is_refused(house: House, sql: str) -> None:
    with house.connect() as connection, unchanged(house):
        connection.execute("SET keyhole.numbers = 'refuse'")
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(sql.encode())
    assert not isinstance(refused.value, errors.InternalError)
