"""The ranges that a condition on rows says of parts of an expression: `b - a` where `b - a BETWEEN ... AND ...`.

They decide how much a row may add, and nothing else, so that no guarantee rests on them: a row's value is clipped to
them whether it satisfies the condition or not.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from planner.catalog.model import Computed, ComputedName, Value
from planner.catalog.row_terms import RowTerm, TermKind
from planner.groups.ranges import number_range, time_range
from planner.predicates.computed.numbers import EXACT
from planner.predicates.computed.ranges import Ends, Known, know_nothing
from planner.predicates.computed.times import DAY
from planner.question.condition import Compare, Condition
from planner.scope.names import Scope

_EPOCH = datetime(1970, 1, 1)
_STEP = {TermKind.DAY: timedelta(days=1), TermKind.MOMENT: timedelta(microseconds=1)}
_BESIDE = "+", "negate"


def known_ranges(among: Condition, scope: Scope) -> Known:
    """Return what is known of terms in rows that satisfy a condition."""
    said = among.conjuncts()
    if not said:
        return know_nothing

    def known(term: RowTerm) -> Ends:
        if term.function == "column":
            return _of_column(term, scope, said)
        compared = [*_list_compared(term, said), *_list_order(term, said)]
        lows = [value for operator, value in compared if operator in (">", ">=", "=")]
        highs = [value for operator, value in compared if operator in ("<", "<=", "=")]
        return max(lows, default=None), min(highs, default=None)

    return known


def _of_column(term: RowTerm, scope: Scope, said: tuple[Condition, ...]) -> Ends:
    column = scope.table.column(str(term.value))
    if term.kind in EXACT:
        low, high = number_range(column, said)
        scale = 10**term.scale
        return None if low is None else low * scale, None if high is None else high * scale
    times = time_range(column, scope, said) if term.kind in _STEP else None
    if times is None:
        return None, None
    step = _STEP[term.kind]
    return Fraction((times.first - _EPOCH) // step), Fraction(-((_EPOCH - times.past) // step))


def _list_compared(term: RowTerm, said: tuple[Condition, ...]) -> Iterator[tuple[str, Fraction]]:
    """Return the range that the conditions give this term, in its steps."""
    for one in said:
        if isinstance(one, Compare) and _term_of(one.column) == term:
            value = _number(one.value)
            if value is not None:
                yield one.operator, value


def _list_order(term: RowTerm, said: tuple[Condition, ...]) -> Iterator[tuple[str, Fraction]]:
    """That a difference of columns is not negative, or not positive, where they are compared with each other."""
    plus, minus = _BESIDE
    if term.function != plus or term.arguments[1].function != minus:
        return
    left, right = _base(term.arguments[0]), _base(term.arguments[1].arguments[0])
    if left is None or right is None:
        return
    for one in said:
        truth = _term_of(one.column) if isinstance(one, Compare) else None
        if truth is None or truth.function != "<" or not isinstance(one, Compare) or one.operator != "=":
            continue
        sides = tuple(_base(side) for side in truth.arguments)
        if sides == (left, right):
            yield "<=" if one.value else ">=", Fraction(0)
        elif sides == (right, left):
            yield ">=" if one.value else "<=", Fraction(0)


def _term_of(name: str) -> RowTerm | None:
    derivation = name.column.derivation if isinstance(name, ComputedName) else None
    return derivation.term if isinstance(derivation, Computed) else None


def _base(term: RowTerm) -> str | None:
    """The column that a term is; a date's midnight is that date."""
    if term.function == "*" and term.arguments[0].kind is TermKind.DAY and term.arguments[1].value == DAY:
        term = term.arguments[0]
    return str(term.value) if term.function in ("column", "stored") else None


def _number(value: Value) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return Fraction(value)
