"""How a worker's process begins, before it has imported what it works with, and how it ends."""

import gc
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NoReturn

from proxy.concurrency.interpreter import end_process, freeze_objects

if TYPE_CHECKING:
    from proxy.process.worker_messages import WorkerTask


class GarbageCollectionOff:
    """The first of the arguments: its reader collects no garbage while it imports what the others are made of."""

    def __reduce__(self) -> tuple[Any, ...]:
        return gc.disable, ()


def begin_worker(_nothing_collected: None, task: "WorkerTask", pipe: Connection) -> NoReturn:
    """Run a worker's whole life; its imports so far stay for good."""
    with freeze_objects():
        from proxy.process.worker import run_worker
    try:
        run_worker(task, pipe)
    except SystemExit as ended:
        end_process(ended)
    end_process(SystemExit())
