"""HAVING: SQL's boolean formula to comparisons of aggregates with thresholds, in negation normal form.

SQL's NULL makes a comparison and its negation both false, so NOT is pushed down to the comparisons and never applied
to an answer.
"""

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from planner.aggregates.aggregate import Aggregate, GroupScope, aggregate, contains_aggregate
from planner.aggregates.arithmetic import Linear, least_per_row, linear, not_linear, same_rows
from planner.aggregates.comparison import FAILS, HOLDS, Comparison, Every, Having, Outside, Slack, Some
from planner.aggregates.key_thresholds import is_public, key_numbers, mean_less
from planner.aggregates.order_statistics import is_truth, picks_a_value, truth_comparison, value_comparison
from planner.aggregates.refusals import (
    compared_with_itself,
    divides_integers,
    mean_against_keys,
    true_without_values,
    unsupported_aggregate,
)
from planner.aggregates.row_expression import Arithmetic, Part
from planner.aggregates.variance import is_variance, variance_comparison
from planner.errors import KeyholeError
from planner.parser.tree import bare, position, write_node
from planner.predicates.condition import row_truth
from planner.predicates.refusals import subquery_inside
from planner.question.condition import ALWAYS
from planner.question.model import Measure
from planner.values.decimals import decimal
from planner.values.expressions import fold
from planner.values.model import NotConstant, Number, Untyped, number
from planner.values.operators import COMPARISONS, FLIPPED, OPERATORS, OPPOSITE

_HINT = "Combine comparisons like count(*) > 100, sum(x) >= 5, avg(x) < 2 with AND, OR and NOT."
_FINEST = 30  # decimals of ROUND, either way: beyond every grid and bound that a policy can declare
_TRUTHS = (*OPERATORS, exp.And, exp.Or, exp.Not, exp.Between, exp.In)
_ALONE = (Measure.UNITS, Measure.VALUES)


def read_having(node: exp.Expr, within: GroupScope) -> Having:
    """The formula that the expression writes. Raises KH2xx for what is not a formula of threshold atoms."""
    return _formula(node, within, negated=False)


def _formula(node: exp.Expr, within: GroupScope, *, negated: bool) -> Having:
    node = bare(node)
    if node.args.get("negate"):
        negated = not negated
    match node:
        case exp.And() | exp.Or():
            children = [_formula(child, within, negated=negated) for child in node.flatten()]
            return _join_children(children, conjunction=isinstance(node, exp.And) is not negated)
        case exp.Not():
            return _formula(node.this, within, negated=not negated)
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return _read_comparison(node, node.this, OPERATORS[type(node)], node.expression, within, negated=negated)
        case exp.Between() if not node.args.get("symmetric"):
            low, high = node.args["low"], node.args["high"]
            sides = (
                _read_comparison(node, node.this, ">=", low, within, negated=negated),
                _read_comparison(node, node.this, "<=", high, within, negated=negated),
            )
            return _join_children(sides, conjunction=not negated)
        case exp.In() if node.expressions:
            cases = [_read_comparison(node, node.this, "=", item, within, negated=negated) for item in node.expressions]
            return _join_children(cases, conjunction=negated)
        case exp.Is() if isinstance(bare(node.expression), exp.Boolean):
            wanted = bool(bare(node.expression).this)
            held = _formula(node.this, within, negated=not wanted)
            return Outside(held) if negated else held  # IS NOT TRUE holds where SQL says NULL, too
        case exp.Is(this=counted) if isinstance(bare(node.expression), exp.Null) and _is_count(counted):
            aggregate(counted, within)
            return HOLDS if negated else FAILS
        case _ if is_truth(node):
            return truth_comparison(node, within, negated=negated)
        case _:
            return _constant_formula(node, within, negated=negated)


def _is_count(node: exp.Expr) -> bool:
    """Whether it is a count, which is never NULL."""
    node = bare(node)
    return isinstance(node.this if isinstance(node, exp.Filter) else node, exp.Count)


