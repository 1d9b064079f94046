"""The sum of several terms in a row as SQL. Terms that count in the same rows are one product under one CASE.

Guarantee: each row adds what its terms add one by one, each if its condition holds and its column has a value, neither
NULL nor NaN. No step overflows the type in which it is computed, whatever the row.

A product is NULL if a factor is. So columns that a product reads need no test, since NULL adds nothing. If some of the
terms do not need a column, its NaN is read as zero, by which the terms that need it vanish.

References: docs/decisions/0002-rewriting.md (row values).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from planner.catalog.catalog import Column, SqlType
from planner.lower.measure import RowValue, make_row_value, write_null_test
from planner.lower.row import RowSql
from planner.lower.sums.factors import FactoredPolynomial, LinearFactor, Polynomial, factor_polynomial
from planner.lower.sums.null_tests import list_conjuncts, list_factors
from planner.question.condition import ALWAYS, Condition, IsNull, Not
from planner.question.question import Term
from planner.values.sql_literals import write_integer


def write_terms(row: RowSql, terms: Sequence[Term], *, where: Condition, adds_zero: bool = False) -> str:
    """Return SQL for the whole number that a row adds if it satisfies `where`.

    Parameters:
        terms: of power 0 or 1.
        adds_zero: True if a row for which nothing counts adds zero instead of NULL.
    """
    several = [alike for alike in _group_terms(row, terms, where) if alike.polynomial]
    kind = row.dialect.choose_whole_type(sum(alike.largest for alike in several))
    written = [alike.write_sql(kind) for alike in several]
    if len(several) > 1 or adds_zero:
        written = [
            sql if alike.is_never_null else f"COALESCE({sql}, 0)" for alike, sql in zip(several, written, strict=True)
        ]
    return " + ".join(written) or "0"


def list_parts(row: RowSql, terms: Sequence[Term]) -> tuple[list[str], int]:
    """Return the parts of a row's sum as SQL, for a row that satisfies every condition, and a bound.

    There is a whole number for the terms of each condition, zero if a value is missing. The absolute value of every sum
    of parts is at most the bound.

    Parameters:
        terms: of power 0 or 1.
    """
    several = [alike for alike in _group_terms(row, terms, ALWAYS) if alike.polynomial]
    largest = sum(alike.largest for alike in several)
    kind = row.dialect.choose_whole_type(largest)
    always = [replace(alike, needs=replace(alike.needs, conditions=())) for alike in several]
    return [
        one.write_sql(kind) if one.is_never_null else f"COALESCE({one.write_sql(kind)}, 0)" for one in always
    ], largest


def find_terms_range(row: RowSql, terms: Sequence[Term]) -> tuple[int, int]:
    """Return the least and the most that a row adds by several terms, extended to include zero.

    Terms that count in the same rows are combined first. So `100 * p - d * p` is at least 0 if `d` is at most 100.

    Parameters:
        terms: of power 0 or 1.
    """
    ranges = [alike.range for alike in _group_terms(row, terms, ALWAYS) if alike.polynomial]
    return sum(min(low, 0) for low, _ in ranges), sum(max(high, 0) for _, high in ranges)


@dataclass(frozen=True, slots=True)
class _TermNeeds:
    """The conditions and values that a row must have for a term to count."""

    conditions: tuple[Condition, ...]
    not_null: frozenset[str]  # columns that are not NULL
    values: frozenset[str]  # those of them that are no NaN either
    counted: frozenset[str]  # those of these that are counted and not multiplied, and may hold NaN

    @property
    def rows(self) -> tuple[frozenset[Condition], frozenset[str], frozenset[str]]:
        """The key by which terms are grouped that can be summed under one CASE."""
        return frozenset(self.conditions), self.not_null, self.counted


@dataclass(frozen=True, slots=True)
class _TermGroup:
    """Terms of the same rows, as a polynomial of the rows' values."""

    row: RowSql
    needs: _TermNeeds
    partly_needed: frozenset[str]  # columns of which some terms need a value that is no NaN, and some do not
    polynomial: Polynomial

    @property
    def is_never_null(self) -> bool:
        """True if the sum is never NULL."""
        return not self.needs.not_null and not self.needs.conditions

    @property
    def largest(self) -> int:
        """A bound on the absolute value of each part of the sum."""
        sizes = (
            (abs(number), *(self._find_largest(name) for name in names)) for names, number in self.polynomial.items()
        )
        return sum(prod(one) for one in sizes)

    @property
    def range(self) -> tuple[int, int]:
        """The least and the most of the sum if it counts. Its factors may have any values in their ranges."""
        product = factor_polynomial(self.polynomial)
        whole = (product.content, product.content)
        for one in product.linear:
            low, high = self._find_range(one.name)
            ends = (one.slope * low + one.constant, one.slope * high + one.constant)
            whole = _multiply_ranges(whole, (min(ends), max(ends)))
        rest = (0, 0)
        for names, number in product.rest.items():
            monomial = (number, number)
            for name in names:
                monomial = _multiply_ranges(monomial, self._find_range(name))
            rest = rest[0] + monomial[0], rest[1] + monomial[1]
        return _multiply_ranges(whole, rest)

    def write_sql(self, kind: str) -> str:
        """Return SQL for the sum in a type that holds `largest`, NULL if the terms do not count."""
        tests = [f"({self.row.write_condition(condition)})" for condition in self.needs.conditions]
        tests += [f"({test}) IS NOT NULL" for test in self._null_tests()]
        amount = self._write(factor_polynomial(self.polynomial), kind)
        return f"CASE WHEN {' AND '.join(tests)} THEN {amount} END" if tests else amount

    def _null_tests(self) -> Iterator[str]:
        """Yield SQL that is NULL if a needed column is, for each column that the sum does not read or reads as zero."""
        read = {name for names in self.polynomial for name in names}
        for name in sorted(self.needs.not_null):
            if name in self.partly_needed:
                if name not in read or name in self.row.measures:
                    yield self.row.write_column(name)
            elif name not in read:
                yield write_null_test(self.row, self.row.table.get_column(name))

    def _make_value(self, name: str) -> RowValue:
        """Return the value of a column. A NaN is zero if some terms do not need the column."""
        return make_row_value(self.row, self.row.table.get_column(name), nan_is_zero=name in self.partly_needed)

    def _find_range(self, name: str) -> tuple[int, int]:
        """Return the range of a column's value, with zero for a NaN if some terms do not need the column."""
        value = self._make_value(name)
        return (min(value.low, 0), max(value.high, 0)) if name in self.partly_needed else (value.low, value.high)

    def _find_largest(self, name: str) -> int:
        value = self._make_value(name)
        return max(abs(value.low), abs(value.high), 1)

    def _write(self, product: FactoredPolynomial, kind: str) -> str:
        """Return SQL for the product.

        A wide type comes first, so nothing is multiplied in a narrower type than `kind`.
        """
        content, wide = product.content, list[str]()
        whole = [one for one in product.linear if self._make_value(one.name).steps == 1]
        for one in product.linear:
            if one not in whole:
                taken, sql = _write_decimal(one, self._make_value(one.name))
                content, wide = content * taken, [*wide, sql]
        if product.rest != {(): 1}:
            wide.append(self._write_rest(product.rest, kind))
        parts = wide + [self._write_whole(one, "" if wide or i else kind) for i, one in enumerate(whole)]
        if not parts:
            return (
                write_integer(content)
                if kind == "integer"
                else self.row.dialect.spelling.write_cast(write_integer(content), kind)
            )
        return " * ".join(parts if content == 1 else [*parts, write_integer(content)])

    def _write_whole(self, factor: LinearFactor, kind: str) -> str:
        """Return SQL for a linear factor of a value in whole steps, in that type or the narrowest that holds it."""
        value = self._make_value(factor.name)
        largest = max(abs(factor.slope) * max(abs(value.low), abs(value.high)) + abs(factor.constant), 1)
        typed = value.cast(self.row.dialect, kind or self.row.dialect.choose_whole_type(largest))
        return _write_linear(typed, factor.slope, factor.constant)

    def _write_rest(self, rest: Polynomial, kind: str) -> str:
        return f"({' + '.join(self._write_monomial(names, number, kind) for names, number in rest.items())})"

    def _write_monomial(self, names: Sequence[str], number: int, kind: str) -> str:
        values = sorted((self._make_value(name) for name in names), key=lambda value: value.steps == 1)
        number *= prod(value.steps for value in values)
        parts = [value.sql if value.steps > 1 else value.cast(self.row.dialect, kind) for value in values]
        return " * ".join([*parts, write_integer(number)] if number != 1 or not parts else parts)


