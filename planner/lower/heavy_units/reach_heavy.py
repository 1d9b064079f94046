"""A table as a relation whose rows have their unit only if the unit is heavy.

The table's rows reach their units by a key. A list has the keys that lead to a heavy unit, each with the unit, and the
keys that lead to no unit. A row whose key is not on the list is of another unit, which it need not reach.

Guarantee: each row that leads to a unit is there once. It has the unit if the unit is heavy, and NULL if not. For the
rows of one key it may be either. Other rows are not there.

References: docs/decisions/0040-named-steps.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planner.catalog.catalog import NamedStep, SqlType, Table, UnitPath
from planner.lower.dialects.dialect import Dialect
from planner.lower.kept.named_steps import make_step, merge_steps
from planner.lower.row import RowSql
from planner.lower.unit_paths.reach import find_keys
from planner.lower.whole_joins.fences import write_any_value, write_row_fence
from planner.lower.whole_joins.front_conditions import NOTHING, FrontConditions, ask_rows

_KEYS = frozenset({SqlType.INTEGER, SqlType.TEXT, SqlType.DATE, SqlType.UUID})
"""Types of keys with a known constant value and one spelling for each value."""

_NOBODY = "keyhole_z0"  # TRUE for a key that leads to no unit


def can_separate_heavy(table: Table) -> bool:
    """Return True if the key that leads to the unit decides which rows belong to heavy units.

    The other rows then need no join.
    """
    if table.path is None or table.members or table.lists or table.own or table.row_cap is not None:
        return False
    ways = zip(table.path.from_columns, table.path.to_columns, strict=True)
    pairs = [(table.get_column(name), table.path.table.get_column(there)) for name, there in ways]
    return all(one.sql_type == other.sql_type and one.sql_type in _KEYS for one, other in pairs)


def reads_own_values(table: Table, names: Iterable[str]) -> bool:
    """Return True if these columns of a table with a path are stored in the table itself."""
    assert table.path is not None
    return not table.include_bases(names) & {*table.unit, *(here for _, here in table.path.added_columns)}


@dataclass(frozen=True, slots=True)
class HeavyRows:
    """The rows of a table for which `can_separate_heavy`, the list of its heavy units, and the steps of that list.

    `front_conditions` are tests on rows before they are joined with the list. If there are tests, the relation has one
    more row, which is NULL in all columns except the key.
    """

    table: Table
    heavy_step: NamedStep
    earlier_steps: tuple[NamedStep, ...]
    dialect: Dialect
    front_conditions: FrontConditions = NOTHING

    def join_heavy_units(self) -> Table:
        """Return the table with the columns of heavy units as further columns.

        In rows of units that are not heavy these columns are NULL.
        """
        _, found = find_keys(self.table, dialect=self.dialect)
        listed, identifier = self._list_keys(), self.dialect.spelling.quote_identifier
        reached = {*self.table.unit, *(here for _, here in self._path.added_columns)}
        shown = [
            identifier(column.name)
            for column in self.table.columns
            if column.derivation is None and column.name not in reached
        ]
        source, by = self.table.relation, self._by
        if self.front_conditions.has_own:
            row = RowSql(table=self.table, dialect=self.dialect)
            source, by = ask_rows(row, self.front_conditions, shown=shown, keys=self._path.from_columns)
        shown += [
            f"{unit} AS {identifier(name)}" for unit, name in zip(self._name_units("y"), self.table.unit, strict=True)
        ]
        keys = self._name_keys("x")
        unseen = ", ".join(f"{self.dialect.hide_statistics(key)} AS {key}" for key in keys)
        apart = f"(SELECT {', '.join([unseen, *self._name_units('y'), _NOBODY])} FROM {listed.name}) AS apart"
        met = " AND ".join(f"{name} = {key}" for name, key in zip(by, keys, strict=True))
        relation = (
            f"(SELECT {', '.join(shown)} FROM {source} LEFT JOIN {apart} ON {met}"
            f" WHERE {_NOBODY} IS NULL AND {_test_keys(by)}"
            f" /* each row with its unit if that is heavy, and with none if another is */"
            f"{write_row_fence(self.dialect)})"
            " AS reached"
        )
        steps = merge_steps(self.earlier_steps, found, [self.heavy_step, listed])
        return replace(self.table, relation=relation, path=None, steps=steps)

    @property
    def _path(self) -> UnitPath:
        assert self.table.path is not None
        return self.table.path

    @property
    def _by(self) -> list[str]:
        row = RowSql(table=self.table, dialect=self.dialect)
        return [row.write_column(name) for name in self._path.from_columns]

    def _name_keys(self, letter: str) -> list[str]:
        return [f"keyhole_{letter}{i}" for i in range(len(self._path.from_columns))]

    def _name_units(self, letter: str) -> list[str]:
        return [f"keyhole_{letter}{i}" for i in range(len(self.table.unit))]

    def _list_keys(self) -> NamedStep:
        """Return the keys that lead to a heavy unit, `keyhole_x0` and so on, each with the unit, `keyhole_y0` and on.

        Keys that lead to no unit have `_NOBODY`. One constant key, which may exist or not, is always on the list. So an
        engine does the same work whether or not a unit is heavy. The rows of that key give the same sums either way.
        """
        lookup, _ = find_keys(self.table, dialect=self.dialect)
        keys, led, units = self._name_keys("x"), self._name_keys("r"), self._name_units("p")
        given = ", ".join(f"{name} AS {key}" for name, key in zip(self._by, keys, strict=True))
        some = [write_any_value(self.dialect, self.table.get_column(name)) for name in self._path.from_columns]
        is_heavy = " AND ".join(f"{unit} = {heavy}" for unit, heavy in zip(units, self._name_units("h"), strict=True))
        met = " AND ".join(f"{key} = {there}" for key, there in zip(keys, led, strict=True))
        is_some = " AND ".join(f"{key} = {value}" for key, value in zip(keys, some, strict=True))
        shown = [f"{there} AS {key}" for there, key in zip(led, keys, strict=True)]
        owners = [f"{unit} AS {owner}" for unit, owner in zip(units, self._name_units("y"), strict=True)]
        nobody = f"CASE WHEN {units[0]} IS NULL THEN TRUE END AS {_NOBODY}"
        lines = [
            "-- keys that lead to heavy units, each with the unit, and keys that lead to none",
            f"SELECT {', '.join([*shown, *owners, nobody])} FROM {lookup}",
            f"JOIN {self.heavy_step.name} AS heavy ON {is_heavy}",
            f"UNION SELECT {', '.join([*keys, *owners, nobody])} FROM (",
            f"  SELECT {given} FROM {self.table.relation} WHERE {_test_keys(self._by)}",
            f"  UNION SELECT {', '.join(some)}",
            f") AS given LEFT JOIN {lookup} ON {met}",
            f"WHERE {units[0]} IS NULL OR ({is_some})",
        ]
        return make_step("\n  ".join(lines))


def _test_keys(keys: Sequence[str]) -> str:
    return " AND ".join(f"({key}) IS NOT NULL" for key in keys)
