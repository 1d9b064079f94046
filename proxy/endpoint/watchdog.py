"""The watchdog beside the sessions of an endpoint: it ends those that take too long, too much, or do nothing."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass

from planner.catalog.catalog import Analyst
from planner.errors import KeyholeError
from planner.policy.sections import ServerLimitsSection
from proxy.endpoint.connection_limits import (
    GONE,
    IDLE,
    IDLE_IN_TRANSACTION,
    USED_UP,
    ConnectedClient,
    Connections,
    choose_sessions_to_end,
)
from proxy.endpoint.hang_ups import ClientPresence, find_presence, probe_client
from proxy.endpoint.login import UTF8, ClientStream
from proxy.session.error_fields import encode_refusal
from proxy.session.session import Session
from proxy.shadow.address import ShadowAddress
from proxy.shadow.relay import ShadowRelay
from proxy.shadow.usage import is_alive, lower_priority, measure_memory

INTERVAL_S = 0.5  # between two looks: a limit may be noticed so much later, and each look reads every session
_NEAR_S = 0.05  # between two looks at memory once a quarter is taken: in a longer pause a session could take the rest
LATE_S = 5.0
"""From when on a statement that was to end, or many that were sent at once, count as what PostgreSQL cannot stop."""
GIVEN_UP_S = 10.0
"""From when on a shadow that has said nothing since a statement was to end is given up by that session."""
_SILENT = encode_refusal(
    KeyholeError(
        "KH406",
        "the shadow database does not answer",
        hint="Connect again. The statement took longer than the longest allowed time.",
    ),
    codec=UTF8,
    severity="FATAL",
)


@dataclass(frozen=True, slots=True)
class OpenSession:
    """An open session, with the objects for cancelling, the watchdog, a stop and a reload.

    `analyst` is the analyst who logged in, as the policy was then.
    """

    secret: bytes
    stream: ClientStream
    relay: ShadowRelay
    session: Session
    analyst: Analyst | None
    client: ConnectedClient
    shadow: ShadowAddress


class SessionWatchdog:
    """The watch on one endpoint's sessions, on its event loop. Its limits may change at any time.

    `longest_s` is the longest time in seconds of a statement in the shadow, whatever a session sets. If a session has
    set a higher limit of its own, the statements of one text, or of one pipeline, count as one statement.
    """

    def __init__(
        self,
        connected: Connections,
        *,
        sessions: Callable[[], Sequence[OpenSession]],
        limits: Callable[[], ServerLimitsSection],
        longest_s: Callable[[], float],
    ) -> None:
        self._connected = connected
        self._sessions = sessions
        self._limits = limits
        self._longest_s = longest_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False

    def start(self) -> None:
        """Start the watch, as a task of the event loop."""
        self._start_task(self._watch_time())
        self._start_task(self._watch_memory())

    def stop(self) -> None:
        """Stop the watch."""
        self._stopped = True
        for task in tuple(self._tasks):
            task.cancel()

    def hold_place_until_ended(self, client: ConnectedClient) -> None:
        """Keep the connection's place after a session has ended, until the shadow has ended its statement.

        Some functions of PostgreSQL do not notice a cancellation, and may work for days. They get only processor time
        that nobody else wants. An analyst who calls them runs out of places, and other analysts do not.
        """
        if not self._stopped:
            self._start_task(self._wait_for_shadow_process(client))

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait_for_shadow_process(self, client: ConnectedClient) -> None:
        while is_alive(client.lingering):
            await asyncio.sleep(INTERVAL_S)
            lower_priority(client.lingering)
        self._connected.free_session(client)

    async def _watch_time(self) -> None:
        """End statements that run too long in the shadow, idle sessions, and those whose clients have gone."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            now = asyncio.get_running_loop().time()
            for one in self._sessions():
                self._end_if_client_gone(one)
                await self._cancel_if_too_long(one)
                most, report = self._find_idle_limit(one.session)
                if most and one.session.get_idle_seconds(now) > most:
                    one.client.disconnect(report)

    @staticmethod
    def _end_if_client_gone(one: OpenSession) -> None:
        """End a session whose client has gone while a statement is at work, so that nobody reads from it."""
        if not one.session.is_busy:
            return
        hearing = find_presence(one.stream)
        if hearing is ClientPresence.GONE:
            one.client.disconnect(GONE)
        elif hearing is ClientPresence.LISTENS:
            probe_client(one.stream, one.relay)

    async def _cancel_if_too_long(self, one: OpenSession) -> None:
        """Cancel a statement that has run longer than the owner's limit.

        This is for sessions that have raised PostgreSQL's own limit. In all others PostgreSQL cancels each statement.
        If the statement runs on, the shadow's process gets a lower priority. A client whose shadow is silent for too
        long is disconnected: the shadow hangs, or runs code that PostgreSQL cannot stop.
        """
        longest_s, loop = self._longest_s(), asyncio.get_running_loop()
        if one.relay.get_busy_seconds(loop.time()) > longest_s and one.session.longest_timeout_ms > 1000 * longest_s:
            await one.relay.cancel_as_timed_out()
        if one.relay.get_busy_seconds(loop.time()) > longest_s + LATE_S:
            lower_priority(one.relay.process)
        if one.relay.get_silent_seconds(loop.time()) > longest_s + GIVEN_UP_S:
            one.client.disconnect(_SILENT)

    async def _watch_memory(self) -> None:
        """End the largest sessions while all together take more than `shadow_memory_mb`."""
        pause_s = INTERVAL_S
        while True:
            await asyncio.sleep(pause_s)
            most = self._limits().shadow_memory_mb << 20
            held = {one.relay.process: one for one in self._sessions()}
            used = {process: one.stream.held_bytes + one.session.held_bytes for process, one in held.items()}
            for shadow in {one.shadow for one in held.values()}:
                mine = [process for process, one in held.items() if one.shadow == shadow]
                for process, taken in measure_memory(shadow, mine).items():
                    used[process] += taken
            owners = {process: one.client.analyst or "" for process, one in held.items()}
            for process in choose_sessions_to_end(used, owners, most=most):
                held[process].client.disconnect(USED_UP)
            pause_s = INTERVAL_S if sum(used.values()) < most / 4 else _NEAR_S

    def _find_idle_limit(self, session: Session) -> tuple[int, bytes]:
        limits = self._limits()
        if session.is_in_transaction:
            return limits.idle_in_transaction_timeout_s, IDLE_IN_TRANSACTION
        return limits.idle_timeout_s, IDLE
