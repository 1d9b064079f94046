"""The PostgreSQL endpoint: accepts connections and gives each a login, a relay and a session.

It never logs SQL, keys or passwords.
"""

import asyncio
import secrets
import socket
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from ssl import SSLError

import structlog

from planner.catalog import Analyst, Catalog
from planner.errors import KeyholeError
from planner.policy import ServerLimitsSection
from proxy.asker import Asker
from proxy.cancelling import Siblings
from proxy.handshake import hold
from proxy.limits import IDLE, IDLE_IN_TRANSACTION, STOPPED, STOPPING, Connections, TooMany, Visitor, watch_over
from proxy.login import UTF8, ClientGone, ClientStream, log_in
from proxy.logs import fault
from proxy.reports import fatal, refusal, violation
from proxy.session import Session
from proxy.shadow.address import ShadowAddress
from proxy.shadow.relay import Refused, Relay
from proxy.telemetry import Face, Telemetry, TurnedAway
from proxy.tls import Tls
from proxy.wire.backend import BackendKeyData, ParameterStatus, ReadyForQuery
from proxy.wire.frontend import Cancel, Terminate
from proxy.wire.server import ServerConnection
from proxy.wire.startup import Login
from proxy.wire.violation import ProtocolViolation
from proxy.worker_pool import WorkerPool

log = structlog.get_logger("keyhole.endpoint")

LOGIN_TIMEOUT_S = 10.0
STOP_GRACE_S = 5.0
WATCH_INTERVAL_S = 0.5
_STOP_INTERVAL_S = 0.01
_BACKLOG = 1024


@dataclass(frozen=True, slots=True)
class Open:
    """An open session, as cancelling, the watch on sessions, stopping and a reload of the policy see it.

    `analyst` is who logged in, as the policy had it then.
    """

    secret: bytes
    relay: Relay
    session: Session
    analyst: Analyst | None
    visitor: Visitor


