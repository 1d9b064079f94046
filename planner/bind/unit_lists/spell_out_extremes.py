"""min, max, bool_or and bool_and of one unit's rows, compared with constants, as counts of those rows.

    max(stay_day) < DATE '2024-01-01'
    count(stay_day) > 0 AND count(*) FILTER (WHERE NOT stay_day < DATE '2024-01-01') = 0

Guarantee: the condition is true of the same rows, and of no others; where it was unknown it may be false. So values of
any type that rows are asked of have a least and a greatest one, without bounds.
"""

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.parser.tree import contains_type, strip_parentheses
from planner.values.operators import FLIPPED_KINDS, OPPOSITE_KINDS


def spell_out_extremes(node: exp.Expr) -> exp.Expr:
    """Return the condition with min, max, bool_and and bool_or rewritten as comparisons of counts. Other parts stay."""
    return _spell(node, truth=True)


def _spell(node: exp.Expr, *, truth: bool) -> exp.Expr:
    """Return a condition that is true where the given one has this truth."""
    found = strip_parentheses(node)
    match found:
        case exp.Not():
            return _spell(found.this, truth=not truth)
        case exp.And() | exp.Or():
            both = exp.And if isinstance(found, exp.And) is truth else exp.Or
            left, right = (exp.Paren(this=_spell(side, truth=truth)) for side in (found.this, found.expression))
            return both(this=left, expression=right)
        case exp.Between() if _find_extreme_comparison(found.this) is not None and not found.args.get("symmetric"):
            low = exp.GTE(this=found.this, expression=found.args["low"])
            high = exp.LTE(this=found.this, expression=found.args["high"])
            return _spell(exp.And(this=low, expression=high), truth=truth)
        case exp.LogicalOr() | exp.LogicalAnd() | exp.Filter() if call := _find_call(
            found, exp.LogicalOr, exp.LogicalAnd
        ):
            return _spell_truths(call, found, truth=truth)
        case exp.Is() if (
            isinstance(strip_parentheses(found.expression), exp.Null)
            and (call := _find_extreme_comparison(found.this)) is not None
        ):
            there = exp.GT if not truth else exp.EQ
            return there(
                this=_write_count(exp.Not(this=_write_is_null(call.this)), found.this), expression=_write_number(0)
            )
        case _ if type(found) in OPPOSITE_KINDS:
            return _spell_comparison(found, truth=truth)
        case _:
            return found.copy() if truth else exp.Not(this=exp.Paren(this=found.copy()))


def _find_call(node: exp.Expr, *kinds: type[exp.Expr]) -> exp.Expr | None:
    """Return the call of one of these aggregates, with or without FILTER."""
    found = strip_parentheses(node)
    call = strip_parentheses(found.this) if isinstance(found, exp.Filter) else found
    return call if isinstance(call, kinds) and not call.args.get("expressions") else None


def _find_extreme_comparison(node: exp.Expr) -> exp.Expr | None:
    return _find_call(node, exp.Min, exp.Max)


def _spell_comparison(found: exp.Expr, *, truth: bool) -> exp.Expr:
    kind = type(found) if truth else OPPOSITE_KINDS[type(found)]
    for one, other, operator in (
        (found.this, found.expression, kind),
        (found.expression, found.this, FLIPPED_KINDS[kind]),
    ):
        call = _find_extreme_comparison(one)
        if call is None or contains_aggregate(other) or contains_type(other, exp.Column, exp.Query):
            continue
        return _compare(call, operator, other, one)
    return found.copy() if truth else exp.Not(this=exp.Paren(this=found.copy()))


def _compare(call: exp.Expr, operator: type[exp.Expr], bound: exp.Expr, around: exp.Expr) -> exp.Expr:
    beyond = exp.GT if isinstance(call, exp.Max) else exp.LT
    passes = beyond, exp.GTE if isinstance(call, exp.Max) else exp.LTE

    def count(kind: type[exp.Expr], *, has_some: bool) -> exp.Expr:
        counted = _write_count(kind(this=call.this.copy(), expression=bound.copy()), around)
        return (exp.GT if has_some else exp.EQ)(this=counted, expression=_write_number(0))

    if operator in passes:  # one value on that side is enough
        return count(operator, has_some=True)
    if operator is exp.EQ:
        return exp.And(this=count(beyond, has_some=False), expression=count(exp.EQ, has_some=True))
    if operator is exp.NEQ:
        below = count(OPPOSITE_KINDS[passes[1]], has_some=True)
        none = exp.And(this=below, expression=count(exp.EQ, has_some=False))
        return exp.Paren(this=exp.Or(this=count(beyond, has_some=True), expression=exp.Paren(this=none)))
    there = exp.GT(this=_write_count(exp.Not(this=_write_is_null(call.this)), around), expression=_write_number(0))
    return exp.And(this=count(OPPOSITE_KINDS[operator], has_some=False), expression=there)


def _spell_truths(call: exp.Expr, around: exp.Expr, *, truth: bool) -> exp.Expr:
    """Return the condition that some value is true, or that every value is true if there is one.

    NULL values are ignored. NOT of the one form is the other form of the negated values.
    """
    value: exp.Expr = exp.Paren(this=call.this.copy())
    false: exp.Expr = exp.Not(this=value.copy())
    if not truth:
        value, false = false, value
    some = exp.GT(this=_write_count(value, around), expression=_write_number(0))
    if isinstance(call, exp.LogicalOr) is truth:
        return some
    return exp.And(this=exp.EQ(this=_write_count(false, around), expression=_write_number(0)), expression=some)


def _write_count(condition: exp.Expr, around: exp.Expr) -> exp.Expr:
    """Return the count of the rows that an aggregate reads, where a condition holds."""
    filtered = strip_parentheses(around)
    if isinstance(filtered, exp.Filter):
        own = exp.Paren(this=filtered.expression.this.copy())
        condition = exp.And(this=own, expression=exp.Paren(this=condition))
    return exp.Filter(this=exp.Count(this=exp.Star(), big_int=True), expression=exp.Where(this=condition))


def _write_is_null(value: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Is(this=value.copy(), expression=exp.Null()))


def _write_number(value: int) -> exp.Expr:
    return exp.Literal.number(value)
