"""The outer query on a real PostgreSQL: same columns as the statement as typed, and the rows that its keys give."""

from collections.abc import Iterator
from datetime import date

import psycopg
import pytest

from planner.extract.outer_query import write_outer_sql
from planner.scope.embedded import EmbeddedQuestion
from tests.in_turn import in_turn
from tests.planner.asked import asking
from tests.worlds.empty_retail import empty_retail

_BUSY = {"country": ["France", "Norway"], "month": ["2011-01-01", "2011-02-01"]}
_WARDS = {"ward": ["A", "B"], "day": ["2026-01-02", "2026-01-03"], "hour": ["7", "23"]}


@pytest.fixture(scope="module")
def shadow(postgres_url: str) -> Iterator[psycopg.Connection]:
    """Empty private tables, the public table with its rows, and the stored question as an empty relation."""
    with empty_retail(postgres_url, schema="shadow_of_outer") as connection:
        connection.execute("CREATE TABLE busy_months (country text, month date)")
        yield connection


STATEMENTS = [
    "SELECT country, month FROM sales GROUP BY country, month HAVING count(*) > 5",
    "SELECT country, month AS m, 1, 'x' FROM sales AS s GROUP BY country, m HAVING count(*) > 5 "
    "ORDER BY s.country DESC",
    "SELECT date_trunc('month', invoice_date), country FROM sales GROUP BY 1, country HAVING count(*) > 5 "
    "ORDER BY 1, 2",
    "SELECT country, date_trunc('month', s.invoice_date) AS month FROM sales s GROUP BY 1, 2 HAVING count(*) > 5 "
    "ORDER BY date_trunc('month', s.invoice_date), s.country DESC",
    "SELECT DISTINCT month FROM sales GROUP BY country, month HAVING count(*) > 5 ORDER BY month LIMIT 1 OFFSET 1",
    "SELECT DISTINCT ON (month) month, country FROM sales GROUP BY country, month HAVING count(*) > 5 "
    "ORDER BY month, 2",
    "SELECT arrived::date, extract(hour FROM arrived), cast(arrived AS date) FROM visits "
    "GROUP BY arrived::date, extract(hour FROM arrived) HAVING count(*) > 5",
    "SELECT date_part('hour', arrived) FROM visits GROUP BY date_part('hour', arrived) HAVING count(*) > 5",
    "SELECT arrived::date::text, arrived::date + 1, upper(ward), to_char(arrived::date, 'YYYY') FROM visits "
    "GROUP BY ward, arrived::date HAVING count(*) > 5 ORDER BY arrived::date, 3",
    'SELECT "shadow"."ward" FROM visits "shadow" GROUP BY "shadow"."ward" HAVING count(*) > 5 ORDER BY 1',
    "SELECT r.region, count(*) FROM (SELECT country FROM sales GROUP BY country HAVING count(*) > 5) t "
    "JOIN regions r ON r.name = t.country GROUP BY r.region ORDER BY 2 DESC, 1",
    "WITH t AS (SELECT country, month FROM sales GROUP BY country, month HAVING count(*) > 5) "
    "SELECT a.country, b.month FROM t a JOIN t b USING (country) ORDER BY 1, 2",
    "SELECT name FROM regions WHERE name IN (SELECT country FROM sales GROUP BY country HAVING count(*) > 5) "
    "ORDER BY 1",
    "SELECT name, EXISTS (SELECT 1 FROM visits GROUP BY ward HAVING count(*) > 5) AS some FROM regions ORDER BY 1",
    "SELECT country FROM sales GROUP BY country HAVING count(*) > 5 UNION ALL "
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5 ORDER BY 1",
    "SELECT * FROM busy_months ORDER BY 1, 2",
    "SELECT b.month, r.region FROM busy_months b, regions r WHERE b.country = r.name ORDER BY 1, 2",
    "SELECT /* a 'comment' */ country -- another; one\n FROM sales GROUP BY country HAVING count(*) > 5 ORDER BY 1;",
]


def _keys(embedded: EmbeddedQuestion, column: int) -> list[str]:
    known = {**_BUSY, **_WARDS}
    return known[embedded.columns[column][0]]