def _multiply_ranges(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    ends = [a * b for a in one for b in other]
    return min(ends), max(ends)


def _write_decimal(factor: LinearFactor, value: RowValue) -> tuple[int, str]:
    """Return SQL for a linear factor of a value in the user's unit, and a factor that is still to be applied."""
    slope = factor.slope * value.steps
    if factor.constant % slope:
        return 1, _write_linear(value.sql, slope, factor.constant)
    return abs(slope), _write_linear(value.sql, slope // abs(slope), factor.constant // abs(slope))


def _write_linear(value: str, slope: int, constant: int) -> str:
    scaled = value if abs(slope) == 1 else f"{value} * {abs(slope)}"
    if constant:
        return f"({write_integer(constant)} {'-' if slope < 0 else '+'} {scaled})"
    return scaled if slope > 0 else f"(-({scaled}))"


def _group_terms(row: RowSql, terms: Sequence[Term], where: Condition) -> Iterator[_TermGroup]:
    multiplied = frozenset(name for term in terms for name in list_factors(row.table, term.column))
    needed = [(term, _find_needs(row, term, where, multiplied)) for term in terms]
    for rows in dict.fromkeys(needs.rows for _, needs in needed):
        alike = [(term, needs) for term, needs in needed if needs.rows == rows]
        needs = alike[0][1]
        in_all = needs.not_null.intersection(*(one.values for _, one in alike))
        optional = frozenset(name for name in needs.not_null - in_all if _may_be_nan(row, row.table.get_column(name)))
        yield _TermGroup(row, needs, optional, _add_up(row, [term for term, _ in alike]))


def _add_up(row: RowSql, terms: Iterable[Term]) -> Polynomial:
    total: dict[tuple[str, ...], int] = {}
    for term in terms:
        names = tuple(sorted(list_factors(row.table, term.column))) if term.power else ()
        total[names] = total.get(names, 0) + term.coefficient
    return {names: number for names, number in total.items() if number}


def _find_needs(row: RowSql, term: Term, where: Condition, multiplied: frozenset[str]) -> _TermNeeds:
    """Return the needs of a term. A condition that is stored is tested as a whole."""
    values = frozenset(list_factors(row.table, term.column))
    conditions, there = list[Condition](), set(values)
    for part in (where, term.condition):
        for one in (part,) if part in row.conditions else list_conjuncts(part):
            match one:
                case Not(IsNull(name)) if multiplied.issuperset(names := list_factors(row.table, name)):
                    there.update(names)
                case _ if one not in (ALWAYS, *conditions):
                    conditions.append(one)
    counted = () if term.power else (name for name in values if _may_be_nan(row, row.table.get_column(name)))
    return _TermNeeds(tuple(conditions), frozenset(there), values, frozenset(counted))


def _may_be_nan(row: RowSql, column: Column) -> bool:
    numeric_nan = column.sql_type is SqlType.NUMERIC and row.dialect.numeric_nan is not None
    return column.sql_type is SqlType.DOUBLE or numeric_nan
