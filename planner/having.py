"""HAVING: SQL's boolean formula to comparisons of aggregates with thresholds, in negation normal form.

SQL's NULL makes a comparison and its negation both false, so NOT is pushed down to the comparisons and never applied
to an answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from planner.aggregate import Aggregate, GroupScope, aggregate, contains_aggregate
from planner.condition import ALWAYS
from planner.constant import Constant, NotConstant, Number, Untyped, fold, number
from planner.errors import KeyholeError
from planner.row_condition import OPERATORS, row_truth
from planner.syntax import bare, position, written


@dataclass(frozen=True, slots=True)
class Comparison:
    """`aggregate operator threshold`; `position` is 1-based in the question's text."""

    aggregate: Aggregate
    operator: str
    threshold: Fraction
    position: int | None


@dataclass(frozen=True, slots=True)
class Every:
    """A conjunction; with no children it is true."""

    children: tuple["Having", ...]


@dataclass(frozen=True, slots=True)
class Some:
    """A disjunction; with no children it is false."""

    children: tuple["Having", ...]


Having: TypeAlias = Comparison | Every | Some
HOLDS = Every(())
FAILS = Some(())
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_HINT = "Combine comparisons like count(*) > 100, sum(x) >= 5, avg(x) < 2 with AND, OR and NOT."


def having(node: exp.Expr, within: GroupScope) -> Having:
    """The formula that the expression writes. Raises KH2xx for what is not a formula of threshold atoms."""
    return _formula(node, within, negated=False)


def _formula(node: exp.Expr, within: GroupScope, *, negated: bool) -> Having:
    node = bare(node)
    if node.args.get("negate"):
        negated = not negated
    match node:
        case exp.And() | exp.Or():
            children = [_formula(child, within, negated=negated) for child in node.flatten()]
            return _joined(children, conjunction=isinstance(node, exp.And) is not negated)
        case exp.Not():
            return _formula(node.this, within, negated=not negated)
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return _compared(node, node.this, OPERATORS[type(node)], node.expression, within, negated=negated)
        case exp.Between() if not node.args.get("symmetric"):
            low, high = node.args["low"], node.args["high"]
            sides = (
                _compared(node, node.this, ">=", low, within, negated=negated),
                _compared(node, node.this, "<=", high, within, negated=negated),
            )
            return _joined(sides, conjunction=not negated)
        case exp.In() if node.expressions:
            cases = [_compared(node, node.this, "=", item, within, negated=negated) for item in node.expressions]
            return _joined(cases, conjunction=negated)
        case exp.Is() if isinstance(bare(node.expression), exp.Boolean) and bare(node.expression).this and not negated:
            return _formula(node.this, within, negated=False)
        case _:
            return _constant_formula(node, within, negated=negated)


def _joined(children: Iterable[Having], *, conjunction: bool) -> Having:
    """The children joined, flattened, without constants."""
    kind, other = (Every, Some) if conjunction else (Some, Every)
    kept: dict[Having, None] = {}
    for child in children:
        if child == other(()):
            return child
        for part in child.children if isinstance(child, kind) else (child,):
            kept[part] = None
    return next(iter(kept)) if len(kept) == 1 else kind(tuple(kept))


def _constant_formula(node: exp.Expr, within: GroupScope, *, negated: bool) -> Having:
    try:
        value = fold(node, within.given)
    except NotConstant:
        if node.find(exp.Query):
            raise KeyholeError("KH107", "a subquery inside a question", position=position(node)) from None
        raise KeyholeError(
            "KH207", f"{written(node)[:80]} is not a threshold atom", hint=_HINT, position=position(node)
        ) from None
    if value is None:
        return FAILS
    if not isinstance(value, bool):
        raise KeyholeError("KH207", "HAVING is a boolean formula", hint=_HINT, position=position(node))
    return HOLDS if value is not negated else FAILS


@dataclass(frozen=True, slots=True)
class _Linear:
    """`sum of coefficient * aggregate + constant`; None stands for NULL."""

    terms: tuple[tuple[Aggregate, Fraction], ...]
    constant: Fraction

    def plus(self, other: "_Linear", factor: Fraction) -> "_Linear":
        terms = list(self.terms)
        for found, coefficient in other.terms:
            terms = _added(terms, found, factor * coefficient)
        return _Linear(tuple(terms), self.constant + factor * other.constant)


