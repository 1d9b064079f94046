"""Computed expressions of a row as SQL that no row can make fail.

Guarantee: every step is done in a type that holds whatever its operands may be, by `RowTerm.limit`. A stored value that
is larger, NaN, infinite or outside of the years 1 to 9999 is NULL before anything is computed of it, and so is a
quotient by 0. What a CASE would spare could be computed all the same and would not fail: divisors are NULL, not 0.
"""

from typing import TYPE_CHECKING

from planner.catalog.model import Column, Derivation, SqlType
from planner.catalog.row_terms import Kind, RowTerm
from planner.errors import KeyholeError
from planner.values.sql_literals import integer

if TYPE_CHECKING:
    from planner.lower.row import RowSql

_BIGINT = 2**63
_TINY = 1e-295  # less than every double that is not 0


def compute_term(row: "RowSql", term: RowTerm) -> str:
    """Return the expression as SQL: an exact one as a whole number of its steps."""
    return f"({_zeroed(row, term) if term.kind is Kind.FLOATING else _sql(row, term)})"


def _sql(row: "RowSql", term: RowTerm) -> str:
    match term.function:
        case "column":
            return _column(row, term)
        case "stored":
            return row.column(str(term.value))
        case "constant":
            return _constant(row, term)
        case "same":
            return _sql(row, term.arguments[0])
        case "part" | "start":
            return _calendar(row, term)
        case "=" | "<" | "= by" | "< by":
            return _comparison(row, term)
    if term.kind is Kind.TEXT or term.function == "length":
        return _text(row, term)
    return _double(row, term) if term.kind is Kind.FLOATING else _whole(row, term)


def _column(row: "RowSql", term: RowTerm) -> str:
    name, dialect = str(term.value), row.dialect
    x, column = row.column(name), row.table.column(name)
    match term.kind:
        case Kind.TEXT:
            return row.cut_text(name)
        case Kind.WHOLE:
            return x
        case Kind.EXACT:
            digits = len(str(term.limit)) - term.scale
            return dialect.whole_number(x, column.declared, digits, term.scale, dialect.whole_type(term.limit))
        case Kind.FLOATING:
            spelled = dialect.spelling.double
            low, high = spelled(float(f"1e-{term.limit}")), spelled(float(f"1e{term.limit}"))
            return f"CASE WHEN abs({x}) BETWEEN {low} AND {high} OR {x} = {spelled(0.0)} THEN {x} END"
        case _:
            counted = dialect.days(x) if term.kind is Kind.DAY else dialect.microseconds(x)
            return f"CASE WHEN {x} BETWEEN {dialect.spelling.years(column.sql_type)} THEN {counted} END"


def _constant(row: "RowSql", term: RowTerm) -> str:
    spelling, value = row.dialect.spelling, term.value
    if isinstance(value, str):
        return spelling.text(value)
    if isinstance(value, float):
        return spelling.double(value)
    spelled = integer(value) if abs(value) < _BIGINT else f"'{value}'"
    return spelling.cast(spelled, row.dialect.whole_type(max(term.limit, abs(value))))


def _calendar(row: "RowSql", term: RowTerm) -> str:
    """A part of a stored time, or the day on which its month, quarter or year begins."""
    unit = str(term.arguments[0].value)
    if term.function == "part":
        made = Column("", SqlType.INTEGER, "integer", derivation=Derivation("extract", unit, str(term.value)))
        return row.derived(made)
    made = Column("", SqlType.DATE, "date", derivation=Derivation("date_trunc", unit, str(term.value)))
    found = row.derived(made)
    return row.dialect.days(f"({found})")


def _operands(row: "RowSql", terms: tuple[RowTerm, ...], *, limit: int = 0) -> list[str]:
    """Exact terms in one type that holds them, and what is made of them; others as they are."""
    if terms[0].kind in (Kind.TEXT, Kind.TRUTH) or terms[0].function == "stored":
        return [f"({_sql(row, one)})" for one in terms]
    if terms[0].kind is Kind.FLOATING:
        return [f"({_sql(row, one)})" for one in terms]
    kind = row.dialect.whole_type(max(limit, *(one.limit for one in terms)))
    return [row.dialect.spelling.cast(_sql(row, one), kind) for one in terms]


def _comparison(row: "RowSql", term: RowTerm) -> str:
    operator, *by = term.function.split()
    if term.arguments[0].kind is Kind.FLOATING and term.arguments[0].function != "stored":
        left, right = (f"({_zeroed(row, one)})" for one in term.arguments)
        return f"{left} {operator} {right}"
    left, right, *divisor = _operands(row, term.arguments)
    if not by:
        return f"{left} {operator} {right}"
    if operator == "=":
        return f"CASE WHEN {divisor[0]} <> 0 THEN {left} = {right} END"
    return f"CASE WHEN {divisor[0]} > 0 THEN {left} < {right} WHEN {divisor[0]} < 0 THEN {right} < {left} END"


