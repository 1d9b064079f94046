"""The open source of a policy. Reloaded policies with the same source share it."""

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from planner.catalog.fault import Fault
from planner.lower.dialects.dialect import Dialect
from planner.policy.file import Policy
from proxy.sources.engine_settings import make_engine_settings
from proxy.sources.open import Source, SparkLogin, choose_dialect, find_database_file, open_source


def open_policy_source(policy: Policy, *, workers: int = 1) -> Source:
    """Open the source of a policy, as one of `workers` serving processes. Raise KH008 if the source does not answer."""
    source = policy.source
    try:
        settings = make_engine_settings(source, directory=policy.directory, workers=workers)
    except OSError as error:
        fault = Fault("KH008", f"cannot be used ({error.strerror})", hint="Name a folder that Keyhole may write to.")
        raise policy.refuse(("source", "temp_directory"), fault) from None
    return open_source(
        source.url,
        directory=policy.directory,
        settings=settings,
        rollups=source.rollups,
        rollup_rows=source.rollup_rows,
        scratch=source.scratch,
        is_held=source.hold,
        spark=SparkLogin(
            engine=source.engine,
            token=source.token,
            ca=source.ca,
            catalog=source.catalog,
            database=source.database,
        ),
    )


def is_same_source(one: Policy, other: Policy) -> bool:
    """Return True if two policies name the same source. Relative paths start at each policy's folder."""
    return one.source == other.source and _find_file(one) == _find_file(other)


@dataclass(frozen=True, slots=True)
class NoSource:
    """A placeholder for a source, used by commands that read only the ledger."""

    dialect: Dialect

    def close(self) -> None:
        """Close nothing, as nothing is open."""


class SharedSource:
    """A source that several policies share. It is closed when the last of them leaves it.

    It knows the other open sources of earlier and later policies. If `is_opened` is false, it is never opened and has
    only a dialect. The constructor raises KH008.
    """

    def __init__(
        self, policy: Policy, *, workers: int = 1, beside: "list[SharedSource] | None" = None, is_opened: bool = True
    ) -> None:
        unopened = NoSource(choose_dialect(policy.source))
        self.source = open_policy_source(policy, workers=workers) if is_opened else cast("Source", unopened)
        self._workers = workers
        self._policy = policy
        self._users = 1
        self._lock = threading.Lock()
        self._all_open = [] if beside is None else beside
        self._all_open.append(self)

    def is_source_of(self, policy: Policy) -> bool:
        """Return True if the policy names this source."""
        return is_same_source(policy, self._policy)

    def find_next_source(self, policy: Policy) -> "SharedSource":
        """Return the source for a reloaded policy: one that is already open, or a newly opened one."""
        for known in tuple(self._all_open):
            if known.is_source_of(policy) and known._add_user():
                return known
        return SharedSource(policy, workers=self._workers, beside=self._all_open)

    def clashes_with(self, policy: Policy) -> bool:
        """Return True if the policy's database file is already open with other settings."""
        return any(known._clashes_with(policy) for known in tuple(self._all_open))

    def _clashes_with(self, policy: Policy) -> bool:
        return (
            _find_file(policy) is not None
            and _find_file(policy) == _find_file(self._policy)
            and not self.is_source_of(policy)
        )

    def _add_user(self) -> bool:
        """Count one more user. Return False if the source was closed after its last user."""
        with self._lock:
            self._users += bool(self._users)
            return bool(self._users)

    def leave(self) -> None:
        """Count one user less, and close the source after the last one."""
        with self._lock:
            self._users -= 1
            is_last = not self._users
        if is_last:
            self.source.close()
            self._all_open.remove(self)


def _find_file(policy: Policy) -> Path | None:
    return find_database_file(policy.source.url, directory=policy.directory)
