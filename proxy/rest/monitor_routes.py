"""The REST routes of monitors: the list, their alerts, and a stream of server-sent events.

An event's id is a position in the stream: `7` is after all events of look 7, and `7.2` after its second event. A reader
that reconnects with the last id misses nothing and gets nothing twice.
"""

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, FastAPI, Header, Query, Request, Response
from starlette.responses import StreamingResponse

from accountant.monitor_model import MonitorState
from planner.errors import KeyholeError
from proxy.monitors.alert_json import make_alert_document, make_clearing_document
from proxy.monitors.notifications import AlertHub, MonitorNews, NewsRequest
from proxy.monitors.reading import CurrentMonitorReader
from proxy.rest.middleware import HEAD
from proxy.rest.models import AlertsOut, MonitorOut, MonitorsOut
from proxy.rest.problems import READING
from proxy.rest.request_refusals import refuse_unknown_event
from proxy.rest.responses import describe_problems

EVENTS = "/v1/monitors/{name}/events"
MOST_ALERTS = 10_000  # of one page, which is held whole while it is sent
COMMENT_EVERY_S = 15.0  # proxies give up what is silent for longer: what the standard of these events advises
STREAM = "text/event-stream"
_PLACE = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?")
_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            STREAM: {"schema": {"type": "string", "description": "events alert, cleared, look, closed, paused, ended"}}
        }
    },
    204: {"description": "the monitor has ended, and nothing more will come"},
}

LetIn: TypeAlias = Callable[..., Awaitable[str]]
Admission: TypeAlias = Callable[[], bool]
"""A test of whether an analyst who was let in would still be. It is made on the loop, and raises nothing."""
After = Annotated[int, Query(ge=0, le=2**31, description="the number of a look: only what came after it")]
Most = Annotated[
    int,
    Query(
        ge=1,
        le=MOST_ALERTS,
        description="about so many changes: those of a look come together",
    ),
]


@dataclass(frozen=True, slots=True)
class EventPosition:
    """A position in the stream: after all events up to `look`, and after `events` events of the next look."""

    look: int
    events: int = 0

    @staticmethod
    def parse(text: str) -> "EventPosition":
        """Parse a position from an event's id. Raise KH408 if the id is malformed."""
        match = _PLACE.fullmatch(text.strip())
        if match is None:
            raise refuse_unknown_event()
        look, events = int(match[1]), int(match[2] or 0)
        return EventPosition(look - 1, events) if events else EventPosition(look)


def add_monitor_routes(
    app: FastAPI,
    readings: CurrentMonitorReader,
    hub: AlertHub,
    analyst: LetIn,
    *,
    admission_of: Callable[[Request], Admission],
) -> None:
    """Add the routes below /v1/monitors.

    `analyst` is the dependency that returns the logged-in analyst. `admission_of` returns a function that checks if a
    request's token is still valid.
    """

    @app.get("/v1/monitors", response_model=MonitorsOut, responses=describe_problems(*READING, 400))
    def list_monitors(who: Annotated[str, Depends(analyst)]) -> dict[str, Any]:
        """List the monitors that you may read: their progress, and their promises. Spends nothing."""
        with readings.use_reader() as reading:
            return {"monitors": [reading.read_status(one).make_document() for one in reading.list_readable(who)]}

    @app.get("/v1/monitors/{name}", response_model=MonitorOut, responses=describe_problems(*READING, 400, 404))
    def show_monitor(name: str, who: Annotated[str, Depends(analyst)]) -> dict[str, Any]:
        """Show one monitor: its progress, and its promise. Spends nothing."""
        with readings.use_reader() as reading:
            return reading.read_status(reading.find_readable(name, analyst=who)).make_document()

    @app.get(
        "/v1/monitors/{name}/alerts", response_model=AlertsOut, responses=describe_problems(*READING, 400, 403, 404)
    )
    def list_alerts(
        name: str, who: Annotated[str, Depends(analyst)], after: After = 0, page_size: Most = 1_000
    ) -> dict[str, Any]:
        """List the alerts and clearings of a monitor after a look, in whole looks.

        The first reading counts towards your own cap.
        """
        with readings.use_reader() as reading:
            read = reading.read_alert_page(
                reading.find_readable(name, analyst=who), analyst=who, after=after, most=page_size
            )
            return {
                "alerts": [make_alert_document(alert) for alert in read.alerts],
                "cleared": [make_clearing_document(one) for one in read.cleared],
                "look": read.last_look,
                "next": read.last_look if read.has_more else None,
            }

    @app.get(EVENTS, responses=_STREAMED | describe_problems(*READING, 400, 403, 404))
    async def stream_events(
        request: Request,
        name: str,
        who: Annotated[str, Depends(analyst)],
        last_event_id: Annotated[str | None, Header(description="where to go on; without it, from now on")] = None,
    ) -> Response:
        """Stream the monitor's alerts from now on, as they happen, as server-sent events. Counts as reading it."""
        place = None if last_event_id is None else EventPosition.parse(last_event_id)
        headless = request.scope.get(HEAD, False)
        return await open_stream(
            readings, hub, name=name, analyst=who, admitted=admission_of(request), place=place, is_headless=headless
        )


