"""psycopg2: parameters written into the text, named cursors, notices, cancel, its own pool."""

import io
import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg2
import psycopg2.extensions
import psycopg2.extras
import psycopg2.pool
import pytest

from tests.worlds import gallery
from tests.worlds.served import Served, unchanged


@pytest.fixture
def connection(clinic: Served) -> Iterator[psycopg2.extensions.connection]:
    opened = psycopg2.connect(clinic.conninfo)
    opened.autocommit = True
    yield opened
    opened.close()


def rows(connection: psycopg2.extensions.connection, text: str, *parameters: object) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(text, parameters or None)
        return cursor.fetchall()


def test_values_and_types(connection: psycopg2.extensions.connection) -> None:
    with connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
        cursor.execute(gallery.KINDS)
        row = dict(cursor.fetchone() or {})
        row["raw"], row["badge"] = bytes(row["raw"]), UUID(row["badge"])
        assert row == gallery.FULL_ROW
        assert cursor.description is not None
        price = next(column for column in cursor.description if column.name == "price")
        assert (price.type_code, price.precision, price.scale) == (1700, 10, 2)
        cursor.execute("SELECT * FROM kinds WHERE id = 3")
        assert set(dict(cursor.fetchone() or {}).values()) == {3, None}


@pytest.mark.parametrize("key", list(gallery.TYPED))
def test_keys_of_every_type(connection: psycopg2.extensions.connection, key: str) -> None:
    assert [value for (value,) in rows(connection, gallery.about(key))] == list(gallery.TYPED[key])
    assert connection.notices[0].startswith(f"NOTICE:  {gallery.GUARANTEE}")


def test_refusals_carry_all_their_fields(connection: psycopg2.extensions.connection, clinic: Served) -> None:
    with unchanged(clinic), pytest.raises(psycopg2.errors.InsufficientPrivilege) as refused:
        rows(connection, gallery.REFUSED)
    assert refused.value.pgcode == gallery.REFUSED_CODE
    assert str(refused.value).splitlines()[1:3] == [f"LINE 1: {gallery.REFUSED}", f"{'':24}^"]
    diag = refused.value.diag
    assert diag.message_primary == gallery.REFUSED_MESSAGE
    assert diag.message_detail == gallery.REFUSED_DETAIL
    assert diag.message_hint == gallery.REFUSED_HINT
    assert diag.statement_position == str(gallery.REFUSED_POSITION)


def test_parameters(connection: psycopg2.extensions.connection) -> None:
    question = (
        "SELECT ward FROM visits WHERE ward = ANY(%s) AND floor IN %s AND day BETWEEN %s AND %s AND urgent IS NOT NULL "
        "AND cost < %s GROUP BY ward HAVING count(*) > %s ORDER BY 1"
    )
    first, second = gallery.TYPED["day"]
    price = gallery.FULL_ROW["price"]
    assert rows(connection, question, ["A", "B", "D"], (1, 2), first, second, 75.5, 1000) == [("A",), ("B",)]
    assert rows(connection, question, ["it's", "B"], (1, 2), first, second, price, 1000) == []
    listed = "SELECT ward FROM visits WHERE ward IN (%s,%s) GROUP BY ward HAVING count(*)>%s ORDER BY 1"
    assert rows(connection, listed, "A", "D", 1000) == [("A",)]


def test_transactions(connection: psycopg2.extensions.connection) -> None:
    connection.autocommit = False
    connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
    with connection, connection.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == ("repeatable read",)
        cursor.execute("SET LOCAL keyhole.tolerance = '20%'")
        cursor.execute("SAVEPOINT before")
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            cursor.execute(gallery.REFUSED)
        with pytest.raises(psycopg2.errors.InFailedSqlTransaction):
            cursor.execute(gallery.QUESTION)
        cursor.execute("ROLLBACK TO before")
        cursor.execute("SHOW keyhole.tolerance")
        assert cursor.fetchone() == ("20%",)
    assert rows(connection, "SHOW keyhole.tolerance") == [("10%",)]


def test_named_cursors(connection: psycopg2.extensions.connection, clinic: Served) -> None:
    connection.autocommit = False
    with connection.cursor("answer", scrollable=True) as cursor:
        cursor.itersize = 1
        cursor.execute("SELECT ward FROM visits GROUP BY ward HAVING count(*) > %s ORDER BY 1", (1000,))
        with unchanged(clinic):
            assert [ward for (ward,) in cursor] == gallery.WARDS
            cursor.scroll(-2)
            assert cursor.fetchone() == ("B",)
    connection.rollback()
    with connection.cursor("kept", withhold=True) as cursor:
        cursor.execute(gallery.QUESTION)
        connection.commit()
        assert cursor.fetchall() == [("A",), ("B",)]


def test_cancelling(connection: psycopg2.extensions.connection) -> None:
    raised: list[BaseException] = []

    def sleep() -> None:
        try:
            rows(connection, "SELECT pg_sleep(600)")
        except psycopg2.Error as error:
            raised.append(error)

    sleeping = threading.Thread(target=sleep)
    sleeping.start()
    while sleeping.is_alive():  # the first may come before the statement
        connection.cancel()
        sleeping.join(0.05)
    assert [type(error) for error in raised] == [psycopg2.errors.QueryCanceled]
    assert rows(connection, gallery.QUESTION) == [("A",), ("B",)]


def test_reset_and_the_pool(clinic: Served) -> None:
    pool = psycopg2.pool.ThreadedConnectionPool(1, 1, clinic.conninfo)
    try:
        first = pool.getconn()
        with first.cursor() as cursor:
            cursor.execute("SET keyhole.tolerance = '30%'")
        first.commit()
        first.reset()
        pool.putconn(first)
        second = pool.getconn()
        assert second is first
        assert rows(second, "SHOW keyhole.tolerance") == [("10%",)]
    finally:
        pool.closeall()


def test_answers_are_copied(connection: psycopg2.extensions.connection) -> None:
    out = io.StringIO()
    with connection.cursor() as cursor:
        cursor.copy_expert(f"COPY ({gallery.QUESTION}) TO STDOUT WITH CSV HEADER", out)
        assert out.getvalue() == "ward\nA\nB\n"
        with pytest.raises(psycopg2.Error, match="KH102"):
            cursor.copy_to(out, "wards")


def test_two_phase_transactions_and_writes_are_refused(connection: psycopg2.extensions.connection) -> None:
    connection.autocommit = False
    connection.tpc_begin(connection.xid(1, "gtrid", "bqual"))
    with pytest.raises(psycopg2.Error, match="KH102"):
        connection.tpc_prepare()
    connection.reset()
    connection.autocommit = True
    with connection.cursor() as cursor:
        for text in ("INSERT INTO wards VALUES ('E', 1)", "CREATE TEMP TABLE t (a integer)", "NOTIFY news"):
            with pytest.raises(psycopg2.Error, match="KH102"):
                cursor.execute(text)
    assert rows(connection, gallery.QUESTION) == [("A",), ("B",)]
