"""Set operations as one charge, cursors, and stored questions with parameters, through the endpoint.

The shop's counts are far from every threshold here: a false alarm has a probability below 1e-9 a statement.
"""

import psycopg
import pytest
from psycopg import errors

from tests.worlds import shop
from tests.worlds.house import House, notices, unchanged

JANUARY = "SELECT store FROM sales WHERE month = '2026-01-01' GROUP BY store HAVING count(*) > {0}"
FEBRUARY = "SELECT store FROM sales WHERE month = '2026-02-01' GROUP BY store HAVING count(*) > {0}"


@pytest.mark.parametrize(
    ("word", "rows"), [("UNION", [("north",), ("south",)]), ("INTERSECT", []), ("EXCEPT", [("north",)])]
)
def test_a_set_operation_is_one_question_and_one_charge(house: House, word: str, rows: list[tuple[str]]) -> None:
    sql = f"{JANUARY.format(1100)} {word} {FEBRUARY.format(1200)} ORDER BY 1"
    with house.connect() as connection:
        before, heard = house.events, notices(connection)
        assert connection.execute(sql).fetchall() == rows
        assert house.events == before + 2  # reserved and committed, once
        assert sum("guarantee" in notice.lower() for notice in heard) == 1
        with unchanged(house):
            assert connection.execute(sql).fetchall() == rows


def test_explain_shows_the_joined_formula(on_duckdb: House) -> None:
    sql = f"EXPLAIN VERBOSE ({JANUARY.format(1101)}) EXCEPT ({FEBRUARY.format(1201)})"
    with on_duckdb.connect() as connection, unchanged(on_duckdb):
        text = "\n".join(line for (line,) in connection.execute(sql).fetchall())
    assert "count(*) FILTER (WHERE month = '2026-01-01') > 1101" in text
    assert "count(*) FILTER (WHERE month = '2026-02-01') <= 1201" in text
    assert "A and B" in text


def test_sides_that_cannot_be_joined_are_charged_apart(on_duckdb: House) -> None:
    sql = f"{JANUARY.format(1102)} UNION ALL {FEBRUARY.format(1202)}"
    with on_duckdb.connect() as connection:
        before = on_duckdb.events
        assert sorted(connection.execute(sql).fetchall()) == [("north",), ("south",)]
        assert on_duckdb.events == before + 4


def test_a_cursor_asks_once(house: House) -> None:
    with house.connect() as connection:
        before = house.events
        with connection.transaction(), connection.cursor("keys", scrollable=True) as cursor:
            cursor.execute(shop.BUSY.replace("1000", "%s"), [1103])
            assert cursor.fetchone() == ("north",)
            assert cursor.fetchall() == [("south",)]
            cursor.scroll(0, mode="absolute")
            assert cursor.fetchall() == shop.BUSY_STORES
        assert house.events == before + 2


def test_a_refused_cursor_is_not_opened(on_duckdb: House) -> None:
    with on_duckdb.connect() as connection, unchanged(on_duckdb):
        connection.execute("BEGIN")
        with pytest.raises(psycopg.Error, match="KH103"):
            connection.execute("DECLARE c CURSOR FOR SELECT * FROM sales")
        with pytest.raises(errors.InFailedSqlTransaction):
            connection.execute("FETCH ALL FROM c")


def test_a_cursor_that_cannot_be_declared_costs_nothing(on_duckdb: House) -> None:
    """Under a name in use: PostgreSQL's own error, before anything is spent."""
    question = f"DECLARE busy CURSOR FOR {shop.BUSY.replace('1000', '1104')}".encode()
    with on_duckdb.connect() as connection, unchanged(on_duckdb):
        connection.execute("BEGIN; DECLARE busy CURSOR FOR SELECT 1")
        with pytest.raises(errors.DuplicateCursor, match="busy"):
            connection.execute(question)
        connection.execute("ROLLBACK")
    with on_duckdb.connect() as connection, connection.transaction():
        connection.execute(question.replace(b" FOR", b" WITH HOLD FOR", 1))
        assert connection.execute("FETCH ALL FROM busy").fetchall() == shop.BUSY_STORES


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        (f"SELECT * FROM ({shop.BUSY.replace('1000', '1105')}) q, pg_authid", errors.InsufficientPrivilege),
        (
            f"SELECT name FROM stores WHERE name IN ({shop.BUSY.replace('1000', '1106')}) FOR UPDATE",
            errors.InsufficientPrivilege,
        ),
        (
            f"DECLARE c CURSOR FOR SELECT * FROM ({shop.BUSY.replace('1000', '1107')}) q, pg_authid",
            errors.InsufficientPrivilege,
        ),
        (f"SELECT 1 / 0 FROM ({shop.BUSY.replace('1000', '1108')}) q", errors.DivisionByZero),
    ],
)
def test_what_postgresql_would_not_run_costs_nothing(on_duckdb: House, sql: str, error: type[psycopg.Error]) -> None:
    """Privileges and constants are checked over no keys, before anything is spent."""
    with on_duckdb.connect() as connection, unchanged(on_duckdb):
        connection.execute("BEGIN")
        with pytest.raises(error):
            connection.execute(sql.encode())


def test_a_stored_question_is_asked_once_for_each_value(house: House) -> None:
    with house.connect() as connection:
        connection.execute("SET keyhole.param.selling.least = 1")
        before = house.events
        assert connection.execute("SELECT * FROM selling ORDER BY 1").fetchall() == shop.BUSY_STORES
        assert house.events == before + 2
        with unchanged(house):
            connection.execute("SELECT count(*) FROM selling")
        connection.execute("SET keyhole.param.selling.threshold = 3000")
        assert connection.execute("SELECT * FROM selling WHERE store <> %s", ["west"]).fetchall() == [("north",)]
        assert house.events == before + 4
        with unchanged(house), connection.transaction():
            connection.execute("SET LOCAL keyhole.param.selling.threshold = 1000")
            assert len(connection.execute("SELECT * FROM selling").fetchall()) == 2


def test_a_value_smuggled_past_set_is_refused(on_duckdb: House) -> None:
    with on_duckdb.connect() as connection, unchanged(on_duckdb):
        connection.execute("SELECT set_config('keyhole.param.selling.threshold', '1) OR (true', false)")
        with pytest.raises(psycopg.Error, match="KH402"):
            connection.execute("SELECT * FROM selling")


def test_every_client_sees_a_stored_question_with_parameters(on_duckdb: House) -> None:
    with on_duckdb.connect() as connection:
        columns = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'selling'"
        assert connection.execute(columns).fetchall() == [("store", "text")]
        assert connection.execute("SHOW keyhole.param.selling.threshold").fetchone() == ("1000",)
