"""`keyhole serve`: in the foreground until a signal, or beside a program of our own."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import structlog

from planner.policy.file import Policy
from planner.policy.sections import RestSection
from proxy.concurrency.signals import Signals
from proxy.observe.logs import log_to_standard_error
from proxy.observe.telemetry import Telemetry
from proxy.open_policy.login_secret import read_login_secret
from proxy.open_policy.service import Service, find_ledger_url
from proxy.process.addresses import Addresses, ListenAddress, Sockets, open_sockets
from proxy.process.announcements import announce_end, announce_start, report_alive
from proxy.process.early_data import EarlyShadowData
from proxy.process.generations import Generation, Generations, open_first_generation, run_prepared_shadow
from proxy.process.reload import PolicyReloader, repeat_on_event
from proxy.process.self_watch import end_if_hung
from proxy.process.shadow_watch import keep_shadow_replaced
from proxy.process.single import serve_process
from proxy.security.file_modes import describe_exposed_files
from proxy.security.mock_users import MockUsers
from proxy.security.tls import Tls, list_exposure_warnings
from proxy.shadow.address import ShadowAddress
from proxy.shadow.binaries import find_own_programs
from proxy.shadow.wheel import describe_older_release

log = structlog.get_logger("keyhole.serving")


def serve_in_foreground(
    policy_path: Path,
    *,
    host: str | None,
    port: int | None,
    rest_port: int | None,
    metrics_host: str | None = None,
    metrics_port: int | None = None,
    workers: int | None = None,
    signals: Signals,
    early: EarlyShadowData | None,
) -> None:
    """Serve in the foreground until SIGINT or SIGTERM. SIGHUP makes it read the policy again.

    The first shadow uses the `early` data if there are any. Raise KeyholeError for a faulty policy.
    """
    if signals.must_end:
        return
    policy = Policy.load(policy_path)
    log_to_standard_error(policy.server.log_level)
    log.info("starting", policy=policy_path.name)
    section, tls = policy.server, Tls.open_from_policy(policy)
    exposed = (
        *describe_exposed_files(policy, ledger=find_ledger_url(policy)),
        *describe_older_release(find_own_programs(policy)),
    )
    for warning in (*list_exposure_warnings(host or section.host, tls, now=datetime.now(UTC)), *exposed):
        log.warning("exposed", what=warning)
    wanted = section.metrics_port if metrics_port is None else metrics_port
    metrics = None if wanted is None else ListenAddress(metrics_host or section.metrics_host, wanted)
    with open_sockets(
        host=section.host if host is None else host,
        port=section.port if port is None else port,
        rest_port=section.rest_port if rest_port is None else rest_port,
    ) as accepting:
        count = section.workers if workers is None else workers
        if count > 1:
            from proxy.process.supervisor import supervise

            supervise(policy, accepting=accepting, metrics=metrics, workers=count, signals=signals, early=early)
        else:
            _serve_in_one_process(policy, accepting=accepting, tls=tls, metrics=metrics, signals=signals, early=early)


@contextmanager
def serve_in_background(
    service: Service,
    *,
    host: str,
    port: int,
    rest_port: int,
    tls: Tls | None = None,
    rest: RestSection | None = None,
    metrics: ListenAddress | None = None,
    looks: bool = True,
) -> Iterator[Addresses]:
    """Serve from a separate thread while the block runs, for the demo, benchmarks and tests.

    Without `looks` the caller's block runs the monitors.
    """
    started: Future[Addresses] = Future()
    stop = threading.Event()

    async def serve(shadow: ShadowAddress, accepting: Sockets) -> None:
        try:
            async with (
                Generations(Generation.lend(service, shadow)) as generations,
                serve_process(generations, accepting=accepting, tls=tls, rest=rest, metrics=metrics, looks=looks) as up,
            ):
                started.set_result(up.addresses)
                await asyncio.to_thread(stop.wait)
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    with (
        run_prepared_shadow(service.catalog) as shadow,
        open_sockets(host=host, port=port, rest_port=rest_port) as accepting,
    ):
        thread = threading.Thread(target=lambda: asyncio.run(serve(shadow, accepting)), name="keyhole-serving")
        thread.start()
        try:
            yield started.result()
        finally:
            stop.set()
            thread.join()


def _serve_in_one_process(
    policy: Policy,
    *,
    accepting: Sockets,
    tls: Tls | None,
    metrics: ListenAddress | None,
    signals: Signals,
    early: EarlyShadowData | None,
) -> None:
    service = Service.from_policy(policy, telemetry=Telemetry(log=structlog.get_logger()))
    mock_users = MockUsers(read_login_secret(policy))
    signals.note_ending_signals()
    with signals.ignore_refusals_at_end():
        first = open_first_generation(service, policy, early=early)
        asyncio.run(
            _serve_until_signal(
                first,
                policy=policy,
                accepting=accepting,
                tls=tls,
                metrics=metrics,
                mock_users=mock_users,
                signals=signals,
            )
        )


async def _serve_until_signal(
    first: Generation,
    *,
    policy: Policy,
    accepting: Sockets,
    tls: Tls | None,
    metrics: ListenAddress | None,
    mock_users: MockUsers,
    signals: Signals,
) -> None:
    told, again = asyncio.Event(), asyncio.Event()
    signals.hand_over_to_loop(end=told, reload=again)
    async with AsyncExitStack() as opened:
        await opened.enter_async_context(report_alive())
        await opened.enter_async_context(end_if_hung(ledger_timeout_ms=policy.ledger.timeout_ms))
        generations = await opened.enter_async_context(Generations(first))
        if told.is_set():
            return
        up = await opened.enter_async_context(
            serve_process(
                generations,
                accepting=accepting,
                tls=tls,
                limits=policy.server.limits,
                rest=policy.server.rest,
                metrics=metrics,
                mock_users=mock_users,
            )
        )
        reloading = PolicyReloader(generations, up.endpoint, policy=policy)

        async def reload() -> None:
            if tls is not None:
                tls.reload()
            await reloading.reload_policy()

        async with (
            keep_shadow_replaced(lambda: generations.newest.shadow, reloading.replace_lost_generation, otherwise=told),
            repeat_on_event(again, reload),
        ):
            announce_start(up.addresses, metrics_ports=(up.addresses.metrics_port,))
            await told.wait()
            announce_end()
