"""Computed expressions of a row as SQL that no row can make fail.

Guarantee: every step is done in a type that holds whatever its operands may be, by `RowTerm.limit`. A stored value that
is larger, NaN, infinite or outside of the years 1 to 9999 is NULL before anything is computed of it, and so is a
quotient by 0. What a CASE would spare could be computed all the same and would not fail: divisors are NULL, not 0.

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
from planner.values.sql_literals import integer

_BIGINT = 2**63  # the end of bigint
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # microseconds since 1970: the years 1 to 9999
_COUNTED_MONTH = 30 * 86_400_000_000  # where lengths of time are compared
# 4800 months have 146097 days: a month begins less than half a month away from where all are equally long
_BEFORE_MONTHS = 719_528 * 4800 + 74_000  # from the year 0 on, and half a month
_BLANKS = " \t\n\v\f\r"  # around a number
_TINY = 1e-295  # less than every double that is not 0


class StoredRow(Protocol):
    """A row as SQL reads it: `planner.lower.row.RowSql`."""

    @property
    def table(self) -> Table:
        """The table whose row it is."""

    @property
    def dialect(self) -> Dialect:
        """The engine that reads it."""

    def column(self, name: str) -> str:
        """Return the SQL of a column's value."""

    def cut_text(self, name: str) -> str:
        """Return a text as far as conditions see it."""

    def derive(self, column: Column) -> str:
        """Return the SQL of a derived column's value."""


def compute_term(row: StoredRow, term: RowTerm) -> str:
    """Return the expression as SQL: an exact one as a whole number of its steps."""
    return f"({_unsign_zero(row, term) if term.kind is TermKind.FLOATING else _sql(row, term)})"


def _sql(row: StoredRow, term: RowTerm) -> str:
    match term.function:
        case "column":
            return _column(row, term)
        case "stored":
            return row.column(str(term.value))
        case "constant":
            return _constant(row, term)
        case "same" | "rest":
            return _sql(row, term.arguments[0])
        case "part" | "start":
            return _calendar(row, term)
        case "moved":
            return _move(row, term)
        case "=" | "<" | "= by" | "< by":
            return _comparison(row, term)
        case "number":
            return _number(row, term)
        case "matches":
            text, pattern = term.arguments
            return row.dialect.matches(f"({_sql(row, text)})", str(pattern.value))
        case "age" | "months":
            return _age(row, term)
    if term.kind is TermKind.TEXT or term.function == "length":
        return _text(row, term)
    return _double(row, term) if term.kind is TermKind.FLOATING else _whole(row, term)


def _column(row: StoredRow, term: RowTerm) -> str:
    name, dialect = str(term.value), row.dialect
    x, column = row.column(name), row.table.get_column(name)
    match term.kind:
        case TermKind.TEXT:
            return row.cut_text(name)
        case TermKind.WHOLE:
            return x
        case TermKind.EXACT:
            digits = len(str(term.limit)) - term.scale
            return dialect.whole_number(x, column.declared, digits, term.scale, dialect.whole_type(term.limit))
        case TermKind.FLOATING:
            return _within_range(row, x, term.limit)
        case _:
            counted = dialect.days(x) if term.kind is TermKind.DAY else dialect.microseconds(x)
            return f"CASE WHEN {x} BETWEEN {dialect.spelling.years(column.sql_type)} THEN {counted} END"


def _within_range(row: StoredRow, x: str, exponent: int) -> str:
    """Return the SQL of a double, NULL where it or its inverse is larger than 10^exponent."""
    spelled = row.dialect.spelling.double
    low, high = spelled(float(f"1e-{exponent}")), spelled(float(f"1e{exponent}"))
    return f"CASE WHEN abs({x}) BETWEEN {low} AND {high} OR {x} = {spelled(0.0)} THEN {x} END"


def _constant(row: StoredRow, term: RowTerm) -> str:
    spelling, value = row.dialect.spelling, term.value
    if isinstance(value, str):
        return spelling.text(value)
    if isinstance(value, float):
        return spelling.double(value)
    spelled = integer(value) if abs(value) < _BIGINT else f"'{value}'"
    return spelling.cast(spelled, row.dialect.whole_type(max(term.limit, abs(value))))


