"""A worker's process as its parent sees it: started, told what to do, heard, waited for."""

import asyncio
import multiprocessing
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.context import SpawnProcess

from proxy.concurrency.signals import hide_from_children
from proxy.process.worker_messages import (
    FailedReport,
    OpenedReport,
    OpenOrder,
    Order,
    ReadyReport,
    SharedGeneration,
    UnusedReport,
    Word,
    WorkerTask,
)
from proxy.process.worker_start import GarbageCollectionOff, begin_worker

_DIED: dict[str, object] = {"why": "a worker died while it opened it"}


class WorkerProcess:
    """A worker process as its parent sees it.

    `ready` is the future result of its start. `uses` are the generations on whose shadows the worker may have sessions.
    `left` is called whenever `uses` loses one.
    """

    def __init__(self, task: WorkerTask, *, left: Callable[[], None]) -> None:
        context = multiprocessing.get_context("spawn")  # no threads and no event loop of the parent's come along
        self._pipe, theirs = context.Pipe()
        given = (GarbageCollectionOff(), task, theirs)
        self._process: SpawnProcess = context.Process(target=begin_worker, args=given, daemon=True)
        with hide_from_children():
            self._process.start()
        theirs.close()
        self._left = left
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._pipe.fileno(), self._receive_report)
        self._vote: asyncio.Future[dict[str, object] | None] = self._loop.create_future()
        self._asked = 0
        self.ready: asyncio.Future[ReadyReport | FailedReport] = self._loop.create_future()
        self.uses = {task.generation.number}

    def send_order(self, order: Order) -> None:
        """Send the worker an order. Do nothing if it has ended."""
        with suppress(OSError):
            self._pipe.send(order)

    async def open_generation(self, shown: SharedGeneration) -> dict[str, object] | None:
        """Order the worker to open a generation. Return the reason if it cannot, or None if it has opened it.

        Also return None if the worker dies before it has ever served.
        """
        self._vote, self._asked = self._loop.create_future(), shown.number
        if self._pipe.closed:  # it is ending, or has ended
            self._vote.set_result(None)
        else:
            self.uses.add(shown.number)
            self.send_order(OpenOrder(shown))
        return await self._vote

    async def wait_for_end(self) -> int | None:
        """Wait until the process has ended. Return its exit status."""
        await _wait_until_readable(self._process.sentinel)
        self._process.join()
        if not self._pipe.closed:
            self._note_end()
        return self._process.exitcode

    def _receive_report(self) -> None:
        try:
            word: Word = self._pipe.recv()
        except (EOFError, OSError):
            self._note_end()
            return
        match word:
            case ReadyReport() | FailedReport():
                if not self.ready.done():  # the process may fail at its very end
                    self.ready.set_result(word)
            case OpenedReport(number=number, why=why):
                if number == self._asked and not self._vote.done():
                    self._vote.set_result(why)
            case UnusedReport(number=number):
                self.uses.discard(number)
                self._left()

    def _note_end(self) -> None:
        self._loop.remove_reader(self._pipe.fileno())
        self._pipe.close()
        if not self._vote.done():
            self._vote.set_result(_DIED if self._has_served else None)
        if not self.ready.done():
            self.ready.set_result(FailedReport("KH406", "a worker could not be started"))
        self.uses.clear()
        self._left()

    @property
    def _has_served(self) -> bool:
        return self.ready.done() and isinstance(self.ready.result(), ReadyReport)


async def _wait_until_readable(descriptor: int) -> None:
    """Wait until a descriptor has something to read, or has ended."""
    loop, there = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, there.set)
    try:
        await there.wait()
    finally:
        loop.remove_reader(descriptor)
