"""Row conditions: the WHERE of a question and the FILTER of its aggregates, as total, linear-time, typed predicates.

Three-valued as in SQL: a comparison with NULL is unknown. Nothing here can raise on data: no arithmetic, no cast,
no regular expression, no function of the row but the policy's own derived columns.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from typing import TypeAlias, TypeVar

from planner.catalog.model import Value
from planner.values.like import like
from planner.values.operators import COMPARISONS

_Folded = TypeVar("_Folded")


class _ConditionTree:
    """What one does with every condition: its shape is known here alone."""

    __slots__ = ()

    def mapped(self, change: Callable[["Leaf"], "Condition"]) -> "Condition":
        """The condition with every test in it changed."""
        match self:
            case Not(inner):
                return Not(inner.mapped(change))
            case And(parts):
                return And(tuple(part.mapped(change) for part in parts))
            case Or(parts):
                return Or(tuple(part.mapped(change) for part in parts))
            case _:
                assert isinstance(self, Leaf)
                return change(self)

    def leaves(self) -> Iterator["Leaf"]:
        """Every test, in order of appearance, with repetitions."""
        match self:
            case Not(inner):
                yield from inner.leaves()
            case And(parts) | Or(parts):
                for part in parts:
                    yield from part.leaves()
            case _:
                assert isinstance(self, Leaf)
                yield self

    def conjuncts(self) -> tuple["Condition", ...]:
        """The parts of a conjunction; of anything else it alone."""
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
        """The value of the whole, from the tests upward."""
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
        """The value of what it takes for the condition to be `wanted`, from tests and negated tests upward.

        That is the negation normal form of the condition, or of its NOT where `wanted` is false.
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
    """`column operator value`, with operator one of = <> < <= > >= and a constant of the column's own type."""

    column: str
    operator: str
    value: Value


@dataclass(frozen=True, slots=True)
class Within(_ConditionTree):
    """`column IN (values)`; the values are sorted, distinct and not NULL."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Like(_ConditionTree):
    """`column LIKE pattern` with backslash as escape; the pattern never ends in an unfinished escape."""

    column: str
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull(_ConditionTree):
    """`column IS NULL`, never unknown."""

    column: str


@dataclass(frozen=True, slots=True)
class Not(_ConditionTree):
    """Three-valued negation."""

    condition: "Condition"


@dataclass(frozen=True, slots=True)
class And(_ConditionTree):
    """Three-valued conjunction; with no conditions it is true."""

    conditions: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Or(_ConditionTree):
    """Three-valued disjunction; with no conditions it is false."""

    conditions: tuple["Condition", ...]


Leaf: TypeAlias = Compare | Within | Like | IsNull
Condition: TypeAlias = Leaf | Not | And | Or

MOST_SPELLED = 500  # values of a list in full; longer ones are a digest, so that what is stored stays short

ALWAYS = And(())
NEVER = Or(())


def all_of(conditions: Iterable[Condition]) -> Condition:
    """The conjunction, flattened, without repetitions and constants."""
    kept: dict[Condition, None] = {}
    for condition in conditions:
        if condition == NEVER:
            return NEVER
        for part in condition.conjuncts():
            kept[part] = None
    return next(iter(kept)) if len(kept) == 1 else And(tuple(kept))


def any_of(conditions: Iterable[Condition]) -> Condition:
    """The disjunction, flattened, without repetitions and constants."""
    kept: dict[Condition, None] = {}
    for condition in conditions:
        if condition == ALWAYS:
            return ALWAYS
        for part in condition.conditions if isinstance(condition, Or) else (condition,):
            kept[part] = None
    return next(iter(kept)) if len(kept) == 1 else Or(tuple(kept))


def fixed_columns(condition: Condition) -> frozenset[str]:
    """The columns that have one and the same value in all rows that satisfy the condition."""
    match condition:
        case Compare(column=column, operator="="):
            return frozenset((column,))
        case Within(column=column, values=(_,)):
            return frozenset((column,))
        case And(conditions):
            return frozenset().union(*(fixed_columns(part) for part in conditions))
        case _:
            return frozenset()


def columns(condition: Condition) -> frozenset[str]:
    """The names of the columns that the condition reads."""
    return frozenset(leaf.column for leaf in condition.leaves())


def parts_of(condition: Condition) -> int:
    """How many comparisons, and words between them, the condition consists of."""

    def joined(parts: Sequence[int]) -> int:
        return 1 + sum(parts)

    return condition.fold(lambda _: 1, negation=lambda inner: 1 + inner, every=joined, some=joined)


def _constant(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal():
            return _plain(value)
        case datetime():
            return f"timestamp '{value.isoformat(sep=' ')}'"
        case date():
            return f"date '{value.isoformat()}'"
        case _:
            return "'" + value.replace("'", "''") + "'"


def _plain(value: Decimal) -> str:
    """All digits but trailing zeros; `normalize` would round to the context's precision and make two numbers one."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _column(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def canonical(condition: Condition) -> str:
    """A text that is equal for conditions which differ in order, nesting and repetition alone, and only for these.

    Of a list of more than `MOST_SPELLED` values it has their number and the sha256 of their texts.
    """
    return _text(condition, most=MOST_SPELLED)


