"""The rollups of one source and the kept steps of its statements: requesting, building and reading them.

A question without a rollup is answered by a scan of its tables, which reads the kept steps that exist. One thread then
builds the missing rollups and steps, for later questions on the same public data version. The rollup of a statement
with several steps costs as much as many scans. It is built only after it would have been used often. Which rollups
exist depends on earlier questions, public versions and time. If a rollup cannot be built or read, the scan answers
without an error, and the rollup is not tried again for this version. A rollup with too many rows is never tried again
while the source is open.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from planner.question.plan import Rewritten, Rollup

_Result = TypeVar("_Result")
_MOST_LARGE = 1_000  # names of rollups that did not fit, a few hundred bytes each: more than there are sets of keys
_SHORTEST_MS = 1  # a timeout of 0 would be none
_MOST_WISHED = 1_000  # names of rollups that would have served, a few hundred bytes each
# work of the source against time of questions: on PostgreSQL a build takes 35 to 60 s of six million joined rows, and
# saves up to 1 s of each question
OFTEN = 8
"""How often a rollup behind several steps must be wished for before it is built."""
_FEW_STEPS = 1  # a choice of groups: one narrow pass. Joins and paths have more, and their rollups take many scans
_STEPS_BESIDE = 16  # steps for each rollup that may be kept: a join of four tables has ten
MOST_ROWS = 20_000_000  # the default of `rollup_rows`: a copy takes time and room at the source in proportion


class RollupStore(Protocol):
    """The storage of an engine's rollups. Only one thread at a time calls `build`, `drop` and `close`."""

    def build(self, rollup: Rollup, *, kept: Mapping[str, str], timeout_ms: int) -> str:
        """Build a rollup, and return the name of the relation with its rows.

        Raise `RollupTooLarge` if it has too many rows; nothing is kept then.

        Parameters:
            kept: relations that this store has built, by the names of their steps.
        """

    def drop(self, relation: str) -> None:
        """Drop a relation that `build` made."""

    def cancel(self) -> None:
        """Cancel a running build. Another thread calls this."""

    def close(self) -> None:
        """Drop all rollups, and close the store."""


class RollupTooLarge(Exception):
    """The error for a rollup with too many rows. The scan answers, and the rollup is not tried again."""


class RollupBusy(Exception):
    """The error for a rollup that cannot be read at the moment. The scan answers, and the rollup is kept."""


@dataclass(slots=True, eq=False)
class _KeptRelation:
    """A kept rollup or step. `relation` is None until it is built.

    `is_useless` is True if it cannot be built or read.
    """

    rollup: Rollup
    relation: str | None = None
    is_useless: bool = False


@dataclass(slots=True)
class _Shelf:
    """A least-recently-used cache of at most `most` rollups or steps."""

    most: int
    relations: OrderedDict[str, _KeptRelation] = field(default_factory=OrderedDict)
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceStatement:
    """The statement that was chosen to answer a question at the source.

    `is_scan` means that it reads the question's own relations, not only a rollup. `reads_rollups` means that it reads
    relations of `RollupStore.build`.
    """

    sql: str
    is_scan: bool = True
    reads_rollups: bool = False


