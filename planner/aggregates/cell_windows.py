"""Windows over groups: an aggregate of all groups together, or of earlier and later ones, beside a group's own.

`sum(sum(x)) OVER ()` is the total of all groups, `avg(count(*)) OVER (PARTITION BY region)` the mean of a region's,
`lag(sum(x)) OVER (ORDER BY month)` the month before, and with a frame of rows a moving sum or mean. PostgreSQL computes
them of the groups that have rows; here they are of all listed groups, of which those without rows count as 0.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import pairwise
from math import lcm, prod
from typing import TypeAlias

from sqlglot import exp

from mechanisms.protocol import Deviation
from planner.aggregates.aggregate import Aggregate, GroupScope
from planner.aggregates.having_refusals import refuse_missing_key, refuse_window
from planner.aggregates.row_expression import Arithmetic
from planner.catalog.catalog import Column, Value
from planner.errors import KeyholeError
from planner.parser.tree import contains_type, find_position, strip_parentheses, write_short
from planner.question.key_cells import OWN_GROUP_ALONE, KeyCells
from planner.question.question import Measure
from planner.scope.key_classes import write_identity
from planner.scope.name_resolution import find_column
from planner.values.constant import ConstantContext, NotConstant, Number
from planner.values.datetimes import truncate_to_unit
from planner.values.expressions import fold_constant
from planner.values.group_statistics import STATISTICS, find_read_argument, read_statistic
from planner.values.range_frames import CURRENT_ROW, RangeEdge, RangeFrame

_NEIGHBOURS: Mapping[type[exp.Expr], int] = {exp.Lag: -1, exp.Lead: 1}
_READ = (exp.Sum, exp.Avg, exp.FirstValue, exp.LastValue, exp.Lag, exp.Lead, *STATISTICS)
ADDED = (Measure.ROWS, Measure.TOTAL, Measure.UNITS)
"""Measures whose numbers of single groups are added up: a unit of several groups counts in each of them."""
MOST_TAKEN = 1 << 18
"""Places that all windows over one calendar take together: running totals over two years of days."""
_Places: TypeAlias = tuple[tuple[int, ...], ...]
_PERIODS: Mapping[str, Callable[[date], tuple[int, ...]]] = {
    "year": lambda day: (day.year,),
    "quarter": lambda day: (day.year, (day.month - 1) // 3),
    "month": lambda day: (day.year, day.month),
    "week": lambda day: day.isocalendar()[:2],
    "day": lambda day: (day.year, day.month, day.day),
}
_PARTS: Mapping[str, Callable[[date], tuple[int, ...]]] = {
    "year": _PERIODS["year"],
    "quarter": lambda day: ((day.month - 1) // 3,),
    "month": lambda day: (day.month,),
    "isodow": lambda day: (day.isoweekday(),),
    "dow": lambda day: (day.isoweekday() % 7,),
    "day": lambda day: (day.day,),
}


def reads_groups(node: exp.Expr) -> bool:
    """Return True for a sum, mean or neighbour of aggregates, whose rows are groups."""
    node = strip_parentheses(node)
    called = strip_parentheses(node.this)
    if not isinstance(node, exp.Window) or not isinstance(called, _READ):
        return False
    argument = find_read_argument(called)
    return argument is not None and contains_type(argument, exp.AggFunc)


def find_window_argument(node: exp.Window) -> exp.Expr:
    """Return the expression of groups that a window reads. Raise KH204 for a function without one."""
    called = strip_parentheses(node.this)
    argument = find_read_argument(called) if isinstance(called, _READ) else None
    if argument is None or isinstance(argument, exp.Distinct) or called.args.get("expressions"):
        raise refuse_window(node)
    return argument


def find_default(node: exp.Window) -> exp.Expr | None:
    """Return what lag or lead give where there is no group. Return None without it, or for the group's own argument."""
    called = strip_parentheses(node.this)
    default: exp.Expr | None = called.args.get("default") if type(called) in _NEIGHBOURS else None
    return None if default is None or _is_argument(default, called) else default


def _is_argument(default: exp.Expr, called: exp.Expr) -> bool:
    """Return True for `lag(n, 1, n)`, which is the group's own where there is no group before."""
    return strip_parentheses(default) == strip_parentheses(called.this)


def read_cells(node: exp.Window, within: GroupScope) -> tuple[KeyCells, Fraction]:
    """Return the groups that a window adds up, and what it multiplies their sum by. Raise KH204."""
    called, order = strip_parentheses(node.this), node.args.get("order")
    if node.args.get("alias") is not None or node.args.get("first") is not None:
        raise refuse_window(node)  # of the WINDOW clause
    window = _Partition(node, within)
    if order is None:
        if not isinstance(called, (exp.Sum, exp.Avg, *STATISTICS)) or node.args.get("spec") is not None:
            raise refuse_window(node)
        key, whole = window.calendar, window.rest
        taken: _Places = () if key is None else window.peers()
    else:
        taken, whole = _read_ordered(node, called, window, order, within)
        key = window.calendar
    if sum(map(len, taken)) > MOST_TAKEN:
        raise refuse_long_calendar(node)
    sizes = dict(within.values)
    groups = prod(len(sizes[name]) for name in whole)
    named = None if key is None else key.name
    if isinstance(called, STATISTICS):
        return _read_statistic(node, KeyCells(whole, named, taken), groups, within), Fraction(1)
    if not isinstance(called, exp.Avg):
        return KeyCells(whole, named, taken), Fraction(1)
    most = lcm(*(len(places) for places in taken if places)) if key is not None else 0
    return KeyCells(whole, named, taken, most), Fraction(1, max(1, groups) * max(1, most))


