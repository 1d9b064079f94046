"""Where Keyhole means to differ from PostgreSQL: what is refused, with which code, and that the session goes on."""

import psycopg
import pytest

from proxy.shadow.address import ShadowAddress
from proxy.wire.backend import DataRow, ReadyForQuery, Report
from proxy.wire.frontend import Bind, Copy, Execute, FunctionCall, Parse, Query, Sync
from tests.proxy.conftest import Running
from tests.proxy.differential.pair import Pair, sqlstates
from tests.worlds.countries import QUESTION

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
    "SELECT * FROM sales": b"42501",
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


MISGROUPED = (
    "GROUP BY 7",
    "GROUP BY country, 0",
    "GROUP BY -1",
    "GROUP BY (7)",
    "GROUP BY 1.5",
    "GROUP BY 99999999999",
    "GROUP BY 'x'",
    "GROUP BY country, NULL",
    "GROUP BY country, count(*)",
    "GROUP BY nothing(country)",
    "GROUP BY upper(nothing::text)",
)


def test_what_postgresql_would_not_group_by_is_told_in_its_words(pair: Pair) -> None:
    """With a hint of Keyhole's where PostgreSQL has none, in any encoding; COPY, which it does not look into at once,
    has at least the SQLSTATE."""
    for clause in MISGROUPED:
        sql = f"SELECT /* é */ country FROM sales {clause} HAVING count(*) > 20"
        for messages in (
            (Query(sql.encode()),),
            (Query(b"SET client_encoding = 'LATIN1'"), Query(sql.encode("latin-1"))),
            (Parse(b"", sql.encode()), Sync()),
        ):
            ours, theirs = pair.talk(*messages)
            pair.forget()
            told = [answer for answer in ours if isinstance(answer, Report) and answer.kind == "E"]
            expected = [answer for answer in theirs if isinstance(answer, Report) and answer.kind == "E"]
            assert [without_hint(answer) for answer in told] == [without_hint(answer) for answer in expected], clause
            assert told[0].find_field(b"H") or told[0].find_field(b"C") == b"42703", clause
        copied, as_copied = pair.talk(Query(f"COPY ({sql}) TO STDOUT".encode()))
        if clause in MISGROUPED[:7]:
            assert sqlstates(copied) == sqlstates(as_copied), clause


def without_hint(report: Report) -> list[tuple[bytes, bytes]]:
    """An error but for what to do about it, and for Keyhole's own words for a column that is not there."""
    left = b"HMD" if report.find_field(b"C") == b"42703" else b"H"
    return [(name, text) for name, text in report.fields if name not in left]


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
    short, long = b"n" * 63, b"n" * 63 + "é".encode()  # the same to PostgreSQL
    client.send(Parse(long, b"SAVEPOINT s"), Sync(), Query(b"EXECUTE " + short), Query(b"DEALLOCATE ALL"))
    assert [sqlstates(client.until_ready()) for _ in range(3)] == [[], [b"42501"], []]
    client.send(Parse(b"run", b"EXECUTE later"), Parse(b"later", b"RELEASE s"), Sync(), Query(b"SELECT 1"))
    assert sqlstates(client.until_ready()) == [b"42501"]
    assert len(client.until_ready()) == 4
    # a driver's own prepared savepoints work
    run = (Bind(b"", b"b", (), (), ()), Execute(b"", 0), Sync())
    client.send(Query(b"BEGIN"), Parse(b"b", b"SAVEPOINT s"), *run, *run, Query(b"COMMIT"))
    assert [sqlstates(client.until_ready()) for _ in range(4)] == [[], [], [], []]


OWN = "SELECT name FROM pg_prepared_statements WHERE starts_with(name, 'keyhole.') ORDER BY 1"


def test_what_keyhole_prepares_for_itself_can_be_seen_and_not_be_run(running: Running) -> None:
    """Among it are statements that were refused, and parts of texts that only Keyhole may put together."""
    with running.connect(autocommit=True) as connection:
        connection.execute(f"{QUESTION}; SHOW datestyle; {QUESTION}")
        connection.execute(QUESTION, prepare=True)
        for refused in REFUSED:
            with pytest.raises(psycopg.Error):
                connection.execute(refused.encode())
        names = [name for (name,) in connection.execute(OWN).fetchall()]
        assert "keyhole.part" in names
        assert "keyhole.refused" not in names  # whatever was refused is not even kept
        for name in (*names, "keyhole.refused"):
            assert connection.pgconn.exec_prepared(name.encode(), []).error_field(67) == b"0A000"
            for sql in (f'EXECUTE "{name}"', f'EXPLAIN EXECUTE U&"{name}" (1)', f'SELECT 1; EXECUTE "{name}"'):
                with pytest.raises(psycopg.errors.FeatureNotSupported):
                    connection.execute(sql.encode())
    assert running.asker.released == 3