class Rollups:
    """A cache of at most `most` rollups, and of kept steps of statements. It is safe to share among threads."""

    def __init__(self, store: RollupStore, *, most: int) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._rollups = _Shelf(most)
        self._steps = _Shelf(most * _STEPS_BESIDE)
        self._too_large: OrderedDict[str, None] = OrderedDict()
        self._wished: OrderedDict[str, int] = OrderedDict()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="keyhole-rollup")
        self._last: Future[None] | None = None
        self._closed = False

    def answer(
        self,
        rewritten: Rewritten,
        *,
        version: str | None,
        timeout_ms: int,
        read: Callable[[SourceStatement, int], _Result],
    ) -> _Result:
        """Choose the cheapest statement that answers the question now, run it with `read`, and return the result.

        Parameters:
            version: the question's public data version. If None, no rollup is used or built.
            timeout_ms: the limit on all reads together. `read` gets the time that remains.
            read: runs a statement within a number of milliseconds.
        """
        rollup = rewritten.rollup
        if (rollup is None and not rewritten.steps) or version is None or self._rollups.most < 1:
            return read(SourceStatement(rewritten.sql), timeout_ms)
        deadline = time.monotonic() + timeout_ms / 1000

        def left_ms() -> int:
            return max(int((deadline - time.monotonic()) * 1000), _SHORTEST_MS)

        found = None if rollup is None else self._find_ready(self._rollups, rollup, version)
        if found is not None and rollup is not None:
            rolled = f"WITH rolled AS NOT MATERIALIZED (SELECT * FROM {found.relation}),\n{rollup.sql}"
            with suppress(Exception):
                return self._read_kept(
                    [found], SourceStatement(rolled, is_scan=False, reads_rollups=True), timeout_ms, read
                )
        apart = None if rewritten.blocks else rewritten.from_kept_steps
        if apart is not None and (listed := self._find_all(_list_read(apart), version)):
            statement = SourceStatement(apart.write_from_kept(_name_relations(listed)), reads_rollups=True)
            with suppress(Exception):
                return self._read_kept(listed, statement, left_ms(), read)
        found_steps = (self._find_ready(self._steps, rows, version) for rows in _list_steps(rewritten))
        steps = [one for one in found_steps if one is not None]
        if steps:
            with suppress(Exception):
                statement = SourceStatement(rewritten.write_from_kept(_name_relations(steps)), reads_rollups=True)
                result = self._read_kept(steps, statement, left_ms(), read)
                self._request_all(rewritten, version, timeout_ms=timeout_ms)
                return result
        result = read(SourceStatement(rewritten.sql), left_ms())
        self._request_all(rewritten, version, timeout_ms=timeout_ms)
        return result

    def count_by_state(self) -> Mapping[str, int]:
        """Return the numbers of rollups that are ready, being built, and found to be useless."""
        with self._lock:
            kept = self._rollups.relations.values()
            useless = sum(one.is_useless for one in kept)
            ready = sum(one.relation is not None and not one.is_useless for one in kept)
            return {"ready": ready, "building": len(kept) - ready - useless, "useless": useless}

    def wait_for_rollups(self) -> None:
        """Wait until no rollup is being built or dropped."""
        while True:
            with self._lock:
                last = self._last
            if last is None or last.done():
                return
            last.result()

    def close(self) -> None:
        """Stop all builds, and drop all rollups and steps."""
        with self._lock:
            self._closed = True
            self._rollups.relations.clear()
            self._steps.relations.clear()
        self._store.cancel()
        self._worker.shutdown(wait=True, cancel_futures=True)
        with suppress(Exception):
            self._store.close()

    def _read_kept(
        self,
        several: Sequence[_KeptRelation],
        statement: SourceStatement,
        left_ms: int,
        read: Callable[[SourceStatement, int], _Result],
    ) -> _Result:
        try:
            return read(statement, left_ms)
        except RollupBusy:
            raise
        except Exception:
            with self._lock:
                for kept in several:
                    kept.is_useless = True
            raise

    def _find_ready(self, shelf: _Shelf, rollup: Rollup, version: str) -> _KeptRelation | None:
        """Return a rollup if it is built for this version. Drop rollups of any other version."""
        with self._lock:
            if shelf.versions.get(rollup.table) != version:
                shelf.versions[rollup.table] = version
                for kept in [kept for kept in shelf.relations.values() if kept.rollup.table == rollup.table]:
                    self._retire(shelf, kept)
            found = shelf.relations.get(_make_name(rollup))
            if found is None or found.relation is None or found.is_useless:
                return None
            shelf.relations.move_to_end(_make_name(rollup))
            return found

    def _find_all(self, steps: Sequence[Rollup], version: str) -> list[_KeptRelation]:
        """Return the kept rows of all these steps. Return an empty list if one of them is missing."""
        found = [self._find_ready(self._steps, rows, version) for rows in steps]
        ready = [one for one in found if one is not None]
        return ready if len(ready) == len(found) else []

    def _request_all(self, rewritten: Rewritten, version: str, *, timeout_ms: int) -> None:
        """Request builds of the statement's steps. Request its rollup too, if that is cheap or was wanted often."""
        steps = _list_steps(rewritten)
        for rows in steps:
            self._request(self._steps, rows, version, timeout_ms=timeout_ms)
        if rewritten.from_kept_steps is not None and not rewritten.blocks:
            self._request_lists(_list_read(rewritten.from_kept_steps), version, timeout_ms=timeout_ms)
        rollup = rewritten.rollup
        if rollup is not None and (
            len(steps) <= _FEW_STEPS or self._note_wish(f"{_make_name(rollup)} {version}") >= OFTEN
        ):
            self._request(self._rollups, rollup, version, timeout_ms=timeout_ms)

    def _request_lists(self, lists: Sequence[Rollup], version: str, *, timeout_ms: int) -> None:
        """Request builds of key lists. If there is little room, build only lists that are requested a second time.

        A question with its threshold inside its sums has lists of its own.
        """
        is_known = self._note_wish(" ".join([*map(_make_name, lists), version])) > 1
        with self._lock:
            has_room = 2 * len(self._steps.relations) <= self._steps.most
        if is_known or has_room:
            for rows in lists:
                self._request(self._steps, rows, version, timeout_ms=timeout_ms)

    def _note_wish(self, wish: str) -> int:
        """Count a request for a rollup, and return how often it was requested, as far as remembered."""
        with self._lock:
            self._wished[wish] = self._wished.pop(wish, 0) + 1
            while len(self._wished) > _MOST_WISHED:
                self._wished.popitem(last=False)
            return self._wished[wish]

    def _request(self, shelf: _Shelf, rollup: Rollup, version: str, *, timeout_ms: int) -> None:
        with self._lock:
            name = _make_name(rollup)
            if self._closed or name in shelf.relations or shelf.versions.get(rollup.table) != version:
                return
            if name in self._too_large:
                shelf.relations[name] = _KeptRelation(rollup, is_useless=True)
                return
            kept = shelf.relations[name] = _KeptRelation(rollup)
            useful = [one for one in shelf.relations.values() if not one.is_useless]
            for one in useful[: max(0, len(useful) - shelf.most)]:
                self._retire(shelf, one)
            self._submit(lambda: self._build(shelf, kept, timeout_ms=timeout_ms))

    def _build(self, shelf: _Shelf, kept: _KeptRelation, *, timeout_ms: int) -> None:
        with self._lock:
            wanted = shelf.relations.get(_make_name(kept.rollup)) is kept
            # of the same version, as long as the rollup is wanted; what drops them waits behind this build
            read = _name_relations(self._list_ready(kept.rollup))
        if not wanted:
            return
        try:
            relation = self._store.build(kept.rollup, kept=read, timeout_ms=timeout_ms)
        except Exception as error:
            kept.is_useless = True
            if isinstance(error, RollupTooLarge):
                with self._lock:
                    _remember(self._too_large, _make_name(kept.rollup), most=_MOST_LARGE)
            return
        with self._lock:
            kept.relation = relation
            wanted = shelf.relations.get(_make_name(kept.rollup)) is kept
        if not wanted:
            self._drop(relation)

    def _list_ready(self, rollup: Rollup) -> list[_KeptRelation]:
        """Return the kept steps that a rollup's build can read. The caller holds the lock."""
        found = (self._steps.relations.get(f"{step.name} {rollup.table}") for step in rollup.steps)
        return [one for one in found if one is not None and one.relation is not None and not one.is_useless]

    def _retire(self, shelf: _Shelf, kept: _KeptRelation) -> None:
        """Drop a rollup or step from the cache. The caller holds the lock. A running build drops its own relation."""
        del shelf.relations[_make_name(kept.rollup)]
        relation = kept.relation
        if relation is not None:
            self._submit(lambda: self._drop(relation))

    def _drop(self, relation: str) -> None:
        with suppress(Exception):
            self._store.drop(relation)

    def _submit(self, work: Callable[[], None]) -> None:
        if not self._closed:
            self._last = self._worker.submit(work)


