"""The threads in which questions are answered beside the event loop, shared fairly and counted for the operator."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

from proxy.concurrency.fair_queue import FairQueue
from proxy.observe.telemetry import Telemetry

P = ParamSpec("P")
T = TypeVar("T")


class WorkerPool:
    """A pool of `threads` threads, at most half of them for one analyst. Further work waits in a fair queue.

    Work runs in its submitter's context, so that log lines know their session.
    """

    def __init__(self, threads: int, *, telemetry: Telemetry) -> None:
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="keyhole-question")
        self._line: FairQueue[Future[Any]] = FairQueue(threads)
        self._work: dict[Future[Any], Callable[[], Any]] = {}  # the work of those that wait in line
        self._changed = threading.Condition()
        self._is_shut = False
        self._busy = telemetry.workers.labels(state="busy")
        self._waiting = telemetry.workers.labels(state="waiting")

    def make_executor(self, analyst: str) -> Executor:
        """Return an executor that runs work in this pool for one analyst."""
        return _AnalystExecutor(partial(self._submit, analyst))

    def shutdown(self) -> None:
        """Take no more work, and wait until there is none."""
        with self._changed:
            self._is_shut = True
            self._changed.wait_for(lambda: self._line.is_empty)
        self._threads.shutdown()

    def _submit(self, analyst: str, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._changed:
            if self._is_shut:
                raise RuntimeError("the pool is shut")
            self._waiting.inc()
            self._work[future] = partial(copy_context().run, work)
            self._line.join(analyst, future)
            self._begin_admitted()
        # the callback must not hold the future, which holds the callback
        future.add_done_callback(partial(self._leave_if_cancelled, analyst))
        return future

    def _leave_if_cancelled(self, analyst: str, future: Future[Any]) -> None:
        if not future.cancelled():
            return
        with self._changed:
            if self._line.leave(analyst, future):
                del self._work[future]
                self._waiting.dec()
                self._changed.notify_all()

    def _begin_admitted(self) -> None:
        for analyst, future in self._line.admit():
            self._waiting.dec()
            self._busy.inc()
            self._threads.submit(self._run, analyst, future, self._work.pop(future))

    def _run(self, analyst: str, future: Future[Any], work: Callable[[], Any]) -> None:
        try:
            if future.set_running_or_notify_cancel():
                _settle(future, work)
        finally:
            with self._changed:
                self._busy.dec()
                self._line.free_place(analyst)
                self._begin_admitted()
                self._changed.notify_all()


def _settle(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        result = work()
    except BaseException as error:
        future.set_exception(error)
        del future  # the error's traceback holds this frame: with the future in it the two would keep each other
    else:
        future.set_result(result)


class _AnalystExecutor(Executor):
    def __init__(self, submit: Callable[[Callable[[], Any]], Future[Any]]) -> None:
        self._submit = submit

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._submit(partial(work, *args, **kwargs))
