"""The ranges that a condition on rows gives for parts of an expression: `b - a` if `b - a BETWEEN ... AND ...`.

They decide how much a row may add, and nothing else. No guarantee depends on them, because a row's value is clipped to
them whether it satisfies the condition or not.
"""

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from planner.catalog.catalog import Computed, ComputedName, Table, Value
from planner.catalog.row_terms import Ends, RowTerm, TermKind
from planner.errors import KeyholeError
from planner.groups.ranges import find_number_range, find_time_ends
from planner.parser.lexer import read_tokens
from planner.parser.tree import parse
from planner.predicates.computed.number_arithmetic import NUMBERS
from planner.predicates.computed.ranges import MOST_PARTS, Known
from planner.predicates.computed.read import read_measure
from planner.predicates.computed.times import DAY, extract
from planner.predicates.row_scope import RowScope
from planner.question.condition import Compare, Condition
from planner.scope.name_resolution import Scope
from planner.values.constant import ConstantContext

_EPOCH = datetime(1970, 1, 1)
_STEP = {TermKind.DAY: timedelta(days=1), TermKind.MOMENT: timedelta(microseconds=1)}
_BESIDE = "+", "negate"


def make_range_lookup(among: Condition, scope: Scope) -> Known:
    """Return a function that finds the range of a term, for rows that satisfy the condition `among`.

    It uses the condition, calendars of keys and declared ranges.
    """
    said, declared = among.list_conjuncts(), _read_declared_ranges(scope.table)

    def find_range(term: RowTerm) -> Ends:
        if term.function == "column":
            return _find_column_range(term, scope, said)
        if term.function == "part" and term.reads_stored and term.limit > MOST_PARTS:
            return _find_year_range(term, scope, said)
        compared = [*_list_comparisons(term, said), *_list_order(term, said), *declared.get(term, ())]
        lows = [value for operator, value in compared if operator in (">", ">=", "=")]
        highs = [value for operator, value in compared if operator in ("<", "<=", "=")]
        return max(lows, default=None), min(highs, default=None)

    return find_range


def list_unread_ranges(table: Table) -> tuple[str, ...]:
    """Return the expressions with a declared range that no question can read, since they are no numbers of a row."""
    return tuple(one.expression for one in table.ranges if _read_expression(one.expression, table) is None)


_Declared: TypeAlias = Mapping[RowTerm, tuple[tuple[str, Fraction], tuple[str, Fraction]]]


def _read_declared_ranges(table: Table) -> _Declared:
    """Return the declared ranges of expressions, by term."""
    found: dict[RowTerm, tuple[tuple[str, Fraction], tuple[str, Fraction]]] = {}
    for one in table.ranges:
        term = _read_expression(one.expression, table)
        if term is not None:
            low, high = (Fraction(end) * 10**term.scale for end in one.ends)
            found[term] = (">=", low), ("<=", high)
    return found


@lru_cache(maxsize=256)
def _read_expression(text: str, table: Table) -> RowTerm | None:
    tree = parse(f"SELECT {text}", read_tokens(f"SELECT {text}")).tree
    within = RowScope(Scope(table=table, alias=table.name), ConstantContext(parameters={}, today=date.min, is_utc=True))
    try:
        term = read_measure(tree.expressions[0], within)
    except KeyholeError:
        return None
    if term is not None and term.kind is TermKind.LENGTH:
        term = extract("epoch", term)
    return term if term is not None and term.kind in NUMBERS and term.function != "ratio" else None


def _find_column_range(term: RowTerm, scope: Scope, said: tuple[Condition, ...]) -> Ends:
    column = scope.table.get_column(str(term.value))
    if term.kind in NUMBERS:
        low, high = find_number_range(column, said)
        scale = 10**term.scale
        return None if low is None else low * scale, None if high is None else high * scale
    if term.kind not in _STEP:
        return None, None
    first, past = find_time_ends(column, scope, said)
    step = _STEP[term.kind]
    return (
        None if first is None else Fraction((first - _EPOCH) // step),
        None if past is None else Fraction(-((_EPOCH - past) // step)),
    )


def _find_year_range(term: RowTerm, scope: Scope, said: tuple[Condition, ...]) -> Ends:
    first, past = find_time_ends(scope.table.get_column(str(term.value)), scope, said)
    return (None if first is None else Fraction(first.year)), (
        None if past is None else Fraction((past - _STEP[TermKind.MOMENT]).year)
    )


def _list_comparisons(term: RowTerm, said: tuple[Condition, ...]) -> Iterator[tuple[str, Fraction]]:
    """Yield the operators and numbers with which the conditions compare this term, in its steps."""
    for one in said:
        if isinstance(one, Compare) and _make_term(one.column) == term:
            value = _convert_number(one.value)
            if value is not None:
                yield one.operator, value


def _list_order(term: RowTerm, said: tuple[Condition, ...]) -> Iterator[tuple[str, Fraction]]:
    """Yield that a difference of times or columns is not negative, or not positive, if a comparison of both implies it.

    Days have the order of their moments. Moments have the order of their days if the days differ.
    """
    plus, minus = _BESIDE
    if term.function != plus or term.arguments[1].function != minus:
        return
    beside = tuple(map(_find_base, (term.arguments[0], term.arguments[1].arguments[0])))
    for one in said:
        truth = _make_term(one.column) if isinstance(one, Compare) else None
        if truth is None or truth.function != "<" or not isinstance(one, Compare) or one.operator != "=":
            continue
        sides = tuple(map(_find_base, truth.arguments))
        for known, operators in ((sides, ("<=", ">=")), (sides[::-1], (">=", "<="))):
            if _implies_order(beside, known, strict=bool(one.value)):
                yield operators[0] if one.value else operators[1], Fraction(0)


def _implies_order(order: tuple["_Base", ...], known: tuple["_Base", ...], *, strict: bool) -> bool:
    """Return True if the known order of one pair of values implies the order of another pair, or of the same one."""
    if None in known or [one and one[0] for one in order] != [one and one[0] for one in known]:
        return False
    days, known_days = ([one is not None and one[1] for one in two] for two in (order, known))
    return days == known_days or (all(days) and not any(known_days)) or (all(known_days) and strict)


def _make_term(name: str) -> RowTerm | None:
    derivation = name.column.derivation if isinstance(name, ComputedName) else None
    return derivation.term if isinstance(derivation, Computed) else None


_Base: TypeAlias = tuple[str, bool] | None  # a column, and whether its day is meant


def _find_base(term: RowTerm) -> _Base:
    """Return the column that a term is, or whose day it is. A date's midnight is that date."""
    if term.function == "*" and term.arguments[0].kind is TermKind.DAY and term.arguments[1].value == DAY:
        term = term.arguments[0]
    days = term.kind is TermKind.DAY
    if term.function == "floor" and days and term.arguments[1].value == DAY:
        term = term.arguments[0]
    return (str(term.value), days) if term.function in ("column", "stored") else None


def _convert_number(value: Value) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return Fraction(value)
