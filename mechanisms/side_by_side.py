"""Parallel work on parts of many keys, in a few threads.

numpy releases Python's lock within its loops, so threads run in parallel. The more keys a part has, the less they wait
for the lock.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")
_NAME = "keyhole-keys"
_MOST_THREADS = 4  # what is done between numpy's loops is Python, one thread at a time


def count_usable_cores() -> int:
    """Return the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_threads() -> int:
    """Return the number of threads to use for parts of keys."""
    return min(count_usable_cores(), _MOST_THREADS)


def run_in_order(work: Callable[[_Part], _Result], parts: Sequence[_Part], *, threads: int) -> Iterator[_Result]:
    """Yield the results of `work` in the order of the parts. With one thread or one part, run it in this thread.

    Raises:
        Exception: the first exception of `work`, in the order of parts. Waiting parts are not begun then.
    """
    if min(threads, len(parts)) <= 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(min(threads, len(parts)), thread_name_prefix=_NAME) as pool:
        yield from pool.map(work, parts)


def work_in_pipeline(work: Callable[[_Part], object], parts: Iterable[_Part]) -> None:
    """Run `work` on each part in a second thread, while the calling thread makes the next part.

    At most two parts exist at a time.

    Raises:
        Exception: the exception of making a part, or the first one of `work`. No further part is made then.
    """
    with ThreadPoolExecutor(1, thread_name_prefix=_NAME) as pool:
        before = None
        for part in parts:
            if before is not None:
                before.result()
            before = pool.submit(work, part)
        if before is not None:
            before.result()
