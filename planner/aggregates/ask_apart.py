"""Replacements for a comparison of two aggregates that no sum over rows decides: two separate thresholds.

| asked | asked instead, for a public `t` | |
|---|---|---|
| `max(x) - min(x) > c` | `max(x) > t + c AND min(x) <= t` | so is every `A > f(B)` with a rising `f` |
| `max(x) - min(x) < c` | `max(x) < t + c AND min(x) >= t` | |
| `max(x) / min(x) > c` | `max(x) > c * t AND min(x) <= t` | of a column whose values are above 0 |
| `stddev(x) / avg(x) > c` | `stddev(x) > c * t AND avg(x) < t` | |
| `count(*) / count(DISTINCT x) > c` | `count(*) > c * t AND count(DISTINCT x) <= t` | |

For every `t` the second column implies the first, except for the digits that a division of integers drops. Declared
bounds, key domains and WHERE alone choose `t`: both thresholds lie as far inside these bounds as possible.
"""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.aggregate import GroupScope, contains_aggregate
from planner.aggregates.having_refusals import write_parenthesised
from planner.aggregates.order_statistics import is_pick
from planner.aggregates.variance import is_variance
from planner.catalog.catalog import Column, SqlType
from planner.errors import KeyholeError
from planner.groups.ranges import find_number_range, find_time_range
from planner.parser.tree import contains_type, strip_parentheses, write_node
from planner.scope.name_resolution import find_column
from planner.values.constant import Constant, Interval, NotConstant, Number, Untyped, read_number
from planner.values.datetimes import read_interval
from planner.values.decimals import convert_to_decimal
from planner.values.expressions import fold_constant
from planner.values.operators import FLIPPED_OPERATORS, OPERATORS

_SHARE_OF_BOUNDS = 4  # measures are mostly small beside their bounds: a mean is a quarter of the upper one in hints
_SHARE_OF_VALUES = 10  # of a key's values that a group has in hints
_USUAL_VALUES = 30  # in a group of hints, where no list says how many there are: days of a month
_FEW_VALUES = 31  # of so many, and of all days, a group has rows of all: the months of a year
_ROUNDED_ABOVE = 20  # ranges that are wider have whole numbers inside that are near enough to every other
_TIMES = (SqlType.DATE, SqlType.TIMESTAMP)
_ASKED = (exp.GT, exp.GTE, exp.LT, exp.LTE)


def ask_separately(node: exp.Expr, within: GroupScope) -> str | None:
    """Return the text of a question with one threshold for each of two aggregates that the analyst compared.

    If both thresholds hold, the comparison holds. Return None for other comparisons, inside NOT, if no SELECT is
    known, and if public facts give no number.
    """
    select = node.find_ancestor(exp.Select)
    if select is None or not isinstance(node, _ASKED) or node.find_ancestor(exp.Not) or node.args.get("negate"):
        return None
    left, operator, right = node.this, OPERATORS[type(node)], node.expression
    if not contains_aggregate(left):
        left, operator, right = right, FLIPPED_OPERATORS[operator], left
    if contains_type(node, exp.Query):
        return None
    instead = _write_two_comparisons(strip_parentheses(left), operator, right, within)
    if instead is None:
        return None
    return f"Instead you can ask: {write_node(select).replace(write_node(node), instead, 1)};"


def _write_two_comparisons(left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope) -> str | None:
    length = _read_time_difference(left, operator, right, within)
    if length is not None:
        return length.write(within)
    two = _read_pair(left, operator, right, within)
    return None if two is None else two.write(within)


