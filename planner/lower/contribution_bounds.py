"""The tests of bounding on rows, units and keys, the same for a question's scan and for a rollup of many questions.

Guarantee: nothing here depends on a question's WHERE, FILTER or own restriction of keys, but on table, grouping
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
"""The alias of when a row came, or the first of several."""


@dataclass(frozen=True, slots=True)
class Bounding:
    """The privacy units of a table and the keys they are counted in.

    `chooses` where a unit could have rows in more keys than count. With `as_of` what came first counts, and md5 decides
    among what came at the same moment.
    """

    row: RowSql
    keys: KeySpace
    as_of: AsOf | None = None
    chooses: bool = field(init=False)

    def __post_init__(self) -> None:
        """Set `chooses` once, as every part of the statement asks for it."""
        object.__setattr__(self, "chooses", exceeds_groups(self.row.table, self.keys))

    def domain(self, index: int) -> tuple[Value, ...]:
        """Return all public values of a grouping column."""
        return self.keys.get_whole_domain(index)

    @property
    def units(self) -> list[tuple[str, Column]]:
        """The privacy unit's columns, each under its alias (a key's, where the unit contains a key)."""
        names = self.keys.names
        return [
            (f"k{names.index(name)}" if name in names else f"u{i}", self.row.table.get_column(name))
            for i, name in enumerate(self.row.table.unit)
        ]

    @property
    def groups(self) -> list[tuple[str, Column]]:
        """Unit and key columns, each once."""
        keys = [(f"k{i}", column) for i, column in enumerate(self.keys.columns)]
        return [unit for unit in self.units if unit not in keys] + keys

    def order_of_rows(self, *, unique: Column) -> str:
        """Return the order in which a unit's rows in a key count."""
        came = [] if self.as_of is None else [self.row.ordered_column(self.as_of.column)]
        return self._first_come(came, self._draw_order([(self.row.column(unique.name), unique)]))

    def order_of_values(self, expression: str, *, column: Column) -> str:
        """Return the SQL of the order in which a unit's different values of a column in a key count.

        Each has when it `CAME` first.
        """
        return self._first_come([CAME], self._draw_order([(expression, column)]))

    def order_of_keys(self) -> str:
        """Return the order in which a unit's keys count, over their aliases.

        However GROUP BY is typed, the same keys do.

        Spellings of a computed key are one question, so that its order may not follow from how it is spelled.

        Of a look, with when the unit `CAME` into each.
        """
        return self._first_come([CAME], self._draw_order(self._sort_groups()))

    def md5_of_keys(self) -> str:
        """Return the md5 by which a unit's keys are ordered first, over their aliases."""
        return self._draw(self._sort_groups())

    def order_of_copies(self, *beside: tuple[str, Column]) -> str:
        """Return the order in which a unit's rows in a key count where nothing but these columns tells them apart."""
        return self._draw_order([*self._sort_groups(), *beside])

    def _sort_groups(self) -> list[tuple[str, Column]]:
        return sorted(self.groups, key=lambda part: part[1].identity)

    @property
    def order_in_words(self) -> str:
        """Return the comment in statements on these orders."""
        return "in the order of md5" if self.as_of is None else "as they came, at one moment in the order of md5"

    def came(self) -> list[str]:
        """Return the time when a row came; nothing if that is not asked."""
        return [] if self.as_of is None else [self.row.column(self.as_of.column)]

    def first_came(self, came: Iterable[str]) -> list[str]:
        """Return the time when the first of several rows came, under its alias; nothing if that is not asked."""
        return [f"min({one}) AS {CAME}" for one in came]

    def _first_come(self, came: list[str], drawn: str) -> str:
        return drawn if self.as_of is None else ", ".join([*came, drawn])

    def _draw_order(self, parts: list[tuple[str, Column]]) -> str:
        """Return the SQL of an order that no data can choose.

        It is md5 of seed and canonical text, ties by the values themselves.
        """
        return ", ".join([self._draw(parts), *(sql for sql, _ in parts)])

    def _draw(self, parts: list[tuple[str, Column]]) -> str:
        texts = [
            self.row.dialect.spelling.text(self.row.table.seed),
            *(self.row.canonical(sql, column) for sql, column in parts),
        ]
        canonical = " || '|' || ".join(texts)
        return f"md5({canonical}){self.row.dialect.byte_order}"


def exceeds_groups(table: Table, keys: KeySpace) -> bool:
    """Return True if a unit could have rows in more than G keys of the whole public domain."""
    return keys.count_reachable_groups(table) > table.groups_per_unit


def not_null(row: RowSql, column: Column) -> str:
    """Return the SQL of a test that a row has a value of the column."""
    return f"({row.column(column.name)}) IS NOT NULL"