def _join_children(children: Iterable[Having], *, conjunction: bool) -> Having:
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
            raise subquery_inside(node) from None
        raise KeyholeError(
            "KH207", f"{write_node(node)[:80]} is not a threshold atom", hint=_HINT, position=position(node)
        ) from None
    if value is None:
        return FAILS
    if not isinstance(value, bool):
        raise KeyholeError("KH207", "HAVING is a boolean formula", hint=_HINT, position=position(node))
    return HOLDS if value is not negated else FAILS


def _read_comparison(
    node: exp.Expr, left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope, *, negated: bool
) -> Having:
    if not contains_aggregate(left) and not contains_aggregate(right):
        return _without_aggregates(node, within, negated=negated)
    operator = OPPOSITE[operator] if negated else operator
    if not contains_aggregate(left):
        left, operator, right = right, FLIPPED[operator], left
    if contains_aggregate(right) and is_public(left, within) and not is_public(right, within):
        left, operator, right = right, FLIPPED[operator], left
    left = bare(left)
    if isinstance(left, exp.Div) and is_public(left.expression, within) and not is_public(left.this, within):
        left, right = _multiplied_out(left, right, within)
    said = bare(right)
    if operator in ("=", "<>") and isinstance(said, exp.Boolean) and (isinstance(left, _TRUTHS) or is_truth(left)):
        return _formula(left, within, negated=bool(said.this) is (operator == "<>"))
    if picks_a_value(left):
        return value_comparison(left, operator, right, within)
    if is_variance(left, within):
        return variance_comparison(left, operator, right, within)
    if is_variance(right, within):
        return variance_comparison(right, FLIPPED[operator], left, within)
    if isinstance(left, exp.Round | exp.Floor | exp.Ceil):
        return _compare_rounded(left, operator, right, within)
    return _linearly(node, left, operator, right, within)


def _linearly(node: exp.Expr, left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope) -> Having:
    mean = mean_less(left, right) if is_public(right, within) else None
    if mean is not None:
        return _mean_of_own(mean, left, operator, right, node, within)
    first, second = linear(left, within), linear(right, within)
    if first is None or second is None:
        return FAILS
    if (first.missing is not None and second.summands) or second.missing is not None:
        raise not_linear(node)
    return _comparison(first.plus(second, Fraction(-1)), operator, node, position(left), within)


def _multiplied_out(left: exp.Div, right: exp.Expr, within: GroupScope) -> tuple[exp.Expr, exp.Expr]:
    """`x / n op t` as `x op t * n`, where n is a positive number that a key determines."""
    above, (below, arithmetic) = linear(left.this, within), key_numbers(left.expression, within)
    if not all(number > 0 for number in below.known):
        raise KeyholeError(
            "KH204",
            f"{below.text} is not positive for every group, so nothing can be divided by it",
            hint=f"Leave the others out: WHERE {' AND '.join(f'{column} > 0' for column in below.columns)}",
            position=position(left),
        )
    if above is not None and max(above.arithmetic, arithmetic) is Arithmetic.INTEGER:
        raise divides_integers(left)
    return left.this, exp.Mul(this=_factor(right), expression=_factor(left.expression))


def _factor(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy()) if isinstance(node, exp.Binary) else node.copy()


