"""psqlODBC through pyodbc, with and without its own cursors on the server."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.clients.encrypted import Encrypted
from tests.worlds import gallery
from tests.worlds.house import PASSWORD
from tests.worlds.served import USER, Served, unchanged

pyodbc = pytest.importorskip("pyodbc", reason="ODBC needs pip install pyodbc", exc_type=ImportError)
DRIVERS = sorted(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"))


def connect(clinic: Served, **further: object) -> Any:
    if not DRIVERS:
        pytest.skip("ODBC needs apt-get install odbc-postgresql unixodbc")
    parts = {
        "Driver": DRIVERS[0],
        "Server": clinic.host,
        "Port": clinic.port,
        "Database": clinic.database,
        "Uid": USER,
        "Pwd": f"{{{PASSWORD}}}",
        "SSLmode": "disable",
        **further,
    }
    return pyodbc.connect(";".join(f"{name}={value}" for name, value in parts.items()), autocommit=True)


@pytest.fixture(params=[0, 1], ids=["whole", "declare-fetch"])
def connection(request: pytest.FixtureRequest, clinic: Served) -> Iterator[Any]:
    opened = connect(clinic, UseDeclareFetch=request.param, Fetch=1)
    yield opened
    opened.close()


def test_values_and_types(connection: Any) -> None:
    rows = connection.execute("SELECT * FROM kinds ORDER BY id").fetchall()
    names = [column[0] for column in rows[0].cursor_description]
    full = dict(zip(names, rows[0], strict=True))
    assert full.pop("flag") in (True, "1")  # BoolsAsChar
    assert full.pop("badge").lower() == str(gallery.FULL_ROW["badge"])
    assert full == {name: gallery.FULL_ROW[name] for name in names if name in full}
    assert set(rows[2]) == {3, None}


def test_tls(encrypted: Encrypted) -> None:
    def verified(authority: str) -> dict[str, str]:
        return {"SSLmode": "verify-full", "pqopt": f"{{sslrootcert={encrypted.file(authority)}}}"}

    with connect(encrypted.served, **verified("authority.crt")) as connection:
        assert [row[0] for row in connection.execute(gallery.QUESTION).fetchall()] == gallery.WARDS
    with pytest.raises(pyodbc.Error, match="SSL error"):
        connect(encrypted.served, **verified("stranger.crt"))
    with pytest.raises(pyodbc.Error, match="KH407"):
        connect(encrypted.served)


@pytest.mark.parametrize("key", list(gallery.TYPED))
def test_keys_of_every_type(connection: Any, key: str) -> None:
    values = [row[0] for row in connection.execute(gallery.about(key)).fetchall()]
    assert values == ([*"01"] if key == "urgent" else list(gallery.TYPED[key]))


@pytest.mark.parametrize(("numbers", "shown"), [("null", None), ("threshold", 1001)])
def test_numbers_beside_the_keys_have_their_types(connection: Any, numbers: str, shown: int | None) -> None:
    sql = "SELECT ward, count(*) AS n, round(avg(age), 1) AS mean FROM visits GROUP BY ward HAVING count(*) > 1000"
    connection.execute(f"SET keyhole.numbers = '{numbers}'")
    answer = connection.execute(sql)
    assert [column[1] for column in answer.description] == [str, int, Decimal]
    assert sorted(map(tuple, answer.fetchall())) == [("A", shown, None), ("B", shown, None)]


def test_the_guarantee_is_a_message(clinic: Served) -> None:
    connection = connect(clinic)
    cursor = connection.execute(gallery.QUESTION)
    assert any(gallery.GUARANTEE in text for _, text in cursor.messages)
    connection.close()


def test_tables_and_columns(connection: Any, clinic: Served) -> None:
    with unchanged(clinic):
        cursor = connection.cursor()
        tables = {row.table_name: row for row in cursor.tables(schema="public")}
        assert {name for name, row in tables.items() if row.table_type == "TABLE"} == set(gallery.TABLES)
        assert {name for name, row in tables.items() if row.table_type == "VIEW"} == set(gallery.VIEWS)
        columns = {row.column_name: row for row in cursor.columns(table="visits")}
        assert tuple(columns) == gallery.PRIVATE_COLUMNS
        assert columns["cost"].type_name == "numeric"
        assert (columns["cost"].column_size, columns["cost"].decimal_digits) == (10, 2)
        assert cursor.primaryKeys("visits").fetchall() == []
        assert cursor.foreignKeys("visits").fetchall() == []
        assert cursor.statistics("visits").fetchall() is not None
        assert "numeric" in {row.type_name for row in cursor.getTypeInfo()}


def test_parameters(connection: Any) -> None:
    question = (
        "SELECT ward FROM visits WHERE day >= ? AND age >= ? AND ward <> ? GROUP BY ward HAVING count(*) > ? ORDER BY 1"
    )
    for most, expected in ((1000, ["A", "B"]), (2500, ["A"]), (1000, ["A", "B"])):
        rows = connection.execute(question, gallery.TYPED["day"][0], 0, "it's", most).fetchall()
        assert [row.ward for row in rows] == expected
    listed = "SELECT ward FROM visits WHERE ward IN (?,?) GROUP BY ward HAVING count(*)>? ORDER BY 1"
    assert [row.ward for row in connection.execute(listed, "A", "D", 1000)] == ["A"]


def test_server_side_prepare(clinic: Served) -> None:
    for use in (0, 1):
        connection = connect(clinic, UseServerSidePrepare=use)
        cursor = connection.cursor()
        for most, expected in ((1000, ["A", "B"]), (2500, ["A"])):
            rows = cursor.execute("SELECT ward FROM visits GROUP BY ward HAVING count(*) > ? ORDER BY 1", most)
            assert [row.ward for row in rows] == expected
        connection.close()


def test_refusals_carry_code_and_message(connection: Any, clinic: Served) -> None:
    with unchanged(clinic), pytest.raises(pyodbc.Error) as refused:
        connection.execute(gallery.REFUSED).fetchall()
    state, text = refused.value.args
    assert state == gallery.REFUSED_CODE
    assert gallery.REFUSED_MESSAGE in text
    with pytest.raises(pyodbc.Error, match="KH102"):
        connection.execute("DELETE FROM wards")
    assert [row.ward for row in connection.execute(gallery.QUESTION)] == gallery.WARDS


def test_transactions(connection: Any) -> None:
    connection.autocommit = False
    connection.execute("SET LOCAL keyhole.tolerance = '20%'")
    with pytest.raises(pyodbc.Error, match="KH103"):
        connection.execute(gallery.REFUSED).fetchall()
    connection.rollback()
    assert connection.execute("SHOW keyhole.tolerance").fetchval() == "10%"
    assert [row.ward for row in connection.execute(gallery.QUESTION)] == gallery.WARDS
    connection.commit()
