"""Stopping: who is idle goes at once, statements that run get their time, and no question is torn."""

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

import psycopg
import pytest

from proxy.wire.backend import DataRow, Report
from proxy.wire.frontend import Query, Startup
from tests.effort import PATIENCE_S
from tests.proxy.conftest import Running
from tests.proxy.in_test_asker import COUNTRIES
from tests.proxy.raw_client import RawClient
from tests.worlds.countries import QUESTION


def stopping(running: Running, *, grace_s: float) -> "Future[Any]":
    return asyncio.run_coroutine_threadsafe(running.endpoint.stop(grace_s=grace_s), running.loop)


def told(client: RawClient) -> bytes | None:
    (report,) = [message for message in client.until_end() if isinstance(message, Report) and message.kind == "E"]
    return report.find_field(b"C")


def test_the_idle_go_at_once_and_a_question_gets_its_answer(running: Running) -> None:
    running.asker.gate = threading.Event()
    with RawClient(running.port) as idle, RawClient(running.port) as busy, RawClient(running.port, user="") as new:
        new.send(Startup((3, 0), ((b"user", b"ada"), (b"database", b"retail"))))
        new.next()
        idle.send(Query(b"BEGIN"))
        idle.until_ready()
        busy.send(Query(QUESTION.encode()))
        assert running.asker.begun.acquire(timeout=PATIENCE_S)
        conninfo = running.conninfo()
        stopped = stopping(running, grace_s=300)
        assert (told(idle), told(new)) == (b"57P01", b"57P01")
        assert not stopped.done()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(conninfo)
        running.asker.gate.set()
        assert sum(isinstance(message, DataRow) for message in busy.until_ready()) == len(COUNTRIES)
        assert told(busy) == b"57P01"
        stopped.result(PATIENCE_S)


def test_a_statement_of_the_shadow_gets_its_answer_too(running: Running) -> None:
    with RawClient(running.port) as busy, RawClient(running.port) as idle:
        busy.send(Query(b"SELECT pg_sleep(1)"))
        (one,) = [one for one in running.endpoint.sessions if one.session.is_busy] or running.endpoint.sessions[:1]
        while not one.session.is_busy:
            pass
        stopped = stopping(running, grace_s=300)
        assert told(idle) == b"57P01"
        assert any(isinstance(message, DataRow) for message in busy.until_ready())
        stopped.result(PATIENCE_S)


def test_a_question_that_outlives_the_grace_is_finished_without_its_client(running: Running) -> None:
    running.asker.gate = threading.Event()
    with RawClient(running.port) as client:
        client.send(Query(QUESTION.encode()))
        assert running.asker.begun.acquire(timeout=PATIENCE_S)
        stopped = stopping(running, grace_s=0)
        assert told(client) == b"57P01"
        assert not stopped.done()
        assert running.asker.released == 0
        running.asker.gate.set()
        stopped.result(PATIENCE_S)
        assert running.asker.released == 1
