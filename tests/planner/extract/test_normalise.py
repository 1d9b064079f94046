"""Statements brought to the form of a question: what they are then, and where a refusal of them points."""

import pytest
from sqlglot import exp

from planner.errors import KeyholeError
from planner.extract.normalise import MOST_TIMES, normalise
from planner.parser.edited_query import EditedQuery
from planner.parser.edits import MOST_ADDED, Edit, Origin, are_disjoint
from planner.parser.lexer import read_tokens
from planner.parser.tree import parse
from planner.statements.classify import classify
from proxy.pipeline.messages import read_bare_question
from tests.effort import rounds
from tests.planner.asked import asked, refusal, select
from tests.planner.spec import pairs
from tests.worlds.retail import retail
from tests.worlds.stays import stays

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
        question = read_bare_question(f"  {sql};", retail())
        at = question.text.index("GROUP BY")
        placed = question.place_error(KeyholeError("KH205", "", position=question.offset + at + 1))
        assert placed.position == 2 + sql.index("GROUP BY") + 1


def test_hints_keep_thresholds_and_keys() -> None:
    kept = {
        "SELECT ward, count(*) > 5000 AS busy, max(age) FROM visits GROUP BY ward": "count(*) > 5000",
        "SELECT ward, CASE WHEN count(*) > 70 THEN max(age) END FROM visits GROUP BY ward": "count(*) > 70",
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


def _flat(sql: str) -> str:
    return normalise(EditedQuery(parse(sql, read_tokens(sql)), Origin(sql)), retail()).query.text


@pytest.mark.parametrize("called", ["end", "case", "between", "or", "and", "where", "order"])
def test_a_keyword_that_names_a_column_joins_nothing(called: str) -> None:
    around = f"SELECT ward FROM (SELECT ward, count(*) AS n, count(age) AS {called} FROM visits GROUP BY ward) t WHERE "
    either = f"n > 3 AND t.{called} > 5 OR n < 3"
    having = select(_flat(around + either)).find(exp.Having)
    assert having is not None
    assert having.this == select("SELECT count(*) > 3 AND count(age) > 5 OR count(*) < 3").expressions[0]
    both = f"n > 3 AND t.{called} > 5"
    assert "HAVING count(*) > 3 AND count(age) > 5)" in _flat(around + both)


@pytest.mark.parametrize("called", ["order", "group", "having", "union", "from", "distinct", "limit", "window", "end"])
def test_a_keyword_that_names_a_column_starts_no_clause(called: str) -> None:
    sql = (
        f"SELECT w FROM (SELECT ward AS w, age AS {called}, insured FROM visits v WHERE v.insured) t "
        f"WHERE insured OR t.{called} > 3 GROUP BY w HAVING count(*) > 3"
    )
    rows = "insured AND (insured OR age > 3)"
    assert asked(sql) == asked(f"SELECT ward FROM visits WHERE {rows} GROUP BY ward HAVING count(*) > 3")


def test_conditions_that_only_the_parser_tells_apart_stay_where_they_are() -> None:
    sql = "SELECT ward FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t WHERE "
    for where in ("n > 3 AND (SELECT 1 end) > 0 OR n < 3", "n > 3 AND (SELECT 1 case) > 0 AND n < 9"):
        assert _flat(sql + where) == sql + where


def test_words_after_a_dot_or_as_name_something() -> None:
    kinds = [
        token.kind for token in read_tokens("SELECT t.end AS order, t . as AS as FROM x AS MATERIALIZED WHERE a OR b")
    ]
    assert kinds.count("label") == 4
    (alone,) = (token for token in read_tokens("PREPARE p AS SELECT 1") if token.value == "select")
    assert alone.is_word("select")


def test_changes_of_one_span_are_refused() -> None:
    twice = (Edit.from_text(0, 3, "a"), Edit.from_text(2, 5, "b"))
    assert not are_disjoint(twice)
    with pytest.raises(KeyholeError, match="KH106"):
        Origin("abcdef").edit(twice, rule="twice")


@pytest.mark.parametrize("levels", [3, 45, 8, 20][: rounds(4, quick=2)])
def test_a_statement_grows_a_few_times_at_most(levels: int) -> None:
    doubled = "".join(f", a{n} AS (SELECT ward, x+x AS x FROM a{n - 1})" for n in range(1, levels))
    sql = (
        f"WITH a0 AS (SELECT ward, age+age AS x FROM visits){doubled} "
        f"SELECT ward FROM a{levels - 1} WHERE x > 3 GROUP BY ward HAVING count(*) > 50"
    )
    assert len(_flat(sql)) <= len(sql) + min(MOST_TIMES * len(sql), MOST_ADDED)
    assert levels < 4 or refusal(sql) is not None


def test_a_long_column_read_many_times_stays_in_its_subquery() -> None:
    long, often = "+".join(["age"] * 400), "+".join(["x"] * 400) + " > 3"
    for sql in (
        f"SELECT ward FROM (SELECT ward, {long} AS x FROM visits) t WHERE {often} GROUP BY ward HAVING count(*) > 50",
        f"SELECT ward FROM (SELECT ward, sum({long}) AS x FROM visits GROUP BY ward) t WHERE {often}",
    ):
        assert _flat(sql) == sql
        assert refusal(sql) is not None


def test_questions_over_one_subquery_per_unit_are_counted_first() -> None:
    per_unit = "SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY ward, patient_id"
    one = "SELECT ward FROM t WHERE n > 3 GROUP BY ward HAVING count(*) > 100"
    sql = f"WITH t AS ({per_unit}) " + " UNION ".join([one] * 65)
    with pytest.raises(KeyholeError, match="KH110: more than 64 questions"):
        classify(sql, stays())


@pytest.mark.parametrize("written", ["lower(ward)", "NOT ward", "ward || ward"])
def test_a_hint_takes_no_part_of_an_expression_for_a_key(written: str) -> None:
    question = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 300"
    error = refusal(f"SELECT ward FROM visits WHERE {written} IN ({question}) GROUP BY ward HAVING count(*) > 9")
    assert error is not None
    assert "INTERSECT" not in (error.hint or "")
    assert "EXCEPT" not in (error.hint or "")
