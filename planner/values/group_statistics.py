"""Statistics of groups: the largest, the least, a quantile or the standard deviation of their sizes."""

from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from mechanisms.protocol import LARGEST, LEAST, Deviation, Quantile
from planner.errors import KeyholeError
from planner.parser.tree import find_position, write_short
from planner.values.constant import ConstantContext, NotConstant, Number
from planner.values.expressions import fold_constant

STATISTICS = (exp.Max, exp.Min, exp.WithinGroup, exp.Median, exp.Stddev, exp.StddevSamp, exp.StddevPop)
_PLAIN: Mapping[type[exp.Expr], Quantile | Deviation] = {
    exp.Max: LARGEST,
    exp.Min: LEAST,
    exp.Median: Quantile(Fraction(1, 2), interpolated=True),
    exp.Stddev: Deviation(is_sample=True),
    exp.StddevSamp: Deviation(is_sample=True),
    exp.StddevPop: Deviation(is_sample=False),
}


def find_read_argument(called: exp.Expr) -> exp.Expr | None:
    """Return what a function over groups reads of each of them. Return None if that is several expressions."""
    if not isinstance(called, exp.WithinGroup):
        argument: exp.Expr | None = called.this
        return argument
    ordered = called.expression.expressions
    if not isinstance(called.this, exp.PercentileCont | exp.PercentileDisc) or len(ordered) != 1:
        return None
    found: exp.Expr = ordered[0].this
    return found


def read_statistic(called: exp.Expr, constants: ConstantContext) -> Quantile | Deviation:
    """Return the statistic that a function of `STATISTICS` reads of groups. Raise KH204."""
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
