"""Pins: public tables and key domains as the owner confirmed them, copied and hashed.

Whatever the source says later, questions use the pinned copy until the owner confirms a change.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from hashlib import sha256
from typing import cast

from planner.catalog.catalog import SqlType, Value
from planner.catalog.csv_file import CsvFile
from planner.catalog.domains import encode_value
from planner.catalog.fault import Fault
from planner.catalog.pace import Pace
from planner.catalog.sql_types import SourceColumn, sql_type

_AT_ONCE = 1_000  # rows that are hashed together: more take memory, and the processor's cache
_LOOKED_AT = 10_000  # values of a column that tell whether it repeats them: a part of a millisecond
_FEW = 100  # values that cost nothing, whether or not they repeat
_AS_WRITTEN = frozenset({SqlType.TEXT, SqlType.UUID})
_CHEAP = _AS_WRITTEN | {SqlType.INTEGER}  # to read, and to tell apart
_NO_TEXT = b"\xff" * 8


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A copy of a public table, its rows sorted; `digest` is a sha256 in hex of columns and rows.

    `unique` are the columns that the source keeps unique, each by itself.
    """

    name: str
    columns: tuple[SourceColumn, ...]
    rows: tuple[tuple[Value | None, ...], ...]
    digest: str
    unique: tuple[str, ...] = ()

    def values(self, column: str) -> tuple[Value | None, ...]:
        """Return one column's values, row by row. Raise a `Fault` (KH003) for a column that the table does not have."""
        names = [known.name for known in self.columns]
        if column not in names:
            problem = f'table "{self.name}" has no column "{column}"'
            raise Fault("KH003", problem, hint=f"Its columns: {', '.join(names)}.")
        index = names.index(column)
        return tuple(row[index] for row in self.rows)

    def kind(self, column: str) -> SqlType:
        """Return one column's type."""
        return next(sql_type(known.declared) for known in self.columns if known.name == column)


@dataclass(frozen=True, slots=True)
class PinnedDomain:
    """A confirmed key domain: how many values it has and the digest of all of them."""

    table: str
    column: str
    count: int
    digest: str


@dataclass(frozen=True, slots=True)
class Pins:
    """Everything pinned for one policy.

    `refreshes` says when each explicitly refreshed table was last declared new, `relations` what each private table is
    called in the source, `columns` of which types its exposed columns are there, `states` in which data version each
    was seen first, and in what state, `files` how each CSV file is read, `pace` how fast the source worked on generated
    rows, `apart` whether an analyst had a cap of their own.
    """

    tables: tuple[PinnedTable, ...] = ()
    domains: tuple[PinnedDomain, ...] = ()
    refreshes: tuple[tuple[str, datetime], ...] = ()
    relations: tuple[tuple[str, tuple[str, ...]], ...] = ()
    states: tuple[tuple[str, str, str], ...] = ()
    columns: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    files: tuple[tuple[str, CsvFile], ...] = ()
    pace: Pace | None = None
    apart: bool | None = None

    def file(self, table: str) -> CsvFile | None:
        """Return the format of a table's CSV file; None if it is no CSV file, or was never pinned."""
        return dict(self.files).get(table)

    def table(self, name: str) -> PinnedTable | None:
        """Return the copy of a public table, if it was pinned."""
        return next((table for table in self.tables if table.name == name), None)

    def domain(self, table: str, column: str) -> PinnedDomain | None:
        """Return a column's confirmed domain, if it was pinned."""
        return next((pinned for pinned in self.domains if (pinned.table, pinned.column) == (table, column)), None)

    def relation(self, table: str) -> tuple[str, ...] | None:
        """Return the names of a private table in the source, the lasting one first; None if it was never pinned."""
        return dict(self.relations).get(table)

    def types(self, table: str) -> dict[str, str] | None:
        """Return the type that a private table had in the source, by column; None if it was never pinned."""
        pinned = dict(self.columns).get(table)
        return None if pinned is None else dict(pinned)

    def state(self, table: str, version: str) -> str | None:
        """Return the state in which a table was seen first in a data version."""
        return next((state for name, seen, state in self.states if (name, seen) == (table, version)), None)

    def refresh(self, table: str, *, at: datetime) -> "Pins":
        """Return the same pins with `table` declared new at a moment in UTC."""
        return replace(self, refreshes=tuple(sorted({**dict(self.refreshes), table: at}.items())))


