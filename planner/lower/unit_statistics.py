"""One integer for each privacy unit, counted against public candidates: what private bounds are found from.

Each statistic is a number that one unit has, such as in how many groups it is. The statement gives, for each statistic,
how many units lie beyond each candidate: these counts are all that leaves the source. A unit more or less changes each
of them by at most one, all in the same direction.

Guarantee: no row can make the statement fail, whatever it holds; rows without a unit are left out.

References: docs/proofs/private_bounds.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from math import floor

from planner.catalog.catalog import Column, Table
from planner.lower.contribution_bounds import not_null
from planner.lower.dialects.dialect import Dialect
from planner.lower.domain import restriction
from planner.lower.kept.named_steps import define_steps
from planner.lower.layout import indent_blocks, select, where
from planner.lower.measure import row_value
from planner.lower.row import RowSql
from planner.lower.scan import list_relations
from planner.lower.unit_paths.reach import reach_units
from planner.question.plan import ReadRelation


class BoundOf(StrEnum):
    """The bounded quantity of a unit: its groups, its rows or total in one, or its values; from above or below."""

    GROUPS = "groups"
    ROWS = "rows"
    HIGHEST_TOTAL = "highest total"
    LOWEST_TOTAL = "lowest total"
    HIGHEST_VALUE = "highest value"
    LOWEST_VALUE = "lowest value"


_TOTALS = (BoundOf.HIGHEST_TOTAL, BoundOf.LOWEST_TOTAL)
_VALUES = (BoundOf.HIGHEST_VALUE, BoundOf.LOWEST_VALUE)
LOW_SIDES = frozenset({BoundOf.LOWEST_TOTAL, BoundOf.LOWEST_VALUE})


@dataclass(frozen=True, slots=True)
class UnitStatistic:
    """The counted quantity for one bound.

    Parameters:
        keys: the grouping columns; () for the values of a column.
        column: the measure; None for groups and rows.
        step: what one step of `candidates` is, in the user's unit.
        candidates: public, ascending, in steps; for a lowest total or value, steps below zero.
    """

    of: BoundOf
    keys: tuple[str, ...]
    column: str | None
    step: Fraction
    candidates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UnitCounts:
    """The statement that counts units for several statistics, over one state of the data.

    Its rows are (place of the statistic, how many units lie beyond each candidate); with `count_units` one more, at the
    place behind the last, with the number of units alone.
    """

    table: Table
    dialect: Dialect
    statistics: tuple[UnitStatistic, ...]
    count_units: bool

    @property
    def sql(self) -> str:
        """The statement."""
        parts = [self._count(place, one) for place, one in enumerate(self.statistics)]
        if self.count_units:
            parts.append(self._count_units(len(parts)))
        counted = "\nUNION ALL\n".join("\n".join(part) for part in parts)
        return define_steps(self._row.table.steps, counted, dialect=self.dialect)

    @property
    def relations(self) -> tuple[ReadRelation, ...]:
        """Return the relations that it reads, as the policy knows them."""
        return list_relations(self.table)

    @property
    def _row(self) -> RowSql:
        return RowSql(table=reach_units(self.table, dialect=self.dialect), dialect=self.dialect)

    def _count(self, place: int, statistic: UnitStatistic) -> list[str]:
        begins, ends = self.dialect.array
        counts = [f"count(*) FILTER (WHERE {self._beyond(statistic, one)})" for one in statistic.candidates]
        return [
            f"SELECT {place} AS statistic, {begins}",
            *indent_blocks([f"{count}," for count in counts[:-1]], [counts[-1]]),
            f"{ends} AS beyond",
            "FROM (",
            *indent_blocks(self._statistic(statistic)),
            f") AS s{place}",
        ]

    def _count_units(self, place: int) -> list[str]:
        begins, ends = self.dialect.array
        inner = select(self._units) if self.table.is_row_unit else ["SELECT DISTINCT", *select(self._units)[1:]]
        return [
            f"SELECT {place} AS statistic, {begins}count(*){ends} AS beyond",
            "FROM (",
            *indent_blocks(inner, [f"FROM {self._row.table.relation}"], where(self._with_unit)),
            f") AS s{place}",
        ]

    @property
    def _units(self) -> list[str]:
        return [f"{self._row.column(name)} AS u{i}" for i, name in enumerate(self.table.unit)] or ["1 AS u0"]

    @property
    def _with_unit(self) -> list[str]:
        return [not_null(self._row, self.table.get_column(name)) for name in self.table.unit]

    def _beyond(self, statistic: UnitStatistic, candidate: int) -> str:
        if statistic.of in _VALUES:
            column, value = self._measure(statistic), candidate * statistic.step
            lowest = statistic.of is BoundOf.LOWEST_VALUE
            return self._row.compare("s", column, "<" if lowest else ">", _decimal(-value if lowest else value))
        if statistic.of in _TOTALS:
            steps = row_value(self._row, self._measure(statistic)).steps
            return f"s > {floor(Fraction(candidate, steps))}"
        return f"s > {candidate}"

    def _measure(self, statistic: UnitStatistic) -> Column:
        assert statistic.column is not None
        return self.table.get_column(statistic.column)

    def _statistic(self, statistic: UnitStatistic) -> list[str]:
        """Return SQL for the statistic of each unit, as column s."""
        row, relation = self._row, [f"FROM {self._row.table.relation}"]
        units = [f"u{i}" for i in range(len(self.table.unit))]
        if statistic.of in _VALUES:
            value = row.column(self._measure(statistic).name)
            if self.table.is_row_unit:
                return [f"SELECT {value} AS s", *relation]
            extreme = "min" if statistic.of is BoundOf.LOWEST_VALUE else "max"
            inner = [*select([*self._units, f"{value} AS x"]), *relation, *where(self._with_unit)]
            return _group_units(f"{extreme}(x) AS s", inner, units)
        columns = [self.table.get_column(name) for name in statistic.keys]
        keys = [f"k{i}" for i in range(len(columns))]
        named = [f"{row.column(one.name)} AS {k}" for one, k in zip(columns, keys, strict=True)]
        shown = select([*self._units, *named, *self._add_values(statistic)])
        rows = [*shown, *relation, *where([*self._with_unit, *self._of_keys(columns)])]
        per_group = _group_units(f"{self._of_group(statistic)} AS t", rows, [*units, *keys], shown=units)
        return _group_units(f"{'count(*)' if statistic.of is BoundOf.GROUPS else 'max(t)'} AS s", per_group, units)

    def _of_keys(self, columns: Sequence[Column]) -> Iterator[str]:
        for column in columns:
            yield restriction(self._row, column, column.domain or ()) or not_null(self._row, column)

    def _add_values(self, statistic: UnitStatistic) -> list[str]:
        return [f"{row_value(self._row, self._measure(statistic)).sql} AS x"] if statistic.of in _TOTALS else []

    def _of_group(self, statistic: UnitStatistic) -> str:
        match statistic.of:
            case BoundOf.HIGHEST_TOTAL:
                return "COALESCE(sum(x), 0)"
            case BoundOf.LOWEST_TOTAL:
                return "-COALESCE(sum(x), 0)"
            case _:
                return "count(*)"


def _group_units(
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


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
