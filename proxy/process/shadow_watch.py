"""A shadow whose server was killed or hangs is replaced by another generation.

If that cannot be, Keyhole ends with a status.

Guarantee: nobody has to notice. Sessions on the lost shadow end with it; the ledger, the source and REST go on.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog

from planner.errors import KeyholeError
from proxy.observe.logs import describe_exception
from proxy.shadow.address import ShadowAddress
from proxy.shadow.hung import end_hung_server, is_answering

log = structlog.get_logger("keyhole.shadow")

LOOK_S = 1.0  # a look costs a server process for a millisecond; a client that comes back waits no longer
HUNG_S = 15.0  # of silence at every look: a loaded machine is slow, but answers now and then; a stopped server never
MOST_FAILURES = 5  # in a row: by then something is wrong that a supervisor should see, and start Keyhole again for


def is_gone(shadow: ShadowAddress) -> bool:
    """Return True if no server listens on the shadow's socket. A server that hangs, or is full, is not gone."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(0)  # a full queue is no reason to wait
        try:
            probe.connect(shadow.socket)
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        except OSError:
            pass
    return False


class SilenceClock:
    """The time since which a shadow has not answered."""

    def __init__(self) -> None:
        self._shadow: ShadowAddress | None = None
        self._at = 0.0

    async def is_silent(self, shadow: ShadowAddress) -> bool:
        """Return True if the shadow has not answered any look for `HUNG_S`."""
        loop = asyncio.get_running_loop()
        if shadow != self._shadow or await is_answering(shadow):
            self._shadow, self._at = shadow, loop.time()
        return loop.time() - self._at >= HUNG_S


async def replace_lost_shadows(newest: Callable[[], ShadowAddress], renew: Callable[[], Awaitable[None]]) -> None:
    """Check the newest shadow again and again. If it is gone, call `renew`. If it hangs, end it first.

    Raises KH406 if that fails every time.
    """
    failures, heard = 0, SilenceClock()
    while True:
        await asyncio.sleep(LOOK_S * (1 + failures))
        shadow = newest()
        gone = await asyncio.to_thread(is_gone, shadow)
        if not gone and not await heard.is_silent(shadow):
            failures = 0
            continue
        log.error("shadow lost", why="it is gone" if gone else "it hangs")
        if not gone:
            await asyncio.to_thread(end_hung_server, shadow)
        try:
            await renew()
        except Exception as error:
            failures += 1
            log.error("shadow not replaced", **describe_exception(error))
            if failures == MOST_FAILURES:
                hint = "Look at memory and disk: its server was killed, and cannot be started any more."
                raise KeyholeError("KH406", "the shadow was lost, and cannot be replaced", hint=hint) from None


@asynccontextmanager
async def keep_shadow_replaced(
    newest: Callable[[], ShadowAddress], renew: Callable[[], Awaitable[None]], *, otherwise: asyncio.Event
) -> AsyncIterator[None]:
    """Replace lost shadows while the block runs. If that fails, set `otherwise`, on which the block should wait.

    Raises KH406 then, when the block has ended.
    """
    watching = asyncio.create_task(replace_lost_shadows(newest, renew))
    watching.add_done_callback(lambda _: otherwise.set())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait({watching})
    if not watching.cancelled():
        watching.result()
