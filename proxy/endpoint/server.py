"""The PostgreSQL endpoint: accepts connections and gives each a login, a relay and a session.

It never logs SQL, keys or passwords.
"""

import asyncio
import secrets
import socket
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import ExitStack
from hmac import compare_digest
from ssl import SSLError

import structlog

from planner.catalog.catalog import Analyst
from planner.errors import KeyholeError
from planner.policy.sections import RestSection, ServerLimitsSection
from proxy.concurrency.cancellable_work import make_internal_error
from proxy.concurrency.thread_pool import WorkerPool
from proxy.endpoint.cancel_requests import SiblingWorkers
from proxy.endpoint.connection_limits import (
    GONE,
    STOPPED,
    STOPPING,
    ConnectedClient,
    Connections,
    TooManyConnections,
    set_keepalive,
)
from proxy.endpoint.conversation import relay_both_ways
from proxy.endpoint.login import UTF8, ClientGone, ClientStream, LoginOrigin, log_in
from proxy.endpoint.tls_handshake import pause_before_first_byte
from proxy.endpoint.watchdog import OpenSession, SessionWatchdog
from proxy.monitors.notifications import AlertHub
from proxy.observe.logs import describe_exception
from proxy.observe.telemetry import DisconnectReason, Interface, Telemetry
from proxy.security.failed_logins import FailedLogins
from proxy.security.mock_users import MockUsers
from proxy.security.tls import Tls
from proxy.security.violation import ProtocolViolation
from proxy.session.error_fields import encode_fatal, encode_refusal, encode_violation
from proxy.session.name_hints import NameHints
from proxy.session.parts import SessionParts
from proxy.session.port import SessionBacking
from proxy.session.session import Session
from proxy.shadow.address import ShadowAddress
from proxy.shadow.link import ShadowLoginRefused
from proxy.shadow.relay import ShadowRelay
from proxy.wire.backend import BackendKeyData, ParameterStatus, ReadyForQuery
from proxy.wire.frontend import Cancel
from proxy.wire.server_side import ServerProtocol
from proxy.wire.startup import Login

log = structlog.get_logger("keyhole.endpoint")

BACKLOG = 1024  # how many clients the system may keep in its queue
LOGIN_TIMEOUT_S = 10.0  # a login needs a few round trips and no person; a slower one holds a place that others may need
STOP_GRACE_S = 5.0  # for statements to end, and last words to arrive: within the 10 s after which containers are killed
_STOP_INTERVAL_S = 0.01  # between two looks whether statements have ended: nobody notices it, and it costs nothing
_TURNS_TO_ATTEND = 3  # a connection is accepted; it gets a transport; its protocol knows of it


