"""A test of whether two conditions can hold on one row: a search through the terms of their disjunctive form."""

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
    as_double,
    evaluate,
    truth_of,
)
from planner.values.like import find_prefix
from planner.values.operators import OPPOSITE_OPERATORS

_MOST_TERMS = 256  # the form may be exponentially long; giving up is sound and costs epsilon alone
_Term = tuple[Condition, ...]


class _TooManyTerms(Exception):
    """The disjunctive form is too long to look through."""


def disjoint(first: Condition, second: Condition) -> bool:
    """Return True if no row satisfies both.

    Guarantee: True only if for every row at most one of the two is true. False means nothing: the search looks at
    each column of each term of the disjunctive form alone, and gives up beyond 256 terms.
    """
    return Rows.of(first).lack(second)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that satisfy a condition, to be asked several times whether they are disjoint from others."""

    terms: tuple[_Term, ...] | None

    @staticmethod
    def of(condition: Condition) -> "Rows":
        """Return the rows of a condition."""
        try:
            return Rows(tuple(_terms(condition, wanted=True)))
        except _TooManyTerms:
            return Rows(None)

    @property
    def are_none(self) -> bool:
        """Return True if no row satisfies the condition. False means nothing, as of `disjoint`."""
        return self.terms is not None and not _is_any_possible(self.terms)

    def lack(self, condition: Condition) -> bool:
        """Return True if none of them satisfies a further condition: `disjoint`."""
        if self.terms is None:
            return False
        try:
            found = _products((self.terms, _terms(condition, wanted=True)))
        except _TooManyTerms:
            return False
        return not _is_any_possible(found)


def _terms(condition: Condition, *, wanted: bool) -> Sequence[_Term]:
    """Return the terms, one of which holds wherever the condition is true, or, if not `wanted`, false.

    As by `fold_literals`, in a fraction of the time: every comparison of every question asks.
    """
    while isinstance(condition, Not):
        condition, wanted = condition.condition, not wanted
    if isinstance(condition, And | Or):
        below = [_terms(part, wanted=wanted) for part in condition.conditions]
        if isinstance(condition, And) is wanted:
            return _products(below)
        return _bound_terms(term for terms in below for term in terms)
    if wanted:
        return ((condition,),)
    if isinstance(condition, Compare):
        return ((Compare(condition.column, OPPOSITE_OPERATORS[condition.operator], condition.value),),)
    return ((Not(condition),),)


def _products(below: Sequence[Sequence[_Term]]) -> Sequence[_Term]:
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

    Most of them say the same of most columns, in the same objects, by which findings about a column are cached.
    """
    known: dict[tuple[int, ...], bool] = {}
    return any(_possible(term, known) for term in terms)


def _possible(term: _Term, known: dict[tuple[int, ...], bool]) -> bool:
    by_column: dict[str, list[Condition]] = {}
    for literal in term:
        inner = literal.condition if isinstance(literal, Not) else literal
        assert isinstance(inner, Compare | Within | Like | IsNull)
        by_column.setdefault(inner.column, []).append(literal)
    for column, literals in by_column.items():
        place = tuple(map(id, literals))
        found = known.get(place)
        if found is None:
            found = known[place] = _column_possible(column, literals) or _column_possible(
                column, [as_double(literal) for literal in literals]
            )
        if not found:
            return False
    return True


def _column_possible(column: str, literals: list[Condition]) -> bool:
    if any(isinstance(literal, IsNull) for literal in literals):
        return all(evaluate(literal, {column: None}) is True for literal in literals)
    candidates = _candidates(literals)
    if candidates is not None:
        tests = [truth_of(literal, column) for literal in literals]
        return any(all(test(value) is True for test in tests) for value in candidates)
    return _interval_possible(literals) and _prefixes_possible(literals)


def _candidates(literals: list[Condition]) -> tuple[Value, ...] | None:
    for literal in literals:
        match literal:
            case Compare(_, "=", value):
                return (value,)
            case Within(_, values):
                return values
            case Compare(_, _, bool()):
                return (False, True)
    return None


def _interval_possible(literals: list[Condition]) -> bool:
    low: Any = None
    high: Any = None
    for literal in literals:
        match literal:
            case Compare(_, ">" | ">=" as operator, value):
                least = _least(value, strict=operator == ">")
                low = least if low is None else max(low, least)
            case Compare(_, "<" | "<=" as operator, value):
                most = _most(value, strict=operator == "<")
                high = most if high is None else min(high, most)
    if low is None or high is None:
        return True
    return bool(low[0] < high[0] or (low[0] == high[0] and low[1] == 0 and high[1] == 0))


def _least(value: Value, *, strict: bool) -> tuple[Any, int]:
    """Return a lower end: the least value, and 1 if that value itself is left out."""
    if strict and isinstance(value, int) and not isinstance(value, bool):
        return value + 1, 0
    if strict and isinstance(value, date) and not isinstance(value, datetime) and value < date.max:
        return value + timedelta(days=1), 0
    return value, 1 if strict else 0


def _most(value: Value, *, strict: bool) -> tuple[Any, int]:
    """Return an upper end: the greatest value, and -1 if that value itself is left out."""
    if strict and isinstance(value, int) and not isinstance(value, bool):
        return value - 1, 0
    if strict and isinstance(value, date) and not isinstance(value, datetime) and value > date.min:
        return value - timedelta(days=1), 0
    return value, -1 if strict else 0


def _prefixes_possible(literals: list[Condition]) -> bool:
    prefixes = sorted(find_prefix(literal.pattern) for literal in literals if isinstance(literal, Like))
    return all(later.startswith(earlier) for earlier, later in pairwise(prefixes))
