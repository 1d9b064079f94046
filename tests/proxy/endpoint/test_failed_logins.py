"""Passwords that are tried one after the other, or at once."""

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from proxy.security.failed_logins import ALL_USERS, FailedLogins
from proxy.wire.frontend import Query
from tests.proxy.conftest import Running
from tests.proxy.raw_client import RawClient
from tests.worlds.countries import PASSWORD

MOST = 3
WRONG = "password authentication failed"
TOO_MANY = "KH430: too many failed logins from this address"


@pytest.fixture
def failures() -> FailedLogins:
    """As many as MOST, and time stands still."""
    return FailedLogins(MOST, clock=lambda: 0.0)


def told(running: Running, user: str, password: str) -> str:
    """What becomes of a login; nothing where it succeeds."""
    try:
        psycopg.connect(running.conninfo(user, password)).close()
    except psycopg.OperationalError as error:
        said = str(error)
        return next((known for known in (WRONG, TOO_MANY) if known in said), said)
    return ""


@pytest.mark.parametrize("user", ["ada", "nobody"])
def test_after_too_many_no_password_of_that_user_is_looked_at_from_there(running: Running, user: str) -> None:
    """Whether there is such a user or not."""
    assert [told(running, user, "wrong") for _ in range(MOST + 2)] == [WRONG] * MOST + [TOO_MANY] * 2
    assert told(running, user, PASSWORD) == TOO_MANY
    assert told(running, "bob", PASSWORD) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="has no second address on loopback")
def test_nobody_is_kept_out_from_elsewhere(running: Running) -> None:
    for number in range(MOST * ALL_USERS):
        assert told(running, f"nobody{number // MOST}", "wrong") == WRONG
    assert told(running, "nobody", "wrong") == told(running, "ada", PASSWORD) == TOO_MANY
    with RawClient(running.port, "ada", source="127.0.0.2") as client:
        client.send(Query(b"SELECT 1"))
        assert len(client.until_ready()) == 4


def test_those_who_come_at_once_have_no_more_tries(running: Running) -> None:
    with ThreadPoolExecutor(10) as pool:
        said = Counter(pool.map(lambda _: told(running, "ada", "wrong"), range(20)))
    assert said == {WRONG: MOST, TOO_MANY: 20 - MOST}