class Endpoint:
    """The PostgreSQL endpoint on a socket. Each connection is one task; questions run in `workers` threads.

    `statement_timeout_ms` of the catalog bounds the time of the shadow's statements, whatever a session sets. Without
    `tls` everything is sent unencrypted. Without `limits` the policy's defaults apply. `mock_users` makes replies for
    unknown users; a later endpoint should get the same one. `failures` are the failed logins, which other endpoints
    share. Without a `hub`, sessions get no news of monitors.
    """

    def __init__(
        self,
        backing: SessionBacking,
        *,
        tls: Tls | None = None,
        limits: ServerLimitsSection | None = None,
        workers: int = 8,
        telemetry: Telemetry | None = None,
        siblings: SiblingWorkers | None = None,
        mock_users: MockUsers | None = None,
        failures: FailedLogins | None = None,
        hub: AlertHub | None = None,
    ) -> None:
        self._backing = backing
        self._hub = hub
        self._mock_users = mock_users or MockUsers()
        self._failures = failures or FailedLogins(RestSection().failed_logins_per_minute)
        self._tls = tls
        self._limits = limits or ServerLimitsSection()
        self._connected = Connections(self._limits)
        self._stopping = False
        self._telemetry = telemetry or Telemetry()
        self._workers = WorkerPool(workers, telemetry=self._telemetry)
        self._readers = WorkerPool(1, telemetry=self._telemetry)
        self._server: asyncio.Server | None = None
        self._open: dict[int, OpenSession] = {}
        self._watch = SessionWatchdog(
            self._connected,
            sessions=lambda: self.sessions,
            limits=lambda: self._limits,
            longest_s=lambda: self._backing.catalog.statement_timeout_ms / 1000,
        )
        self._siblings = siblings or SiblingWorkers()
        self._next_process = secrets.choice(self._siblings.numbers)

    async def start(self, host: str = "127.0.0.1", port: int = 6432, *, shared: socket.socket | None = None) -> None:
        """Listen for connections.

        With port 0 the system chooses a free one, see `port`. `shared` is a bound socket of several processes.
        """
        if shared is None:
            self._server = await asyncio.start_server(self._accept, host, port)
        else:
            # one connection at a time, or the first process to wake would take all that wait
            self._server = await asyncio.start_server(self._accept, sock=shared, backlog=1)
            shared.listen(BACKLOG)
        self._watch.start()

    @property
    def port(self) -> int:
        """The port on which the endpoint listens."""
        if self._server is None:
            raise RuntimeError("the endpoint has not been started")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def sessions(self) -> tuple[OpenSession, ...]:
        """The sessions that are open now."""
        return tuple(self._open.values())

    @property
    def connections(self) -> int:
        """Return the number of connected clients, logged in or not."""
        return len(self._connected)

    def use_backing(self, backing: SessionBacking, limits: ServerLimitsSection) -> int:
        """Open new sessions on `backing`.

        Return the number of sessions that end because their login is no longer valid. `limits` are those of new
        connections. Their idle times also apply to all sessions.
        """
        self._backing, self._limits = backing, limits
        self._connected.set_limits(limits)
        return self._end_sessions([one for one in self.sessions if not self._can_still_log_in(one.analyst)])

    def end_sessions_on(self, shadow: ShadowAddress) -> int:
        """End the sessions on a shadow, and return their number."""
        return self._end_sessions([one for one in self.sessions if one.shadow == shadow])

    @staticmethod
    def _end_sessions(gone: list[OpenSession]) -> int:
        still_there = [one for one in gone if not one.client.final_report]
        for one in still_there:
            one.client.disconnect(STOPPED)
        return len(still_there)

    async def stop(self, *, grace_s: float = STOP_GRACE_S) -> None:
        """Accept no more connections, give running statements `grace_s` seconds to end, and then disconnect.

        Idle sessions end at once. Questions whose budget is reserved are committed first, however long they take.
        """
        self._stopping = True
        if self._server is not None:
            await stop_accepting(self._server.sockets)
            self._server.close()
        self._watch.stop()
        deadline = asyncio.get_running_loop().time() + grace_s
        while True:
            late = asyncio.get_running_loop().time() >= deadline
            busy = {one.client for one in self.sessions if one.session.is_busy and not late}
            for client in self._connected.all:
                if client not in busy:
                    client.disconnect(STOPPED)
            if not busy:
                break
            await asyncio.sleep(_STOP_INTERVAL_S)
        await asyncio.gather(*(client.task for client in self._connected.all), return_exceptions=True)
        for pool in (self._workers, self._readers):
            await asyncio.to_thread(pool.shutdown)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Coroutine[None, None, None]:
        set_keepalive(writer.get_extra_info("socket"), self._limits)
        if self._tls is not None:
            # nothing may be read before it is known whether the first byte begins a TLS handshake
            pause_before_first_byte(writer)
        return self._serve_connection(reader, writer)

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        seen, address = self._telemetry, _find_address(writer)
        client = self._connected.add(task, address=address or "")
        stream = ClientStream(ServerProtocol(), reader, writer, heard=client.note_byte)
        try:
            await self._log_in_and_serve(stream, client, address=address)
        except asyncio.CancelledError:
            if client.final_report not in (b"", GONE, STOPPED):
                seen.count_disconnect(DisconnectReason.LIMIT, address=address)
            stream.write_report(client.final_report or STOPPED)
        except TooManyConnections as full:
            seen.count_disconnect(DisconnectReason.LIMIT, address=address)
            stream.write_report(full.report)
        except KeyholeError as error:
            seen.count_refusal(error.code, face=Interface.POSTGRESQL, address=address)
            stream.write_report(encode_refusal(error, codec=UTF8, severity="FATAL"))
        except ShadowLoginRefused as refused:
            seen.count_disconnect(DisconnectReason.SHADOW, address=address)
            stream.write_report(refused.report.encode())
        except ProtocolViolation as error:
            seen.count_disconnect(DisconnectReason.PROTOCOL, address=address)
            stream.write_report(encode_violation(error))
        except TimeoutError:
            seen.count_disconnect(DisconnectReason.LOGIN_TIMEOUT, address=address)
            stream.write_report(encode_fatal("the login took too long", sqlstate="08006"))
        except SSLError:
            seen.count_disconnect(DisconnectReason.TLS, address=address)
        except (ClientGone, ConnectionError):
            pass
        except Exception as error:
            log.error("internal error", **describe_exception(error))
            seen.count_refusal("KH900", face=Interface.POSTGRESQL, address=address)
            stream.write_report(encode_refusal(make_internal_error(), codec=UTF8, severity="FATAL"))
        finally:
            try:
                await stream.hang_up(grace_s=0 if client.is_displaced else STOP_GRACE_S)
            finally:
                self._connected.remove(client)
                if client.lingering:
                    self._watch.hold_place_until_ended(client)

    async def _log_in_and_serve(self, stream: ClientStream, client: ConnectedClient, *, address: str | None) -> None:
        if self._stopping:
            raise TooManyConnections(STOPPING)
        with ExitStack() as staying:
            async with asyncio.timeout(LOGIN_TIMEOUT_S):
                catalog = self._backing.catalog
                check = self._connected.check_room
                caller = LoginOrigin(client.network, self._mock_users, self._failures)
                login = await log_in(stream, catalog, self._tls, caller=caller, check=check)
                if isinstance(login, Cancel):
                    await self.cancel(login)
                    await self._siblings.forward(login)
                    return
                self._connected.log_in(client, login.user)
                backing = self._backing  # another one by now, if the policy was read again during the login
                staying.enter_context(backing.hold_open())
                relay = await ShadowRelay.open(backing.shadow, backing.make_startup_settings(login), stream.writer)
            parts = SessionParts.make_for_session(
                relay,
                client=stream.writer,
                connection=stream.connection,
                asker=backing.asker,
                analyst=login.user,
                workers=self._workers.make_executor(login.user),
                telemetry=self._telemetry,
                hub=self._hub,
            )
            staying.callback(parts.notifications.end)
            limits = self._limits
            readers = self._readers.make_executor(login.user)
            session = Session(parts, readers=readers, statements=limits.statements, portals=limits.portals)
            relay.answers.mend_error = NameHints(
                backing.catalog,
                login.user,
                encoding=lambda: parts.text.encoding,
                hint_in_message=lambda: session.hint_in_message,
            ).add_hint_to_error
            secret = secrets.token_bytes(32 if login.minor_version >= 2 else 4)
            opened = OpenSession(
                secret, stream, relay, session, catalog.find_analyst(login.user), client, backing.shadow
            )
            await self._serve_session(opened, login, address=address)

    async def _serve_session(self, opened: OpenSession, login: Login, *, address: str | None) -> None:
        """Serve a session from its greeting to its end."""
        process, stream, relay = self._register(opened), opened.stream, opened.relay
        structlog.contextvars.bind_contextvars(session=process)
        try:
            if not self._can_still_log_in(opened.analyst):  # the policy was read again during the login
                raise asyncio.CancelledError
            with self._telemetry.count_session(analyst=login.user, address=address):
                stream.writer.write(_make_greeting(relay.parameters, process, opened.secret))
                stream.connection.open_session()
                await stream.writer.drain()
                await relay_both_ways(stream, relay, opened.session)
        finally:
            del self._open[process]
            await relay.end()
            if not relay.answers.is_settled:
                opened.client.lingering = relay.process

    def _register(self, opened: OpenSession) -> int:
        numbers = self._siblings.numbers
        while self._next_process in self._open:
            self._next_process = self._next_process + 1 if self._next_process + 1 in numbers else numbers[0]
        process = self._next_process
        self._next_process = process + 1 if process + 1 in numbers else numbers[0]
        self._open[process] = opened
        return process

    def _can_still_log_in(self, analyst: Analyst | None) -> bool:
        """Return True if that analyst could still log in now."""
        now = None if analyst is None else self._backing.catalog.find_analyst(analyst.name)
        if analyst is None or now is None:
            return False
        return (now.verifier, now.certificate_name) == (analyst.verifier, analyst.certificate_name)

    async def cancel(self, request: Cancel) -> None:
        """Cancel the statement of a client whose session is in this process. Do nothing for other requests."""
        known = self._open.get(request.process)
        right = compare_digest(known.secret if known is not None else secrets.token_bytes(4), request.secret)
        if known is not None and right:
            await known.session.cancel()


def _find_address(writer: asyncio.StreamWriter) -> str | None:
    """Return the client's address, for the log; nothing on a Unix socket."""
    peer = writer.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) else None


def _make_greeting(parameters: Mapping[bytes, bytes], process: int, secret: bytes) -> bytes:
    statuses = b"".join(ParameterStatus(name, value).encode() for name, value in parameters.items())
    return statuses + BackendKeyData(process, secret).encode() + ReadyForQuery(b"I").encode()


async def stop_accepting(listening: Iterable[socket.socket]) -> None:
    """Stop accepting connections on sockets of this event loop. Connections that are already accepted are kept.

    Clients that are not accepted stay in the system's queue. Another process may accept them, or closing the socket
    refuses them. Await this before `Server.close`. A connection accepted just before that call fails in asyncio (Python
    3.11 and 3.12) without being closed, and its client waits until the process ends.
    """
    loop, sockets = asyncio.get_running_loop(), tuple(listening)
    for _ in range(_TURNS_TO_ATTEND):
        for one in sockets:
            # at every turn: after running out of descriptors asyncio adds the reader again by a timer
            loop.remove_reader(one.fileno())
        await asyncio.sleep(0)
