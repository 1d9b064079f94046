"""The rows that a table's bounds leave out, as statements over private data: for the owner's eyes, never for an answer.

Which keys of a unit count is drawn by md5; here each counts as far as it does in the mean over such draws.
"""

from dataclasses import dataclass

from planner.catalog.catalog import Column, Derivation, Lookup, SqlType, Table
from planner.catalog.known_keys import drop_source_keys
from planner.lower.dialects.dialect import Dialect
from planner.lower.domain import restriction
from planner.lower.kept.named_steps import define_steps
from planner.lower.row import RowSql
from planner.lower.unit_paths.reach import reach_units

WORST = 3  # groups, and values outside a domain, that a report names
_MEASURABLE = "BETWEEN -1e300 AND 1e300"  # neither NaN nor an infinity, which no total has


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The statements over one table in one dialect. Every result is exact, and private."""

    table: Table
    dialect: Dialect

    @property
    def _read(self) -> Table:
        """The table with its units: with a path, the rows that lead to one."""
        return reach_units(drop_source_keys(self.table), dialect=self.dialect)

    @property
    def _row(self) -> RowSql:
        return RowSql(table=self._read, dialect=self.dialect)

    @property
    def _measures(self) -> list[Column]:
        return [column for column in self.table.columns if column.bounds is not None]

    def count_rows(self) -> str:
        """Return SQL that counts all rows, and those with a privacy unit."""
        with_unit = f"count(*) FILTER (WHERE {self._has_unit()})"
        if self.table.path is not None:
            with_unit = f"(SELECT count(*) FROM {self._read.relation})"
        return self._define(f"SELECT count(*), {with_unit} FROM {self.table.relation}")

    def count_unread(self) -> tuple[tuple[Column, ...], str]:
        """Return the columns with values that are none of their type, and SQL that counts these.

        They are numbers with more digits than are read, or months beyond the years that are computed with. Questions
        see them as NULL.
        """
        found = []
        for column in self.table.columns:
            match column.derivation:
                case None if column.sql_type is not SqlType.OTHER:
                    found.append((column, column.name))
                case Derivation(column=base):
                    found.append((column, base))
                case _:
                    pass
        name = self.dialect.spelling.identifier
        counts = (
            f"count(*) FILTER (WHERE {name(base)} IS NOT NULL AND ({self._row.column(column.name)}) IS NULL)"
            for column, base in found
        )
        counted = self._define(f"SELECT {', '.join(counts)} FROM {self._read.relation}")
        return tuple(column for column, _ in found), counted

    def values_outside(self, key: Column) -> str:
        """Return SQL for the key values outside the public domain, NULL among them, with their rows; the most first."""
        value, inside = self._row.column(key.name), restriction(self._row, key, key.domain or ())
        outside = "TRUE" if inside is None else f"NOT COALESCE({inside}, FALSE)"
        return self._define(
            f"SELECT {self._shown(value, key)} AS value, count(*) AS n FROM {self._read.relation} WHERE {outside} "
            "GROUP BY 1 ORDER BY 2 DESC, 1"
        )

    def clip_values(self, measure: Column) -> str:
        """Return SQL for a measure's values: their number, those below and above the bounds, and both totals.

        The second total is of clipped values.
        """
        assert measure.bounds is not None
        value = self._double(self._row.column(measure.name))
        low, high = measure.bounds
        return self._define(
            f"SELECT count(*), count(*) FILTER (WHERE x < {low}), count(*) FILTER (WHERE x > {high}), "
            f"COALESCE(sum(x), 0), COALESCE(sum(LEAST(GREATEST(x, {low}), {high})), 0) "
            f"FROM (SELECT {value} AS x FROM {self._read.relation}) AS v WHERE x {_MEASURABLE}"
        )

    def bound_units(self, keys: tuple[Column, ...]) -> str:
        """Return SQL for the groups by these keys, of a table with the bounds for them.

        It gives the group, its units and the mean of those that count in it, its rows and those that count, and of each
        measure the total of clipped values and of those that count.

        Without keys all rows are one group, if there are any.
        """
        names = ", ".join(f"k{i}" for i in range(len(keys)))
        kept = f"LEAST(1.0, {self._double(str(self.table.groups_per_unit))} / g)"
        sums = [f"count(*), sum({kept}), sum(n), sum({kept} * {self._rows_kept()})"]
        for i, measure in enumerate(self._measures):
            sums.append(f"sum(s{i}), sum({kept} * {self._total_kept(i, measure)})")
        shown = [self._shown(f"k{i}", key) for i, key in enumerate(keys)]
        by_groups = f"GROUP BY {names} ORDER BY {names}" if keys else "HAVING count(*) > 0"
        return self._define(
            f"WITH {self._per_unit(keys)} SELECT {', '.join([*shown, *sums])} "
            f"FROM per_unit JOIN units USING ({self._unit_names()}) {by_groups}"
        )

    def count_units(self, keys: tuple[Column, ...]) -> str:
        """Return SQL for the units in groups of these keys: all, those in too many groups, mean and most groups of one.

        The last column counts the units that some bound on groups, rows or totals cuts.
        """
        many = f"g > {self.table.groups_per_unit}"
        return self._define(
            f"WITH {self._per_unit(keys)} SELECT count(*), count(*) FILTER (WHERE {many}), avg(g), max(g), "
            f"count(*) FILTER (WHERE {many} OR beyond = 1) FROM units"
        )

    def count_joined(self, rows: int) -> str:
        """Return SQL for the units, those with more rows than a join reads of one, all their rows and those read."""
        names = self._unit_names()
        units = ", ".join(f"{self._row.column(name)} AS u{i}" for i, name in enumerate(self.table.unit))
        sums = f"COALESCE(sum(n), 0), COALESCE(sum(LEAST(n, {rows})), 0)"
        return self._define(
            f"SELECT count(*), count(*) FILTER (WHERE n > {rows}), {sums}"
            f" FROM (SELECT {names}, count(*) AS n FROM (SELECT {units} FROM {self._read.relation}"
            f" WHERE {self._has_unit()}) AS rows_ GROUP BY {names}) AS units"
        )

    def _define(self, sql: str) -> str:
        """Return the statement with the steps that the table's relation reads."""
        return define_steps(self._read.steps, sql, dialect=self.dialect)

    def _per_unit(self, keys: tuple[Column, ...]) -> str:
        row = self._row
        units = [f"{row.column(name)} AS u{i}" for i, name in enumerate(self.table.unit)]
        named = [f"{row.column(key.name)} AS k{i}" for i, key in enumerate(keys)]
        inside = [restriction(row, key, key.domain or ()) or f"{row.column(key.name)} IS NOT NULL" for key in keys]
        groups = ", ".join([*(f"u{i}" for i in range(len(units))), *(f"k{i}" for i in range(len(keys)))])
        values, sums = [], ["count(*) AS n"]
        for i, measure in enumerate(self._measures):
            assert measure.bounds is not None
            low, high = measure.bounds
            value = self._double(row.column(measure.name))
            values.append(f"CASE WHEN {value} {_MEASURABLE} THEN LEAST(GREATEST({value}, {low}), {high}) END AS x{i}")
            sums.append(f"COALESCE(sum(x{i}), 0) AS s{i}")
        where = " AND ".join(f"({condition})" for condition in (self._has_unit(), *inside))
        return (
            f"rows_ AS (SELECT {', '.join([*units, *named, *values])} FROM {self._read.relation} WHERE {where}), "
            f"per_unit AS (SELECT {groups}, {', '.join(sums)} FROM rows_ GROUP BY {groups}), "
            f"units AS (SELECT {self._unit_names()}, count(*) AS g, max({self._beyond()}) AS beyond "
            f"FROM per_unit GROUP BY {self._unit_names()})"
        )

    def _beyond(self) -> str:
        """Return SQL that is 1 if a unit has more rows in a group than count, or a total outside of its range.

        Else 0.
        """
        rows = self.table.rows_per_unit if self.table.row_cap is None else self.table.row_cap.rows
        tests = [] if rows is None else [f"n > {rows}"]
        for i, measure in enumerate(self._measures):
            if measure.per_unit is not None and self.table.row_cap is None:
                low, high = measure.per_unit
                tests.append(f"s{i} < {low} OR s{i} > {high}")
        return f"CASE WHEN {' OR '.join(tests)} THEN 1 ELSE 0 END" if tests else "0"

    def _shown(self, expression: str, column: Column) -> str:
        if column.sql_type is SqlType.TIMESTAMP:
            return self.dialect.moment_text(expression)
        return self.dialect.spelling.cast(expression, self.dialect.spelling.text_type)

    def _double(self, expression: str) -> str:
        return self.dialect.spelling.cast(expression, self.dialect.spelling.double_type)

    def _unit_names(self) -> str:
        return ", ".join(f"u{i}" for i in range(len(self.table.unit)))

    def _has_unit(self) -> str:
        return (
            " AND ".join(f"{self.dialect.spelling.identifier(name)} IS NOT NULL" for name in self._stored_units())
            or "TRUE"
        )

    def _stored_units(self) -> list[str]:
        """Return the stored columns that a unit is made of: a derived one is NULL if its base is."""
        columns = [self.table.get_column(name) for name in self.table.unit]
        return [
            column.derivation.column if isinstance(column.derivation, Derivation | Lookup) else column.name
            for column in columns
        ]

    def _rows_kept(self) -> str:
        cap = self.table.row_cap
        most = self.table.rows_per_unit if cap is None else cap.rows
        return "n" if most is None else f"LEAST(n, {most})"

    def _total_kept(self, index: int, measure: Column) -> str:
        cap = self.table.row_cap
        if cap is not None:
            return f"s{index} * LEAST(1.0, {self._double(str(cap.rows))} / n)"
        if measure.per_unit is None:
            return f"s{index}"
        return f"LEAST(GREATEST(s{index}, {measure.per_unit[0]}), {measure.per_unit[1]})"
