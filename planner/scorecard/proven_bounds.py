"""The bounds that an answer proves: the strictest public one that follows from the formula that its groups satisfy.

HAVING count(*) > 500                          proves that count(*) is at least 501 HAVING count(*) > 500 OR sum(amount)
> 20000   proves no bound on either
"""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import ceil, floor

from sqlglot import exp

from planner.catalog.catalog import SqlType
from planner.errors import KeyholeError
from planner.parser.tree import strip_parentheses, write_node
from planner.scope.name_resolution import Scope, find_column
from planner.values.constant import read_number as as_number
from planner.values.decimals import convert_to_exact_decimal
from planner.values.operators import FLIPPED_KINDS, OPPOSITE_KINDS

_MOST_TERMS = 256  # conjunctions of a formula: beyond, nothing is proved; of hand-written ones none has as many
_ORDERS = frozenset((exp.GT, exp.GTE, exp.LT, exp.LTE))  # each of these, and its opposite, is a bound; = is two
_WRAPPINGS = (exp.Paren, exp.Cast, exp.Coalesce)


@dataclass(frozen=True, slots=True)
class _Range:
    """The range of an expression in a conjunction, from `low` to `high`, each with True if it is excluded."""

    low: Fraction | None = None
    excludes_low: bool = False
    high: Fraction | None = None
    excludes_high: bool = False

    def intersect(self, other: "_Range") -> "_Range":
        low, low_out = max(
            ((one.low, one.excludes_low) for one in (self, other) if one.low is not None), default=(None, False)
        )
        high, not_out = min(
            ((one.high, not one.excludes_high) for one in (self, other) if one.high is not None), default=(None, True)
        )
        return _Range(low, low_out, high, not not_out)

    def join(self, other: "_Range") -> "_Range":
        low, low_out = (
            (None, False)
            if self.low is None or other.low is None
            else min((self.low, self.excludes_low), (other.low, other.excludes_low))
        )
        high, not_out = (
            (None, True)
            if self.high is None or other.high is None
            else max((self.high, not self.excludes_high), (other.high, not other.excludes_high))
        )
        return _Range(low, low_out, high, not not_out)

    @property
    def is_empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.excludes_low or self.excludes_high))


_Term = dict[str, _Range]


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower or an upper bound on a value."""

    number: Decimal
    is_least: bool

    @property
    def words(self) -> str:
        """The bound in words."""
        return f"at {'least' if self.is_least else 'most'} {self.number:f}"


def prove_bound(number: exp.Expr, formulas: tuple[exp.Expr, ...], scope: Scope) -> Bound | None:
    """Return the strictest bound on a number if all the formulas hold, or None if they prove none.

    Guarantee: every value of `number` with which PostgreSQL gives true for each formula satisfies the bound.
    """
    terms = _list_terms([(formula, False) for formula in formulas])
    known = _write_key(number)
    ranges = [term.get(known, _Range()) for term in terms or () if not any(one.is_empty for one in term.values())]
    if not ranges:
        return None
    proved = ranges[0]
    for one in ranges[1:]:
        proved = proved.join(one)
    whole = is_whole(number, scope)
    if proved.low is not None:
        low = floor(proved.low) + 1 if whole and proved.excludes_low else ceil(proved.low) if whole else proved.low
        found = _to_decimal(Fraction(low), number, scope, up=False)
        return None if found is None else Bound(found, is_least=True)
    if proved.high is not None:
        high = ceil(proved.high) - 1 if whole and proved.excludes_high else floor(proved.high) if whole else proved.high
        found = _to_decimal(Fraction(high), number, scope, up=True)
        return None if found is None else Bound(found, is_least=False)
    return None


def is_whole(number: exp.Expr, scope: Scope) -> bool:
    """Return True if every value of an aggregate is a whole number."""
    plain = _unwrap(number)
    inner = plain.this if isinstance(plain, exp.Filter) else plain
    if isinstance(inner, exp.Count):
        return True
    if not isinstance(inner, exp.Sum | exp.Min | exp.Max):
        return False
    allowed = (exp.Sum, exp.Min, exp.Max, exp.Column, exp.Identifier, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Neg)
    parts = list(inner.walk())
    if not all(isinstance(part, allowed) or _is_whole_literal(part) for part in parts):
        return False
    return all(_find_type(part, scope) is SqlType.INTEGER for part in parts if isinstance(part, exp.Column))


def _is_whole_literal(part: exp.Expr) -> bool:
    return isinstance(part, exp.Literal) and not part.is_string and part.name.isdecimal()


def _find_type(column: exp.Column, scope: Scope) -> SqlType | None:
    try:
        found = find_column(column, scope)
    except KeyholeError:
        return None
    return None if found is None else found.sql_type


def _to_decimal(value: Fraction, number: exp.Expr, scope: Scope, *, up: bool) -> Decimal | None:
    """Return the bound as a literal that the number's type can read, whole if the type may have whole numbers only."""
    if value.denominator == 1 or _has_fractions(number, scope):
        return convert_to_exact_decimal(value)
    return Decimal(ceil(value) if up else floor(value))


