"""The files that each lasting data version was declared on, held against the files that the source reads.

Guarantee: of a table whose rows lie in files, no question reads other files under a version's name than any process did
that serves from beside the same pins. Which files they are is what `keyhole refresh` or `keyhole check` pinned, else
what the first process found that read the version. A table on a server has no such files: there a lock does it.

A refusal tells that a file was replaced, which its owner did, and nothing of its rows.
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
    """The methods of a source that this needs."""

    def read_files(self, relation: str) -> str | None:
        """Return the files that a relation is read from; None if a server keeps the rows. Raise KH006 and KH008."""

    def state(self, relation: str) -> str:
        """Return the files that lie there. Raise KH006 and KH008."""

    def reopen(self) -> None:
        """Read the files that lie there. Raise KH008."""


class Watched(Protocol):
    """The events for the operator."""

    def note_undeclared_files(self, table: str, *, version: str) -> None:
        """Note that a table's files are not those of its version."""


class VersionFiles:
    """Tells whether a source reads the files of a version, and has it open them if it does not. Safe to share.

    Parameters:
        folder: where processes tell each other which files a version was first read from; it is made when needed.
    """

    def __init__(self, source: Files, versions: DataVersions, *, folder: Path, watched: Watched) -> None:
        self._source = source
        self._versions = versions
        self._folder = folder
        self._watched = watched
        self._first_read: dict[tuple[str, str], str] = {}
        self._told: dict[str, str] = {}
        self._followed: dict[str, str] = {}

    def are_read(self, table: Table) -> bool:
        """Return True if the source reads the files of the version that the table has now; of joined tables, of each.

        A source that has others open is told to open those that lie there. Raises KH007.
        """
        return not self.find_unread(table.stored_tables)

    def find_unread(self, tables: Iterable[Table]) -> tuple[str, ...]:
        """Find the tables whose version the source cannot read, by name. Raise KH007."""
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

        The first time that a version is met the source opens the files that lie there, even if they look the same: two
        files may have one size and time.
        """
        read = self._source.read_files(table.relation)
        if read is None:
            return True
        declared = self._find_declared(table, version)
        if read == declared and self._followed.get(table.name) == version:
            return True
        if self._source.state(table.relation) == declared:
            self._source.reopen()
        is_read = self._source.read_files(table.relation) == declared
        if is_read:
            self._followed[table.name] = version
        return is_read

    def _find_declared(self, table: Table, version: str) -> str:
        """Return the files of a version: of a live table those that lie there."""
        if not is_lasting(version):
            return self._source.state(table.relation)
        pinned = self._versions.find_pinned_state(table, version)
        if pinned is not None:
            return pinned
        place = (table.name, version)
        if place not in self._first_read:
            self._first_read[place] = self._claim(*place, self._source.state(table.relation))
        return self._first_read[place]

    def _claim(self, table: str, version: str, state: str) -> str:
        """Note the files from which a version is read first, unless another process has: return what is noted."""
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
