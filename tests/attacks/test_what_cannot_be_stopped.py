"""Some of PostgreSQL's functions hear of no time limit while they work, and may work for days."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from planner.policy.sections import ServerLimitsSection
from proxy.endpoint import watchdog
from proxy.shadow.address import ShadowAddress
from proxy.shadow.embedded import EmbeddedShadow
from proxy.shadow.schema import build_schema
from proxy.shadow.usage import is_alive
from proxy.wire.frontend import Query
from tests.proxy.conftest import Running
from tests.proxy.raw_client import RawClient
from tests.worlds.countries import endpoint_catalog
from tests.worlds.house import eventually

UNSTOPPABLE = b"SELECT length(btrim(repeat('a', 3000000), repeat('b', 3000000) || 'a'))"


@pytest.fixture
def embedded() -> Iterator[EmbeddedShadow]:
    """One of each test's own, which may end it."""
    with (
        tempfile.TemporaryDirectory(prefix="keyhole-") as parent,
        EmbeddedShadow(Path(parent) / "shadow", connections=20) as shadow,
    ):
        build_schema(shadow.address, endpoint_catalog())
        yield shadow


def processor_ticks(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11])


@pytest.fixture
def shadow(embedded: EmbeddedShadow) -> ShadowAddress:
    return embedded.address


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
def test_where_memory_runs_out_sessions_are_killed_and_not_their_server(
    running: Running, embedded: EmbeddedShadow
) -> None:
    def first_to_go(process: int | str) -> int:
        return int(Path(f"/proc/{process}/oom_score_adj").read_text(encoding="ascii"))

    server = (embedded.address.directory / "postmaster.pid").read_text(encoding="ascii").split()[0]
    with RawClient(running.port):
        (one,) = running.endpoint.sessions
        assert first_to_go(one.relay.process) == 500
    assert first_to_go(server) == first_to_go("self") < 500


def test_where_the_system_kills_a_session_the_shadow_starts_anew(running: Running) -> None:
    """As it does when the machine's memory, or the service's, is used up."""
    with RawClient(running.port) as client:
        (one,) = running.endpoint.sessions
        os.kill(one.relay.process, signal.SIGKILL)
        client.until_end()

    def serves() -> bool:
        try:
            with running.connect() as connection:
                return connection.execute("SELECT count(*) FROM regions").fetchone() == (4,)
        except psycopg.OperationalError:  # it is starting
            return False

    eventually(serves)
    assert len(running.endpoint.sessions) <= 1


@pytest.mark.parametrize("statement_timeout_ms", [200])
def test_a_statement_that_the_shadow_says_nothing_of_is_given_up(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "GIVEN_UP_S", 0.1)
    with running.connect() as hung:
        (one,) = running.endpoint.sessions
        os.kill(one.relay.process, signal.SIGSTOP)
        try:
            with running.connect() as well:
                with pytest.raises(
                    psycopg.OperationalError, match="KH406: the shadow database does not answer"
                ) as told:
                    hung.execute("SELECT 1")
                assert told.value.sqlstate == "57P03"
                assert well.execute("SELECT 1").fetchone() == (1,)
        finally:
            os.kill(one.relay.process, signal.SIGCONT)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("limits", [ServerLimitsSection(connections_per_analyst=1)])
@pytest.mark.parametrize("statement_timeout_ms", [200])
def test_it_keeps_its_place_and_nobody_from_working(running: Running, embedded: EmbeddedShadow) -> None:
    with RawClient(running.port) as client:
        (one,) = running.endpoint.sessions
        process = one.relay.process
        client.send(Query(UNSTOPPABLE))
        eventually(lambda: processor_ticks(process) > 30)  # beyond what can be stopped: making the texts
    eventually(lambda: running.endpoint.sessions == ())
    with pytest.raises(psycopg.OperationalError, match="too many connections for role"):
        running.connect()
    with psycopg.connect(running.conninfo(user="bob"), autocommit=True) as bob:
        assert bob.execute("SELECT region FROM regions WHERE country = 'Spain'").fetchone() == ("Europe",)
    eventually(lambda: os.sched_getscheduler(process) == os.SCHED_IDLE)
    assert is_alive(process)
    embedded.stop()
    assert not is_alive(process)

    def place_is_free() -> bool:
        with pytest.raises(psycopg.OperationalError) as refused:
            running.connect()
        return "too many" not in str(refused.value)

    eventually(place_is_free)
