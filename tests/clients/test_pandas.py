"""pandas: questions, stored questions and public tables as frames, whole and in chunks."""

from collections.abc import Iterator
from datetime import date

import pandas as pd
import pytest
import sqlalchemy

from tests.worlds import gallery
from tests.worlds.served import Served


@pytest.fixture(params=["postgresql+psycopg", "postgresql+psycopg2", "postgresql+pg8000"])
def engine(request: pytest.FixtureRequest, clinic: Served) -> Iterator[sqlalchemy.Engine]:
    opened = sqlalchemy.create_engine(clinic.url(request.param))
    yield opened
    opened.dispose()


@pytest.mark.parametrize("key", list(gallery.TYPED))
def test_read_sql(engine: sqlalchemy.Engine, key: str) -> None:
    frame = pd.read_sql(gallery.about(key), engine)
    assert list(frame.columns) == [key]
    assert frame[key].tolist() == list(gallery.TYPED[key])


def test_read_sql_parses_dates_and_takes_parameters(engine: sqlalchemy.Engine) -> None:
    text = sqlalchemy.text("SELECT day, floor FROM visits GROUP BY day, floor HAVING count(*) > :most ORDER BY 1, 2")
    frame = pd.read_sql(text, engine, params={"most": 500}, parse_dates=["day"], index_col="day")
    assert frame.index.tolist() == [pd.Timestamp(2026, 1, day) for day in (1, 1, 2, 2)]
    assert frame["floor"].tolist() == [1, 2, 1, 2]
    assert frame["floor"].dtype == "int64"


def test_read_sql_in_chunks(engine: sqlalchemy.Engine) -> None:
    with engine.connect().execution_options(stream_results=True) as connection:
        chunks = list(pd.read_sql(gallery.QUESTION, connection, chunksize=1))
    assert [chunk["ward"].tolist() for chunk in chunks] == [["A"], ["B"]]


def test_read_sql_table(engine: sqlalchemy.Engine) -> None:
    frame = pd.read_sql_table("kinds", engine, columns=["id", "flag", "day", "ratio"]).sort_values("id")
    assert frame["id"].tolist() == [1, 2, 3]
    assert frame["flag"].tolist()[:2] == [True, False]
    assert frame["ratio"].isna().tolist() == [False, False, True]
    days = pd.read_sql_table("busy_days", engine)
    assert len(days) == 4
    assert days["day"].min() == pd.Timestamp(2026, 1, 1)


def test_a_connection_of_a_driver_by_itself(clinic: Served) -> None:
    with clinic.connect() as connection, connection.cursor() as cursor:
        frame = pd.DataFrame(cursor.execute(gallery.about("day").encode()).fetchall(), columns=["day"])
    assert frame["day"].tolist() == [date(2026, 1, 1), date(2026, 1, 2)]


def test_refusals_name_the_code(engine: sqlalchemy.Engine) -> None:
    with pytest.raises((sqlalchemy.exc.DBAPIError, pd.errors.DatabaseError), match="KH103"):
        pd.read_sql(gallery.REFUSED, engine)
    # pg8000 tells of its COMMIT
    with pytest.raises((sqlalchemy.exc.DBAPIError, pd.errors.DatabaseError), match=r"KH102|failed transaction"):
        pd.DataFrame({"a": [1]}).to_sql("mine", engine)
