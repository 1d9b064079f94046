"""Sessions at a PostgreSQL source whose server and role have all other defaults."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from accountant.store.pinned_session import PINNED
from planner.catalog.catalog import Column, SqlType
from planner.catalog.key_space import KeySpace
from planner.lower.dialects.postgres import POSTGRES
from planner.question.plan import Rewritten
from proxy.sources.postgres_source import PostgresSource
from tests.accountant.contrary import OTHER, contrary_role
from tests.worlds.house import eventually

_KEYS = KeySpace(columns=(Column("ward", SqlType.TEXT, "text", domain=("a",)),), values=(("a",),))
_COUNTED = Rewritten(POSTGRES.name, "SELECT ward AS k0, count(*) AS f0 FROM visits GROUP BY 1")
_SETTINGS = "SELECT lower(name), setting FROM pg_settings WHERE lower(name) = ANY (%s)"


@pytest.fixture(scope="module")
def contrary(postgres_url: str) -> Iterator[str]:
    with contrary_role(postgres_url, "contrary_reader", read_only=False, row_security=False) as url:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(b"CREATE TABLE public.visits AS SELECT 'a'::text AS ward FROM generate_series(1, 3)")
        yield url


@contextmanager
def opened(url: str) -> Iterator[PostgresSource]:
    source = PostgresSource(url, connections=2, settings={"work_mem": "5MB"}, rollups=1)
    try:
        yield source
    finally:
        source.close()


def test_a_session_keeps_none_of_the_defaults(contrary: str) -> None:
    """Those of the pool, and the one that builds rollups; what the owner sets of the engine holds as well."""
    names = [name.lower() for name in (*OTHER, "row_security", "work_mem")]
    with psycopg.connect(contrary) as plain:
        before: dict[str, str] = dict(plain.execute(_SETTINGS, (names,)).fetchall())
    with opened(contrary) as source:
        with source._connect_for_owner() as pooled:
            assert pooled.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
            assert pooled.execute("SHOW transaction_read_only").fetchone() == ("on",)
            assert pooled.execute("SHOW transaction_deferrable").fetchone() == ("off",)
            read = dict(pooled.execute(_SETTINGS, (names,)).fetchall())
        built = dict(source._store._open().execute(_SETTINGS, (names,)).fetchall())
        (ward,) = source.read_schema("visits")
        assert (ward.name, ward.declared, source.identify("visits").name) == ("ward", "text", "public.visits")
    assert read == built
    assert [name for name in names if read[name] == before[name]] == []
    assert {name: read[name.lower()] for name in PINNED} == dict(PINNED)
    assert read["search_path"] == "public"
    assert read["row_security"] == "on"
    assert read["statement_timeout"] == "0"


def test_what_waits_for_a_load_reads_what_it_committed(contrary: str) -> None:
    """LOCK, load, COMMIT: under REPEATABLE READ the question would be answered from the rows of before."""
    found: list[list[int]] = []
    with opened(contrary) as source, psycopg.connect(contrary) as loader, psycopg.connect(contrary) as watcher:
        loader.execute("SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0")
        loader.execute("LOCK TABLE public.visits IN ACCESS EXCLUSIVE MODE")

        def ask() -> None:
            values = source.read_aggregates(_COUNTED, _KEYS, functionals=1, timeout_ms=60_000).values
            found.append(values[0].tolist())

        def is_waiting() -> bool:
            waiting: Any = watcher.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
            watcher.rollback()
            return bool(waiting[0])

        asking = threading.Thread(target=ask)
        asking.start()
        eventually(is_waiting)
        loader.execute("INSERT INTO public.visits VALUES ('a'), ('a')")
        loader.commit()
        asking.join()
        loader.execute("DELETE FROM public.visits WHERE ctid IN (SELECT ctid FROM public.visits LIMIT 2)")
        loader.commit()
    assert found == [[5]]
