"""Work on parts of many keys, side by side where there are cores for it.

numpy lets go of Python's lock within its loops, so threads do; the more keys a part has, the less they wait for it.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


def usable_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(work: Callable[[_Part], _Result], parts: Sequence[_Part], *, threads: int) -> Iterator[_Result]:
    """The work's results in the order of the parts; on this thread alone where one thread or one part is all there is.

    Raises:
        Exception: what the work raises for the first part for which it does; parts that wait are not begun then.
    """
    if min(threads, len(parts)) <= 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(min(threads, len(parts)), thread_name_prefix="keyhole-keys") as pool:
        yield from pool.map(work, parts)