@dataclass(frozen=True, slots=True)
class _TimeDifference:
    """A comparison of a last and a first time: `last_time - first operator seconds`.

    `addend` is the duration as it is written. Unless it `is_exact`, whole days are compared. If it `is_of_dates`, these
    are a number.
    """

    last_time: exp.Expr
    first_time: exp.Expr
    operator: str
    seconds: Fraction
    addend: str
    is_exact: bool
    is_of_dates: bool = False

    def write(self, within: GroupScope) -> str | None:
        """Return the SQL of the two thresholds, with a day in the middle of the calendar.

        Return None if the calendar is not known, or too short.
        """
        column = _read_column(self.first_time, within)
        times = None if column is None else find_time_range(column, within.scope, within.where.list_conjuncts())
        if times is None or not 0 < self.seconds < Fraction((times.end - times.first).total_seconds()):
            return None
        free = times.end - times.first - timedelta(seconds=float(self.seconds))
        at = f"{'date' if self.is_of_dates else 'timestamp'} '{(times.first + free / 2).date().isoformat()}'"
        above = self.operator in (">", ">=")
        operators = (self.operator, "<=" if above else ">=")
        if not self.is_exact:  # the first is before the day, or the last
            operators = (">=", "<") if above else ("<", ">=")
        last, first = write_node(self.last_time), write_node(self.first_time)
        return f"{last} {operators[0]} {at} + {self.addend} AND {first} {operators[1]} {at}"


def _read_time_difference(left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope) -> _TimeDifference | None:
    """Read `max(t) - min(t)` compared with an interval. Days may be `max(t)::date - min(t)::date`, or its EXTRACT."""
    part, factor, difference = _read_part(left, within)
    if not isinstance(difference, exp.Sub):
        return None
    sides = [strip_parentheses(side) for side in (difference.this, difference.expression)]
    picks = [strip_parentheses(side.this) if _is_to_date(side) else side for side in sides]
    columns = [_read_column(pick, within) for pick in picks]
    if any(column is None or column.sql_type not in _TIMES for column in columns):
        return None
    value = _fold(right, within)
    if isinstance(value, Untyped):
        value = read_interval(value.text, right) if not part else read_number(value.text, right)
    of_dates = all(
        _is_to_date(side) or column.sql_type is SqlType.DATE
        for side, column in zip(sides, columns, strict=True)
        if column is not None
    )
    last, first = picks
    if isinstance(value, Number):
        if of_dates and not part:
            seconds, added = 86_400 * value.value, write_parenthesised(right)
            return _TimeDifference(last, first, operator, seconds, added, is_exact=False, is_of_dates=True)
        if part == "epoch":
            seconds = value.value * factor
            return _TimeDifference(last, first, operator, seconds, _write_interval(seconds), is_exact=True)
        if part == "day" and value.is_integral:
            days = (value.value + (operator in (">", "<="))) * factor
            return _TimeDifference(last, first, operator, 86_400 * days, _write_interval(86_400 * days), is_exact=False)
    if not isinstance(value, Interval) or part or any(map(_is_to_date, sides)):
        return None
    written = write_node(right) if contains_type(right, exp.Interval, exp.Cast) else f"interval {write_node(right)}"
    seconds = Fraction(value.microseconds, 1_000_000) + 86_400 * (value.days + 30 * value.months)
    return _TimeDifference(last, first, operator, seconds, written, is_exact=True)


def _read_part(node: exp.Expr, within: GroupScope) -> tuple[str, Fraction, exp.Expr]:
    """Return the part that is extracted from a duration, its divisor, and the duration."""
    factor = Fraction(1)
    if isinstance(node, exp.Div):
        value = _fold(node.expression, within)
        if isinstance(value, Number) and value.value > 0:
            factor, node = value.value, strip_parentheses(node.this)
    if isinstance(node, exp.Extract):
        part = node.this.name.lower()
        if part == "epoch" or (part == "day" and factor == 1):
            return part, factor, strip_parentheses(node.expression)
    return "", Fraction(1), node


