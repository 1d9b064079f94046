"""The file of a published table, parquet or CSV. It is written whole or not at all, readable only by its owner.

A statement says what the file discloses: under `keyhole` in a parquet file's metadata, or in a text file beside a CSV
file.
"""

import csv
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from fasteners import InterProcessLock

from accountant.store.private_files import OWNER_ALONE, make_private_file
from mechanisms.formula import Integers
from planner.catalog.catalog import SqlType, Value
from planner.catalog.key_space import KeySpace, format_value
from planner.values.sql_literals import quote_name, quote_text

_FOLDER_MODE = 0o700  # its owner alone sees which files there are
_PIECE = 1 << 20  # bytes of a file that are read at a time
_TYPES = {
    SqlType.INTEGER: "bigint",
    SqlType.BOOLEAN: "boolean",
    SqlType.DATE: "date",
    SqlType.TIMESTAMP: "timestamp",
    SqlType.UUID: "uuid",
    SqlType.DOUBLE: "double precision",
}  # in DuckDB and in PostgreSQL; text for all others, so that no digit is lost


class FileForm(StrEnum):
    """The file format of a published table."""

    PARQUET = "parquet"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class PublishedColumn:
    """One published column, with its public values in the order of the counts' axis."""

    name: str
    sql_type: SqlType
    values: tuple[Value, ...]

    @property
    def type_name(self) -> str:
        """Return the column's type by a name that both DuckDB and PostgreSQL know."""
        return _TYPES.get(self.sql_type, "text")


@dataclass(frozen=True, slots=True, eq=False)
class PublishedTable:
    """The content of a file, given as counts of cells.

    With `count_name`, the file has one row with its count for each cell. Otherwise each cell's row is repeated as often
    as it counts.

    Parameters:
        counts: int64, with an axis for each column. They are not negative if rows are repeated.
    """

    columns: tuple[PublishedColumn, ...]
    counts: Integers
    count_name: str | None

    @property
    def types(self) -> tuple[tuple[str, str], ...]:
        """The names and types of the file's columns."""
        named = tuple((column.name, column.type_name) for column in self.columns)
        return named if self.count_name is None else (*named, (self.count_name, "bigint"))

    @property
    def rows(self) -> int:
        """Return the number of rows of the file."""
        return int(self.counts.sum()) if self.count_name is None else self.counts.size


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """The content of a file, given as rows in order.

    Parameters:
        types: each column's name and type, by names that both DuckDB and PostgreSQL know.
        values: each row's values as text; None is NULL.
    """

    types: tuple[tuple[str, str], ...]
    values: tuple[tuple[str | None, ...], ...]

    @property
    def rows(self) -> int:
        """Return the number of rows of the file."""
        return len(self.values)


PublishedData: TypeAlias = PublishedTable | PublishedRows
"""The possible contents of a file."""


def list_columns(keys: KeySpace) -> tuple[PublishedColumn, ...]:
    """Return the columns of a published table over all public values of these keys."""
    pairs = zip(keys.columns, keys.values, strict=True)
    return tuple(PublishedColumn(column.name, column.sql_type, values) for column, values in pairs)


def find_unused_name(wanted: str, columns: Collection[str]) -> str:
    """Return `wanted` as a column name, with underscores appended until no other column has it, ignoring case.

    >>> find_unused_name("noisy_count", ("ward", "Noisy_Count"))
    'noisy_count_'
    """
    taken = {column.casefold() for column in columns}
    while wanted.casefold() in taken:
        wanted += "_"
    return wanted


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create and lock the folder. No other process publishes in it until the block ends.

    Raise OSError if the file system refuses.
    """
    folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    lock = folder / ".lock"
    make_private_file(lock)
    with InterProcessLock(str(lock)):
        yield


def make_draft_path(path: Path) -> Path:
    """Return the path of a file's draft. The draft is renamed to the file once it is complete."""
    return path.with_name(f".{path.name}.draft")


def write_published_file(table: PublishedData, path: Path, statement: str) -> str:
    """Write a charged table to a file, unless the file exists with the same content. Return its SHA-256.

    Parameters:
        path: the file to write. Its folder is made.

    Raises:
        FileExistsError: if another file has its name. That file is kept.
        OSError: if it cannot be written.
    """
    with lock_folder(path.parent):
        file_hash = write_draft(table, path, statement)
        try:
            if hash_file(path) != file_hash:
                rename_draft(path, statement)
        finally:
            make_draft_path(path).unlink(missing_ok=True)
    return file_hash


