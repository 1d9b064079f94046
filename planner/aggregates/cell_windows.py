"""Windows over groups: an aggregate of all groups together, or of earlier and later ones, beside a group's own.

`sum(sum(x)) OVER ()` is the total of all groups, `avg(count(*)) OVER (PARTITION BY region)` the mean of a region's,
`lag(sum(x)) OVER (ORDER BY month)` the month before, and with a frame of rows a moving sum or mean. PostgreSQL computes
them of the groups that have rows; here they are of all listed groups, of which those without rows count as 0.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import pairwise
from math import lcm, prod
from typing import TypeAlias

from sqlglot import exp

from mechanisms.protocol import Deviation, Quantile
from planner.aggregates.aggregate import Aggregate, GroupScope, read_aggregate
from planner.aggregates.having_refusals import (
    refuse_extreme,
    refuse_missing_key,
    refuse_variance_argument,
    refuse_window,
)
from planner.aggregates.row_expression import Arithmetic, read_row_expression
from planner.catalog.catalog import Column, Value
from planner.errors import KeyholeError
from planner.groups.ordered_parts import compute_parts
from planner.parser.tree import contains_type, find_position, strip_parentheses, write_node, write_short
from planner.question.condition import ALWAYS
from planner.question.key_cells import KeyCells
from planner.scope.key_classes import write_identity
from planner.scope.name_resolution import find_column
from planner.values.constant import ConstantContext, NotConstant, Number
from planner.values.datetimes import truncate_to_unit
from planner.values.expressions import fold_constant
from planner.values.group_statistics import (
    DEVIATIONS,
    QUANTILES,
    SPREADS,
    STATISTICS,
    find_read_argument,
    read_statistic,
)
from planner.values.range_frames import CURRENT_ROW, RangeEdge, RangeFrame

_NEIGHBOURS: Mapping[type[exp.Expr], int] = {exp.Lag: -1, exp.Lead: 1}
_READ = (exp.Sum, exp.Avg, exp.FirstValue, exp.LastValue, exp.Lag, exp.Lead, *STATISTICS)
MOST_TAKEN = 1 << 18
"""Places that all windows over one calendar take together: running totals over two years of days."""
_Places: TypeAlias = tuple[tuple[int, ...], ...]
_PERIODS = ("year", "quarter", "month", "week", "day")


def reads_groups(node: exp.Expr) -> bool:
    """Return True for a sum, mean or neighbour of aggregates, whose rows are groups."""
    node = strip_parentheses(node)
    if counts_units(node):
        return True
    called = strip_parentheses(node.this)
    if not isinstance(node, exp.Window) or not isinstance(called, _READ):
        return False
    argument = find_read_argument(called)
    return argument is not None and contains_type(argument, exp.AggFunc)


def counts_units(node: exp.Expr) -> bool:
    """Return True for `count(DISTINCT unit) OVER ()`, which counts the units of several groups.

    PostgreSQL has no such window.
    """
    called = node.this.this if isinstance(node, exp.Window) and isinstance(node.this, exp.Filter) else node.this
    return isinstance(node, exp.Window) and isinstance(called, exp.Count) and isinstance(called.this, exp.Distinct)


def find_rows_read(node: exp.Window) -> exp.Expr | None:
    """Return the expression of rows that a window reads.

    For `stddev(array_agg(x)) OVER ()` it is `x`, with its FILTER, and for a quantile that of
    `percentile_cont(0.5) WITHIN GROUP (ORDER BY array_agg(x)) OVER ()`. Scalar subqueries over rows are rewritten to
    this form, which PostgreSQL does not have. Return None for other windows.
    """
    called = strip_parentheses(node.this)
    read = find_read_argument(called) if isinstance(called, (*DEVIATIONS, *QUANTILES)) else None
    if read is None:
        return None
    argument = strip_parentheses(read)
    collected = argument.this if isinstance(argument, exp.Filter) else argument
    return argument if isinstance(collected, exp.ArrayAgg) else None


def read_rows(node: exp.Window, within: GroupScope) -> Aggregate:
    """Return the standard deviation or a quantile of the rows of groups.

    Raise KH204, KH209, and the refusals of its FILTER.
    """
    called, argument = strip_parentheses(node.this), find_rows_read(node)
    assert argument is not None
    filtered = isinstance(argument, exp.Filter)

    def write_call(kind: type[exp.Expr]) -> exp.Expr:
        made: exp.Expr = kind(this=value.copy())
        return exp.Filter(this=made, expression=argument.expression.copy()) if filtered else made

    value = strip_parentheses(argument.this.this if filtered else argument.this)
    added_up, shown, mean = node.copy(), _show_rows(node, argument, value), node.copy()
    added_up.set("this", exp.Sum(this=write_call(exp.Avg)))
    mean.set("this", write_call(exp.Avg))
    found, (cells, _) = read_aggregate(write_call(exp.Avg), within), read_cells(added_up, within)
    scaled = [part for part in found.summands if part.power]
    if [part.power for part in scaled] != [1] or any(
        (part.column, part.condition) != (scaled[0].column, scaled[0].condition) for part in found.summands
    ):
        raise refuse_variance_argument(shown)
    statistic = read_statistic(called, within.constants)
    if isinstance(statistic, Quantile) and statistic.share in (0, 1):
        raise refuse_extreme(shown)
    if isinstance(called, exp.Median) or isinstance(called.this, exp.PercentileCont):
        found = replace(found, arithmetic=Arithmetic.FLOATING)
    elif isinstance(statistic, Quantile):  # has the type of its rows
        read = read_row_expression(value, within.scope, within.constants, where=within.where, among=ALWAYS)
        found = replace(found, arithmetic=read.arithmetic)
    return replace(
        found,
        function="stddev" if isinstance(statistic, Deviation) else "quantile",
        cells=cells,
        row_statistic=statistic,
        text=write_node(shown),
        mean_text=write_mean_of_rows(write_node(mean)),
        required_values=(),
    )


def _show_rows(node: exp.Window, argument: exp.Expr, value: exp.Expr) -> exp.Expr:
    """Return a window over rows without the function by which scalar subqueries write it."""
    shown = node.copy()
    collected = shown.find(exp.ArrayAgg)
    assert collected is not None
    whole = collected.parent if isinstance(collected.parent, exp.Filter) else collected
    whole.replace(value.copy())
    if isinstance(argument, exp.Filter):
        shown.this.replace(exp.Filter(this=shown.this.copy(), expression=argument.expression.copy()))
    return shown


def write_mean_of_rows(deviation: str) -> str:
    """Return the SQL of the mean over the rows of a deviation, in the form that scalar subqueries use.

    >>> write_mean_of_rows("stddev(x) FILTER(WHERE (g)) OVER ()")
    'sum(sum(x) FILTER(WHERE (g))) OVER () / sum(count(x) FILTER(WHERE (g))) OVER ()'
    """
    called, over, groups = deviation.rpartition(" OVER (")
    function, filtered, condition = called.partition(" FILTER")
    rows = f"{function[function.index('(') :]}{filtered}{condition}"
    return f"sum(sum{rows}){over}{groups} / sum(count{rows}){over}{groups}"


def reads_other_groups(node: exp.Expr) -> bool:
    """Return True for arithmetic that contains a sum, mean or neighbour of aggregates of other groups."""
    return any(map(reads_groups, node.find_all(exp.Window)))


def is_mean_of_groups(node: exp.Window) -> bool:
    """Return True for `avg(x) OVER (...)`."""
    return isinstance(strip_parentheses(node.this), exp.Avg)


def find_window_argument(node: exp.Window) -> exp.Expr:
    """Return the expression of groups that a window reads. Raise KH204 for a function without one."""
    if counts_units(node):
        counted: exp.Expr = node.this
        return counted
    called = strip_parentheses(node.this)
    argument = find_read_argument(called) if isinstance(called, _READ) else None
    if argument is None or isinstance(argument, exp.Distinct) or called.args.get("expressions"):
        raise refuse_window(node)
    return argument


def find_default(node: exp.Window) -> exp.Expr | None:
    """Return the third argument of `lag` or `lead`: the value if the other group does not exist.

    Return None if there is no third argument, or if it repeats the first one, as in `lag(n, 1, n)`.
    """
    called = strip_parentheses(node.this)
    default: exp.Expr | None = called.args.get("default") if type(called) in _NEIGHBOURS else None
    return None if default is None or _is_argument(default, called) else default


def _is_argument(default: exp.Expr, called: exp.Expr) -> bool:
    """Return True for `lag(n, 1, n)`, which is the group's own where there is no group before."""
    return strip_parentheses(default) == strip_parentheses(called.this)


