"""tests/spec/outer.sql: statements around questions as BI tools write them, through the endpoint."""

import json
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from tests.effort import rounds
from tests.planner.spec import pairs
from tests.worlds.house import House

_PARAMETERS = "--$ "


def _shown(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case list():
            return "{" + ",".join(map(_shown, value)) + "}"
        case dict():
            return json.dumps(value)
        case int() | Decimal() | str():
            return str(value)
        case _:
            return str(value)


def _outcome(connection: psycopg.Connection[Any], sql: str) -> str:
    """The rows of every statement that has some, or the refusal's code."""
    text, _, parameters = sql.partition(f"\n{_PARAMETERS}")
    with psycopg.RawCursor(connection) as cursor:
        try:
            cursor.execute(text.encode(), json.loads(parameters) if parameters else None)
        except psycopg.Error as error:
            message = error.diag.message_primary or ""
            return message.split(":")[0] if message.startswith("KH") else str(error.sqlstate)
        results: list[str] = []
        while True:
            if cursor.description is not None:
                rows = [" | ".join(map(_shown, row)) for row in cursor.fetchall()]
                results.append("; ".join(rows) or "(no rows)")
            if not cursor.nextset():
                return " // ".join(results)


@pytest.mark.parametrize(("sql", "outcome"), pairs("outer.sql")[:: rounds(1, quick=2)])
def test_outer_statement(on_duckdb: House, sql: str, outcome: str) -> None:
    """The shop's counts are far from every threshold here: a false alarm has a probability below 1e-9 a statement."""
    with on_duckdb.connect() as connection:
        assert _outcome(connection, sql) == outcome


def test_the_corpus_is_large() -> None:
    corpus = pairs("outer.sql")
    assert len(corpus) >= 60
    assert sum(outcome.startswith("KH") for _, outcome in corpus) >= 10