def _has_fractions(number: exp.Expr, scope: Scope) -> bool:
    """Return True if the aggregate's type certainly has fractions."""
    inner = number.this if isinstance(number, exp.Filter) else number
    if isinstance(inner, exp.Avg):
        return True
    columns = list(inner.find_all(exp.Column))
    return isinstance(inner, exp.Sum | exp.Min | exp.Max) and any(
        inner.this is column and _find_type(column, scope) not in (SqlType.INTEGER, None) for column in columns
    )


def _write_key(node: exp.Expr) -> str:
    return write_node(_unwrap(node))


def _unwrap(node: exp.Expr) -> exp.Expr:
    """Return the expression without wrappings that change no existing value."""
    while isinstance(node, _WRAPPINGS) and not _narrows(node):
        node = node.this
    return node


def _narrows(node: exp.Expr) -> bool:
    """Return True if a wrapping may change an existing value: a cast that rounds, or to text."""
    if isinstance(node, exp.Cast):
        kind = node.to.this
        whole = kind in (exp.DataType.Type.INT, exp.DataType.Type.BIGINT)
        counted = isinstance(strip_parentheses(node.this), exp.Count)
        wide = kind in (exp.DataType.Type.DECIMAL, exp.DataType.Type.DOUBLE) and not node.to.expressions
        return not (wide or (whole and counted))
    # where there is no value, coalesce gives another one
    return isinstance(node, exp.Coalesce) and not isinstance(strip_parentheses(node.this), exp.Count)


def _list_terms(formulas: Sequence[tuple[exp.Expr, bool]]) -> list[_Term] | None:
    """Return conjunctions, one of which holds if all formulas hold. Return None if they are too many.

    Each formula comes with True if it is negated.
    """
    found: list[_Term] = [{}]
    for formula, negated in formulas:
        read = _read_formula(formula, negated=negated)
        if read is None or len(found) * len(read) > _MOST_TERMS:
            return None
        found = [_intersect_terms(left, right) for left, right in product(found, read)]
    return found


def _intersect_terms(left: _Term, right: _Term) -> _Term:
    return {key: left.get(key, _Range()).intersect(right.get(key, _Range())) for key in {**left, **right}}


def _read_formula(node: exp.Expr, *, negated: bool) -> list[_Term] | None:
    node = strip_parentheses(node)
    if isinstance(node, exp.Having):
        return _read_formula(node.this, negated=negated)
    if isinstance(node, exp.Not):
        return _read_formula(node.this, negated=not negated)
    if isinstance(node, exp.And | exp.Or):
        if isinstance(node, exp.And) is not negated:
            return _list_terms([(node.this, negated), (node.expression, negated)])
        sides = (_read_formula(node.this, negated=negated), _read_formula(node.expression, negated=negated))
        terms = [term for side in sides for term in side or ()]
        return None if None in sides or len(terms) > _MOST_TERMS else terms
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low, high = node.args["low"], node.args["high"]
        ends = [(exp.GTE(this=node.this, expression=low), negated), (exp.LTE(this=node.this, expression=high), negated)]
        if not negated:
            return _list_terms(ends)
        return [term for end, _ in ends for term in _read_formula(end, negated=True) or [{}]]
    if isinstance(node, exp.In) and not negated and node.expressions and node.args.get("query") is None:
        return [term for one in node.expressions for term in _compare(exp.EQ, node.this, one)]
    kind = type(node)
    if (kind in _ORDERS or kind is exp.EQ) and not negated:
        return list(_compare(kind, node.this, node.expression))
    if kind in _ORDERS and negated:
        return list(_compare(OPPOSITE_KINDS[kind], node.this, node.expression))
    return [{}]


def _compare(kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> Iterator[_Term]:
    number = _read_constant(right)
    if number is None:
        number, left, kind = _read_constant(left), right, FLIPPED_KINDS[kind]
    if number is None:
        yield {}
        return
    out = kind in (exp.GT, exp.LT)
    low = number if kind in (exp.GT, exp.GTE, exp.EQ) else None
    high = number if kind in (exp.LT, exp.LTE, exp.EQ) else None
    yield {_write_key(left): _Range(low, low is not None and out, high, high is not None and out)}


def _read_constant(node: exp.Expr) -> Fraction | None:
    node = strip_parentheses(node)
    if isinstance(node, exp.Literal) and not node.is_string:
        try:
            return as_number(node.name, node).value
        except KeyholeError:
            return None
    if isinstance(node, exp.Neg):
        inner = _read_constant(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Mul | exp.Add | exp.Sub):
        left, right = _read_constant(node.this), _read_constant(node.expression)
        if left is None or right is None:
            return None
        combine = {exp.Mul: operator.mul, exp.Add: operator.add, exp.Sub: operator.sub}[type(node)]
        return Fraction(combine(left, right))
    return None
