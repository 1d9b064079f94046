"""The SQL tests and orders of bounding on rows, units and keys, shared by a question's scan and rollups.

Guarantee: nothing here depends on a question's WHERE, FILTER or own restriction of keys. It depends on table, grouping
columns and their public domains alone.

References: docs/proofs/joint_loss.md; docs/proofs/units_over_a_horizon.md; docs/decisions/0002-rewriting.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from planner.catalog.catalog import Column, Table, Value
from planner.catalog.key_space import KeySpace
from planner.lower.row import RowSql
from planner.question.as_of import AsOf

CAME = "came"
"""The alias of the time at which a row came, or the first of several rows."""


@dataclass(frozen=True, slots=True)
class Bounding:
    """The rule that chooses the keys in which each privacy unit of a table counts.

    `chooses_groups` is True if a unit could have rows in more keys than count. With `as_of` the rows that came first
    count, and md5 decides among rows of the same moment.
    """

    row: RowSql
    keys: KeySpace
    as_of: AsOf | None = None
    chooses_groups: bool = field(init=False)

    def __post_init__(self) -> None:
        """Set `chooses_groups` once, because every part of the statement reads it."""
        object.__setattr__(self, "chooses_groups", exceeds_groups(self.row.table, self.keys))

    def find_domain(self, index: int) -> tuple[Value, ...]:
        """Return all public values of a grouping column, by its index."""
        return self.keys.get_whole_domain(index)

    @property
    def units(self) -> list[tuple[str, Column]]:
        """The privacy unit's columns, each with its alias. A column that is also a key has the key's alias."""
        names = self.keys.names
        return [
            (f"k{names.index(name)}" if name in names else f"u{i}", self.row.table.get_column(name))
            for i, name in enumerate(self.row.table.unit)
        ]

    @property
    def groups(self) -> list[tuple[str, Column]]:
        """The columns of the unit and of the keys, each once."""
        keys = [(f"k{i}", column) for i, column in enumerate(self.keys.columns)]
        return [unit for unit in self.units if unit not in keys] + keys

    def write_row_order(self, *, unique: Column) -> str:
        """Return the SQL of the order in which a unit's rows in a key count."""
        came = [] if self.as_of is None else [self.row.write_ordered_column(self.as_of.column)]
        return self._put_arrival_first(came, self._write_drawn_order([(self.row.write_column(unique.name), unique)]))

    def write_value_order(self, expression: str, *, column: Column) -> str:
        """Return the SQL of the order by which a unit's different values of a column in a key are chosen.

        At a look it reads `CAME`, the time at which each value came first.
        """
        return self._put_arrival_first([CAME], self._write_drawn_order([(expression, column)]))

    def write_key_order(self) -> str:
        """Return the SQL of the order by which a unit's keys are chosen, over their aliases.

        The same keys are chosen however GROUP BY is typed. All spellings of a computed key are one question, so the
        order does not depend on the spelling. At a look it reads `CAME`, the time at which the unit came into each
        key.
        """
        return self._put_arrival_first([CAME], self._write_drawn_order(self._sort_groups()))

    def write_key_md5(self) -> str:
        """Return the SQL of an md5 over the aliases of a unit's keys. Keys are chosen in its order."""
        return self._write_md5(self._sort_groups())

    def write_copy_order(self, *beside: tuple[str, Column]) -> str:
        """Return the SQL of the order by which a unit's rows in a key are chosen without a unique column."""
        return self._write_drawn_order([*self._sort_groups(), *beside])

    def _sort_groups(self) -> list[tuple[str, Column]]:
        return sorted(self.groups, key=lambda part: part[1].identity)

    @property
    def order_in_words(self) -> str:
        """The comment in generated SQL that explains how rows and keys are chosen."""
        return "in the order of md5" if self.as_of is None else "as they came, at one moment in the order of md5"

    def list_arrivals(self) -> list[str]:
        """Return the SQL of the time at which a row arrived. Return [] if no order reads this time."""
        return [] if self.as_of is None else [self.row.write_column(self.as_of.column)]

    def list_first_arrivals(self, came: Iterable[str]) -> list[str]:
        """Return the SQL of the time at which the first of several rows arrived, under its alias.

        Return [] if no order reads it.
        """
        return [f"min({one}) AS {CAME}" for one in came]

    def _put_arrival_first(self, came: list[str], drawn: str) -> str:
        return drawn if self.as_of is None else ", ".join([*came, drawn])

    def _write_drawn_order(self, parts: list[tuple[str, Column]]) -> str:
        """Return the SQL of an order that no data can influence.

        It is the md5 of seed and canonical text. Ties are ordered by the values themselves.
        """
        return ", ".join([self._write_md5(parts), *(sql for sql, _ in parts)])

    def _write_md5(self, parts: list[tuple[str, Column]]) -> str:
        texts = [
            self.row.dialect.spelling.quote_text(self.row.table.seed),
            *(self.row.write_canonical(sql, column) for sql, column in parts),
        ]
        canonical = " || '|' || ".join(texts)
        return f"md5({canonical}){self.row.dialect.byte_order}"


def exceeds_groups(table: Table, keys: KeySpace) -> bool:
    """Return True if a unit could have rows in more than `groups_per_unit` keys of the whole public domain."""
    return keys.count_reachable_groups(table) > table.groups_per_unit


def write_not_null(row: RowSql, column: Column) -> str:
    """Return the SQL of a test that a row has a value of the column."""
    return f"({row.write_column(column.name)}) IS NOT NULL"
