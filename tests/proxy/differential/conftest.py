from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from proxy.shadow.address import OWNER, ShadowAddress
from tests.proxy.conftest import Running
from tests.proxy.differential.pair import Pair, keyhole_client, plain_client
from tests.proxy.in_test_asker import COUNTRIES
from tests.worlds.countries import QUESTION, endpoint_catalog

PLAIN = "plain"


@pytest.fixture(scope="session")
def plain_database(shadow: ShadowAddress) -> str:
    """A database without Keyhole, with rows that give questions the keys that the test's asker gives them."""
    with psycopg.connect(shadow.make_conninfo(user=OWNER, database="postgres"), autocommit=True) as owner:
        owner.execute(
            "CREATE DATABASE plain TEMPLATE template0 ENCODING UTF8 LOCALE_PROVIDER builtin "
            "BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C'"
        )
        owner.execute("ALTER DATABASE plain SET enable_hashagg = off")  # keys come in their order
    catalog = endpoint_catalog()
    with psycopg.connect(shadow.make_conninfo(user=OWNER, database=PLAIN)) as owner:
        declared = [(table.name, table.columns) for table in catalog.tables]
        declared += [(public.name, public.columns) for public in catalog.public_tables]
        for name, columns in declared:
            texts = [f'"{column.name}" {column.declared}' for column in columns]
            owner.execute(f'CREATE TABLE "{name}" ({", ".join(texts)})'.encode())
        for public in catalog.public_tables:
            for row in public.rows:
                values = sql.SQL(", ").join(map(sql.Literal, row))
                owner.execute(sql.SQL("INSERT INTO {} VALUES ({})").format(sql.Identifier(public.name), values))
        owner.execute("INSERT INTO sales SELECT unnest(%s::text[]) FROM generate_series(1, 30)", [list(COUNTRIES)])
        owner.execute(f"CREATE VIEW busy AS {QUESTION}".encode())
        owner.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC")
        owner.execute("ANALYZE regions")
    return PLAIN


@pytest.fixture
def pair(running: Running, shadow: ShadowAddress, plain_database: str) -> Iterator[Pair]:
    settings = {"user": "ada", "database": plain_database, "statement_timeout": "30000", **running.asker.settings}
    pair = Pair(keyhole_client(running.port), plain_client(shadow.socket, settings))
    try:
        yield pair
    finally:
        pair.close()