@pytest.mark.parametrize(
    "sql",
    [
        'PREPARE "keyhole.part" AS SELECT 1',
        f'PREPARE "keyhole.state" AS {QUESTION}',
        'DEALLOCATE "keyhole.for.1"',
        'DEALLOCATE PREPARE "keyhole.for.1"',
        'DECLARE "keyhole.part" CURSOR FOR SELECT 1',
        f'DECLARE "keyhole.rehearsal" CURSOR WITH HOLD FOR {QUESTION}',
        'FETCH ALL FROM "keyhole.part"',
        'MOVE "keyhole.part"',
        'CLOSE "keyhole.part"',
    ],
)
def test_names_that_are_keyholes_own_can_be_neither_given_nor_used(running: Running, pair: Pair, sql: str) -> None:
    client = pair.keyhole
    for messages in (
        (Query(f"BEGIN; {sql}".encode()),),
        (Parse(b"", sql.encode()), Sync()),
        (Parse(b"keyhole.x", b"SELECT 1"), Sync()),
        (Parse(b"", b"SELECT 1"), Bind(b"keyhole.part", b"", (), (), ()), Sync()),
    ):
        client.send(*messages)
        assert sqlstates(client.until_ready()) == [b"0A000"]
    assert running.asker.released == 0


def test_a_portal_is_not_run_by_other_settings_than_it_was_bound_by(running: Running, pair: Pair) -> None:
    """PostgreSQL reads 1/2/2011 when it is bound; Keyhole would read it again, as another day."""
    client = pair.keyhole
    dated = QUESTION.replace("GROUP", "WHERE invoice_date < $1 GROUP").encode()
    client.send(Parse(b"q", dated), Sync(), Query(b"BEGIN"))
    dmy, tokyo, same = b"SET datestyle = 'ISO, DMY'", b"SET timezone = 'Asia/Tokyo'", b"SHOW datestyle"
    turns = ((b"1/2/2011", dmy), (b"1/2/2011", same), (b"1/2/2011", tokyo), (None, dmy))
    for value, setting in turns:
        client.send(Query(b"SAVEPOINT s"), Bind(b"p", b"q", (), (value,), ()), Sync(), Query(setting), Execute(b"p", 0))
        client.send(Sync(), Query(b"ROLLBACK TO s"))
    told = [sqlstates(client.until_ready()) for _ in range(2 + 5 * len(turns))]
    assert told == [[], []] + [*[[]] * 3, [b"0A000"], []] + [[]] * 5 + [*[[]] * 3, [b"0A000"], []] + [[]] * 5
    assert running.asker.released == 2


def test_the_process_number_of_the_login_is_keyholes_own(
    running: Running, shadow: ShadowAddress, plain_database: str
) -> None:
    """Requests to cancel go to Keyhole, under a number of its own: the same one with probability below 1e-6."""
    asked = "SELECT pg_backend_pid()"
    with psycopg.connect(shadow.make_conninfo(user="ada", database=plain_database)) as plain:
        assert plain.execute(asked).fetchone() == (plain.info.backend_pid,)
    with running.connect(autocommit=True) as connection:
        (one,) = running.endpoint.sessions
        assert connection.execute(asked).fetchone() == (one.relay.process,) != (connection.info.backend_pid,)


def test_listening_is_allowed_and_hears_nothing(pair: Pair) -> None:
    pair.same_sql("LISTEN channel", "SELECT * FROM pg_listening_channels()", "UNLISTEN *")
    client = pair.keyhole
    client.send(Query(b"LISTEN channel"), Query(b"SELECT pg_notify('channel', 'x')"))
    client.until_ready()
    refused = client.until_ready()
    assert sqlstates(refused) == [b"42501"]
    assert all(isinstance(answer, Report | ReadyForQuery) for answer in refused)
