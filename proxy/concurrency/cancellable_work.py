"""One session's blocking work beside the event loop, and how its client gets out of waiting for a question.

Guarantee: a question that is withdrawn before it has reserved its budget spends nothing. One that has reserved goes on
without its client: it is committed and stays paid, and its answer is kept, so that asking again is free. The source is
never interrupted: when it stops would tell something about the data.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from threading import Event
from typing import Any, TypeVar

import structlog

from planner.errors import KeyholeError
from proxy.concurrency.cancellation import make_cancellation_error
from proxy.observe.logs import describe_exception

log = structlog.get_logger("keyhole.session")
T = TypeVar("T")


def make_internal_error() -> KeyholeError:
    """Return the error that a client gets for a bug; the cause is in the log."""
    return KeyholeError("KH900", "internal error")


class QuestionWork:
    """The work of one session's questions. One of them runs at a time, even if the client no longer waits for it."""

    def __init__(self, workers: Executor) -> None:
        self._workers = workers
        self._withdrawn: Event | None = None
        self._interrupted: asyncio.Future[None] | None = None
        self._waits = False
        self._left: set[asyncio.Future[Any]] = set()

    @contextmanager
    def register_question(self) -> Iterator[Event]:
        """Register the block as one question, and yield an event that is set once the client wants no answer."""
        self._withdrawn, self._interrupted = Event(), asyncio.get_running_loop().create_future()
        try:
            yield self._withdrawn
        finally:
            self._withdrawn = self._interrupted = None

    def withdraw(self) -> bool:
        """Withdraw the question, as the client wants no answer.

        Return True if that ends a wait for work; otherwise the shadow may be working.
        """
        if self._withdrawn is None or self._interrupted is None:
            return False
        self._withdrawn.set()
        if not self._interrupted.done():
            self._interrupted.set_result(None)
        return self._waits

    async def wait_for_earlier(self) -> None:
        """Wait for an earlier question that the client no longer waits for, since the new question may be the same.

        Raise KH409 if the new one is withdrawn meanwhile.
        """
        while self._left:
            await self._wait_until_done(next(iter(self._left)))

    async def run(self, call: Callable[[], T]) -> T:
        """Return the result of `call`.

        If the call has a bug, raise KH900 and write one line to the log. Raise KH409 if the question is withdrawn.
        """
        if self._withdrawn is not None and self._withdrawn.is_set():
            raise make_cancellation_error()
        work = self._workers.submit(call)
        running = asyncio.wrap_future(work)
        withdrawn = self._withdrawn
        try:
            await self._wait_until_done(running)
        except (KeyholeError, asyncio.CancelledError):
            if withdrawn is not None:
                withdrawn.set()
            if not work.cancel():
                self._left.add(running)
                running.add_done_callback(self._left.discard)
                running.add_done_callback(_log_unseen_bug)
            raise
        try:
            return running.result()
        except KeyholeError:
            raise
        except Exception as error:
            log.error("internal error", **describe_exception(error))
            raise make_internal_error() from None

    async def _wait_until_done(self, running: "asyncio.Future[Any]") -> None:
        """Wait for work, or until the question is withdrawn. Raise KH409 then; the work goes on."""
        ends = {running} if self._interrupted is None else {running, self._interrupted}
        self._waits = True
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waits = False
        if not running.done():
            raise make_cancellation_error()


def _log_unseen_bug(left: "asyncio.Future[Any]") -> None:
    """Log the bug that nobody waits for."""
    error = None if left.cancelled() else left.exception()
    if isinstance(error, Exception) and not isinstance(error, KeyholeError):
        log.error("internal error", **describe_exception(error))
