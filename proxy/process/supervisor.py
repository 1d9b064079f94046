"""Several processes that serve on the same ports, over one shadow and one ledger, and the one that keeps them running.

The parent binds the ports, keeps the shadows, and serves nobody. Workers (`proxy/process/worker.py`) accept from the
same sockets, so anybody who is free takes the next connection, and what waits while a worker is started again is taken
by the others. A pipe tells a worker what to do; its end tells it that the parent is gone.
"""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.concurrency.signals import Signals
from proxy.observe.logs import describe_exception, log_to_standard_error
from proxy.open_policy.login_secret import read_login_secret
from proxy.open_policy.pins import read_pinned_catalog
from proxy.open_policy.service import Service
from proxy.process.addresses import Addresses, ListenAddress, Sockets
from proxy.process.announcements import announce_end, announce_start, report_alive
from proxy.process.early_data import EarlyShadowData
from proxy.process.generations import choose_oldest_kept, run_prepared_shadow
from proxy.process.own_folder import make_own_folder
from proxy.process.reload import GenerationNotOpened, PolicyInForce, log_refusal, repeat_on_event, run_or_undo
from proxy.process.self_watch import end_if_hung
from proxy.process.shadow_watch import keep_shadow_replaced
from proxy.process.worker_messages import (
    FailedReport,
    ReadyReport,
    ReloadOrder,
    SharedGeneration,
    StopOrder,
    TakeOrder,
    WorkerTask,
)
from proxy.process.worker_process import WorkerProcess
from proxy.report.analyst_shares import log_changed_shares
from proxy.security.mock_users import MockUsers
from proxy.shadow.binaries import PostgresPrograms, find_own_programs
from proxy.shadow.schema import update_roles
from proxy.sources.shared import open_policy_source

log = structlog.get_logger("keyhole.workers")

FIRST_PAUSE_S = 0.2  # before a worker that died is started again: one crash is hardly noticed
LONGEST_PAUSE_S = 10.0
"""Each pause is twice the one before, so that a worker that cannot start fills neither cores nor logs."""
STEADY_S = 60.0
"""A worker that lived so long did not die of how it starts: the next pause is the first one again."""
VOTE_S = 300.0
"""A worker that has not opened a generation by then is taken to have failed: it may be stopped."""
_LATE: dict[str, object] = {"why": "a worker did not open it in time"}


def supervise(
    policy: Policy,
    *,
    accepting: Sockets,
    metrics: ListenAddress | None,
    workers: int,
    signals: Signals,
    early: EarlyShadowData | None = None,
) -> None:
    """Serve with `workers` processes until SIGINT or SIGTERM.

    The metrics of worker i are on the i-th port from `metrics` on. Raise KeyholeError for what is wrong with the
    policy, and where a worker cannot start at first.
    """
    with Service.from_policy(
        policy
    ) as service:  # checked once, and the ledger brought to this version by one process alone
        catalog = service.catalog
    mock_users = MockUsers(read_login_secret(policy))
    signals.note_ending_signals()
    with signals.ignore_refusals_at_end(), make_own_folder() as folder:
        supervisor = Supervisor(
            policy,
            catalog,
            accepting=accepting,
            metrics=metrics,
            workers=workers,
            folder=folder,
            mock_users=mock_users,
            early=early,
        )
        try:
            asyncio.run(supervisor.run(signals))
        finally:
            supervisor.close()


@dataclass(frozen=True, slots=True)
class _StartedGeneration:
    """A generation in the form that workers receive, with its shadow, which runs until `close` is called.

    The shadow is started from `binaries` if these are the operator's own PostgreSQL programs.
    """

    description: SharedGeneration
    close: Callable[[], None]
    binaries: PostgresPrograms | None


def _make_generation(
    number: int, policy: Policy, catalog: Catalog, *, workers: int, early: EarlyShadowData | None = None
) -> _StartedGeneration:
    with ExitStack() as opened:
        limits, binaries = policy.server.limits, find_own_programs(policy)
        shadow = opened.enter_context(
            run_prepared_shadow(catalog, limits=limits, workers=workers, binaries=binaries, early=early)
        )
        return _StartedGeneration(
            SharedGeneration(number, policy, catalog.digest, shadow), opened.pop_all().close, binaries
        )


