"""A test if two conditions can hold on one row: a search through the terms of their disjunctive form."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise, product
from typing import Any

from planner.catalog.catalog import Value
from planner.question.condition import (
    And,
    Compare,
    Condition,
    IsNull,
    Like,
    Not,
    Or,
    Within,
    evaluate,
    make_test,
    round_to_double,
)
from planner.values.like import find_prefix
from planner.values.operators import OPPOSITE_OPERATORS

_MOST_TERMS = 256  # the form may be exponentially long; giving up is sound and costs epsilon alone
_Term = tuple[Condition, ...]


class _TooManyTerms(Exception):
    """The disjunctive form is too long to search."""


def are_disjoint(first: Condition, second: Condition) -> bool:
    """Return True if no row satisfies both.

    Guarantee: True only if for every row at most one of the two is true. False proves nothing: the search examines
    each column of each term of the disjunctive form alone, and gives up beyond 256 terms.
    """
    return ConditionRows.from_condition(first).are_disjoint_from(second)


@dataclass(frozen=True, slots=True)
class ConditionRows:
    """The rows that satisfy a condition, prepared for several tests if they are disjoint from others."""

    terms: tuple[_Term, ...] | None

    @staticmethod
    def from_condition(condition: Condition) -> "ConditionRows":
        """Return the rows of a condition."""
        try:
            return ConditionRows(tuple(_list_terms(condition, wanted=True)))
        except _TooManyTerms:
            return ConditionRows(None)

    @property
    def are_none(self) -> bool:
        """True if no row satisfies the condition. False proves nothing, as in `are_disjoint`."""
        return self.terms is not None and not _is_any_possible(self.terms)

    def are_disjoint_from(self, condition: Condition) -> bool:
        """Return True if none of the rows satisfies `condition`. The search is that of `are_disjoint`."""
        if self.terms is None:
            return False
        try:
            found = _multiply_terms((self.terms, _list_terms(condition, wanted=True)))
        except _TooManyTerms:
            return False
        return not _is_any_possible(found)


def _list_terms(condition: Condition, *, wanted: bool) -> Sequence[_Term]:
    """Return terms, one of which holds wherever the condition is true, or false if not `wanted`.

    `fold_literals` would do the same many times slower, and every comparison of every question needs it.
    """
    while isinstance(condition, Not):
        condition, wanted = condition.condition, not wanted
    if isinstance(condition, And | Or):
        below = [_list_terms(part, wanted=wanted) for part in condition.conditions]
        if isinstance(condition, And) is wanted:
            return _multiply_terms(below)
        return _bound_terms(term for terms in below for term in terms)
    if wanted:
        return ((condition,),)
    if isinstance(condition, Compare):
        return ((Compare(condition.column, OPPOSITE_OPERATORS[condition.operator], condition.value),),)
    return ((Not(condition),),)


def _multiply_terms(below: Sequence[Sequence[_Term]]) -> Sequence[_Term]:
    result: Sequence[_Term] = ((),)
    for terms in below:
        if len(result) == 1 and len(terms) == 1:
            result = (result[0] + terms[0],)
            continue
        result = _bound_terms(left + right for left, right in product(result, terms))
    return result


def _bound_terms(terms: Iterable[_Term]) -> list[_Term]:
    result: list[_Term] = []
    for term in terms:
        if len(result) == _MOST_TERMS:
            raise _TooManyTerms
        result.append(term)
    return result


def _is_any_possible(terms: Sequence[_Term]) -> bool:
    """Return True if one of the terms may hold.

    Most terms have the same literals on most columns, as the same objects, by which results for a column are cached.
    """
    known: dict[tuple[int, ...], bool] = {}
    return any(_is_possible(term, known) for term in terms)


def _is_possible(term: _Term, known: dict[tuple[int, ...], bool]) -> bool:
    by_column: dict[str, list[Condition]] = {}
    for literal in term:
        inner = literal.condition if isinstance(literal, Not) else literal
        assert isinstance(inner, Compare | Within | Like | IsNull)
        by_column.setdefault(inner.column, []).append(literal)
    for column, literals in by_column.items():
        place = tuple(map(id, literals))
        found = known.get(place)
        if found is None:
            found = known[place] = _is_column_possible(column, literals) or _is_column_possible(
                column, [round_to_double(literal) for literal in literals]
            )
        if not found:
            return False
    return True


def _is_column_possible(column: str, literals: list[Condition]) -> bool:
    if any(isinstance(literal, IsNull) for literal in literals):
        return all(evaluate(literal, {column: None}) is True for literal in literals)
    candidates = _list_candidates(literals)
    if candidates is not None:
        tests = [make_test(literal, column) for literal in literals]
        return any(all(test(value) is True for test in tests) for value in candidates)
    return _is_interval_possible(literals) and _are_prefixes_possible(literals)


def _list_candidates(literals: list[Condition]) -> tuple[Value, ...] | None:
    for literal in literals:
        match literal:
            case Compare(_, "=", value):
                return (value,)
            case Within(_, values):
                return values
            case Compare(_, _, bool()):
                return (False, True)
    return None


def _is_interval_possible(literals: list[Condition]) -> bool:
    low: Any = None
    high: Any = None
    for literal in literals:
        match literal:
            case Compare(_, ">" | ">=" as operator, value):
                least = _find_lower_end(value, strict=operator == ">")
                low = least if low is None else max(low, least)
            case Compare(_, "<" | "<=" as operator, value):
                most = _find_upper_end(value, strict=operator == "<")
                high = most if high is None else min(high, most)
    if low is None or high is None:
        return True
    return bool(low[0] < high[0] or (low[0] == high[0] and low[1] == 0 and high[1] == 0))


def _find_lower_end(value: Value, *, strict: bool) -> tuple[Any, int]:
    """Return a lower end: the least value, and 1 if that value itself is excluded."""
    if strict and isinstance(value, int) and not isinstance(value, bool):
        return value + 1, 0
    if strict and isinstance(value, date) and not isinstance(value, datetime) and value < date.max:
        return value + timedelta(days=1), 0
    return value, 1 if strict else 0


def _find_upper_end(value: Value, *, strict: bool) -> tuple[Any, int]:
    """Return an upper end: the greatest value, and -1 if that value itself is excluded."""
    if strict and isinstance(value, int) and not isinstance(value, bool):
        return value - 1, 0
    if strict and isinstance(value, date) and not isinstance(value, datetime) and value > date.min:
        return value - timedelta(days=1), 0
    return value, -1 if strict else 0


def _are_prefixes_possible(literals: list[Condition]) -> bool:
    prefixes = sorted(find_prefix(literal.pattern) for literal in literals if isinstance(literal, Like))
    return all(later.startswith(earlier) for earlier, later in pairwise(prefixes))
