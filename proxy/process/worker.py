"""One of several processes that serve on the same ports: its whole life, and how it does what its parent says.

It has a service of its own (connections to source and ledger, threads, counters, metrics); the ports and the shadows
are its parent's. Another generation is opened when the parent says so, and taken only when all workers have opened it.
"""

import asyncio
import multiprocessing
import shutil
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

import structlog

from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.sections import RestSection
from proxy.concurrency.signals import leave_to_parent
from proxy.endpoint.cancel_requests import SiblingWorkers
from proxy.observe.logs import describe_exception, log_to_standard_error
from proxy.observe.telemetry import Telemetry
from proxy.open_policy.pins import read_pinned_catalog
from proxy.open_policy.service import Service
from proxy.process.generations import Generation, Generations, close_generation
from proxy.process.orphan import end_with_parent
from proxy.process.reload import (
    PolicySwitch,
    RestartNeeded,
    check_source_can_open,
    describe_refusal,
    log_refusal,
    run_or_undo,
)
from proxy.process.self_watch import end_if_hung
from proxy.process.single import serve_process
from proxy.process.worker_messages import (
    FailedReport,
    OpenedReport,
    OpenOrder,
    Order,
    ReadyReport,
    ReloadOrder,
    SharedGeneration,
    StopOrder,
    TakeOrder,
    UnusedReport,
    Word,
    WorkerTask,
)
from proxy.security.tls import Tls

log = structlog.get_logger("keyhole.workers")

_END_S = 10.0  # for everything else that a worker does as it ends, as the service manager is told to grant

_DIVIDED = (
    "requests_per_minute",
    "requests_per_minute_per_address",
    "failed_logins_per_minute",
    "concurrent_requests",
    "concurrent_requests_per_analyst",
    "connections",
)


