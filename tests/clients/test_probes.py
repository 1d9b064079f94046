"""What drivers tell of the columns of a private table, for which tools send a statement that can give no row."""

import asyncio
from contextlib import closing
from typing import Any

import asyncpg
import pandas as pd
import pg8000.dbapi
import psycopg
import psycopg2
import pytest
import sqlalchemy

from tests.worlds.served import Served, unchanged

PROBES = (
    "SELECT * FROM visits LIMIT 0",
    'SELECT * FROM "public"."visits" WHERE 1 = 0',
    "SELECT * FROM (SELECT * FROM visits) q WHERE false",
)
NAMES = ["ward", "floor", "urgent", "day", "hour", "age", "cost", "note"]
TYPES = [25, 23, 16, 1082, 1114, 23, 1700, 25]


def _insist(description: Any, probe: str) -> None:
    assert [column[:2] for column in description or ()] == list(zip(NAMES, TYPES, strict=True)), probe


@pytest.mark.parametrize("probe", PROBES)
def test_columns_are_described_and_nothing_is_asked(clinic: Served, probe: str) -> None:
    with unchanged(clinic):
        with clinic.connect() as connection:
            for binary in (False, True):
                cursor = connection.execute(probe.encode(), binary=binary, prepare=binary)
                _insist(cursor.description, probe)
                assert cursor.fetchall() == []
            connection.autocommit = False
            with connection.transaction(), psycopg.ServerCursor(connection, "probe") as named:
                named.execute(probe.encode())
                _insist(named.description, probe)
                assert named.fetchall() == []
        with closing(psycopg2.connect(clinic.conninfo)) as second, second.cursor() as plain:
            plain.execute(probe)
            _insist(plain.description, probe)
        with closing(pg8000.dbapi.connect(**clinic.address)) as third, closing(third.cursor()) as pure:
            pure.execute(probe)
            _insist(pure.description, probe)
        asyncio.run(_asyncpg(clinic, probe))


async def _asyncpg(clinic: Served, probe: str) -> None:
    connection = await asyncpg.connect(**clinic.address, ssl=False)
    try:
        prepared = await connection.prepare(probe)
        _insist([(each.name, each.type.oid) for each in prepared.get_attributes()], probe)
        assert await prepared.fetch() == []
    finally:
        await connection.close()


@pytest.mark.parametrize("dialect", ["postgresql+psycopg", "postgresql+psycopg2", "postgresql+pg8000"])
def test_frames_without_rows_have_the_columns(clinic: Served, dialect: str) -> None:
    engine = sqlalchemy.create_engine(clinic.url(dialect))
    with unchanged(clinic), engine.connect() as connection:
        frame = pd.read_sql(PROBES[0], connection)
        assert list(frame.columns) == NAMES
        assert frame.empty
        table = sqlalchemy.Table("visits", sqlalchemy.MetaData(), autoload_with=connection)
        assert connection.execute(table.select().where(sqlalchemy.false())).all() == []
        result = connection.execute(table.select().limit(sqlalchemy.literal_column("0")))
        assert list(result.keys()) == NAMES
        assert result.all() == []
    engine.dispose()
