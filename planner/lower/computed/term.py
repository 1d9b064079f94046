"""Computed expressions of a row as SQL that no row can make fail.

Guarantee: every step is done in a type that holds all its possible operands, by `RowTerm.limit`. A stored value that is
larger, NaN, infinite or outside of the years 1 to 9999 is NULL before anything is computed from it. A quotient by 0 is
NULL. An engine may compute what a CASE would skip, and this does not fail either, because divisors are NULL instead of
0.

References: docs/decisions/0037-row-expressions.md.
"""

from dataclasses import dataclass
from typing import Protocol

from planner.catalog.catalog import Column, Derivation, SqlType, Table
from planner.catalog.row_terms import RowTerm, TermKind
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.predicates.computed import times
from planner.predicates.computed.number_arithmetic import DOUBLE_DIGITS
from planner.values.sql_literals import write_integer

_BIGINT = 2**63  # the end of bigint
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # microseconds since 1970: the years 1 to 9999
_COUNTED_MONTH = 30 * 86_400_000_000  # where lengths of time are compared
# 4800 months have 146097 days: a month begins less than half a month away from where all are equally long
_BEFORE_MONTHS = 719_528 * 4800 + 74_000  # from the year 0 on, and half a month
_BLANKS = " \t\n\v\f\r"  # around a number
_TINY = 1e-295  # less than every double that is not 0


class StoredRow(Protocol):
    """A row as SQL reads it. It stands for `planner.lower.row.RowSql`, which this module must not import."""

    @property
    def table(self) -> Table:
        """The table to which the row belongs."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect of the engine that reads the row."""

    def write_column(self, name: str) -> str:
        """Return the SQL of a column's value."""

    def write_cut_text(self, name: str) -> str:
        """Return the SQL of a text column, cut to the length that conditions read."""

    def write_derived(self, column: Column) -> str:
        """Return the SQL of a derived column's value."""


