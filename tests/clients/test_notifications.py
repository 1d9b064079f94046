"""LISTEN with drivers: a served Keyhole tells of looks that another process makes on its ledger."""

import asyncio
import json
import select
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import psycopg
import psycopg2
import pytest

from proxy.open_policy.service import Service
from tests.effort import PATIENCE_S
from tests.worlds.alerted import Watch, install, start
from tests.worlds.house import new_database
from tests.worlds.served import Served, served


@dataclass
class Watched:
    """A served clinic, and the monitor that this process looks at."""

    keyhole: Served
    watch: Watch
    number: int = 0

    def look(self, *wards: str) -> int:
        """One look more, in a window of its own; its number."""
        window = self.number
        self.number += 1
        number = 24 * window + 1
        self.watch.look(number, {window: wards})
        return number


@pytest.fixture(scope="module")
def watched(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with new_database(postgres_url) as url:
        policy = install(tmp_path_factory.mktemp("watched"), url)
        with Service.open(policy) as service:
            watch = start(service, "crowded")
            with served(policy) as keyhole:
                yield Watched(keyhole, watch)


def expected(number: int, *wards: str) -> list[tuple[int, str]]:
    return [(number, ward) for ward in wards]


def read(payload: str) -> tuple[int, str]:
    """The look and the ward of a notification."""
    told = json.loads(payload)
    return told["look"], told["key"]["ward"]


def test_psycopg(watched: Watched) -> None:
    with psycopg.connect(watched.keyhole.conninfo, autocommit=True) as connection:
        connection.execute("LISTEN keyhole_crowded")
        number = watched.look("A", "C")
        told = [read(one.payload) for one in connection.notifies(timeout=PATIENCE_S, stop_after=2)]
        assert told == expected(number, "A", "C")
        assert connection.execute("SELECT count(*) FROM crowded WHERE day = '2126-01-01'").fetchone() is not None


def test_psycopg2(watched: Watched) -> None:
    connection = psycopg2.connect(watched.keyhole.conninfo)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("LISTEN keyhole_crowded")
        number = watched.look("B")
        while not connection.notifies:
            assert select.select([connection], [], [], PATIENCE_S)[0]
            connection.poll()
        (told,) = connection.notifies
        assert (told.channel, read(told.payload)) == ("keyhole_crowded", (number, "B"))
    finally:
        connection.close()


def test_asyncpg(watched: Watched) -> None:
    async def hear() -> list[tuple[int, str]]:
        heard: asyncio.Queue[str] = asyncio.Queue()
        connection = await asyncpg.connect(**watched.keyhole.address)
        try:
            await connection.add_listener("keyhole_crowded", lambda *told: heard.put_nowait(told[3]))
            number.append(await asyncio.to_thread(watched.look, "A", "B"))
            first = [read(await asyncio.wait_for(heard.get(), PATIENCE_S)) for _ in range(2)]
            async with connection.transaction():
                number.append(await asyncio.to_thread(watched.look, "C"))
                assert heard.empty()
            return [*first, read(await asyncio.wait_for(heard.get(), PATIENCE_S))]
        finally:
            await connection.close()

    number: list[int] = []
    assert asyncio.run(hear()) == [*expected(number[0], "A", "B"), *expected(number[1], "C")]


def test_a_lost_connection_goes_on_from_the_last_look(watched: Watched) -> None:
    """LISTEN, then what came meanwhile by its look: nothing is missed, and what overlaps has the same look and key."""
    seen = watched.look("A")
    missed = watched.look("B")
    with psycopg.connect(watched.keyhole.conninfo, autocommit=True) as connection:
        connection.execute("LISTEN keyhole_crowded")
        later: Any = connection.execute(
            "SELECT look, key->>'ward' FROM keyhole.alerts WHERE look > %s ORDER BY look", [seen]
        ).fetchall()
        assert later == expected(missed, "B")
        number = watched.look("C")
        assert [read(one.payload) for one in connection.notifies(timeout=PATIENCE_S, stop_after=1)] == expected(
            number, "C"
        )
