"""uvicorn as REST needs it: no banner, no proxy believed that is not named, no connection that is held for ever."""

import asyncio
import json
import sys
from ipaddress import ip_address, ip_network
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from planner.policy.sections import RestSection
from proxy.rest.middleware import MOST_HEAD_BYTES
from proxy.rest.problems import PROBLEM, problem
from proxy.rest.request_refusals import no_http
from proxy.rest.strict_lines import StrictLines
from proxy.rest.tls_listener import door
from proxy.security.tls import Tls


def config(app: Any, limits: RestSection, *, tls: Tls | None = None) -> uvicorn.Config:
    """Return uvicorn's configuration of the application; over TLS alone if there is `tls`.

    X-Forwarded-For is heard from the trusted proxies alone, and never from the environment's FORWARDED_ALLOW_IPS.
    """
    connection = _protocol(limits)
    return uvicorn.Config(
        app,
        http=connection if tls is None else door(connection, tls=tls, limits=limits),
        ws="none",
        lifespan="off",
        log_level="warning",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(limits.trusted_proxies),
        forwarded_allow_ips=list(limits.trusted_proxies),
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        timeout_keep_alive=limits.keep_alive_s,
    )


def _protocol(limits: RestSection) -> type["HttpConnection"]:
    """Return a class of connections: uvicorn makes them itself, so their parameters stand in their class."""

    class Limited(HttpConnection):
        own_limits = limits

    return Limited


class HttpConnection(H11Protocol):
    """A connection that is closed when a request's head takes too long, or when its client does not read its answer.

    Where it is one too many, the one that has been sending a head for longest makes place for it, so that anybody who
    opens connections and says nothing keeps nobody out; where all have sent one, it is closed itself.
    """

    own_limits: RestSection
    _ending = False

    def __init__(self, *made_of: Any, **more: Any) -> None:
        super().__init__(*made_of, **more)
        self.conn._receive_buffer = StrictLines(self.conn)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start a connection of a client."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("HTTP needs a stream")
        super().connection_made(transport)
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        # writing is paused, and the timer runs, while anything is left that the transport could not send; asyncio's TLS
        # is paused for ever by a high mark of 0
        transport.set_write_buffer_limits(high=1, low=0)
        self._time_head()
        if crowd := self._crowd():
            min(crowd, key=lambda one: one.head_until or 0.0).give_way()

    def data_received(self, data: bytes) -> None:
        """Take bytes that have come. Bytes that break HTTP's rules end the connection without a word to the log."""
        super().data_received(data)
        self._time_head()

    def on_response_complete(self) -> None:
        """Go on after a sent answer; a part of the next request's head may be here already."""
        super().on_response_complete()
        self._time_head()

    def pause_writing(self) -> None:
        """Note that the client does not read as fast as it is written to."""
        super().pause_writing()
        self._start_unread_timer()

    def resume_writing(self) -> None:
        """Note that the client has read everything."""
        super().resume_writing()
        if not self._ending:
            self._stop_unread_timer()

    def shutdown(self) -> None:
        """Give the client its time to read once, not for each piece of a long answer, as the server ends."""
        self._ending = True
        super().shutdown()
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self._start_unread_timer()

    def give_way(self) -> None:
        """Be closed at once, and count no more."""
        self._stop_head_timer()
        self.connections.discard(self)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection."""
        self._stop_head_timer()
        self._stop_unread_timer()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse what is no request, as a problem document, and close."""
        fault = sys.exc_info()[1]
        status = fault.error_status_hint if isinstance(fault, h11.RemoteProtocolError) else 400
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps(problem(no_http(), status=status)).encode()
            headers = [
                (b"content-type", PROBLEM.encode()),
                (b"content-length", str(len(body)).encode()),
                (b"cache-control", b"no-store"),
                (b"connection", b"close"),
            ]
            for event in (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _time_head(self) -> None:
        """Let the timer run while a request's head is expected, from the first byte on (or from the beginning)."""
        waiting = self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None
        if not waiting:
            self._stop_head_timer()
        elif self._head_timer is None:
            wait_s = self.own_limits.receive_timeout_ms / 1000
            self._head_timer = self.loop.call_later(wait_s, self.transport.abort)

    @property
    def head_until(self) -> float | None:
        """When the head of a request must have come, in the loop's time; None where none is expected."""
        return None if self._head_timer is None else self._head_timer.when()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _start_unread_timer(self) -> None:
        if self._unread_timer is None:
            wait_s = self.own_limits.send_timeout_ms / 1000
            self._unread_timer = self.loop.call_later(wait_s, self.transport.abort)

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _crowd(self) -> list["HttpConnection"]:
        """Return the connections of which one has to go because this one has come: it, and those sending a head.

        Return None if there is room.

        They are of its address where that has more than half of all connections.
        """
        most = self.own_limits.connections
        found = [other for other in self.connections if isinstance(other, HttpConnection)]  # no unfinished handshakes
        if len(found) <= most:
            address = self.client[0] if self.client else ""
            if not address or _is_trusted(address, self.own_limits.trusted_proxies):
                return []
            found = [other for other in found if (other.client or ("",))[0] == address]
            most = max(1, most // 2)
        return [one for one in found if one.head_until is not None] if len(found) > most else []


def _is_trusted(address: str, proxies: tuple[str, ...]) -> bool:
    try:
        return any(ip_address(address) in ip_network(proxy) for proxy in proxies)
    except ValueError:
        return False