def _added(
    terms: list[tuple[Aggregate, Fraction]], found: Aggregate, coefficient: Fraction
) -> list[tuple[Aggregate, Fraction]]:
    for index, (known, before) in enumerate(terms):
        if known.meaning == found.meaning:
            return [*terms[:index], (known, before + coefficient), *terms[index + 1 :]]
    return [*terms, (found, coefficient)]


def _number(value: Constant, node: exp.Expr) -> _Linear | None:
    match value:
        case None:
            return None
        case Number(exact, _):
            return _Linear((), exact)
        case Untyped(text):
            return _Linear((), number(text, node).value)
        case _:
            raise KeyholeError(
                "KH208",
                f"{written(node)[:80]} is not a number",
                detail="A threshold is a number.",
                position=position(node),
            )


def _linear(node: exp.Expr, within: GroupScope) -> _Linear | None:
    node = bare(node)
    try:
        return _number(fold(node, within.given), node)
    except NotConstant:
        pass
    match node:
        case exp.Add() | exp.Sub():
            left, right = _linear(node.this, within), _linear(node.expression, within)
            if left is None or right is None:
                return None
            return left.plus(right, Fraction(1 if isinstance(node, exp.Add) else -1))
        case exp.Neg():
            inner = _linear(node.this, within)
            return inner and _Linear((), Fraction(0)).plus(inner, Fraction(-1))
        case exp.Mul():
            return _product(node, within)
        case _ if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.Window):
            return _Linear(((aggregate(node, within), Fraction(1)),), Fraction(0))
        case _:
            raise _not_linear(node)


def _product(node: exp.Mul, within: GroupScope) -> _Linear | None:
    left, right = _linear(node.this, within), _linear(node.expression, within)
    if left is None or right is None:
        return None
    if left.terms and right.terms:
        raise _not_linear(node)
    if right.terms:
        left, right = right, left
    return _Linear((), Fraction(0)).plus(left, right.constant)


def _not_linear(node: exp.Expr) -> KeyholeError:
    at = position(node)
    if node.find(exp.Query):
        return KeyholeError("KH107", "a subquery inside a question", position=at)
    if contains_aggregate(node):
        hint = "Compare count, sum or avg itself with a constant."
        if isinstance(node, exp.Div):
            hint = "Multiply the threshold instead of dividing the aggregate; for a mean, ask avg(x) > t."
        return KeyholeError(
            "KH204",
            f"{written(node)[:80]} is not supported",
            detail="An atom is one aggregate, times and plus constants, compared with a constant.",
            hint=hint,
            position=at,
        )
    return KeyholeError(
        "KH208",
        f"{written(node)[:80]} is not a constant threshold",
        hint="Compare an aggregate with a number or a parameter.",
        position=at,
    )


def _compared(
    node: exp.Expr, left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope, *, negated: bool
) -> Having:
    if not contains_aggregate(left) and not contains_aggregate(right):
        return _without_aggregates(node, within, negated=negated)
    first, second = _linear(left, within), _linear(right, within)
    if first is None or second is None:
        return FAILS
    difference = first.plus(second, Fraction(-1))
    terms = tuple((found, coefficient) for found, coefficient in difference.terms if coefficient)
    operator = _NEGATED[operator] if negated else operator
    if len(terms) != 1 or len(terms) != len(difference.terms):
        raise KeyholeError(
            "KH204",
            f"{written(node)[:80]} compares aggregates with each other",
            detail="An atom is one aggregate, times and plus constants, compared with a constant.",
            hint="Ask one atom per aggregate, or avg(x) > t for a mean.",
            position=position(node),
        )
    found, coefficient = terms[0]
    threshold = -difference.constant / coefficient
    return Comparison(
        aggregate=found,
        operator=operator if coefficient > 0 else _FLIPPED[operator],
        threshold=threshold,
        position=position(left if contains_aggregate(left) else right),
    )


def _without_aggregates(node: exp.Expr, within: GroupScope, *, negated: bool) -> Having:
    """A comparison of constants. One that reads keys stands in WHERE, or as a conjunct of its own."""
    if node.find(exp.Query):
        raise KeyholeError("KH107", "a subquery inside a question", position=position(node))
    if node.find(exp.Column) is not None:
        raise KeyholeError(
            "KH207",
            f"{written(node)[:80]} is a condition on rows or keys, inside OR or NOT",
            hint="Move it to WHERE, joined by AND.",
            position=position(node),
        )
    truth = row_truth(node, within.scope, within.given)
    return HOLDS if (truth.false if negated else truth.true) == ALWAYS else FAILS
