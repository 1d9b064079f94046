"""The PostgreSQL endpoint: accepts connections and gives each a login, a relay and a session.

It never logs SQL, keys or passwords.
"""

import asyncio
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from hmac import compare_digest

import structlog

from planner.catalog import Catalog
from planner.errors import KeyholeError
from proxy.asker import Asker
from proxy.login import UTF8, ClientGone, ClientStream, log_in
from proxy.reports import fatal, refusal, violation
from proxy.session import Session
from proxy.shadow.address import ShadowAddress
from proxy.shadow.relay import Refused, Relay
from proxy.wire.backend import BackendKeyData, ParameterStatus, ReadyForQuery
from proxy.wire.frontend import Cancel, Terminate
from proxy.wire.server import ServerConnection
from proxy.wire.startup import Login
from proxy.wire.violation import ProtocolViolation

log = structlog.get_logger("keyhole.endpoint")

LOGIN_TIMEOUT_S = 10.0
STOP_GRACE_S = 5.0
WATCH_INTERVAL_S = 0.5
_MOST_PROCESSES = 1 << 31


@dataclass(frozen=True, slots=True)
class Open:
    """An open session, as cancelling and the watch on long statements see it."""

    secret: bytes
    relay: Relay


class Endpoint:
    """PostgreSQL on a socket. Each connection is one task; questions run in `workers` threads beside the loop.

    `shadow` must already show `catalog`. `statement_timeout_ms` of the catalog bounds what the shadow may run, whatever
    a session sets.
    """

    def __init__(self, catalog: Catalog, *, asker: Asker, shadow: ShadowAddress, workers: int = 8) -> None:
        self._catalog = catalog
        self._asker = asker
        self._shadow = shadow
        self._workers = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="keyhole-question")
        self._server: asyncio.Server | None = None
        self._watch: asyncio.Task[None] | None = None
        self._open: dict[int, Open] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_process = secrets.randbelow(_MOST_PROCESSES)

    async def start(self, host: str = "127.0.0.1", port: int = 6432) -> None:
        """Listen. Port 0 takes a free one, which `port` tells."""
        self._server = await asyncio.start_server(self._accept, host, port)
        self._watch = asyncio.create_task(self._watch_statements())

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

    async def stop(self, *, grace_s: float = STOP_GRACE_S) -> None:
        """Accept nothing more, let running statements end for `grace_s`, then hang up."""
        if self._server is not None:
            self._server.close()
        if self._watch is not None:
            self._watch.cancel()
        deadline = asyncio.get_running_loop().time() + grace_s
        while any(not one.relay.answers.settled for one in self.sessions):
            if asyncio.get_running_loop().time() >= deadline:
                break
            await asyncio.sleep(0.01)
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self._workers.shutdown, wait=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        stream = ClientStream(ServerConnection(), reader, writer)
        try:
            await self._serve(stream)
        except asyncio.CancelledError:
            writer.write(fatal("terminating connection due to administrator command", sqlstate="57P01"))
        except KeyholeError as error:
            writer.write(refusal(error, codec=UTF8, severity="FATAL"))
        except Refused as refused:
            writer.write(refused.report.encode())
        except ProtocolViolation as error:
            writer.write(violation(error))
        except TimeoutError:
            writer.write(fatal("the login took too long", sqlstate="08006"))
        except (ClientGone, ConnectionError):
            pass
        except Exception as error:
            log.exception("internal error", kind=type(error).__name__, exc_info=False)
            writer.write(refusal(KeyholeError("KH900", "internal error"), codec=UTF8, severity="FATAL"))
        finally:
            stream.connection.close()
            writer.close()
            with suppress(OSError, TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(writer.wait_closed(), STOP_GRACE_S)

    async def _serve(self, stream: ClientStream) -> None:
        async with asyncio.timeout(LOGIN_TIMEOUT_S):
            login = await log_in(stream, self._catalog)
            if isinstance(login, Cancel):
                await self._cancel(login)
                return
            relay = await Relay.open(self._shadow, self._shadow_settings(login), stream.writer)
        process, secret = self._register(relay)
        try:
            stream.writer.write(_greeting(relay.parameters, process, secret))
            stream.connection.ready()
            await stream.writer.drain()
            await self._converse(stream, relay, analyst=login.user)
        finally:
            del self._open[process]
            relay.close()

    async def _converse(self, stream: ClientStream, relay: Relay, *, analyst: str) -> None:
        """Both directions until either side ends."""
        session = Session(
            stream.connection,
            relay=relay,
            client=stream.writer,
            asker=self._asker,
            analyst=analyst,
            workers=self._workers,
        )
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

    def _register(self, relay: Relay) -> tuple[int, bytes]:
        while self._next_process in self._open or self._next_process == 0:
            self._next_process = (self._next_process + 1) % _MOST_PROCESSES
        process, secret = self._next_process, secrets.token_bytes(4)
        self._next_process = (self._next_process + 1) % _MOST_PROCESSES
        self._open[process] = Open(secret, relay)
        return process, secret

    async def _cancel(self, request: Cancel) -> None:
        known = self._open.get(request.process)
        right = compare_digest(known.secret if known is not None else secrets.token_bytes(4), request.secret)
        if known is not None and right:
            await known.relay.cancel()

    async def _watch_statements(self) -> None:
        """Cancel what runs too long in the shadow."""
        longest_s = self._catalog.statement_timeout_ms / 1000
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            now = asyncio.get_running_loop().time()
            for one in self.sessions:
                if one.relay.busy_for(now) > longest_s:
                    await one.relay.cancel()


def _greeting(parameters: Mapping[bytes, bytes], process: int, secret: bytes) -> bytes:
    statuses = b"".join(ParameterStatus(name, value).encode() for name, value in parameters.items())
    return statuses + BackendKeyData(process, secret).encode() + ReadyForQuery(b"I").encode()


async def _statements(stream: ClientStream, session: Session, relay: Relay) -> None:
    """Handle the client's messages one by one until it says good-bye."""
    while True:
        received = stream.connection.next_message()
        if received is None:
            await relay.drain()
            received = await stream.next()
        if isinstance(received.message, Terminate):
            return
        await session.handle(received)