class _ParentPipe:
    """The pipe to the parent. It may be spoken into from any thread."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self._lock = threading.Lock()

    def report(self, word: Word) -> None:
        """Send a report to the parent process, unless that process has ended."""
        with self._lock, suppress(OSError):
            self.pipe.send(word)


def run_worker(task: WorkerTask, pipe: Connection) -> None:
    """Run a worker process from its start to its end."""
    parent = _ParentPipe(pipe)
    leave_to_parent()
    policy = task.generation.policy
    end_with_parent(grace_s=_estimate_longest_end_s(policy))
    log_to_standard_error(policy.server.log_level)
    structlog.contextvars.bind_contextvars(worker=task.worker)
    seen = Telemetry(log=structlog.get_logger())
    try:
        tls = Tls.open_from_policy(policy)
        service = Service.from_policy(policy, telemetry=seen, workers=task.workers)
        asyncio.run(_serve(task, parent, _make_generation(task.generation, service, parent), tls=tls))
    except KeyholeError as error:
        log.error("worker failed", code=error.code, why=error.message)
        parent.report(FailedReport(error.code, error.message))
        raise SystemExit(1) from None
    except Exception as error:
        log.error("worker failed", **describe_exception(error))
        parent.report(FailedReport("KH406", "a worker could not be started"))
        raise SystemExit(1) from None
    finally:
        started_by = multiprocessing.parent_process()
        if started_by is not None and not started_by.is_alive():  # killed, or it would have waited for this one
            shutil.rmtree(task.folder, ignore_errors=True)


def _estimate_longest_end_s(policy: Policy) -> float:
    """Return how long a worker may take to end in order: its questions wait for a turn and read, commit, and leave."""
    waits_ms = 2 * policy.limits.statement_timeout_ms + policy.server.release_every_ms + 2 * policy.ledger.timeout_ms
    return waits_ms / 1000 + _END_S


def _make_generation(shown: SharedGeneration, service: Service, parent: _ParentPipe) -> Generation:
    """Return an open service as the generation that the parent has made.

    The parent is told when the generation is closed.

    Raise RestartNeeded if the pinned data or the source's tables have changed since the parent made it.
    """
    if service.catalog.digest != shown.digest:
        service.close()
        raise RestartNeeded(("tables",))

    def close() -> None:
        try:
            service.close()
        finally:
            parent.report(UnusedReport(shown.number))

    return Generation(shown.number, service, shown.shadow, close)


async def _serve(task: WorkerTask, parent: _ParentPipe, first: Generation, *, tls: Tls | None) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    policy = task.generation.policy
    async with (
        end_if_hung(ledger_timeout_ms=policy.ledger.timeout_ms),
        Generations(first) as generations,
        serve_process(
            generations,
            accepting=task.accepting,
            tls=tls,
            limits=policy.server.limits,
            rest=divide_limits(policy.server.rest, task.workers),
            metrics=task.metrics,
            siblings=SiblingWorkers(task.worker, task.folder),
            mock_users=task.mock_users,
        ) as up,
    ):
        orders: asyncio.Queue[Order] = asyncio.Queue()
        loop.add_reader(parent.pipe.fileno(), lambda: _receive_order(parent.pipe, orders.put_nowait, stopping.set))
        taking = PolicySwitch(generations, up.endpoint, log_level=policy.server.log_level)
        obeying = asyncio.create_task(_carry_out_orders(orders, parent, generations, taking, tls=tls))
        parent.report(ReadyReport(up.addresses))
        await stopping.wait()
        loop.remove_reader(parent.pipe.fileno())
        obeying.cancel()
        await asyncio.wait({obeying})


async def _carry_out_orders(
    orders: "asyncio.Queue[Order]",
    parent: _ParentPipe,
    generations: Generations,
    taking: PolicySwitch,
    *,
    tls: Tls | None,
) -> None:
    """Carry out the parent's orders one after the other, until cancelled. Close a generation that no order took."""
    opened: tuple[Policy, Generation] | None = None
    try:
        while True:
            order = await orders.get()
            match order:
                case ReloadOrder(policy=policy):
                    if tls is not None:
                        tls.reload()
                    await _use_policy(policy, generations, taking)
                case OpenOrder(generation=shown):
                    if tls is not None:
                        tls.reload()
                    opened = await _open_generation(shown, generations, parent)
                case TakeOrder(number=number, oldest=oldest) if opened is not None and opened[1].number == number:
                    policy, generation = opened
                    opened = None
                    if oldest is None:
                        await asyncio.to_thread(close_generation, generation)
                    else:
                        taking.use_generation(policy, generation, oldest=oldest)
    finally:
        if opened is not None:
            await asyncio.to_thread(close_generation, opened[1])


async def _use_policy(policy: Policy, generations: Generations, taking: PolicySwitch) -> None:
    """Go on with another policy over the same shadow, which has its analysts already."""
    service = generations.newest.service
    try:
        catalog = await asyncio.to_thread(read_pinned_catalog, policy, service.source)
        if catalog.digest != service.catalog.digest:
            raise RestartNeeded(("tables",))
    except Exception as error:
        log_refusal(error)
        return
    taking.use_catalog(policy, catalog)


async def _open_generation(
    shown: SharedGeneration, generations: Generations, parent: _ParentPipe
) -> tuple[Policy, Generation] | None:
    newest = generations.newest

    def open_checked() -> Generation:
        check_source_can_open(newest, shown.policy)
        return _make_generation(shown, newest.service.open_successor(shown.policy), parent)

    try:
        generation = await run_or_undo(open_checked, undo=lambda generation: generation.close())
    except Exception as error:
        parent.report(OpenedReport(shown.number, describe_refusal(error)))
        return None
    parent.report(OpenedReport(shown.number, None))
    return shown.policy, generation


def _receive_order(pipe: Connection, take: Callable[[Order], None], stop: Callable[[], None]) -> None:
    try:
        message = pipe.recv()
    except (EOFError, OSError):
        message = StopOrder()  # the parent is gone
    if isinstance(message, StopOrder):
        stop()
    else:
        take(message)


def divide_limits(limits: RestSection, workers: int) -> RestSection:
    """Return one worker's part of REST's limits, rounded up."""
    return limits.model_copy(update={name: -(-getattr(limits, name) // workers) for name in _DIVIDED})