def _list_steps(rewritten: Rewritten) -> list[Rollup]:
    """Return the steps of a statement that can be kept. Return none for a statement that reads key blocks."""
    return [] if rewritten.blocks else [step.kept_rows for step in rewritten.steps if step.kept_rows is not None]


def _list_read(apart: Rewritten) -> list[Rollup]:
    """Return the steps that a statement reads by name. All of them must be built before it runs."""
    return [step.kept_rows for step in apart.steps if step.kept_rows is not None and step.name in apart.body]


def _name_relations(several: Sequence[_KeptRelation]) -> dict[str, str]:
    """Map each step to the relation that holds its rows."""
    return {one.rollup.name: one.relation for one in several if one.relation is not None}


def _make_name(rollup: Rollup) -> str:
    """Return a name for one step's rows in one table. Tables that share a step may have different versions."""
    return f"{rollup.name} {rollup.table}"


def _remember(names: OrderedDict[str, None], name: str, *, most: int) -> None:
    """Add a name. If there are more than `most`, remove the oldest one."""
    names[name] = None
    while len(names) > most:
        names.popitem(last=False)


def limit_rows(build: str, most_rows: int) -> str:
    """Return the SQL of a rollup's rows, limited to one more than may be kept."""
    return f"{build}\nLIMIT {most_rows + 1}"
