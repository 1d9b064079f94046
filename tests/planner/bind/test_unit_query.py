"""Questions over a subquery that adds up each privacy unit's rows, from statement to plan."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from mechanisms.threshold.joint_loss import expose_functional_sets
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import StoredParameter, StoredQuestion, Value
from planner.errors import KeyholeError
from planner.explain.render import explain_text
from planner.functionals.sensitivity import find_affected_sets, find_exposures
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.question import Question
from planner.statements.classify import Asking, classify
from planner.statements.settings import read_accuracy
from proxy.pipeline.messages import read_bare_question
from tests.in_turn import in_turn
from tests.planner.spec import pairs
from tests.worlds.stays import stays

SUBQUERY = "(SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v"


def questions(sql: str, *parameters: Value) -> list[Question]:
    """Every question of a statement."""
    catalog = stays()
    statement = classify(sql, catalog)
    assert isinstance(statement, Asking), statement
    given = dict(enumerate(parameters, start=1))
    wanted = read_accuracy({"keyhole.tolerance": "10%", "keyhole.guard": "refuse"}, catalog.defaults)
    return [
        bind_question(question, catalog, accuracy=wanted, parameters=given, today=date(2026, 1, 15))
        for question in statement.questions
    ]


def asked(sql: str, *parameters: Value) -> Question:
    (question,) = questions(sql, *parameters)
    return question


def refused(sql: str) -> KeyholeError:
    with pytest.raises(KeyholeError) as caught:
        _planned(sql)
    return caught.value


def _planned(sql: str) -> list[Question]:
    return [plan_question(question, dialect=DUCKDB).question for question in questions(sql)]


def outcome(sql: str) -> str:
    """The totals with their ranges and the functionals with their sensitivities, or the code."""
    try:
        found = _planned(sql)
    except KeyholeError as error:
        return error.code
    return " // ".join(map(_summary, found))


def _summary(question: Question) -> str:
    assert question.per_unit is not None
    totals = [f"{total.written_as} in {total.low}..{total.high}" for total in question.per_unit.totals]
    sums = [f"{one.name} by {one.sensitivity}" for one in question.functionals]
    return "; ".join([*sorted(totals), *sorted(sums)])


@in_turn(("sql", "expected"), pairs("per_unit.sql"))
def test_corpus(sql: str, expected: str) -> None:
    assert outcome(sql) == expected


@in_turn("sql", [sql for sql, found in pairs("per_unit.sql") if found in ("KH110", "KH103", "KH101")])
def test_hints_show_questions_that_work(sql: str) -> None:
    hint = (refused(sql).hint or "").removeprefix("Instead you can ask: ")
    if hint.startswith(("SELECT", "WITH")) and "..." not in hint:
        for question in questions(hint):
            assert plan_question(question, dialect=POSTGRES).worst_case_epsilon > 0


def test_messages_have_the_names_and_numbers_of_the_statement() -> None:
    """No name that Keyhole gives to a total, and no threshold of its own."""
    spread = "(SELECT ward, patient_id, max(cost) - min(cost) AS spread FROM stays GROUP BY 1, 2) q"
    (found,) = questions(f"SELECT ward FROM {spread} GROUP BY ward HAVING avg(spread) > 30")
    assert any("AND count(spread) >= " in one for one in found.warnings)
    assert "max(cost)" not in " ".join(found.warnings)
    error = refused(f"SELECT ward FROM {spread} WHERE spread::text LIKE '4%' GROUP BY ward HAVING count(*) > 70")
    assert error.message == "CAST(spread AS TEXT) is not allowed in a row condition"
    by = "(SELECT insured, ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2, 3) q"
    hint = refused(f"SELECT ward FROM {by} WHERE n >= 4 GROUP BY ward HAVING count(*) > 70").hint or ""
    assert hint.endswith("GROUP BY ward, patient_id) v WHERE total >= 4 GROUP BY ward HAVING count(*) > 70;")
    sizes = "(SELECT ward, patient_id, count(DISTINCT height * 2) AS n FROM stays GROUP BY 1, 2) v"
    without = refused(f"SELECT ward FROM {sizes} WHERE n > 3 GROUP BY ward HAVING avg(n) < 9")
    assert (
        without.hint == "Group the subquery by ward, patient_id, and the question by ward, with a threshold in HAVING."
    )


SAME = [
    f"SELECT ward FROM {SUBQUERY} WHERE n > 3 AND total <= 500 GROUP BY ward HAVING count(*) > 100",
    f"SELECT v.ward FROM {SUBQUERY} WHERE NOT (v.n <= 3) AND 500 >= v.total GROUP BY 1 HAVING NOT count(*) <= 100",
    "WITH t AS (SELECT s.patient_id AS p, sum(s.cost) AS x, s.ward AS w, count(*) AS y FROM stays s GROUP BY 3, 1)"
    " SELECT w FROM t WHERE x <= 500 AND y > 3 GROUP BY w HAVING count(*) > 100",
    "SELECT ward FROM (SELECT ward, patient_id FROM stays GROUP BY 1, 2 HAVING count(*) > 3 AND sum(cost) <= 500) q"
    " GROUP BY ward HAVING count(*) > 100",
    "SELECT ward FROM (SELECT ward, patient_id, sum(cost) AS s, count(*) AS c, max(age) AS unread FROM stays"
    " GROUP BY 1, 2 HAVING count(*) > 3) q WHERE s <= 500 GROUP BY ward HAVING count(*) > 100",
]
OTHER = [
    f"SELECT ward FROM {SUBQUERY} WHERE n > 4 AND total <= 500 GROUP BY ward HAVING count(*) > 100",
    f"SELECT ward FROM {SUBQUERY} WHERE n > 3 AND total <= 499.5 GROUP BY ward HAVING count(*) > 100",
    f"SELECT ward FROM {SUBQUERY} WHERE total > 3 AND n <= 500 GROUP BY ward HAVING count(*) > 100",
    f"SELECT ward FROM {SUBQUERY.replace('GROUP', 'WHERE insured GROUP')} WHERE n > 3 AND total <= 500 GROUP BY ward"
    " HAVING count(*) > 100",
    f"SELECT ward FROM {SUBQUERY.replace('stays', 'capped')} WHERE n > 3 AND total <= 500 GROUP BY ward"
    " HAVING count(*) > 100",
    "SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, coalesce(sum(cost), 0) AS total FROM stays"
    " GROUP BY 1, 2) v WHERE n > 3 AND total <= 500 GROUP BY ward HAVING count(*) > 100",
    "SELECT ward FROM stays GROUP BY ward HAVING count(DISTINCT patient_id) > 100",
]


def test_what_totals_are_called_does_not_matter_and_what_they_are_does() -> None:
    def mark(sql: str) -> str:
        return plan_question(asked(sql), dialect=DUCKDB).fingerprint

    assert len({mark(sql) for sql in SAME}) == 1
    assert len({mark(sql) for sql in (SAME[0], *OTHER)}) == 1 + len(OTHER)


@pytest.mark.parametrize(
    ("having", "together"),
    [
        ("count(*) FILTER (WHERE n > 3) > 100 OR count(*) FILTER (WHERE n <= 3) > 50", False),
        ("count(*) FILTER (WHERE n = 1) > 100 OR sum(total) FILTER (WHERE n BETWEEN 2 AND 5) > 50", False),
        ("count(*) FILTER (WHERE total < 10) > 100 OR count(*) FILTER (WHERE total IS NULL) > 50", False),
        (
            "count(*) FILTER (WHERE total < 10) > 100 OR count(DISTINCT patient_id) FILTER (WHERE total > 10) > 50",
            False,
        ),
        ("count(*) FILTER (WHERE n > 3) > 100 OR count(*) FILTER (WHERE total > 3) > 50", True),
        ("count(*) FILTER (WHERE n > 3) > 100 OR count(*) FILTER (WHERE n <= 4) > 50", True),
    ],
)
def test_conditions_on_totals_that_exclude_each_other_are_met_by_different_units(having: str, together: bool) -> None:
    question = asked(f"SELECT ward FROM {SUBQUERY} GROUP BY ward HAVING {having}")
    assert len(find_affected_sets(question)) == (1 if together else 2)
    assert find_exposures(question) == expose_functional_sets(find_affected_sets(question), functionals=2)


def test_rows_of_one_unit_on_both_sides_of_a_filter_inside_are_charged_in_full() -> None:
    """One patient may have stays with and without insurance: these totals exclude nothing."""
    question = asked(
        "SELECT ward FROM (SELECT ward, patient_id, count(*) FILTER (WHERE insured) AS a,"
        " count(*) FILTER (WHERE NOT insured) AS b FROM stays GROUP BY 1, 2) v"
        " GROUP BY ward HAVING count(*) FILTER (WHERE a > 0) > 100 OR count(*) FILTER (WHERE b > 0) > 100"
    )
    assert find_affected_sets(question) == (frozenset({0, 1}),)


def test_a_column_called_like_a_total_is_another_column() -> None:
    """Inside, cost is a stay's; outside it is the patient's sum: the two do not exclude each other."""
    question = asked(
        "SELECT ward FROM (SELECT ward, patient_id, sum(cost) AS cost FROM stays WHERE cost > 5 GROUP BY 1, 2) v"
        " WHERE cost < 3 GROUP BY ward HAVING count(*) > 100"
    )
    assert find_affected_sets(question) == (frozenset({0}),)
    assert plan_question(question, dialect=POSTGRES).worst_case_epsilon > 0


OUTER = [
    (
        f"SELECT ward AS x, 1 FROM {SUBQUERY} WHERE n > 3 GROUP BY ward HAVING count(*) > 9 ORDER BY v.ward LIMIT 2",
        'SELECT ward AS x, 1 FROM <0> AS "v" ORDER BY v.ward LIMIT 2',
    ),
    (
        "SELECT w FROM (SELECT ward AS w, patient_id FROM stays GROUP BY 1, 2) v GROUP BY w HAVING count(*) > 9",
        'SELECT "v"."ward" AS "w" FROM <0> AS "v"',
    ),
    (
        "WITH v AS (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2), q AS (SELECT ward FROM v WHERE"
        " n > 3 GROUP BY ward HAVING count(*) > 9) SELECT * FROM q",
        'WITH v AS (SELECT NULL), q AS (SELECT ward FROM <0> AS "v") SELECT * FROM q',
    ),
    (
        "WITH v AS (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) SELECT ward FROM v x GROUP BY ward"
        " HAVING count(*) > 9 EXCEPT SELECT v.ward FROM v WHERE n > 5 GROUP BY ward HAVING count(*) > 9",
        'WITH v AS (SELECT NULL) SELECT ward FROM <0> AS "x" EXCEPT SELECT v.ward FROM <1> AS "v"',
    ),
]


@pytest.mark.parametrize(("sql", "outer"), OUTER)
def test_the_statement_around_reads_the_embedded_keys_alone(sql: str, outer: str) -> None:
    statement = classify(sql, stays())
    assert isinstance(statement, Asking)
    assert "".join(part if isinstance(part, str) else f"<{part}>" for part in statement.outer) == outer


@pytest.mark.parametrize(
    ("sql", "at"),
    [
        (f"SELECT 1, ward FROM {SUBQUERY} WHERE nn > 3 GROUP BY ward HAVING count(*) > 9", "nn > 3"),
        ("SELECT ward FROM (SELECT ward, patient_id, variance(age) AS n FROM stays GROUP BY 1, 2) v WHERE n > 3 GROUP"
         " BY ward HAVING count(*) > 9", "variance(age) AS n"),
        ("SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM stays WHERE agee > 3 GROUP BY 1, 2) v GROUP BY"
         " ward HAVING count(*) > 9", "agee"),
        ("WITH v AS (SELECT ward, patient_id, count(*) AS n FROM stays WHERE agee > 3 GROUP BY 1, 2) SELECT ward FROM v"
         " GROUP BY ward HAVING count(*) > 9", "agee"),
        ("SELECT ward FROM (SELECT ward, patient_id FROM stays GROUP BY 1, 2 HAVING count(*) > 'x') v GROUP BY"
         " ward HAVING count(*) > 9", "'x'"),
    ],
)  # fmt: skip
def test_refusals_point_at_the_analysts_own_text(sql: str, at: str) -> None:
    position = refused(sql).position
    assert position is not None
    assert sql[position - 1 :].startswith(at)


def test_parameters_inside_and_outside() -> None:
    sql = (
        "SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM stays WHERE age > $1 GROUP BY 1, 2) v"
        " WHERE n > $2 GROUP BY ward HAVING count(*) > $3"
    )
    constant = sql.replace("$1", "40").replace("$2", "3").replace("$3", "100")
    marks = [plan_question(one, dialect=DUCKDB).fingerprint for one in (asked(sql, 40, 3, 100), asked(constant))]
    assert marks[0] == marks[1]


def test_explain_says_what_is_added_up() -> None:
    question = asked(f"SELECT ward FROM {SUBQUERY} WHERE n > 3 AND total > 5 GROUP BY ward HAVING count(*) > 100")
    text: Any = "\n".join(explain_text(plan_question(question, dialect=POSTGRES), left=None))
    assert "Bounding: of each (patient_id) in each (ward): n = count(*), total = sum(cost)" in text
    assert "n = count(*) is clipped to 0 .. 20" in text
    assert "total = sum(cost) is clipped to 0 .. 1000" in text
    assert "one (patient_id) is in at most 2 of 3 groups, and its rows in others do not count" in text
    assert "chosen by a hash" not in text


def test_a_question_alone_in_a_longer_text_points_into_that_text() -> None:
    """As over REST, where leading spaces and comments belong to the text."""
    sql = (
        "  SELECT ward FROM (SELECT ward, patient_id FROM stays WHERE agee > 1 GROUP BY 1, 2) v"
        " GROUP BY ward HAVING count(*) > 9"
    )
    question = read_bare_question(sql, stays())
    with pytest.raises(KeyholeError) as caught:
        bind_question(
            question, stays(), accuracy=read_accuracy({}, stays().defaults), parameters={}, today=date(2026, 1, 1)
        )
    assert sql[(caught.value.position or 0) - 1 :].startswith("agee")


def test_without_an_endpoint_a_question_may_stand_behind_the_query_that_it_reads() -> None:
    totals = "WITH v AS (SELECT ward, patient_id, count(*) AS n FROM stays WHERE agee > 1 GROUP BY 1, 2)"
    question = "SELECT ward FROM v WHERE n > 3 GROUP BY ward HAVING count(*) > 9"
    sql = f"-- often\n{totals} {question}"
    embedded = read_bare_question(sql, stays())
    assert embedded.text == question
    with pytest.raises(KeyholeError) as caught:
        bind_question(
            embedded, stays(), accuracy=read_accuracy({}, stays().defaults), parameters={}, today=date(2026, 1, 1)
        )
    assert sql[(caught.value.position or 0) - 1 :].startswith("agee")
    for more in (
        f"{totals} SELECT 'A' UNION {question}",
        f"{totals} {question} LIMIT 1",
        f"{totals}, w AS (SELECT 1) {question}",
        f"{totals}, q AS ({question}) SELECT * FROM q",
    ):
        with pytest.raises(KeyholeError) as caught:
            read_bare_question(more, stays())
        assert caught.value.code == "KH106"


def test_a_stored_question_may_read_a_subquery_per_unit() -> None:
    sql = (
        "WITH v AS (SELECT ward, patient_id, count(*) AS n FROM stays WHERE age >= $1 GROUP BY 1, 2)"
        " SELECT ward FROM v WHERE n > $2 GROUP BY ward HAVING count(*) > 100"
    )
    parameters = (StoredParameter("age", 40), StoredParameter("visits", 3))
    catalog = replace(stays(), stored_questions=(StoredQuestion("frequent", sql, parameters=parameters),))
    statement = classify("SELECT * FROM frequent f", catalog)
    assert isinstance(statement, Asking)
    (question,) = statement.questions
    wanted = read_accuracy({}, catalog.defaults)
    made = bind_question(question, catalog, accuracy=wanted, parameters={1: 40, 2: 3}, today=date(2026, 1, 15))
    direct = asked(sql, 40, 3)
    assert plan_question(made, dialect=DUCKDB).fingerprint == plan_question(direct, dialect=DUCKDB).fingerprint
