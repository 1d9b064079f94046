"""tests/spec/bi_*.sql: what BI tools are known to send, by themselves and around questions, in both query protocols."""

from typing import Any

import psycopg
import pytest

from tests.in_turn import in_turn
from tests.planner.spec import pairs
from tests.worlds.house import House, unchanged


def _shown(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)


def _outcome(connection: psycopg.Connection[Any], sql: str, *, extended: bool) -> str:
    """The rows of a text's statements, "ok" where there are none to return, or the refusal's code.

    Drivers on the extended protocol send the statements of a text one by one.
    """
    outcomes: list[str] = []
    with psycopg.RawCursor(connection) as cursor:
        for text in sql.split("; ") if extended else [sql]:
            try:
                cursor.execute(text.encode(), prepare=extended)
            except psycopg.Error as error:
                message = error.diag.message_primary or ""
                return message.split(":")[0] if message.startswith("KH") else f"{error.sqlstate} {message}"
            while True:
                if cursor.description is not None:
                    rows = [" | ".join(map(_shown, row)) for row in cursor.fetchall()]
                    outcomes.append("; ".join(rows) or "(no rows)")
                if not cursor.nextset():
                    break
    return " // ".join(outcomes) or "ok"


def _insist(found: str, wanted: str) -> None:
    if wanted == "some rows":
        assert found not in ("(no rows)", "ok")
        assert not found.startswith("KH")
    else:
        assert found == wanted


@in_turn("extended", [False, True])
@in_turn(("sql", "wanted"), pairs("bi_introspection.sql"))
def test_what_a_tool_sends_by_itself_is_answered_or_refused_and_costs_nothing(
    on_duckdb: House, sql: str, wanted: str, extended: bool
) -> None:
    with on_duckdb.connect() as connection, unchanged(on_duckdb):
        _insist(_outcome(connection, sql, extended=extended), wanted)


@pytest.mark.parametrize(("sql", "wanted"), pairs("bi_questions.sql"))
def test_what_a_dashboard_sends_is_answered_and_free_the_second_time(on_duckdb: House, sql: str, wanted: str) -> None:
    """The shop's counts are far from every threshold here: a false alarm has a probability below 1e-9 a statement."""
    with on_duckdb.connect() as connection:
        _insist(_outcome(connection, sql, extended=False), wanted)
        with unchanged(on_duckdb):
            _insist(_outcome(connection, sql, extended=True), wanted)