def _is_to_date(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and bool(node.to.is_type("date"))


def _write_interval(seconds: Fraction) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds % length == 0:
            return f"interval '{seconds / length} {unit}'"
    return f"interval '{convert_to_decimal(seconds):f} seconds'"


@dataclass(frozen=True, slots=True)
class _AggregatePair:
    """A comparison of `first_aggregate` with `limit`, which rises with `second_aggregate` and depends on nothing else.

    If it `is_product`, the limit is a multiple of the second, whose values must not be below 0.
    """

    first_aggregate: exp.Expr
    operator: str
    limit: exp.Expr
    second_aggregate: exp.Expr
    is_product: bool

    def write(self, within: GroupScope) -> str | None:
        at = self._choose(within)
        if at is None:
            return None
        above = self.operator in (">", ">=")
        bound = "<=" if above else ">="
        if isinstance(_strip_filter(self.second_aggregate), exp.Avg):
            bound = bound[0]  # no mean of no values is below a number, nor above one
        limit = _write_limit_at(self.limit, self.second_aggregate, at)
        apart = f"{write_node(self.first_aggregate)} {self.operator} {limit}"
        distinct = isinstance(self.second_aggregate, exp.Count)
        if distinct and above and _is_all(self.second_aggregate, at, within):
            return apart
        return f"{apart} AND {write_node(self.second_aggregate)} {bound} {at}"

    def _choose(self, within: GroupScope) -> Decimal | None:
        """Return a number for the second aggregate from public facts alone."""
        limits = [_fold_at(self.limit, self.second_aggregate, Decimal(number), within) for number in (0, 1)]
        if None in limits or limits[0] is None or limits[1] is None or limits[1] <= limits[0]:
            return None
        if isinstance(self.second_aggregate, exp.Count):
            return Decimal(_count_values(self.second_aggregate, within))
        columns = [
            _read_column(_find_only_aggregate(one), within) for one in (self.first_aggregate, self.second_aggregate)
        ]
        ranges = [None if one is None else find_number_range(one, within.where.list_conjuncts()) for one in columns]
        if any(one is None or None in one for one in ranges):
            return None
        (low, high), (least, most) = ((Fraction(end or 0) for end in one or ()) for one in ranges)
        if self.is_product and low < 0:
            return None
        if is_variance(self.first_aggregate, within):
            return Decimal(int(high / _SHARE_OF_BOUNDS)) if low >= 0 and high >= _SHARE_OF_BOUNDS else None
        slope = limits[1] - limits[0]
        exact = (low + high - limits[0]) / (1 + slope)
        step = 1 if high - low > _ROUNDED_ABOVE else 100
        at = convert_to_decimal(Fraction(round(exact * step), step))
        limit = limits[0] + slope * Fraction(at)
        return at if least < Fraction(at) < most and low < limit < high else None


def _read_pair(left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope) -> _AggregatePair | None:
    """Read a comparison of two aggregates, one on each side of the operator.

    A quotient or difference is multiplied or moved out first. Return None for others.
    """
    while isinstance(left, exp.Mul | exp.Div) and not contains_aggregate(right):
        value = _fold(left.expression, within)
        if not isinstance(value, Number) or value.value <= 0 or not isinstance(left.this, exp.Paren | exp.Div):
            break
        said = _fold(right, within)
        said = read_number(said.text, right) if isinstance(said, Untyped) else said
        if not isinstance(said, Number):
            return None
        moved = said.value / value.value if isinstance(left, exp.Mul) else said.value * value.value
        left, right = strip_parentheses(left.this), exp.Literal.number(f"{convert_to_decimal(moved):f}")
    divides = isinstance(left, exp.Div) and contains_aggregate(left.expression)
    second, limit = right, right
    if divides or (isinstance(left, exp.Sub) and contains_aggregate(left.expression)):
        if contains_aggregate(right):
            return None
        kind = exp.Mul if divides else exp.Add
        second = left.expression
        while isinstance(second, exp.Paren | exp.Cast | exp.Nullif):
            second = second.this
        sides = (right, second) if divides else (second, right)
        limit = kind(this=_parenthesise(sides[0]), expression=_parenthesise(sides[1]))
        left = left.this
    aggregates = [_find_only_aggregate(one) for one in (left, second)]
    if aggregates[0] is None or aggregates[1] is None:
        return None
    first = strip_parentheses(left)
    while isinstance(first, exp.Cast):
        first = strip_parentheses(first.this)
    if not (_is_hard(first, within) or _is_hard(aggregates[1], within)) or not _is_linear(limit):
        return None
    if is_variance(aggregates[1], within):
        return None
    return _AggregatePair(first, operator, limit, aggregates[1], divides)


def _is_linear(limit: exp.Expr) -> bool:
    """Return True if an expression contains one aggregate and otherwise only `+ - * /`."""
    limit = strip_parentheses(limit)
    if isinstance(limit, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return all(_is_linear(side) for side in (limit.this, limit.expression))
    return not contains_aggregate(limit) or limit is _find_only_aggregate(limit)


def _is_hard(node: exp.Expr, within: GroupScope) -> bool:
    """Return True for an aggregate that is not a sum over rows."""
    counted = isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct)
    return counted or is_pick(node) or is_variance(node, within)


def _find_only_aggregate(node: exp.Expr) -> exp.Expr | None:
    """Return the one aggregate of an expression with its FILTER. Return None if it has several or none."""
    kinds = (exp.Filter, exp.WithinGroup, exp.AggFunc)
    found = [one for one in node.find_all(*kinds) if not one.find_ancestor(*kinds) or one is node]
    own = [one for one in found if not any(one is not other and _is_inside(one, other) for other in found)]
    return own[0] if len(own) == 1 else None


def _is_inside(node: exp.Expr, other: exp.Expr) -> bool:
    return any(one is node for one in other.walk())


def _strip_filter(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Filter) else node


def _read_column(node: exp.Expr | None, within: GroupScope) -> Column | None:
    """Return the column that an aggregate reads. Return None for an expression."""
    if node is None:
        return None
    inner = _strip_filter(strip_parentheses(node))
    if isinstance(inner, exp.WithinGroup):
        ordered = inner.expression.expressions
        return find_column(ordered[0].this, within.scope) if len(ordered) == 1 else None
    return find_column(inner.this, within.scope) if isinstance(inner.this, exp.Expr) else None


def _count_values(counted: exp.Expr, within: GroupScope) -> int:
    """Return the number of different values of a column that a group in a hint has."""
    listed = _list_values(counted, within)
    if not listed:
        return _USUAL_VALUES
    column = find_column(counted.this.expressions[0], within.scope)
    has_all = listed <= _FEW_VALUES or (column is not None and column.sql_type is SqlType.DATE)
    return listed if has_all else listed // _SHARE_OF_VALUES


def _is_all(counted: exp.Expr, at: Decimal, within: GroupScope) -> bool:
    return _list_values(counted, within) == at


def _list_values(counted: exp.Expr, within: GroupScope) -> int:
    items = counted.this.expressions
    column = find_column(items[0], within.scope) if len(items) == 1 else None
    return 0 if column is None or column.domain is None else len(column.domain)


def _write_limit_at(limit: exp.Expr, second: exp.Expr, at: Decimal) -> str:
    """Return the limit as SQL text, with a number in place of the aggregate."""
    return write_node(_substitute(limit, second, at))


def _substitute(limit: exp.Expr, second: exp.Expr, at: Decimal) -> exp.Expr:
    written = write_node(second)

    def replace_side(node: exp.Expr) -> exp.Expr:
        return exp.Literal.number(f"{at:f}") if type(node) is type(second) and write_node(node) == written else node

    made: exp.Expr = exp.Paren(this=limit.copy()).transform(replace_side).this
    return made


def _fold_at(limit: exp.Expr, second: exp.Expr, at: Decimal, within: GroupScope) -> Fraction | None:
    value = _fold(_substitute(limit, second, at), within)
    return value.value if isinstance(value, Number) else None


def _fold(node: exp.Expr, within: GroupScope) -> Constant | None:
    try:
        return fold_constant(node, within.constants)
    except (NotConstant, KeyholeError):
        return None


def _parenthesise(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy()) if isinstance(node, exp.Binary) else node.copy()
