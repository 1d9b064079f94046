"""Every driver of PyPI and psql over TLS, as docs/clients.md says: verified, unverified, in the clear, with a
certificate of its own. REST beside them."""

import asyncio
import os
import selectors
import ssl
import subprocess
from collections.abc import Coroutine
from typing import Any, TypeVar

import asyncpg
import httpx
import pg8000.native
import psycopg
import psycopg2
import pytest
import sqlalchemy
from psycopg.conninfo import make_conninfo
from sqlalchemy.ext.asyncio import create_async_engine

from tests.clients.encrypted import TOKEN, Encrypted
from tests.clients.test_psql import PROGRAMS
from tests.effort import PATIENCE_S
from tests.worlds import gallery
from tests.worlds.house import PASSWORD

_Result = TypeVar("_Result")


def verified(encrypted: Encrypted, **further: str) -> str:
    """libpq's connection string, with what it verifies the server by."""
    return make_conninfo(encrypted.served.conninfo, **{**encrypted.libpq(), **further})


def rows(connection: "psycopg.Connection[Any] | psycopg2.extensions.connection") -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(gallery.QUESTION)
        return [ward for (ward,) in cursor.fetchall()]


async def asyncpg_rows(encrypted: Encrypted, **further: Any) -> list[str]:
    connection = await asyncpg.connect(**{**encrypted.served.address, **further})
    try:
        return [row[0] for row in await connection.fetch(gallery.QUESTION)]
    finally:
        await connection.close()


def run_until_closed(work: Coroutine[Any, Any, _Result]) -> _Result:
    """`asyncio.run` that waits until all connections have closed.

    asyncpg does not wait for the server's farewell where it gives a connection in TLS up. What a loop that ends leaves
    open warns when it is collected, in another test.
    """
    selector = selectors.DefaultSelector()

    async def work_and_wait() -> _Result:
        try:
            return await work
        finally:
            while len(selector.get_map()) > 1:  # one is the loop's own
                await asyncio.sleep(0.01)

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        return runner.run(work_and_wait())


def pg8000_rows(encrypted: Encrypted, **further: Any) -> list[str]:
    with pg8000.native.Connection(**{**encrypted.served.address, **further}) as connection:
        return [ward for (ward,) in connection.run(gallery.QUESTION)]


# --- libpq


@pytest.mark.parametrize(
    "further",
    [
        {},
        {"channel_binding": "require", "require_auth": "scram-sha-256"},
        {"sslnegotiation": "direct", "channel_binding": "require"},
        {"sslmode": "require", "sslrootcert": "", "gssencmode": "prefer"},
    ],
)
def test_psycopg(encrypted: Encrypted, further: dict[str, str]) -> None:
    with psycopg.connect(verified(encrypted, **further)) as connection:
        assert connection.pgconn.ssl_in_use
        assert rows(connection) == gallery.WARDS


@pytest.mark.parametrize("further", [{}, {"channel_binding": "require"}, {"sslnegotiation": "direct"}])
def test_psycopg2(encrypted: Encrypted, further: dict[str, str]) -> None:
    connection = psycopg2.connect(verified(encrypted, **further))
    try:
        assert connection.info.ssl_in_use
        assert rows(connection) == gallery.WARDS
        connection.cancel()  # in the clear, as libpq's old call does it, and too late
        connection.rollback()
        assert rows(connection) == gallery.WARDS
    finally:
        connection.close()


@pytest.mark.parametrize("driver", [psycopg, psycopg2])
def test_libpq_believes_no_other_authority_and_says_why_it_needs_tls(encrypted: Encrypted, driver: Any) -> None:
    with pytest.raises(driver.OperationalError, match="SSL error"):
        driver.connect(encrypted.served.conninfo, **encrypted.libpq(authority="stranger"))
    with pytest.raises(driver.OperationalError, match="KH407: this server takes logins only over TLS"):
        driver.connect(encrypted.served.conninfo, sslmode="disable")


@pytest.mark.parametrize("driver", [psycopg, psycopg2])
def test_libpq_shows_a_certificate(encrypted: Encrypted, driver: Any) -> None:
    own = {"sslcert": encrypted.file("dashboard.crt"), "sslkey": encrypted.file("dashboard.key")}
    conninfo = encrypted.served.conninfo.replace("user=ada", "user=dashboard")
    connection = driver.connect(conninfo, **encrypted.libpq(), **own)
    try:
        assert rows(connection) == gallery.WARDS
    finally:
        connection.close()
    with pytest.raises(driver.OperationalError, match="KH401"):
        driver.connect(conninfo, **encrypted.libpq())


