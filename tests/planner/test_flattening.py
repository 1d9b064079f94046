"""Statements brought to the form of a question: what they are then, and where a refusal of them points."""

import pytest

from planner.errors import KeyholeError
from proxy.answers import bare_question
from tests.planner.asked import asked, refusal
from tests.planner.catalogs import retail
from tests.planner.spec import pairs

_PLAIN = "SELECT ward FROM visits WHERE age > 40 AND insured GROUP BY ward HAVING count(*) > 300"


@pytest.mark.parametrize(
    "sql",
    [
        "WITH a AS (SELECT * FROM visits WHERE age > 40) SELECT ward FROM a WHERE insured GROUP BY ward "
        "HAVING count(*) > 300",
        "SELECT w FROM (SELECT v.ward AS w, insured AS i FROM public.visits v WHERE v.age > 40) x WHERE i GROUP BY w "
        "HAVING count(*) > 300",
        "SELECT ward FROM (SELECT ward, count(*) FROM visits WHERE age > 40 AND insured GROUP BY 1) t "
        "WHERE count > 300",
        "WITH t AS (SELECT count(*) n, ward FROM (SELECT * FROM visits WHERE age > 40) v WHERE insured GROUP BY 2) "
        "SELECT ward FROM t WHERE t.n > 300",
    ],
)
def test_it_is_the_question_that_it_means(sql: str) -> None:
    assert asked(sql) == asked(_PLAIN)


def test_a_refusal_points_into_the_statement_as_it_was_written() -> None:
    sql = "WITH a AS (SELECT * FROM visits WHERE sqrt(age) > 3) SELECT ward FROM a GROUP BY ward HAVING count(*) > 9"
    error = refusal(sql)
    assert error is not None
    assert (error.code, error.position) == ("KH205", sql.index("sqrt") + 1)
    moved = "SELECT ward FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t WHERE n > sqrt(3) AND nope"
    error = refusal(moved)
    assert error is not None
    assert error.position is not None
    assert moved.index("n >") < error.position < moved.index("AND")


def test_without_a_shadow_it_is_a_question_by_itself() -> None:
    for sql in (
        "WITH a AS (SELECT * FROM sales WHERE gift) SELECT country FROM a GROUP BY country HAVING count(*) > 50",
        "SELECT country FROM (SELECT * FROM sales) s GROUP BY country HAVING count(*) > 50",
        "SELECT country FROM sales WHERE country IN (SELECT name FROM regions) GROUP BY country HAVING count(*) > 50",
    ):
        question = bare_question(f"  {sql};", retail())
        at = question.text.index("GROUP BY")
        placed = question.placed(KeyholeError("KH205", "", position=at + 1))
        assert placed.position == 2 + sql.index("GROUP BY") + 1


def test_hints_keep_thresholds_and_keys() -> None:
    kept = {
        "SELECT ward, count(*) > 5000 AS busy FROM visits GROUP BY ward": "count(*) > 5000",
        "SELECT ward, CASE WHEN count(*) > 70 THEN 'x' END FROM visits GROUP BY ward": "count(*) > 70",
        "SELECT ward, n FROM (SELECT ward, count(*) n FROM visits GROUP BY ward) t WHERE n > 60": "count(*) > 60",
    }
    for sql, threshold in kept.items():
        error = refusal(sql)
        assert error is not None
        assert error.hint == f"SELECT ward FROM visits GROUP BY ward HAVING {threshold};"


def test_the_corpus_is_large() -> None:
    outcomes = [outcome for _, outcome in pairs("flattened.sql")]
    assert len(outcomes) >= 55
    assert sum(outcome.startswith("[") for outcome in outcomes) >= 30