async def open_stream(
    readings: CurrentMonitorReader,
    hub: AlertHub,
    *,
    name: str,
    analyst: str,
    admitted: Admission,
    place: EventPosition | None,
    is_headless: bool = False,
) -> Response:
    """Return the response that streams a monitor's events to one reader, from `place` on, or from now on.

    `is_headless` is True for a HEAD request, which gets no events. The stream ends once `admitted` returns false.
    Raise KH605 if the analyst may not read the monitor, and KH502 if the ledger is not available.
    """

    def begin() -> tuple[int, str]:
        with readings.use_reader() as reading:
            monitor = reading.find_readable(name, analyst=analyst)
            return reading.begin_reading(monitor, analyst=analyst), reading.read_status(monitor).state

    last, state = await asyncio.to_thread(begin)
    if is_headless:
        return Response(media_type=STREAM)
    if state == MonitorState.ENDED and place is not None and place.look >= last:
        return Response(status_code=204)  # which tells a browser not to come again
    begun = place or EventPosition(last)
    wanted = NewsRequest(name, analyst, begun.look)
    stream = _Stream(hub, wanted, admitted, skipped=begun.events, state="" if place is None else state)
    return StreamingResponse(stream.stream_events(), media_type=STREAM, headers={"X-Accel-Buffering": "no"})


class _Stream:
    """The stream of events to one reader.

    Between two pieces, only the position is in memory. Further events are read after the reader has received the last
    piece.

    `skipped` is the number of events of the first look that were already sent. `state` is the monitor's state as last
    sent, if any. `admitted` is checked each time the ledger is read, before anything is sent.
    """

    def __init__(self, hub: AlertHub, wanted: NewsRequest, admitted: Admission, *, skipped: int, state: str) -> None:
        self._hub = hub
        self._wanted = wanted
        self._admitted = admitted
        self._skipped = skipped
        self._state = state
        self._origin: int | None = None

    async def stream_events(self) -> AsyncIterator[str]:
        """Yield the stream as text, one piece each time the ledger has new events."""
        yield ": what the monitor tells from now on\n\n"
        closing = asyncio.create_task(self._hub.closing.wait())
        try:
            while not closing.done():
                news = asyncio.create_task(self._wait_for_news())
                try:
                    await asyncio.wait({news, closing}, timeout=COMMENT_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not news.done():
                        news.cancel()
                        await asyncio.wait({news})
                if closing.done():
                    return
                if news.cancelled():
                    if not self._admitted():  # the ledger may have been silent all the while
                        return
                    yield ":\n\n"
                    continue
                told = news.result()
                if told is None:
                    return
                text = "".join(self._write_events(told))
                if text:
                    yield text
                if told.state == MonitorState.ENDED:
                    return
        finally:
            closing.cancel()

    async def _wait_for_news(self) -> MonitorNews | None:
        """Wait for new events, and return them.

        Return None if the stream ends: after a reload, if the reader may no longer read the monitor, or if the position
        is lost.
        """
        found: asyncio.Future[MonitorNews | None] = asyncio.get_running_loop().create_future()

        def take(news: MonitorNews | KeyholeError | None) -> None:
            if found.done():
                return
            if not self._admitted():
                found.set_result(None)
                return
            if news is None:
                return
            if isinstance(news, KeyholeError):
                found.set_result(None)
                return
            if self._origin is None:
                self._origin = news.policy_number
            if news.policy_number != self._origin:
                found.set_result(None)
            elif self._wanted.after != news.last_look or news.state != self._state:
                found.set_result(news)

        stop = self._hub.subscribe(self._wanted, take)
        try:
            return await found
        finally:
            stop()

    def _write_events(self, news: MonitorNews) -> Iterator[str]:
        by_look: defaultdict[int, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        for alert in news.alerts:
            by_look[alert.number].append(("alert", make_alert_document(alert)))
        for gone in news.cleared:
            by_look[gone.number].append(("cleared", make_clearing_document(gone)))
        for window in news.closed_windows:
            closed = {"monitor": news.monitor, "window": window.start.isoformat(), "look": window.number}
            by_look[window.number].append(("closed", closed))
        after = self._wanted.after or 0
        if news.last_look > after:
            by_look.setdefault(news.last_look, [])
        for look in sorted(by_look):
            for place, (kind, told) in enumerate(by_look[look], start=1):
                if place > self._skipped:
                    yield _write_event(kind, told, id_=f"{look}.{place}")
            self._skipped = 0
            yield _write_event("look", {"monitor": news.monitor, "look": look}, id_=str(look))
        if news.state != self._state and news.state in (MonitorState.PAUSED, MonitorState.ENDED):
            told = {"monitor": news.monitor, "state": news.state, "reason": news.reason}
            yield _write_event(news.state, told, id_=str(news.last_look))
        self._state = news.state
        self._wanted = NewsRequest(self._wanted.monitor, self._wanted.analyst, news.last_look)


def _write_event(kind: str, told: dict[str, Any], *, id_: str) -> str:
    return f"id: {id_}\nevent: {kind}\ndata: {json.dumps(told)}\n\n"
