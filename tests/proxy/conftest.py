import asyncio
import tempfile
import threading
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from planner.catalog.catalog import Catalog
from planner.policy.sections import ServerLimitsSection
from proxy.endpoint import server
from proxy.endpoint.server import Endpoint
from proxy.security.failed_logins import FailedLogins
from proxy.security.tls import Tls
from proxy.session.port import SessionBacking
from proxy.shadow.address import ShadowAddress
from proxy.shadow.embedded import EmbeddedShadow
from proxy.shadow.schema import build_schema
from tests.effort import PATIENCE_S
from tests.proxy.in_test_asker import FixedAsker
from tests.worlds.countries import PASSWORD, endpoint_catalog


@pytest.fixture(scope="session")
def shadow_address() -> Iterator[ShadowAddress]:
    with tempfile.TemporaryDirectory(prefix="keyhole-") as parent, EmbeddedShadow(Path(parent) / "shadow") as shadow:
        yield shadow.address


@pytest.fixture(scope="session")
def shadow(shadow_address: ShadowAddress) -> ShadowAddress:
    build_schema(shadow_address, endpoint_catalog())
    return shadow_address


@dataclass
class Running:
    """An endpoint on a loop of its own, so that blocking clients can talk to it."""

    endpoint: Endpoint
    asker: FixedAsker
    loop: asyncio.AbstractEventLoop

    @property
    def port(self) -> int:
        return self.endpoint.port

    def conninfo(self, user: str = "ada", password: str = PASSWORD, extra: str = "") -> str:
        return f"host=127.0.0.1 port={self.port} user={user} password='{password}' dbname=retail {extra}"

    def connect(self, **keywords: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.conninfo(), **keywords)

    def buffered_bytes(self) -> int:
        """What the endpoint holds for clients that have not read it, as its own loop sees it."""

        async def count() -> int:
            await asyncio.sleep(0.001)
            return sum(one.relay.unread_bytes for one in self.endpoint.sessions)

        buffered: int = self.run(count())
        return buffered

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE_S)


@pytest.fixture(autouse=True)
def patient_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """A login may take as long as a busy machine needs; who tests its limit sets one."""
    monkeypatch.setattr(server, "LOGIN_TIMEOUT_S", float(PATIENCE_S))


@pytest.fixture
def asker() -> FixedAsker:
    return FixedAsker()


@pytest.fixture
def statement_timeout_ms() -> int:
    return 30_000


@pytest.fixture
def catalog(statement_timeout_ms: int) -> Catalog:
    return endpoint_catalog(timeout_ms=statement_timeout_ms)


@pytest.fixture
def limits() -> ServerLimitsSection:
    return ServerLimitsSection()


@pytest.fixture
def tls() -> Tls | None:
    return None


@pytest.fixture
def failures() -> FailedLogins:
    """Endless; who tests their limit sets one."""
    return FailedLogins(10**6)


@pytest.fixture
def running(
    shadow: ShadowAddress,
    asker: FixedAsker,
    catalog: Catalog,
    tls: Tls | None,
    limits: ServerLimitsSection,
    failures: FailedLogins,
) -> Iterator[Running]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    endpoint = Endpoint(SessionBacking(catalog, asker, shadow), tls=tls, limits=limits, failures=failures)
    running = Running(endpoint, asker, loop)
    try:
        running.run(endpoint.start("127.0.0.1", 0))
        yield running
        running.run(endpoint.stop(grace_s=1.0))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
