"""A process that can do nothing any more ends itself, so that anybody who started it starts another.

Guarantee: a process whose event loop has not turned for `HUNG_S` is ended by the kernel with SIGALRM, even where a
thread holds the interpreter's lock in a call that does not return; one whose ledger's file system has not answered for
`STALLED_S` longer than anybody waits for the ledger ends with status 1. What was reserved stays spent, and nothing is
told that is not committed. A process in a call that the kernel itself does not give up ends when that returns.
"""

import asyncio
import faulthandler
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from io import UnsupportedOperation

import structlog

from accountant.store.file_calls import measure_longest_call

log = structlog.get_logger("keyhole.serving")

HUNG_S = 60.0
"""As long as the service manager waits in `deploy/systemd`: sessions of everybody against those that hang. On a loaded
machine a million keys hold the interpreter's lock for seconds."""
STALLED_S = 30.0
"""A network's file system that changes servers is back by then; meanwhile only who is in such a call waits, others are
told KH502."""
BEAT_S = 2.0  # how late a file system that hangs is noticed, against work while nothing happens
_TELL_S = 1.0  # from the list of where every thread stands to the end


@asynccontextmanager
async def end_if_hung(
    *,
    ledger_timeout_ms: int,
    hung_s: float = HUNG_S,
    stalled_s: float = STALLED_S,
    beat_s: float = BEAT_S,
    stalled_for_s: Callable[[], float] = measure_longest_call,
) -> AsyncIterator[None]:
    """End this process if its event loop or the ledger's file system hangs while the block runs.

    Use it once, in the main thread.
    """
    allowed_s = ledger_timeout_ms / 1000 + stalled_s

    async def beat() -> None:
        while True:
            signal.setitimer(signal.ITIMER_REAL, hung_s)  # nobody handles it: the kernel needs no help to end us
            _dump_stacks_after(max(hung_s - _TELL_S, hung_s / 2))
            if stalled_for_s() > allowed_s:
                log.error("the ledger's file system hangs")
                os._exit(1)  # in order it would wait for the thread that hangs
            await asyncio.sleep(beat_s)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait({beating})
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()


def _dump_stacks_after(seconds: float) -> None:
    """Have every thread's line of code written to standard error then, by a thread that needs no interpreter."""
    with suppress(ValueError, UnsupportedOperation):  # standard error is closed, or no file
        if sys.__stderr__ is not None:
            faulthandler.dump_traceback_later(seconds, file=sys.__stderr__)