def pinned_table(name: str, columns: Sequence[SourceColumn], rows: Sequence[Sequence[object]]) -> PinnedTable:
    """Return a copy of a public table from the source's rows, in whatever order they came. Raise a `Fault` (KH006)."""
    kinds = _copyable(columns)
    by_column = list(zip(*rows, strict=True)) or [()] * len(columns)
    copied = [
        [_copy_value(raw, kind, column.name) for raw in found]
        for found, kind, column in zip(by_column, kinds, columns, strict=True)
    ]
    written = [write_values(found, kind) for found, kind in zip(copied, kinds, strict=True)]
    sort_keys = [[(text is not None, text or "") for text in found] if None in found else found for found in written]
    keys = list(zip(*sort_keys, strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return PinnedTable(
        name=name,
        columns=tuple(columns),
        rows=_rows([[found[place] for place in order] for found in copied]),
        digest=_digest(columns, [[found[place] for place in order] for found in written]),
    )


def written_table(
    name: str, columns: Sequence[SourceColumn], rows: Sequence[Sequence[str | None]], *, digest: str
) -> PinnedTable | None:
    """Return the copy whose values were written as these texts, in its order.

    Return None if they do not match the digest.

    Raises a `Fault` (KH006).
    """
    kinds = _copyable(columns)
    by_column = list(zip(*rows, strict=True)) or [()] * len(columns)
    if _digest(columns, by_column) != digest:
        return None
    read = [_read_values(found, kind) for found, kind in zip(by_column, kinds, strict=True)]
    return PinnedTable(name=name, columns=tuple(columns), rows=tuple(zip(*read, strict=True)), digest=digest)


def write_values(values: Iterable[Value | None], kind: SqlType) -> list[str | None]:
    """Write a column's values as texts, each as `encode_value` does; NULL stays."""
    match kind:
        case SqlType.TEXT | SqlType.UUID | SqlType.INTEGER | SqlType.NUMERIC | SqlType.DOUBLE:
            return [None if value is None else str(value) for value in values]
        case _:
            return [None if value is None else encode_value(value) for value in values]


def _rows(columns: Sequence[Sequence[Value | None]]) -> tuple[tuple[Value | None, ...], ...]:
    """Return columns as rows. Equal values are one object if a column repeats them: there may be a million rows."""
    once: list[Sequence[Value | None]] = []
    for column in columns:
        first: dict[Value | None, Value | None] = {}
        once.append([first.setdefault(value, value) for value in column] if _may_be_shared(column) else column)
    return tuple(zip(*once, strict=True))


def _read_values(written: Sequence[str | None], kind: SqlType) -> Sequence[Value | None]:
    """Return the values of a column, those that are written alike as one object where a column repeats them."""
    read = _reader(kind)
    first = written[:_LOOKED_AT]
    if kind in _CHEAP and 2 * len(set(first)) > len(first) > _FEW:
        return list(written) if kind in _AS_WRITTEN else list(map(read, written))
    values = {text: read(text) for text in set(written)}
    return list(map(values.__getitem__, written))


def _may_be_shared(column: Sequence[Value | None]) -> bool:
    """Return True if values that are equal are written alike, too: of numbers 2.5 and 2.50 are equal."""
    return not any(isinstance(value, Decimal) for value in column)


def _reader(kind: SqlType) -> Callable[[str | None], Value | None]:
    """Return the parser of a value of a kind as it was written."""
    read: Callable[[str], Value]
    match kind:
        case SqlType.BOOLEAN:
            read = "true".__eq__
        case SqlType.INTEGER:
            read = int
        case SqlType.NUMERIC | SqlType.DOUBLE:
            read = Decimal
        case SqlType.DATE:
            read = date.fromisoformat
        case SqlType.TIMESTAMP:
            read = datetime.fromisoformat
        case _:
            assert kind in _AS_WRITTEN
            return lambda text: text
    return lambda text: None if text is None else read(text)


def _copyable(columns: Sequence[SourceColumn]) -> list[SqlType]:
    """Return the columns' types. Raise a `Fault` (KH006) for one whose values cannot be copied."""
    kinds = [sql_type(column.declared) for column in columns]
    for column, kind in zip(columns, kinds, strict=True):
        if kind is SqlType.OTHER:
            problem = f'column "{column.name}" of type {column.declared} cannot be copied'
            hint = (
                "Copy a table without that column, or with it cast to text, numbers, dates or timestamps without zone."
            )
            raise Fault("KH006", problem, hint=hint)
    return kinds


def _copy_value(raw: object, kind: SqlType, column: str) -> Value | None:
    match kind, raw:
        case _, None:
            return None
        case ((SqlType.TEXT | SqlType.UUID), _):
            return str(raw)
        case ((SqlType.NUMERIC | SqlType.DOUBLE), (int() | float() | Decimal())):
            return Decimal(str(raw))
        case SqlType.BOOLEAN, bool():
            return raw
        case SqlType.INTEGER, int():
            return raw
        case SqlType.TIMESTAMP, datetime():
            return raw
        case SqlType.DATE, date():
            return raw
        case _:
            problem = f'column "{column}" has a value that is not of type {kind.value}'
            raise Fault("KH006", problem, hint="Cast the column in the source.")


def _digest(columns: Sequence[SourceColumn], written: Sequence[Sequence[str | None]]) -> str:
    """Return the digest of columns and, row by row, of their written values, each with its length in front."""
    digest = sha256()
    for column in columns:
        digest.update(_prefix_length(column.name) + _prefix_length(column.declared))
    for start in range(0, len(written[0]) if written else 0, _AT_ONCE):
        parts = [part for found in written for part in _prefix_lengths(found[start : start + _AT_ONCE])]
        beside = [b""] * sum(map(len, parts))
        for place, part in enumerate(parts):
            beside[place :: len(parts)] = part
        digest.update(b"".join(beside))
    return digest.hexdigest()


def _prefix_length(text: str) -> bytes:
    """Return a text with its length in front, so that no two sequences of texts run together."""
    content = text.encode()
    return len(content).to_bytes(8, "big") + content


def _prefix_lengths(texts: Sequence[str | None]) -> Sequence[Sequence[bytes]]:
    """Return texts with their lengths in front, as sequences of what stands beside each other; NULL has no length."""
    if None in texts:
        return ([_NO_TEXT if text is None else _prefix_length(text) for text in texts],)
    contents = list(map(str.encode, cast("Sequence[str]", texts)))
    lengths = list(map(len, contents))
    written = {length: length.to_bytes(8, "big") for length in set(lengths)}
    return list(map(written.__getitem__, lengths)), contents
