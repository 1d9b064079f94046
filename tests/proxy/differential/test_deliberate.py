"""Where Keyhole means to differ from PostgreSQL: what is refused, with which code, and that the session goes on."""

import pytest

from proxy.wire.backend import DataRow, ReadyForQuery, Report
from proxy.wire.frontend import Bind, Copy, Execute, FunctionCall, Parse, Query, Sync
from tests.proxy.conftest import Running
from tests.proxy.differential.pair import Pair, sqlstates
from tests.proxy.endpoint_catalog import QUESTION

REFUSED = {
    "COPY regions TO STDOUT": b"42501",
    "COPY sales FROM STDIN": b"42501",
    "CREATE TABLE t (x int)": b"42501",
    "NOTIFY channel": b"42501",
    "PREPARE TRANSACTION 'x'": b"42501",
    "COMMIT PREPARED 'x'": b"42501",
    "LOCK TABLE regions": b"42501",
    "EXPLAIN ANALYZE SELECT 1": b"42501",
    "SELECT pg_advisory_lock(1)": b"42501",
    "SELECT pg_try_advisory_lock(1)": b"42501",
    "SET standard_conforming_strings = off": b"42501",
    "SET work_mem = '1GB'": b"42501",
    "SET ROLE bob": b"42501",
    "SET nothing = 1": b"42501",
    'SELECT U&"\\0041"': b"42601",
    "SELECT E'a'\n'b'": b"42601",
    "SELECT country FROM sales": b"42501",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_refused_fails_as_an_error_of_postgresql_would(pair: Pair, sql: str) -> None:
    client = pair.keyhole
    client.send(Query(f"SELECT 1; {sql}".encode()), Query(b"BEGIN"), Query(sql.encode()), Query(sql.encode()))
    first, _, second, third = (client.until_ready() for _ in range(4))
    assert sqlstates(first) == sqlstates(second) == [REFUSED[sql]]
    assert not any(isinstance(answer, DataRow) for answer in first)  # a refused text is refused as a whole
    assert sqlstates(third) == [
        REFUSED[sql] if sql.startswith("PREPARE") else b"25P02"
    ]  # two-phase may end a transaction
    assert third[-1] == ReadyForQuery(b"E")
    client.send(Copy("d", b"1\n"), Copy("c", b""), Query(b"ROLLBACK"), Parse(b"", sql.encode()), Sync())
    assert len(client.until_ready()) == 2
    assert sqlstates(client.until_ready()) == [REFUSED[sql]]
    client.send(Query(b"SELECT 1"))
    assert len(client.until_ready()) == 4


def test_function_calls_are_refused_at_once_even_inside_a_batch(pair: Pair) -> None:
    client = pair.keyhole
    client.send(
        Parse(b"q", b"SELECT 1"), FunctionCall(b"\0\0\4\xd2"), Bind(b"", b"q", (), (), ()), Execute(b"", 0), Sync()
    )
    first, second = client.until_ready(), client.until_ready()
    assert sqlstates(first) == [b"0A000"]
    assert DataRow((b"1",)) in second


def test_execute_cannot_run_a_savepoint_which_would_crash_the_shadow(pair: Pair) -> None:
    """PostgreSQL 18.4 goes down with all its sessions: so this is not compared."""
    client = pair.keyhole
    for name in (b"a", b"\xc3\xa9", b"n" * 70):
        client.send(Parse(name, b"SAVEPOINT s"), Sync(), Query(b'EXECUTE "' + name + b'"'))
        assert sqlstates(client.until_ready()) == []
        assert sqlstates(client.until_ready()) == [b"42501"]
        client.send(Query(b"DEALLOCATE ALL"))
        client.until_ready()
    client.send(Parse(b"run", b"EXECUTE later"), Parse(b"later", b"RELEASE s"), Sync(), Query(b"SELECT 1"))
    assert sqlstates(client.until_ready()) == [b"42501"]
    assert len(client.until_ready()) == 4
    # a driver's own prepared savepoints work
    run = (Bind(b"", b"b", (), (), ()), Execute(b"", 0), Sync())
    client.send(Query(b"BEGIN"), Parse(b"b", b"SAVEPOINT s"), *run, *run, Query(b"COMMIT"))
    assert [sqlstates(client.until_ready()) for _ in range(4)] == [[], [], [], []]


def test_names_that_are_keyholes_own_can_be_neither_given_nor_bound(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        connection.execute(QUESTION, prepare=True)
        held = connection.execute("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'keyhole.%'").fetchone()
        assert held is not None
        assert held[0] > 0  # they can be seen
        result = connection.pgconn.exec_prepared(b"keyhole.for._pg3_0", [])
        assert result.error_field(67) == b"0A000"


def test_listening_is_allowed_and_hears_nothing(pair: Pair) -> None:
    pair.same_sql("LISTEN channel", "SELECT * FROM pg_listening_channels()", "UNLISTEN *")
    client = pair.keyhole
    client.send(Query(b"LISTEN channel"), Query(b"SELECT pg_notify('channel', 'x')"))
    client.until_ready()
    refused = client.until_ready()
    assert sqlstates(refused) == [b"42501"]
    assert all(isinstance(answer, Report | ReadyForQuery) for answer in refused)
