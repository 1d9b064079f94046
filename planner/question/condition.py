"""Row conditions: the WHERE of a question and the FILTER of its aggregates, as total, linear-time, typed predicates.

They are three-valued as in SQL: a comparison with NULL is unknown. Nothing here can raise on data. There is no
arithmetic, no cast, no regular expression, and no function of the row except the policy's own derived columns.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TypeAlias, TypeVar

from planner.catalog.catalog import Value
from planner.values.like import find_matcher, matches_pattern
from planner.values.operators import COMPARISONS, FLIPPED_OPERATORS

_Folded = TypeVar("_Folded")


class _ConditionTree:
    """The operations on every condition. Only they know a condition's shape."""

    __slots__ = ()

    def map_leaves(self, change: Callable[["Leaf"], "Condition"]) -> "Condition":
        """Return the condition with `change` applied to every test in it."""
        match self:
            case Not(inner):
                return Not(inner.map_leaves(change))
            case And(parts):
                return And(tuple(part.map_leaves(change) for part in parts))
            case Or(parts):
                return Or(tuple(part.map_leaves(change) for part in parts))
            case _:
                assert isinstance(self, Leaf)
                return change(self)

    def walk_leaves(self) -> Iterator["Leaf"]:
        """Yield every test, in order of appearance, with repetitions."""
        match self:
            case Not(inner):
                yield from inner.walk_leaves()
            case And(parts) | Or(parts):
                for part in parts:
                    yield from part.walk_leaves()
            case _:
                assert isinstance(self, Leaf)
                yield self

    def list_conjuncts(self) -> tuple["Condition", ...]:
        """Return the parts of a conjunction, or the condition itself alone."""
        if isinstance(self, And):
            return self.conditions
        assert isinstance(self, Leaf | Not | Or)
        return (self,)

    def fold(
        self,
        leaf: Callable[["Leaf"], _Folded],
        *,
        negation: Callable[[_Folded], _Folded],
        every: Callable[[Sequence[_Folded]], _Folded],
        some: Callable[[Sequence[_Folded]], _Folded],
    ) -> _Folded:
        """Fold the condition from the tests upward, and return the value of the whole."""
        match self:
            case Not(inner):
                return negation(inner.fold(leaf, negation=negation, every=every, some=some))
            case And(parts):
                return every([part.fold(leaf, negation=negation, every=every, some=some) for part in parts])
            case Or(parts):
                return some([part.fold(leaf, negation=negation, every=every, some=some) for part in parts])
            case _:
                assert isinstance(self, Leaf)
                return leaf(self)

    def fold_literals(
        self,
        literal: Callable[["Leaf | Not"], _Folded],
        *,
        every: Callable[[Sequence[_Folded]], _Folded],
        some: Callable[[Sequence[_Folded]], _Folded],
        wanted: bool,
    ) -> _Folded:
        """Fold the condition for being `wanted`, from tests and negated tests upward.

        That is the negation normal form of the condition, or of its NOT if `wanted` is False.
        """
        match self:
            case Not(inner):
                return inner.fold_literals(literal, every=every, some=some, wanted=not wanted)
            case And(parts) | Or(parts):
                found = [part.fold_literals(literal, every=every, some=some, wanted=wanted) for part in parts]
                return every(found) if isinstance(self, And) is wanted else some(found)
            case _:
                assert isinstance(self, Leaf)
                return literal(self if wanted else Not(self))


@dataclass(frozen=True, slots=True)
class Compare(_ConditionTree):
    """The comparison `column operator value`, with one of = <> < <= > >= and a constant of the column's own type."""

    column: str
    operator: str
    value: Value


