"""A ledger in PostgreSQL whose server and role have all other defaults."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import psycopg
import pytest

from accountant.errors import LedgerUnavailable
from accountant.ledger import Ledger
from accountant.store.pinned_session import LEDGER_PATH, OTHER_SCHEMA, PINNED
from accountant.store.store import LedgerStore
from tests.accountant.contrary import OTHER, contrary_role
from tests.accountant.examples import charge, limits


@pytest.fixture
def contrary(postgres_url: str) -> Iterator[str]:
    with contrary_role(postgres_url, "contrary_ledger", read_only=True, row_security=True) as url:
        yield url


def opened(url: str) -> Ledger:
    return Ledger.open(url, clock=lambda: datetime.now(UTC))


def test_a_session_keeps_none_of_the_defaults(contrary: str) -> None:
    names = [name.lower() for name in (*OTHER, "row_security", "default_transaction_read_only")]
    settings = "SELECT lower(name), setting FROM pg_settings WHERE lower(name) = ANY (%s)"
    with psycopg.connect(contrary) as plain:
        before: dict[str, str] = dict(plain.execute(settings, (names,)).fetchall())
    with closing(LedgerStore.open(contrary)) as store, store._engine.connect() as connection:
        raw = connection.connection.driver_connection
        assert isinstance(raw, psycopg.Connection)
        found = dict(raw.execute(settings, (names,)).fetchall())
        assert raw.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
        assert raw.execute("SHOW transaction_read_only").fetchone() == ("off",)
    assert [name for name in names if found[name] == before[name]] == []
    assert {name: found[name.lower()] for name in PINNED} == dict(PINNED)
    assert (found["search_path"], found["row_security"]) == (LEDGER_PATH, "off")


def test_the_same_url_leads_to_the_same_ledger_whatever_the_role_says(contrary: str) -> None:
    with opened(contrary) as ledger:
        ledger.reserve(charge(), limits())
    with psycopg.connect(contrary, autocommit=True) as server:
        server.execute("SET default_transaction_read_only = off")
        server.execute("CREATE SCHEMA another; ALTER ROLE contrary_ledger SET search_path = another")
    with opened(contrary) as ledger:
        assert ledger.known_event_count == 1


def test_a_ledger_where_only_the_roles_own_path_leads_is_not_begun_anew(contrary: str) -> None:
    """It was made there by a version that followed the role. Its URL says so from then on."""
    with psycopg.connect(contrary, autocommit=True) as server:
        server.execute("SET default_transaction_read_only = off")
        server.execute("CREATE SCHEMA elsewhere")
    named = f"{contrary}&options=-csearch_path%3Delsewhere"
    with opened(named) as ledger:
        ledger.reserve(charge(), limits())
    with pytest.raises(LedgerUnavailable) as refused:
        opened(contrary)
    assert str(refused.value) == OTHER_SCHEMA
    with psycopg.connect(contrary) as server:
        assert server.execute("SELECT to_regclass('public.events')").fetchone() == (None,)
    with opened(named) as ledger:
        assert ledger.known_event_count == 1
