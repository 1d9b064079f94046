"""The ranges that a condition on rows says of parts of an expression: `b - a` where `b - a BETWEEN ... AND ...`.

They decide how much a row may add, and nothing else, so that no guarantee rests on them: a row's value is clipped to
them whether it satisfies the condition or not.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from planner.catalog.model import Computed, ComputedName, Value
from planner.catalog.row_terms import Ends, RowTerm, TermKind
from planner.groups.ranges import number_range, time_ends
from planner.predicates.computed.numbers import NUMBERS
from planner.predicates.computed.ranges import MOST_PARTS, Known
from planner.predicates.computed.times import DAY
from planner.question.condition import Compare, Condition
from planner.scope.names import Scope

_EPOCH = datetime(1970, 1, 1)
_STEP = {TermKind.DAY: timedelta(days=1), TermKind.MOMENT: timedelta(microseconds=1)}
_BESIDE = "+", "negate"


def known_ranges(among: Condition, scope: Scope) -> Known:
    """Return what is known of terms in rows that satisfy a condition, and from the calendars of keys."""
    said = among.conjuncts()

    def known(term: RowTerm) -> Ends:
        if term.function == "column":
            return _of_column(term, scope, said)
        if term.function == "part" and term.limit > MOST_PARTS:
            return _years_of(term, scope, said)
        compared = [*_list_compared(term, said), *_list_order(term, said)]
        lows = [value for operator, value in compared if operator in (">", ">=", "=")]
        highs = [value for operator, value in compared if operator in ("<", "<=", "=")]
        return max(lows, default=None), min(highs, default=None)

    return known


def _of_column(term: RowTerm, scope: Scope, said: tuple[Condition, ...]) -> Ends:
    column = scope.table.column(str(term.value))
    if term.kind in NUMBERS:
        low, high = number_range(column, said)
        scale = 10**term.scale
        return None if low is None else low * scale, None if high is None else high * scale
    if term.kind not in _STEP:
        return None, None
    first, past = time_ends(column, scope, said)
    step = _STEP[term.kind]
    return (
        None if first is None else Fraction((first - _EPOCH) // step),
        None if past is None else Fraction(-((_EPOCH - past) // step)),
    )


def _years_of(term: RowTerm, scope: Scope, said: tuple[Condition, ...]) -> Ends:
    first, past = time_ends(scope.table.column(str(term.value)), scope, said)
    return (None if first is None else Fraction(first.year)), (
        None if past is None else Fraction((past - _STEP[TermKind.MOMENT]).year)
    )


def _list_compared(term: RowTerm, said: tuple[Condition, ...]) -> Iterator[tuple[str, Fraction]]:
    """Return the range that the conditions give this term, in its steps."""
    for one in said:
        if isinstance(one, Compare) and _term_of(one.column) == term:
            value = _number(one.value)
            if value is not None:
                yield one.operator, value


def _list_order(term: RowTerm, said: tuple[Condition, ...]) -> Iterator[tuple[str, Fraction]]:
    """That a difference of times or columns is not negative, or not positive, where they are compared with each other.

    Days are in the order of their moments. Moments are in that of their days where one day is before the other.
    """
    plus, minus = _BESIDE
    if term.function != plus or term.arguments[1].function != minus:
        return
    beside = tuple(map(_base, (term.arguments[0], term.arguments[1].arguments[0])))
    for one in said:
        truth = _term_of(one.column) if isinstance(one, Compare) else None
        if truth is None or truth.function != "<" or not isinstance(one, Compare) or one.operator != "=":
            continue
        sides = tuple(map(_base, truth.arguments))
        for known, operators in ((sides, ("<=", ">=")), (sides[::-1], (">=", "<="))):
            if _follows(beside, known, strict=bool(one.value)):
                yield operators[0] if one.value else operators[1], Fraction(0)


def _follows(order: tuple["_Base", ...], known: tuple["_Base", ...], *, strict: bool) -> bool:
    """Whether the order of two values follows from that of two others, or of the same."""
    if None in known or [one and one[0] for one in order] != [one and one[0] for one in known]:
        return False
    days, known_days = ([one is not None and one[1] for one in two] for two in (order, known))
    return days == known_days or (all(days) and not any(known_days)) or (all(known_days) and strict)


def _term_of(name: str) -> RowTerm | None:
    derivation = name.column.derivation if isinstance(name, ComputedName) else None
    return derivation.term if isinstance(derivation, Computed) else None


_Base: TypeAlias = tuple[str, bool] | None  # a column, and whether its day is meant


def _base(term: RowTerm) -> _Base:
    """The column that a term is, or the day of; a date's midnight is that date."""
    if term.function == "*" and term.arguments[0].kind is TermKind.DAY and term.arguments[1].value == DAY:
        term = term.arguments[0]
    days = term.kind is TermKind.DAY
    if term.function == "floor" and days and term.arguments[1].value == DAY:
        term = term.arguments[0]
    return (str(term.value), days) if term.function in ("column", "stored") else None


def _number(value: Value) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return Fraction(value)
