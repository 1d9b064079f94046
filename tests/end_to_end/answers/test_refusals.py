import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.in_turn import in_turn
from tests.worlds import shop
from tests.worlds.house import House, opened, unchanged, write_policy
from tests.worlds.wards import EXPLAINED

REFUSED = [
    ("KH101", "SELECT store, count(*) FROM sales GROUP BY store"),
    ("KH103", "SELECT note FROM sales"),
    ("KH103", "SELECT DISTINCT store FROM sales WHERE quantity > 3"),
    ("KH204", "SELECT store FROM sales GROUP BY store HAVING stddev(amount) / 2 + 1 > 10"),
    ("KH107", "SELECT store FROM sales, stores GROUP BY store HAVING count(*) > 10"),
    ("KH107", "SELECT store FROM sales WHERE note IN (SELECT note FROM sales) GROUP BY store HAVING count(*) > 10"),
    ("KH202", "SELECT note FROM sales GROUP BY note HAVING count(*) > 10"),
    ("KH208", "SELECT store FROM sales GROUP BY store HAVING count(*) > random() * 10"),
]
ORACLES = [
    "CAST(note AS date) > '2026-01-01'",
    "sqrt(quantity - 3) > 0",
    "ln(amount) > 0",
    "CASE WHEN quantity = 5 THEN 1/0 ELSE 1 END = 1",
    "quantity = 5 AND 1/0 = 1",
    "repeat('x', quantity * 1000000000) = ''",
    "pg_sleep(quantity) IS NULL",
    "(SELECT pg_sleep(1)) IS NULL",
    "note ~ '(a+)+$'",
    "note SIMILAR TO '(a|b)*x'",
    "amount > random() * 100",
    "to_date(note, 'YYYY') > '2026-01-01'",
    "quantity::smallint * 30000 > 1",
    "(note)::xml IS NOT NULL",
]


@in_turn(("code", "sql"), REFUSED)
def test_a_refusal_costs_nothing_and_its_hint_can_be_followed(on_postgres: House, code: str, sql: str) -> None:
    with on_postgres.connect() as connection, unchanged(on_postgres):
        with pytest.raises(psycopg.Error, match=code) as caught:
            connection.execute(sql)
        assert caught.value.diag.statement_position
        hint = (caught.value.diag.message_hint or "").removeprefix("Instead you can ask: ")
        if hint.startswith("SELECT"):
            connection.execute(f"EXPLAIN {hint}")


@in_turn("condition", ORACLES)
@in_turn(
    "form",
    [
        "SELECT store FROM sales WHERE {} GROUP BY store HAVING count(*) > 1000",
        "SELECT store FROM sales GROUP BY store HAVING count(*) FILTER (WHERE {}) > 1000",
        "EXPLAIN SELECT store FROM sales WHERE {} GROUP BY store HAVING count(*) > 1000",
    ],
)
def test_a_condition_that_could_fail_or_dawdle_on_a_row_is_refused(
    on_postgres: House, form: str, condition: str
) -> None:
    with (
        on_postgres.connect() as connection,
        unchanged(on_postgres),
        pytest.raises(psycopg.Error) as caught,
    ):
        connection.execute(form.format(condition))
    # PostgreSQL's own refusals come from types and empty tables alone
    message = str(caught.value.diag.message_primary)
    assert re.match(r"KH(10[0-9]|20[0-9])", message) or caught.value.sqlstate in ("42883", "42846", "42804", "42601")


@in_turn(
    "condition", ["note::integer > 3", "1/(quantity - 5) > 0", "quantity / 0 = 1", "day + quantity > '2026-01-01'"]
)
def test_a_condition_in_which_postgresql_could_fail_on_a_row_never_does(on_postgres: House, condition: str) -> None:
    with on_postgres.connect() as connection:
        sql = f"SELECT store FROM sales WHERE {condition} GROUP BY store HAVING count(*) > 100000"
        assert connection.execute(sql.encode()).fetchall() == []


def refusal(connection: psycopg.Connection[Any], sql: str) -> tuple[str, str]:
    """The message and the hint of a statement that is refused."""
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(sql)
    return str(caught.value.diag.message_primary), str(caught.value.diag.message_hint)


