"""The delay of a question's outcome to moments that do not depend on any row.

A failure is reported at the policy's timeout, counted from the start of the question's turn. So is an engine that has
not stopped by then, as some engines check for an interrupt rarely, and the time until they stop depends on rows. Its
turn at the source stays taken until it has stopped, or its connection was closed as dead (`connecting.py`). With
`every_ms`, successes too are reported only at multiples of it, and the timeout is the next multiple.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from proxy.sources.failures import TIME_OVER
from proxy.sources.source_refusals import report_failed_question

_Result = TypeVar("_Result")


class PublicMoments:
    """The moments at which one question's outcome may be reported, counted from construction.

    Parameters:
        timeout_ms: the time after which reading has failed.
        every_ms: outcomes are reported only at multiples of this time. If 0, successes are reported at once.
    """

    def __init__(self, *, timeout_ms: int, every_ms: int) -> None:
        self._started = time.monotonic()
        self._timeout_s = timeout_ms / 1000
        self._every_s = every_ms / 1000
        self._deadline_s = self._round_up(timeout_ms / 1000)
        self._has_failed = False

    def is_over(self) -> bool:
        """Return True once the timeout has passed."""
        return time.monotonic() - self._started >= self._timeout_s

    def read(self, query: Callable[[], _Result], *, keeping: ExitStack) -> _Result:
        """Run `query` in its own thread, and return the result if it comes before the deadline.

        Parameters:
            keeping: the resources that the query uses. If the query misses the deadline, they are closed when it ends.

        Raises:
            KeyholeError: KH501 at the deadline. Errors of `query` before the deadline pass through.
        """
        under_way: Future[_Result] = Future()
        settle = partial(copy_context().run, _settle, under_way, query)
        threading.Thread(target=settle, name="keyhole-reading", daemon=True).start()
        wait([under_way], timeout=max(0.0, self._started + self._deadline_s - time.monotonic()))
        if under_way.done():
            self._has_failed = under_way.exception() is not None
            return under_way.result()
        self._has_failed = True
        left = keeping.pop_all()
        under_way.add_done_callback(lambda _: left.close())
        raise report_failed_question(TIME_OVER)

    @contextmanager
    def delay_release(self) -> Iterator[None]:
        """Delay the end of the block to a public moment.

        The moment is the deadline if reading failed, and otherwise the next multiple of `every_ms`.
        """
        try:
            yield
        finally:
            passed_s = time.monotonic() - self._started
            moment_s = self._deadline_s if self._has_failed else self._round_up(passed_s)
            time.sleep(max(0.0, moment_s - passed_s))

    def _round_up(self, duration_s: float) -> float:
        return math.ceil(duration_s / self._every_s) * self._every_s if self._every_s else duration_s


def _settle(under_way: "Future[_Result]", query: Callable[[], _Result]) -> None:
    try:
        result = query()
    except BaseException as error:
        under_way.set_exception(error)
    else:
        under_way.set_result(result)
