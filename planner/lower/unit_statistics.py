"""One integer for each privacy unit, counted against public candidates, from which private bounds are found.

Each statistic is a number of one unit, for example the number of its groups. For each statistic the statement returns
the number of units above each candidate. Only these counts leave the source. One unit more or less changes each of them
by at most one, all in the same direction.

Guarantee: no row can make the statement fail, whatever it holds. Rows without a unit are left out.

References: docs/proofs/private_bounds.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from math import floor

from planner.catalog.catalog import Column, Table
from planner.lower.contribution_bounds import write_not_null
from planner.lower.dialects.dialect import Dialect
from planner.lower.domain import write_restriction
from planner.lower.kept.named_steps import define_steps
from planner.lower.layout import indent_blocks, write_select, write_where
from planner.lower.measure import make_row_value
from planner.lower.row import RowSql
from planner.lower.scan import list_relations
from planner.lower.unit_paths.reach import add_unit_columns
from planner.question.plan import ReadRelation


class BoundKind(StrEnum):
    """The quantity of a unit that a bound limits: groups, rows or total in one group, highest or lowest value."""

    GROUPS = "groups"
    ROWS = "rows"
    HIGHEST_TOTAL = "highest total"
    LOWEST_TOTAL = "lowest total"
    HIGHEST_VALUE = "highest value"
    LOWEST_VALUE = "lowest value"


_TOTALS = (BoundKind.HIGHEST_TOTAL, BoundKind.LOWEST_TOTAL)
_VALUES = (BoundKind.HIGHEST_VALUE, BoundKind.LOWEST_VALUE)
LOW_SIDES = frozenset({BoundKind.LOWEST_TOTAL, BoundKind.LOWEST_VALUE})


@dataclass(frozen=True, slots=True)
class UnitStatistic:
    """A measurement of each privacy unit for one bound, such as its groups, its rows in a group, or its total.

    Parameters:
        kind: the bound, which says what is measured.
        keys: the grouping columns; () for the values of a column.
        column: the measure; None for groups and rows.
        step: the size of one step of `candidates`, in the user's unit.
        candidates: public, ascending, in steps; for a lowest total or value, steps below zero.
    """

    kind: BoundKind
    keys: tuple[str, ...]
    column: str | None
    step: Fraction
    candidates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UnitCounts:
    """The statement that counts privacy units for several statistics, over one state of the data.

    Its rows are (index of the statistic, number of units above each candidate). With `counts_units` there is one more
    row, after the last index: the number of all units.
    """

    table: Table
    dialect: Dialect
    statistics: tuple[UnitStatistic, ...]
    counts_units: bool

    @property
    def sql(self) -> str:
        """The statement's text."""
        parts = [self._write_count(place, one) for place, one in enumerate(self.statistics)]
        if self.counts_units:
            parts.append(self._write_unit_count(len(parts)))
        counted = "\nUNION ALL\n".join("\n".join(part) for part in parts)
        return define_steps(self._row.table.steps, counted, dialect=self.dialect)

    @property
    def relations(self) -> tuple[ReadRelation, ...]:
        """Return the relations that it reads, as the policy knows them."""
        return list_relations(self.table)

    @property
    def _row(self) -> RowSql:
        return RowSql(table=add_unit_columns(self.table, dialect=self.dialect), dialect=self.dialect)

    def _write_count(self, place: int, statistic: UnitStatistic) -> list[str]:
        begins, ends = self.dialect.array
        counts = [f"count(*) FILTER (WHERE {self._write_beyond(statistic, one)})" for one in statistic.candidates]
        return [
            f"SELECT {place} AS statistic, {begins}",
            *indent_blocks([f"{count}," for count in counts[:-1]], [counts[-1]]),
            f"{ends} AS beyond",
            "FROM (",
            *indent_blocks(self._write_statistic(statistic)),
            f") AS s{place}",
        ]

    def _write_unit_count(self, place: int) -> list[str]:
        begins, ends = self.dialect.array
        inner = (
            write_select(self._units) if self.table.is_row_unit else ["SELECT DISTINCT", *write_select(self._units)[1:]]
        )
        return [
            f"SELECT {place} AS statistic, {begins}count(*){ends} AS beyond",
            "FROM (",
            *indent_blocks(inner, [f"FROM {self._row.table.relation}"], write_where(self._with_unit)),
            f") AS s{place}",
        ]

    @property
    def _units(self) -> list[str]:
        return [f"{self._row.write_column(name)} AS u{i}" for i, name in enumerate(self.table.unit)] or ["1 AS u0"]

    @property
    def _with_unit(self) -> list[str]:
        return [write_not_null(self._row, self.table.get_column(name)) for name in self.table.unit]

    def _write_beyond(self, statistic: UnitStatistic, candidate: int) -> str:
        if statistic.kind in _VALUES:
            column, value = self._find_measure(statistic), candidate * statistic.step
            lowest = statistic.kind is BoundKind.LOWEST_VALUE
            return self._row.write_comparison(
                "s", column, "<" if lowest else ">", _to_decimal(-value if lowest else value)
            )
        if statistic.kind in _TOTALS:
            steps = make_row_value(self._row, self._find_measure(statistic)).steps
            return f"s > {floor(Fraction(candidate, steps))}"
        return f"s > {candidate}"

    def _find_measure(self, statistic: UnitStatistic) -> Column:
        assert statistic.column is not None
        return self.table.get_column(statistic.column)

    def _write_statistic(self, statistic: UnitStatistic) -> list[str]:
        """Return SQL for the statistic of each unit, as column s."""
        row, relation = self._row, [f"FROM {self._row.table.relation}"]
        units = [f"u{i}" for i in range(len(self.table.unit))]
        if statistic.kind in _VALUES:
            value = row.write_column(self._find_measure(statistic).name)
            if self.table.is_row_unit:
                return [f"SELECT {value} AS s", *relation]
            extreme = "min" if statistic.kind is BoundKind.LOWEST_VALUE else "max"
            inner = [*write_select([*self._units, f"{value} AS x"]), *relation, *write_where(self._with_unit)]
            return _write_unit_groups(f"{extreme}(x) AS s", inner, units)
        columns = [self.table.get_column(name) for name in statistic.keys]
        keys = [f"k{i}" for i in range(len(columns))]
        named = [f"{row.write_column(one.name)} AS {k}" for one, k in zip(columns, keys, strict=True)]
        shown = write_select([*self._units, *named, *self._write_added(statistic)])
        rows = [*shown, *relation, *write_where([*self._with_unit, *self._write_key_tests(columns)])]
        per_group = _write_unit_groups(
            f"{self._write_group_aggregate(statistic)} AS t", rows, [*units, *keys], shown=units
        )
        return _write_unit_groups(
            f"{'count(*)' if statistic.kind is BoundKind.GROUPS else 'max(t)'} AS s", per_group, units
        )

    def _write_key_tests(self, columns: Sequence[Column]) -> Iterator[str]:
        for column in columns:
            yield write_restriction(self._row, column, column.domain or ()) or write_not_null(self._row, column)

    def _write_added(self, statistic: UnitStatistic) -> list[str]:
        return (
            [f"{make_row_value(self._row, self._find_measure(statistic)).sql} AS x"]
            if statistic.kind in _TOTALS
            else []
        )

    def _write_group_aggregate(self, statistic: UnitStatistic) -> str:
        match statistic.kind:
            case BoundKind.HIGHEST_TOTAL:
                return "COALESCE(sum(x), 0)"
            case BoundKind.LOWEST_TOTAL:
                return "-COALESCE(sum(x), 0)"
            case _:
                return "count(*)"


def _write_unit_groups(
    aggregate: str, inner: list[str], by: Sequence[str], *, shown: Sequence[str] | None = None
) -> list[str]:
    names = ", ".join(by)
    return [
        f"SELECT {', '.join([*(by if shown is None else shown), aggregate])}",
        "FROM (",
        *indent_blocks(inner),
        ") AS v",
        f"GROUP BY {names}",
    ]


def _to_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
