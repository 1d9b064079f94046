"""Lists of keys without a threshold: their public values, and nothing that tells which groups have rows."""

import pytest

from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.statements.classify import PassThrough, classify
from tests.in_turn import in_turn
from tests.planner.asked import asked, refusal
from tests.planner.hints import INSTEAD
from tests.worlds.retail import COUNTRIES, MONTHS, retail

LISTS = {
    "SELECT DISTINCT country FROM sales": COUNTRIES,
    "SELECT country FROM sales": COUNTRIES,
    "SELECT country FROM sales GROUP BY country": COUNTRIES,
    "SELECT DISTINCT country FROM sales GROUP BY 1 ORDER BY 1 DESC LIMIT 2 OFFSET 1": COUNTRIES,
    'SELECT "sales"."country" AS "c" FROM "public"."sales" "sales" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST': COUNTRIES,
    "SELECT DISTINCT country FROM sales WHERE country LIKE 'F%' OR country = 'Norway'": ("France", "Norway"),
    "SELECT country FROM sales WHERE country IN ('France', 'Nowhere') AND country IS NOT NULL": ("France",),
    "SELECT * FROM (SELECT DISTINCT s.country AS c FROM sales s WHERE s.country <> 'France') q LIMIT 9": COUNTRIES[1:],
    "SELECT c FROM (SELECT country AS c FROM sales) q GROUP BY c ORDER BY c": COUNTRIES,
    "SELECT DISTINCT date_trunc('month', invoice_date) FROM sales": MONTHS,
    "SELECT DISTINCT month FROM sales WHERE date_trunc('month', invoice_date) >= '2011-11-01'": MONTHS[11:],
}
ROWS = (
    "SELECT DISTINCT country FROM sales WHERE gift",
    "SELECT country FROM sales WHERE amount > 5 GROUP BY country",
    "SELECT country FROM sales WHERE month = '2011-01-01' GROUP BY country",
    "SELECT DISTINCT month FROM sales WHERE invoice_date >= '2011-11-15'",  # within a month: of rows
    "SELECT DISTINCT country FROM sales WHERE customer_id IN (1, 2)",
    "SELECT DISTINCT country FROM sales WHERE country IN (SELECT country FROM sales WHERE gift)",
    "SELECT DISTINCT country FROM sales s JOIN visits v ON v.ward = s.country",
    "SELECT count(*) FROM (SELECT DISTINCT country FROM sales) q",
    "SELECT count(*) FROM (SELECT country FROM sales GROUP BY country) q",
    "SELECT FROM (SELECT country FROM sales) q",
    "SELECT name FROM regions WHERE name IN (SELECT country FROM sales)",
    "SELECT name FROM regions WHERE EXISTS (SELECT country FROM sales WHERE country = name)",
    "SELECT name FROM regions JOIN (SELECT DISTINCT country FROM sales) q ON q.country = name",
    "SELECT DISTINCT ON (country) country FROM sales",
    "SELECT DISTINCT country, amount FROM sales",
    "SELECT DISTINCT customer_id FROM sales",
    "SELECT * FROM sales",
    "SELECT country, row_number() OVER () FROM sales",
    "SELECT country FROM sales TABLESAMPLE SYSTEM (10)",
    "SELECT country FROM sales FOR UPDATE",
    "SELECT country FROM sales ORDER BY amount",
    "SELECT country FROM sales ORDER BY random()",
    "SELECT country, random() FROM sales GROUP BY country",
)


@in_turn("sql", LISTS)
def test_keys_without_a_threshold_are_listed(sql: str) -> None:
    question = asked(sql)
    assert question.lists_domain
    assert question.functionals == ()
    assert question.keys.values == (LISTS[sql],)


@in_turn("sql", ROWS)
def test_what_tells_of_rows_is_refused(sql: str) -> None:
    found = refusal(sql)
    assert found is not None, sql
    assert found.code in ("KH101", "KH103", "KH104", "KH106", "KH107", "KH110"), found


def test_a_key_of_two_columns_is_every_pair() -> None:
    assert asked("SELECT DISTINCT month, country FROM sales").keys.size == len(MONTHS) * len(COUNTRIES)


def test_a_threshold_beside_a_list_is_a_question_of_its_own() -> None:
    question = "SELECT country FROM sales GROUP BY country HAVING count(*) > 50"
    statement = classify(f"SELECT country FROM sales EXCEPT {question}", retail())
    assert isinstance(statement, Asking)
    assert [part.domain_refusal is None for part in statement.questions] == [False, True]


def test_a_column_without_rows_stays_free_of_questions() -> None:
    for sql in ("SELECT country FROM sales LIMIT 0", "SELECT DISTINCT country FROM sales WHERE false"):
        statement = classify(sql, retail())
        assert isinstance(statement, PassThrough) or (isinstance(statement, Asking) and statement.is_constantly_empty)


HINTS = {
    "SELECT country, sum(amount) FROM sales s GROUP BY 1": (
        "SELECT country, sum(amount) > 100000 FROM sales s GROUP BY 1;"
    ),
    "SELECT s.month, avg(s.amount) AS a FROM sales s WHERE gift GROUP BY s.month ORDER BY 2": (
        "SELECT s.month, avg(s.amount) > 250 AS a FROM sales s WHERE gift GROUP BY s.month ORDER BY 2;"
    ),
    "SELECT month, count(DISTINCT customer_id) FROM sales GROUP BY month": (
        "SELECT month, count(DISTINCT customer_id) > 1000 FROM sales GROUP BY month;"
    ),
    "SELECT month, max(amount) FROM sales GROUP BY month": (
        "SELECT month FROM sales GROUP BY month HAVING count(*) > 1000;"
    ),
    "SELECT month, sum(weight) FROM sales GROUP BY month": (
        "SELECT month FROM sales GROUP BY month HAVING count(*) > 1000;"
    ),
    "SELECT month, amount FROM sales": "SELECT month FROM sales GROUP BY month HAVING count(*) > 1000;",
    "SELECT min(month), max(month) FROM sales": "SELECT DISTINCT month FROM sales;",
    "SELECT count(DISTINCT country) FROM sales WHERE country <> 'France'": (
        "SELECT DISTINCT country FROM sales WHERE country <> 'France';"
    ),
    "SELECT count(DISTINCT country) FROM sales WHERE gift": (
        "SELECT country FROM sales WHERE gift GROUP BY country HAVING count(DISTINCT country) > 1000;"
    ),
}


@pytest.mark.parametrize("sql", HINTS)
def test_a_hint_keeps_keys_and_aggregate_of_the_refused_text(sql: str) -> None:
    found = refusal(sql)
    assert isinstance(found, KeyholeError)
    assert (found.hint or "").removeprefix(INSTEAD) == HINTS[sql]
    assert refusal(HINTS[sql]) is None