def _zeroed(row: "RowSql", term: RowTerm) -> str:
    """A double of which 0 has no sign, since not all engines take both for one number."""
    sql, spelled = _sql(row, term), row.dialect.spelling.double
    if term.function in ("column", "constant", "double"):
        return sql
    return f"CASE WHEN abs({sql}) < {spelled(_TINY)} THEN {spelled(0.0)} ELSE {sql} END"


def _whole(row: "RowSql", term: RowTerm) -> str:
    dialect = row.dialect
    cast, kind = dialect.spelling.cast, dialect.whole_type(term.limit)
    match term.function:
        case "+" | "*" | "coalesce" | "greatest" | "least" | "nullif":
            operands = _operands(row, term.arguments, limit=term.limit)
            if term.function in ("+", "*"):
                return f"({f' {term.function} '.join(operands)})"
            return f"{term.function.upper()}({', '.join(operands)})"
        case "negate" | "abs":
            x = _operands(row, term.arguments)[0]
            return f"(-({x}))" if term.function == "negate" else f"abs({x})"
        case "quotient" | "remainder":
            a, b = _operands(row, term.arguments)
            if term.function == "remainder":
                rest = f"(abs({a}) % NULLIF(abs({b}), 0))"
                return f"CASE WHEN {a} < 0 THEN -{rest} ELSE {rest} END"
            quotient = dialect.whole_quotient(f"abs({a})", f"NULLIF(abs({b}), 0)")
            return f"CASE WHEN ({a} < 0) = ({b} < 0) THEN {quotient} ELSE -({quotient}) END"
        case "floor" | "ceil" | "round" | "trunc":
            return cast(_stepped(row, term), kind)
        case _:
            raise KeyholeError("KH900", f"an expression of a row with {term.function}")


def _stepped(row: "RowSql", term: RowTerm) -> str:
    """A whole number in coarser steps; what is divided is never negative."""
    value, by = term.arguments
    step = by.value
    assert isinstance(step, int)
    x = row.dialect.spelling.cast(_sql(row, value), "bigint")
    divide = row.dialect.floor_quotient
    if term.function in ("floor", "ceil"):
        steps = value.limit // step + 1
        more = steps * step + (step - 1 if term.function == "ceil" else 0)
        return f"{divide(f'{x} + {integer(more)}', step)} - {integer(steps)}"
    half = step // 2 if term.function == "round" else 0
    up, down = divide(f"abs({x}) + {integer(half)}", step), divide(f"abs({x}) + {integer(half)}", step)
    return f"CASE WHEN {x} >= 0 THEN {up} ELSE -({down}) END"


def _double(row: "RowSql", term: RowTerm) -> str:
    spelling = row.dialect.spelling
    if term.function == "double":
        (whole,) = term.arguments
        found = spelling.cast(_sql(row, whole), spelling.double_type)
        return f"({found} / {spelling.double(float(10**whole.scale))})" if whole.scale else found
    operands = _operands(row, term.arguments)
    match term.function:
        case "+" | "*":
            return f"({f' {term.function} '.join(operands)})"
        case "/":
            divisor = _zeroed(row, term.arguments[1])
            return f"({operands[0]} / NULLIF({divisor}, {spelling.double(0.0)}))"
        case "negate":
            return f"(-{operands[0]})"
        case "abs":
            return f"abs({operands[0]})"
        case "floor" | "ceil":
            # beyond 2^53 every double is whole, and an engine whose floor is a bigint would fail
            (x,) = operands
            small = f"CASE WHEN abs({x}) < {spelling.double(9e15)} THEN {x} END"
            return f"COALESCE({spelling.cast(f'{term.function}({small})', spelling.double_type)}, {x})"
        case "nullif":
            left, right = (_zeroed(row, one) for one in term.arguments)
            return f"NULLIF({left}, {right})"
        case "coalesce" | "greatest" | "least":
            return f"{term.function.upper()}({', '.join(operands)})"
        case _:
            raise KeyholeError("KH900", f"an expression of a row with {term.function}")


def _text(row: "RowSql", term: RowTerm) -> str:
    operands = [str(one.value) if one.kind is Kind.WHOLE else f"({_sql(row, one)})" for one in term.arguments]
    match term.function:
        case "lower" | "upper":
            return row.dialect.ascii_case(term.function, operands[0])
        case "trim" | "ltrim" | "rtrim":
            which = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[term.function]
            return f"trim({which} ' ' FROM {operands[0]})"
        case "||":
            return f"({operands[0]} || {operands[1]})"
        case "coalesce" | "nullif" | "left" | "right" | "substring" | "replace" | "length":
            return f"{term.function}({', '.join(operands)})"
        case _:
            raise KeyholeError("KH900", f"an expression of a text with {term.function}")
