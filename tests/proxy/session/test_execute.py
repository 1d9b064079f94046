"""PREPARE and EXECUTE of questions in SQL: names, types, arguments and errors are PostgreSQL's own."""

from datetime import date
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import errors

from proxy.wire.backend import DataRow, Report
from proxy.wire.frontend import Bind, Describe, Execute, Parse, Query, Sync
from tests.proxy.conftest import Running
from tests.proxy.in_test_asker import COUNTRIES
from tests.proxy.raw_client import RawClient
from tests.worlds.countries import QUESTION

KEYS = [(country,) for country in COUNTRIES]
OVER = "SELECT country FROM sales GROUP BY country HAVING count(*) > $1"


def given(running: Running) -> list[dict[int, Any]]:
    return [dict(parameters) for _, parameters in running.asker.asked]


@pytest.mark.parametrize(
    ("declared", "arguments", "parameters"),
    [
        ("", "(40)", {1: 40}),
        (" (integer)", "(40)", {1: 40}),
        (" (integer)", "('40')", {1: 40}),
        (" (integer)", "(40.5)", {1: 41}),
        (" (integer)", " ( 2 * 20 + length('x,y') )", {1: 43}),
        (" (numeric)", "(40.50)", {1: Decimal("40.50")}),
        (" (smallint)", "(E'4\\060')", {1: 40}),
        (" (bigint)", "(NULL)", {1: None}),
    ],
)
def test_arguments_are_converted_as_postgresql_converts_them(
    running: Running, declared: str, arguments: str, parameters: dict[int, Any]
) -> None:
    with running.connect() as connection:
        connection.execute(f"PREPARE busy{declared} AS {OVER}")
        assert running.asker.asked == []
        assert connection.execute(f"EXECUTE busy{arguments}").fetchall() == KEYS
    assert given(running) == [parameters]
    assert running.asker.released == 1


