"""The check that the source reads the declared files of each lasting data version.

Guarantee: for a table with rows in files, all processes that share the pins read the same files under one version's
name. The files are those pinned by `keyhole refresh` or `keyhole check`, else those that the first process read. A
table on a server has no such files: there a lock keeps its rows.

A refusal reveals that a file was replaced, which its owner did. It reveals nothing of the rows.
"""

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from accountant.charges import is_lasting
from planner.catalog.catalog import Table
from planner.errors import KeyholeError
from proxy.open_policy.data_versions import DataVersions

_SUFFIX = ".files"


class Files(Protocol):
    """The methods of a source that this module needs."""

    def read_files(self, relation: str) -> str | None:
        """Return the files that hold a relation's rows, as text. Return None for a database server.

        Raise KH006 if the relation cannot be read, and KH008 if the source does not answer.
        """

    def read_state(self, relation: str) -> str:
        """Return the names, sizes and times of the relation's current files, as text.

        Raise KH006 if the relation cannot be read, and KH008 if the source does not answer.
        """

    def reopen(self) -> None:
        """Open the current files. Raise KH008 if the source does not answer."""


class OperatorEvents(Protocol):
    """The interface that receives events for the operator."""

    def note_undeclared_files(self, table: str, *, version: str) -> None:
        """Report that a table's files are not those of its version."""


class VersionFiles:
    """The check that a source reads the files of each version, or opens them if needed.

    It is safe to share among threads.

    Parameters:
        folder: where processes record the files that a version's first reader read. It is created when needed.
    """

    def __init__(self, source: Files, versions: DataVersions, *, folder: Path, watched: OperatorEvents) -> None:
        self._source = source
        self._versions = versions
        self._folder = folder
        self._watched = watched
        self._first_read: dict[tuple[str, str], str] = {}
        self._told: dict[str, str] = {}
        self._followed: dict[str, str] = {}

    def are_read(self, table: Table) -> bool:
        """Return True if the source reads the files of the table's current version. A join needs this for each table.

        If the source has other files open, let it open the current ones first. Raise KH007.
        """
        return not self.find_unread(table.stored_tables)

    def find_unread(self, tables: Iterable[Table]) -> tuple[str, ...]:
        """Return the names of tables whose current version the source cannot read. Raise KH007."""
        found = []
        for table in tables:
            version = self._versions.find_version(table.bare_table, now=datetime.now(UTC))
            try:
                is_read = self._is_read(table, version)
            except (KeyholeError, OSError):
                is_read = False
            if is_read:
                self._told.pop(table.name, None)
                continue
            found.append(table.name)
            if self._told.get(table.name) != version:
                self._told[table.name] = version
                self._watched.note_undeclared_files(table.name, version=version)
        return tuple(found)

    def _is_read(self, table: Table, version: str) -> bool:
        """Return True if the source reads the version's files.

        For a new version the source first opens the current files, even if they look unchanged: two files may have the
        same size and time.
        """
        read = self._source.read_files(table.relation)
        if read is None:
            return True
        declared = self._find_declared_files(table, version)
        if read == declared and self._followed.get(table.name) == version:
            return True
        if self._source.read_state(table.relation) == declared:
            self._source.reopen()
        is_read = self._source.read_files(table.relation) == declared
        if is_read:
            self._followed[table.name] = version
        return is_read

    def _find_declared_files(self, table: Table, version: str) -> str:
        """Return the declared files of a version. For a live table, return the current ones."""
        if not is_lasting(version):
            return self._source.read_state(table.relation)
        pinned = self._versions.find_pinned_state(table, version)
        if pinned is not None:
            return pinned
        place = (table.name, version)
        if place not in self._first_read:
            self._first_read[place] = self._claim(*place, self._source.read_state(table.relation))
        return self._first_read[place]

    def _claim(self, table: str, version: str, state: str) -> str:
        """Record the files of a version, unless another process has done so. Return the recorded files."""
        of_table = sha256(table.encode()).hexdigest()[:32]
        path = self._folder / f"{of_table}-{sha256(version.encode()).hexdigest()[:32]}{_SUFFIX}"
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=self._folder)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(state)
                with suppress(FileExistsError):
                    os.link(temporary, path)
            finally:
                os.unlink(temporary)
            for other in self._folder.glob(f"{of_table}-*{_SUFFIX}"):
                if other != path and other.stat().st_mtime_ns < path.stat().st_mtime_ns:
                    other.unlink()
            return path.read_text(encoding="utf-8")
        return state
