"""The threads in which questions are answered beside the event loop, counted for the operator."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

from proxy.telemetry import Telemetry

P = ParamSpec("P")
T = TypeVar("T")


class WorkerPool(ThreadPoolExecutor):
    """At most `threads` at work; what comes meanwhile waits. Work runs in its submitter's context, so that log lines
    know their session."""

    def __init__(self, threads: int, *, telemetry: Telemetry) -> None:
        super().__init__(max_workers=threads, thread_name_prefix="keyhole-question")
        self._busy = telemetry.workers.labels(state="busy")
        self._waiting = telemetry.workers.labels(state="waiting")

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As soon as a thread is free."""
        context = copy_context()
        begun = False

        def begin() -> T:
            nonlocal begun
            begun = True
            self._waiting.dec()
            self._busy.inc()
            return context.run(work, *args, **kwargs)

        future = super().submit(begin)
        self._waiting.inc()
        future.add_done_callback(lambda _: (self._busy if begun else self._waiting).dec())
        return future