def read_cells(node: exp.Window, within: GroupScope) -> tuple[KeyCells, Fraction]:
    """Return the groups whose sums a window adds up, and the factor of that total.

    Raise KH204 for a window that Keyhole cannot read.
    """
    called, order = strip_parentheses(node.this), node.args.get("order")
    if node.args.get("alias") is not None or node.args.get("first") is not None:
        raise refuse_window(node)  # of the WINDOW clause
    window = _Partition(node, within)
    if order is None:
        of_groups = isinstance(called, (exp.Sum, exp.Avg, *STATISTICS)) or counts_units(node)
        if not of_groups or node.args.get("spec") is not None:
            raise refuse_window(node)
        key, whole = window.calendar, window.rest
        taken: _Places = () if key is None else window.peers()
    else:
        taken, whole = _read_ordered(node, called, window, order, within)
        key = window.calendar
    if sum(map(len, taken)) > MOST_TAKEN:
        raise refuse_long_calendar(node)
    sizes = dict(within.key_values)
    groups = prod(len(sizes[name]) for name in whole)
    named = None if key is None else key.name
    if isinstance(called, STATISTICS):
        return _read_statistic(node, KeyCells(whole, named, taken), groups, within), Fraction(1)
    if not isinstance(called, exp.Avg):
        return KeyCells(whole, named, taken), Fraction(1)
    most = lcm(*(len(places) for places in taken if places)) if key is not None else 0
    return KeyCells(whole, named, taken, most), Fraction(1, max(1, groups) * max(1, most))