def _comparison(difference: Linear, operator: str, node: exp.Expr, at: int | None, within: GroupScope) -> Having:
    """`difference operator 0`."""
    if not difference.summands or not difference.summands[0][1]:
        raise compared_with_itself(node)
    first, scale = difference.summands[0]
    if first.per and first.function != "avg" and len(difference.summands) == 1:
        scale = Fraction(1 if scale > 0 else -1)  # a ratio in percent keeps its unit
    operator = operator if scale > 0 else FLIPPED[operator]
    threshold = -difference.constant / scale
    own = None if difference.own is None else difference.own.times(-1 / scale).shift(threshold)
    summands = tuple((found, coefficient / scale) for found, coefficient in difference.summands if coefficient)
    per = _common_per(summands, node, within)
    if any(found.measure in _ALONE for found, _ in summands) and len(summands) > 1:
        raise not_linear(node)
    if own is not None and (per or difference.missing is not None):
        raise mean_against_keys(node)
    parts = [
        Part(coefficient * part.coefficient, part.column, part.condition, part.power)
        for found, coefficient in summands
        for part in found.parts
    ]
    parts += [Part(-threshold * part.coefficient, part.column, part.condition, part.power) for part in per]
    values = dict.fromkeys(value for found, _ in summands for value in found.values)
    left = Linear(summands, Fraction(0), difference.arithmetic).text
    if difference.missing is not None:
        passes = COMPARISONS[operator](difference.missing / scale, 0)
        if passes and not (per and COMPARISONS[operator](0, 0)):
            raise true_without_values(node)
        values = {} if passes else values
    if own is not None:
        values |= dict.fromkeys(own.present)
    return Comparison(
        text=f"{left} {operator} {decimal(threshold) if own is None else own.text}",
        left=left,
        names=(left, *summands[0][0].names),
        measure=summands[0][0].measure if summands[0][0].measure in _ALONE else Measure.TOTAL,
        parts=tuple(parts),
        operator=operator,
        at=Fraction(0) if per else threshold,
        threshold=threshold,
        origin=threshold if per else Fraction(0),
        per_row=least_per_row(per) if per else None,
        values=tuple(values),
        slack=Slack.THRESHOLD,
        position=at,
        own=own,
    )


def _mean_of_own(
    mean: exp.Expr, left: exp.Expr, operator: str, right: exp.Expr, node: exp.Expr, within: GroupScope
) -> Having:
    """A mean against a threshold that a key determines: the mean of what the rows have less it, against 0.

    A percentage is one of the least threshold in absolute value, as it is for sums.
    """
    own, _ = key_numbers(right, within)
    less, plain = linear(mean, within), linear(left, within)
    if less is None or plain is None or not own.known:
        return FAILS
    made = _comparison(less, operator, node, position(left), within)
    if not isinstance(made, Comparison):
        return made
    least, most = min(own.known), max(own.known)
    shown = f"{decimal(least)} to {decimal(most)}" if least < most else f"{decimal(least)}"
    return replace(
        made,
        text=f"{plain.text} {made.operator} {own.text} ({shown})",
        left=f"{plain.text} - {f'({own.text})' if ' ' in own.text else own.text}",
        names=(plain.text, *plain.summands[0][0].names),
        threshold=min(map(abs, own.known)),
    )


def _common_per(
    summands: tuple[tuple[Aggregate, Fraction], ...], node: exp.Expr, within: GroupScope
) -> tuple[Part, ...]:
    """What all summands are divided by; nothing if none is. Raises KH204 where they differ."""
    found = [one.per for one, _ in summands]
    first = found[0]
    if all(not per for per in found):
        return ()
    if all(per and same_rows(first, per, within) for per in found):
        return first
    raise KeyholeError(
        "KH204",
        f"{write_node(node)[:80]} compares means or ratios over different rows",
        detail="Two means can be compared by their sums only where both are over the same rows.",
        hint="Add the same FILTER (WHERE x IS NOT NULL AND y IS NOT NULL) to both, or ask one atom each.",
        position=position(node),
    )