@in_turn("sql", STATEMENTS)
def test_the_outer_query_keeps_names_types_and_gives_the_keys(shadow: psycopg.Connection, sql: str) -> None:
    statement = asking(sql)
    outer = write_outer_sql(statement, first_parameter=1)
    with psycopg.RawCursor(shadow) as cursor:
        cursor.execute(sql.encode())
        as_typed = cursor.description
        arrays = []
        for array in outer.arrays:
            embedded = statement.embedded[array.embedded]
            assert isinstance(embedded, EmbeddedQuestion)
            arrays.append(_keys(embedded, array.column))
        cursor.execute(outer.sql.encode(), arrays)
        assert as_typed is not None
        assert cursor.description is not None
        assert [(column.name, column.type_code) for column in cursor.description] == [
            (column.name, column.type_code) for column in as_typed
        ]
        assert cursor.fetchall()
        cursor.execute(outer.sql.encode(), [[] for _ in outer.arrays])


def test_rows_order_and_limits_are_the_outer_query_s(shadow: psycopg.Connection) -> None:
    def rows(sql: str) -> list[tuple[object, ...]]:
        statement = asking(sql)
        outer = write_outer_sql(statement, first_parameter=1)
        arrays = []
        for array in outer.arrays:
            embedded = statement.embedded[array.embedded]
            assert isinstance(embedded, EmbeddedQuestion)
            arrays.append(_keys(embedded, array.column))
        with psycopg.RawCursor(shadow) as cursor:
            return cursor.execute(outer.sql.encode(), arrays).fetchall()

    assert rows(
        "SELECT country FROM sales GROUP BY country, month HAVING count(*) > 5 ORDER BY month DESC LIMIT 1"
    ) == [("Norway",)]
    assert rows(STATEMENTS[10]) == [("North", 1), ("West", 1)]
    assert rows(STATEMENTS[4]) == [(date(2011, 2, 1),)]


def test_parameters_keep_their_numbers() -> None:
    statement = asking(
        "SELECT country, $1::text FROM sales WHERE amount > $2 GROUP BY country HAVING count(*) > $3 "
        "ORDER BY 1 LIMIT $4"
    )
    outer = write_outer_sql(statement, first_parameter=5)
    assert [array.number for array in outer.arrays] == [5]
    assert statement.questions[0].text.endswith("HAVING count(*) > $3")
    assert "$1::text" in outer.sql
    assert outer.sql.endswith("LIMIT $4")
    assert "$2" not in outer.sql


def test_several_questions_have_their_own_arrays() -> None:
    statement = asking(STATEMENTS[14])
    outer = write_outer_sql(statement, first_parameter=3)
    assert [(array.embedded, array.column, array.declared, array.number) for array in outer.arrays] == [
        (0, 0, "text", 3),
        (1, 0, "text", 4),
    ]


@in_turn(
    ("sql", "empty"),
    [
        ("SELECT * FROM (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5) t LIMIT 0", True),
        ("SELECT * FROM (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5) t WHERE 1 = 0", True),
        ("SELECT count(*) FROM (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5) t WHERE 1 = 0", True),
        ("SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5 FETCH FIRST 0 ROWS ONLY", True),
        ("SELECT ward FROM visits WHERE false AND age > 5 GROUP BY ward HAVING count(*) > 5", True),
        ("SELECT * FROM (SELECT ward FROM visits WHERE 0 = 1 GROUP BY ward HAVING count(*) < 5) t", True),
        ("SELECT * FROM (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5) t LIMIT 1", False),
        ("SELECT * FROM (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5) t WHERE 1 = 1", False),
        ("SELECT (SELECT count(*) FROM busy_months) FROM regions WHERE 1 = 0", False),
        ("SELECT count(*) FROM (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5 LIMIT 0) t", True),
        ("SELECT * FROM busy_months WHERE current_date < '2020-01-01'", False),
        ("SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5 UNION SELECT 'a' LIMIT 0", True),
    ],
)
def test_probes_are_recognised(sql: str, empty: bool) -> None:
    assert asking(sql).is_constantly_empty is empty


def test_virtual_relations_become_arrays(shadow: psycopg.Connection) -> None:
    statement = asking("SELECT keyhole.budget.spent_at_most, s.name FROM keyhole.budget, keyhole.settings s")
    outer = write_outer_sql(statement, first_parameter=1)
    arrays: list[list[str | None]] = [["1.5"] if array.declared == "numeric" else [None] for array in outer.arrays]
    with psycopg.RawCursor(shadow) as cursor:
        ((spent, name),) = cursor.execute(outer.sql.encode(), arrays).fetchall()
    assert str(spent) == "1.5"
    assert name is None


def test_a_stored_question_is_the_owner_s_text() -> None:
    (question,) = asking("SELECT * FROM busy_months").questions
    assert question.stored_question == "busy_months"
    assert question.text.startswith("SELECT country, month FROM sales")
