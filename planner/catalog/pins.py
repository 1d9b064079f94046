"""Pins: public tables and key domains as the owner confirmed them, copied and hashed.

If the source changes later, questions use the pinned copy until the owner confirms the change.
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
from planner.catalog.sql_types import SourceColumn, read_sql_type

_HASHED_ROWS = 1_000  # rows that are hashed together: more take memory, and the processor's cache
_SAMPLED_VALUES = 10_000  # values of a column that tell whether it repeats them: a part of a millisecond
_FEW_VALUES = 100  # values that cost nothing, whether or not they repeat
_UNPARSED_TYPES = frozenset({SqlType.TEXT, SqlType.UUID})
_CHEAP_TYPES = _UNPARSED_TYPES | {SqlType.INTEGER}  # types whose texts are parsed and compared quickly
_NULL_LENGTH = b"\xff" * 8


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A copy of a public table with sorted rows. `digest` is a sha256 in hex of columns and rows.

    `unique` are the columns that the source keeps unique, each without the others.
    """

    name: str
    columns: tuple[SourceColumn, ...]
    rows: tuple[tuple[Value | None, ...], ...]
    digest: str
    unique: tuple[str, ...] = ()

    def get_values(self, column: str) -> tuple[Value | None, ...]:
        """Return one column's values, row by row. Raise a `Fault` (KH003) for a column that the table does not have."""
        names = [known.name for known in self.columns]
        if column not in names:
            problem = f'table "{self.name}" has no column "{column}"'
            raise Fault("KH003", problem, hint=f"Its columns: {', '.join(names)}.")
        index = names.index(column)
        return tuple(row[index] for row in self.rows)

    def get_type(self, column: str) -> SqlType:
        """Return one column's type."""
        return next(read_sql_type(known.declared) for known in self.columns if known.name == column)


@dataclass(frozen=True, slots=True)
class PinnedDomain:
    """A confirmed key domain: the number of its values and the digest of all of them."""

    table: str
    column: str
    count: int
    digest: str


@dataclass(frozen=True, slots=True)
class Pins:
    """Everything pinned for one policy.

    `refreshes` has, for each table with refresh = explicit, the time at which its owner last declared new data.
    `relations` has the names of each private table in the source, `columns` the source's types of its exposed columns.
    `states` has the state in which a table was first seen in each data version. `files` has the form of each CSV file.
    `pace` is the speed of the source on generated rows. `has_analyst_caps` says whether any analyst had a cap of their
    own.
    """

    tables: tuple[PinnedTable, ...] = ()
    domains: tuple[PinnedDomain, ...] = ()
    refreshes: tuple[tuple[str, datetime], ...] = ()
    relations: tuple[tuple[str, tuple[str, ...]], ...] = ()
    states: tuple[tuple[str, str, str], ...] = ()
    columns: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    files: tuple[tuple[str, CsvFile], ...] = ()
    pace: Pace | None = None
    has_analyst_caps: bool | None = None

    def get_csv_file(self, table: str) -> CsvFile | None:
        """Return the form of a table's CSV file. Return None if it is no CSV file, or was never pinned."""
        return dict(self.files).get(table)

    def get_table(self, name: str) -> PinnedTable | None:
        """Return the copy of a public table, if it was pinned."""
        return next((table for table in self.tables if table.name == name), None)

    def get_domain(self, table: str, column: str) -> PinnedDomain | None:
        """Return a column's confirmed domain, if it was pinned."""
        return next((pinned for pinned in self.domains if (pinned.table, pinned.column) == (table, column)), None)

    def get_relation(self, table: str) -> tuple[str, ...] | None:
        """Return the names of a private table in the source, the most stable name first.

        Return None if it was never pinned.
        """
        return dict(self.relations).get(table)

    def get_types(self, table: str) -> dict[str, str] | None:
        """Return the types of a private table's columns in the source, by column.

        Return None if it was never pinned.
        """
        pinned = dict(self.columns).get(table)
        return None if pinned is None else dict(pinned)

    def get_state(self, table: str, version: str) -> str | None:
        """Return the state in which a table was first seen in a data version."""
        return next((state for name, seen, state in self.states if (name, seen) == (table, version)), None)

    def mark_refreshed(self, table: str, *, at: datetime) -> "Pins":
        """Return pins with `at` as the time, in UTC, at which the owner declared new data in `table`."""
        return replace(self, refreshes=tuple(sorted({**dict(self.refreshes), table: at}.items())))