def _read_statistic(node: exp.Window, cells: KeyCells, groups: int, within: GroupScope) -> KeyCells:
    """Return cells with the statistic that a window reads of them. Raise KH204 if Keyhole does not support the window.

    Parameters:
        groups: the number of groups at each place of a calendar.
    """
    called = strip_parentheses(node.this)
    found = read_statistic(called, within.constants)
    if isinstance(called, exp.WithinGroup | exp.Median) and node.args.get("order") is not None:
        raise refuse_window(node)
    if isinstance(found, Deviation) and found.is_sample:
        if cells.key is None and groups < 2:
            raise KeyholeError(
                "KH204",
                f"{write_short(node)} is taken over one group only",
                detail="The standard deviation of a sample of one has no value.",
                hint="Leave a key out of PARTITION BY, or use stddev_pop.",
                position=find_position(node),
            )
        # as in PostgreSQL, one group has none
        cells = replace(
            cells, used_places=tuple(taken if groups * len(taken) > 1 else () for taken in cells.used_places)
        )
    return replace(cells, statistic=found)


def find_window_arithmetic(node: exp.Window) -> Arithmetic:
    """Return the least exact arithmetic (integer, numeric or double) that a window's result may have."""
    called = strip_parentheses(node.this)
    if isinstance(called, exp.Median) or isinstance(called.this, exp.PercentileCont):
        return Arithmetic.FLOATING
    widens = isinstance(called, (exp.Sum, exp.Avg, *SPREADS))
    return Arithmetic.EXACT if widens else Arithmetic.INTEGER