def spelled(condition: Condition) -> str:
    """The condition as SQL: `canonical` with all values of all lists."""
    return _text(condition, most=None)


def _text(condition: Condition, *, most: int | None) -> str:
    match condition:
        case Compare(column, operator, value):
            return f"{_column(column)} {operator} {_constant(value)}"
        case Within(column, values):
            listed = _listed(values) if most is None or len(values) <= most else _digest(_listed(values), len(values))
            return f"{_column(column)} IN ({listed})"
        case Like(column, pattern):
            return f"{_column(column)} LIKE {_constant(pattern)}"
        case IsNull(column):
            return f"{_column(column)} IS NULL"
        case Not(inner):
            return f"NOT ({_text(inner, most=most)})"
        case And(parts):
            return _joined(" AND ", _flat(parts, And), most=most, empty="true")
        case Or(parts):
            return _joined(" OR ", _flat(parts, Or), most=most, empty="false")


def _listed(values: Iterable[Value]) -> str:
    return ", ".join(sorted(_constant(value) for value in values))


@lru_cache(maxsize=64)
def _digest(listed: str, count: int) -> str:
    """In place of a list: no constant is spelled like it."""
    return f"{count} values, sha256 {sha256(listed.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _flat(parts: tuple[Condition, ...], kind: type[And] | type[Or]) -> Iterable[Condition]:
    for part in parts:
        if isinstance(part, kind):
            yield from _flat(part.conditions, kind)
        else:
            yield part


def _joined(word: str, parts: Iterable[Condition], *, most: int | None, empty: str) -> str:
    texts = sorted({_text(part, most=most) for part in parts})
    if len(texts) < 2:
        return texts[0] if texts else empty
    return "(" + word.join(texts) + ")"


def evaluate(condition: Condition, row: Mapping[str, Value | None]) -> bool | None:
    """The condition's value on one row as SQL defines it; None is unknown."""
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
            return None if found is None else like(str(found), pattern)
        case Not(inner):
            truth = evaluate(inner, row)
            return None if truth is None else not truth
        case And(parts):
            return _first((evaluate(part, row) for part in parts), decisive=False)
        case Or(parts):
            return _first((evaluate(part, row) for part in parts), decisive=True)


def truth_of(condition: Condition, column: str) -> Callable[[Value | None], bool | None]:
    """`evaluate` for many values of the only column that a condition reads: lists are hashed once."""
    match condition:
        case Within(_, values):
            listed = frozenset(values)
            return lambda value: None if value is None else value in listed
        case Not(inner):
            test = truth_of(inner, column)
            return lambda value: None if (truth := test(value)) is None else not truth
        case And(parts) | Or(parts):
            tests = [truth_of(part, column) for part in parts]
            decisive = isinstance(condition, Or)
            return lambda value: _first((test(value) for test in tests), decisive=decisive)
        case _:
            return lambda value: evaluate(condition, {column: value})


def _first(truths: Iterable[bool | None], *, decisive: bool) -> bool | None:
    result: bool | None = not decisive
    for truth in truths:
        if truth is decisive:
            return decisive
        if truth is None:
            result = None
    return result


def as_double(condition: Condition) -> Condition:
    """The condition as a double precision column sees it, where different decimals may be one number."""

    def rounded(leaf: Leaf) -> Condition:
        match leaf:
            case Compare(column, operator, Decimal() as value):
                return Compare(column, operator, Decimal(float(value)))
            case Within(column, values):
                return Within(column, tuple(Decimal(float(v)) if isinstance(v, Decimal) else v for v in values))
            case _:
                return leaf

    return condition.mapped(rounded)
