"""A table whose units are reached through keys, as a relation that has the units' columns.

Guarantee: each row of the table is there once if its path leads to a unit, and otherwise not, whatever the tables on
the path hold. If two of their rows have the same key, the least unit counts, in the order of bytes or numbers. From a
table that is joined along the path, the row has the columns of one row. Among the rows that the key leads to and that
are the least unit's, it is the first in the order of their values. So if all rows of one unit are removed from all
tables, every other row keeps its unit and its columns. The statement takes a few passes over each table and joins by
equality, in which a row finds at most one other.

Proof: docs/proofs/unit_paths.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from types import MappingProxyType

from planner.catalog.catalog import Column, NamedStep, SqlType, Table
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.lower.kept.named_steps import make_step, merge_steps
from planner.lower.read_columns import keep_columns
from planner.lower.row import RowSql
from planner.lower.unit_paths.carried_values import write_shortened_column
from planner.lower.whole_joins.fences import add_any_row, write_row_fence
from planner.lower.whole_joins.front_conditions import NOTHING, FrontConditions, ask_rows, test_rows

NO_LENGTHS: Mapping[str, int] = MappingProxyType({})
"""The lengths for a table without columns that are looked up in a public table."""

_ORDERED = frozenset({SqlType.INTEGER, SqlType.TEXT, SqlType.DATE, SqlType.TIMESTAMP})
"""Types whose least value every engine finds by `min`. PostgreSQL learns only from groups that several columns are a
key. Otherwise it expects hardly any matches, and compares all rows with all rows of the next relation."""


def add_unit_columns(
    table: Table, *, dialect: Dialect, longest: Mapping[str, int] = NO_LENGTHS, front: FrontConditions = NOTHING
) -> Table:
    """Return the table with its units' columns, and columns of tables along its path, as stored columns.

    Return the table itself if it has no path.

    Parameters:
        longest: the least length to which texts of other tables are cut, by column.
        front: tests on rows before they are joined. If there are tests, the relation has one more row, without a unit.
    """
    if table.path is None:
        return table
    spelling = dialect.spelling
    own = RowSql(table=table, dialect=dialect)
    brought = [
        (there, here) for there, here in table.path.added_columns if _is_stored(table.path.table.get_column(there))
    ]
    reached, read = {*table.unit, *(here for _, here in brought)}, {column.name for column in table.columns}
    shown = [
        spelling.quote_identifier(column.name)
        for column in table.columns
        if column.derivation is None and column.name not in reached
    ]
    found = [f"keyhole_p{i} AS {spelling.quote_identifier(name)}" for i, name in enumerate(table.unit)]
    found += [
        f"keyhole_c{i} AS {spelling.quote_identifier(here)}" for i, (_, here) in enumerate(brought) if here in read
    ]
    source, keys = table.relation, [own.write_column(name) for name in table.path.from_columns]
    if front.has_own:
        source, keys = ask_rows(own, front, shown=shown, keys=table.path.from_columns)
    met = " AND ".join(f"{key} = keyhole_r{i}" for i, key in enumerate(keys))
    inside = {there: longest[here] for there, here in table.path.added_columns if here in longest}
    finding = _UnitFinder(
        table.path.table, table.path.to_columns, tuple(there for there, _ in brought), dialect, inside
    )
    lookup, steps = finding.write_relation([here in read for _, here in brought], front=front.find_path_conditions())
    rows = (
        f"SELECT {', '.join([*shown, *found])} FROM {source} JOIN {lookup} ON {met}"
        f" /* the unit of each row: that of the one row that its key leads to */"
    )
    if front:
        rows = add_any_row(rows, (), beside=len(shown) + len(found), dialect=dialect)
    relation = f"({rows}{write_row_fence(dialect)}) AS reached"
    return replace(table, relation=relation, path=None, steps=merge_steps(table.steps, steps))


def find_keys(table: Table, *, dialect: Dialect) -> tuple[str, tuple[NamedStep, ...]]:
    """Return SQL for the relation of keys by which a table's rows find their units, and the steps that it reads.

    It has a row for each key: `keyhole_r0` and so on, and the unit's columns, `keyhole_p0` and so on. Raises KH900 for
    a table without a path.
    """
    if table.path is None:
        raise KeyholeError("KH900", "the table has no path to its units")
    brought = tuple(there for there, _ in table.path.added_columns if _is_stored(table.path.table.get_column(there)))
    finding = _UnitFinder(table.path.table, table.path.to_columns, brought, dialect, NO_LENGTHS)
    return finding.write_relation([False] * len(brought))


def list_owners(table: Table, *, dialect: Dialect) -> tuple[NamedStep | None, tuple[NamedStep, ...]]:
    """Return the step that lists the keys along a table's path which are not unique, and all steps that it reads.

    The step has a row for each such key, `keyhole_r0` and so on, with the unit to which the key leads, `keyhole_p0`
    and so on. One unique key is listed too. The step is None if the source keeps keys unique. Raises KH900 for a table
    without a path.
    """
    if table.path is None:
        raise KeyholeError("KH900", "the table has no path to its units")
    if table.path.table.has_key(table.path.to_columns):
        return None, ()
    finding = _UnitFinder(table.path.table, table.path.to_columns, (), dialect, NO_LENGTHS)
    repeated = _list_repeated_keys(finding.table, finding.key_columns, dialect)
    firsts, steps = finding.list_firsts(repeated)
    return firsts, merge_steps(steps, [repeated, firsts])


def _is_stored(column: Column) -> bool:
    return column.derivation is None


@dataclass(frozen=True, slots=True)
class _UnitFinder:
    """The ways from keys of a table to units.

    `key_columns` are the columns of a key. `carried_columns` are the columns whose values may be carried to the rows
    that reach it. `text_length` is the least length to which texts are cut.
    """

    table: Table
    key_columns: Sequence[str]
    carried_columns: Sequence[str]
    dialect: Dialect
    text_length: Mapping[str, int]

    def write_relation(
        self, read: Sequence[bool], *, front: FrontConditions = NOTHING
    ) -> tuple[str, tuple[NamedStep, ...]]:
        """Return SQL for the relation with one row for each key that leads to a unit, and its steps.

        A row has the unit, and the values of the columns that are read. The steps hold the values of all columns.

        Parameters:
            front: tests on most rows. Some rows are there that do not satisfy them.
        """
        narrow = keep_columns(self.table, [*self.key_columns, *compress(self.carried_columns, read)])
        rows, row = self._write_rows(narrow, read, front=front)
        if self.table.has_key(self.key_columns):
            if front:
                keys = [row.table.get_column(name) for name in self.key_columns]
                rows = add_any_row(rows, keys, beside=len(row.table.unit) + sum(read), dialect=self.dialect)
            return f"({rows}) AS found", row.table.steps
        if len(self.key_columns) > 1 and not self.carried_columns and _has_least_unit(row.table):
            shown, named = f"{', '.join(self._keys)}, min(keyhole_p0) AS keyhole_p0", ", ".join(self._keys)
            return f"(SELECT {shown} FROM ({rows}) AS keyed GROUP BY {named}) AS found", row.table.steps
        repeated = _list_repeated_keys(self.table, self.key_columns, self.dialect)
        firsts, steps = self.list_firsts(repeated)
        kept = ", ".join([*self._keys, *self._units, *compress(self._value_aliases, read)])
        met = " AND ".join(f"{name} = keyhole_s{i}" for i, name in enumerate(self._keys))
        found = (
            f"(SELECT {kept} FROM ({rows}) AS keyed LEFT JOIN {repeated.name} ON {met} WHERE keyhole_s0 IS NULL"
            f" UNION ALL SELECT {kept} FROM {firsts.name}) AS found"
        )
        return found, merge_steps(steps, [repeated, firsts])

    @property
    def _keys(self) -> list[str]:
        return [f"keyhole_r{i}" for i in range(len(self.key_columns))]

    @property
    def _units(self) -> list[str]:
        return [f"keyhole_p{i}" for i in range(len(self.table.unit))]

    @property
    def _value_aliases(self) -> list[str]:
        return [f"keyhole_c{i}" for i in range(len(self.carried_columns))]

    def _write_rows(
        self, table: Table, read: Sequence[bool], *, among: str = "", front: FrontConditions = NOTHING
    ) -> tuple[str, RowSql]:
        """Return SQL for the rows with a key and a unit, and a row of them.

        Parameters:
            among: a step of keys, whose rows alone are returned. Empty for all rows.
            front: tests on the rows.
        """
        reached = add_unit_columns(table, dialect=self.dialect, longest=self.text_length, front=front)
        row = RowSql(table=reached, dialect=self.dialect)
        columns = [
            f"{row.write_column(name)} AS {alias}" for name, alias in zip(self.key_columns, self._keys, strict=True)
        ]
        columns += [
            f"{row.write_column(name)} AS {alias}" for name, alias in zip(reached.unit, self._units, strict=True)
        ]
        columns += [
            f"{_write_carried_value(row, reached.get_column(name), self.text_length)} AS {alias}"
            for name, alias in compress(zip(self.carried_columns, self._value_aliases, strict=True), read)
        ]
        tests = [f"({row.write_column(name)}) IS NOT NULL" for name in (*self.key_columns, *reached.unit)]
        source, asked = test_rows(row, front) if table.path is None else (reached.relation, [])
        present = " AND ".join([*tests, *asked])
        if among:
            met = " AND ".join(f"{row.write_column(name)} = keyhole_s{i}" for i, name in enumerate(self.key_columns))
            source = f"{source} JOIN {among} ON {met}"
        return f"SELECT {', '.join(columns)} FROM {source} WHERE {present}", row

    def list_firsts(self, repeated: NamedStep) -> tuple[NamedStep, tuple[NamedStep, ...]]:
        """Return the step with the row that counts for each repeated key, whole, and the steps that it reads."""
        every = [True] * len(self.carried_columns)
        rows, row = self._write_rows(self.table, every, among=repeated.name)
        values = [row.table.get_column(name) for name in self.carried_columns]
        order = ", ".join([*self._units, *_order_values(self.table, values, self.dialect)])
        place = f"row_number() OVER (PARTITION BY {', '.join(self._keys)} ORDER BY {order}) AS keyhole_place"
        firsts = make_step(
            f"SELECT {', '.join([*self._keys, *self._units, *self._value_aliases])} FROM (SELECT *, {place}"
            f" FROM ({rows}) AS keyed) AS placed WHERE keyhole_place = 1 /* of several rows with one key: the first */",
        )
        return firsts, row.table.steps


def _has_least_unit(table: Table) -> bool:
    """Return True if every engine can compare the table's units by `min`."""
    return len(table.unit) == 1 and table.get_column(table.unit[0]).sql_type in _ORDERED