class _Partition:
    """The groups among which a window runs: those alike in some keys, and in expressions of one further key."""

    def __init__(self, node: exp.Window, within: GroupScope) -> None:
        self._node, self._within = node, within
        self.calendar: Column | None = None
        self._labels: list[Sequence[object]] = []
        fixed: set[str] = set()
        for item in node.args.get("partition_by") or ():
            column = _find_key(item, within)
            if column is not None:
                fixed.add(column.name)
            else:
                self._add_expression(item)
        if self.calendar is not None and self.calendar.name in fixed:
            self.calendar, self._labels = None, []
        named = "" if self.calendar is None else self.calendar.name
        self.rest = tuple(column.name for column in within.keys if column.name not in fixed and column.name != named)
        if not self.rest and self.calendar is None:
            raise refuse_window(node)

    @property
    def given(self) -> ConstantContext:
        """The question's parameters and constants."""
        return self._within.constants

    def list_values(self) -> tuple[Value, ...]:
        """Return the values of the calendar."""
        assert self.calendar is not None
        return dict(self._within.key_values)[self.calendar.name]

    def add_calendar(self, key: Column) -> None:
        """Run along a key. Raise KH204 if the partition already runs along another."""
        if self.calendar is not None and self.calendar != key:
            raise refuse_window(self._node)
        if self.calendar is None:
            self.calendar = key
            self.rest = tuple(name for name in self.rest if name != key.name)

    def peers(self) -> _Places:
        """Return, by the place of a value of the calendar, the places of the values in the same part, in order."""
        count = len(self.list_values())
        parts = list(zip(*self._labels, strict=True)) if self._labels else [()] * count
        found: dict[tuple[object, ...], list[int]] = {}
        for place, part in enumerate(parts):
            found.setdefault(part, []).append(place)
        made = {part: tuple(places) for part, places in found.items()}  # of which every value of a part has the same
        return tuple(made[part] for part in parts)

    def _add_expression(self, item: exp.Expr) -> None:
        """Part a key by an expression of it, such as its year. Raise KH204 for any other expression."""
        values = dict(self._within.key_values)
        found = compute_parts([item], self._within.keys, values, self._within.scope, in_order=False)
        if found is None or (self.calendar is not None and self.calendar != found[0]):
            raise refuse_missing_key(self._node)
        self.calendar = found[0]
        self._labels.append(found[1])


def _find_key(item: exp.Expr, within: GroupScope) -> Column | None:
    """Return the key of the question that an expression is, by its name or as GROUP BY computes it."""
    item = _strip_time_casts(item)
    column = find_column(item, within.scope)
    if column is not None:
        return column if column in within.keys else None
    identity = write_identity(item, within.scope)
    return next((key for key in within.keys if key.name == identity), None)


def _strip_time_casts(item: exp.Expr) -> exp.Expr:
    """Return an expression without parentheses and casts of times to timestamps, which keep their order."""
    item = strip_parentheses(item)
    stamps = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ)
    while isinstance(item, exp.Cast) and item.to.this in stamps and not item.to.expressions:
        item = strip_parentheses(item.this)
    return item


def _order_key(order: exp.Expr, node: exp.Window, within: GroupScope) -> tuple[Column, tuple[Value, ...], bool]:
    """Return the one key that a window is ordered by, what it compares of each value, and if it falls.

    Raise KH204 if Keyhole does not support the window.
    """
    items = order.expressions
    falls = {bool(item.args.get("desc")) for item in items}
    found = _find_ordered_key(items[0].this, within) if len(items) == 1 else None
    if found is None and len(falls) == 1:
        found = _order_by_parts([item.this for item in items], node, within)
    if found is None:
        raise refuse_missing_key(node)
    column, compared = found
    if not all(isinstance(value, int | date) and not isinstance(value, bool) for value in compared):
        raise refuse_missing_key(node)
    return column, compared, falls == {True}


