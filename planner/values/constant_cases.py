"""CASE over constants, which remains after grouping() is replaced: CASE 1 WHEN 1 THEN 1000 ELSE 100 END is 1000."""

from collections.abc import Callable

from sqlglot import exp

from planner.parser.tree import strip_parentheses
from planner.values.constant import Constant, NotConstant, Number
from planner.values.operators import COMPARISONS, OPERATORS

Fold = Callable[[exp.Expr], Constant]
_COMPARED = tuple(OPERATORS)


def fold_case(node: exp.Case, fold: Fold) -> Constant:
    """Return the value of a CASE. Numbers get the common type of all its results.

    Raise NotConstant if a condition compares constants other than numbers, or a result is not constant.
    """
    subject = None if node.this is None else fold(node.this)
    results = [fold(one.args["true"]) for one in node.args["ifs"]]
    default = node.args.get("default")
    results.append(None if default is None else fold(default))
    chosen = results[-1]
    for one, result in zip(node.args["ifs"], results, strict=False):
        holds = (
            _evaluate_condition(one.this, fold) if node.this is None else _compare(subject, "=", fold(one.this), node)
        )
        if holds:
            chosen = result
            break
    if not isinstance(chosen, Number):
        return chosen
    return Number(chosen.value, all(one.is_integral for one in results if isinstance(one, Number)))


def _evaluate_condition(node: exp.Expr, fold: Fold) -> bool | None:
    node = strip_parentheses(node)
    if node.args.get("negate"):
        raise NotConstant(node)
    match node:
        case exp.Boolean():
            return bool(node.this)
        case exp.Not():
            held = _evaluate_condition(node.this, fold)
            return None if held is None else not held
        case exp.And() | exp.Or():
            sides = (_evaluate_condition(node.this, fold), _evaluate_condition(node.expression, fold))
            decides = isinstance(node, exp.Or)
            return decides if decides in sides else None if None in sides else not decides
        case exp.Is() if isinstance(node.expression, exp.Null):
            return fold(node.this) is None
        case exp.In() if node.args.get("query") is None and node.expressions:
            found = [_compare(fold(node.this), "=", fold(one), node) for one in node.expressions]
            return True if True in found else None if None in found else False
        case exp.Between():
            value = fold(node.this)
            ends = (
                _compare(value, ">=", fold(node.args["low"]), node),
                _compare(value, "<=", fold(node.args["high"]), node),
            )
            return False if False in ends else None if None in ends else True
        case _ if isinstance(node, _COMPARED):
            return _compare(fold(node.this), OPERATORS[type(node)], fold(node.expression), node)
        case _:
            raise NotConstant(node)


def _compare(left: Constant, operator: str, right: Constant, node: exp.Expr) -> bool | None:
    if left is None or right is None:
        return None
    if not isinstance(left, Number) or not isinstance(right, Number):
        raise NotConstant(node)
    return COMPARISONS[operator](left.value, right.value)
