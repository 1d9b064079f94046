"""Very long texts are read and planned one at a time in a process, whoever sends them over whichever endpoint.

That holds the interpreter's lock: as many at once as there are threads would leave the event loops hardly any time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import TIMEOUT_MAX

from proxy.concurrency.fair_queue import Turns

VERY_LONG_BYTES = 64 * 1024
_TURNS = Turns(1)
_UNTIL_IT_COMES_MS = int(TIMEOUT_MAX) * 1000


@contextmanager
def alone(text: str, *, analyst: str) -> Iterator[None]:
    """The block reads or plans a text of an analyst's: a very long one while nobody else does so. Blocks until then.

    Whoever waits is passed by at most one text of each other analyst. Never within itself.
    """
    if len(text) <= VERY_LONG_BYTES // 4 or len(text.encode("utf-8", "surrogatepass")) <= VERY_LONG_BYTES:
        yield
        return
    with _TURNS.taken(analyst, timeout_ms=_UNTIL_IT_COMES_MS):
        yield
