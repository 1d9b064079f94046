import threading
from typing import Any

import psycopg
import pytest
from psycopg import ClientCursor, errors
from psycopg.pq import TransactionStatus

from proxy.wire.backend import CommandComplete, DataRow, ReadyForQuery, Report, RowDescription
from proxy.wire.frontend import Query
from tests.proxy.conftest import Running
from tests.proxy.in_test_asker import COUNTRIES
from tests.proxy.raw_client import RawClient
from tests.worlds.countries import QUESTION

KEYS = [(country,) for country in COUNTRIES]


def status(connection: psycopg.Connection[Any]) -> TransactionStatus:
    return connection.info.transaction_status


def test_a_question_is_answered_with_its_guarantee_before_the_rows(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(Query(QUESTION.encode()))
        notice, description, *rows, complete, ready = client.until_ready()
    assert isinstance(notice, Report)
    assert notice.find_field(b"M") == b"at most 1.9 epsilon"
    assert isinstance(description, RowDescription)
    (field,) = description.fields
    assert (field.name, field.type, field.column) == (b"country", 25, 1)
    assert field.table != 0
    assert rows == [DataRow((country.encode(),)) for country in COUNTRIES]
    assert complete == CommandComplete(b"SELECT 4")
    assert ready == ReadyForQuery(b"I")


def test_a_question_inside_an_outer_query_is_post_processed_by_the_shadow(running: Running) -> None:
    sql = f"SELECT region, count(*) FROM ({QUESTION}) q JOIN regions USING (country) GROUP BY region ORDER BY 1 LIMIT 5"
    with running.connect() as connection:
        assert connection.execute(sql).fetchall() == [("Africa", 1), ("Europe", 2)]
    assert running.asker.released == 1


def test_settings_are_read_at_every_question_whatever_wrote_them(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        connection.execute("SELECT set_config('keyhole.fnr', '0.02', false)")
        connection.execute(QUESTION)
        with connection.transaction():
            connection.execute("SET LOCAL keyhole.fnr = 0.03")
            connection.execute(QUESTION)
        connection.execute(QUESTION)
        connection.execute("SET keyhole.max_epsilon = 1.5")
        connection.execute("SET keyhole.tolerance = '25'")
        connection.execute(QUESTION)
        connection.execute("DISCARD ALL")
        connection.execute(QUESTION)
    seen = [(s["keyhole.fnr"], s["keyhole.tolerance"], s["keyhole.max_epsilon"]) for s, _ in running.asker.asked]
    assert seen == [
        ("0.02", "10%", None),
        ("0.03", "10%", None),
        ("0.02", "10%", None),
        ("0.02", "25", "1.5"),
        ("0.05", "10%", None),
    ]


def test_a_bad_setting_is_refused_at_once_or_before_anything_is_released(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        with pytest.raises(errors.InvalidParameterValue, match="KH402"):
            connection.execute("SET keyhole.fnr = 0.9")
        assert connection.execute("SHOW keyhole.fnr").fetchone() == ("0.05",)
        connection.execute("SELECT set_config('keyhole.fnr', '0.9', false)")
        with pytest.raises(errors.InvalidParameterValue, match="KH402"):
            connection.execute(QUESTION)
    assert running.asker.released == 0


def test_a_refusal_carries_code_detail_hint_and_position(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        with pytest.raises(errors.InsufficientPrivilege) as caught:
            connection.execute("SELECT 1; CREATE TABLE x ()")
        diagnostic = caught.value.diag
        assert diagnostic.severity == diagnostic.severity_nonlocalized == "ERROR"
        assert diagnostic.message_primary == "KH102: CREATE is not allowed"
        assert diagnostic.statement_position == "11"
        assert connection.info.transaction_status == TransactionStatus.IDLE
        with pytest.raises(errors.InsufficientPrivilege) as caught:
            connection.execute("SELECT 1; SELECT * FROM sales")
        assert caught.value.diag.statement_position == "25"
        with pytest.raises(errors.InvalidParameterValue) as refused:
            connection.execute("SET keyhole.fnr = 7")
        assert refused.value.diag.message_detail
        assert refused.value.diag.message_hint


def test_the_analysts_own_mistakes_are_postgresqls_own_errors(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        with pytest.raises(errors.UndefinedColumn) as caught:
            connection.execute("SELECT 1; SELECT country FROM sales GROUP BY country HAVING count(nope) > 2")
        assert caught.value.diag.statement_position == "67"
        with pytest.raises(errors.DatatypeMismatch):
            connection.execute("SELECT country FROM sales GROUP BY country HAVING count(*)")
        with pytest.raises(errors.DivisionByZero):
            connection.execute("SELECT 1/0")
    assert running.asker.asked == []


def test_a_refusal_fails_the_transaction_until_it_is_rolled_back(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        connection.execute("BEGIN")
        connection.execute("SAVEPOINT s")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("CREATE TABLE x ()")
        assert status(connection) == TransactionStatus.INERROR
        with pytest.raises(errors.InFailedSqlTransaction):
            connection.execute(QUESTION)
        with pytest.raises(errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.execute("ROLLBACK TO s")
        assert status(connection) == TransactionStatus.INTRANS
        assert connection.execute(QUESTION).fetchall() == KEYS
        connection.execute("COMMIT")
    assert running.asker.released == 1


def test_several_statements_are_answered_in_order(running: Running) -> None:
    script = f"SET keyhole.fnr = 0.04; SELECT 1 AS one; {QUESTION}; ; SHOW keyhole.fnr"
    with RawClient(running.port) as client:
        client.send(Query(script.encode()))
        messages = client.until_ready()
    tags = [message.tag for message in messages if isinstance(message, CommandComplete)]
    assert tags == [b"SET", b"SELECT 1", b"SELECT 4", b"SHOW"]
    names = [message.fields[0].name for message in messages if isinstance(message, RowDescription)]
    assert names == [b"one", b"country", b"keyhole.fnr"]
    assert sum(isinstance(message, ReadyForQuery) for message in messages) == 1
    assert running.asker.asked[0][0]["keyhole.fnr"] == "0.04"


@pytest.mark.parametrize("before", ["SELECT 1/0", QUESTION.replace("*", "nope"), "SELECT nope"])
def test_after_an_error_the_rest_is_skipped_and_nothing_released(running: Running, before: str) -> None:
    with RawClient(running.port) as client:
        client.send(Query(f"SELECT 7; {before}; {QUESTION}; SELECT 8".encode()))
        messages = client.until_ready()
        client.send(Query(b"SELECT 9"))
        assert len(client.until_ready()) == 4
    assert [message for message in messages if isinstance(message, DataRow)] == [DataRow((b"7",))]
    assert sum(isinstance(message, Report) for message in messages) == 1
    assert messages[-1] == ReadyForQuery(b"I")
    assert running.asker.released == 0


def test_a_batch_with_transaction_control_leaves_the_status_it_should(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(Query(f"BEGIN; {QUESTION}".encode()))
        assert client.until_ready()[-1] == ReadyForQuery(b"T")
        client.send(Query(f"{QUESTION}; SELECT 1/0".encode()))
        assert client.until_ready()[-1] == ReadyForQuery(b"E")
        client.send(Query(b"ROLLBACK"))
        assert client.until_ready()[-1] == ReadyForQuery(b"I")


def test_pipelined_queries_are_answered_in_order(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(
            Query(b"SELECT 1"), Query(QUESTION.encode()), Query(b"CREATE TABLE x ()"), Query(b""), Query(b"SELECT 2")
        )
        answers = [client.until_ready() for _ in range(5)]
    assert [len(answer) for answer in answers] == [4, 8, 2, 2, 4]


def test_explain_is_rows_of_text_with_postgresqls_tag(running: Running) -> None:
    with running.connect() as connection:
        cursor = connection.execute(f"EXPLAIN {QUESTION}")
        assert cursor.description is not None
        assert cursor.description[0].name == "QUERY PLAN"
        assert cursor.fetchall() == [("Question over 4 groups",), (" A or B",)]
        assert cursor.statusmessage == "EXPLAIN"
    assert running.asker.released == 0


@pytest.mark.parametrize(
    ("encoding", "codec"), [("latin1", "latin1"), ("WIN1252", "cp1252"), ("UTF8", "utf-8"), ("SQL_ASCII", "utf-8")]
)
def test_keys_reach_a_client_in_its_own_encoding(running: Running, encoding: str, codec: str) -> None:
    with RawClient(running.port) as client:
        client.send(Query(f"SET client_encoding = '{encoding}'".encode()))
        client.until_ready()
        sql = f"SELECT country, country = 'Côte d''Ivoire' FROM ({QUESTION}) q LIMIT 2"
        client.send(Query(sql.encode(codec)))
        rows = [message for message in client.until_ready() if isinstance(message, DataRow)]
    assert rows == [DataRow((COUNTRIES[0].encode(codec), b"t")), DataRow((b"France", b"f"))]


def test_an_encoding_that_cannot_be_read_safely_is_refused(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(Query(b"SET client_encoding = 'SJIS'"))
        client.until_ready()
        for sql in (b"SELECT '\x83\x5c'", QUESTION.encode()):
            client.send(Query(sql))
            *_, report, ready = client.until_ready()
            assert isinstance(report, Report)
            assert report.find_field(b"C") == b"0A000"
            assert ready == ReadyForQuery(b"I")
        client.send(Query(b"SET client_encoding = 'UTF8'"), Query(b"SELECT 1"))  # ASCII, so read safely
        assert len(client.until_ready()) == 3
        assert len(client.until_ready()) == 4
    assert running.asker.released == 0


def test_a_bug_in_planning_is_an_internal_error_and_the_session_lives(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        with pytest.raises(errors.InternalError_, match="KH900: internal error"):
            connection.execute(QUESTION.replace("SELECT", "SELECT /* crash */"))
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_client_min_messages_silences_the_guarantee(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(Query(b"SET client_min_messages = warning"))
        client.until_ready()
        client.send(Query(QUESTION.encode()))
        assert not any(isinstance(message, Report) for message in client.until_ready())


def test_no_keys_is_no_rows(running: Running) -> None:
    running.asker.keys = ()
    with running.connect() as connection, ClientCursor(connection) as cursor:
        assert cursor.execute(QUESTION).fetchall() == []


def test_many_keys_stream_through(running: Running) -> None:
    running.asker.keys = tuple(f"key {number}" for number in range(50_000))
    with running.connect() as connection:
        rows = connection.execute(QUESTION).fetchall()
    assert rows == [(key,) for key in running.asker.keys]


def test_a_stored_question_and_a_virtual_relation_are_relations(running: Running) -> None:
    with running.connect() as connection:
        assert connection.execute("SELECT * FROM busy").fetchall() == KEYS
        assert connection.execute("SELECT count(*) FROM keyhole.budget").fetchall() == [(0,)]
    assert running.asker.released == 1


def test_a_question_disturbs_no_read_only_transaction_cursor_or_prepared_statement(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        connection.execute("PREPARE three AS SELECT 3")
        connection.execute("BEGIN TRANSACTION READ ONLY")
        connection.execute("DECLARE c CURSOR FOR SELECT generate_series(1, 3)")
        assert connection.execute("FETCH c").fetchall() == [(1,)]
        assert connection.execute(QUESTION).fetchall() == KEYS
        assert connection.execute("FETCH c").fetchall() == [(2,)]
        assert connection.execute("EXECUTE three").fetchall() == [(3,)]
        connection.execute("COMMIT")


def test_what_a_pool_sends_to_reset_a_session_passes(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        connection.execute("SET keyhole.fnr = 0.01")
        connection.execute("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;")
        assert connection.execute("SHOW keyhole.fnr").fetchone() == ("0.05",)
        connection.execute("DISCARD ALL")


def test_a_slow_reader_does_not_make_the_endpoint_buffer(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(Query(b"SELECT repeat('x', 1000) FROM generate_series(1, 100000)"))
        client.next()
        largest = max(running.buffered_bytes() for _ in range(200))
        assert 0 < largest < 1_000_000
        assert len(client.until_ready()) == 100_002


def test_a_client_that_leaves_during_a_release_disturbs_nobody(running: Running) -> None:
    running.asker.gate = threading.Event()
    with RawClient(running.port) as client, running.connect() as other:
        client.send(Query(QUESTION.encode()))
        client.socket.close()
        assert other.execute("SELECT 1").fetchone() == (1,)
        running.asker.gate.set()
        assert other.execute(QUESTION).fetchall() == KEYS
