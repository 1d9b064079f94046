"""The sending of pinned public rows to an engine, with the statements that read them.

Guarantee: a statement finds the pinned rows under the relation's name, even if the source has a table of that name. A
WITH around the statement defines them and hides every table. Nothing is written to the source, and reading rights
suffice.

PostgreSQL gets them as arrays, which are parameters of the statement. DuckDB gets them once for all questions, as
tables of a separate database in memory.

References: docs/decisions/0022-large-public-tables.md.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import islice
from struct import pack
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.catalog.catalog import Value
from planner.catalog.domains import encode_value
from planner.question.plan import PinnedColumn, PinnedRelation

if TYPE_CHECKING:  # each of the engines need not wait for the other's library
    import duckdb
    import psycopg
    from psycopg.adapt import Dumper

DATABASE = "keyhole_pinned"
_KEPT = 8  # relations, some tens of megabytes each where they have a million rows: those that questions last read
_CHUNKED = 170_000  # the libpq that hands on rows in pieces
_OIDS = {True: (20, 1016), False: (25, 1009)}  # of bigint, bigint[], and of text, text[]


def embed_pinned_rows(
    sql: str, pinned: Sequence[PinnedRelation], rows: Callable[[PinnedRelation], str], *, is_inlined: bool = False
) -> str:
    """Return the SQL of a statement in which these relations are read from the SQL that `rows` returns for them.

    Parameters:
        is_inlined: True to let the engine read them at each place, without a common copy. DuckDB 2.0 may wait forever
            for a copy that is read both before and after a join.
    """
    if not pinned:
        return sql
    how = " NOT MATERIALIZED" if is_inlined else ""
    named = ",\n".join(f"{one.name} AS{how} (\n{rows(one)}\n)" for one in pinned)
    return f"-- pinned public rows\nWITH {named}\nSELECT * FROM (\n{sql}\n) AS asked"


def _list_read_relations(sql: str, pinned: Sequence[PinnedRelation]) -> list[PinnedRelation]:
    """Return those of the pinned relations that a statement names. A statement over kept steps may need fewer."""
    return [one for one in pinned if one.name in sql]


def _write_text(value: Value) -> str:
    return format(value, "f") if isinstance(value, Decimal) else encode_value(value)


@dataclass(frozen=True, slots=True)
class BinaryArray:
    """An array in PostgreSQL's binary format, with the OID of its type."""

    oid: int
    content: bytes


