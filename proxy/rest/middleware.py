"""The ASGI middleware around every HTTP request: limits on requests, headers on responses, and unexpected errors."""

import asyncio
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress

import structlog
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proxy.observe.logs import describe_exception
from proxy.observe.telemetry import FinishedRequest

log = structlog.get_logger("keyhole.rest")

MOST_HEAD_BYTES = 16_384  # as much as h11 reads of a head by itself; browsers' and proxies' are far shorter
MOST_BODY_BYTES = 1_000_000  # the longest text with every character escaped, by six bytes each, and room for parameters
MOST_HEADERS = 100  # several times what browsers and proxies send
DRAIN_S = 1.0  # how long the rest of a refused body is read before the answer, so that its connection can go on
MOST_FORGOTTEN_BYTES = 1 << 26  # of a refused body, read so that its sender gets to the refusal; set, not measured
CODE = "code"  # in the state of the scope: what a refusal is called
LEAVING = "keyhole.leaving"  # in the scope: what ends with the request, once its answer is sent
HEAD = "keyhole.head"  # in the scope: whether no body is sent
_ONCE = (b"host", b"authorization", b"content-type", b"idempotency-key", b"origin")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_METHODS = ("GET", "HEAD", "OPTIONS", "POST")
_HEADERS = {
    b"cache-control": b"no-store",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"x-frame-options": b"DENY",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
}
# the page of REST's requests runs scripts of its own, from this server alone
_PAGE_HEADERS = _HEADERS | {
    b"cache-control": b"no-cache",
    b"content-security-policy": b"default-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'",
}


class HttpMiddleware:
    """The middleware around an application. It limits requests, adds headers, and handles unexpected errors.

    `admitted` is a context manager around each served request, which raises if the request is not served. `refused`
    makes the response to an error raised there, and `failed` the response to unexpected errors. `pages` are the path
    prefixes of HTML pages, `paths` the paths that the log may name. `finished` is called after every request.

    Guarantee: whatever fails inside, client and log see the exception's type at most, never its text, which might quote
    data. A body that is declared or found to be larger than `most_bytes` is refused with 413 before it is stored. One
    that takes longer than `receive_timeout_ms` is refused with 408. Every response has a request id, the client's own
    if it is short and plain, and headers that keep browsers from storing or embedding it.
    """

    def __init__(
        self,
        inner: ASGIApp,
        *,
        most_bytes: int,
        receive_timeout_ms: int,
        pages: tuple[str, ...],
        paths: frozenset[str],
        admitted: Callable[[Scope], AbstractContextManager[None]],
        refused: Callable[[Exception], Response | None],
        failed: Callable[[], Response],
        finished: Callable[[FinishedRequest], None],
    ) -> None:
        self._inner = inner
        self._most_bytes = most_bytes
        self._receive_timeout_ms = receive_timeout_ms
        self._pages = pages
        self._paths = paths
        self._admitted = admitted
        self._refused = refused
        self._failed = failed
        self._finished = finished

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, by the ASGI interface."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        request = _request_id(scope)
        incoming = _IncomingBody(scope, receive, most_bytes=self._most_bytes, timeout_s=self._receive_timeout_ms / 1000)
        headers = _PAGE_HEADERS if _is_page(scope, self._pages) else _HEADERS
        outgoing = _Outgoing(send, incoming, {**headers, b"x-request-id": request.encode()}, is_head=_is_head(scope))
        state = scope.setdefault("state", {})
        with ExitStack() as leaving, structlog.contextvars.bound_contextvars(request=request):
            scope[LEAVING] = leaving
            try:
                if response := self._refuse(scope, leaving):
                    await response(scope, incoming.receive, outgoing.send)
                else:
                    await self._inner(_make_get(scope), incoming.receive, outgoing.send)
            except Exception as error:
                log.error("internal error", **describe_exception(error))
                if outgoing.status is None:
                    await self._failed()(scope, incoming.receive, outgoing.send)
            self._finished(
                FinishedRequest(
                    method=scope["method"] if scope["method"] in _METHODS else None,
                    path=scope["path"] if scope["path"] in self._paths else None,
                    status=outgoing.status,
                    analyst=state.get("analyst"),
                    code=state.get(CODE),
                )
            )

    def _refuse(self, scope: Scope, leaving: ExitStack) -> Response | None:
        try:
            _check_request_head(scope)
            leaving.enter_context(self._admitted(scope))
        except Exception as error:
            if response := self._refused(error):
                return response
            raise
        return None