def _compare_rounded(
    left: exp.Round | exp.Floor | exp.Ceil, operator: str, right: exp.Expr, within: GroupScope
) -> Having:
    """A rounded aggregate against a constant: against the edges of the steps that qualify."""
    inner, threshold = linear(left.this, within), linear(right, within)
    if inner is None or threshold is None:
        return FAILS
    places = _places(left, within)
    own = threshold.own or inner.own
    if threshold.summands or own is not None or inner.missing is not None or places is None:
        raise not_linear(left)
    if isinstance(left, exp.Round) and inner.arithmetic is Arithmetic.FLOATING:
        raise KeyholeError(
            "KH204",
            f"{write_node(left)[:80]} rounds a double, where halves go to even numbers",
            hint=f"Compare {write_node(left.this)[:80]} itself, or round({write_node(left.this)[:60]}::numeric, 2).",
            position=position(left),
        )
    step = Fraction(1, 10**places) if places >= 0 else Fraction(10**-places)
    at = position(left)

    def side(of: str) -> Having:
        edge, found = _edge(left, of, threshold.constant / step)
        return _comparison(inner.plus(Linear((), edge * step, Arithmetic.EXACT), Fraction(-1)), found, left, at, within)

    if operator == "=":
        return Every((side(">="), side("<=")))
    if operator == "<>":
        return Some((side(">"), side("<")))
    return side(operator)


def _places(left: exp.Round | exp.Floor | exp.Ceil, within: GroupScope) -> int | None:
    decimals = left.args.get("decimals")
    if decimals is None:
        return 0
    value = fold(decimals, within.given)
    if isinstance(value, Untyped):
        value = number(value.text, decimals)
    if not isinstance(value, Number) or not value.integral or abs(value.value) > _FINEST:
        return None
    return int(value.value)


def _edge(left: exp.Expr, operator: str, threshold: Fraction) -> tuple[Fraction, str]:
    """Where the value, in steps, must lie for its rounding to compare so: an edge and an operator.

    Rounding grows with the value, so `rounded >= n` starts at the least value that rounds to the whole number n.
    """
    least = ceil(threshold) if operator in (">=", "<") else floor(threshold) + 1
    above = operator in (">", ">=")  # `rounded <= n` and `rounded < n` are the negations of `rounded >= least`
    match left:
        case exp.Floor():
            edge, included = Fraction(least), True
        case exp.Ceil():
            edge, included = Fraction(least - 1), False
        case _:  # halves away from zero
            edge, included = least - Fraction(1, 2), least > 0
    if above:
        return edge, ">=" if included else ">"
    return edge, "<" if included else "<="


def _without_aggregates(node: exp.Expr, within: GroupScope, *, negated: bool) -> Having:
    """A comparison of constants. One that reads keys stands in WHERE, or as a conjunct of its own."""
    if node.find(exp.Query):
        raise subquery_inside(node)
    if (unknown := node.find(exp.Anonymous)) is not None:
        raise unsupported_aggregate(unknown)
    if node.find(exp.Column) is not None:
        raise KeyholeError(
            "KH207",
            f"{write_node(node)[:80]} is a condition on rows or keys, inside OR or NOT",
            hint=_one_question_each(node)
            or "Move it to WHERE, joined by AND, one question each, and join them by UNION.",
            position=position(node),
        )
    truth = row_truth(node, within.scope, within.given)
    return HOLDS if (truth.false if negated else truth.true) == ALWAYS else FAILS


def _one_question_each(node: exp.Expr) -> str | None:
    """The union of one question for each alternative, their conditions on keys in WHERE; None for other formulas."""
    select = node.find_ancestor(exp.Select)
    formula = None if select is None else bare(select.args["having"].this)
    if select is None or not isinstance(formula, exp.Or) or any(select.args.get(part) for part in ("order", "limit")):
        return None
    questions: list[str] = []
    for alternative in map(bare, formula.flatten()):
        parts = list(alternative.flatten()) if isinstance(alternative, exp.And) else [alternative]
        kept = [part.copy() for part in parts if contains_aggregate(part)]
        moved = [part.copy() for part in parts if not contains_aggregate(part)]
        if not kept:
            return None
        question = select.copy()
        question.set("with_", None)
        question.set("having", exp.Having(this=exp.and_(*kept, copy=False)))
        questions.append(write_node(question.where(*moved, copy=False) if moved else question))
    return f"{' UNION '.join(questions)};"
