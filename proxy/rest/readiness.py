"""The readiness of Keyhole: logins, the shadow, the ledger and the source, checked at most once every few seconds.

Guarantee: no row of the data is read, and nothing is written. At most one check runs at a time, so nobody can occupy
the source by frequent requests.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import lru_cache

from accountant.store.deadline import limit_waits
from accountant.store.punctual import PunctualConnection
from proxy.observe.telemetry import GaugeReading, Telemetry
from proxy.open_policy.service import Serving
from proxy.shadow.address import OWNER, ShadowAddress

FRESH_S = 2.0  # one look answers all who ask within it, so that asking often costs nothing
LATE_S = 3.0  # a part that has not answered by then counts as gone: a balancer waits for this answer
SOURCE_TURN_MS = 1000  # for a place at the source, within the time for all parts
SHADOW_S = 2.0  # for the shadow's word, likewise
LEDGER_ROOM_BYTES = 16 << 20
"""Some thousand questions: taking the writer's place succeeds on a full disk, and only the commit fails."""
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


class Readiness:
    """The check that all needed parts work. A recent result is reused.

    Each function in `parts` raises an error if its part is missing. Use this from one event loop at a time.
    """

    def __init__(self, parts: Mapping[str, Callable[[], object]], *, telemetry: Telemetry) -> None:
        self._parts = parts
        self._telemetry = telemetry
        self._there: dict[str, bool] = {}
        self._looked_at = 0.0
        self._look: asyncio.Task[None] | None = None
        self._told: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the names of the needed parts."""
        return tuple(self._parts)

    async def find_missing(self) -> tuple[str, ...]:
        """Return the names of parts that are missing, or that have not answered within `LATE_S`.

        Return an empty tuple if Keyhole can answer questions.
        """
        now = time.monotonic()
        if self._look is None or (self._look.done() and now - self._looked_at >= FRESH_S):
            self._looked_at = now
            self._there = {}
            self._look = asyncio.create_task(self._check_parts())
        if not self._look.done():
            await asyncio.wait({self._look}, timeout=LATE_S)
        missing = tuple(part for part in self._parts if not self._there.get(part))
        if missing != self._told:
            self._told = missing
            self._telemetry.note_missing_parts(missing)
        return missing

    @property
    def gauge(self) -> GaugeReading:
        """Return the last check's result as a gauge for metrics."""
        return GaugeReading(
            "keyhole_ready",
            "Whether what Keyhole needs was there at the last look",
            "part",
            lambda: {part: float(self._there.get(part, False)) for part in self._parts},
        )

    async def _check_parts(self) -> None:
        await asyncio.gather(*(self._check_part(part, check) for part, check in self._parts.items()))

    async def _check_part(self, part: str, check: Callable[[], object]) -> None:
        try:
            await asyncio.to_thread(check)
        except Exception:
            self._there[part] = False
        else:
            self._there[part] = True


def make_readiness(
    serving: Serving, shadow: Callable[[], ShadowAddress] | None, *, logins: Callable[[], None] | None = None
) -> Readiness:
    """Return the readiness check of the current service, and of its shadow and its logins if given.

    `logins` begins a login as a client would, and raises an error if that is not possible.
    """

    def ledger() -> None:
        with serving.hold_open() as service:
            service.ledger.check_writable(room_bytes=LEDGER_ROOM_BYTES)

    def source() -> None:
        with serving.hold_open() as service, service.source.take_turn(analyst="", timeout_ms=SOURCE_TURN_MS):
            pass

    parts: dict[str, Callable[[], object]] = {"ledger": ledger, "source": source}
    if shadow is not None:
        parts["shadow"] = lambda: count_shadow_connections(shadow())
    if logins is not None:
        parts["logins"] = logins
    return Readiness(parts, telemetry=serving.telemetry)


def count_shadow_connections(shadow: ShadowAddress) -> int:
    """Return the number of the shadow's other connections. Raise psycopg.Error if the shadow does not answer."""
    with (
        limit_waits(SHADOW_S),
        PunctualConnection.connect(shadow.make_conninfo(user=OWNER, database="postgres")) as connection,
    ):
        found = connection.execute(_CONNECTIONS).fetchone()
    return 0 if found is None else int(found[0])


@lru_cache(maxsize=16)  # shadows: more than are ever there at once, and none changes its version while it runs
def read_shadow_version(shadow: ShadowAddress) -> int:
    """Return the version number of the shadow's PostgreSQL: 180004 is 18.4.

    Raise psycopg.Error if it does not answer.
    """
    with (
        limit_waits(SHADOW_S),
        PunctualConnection.connect(shadow.make_conninfo(user=OWNER, database="postgres")) as connection,
    ):
        return connection.info.server_version
