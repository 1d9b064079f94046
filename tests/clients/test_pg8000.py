"""pg8000: a driver in pure Python, both of its interfaces."""

import io
from collections.abc import Iterator

import pg8000.dbapi
import pg8000.native
import pytest

from tests.worlds import gallery
from tests.worlds.served import Served, unchanged


@pytest.fixture
def connection(clinic: Served) -> Iterator[pg8000.native.Connection]:
    opened = pg8000.native.Connection(**clinic.address)
    yield opened
    opened.close()


def test_values_and_types(connection: pg8000.native.Connection) -> None:
    (row,) = connection.run(gallery.KINDS)
    names = [column["name"] for column in connection.columns]
    assert dict(zip(names, row, strict=True)) == gallery.FULL_ROW
    ((number, *nulls),) = connection.run("SELECT * FROM kinds WHERE id = :id", id=3)
    assert number == 3
    assert set(nulls) == {None}


@pytest.mark.parametrize("key", list(gallery.TYPED))
def test_keys_of_every_type(connection: pg8000.native.Connection, key: str) -> None:
    assert [value for (value,) in connection.run(gallery.about(key))] == list(gallery.TYPED[key])
    assert connection.notices[0][b"M"].decode().startswith(gallery.GUARANTEE)


def test_refusals_carry_all_their_fields(connection: pg8000.native.Connection, clinic: Served) -> None:
    with unchanged(clinic), pytest.raises(pg8000.exceptions.DatabaseError) as refused:
        connection.run(gallery.REFUSED)
    assert refused.value.args[0] == {
        "S": "ERROR",
        "V": "ERROR",
        "C": gallery.REFUSED_CODE,
        "M": gallery.REFUSED_MESSAGE,
        "D": gallery.REFUSED_DETAIL,
        "H": gallery.REFUSED_HINT,
        "P": str(gallery.REFUSED_POSITION),
    }


def test_parameters_and_prepared_statements(connection: pg8000.native.Connection) -> None:
    text = (
        "SELECT ward FROM visits WHERE ward = ANY(CAST(:wards AS text[])) AND day >= :since AND age >= :least "
        "GROUP BY ward HAVING count(*) > :most ORDER BY 1"
    )
    values = {"wards": ["A", "B", "D"], "since": gallery.TYPED["day"][0], "least": 0, "most": 1000}
    assert connection.run(text, **values) == [["A"], ["B"]]
    statement = connection.prepare("SELECT ward FROM visits GROUP BY ward HAVING count(*) > :most ORDER BY 1")
    for most, expected in ((1000, [["A"], ["B"]]), (2500, [["A"]]), (4000, [])):
        assert statement.run(most=most) == expected
    statement.close()
    listed = "SELECT ward FROM visits WHERE ward IN (:one,:other) GROUP BY ward HAVING count(*)>:most ORDER BY 1"
    assert connection.run(listed, one="A", other="D", most=1000) == [["A"]]


def test_transactions_and_cursors(clinic: Served) -> None:
    connection = pg8000.dbapi.connect(**clinic.address)
    try:
        cursor = connection.cursor()
        cursor.execute("SET LOCAL keyhole.tolerance = '20%'")
        cursor.execute("SAVEPOINT before")
        with pytest.raises(pg8000.dbapi.DatabaseError, match="KH103"):
            cursor.execute(gallery.REFUSED)
        with pytest.raises(pg8000.dbapi.DatabaseError, match="25P02"):
            cursor.execute(gallery.QUESTION)
        cursor.execute("ROLLBACK TO SAVEPOINT before")
        cursor.execute("SHOW keyhole.tolerance")
        assert cursor.fetchone() == ["20%"]
        cursor.execute("SELECT ward FROM visits GROUP BY ward HAVING count(*) > %s ORDER BY 1", (1000,))
        assert cursor.description[0][:2] == ("ward", 25)
        assert cursor.fetchmany(1) == (["A"],)
        assert cursor.fetchall() == (["B"],)
        cursor.execute(f"DECLARE answer CURSOR FOR {gallery.QUESTION}")
        cursor.execute("FETCH 1 FROM answer")
        assert cursor.fetchall() == (["A"],)
        connection.rollback()
        cursor.execute("SHOW keyhole.tolerance")
        assert cursor.fetchone() == ["10%"]
    finally:
        connection.close()


def test_answers_are_copied(connection: pg8000.native.Connection) -> None:
    out = io.BytesIO()
    connection.run(f"COPY ({gallery.QUESTION}) TO STDOUT (FORMAT csv)", stream=out)
    assert out.getvalue() == b"A\nB\n"
    assert connection.run(gallery.QUESTION) == [["A"], ["B"]]


def test_what_it_cannot_do_is_refused(connection: pg8000.native.Connection) -> None:
    for text in ("COPY wards TO STDOUT", "INSERT INTO wards VALUES ('E', 1)", "DROP TABLE visits"):
        with pytest.raises(pg8000.exceptions.DatabaseError, match="KH102"):
            connection.run(text)
    assert connection.run(gallery.QUESTION) == [["A"], ["B"]]
