"""Comparisons of terms: with constants as computed columns, with one another as computed truths."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from planner.catalog.catalog import Column, Computed, ComputedName, Lookup, SqlType, Table
from planner.catalog.row_terms import RowTerm, TermKind
from planner.parser.tree import strip_parentheses, write_short
from planner.predicates.column_comparison import compare_column, is_real
from planner.predicates.computed import number_arithmetic, ratios, times
from planner.predicates.computed.number_arithmetic import EXACT, NUMBERS, NoTermError
from planner.predicates.computed.ranges import Clip, Known, find_ends, find_step_range, return_unknown_ends
from planner.predicates.computed.read import read_term, read_terms
from planner.predicates.computed.text import spell
from planner.predicates.computed.texts import make_text_constant
from planner.predicates.row_scope import RowScope
from planner.predicates.terms.term import ColumnTerm, make_plain_term
from planner.predicates.where_refusals import refuse_unlisted_expression
from planner.question.condition import Compare
from planner.question.three_valued import UNKNOWN, Truth, make_known_unless_null
from planner.scope.name_resolution import find_column
from planner.values.constant import Constant, Interval, Number, TimeOfDay, Untyped, read_number, refuse_constant
from planner.values.datetimes import move_to_midnight, read_interval, read_moment, read_time_of_day
from planner.values.decimals import convert_to_exact_decimal

_BIGINT = 2**63  # the end of bigint
_MOST_STEPS = 10**6  # of the range of a measure
_EPOCH = datetime(1970, 1, 1)


def make_computed_column(term: RowTerm, within: RowScope) -> Column:
    """Return a computed column with the values of an expression, and bounds that follow from those of its columns.

    Raise `NoTermError` for a term of several joined private tables, or one with the name of a column.
    """
    return _name_column(term, within, spell(term), find_step_range(term, within.scope.table), Computed(term))


def make_measured_column(
    term: RowTerm, within: RowScope, *, known: tuple[Known, Known], clip: Clip | None = None
) -> Column:
    """Return a computed column with the values of a number, and with bounds if any are known.

    Bounds follow from the bounds of its columns, from the `known` ranges, or from a clip. `known` has the ranges in all
    rows and in the rows that count. Bounds that do not hold for every question become part of the column's name, so two
    columns of one name have the same bounds. Raise what `make_computed_column` raises.
    """
    table, called = within.scope.table, spell(term)
    own, everywhere, among = (find_ends(term, table, known=one) for one in (return_unknown_ends, *known))
    ends = next((one for one in (own, everywhere, among) if None not in one), among)
    low, high = ends if clip is None else clip.fit(ends)
    if low is None or high is None:
        return _name_column(
            term,
            within,
            called,
            None,
            Computed(term, ends, unbounded_columns=_list_unbounded_columns(term, table, known[1])),
        )
    grid = _choose_grid((low, high), is_whole=term.kind in EXACT)
    step = Fraction(1) if term.kind in EXACT else Fraction(grid)
    between = floor(low / step) * step, ceil(high / step) * step
    if None in everywhere or term.kind not in EXACT:
        called = f"{called} from {_convert_exactly(between[0]):f} to {_convert_exactly(between[1]):f}"
    clipped = ends[0] != low, ends[1] != high
    return _name_column(
        term, within, called, between, Computed(term, ends, clipped, _list_unbounded_columns(term, table, known[1]))
    )


def _list_unbounded_columns(term: RowTerm, table: Table, known: Known) -> tuple[str, ...]:
    """Return the columns of a term for which an end is not known."""
    if term.reads_stored:
        return (str(term.value),) if None in find_ends(term, table, known=known) else ()
    return tuple(dict.fromkeys(name for one in term.arguments for name in _list_unbounded_columns(one, table, known)))


def _name_column(
    term: RowTerm,
    within: RowScope,
    called: str,
    between: tuple[Fraction, Fraction] | tuple[int, int] | None,
    derivation: Computed,
) -> Column:
    if within.scope.table.members and not (
        _reads_one_table(term, within.scope.table) or _reads_no_text(term, within.scope.table)
    ):
        raise NoTermError
    match term.kind:
        case TermKind.TEXT:
            kind, declared = SqlType.TEXT, "text"
        case TermKind.TRUTH:
            kind, declared = SqlType.BOOLEAN, "boolean"
        case TermKind.FLOATING:
            kind, declared = SqlType.DOUBLE, "double precision"
        case _ if term.limit < _BIGINT:
            kind, declared = SqlType.INTEGER, "bigint"
        case _:
            kind, declared = SqlType.NUMERIC, "numeric(38,0)"
    made = Column(
        called,
        kind,
        declared,
        derivation=derivation,
        bounds=None if between is None else (_convert_exactly(between[0]), _convert_exactly(between[1])),
        grid=None if between is None else _choose_grid(between, is_whole=kind is not SqlType.DOUBLE),
        max_length=term.limit if kind is SqlType.TEXT else None,
        ledger=_name_pinned_term(called, term, within.scope.table),
    )
    if any(column.name == made.name for column in within.scope.table.columns):
        raise NoTermError
    return ComputedName.from_column(made).column


def _reads_one_table(term: RowTerm, table: Table) -> bool:
    """Return True if a term reads only one of several joined private tables, and the columns that it looks up."""
    stored = {name for name in table.include_bases(term.columns) if table.get_column(name).derivation is None}
    return any(stored <= {named for _, named in one.columns} for one in table.members)


def _reads_no_text(term: RowTerm, table: Table) -> bool:
    """Return True for a term of numbers and times.

    A term of several tables is computed for each joined row, at the same cost for all. Long texts that are nearly equal
    would take longer.
    """
    return all(table.get_column(name).sql_type is not SqlType.TEXT for name in term.columns)


def _name_pinned_term(called: str, term: RowTerm, table: Table) -> str:
    """Return the ledger's name for a term of looked-up columns, which differs between pins.

    Return "" for other terms.
    """
    read = (table.get_column(name) for name in sorted(term.columns))
    pinned = [column.label for column in read if isinstance(column.derivation, Lookup)]
    return f"{called} of {', '.join(pinned)}" if pinned else ""


def _choose_grid(between: tuple[Fraction, Fraction] | tuple[int, int], *, is_whole: bool) -> Decimal:
    """Return the grid of a sum. A finer grid would make totals longer without a visible effect under the noise."""
    width = Fraction(between[1] - between[0])
    grid = Fraction(1)
    while width / grid > _MOST_STEPS:
        grid *= 10
    while not is_whole and 0 < 10 * width / grid <= _MOST_STEPS:
        grid /= 10
    return _convert_exactly(grid)


def _convert_exactly(value: Fraction | int) -> Decimal:
    found = convert_to_exact_decimal(Fraction(value))
    assert found is not None, "bounds are whole multiples of a power of ten"
    return found


def read_computed_term(node: exp.Expr, within: RowScope) -> ColumnTerm | None:
    """Return an expression of columns as a term that can be compared with constants. Return None if it is no term."""
    term = read_term(node, within)
    if term is None or term.function == "column":
        return None
    try:
        if term.function == "ratio":
            return _read_ratio_term(term, within)
        column = make_computed_column(term, within)
    except (NoTermError, number_arithmetic.TooWideError):
        return None
    if term.kind in (TermKind.TEXT, TermKind.FLOATING):
        return make_plain_term(column)

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if constant is None:
            return UNKNOWN
        steps = _count_steps(term, constant, at)
        return compare_column(column, operator, Number(steps, is_integral=steps.denominator == 1), at)

    return ColumnTerm(column, compare)


def _count_steps(term: RowTerm, constant: Constant, at: exp.Expr) -> Fraction:
    """Return a constant in the steps of the term with which it is compared."""
    match term.kind, constant:
        case ((TermKind.WHOLE | TermKind.EXACT), (Number() | Untyped())):
            found = read_number(constant.text, at) if isinstance(constant, Untyped) else constant
            assert isinstance(found, Number)
            if term.kind is TermKind.WHOLE and isinstance(constant, Untyped) and not found.is_integral:
                raise refuse_constant(at, f"{write_short(at)} is not an integer")
            return found.value * Fraction(10**term.scale)
        case TermKind.CLOCK, (TimeOfDay() | Untyped()):
            time = read_time_of_day(constant.text, at) if isinstance(constant, Untyped) else constant
            return Fraction(time.microseconds)
        case ((TermKind.LENGTH | TermKind.AGE), (Interval() | Untyped())):
            length = read_interval(constant.text, at) if isinstance(constant, Untyped) else constant
            return Fraction(times.count_microseconds(length))
        case ((TermKind.DAY | TermKind.MOMENT), (Untyped() | date())):
            value = move_to_midnight(constant) if isinstance(constant, date) else read_moment(constant.text, at)
            if isinstance(constant, Untyped) and term.kind is TermKind.DAY:
                value = move_to_midnight(value.date())
            steps = (value - _EPOCH) // timedelta(microseconds=1)
            return Fraction(steps, times.DAY if term.kind is TermKind.DAY else 1)
        case _:
            raise refuse_constant(at, f"{write_short(at)} is not of the type that it is compared with")


def _read_ratio_term(term: RowTerm, within: RowScope) -> ColumnTerm | None:
    """Return a quotient as a term that is compared with a constant by multiplying out."""
    zero = number_arithmetic.make_constant(Fraction(0), is_integral=True)
    present = make_computed_column(_make_less_term(zero, term), within)

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if constant is None:
            return UNKNOWN
        found = read_number(constant.text, at) if isinstance(constant, Untyped) else constant
        if not isinstance(found, Number):
            raise refuse_constant(at, f"{write_short(at)} is not a number")
        try:
            other = number_arithmetic.make_constant(found.value, is_integral=found.is_integral)
            return _make_truth(term, operator, other, within)
        except (NoTermError, number_arithmetic.TooWideError):
            raise refuse_unlisted_expression(
                at, f"{write_short(at)} has too many digits to be compared with a quotient"
            ) from None

    return ColumnTerm(present, compare)


def match_text(node: exp.Expr, pattern: str, within: RowScope) -> Truth | None:
    """Return the `Truth` of `text ~ pattern`: some part of the text matches a regular expression.

    Return None if the node is no text of a row.
    """
    text = read_term(node, within)
    if text is None or text.kind is not TermKind.TEXT:
        return None
    try:
        return _name_truth(RowTerm("matches", TermKind.TRUTH, (text, make_text_constant(pattern))), "=", within)
    except NoTermError:
        return None


def compare_terms(left: exp.Expr, operator: str, right: exp.Expr, within: RowScope) -> Truth | None:
    """Return the `Truth` of a comparison of two expressions of columns. Return None for any other comparison."""
    try:
        return _compare_terms(left, operator, right, within)
    except NoTermError:
        return None


def _compare_terms(left: exp.Expr, operator: str, right: exp.Expr, within: RowScope) -> Truth | None:
    stored = [_find_stored_column(one, within) for one in (left, right)]
    make = _choose_comparison(operator)
    if stored[0] is not None and stored[1] is not None and _are_comparable(stored[0], stored[1]):
        return _name_truth(make(_make_stored_term(stored[0]), _make_stored_term(stored[1])), operator, within)
    if any(one.sql_type is SqlType.BOOLEAN or one.sql_type is SqlType.UUID for one in stored if one is not None):
        return None
    found = read_terms((left, right), within, lambda both: make(both[0], both[1]))
    return None if found is None else _name_truth(found, operator, within)


def _find_stored_column(node: exp.Expr, within: RowScope) -> Column | None:
    node = strip_parentheses(node)
    if not isinstance(node, exp.Column) or within.scope.subquery_columns is not None:
        return None
    column = find_column(node, within.scope)
    return None if column is None or not isinstance(column.derivation, Lookup | None) else column


_KINDS = {
    SqlType.DOUBLE: TermKind.FLOATING,
    SqlType.DATE: TermKind.DAY,
    SqlType.TIMESTAMP: TermKind.MOMENT,
    SqlType.NUMERIC: TermKind.EXACT,
    SqlType.INTEGER: TermKind.WHOLE,
    SqlType.BOOLEAN: TermKind.TRUTH,
    SqlType.UUID: TermKind.TRUTH,
}


def _are_comparable(left: Column, right: Column) -> bool:
    """Return True if every engine compares two columns as they are stored, as PostgreSQL does."""
    if left.sql_type is not right.sql_type or left.sql_type not in _KINDS or is_real(left) is not is_real(right):
        return False
    return left.sql_type is not SqlType.NUMERIC or left.declared == right.declared


def _make_stored_term(column: Column) -> RowTerm:
    return RowTerm("stored", _KINDS[column.sql_type], value=column.name)


def _choose_comparison(operator: str) -> Callable[[RowTerm, RowTerm], RowTerm]:
    """Return the function that makes the truth of an operator, or of its negation."""
    if operator in ("=", "<>"):
        return _make_equal_term
    return _make_less_term if operator in ("<", ">=") else lambda left, right: _make_less_term(right, left)


def _name_truth(term: RowTerm, operator: str, within: RowScope) -> Truth:
    name = make_computed_column(term, within).name
    wanted = operator in ("=", "<", ">")
    return make_known_unless_null(name, true=Compare(name, "=", wanted), false=Compare(name, "=", not wanted))


def _make_truth(left: RowTerm, operator: str, right: RowTerm, within: RowScope) -> Truth:
    return _name_truth(_choose_comparison(operator)(left, right), operator, within)


def _align(left: RowTerm, right: RowTerm) -> tuple[RowTerm, RowTerm]:
    kinds = {left.kind, right.kind}
    if left.function == "stored":
        return left, right
    if kinds <= NUMBERS:
        one, other = number_arithmetic.unify([left, right])
        return one, other
    if kinds == {TermKind.DAY, TermKind.MOMENT}:
        return times.convert_to_moment(left), times.convert_to_moment(right)
    if kinds == {TermKind.AGE, TermKind.LENGTH}:
        return left, right
    if len(kinds) > 1 or TermKind.TRUTH in kinds:
        raise NoTermError
    return left, right


def _make_less_term(left: RowTerm, right: RowTerm) -> RowTerm:
    if TermKind.TEXT in (left.kind, right.kind) or (left.function == "stored" and left.kind is TermKind.TRUTH):
        raise NoTermError
    return _clear_divisor("<", left, right)


def _make_equal_term(left: RowTerm, right: RowTerm) -> RowTerm:
    if spell(right) < spell(left):
        left, right = right, left
    return _clear_divisor("=", left, right)


def _clear_divisor(function: str, left: RowTerm, right: RowTerm) -> RowTerm:
    if "ratio" not in (left.function, right.function):
        return RowTerm(function, TermKind.TRUTH, _align(left, right))
    if not {left.kind, right.kind} <= EXACT:
        raise NoTermError
    (over, under), (other, below) = ratios.split_ratio(left), ratios.split_ratio(right)
    sides = number_arithmetic.unify([number_arithmetic.multiply(over, below), number_arithmetic.multiply(other, under)])
    divisor = number_arithmetic.multiply(under, below)
    if divisor.function == "constant":
        return RowTerm(function, TermKind.TRUTH, tuple(sides))
    return RowTerm(f"{function} by", TermKind.TRUTH, (*sides, divisor))