def _read_statistic(node: exp.Window, cells: KeyCells, groups: int, within: GroupScope) -> KeyCells:
    """Return cells with the statistic that a window reads of them. Raise KH204.

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
                f"{write_short(node)} is taken of one group alone",
                detail="The standard deviation of a sample of one has no value.",
                hint="Leave a key out of PARTITION BY, or use stddev_pop.",
                position=find_position(node),
            )
        # as in PostgreSQL, one group has none
        cells = replace(cells, taken=tuple(taken if groups * len(taken) > 1 else () for taken in cells.taken))
    return replace(cells, statistic=found)


def find_window_arithmetic(node: exp.Window) -> Arithmetic:
    """Return the least exact arithmetic that a window's result may have, whatever it reads."""
    called = strip_parentheses(node.this)
    if isinstance(called, exp.Median) or isinstance(called.this, exp.PercentileCont):
        return Arithmetic.FLOATING
    widens = isinstance(called, exp.Sum | exp.Avg | exp.Stddev | exp.StddevSamp | exp.StddevPop)
    return Arithmetic.EXACT if widens else Arithmetic.INTEGER


def place_aggregate(found: Aggregate, cells: KeyCells, factor: Fraction, text: str) -> Aggregate:
    """Return `factor` times an aggregate of a group as that of other groups. Raise KH204 if it is no sum over rows."""
    is_one = not cells.summed_keys and set(map(len, cells.taken)) <= {0, 1}
    is_mean = bool(found.divisor) and factor == 1 and is_one and cells.statistic is None
    if found.cells != OWN_GROUP_ALONE or (found.divisor and not is_mean) or found.measure not in ADDED:
        raise KeyholeError(
            "KH204",
            f"{text} adds up something other than sums and counts of rows",
            detail="A window over groups reads count(*), count(x), count(DISTINCT unit) or sum(x) of each group.",
            hint="Compare with a number, or with a sum or count of all groups.",
        )
    parts = tuple(part.multiply(factor) for part in found.parts)
    return replace(found, parts=parts, cells=cells, text=text, values=())


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
                self._take_expression(item)
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
        return dict(self._within.values)[self.calendar.name]

    def take_calendar(self, key: Column) -> None:
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

    def _take_expression(self, item: exp.Expr) -> None:
        """Part a key by an expression of it, such as its year. Raise KH204 for any other expression."""
        columns = {find_column(column, self._within.scope) for column in item.find_all(exp.Column)}
        key = columns.pop() if len(columns) == 1 else None
        if key is None or key not in self._within.keys or (self.calendar is not None and self.calendar != key):
            raise refuse_missing_key(self._node)
        self.calendar = key
        values = dict(self._within.values)[key.name]
        self._labels.append([_find_part(item, value, self._node) for value in values])


def _find_part(item: exp.Expr, value: Value, node: exp.Window) -> tuple[int, ...]:
    """Return the part of a time that an expression names, or the period in which it is. Raise KH204 for others."""
    item = strip_parentheses(item)
    read = item.expression if isinstance(item, exp.Extract) else item.this
    if not isinstance(strip_parentheses(read), exp.Column) or item.args.get("zone") is not None:
        raise refuse_missing_key(node)
    if isinstance(value, date) and isinstance(item, exp.Extract):
        named = str(item.this.name).lower()
        if named in _PARTS:
            return _PARTS[named](value)
    if isinstance(value, date) and isinstance(item, exp.TimestampTrunc):
        named = str(item.args["unit"].name).lower()
        if named in _PERIODS:
            return _PERIODS[named](value)
    raise refuse_missing_key(node)


def _find_key(item: exp.Expr, within: GroupScope) -> Column | None:
    """Return the key of the question that an expression is, by its name or as GROUP BY computes it."""
    column = find_column(strip_parentheses(item), within.scope)
    if column is not None:
        return column if column in within.keys else None
    identity = write_identity(item, within.scope)
    return next((key for key in within.keys if key.name == identity), None)


def _order_key(order: exp.Expr, node: exp.Window, within: GroupScope) -> tuple[Column, tuple[Value, ...], bool]:
    """Return the one key that a window is ordered by, what it compares of each value, and if it falls. Raise KH204."""
    items = order.expressions
    found = _find_ordered_key(items[0].this, within) if len(items) == 1 else None
    if found is None:
        raise refuse_missing_key(node)
    column, compared = found
    ordered = all(isinstance(value, int | date) and not isinstance(value, bool) for value in compared)
    # all values of one key have one type, which mypy cannot see
    if not ordered or not all(before < after for before, after in pairwise(compared)):  # type: ignore[operator]
        raise refuse_missing_key(node)
    return column, compared, bool(items[0].args.get("desc"))


def _find_ordered_key(item: exp.Expr, within: GroupScope) -> tuple[Column, tuple[Value, ...]] | None:
    """Return the key that an expression orders, and the expression of each of its values. Return None for others.

    A group of times has the first listed of them as its value, which need not be where its period starts.
    """
    item, values = strip_parentheses(item), dict(within.values)
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
    """Return the places that a window along a key takes, and the other keys that it adds up. Raise KH204."""
    key, compared, descending = _order_key(order, node, within)
    window.take_calendar(key)
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
    """Return the RANGE frames of the values of a calendar. Raise KH204."""
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
    """Return how far lag or lead looks. Raise KH204."""
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