class Endpoint:
    """PostgreSQL on a socket. Each connection is one task; questions run in `workers` threads beside the loop.

    `shadow` must already show `catalog`. `statement_timeout_ms` of the catalog bounds what the shadow may run, whatever
    a session sets. Without `tls` everything travels in the clear; without `limits` they are the policy's defaults.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        asker: Asker,
        shadow: ShadowAddress,
        tls: Tls | None = None,
        limits: ServerLimitsSection | None = None,
        workers: int = 8,
        telemetry: Telemetry | None = None,
        siblings: Siblings | None = None,
    ) -> None:
        self._catalog = catalog
        self._asker = asker
        self._shadow = shadow
        self._tls = tls
        self._limits = limits or ServerLimitsSection()
        self._connected = Connections(self._limits)
        self._stopping = False
        self._telemetry = telemetry or Telemetry()
        self._workers = WorkerPool(workers, telemetry=self._telemetry)
        self._server: asyncio.Server | None = None
        self._watch: asyncio.Task[None] | None = None
        self._open: dict[int, Open] = {}
        self._siblings = siblings or Siblings()
        self._next_process = secrets.choice(self._siblings.numbers)

    async def start(self, host: str = "127.0.0.1", port: int = 6432, *, shared: socket.socket | None = None) -> None:
        """Listen. Port 0 takes a free one, which `port` tells. `shared` is bound, and other processes accept on it."""
        if shared is None:
            self._server = await asyncio.start_server(self._accept, host, port)
        else:
            # one connection at a time, or the first process to wake would take all that wait
            self._server = await asyncio.start_server(self._accept, sock=shared, backlog=1)
            shared.listen(_BACKLOG)
        self._watch = asyncio.create_task(self._watch_sessions())

    @property
    def port(self) -> int:
        """The port listened on."""
        if self._server is None:
            raise RuntimeError("the endpoint has not been started")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def sessions(self) -> tuple[Open, ...]:
        """The sessions that are open now."""
        return tuple(self._open.values())

    @property
    def connections(self) -> int:
        """How many clients are connected, logged in or not."""
        return len(self._connected)

    def take(self, catalog: Catalog) -> int:
        """Go on with another policy over the same tables; how many sessions end because their login holds no more."""
        self._catalog = catalog
        gone = [one for one in self.sessions if not self._is_known(one.analyst)]
        for one in gone:
            one.visitor.send_away(STOPPED)
        return len(gone)

    async def stop(self, *, grace_s: float = STOP_GRACE_S) -> None:
        """Accept nothing more, let running statements end for `grace_s`, then hang up; whoever is idle goes at once.

        Questions that have reserved are committed first, however long they take.
        """
        self._stopping = True
        if self._server is not None:
            self._server.close()
        if self._watch is not None:
            self._watch.cancel()
        deadline = asyncio.get_running_loop().time() + grace_s
        while True:
            late = asyncio.get_running_loop().time() >= deadline
            busy = {one.visitor for one in self.sessions if one.session.busy and not late}
            for visitor in self._connected.all:
                if visitor not in busy:
                    visitor.send_away(STOPPED)
            if not busy:
                break
            await asyncio.sleep(_STOP_INTERVAL_S)
        await asyncio.gather(*(visitor.task for visitor in self._connected.all), return_exceptions=True)
        await asyncio.to_thread(self._workers.shutdown, wait=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Coroutine[None, None, None]:
        watch_over(writer.get_extra_info("socket"), self._limits)
        if self._tls is not None:
            hold(writer)  # before the first byte, which may be the handshake's
        return self._attend(reader, writer)

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        visitor = self._connected.enter(task)
        stream = ClientStream(ServerConnection(), reader, writer)
        seen, address = self._telemetry, _address(writer)
        try:
            await self._serve(stream, visitor, address=address)
        except asyncio.CancelledError:
            if visitor.last_words not in (b"", STOPPED):
                seen.turned_away(TurnedAway.LIMIT, address=address)
            stream.tell(visitor.last_words or STOPPED)
        except TooMany as full:
            seen.turned_away(TurnedAway.LIMIT, address=address)
            stream.tell(full.report)
        except KeyholeError as error:
            seen.refused(error.code, face=Face.POSTGRESQL, address=address)
            stream.tell(refusal(error, codec=UTF8, severity="FATAL"))
        except Refused as refused:
            seen.turned_away(TurnedAway.SHADOW, address=address)
            stream.tell(refused.report.encode())
        except ProtocolViolation as error:
            seen.turned_away(TurnedAway.PROTOCOL, address=address)
            stream.tell(violation(error))
        except TimeoutError:
            seen.turned_away(TurnedAway.LOGIN_TIMEOUT, address=address)
            stream.tell(fatal("the login took too long", sqlstate="08006"))
        except SSLError:
            seen.turned_away(TurnedAway.TLS, address=address)
        except (ClientGone, ConnectionError):
            pass
        except Exception as error:
            log.error("internal error", **fault(error))
            seen.refused("KH900", face=Face.POSTGRESQL, address=address)
            stream.tell(refusal(KeyholeError("KH900", "internal error"), codec=UTF8, severity="FATAL"))
        finally:
            try:
                await stream.hang_up(grace_s=0 if visitor.pressed_out else STOP_GRACE_S)
            finally:
                self._connected.leave(visitor)

    async def _serve(self, stream: ClientStream, visitor: Visitor, *, address: str | None) -> None:
        if self._stopping:
            raise TooMany(STOPPING)
        async with asyncio.timeout(LOGIN_TIMEOUT_S):
            catalog = self._catalog
            login = await log_in(stream, catalog, self._tls, check=self._connected.check)
            if isinstance(login, Cancel):
                await self.cancel(login)
                await self._siblings.forward(login)
                return
            self._connected.log_in(visitor, login.user)
            relay = await Relay.open(self._shadow, self._shadow_settings(login), stream.writer)
        session = Session(
            stream.connection,
            relay=relay,
            client=stream.writer,
            asker=self._asker,
            analyst=login.user,
            workers=self._workers,
            statements=self._limits.statements,
            portals=self._limits.portals,
            telemetry=self._telemetry,
        )
        analyst = catalog.analyst(login.user)
        secret = secrets.token_bytes(32 if login.minor >= 2 else 4)
        process = self._register(Open(secret, relay, session, analyst, visitor))
        structlog.contextvars.bind_contextvars(session=process)
        try:
            if not self._is_known(analyst):  # the policy was read again during the login
                raise asyncio.CancelledError
            with self._telemetry.session(analyst=login.user, address=address):
                stream.writer.write(_greeting(relay.parameters, process, secret))
                stream.connection.ready()
                await stream.writer.drain()
                await _converse(stream, relay, session)
        finally:
            del self._open[process]
            await relay.end()

    def _shadow_settings(self, login: Login) -> dict[str, str]:
        """The shadow session's startup: role, database, defaults of `keyhole.*`, then what the client brought."""
        timeout = str(self._catalog.statement_timeout_ms)
        return {
            "user": login.user,
            "database": self._catalog.database,
            "statement_timeout": timeout,
            **self._asker.settings,
            **dict(login.settings),
        }

    def _register(self, opened: Open) -> int:
        numbers = self._siblings.numbers
        while self._next_process in self._open:
            self._next_process = self._next_process + 1 if self._next_process + 1 in numbers else numbers[0]
        process = self._next_process
        self._next_process = process + 1 if process + 1 in numbers else numbers[0]
        self._open[process] = opened
        return process

    def _is_known(self, analyst: Analyst | None) -> bool:
        """Whether that analyst could log in now as then."""
        now = None if analyst is None else self._catalog.analyst(analyst.name)
        if analyst is None or now is None:
            return False
        return (now.verifier, now.certificate_name) == (analyst.verifier, analyst.certificate_name)

    async def cancel(self, request: Cancel) -> None:
        """What a client asks for that has a session here; nothing for all others."""
        known = self._open.get(request.process)
        right = compare_digest(known.secret if known is not None else secrets.token_bytes(4), request.secret)
        if known is not None and right:
            await known.session.cancel()

    async def _watch_sessions(self) -> None:
        """Cancel what runs too long in the shadow, and end sessions that do nothing for too long."""
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            longest_s = self._catalog.statement_timeout_ms / 1000
            now = asyncio.get_running_loop().time()
            for one in self.sessions:
                if one.relay.busy_for(now) > longest_s:
                    await one.relay.cancel()
                most, report = self._longest_idle(one.session)
                if most and one.session.idle_for(now) > most:
                    one.visitor.send_away(report)

    def _longest_idle(self, session: Session) -> tuple[int, bytes]:
        if session.in_transaction:
            return self._limits.idle_in_transaction_timeout_s, IDLE_IN_TRANSACTION
        return self._limits.idle_timeout_s, IDLE


def _address(writer: asyncio.StreamWriter) -> str | None:
    """Where the client is, for the log; nothing on a Unix socket."""
    peer = writer.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) else None


def _greeting(parameters: Mapping[bytes, bytes], process: int, secret: bytes) -> bytes:
    statuses = b"".join(ParameterStatus(name, value).encode() for name, value in parameters.items())
    return statuses + BackendKeyData(process, secret).encode() + ReadyForQuery(b"I").encode()


async def _converse(stream: ClientStream, relay: Relay, session: Session) -> None:
    """Both directions until either side ends."""
    pump = asyncio.create_task(relay.pump())
    statements = asyncio.create_task(_statements(stream, session, relay))
    try:
        await asyncio.wait({pump, statements}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (pump, statements):
            task.cancel()
        outcomes = await asyncio.gather(pump, statements, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


async def _statements(stream: ClientStream, session: Session, relay: Relay) -> None:
    """Handle the client's messages one by one until it says good-bye, none before it has read what is behind."""
    while True:
        await relay.keep_pace()
        received = stream.connection.next_message()
        if received is None:
            received = await stream.next()
        if isinstance(received.message, Terminate):
            return
        await session.handle(received)