def write_term(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of an expression. If the expression is exact, the SQL gives a whole number of its steps."""
    return f"({_write_unsigned_zero(row, term) if term.kind is TermKind.FLOATING else _write_sql(row, term)})"


def _write_sql(row: StoredRow, term: RowTerm) -> str:
    match term.function:
        case "column":
            return _write_column(row, term)
        case "stored":
            return row.write_column(str(term.value))
        case "constant":
            return _write_constant(row, term)
        case "same" | "rest":
            return _write_sql(row, term.arguments[0])
        case "part" | "start":
            return _write_calendar(row, term)
        case "moved":
            return _write_shifted_month(row, term)
        case "=" | "<" | "= by" | "< by":
            return _write_comparison(row, term)
        case "number":
            return _write_read_number(row, term)
        case "matches":
            text, pattern = term.arguments
            return row.dialect.match_regex(f"({_write_sql(row, text)})", str(pattern.value))
        case "age" | "months":
            return _write_age(row, term)
    if term.kind is TermKind.TEXT or term.function == "length":
        return _write_text(row, term)
    return _write_double(row, term) if term.kind is TermKind.FLOATING else _write_whole_number(row, term)


def _write_column(row: StoredRow, term: RowTerm) -> str:
    name, dialect = str(term.value), row.dialect
    x, column = row.write_column(name), row.table.get_column(name)
    match term.kind:
        case TermKind.TEXT:
            return row.write_cut_text(name)
        case TermKind.WHOLE:
            return x
        case TermKind.EXACT:
            digits = len(str(term.limit)) - term.scale
            return dialect.convert_to_whole(
                x, column.declared, digits, term.scale, dialect.choose_whole_type(term.limit)
            )
        case TermKind.FLOATING:
            return _write_within_range(row, x, term.limit)
        case _:
            counted = dialect.count_days(x) if term.kind is TermKind.DAY else dialect.count_microseconds(x)
            return f"CASE WHEN {x} BETWEEN {dialect.spelling.write_years(column.sql_type)} THEN {counted} END"


def _write_within_range(row: StoredRow, x: str, exponent: int) -> str:
    """Return the SQL of a double, NULL if it or its inverse is larger than 10^exponent."""
    spelled = row.dialect.spelling.write_double
    low, high = spelled(float(f"1e-{exponent}")), spelled(float(f"1e{exponent}"))
    return f"CASE WHEN abs({x}) BETWEEN {low} AND {high} OR {x} = {spelled(0.0)} THEN {x} END"


def _write_constant(row: StoredRow, term: RowTerm) -> str:
    spelling, value = row.dialect.spelling, term.value
    if isinstance(value, str):
        return spelling.quote_text(value)
    if isinstance(value, float):
        return spelling.write_double(value)
    spelled = write_integer(value) if abs(value) < _BIGINT else f"'{value}'"
    return spelling.write_cast(spelled, row.dialect.choose_whole_type(max(term.limit, abs(value))))


def _write_read_number(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of the number that a text contains, NULL if it contains none.

    Only texts that contain a number are cast.
    """
    spelling, dialect = row.dialect.spelling, row.dialect
    said = f"trim(BOTH {spelling.quote_text(_BLANKS)} FROM {_write_sql(row, term.arguments[0])})"
    digits = len(str(term.limit)) - term.scale
    if term.kind is TermKind.FLOATING:
        pattern = "(0*[0-9]{1,30}([.][0-9]{0,30})?|[.][0-9]{1,30})([eE][+-]?[0-9]{1,2})?"
    elif term.scale:
        pattern = f"(0*[0-9]{{1,{digits}}}([.][0-9]{{0,{term.scale}}}0*)?|[.][0-9]{{1,{term.scale}}}0*)"
    else:
        pattern = f"0*[0-9]{{1,{digits}}}"
    found = f"CASE WHEN {dialect.match_regex(said, f'^[+-]?{pattern}$')} THEN {said} END"
    if term.kind is TermKind.FLOATING:
        return _write_within_range(row, f"({spelling.write_cast(found, spelling.double_type)})", term.limit)
    if not term.scale:
        return spelling.write_cast(found, "bigint")
    modifier = f"({digits + term.scale}, {term.scale})"
    made = f"({spelling.write_cast(found, f'decimal{modifier}')})"
    return dialect.convert_to_whole(
        made, f"numeric{modifier}", digits, term.scale, dialect.choose_whole_type(term.limit)
    )


def _write_age(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of the time between two moments: in months and a rest, or in months alone.

    PostgreSQL counts from the earlier moment. If the later one is earlier within its month, one month is taken back and
    the days of the earlier one's month are added.
    """
    a, b = (_measure_month(row, one) for one in term.arguments)
    back, forth = f"{a.at} >= {b.at} AND {a.into} < {b.into}", f"{a.at} < {b.at} AND {a.into} > {b.into}"
    if term.function == "months":
        months = f"({a.number} - {b.number} + CASE WHEN {back} THEN -1 WHEN {forth} THEN 1 ELSE 0 END)"
        return row.dialect.spelling.write_cast(months, "bigint")
    least = write_integer(_COUNTED_MONTH)
    taken = f"CASE WHEN {back} THEN {b.length} - {least} WHEN {forth} THEN {least} - {a.length} ELSE 0 END"
    return f"({least} * ({a.number} - {b.number}) + ({a.into} - {b.into}) + {taken})"


@dataclass(frozen=True, slots=True)
class _MonthSql:
    """The SQL of a moment, its month's number, the time since the month began, and its length, in microseconds."""

    at: str
    number: str
    into: str
    length: str


def _measure_month(row: StoredRow, time: RowTerm) -> _MonthSql:
    kept, divide = row.dialect.spelling.write_cast, row.dialect.divide_down
    start = times.truncate("month", time)
    at, began = (f"{kept(_write_sql(row, one), 'bigint')}" for one in (times.convert_to_moment(time), start))
    (days, _) = start.arguments
    since = f"{kept(_write_sql(row, days), 'bigint')} * 4800 + {_BEFORE_MONTHS}"
    ends = kept(_write_sql(row, times.move_months(start, 1)), "bigint")
    return _MonthSql(at, kept(divide(since, 146_097), "bigint"), f"({at} - {began})", f"({ends} - {began})")


def _write_calendar(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a part of a time, or of the first day of its month, quarter or year."""
    unit = str(term.arguments[0].value)
    if not term.reads_stored:
        at, spelling = _write_moment(row, term.arguments[1]), row.dialect.spelling
        if term.function == "part":
            return spelling.write_cast(row.dialect.extract_part(unit, at), "integer")
        return row.dialect.count_days(spelling.write_cast(row.dialect.truncate_moment(unit, at), "date"))
    if term.function == "part":
        made = Column("", SqlType.INTEGER, "integer", derivation=Derivation("extract", unit, str(term.value)))
        return row.write_derived(made)
    made = Column("", SqlType.DATE, "date", derivation=Derivation("date_trunc", unit, str(term.value)))
    found = row.write_derived(made)
    return row.dialect.count_days(f"({found})")


def _write_shifted_month(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a time some months later. In a month that is too short for its day it is the last day."""
    name, months = str(term.value), term.arguments[0].value
    assert isinstance(months, int)
    if not term.reads_stored:
        return row.dialect.count_microseconds(f"({_write_moment(row, term.arguments[1])} + INTERVAL '{months}' MONTH)")
    x, spelling = row.write_column(name), row.dialect.spelling
    moved = row.dialect.count_microseconds(f"({spelling.convert_to_timestamp(x)} + INTERVAL '{months}' MONTH)")
    return f"CASE WHEN {x} BETWEEN {spelling.write_years(row.table.get_column(name).sql_type)} THEN {moved} END"


def _write_moment(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a computed moment as a timestamp, NULL outside of the years 1 to 9999."""
    sql, spelling = f"({_write_sql(row, term)})", row.dialect.spelling
    within = f"CASE WHEN {sql} BETWEEN {write_integer(_FIRST)} AND {write_integer(_LAST)} THEN {sql} END"
    return row.dialect.make_moment(f"({spelling.write_cast(within, 'bigint')})")


def _write_operands(row: StoredRow, terms: tuple[RowTerm, ...], *, limit: int = 0) -> list[str]:
    """Return the SQL of exact terms in one type that holds them and their result. Other terms stay as they are."""
    if terms[0].kind in (TermKind.TEXT, TermKind.TRUTH) or terms[0].function == "stored":
        return [f"({_write_sql(row, one)})" for one in terms]
    if terms[0].kind is TermKind.FLOATING:
        return [f"({_write_sql(row, one)})" for one in terms]
    kind = row.dialect.choose_whole_type(max(limit, *(one.limit for one in terms)))
    return [row.dialect.spelling.write_cast(_write_sql(row, one), kind) for one in terms]


def _write_comparison(row: StoredRow, term: RowTerm) -> str:
    operator, *by = term.function.split()
    if term.arguments[0].kind is TermKind.FLOATING and term.arguments[0].function != "stored":
        left, right = (f"({_write_unsigned_zero(row, one)})" for one in term.arguments)
        return f"{left} {operator} {right}"
    left, right, *divisor = _write_operands(row, term.arguments)
    if not by:
        return f"{left} {operator} {right}"
    if operator == "=":
        return f"CASE WHEN {divisor[0]} <> 0 THEN {left} = {right} END"
    return f"CASE WHEN {divisor[0]} > 0 THEN {left} < {right} WHEN {divisor[0]} < 0 THEN {right} < {left} END"


def _write_unsigned_zero(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a double whose 0 has no sign, because some engines distinguish the two zeros."""
    sql, spelled = _write_sql(row, term), row.dialect.spelling.write_double
    if term.function in ("column", "constant", "double"):
        return sql
    return f"CASE WHEN abs({sql}) < {spelled(_TINY)} THEN {spelled(0.0)} ELSE {sql} END"


def _write_whole_number(row: StoredRow, term: RowTerm) -> str:
    dialect = row.dialect
    cast, kind = dialect.spelling.write_cast, dialect.choose_whole_type(term.limit)
    match term.function:
        case "+" | "*" | "coalesce" | "greatest" | "least" | "nullif":
            operands = _write_operands(row, term.arguments, limit=term.limit)
            if term.function in ("+", "*"):
                return f"({f' {term.function} '.join(operands)})"
            return f"{term.function.upper()}({', '.join(operands)})"
        case "negate" | "abs":
            x = _write_operands(row, term.arguments)[0]
            return f"(-({x}))" if term.function == "negate" else f"abs({x})"
        case "quotient" | "remainder":
            a, b = _write_operands(row, term.arguments)
            if term.function == "remainder":
                rest = f"(abs({a}) % NULLIF(abs({b}), 0))"
                return f"CASE WHEN {a} < 0 THEN -{rest} ELSE {rest} END"
            quotient = dialect.divide_whole(f"abs({a})", f"NULLIF(abs({b}), 0)")
            return f"CASE WHEN ({a} < 0) = ({b} < 0) THEN {quotient} ELSE -({quotient}) END"
        case "floor of" | "ceil of" | "trunc of" | "round of":
            return cast(_write_rounded_quotient(row, term), kind)
        case "nearest":
            return cast(_write_nearest_integer(row, term), kind)
        case "round double" | "trunc double":
            return cast(_write_rounded_double(row, term), kind)
        case "floor" | "ceil" | "round" | "trunc":
            return cast(_write_coarser_steps(row, term), kind)
        case _:
            raise KeyholeError("KH900", f"cannot write {term.function} of a row as SQL")


def _write_rounded_quotient(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a rounded quotient of two columns, NULL if the divisor is 0."""
    a, b = _write_operands(row, term.arguments, limit=2 * sum(one.limit for one in term.arguments))
    over, under = f"abs({a})", f"NULLIF(abs({b}), 0)"
    down = row.dialect.divide_whole(over, under)
    up = f"{down} + CASE WHEN {over} % {under} > 0 THEN 1 ELSE 0 END"
    half = row.dialect.divide_whole(f"(2 * {over} + {under})", f"(2 * {under})")
    above, below = {"floor of": (down, up), "ceil of": (up, down), "trunc of": (down, down)}.get(
        term.function, (half, half)
    )
    return f"CASE WHEN ({a} < 0) = ({b} < 0) THEN {above} ELSE -({below}) END"


def _write_coarser_steps(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a whole number in coarser steps. The dividend is never negative."""
    value, by = term.arguments
    step = by.value
    assert isinstance(step, int)
    x = row.dialect.spelling.write_cast(_write_sql(row, value), "bigint")
    divide = row.dialect.divide_down
    if term.function in ("floor", "ceil"):
        steps = value.limit // step + 1
        more = steps * step + (step - 1 if term.function == "ceil" else 0)
        return f"{divide(f'{x} + {write_integer(more)}', step)} - {write_integer(steps)}"
    half = step // 2 if term.function == "round" else 0
    up, down = divide(f"abs({x}) + {write_integer(half)}", step), divide(f"abs({x}) + {write_integer(half)}", step)
    return f"CASE WHEN {x} >= 0 THEN {up} ELSE -({down}) END"


def _write_rounded_double(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a double in steps of 10^-scale.

    It is rounded up if its first fifteen digits reach a half, or a whole step.
    """
    spelled, cast = row.dialect.spelling.write_double, row.dialect.spelling.write_cast
    x = f"({_write_sql(row, term.arguments[0])})"
    steps = f"(abs({x}) * {spelled(float(10**term.scale))})"
    small = f"(CASE WHEN {steps} < {spelled(float(DOUBLE_DIGITS))} THEN {steps} END)"
    below = cast(f"floor({small})", "bigint")
    hidden = " ".join(f"WHEN {steps} < {spelled(10.0**i)} THEN {spelled(float(f'5e{i - 16}'))}" for i in range(16))
    least = spelled(0.5 if term.function == "round double" else 1.0)
    up = f"{small} - {cast(below, row.dialect.spelling.double_type)} >= {least} - CASE {hidden} END"
    return f"((CASE WHEN {x} < {spelled(0.0)} THEN -1 ELSE 1 END) * ({below} + CASE WHEN {up} THEN 1 ELSE 0 END))"


def _write_nearest_integer(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of the integer nearest to a double, the even one of two."""
    spelled, x = row.dialect.spelling.write_double, f"({_write_sql(row, term.arguments[0])})"
    small = f"(CASE WHEN abs({x}) < {spelled(4e15)} THEN {x} END)"  # beyond 2^52 every double is whole
    below = f"floor({small})"
    even = f"2 * floor(({below} + 1) / {spelled(2.0)})"
    whole = f"CASE WHEN abs({x}) BETWEEN {spelled(4e15)} AND {spelled(float(term.limit))} THEN {x} END"
    near = f"CASE WHEN {small} - {below} = {spelled(0.5)} THEN {even} ELSE floor({small} + {spelled(0.5)}) END"
    return f"COALESCE({near}, {whole})"


def _write_double(row: StoredRow, term: RowTerm) -> str:
    spelling = row.dialect.spelling
    if term.function == "double":
        (whole,) = term.arguments
        found = spelling.write_cast(_write_sql(row, whole), spelling.double_type)
        return f"({found} / {spelling.write_double(float(10**whole.scale))})" if whole.scale else found
    operands = _write_operands(row, term.arguments)
    match term.function:
        case "+" | "*":
            return f"({f' {term.function} '.join(operands)})"
        case "/":
            divisor = _write_unsigned_zero(row, term.arguments[1])
            return f"({operands[0]} / NULLIF({divisor}, {spelling.write_double(0.0)}))"
        case "negate":
            return f"(-{operands[0]})"
        case "abs":
            return f"abs({operands[0]})"
        case "floor" | "ceil":
            # beyond 2^53 every double is whole, and an engine whose floor is a bigint would fail
            (x,) = operands
            small = f"CASE WHEN abs({x}) < {spelling.write_double(9e15)} THEN {x} END"
            return f"COALESCE({spelling.write_cast(f'{term.function}({small})', spelling.double_type)}, {x})"
        case "nullif":
            left, right = (_write_unsigned_zero(row, one) for one in term.arguments)
            return f"NULLIF({left}, {right})"
        case "coalesce" | "greatest" | "least":
            return f"{term.function.upper()}({', '.join(operands)})"
        case _:
            raise KeyholeError("KH900", f"cannot write {term.function} of a row as SQL")


def _write_text(row: StoredRow, term: RowTerm) -> str:
    operands = [str(one.value) if one.kind is TermKind.WHOLE else f"({_write_sql(row, one)})" for one in term.arguments]
    match term.function:
        case "lower" | "upper":
            return row.dialect.change_ascii_case(term.function, operands[0])
        case "trim" | "ltrim" | "rtrim":
            which = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[term.function]
            return f"trim({which} ' ' FROM {operands[0]})"
        case "||":
            return f"({operands[0]} || {operands[1]})"
        case "coalesce" | "nullif" | "left" | "right" | "substring" | "replace" | "split_part" | "length":
            return f"{term.function}({', '.join(operands)})"
        case _:
            raise KeyholeError("KH900", f"cannot write {term.function} of a text as SQL")
