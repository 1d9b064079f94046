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
    """SIGHUP, which is noted from now on; SIGINT and SIGTERM, which end the process at once until `hold`.

    To be used in the main thread.
    """

    def __init__(self) -> None:
        self.told_to_end = False
        self._told_to_reload = False
        signal.signal(signal.SIGHUP, self._note)

    def hold(self) -> None:
        """Note SIGINT and SIGTERM too, and go on: from here on something would be left behind."""
        for number in ENDING:
            signal.signal(number, self._note)

    def hand_over(self, *, end: asyncio.Event, reload: asyncio.Event) -> None:
        """Let the event loop that runs hear them from now on; what was noted it hears at once."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, end.set)
        loop.add_signal_handler(signal.SIGHUP, reload.set)
        if self.told_to_end:
            end.set()
        if self._told_to_reload:
            reload.set()

    @contextmanager
    def excusing(self) -> Iterator[None]:
        """Excuse the refusals of the block once the process was told to end, as others may have been told too."""
        try:
            yield
        except KeyholeError:
            if not self.told_to_end:
                raise

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if number == signal.SIGHUP:
            self._told_to_reload = True
        else:
            self.told_to_end = True


@contextmanager
def unheard_by_children() -> Iterator[None]:
    """Keep terminal signals from processes that are started in the block until they call `heard_by_parent_alone`."""
    resource_tracker.ensure_running()  # when it starts by itself it unblocks these signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _TO_ALL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def heard_by_parent_alone() -> None:
    """Leave terminal signals to the parent, which decides. Such a process calls this."""
    for number in _TO_ALL:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _TO_ALL)