def test_parameters_of_several_types_in_any_order_and_outside_the_question(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        connection.execute("SET datestyle = 'German'")
        connection.execute(
            "PREPARE p (text, int, date) AS SELECT country, $3 AS since FROM"
            " (SELECT country FROM sales GROUP BY country HAVING count(*) > $2) q WHERE country <> $1 LIMIT 2"
        )
        rows = connection.execute("EXECUTE p('Spain', 7, '24.12.2025')").fetchall()
        assert rows == [(country, date(2025, 12, 24)) for country in COUNTRIES[:2]]
    assert given(running) == [{1: "Spain", 2: 7, 3: date(2025, 12, 24)}]


def test_names_are_shared_with_all_prepared_statements_of_the_session(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        connection.execute(f"PREPARE busy AS {OVER}")
        with pytest.raises(errors.DuplicatePreparedStatement):
            connection.execute("PREPARE busy AS SELECT 1")
        with pytest.raises(errors.DuplicatePreparedStatement):
            connection.execute(f"PREPARE Busy AS {OVER}")
        with pytest.raises(errors.InvalidSqlStatementName):
            connection.execute('EXECUTE "Busy"(3)')
        connection.execute("PREPARE one AS SELECT 1")
        with pytest.raises(errors.DuplicatePreparedStatement):
            connection.execute(f"PREPARE one AS {OVER}")
        assert connection.execute("EXECUTE one").fetchall() == [(1,)]
        connection.execute("DEALLOCATE busy")
        with pytest.raises(errors.InvalidSqlStatementName):
            connection.execute("EXECUTE busy(3)")
        connection.execute("PREPARE busy AS SELECT 2")
        assert connection.execute("EXECUTE busy").fetchall() == [(2,)]
    assert running.asker.asked == []


@pytest.mark.parametrize("forget", ["DEALLOCATE ALL", "DISCARD ALL", "DEALLOCATE PREPARE busy"])
def test_what_is_forgotten_is_unknown(running: Running, forget: str) -> None:
    with running.connect(autocommit=True) as connection:
        connection.execute(f"PREPARE busy AS {OVER}")
        connection.execute("DISCARD PLANS")
        connection.execute("EXECUTE busy(1)")
        connection.execute(forget)
        with pytest.raises(errors.InvalidSqlStatementName):
            connection.execute("EXECUTE busy(1)")
        connection.execute(f"PREPARE busy AS {OVER}")
    assert running.asker.released == 1


def test_a_name_is_cut_where_postgresql_cuts_it(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        connection.execute(f"PREPARE {'n' * 70} AS {OVER}")
        assert connection.execute(f"EXECUTE {'n' * 66}(1)").fetchall() == KEYS
        connection.execute(f"PREPARE {'ü' * 40} AS {OVER}")
        assert connection.execute(f"EXECUTE {'ü' * 35}(1)").fetchall() == KEYS


def test_several_statements_in_one_text(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        cursor = connection.execute(f"PREPARE a AS {QUESTION}; PREPARE b AS {OVER}; EXECUTE b(3); EXECUTE a; SELECT 1")
        results = []
        while True:
            if cursor.description is not None:
                results.append(cursor.fetchall())
            if not cursor.nextset():
                break
        assert results == [KEYS, KEYS, [(1,)]]
        assert connection.execute("EXECUTE b(4)").fetchall() == KEYS
        texts = connection.execute("SELECT name, statement FROM pg_prepared_statements WHERE from_sql ORDER BY 1")
        assert texts.fetchall()[:2] == [("a", f"PREPARE a AS {QUESTION}"), ("b", f"PREPARE b AS {OVER}")]
    assert given(running) == [{1: 3}, {}, {1: 4}]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("EXECUTE busy", errors.SyntaxError),
        ("EXECUTE busy(1, 2)", errors.SyntaxError),
        ("EXECUTE busy('many')", errors.InvalidTextRepresentation),
        ("EXECUTE busy(true)", errors.DatatypeMismatch),
        ("EXECUTE busy((SELECT 1))", errors.FeatureNotSupported),
        ("EXECUTE busy((SELECT count(*) FROM sales))", errors.FeatureNotSupported),
        ("EXECUTE busy(count(*))", errors.GroupingError),
        ("EXECUTE busy()", errors.SyntaxError),
        ("EXECUTE busy(1) busy", errors.SyntaxError),
        ("EXECUTE busy(1); EXECUTE nothing", errors.InvalidSqlStatementName),
    ],
)
def test_what_postgresql_refuses_is_refused_and_fails_the_transaction(
    running: Running, sql: str, error: type[psycopg.Error]
) -> None:
    with running.connect() as connection:
        connection.execute(f"PREPARE busy (bigint) AS {OVER}")
        with pytest.raises(error):
            connection.execute(sql)
        with pytest.raises(errors.InFailedSqlTransaction):
            connection.execute("EXECUTE busy(1)")
        connection.rollback()
        assert connection.execute("EXECUTE busy(1)").fetchall() == KEYS  # PREPARE outlives its transaction
    assert running.asker.released == 1 + sql.startswith("EXECUTE busy(1);")


def test_explain_execute_explains_the_question_for_nothing(running: Running) -> None:
    with running.connect() as connection:
        connection.execute(f"PREPARE busy AS {OVER}")
        connection.execute("PREPARE one AS SELECT 1")
        plan = connection.execute("EXPLAIN EXECUTE busy(5)").fetchall()
        assert plan == [("Question over 4 groups",), (" A or B",)]
        assert "Result" in str(connection.execute("EXPLAIN EXECUTE one").fetchall())
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("EXPLAIN ANALYZE EXECUTE busy(5)")
    assert given(running) == [{1: 5}]
    assert running.asker.released == 0


def bind(portal: bytes, statement: bytes, *values: bytes) -> Bind:
    return Bind(portal, statement, (), values, ())


def test_execute_in_the_extended_protocol(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(Query(f"PREPARE busy (int) AS {OVER}".encode()))
        client.until_ready()
        client.send(
            Parse(b"run", b"EXECUTE busy(40)"), Describe(b"S", b"run"), bind(b"p", b"run"), Execute(b"p", 0), Sync()
        )
        messages = client.until_ready()
        assert [message for message in messages if isinstance(message, DataRow)] == [
            DataRow((country.encode(),)) for country in COUNTRIES
        ]
        client.send(Query(b"DEALLOCATE busy"), Query(b"PREPARE busy (int) AS SELECT $1"))
        client.until_ready()
        client.until_ready()
        client.send(bind(b"", b"run"), Execute(b"", 0), Sync())
        refusal = next(message for message in client.until_ready() if isinstance(message, Report))
        assert refusal.find_field(b"C") == b"0A000"
    assert given(running) == [{1: 40}]


def test_execute_finds_a_statement_of_the_protocol(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(Parse(b"mine", OVER.encode()), Sync())
        client.until_ready()
        client.send(Query(b"EXECUTE mine(6)"))
        assert DataRow((COUNTRIES[0].encode(),)) in client.until_ready()
    assert given(running) == [{1: 6}]


def test_the_protocol_binds_what_was_prepared_in_sql(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(Query(f"PREPARE busy (int) AS {OVER}".encode()))
        client.until_ready()
        for number in (b"5", b"6"):
            client.send(bind(b"", b"busy", number), Execute(b"", 0), Sync())
            assert DataRow((COUNTRIES[0].encode(),)) in client.until_ready()
        client.send(Query(b"DEALLOCATE busy; PREPARE busy (int) AS SELECT $1"))
        client.until_ready()
        client.send(bind(b"", b"busy", b"7"), Execute(b"", 0), Sync())
        assert DataRow((b"7",)) in client.until_ready()
    assert given(running) == [{1: 5}, {1: 6}]


def test_a_refusal_at_execution_points_nowhere(running: Running) -> None:
    with running.connect() as connection:
        connection.execute(f"PREPARE busy AS {QUESTION.replace('SELECT', 'SELECT /* crash */')}")
        with pytest.raises(errors.InternalError_) as caught:
            connection.execute("EXECUTE busy")
        assert caught.value.diag.statement_position is None
