"""The operator's port: metrics for Prometheus, and whether the process is alive and ready. For loopback."""

import asyncio
from collections.abc import Mapping

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from proxy.endpoint.server import Endpoint
from proxy.observe.telemetry import GaugeReading, Telemetry
from proxy.open_policy.moved_data import DataWatch
from proxy.open_policy.service import Service
from proxy.process.generations import Generations
from proxy.rest.readiness import Readiness, count_shadow_connections, read_shadow_version

MOST_AT_ONCE = 16  # requests: a few scrapers and balancers ask, and one more gets 503, so that they hold up no session


def make_operator_server(telemetry: Telemetry, ready: Readiness) -> uvicorn.Config:
    """Return uvicorn's configuration of `/metrics`, `/healthz` and `/readyz`. They need no login."""

    async def metrics(_: Request) -> Response:
        await ready.find_missing()
        return Response(await asyncio.to_thread(telemetry.write_prometheus_text), media_type=CONTENT_TYPE_LATEST)

    async def alive(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def report_readiness(_: Request) -> Response:
        missing = await ready.find_missing()
        document = {"status": "not ready" if missing else "ready", "missing": list(missing)}
        return JSONResponse(document, status_code=503 if missing else 200)

    served = (("/metrics", metrics), ("/healthz", alive), ("/readyz", report_readiness))
    return uvicorn.Config(
        Starlette(routes=[Route(path, answer) for path, answer in served]),
        lifespan="off",
        ws="none",
        log_level="warning",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_AT_ONCE,
    )


def list_gauge_readings(
    generations: Generations, endpoint: Endpoint, ready: Readiness, watch: DataWatch
) -> tuple[GaugeReading, ...]:
    """Return the gauges that are read at each scrape."""

    def sessions() -> Mapping[str, float]:
        open_now = [one.session for one in endpoint.sessions]
        busy = sum(session.is_busy for session in open_now)
        waiting = sum(session.is_in_transaction and not session.is_busy for session in open_now)
        return {"busy": busy, "idle_in_transaction": waiting, "idle": len(open_now) - busy - waiting}

    def in_shadows() -> Mapping[str, float]:
        return {"": sum(count_shadow_connections(one.shadow) for one in generations.open)}

    def oldest_version() -> Mapping[str, float]:
        return {"": min(read_shadow_version(one.shadow) for one in generations.open)}

    def newest() -> Service:
        return generations.newest.service

    def rollups() -> Mapping[str, float]:
        return newest().source.count_rollups()

    return (
        ready.gauge,
        GaugeReading("keyhole_sessions", "Open sessions by what they do", "state", sessions),
        GaugeReading(
            "keyhole_connections", "Open connections, logged in or not", "", lambda: {"": endpoint.connections}
        ),
        GaugeReading("keyhole_shadow_connections", "The shadows' own count", "", in_shadows),
        GaugeReading("keyhole_shadow_version", "The oldest PostgreSQL that sessions are on", "", oldest_version),
        GaugeReading(
            "keyhole_generations", "Policies whose tables open sessions show", "", lambda: {"": len(generations.open)}
        ),
        GaugeReading(
            "keyhole_data_moved",
            "Tables that moved within their data version",
            "table",
            lambda: watch.find_moved_tables(newest().catalog),
        ),
        GaugeReading("keyhole_rollups", "Prepared copies of rows that count", "state", rollups),
        GaugeReading(
            "keyhole_ledger_events",
            "Events in the ledger, as last seen",
            "",
            lambda: {"": newest().ledger.known_event_count},
        ),
        GaugeReading(
            "keyhole_ledger_open_seconds",
            "How long opening the ledger took: its events since the last stored balances were read",
            "",
            lambda: {"": newest().ledger_open_s},
        ),
    )
