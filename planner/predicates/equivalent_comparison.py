"""Comparisons of a time of day, of whole years of age and of a text's first field, by others that decide every row
alike: of an hour and a minute, of a year, month and day, and of how a text begins."""

import re

from sqlglot import exp

from planner.catalog.model import SqlType
from planner.parser.tree import bare
from planner.predicates.row_scope import RowScope
from planner.scope.names import find_column
from planner.values.model import NotConstant, Number, Untyped
from planner.values.operators import FLIPPED

_MINUTE = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::00(?:\.0+)?)?", re.ASCII)
_MOST_YEARS = 200  # of an age; a longer one might begin before our era, which has no year 0
_Compared = tuple[exp.Expr, str, exp.Expr]


def rewrite_comparison(left: exp.Expr, operator: str, right: exp.Expr, within: RowScope) -> _Compared:
    """Return the comparison that decides every row alike, or the same one.

    `x::time` is compared by `>=` or `<` with a whole minute, which seconds do not change. `age` with a date has the
    whole years that lie between the days, whatever the time of the later one.
    """
    for one, compared, other in ((left, operator, right), (right, FLIPPED[operator], left)):
        found = _in_minutes(bare(one), compared, bare(other)) or _in_days(bare(one), compared, bare(other), within)
        if found is not None:
            return found
    return left, operator, right


def first_field(left: exp.Expr, right: exp.Expr, within: RowScope) -> tuple[exp.EQ, exp.StartsWith] | None:
    """Return the two conditions of which one holds where `split_part(x, '-', 1)` is a text: x is that, or begins with
    it and the delimiter. None for other expressions, and where the text has the delimiter."""
    for one, other in ((left, right), (right, left)):
        if not isinstance(one, exp.SplitPart):
            continue
        texts = [_text(node, within) for node in (other, one.args["delimiter"])]
        wanted, delimiter = texts
        if wanted is None or delimiter is None or len(delimiter) != 1 or delimiter in wanted:
            return None
        if bare(one.args["part_index"]) != exp.Literal.number(1):
            return None
        begins = exp.Literal.string(wanted + delimiter)
        whole = exp.EQ(this=one.this.copy(), expression=exp.Literal.string(wanted))
        return whole, exp.StartsWith(this=one.this.copy(), expression=begins)
    return None


def _text(node: exp.Expr, within: RowScope) -> str | None:
    """The text that a constant is, None for others."""
    if not within.is_constant(node):
        return None
    value = within.constant(node)
    return value.text if isinstance(value, Untyped) else value if isinstance(value, str) else None


def _in_minutes(moment: exp.Expr, operator: str, at: exp.Expr) -> _Compared | None:
    if not isinstance(moment, exp.Cast) or not _is_time(moment) or operator not in (">=", "<"):
        return None
    written = bare(at.this) if isinstance(at, exp.Cast) and _is_time(at) else at
    found = _MINUTE.fullmatch(written.this) if isinstance(written, exp.Literal) and written.is_string else None
    if found is None or isinstance(bare(moment.this), exp.Literal):
        return None
    hour, minute = int(found[1]), int(found[2])
    if not minute:
        return _part("HOUR", moment.this), operator, exp.Literal.number(hour)
    return _count(moment.this, HOUR=60, MINUTE=1), operator, exp.Literal.number(60 * hour + minute)


def _is_time(node: exp.Cast) -> bool:
    return node.to.this == exp.DType.TIME and not node.to.expressions


def _in_days(years: exp.Expr, operator: str, at: exp.Expr, within: RowScope) -> _Compared | None:
    """`extract(year FROM age(x, y)) >= 18` as `x >= y + 18 years` would be if each day had an anniversary."""
    if not isinstance(years, exp.Extract) or years.this.name.upper() not in ("YEAR", "YEARS"):
        return None
    age = bare(years.expression)
    if not isinstance(age, exp.Anonymous) or age.name.lower() != "age" or len(age.expressions) != 2:
        return None
    later, earlier = age.expressions
    column = find_column(earlier, within.scope)
    try:
        number = within.constant(at) if within.is_constant(at) else None
    except NotConstant:
        return None
    if column is None or column.sql_type is not SqlType.DATE or not isinstance(number, Number):
        return None
    if operator not in (">", ">=", "<", "<=") or not number.integral:
        return None
    least = int(number.value) + (operator in (">", "<="))
    if not 1 <= least <= _MOST_YEARS:
        return None
    days = {"YEAR": 10_000, "MONTH": 100, "DAY": 1}
    since = _count(earlier, **days) + exp.Literal.number(10_000 * least)
    return _count(later, **days), ">=" if operator in (">", ">=") else "<", since


def _part(part: str, moment: exp.Expr) -> exp.Extract:
    return exp.Extract(this=exp.var(part), expression=moment.copy())


def _count(moment: exp.Expr, **units: int) -> exp.Expr:
    """The sum of parts of a moment, each so many times."""
    summed: exp.Expr | None = None
    for part, unit in units.items():
        found: exp.Expr = _part(part, moment)
        found = found if unit == 1 else exp.Mul(this=found, expression=exp.Literal.number(unit))
        summed = found if summed is None else exp.Add(this=summed, expression=found)
    assert summed is not None
    return summed
