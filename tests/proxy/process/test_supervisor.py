"""The parent of several processes, where one of them dies at a bad moment: the others follow a reload all the same."""

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from planner.policy.file import Policy
from proxy.open_policy.service import Service
from proxy.process.addresses import Sockets, open_sockets
from proxy.process.reload import GenerationNotOpened
from proxy.process.supervisor import Supervisor, _make_generation
from proxy.process.worker_messages import FailedReport, ReadyReport, SharedGeneration, StopOrder, WorkerTask
from proxy.process.worker_process import WorkerProcess
from proxy.security.mock_users import MockUsers
from proxy.shadow.address import ShadowAddress
from tests.effort import PATIENCE_S
from tests.worlds.house import shop_in_duckdb

NOWHERE = ShadowAddress(directory=Path("/nowhere"), port=1)


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return Policy.load(shop_in_duckdb(tmp_path))


@pytest.fixture
def accepting() -> Iterator[Sockets]:
    with open_sockets(host="127.0.0.1", port=0, rest_port=0) as bound:
        yield bound


@pytest.mark.anyio
async def test_a_worker_that_cannot_start_has_no_vote(policy: Policy, accepting: Sockets, tmp_path: Path) -> None:
    """It cannot where the pins were replaced since, which a reload is for. Tried while it ends, and when it has."""
    shown = SharedGeneration(1, policy, "of other pins", NOWHERE)
    task = WorkerTask(
        worker=0,
        workers=1,
        generation=shown,
        accepting=accepting,
        metrics=None,
        folder=tmp_path,
        mock_users=MockUsers(),
    )
    worker = WorkerProcess(task, left=lambda: None)
    async with asyncio.timeout(PATIENCE_S):
        assert isinstance(await worker.ready, FailedReport)
        while not worker._pipe.closed:
            assert await worker.open_generation(replace(shown, number=2)) is None
        assert await worker.open_generation(replace(shown, number=3)) is None
        assert await worker.wait_for_end() == 1
    assert worker.uses == set()


@pytest.mark.anyio
async def test_what_is_taken_runs_although_all_workers_die_meanwhile(policy: Policy, accepting: Sockets) -> None:
    with Service.from_policy(policy) as service:
        catalog = service.catalog
    with tempfile.TemporaryDirectory(prefix="keyhole-") as folder:
        supervisor = Supervisor(
            policy,
            replace(catalog, digest="of other pins"),
            accepting=accepting,
            metrics=None,
            workers=1,
            folder=Path(folder),
            mock_users=MockUsers(),
        )
        try:
            supervisor._start_worker(0)
            following = _make_generation(2, policy, catalog, workers=1)
            async with asyncio.timeout(PATIENCE_S):
                await supervisor._open_in_all_workers(following)
                if supervisor._closing:
                    await asyncio.wait(supervisor._closing)
            address = following.description.shadow
            with psycopg.connect(address.make_conninfo(user="ada", database="shop")) as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
        finally:
            supervisor.close()


@pytest.mark.anyio
async def test_a_worker_that_stands_still_keeps_nobody_from_reloading(policy: Policy, accepting: Sockets) -> None:
    """What it says of a generation when that has been given up is no vote on the next one."""
    with Service.from_policy(policy) as service:
        catalog = service.catalog
    with tempfile.TemporaryDirectory(prefix="keyhole-") as folder:
        supervisor = Supervisor(
            policy,
            catalog,
            accepting=accepting,
            metrics=None,
            workers=1,
            folder=Path(folder),
            mock_users=MockUsers(),
            vote_s=2.0,
        )
        try:
            supervisor._start_worker(0)
            worker = supervisor._workers[0]
            async with asyncio.timeout(PATIENCE_S):
                assert isinstance(await worker.ready, ReadyReport)
                process = worker._process.pid
                assert process is not None
                os.kill(process, signal.SIGSTOP)
                refused = _make_generation(2, policy, replace(catalog, digest="of other pins"), workers=1)
                with pytest.raises(GenerationNotOpened) as late:
                    await supervisor._open_in_all_workers(refused)
                assert "in time" in str(late.value.why)
                os.kill(process, signal.SIGCONT)
                supervisor._vote_s = PATIENCE_S
                await supervisor._open_in_all_workers(following := _make_generation(3, policy, catalog, workers=1))
                assert supervisor._newest is following
                assert 3 in worker.uses
                worker.send_order(StopOrder())
                assert await worker.wait_for_end() == 0
                if supervisor._closing:
                    await asyncio.wait(supervisor._closing)
        finally:
            supervisor.close()