@pytest.fixture
def poor(tmp_path: Path) -> Iterator[House]:
    """The shop with little to spend."""
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    policy = write_policy(
        tmp_path, source="duckdb:///shop.duckdb", per_predicate=3.0, per_unit=3.0, per_query=1.5, bobs=0.05
    )
    with opened(policy) as house:
        yield house


# In order: what is asked before, and what is then refused to whom with which code.
TOO_MUCH = [
    ("KH306", "bob", None, "SELECT store FROM sales GROUP BY store HAVING count(*) > 1000"),
    ("KH302", "ada", None, "SELECT store FROM sales GROUP BY store HAVING count(*) > 10"),
    (
        "KH301",
        "ada",
        "SELECT month FROM sales GROUP BY month HAVING count(*) > 60",
        "SELECT month FROM sales WHERE quantity > -1 GROUP BY month HAVING count(*) > 70",
    ),
    (
        "KH305",
        "ada",
        "SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT patient_id) > 70",
        "SELECT ward FROM visits WHERE cost > 1 GROUP BY ward HAVING count(DISTINCT patient_id) > 90",
    ),
]


def test_every_hint_of_a_refusal_for_budget_works_as_it_stands(poor: House) -> None:
    for code, user, before, refused in TOO_MUCH:
        with poor.connect(user) as connection:
            if before is not None:
                connection.execute(before)
            with unchanged(poor):
                message, hint = refusal(connection, refused)
                assert message.startswith(code)
                offers = re.findall(r"SET keyhole\.\w+ = [^;]+;", hint)
                assert offers
                for offer in offers:
                    connection.execute("RESET ALL")
                    connection.execute(offer)
                    plan = connection.execute(f"EXPLAIN (FORMAT JSON) {refused}").fetchall()[0][0][0]["Keyhole"]
                    assert plan["refused"] is False
            events = poor.events
            connection.execute(refused)
            assert poor.events == events + 2


def test_explain_costs_nothing_in_both_forms(house: House) -> None:
    question = (
        "SELECT store FROM sales GROUP BY store HAVING count(*) > 500 AND (sum(amount) > 900 OR NOT count(*) <= 500)"
    )
    with house.connect() as connection, unchanged(house):
        lines = [line for (line,) in connection.execute(f"EXPLAIN VERBOSE {question}").fetchall()]
        brief = [line for (line,) in connection.execute(f"EXPLAIN {question}").fetchall()]
        assert brief[0] == lines[0]
        assert len(brief) <= 10
        assert not any("SQL" in line for line in brief)
        assert lines[0].startswith("Question over 5 groups of sales (store)")
        assert any("SQL sent to the source" in line for line in lines)
        for form in (f"EXPLAIN (FORMAT JSON) {question}", f"EXPLAIN (FORMAT JSON) SELECT * FROM ({question}) t"):
            document = connection.execute(form).fetchall()[0][0][0]["Keyhole"]
            assert set(document) >= EXPLAINED
            assert document["minimised"] == "count(*) > 500"
            assert document["keys"] == 5
            assert set(document["compared"]) == {"naive", "probe"}
            assert set(document["functionals"][0]) >= {
                "name",
                "sensitivity",
                "epsilon",
                "fnr",
                "fpr",
                "shift",
                "tolerance",
            }
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="KH102"):
            connection.execute(f"EXPLAIN ANALYZE {question}")


def test_a_mechanism_that_the_policy_does_not_allow_decides_nothing(house: House) -> None:
    """Refused where it is set, and at the question where it came in through a function of PostgreSQL's own."""
    question = "SELECT store FROM sales GROUP BY store HAVING count(*) > 500"
    with house.connect() as connection, unchanged(house):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="KH402: the policy does not allow") as caught:
            connection.execute("SET keyhole.mechanism = 'nlm'")
        assert caught.value.diag.statement_position
        connection.execute("SELECT set_config('keyhole.mechanism', 'nlm', false)")
        for asked in (question, f"EXPLAIN {question}"):
            with pytest.raises(
                psycopg.errors.InvalidParameterValue, match="KH402: the policy does not allow"
            ) as caught:
                connection.execute(asked)
        hint = caught.value.diag.message_hint
        assert hint == "SET keyhole.mechanism = 'keyhole';"
        connection.execute(hint)
        lines = connection.execute(f"EXPLAIN VERBOSE {question}").fetchall()
        assert any("ProBE" in line for (line,) in lines)
