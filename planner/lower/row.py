"""One row of a private table, as SQL that no row can make fail.

Guarantee: every expression made here is total. There is no arithmetic and no narrowing cast on a value that was not
clipped before, and derived columns are computed only between the years 1 and 9999 (NULL outside, infinities too).

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
from planner.lower.computed.groups import number_combination, number_part
from planner.lower.computed.term import compute_term
from planner.lower.dialects.dialect import Dialect, ExactValues
from planner.question.condition import And, Compare, Condition, IsNull, Leaf, Like, Not, Within
from planner.values.like import collapse_wildcards, only_lengths, split_at_percent
from planner.values.sql_literals import decimal, integer, integer_limit

_UNHASHED = 8  # members of a list that PostgreSQL compares one by one, each by its length first
_OPERATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class RowSql:
    """SQL over single rows of `table` in one dialect.

    `measures` names the stored column that already holds a measure's clipped and rounded value, by the measure's name;
    `conditions` the one that says whether a condition holds, TRUE or FALSE. `truths` names those that say so of the
    conditions of keys, NULL where that is unknown, and `numbers` those of computed numbers, by the numbers' names.
    """

    table: Table
    dialect: Dialect
    measures: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[Condition, str] = field(default_factory=dict)
    truths: Mapping[Condition, str] = field(default_factory=dict)
    numbers: Mapping[str, str] = field(default_factory=dict)

    def column(self, name: str) -> str:
        """Return SQL for the value of an exposed column, as its declared type; text compares byte by byte."""
        column = self.table.get_column(name)
        match column.derivation:
            case None:
                return self._stored_sql(column)
            case Lookup():
                raise KeyholeError("KH900", f'column "{column.name}" is looked up and not stored')
            case Product(columns=factors):  # read for whether it is NULL alone
                present = " AND ".join(f"({self.column(factor)}) IS NOT NULL" for factor in dict.fromkeys(factors))
                return f"CASE WHEN {present} THEN 1 END"
            case Derivation():
                return self.derive(column)
            case Computed(term):
                return self.numbers.get(name) or compute_term(self, term)
            case ValueGroups() as parts:
                return number_part(self, parts)
            case MergedKeys() as merged:
                return number_combination(self, merged)

    def ordered_column(self, name: str) -> str:
        """Return SQL for the column, which is no text, if rows are ordered by it."""
        column = self.table.get_column(name)
        if column.derivation is None:
            return self.dialect.ordered_column(self.dialect.spelling.identifier(name), column)
        return self.column(name)

    def grouped_column(self, name: str) -> str:
        """Return SQL for the column if rows are grouped by it alone.

        Stored text stays as it is if its groups are those of the bytes.

        Then the scan need not compute a column.
        """
        column = self.table.get_column(name)
        is_text = column.sql_type is SqlType.TEXT and column.derivation is None and not column.enumerated
        if self.dialect.text_groups_are_bytes and is_text:
            return self.dialect.spelling.identifier(name)
        return self.column(name)

    def _stored_sql(self, column: Column) -> str:
        if column.sql_type is SqlType.OTHER:
            raise KeyholeError("KH205", f'column "{column.name}" has a type that cannot be computed with')
        return self.dialect.stored_column(self.dialect.spelling.identifier(column.name), column)

    def derive(self, column: Column) -> str:
        """Return SQL for a column that is derived of a stored date or timestamp, whether or not the table has it."""
        derivation = column.derivation
        assert isinstance(derivation, Derivation)
        source = self.table.get_column(derivation.column)
        base = self._stored_sql(source)
        dialect, spelling = self.dialect, self.dialect.spelling
        match derivation.function:
            case "date_trunc":
                value = dialect.truncate_moment(derivation.part, spelling.as_moment(base))
            case "extract":
                value = dialect.extract_part(derivation.part, spelling.as_moment(base))
            case "date":
                value = base
            case _:
                raise KeyholeError("KH010", f'derived column "{column.name}" uses a function that is not allowed')
        if source.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP):
            raise KeyholeError("KH010", f'derived column "{column.name}" is not made from a date or timestamp')
        typed = spelling.cast(value, spelling.type_name(column))
        return f"CASE WHEN {base} BETWEEN {spelling.years(source.sql_type)} THEN {typed} END"

    def holds(self, condition: Condition) -> str:
        """Return SQL for a row condition, true where it holds; elsewhere it is false or unknown."""
        if self.conditions:
            stored = self.conditions.get(condition)
            if stored is not None:
                return stored
            if isinstance(condition, And):
                return " AND ".join(f"({self.holds(part)})" for part in condition.conditions) or "TRUE"

        def every(parts: Sequence[str]) -> str:
            return " AND ".join(f"({part})" for part in parts) or "TRUE"

        def some(parts: Sequence[str]) -> str:
            return " OR ".join(f"({part})" for part in parts) or "FALSE"

        return condition.fold(self._test, negation=lambda inner: f"NOT ({inner})", every=every, some=some)

    def truth(self, condition: Condition) -> str:
        """Return SQL for the truth of a key's condition, NULL where it is unknown."""
        return self.truths.get(condition) or self.holds(condition)

    def compute_truth(self, condition: Condition) -> str:
        """Return SQL for the truth of a condition on one value, NULL where the value is NULL.

        Every test in it is computed.
        """

        def literal(test: Leaf | Not) -> str:
            return f"NOT ({self.holds(test.condition)})" if isinstance(test, Not) else self._test(test)

        def every(parts: Sequence[str]) -> str:
            return parts[0] if len(parts) == 1 else f"LEAST({', '.join(parts)})"

        def some(parts: Sequence[str]) -> str:
            return parts[0] if len(parts) == 1 else f"GREATEST({', '.join(parts)})"

        return condition.fold_literals(literal, every=every, some=some, wanted=True)

    def compute(self, condition: Condition) -> str:
        """Return SQL for the truth of a condition, TRUE or FALSE.

        Every test in it is computed whatever the others give.

        AND and OR stop at what decides them, CASE at its first true WHEN; LEAST and GREATEST read all they are given.
        """

        def literal(test: Leaf | Not) -> str:
            told = f"NOT ({self.holds(test.condition)})" if isinstance(test, Not) else self._test(test)
            return f"COALESCE({told}, FALSE)"

        def every(parts: Sequence[str]) -> str:
            return parts[0] if len(parts) == 1 else f"LEAST({', '.join(parts)})" if parts else "TRUE"

        def some(parts: Sequence[str]) -> str:
            return parts[0] if len(parts) == 1 else f"GREATEST({', '.join(parts)})" if parts else "FALSE"

        return condition.fold_literals(literal, every=every, some=some, wanted=True)

    def _test(self, leaf: Leaf) -> str:
        match leaf:
            case Compare(name, operator, str() as value) if self._is_text(name):
                cut = len(value) >= self.table.get_column(name).longest_text
                expression = self.cut_text(name) if cut else self.column(name)
                return self.compare(expression, self.table.get_column(name), operator, value)
            case Compare(name, operator, value):
                return self.compare(self.column(name), self.table.get_column(name), operator, value)
            case Within(name, values) if self._is_text(name):
                return self._text_within(name, values)
            case Within(name, values):
                return self.within(self.column(name), self.table.get_column(name), values)
            case Like(name, pattern):
                return self._matches(name, collapse_wildcards(pattern))
            case IsNull(name):
                return f"({self.column(name)}) IS NULL"

    def _is_text(self, name: str) -> bool:
        return self.table.get_column(name).sql_type is SqlType.TEXT

    def _matches(self, name: str, pattern: str) -> str:
        """Return SQL for LIKE of a pattern without `_` behind a `%`.

        A pattern that is not searched for reads as much of a text as it has.
        """
        head, *behind = split_at_percent(pattern)
        lengths = only_lengths(pattern)
        if lengths is not None:
            return f"length({self.cut_text(name)}) {'>=' if lengths[1] else '='} {lengths[0]}"
        most = None if any(behind) else len(head) + 1
        return self.dialect.like(self.cut_text(name, most=most), pattern)

    def cut_text(self, name: str, *, most: int | None = None) -> str:
        """Return SQL for a text column as far as conditions see it.

        With `most` it has at most so many characters, if these are all that counts.
        """
        column, expression = self.table.get_column(name), self.column(name)
        longest = column.longest_text
        typed = read_text_limit(column.declared) if self.dialect.enforces_lengths else None
        if most is not None and most <= longest:
            longest = most
            if not self.dialect.enforces_lengths:
                return expression  # compared where it stands, as far as the pattern goes
        if typed is not None and typed <= longest:
            return expression
        return f"left({expression}, {longest})"

    def _text_within(self, name: str, values: tuple[Value, ...]) -> str:
        """Return SQL for text IN a list: a long list is hashed, and so would be the whole text, however long."""
        column, texts = self.table.get_column(name), [str(value) for value in values]
        expression = self.column(name)
        if any(len(one) >= column.longest_text for one in texts):
            expression = self.cut_text(name)
        found = self.within(expression, column, values)
        if len(texts) <= _UNHASHED:
            return found
        longest = max(len(one.encode("utf-8", "surrogatepass")) for one in texts)
        return f"{self.dialect.byte_length}({expression}) <= {longest} AND {found}"

    def compare(self, expression: str, column: Column, operator: str, value: Value) -> str:
        """Return SQL for `expression operator value`, both of the column's type, NULL where the expression is."""
        if operator not in _OPERATORS:
            raise KeyholeError("KH205", "a comparison that is not on the allow-list")
        if column.sql_type in (SqlType.INTEGER, SqlType.NUMERIC) and not isinstance(value, str | bool):
            return compare_exactly(self.dialect, expression, column, operator, _number(value))
        return f"{expression} {operator} {self.dialect.spelling.constant(value, column=column)}"

    def within(self, expression: str, column: Column, values: tuple[Value, ...]) -> str:
        """Return SQL for `expression IN (values)`, NULL where the expression is."""
        if column.sql_type in (SqlType.INTEGER, SqlType.NUMERIC):
            taken = _exact_values(self.dialect, column)
            exact = [_number(value) for value in values]
            spelled = [_exact(value, scale=taken.scale) for value in exact if taken.holds(value)]
        else:
            spelled = [self.dialect.spelling.constant(value, column=column) for value in values]
        return f"{expression} IN ({', '.join(spelled)})" if spelled else f"{expression} <> {expression}"

    def canonical(self, expression: str, column: Column) -> str:
        """Return SQL for a non-NULL value as text, the same on every engine.

        It is never ambiguous when joined with '|'.
        """
        spelling = self.dialect.spelling
        match column.sql_type:
            case SqlType.TEXT:
                return f"{spelling.cast(f'length({expression})', spelling.text_type)} || ':' || {expression}"
            case SqlType.NUMERIC:
                return self.dialect.canonical_numeric(expression, column.declared)
            case SqlType.TIMESTAMP:
                return self.dialect.moment_text(expression)
            case _:
                return spelling.cast(expression, spelling.text_type)