def pin_table(name: str, columns: Sequence[SourceColumn], rows: Sequence[Sequence[object]]) -> PinnedTable:
    """Return a copy of a public table from the source's rows, in any order.

    Raise a `Fault` (KH006) for a value or type that cannot be pinned.
    """
    kinds = _list_copyable_types(columns)
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
        rows=_zip_columns([[found[place] for place in order] for found in copied]),
        digest=_compute_digest(columns, [[found[place] for place in order] for found in written]),
    )


def read_pinned_table(
    name: str, columns: Sequence[SourceColumn], rows: Sequence[Sequence[str | None]], *, digest: str
) -> PinnedTable | None:
    """Return the pinned copy of a table from its values as texts, in the order of the pin file.

    Return None if they do not match the digest. Raise a `Fault` (KH006) for a type that cannot be pinned.
    """
    kinds = _list_copyable_types(columns)
    by_column = list(zip(*rows, strict=True)) or [()] * len(columns)
    if _compute_digest(columns, by_column) != digest:
        return None
    read = [_read_values(found, kind) for found, kind in zip(by_column, kinds, strict=True)]
    return PinnedTable(name=name, columns=tuple(columns), rows=tuple(zip(*read, strict=True)), digest=digest)


def write_values(values: Iterable[Value | None], kind: SqlType) -> list[str | None]:
    """Return a column's values as texts of the pin file; NULL stays None."""
    match kind:
        case SqlType.TEXT | SqlType.UUID | SqlType.INTEGER | SqlType.NUMERIC | SqlType.DOUBLE:
            return [None if value is None else str(value) for value in values]
        case _:
            return [None if value is None else encode_value(value) for value in values]


def _zip_columns(columns: Sequence[Sequence[Value | None]]) -> tuple[tuple[Value | None, ...], ...]:
    """Return columns as rows.

    If a column repeats values, equal values share one object: there may be a million rows.
    """
    once: list[Sequence[Value | None]] = []
    for column in columns:
        first: dict[Value | None, Value | None] = {}
        once.append([first.setdefault(value, value) for value in column] if _may_be_shared(column) else column)
    return tuple(zip(*once, strict=True))


def _read_values(written: Sequence[str | None], kind: SqlType) -> Sequence[Value | None]:
    """Return the values of a column. If the column repeats texts, equal texts give one object."""
    read = _choose_parser(kind)
    first = written[:_SAMPLED_VALUES]
    if kind in _CHEAP_TYPES and 2 * len(set(first)) > len(first) > _FEW_VALUES:
        return list(written) if kind in _UNPARSED_TYPES else list(map(read, written))
    values = {text: read(text) for text in set(written)}
    return list(map(values.__getitem__, written))


def _may_be_shared(column: Sequence[Value | None]) -> bool:
    """Return True if equal values have equal texts. Numbers do not: 2.5 and 2.50 are equal."""
    return not any(isinstance(value, Decimal) for value in column)


def _choose_parser(kind: SqlType) -> Callable[[str | None], Value | None]:
    """Return the parser of texts of that type."""
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
            assert kind in _UNPARSED_TYPES
            return lambda text: text
    return lambda text: None if text is None else read(text)


def _list_copyable_types(columns: Sequence[SourceColumn]) -> list[SqlType]:
    """Return the columns' types. Raise a `Fault` (KH006) for a column whose values cannot be copied."""
    kinds = [read_sql_type(column.declared) for column in columns]
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


def _compute_digest(columns: Sequence[SourceColumn], written: Sequence[Sequence[str | None]]) -> str:
    """Return the digest of the columns and, row by row, of their texts, each preceded by its length."""
    digest = sha256()
    for column in columns:
        digest.update(_prefix_length(column.name) + _prefix_length(column.declared))
    for start in range(0, len(written[0]) if written else 0, _HASHED_ROWS):
        parts = [part for found in written for part in _prefix_lengths(found[start : start + _HASHED_ROWS])]
        beside = [b""] * sum(map(len, parts))
        for place, part in enumerate(parts):
            beside[place :: len(parts)] = part
        digest.update(b"".join(beside))
    return digest.hexdigest()


def _prefix_length(text: str) -> bytes:
    """Return a text preceded by its length, so that different sequences of texts never have equal bytes."""
    content = text.encode()
    return len(content).to_bytes(8, "big") + content


def _prefix_lengths(texts: Sequence[str | None]) -> Sequence[Sequence[bytes]]:
    """Return each text as its length and its bytes, for a digest. NULL has a length of its own."""
    if None in texts:
        return ([_NULL_LENGTH if text is None else _prefix_length(text) for text in texts],)
    contents = list(map(str.encode, cast("Sequence[str]", texts)))
    lengths = list(map(len, contents))
    written = {length: length.to_bytes(8, "big") for length in set(lengths)}
    return list(map(written.__getitem__, lengths)), contents
