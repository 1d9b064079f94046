from typing import Any

import pytest
from psycopg import errors, pq

from proxy.wire.backend import (
    CommandComplete,
    DataRow,
    EmptyMessage,
    ParameterDescription,
    ReadyForQuery,
    Report,
    RowDescription,
)
from proxy.wire.frontend import (
    Bind,
    Close,
    Copy,
    Describe,
    Execute,
    Flush,
    FrontendMessage,
    FunctionCall,
    Parse,
    Query,
    Sync,
)
from tests.proxy.conftest import Running
from tests.proxy.in_test_asker import COUNTRIES
from tests.proxy.raw_client import RawClient
from tests.worlds.countries import QUESTION

KEYS = [(country,) for country in COUNTRIES]
ROWS = [DataRow((country.encode(),)) for country in COUNTRIES]
WITH_PARAMETER = b"SELECT country FROM sales GROUP BY country HAVING count(*) > $1"


def batch(client: RawClient, *messages: FrontendMessage) -> list[Any]:
    client.send(*messages, Sync())
    return client.until_ready()


def bind(portal: bytes = b"", statement: bytes = b"", *values: bytes | None, results: tuple[int, ...] = ()) -> Bind:
    return Bind(portal, statement, (), values, results)


def sqlstates(messages: list[Any]) -> list[bytes | None]:
    return [message.find_field(b"C") for message in messages if isinstance(message, Report) and message.kind == "E"]


def test_parameters_reach_the_planner_as_values_of_their_types(running: Running) -> None:
    sql = QUESTION.replace("20", "%s")
    with running.connect() as connection:
        for value in (20, "20", 20.0):
            assert connection.execute(sql, [value]).fetchall() == KEYS
        assert connection.execute(sql, [21], binary=True).fetchall() == KEYS
    assert [parameters for _, parameters in running.asker.asked] == [{1: 20}, {1: 20}, {1: 20}, {1: 21}]


def test_describe_tells_types_and_spends_nothing(running: Running) -> None:
    with RawClient(running.port) as client:
        parsed, types, rows, bound, portal, ready = batch(
            client,
            Parse(b"q", WITH_PARAMETER),
            Describe(b"S", b"q"),
            bind(b"p", b"q", b"20", results=(1,)),
            Describe(b"P", b"p"),
        )
    assert (parsed, bound) == (EmptyMessage("1"), EmptyMessage("2"))
    assert types == ParameterDescription((20,))
    assert isinstance(rows, RowDescription)
    assert isinstance(portal, RowDescription)
    assert [(field.name, field.type) for field in rows.fields] == [(b"country", 25)]
    assert [(field.name, field.type, field.format) for field in portal.fields] == [(b"country", 25, 1)]
    assert ready == ReadyForQuery(b"I")
    assert running.asker.asked == []


def test_columns_come_from_their_tables_however_they_are_described(running: Running) -> None:
    sql = f"SELECT q.country, 1 AS one, r.region FROM ({QUESTION}) q JOIN regions r USING (country)".encode()
    with RawClient(running.port) as client:
        simple = next(one for one in batch(client, Query(sql)) if isinstance(one, RowDescription))
        client.until_ready()
        found = batch(
            client,
            Parse(b"q", sql),
            Describe(b"S", b"q"),
            bind(b"p", b"q", results=(1,)),
            Describe(b"P", b"p"),
            Execute(b"p", 1),
            Describe(b"P", b"p"),
            Execute(b"p", 0),
            Close(b"P", b"p"),
            Parse(b"s", b"SELECT 'x' AS country, 1 AS one, 'y' AS region"),
            bind(b"p", b"s"),
            Describe(b"P", b"p"),
        )
    told = [[(field.table, field.column) for field in one.fields] for one in found if isinstance(one, RowDescription)]
    places = [(field.table, field.column) for field in simple.fields]
    assert told == [places, places, places, [(0, 0)] * 3]
    assert places[1] == (0, 0)
    assert all(table and column for table, column in (places[0], places[2]))
    assert running.asker.released == 2


def test_one_release_per_portal_however_its_rows_are_fetched(running: Running) -> None:
    with RawClient(running.port) as client:
        messages = batch(
            client,
            Parse(b"", QUESTION.encode()),
            bind(),
            Execute(b"", 1),
            Execute(b"", 2),
            Describe(b"P", b""),
            Execute(b"", 0),
            Execute(b"", 0),
        )
    shown = [message for message in messages if not isinstance(message, RowDescription | Report)]
    assert shown == [
        EmptyMessage("1"),
        EmptyMessage("2"),
        ROWS[0],
        EmptyMessage("s"),
        ROWS[1],
        ROWS[2],
        EmptyMessage("s"),
        ROWS[3],
        CommandComplete(b"SELECT 1"),
        CommandComplete(b"SELECT 0"),
        ReadyForQuery(b"I"),
    ]
    assert running.asker.released == 1


