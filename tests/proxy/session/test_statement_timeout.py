"""The owner's time limit holds for each statement, as PostgreSQL's own does, and for whoever switches that off."""

import math
import select
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.pq import TransactionStatus

from planner.catalog.catalog import Catalog
from proxy.session.port import SessionBacking
from proxy.session.statement_timeout import find_longest_timeout_ms, read_login_timeout_ms
from proxy.shadow.address import OWNER, ShadowAddress
from proxy.wire.backend import Report
from proxy.wire.frontend import Query
from tests.in_turn import in_turn
from tests.proxy.conftest import Running
from tests.proxy.raw_client import RawClient

SHORT = "SELECT pg_sleep(0.9)"  # five take longer than one may, one is far from it
TIMED_OUT = "canceling statement due to statement timeout"
HIGHER = (
    "SET statement_timeout = 0",
    "SET SESSION \"Statement_Timeout\" TO '1h'",
    "SET statement_timeout = '0.01h'",
    "SELECT set_config('statement_timeout', '9999' || '9', false)",
    "PREPARE p AS SELECT set_config('statement_timeout', $1, false); EXECUTE p('0')",
    "BEGIN; SET LOCAL statement_timeout = 0",
)


@pytest.mark.parametrize("statement_timeout_ms", [4000])
def test_statements_of_a_pipeline_have_the_time_of_one_each(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        connection.cursor().executemany("SELECT pg_sleep(%s)", [[0.9]] * 5)
        assert connection.execute("SELECT 'done'").fetchone() == ("done",)


@pytest.mark.parametrize("statement_timeout_ms", [4000])
def test_statements_of_a_text_have_the_time_of_one_each(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        connection.execute("SHOW statement_timeout; SET statement_timeout = '2s'; RESET statement_timeout")
        cursor = connection.execute("; ".join([SHORT] * 5).encode())
        assert sum(1 for _ in cursor.results()) == 5
        with pytest.raises(psycopg.errors.QueryCanceled, match=TIMED_OUT):
            connection.execute(f"{SHORT}; SELECT pg_sleep(600)".encode())


@pytest.mark.parametrize("sql", HIGHER)
@pytest.mark.parametrize("statement_timeout_ms", [1000])
def test_a_higher_limit_does_not_lift_the_owners(running: Running, sql: str) -> None:
    with running.connect(autocommit=True) as connection:
        for part in sql.split("; "):
            connection.execute(part.encode())
        with pytest.raises(psycopg.errors.QueryCanceled, match=TIMED_OUT):
            connection.execute("SELECT pg_sleep(600)")


@pytest.mark.parametrize("statement_timeout_ms", [1000])
def test_nor_does_one_that_is_set_by_the_same_text(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        with pytest.raises(psycopg.errors.QueryCanceled, match=TIMED_OUT):
            connection.execute("SET statement_timeout = 0; SELECT pg_sleep(600)")
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("extra", ["options='-c statement_timeout=0'", "options='-c Statement_Timeout=1d'"])
@pytest.mark.parametrize("statement_timeout_ms", [1000])
def test_nor_does_one_that_was_given_at_the_login(running: Running, extra: str) -> None:
    with psycopg.connect(running.conninfo(extra=extra), autocommit=True) as connection:
        with pytest.raises(psycopg.errors.QueryCanceled, match=TIMED_OUT):
            connection.execute("SELECT pg_sleep(600)")
        assert connection.execute("SHOW statement_timeout").fetchone() != ("1s",)


def test_a_lower_limit_of_a_new_policy_holds_in_sessions_of_before(
    running: Running, catalog: Catalog, shadow: ShadowAddress
) -> None:
    async def take() -> None:
        lower = SessionBacking(replace(catalog, statement_timeout_ms=300), running.asker, shadow)
        running.endpoint.use_backing(lower, running.endpoint._limits)

    with running.connect(autocommit=True) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        running.run(take())
        with pytest.raises(psycopg.errors.QueryCanceled, match=TIMED_OUT):
            connection.execute("SELECT pg_sleep(600)")


@pytest.mark.parametrize("who", ["the limit", "the client"])
def test_who_cancels_is_told_that_they_did(running: Running, who: str) -> None:
    with RawClient(running.port) as client:
        client.send(Query(b"SET statement_timeout = 0"))
        client.until_ready()
        (one,) = running.endpoint.sessions
        end = one.relay.cancel_as_timed_out if who == "the limit" else one.session.cancel
        client.send(Query(b"SELECT pg_sleep(600)"))
        while not select.select([client.socket], [], [], 0)[0]:
            running.run(end())
        (report,) = (answer for answer in client.until_ready() if isinstance(answer, Report))
        told = TIMED_OUT if who == "the limit" else "canceling statement due to user request"
        assert (report.find_field(b"C"), report.find_field(b"M")) == (b"57014", told.encode())


DIGITS = st.sampled_from(
    ["0", "1", "4", "0.01", "0.4", "1.5", "999", "1_000", "0x10", "010", "1e3", ".9", "-1", "86400000"]
)
UNITS = st.sampled_from(["", "us", "ms", "s", "min", "h", "d", "S", " ms", " s "])
FORMS = st.sampled_from(
    [
        "SET statement_timeout = {0}",
        "SET LOCAL statement_timeout TO {0}",
        "set Statement_Timeout='{0}{1}'",
        "SET \"STATEMENT_timeout\" TO '{0}{1}'",
        "SET statement_timeout = E'{0}{1}'",
        "SET statement_timeout = E'\\x3{0}{1}'",
        "SET statement_timeout = $${0}{1}$$",
        "SET statement_timeout = '{0}'\n'{2}{1}'",
        "SET statement_timeout = U&'\\0030'",
        "SET statement_timeout = +{0}",
        "SET statement_timeout =-{0}",
        "SET statement_timeout /* = 1 */ = {0} -- 1",
        "SET statement_timeout TO DEFAULT",
        "SELECT set_config('statement_timeout', '{0}{1}', true)",
        "SELECT set_config('statement_timeout', '{0}' || '{2}{1}', true)",
        "SELECT pg_catalog.set_config ( 'Statement_Timeout' , '{0}{1}' , true)",
        "SELECT set_config('statement_timeout', ('{0}{1}')::text, true)",
        "SELECT set_config('statement_timeout', '{0}{1}'::text, true)",
        "SELECT set_config('statement_timeout', 2 * 9 || '{1}', true)",
        "SELECT 'statement_timeout', '1', set_config('statement_timeout', '{0}{1}', true)",
    ]
)


@pytest.fixture(scope="module")
def owner(shadow_address: ShadowAddress) -> Iterator[psycopg.Connection[tuple[int]]]:
    with psycopg.connect(shadow_address.make_conninfo(user=OWNER, database="postgres")) as connection:
        yield connection


@given(FORMS, DIGITS, DIGITS, UNITS)
def test_what_a_text_sets_is_never_more_than_is_read_of_it(
    owner: psycopg.Connection[tuple[int]], form: str, one: str, other: str, unit: str
) -> None:
    text = form.format(one, unit, other)
    try:
        owner.execute("SET LOCAL statement_timeout = 0")
        owner.execute("SET LOCAL statement_timeout TO DEFAULT")
        owner.execute(text.encode())
        setting = owner.execute("SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'").fetchone()
        assert setting is not None
        (found,) = setting
        default = text.endswith("DEFAULT")
        assert (
            find_longest_timeout_ms(text) == 0 if default else find_longest_timeout_ms(text) >= (found or math.inf)
        ), (text, found)
        if found and text in (f"SET statement_timeout = {found}", f"SET statement_timeout='{found}ms'"):
            assert find_longest_timeout_ms(text) == found
    except psycopg.Error:  # what PostgreSQL refuses sets nothing
        pass
    finally:
        _roll_back(owner)


def _roll_back(owner: psycopg.Connection[tuple[int]]) -> None:
    """End the transaction, however short a limit the text has set: the limit holds for ROLLBACK, too."""
    while owner.info.transaction_status != TransactionStatus.IDLE:
        with suppress(psycopg.errors.QueryCanceled):
            owner.rollback()


def test_what_only_names_the_limit_sets_nothing() -> None:
    for text in ("SHOW statement_timeout", "RESET statement_timeout", "SELECT current_setting('statement_timeout')"):
        assert find_longest_timeout_ms(text) == 0
    assert read_login_timeout_ms({"user": "ada"}) == math.inf


@in_turn(
    ("text", "ms"),
    [
        ("SET statement_timeout TO DEFAULT", 0.0),
        ("RESET statement_timeout", 0.0),
        ("SHOW statement_timeout", 0.0),
        ("SET Statement_Timeout = 250", 250.0),
        ("SET statement_timeout = '2s'; SET statement_timeout = 3", 2000.0),
        ("SET statement_timeout = 0", math.inf),
        ("SET statement_timeout = '1.5s'", math.inf),
        ("SELECT set_config('statement_timeout', $1, true)", math.inf),
    ],
)
def test_what_is_read_of_a_text(text: str, ms: float) -> None:
    assert find_longest_timeout_ms(text) == ms
