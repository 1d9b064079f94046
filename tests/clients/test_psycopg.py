"""psycopg 3: text and binary, server-side cursors, pipelines, asynchronous connections, pools."""

import asyncio
import threading
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from tests.in_turn import in_turn
from tests.worlds import gallery
from tests.worlds.house import notices
from tests.worlds.served import Served, unchanged


@pytest.mark.parametrize("binary", [False, True])
def test_values_and_types(clinic: Served, binary: bool) -> None:
    with clinic.connect() as connection, connection.cursor(binary=binary, row_factory=dict_row) as cursor:
        row = cursor.execute(gallery.KINDS).fetchone()
        assert row == gallery.FULL_ROW
        assert {name: type(value) for name, value in row.items()} == {
            name: type(value) for name, value in gallery.FULL_ROW.items()
        }
        empty = cursor.execute("SELECT * FROM kinds WHERE id = 3").fetchone()
        assert empty is not None
        assert set(empty.values()) == {3, None}


@in_turn("binary", [False, True])
@in_turn("key", list(gallery.TYPED))
def test_keys_of_every_type(clinic: Served, key: str, binary: bool) -> None:
    with clinic.connect() as connection:
        rows = connection.execute(gallery.about(key).encode(), binary=binary).fetchall()
    assert [value for (value,) in rows] == list(gallery.TYPED[key])


def test_the_guarantee_comes_as_a_notice(clinic: Served) -> None:
    with clinic.connect() as connection:
        heard = notices(connection)
        connection.execute(gallery.QUESTION)
        assert heard[0].startswith(f"NOTICE: {gallery.GUARANTEE}")
        connection.execute("SET client_min_messages = warning")
        heard.clear()
        connection.execute(gallery.QUESTION)
        assert heard == []


@pytest.mark.parametrize("prepare", [False, True])
def test_refusals_carry_all_their_fields(clinic: Served, prepare: bool) -> None:
    with clinic.connect() as connection, unchanged(clinic):
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
            connection.execute(gallery.REFUSED, prepare=prepare)
        diag = refused.value.diag
        assert diag.sqlstate == gallery.REFUSED_CODE
        assert diag.severity == diag.severity_nonlocalized == "ERROR"
        assert diag.message_primary == gallery.REFUSED_MESSAGE
        assert diag.message_detail == gallery.REFUSED_DETAIL
        assert diag.message_hint == gallery.REFUSED_HINT
        assert diag.statement_position == str(gallery.REFUSED_POSITION)
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="KH101"):
            connection.execute(gallery.AGGREGATE, prepare=prepare)


@pytest.mark.parametrize("prepare", [False, True])
def test_parameters(clinic: Served, prepare: bool) -> None:
    question = (
        "SELECT ward FROM visits WHERE ward = ANY(%s) AND age >= %s AND day BETWEEN %s AND %s "
        "GROUP BY ward HAVING count(*) > %s ORDER BY 1"
    )
    with clinic.connect() as connection:
        rows = connection.execute(
            question, [["A", "B", "D"], 0, *gallery.TYPED["day"], 1000], prepare=prepare
        ).fetchall()
        assert rows == [("A",), ("B",)]
        listed = "SELECT ward FROM visits WHERE ward IN (%s,%s) GROUP BY ward HAVING count(*)>%s ORDER BY 1"
        assert connection.execute(listed, ["A", "D", 1000], prepare=prepare).fetchall() == [("A",)]
        composed = sql.SQL("SELECT {} FROM visits GROUP BY 1 HAVING count(*) > {} ORDER BY 1").format(
            sql.Identifier("ward"), sql.Literal(1000)
        )
        assert connection.execute(composed).fetchall() == rows


def test_transactions_fail_and_roll_back_as_in_postgresql(clinic: Served) -> None:
    with psycopg.connect(clinic.conninfo) as connection:
        connection.execute("SET LOCAL keyhole.tolerance = '20%'")
        with pytest.raises(psycopg.Error), connection.transaction():
            connection.execute(gallery.REFUSED)
        assert connection.execute("SHOW keyhole.tolerance").fetchone() == ("20%",)
        with pytest.raises(psycopg.Error):
            connection.execute(gallery.REFUSED)
        assert connection.info.transaction_status is TransactionStatus.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute(gallery.QUESTION)
        connection.rollback()
        assert connection.execute("SHOW keyhole.tolerance").fetchone() == ("10%",)
        assert connection.execute(gallery.QUESTION).fetchall() == [("A",), ("B",)]


def test_server_side_cursors_scroll_over_an_answer(clinic: Served) -> None:
    with psycopg.connect(clinic.conninfo) as connection:
        with connection.cursor("answer", scrollable=True) as cursor:
            cursor.itersize = 1
            cursor.execute(gallery.QUESTION)
            with unchanged(clinic):
                assert [ward for (ward,) in cursor] == gallery.WARDS
                cursor.scroll(0, mode="absolute")
                assert cursor.fetchmany(1) == [("A",)]
        with connection.cursor("rows") as cursor:
            cursor.execute("SELECT g FROM generate_series(1, %s) g", [250])
            assert len(cursor.fetchmany(100)) + len(cursor.fetchall()) == 250


def test_pipelines(clinic: Served) -> None:
    with clinic.connect() as connection, connection.pipeline():
        cursors = [connection.execute(gallery.about(key).encode()) for key in gallery.TYPED]
        answers = [[value for (value,) in cursor.fetchall()] for cursor in cursors]
    assert answers == [list(values) for values in gallery.TYPED.values()]


def test_an_error_in_a_pipeline_ends_its_batch_alone(clinic: Served) -> None:
    with clinic.connect() as connection:
        with connection.pipeline() as pipeline:
            first = connection.execute(gallery.QUESTION)
            connection.execute(gallery.REFUSED)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                pipeline.sync()
            assert first.fetchall() == [("A",), ("B",)]
        assert connection.execute(gallery.QUESTION).fetchall() == [("A",), ("B",)]


