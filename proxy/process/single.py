"""One process that serves: the PostgreSQL endpoint, REST and the operator's port, on one event loop.

It is the whole Keyhole, or one of several workers; where shadows and sockets come from is the caller's matter.
"""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial

import structlog

from planner.errors import KeyholeError
from planner.policy.sections import RestSection, ServerLimitsSection
from proxy.console.app import make_console
from proxy.console.ended_logins import SUFFIX
from proxy.console.play.open import open_playground
from proxy.endpoint.cancel_requests import SiblingWorkers
from proxy.endpoint.login_probe import check_login_begins, find_local_address
from proxy.endpoint.server import Endpoint
from proxy.monitors.notifications import AlertHub
from proxy.monitors.reading import CurrentMonitorReader
from proxy.monitors.runner import MonitorRunner, run_looks
from proxy.observe.telemetry import Telemetry
from proxy.open_policy.login_secret import list_secret_folders
from proxy.open_policy.moved_data import DataWatch
from proxy.open_policy.pins import find_pins_path
from proxy.open_policy.serving_folder import announce, find_serving_folder, identify_pins
from proxy.process.addresses import Addresses, ListenAddress, Sockets, open_listening_socket
from proxy.process.generations import Generations
from proxy.process.http_server import serve_http
from proxy.process.operations import list_gauge_readings, make_operator_server
from proxy.rest import uvicorn_server
from proxy.rest.app import create_app
from proxy.rest.readiness import Readiness, make_readiness
from proxy.security.failed_logins import FailedLogins
from proxy.security.mock_users import MockUsers
from proxy.security.tls import Tls
from proxy.shadow.address import ShadowAddress
from proxy.shadow.grammar import GrammarCheck
from proxy.shadow.key_labels import LabelReader

log = structlog.get_logger("keyhole.serving")

FOLLOW_EVERY_S = 0.5  # looks for new pins: how long keyhole refresh waits at least, against a look at one file
WATCH_EVERY_S = 60.0  # how late an owner hears that data moved, against statements at a busy source; set, not measured


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """A serving process: its addresses and its PostgreSQL endpoint."""

    addresses: Addresses
    endpoint: Endpoint


