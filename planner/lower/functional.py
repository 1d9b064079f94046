"""One functional as SQL: the amount of a row, the sum over a group of rows, and the bound on one privacy unit."""

from dataclasses import dataclass, replace

from planner.catalog.catalog import SqlType, Table
from planner.errors import KeyholeError
from planner.functionals.row_range import find_row_range
from planner.lower.dialects.grid import INT4, INT8, choose_integer_type
from planner.lower.measure import RowValue, make_row_value, write_null_test
from planner.lower.row import RowSql
from planner.lower.sums.row_sum import find_terms_range, write_terms
from planner.question.condition import ALWAYS, And, Condition
from planner.question.condition_text import write_canonical
from planner.question.question import OF_ONE_UNIT, Functional, Measure, Term
from planner.values.sql_literals import write_integer

_LARGEST = 2**62  # sums end here, so that what is added to them later stays within a bigint
_WIDEST = 2**90  # 2^36 such rows still fit the 128 bits in which DuckDB sums


@dataclass(frozen=True, slots=True)
class FunctionalSql:
    """One functional in one dialect. A row counts for a term if it satisfies `where` and has a value."""

    row: RowSql
    functional: Functional
    where: Condition
    values: tuple[RowValue, ...]  # the value of each term in a row, without its coefficient
    least: int
    most: int

    @staticmethod
    def from_functional(
        row: RowSql, functional: Functional, *, where: Condition, among: Condition, known: Table | None = None
    ) -> "FunctionalSql":
        """Return the functional over the rows that satisfy `where`.

        The rows also satisfy `among`. This test is part of the functional's SQL or of an outer step.

        Parameters:
            known: the table without looked-up columns, whose declarations say when these are NULL.

        Raises:
            KeyholeError: KH203 without bounds, KH204 if its integers grow too long, KH900 if its declared sensitivity
                does not cover what one privacy unit can change.
        """
        values = tuple(_make_value(row, term) for term in functional.terms)
        summed = functional.measure is Measure.TOTAL or functional.measure in OF_ONE_UNIT
        units = functional.measure is Measure.UNIT_SUM and all(one.column is None for one in functional.terms)
        if not summed and not units and not _is_plain_count(functional.terms):
            raise KeyholeError("KH900", f"{functional.name} should be a plain count")
        ranges = {
            term.column: (value.low, value.high)
            for term, value in zip(functional.terms, values, strict=True)
            if term.column is not None and term.power
        }
        least, most = find_row_range(functional.terms, ranges=ranges, table=known or row.table, among=among)
        made = FunctionalSql(row=row, functional=functional, where=where, values=values, least=least, most=most)
        if not made._are_terms_alike and any(term.power == 2 for term in functional.terms):
            raise KeyholeError("KH900", f"{functional.name} has a square, and its terms are about different rows")
        if max(-least, most) > _WIDEST:
            raise KeyholeError("KH204", f"{functional.name} has too many digits")
        if functional.off_each_unit:
            made._check_off_each_unit(row.table)
        if made._find_largest_unit(row.table) > functional.sensitivity:
            raise KeyholeError("KH900", f"the sensitivity of {functional.name} does not cover one privacy unit")
        return made

    def read_from(self, row: RowSql) -> "FunctionalSql":
        """Return the functional over a relation that stores the values of measures and derived columns."""

        def read_term(term: Term, value: RowValue) -> RowValue:
            if not term.power or term.column is None:
                return value
            stored = row.measures.get(term.column)
            if stored is None:
                return make_row_value(row, row.table.get_column(term.column))
            return replace(value, sql=stored, steps=1)

        values = tuple(read_term(term, value) for term, value in zip(self.functional.terms, self.values, strict=True))
        return replace(self, row=row, values=values)

    def _check_off_each_unit(self, table: Table) -> None:
        """Raise KH900 if a number is to be subtracted from each unit and units' rows are not summed together."""
        one = len({write_canonical(term.condition) for term in self.functional.terms}) == 1
        alike = one or self.functional.off_condition is not None
        if table.is_row_unit or self.functional.measure is not Measure.TOTAL or not alike:
            raise KeyholeError(
                "KH900",
                f"{self.functional.name} subtracts a number from each unit, but does not sum a unit's rows together",
            )

    def _find_largest_unit(self, table: Table) -> int:
        if self.functional.off_each_unit:
            return max(abs(bound) for bound in self._find_unit_range())
        largest_row = max(-self.least, self.most)
        if self.functional.measure is Measure.UNIT_SUM:
            return max(abs(bound) for bound in self._find_unit_range())
        if self.functional.measure is Measure.UNIT_PARTS:
            return self.functional.sensitivity
        of_units = self.functional.measure is Measure.UNITS or self.functional.measure in OF_ONE_UNIT
        if table.is_row_unit or of_units or self.has_one_value:
            return largest_row
        if table.row_cap is not None:
            return largest_row * table.row_cap.rows
        return max(abs(bound) for bound in self._find_unit_range())

    @property
    def has_one_value(self) -> bool:
        """True if the functional counts different values of which one privacy unit has at most one."""
        column = self.functional.terms[0].column
        if self.functional.measure is not Measure.VALUES or column is None:
            return False
        return self.row.table.determines(self.row.table.get_column(column))

    @property
    def most_values(self) -> int:
        """The number of different values of one unit that count in a key, if units' totals are clipped."""
        return self._find_unit_range()[1]

    def _find_unit_range(self) -> tuple[int, int]:
        """Return the clipping range of one unit's total.

        It always includes zero, the total of a unit without rows that count.
        """
        if self.functional.unit_range is None:
            raise KeyholeError("KH005", f"{self.functional.name} has no range for one unit's total")
        low, high = self.functional.unit_range
        return min(low, 0), max(high, 0)

    def count_unclipped_rows(self) -> int | None:
        """Return the greatest number of a unit's rows in a key for which the unit's total is surely the plain sum.

        A unit with more rows may have a clipped total. None means that no number of rows leads to clipping.
        """
        if self.functional.measure in (Measure.UNITS, Measure.UNIT_SUM):
            return 1
        if self.functional.measure is Measure.UNIT_PARTS:
            return 0  # a unit with one row in each group is divided, too
        if self.functional.off_each_unit or self.functional.measure in OF_ONE_UNIT:
            return 0  # which rows are a unit's always matters
        if self.row.table.row_cap is not None:
            return None
        low, high = self._find_unit_range()
        least, most = self._narrow_range()
        reached = [(-low, -least), (high, most)]
        return min((bound // largest for bound, largest in reached if largest > 0), default=None)

    def _narrow_range(self) -> tuple[int, int]:
        """Return the least and the most that a row adds, if terms of the same rows are summed first."""
        if self.functional.measure is not Measure.TOTAL or any(term.power > 1 for term in self.functional.terms):
            return self.least, self.most
        least, most = find_terms_range(self.row, self.functional.terms)
        return max(least, self.least), min(most, self.most)

    @property
    def _are_terms_alike(self) -> bool:
        """True if all terms are of the same rows, so that one sum and one count make the functional."""
        first = self.functional.terms[0]
        return all((term.column, term.condition) == (first.column, first.condition) for term in self.functional.terms)

    @property
    def _condition(self) -> Condition:
        """The condition that all terms share, or of the units from which a number is subtracted."""
        off = self.functional.off_condition
        return join_conditions(self.where, self.functional.terms[0].condition if off is None else off)

    def write_added(self) -> str:
        """Return the SQL of a row's summand: `1`, a row value, or the sum of the terms.

        It is NULL or zero if the row does not count. If different values are counted, it is the value itself. If units
        add up terms, it has a bit for each term whose condition the row meets. If a number is subtracted from each
        unit, it is NULL exactly if the row does not satisfy the condition.
        """
        if self.functional.off_each_unit:
            return self._write_when(self._write_all_terms())
        if self.functional.measure is Measure.UNIT_SUM:
            return self._write_flags()
        if self.functional.measure in OF_ONE_UNIT:
            columns = (self.row.table.get_column(name) for name in self.functional.columns)
            missing = [test for column in columns if (test := write_null_test(self.row, column)) is not None]
            there = " AND ".join(f"({test}) IS NOT NULL" for test in missing)
            return self._write_when(
                f"CASE WHEN {there} THEN {self._write_all_terms()} END" if there else self._write_all_terms()
            )
        if self.functional.measure is Measure.VALUES:
            return self.write_present()
        if not self._are_terms_alike:
            return write_terms(self.row, self.functional.terms, where=self.where)
        summed = [value for term, value in zip(self.functional.terms, self.values, strict=True) if term.power]
        present = self._write_null_test()
        if summed or present is None:
            return self._write_when(summed[0].sql if summed else "1")
        return self._write_when(f"CASE WHEN {present} IS NOT NULL THEN 1 END")

    def _write_flags(self) -> str:
        """Return the SQL of a whole number whose bits say which terms a row is for."""

        def flag(bit: int, condition: Condition) -> str:
            return (
                str(bit)
                if condition == ALWAYS
                else f"CASE WHEN {self.row.write_condition(condition)} THEN {bit} ELSE 0 END"
            )

        conditions = (join_conditions(self.where, term.condition) for term in self.functional.terms)
        return " + ".join(flag(1 << place, condition) for place, condition in enumerate(conditions))

    def _write_flagged_sum(self, flags: str) -> str:
        """Return the SQL of the sum of the coefficients of the terms whose bits are set."""
        return " + ".join(
            f"CASE WHEN ({flags} & {1 << place}) <> 0 THEN {write_integer(term.coefficient)} ELSE 0 END"
            for place, term in enumerate(self.functional.terms)
        )

    def _write_all_terms(self) -> str:
        """Return the SQL of the summand of a row that counts.

        If all terms have one condition in common, the row satisfies it.
        """
        alike = self.functional.off_condition is None
        terms = [replace(term, condition=ALWAYS) if alike else term for term in self.functional.terms]
        return write_terms(self.row, terms, where=ALWAYS, adds_zero=True)

    def write_present(self) -> str:
        """Return the SQL of an expression to count: NULL if the row does not count, `*` if every row does."""
        present = self._write_null_test()
        if present is None:
            return "*" if self._condition == ALWAYS else self._write_when("1")
        return self._write_when(present)

    def _write_null_test(self) -> str | None:
        column = self.functional.terms[0].column
        if column is None:
            return None
        whole = self.functional.measure is Measure.VALUES  # a stored measure holds the clipped value
        if whole and self.row.table.get_column(column).sql_type is SqlType.TEXT:
            return self.row.write_cut_text(column)
        return write_null_test(replace(self.row, measures={}) if whole else self.row, self.row.table.get_column(column))

    def _write_when(self, expression: str) -> str:
        condition = self._condition
        return (
            expression
            if condition == ALWAYS
            else f"CASE WHEN {self.row.write_condition(condition)} THEN {expression} END"
        )

    def sum_rows(self, *, added: str, present: str) -> str:
        """Return the SQL of the functional over a group of rows. It is NULL or zero without rows.

        If the group has only one unit's rows, it is that unit's total.
        """
        match self.functional.measure:
            case Measure.ROWS:
                return f"count({present})"
            case Measure.VALUES:
                return f"count(DISTINCT {present})"
            case Measure.UNITS | Measure.UNIT_PARTS if not self.row.table.is_row_unit:
                return f"max({added})"
            case Measure.UNITS | Measure.UNIT_PARTS:
                return f"count({present})"
            case Measure.UNIT_SUM if self.row.table.is_row_unit:
                return self._sum(self._write_flagged_sum(f"({added})"), self._find_largest_unit(self.row.table))
            case Measure.UNIT_SUM:
                return self._write_flagged_sum(f"bit_or({added})")
            case Measure.LEAST:
                return f"min({added})"
            case Measure.GREATEST:
                return f"max({added})"
            case Measure.MEAN:
                return self._sum(self.row.dialect.spelling.write_cast(added, "bigint"), INT8)
            case Measure.TOTAL if self.functional.off_each_unit:
                total = self._sum(added, max(-self.least, self.most))
                return f"CASE WHEN count({added}) > 0 THEN {total} - {write_integer(self.functional.off_each_unit)} END"
            case Measure.TOTAL:
                return (
                    self._write_polynomial(added, f"count({present})")
                    if self._are_terms_alike
                    else self._sum(added, max(-self.least, self.most))
                )

    def _write_polynomial(self, added: str, rows: str) -> str:
        """Return the SQL of the sum of values, their squares and the row count, each times its coefficient.

        It is computed in bigint if that cannot overflow.
        """
        scales = [sum(term.coefficient for term in self.functional.terms if term.power == power) for power in (2, 1, 0)]
        value = next((v for term, v in zip(self.functional.terms, self.values, strict=True) if term.power), None)
        largest = 0 if value is None else max(abs(value.low), abs(value.high))
        steps = 1 if value is None else value.steps
        sums = [self._sum(self._write_square(added, largest, steps), largest**2), self._sum(added, largest), rows]
        if sum(abs(scale) * largest**power for scale, power in zip(scales, (2, 1, 0), strict=True)) >= INT4:
            sums = [self.row.dialect.cast_whole(total, INT8) for total in sums]
        factors = [scales[0] * steps**2, scales[1] * steps, scales[2]]
        parts = [
            total if factor == 1 and total is not sums[2] else f"{total} * {write_integer(factor)}"
            for total, factor in zip(sums, factors, strict=True)
            if factor
        ]
        return " + ".join(parts) or "0"

    def _write_square(self, added: str, largest: int, steps: int) -> str:
        """Return the SQL of the square of a value in a type that holds it.

        A numeric value, which stands for `steps` steps, needs no wider type.
        """
        if steps == 1:
            added = self.row.dialect.cast_whole(added, largest**2)
        return f"({added}) * ({added})"

    def sum_units(self, total: str) -> str:
        """Return the SQL of the functional over a key's privacy units.

        Each unit's total is clipped unless its rows are capped.
        """
        of_units = self.functional.off_each_unit or self.functional.measure is Measure.UNIT_SUM
        by_rows = self.row.table.row_cap is not None and not of_units
        if self.functional.measure in (Measure.UNITS, Measure.UNIT_PARTS) or by_rows:
            return self._sum(total, self._find_largest_unit(self.row.table))
        low, high = self._find_unit_range()
        clipped = f"LEAST(GREATEST(COALESCE({total}, 0), {write_integer(low)}), {write_integer(high)})"
        typed = self.row.dialect.spelling.write_cast(clipped, choose_integer_type(low, high))
        return self._sum(typed, max(-low, high))

    def sum_heavy_units(self, total: str, *, heavy: str) -> str:
        """Return the SQL of a key's total: heavy units' totals, each clipped, plus the total of all other rows.

        Parameters:
            heavy: SQL that is true for the total of one heavy unit. All units are clipped, as no row is capped.
        """
        low, high = self._find_unit_range()
        clipped = f"LEAST(GREATEST(COALESCE({total}, 0), {write_integer(low)}), {write_integer(high)})"
        return self.sum_keys(f"CASE WHEN {heavy} THEN {clipped} ELSE {total} END")

    def sum_keys(self, total: str) -> str:
        """Return the SQL that adds up several partial sums of one key."""
        return self._sum(total, INT8)

    def write_final(self, total: str) -> str:
        """Return the SQL of a key's value as bigint, zero for NULL, within +-2^62."""
        if total.startswith("count(") and self.functional.measure is not Measure.TOTAL:
            return total
        clipped = f"LEAST(GREATEST(COALESCE({total}, 0), {write_integer(-_LARGEST)}), {write_integer(_LARGEST)})"
        return self.row.dialect.spelling.write_cast(clipped, "bigint")

    def _sum(self, expression: str, largest: int) -> str:
        """Return the SQL of the sum of whole numbers of at most this size."""
        return self.row.dialect.sum_whole(expression, largest)


def _make_value(row: RowSql, term: Term) -> RowValue:
    if not term.power:
        return RowValue(sql="1", steps=1, low=1, high=1)
    if term.column is None or term.power not in (1, 2):
        raise KeyholeError("KH900", "a term is neither a count nor a sum of values or squares")
    return make_row_value(row, row.table.get_column(term.column))


def _is_plain_count(terms: tuple[Term, ...]) -> bool:
    return len(terms) == 1 and terms[0].coefficient == 1 and not terms[0].power


def join_conditions(a: Condition, b: Condition) -> Condition:
    """Return the conjunction of two conditions, or `ALWAYS` if both are `ALWAYS`."""
    if a == ALWAYS:
        return b
    return a if b == ALWAYS else And((a, b))
