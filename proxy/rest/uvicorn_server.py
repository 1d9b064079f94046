"""The configuration of uvicorn for REST: no banner, only named proxies trusted, and limits on every connection."""

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
from proxy.rest.problems import PROBLEM, make_problem
from proxy.rest.request_refusals import refuse_non_http
from proxy.rest.strict_lines import StrictLines
from proxy.rest.tls_listener import make_protocol
from proxy.security.tls import Tls


def make_config(app: Any, limits: RestSection, *, tls: Tls | None = None) -> uvicorn.Config:
    """Return uvicorn's configuration for the application. With `tls`, only TLS is served.

    X-Forwarded-For is used only from trusted proxies, and the environment variable FORWARDED_ALLOW_IPS is ignored.
    """
    connection = _make_protocol(limits)
    return uvicorn.Config(
        app,
        http=connection if tls is None else make_protocol(connection, tls=tls, limits=limits),
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


def _make_protocol(limits: RestSection) -> type["HttpConnection"]:
    """Return a connection class with these limits as class attributes, since uvicorn constructs connections itself."""

    class Limited(HttpConnection):
        own_limits = limits

    return Limited


class HttpConnection(H11Protocol):
    """A connection that is closed if a request's head arrives too slowly, or if the client does not read the response.

    If there are too many connections, close the one that has been sending a head for longest. So idle connections
    cannot keep others out. If all others have sent their heads, close the new one.
    """

    own_limits: RestSection
    _ending = False

    def __init__(self, *made_of: Any, **more: Any) -> None:
        super().__init__(*made_of, **more)
        self.conn._receive_buffer = StrictLines(self.conn)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the connection of a new client."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("HTTP needs a stream")
        super().connection_made(transport)
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        # writing is paused, and the timer runs, while anything is left that the transport could not send; asyncio's TLS
        # is paused for ever by a high mark of 0
        transport.set_write_buffer_limits(high=1, low=0)
        self._time_head()
        if crowd := self._list_candidates():
            min(crowd, key=lambda one: one.head_deadline or 0.0).close_for_newer()

    def data_received(self, data: bytes) -> None:
        """Handle received bytes. Bytes that break HTTP's rules close the connection without a log line."""
        super().data_received(data)
        self._time_head()

    def on_response_complete(self) -> None:
        """Continue after a response was sent. Part of the next request's head may have arrived already."""
        super().on_response_complete()
        self._time_head()

    def pause_writing(self) -> None:
        """Start the time limit for a client that does not read fast enough."""
        super().pause_writing()
        self._start_unread_timer()

    def resume_writing(self) -> None:
        """Stop the time limit after the client has read everything."""
        super().resume_writing()
        if not self._ending:
            self._stop_unread_timer()

    def shutdown(self) -> None:
        """Limit the whole remaining response to one reading timeout, because the server is ending."""
        self._ending = True
        super().shutdown()
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self._start_unread_timer()

    def close_for_newer(self) -> None:
        """Close the connection at once, and stop counting it."""
        self._stop_head_timer()
        self.connections.discard(self)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection."""
        self._stop_head_timer()
        self._stop_unread_timer()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Answer bytes that are not a valid request with a problem document, and close the connection."""
        fault = sys.exc_info()[1]
        status = fault.error_status_hint if isinstance(fault, h11.RemoteProtocolError) else 400
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps(make_problem(refuse_non_http(), status=status)).encode()
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
        """Run the timer while a request's head is expected, from its first byte or from the connection's start."""
        waiting = self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None
        if not waiting:
            self._stop_head_timer()
        elif self._head_timer is None:
            wait_s = self.own_limits.receive_timeout_ms / 1000
            self._head_timer = self.loop.call_later(wait_s, self.transport.abort)

    @property
    def head_deadline(self) -> float | None:
        """The time by which a request's head must arrive, by the event loop's clock, or None if no head is expected."""
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

    def _list_candidates(self) -> list["HttpConnection"]:
        """Return the connections that may be closed for this new one: itself, and those still sending a head.

        Return an empty list if there is room. If the new connection's address has more than half of all connections,
        return only connections of that address.
        """
        most = self.own_limits.connections
        found = [other for other in self.connections if isinstance(other, HttpConnection)]  # no unfinished handshakes
        if len(found) <= most:
            address = self.client[0] if self.client else ""
            if not address or _is_trusted(address, self.own_limits.trusted_proxies):
                return []
            found = [other for other in found if (other.client or ("",))[0] == address]
            most = max(1, most // 2)
        return [one for one in found if one.head_deadline is not None] if len(found) > most else []


def _is_trusted(address: str, proxies: tuple[str, ...]) -> bool:
    try:
        return any(ip_address(address) in ip_network(proxy) for proxy in proxies)
    except ValueError:
        return False