def test_a_suspended_portal_lives_as_long_as_its_transaction(running: Running) -> None:
    with RawClient(running.port) as client:
        batch(client, Parse(b"b", b"BEGIN"), bind(b"", b"b"), Execute(b"", 0))
        batch(client, Parse(b"q", QUESTION.encode()), bind(b"one", b"q"), bind(b"two", b"q"), Execute(b"one", 1))
        assert [m for m in batch(client, Execute(b"two", 2)) if isinstance(m, DataRow)] == ROWS[:2]
        assert [m for m in batch(client, Execute(b"one", 2)) if isinstance(m, DataRow)] == ROWS[1:3]
        client.send(Query(b"COMMIT"))
        client.until_ready()
        assert sqlstates(batch(client, Execute(b"one", 0))) == [b"34000"]
    assert running.asker.released == 2


def test_a_prepared_question_asks_again_at_every_execution(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        for _ in range(3):
            assert connection.execute(QUESTION, prepare=True).fetchall() == KEYS
    assert running.asker.released == 3


def test_an_unexecuted_portal_of_a_finished_transaction_is_gone(running: Running) -> None:
    with RawClient(running.port) as client:
        batch(client, Parse(b"q", QUESTION.encode()), bind(b"p", b"q"))
        assert sqlstates(batch(client, Execute(b"p", 0))) == [b"34000"]
        batch(client, bind(b"p", b"q"), Close(b"P", b"p"))
        assert sqlstates(batch(client, Execute(b"p", 0))) == [b"34000"]
        batch(client, Close(b"S", b"q"))
        assert sqlstates(batch(client, bind(b"p", b"q"), Execute(b"p", 0))) == [b"26000"]
    assert running.asker.asked == []


@pytest.mark.parametrize("forget", [b"DEALLOCATE q", b"DEALLOCATE ALL", b"DISCARD ALL"])
def test_a_statement_deallocated_in_sql_is_gone(running: Running, forget: bytes) -> None:
    with RawClient(running.port) as client:
        batch(client, Parse(b"q", QUESTION.encode()))
        client.send(Query(forget))
        client.until_ready()
        assert sqlstates(batch(client, bind(b"", b"q"), Execute(b"", 0))) == [b"26000"]
        batch(client, Parse(b"q", b"SELECT 5"))
        assert DataRow((b"5",)) in batch(client, bind(b"", b"q"), Execute(b"", 0))
    assert running.asker.asked == []


def test_a_name_in_use_keeps_its_statement(running: Running) -> None:
    with RawClient(running.port) as client:
        batch(client, Parse(b"q", b"SELECT 5"))
        assert sqlstates(batch(client, Parse(b"q", QUESTION.encode()))) == [b"42P05"]
        assert DataRow((b"5",)) in batch(client, bind(b"", b"q"), Execute(b"", 0))
        batch(client, Parse(b"r", QUESTION.encode()))
        assert sqlstates(batch(client, Parse(b"r", b"SELECT 5"))) == [b"42P05"]
        assert ROWS[0] in batch(client, bind(b"", b"r"), Execute(b"", 0))


def test_the_unnamed_statement_is_replaced(running: Running) -> None:
    with RawClient(running.port) as client:
        batch(client, Parse(b"", QUESTION.encode()))
        batch(client, Parse(b"", b"SELECT 5"))
        assert DataRow((b"5",)) in batch(client, bind(), Execute(b"", 0))
        batch(client, Parse(b"", QUESTION.encode()))
        client.send(Query(b"SELECT 1"))
        client.until_ready()
        assert sqlstates(batch(client, bind(), Execute(b"", 0))) == [b"26000"]
    assert running.asker.asked == []


@pytest.mark.parametrize(
    ("before", "sql", "sqlstate"),
    [
        (b"SELECT set_config('keyhole.fnr', '0.9', false)", QUESTION.encode(), b"22023"),
        (b"", QUESTION.replace("SELECT", "SELECT /* crash */").encode(), b"XX000"),
    ],
)
def test_a_refusal_at_execution_skips_the_batch_and_fails_the_transaction(
    running: Running, before: bytes, sql: bytes, sqlstate: bytes
) -> None:
    with RawClient(running.port) as client:
        for statement in (before, b"BEGIN"):
            client.send(Query(statement))
            client.until_ready()
        messages = batch(
            client,
            Parse(b"q", sql),
            bind(b"", b"q"),
            Execute(b"", 0),
            Parse(b"", b"SELECT 6"),
            bind(),
            Execute(b"", 0),
        )
        assert messages[:2] == [EmptyMessage("1"), EmptyMessage("2")]
        assert sqlstates(messages) == [sqlstate]
        assert messages[-1] == ReadyForQuery(b"E")
        assert len(messages) == 4
        assert sqlstates(batch(client, Parse(b"", b"SELECT 6"))) == [b"25P02"]
        client.send(Query(b"ROLLBACK"))
        client.until_ready()
        assert DataRow((b"6",)) in batch(client, Parse(b"", b"SELECT 6"), bind(), Execute(b"", 0))


def test_a_refusal_at_parse_skips_up_to_sync(running: Running) -> None:
    with RawClient(running.port) as client:
        messages = batch(client, Parse(b"", b"CREATE TABLE x ()"), bind(), Execute(b"", 0))
        assert sqlstates(messages) == [b"42501"]
        assert len(messages) == 2
        assert DataRow((b"6",)) in batch(client, Parse(b"", b"SELECT 6"), bind(), Execute(b"", 0))


def test_after_an_earlier_error_of_the_batch_nothing_is_asked(running: Running) -> None:
    with RawClient(running.port) as client:
        messages = batch(
            client,
            Parse(b"", b"SELECT 1/0"),
            bind(),
            Execute(b"", 0),
            Parse(b"", QUESTION.encode()),
            bind(),
            Execute(b"", 0),
        )
        assert sqlstates(messages) == [b"22012"]
        messages = batch(client, Parse(b"", b"SELECT 1/0"), bind(), Execute(b"", 0), Query(QUESTION.encode()))
        assert sqlstates(messages) == [b"22012"]
        # in one write with the batch that follows
        client.send(Parse(b"", b"SELECT nope"), Sync(), Parse(b"", QUESTION.encode()), bind(), Execute(b"", 0), Sync())
        assert sqlstates(client.until_ready()) == [b"42703"]
        assert [m for m in client.until_ready() if isinstance(m, DataRow)] == ROWS
    assert running.asker.released == 1


def test_flush_brings_answers_without_ending_the_batch(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(Parse(b"", QUESTION.encode()), Flush())
        assert client.next() == EmptyMessage("1")
        client.send(bind(), Execute(b"", 0), Flush())
        assert client.next() == EmptyMessage("2")
        assert isinstance(client.next(), Report)
        assert [client.next() for _ in ROWS] == ROWS
        client.send(Sync())
        assert client.until_ready() == [CommandComplete(b"SELECT 4"), ReadyForQuery(b"I")]


def test_explain_through_the_extended_protocol(running: Running) -> None:
    with RawClient(running.port) as client:
        messages = batch(client, Parse(b"", b"EXPLAIN " + WITH_PARAMETER), bind(b"", b"", b"20"), Execute(b"", 0))
    assert DataRow((b"Question over 4 groups",)) in messages
    assert CommandComplete(b"EXPLAIN") in messages


def test_wrong_bindings_are_postgresqls_own_errors(running: Running) -> None:
    with RawClient(running.port) as client:
        batch(client, Parse(b"q", WITH_PARAMETER))
        assert sqlstates(batch(client, bind(b"", b"q"))) == [b"08P01"]
        assert sqlstates(batch(client, bind(b"", b"q", b"many"))) == [b"22P02"]
        assert sqlstates(batch(client, Bind(b"", b"q", (0, 0), (b"1",), ()))) == [b"08P01"]
        assert sqlstates(batch(client, Bind(b"", b"q", (1,), (b"123456789",), ()))) == [b"22P03"]
    assert running.asker.asked == []


def test_a_null_parameter_reaches_the_planner(running: Running) -> None:
    with RawClient(running.port) as client:
        batch(client, Parse(b"", WITH_PARAMETER), bind(b"", b"", None), Execute(b"", 0))
    assert running.asker.asked[0][1] == {1: None}


def test_names_that_are_keyholes_own_are_refused(running: Running) -> None:
    with RawClient(running.port) as client:
        assert sqlstates(batch(client, Parse(b"keyhole.outer", b"SELECT 1"))) == [b"0A000"]


def test_two_statements_cannot_be_prepared_at_once(running: Running) -> None:
    with RawClient(running.port) as client:
        assert sqlstates(batch(client, Parse(b"", QUESTION.encode() + b"; SELECT 1"))) == [b"42601"]
        assert sqlstates(batch(client, Parse(b"", b"SELECT 1; SELECT 2"))) == [b"42601"]


def test_function_calls_are_refused_and_stray_copy_data_ignored(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(FunctionCall(b"anything"), Copy("d", b"x"), Query(b"SELECT 1"))
        assert sqlstates(client.until_ready()) == [b"0A000"]
        assert len(client.until_ready()) == 4


def test_psycopg_pipelines_mix_questions_and_statements(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        with connection.pipeline():
            first = connection.execute("SELECT 1")
            second = connection.execute(QUESTION)
            third = connection.execute("SELECT %s::int", [3])
        assert (first.fetchall(), second.fetchall(), third.fetchall()) == ([(1,)], KEYS, [(3,)])
        with pytest.raises(errors.DivisionByZero), connection.pipeline():  # noqa: PT012
            connection.execute("SELECT 1/0")
            connection.execute(QUESTION)
    assert running.asker.released == 1


def test_libpq_single_row_mode(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        assert list(connection.cursor().stream(QUESTION)) == KEYS
        assert connection.pgconn.transaction_status == pq.TransactionStatus.IDLE
