"""What surrounds every HTTP request, in plain ASGI: a limit on its body, and silence about anything unforeseen."""

from collections.abc import Callable

import structlog
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = structlog.get_logger("keyhole.rest")


class Shell:
    """Around an application: bodies stay below `most_bytes`, and an exception ends here.

    Guarantee: whatever goes wrong inside, client and log learn the exception's type at most, never its text, which
    might quote data. A body that is declared or turns out to be larger is refused with 413 before it is kept.
    """

    def __init__(self, inner: ASGIApp, *, most_bytes: int, failed: Callable[[], Response]) -> None:
        self._inner = inner
        self._most_bytes = most_bytes
        self._failed = failed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI calls it."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._inner(scope, _limited(scope, receive, most_bytes=self._most_bytes), sending)
        except Exception as error:
            log.error("internal error", kind=type(error).__name__)
            if not started:
                await self._failed()(scope, receive, send)


def _limited(scope: Scope, receive: Receive, *, most_bytes: int) -> Receive:
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    seen = int(declared) if declared.isdigit() else 0
    too_large = HTTPException(413, "the request body is too large")
    if seen > most_bytes:

        async def refusing() -> Message:
            raise too_large

        return refusing
    taken = 0

    async def counting() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > most_bytes:
            raise too_large
        return message

    return counting