@dataclass(frozen=True, slots=True)
class Within(_ConditionTree):
    """The test `column IN (values)`. The values are sorted, distinct and not NULL."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Like(_ConditionTree):
    """The test `column LIKE pattern`, with backslash as escape. The pattern never ends in an unfinished escape."""

    column: str
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull(_ConditionTree):
    """The test `column IS NULL`. It is never unknown."""

    column: str


@dataclass(frozen=True, slots=True)
class Not(_ConditionTree):
    """The three-valued negation of a condition."""

    condition: "Condition"


@dataclass(frozen=True, slots=True)
class And(_ConditionTree):
    """The three-valued conjunction of conditions. Without conditions it is true."""

    conditions: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Or(_ConditionTree):
    """The three-valued disjunction of conditions. Without conditions it is false."""

    conditions: tuple["Condition", ...]


Leaf: TypeAlias = Compare | Within | Like | IsNull
Condition: TypeAlias = Leaf | Not | And | Or


ALWAYS = And(())
NEVER = Or(())


def join_all(conditions: Iterable[Condition]) -> Condition:
    """Return the conjunction, flattened, without repetitions and constants."""
    kept: dict[Condition, None] = {}
    for condition in conditions:
        if condition == NEVER:
            return NEVER
        for part in condition.list_conjuncts():
            kept[part] = None
    return next(iter(kept)) if len(kept) == 1 else And(tuple(kept))


def join_any(conditions: Iterable[Condition]) -> Condition:
    """Return the disjunction, flattened, without repetitions and constants; `x IS NULL OR x IS NOT NULL` is true."""
    kept: dict[Condition, None] = {}
    for condition in conditions:
        if condition == ALWAYS:
            return ALWAYS
        for part in condition.conditions if isinstance(condition, Or) else (condition,):
            kept[part] = None
    if any(isinstance(part, IsNull) and Not(part) in kept for part in kept):
        return ALWAYS
    return next(iter(kept)) if len(kept) == 1 else Or(tuple(kept))


def find_fixed_columns(condition: Condition) -> frozenset[str]:
    """Return the columns that have the same value in all rows that satisfy the condition."""
    match condition:
        case Compare(column=column, operator="="):
            return frozenset((column,))
        case Within(column=column, values=(_,)):
            return frozenset((column,))
        case And(conditions):
            return frozenset().union(*(find_fixed_columns(part) for part in conditions))
        case _:
            return frozenset()


def find_columns(condition: Condition) -> frozenset[str]:
    """Return the names of the columns that the condition reads."""
    return frozenset(leaf.column for leaf in condition.walk_leaves())


def count_parts(condition: Condition) -> int:
    """Return the number of comparisons and connectives in the condition."""

    def join(parts: Sequence[int]) -> int:
        return 1 + sum(parts)

    return condition.fold(lambda _: 1, negation=lambda inner: 1 + inner, every=join, some=join)


def evaluate(condition: Condition, row: Mapping[str, Value | None]) -> bool | None:
    """Return the truth of the condition on one row, as SQL defines it. None means unknown."""
    match condition:
        case IsNull(column):
            return row[column] is None
        case Compare(column, operator, value):
            found = row[column]
            return None if found is None else COMPARISONS[operator](found, value)
        case Within(column, values):
            found = row[column]
            return None if found is None else found in values
        case Like(column, pattern):
            found = row[column]
            return None if found is None else matches_pattern(str(found), pattern)
        case Not(inner):
            truth = evaluate(inner, row)
            return None if truth is None else not truth
        case And(parts):
            return _join_truths((evaluate(part, row) for part in parts), decisive=False)
        case Or(parts):
            return _join_truths((evaluate(part, row) for part in parts), decisive=True)


def make_test(condition: Condition, column: str) -> Callable[[Value | None], bool | None]:
    """Return `evaluate` as a function of the only column that a condition reads. Lists are hashed once."""
    match condition:
        case Within(_, values):
            listed = frozenset(values)
            return lambda value: None if value is None else value in listed
        case Not(inner):
            test = make_test(inner, column)
            return lambda value: None if (truth := test(value)) is None else not truth
        case And(parts) | Or(parts):
            tests = [make_test(part, column) for part in parts]
            decisive = isinstance(condition, Or)
            return lambda value: _join_truths((test(value) for test in tests), decisive=decisive)
        case Like(_, pattern):
            matches = find_matcher(pattern)
            return lambda value: None if value is None else matches(str(value))
        case Compare(_, operator, bound):
            holds = COMPARISONS[operator]
            return lambda value: None if value is None else holds(value, bound)
        case IsNull():
            return lambda value: value is None


def find_true_values(condition: Condition, column: str, values: Sequence[Value | None]) -> list[bool]:
    """Return, for each value of the only column that a condition reads, True if the condition is true.

    This is `make_test` for all values at once.
    """
    match condition:
        case And(parts) if parts:
            found = [find_true_values(part, column, values) for part in parts]
            return list(map(all, zip(*found, strict=True)))
        case Or(parts) if parts:
            found = [find_true_values(part, column, values) for part in parts]
            return list(map(any, zip(*found, strict=True)))
        case Within(_, listed):
            among = frozenset(listed)
            return [value is not None and value in among for value in values]
        case Like(_, pattern):
            matches = find_matcher(pattern)
            return [value is not None and matches(str(value)) for value in values]
        case Compare(_, operator, bound) if None not in values:
            return list(map(partial(COMPARISONS[FLIPPED_OPERATORS[operator]], bound), values))
        case _:
            test = make_test(condition, column)
            return [test(value) is True for value in values]


def _join_truths(truths: Iterable[bool | None], *, decisive: bool) -> bool | None:
    result: bool | None = not decisive
    for truth in truths:
        if truth is decisive:
            return decisive
        if truth is None:
            result = None
    return result


def round_to_double(condition: Condition) -> Condition:
    """Return the condition as a double precision column sees it, for which different decimals may be one number."""

    def round_leaf(leaf: Leaf) -> Condition:
        match leaf:
            case Compare(column, operator, Decimal() as value):
                return Compare(column, operator, Decimal(float(value)))
            case Within(column, values):
                return Within(column, tuple(Decimal(float(v)) if isinstance(v, Decimal) else v for v in values))
            case _:
                return leaf

    return condition.map_leaves(round_leaf)