def write_draft(table: PublishedData, path: Path, statement: str) -> str:
    """Write a table durably to `make_draft_path(path)`, and return the file's SHA-256.

    Raise OSError if the file system refuses.

    Call this within `lock_folder`.
    """
    draft = make_draft_path(path)
    draft.unlink(missing_ok=True)
    make_private_file(draft)
    if path.suffix == f".{FileForm.CSV}":
        _write_csv(table, draft)
    else:
        _write_parquet(table, draft, statement)
    draft.chmod(OWNER_ALONE)  # an engine may have put another file in its place
    _make_durable(draft)
    return _hash(draft)


def rename_draft(path: Path, statement: str) -> None:
    """Rename a draft to its file's own name. Raise FileExistsError if another file has that name."""
    draft = make_draft_path(path)
    if path.suffix == f".{FileForm.CSV}":
        if path.exists() or path.is_symlink():
            raise FileExistsError(path)  # before what stands beside it is another file's
        _write_statement_file(path, statement)
    os.link(draft, path)
    draft.unlink()
    _make_durable(path.parent)


def hash_file(path: Path) -> str | None:
    """Return a file's SHA-256. Return None if there is no regular file of that name."""
    if path.is_symlink() or not path.is_file():
        return None
    return _hash(path)


def read_column_names(path: Path) -> tuple[str, ...]:
    """Return the column names of a published file, in the file's order."""
    if path.suffix == f".{FileForm.CSV}":
        with path.open(encoding="utf-8", newline="") as file:
            return tuple(next(csv.reader(file)))
    import duckdb

    with duckdb.connect(config={"threads": 1}) as connection:
        rows = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
    return tuple(name for name, *_ in rows)


def _hash(path: Path) -> str:
    found = sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def _write_statement_file(path: Path, statement: str) -> None:
    beside = path.with_name(f"{path.name}.txt")
    part = beside.with_name(f".{beside.name}.draft")
    part.unlink(missing_ok=True)
    make_private_file(part)
    part.write_text(f"{statement}\n", encoding="utf-8")
    part.replace(beside)


def _make_durable(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_csv(table: PublishedData, path: Path) -> None:
    """Write a CSV file with every value in quotes. PostgreSQL would read an empty value without quotes as NULL."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(_write_csv_line([name for name, _ in table.types]))
        file.writelines(
            map(_write_csv_line, table.values) if isinstance(table, PublishedRows) else _list_csv_lines(table)
        )


def _write_csv_line(values: Sequence[str | None]) -> str:
    return ",".join("" if one is None else '"' + one.replace('"', '""') + '"' for one in values) + "\n"


def _list_csv_lines(table: PublishedTable) -> Iterator[str]:
    """Yield a line for each cell with its count, or as many lines as the cell counts, in row-major order."""
    texts = [[format_value(value) for value in column.values] for column in table.columns]
    for place, count in zip(np.ndindex(table.counts.shape), table.counts.ravel().tolist(), strict=True):
        values = [of_column[at] for of_column, at in zip(texts, place, strict=True)]
        if table.count_name is None:
            yield _write_csv_line(values) * count
        else:
            yield _write_csv_line([*values, str(count)])


def _write_parquet(table: PublishedData, path: Path, statement: str) -> None:
    import duckdb  # which takes as long to import as some of the commands

    cells = _list_row_texts(table) if isinstance(table, PublishedRows) else _list_cell_texts(table)
    shown = [
        f"CAST(c{number} AS {type_name}) AS {quote_name(name)}" for number, (name, type_name) in enumerate(table.types)
    ]
    source = "cells"
    if isinstance(table, PublishedTable) and table.count_name is None:
        source = "(SELECT *, unnest(range(copies)) FROM cells)"
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("cells", cells)
        connection.execute(
            f"COPY (SELECT {', '.join(shown)} FROM {source} ORDER BY place) "
            f"TO {quote_text(str(path))} (FORMAT parquet, KV_METADATA {{keyhole: {quote_text(statement)}}})"
        )


def _list_cell_texts(table: PublishedTable) -> dict[str, Any]:
    """Return arrays for parquet: each cell's index, its values as text, and its count.

    The count is the last column, or says how often the cell's row is repeated.
    """
    counts = table.counts.ravel()
    cells: dict[str, Any] = {"place": np.arange(counts.size), "copies": counts}
    places = np.unravel_index(cells["place"], table.counts.shape)
    for number, (column, at) in enumerate(zip(table.columns, places, strict=True)):
        cells[f"c{number}"] = np.array([format_value(value) for value in column.values], dtype=object)[at]
    return cells | {f"c{len(table.columns)}": counts}


def _list_row_texts(table: PublishedRows) -> dict[str, Any]:
    cells: dict[str, Any] = {"place": np.arange(table.rows)}
    for number in range(len(table.types)):
        cells[f"c{number}"] = np.array([row[number] for row in table.values], dtype=object)
    return cells