def test_psql(encrypted: Encrypted) -> None:
    program = PROGRAMS["machine's"]  # the shadow's is built without TLS
    if program is None:
        pytest.skip("no psql on this machine: apt-get install postgresql-client")
    libpq = " ".join(f"{name}={value}" for name, value in encrypted.libpq().items())
    done = subprocess.run(
        [program, "-XqAt", f"{encrypted.served.conninfo} {libpq} channel_binding=require"],
        input=f"\\conninfo\n{gallery.QUESTION};",
        env={**os.environ, "PGPASSWORD": PASSWORD},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "TLSv1.3" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-2:] == gallery.WARDS


# --- drivers with a TLS of their own


def test_asyncpg(encrypted: Encrypted) -> None:
    direct = encrypted.context()
    direct.set_alpn_protocols(["postgresql"])
    dsn = f"{encrypted.served.uri}?sslmode=verify-full&sslrootcert={encrypted.file('authority.crt')}"

    async def ask() -> None:
        for further in (
            {"ssl": encrypted.context()},
            {"ssl": "require"},
            {"ssl": direct, "direct_tls": True},
            {"dsn": dsn},
            {"ssl": encrypted.context(client="dashboard"), "user": "dashboard"},
        ):
            assert await asyncpg_rows(encrypted, **further) == gallery.WARDS
        connection = await asyncpg.connect(**encrypted.served.address, ssl=encrypted.context())
        with pytest.raises(TimeoutError):  # it cancels over TLS as well
            await connection.execute("SELECT pg_sleep(600)", timeout=0.1)
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close()
        with pytest.raises(
            asyncpg.InvalidAuthorizationSpecificationError, match="KH407: this server takes logins only over TLS"
        ):
            await asyncpg_rows(encrypted, ssl=False)
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncpg_rows(encrypted, ssl=encrypted.context(authority="stranger"))
        with pytest.raises(asyncpg.InvalidPasswordError, match="KH401"):
            await asyncpg_rows(encrypted, ssl=encrypted.context(), user="dashboard")

    run_until_closed(ask())


def test_pg8000(encrypted: Encrypted) -> None:
    assert pg8000_rows(encrypted) == gallery.WARDS  # encrypted, and unverified
    assert pg8000_rows(encrypted, ssl_context=encrypted.context()) == gallery.WARDS
    own = encrypted.context(client="dashboard")
    assert pg8000_rows(encrypted, ssl_context=own, user="dashboard") == gallery.WARDS
    with pytest.raises(pg8000.native.DatabaseError, match="KH407: this server takes logins only over TLS"):
        pg8000_rows(encrypted, ssl_context=False)
    with pytest.raises(ssl.SSLCertVerificationError):
        pg8000_rows(encrypted, ssl_context=encrypted.context(authority="stranger"))


def test_sqlalchemy(encrypted: Encrypted) -> None:
    query, served = encrypted.libpq(), encrypted.served

    def ask(connection: sqlalchemy.Connection) -> list[str]:
        return list(connection.execute(sqlalchemy.text(gallery.QUESTION)).scalars())

    async def asynchronously() -> list[str]:
        engine = create_async_engine(served.url("postgresql+asyncpg"), connect_args={"ssl": encrypted.context()})
        try:
            async with engine.connect() as connection:
                return await connection.run_sync(ask)
        finally:
            await engine.dispose()

    for url, arguments in (
        (served.url("postgresql+psycopg").update_query_dict(query), {}),
        (served.url("postgresql+psycopg2").update_query_dict(query), {}),
        (served.url("postgresql+pg8000"), {"ssl_context": encrypted.context()}),
    ):
        engine = sqlalchemy.create_engine(url, connect_args=arguments)
        with engine.connect() as connection:
            assert ask(connection) == gallery.WARDS
        engine.dispose()
    assert run_until_closed(asynchronously()) == gallery.WARDS


# --- REST


def test_rest_is_served_with_the_same_certificate(encrypted: Encrypted) -> None:
    assert encrypted.served.rest.startswith("https://")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(verify=encrypted.context(), headers=headers, trust_env=False, timeout=PATIENCE_S) as client:
        answer = client.post(
            f"{encrypted.served.rest}/v1/question", json={"sql": gallery.QUESTION.removesuffix(" ORDER BY ward")}
        ).json()
        assert answer["keys"] == [[ward] for ward in gallery.WARDS]
        with pytest.raises(httpx.RemoteProtocolError):
            client.get(encrypted.served.rest.replace("https", "http") + "/healthz")
    stranger = encrypted.context(authority="stranger")
    with (
        httpx.Client(verify=stranger, trust_env=False, timeout=PATIENCE_S) as client,
        pytest.raises(httpx.ConnectError, match="verify"),
    ):
        client.get(f"{encrypted.served.rest}/healthz")
