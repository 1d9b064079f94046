"""Expressions of public key values, computed value by value as PostgreSQL would; only exact ones.

Guarantee: two key values have the same result here if and only if PostgreSQL groups their rows together. PostgreSQL
itself computes what is shown, from one value of each group. An expression that could depend on a collation, on a
session's settings or on rounding is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.tree import write_node, write_short
from planner.scope.key_arithmetic import compute, round_to_whole_number
from planner.scope.key_functions import FUNCTIONS, apply_function
from planner.scope.key_times import TIME_FUNCTIONS, InCycle, compute_time, count_days, shift_time
from planner.scope.key_values import (
    NUMBERS,
    TEXTS,
    NotExact,
    Raw,
    TypedValue,
    compare,
    disjoin,
    make_exact_number,
    negate,
    read_boolean,
    to_text,
    unify,
)
from planner.values.constant import read_number

_MOST_STEPS = 500_000  # for all values together: fifty parts for each of the most that a key may have

_ALLOWED: dict[type[exp.Expr], frozenset[str]] = {
    kind: frozenset(args)
    for kind, args in (
        (exp.Column, ("this", "table")),
        (exp.Literal, ("this", "is_string")),
        (exp.Boolean, ("this",)),
        (exp.Null, ()),
        (exp.Paren, ("this",)),
        (exp.Neg, ("this",)),
        (exp.Add, ("this", "expression")),
        (exp.Sub, ("this", "expression")),
        (exp.Mul, ("this", "expression")),
        (exp.Div, ("this", "expression", "typed", "safe")),
        (exp.Mod, ("this", "expression")),
        (exp.Floor, ("this",)),
        (exp.Ceil, ("this",)),
        (exp.DPipe, ("this", "expression", "safe")),
        (exp.Upper, ("this",)),
        (exp.Lower, ("this",)),
        (exp.Coalesce, ("this", "expressions")),
        (exp.Nullif, ("this", "expression")),
        (exp.Case, ("this", "ifs", "default")),
        (exp.If, ("this", "true")),
        (exp.And, ("this", "expression")),
        (exp.Or, ("this", "expression")),
        (exp.Not, ("this",)),
        (exp.Is, ("this", "expression", "negate")),
        (exp.EQ, ("this", "expression")),
        (exp.NEQ, ("this", "expression")),
        (exp.LT, ("this", "expression")),
        (exp.LTE, ("this", "expression")),
        (exp.GT, ("this", "expression")),
        (exp.GTE, ("this", "expression")),
        (exp.In, ("this", "expressions", "negate")),
        (exp.Between, ("this", "low", "high", "negate")),
        (exp.Like, ("this", "expression", "negate")),
        (exp.Abs, ("this",)),
        (exp.Sign, ("this",)),
        (exp.Round, ("this", "decimals")),
        (exp.Trunc, ("this", "decimals")),
        (exp.Greatest, ("this", "expressions", "ignore_nulls")),
        (exp.Least, ("this", "expressions", "ignore_nulls")),
        (exp.WidthBucket, ("this", "min_value", "max_value", "num_buckets", "threshold")),
        (exp.Array, ("expressions", "value_constructor")),
        (exp.ILike, ("this", "expression", "negate")),
        (exp.Escape, ("this", "expression")),
        (exp.RegexpLike, ("this", "expression")),
        (exp.RegexpILike, ("this", "expression")),
        (exp.SimilarTo, ("this", "expression")),
        (exp.StartsWith, ("this", "expression")),
        (exp.StrPosition, ("this", "substr")),
        (exp.Concat, ("expressions", "safe", "coalesce")),
        (exp.ConcatWs, ("expressions", "safe", "coalesce")),
        (exp.Initcap, ("this", "expression")),
        (exp.Pad, ("this", "expression", "fill_pattern", "is_left")),
        (exp.Repeat, ("this", "times")),
        (exp.Reverse, ("this",)),
        (exp.Translate, ("this", "from_", "to")),
        (exp.Left, ("this", "expression")),
        (exp.Right, ("this", "expression")),
        (exp.Substring, ("this", "start", "length")),
        (exp.Trim, ("this", "position", "expression")),
        (exp.Replace, ("this", "expression", "replacement")),
        (exp.SplitPart, ("this", "delimiter", "part_index")),
        (exp.Length, ("this",)),
        (exp.Cast, ("this", "to", "_type")),
        (exp.Date, ("this",)),
        (exp.TimestampTrunc, ("this", "unit")),
        (exp.Extract, ("this", "expression")),
        (exp.TimeToStr, ("this", "format")),
        (exp.DateBin, ("this", "expression", "unit")),
        (InCycle, ("this", "part")),
    )
}


def evaluate_rows(node: exp.Expr, rows: Sequence[Mapping[str, TypedValue]]) -> list[TypedValue]:
    """Return the expression's values for each of `rows`.

    Raise `NotExact` if a value is not known exactly, or takes too long to compute.
    """
    size = sum(1 for _ in node.walk())
    if size * len(rows) > _MOST_STEPS:
        raise NotExact(f"an expression of {size:,} parts")
    found: list[TypedValue] = []
    operands: dict[Fraction, Raw] = {}
    for values in rows:
        one = evaluate(node, values)
        match one.raw:
            case (Fraction() as dividend, Fraction() as divisor, *added):
                value = dividend / divisor + sum(part for part in added if isinstance(part, Fraction))
                if operands.setdefault(value, one.raw) != one.raw:  # they may be rounded differently
                    raise NotExact(write_short(node))
        found.append(one)
    return found


def evaluate(node: exp.Expr, values: Mapping[str, TypedValue]) -> TypedValue:
    """Return the expression's value for `values`, which has the value of each column by its text.

    Raise `NotExact` if it is not known exactly.
    """
    allowed = _ALLOWED.get(type(node))
    if allowed is None or any(value and key not in allowed for key, value in node.args.items()):
        raise NotExact(write_short(node))
    try:
        return _evaluate(node, lambda inner: evaluate(inner, values), values)
    except (ArithmeticError, ValueError):
        raise NotExact(write_short(node)) from None


def _evaluate(node: exp.Expr, of: Callable[[exp.Expr], TypedValue], values: Mapping[str, TypedValue]) -> TypedValue:
    if isinstance(node, FUNCTIONS):
        return apply_function(node, of)
    match node:
        case exp.Column():
            return values[write_node(node)]
        case exp.Literal() | exp.Boolean() | exp.Null():
            return _read_literal(node)
        case exp.Paren():
            return of(node.this)
        case exp.Neg():
            return compute(exp.Sub, TypedValue("integer", 0), of(node.this), node)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return _evaluate_arithmetic(node, of)
        case exp.Floor() | exp.Ceil():
            return round_to_whole_number(node, of(node.this))
        case exp.DPipe():
            return _concatenate(of(node.this), of(node.expression), node)
        case exp.Upper() | exp.Lower():
            return _fold_case(node, of(node.this))
        case exp.Coalesce() | exp.Nullif() | exp.Case():
            return _evaluate_choice(node, of)
        case _:
            return compute_time(node, of) if isinstance(node, TIME_FUNCTIONS) else _evaluate_truth(node, of)


def _evaluate_arithmetic(node: exp.Binary, of: Callable[[exp.Expr], TypedValue]) -> TypedValue:
    if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Interval):
        return shift_time(node, of(node.this))
    left, right = of(node.this), of(node.expression)
    if "date" in (left.kind, right.kind):
        return count_days(left, right, node)
    return compute(type(node), left, right, node)


def _read_literal(node: exp.Expr) -> TypedValue:
    match node:
        case exp.Boolean():
            return TypedValue("boolean", bool(node.this))
        case exp.Null():
            return TypedValue("unknown", None)
        case exp.Literal() if not node.is_string:
            return _read_number(str(node.this), node)
        case _:
            return TypedValue("unknown", str(node.this))


def _read_number(text: str, node: exp.Expr) -> TypedValue:
    try:
        value = read_number(text, node).value
    except KeyholeError:
        raise NotExact(write_short(node)) from None
    return make_exact_number(value, "integer" if text.isdigit() else "numeric", node)


def _evaluate_choice(node: exp.Expr, of: Callable[[exp.Expr], TypedValue]) -> TypedValue:
    if isinstance(node, exp.Case):
        return _evaluate_case(node, of)
    if isinstance(node, exp.Nullif):
        first, other = of(node.this), of(node.expression)
        same = compare(exp.EQ, first, other, node)
        promoted = first.kind in NUMBERS and other.kind in NUMBERS  # PostgreSQL's nullif(1, 2.5) is numeric
        kind = max(first.kind, other.kind, key=NUMBERS.index) if promoted else first.kind
        return TypedValue(kind, None if same.raw is True else first.raw)
    found = unify([of(node.this), *map(of, node.expressions)], node)
    return next((one for one in found if one.raw is not None), found[0])


def _evaluate_case(node: exp.Case, of: Callable[[exp.Expr], TypedValue]) -> TypedValue:
    default = node.args.get("default")
    branches = node.args["ifs"]
    results = [of(branch.args["true"]) for branch in branches]
    found = unify([*results, TypedValue("unknown", None) if default is None else of(default)], node)
    tested = None if node.this is None else of(node.this)
    for branch, result in zip(branches, found, strict=False):
        if tested is None:
            met: Raw = read_boolean(of(branch.this), node)
        else:
            met = compare(exp.EQ, tested, of(branch.this), node).raw
        if met is True:
            return result
    return found[-1]


def _evaluate_truth(node: exp.Expr, of: Callable[[exp.Expr], TypedValue]) -> TypedValue:
    match node:
        case exp.And() | exp.Or():
            left, right = read_boolean(of(node.this), node), read_boolean(of(node.expression), node)
            decisive = isinstance(node, exp.Or)
            if decisive in (left, right):
                return TypedValue("boolean", decisive)
            return TypedValue("boolean", None if None in (left, right) else not decisive)
        case exp.Not():
            return negate(TypedValue("boolean", read_boolean(of(node.this), node)))
        case exp.Is(expression=exp.Null()):
            return TypedValue("boolean", (of(node.this).raw is None) is not bool(node.args.get("negate")))
        case exp.Is(expression=exp.Boolean() as wanted):
            same = read_boolean(of(node.this), node) is bool(wanted.this)
            return TypedValue("boolean", same is not bool(node.args.get("negate")))
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return compare(type(node), of(node.this), of(node.expression), node)
        case exp.In() if node.expressions:
            first, *others = unify([of(node.this), *map(of, node.expressions)], node)
            found = disjoin([compare(exp.EQ, first, other, node) for other in others])
            return negate(found) if node.args.get("negate") else found
        case exp.Between():
            inner = of(node.this)
            low = compare(exp.LT, inner, of(node.args["low"]), node)
            high = compare(exp.GT, inner, of(node.args["high"]), node)
            outside = disjoin([low, high])
            return outside if node.args.get("negate") else negate(outside)
        case _:
            raise NotExact(write_short(node))


def _concatenate(left: TypedValue, right: TypedValue, node: exp.Expr) -> TypedValue:
    if left.kind not in TEXTS and right.kind not in TEXTS:
        raise NotExact(write_short(node))
    texts = [to_text(one, node) for one in (left, right)]
    if any(one.kind == "opaque" for one in texts):
        raise NotExact(write_short(node))
    raws = [one.raw for one in texts]
    return TypedValue("text", None if None in raws else "".join(map(str, raws)))


def _fold_case(node: exp.Expr, found: TypedValue) -> TypedValue:
    if found.kind not in TEXTS or not (found.raw is None or str(found.raw).isascii()):
        raise NotExact(write_short(node))
    if found.raw is None:
        return TypedValue("text", None)
    return TypedValue("text", str(found.raw).upper() if isinstance(node, exp.Upper) else str(found.raw).lower())
