"""The operator's signals, before an event loop hears them and where a terminal sends them to every process."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType

from planner.errors import KeyholeError

ENDING = (signal.SIGINT, signal.SIGTERM)
_TO_ALL = (signal.SIGINT, signal.SIGHUP)  # from a terminal: to every process of its group


class Signals:
    """The operator's signals to this process. Use it in the main thread.

    SIGHUP is recorded from the beginning. SIGINT and SIGTERM end the process at once until `note_ending_signals`.
    """

    def __init__(self) -> None:
        self.must_end = False
        self._must_reload = False
        signal.signal(signal.SIGHUP, self._note)

    def note_ending_signals(self) -> None:
        """Record SIGINT and SIGTERM from now on instead of ending the process at once.

        An immediate end would leave something behind from here on.
        """
        for number in ENDING:
            signal.signal(number, self._note)

    def hand_over_to_loop(self, *, end: asyncio.Event, reload: asyncio.Event) -> None:
        """Let the running event loop handle the signals. Set `end` or `reload` at once if such a signal was noted."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, end.set)
        loop.add_signal_handler(signal.SIGHUP, reload.set)
        if self.must_end:
            end.set()
        if self._must_reload:
            reload.set()

    @contextmanager
    def ignore_refusals_at_end(self) -> Iterator[None]:
        """Ignore a KeyholeError of the block if this process is ending: the processes that it needs may have ended."""
        try:
            yield
        except KeyholeError:
            if not self.must_end:
                raise

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if number == signal.SIGHUP:
            self._must_reload = True
        else:
            self.must_end = True


@contextmanager
def hide_from_children() -> Iterator[None]:
    """Keep terminal signals from processes that are started in the block until they call `leave_to_parent`."""
    resource_tracker.ensure_running()  # when it starts by itself it unblocks these signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _TO_ALL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_to_parent() -> None:
    """Ignore terminal signals in this process, so that its parent decides."""
    for number in _TO_ALL:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _TO_ALL)