def test_cancelling(clinic: Served) -> None:
    with clinic.connect() as connection:
        raised: list[BaseException] = []

        def sleep() -> None:
            try:
                connection.execute("SELECT pg_sleep(600)")
            except psycopg.Error as error:
                raised.append(error)

        sleeping = threading.Thread(target=sleep)
        sleeping.start()
        while sleeping.is_alive():  # the first may come before the statement
            connection.cancel_safe()
            sleeping.join(0.05)
        assert [type(error) for error in raised] == [psycopg.errors.QueryCanceled]
        assert connection.execute(gallery.QUESTION).fetchall() == [("A",), ("B",)]


def test_asynchronous_connections(clinic: Served) -> None:
    async def work() -> list[Any]:
        async with await psycopg.AsyncConnection.connect(clinic.conninfo, autocommit=True) as connection:
            cursor = await connection.execute(gallery.QUESTION)
            return await cursor.fetchall()

    assert asyncio.run(work()) == [("A",), ("B",)]


def test_a_pool_gives_every_borrower_the_policys_settings(clinic: Served) -> None:
    def reset(connection: psycopg.Connection[Any]) -> None:
        connection.autocommit = True
        connection.execute("DISCARD ALL")
        connection.autocommit = False

    with ConnectionPool(clinic.conninfo, min_size=1, max_size=1, reset=reset) as pool:
        with pool.connection() as connection:
            connection.execute("SET keyhole.tolerance = '30%'")
            connection.execute(gallery.QUESTION, prepare=True)
            process = connection.info.backend_pid
        with pool.connection() as connection:
            assert connection.info.backend_pid == process
            assert connection.execute("SHOW keyhole.tolerance").fetchone() == ("10%",)
            assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


def test_a_question_is_copied_and_charged_once(clinic: Served) -> None:
    asked = gallery.QUESTION.replace("1000", "1234")
    with clinic.connect() as connection, connection.cursor() as cursor:
        heard = notices(connection)
        with cursor.copy(f"COPY ({asked}) TO STDOUT".encode()) as copy:
            assert list(copy.rows()) == [("A",), ("B",)]
        assert heard[0].startswith(f"NOTICE: {gallery.GUARANTEE}")
        before = cursor.execute("SELECT * FROM keyhole.budget").fetchall()
        heard.clear()
        assert cursor.execute(asked.encode()).fetchall() == [("A",), ("B",)]
        assert heard[1].startswith("NOTICE: released before")
        heard.clear()
        with cursor.copy(f"COPY ({asked}) TO STDOUT (FORMAT binary)".encode()) as copy:
            copy.set_types(["text"])
            assert list(copy.rows()) == [("A",), ("B",)]
        assert heard[1].startswith("NOTICE: released before")
        assert cursor.execute("SELECT * FROM keyhole.budget").fetchall() == before
        with cursor.copy("COPY (TABLE crowded ORDER BY 1) TO STDOUT") as copy:
            assert list(copy.rows()) == [("A",), ("B",)]
        with cursor.copy("COPY (SELECT name FROM keyhole.settings ORDER BY name LIMIT 1) TO STDOUT CSV") as copy:
            assert b"".join(copy) == b"keyhole.fnr\n"


def test_a_failed_transaction_copies_nothing(clinic: Served) -> None:
    with psycopg.connect(clinic.conninfo) as connection, connection.cursor() as cursor, unchanged(clinic):
        with pytest.raises(psycopg.errors.DivisionByZero):
            cursor.execute("SELECT 1/0")
        copying = f"COPY ({gallery.about('floor', threshold='1234')}) TO STDOUT".encode()
        with pytest.raises(psycopg.errors.InFailedSqlTransaction), cursor.copy(copying):
            pass


def test_other_copies_are_refused_and_the_session_goes_on(clinic: Served) -> None:
    with clinic.connect() as connection, connection.cursor() as cursor:
        for statement in (
            "COPY wards TO STDOUT",
            "COPY visits FROM STDIN",
            f"COPY ({gallery.QUESTION}) TO '/answer'",
            f"COPY ({gallery.QUESTION}) TO PROGRAM 'cat'",
            "COPY (DELETE FROM wards RETURNING name) TO STDOUT",
        ):
            with pytest.raises(psycopg.errors.Error, match="KH102"), cursor.copy(statement.encode()):
                pass
        with pytest.raises(psycopg.errors.Error, match="KH103"), cursor.copy("COPY (TABLE visits) TO STDOUT"):
            pass
        assert cursor.execute(gallery.QUESTION).fetchall() == [("A",), ("B",)]


def test_settings_at_connection_start_are_those_of_set(clinic: Served) -> None:
    wanted = {"jit": "off", "geqo": "off", "bytea_output": "escape", "xmloption": "document", "lc_monetary": "C"}
    options = " ".join(f"-c {name}={value}" for name, value in wanted.items())
    with psycopg.connect(clinic.conninfo, options=options) as connection:
        for name, value in wanted.items():
            assert connection.execute(f"SHOW {name}".encode()).fetchone() == (value,)
    for refused in ("work_mem=1GB", "standard_conforming_strings=off", "role=postgres"):
        with pytest.raises(psycopg.OperationalError, match="KH404"):
            psycopg.connect(clinic.conninfo, options=f"-c {refused}")


def test_another_database_is_told_which_one_is_served(clinic: Served) -> None:
    with pytest.raises(psycopg.OperationalError, match='"nothing" does not exist, the one that is served is "clinic"'):
        psycopg.connect(clinic.conninfo, dbname="nothing")