def _order_by_parts(
    items: Sequence[exp.Expr], node: exp.Window, within: GroupScope
) -> tuple[Column, tuple[Value, ...]] | None:
    """Return the key that expressions order, such as year and month, and what they compare. Return None for others.

    Several expressions and texts are compared by their places in order, so that no RANGE can measure them.
    """
    found = compute_parts(
        [_strip_time_casts(item) for item in items],
        within.keys,
        dict(within.key_values),
        within.scope,
        in_order=True,
    )
    if found is None:
        return None
    key, parts = found
    if len(items) == 1 and all(isinstance(one, int | Fraction) and one == int(one) for (one,) in parts):
        return key, tuple(int(one) for (one,) in parts if isinstance(one, int | Fraction))
    spec = node.args.get("spec")
    if spec is not None and str(spec.args.get("kind") or "").upper() == "RANGE":
        return None
    places = {part: place for place, part in enumerate(sorted(set(parts)))}
    return key, tuple(places[part] for part in parts)


def _find_ordered_key(item: exp.Expr, within: GroupScope) -> tuple[Column, tuple[Value, ...]] | None:
    """Return the key that an expression orders, and the expression of each of its values. Return None for others.

    A group of times has the first listed of them as its value, which need not be where its period starts.
    """
    item, values = _strip_time_casts(item), dict(within.key_values)
    column = find_column(item, within.scope)
    if column is not None:
        return (column, values[column.name]) if column in within.keys else None
    called = strip_parentheses(item.this) if isinstance(item, exp.Cast) and item.to.this == exp.DType.DATE else item
    unit = _find_period(called) if called is item or isinstance(called, exp.TimestampTrunc) else ""
    read = strip_parentheses(called.expression if isinstance(called, exp.Extract) else called.this)
    if not unit or not isinstance(read, exp.Column):
        return None
    base = find_column(read, within.scope)
    key = _find_key(item, within) or (base if base in within.keys else None)
    times = () if key is None else values[key.name]
    if key is None or not all(isinstance(time, date) for time in times):
        return None
    starts = [truncate_to_unit(time, unit) for time in times if isinstance(time, date)]
    return key, tuple(start.year if isinstance(item, exp.Extract) else start for start in starts)


def _find_period(item: exp.Expr) -> str:
    """Return the period of which an expression tells which one it is. Return an empty text for others."""
    if item.args.get("zone") is not None:
        return ""
    if isinstance(item, exp.Extract):
        return "year" if str(item.this.name).lower() == "year" else ""
    named = str(item.args["unit"].name).lower() if isinstance(item, exp.TimestampTrunc) else ""
    return named if named in _PERIODS else ""


def _read_ordered(
    node: exp.Window, called: exp.Expr, window: _Partition, order: exp.Expr, within: GroupScope
) -> tuple[_Places, tuple[str, ...]]:
    """Return the places that a window along a key takes, and the other keys that it adds up.

    Raise KH204 if Keyhole does not support the window.
    """
    key, compared, descending = _order_key(order, node, within)
    window.add_calendar(key)
    parts = set(window.peers())
    # all values of one key have one type, which mypy cannot see
    if not all(compared[one] < compared[other] for part in parts for one, other in pairwise(part)):  # type: ignore[operator]
        raise refuse_missing_key(node)
    spec = node.args.get("spec")
    ranged = spec if spec is not None and str(spec.args.get("kind") or "").upper() == "RANGE" else None
    is_one_row = type(called) in _NEIGHBOURS or isinstance(called, exp.FirstValue | exp.LastValue)
    if window.rest and (is_one_row or spec is not ranged):
        raise KeyholeError(
            "KH204",
            f"{write_short(node)} runs over groups of several keys in the order of one",
            detail="Several groups are equal in that order, so the next group is not certain.",
            hint=f"Write PARTITION BY {', '.join(window.rest)} before ORDER BY {key.name}.",
            position=find_position(node),
        )
    ranges = None if ranged is None else _read_range(ranged, node, window, compared, descending=descending)
    frames: list[tuple[int, ...]] = []
    left = MOST_TAKEN
    for own, peers in enumerate(window.peers()):
        line = peers[::-1] if descending else peers
        at = bisect_left(peers, own)
        at = len(line) - 1 - at if descending else at
        if type(called) in _NEIGHBOURS:  # of which PostgreSQL reads no frame
            beside = at + _NEIGHBOURS[type(called)] * _read_offset(called, node, window)
            default = called.args.get("default")
            edge = (own,) if default is not None and _is_argument(default, called) else ()
            frames.append((line[beside],) if 0 <= beside < len(line) else edge)
            continue
        if ranges is None:
            first, past = _read_frame(spec, at, len(line), node, window)
        else:
            first, past = ranges.find_places(own, line)
        taken = line[max(0, first) : max(0, past)]
        if isinstance(called, exp.FirstValue | exp.LastValue):
            taken = taken[:1] if isinstance(called, exp.FirstValue) else taken[-1:]
        left -= len(taken)
        if left < 0:
            raise refuse_long_calendar(node)
        frames.append(tuple(sorted(taken)))
    return tuple(frames), window.rest


