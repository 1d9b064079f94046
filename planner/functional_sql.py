"""One functional as SQL: what a row adds, what a group of rows adds up to, what one privacy unit adds at most."""

from dataclasses import dataclass

from planner.catalog import Table
from planner.condition import ALWAYS, And, Condition
from planner.errors import KeyholeError
from planner.question import Functional, Measure
from planner.row_sql import RowSql
from planner.row_value import RowValue, counted, row_value
from planner.sql_literal import integer

LARGEST = 2**62
_INT4 = 2**31
_WIDEST = 2**90  # 2^36 such rows still fit the 128 bits in which DuckDB sums


@dataclass(frozen=True, slots=True)
class FunctionalSql:
    """One functional in one dialect; only rows that satisfy `condition` and have a value count."""

    row: RowSql
    functional: Functional
    condition: Condition
    value: RowValue

    @staticmethod
    def of(row: RowSql, functional: Functional, *, where: Condition) -> "FunctionalSql":
        """The functional over the rows that satisfy `where`.

        Raises:
            KeyholeError: KH203 without bounds, KH204 when its integers grow too long, KH900 when its declared
                sensitivity does not cover what one privacy unit can change.
        """
        value = RowValue(sql="1", steps=1, low=1, high=1)
        if functional.measure is Measure.TOTAL:
            if functional.column is None:
                raise KeyholeError("KH900", "a total without a column")
            value = row_value(row, row.table.column(functional.column))
        condition = conjunction(where, functional.condition)
        made = FunctionalSql(row=row, functional=functional, condition=condition, value=value)
        if made._largest_row() > _WIDEST:
            raise KeyholeError("KH204", f"{functional.name} has too many digits")
        if made._largest_unit(row.table) > functional.sensitivity:
            raise KeyholeError("KH900", f"the sensitivity of {functional.name} does not cover one privacy unit")
        return made

    def _largest_row(self) -> int:
        if self.functional.measure is not Measure.TOTAL:
            return 1
        ends = (self.value.low, self.value.high)
        return max(abs(self.functional.scale * x - self.functional.offset) for x in ends)

    def _largest_unit(self, table: Table) -> int:
        if table.row_unit or self.functional.measure is Measure.UNITS:
            return self._largest_row()
        if table.row_cap is not None:
            return self._largest_row() * table.row_cap.rows
        return max(abs(bound) for bound in self._unit_range())

    def _unit_range(self) -> tuple[int, int]:
        """What one unit's total is clipped to; always with zero, the total of a unit without rows that count."""
        if self.functional.unit_range is None:
            raise KeyholeError("KH005", f"{self.functional.name} has no range for one unit's total")
        low, high = self.functional.unit_range
        return min(low, 0), max(high, 0)

    def added(self) -> str:
        """What a row adds, NULL where it does not count: `1`, or the row value of a total."""
        present = self._present()
        if self.functional.measure is Measure.TOTAL or present is None:
            return self._when(self.value.sql)
        return self._when(f"CASE WHEN {present} IS NOT NULL THEN 1 END")

    def present(self) -> str:
        """An expression to count: NULL where the row does not count, `*` where every row does."""
        present = self._present()
        if present is None:
            return "*" if self.condition == ALWAYS else self._when("1")
        return self._when(present)

    def _present(self) -> str | None:
        if self.functional.column is None:
            return None
        return counted(self.row, self.row.table.column(self.functional.column))

    def _when(self, expression: str) -> str:
        if self.condition == ALWAYS:
            return expression
        return f"CASE WHEN {self.row.holds(self.condition)} THEN {expression} END"

    def sum_rows(self, *, added: str, present: str) -> str:
        """The functional over a group of rows, NULL or zero for none; `UNITS` sees one unit's rows alone."""
        match self.functional.measure:
            case Measure.ROWS:
                return f"count({present})"
            case Measure.UNITS if not self.row.table.row_unit:
                return f"max({added})"
            case Measure.UNITS:
                return f"count({present})"
            case Measure.TOTAL:
                return self._linear(f"sum({added})", f"count({present})")

    def _linear(self, total: str, rows: str) -> str:
        """`scale * total - offset * rows`, in bigint where fewer than 2^32 rows cannot overflow it."""
        scale, offset = self.functional.scale, self.functional.offset
        if scale * max(abs(self.value.low), abs(self.value.high)) + abs(offset) >= _INT4:
            wide = "hugeint" if self.row.dialect == "duckdb" else "numeric"
            total, rows = f"CAST({total} AS {wide})", f"CAST({rows} AS {wide})"
        factor = scale * self.value.steps
        scaled = total if factor == 1 else f"{total} * {integer(factor)}"
        return scaled if offset == 0 else f"{scaled} - {rows} * {integer(offset)}"

    def sum_units(self, total: str) -> str:
        """The functional over a key's privacy units, each unit's total clipped unless its rows are capped."""
        if self.functional.measure is Measure.UNITS or self.row.table.row_cap is not None:
            return f"sum({total})"
        low, high = self._unit_range()
        clipped = f"LEAST(GREATEST(COALESCE({total}, 0), {integer(low)}), {integer(high)})"
        return f"sum(CAST({clipped} AS {'integer' if max(-low, high) < _INT4 else 'bigint'}))"

    def final(self, total: str) -> str:
        """A key's value as bigint, zero for NULL, within +-2^62."""
        if total.startswith("count("):
            return total
        return f"CAST(LEAST(GREATEST(COALESCE({total}, 0), {integer(-LARGEST)}), {integer(LARGEST)}) AS bigint)"


def conjunction(a: Condition, b: Condition) -> Condition:
    """Both conditions; `ALWAYS` when both are."""
    parts = tuple(part for part in (a, b) if part != ALWAYS)
    return parts[0] if len(parts) == 1 else And(parts)
