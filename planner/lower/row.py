"""One row of a private table, as SQL that no row can make fail.

Guarantee: every expression made here is total. There is no arithmetic and no narrowing cast on a value that was not
clipped before. Derived columns are computed only between the years 1 and 9999, and are NULL outside, for infinities
too.

References: docs/decisions/0002-rewriting.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from planner.catalog.catalog import (
    Column,
    Computed,
    Derivation,
    Lookup,
    MergedKeys,
    Product,
    SqlType,
    Table,
    Value,
    ValueGroups,
)
from planner.catalog.sql_types import read_text_limit
from planner.errors import KeyholeError
from planner.lower.computed.groups import write_combination_number, write_group_number
from planner.lower.computed.term import write_term
from planner.lower.dialects.dialect import Dialect, ExactValues
from planner.question.condition import And, Compare, Condition, IsNull, Leaf, Like, Not, Within
from planner.values.like import collapse_wildcards, read_lengths, split_at_percent
from planner.values.sql_literals import find_integer_limit, write_decimal, write_integer

_UNHASHED = 8  # members of a list that PostgreSQL compares one by one, each by its length first
_OPERATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class RowSql:
    """SQL over single rows of `table` in one dialect.

    `measures` names, by measure, the stored column with its clipped and rounded value. `conditions` names, by
    condition, the column that is TRUE if the condition holds and FALSE if not. `truths` names the columns for
    conditions of keys, which are NULL if the truth is unknown. `numbers` names, by name, the columns of computed
    numbers.
    """

    table: Table
    dialect: Dialect
    measures: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[Condition, str] = field(default_factory=dict)
    truths: Mapping[Condition, str] = field(default_factory=dict)
    numbers: Mapping[str, str] = field(default_factory=dict)

    def write_column(self, name: str) -> str:
        """Return SQL for the value of an exposed column in its declared type. Text is compared byte by byte."""
        column = self.table.get_column(name)
        match column.derivation:
            case None:
                return self._write_stored_column(column)
            case Lookup():
                raise KeyholeError("KH900", f'column "{column.name}" is looked up, not stored')
            case Product(columns=factors):  # read for whether it is NULL alone
                present = " AND ".join(
                    f"({self.write_column(factor)}) IS NOT NULL" for factor in dict.fromkeys(factors)
                )
                return f"CASE WHEN {present} THEN 1 END"
            case Derivation():
                return self.write_derived(column)
            case Computed(term):
                return self.numbers.get(name) or write_term(self, term)
            case ValueGroups() as parts:
                return write_group_number(self, parts)
            case MergedKeys() as merged:
                return write_combination_number(self, merged)

    def write_ordered_column(self, name: str) -> str:
        """Return SQL for a column in ORDER BY. The column must not be a text."""
        column = self.table.get_column(name)
        if column.derivation is None:
            return self.dialect.read_ordered_column(self.dialect.spelling.quote_identifier(name), column)
        return self.write_column(name)

    def write_grouped_column(self, name: str) -> str:
        """Return SQL for a column in GROUP BY, if it is the only grouping column.

        Stored text is returned as it is if its groups are those of its bytes. Then the scan need not compute a column.
        """
        column = self.table.get_column(name)
        is_text = column.sql_type is SqlType.TEXT and column.derivation is None and not column.enumerated
        if self.dialect.text_groups_are_bytes and is_text:
            return self.dialect.spelling.quote_identifier(name)
        return self.write_column(name)

    def _write_stored_column(self, column: Column) -> str:
        if column.sql_type is SqlType.OTHER:
            raise KeyholeError("KH205", f'column "{column.name}" has a type that cannot be computed with')
        return self.dialect.read_stored_column(self.dialect.spelling.quote_identifier(column.name), column)

    def write_derived(self, column: Column) -> str:
        """Return SQL for a column that is derived from a stored date or timestamp.

        The derived column need not be in the table.
        """
        derivation = column.derivation
        assert isinstance(derivation, Derivation)
        source = self.table.get_column(derivation.column)
        base = self._write_stored_column(source)
        dialect, spelling = self.dialect, self.dialect.spelling
        match derivation.function:
            case "date_trunc":
                value = dialect.truncate_moment(derivation.part, spelling.convert_to_timestamp(base))
            case "extract":
                value = dialect.extract_part(derivation.part, spelling.convert_to_timestamp(base))
            case "date":
                value = base
            case _:
                raise KeyholeError("KH010", f'derived column "{column.name}" uses a function that is not allowed')
        if source.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP):
            raise KeyholeError("KH010", f'derived column "{column.name}" is not made from a date or timestamp')
        typed = spelling.write_cast(value, spelling.write_type(column))
        return f"CASE WHEN {base} BETWEEN {spelling.write_years(source.sql_type)} THEN {typed} END"

    def write_condition(self, condition: Condition) -> str:
        """Return SQL for a row condition. It is true if the condition holds, else false or unknown."""
        if self.conditions:
            stored = self.conditions.get(condition)
            if stored is not None:
                return stored
            if isinstance(condition, And):
                return " AND ".join(f"({self.write_condition(part)})" for part in condition.conditions) or "TRUE"

        def every(parts: Sequence[str]) -> str:
            return " AND ".join(f"({part})" for part in parts) or "TRUE"

        def some(parts: Sequence[str]) -> str:
            return " OR ".join(f"({part})" for part in parts) or "FALSE"

        return condition.fold(self._write_test, negation=lambda inner: f"NOT ({inner})", every=every, some=some)

    def write_truth(self, condition: Condition) -> str:
        """Return SQL for the truth of a key's condition, NULL if it is unknown."""
        return self.truths.get(condition) or self.write_condition(condition)

    def write_computed_truth(self, condition: Condition) -> str:
        """Return SQL for the truth of a condition on one value. It is NULL if the value is NULL.

        The SQL computes every test in the condition.
        """

        def write_literal(test: Leaf | Not) -> str:
            return f"NOT ({self.write_condition(test.condition)})" if isinstance(test, Not) else self._write_test(test)

        def every(parts: Sequence[str]) -> str:
            return parts[0] if len(parts) == 1 else f"LEAST({', '.join(parts)})"

        def some(parts: Sequence[str]) -> str:
            return parts[0] if len(parts) == 1 else f"GREATEST({', '.join(parts)})"

        return condition.fold_literals(write_literal, every=every, some=some, wanted=True)

    def write_computed(self, condition: Condition) -> str:
        """Return SQL for the truth of a condition, TRUE or FALSE. Its time does not depend on the row.

        Every test in it is computed, whatever the other tests give: AND and OR would stop at the deciding test, and
        CASE at its first true WHEN. LEAST and GREATEST read all arguments.
        """

        def write_literal(test: Leaf | Not) -> str:
            told = f"NOT ({self.write_condition(test.condition)})" if isinstance(test, Not) else self._write_test(test)
            return f"COALESCE({told}, FALSE)"

        def every(parts: Sequence[str]) -> str:
            return parts[0] if len(parts) == 1 else f"LEAST({', '.join(parts)})" if parts else "TRUE"

        def some(parts: Sequence[str]) -> str:
            return parts[0] if len(parts) == 1 else f"GREATEST({', '.join(parts)})" if parts else "FALSE"

        return condition.fold_literals(write_literal, every=every, some=some, wanted=True)

    def _write_test(self, leaf: Leaf) -> str:
        match leaf:
            case Compare(name, operator, str() as value) if self._is_text(name):
                cut = len(value) >= self.table.get_column(name).longest_text
                expression = self.write_cut_text(name) if cut else self.write_column(name)
                return self.write_comparison(expression, self.table.get_column(name), operator, value)
            case Compare(name, operator, value):
                return self.write_comparison(self.write_column(name), self.table.get_column(name), operator, value)
            case Within(name, values) if self._is_text(name):
                return self._write_text_within(name, values)
            case Within(name, values):
                return self.write_within(self.write_column(name), self.table.get_column(name), values)
            case Like(name, pattern):
                return self._write_like(name, collapse_wildcards(pattern))
            case IsNull(name):
                return f"({self.write_column(name)}) IS NULL"

    def _is_text(self, name: str) -> bool:
        return self.table.get_column(name).sql_type is SqlType.TEXT

    def _write_like(self, name: str, pattern: str) -> str:
        """Return SQL for LIKE with a pattern that has no `_` behind a `%`.

        A pattern that is not searched for reads only the beginning of a text.
        """
        head, *behind = split_at_percent(pattern)
        lengths = read_lengths(pattern)
        if lengths is not None:
            return f"length({self.write_cut_text(name)}) {'>=' if lengths[1] else '='} {lengths[0]}"
        most = None if any(behind) else len(head) + 1
        return self.dialect.match_pattern(self.write_cut_text(name, most=most), pattern)

    def write_cut_text(self, name: str, *, most: int | None = None) -> str:
        """Return SQL for a text column, cut to the length that conditions see.

        With `most` it is cut to that many characters, if the conditions need no more.
        """
        column, expression = self.table.get_column(name), self.write_column(name)
        longest = column.longest_text
        typed = read_text_limit(column.declared) if self.dialect.enforces_lengths else None
        if most is not None and most <= longest:
            longest = most
            if not self.dialect.enforces_lengths:
                return expression  # compared where it stands, as far as the pattern goes
        if typed is not None and typed <= longest:
            return expression
        return f"left({expression}, {longest})"

    def _write_text_within(self, name: str, values: tuple[Value, ...]) -> str:
        """Return SQL for text IN a list.

        Its length is tested first, because engines hash the whole text for a long list.
        """
        column, texts = self.table.get_column(name), [str(value) for value in values]
        expression = self.write_column(name)
        if any(len(one) >= column.longest_text for one in texts):
            expression = self.write_cut_text(name)
        found = self.write_within(expression, column, values)
        if len(texts) <= _UNHASHED:
            return found
        longest = max(len(one.encode("utf-8", "surrogatepass")) for one in texts)
        return f"{self.dialect.byte_length}({expression}) <= {longest} AND {found}"

    def write_comparison(self, expression: str, column: Column, operator: str, value: Value) -> str:
        """Return SQL for `expression operator value`, both of the column's type, NULL if the expression is NULL."""
        assert operator in _OPERATORS, f"no operator of a Compare: {operator}"
        if column.sql_type in (SqlType.INTEGER, SqlType.NUMERIC) and not isinstance(value, str | bool):
            return write_exact_comparison(self.dialect, expression, column, operator, _read_number(value))
        return f"{expression} {operator} {self.dialect.spelling.write_constant(value, column=column)}"

    def write_within(self, expression: str, column: Column, values: tuple[Value, ...]) -> str:
        """Return SQL for `expression IN (values)`, NULL if the expression is NULL."""
        if column.sql_type in (SqlType.INTEGER, SqlType.NUMERIC):
            taken = _find_exact_values(self.dialect, column)
            exact = [_read_number(value) for value in values]
            spelled = [_write_exact(value, scale=taken.scale) for value in exact if taken.holds(value)]
        else:
            spelled = [self.dialect.spelling.write_constant(value, column=column) for value in values]
        return f"{expression} IN ({', '.join(spelled)})" if spelled else f"{expression} <> {expression}"

    def write_canonical(self, expression: str, column: Column) -> str:
        """Return SQL for a non-NULL value as text, the same on every engine.

        It is never ambiguous when joined with '|'.
        """
        spelling = self.dialect.spelling
        match column.sql_type:
            case SqlType.TEXT:
                return f"{spelling.write_cast(f'length({expression})', spelling.text_type)} || ':' || {expression}"
            case SqlType.NUMERIC:
                return self.dialect.write_canonical_numeric(expression, column.declared)
            case SqlType.TIMESTAMP:
                return self.dialect.write_moment(expression)
            case _:
                return spelling.write_cast(expression, spelling.text_type)