class Supervisor:
    """The event loop of the parent process, with the shadows of all generations that a worker may use."""

    def __init__(
        self,
        policy: Policy,
        catalog: Catalog,
        *,
        accepting: Sockets,
        metrics: ListenAddress | None,
        workers: int,
        folder: Path,
        mock_users: MockUsers,
        vote_s: float = VOTE_S,
        early: EarlyShadowData | None = None,
    ) -> None:
        self._accepting = accepting
        self._vote_s = vote_s
        self._metrics = metrics
        self._number = workers
        self._folder = folder
        self._mock_users = mock_users
        self._newest = _make_generation(1, policy, catalog, workers=workers, early=early)
        self._made = {1: self._newest}
        self._opening: set[int] = set()
        self._now = PolicyInForce.make_for_shadow(policy, catalog.digest, self._newest.binaries)
        self._last_number = 1
        self._workers: dict[int, WorkerProcess] = {}
        self._changing = asyncio.Lock()
        self._replacing = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self._told = asyncio.Event()
        self._again = asyncio.Event()

    async def run(self, signals: Signals) -> None:
        """Start the workers, restart those that end, and finally stop the workers and the shadows."""
        async with report_alive(), end_if_hung(ledger_timeout_ms=self._now.policy.ledger.timeout_ms):
            await self._run(signals)

    async def _run(self, signals: Signals) -> None:
        signals.hand_over_to_loop(end=self._told, reload=self._again)
        keeping: list[asyncio.Task[None]] = []
        try:
            for number in () if self._told.is_set() else range(self._number):
                self._start_worker(number)
            reports = await asyncio.gather(*(worker.ready for worker in self._workers.values()))
            if self._told.is_set():  # the workers may have been told already
                return
            ready = [_read_ready(report) for report in reports]
            keeping = [asyncio.create_task(self._keep_worker_running(number)) for number in self._workers]
            async with (
                keep_shadow_replaced(
                    lambda: self._newest.description.shadow, self._replace_lost_shadow, otherwise=self._told
                ),
                repeat_on_event(self._again, self._reload),
            ):
                announce_start(ready[0], metrics_ports=[one.metrics_port for one in ready])
                await self._told.wait()
                announce_end()
        finally:
            self._told.set()
            for worker in self._workers.values():
                worker.send_order(StopOrder())
            await asyncio.gather(*keeping)
            await asyncio.gather(*(worker.wait_for_end() for worker in self._workers.values()))
            if self._closing:
                await asyncio.wait(self._closing)
            await asyncio.to_thread(self.close)  # done while signals are still handled

    def close(self) -> None:
        """Stop the remaining shadows."""
        while self._made:
            _close_generation(self._made.popitem()[1])

    def _start_worker(self, number: int) -> None:
        place = self._metrics
        if place is not None and place.port:
            place = ListenAddress(place.host, place.port + number)
        task = WorkerTask(
            worker=number,
            workers=self._number,
            generation=self._newest.description,
            accepting=self._accepting,
            metrics=place,
            folder=self._folder,
            mock_users=self._mock_users,
        )
        self._workers[number] = WorkerProcess(task, left=self._close_unused)

    async def _keep_worker_running(self, number: int) -> None:
        """Start a worker again whenever it ends, after pauses that grow, until everything ends."""
        loop, pause_s = asyncio.get_running_loop(), FIRST_PAUSE_S
        while True:
            started, status = loop.time(), None
            if (worker := self._workers.get(number)) is not None:
                status = await worker.wait_for_end()
                del self._workers[number]
            if self._told.is_set():
                return
            pause_s = FIRST_PAUSE_S if loop.time() - started > STEADY_S else pause_s
            log.error("worker ended", worker=number, status=status, pause_s=pause_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), pause_s)
                return
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            async with self._changing:
                if self._told.is_set():
                    return
                with suppress(OSError):  # the system has no process left: it is tried again
                    self._start_worker(number)

    async def _replace_lost_shadow(self) -> None:
        """Start another shadow for the policy in force, since the newest one has ended.

        Raise the error if that fails.
        """
        async with self._replacing:
            policy = self._now.policy
            await self._open_in_all_workers(
                await run_or_undo(lambda: self._make_next_generation(policy), undo=_close_generation)
            )

    async def _reload(self) -> None:
        async with self._replacing:
            await self._reload_alone()

    async def _reload_alone(self) -> None:
        level = self._now.policy.server.log_level
        try:
            policy = Policy.load(self._now.policy.path)
            found = await run_or_undo(lambda: self._find_catalog(policy), undo=_close_if_made)
            if isinstance(found, _StartedGeneration):
                await self._open_in_all_workers(found)
        except Exception as error:
            log_refusal(error)
            return
        if isinstance(found, Catalog):
            self._now = self._now.replace_policy(policy)
            self._newest = replace(self._newest, description=replace(self._newest.description, policy=policy))
            for worker in self._workers.values():
                worker.send_order(ReloadOrder(policy))
        if policy.server.log_level != level:
            log_to_standard_error(policy.server.log_level)

    def _find_catalog(self, policy: Policy) -> Catalog | _StartedGeneration:
        """Return the catalog of a policy that the newest shadow can go on with, which has its analysts then.

        Or a new one.
        """
        self._now.check_no_restart(policy)
        with closing(open_policy_source(self._now.policy)) as source:
            catalog = self._now.find_usable_catalog(policy, source)
        if catalog is not None:
            update_roles(self._newest.description.shadow, catalog)
            log_changed_shares(self._now.policy, policy, catalog)
            return catalog
        return self._make_next_generation(policy)

    def _make_next_generation(self, policy: Policy) -> _StartedGeneration:
        with closing(open_policy_source(policy)) as source:
            catalog = read_pinned_catalog(policy, source)
        log_changed_shares(self._now.policy, policy, catalog)
        self._last_number += 1
        return _make_generation(self._last_number, policy, catalog, workers=self._number)

    async def _open_in_all_workers(self, made: _StartedGeneration) -> None:
        """Let all workers open a generation, and use it when all have.

        Raise GenerationNotOpened if one of them could not. No worker uses it then.
        """
        number = made.description.number
        self._made[number] = made
        self._opening.add(number)  # it is needed, whoever dies meanwhile
        async with self._changing:  # no worker is started meanwhile, who would know of neither
            asked = tuple(self._workers.values())
            try:
                async with asyncio.timeout(self._vote_s):
                    votes = await asyncio.gather(*(worker.open_generation(made.description) for worker in asked))
                for vote in votes:
                    if vote is not None:
                        raise GenerationNotOpened(vote)
            except TimeoutError:
                self._give_up_generation(number, asked)
                raise GenerationNotOpened(_LATE) from None
            except BaseException:
                self._give_up_generation(number, asked)
                raise
            self._opening.discard(number)
            self._newest, self._now = (
                made,
                PolicyInForce.make_for_shadow(made.description.policy, made.description.digest, made.binaries),
            )
            for worker in asked:
                worker.send_order(TakeOrder(number, oldest=choose_oldest_kept(self._made)))
        self._close_unused()

    def _give_up_generation(self, number: int, asked: tuple[WorkerProcess, ...]) -> None:
        """Give up a generation that was opened."""
        for worker in asked:
            worker.send_order(TakeOrder(number, oldest=None))
            worker.uses.discard(number)
        self._opening.discard(number)
        self._close_unused()

    def _close_unused(self) -> None:
        """Stop the shadows of generations that nobody uses any more."""
        used = self._opening.union(
            {self._newest.description.number}, *(worker.uses for worker in self._workers.values())
        )
        for number in self._made.keys() - used:
            stopping = asyncio.create_task(asyncio.to_thread(_close_generation, self._made.pop(number)))
            self._closing.add(stopping)
            stopping.add_done_callback(self._closing.discard)


def _close_generation(made: _StartedGeneration) -> None:
    try:
        made.close()
    except Exception as error:
        log.error("generation not closed", generation=made.description.number, **describe_exception(error))


def _close_if_made(found: Catalog | _StartedGeneration) -> None:
    if isinstance(found, _StartedGeneration):
        found.close()


def _read_ready(report: ReadyReport | FailedReport) -> Addresses:
    if isinstance(report, FailedReport):
        raise KeyholeError(report.code, report.message)
    return report.addresses
