"""What one row of a private table says, as SQL that no row can make fail.

Guarantee: every expression made here is total. There is no arithmetic and no narrowing cast on a value that was not
clipped before, and derived columns are computed only between the years 1 and 9999 (NULL outside, infinities too).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from planner.catalog.model import Column, Derivation, Lookup, SqlType, Table, Value
from planner.errors import KeyholeError
from planner.question.condition import Compare, Condition, IsNull, Leaf, Like, Within
from planner.values.sql_literals import (
    Dialect,
    constant,
    decimal,
    duckdb_numeric,
    identifier,
    integer,
    integer_limit,
    numeric_modifier,
    text,
    type_name,
)

_OPERATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_YEARS = {
    SqlType.DATE: "DATE '0001-01-01' AND DATE '9999-12-31'",
    SqlType.TIMESTAMP: "TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59.999999'",
}


@dataclass(frozen=True, slots=True)
class RowSql:
    """SQL over single rows of `table` in one dialect.

    `measures` names the stored column that already holds a measure's clipped and rounded value, by the measure's name.
    """

    table: Table
    dialect: Dialect
    measures: Mapping[str, str] = field(default_factory=dict)

    def column(self, name: str) -> str:
        """The value of an exposed column, as its declared type; text compares byte by byte."""
        column = self.table.column(name)
        match column.derivation:
            case None:
                return self._stored(column)
            case Lookup():
                raise KeyholeError("KH900", f'column "{column.name}" is looked up and not stored')
            case _:
                return self._derived(column, column.derivation)

    def grouped(self, name: str) -> str:
        """The column where rows are grouped by it alone: on PostgreSQL, text under its own collation.

        That one is deterministic (a policy cannot expose another), so its groups are those of the bytes, and the scan
        need not compute a column.
        """
        column = self.table.column(name)
        if self.dialect == "postgres" and column.sql_type is SqlType.TEXT and column.derivation is None:
            return identifier(name)
        return self.column(name)

    def _stored(self, column: Column) -> str:
        name = identifier(column.name)
        if column.sql_type is SqlType.OTHER:
            raise KeyholeError("KH205", f'column "{column.name}" has a type that cannot be computed with')
        if self.dialect == "duckdb":
            cast = f"TRY_CAST({name} AS {type_name(column)})"
            # a cast keeps a column's own collation, and DuckDB does not tell which columns have one
            return f'{cast} COLLATE "C"' if column.sql_type is SqlType.TEXT else cast
        if column.sql_type is SqlType.TEXT:
            return f'CAST({name} AS text) COLLATE "C"'
        if column.sql_type is SqlType.DOUBLE and column.declared.strip().lower() in ("real", "float4"):
            return f"CAST({name} AS double precision)"
        return name

    def _derived(self, column: Column, derivation: Derivation) -> str:
        source = self.table.column(derivation.column)
        base = self._stored(source)
        moment = f"CAST({base} AS timestamp)"
        match derivation.function:
            case "date_trunc":
                value = f"date_trunc({text(derivation.part)}, {moment})"
            case "extract":
                value = f"extract({derivation.part} FROM {moment})"
            case "date":
                value = base
            case _:
                raise KeyholeError("KH010", f'derived column "{column.name}" uses a function that is not allowed')
        years = _YEARS.get(source.sql_type)
        if years is None:
            raise KeyholeError("KH010", f'derived column "{column.name}" is not made from a date or timestamp')
        return f"CASE WHEN {base} BETWEEN {years} THEN CAST({value} AS {type_name(column)}) END"

    def holds(self, condition: Condition) -> str:
        """A row condition, three-valued as in SQL."""

        def every(parts: Sequence[str]) -> str:
            return " AND ".join(f"({part})" for part in parts) or "TRUE"

        def some(parts: Sequence[str]) -> str:
            return " OR ".join(f"({part})" for part in parts) or "FALSE"

        return condition.fold(self._test, negation=lambda inner: f"NOT ({inner})", every=every, some=some)

    def _test(self, leaf: Leaf) -> str:
        match leaf:
            case Compare(name, operator, value):
                return self.compare(self.column(name), self.table.column(name), operator, value)
            case Within(name, values):
                return self.within(self.column(name), self.table.column(name), values)
            case Like(name, pattern):
                escape = r" ESCAPE '\'" if "\\" in pattern else ""
                return f"{self.column(name)} LIKE {text(pattern)}{escape}"
            case IsNull(name):
                return f"({self.column(name)}) IS NULL"

    def compare(self, expression: str, column: Column, operator: str, value: Value) -> str:
        """`expression operator value`, both of the column's type, NULL where the expression is."""
        if operator not in _OPERATORS:
            raise KeyholeError("KH205", "a comparison that is not on the allow-list")
        if column.sql_type in (SqlType.INTEGER, SqlType.NUMERIC) and not isinstance(value, str | bool):
            return self.compare_exactly(expression, column, operator, _number(value))
        return f"{expression} {operator} {constant(value, column=column)}"

    def within(self, expression: str, column: Column, values: tuple[Value, ...]) -> str:
        """`expression IN (values)`, NULL where the expression is."""
        if column.sql_type in (SqlType.INTEGER, SqlType.NUMERIC):
            grid = self._grid(column)
            exact = [_number(value) for value in values]
            spelled = [_exact(value, scale=grid.scale) for value in exact if grid.holds(value)]
        else:
            spelled = [constant(value, column=column) for value in values]
        return f"{expression} IN ({', '.join(spelled)})" if spelled else f"{expression} <> {expression}"

    def compare_exactly(self, expression: str, column: Column, operator: str, value: Fraction) -> str:
        """The comparison of an integer or numeric column with any rational, moved to a value the column can take.

        So no engine has to widen the column, which would be slow, and on DuckDB could fail on a long decimal.
        """
        always, never = f"{expression} = {expression}", f"{expression} <> {expression}"
        grid = self._grid(column)
        if operator in ("=", "<>") and not grid.holds(value):
            return never if operator == "=" else always
        if grid.scale is not None:
            steps = value * 10**grid.scale
            value = Fraction(floor(steps) if operator in (">", "<=") else ceil(steps), 10**grid.scale)
        if grid.high is not None and value > grid.high:
            return always if operator in ("<", "<=") else never
        if grid.low is not None and value < grid.low:
            return always if operator in (">", ">=") else never
        return f"{expression} {operator} {_exact(value, scale=grid.scale)}"

    def _grid(self, column: Column) -> "_Grid":
        if column.sql_type is SqlType.INTEGER:
            limit = integer_limit(column.declared)
            return _Grid(scale=0, low=Fraction(-limit - 1), high=Fraction(limit))
        if self.dialect == "duckdb":
            precision, scale = duckdb_numeric(column.declared)
            limit = 10**precision - 1
            return _Grid(scale=scale, low=Fraction(-limit, 10**scale), high=Fraction(limit, 10**scale))
        modifier = numeric_modifier(column.declared)
        return _Grid(scale=None if modifier is None else max(0, modifier[1]), low=None, high=None)

    def canonical(self, expression: str, column: Column) -> str:
        """A non-NULL value as text that is the same on every engine and never ambiguous when joined with '|'."""
        match column.sql_type:
            case SqlType.TEXT:
                return f"CAST(length({expression}) AS text) || ':' || {expression}"
            case SqlType.NUMERIC if self.dialect == "postgres":
                return f"CAST(trim_scale({expression}) AS text)"
            case SqlType.NUMERIC if duckdb_numeric(column.declared)[1] > 0:
                return f"rtrim(rtrim(CAST({expression} AS text), '0'), '.')"
            case _:
                return f"CAST({expression} AS text)"


@dataclass(frozen=True, slots=True)
class _Grid:
    """The values an exact column can take: multiples of 10^-scale (None: any) from low to high (None: any)."""

    scale: int | None
    low: Fraction | None
    high: Fraction | None

    def holds(self, value: Fraction) -> bool:
        if self.scale is not None and (value * 10**self.scale).denominator != 1:
            return False
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


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
    """A constant of a number's column, which has the column's type by now."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise KeyholeError("KH212", "a number is expected")
    return Fraction(value)