def _read_range(
    spec: exp.Expr, node: exp.Window, window: _Partition, compared: Sequence[Value], *, descending: bool
) -> RangeFrame:
    """Return the RANGE frames of the values of a calendar. Raise KH204 if Keyhole does not support the window."""
    if spec.args.get("exclude"):
        raise refuse_window(node)
    start = _read_range_edge(spec.args.get("start"), spec.args.get("start_side"), node, window)
    end = _read_range_edge(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"), node, window)
    try:
        return RangeFrame(compared, start, end, descending=descending)
    except ValueError:
        raise refuse_window(node) from None


def _read_range_edge(edge: object, side: object, node: exp.Window, window: _Partition) -> RangeEdge:
    if str(edge).upper() == "CURRENT ROW":
        return CURRENT_ROW
    try:
        distance = fold_constant(edge, window.given) if isinstance(edge, exp.Expr) else None
    except NotConstant:
        raise refuse_window(node) from None
    if distance is None and isinstance(edge, exp.Expr):
        raise refuse_window(node)  # NULL, which PostgreSQL takes for no distance
    return RangeEdge(str(side or "").upper() == "FOLLOWING", distance)


def _read_frame(spec: exp.Expr | None, at: int, length: int, node: exp.Window, window: _Partition) -> tuple[int, int]:
    """Return the first place of a frame and the place past its last. Without one it ends at the row itself."""
    if spec is None:
        return 0, at + 1
    if str(spec.args.get("kind") or "").upper() not in ("ROWS", "GROUPS") or spec.args.get("exclude"):
        raise refuse_window(node)
    start = _read_edge(spec.args.get("start"), spec.args.get("start_side"), at, length, node, window)
    end = _read_edge(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"), at, length, node, window)
    return start, end + 1


def _read_edge(edge: object, side: object, at: int, length: int, node: exp.Window, window: _Partition) -> int:
    sign = 1 if str(side or "").upper() == "FOLLOWING" else -1
    if isinstance(edge, exp.Expr):
        rows = _read_frame_offset(edge, node, window)
        if rows < 0:
            raise refuse_window(node)
        return at + sign * rows
    return at if str(edge).upper() == "CURRENT ROW" else (length - 1 if sign > 0 else 0)


def _read_offset(called: exp.Expr, node: exp.Window, window: _Partition) -> int:
    """Return how far lag or lead looks. Raise KH204 if Keyhole does not support the window."""
    offset = called.args.get("offset")
    return 1 if offset is None else _read_frame_offset(offset, node, window)


def _read_frame_offset(node: exp.Expr, around: exp.Window, window: _Partition) -> int:
    try:
        number = fold_constant(node, window.given)
    except NotConstant:
        raise refuse_window(around) from None
    if not isinstance(number, Number) or number.value.denominator != 1 or abs(number.value) >= 2**31:
        raise refuse_window(around)
    return int(number.value)


def refuse_long_calendar(node: exp.Window) -> KeyholeError:
    """Return KH204 for windows that take very many groups of a calendar."""
    return KeyholeError(
        "KH204",
        f"{write_short(node)} runs over a calendar that is too long",
        detail=f"The windows of all groups together take at most {MOST_TAKEN:,} groups.",
        hint="Ask about fewer values of the key, or write a frame of fewer ROWS.",
        position=find_position(node),
    )