class _Recent:
    """A cache of the arrays of recently used pinned relations. Safe to share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[str, tuple[BinaryArray, ...]] = OrderedDict()

    def get(self, relation: PinnedRelation) -> tuple[BinaryArray, ...]:
        with self._lock:
            made = self._made.get(relation.name)
            if made is None:
                made = self._made[relation.name] = tuple(map(_encode_array, relation.columns))
                while len(self._made) > _KEPT:
                    self._made.popitem(last=False)
            self._made.move_to_end(relation.name)
            return made


def _encode_array(column: PinnedColumn) -> BinaryArray:
    element, array = _OIDS[column.is_whole]
    size = len(column.values)
    head = (
        pack(">iiIii", 1, 1 if None in column.values else 0, element, size, 1) if size else pack(">iiI", 0, 0, element)
    )
    if column.is_whole and None not in column.values:
        items = np.empty(size, dtype=[("length", ">i4"), ("value", ">i8")])
        items["length"], items["value"] = 8, np.array(column.values, dtype=np.int64)
        return BinaryArray(array, head + items.tobytes())
    written = {value: _encode_item(value, column) for value in set(column.values)}
    return BinaryArray(array, head + b"".join(map(written.__getitem__, column.values)))


def _encode_item(value: Value | None, column: PinnedColumn) -> bytes:
    if value is None:
        return b"\xff\xff\xff\xff"
    content = pack(">q", value) if column.is_whole else _write_text(value).encode()
    return pack(">i", len(content)) + content


@cache
def _array_dumper() -> "type[Dumper]":
    """Return the psycopg dumper class that sends a `BinaryArray` as its bytes."""
    from psycopg.adapt import Dumper, PyFormat
    from psycopg.pq import Format

    class ArrayDumper(Dumper):
        format = Format.BINARY

        def dump(self, obj: BinaryArray) -> bytes:
            return obj.content

        def get_key(self, obj: BinaryArray, format: PyFormat) -> tuple[type, ...]:  # noqa: A002, ARG002 (psycopg's name)
            return (self.cls, int if obj.oid == _OIDS[True][1] else str)

        def upgrade(self, obj: BinaryArray, format: PyFormat) -> Dumper:  # noqa: A002, ARG002
            made = ArrayDumper(self.cls)
            made.oid = obj.oid
            return made

    return ArrayDumper


class PostgresPins:
    """A sender of pinned relations as PostgreSQL arrays. It keeps recent arrays for the next statements."""

    def __init__(self) -> None:
        self._arrays = _Recent()

    def run(
        self,
        connection: "psycopg.Connection[tuple[Any, ...]]",
        sql: str,
        pinned: Sequence[PinnedRelation],
        *,
        head: str = "",
    ) -> "psycopg.Cursor[tuple[Any, ...]]":
        """Run a statement that reads pinned relations, after a `head` such as CREATE TABLE ... AS.

        Without a head, the cursor has the rows. The SQL text was generated by Keyhole, with quoted identifiers and
        typed constants.
        """
        import psycopg

        cursor = psycopg.RawCursor(connection)
        text, arrays = self._bind(cursor, sql, pinned)
        return cursor.execute(head + text, arrays or None, binary=True)

    def stream(
        self,
        connection: "psycopg.Connection[tuple[Any, ...]]",
        sql: str,
        pinned: Sequence[PinnedRelation],
        *,
        rows: int,
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a statement that reads pinned relations, in lists of `rows` rows, as the server sends them.

        The caller must read all of them, or close the connection.
        """
        import psycopg

        cursor = psycopg.RawCursor(connection)
        text, arrays = self._bind(cursor, sql, pinned)
        at_once = rows if psycopg.pq.version() >= _CHUNKED else 1  # else the library has them row by row
        found = cursor.stream(text, arrays or None, binary=True, size=at_once)
        while piece := list(islice(found, rows)):
            yield piece

    def _bind(
        self, cursor: "psycopg.RawCursor[tuple[Any, ...]]", sql: str, pinned: Sequence[PinnedRelation]
    ) -> tuple[str, list[BinaryArray]]:
        """Return the statement to send, with the arrays of the relations that it names as parameters."""
        pinned = _list_read_relations(sql, pinned)
        if not pinned:
            return sql, []
        cursor.adapters.register_dumper(BinaryArray, _array_dumper())
        first: dict[str, int] = {}
        arrays: list[BinaryArray] = []
        for relation in pinned:
            first[relation.name] = len(arrays) + 1
            arrays += self._arrays.get(relation)

        def rows(relation: PinnedRelation) -> str:
            at = first[relation.name]
            given = ", ".join(
                f"CAST(${at + i} AS {'bigint' if column.is_whole else 'text'}[])"
                for i, column in enumerate(relation.columns)
            )
            names = ", ".join(column.name for column in relation.columns)
            typed = ", ".join(f"CAST({c.name} AS {c.type_name}) AS {c.name}" for c in relation.columns)
            return f"SELECT {typed} FROM unnest({given}) AS given({names})"

        return embed_pinned_rows(sql, pinned, rows), arrays


class DuckDBPins:
    """Pinned relations as tables of the attached database `DATABASE`. Each is created when a statement first reads it.

    Parameters:
        connection: a connection to the instance that has `DATABASE` attached.
    """

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._made: OrderedDict[str, None] = OrderedDict()
        self._read: Counter[str] = Counter()

    @contextmanager
    def provide_tables(self, sql: str, pinned: Sequence[PinnedRelation]) -> Iterator[str]:
        """Yield the statement's SQL, changed to read pinned relations from tables.

        The tables exist during the block.
        """
        pinned = _list_read_relations(sql, pinned)
        names = [relation.name for relation in pinned]
        with self._lock:
            for relation in pinned:
                self._make(relation)
            self._read.update(names)
        try:
            yield embed_pinned_rows(sql, pinned, lambda one: f"SELECT * FROM {_quote_table(one.name)}", is_inlined=True)
        finally:
            with self._lock:
                self._read.subtract(names)
                self._drop_oldest()

    def _make(self, relation: PinnedRelation) -> None:
        if relation.name not in self._made:
            cursor = self._connection.cursor()
            try:
                cursor.register("keyhole_given", {column.name: _make_array(column) for column in relation.columns})
                typed = ", ".join(f"CAST({c.name} AS {c.type_name}) AS {c.name}" for c in relation.columns)
                cursor.execute(f"CREATE TABLE {_quote_table(relation.name)} AS SELECT {typed} FROM keyhole_given")
            finally:
                cursor.close()
            self._made[relation.name] = None
        self._made.move_to_end(relation.name)

    def _drop_oldest(self) -> None:
        for name in list(self._made)[: max(0, len(self._made) - _KEPT)]:
            if not self._read[name]:
                del self._made[name], self._read[name]
                cursor = self._connection.cursor()
                try:
                    cursor.execute(f"DROP TABLE {_quote_table(name)}")
                finally:
                    cursor.close()


def _quote_table(name: str) -> str:
    return f"{DATABASE}.main.{name}"


def _make_array(column: PinnedColumn) -> Any:
    if column.is_whole and None not in column.values:
        return np.array(column.values, dtype=np.int64)
    different = dict(zip(map(id, column.values), column.values, strict=True))  # equal values are mostly one object
    texts = {at: None if value is None else _write_text(value) for at, value in different.items()}
    return np.array(list(map(texts.__getitem__, map(id, column.values))), dtype=object)