@lru_cache(maxsize=1024)
def compare_exactly(dialect: Dialect, expression: str, column: Column, operator: str, value: Fraction) -> str:
    """Return SQL for the comparison of an integer or numeric column with any rational.

    The rational is moved to a value the column can take.

    So no engine has to widen the column, which would be slow, and on DuckDB could fail on a long decimal. Remembered: a
    statement asks a filter's comparison once for each way that it adds up the rows.
    """
    always, never = f"{expression} = {expression}", f"{expression} <> {expression}"
    taken = _exact_values(dialect, column)
    if operator in ("=", "<>") and not taken.holds(value):
        return never if operator == "=" else always
    if taken.scale is not None:
        steps = value * 10**taken.scale
        value = Fraction(floor(steps) if operator in (">", "<=") else ceil(steps), 10**taken.scale)
    if taken.high is not None and value > taken.high:
        return always if operator in ("<", "<=") else never
    if taken.low is not None and value < taken.low:
        return always if operator in (">", ">=") else never
    return f"{expression} {operator} {_exact(value, scale=taken.scale)}"


def _exact_values(dialect: Dialect, column: Column) -> ExactValues:
    if column.sql_type is SqlType.INTEGER:
        limit = integer_limit(column.declared)
        return ExactValues(scale=0, low=Fraction(-limit - 1), high=Fraction(limit))
    return dialect.exact_values(column.declared)


def _exact(value: Fraction, *, scale: int | None) -> str:
    if scale == 0:
        return integer(value.numerator)
    return decimal(value, scale=_places(value) if scale is None else scale)


def _places(value: Fraction) -> int:
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    return places


def _number(value: Value) -> Fraction:
    """Return a constant of a number's column, which already has the column's type."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise KeyholeError("KH212", "a number is expected")
    return Fraction(value)