@asynccontextmanager
async def serve_process(
    generations: Generations,
    *,
    accepting: Sockets,
    tls: Tls | None = None,
    limits: ServerLimitsSection | None = None,
    rest: RestSection | None = None,
    metrics: ListenAddress | None = None,
    siblings: SiblingWorkers | None = None,
    mock_users: MockUsers | None = None,
    looks: bool = True,
) -> AsyncIterator[RunningProcess]:
    """Serve the newest generation until the block ends.

    `limits` apply to PostgreSQL connections, `rest` to REST. Without `metrics` there is no metrics port. With
    `siblings`, other processes accept connections on the same sockets and use the same shadows. `mock_users` makes the
    salts of unknown users. Without it each process makes its own. Without `looks`, another process runs the monitors'
    looks.
    """
    siblings, rest, mock_users = siblings or SiblingWorkers(), rest or RestSection(), mock_users or MockUsers()
    seen, newest = generations.telemetry, generations.newest
    ready = make_readiness(
        generations,
        lambda: generations.newest.shadow,
        logins=partial(check_login_begins, *find_local_address(accepting.postgresql), over_tls=tls is not None),
    )
    rest_tls = tls if tls is not None and tls.covers_rest else None
    failures = FailedLogins(rest.failed_logins_per_minute)
    labels = LabelReader(lambda: _find_shadow(generations))
    hub = AlertHub(CurrentMonitorReader(generations, labels))
    endpoint = Endpoint(
        newest.backing,
        tls=tls,
        limits=limits,
        telemetry=seen,
        siblings=siblings,
        mock_users=mock_users,
        failures=failures,
        hub=hub,
    )
    _, port = accepting.postgresql.getsockname()[:2]
    watch = DataWatch(seen)
    monitors = MonitorRunner(generations, name=f"{port}/{siblings.worker}", on_look=lambda _: hub.poll_now())
    seen.add_gauges(*list_gauge_readings(generations, endpoint, ready, watch), *monitors.gauges)
    await endpoint.start(shared=accepting.postgresql)
    stopping: asyncio.Task[None] | None = None
    try:
        async with (
            siblings.listen(endpoint.cancel),
            serve_http(
                uvicorn_server.make_config(
                    create_app(
                        generations,
                        rest,
                        ready,
                        failures=failures,
                        hub=hub,
                        grammar=GrammarCheck(lambda: _find_shadow(generations)),
                        labels=labels,
                        add_pages=make_console(
                            newest.service.policy.server.console,
                            mock_users,
                            open_playground(newest.service.policy),
                            ended=tuple(list_secret_folders(newest.service.policy, SUFFIX)),
                        ),
                    ),
                    rest,
                    tls=rest_tls,
                ),
                accepting=accepting.rest,
            ),
            _serve_metrics(seen, ready, place=metrics) as metrics_port,
            _watch_data(generations, watch),
            _follow_data_versions(generations),
            _close_hub_at_end(hub),  # before REST ends, which waits for its streams of events
            run_looks(monitors) if looks else nullcontext(),
        ):
            host, port = accepting.postgresql.getsockname()[:2]
            addresses = Addresses(
                host=host,
                port=port,
                rest_port=accepting.rest.getsockname()[1],
                database=newest.service.catalog.database,
                metrics_port=metrics_port,
                rest_scheme="http" if rest_tls is None else "https",
            )
            try:
                yield RunningProcess(addresses, endpoint)
            finally:
                # beside REST, whose last request may take long: nobody may log in meanwhile
                stopping = asyncio.create_task(endpoint.stop())
    finally:
        await (stopping or endpoint.stop())


def _find_shadow(generations: Generations) -> tuple[ShadowAddress, str]:
    newest = generations.newest
    return newest.shadow, newest.service.catalog.database


@asynccontextmanager
async def _close_hub_at_end(hub: AlertHub) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await hub.close()


@asynccontextmanager
async def _watch_data(generations: Generations, watch: DataWatch) -> AsyncIterator[None]:
    def look() -> None:
        with generations.hold_open() as service:
            watch.compare(service)

    async def look_again() -> None:
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            await asyncio.to_thread(look)

    looking = asyncio.create_task(look_again())
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.wait({looking})


@asynccontextmanager
async def _follow_data_versions(generations: Generations) -> AsyncIterator[None]:
    """Open the files of a new data version as soon as it is declared, and say so to `keyhole refresh`.

    Questions do it themselves, too: where nothing can be said, nothing but that is lost.
    """
    policy = generations.newest.service.policy
    ending = threading.Event()

    def follow() -> None:
        with ExitStack() as announcing:
            try:
                announcement = announcing.enter_context(announce(find_serving_folder(policy)))
            except OSError:
                log.warning("refreshes are not answered", path=str(find_serving_folder(policy)))
                return
            last = None
            while True:
                pins = identify_pins(find_pins_path(policy))
                if pins != last:
                    with suppress(KeyholeError, OSError), generations.hold_open() as service:
                        announcement.write(pins=pins, unread=service.follow_versions())
                        last = pins
                if ending.wait(FOLLOW_EVERY_S):
                    return

    following = threading.Thread(target=follow, name="keyhole-versions", daemon=True)
    following.start()
    try:
        yield
    finally:
        ending.set()
        await asyncio.to_thread(following.join)


@asynccontextmanager
async def _serve_metrics(
    seen: Telemetry, ready: Readiness, *, place: ListenAddress | None
) -> AsyncIterator[int | None]:
    if place is None:
        yield None
        return
    with open_listening_socket(place) as taken:
        async with serve_http(make_operator_server(seen, ready), accepting=taken):
            yield taken.getsockname()[1]
