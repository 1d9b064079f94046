"""What all sessions share in the shadow: no analyst can use up the places for locks, however many transactions."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import IsolationLevel

from proxy.shadow.address import OWNER, ShadowAddress
from proxy.shadow.embedded import EmbeddedShadow
from proxy.shadow.schema import build_schema
from tests.worlds.countries import endpoint_catalog

CONNECTIONS = 20
PUBLIC_TABLES = 40
_READ = "SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND has_table_privilege(oid, 'SELECT') AND oid >= 12000"
_REMEMBERED = (
    "SELECT count(DISTINCT virtualtransaction), max(number) FROM (SELECT virtualtransaction, count(*) AS number"
    " FROM pg_locks WHERE mode = 'SIReadLock' GROUP BY virtualtransaction) AS held"
)
Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def shadow() -> Iterator[ShadowAddress]:
    catalog = endpoint_catalog()
    (regions,) = catalog.public_tables
    rows = tuple((f"country {number}", "x" * 200) for number in range(2000))
    tables = tuple(replace(regions, name=f"regions{number}", rows=rows) for number in range(PUBLIC_TABLES))
    with (
        tempfile.TemporaryDirectory(prefix="keyhole-") as parent,
        EmbeddedShadow(Path(parent) / "shadow", connections=CONNECTIONS, public_tables=PUBLIC_TABLES) as embedded,
    ):
        build_schema(embedded.address, replace(catalog, public_tables=tables))
        yield embedded.address


def connect(shadow: ShadowAddress, user: str) -> Connection:
    connection = psycopg.connect(shadow.make_conninfo(user=user, database="retail"))
    connection.isolation_level = IsolationLevel.SERIALIZABLE
    return connection


def reading_everything(connection: Connection) -> bytes:
    tables = [name for (name,) in connection.execute(_READ).fetchall()]
    assert len(tables) > PUBLIC_TABLES
    rows = "ctid = ANY (ARRAY(SELECT format('(%s,1)', n)::tid FROM generate_series(0, 20) AS n))"
    return " UNION ALL ".join(f"SELECT count(*) FROM {table} WHERE {rows}" for table in tables).encode()


def test_serializable_transactions_leave_others_the_room_for_theirs(shadow: ShadowAddress) -> None:
    """All that PostgreSQL remembers of them, as one goes on from before the first: each read all there is, by rows."""
    with connect(shadow, "ada") as old, connect(shadow, "ada") as hostile, connect(shadow, "bob") as bob:
        everything = reading_everything(old)
        for _ in range(600):
            hostile.execute(everything)
            hostile.commit()
        assert bob.execute(everything).fetchall()
        with psycopg.connect(shadow.make_conninfo(user=OWNER, database="retail")) as owner:
            (found,) = owner.execute(_REMEMBERED).fetchall()
        transactions, most = found
        assert transactions >= 10 * CONNECTIONS
        assert most <= PUBLIC_TABLES + 4  # a table is one, however it was read
