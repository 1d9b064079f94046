"""Rollups of one source: which exist, which are wanted, and answering from them where that is possible.

A question that no rollup serves yet is answered by its scan; one thread then builds the rollup for later questions of
the same public data version. Whether one exists depends on what was asked before, on public versions and on time. A
rollup that cannot be built or read is not tried again in its version, and says nothing: the scan answers. One of more
rows than may be kept is not tried again in any version, as long as the source is open.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from planner.question.plan import Rewritten, Rollup

_Result = TypeVar("_Result")
_MOST_LARGE = 1_000  # names of rollups that did not fit, a few hundred bytes each: more than there are sets of keys
_SHORTEST_MS = 1  # a timeout of 0 would be none
MOST_ROWS = 20_000_000  # the default of `rollup_rows`: a copy takes time and room at the source in proportion


class RollupStore(Protocol):
    """Where an engine keeps rollups. `build`, `drop` and `close` are called by one thread at a time."""

    def build(self, rollup: Rollup, *, timeout_ms: int) -> str:
        """Make a rollup; the relation that holds it. Raises `RollupTooLarge`, and then keeps nothing."""

    def drop(self, relation: str) -> None:
        """Remove what `build` made."""

    def cancel(self) -> None:
        """Stop a build that is under way, from another thread."""

    def close(self) -> None:
        """Remove everything."""


class RollupTooLarge(Exception):
    """A rollup of more rows than may be kept; the scan answers, and it is not tried again."""


class Busy(Exception):
    """A rollup that cannot be read at this moment; the scan answers, and the rollup stays."""


@dataclass(slots=True, eq=False)
class _Kept:
    """One rollup: under way until it has a relation or is found to be useless."""

    rollup: Rollup
    relation: str | None = None
    useless: bool = False


class Rollups:
    """At most `most` rollups, the least recently used of which is dropped for a new one. Safe to share."""

    def __init__(self, store: RollupStore, *, most: int) -> None:
        self._store = store
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._versions: dict[str, str] = {}
        self._too_large: OrderedDict[str, None] = OrderedDict()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="keyhole-rollup")
        self._last: Future[None] | None = None
        self._closed = False

    def answer(
        self, rewritten: Rewritten, *, version: str | None, timeout_ms: int, read: Callable[[str, int], _Result]
    ) -> _Result:
        """What `read` gives for the cheapest statement there is now.

        Parameters:
            version: the public data version that is asked; None keeps and uses nothing.
            timeout_ms: for everything together; `read` is told what is left of it.
            read: runs a statement within a number of milliseconds.
        """
        rollup = rewritten.rollup
        if rollup is None or version is None or self._most < 1:
            return read(rewritten.sql, timeout_ms)
        deadline = time.monotonic() + timeout_ms / 1000
        kept = self._ready(rollup, version)
        if kept is not None:
            with suppress(Exception):
                return self._read_rolled(kept, rollup, timeout_ms=timeout_ms, read=read)
        left_ms = int((deadline - time.monotonic()) * 1000)
        result = read(rewritten.sql, max(left_ms, _SHORTEST_MS))
        self._want(rollup, version, timeout_ms=timeout_ms)
        return result

    def counts(self) -> Mapping[str, int]:
        """How many there are: ready, being built, and found to be useless."""
        with self._lock:
            useless = sum(one.useless for one in self._kept.values())
            ready = sum(one.relation is not None and not one.useless for one in self._kept.values())
            return {"ready": ready, "building": len(self._kept) - ready - useless, "useless": useless}

    def settle(self) -> None:
        """Wait until nothing is built or dropped any more."""
        while True:
            with self._lock:
                last = self._last
            if last is None or last.done():
                return
            last.result()

    def close(self) -> None:
        """Stop building and drop everything."""
        with self._lock:
            self._closed = True
            self._kept.clear()
        self._store.cancel()
        self._worker.shutdown(wait=True, cancel_futures=True)
        with suppress(Exception):
            self._store.close()

    def _read_rolled(
        self, kept: _Kept, rollup: Rollup, *, timeout_ms: int, read: Callable[[str, int], _Result]
    ) -> _Result:
        try:
            return read(f"WITH rolled AS NOT MATERIALIZED (SELECT * FROM {kept.relation}),\n{rollup.sql}", timeout_ms)
        except Busy:
            raise
        except Exception:
            with self._lock:
                kept.useless = True
            raise

    def _ready(self, rollup: Rollup, version: str) -> _Kept | None:
        """The rollup, if it is there for this version; those of another version are dropped."""
        with self._lock:
            if self._versions.get(rollup.table) != version:
                self._versions[rollup.table] = version
                for kept in [kept for kept in self._kept.values() if kept.rollup.table == rollup.table]:
                    self._retire(kept)
            found = self._kept.get(rollup.name)
            if found is None or found.relation is None or found.useless:
                return None
            self._kept.move_to_end(rollup.name)
            return found

    def _want(self, rollup: Rollup, version: str, *, timeout_ms: int) -> None:
        with self._lock:
            if self._closed or rollup.name in self._kept or self._versions.get(rollup.table) != version:
                return
            if rollup.name in self._too_large:
                self._kept[rollup.name] = _Kept(rollup, useless=True)
                return
            kept = self._kept[rollup.name] = _Kept(rollup)
            useful = [one for one in self._kept.values() if not one.useless]
            for one in useful[: max(0, len(useful) - self._most)]:
                self._retire(one)
            self._submit(lambda: self._build(kept, timeout_ms=timeout_ms))

    def _build(self, kept: _Kept, *, timeout_ms: int) -> None:
        with self._lock:
            wanted = self._kept.get(kept.rollup.name) is kept
        if not wanted:
            return
        try:
            relation = self._store.build(kept.rollup, timeout_ms=timeout_ms)
        except Exception as error:
            kept.useless = True
            if isinstance(error, RollupTooLarge):
                self._remember_large(kept.rollup.name)
            return
        with self._lock:
            kept.relation = relation
            wanted = self._kept.get(kept.rollup.name) is kept
        if not wanted:
            self._drop(relation)

    def _remember_large(self, name: str) -> None:
        with self._lock:
            self._too_large[name] = None
            while len(self._too_large) > _MOST_LARGE:
                self._too_large.popitem(last=False)

    def _retire(self, kept: _Kept) -> None:
        """Forget a rollup under the lock; a build that is under way drops its own."""
        del self._kept[kept.rollup.name]
        relation = kept.relation
        if relation is not None:
            self._submit(lambda: self._drop(relation))

    def _drop(self, relation: str) -> None:
        with suppress(Exception):
            self._store.drop(relation)

    def _submit(self, work: Callable[[], None]) -> None:
        if not self._closed:
            self._last = self._worker.submit(work)


def limit_rows(rollup: Rollup, most_rows: int) -> str:
    """The rollup's rows, or one more than may be kept."""
    return f"{rollup.build}\nLIMIT {most_rows + 1}"
