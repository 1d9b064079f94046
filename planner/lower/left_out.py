"""The rows that a table's bounds leave out, as statements over private data, for the owner and never an answer.

The keys of a unit that count are drawn by md5. Here each key counts by its average over all draws.
"""

from dataclasses import dataclass

from planner.catalog.catalog import Column, Derivation, Lookup, SqlType, Table
from planner.catalog.known_keys import drop_source_keys
from planner.lower.dialects.dialect import Dialect
from planner.lower.domain import write_restriction
from planner.lower.kept.named_steps import define_steps
from planner.lower.row import RowSql
from planner.lower.unit_paths.reach import add_unit_columns

WORST = 3  # groups, and values outside a domain, that a report names
_MEASURABLE = "BETWEEN -1e300 AND 1e300"  # neither NaN nor an infinity, which no total has


@dataclass(frozen=True, slots=True)
class LeftOutRows:
    """The statements over one table that measure what bounds leave out. Every result is exact and private."""

    table: Table
    dialect: Dialect

    @property
    def _read_table(self) -> Table:
        """The table with its units. With a path, it has the rows that lead to a unit."""
        return add_unit_columns(drop_source_keys(self.table), dialect=self.dialect)

    @property
    def _row(self) -> RowSql:
        return RowSql(table=self._read_table, dialect=self.dialect)

    @property
    def _measures(self) -> list[Column]:
        return [column for column in self.table.columns if column.bounds is not None]

    def count_rows(self) -> str:
        """Return SQL that counts all rows, and the rows that have a privacy unit."""
        with_unit = f"count(*) FILTER (WHERE {self._write_unit_test()})"
        if self.table.path is not None:
            with_unit = f"(SELECT count(*) FROM {self._read_table.relation})"
        return self._prepend_steps(f"SELECT count(*), {with_unit} FROM {self.table.relation}")

    def count_unread(self) -> tuple[tuple[Column, ...], str]:
        """Return the columns that may hold unreadable values, and SQL that counts these values.

        Unreadable are numbers with more digits than Keyhole reads, and months beyond the supported years. Questions
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
        name = self.dialect.spelling.quote_identifier
        counts = (
            f"count(*) FILTER (WHERE {name(base)} IS NOT NULL AND ({self._row.write_column(column.name)}) IS NULL)"
            for column, base in found
        )
        counted = self._prepend_steps(f"SELECT {', '.join(counts)} FROM {self._read_table.relation}")
        return tuple(column for column, _ in found), counted

    def list_values_outside(self, key: Column) -> str:
        """Return SQL for the key values outside the public domain, NULL among them, with row counts, largest first."""
        value, inside = self._row.write_column(key.name), write_restriction(self._row, key, key.domain or ())
        outside = "TRUE" if inside is None else f"NOT COALESCE({inside}, FALSE)"
        return self._prepend_steps(
            f"SELECT {self._write_shown(value, key)} AS value, count(*) AS n FROM {self._read_table.relation} "
            f"WHERE {outside} GROUP BY 1 ORDER BY 2 DESC, 1"
        )

    def measure_clipping(self, measure: Column) -> str:
        """Return SQL for a measure's values: their number, the numbers below and above the bounds, and two totals.

        The first total is of the values, the second of the clipped values.
        """
        assert measure.bounds is not None
        value = self._cast_to_double(self._row.write_column(measure.name))
        low, high = measure.bounds
        return self._prepend_steps(
            f"SELECT count(*), count(*) FILTER (WHERE x < {low}), count(*) FILTER (WHERE x > {high}), "
            f"COALESCE(sum(x), 0), COALESCE(sum(LEAST(GREATEST(x, {low}), {high})), 0) "
            f"FROM (SELECT {value} AS x FROM {self._read_table.relation}) AS v WHERE x {_MEASURABLE}"
        )

    def measure_groups(self, keys: tuple[Column, ...]) -> str:
        """Return SQL that measures what the bounds leave of each group by these keys.

        It gives the group, the number of its units and the average number that count in it, and the same two for rows.
        For each measure it gives the total of clipped values, and the total that counts. Without keys all rows are one
        group, if there are any.
        """
        names = ", ".join(f"k{i}" for i in range(len(keys)))
        kept = f"LEAST(1.0, {self._cast_to_double(str(self.table.groups_per_unit))} / g)"
        sums = [f"count(*), sum({kept}), sum(n), sum({kept} * {self._write_kept_rows()})"]
        for i, measure in enumerate(self._measures):
            sums.append(f"sum(s{i}), sum({kept} * {self._write_kept_total(i, measure)})")
        shown = [self._write_shown(f"k{i}", key) for i, key in enumerate(keys)]
        by_groups = f"GROUP BY {names} ORDER BY {names}" if keys else "HAVING count(*) > 0"
        return self._prepend_steps(
            f"WITH {self._write_per_unit(keys)} SELECT {', '.join([*shown, *sums])} "
            f"FROM per_unit JOIN units USING ({self._write_unit_names()}) {by_groups}"
        )

    def count_units(self, keys: tuple[Column, ...]) -> str:
        """Return SQL for four numbers of units by these keys, and a fifth for all bounds.

        They are the number of units, the number of those in too many groups, and the mean and most groups of one unit.
        The last is the number of units that some bound on groups, rows or totals cuts.
        """
        many = f"g > {self.table.groups_per_unit}"
        return self._prepend_steps(
            f"WITH {self._write_per_unit(keys)} SELECT count(*), count(*) FILTER (WHERE {many}), avg(g), max(g), "
            f"count(*) FILTER (WHERE {many} OR beyond = 1) FROM units"
        )

    def count_joined_rows(self, rows: int) -> str:
        """Return SQL that counts units, units with more rows than a join reads, all rows, and joined rows."""
        names = self._write_unit_names()
        units = ", ".join(f"{self._row.write_column(name)} AS u{i}" for i, name in enumerate(self.table.unit))
        sums = f"COALESCE(sum(n), 0), COALESCE(sum(LEAST(n, {rows})), 0)"
        return self._prepend_steps(
            f"SELECT count(*), count(*) FILTER (WHERE n > {rows}), {sums}"
            f" FROM (SELECT {names}, count(*) AS n FROM (SELECT {units} FROM {self._read_table.relation}"
            f" WHERE {self._write_unit_test()}) AS rows_ GROUP BY {names}) AS units"
        )

    def _prepend_steps(self, sql: str) -> str:
        """Return the statement with the definitions of the steps that the table's relation reads."""
        return define_steps(self._read_table.steps, sql, dialect=self.dialect)

    def _write_per_unit(self, keys: tuple[Column, ...]) -> str:
        row = self._row
        units = [f"{row.write_column(name)} AS u{i}" for i, name in enumerate(self.table.unit)]
        named = [f"{row.write_column(key.name)} AS k{i}" for i, key in enumerate(keys)]
        inside = [
            write_restriction(row, key, key.domain or ()) or f"{row.write_column(key.name)} IS NOT NULL" for key in keys
        ]
        groups = ", ".join([*(f"u{i}" for i in range(len(units))), *(f"k{i}" for i in range(len(keys)))])
        values, sums = [], ["count(*) AS n"]
        for i, measure in enumerate(self._measures):
            assert measure.bounds is not None
            low, high = measure.bounds
            value = self._cast_to_double(row.write_column(measure.name))
            values.append(f"CASE WHEN {value} {_MEASURABLE} THEN LEAST(GREATEST({value}, {low}), {high}) END AS x{i}")
            sums.append(f"COALESCE(sum(x{i}), 0) AS s{i}")
        where = " AND ".join(f"({condition})" for condition in (self._write_unit_test(), *inside))
        return (
            f"rows_ AS (SELECT {', '.join([*units, *named, *values])} FROM {self._read_table.relation} WHERE {where}), "
            f"per_unit AS (SELECT {groups}, {', '.join(sums)} FROM rows_ GROUP BY {groups}), "
            f"units AS (SELECT {self._write_unit_names()}, count(*) AS g, max({self._write_beyond()}) AS beyond "
            f"FROM per_unit GROUP BY {self._write_unit_names()})"
        )

    def _write_beyond(self) -> str:
        """Return SQL that is 1 if a unit has too many rows in a group, or a total outside of its range, else 0."""
        rows = self.table.rows_per_unit if self.table.row_cap is None else self.table.row_cap.rows
        tests = [] if rows is None else [f"n > {rows}"]
        for i, measure in enumerate(self._measures):
            if measure.per_unit is not None and self.table.row_cap is None:
                low, high = measure.per_unit
                tests.append(f"s{i} < {low} OR s{i} > {high}")
        return f"CASE WHEN {' OR '.join(tests)} THEN 1 ELSE 0 END" if tests else "0"

    def _write_shown(self, expression: str, column: Column) -> str:
        if column.sql_type is SqlType.TIMESTAMP:
            return self.dialect.write_moment(expression)
        return self.dialect.spelling.write_cast(expression, self.dialect.spelling.text_type)

    def _cast_to_double(self, expression: str) -> str:
        return self.dialect.spelling.write_cast(expression, self.dialect.spelling.double_type)

    def _write_unit_names(self) -> str:
        return ", ".join(f"u{i}" for i in range(len(self.table.unit)))

    def _write_unit_test(self) -> str:
        return (
            " AND ".join(
                f"{self.dialect.spelling.quote_identifier(name)} IS NOT NULL" for name in self._list_stored_units()
            )
            or "TRUE"
        )

    def _list_stored_units(self) -> list[str]:
        """Return the stored columns from which a unit is made. A derived column is NULL if its base is."""
        columns = [self.table.get_column(name) for name in self.table.unit]
        return [
            column.derivation.column if isinstance(column.derivation, Derivation | Lookup) else column.name
            for column in columns
        ]

    def _write_kept_rows(self) -> str:
        cap = self.table.row_cap
        most = self.table.rows_per_unit if cap is None else cap.rows
        return "n" if most is None else f"LEAST(n, {most})"

    def _write_kept_total(self, index: int, measure: Column) -> str:
        cap = self.table.row_cap
        if cap is not None:
            return f"s{index} * LEAST(1.0, {self._cast_to_double(str(cap.rows))} / n)"
        if measure.per_unit is None:
            return f"s{index}"
        return f"LEAST(GREATEST(s{index}, {measure.per_unit[0]}), {measure.per_unit[1]})"
