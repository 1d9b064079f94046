"""Answers of very many keys: nobody waits while they are written, and who asked for too much is told what to do."""

import threading
from typing import Any, SupportsIndex

import psycopg
import pytest

from tests.proxy.conftest import Running
from tests.proxy.in_test_asker import FixedAsker
from tests.worlds.countries import QUESTION

COPY = f"COPY ({QUESTION}) TO STDOUT"


class _WatchedKeys(tuple[str, ...]):
    """Keys that know by which threads they were read."""

    readers: set[threading.Thread]

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        self.readers.add(threading.current_thread())
        return super().__getitem__(index)

    def __iter__(self) -> Any:
        self.readers.add(threading.current_thread())
        return super().__iter__()


@pytest.mark.parametrize("sql", [QUESTION, COPY])
def test_keys_are_written_beside_the_loop_on_which_everybody_waits(
    running: Running, asker: FixedAsker, sql: str
) -> None:
    asker.keys = _WatchedKeys(f"country {number}" for number in range(70_000))
    asker.keys.readers = set()

    async def turning() -> threading.Thread:
        return threading.current_thread()

    with running.connect() as connection, connection.cursor() as cursor:
        if sql is COPY:
            with cursor.copy(sql.encode()) as copied:
                found = [row[0] for row in copied.rows()]
        else:
            found = [row[0] for row in cursor.execute(sql.encode()).fetchall()]
    assert found == [f"country {number}" for number in range(70_000)]
    assert asker.keys.readers
    assert running.run(turning()) not in asker.keys.readers


def _read_all(cursor: psycopg.Cursor[Any], sql: str) -> None:
    if sql.startswith("COPY"):
        with cursor.copy(sql.encode()) as copied:
            list(copied)
    else:
        cursor.execute(sql.encode())


def _failure(running: Running, sql: str) -> psycopg.errors.Diagnostic:
    """How a statement ends that uses up its session's memory; the session goes on."""
    with running.connect(autocommit=True) as connection, connection.cursor() as cursor:
        with pytest.raises(psycopg.errors.OutOfMemory) as caught:
            _read_all(cursor, sql)
        assert cursor.execute(b"SELECT 1").fetchall() == [(1,)]
    return caught.value.diag


@pytest.mark.parametrize("form", ["{}", "COPY ({}) TO STDOUT"])
def test_an_answer_that_outgrows_its_session_is_kept_and_says_where_it_is_to_be_had(
    running: Running, form: str
) -> None:
    sql = form.format(f"SELECT repeat(country, 200000000) FROM ({QUESTION}) AS q WHERE country = 'Spain'")
    assert "over REST" in (_failure(running, sql).message_hint or "")
    assert running.asker.released == 1


def test_keys_that_a_copy_cannot_hold_say_where_they_are_to_be_had(running: Running, asker: FixedAsker) -> None:
    asker.keys = ("x" * 80_000_000,)
    assert "over REST" in (_failure(running, COPY).message_hint or "")


def test_a_statement_that_is_no_question_is_told_what_postgresql_tells(running: Running) -> None:
    assert _failure(running, "SELECT repeat('x', 1000000000)").message_hint is None


def test_other_errors_of_a_question_are_told_as_they_are(running: Running) -> None:
    with running.connect() as connection, pytest.raises(psycopg.errors.DivisionByZero) as caught:
        connection.execute(f"SELECT 1 / (length(country) - length(country)) FROM ({QUESTION}) AS q".encode())
    assert caught.value.diag.message_hint is None