@lru_cache(maxsize=1024)
def write_exact_comparison(dialect: Dialect, expression: str, column: Column, operator: str, value: Fraction) -> str:
    """Return SQL for the comparison of an integer or numeric column with any rational number.

    The number is replaced by one that the column can hold. So no engine has to widen the column, which would be slow,
    and could fail on a long decimal on DuckDB. Cached, because a statement uses a filter's comparison once for each way
    of summing.
    """
    always, never = f"{expression} = {expression}", f"{expression} <> {expression}"
    taken = _find_exact_values(dialect, column)
    if operator in ("=", "<>") and not taken.holds(value):
        return never if operator == "=" else always
    if taken.scale is not None:
        steps = value * 10**taken.scale
        value = Fraction(floor(steps) if operator in (">", "<=") else ceil(steps), 10**taken.scale)
    if taken.high is not None and value > taken.high:
        return always if operator in ("<", "<=") else never
    if taken.low is not None and value < taken.low:
        return always if operator in (">", ">=") else never
    return f"{expression} {operator} {_write_exact(value, scale=taken.scale)}"


def _find_exact_values(dialect: Dialect, column: Column) -> ExactValues:
    if column.sql_type is SqlType.INTEGER:
        limit = find_integer_limit(column.declared)
        return ExactValues(scale=0, low=Fraction(-limit - 1), high=Fraction(limit))
    return dialect.find_exact_values(column.declared)


def _write_exact(value: Fraction, *, scale: int | None) -> str:
    if scale == 0:
        return write_integer(value.numerator)
    return write_decimal(value, scale=_count_places(value) if scale is None else scale)


def _count_places(value: Fraction) -> int:
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    return places


def _read_number(value: Value) -> Fraction:
    """Return a constant of a numeric column, which already has the column's type."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise KeyholeError("KH212", "a number is expected")
    return Fraction(value)
