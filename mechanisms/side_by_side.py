"""Parallel work on parts of many keys, in a few threads.

numpy lets go of Python's lock within its loops, so threads do; the more keys a part has, the less they wait for it.
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
    """Return the cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_threads() -> int:
    """Return the number of threads that are worth having."""
    return min(count_usable_cores(), _MOST_THREADS)


def run_in_order(work: Callable[[_Part], _Result], parts: Sequence[_Part], *, threads: int) -> Iterator[_Result]:
    """Yield the work's results in the order of the parts. One thread or one part alone is worked on in this thread.

    Raises:
        Exception: what the work raises for the first part for which it does; parts that wait are not begun then.
    """
    if min(threads, len(parts)) <= 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(min(threads, len(parts)), thread_name_prefix=_NAME) as pool:
        yield from pool.map(work, parts)


def work_while_making_next(work: Callable[[_Part], object], parts: Iterable[_Part]) -> None:
    """Do the work on each part in a thread while this one makes the next part; so at most two are there at a time.

    Raises:
        Exception: what making a part raises, or the work on the first part for which it does; none is made then.
    """
    with ThreadPoolExecutor(1, thread_name_prefix=_NAME) as pool:
        before = None
        for part in parts:
            if before is not None:
                before.result()
            before = pool.submit(work, part)
        if before is not None:
            before.result()
