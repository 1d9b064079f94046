"""SQLAlchemy's inspector and Core over reflected tables, through every driver."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
import sqlalchemy
from sqlalchemy import Connection, func, select
from sqlalchemy.ext.asyncio import create_async_engine

from tests.worlds import gallery
from tests.worlds.served import Served, unchanged

DIALECTS = ("postgresql+psycopg", "postgresql+psycopg2", "postgresql+asyncpg", "postgresql+pg8000")
Ask = Callable[[Callable[[Connection], Any]], Any]
T = TypeVar("T")


@pytest.fixture(params=DIALECTS)
def ask(request: pytest.FixtureRequest, clinic: Served) -> Ask:
    """Runs work on a connection of one dialect, asynchronously where the driver is."""
    url = clinic.url(request.param)

    async def asynchronously(work: Callable[[Connection], T]) -> T:
        engine = create_async_engine(url)
        try:
            async with engine.connect() as connection:
                return await connection.run_sync(work)
        finally:
            await engine.dispose()

    def at_once(work: Callable[[Connection], T]) -> T:
        engine = sqlalchemy.create_engine(url)
        try:
            with engine.connect() as connection:
                return work(connection)
        finally:
            engine.dispose()

    return at_once if "asyncpg" not in request.param else lambda work: asyncio.run(asynchronously(work))


def test_the_inspector(ask: Ask, clinic: Served) -> None:
    def work(connection: Connection) -> None:
        inspector = sqlalchemy.inspect(connection)
        assert inspector.get_schema_names() == ["information_schema", "keyhole", "public"]
        assert sorted(inspector.get_table_names()) == list(gallery.TABLES)
        assert sorted(inspector.get_view_names()) == list(gallery.VIEWS)
        comment = "wards with more visits than a threshold"
        assert inspector.get_table_comment("crowded") == {"text": comment}
        assert inspector.get_table_comment("visits") == {"text": "one row per visit"}
        columns = {column["name"]: column for column in inspector.get_columns("visits")}
        assert tuple(columns) == gallery.PRIVATE_COLUMNS
        assert columns["ward"]["comment"] == "key, public domain of 4 values: A, B, C, D"
        assert [str(columns[name]["type"]) for name in gallery.PRIVATE_COLUMNS] == [
            "TEXT", "INTEGER", "BOOLEAN", "DATE", "TIMESTAMP", "INTEGER", "NUMERIC(10, 2)", "TEXT",
        ]  # fmt: skip
        assert [str(column["type"]) for column in inspector.get_columns("busy_days")] == ["DATE", "INTEGER"]
        assert inspector.get_pk_constraint("visits")["constrained_columns"] == []
        assert inspector.get_pk_constraint("wards")["constrained_columns"] == ["name"]
        assert {column["name"]: column["nullable"] for column in inspector.get_columns("wards")} == {
            "name": False,
            "beds": True,
        }
        for listed in (inspector.get_foreign_keys, inspector.get_indexes, inspector.get_unique_constraints):
            assert listed("visits") == []
        assert inspector.has_table("crowded")
        assert not inspector.has_table("nothing")
        assert "budget" in inspector.get_view_names(schema="keyhole")

    with unchanged(clinic):
        ask(work)


def test_values_of_reflected_tables(ask: Ask) -> None:
    def work(connection: Connection) -> None:
        metadata = sqlalchemy.MetaData()
        metadata.reflect(connection, views=True)
        assert sorted(metadata.tables) == sorted(gallery.TABLES + gallery.VIEWS)
        kinds = metadata.tables["kinds"]
        rows = connection.execute(select(kinds).order_by(kinds.c.id)).mappings().all()
        assert dict(rows[0]) == {name: gallery.FULL_ROW[name] for name in [column.name for column in kinds.columns]}
        assert set(rows[2].values()) == {3, None}

    ask(work)


@pytest.mark.parametrize("key", list(gallery.TYPED))
def test_questions_over_reflected_tables(ask: Ask, key: str) -> None:
    def work(connection: Connection) -> None:
        visits = sqlalchemy.Table("visits", sqlalchemy.MetaData(), autoload_with=connection)
        column = visits.c[key]
        question = (
            select(column)
            .where(visits.c.age >= 0, visits.c.ward.in_(["A", "B", "C"]))
            .group_by(column)
            .having(func.count() > 1000)
            .order_by(column)
        )
        assert tuple(connection.execute(question).scalars()) == gallery.TYPED[key]
        outside = select(func.count()).select_from(question.order_by(None).subquery())
        assert connection.execute(outside).scalar_one() == 2

    ask(work)


def test_stored_questions_and_their_parameters(ask: Ask) -> None:
    def work(connection: Connection) -> None:
        metadata = sqlalchemy.MetaData()
        crowded = sqlalchemy.Table("crowded", metadata, autoload_with=connection)
        wards = sqlalchemy.Table("wards", metadata, autoload_with=connection)
        joined = select(wards.c.name, wards.c.beds).join(crowded, crowded.c.ward == wards.c.name).order_by(wards.c.name)
        assert connection.execute(joined).all() == [("A", 40), ("B", 30)]
        connection.execute(sqlalchemy.text("SET LOCAL keyhole.param.crowded.threshold = 2500"))
        assert connection.execute(joined).all() == [("A", 40)]
        connection.rollback()
        assert connection.execute(joined).all() == [("A", 40), ("B", 30)]

    ask(work)


def test_refusals_and_transactions(ask: Ask) -> None:
    def work(connection: Connection) -> None:
        with pytest.raises(sqlalchemy.exc.DBAPIError, match="KH103"), connection.begin_nested():
            connection.execute(sqlalchemy.text(gallery.REFUSED))
        assert connection.execute(sqlalchemy.text(gallery.QUESTION)).scalars().all() == gallery.WARDS
        connection.rollback()
        with pytest.raises(sqlalchemy.exc.DBAPIError, match="KH102"):
            connection.execute(sqlalchemy.text("UPDATE wards SET beds = 0"))
        connection.rollback()
        streamed = connection.execution_options(stream_results=True, max_row_buffer=1)
        assert streamed.execute(sqlalchemy.text(gallery.QUESTION)).scalars().all() == gallery.WARDS

    ask(work)


def test_isolation_levels(clinic: Served) -> None:
    for dialect in DIALECTS[:2] + DIALECTS[3:]:
        for level in ("AUTOCOMMIT", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
            engine = sqlalchemy.create_engine(clinic.url(dialect), isolation_level=level)
            with engine.connect() as connection:
                assert connection.get_isolation_level() == level or level == "AUTOCOMMIT"
                assert connection.execute(sqlalchemy.text(gallery.QUESTION)).scalars().all() == gallery.WARDS
            engine.dispose()