def _number(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of the number that a text says, NULL if it says none.

    Casts are made only of texts that say one.
    """
    spelling, dialect = row.dialect.spelling, row.dialect
    said = f"trim(BOTH {spelling.text(_BLANKS)} FROM {_sql(row, term.arguments[0])})"
    digits = len(str(term.limit)) - term.scale
    if term.kind is TermKind.FLOATING:
        pattern = "(0*[0-9]{1,30}([.][0-9]{0,30})?|[.][0-9]{1,30})([eE][+-]?[0-9]{1,2})?"
    elif term.scale:
        pattern = f"(0*[0-9]{{1,{digits}}}([.][0-9]{{0,{term.scale}}}0*)?|[.][0-9]{{1,{term.scale}}}0*)"
    else:
        pattern = f"0*[0-9]{{1,{digits}}}"
    found = f"CASE WHEN {dialect.matches(said, f'^[+-]?{pattern}$')} THEN {said} END"
    if term.kind is TermKind.FLOATING:
        return _within_range(row, f"({spelling.cast(found, spelling.double_type)})", term.limit)
    if not term.scale:
        return spelling.cast(found, "bigint")
    modifier = f"({digits + term.scale}, {term.scale})"
    made = f"({spelling.cast(found, f'decimal{modifier}')})"
    return dialect.whole_number(made, f"numeric{modifier}", digits, term.scale, dialect.whole_type(term.limit))


def _age(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of the time between two moments in months and a rest, or these months alone.

    PostgreSQL counts from the earlier moment: where less of the later one's month has passed, a month is taken back,
    and the days of the earlier one's month are added.
    """
    a, b = (_measure_month(row, one) for one in term.arguments)
    back, forth = f"{a.at} >= {b.at} AND {a.into} < {b.into}", f"{a.at} < {b.at} AND {a.into} > {b.into}"
    if term.function == "months":
        months = f"({a.number} - {b.number} + CASE WHEN {back} THEN -1 WHEN {forth} THEN 1 ELSE 0 END)"
        return row.dialect.spelling.cast(months, "bigint")
    least = integer(_COUNTED_MONTH)
    taken = f"CASE WHEN {back} THEN {b.length} - {least} WHEN {forth} THEN {least} - {a.length} ELSE 0 END"
    return f"({least} * ({a.number} - {b.number}) + ({a.into} - {b.into}) + {taken})"


@dataclass(frozen=True, slots=True)
class _MonthOf:
    """A moment, the number of its month, the time since that began, and how long it is, in microseconds."""

    at: str
    number: str
    into: str
    length: str


def _measure_month(row: StoredRow, time: RowTerm) -> _MonthOf:
    kept, divide = row.dialect.spelling.cast, row.dialect.floor_quotient
    start = times.truncate("month", time)
    at, began = (f"{kept(_sql(row, one), 'bigint')}" for one in (times.moment(time), start))
    (days, _) = start.arguments
    since = f"{kept(_sql(row, days), 'bigint')} * 4800 + {_BEFORE_MONTHS}"
    ends = kept(_sql(row, times.move_months(start, 1)), "bigint")
    return _MonthOf(at, kept(divide(since, 146_097), "bigint"), f"({at} - {began})", f"({ends} - {began})")


def _calendar(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a part of a time, or of the day on which its month, quarter or year begins."""
    unit = str(term.arguments[0].value)
    if not term.reads_stored:
        at, spelling = _moment(row, term.arguments[1]), row.dialect.spelling
        if term.function == "part":
            return spelling.cast(row.dialect.extract_part(unit, at), "integer")
        return row.dialect.days(spelling.cast(row.dialect.truncate_moment(unit, at), "date"))
    if term.function == "part":
        made = Column("", SqlType.INTEGER, "integer", derivation=Derivation("extract", unit, str(term.value)))
        return row.derive(made)
    made = Column("", SqlType.DATE, "date", derivation=Derivation("date_trunc", unit, str(term.value)))
    found = row.derive(made)
    return row.dialect.days(f"({found})")


def _move(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a time some months later, on the last day of a month that is too short for its day."""
    name, months = str(term.value), term.arguments[0].value
    assert isinstance(months, int)
    if not term.reads_stored:
        return row.dialect.microseconds(f"({_moment(row, term.arguments[1])} + INTERVAL '{months}' MONTH)")
    x, spelling = row.column(name), row.dialect.spelling
    moved = row.dialect.microseconds(f"({spelling.as_moment(x)} + INTERVAL '{months}' MONTH)")
    return f"CASE WHEN {x} BETWEEN {spelling.years(row.table.get_column(name).sql_type)} THEN {moved} END"


def _moment(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a computed moment as a timestamp: NULL outside of the years 1 to 9999."""
    sql, spelling = f"({_sql(row, term)})", row.dialect.spelling
    within = f"CASE WHEN {sql} BETWEEN {integer(_FIRST)} AND {integer(_LAST)} THEN {sql} END"
    return row.dialect.moment_at(f"({spelling.cast(within, 'bigint')})")


def _operands(row: StoredRow, terms: tuple[RowTerm, ...], *, limit: int = 0) -> list[str]:
    """Return the SQL of exact terms in one type that holds them and their result; others as they are."""
    if terms[0].kind in (TermKind.TEXT, TermKind.TRUTH) or terms[0].function == "stored":
        return [f"({_sql(row, one)})" for one in terms]
    if terms[0].kind is TermKind.FLOATING:
        return [f"({_sql(row, one)})" for one in terms]
    kind = row.dialect.whole_type(max(limit, *(one.limit for one in terms)))
    return [row.dialect.spelling.cast(_sql(row, one), kind) for one in terms]


def _comparison(row: StoredRow, term: RowTerm) -> str:
    operator, *by = term.function.split()
    if term.arguments[0].kind is TermKind.FLOATING and term.arguments[0].function != "stored":
        left, right = (f"({_unsign_zero(row, one)})" for one in term.arguments)
        return f"{left} {operator} {right}"
    left, right, *divisor = _operands(row, term.arguments)
    if not by:
        return f"{left} {operator} {right}"
    if operator == "=":
        return f"CASE WHEN {divisor[0]} <> 0 THEN {left} = {right} END"
    return f"CASE WHEN {divisor[0]} > 0 THEN {left} < {right} WHEN {divisor[0]} < 0 THEN {right} < {left} END"


def _unsign_zero(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a double whose 0 has no sign, since not all engines take both for one number."""
    sql, spelled = _sql(row, term), row.dialect.spelling.double
    if term.function in ("column", "constant", "double"):
        return sql
    return f"CASE WHEN abs({sql}) < {spelled(_TINY)} THEN {spelled(0.0)} ELSE {sql} END"


def _whole(row: StoredRow, term: RowTerm) -> str:
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
        case "floor of" | "ceil of" | "trunc of" | "round of":
            return cast(_divide_by(row, term), kind)
        case "nearest":
            return cast(_nearest(row, term), kind)
        case "round double" | "trunc double":
            return cast(_round_double(row, term), kind)
        case "floor" | "ceil" | "round" | "trunc":
            return cast(_divide_steps(row, term), kind)
        case _:
            raise KeyholeError("KH900", f"an expression of a row with {term.function}")


def _divide_by(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a quotient of two columns, rounded; NULL where the divisor is 0."""
    a, b = _operands(row, term.arguments, limit=2 * sum(one.limit for one in term.arguments))
    over, under = f"abs({a})", f"NULLIF(abs({b}), 0)"
    down = row.dialect.whole_quotient(over, under)
    up = f"{down} + CASE WHEN {over} % {under} > 0 THEN 1 ELSE 0 END"
    half = row.dialect.whole_quotient(f"(2 * {over} + {under})", f"(2 * {under})")
    above, below = {"floor of": (down, up), "ceil of": (up, down), "trunc of": (down, down)}.get(
        term.function, (half, half)
    )
    return f"CASE WHEN ({a} < 0) = ({b} < 0) THEN {above} ELSE -({below}) END"


def _divide_steps(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a whole number in coarser steps; the dividend is never negative."""
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


def _round_double(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of a double in steps of 10^-scale.

    It is rounded up if its first fifteen digits reach a half, or a whole step.
    """
    spelled, cast = row.dialect.spelling.double, row.dialect.spelling.cast
    x = f"({_sql(row, term.arguments[0])})"
    steps = f"(abs({x}) * {spelled(float(10**term.scale))})"
    small = f"(CASE WHEN {steps} < {spelled(float(DOUBLE_DIGITS))} THEN {steps} END)"
    below = cast(f"floor({small})", "bigint")
    hidden = " ".join(f"WHEN {steps} < {spelled(10.0**i)} THEN {spelled(float(f'5e{i - 16}'))}" for i in range(16))
    least = spelled(0.5 if term.function == "round double" else 1.0)
    up = f"{small} - {cast(below, row.dialect.spelling.double_type)} >= {least} - CASE {hidden} END"
    return f"((CASE WHEN {x} < {spelled(0.0)} THEN -1 ELSE 1 END) * ({below} + CASE WHEN {up} THEN 1 ELSE 0 END))"


def _nearest(row: StoredRow, term: RowTerm) -> str:
    """Return the SQL of the integer nearest to a double, of two the even one."""
    spelled, x = row.dialect.spelling.double, f"({_sql(row, term.arguments[0])})"
    small = f"(CASE WHEN abs({x}) < {spelled(4e15)} THEN {x} END)"  # beyond 2^52 every double is whole
    below = f"floor({small})"
    even = f"2 * floor(({below} + 1) / {spelled(2.0)})"
    whole = f"CASE WHEN abs({x}) BETWEEN {spelled(4e15)} AND {spelled(float(term.limit))} THEN {x} END"
    near = f"CASE WHEN {small} - {below} = {spelled(0.5)} THEN {even} ELSE floor({small} + {spelled(0.5)}) END"
    return f"COALESCE({near}, {whole})"


def _double(row: StoredRow, term: RowTerm) -> str:
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
            divisor = _unsign_zero(row, term.arguments[1])
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
            left, right = (_unsign_zero(row, one) for one in term.arguments)
            return f"NULLIF({left}, {right})"
        case "coalesce" | "greatest" | "least":
            return f"{term.function.upper()}({', '.join(operands)})"
        case _:
            raise KeyholeError("KH900", f"an expression of a row with {term.function}")


def _text(row: StoredRow, term: RowTerm) -> str:
    operands = [str(one.value) if one.kind is TermKind.WHOLE else f"({_sql(row, one)})" for one in term.arguments]
    match term.function:
        case "lower" | "upper":
            return row.dialect.ascii_case(term.function, operands[0])
        case "trim" | "ltrim" | "rtrim":
            which = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[term.function]
            return f"trim({which} ' ' FROM {operands[0]})"
        case "||":
            return f"({operands[0]} || {operands[1]})"
        case "coalesce" | "nullif" | "left" | "right" | "substring" | "replace" | "split_part" | "length":
            return f"{term.function}({', '.join(operands)})"
        case _:
            raise KeyholeError("KH900", f"an expression of a text with {term.function}")
