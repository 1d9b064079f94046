"""A question per unit as SQL: each unit's bounded totals in each key, compared as integers, then summed per key.

Guarantee: there is at most one row per privacy unit and key, for at most G keys a unit. Every total lies in its
declared range. Nothing here can fail on data, and both engines give the same integers.

References: docs/decisions/0008-per-unit.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from planner.catalog.catalog import Column, SqlType, Table
from planner.functionals.unit_rows import convert_column_to_steps, convert_to_steps, rename_column, rename_columns
from planner.lower.computed_conditions import compute_conditions
from planner.lower.contribution_bounds import Bounding
from planner.lower.dialects.dialect import Dialect
from planner.lower.functional import FunctionalSql
from planner.lower.layout import indent_blocks, write_group_by, write_select, write_where
from planner.lower.row import RowSql
from planner.question.condition import ALWAYS, Condition
from planner.question.question import Functional, Measure, Question, UnitRows, UnitTotal
from planner.values.sql_literals import write_integer

RELATION = "units"


def list_needed_functionals(rows: UnitRows) -> tuple[Functional, ...]:
    """Return the functionals to sum per unit: each total, followed by the count of its values if it may be NULL."""
    return tuple(made for total in rows.totals for made in (total.functional, total.presence_count) if made is not None)


def write_unit_columns(rows: UnitRows, aliases: Iterable[str], dialect: Dialect) -> list[str]:
    """Return SQL for the columns of one row per unit and key: unit, keys and totals.

    A total is NULL or in its range.
    """
    columns = list(aliases)
    place = 0
    for i, total in enumerate(rows.totals):
        added = f"t{place}"
        if total.functional.measure is Measure.MEAN:
            added = _write_mean(added, f"t{place + 1}", total, dialect)
        clipped = f"LEAST(GREATEST(COALESCE({added}, 0), {write_integer(total.low)}), {write_integer(total.high)})"
        value = dialect.spelling.write_cast(clipped, "bigint")
        if total.presence_count is not None:
            place += 1
            value = f"CASE WHEN t{place} > 0 THEN {value} END"
        columns.append(f"{value} AS {_name_total(i)}")
        place += 1
    return columns


def _write_mean(above: str, count: str, total: UnitTotal, dialect: Dialect) -> str:
    """Return SQL for the mean in halves of its parts: twice the whole parts, plus one if there is a rest.

    So it compares with any number of whole parts as the mean itself does. The sum `above` adds the distances of values
    from their least possible value. So nothing is negative, and all engines round down alike.
    """
    parts = f"{above} * {write_integer(total.parts)}"
    quotients = (dialect.divide_large(divided, count) for divided in (parts, f"{parts} + {count} - 1"))
    return f"{' + '.join(quotients)} + {write_integer(total.low)}"


def write_answer(question: Question, rows: UnitRows, row: RowSql, bounding: Bounding) -> list[str]:
    """Return SQL that computes the question's answer from the relation with one row per unit and key."""
    stored = StoredTotals.from_rows(question.table, rows, {column.name: alias for alias, column in bounding.groups})
    among = stored.read_condition(question.where)
    asked = [stored.read_functional(made) for made in question.functionals]
    units = compute_conditions(stored.make_row(question.table, RELATION, row.dialect), among, asked)
    functionals = [FunctionalSql.from_functional(units, made, where=ALWAYS, among=among) for made in asked]
    sums = [f.write_final(f.sum_rows(added=f.write_added(), present=f.write_present())) for f in functionals]
    keys = [f"k{i}" for i in range(len(question.keys.columns))]
    kept = [] if question.where == ALWAYS else [units.write_condition(among)]
    return [
        "-- the units that the question asks for, summed per key",
        *write_select(keys + [f"{total} AS f{i}" for i, total in enumerate(sums)]),
        f"FROM {units.table.relation}",
        *write_where(kept),
        *write_group_by(len(keys)),
    ]


def write_relation(columns: list[str], source: list[str]) -> list[str]:
    """Return SQL for the WITH step that computes one row per privacy unit and key, with clipped totals."""
    return [
        "-- one row per privacy unit and key: its totals, clipped",
        f"{RELATION} AS (",
        *indent_blocks(write_select(columns), source),
        ")",
    ]


def _name_total(index: int) -> str:
    return f"total{index}"


@dataclass(frozen=True, slots=True)
class StoredTotals:
    """A relation with one row per privacy unit and key, whose columns `write_unit_columns` writes.

    `names` maps each group column and total to the relation's name for it. `steps` has the size of one step of each
    total.
    """

    rows: UnitRows
    names: Mapping[str, str]
    steps: Mapping[str, Fraction]

    @staticmethod
    def from_rows(shown: Table, rows: UnitRows, groups: Mapping[str, str]) -> "StoredTotals":
        """Return the relation in which a subquery's totals are stored.

        Parameters:
            shown: the table that has the totals as columns.
            groups: the relation's names of the other columns.
        """
        names = {**groups, **{total.name: _name_total(i) for i, total in enumerate(rows.totals)}}
        steps = {total.name: Fraction(shown.get_column(total.name).grid or 1) for total in rows.totals}
        return StoredTotals(rows, names, steps)

    def make_row(self, shown: Table, relation: str, dialect: Dialect) -> RowSql:
        """Return the relation as a table with one row per privacy unit and key.

        Its derived columns are stored columns, and its totals are integers.
        """
        ranges = {total.name: (total.low, total.high) for total in self.rows.totals}
        columns = (_make_stored_column(one, self.names, ranges) for one in shown.columns if one.name in self.names)
        table = replace(shown, relation=relation, unit=(), row_cap=None, columns=tuple(columns))
        measures = {_name_total(i): _name_total(i) for i in range(len(self.rows.totals))}
        return RowSql(table=table, dialect=dialect, measures=measures)

    def read_condition(self, condition: Condition) -> Condition:
        """Return a condition of the question, rewritten over the relation's columns, with totals in whole steps."""
        return rename_columns(convert_to_steps(condition, self.steps), self.names)

    def read_functional(self, made: Functional) -> Functional:
        """Return a functional of the question, rewritten over the relation's columns, with totals in whole steps."""
        terms = tuple(
            replace(
                term,
                column=None
                if term.column is None
                else rename_column(convert_column_to_steps(term.column, self.steps), self.names),
                condition=self.read_condition(term.condition),
            )
            for term in made.terms
        )
        return replace(made, terms=terms)


def _make_stored_column(column: Column, names: Mapping[str, str], ranges: Mapping[str, tuple[int, int]]) -> Column:
    plain = replace(column, name=names[column.name], derivation=None)
    if column.name not in ranges:
        return plain
    low, high = ranges[column.name]
    return replace(
        plain, sql_type=SqlType.INTEGER, declared="bigint", bounds=(Decimal(low), Decimal(high)), grid=Decimal(1)
    )
