"""Statistics of groups: the largest, the least, a quantile or the standard deviation of their sizes."""

import re
from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from mechanisms.protocol import LARGEST, LEAST, Deviation, Quantile
from planner.errors import KeyholeError
from planner.parser.tree import find_position, strip_parentheses, write_node, write_short
from planner.values.constant import ConstantContext, NotConstant, Number
from planner.values.expressions import fold_constant

DEVIATIONS = (exp.Stddev, exp.StddevSamp, exp.StddevPop)
QUANTILES = (exp.WithinGroup, exp.Median)
SPREADS = (*DEVIATIONS, exp.Variance, exp.VariancePop)
STATISTICS = (exp.Max, exp.Min, exp.WithinGroup, exp.Median, *SPREADS)
_ITEM = re.compile(r"\[(\d+)\]$")
_PLAIN: Mapping[type[exp.Expr], Quantile | Deviation] = {
    exp.Max: LARGEST,
    exp.Min: LEAST,
    exp.Median: Quantile(Fraction(1, 2), interpolated=True),
    exp.Stddev: Deviation(is_sample=True),
    exp.StddevSamp: Deviation(is_sample=True),
    exp.StddevPop: Deviation(is_sample=False),
}


def find_read_argument(called: exp.Expr) -> exp.Expr | None:
    """Return the expression that a function over groups reads of each group. Return None if it reads several."""
    if not isinstance(called, exp.WithinGroup):
        argument: exp.Expr | None = called.this
        return argument
    ordered = called.expression.expressions
    if not isinstance(called.this, exp.PercentileCont | exp.PercentileDisc) or len(ordered) != 1:
        return None
    found: exp.Expr = ordered[0].this
    return found


def find_statistic_alone(node: exp.Expr) -> exp.Expr | None:
    """Return the statistic of groups that an expression means, or None.

    The root of their variance means their standard deviation. An item of an array of percentiles means that percentile.
    """
    inner = strip_parentheses(node.this) if isinstance(node, exp.Sqrt | exp.Bracket) else None
    if not isinstance(inner, exp.Window):
        return None
    called = strip_parentheses(inner.this)
    if isinstance(node, exp.Sqrt) and isinstance(called, exp.Variance | exp.VariancePop):
        kind = exp.StddevSamp if isinstance(called, exp.Variance) else exp.StddevPop
        return _replace_call(inner, kind(this=called.this.copy()))
    shares = strip_parentheses(called.this.this) if isinstance(called, exp.WithinGroup) else None
    place = _ITEM.search(write_node(node))  # the tree counts from 0 or 1, as the type is known or not
    if not isinstance(node, exp.Bracket) or not isinstance(shares, exp.Array) or place is None:
        return None
    if not 1 <= int(place[1]) <= len(shares.expressions):
        return None
    made = called.copy()
    made.this.set("this", shares.expressions[int(place[1]) - 1].copy())
    return _replace_call(inner, made)


def _replace_call(window: exp.Window, called: exp.Expr) -> exp.Expr:
    made = window.copy()
    made.set("this", called)
    return made


def read_statistic(called: exp.Expr, constants: ConstantContext) -> Quantile | Deviation:
    """Return the statistic that a function of `STATISTICS` reads of groups.

    Raise KH204 for arguments that Keyhole does not answer.
    """
    if isinstance(called, exp.Variance | exp.VariancePop):
        name = "stddev" if isinstance(called, exp.Variance) else "stddev_pop"
        raise KeyholeError(
            "KH204",
            f"{write_short(called)} of groups is a square, in another unit than the groups",
            hint=f"Compare with its root, the deviation: {name}({write_node(called.this)}) OVER ()",
            position=find_position(called),
        )
    return _read_quantile(called, constants) if isinstance(called, exp.WithinGroup) else _PLAIN[type(called)]


def _read_quantile(called: exp.WithinGroup, constants: ConstantContext) -> Quantile:
    try:
        value = fold_constant(called.this.this, constants)
    except NotConstant:
        value = None
    interpolated = isinstance(called.this, exp.PercentileCont)
    descending = bool(called.expression.expressions[0].args.get("desc"))
    if not isinstance(value, Number) or not 0 <= value.value <= 1 or (descending and not interpolated):
        raise KeyholeError(
            "KH204",
            f"{write_short(called)} is no percentile of groups that Keyhole reads",
            detail="The share is a constant from 0 to 1, and the order of percentile_disc is ascending.",
            hint="Write for example percentile_cont(0.5) WITHIN GROUP (ORDER BY n).",
            position=find_position(called),
        )
    return Quantile(1 - value.value if descending else value.value, interpolated)
