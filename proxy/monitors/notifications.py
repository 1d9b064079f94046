"""The delivery of monitors' news to waiting clients. Each process reads the ledger regularly while a client waits.

A look is news once the ledger has it, whichever process recorded it. Every process therefore reads the ledger. The
process that recorded the look reads it at once.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

import structlog

from planner.errors import KeyholeError
from proxy.observe.logs import describe_exception

log = structlog.get_logger("keyhole.monitors")

POLL_EVERY_S = 1.0  # how late another process hears of a look, against one short read of the ledger; set, not measured


@dataclass(frozen=True, slots=True)
class AlertNotice:
    """An alert for one key, raised by a monitor's look `number`. Everything in it was released.

    `key` has the names of the question's keys with their values, as PostgreSQL's text; None is NULL. Times are in UTC.
    If the monitor clears at once, there is no window. `cleared_at` is when the alert was cleared, if it was.
    """

    monitor: str
    number: int
    key: tuple[tuple[str, str | None], ...]
    window_start: datetime | None
    alerted_at: datetime
    window_closes: datetime | None
    cleared_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ClearingNotice:
    """The clearing of an alert: a key that left a monitor's answer at the look `number`.

    It had entered at `alerted_at`.
    """

    monitor: str
    number: int
    key: tuple[tuple[str, str | None], ...]
    alerted_at: datetime
    cleared_at: datetime


Change: TypeAlias = AlertNotice | ClearingNotice


@dataclass(frozen=True, slots=True)
class ClosedWindow:
    """A window that closed with the look `number`. `start` is when the window began."""

    number: int
    start: datetime


@dataclass(frozen=True, slots=True)
class MonitorNews:
    """The news of a monitor: the changes of all looks up to `last_look`, in order.

    `state` is the monitor's state. `policy_number` identifies the policy under which the news was read; another policy
    has another number.
    """

    monitor: str
    state: str
    reason: str
    last_look: int
    policy_number: int
    alerts: tuple[AlertNotice, ...] = ()
    cleared: tuple[ClearingNotice, ...] = ()
    closed_windows: tuple[ClosedWindow, ...] = ()

    @property
    def changes(self) -> tuple[Change, ...]:
        """The alerts and clearings."""
        return sort_by_look(self.alerts, self.cleared)


def sort_by_look(alerts: Collection[AlertNotice], cleared: Collection[ClearingNotice]) -> tuple[Change, ...]:
    """Return alerts and clearings, sorted by look. Within one look, alerts come first."""
    both: list[Change] = [*alerts, *cleared]
    return tuple(sorted(both, key=lambda change: change.number))


@dataclass(frozen=True, slots=True)
class NewsRequest:
    """A request of `analyst` for the news of `monitor` after the look `after`.

    If `after` is None, only looks after the next reading of the ledger are news.
    """

    monitor: str
    analyst: str
    after: int | None


@dataclass(frozen=True, slots=True)
class AdmittedMonitor:
    """A monitor that an analyst may read and has paid for.

    `last_look` is the number of its last look at that moment, or None if unknown.
    """

    monitor: str
    last_look: int | None


class NewsReader(Protocol):
    """A reader of monitors' news from the ledger. Both methods block, and may be called from any thread."""

    def admit_channel(self, channel: str, *, analyst: str) -> AdmittedMonitor | None:
        """Return the monitor that has this channel, if the analyst may read it, and charge the analyst for reading.

        Return None for any other channel. Raise KH306 if the analyst's own cap does not cover it, and KH502 if the
        ledger is not available.
        """

    def read_news(self, wanted: Collection[NewsRequest]) -> Mapping[NewsRequest, MonitorNews | KeyholeError]:
        """Return the news for each request, or the error if the analyst may not read the monitor.

        A monitor that does not exist has no news.
        """


NewsCallback: TypeAlias = Callable[[MonitorNews | KeyholeError | None], None]


class NewsListener:
    """A client that waits for a monitor's news.

    `on_news` is called on the event loop with the news, or with the error after which there is no more news. It is
    called with None after each reading of the ledger that found nothing.
    """

    def __init__(self, wanted: NewsRequest, on_news: NewsCallback) -> None:
        self.wanted = wanted
        self.on_news = on_news

    def deliver_news(self, news: MonitorNews | KeyholeError | None) -> None:
        """Call `on_news` with the result of a reading of the ledger.

        For a request without `after`, the first result only sets the look after which news begins, and is not passed
        on.
        """
        if isinstance(news, MonitorNews):
            begins = self.wanted.after is None
            self.wanted = NewsRequest(self.wanted.monitor, self.wanted.analyst, news.last_look)
            if begins:
                return
        self.on_news(news)


class AlertHub:
    """The clients of one process that wait for news. It belongs to one event loop.

    Close it before the loop ends. `closing` is set once no more news is sent. Other threads may only call `poll_now`.
    """

    def __init__(self, desk: NewsReader, *, every_s: float = POLL_EVERY_S) -> None:
        self.desk = desk
        self._every_s = every_s
        self._waiting: set[NewsListener] = set()
        self._polling: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failing = False
        self.closing = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def subscribe(self, wanted: NewsRequest, on_news: NewsCallback) -> Callable[[], None]:
        """Send news to the callback `on_news` from now on. Return a function that ends the subscription."""
        if self.closing.is_set():
            return lambda: None
        self._loop = asyncio.get_running_loop()
        waiting = NewsListener(wanted, on_news)
        self._waiting.add(waiting)
        self._woken.set()
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll())
        return lambda: self._waiting.discard(waiting)

    def poll_now(self) -> None:
        """Read the ledger at once, because a look was just recorded. Any thread may call this."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    async def close(self) -> None:
        """Stop sending news, and set `closing`."""
        self.closing.set()
        self._waiting.clear()
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.wait({self._polling})

    async def _poll(self) -> None:
        while self._waiting:
            self._woken.clear()
            await self._pass_on_news()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), self._every_s)
        self._polling = None

    async def _pass_on_news(self) -> None:
        wanted = {waiting.wanted for waiting in self._waiting}
        try:
            found = await asyncio.to_thread(self.desk.read_news, wanted)
        except Exception as error:
            if not self._failing:  # said once: it is asked again every second
                log.warning("monitors could not be read", **describe_exception(error))
            self._failing = True
            return
        self._failing = False
        for waiting in tuple(self._waiting):
            news = found.get(waiting.wanted)
            if isinstance(news, KeyholeError):
                self._waiting.discard(waiting)
            waiting.deliver_news(news)
