"""What Keyhole answers over the wire beside what PostgreSQL makes of the same text on the same rows."""

from datetime import UTC, datetime
from typing import Any

import psycopg

from planner.extract.outer_query import Asking
from planner.statements.classify import classify
from proxy.pipeline.messages import Asked
from tests.end_to_end.certainty import certain_answer
from tests.worlds.house import House, unchanged

Rows = list[tuple[Any, ...]]


def both_answers(
    house: House, on_postgres_url: str, sql: str, *, tolerance: str | None = None, min_rows: int | None = None
) -> tuple[Rows, Rows]:
    """Keyhole's rows and PostgreSQL's; insists on columns of the same names and types, on answers that noise cannot
    change but with a probability below 1e-9, and that asking again is the same answer for nothing."""
    service = house.service
    said = {"keyhole.tolerance": tolerance, "keyhole.min_rows": min_rows}
    settings = {name: str(value) for name, value in said.items() if value is not None}
    statement = classify(sql, service.catalog)
    assert isinstance(statement, Asking)
    for question in statement.questions:
        certain_answer(service, Asked(question, settings, {}, service.find_analyst(None), datetime.now(UTC).date()))
    with psycopg.connect(on_postgres_url) as plain, house.connect() as connection:
        for name, value in settings.items():
            connection.execute(f"SET {name} = '{value}'".encode())
        wanted, found = plain.execute(sql.encode()), connection.execute(sql.encode())
        assert [(one.name, one.type_code) for one in found.description or ()] == [
            (one.name, one.type_code) for one in wanted.description or ()
        ]
        rows = found.fetchall()
        with unchanged(house):
            assert connection.execute(sql.encode()).fetchall() == rows
        return rows, wanted.fetchall()
