"""How a worker's process begins, before it has imported what it works with, and how it ends."""

import gc
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NoReturn

from proxy.concurrency.interpreter import end_process, freeze_objects

if TYPE_CHECKING:
    from proxy.process.worker_messages import WorkerTask


class GarbageCollectionOff:
    """An argument that turns garbage collection off in the worker when it is unpickled, before the other arguments."""

    def __reduce__(self) -> tuple[Any, ...]:
        return gc.disable, ()


def begin_worker(_nothing_collected: None, task: "WorkerTask", pipe: Connection) -> NoReturn:
    """Run a worker process from its start to its end. Modules imported so far are frozen."""
    with freeze_objects():
        from proxy.process.worker import run_worker
    try:
        run_worker(task, pipe)
    except SystemExit as ended:
        end_process(ended)
    end_process(SystemExit())
