"""The pages about monitors: a list of those that an analyst may read, and one monitor live, by REST's event stream."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response

from proxy.console.guarded_routes import has_valid_session
from proxy.console.page import render_page
from proxy.console.parts import ConsoleParts
from proxy.monitors.alert_json import make_alert_document, make_clearing_document
from proxy.rest.middleware import HEAD
from proxy.rest.monitor_routes import MOST_ALERTS, EventPosition, open_stream


def add_monitor_pages(router: APIRouter, parts: ConsoleParts) -> None:
    """Add the pages of monitors, and their event stream, to a router."""

    @router.get("/console/monitors")
    def show_monitors(request: Request) -> Response:
        with parts.monitor_reader.use_reader() as reading:
            found = [reading.read_status(one).make_document() for one in reading.list_readable(request.state.analyst)]
        return render_page(request, "analyst/monitors.html", section="monitors", monitors=found)

    @router.get("/console/monitors/{name}")
    def show_monitor(request: Request, name: str) -> Response:
        who = request.state.analyst
        with parts.monitor_reader.use_reader() as reading:
            monitor = reading.find_readable(name, analyst=who)
            status = reading.read_status(monitor).make_document()
            read = reading.read_alert_page(monitor, analyst=who, most=MOST_ALERTS)
        told: dict[str, Any] = {
            "name": name,
            "keys": status["keys"],
            "look": read.last_look,
            "alerts": [make_alert_document(alert) for alert in read.alerts],
            "cleared": [make_clearing_document(one) for one in read.cleared],
        }
        return render_page(request, "analyst/monitor.html", section="monitors", monitor=status, told=told)

    @router.get("/console/api/monitors/{name}/events")
    async def stream_events(
        request: Request,
        name: str,
        last_event_id: Annotated[str | None, Header()] = None,
        after: str | None = None,
    ) -> Response:
        said = last_event_id if last_event_id is not None else after
        place = None if said is None else EventPosition.parse(said)
        headless = request.scope.get(HEAD, False)
        return await open_stream(
            parts.monitor_reader,
            parts.hub,
            name=name,
            analyst=request.state.analyst,
            admitted=partial(has_valid_session, parts, request),
            place=place,
            is_headless=headless,
        )