def _list_repeated_keys(table: Table, through: Sequence[str], dialect: Dialect) -> NamedStep:
    """Return the step of the keys that several rows of a table have, and one more key.

    Ordering by all columns is expensive, and only the rows of these keys need it. With one more key the rows of listed
    keys are always read: engines skip a join with an empty relation. It is the first in order, because engines may
    compute a step again wherever it is read.
    """
    row = RowSql(table=table.bare_table, dialect=dialect)
    keys = [row.write_column(name) for name in through]
    present = " AND ".join(f"({key}) IS NOT NULL" for key in keys)
    shown = ", ".join(f"{key} AS keyhole_s{i}" for i, key in enumerate(keys))
    named = ", ".join(f"keyhole_s{i}" for i in range(len(keys)))
    rows = f"(SELECT {shown} FROM {table.relation} WHERE {present})"
    return make_step(
        f"SELECT {named} FROM {rows} AS counted GROUP BY {named} HAVING count(*) > 1"
        f" UNION (SELECT {named} FROM {rows} AS in_order ORDER BY {named} LIMIT 1)",
    )


def _write_carried_value(row: RowSql, column: Column, longest: Mapping[str, int]) -> str:
    """Return SQL for a value in the form in which it is carried, NULL for a type that no question reads."""
    if column.sql_type is SqlType.OTHER:
        return "NULL"
    return write_shortened_column(row, column, longest=longest.get(column.name, 0))


def _order_values(table: Table, values: Sequence[Column], dialect: Dialect) -> list[str]:
    """Return the order of a unit's rows with one key, by everything that questions see of the table's own columns.

    Columns of another table are equal if these are. The order is the same for every question.
    """
    further = {here for _, here in table.path.added_columns} if table.path is not None else set()
    seen = sorted((one.name, f"keyhole_c{i}", one) for i, one in enumerate(values) if one.name not in further)
    order, behind = [], []
    for _, value, column in seen:
        if column.sql_type is SqlType.OTHER:
            continue
        if column.sql_type is SqlType.TEXT and not column.enumerated:
            order.append(f"left({value}, {column.longest_text}){dialect.byte_order} NULLS FIRST")
            behind.append(f"{value}{dialect.byte_order} NULLS FIRST")  # of which a lookup sees more
        elif column.sql_type is SqlType.DOUBLE:  # which is carried as it is stored
            order.append(f"{dialect.read_stored_column(value, column)} NULLS FIRST")
        else:
            order.append(f"{value} NULLS FIRST")
    return [*order, *behind]
