"""asyncpg: binary throughout, statements prepared and cached, cursors by portal, its own pool."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from tests.worlds import gallery
from tests.worlds.served import Served, unchanged

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def connected(clinic: Served, **further: Any) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(**clinic.address, ssl=False, **further)
    try:
        yield connection
    finally:
        await connection.close()


async def test_values_and_types(clinic: Served) -> None:
    async with connected(clinic) as connection:
        row = dict(await connection.fetchrow(gallery.KINDS))
        row["doc"] = json.loads(row["doc"])
        assert row == gallery.FULL_ROW
        empty = await connection.fetchrow("SELECT * FROM kinds WHERE id = $1", 3)
        assert set(dict(empty).values()) == {3, None}
        # for a composite it looks the type up in the catalog
        assert await connection.fetchval("SELECT w FROM wards w WHERE name = 'A'") == ("A", 40)


async def test_statements_tell_their_types(clinic: Served) -> None:
    async with connected(clinic) as connection:
        statement = await connection.prepare("SELECT day FROM visits WHERE age >= $1 GROUP BY day HAVING count(*) > $2")
        assert [parameter.name for parameter in statement.get_parameters()] == ["int4", "int8"]
        assert [(column.name, column.type.name) for column in statement.get_attributes()] == [("day", "date")]
        for _ in range(2):
            assert sorted(await statement.fetch(0, 1000)) == [(day,) for day in gallery.TYPED["day"]]
        assert await statement.fetch(0, 4000) == []


@pytest.mark.parametrize(("numbers", "shown"), [("null", None), ("threshold", 1001)])
async def test_numbers_beside_the_keys_have_their_types(clinic: Served, numbers: str, shown: int | None) -> None:
    sql = "SELECT ward, count(*) AS n, round(avg(age), 1) AS mean FROM visits GROUP BY ward HAVING count(*) > 1000"
    async with connected(clinic, server_settings={"keyhole.numbers": numbers}) as connection:
        statement = await connection.prepare(sql)
        assert [(column.name, column.type.name) for column in statement.get_attributes()] == [
            ("ward", "text"),
            ("n", "int8"),
            ("mean", "numeric"),
        ]
        for _ in range(2):
            assert sorted(map(tuple, await statement.fetch())) == [("A", shown, None), ("B", shown, None)]


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("key", list(gallery.TYPED))
async def test_keys_of_every_type(clinic: Served, key: str, cached: bool) -> None:
    further = {} if cached else {"statement_cache_size": 0}
    async with connected(clinic, **further) as connection:
        heard: list[str] = []
        connection.add_log_listener(lambda _, message: heard.append(message.message))
        for _ in range(2):
            rows = await connection.fetch(gallery.about(key, threshold="$1"), 1000)
            assert [row[0] for row in rows] == list(gallery.TYPED[key])
        await asyncio.sleep(0)  # listeners are called by the loop
        assert heard[0].startswith(gallery.GUARANTEE)


async def test_lists_of_parameters_need_no_blanks(clinic: Served) -> None:
    async with connected(clinic) as connection:
        listed = "SELECT ward FROM visits WHERE ward IN ($1,$2) GROUP BY ward HAVING count(*)>$3 ORDER BY 1"
        for wards, expected in ((("A", "D"), ["A"]), (("B", "A"), ["A", "B"])):
            assert [row["ward"] for row in await connection.fetch(listed, *wards, 1000)] == expected


async def test_refusals_carry_all_their_fields(clinic: Served) -> None:
    async with connected(clinic) as connection:
        with unchanged(clinic), pytest.raises(asyncpg.InsufficientPrivilegeError) as refused:
            await connection.fetch(gallery.REFUSED)
        error: Any = refused.value
        assert error.sqlstate == gallery.REFUSED_CODE
        assert error.message == gallery.REFUSED_MESSAGE
        assert error.detail == gallery.REFUSED_DETAIL
        assert error.hint == gallery.REFUSED_HINT
        assert error.position == str(gallery.REFUSED_POSITION)
        with pytest.raises(asyncpg.FeatureNotSupportedError, match="KH101"):
            await connection.execute(gallery.AGGREGATE)


async def test_transactions_and_cursors(clinic: Served) -> None:
    async with connected(clinic) as connection:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await connection.execute("SET LOCAL keyhole.tolerance = '20%'")
            with pytest.raises(asyncpg.PostgresError):
                async with connection.transaction():
                    await connection.fetch(gallery.REFUSED)
            assert await connection.fetchval("SHOW keyhole.tolerance") == "20%"
            seen = [row["ward"] async for row in connection.cursor(gallery.QUESTION, prefetch=1)]
            assert seen == gallery.WARDS
            cursor = await connection.cursor(gallery.QUESTION)
            assert [row["ward"] for row in await cursor.fetch(1)] == ["A"]
            assert await cursor.forward(1) == 1
            assert await cursor.fetch(1) == []
            skipping = await connection.cursor(gallery.QUESTION)
            assert await skipping.forward(1) == 1
        assert await connection.fetchval("SHOW keyhole.tolerance") == "10%"


async def test_a_time_out_cancels(clinic: Served) -> None:
    async with connected(clinic) as connection:
        with pytest.raises(TimeoutError):
            await connection.execute("SELECT pg_sleep(600)", timeout=0.1)
        assert [row[0] for row in await connection.fetch(gallery.QUESTION)] == gallery.WARDS


async def test_a_pool_resets_what_a_borrower_set(clinic: Served) -> None:
    async with asyncpg.create_pool(**clinic.address, ssl=False, min_size=1, max_size=1) as pool:
        async with pool.acquire() as connection:
            await connection.execute("SET keyhole.tolerance = '30%'")
            assert [row[0] for row in await connection.fetch(gallery.QUESTION)] == gallery.WARDS
        async with pool.acquire() as connection:
            assert await connection.fetchval("SHOW keyhole.tolerance") == "10%"
            assert [row[0] for row in await connection.fetch(gallery.QUESTION)] == gallery.WARDS


async def test_settings_at_connection_start(clinic: Served) -> None:
    settings = {"keyhole.tolerance": "15%", "application_name": "notebook"}
    async with connected(clinic, server_settings=settings) as connection:
        assert await connection.fetchval("SHOW keyhole.tolerance") == "15%"
        assert await connection.fetchval("SHOW application_name") == "notebook"


async def test_answers_are_copied(clinic: Served) -> None:
    async with connected(clinic) as connection:
        for options, expected in (({}, b"A\nB\n"), ({"format": "csv", "header": True}, b"ward\nA\nB\n")):
            out = io.BytesIO()
            assert await connection.copy_from_query(gallery.QUESTION, output=out, **options) == "COPY 2"
            assert out.getvalue() == expected
        asked = gallery.QUESTION.replace("1000", "$1")
        out = io.BytesIO()
        await connection.copy_from_query(asked, 2500, output=out, format="binary")  # writes its arguments into the text
        assert out.getvalue().startswith(b"PGCOPY\n\xff\r\n\0")


async def test_writing_and_notify_are_refused_and_listening_is_harmless(clinic: Served) -> None:
    async with connected(clinic) as connection:
        with pytest.raises(asyncpg.PostgresError, match="KH102"):
            await connection.copy_to_table("wards", source=io.BytesIO(b"E\t1\n"))
        await connection.add_listener("news", print)
        with pytest.raises(asyncpg.PostgresError, match="KH102"):
            await connection.execute("NOTIFY news")
        await connection.remove_listener("news", print)
        assert [row[0] for row in await connection.fetch(gallery.QUESTION)] == gallery.WARDS