class _IncomingBody:
    """The body of a request, read with limits on size and time."""

    def __init__(self, scope: Scope, receive: Receive, *, most_bytes: int, timeout_s: float) -> None:
        headers = dict(scope["headers"])
        declared = headers.get(b"content-length", b"0")
        self._declared = int(declared) if declared.isdigit() else 0
        # its sender waits for leave to send the body; or two readers would end it at different bytes
        has_two_ends = b"content-length" in headers or scope.get("http_version") == "1.0"
        self._unread = b"expect" in headers or (has_two_ends and b"transfer-encoding" in headers)
        self._most_bytes = most_bytes
        self._receive = receive
        self._timeout_s = timeout_s
        self._deadline: float | None = None
        self._taken = 0
        self.complete = self._declared == 0 and b"transfer-encoding" not in headers

    async def receive(self) -> Message:
        """Return the next ASGI message. Raise HTTPException with status 413 or 408."""
        if self._declared > self._most_bytes:
            raise HTTPException(413)
        if self.complete:
            return await self._receive()
        now = asyncio.get_running_loop().time()
        self._deadline = self._deadline or now + self._timeout_s
        try:
            message = await asyncio.wait_for(self._receive(), self._deadline - now)
        except TimeoutError:
            raise HTTPException(408) from None
        self.complete = message["type"] != "http.request" or not message.get("more_body", False)
        self._taken += len(message.get("body", b""))
        if self._taken > self._most_bytes:
            raise HTTPException(413)
        return message

    async def drain(self) -> bool:
        """Read and discard the rest of the body, if it is small. Return True if the body has then ended."""
        await self._forget(up_to_bytes=2 * self._most_bytes, for_s=DRAIN_S)
        return self.complete

    async def linger(self) -> None:
        """Read and discard the rest of the body, within the time limit for a body.

        Otherwise a client that sends the whole body before reading would see a closed connection, not the refusal.
        """
        now = asyncio.get_running_loop().time()
        left_s = self._timeout_s if self._deadline is None else self._deadline - now
        await self._forget(up_to_bytes=MOST_FORGOTTEN_BYTES, for_s=left_s)

    async def _forget(self, *, up_to_bytes: int, for_s: float) -> None:
        if self._unread and not self._taken:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(for_s):
                while not self.complete and self._taken <= up_to_bytes:
                    message = await self._receive()
                    self.complete = message["type"] != "http.request" or not message.get("more_body", False)
                    self._taken += len(message.get("body", b""))


class _Outgoing:
    """The response being sent, with the headers that every response has."""

    def __init__(self, send: Send, incoming: _IncomingBody, own: Mapping[bytes, bytes], *, is_head: bool) -> None:
        self._send = send
        self._incoming = incoming
        self._own = own
        self._head = is_head
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        """Send an ASGI message. If the request was not read to its end, close the connection after the response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = dict(self._own)
            if not await self._incoming.drain():
                own[b"connection"] = b"close"
            told = {name.lower() for name, _ in message["headers"]}
            added = [(name, value) for name, value in own.items() if name not in told]
            message = {**message, "headers": [*message["headers"], *added]}
        elif self._head:
            message = {**message, "body": b""}
        if message["type"] == "http.response.body" and not (message.get("more_body") or self._incoming.complete):
            await self._send({**message, "more_body": True})  # the connection ends with the last piece of an answer
            await self._incoming.linger()
            message = {**message, "body": b""}
        await self._send(message)


def _check_request_head(scope: Scope) -> None:
    """Raise HTTPException for a head that is too large, has repeated headers, or is of an unsupported HTTP version."""
    if scope.get("http_version", "1.1") not in ("1.0", "1.1"):
        raise HTTPException(505)
    headers = scope["headers"]
    size = sum(len(name) + len(value) for name, value in headers) + len(scope.get("query_string", b""))
    if len(headers) > MOST_HEADERS or size + len(scope.get("raw_path") or b"") > MOST_HEAD_BYTES:
        raise HTTPException(431)
    often = Counter(name for name, _ in headers)
    chunked = often[b"transfer-encoding"] > 0
    has_two_ends = chunked and (often[b"content-length"] > 0 or scope.get("http_version") == "1.0")
    if any(often[name] > 1 for name in _ONCE) or has_two_ends:
        raise HTTPException(400)


def _request_id(scope: Scope) -> str:
    """Return the client's own request id if it cannot break a header or a log line. Otherwise return a random id.

    Otherwise return a random one.
    """
    sent = dict(scope["headers"]).get(b"x-request-id", b"")
    return sent.decode("ascii") if _REQUEST_ID.fullmatch(sent) else secrets.token_hex(8)


def _is_page(scope: Scope, pages: tuple[str, ...]) -> bool:
    return any(scope["path"] == page or scope["path"].startswith(f"{page}/") for page in pages)


def _is_head(scope: Scope) -> bool:
    return str(scope["method"]) == "HEAD"


def _make_get(scope: Scope) -> Scope:
    """Return a HEAD request as a GET request. The response's body is not sent."""
    return {**scope, "method": "GET", HEAD: True} if _is_head(scope) else scope
