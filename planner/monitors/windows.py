"""The windows of a monitor's horizon and their looks. All of it follows from the policy and is public.

Guarantee: overlapping windows are never looked at during the same time. A hopping window is looked at during its last
hop. A sliding one is watched in epochs of its own length.
"""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import pairwise

from mechanisms.alarm.calibration import MOST_LOOKS
from mechanisms.alarm.prices import WatchedWindow
from planner.catalog.catalog import Column, Computed, Derivation, Lookup, MergedKeys, SqlType, Table, Value, ValueGroups
from planner.catalog.derived_columns import find_calendar_step
from planner.catalog.monitor import Monitor
from planner.monitors.monitor_plan import WindowPlan
from planner.monitors.monitor_question_refusals import refuse_windows
from planner.policy.durations import find_nearest_divisor, write_duration
from planner.question.question import Question

MOST_WINDOWS = 1_000_000
"""The most windows of a horizon: one a minute for almost two years."""

_TRUNCATED = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
_KEY = 'key = { range = ["2026-01-01", "2026-12-31"], step = "1 day" }'


@dataclass(frozen=True, slots=True)
class Horizon:
    """The windows that a monitor watches.

    `values` has the value of the windows' key for each window, in order: the source's own values if the key is a column
    of the source, else the beginnings. `period` is the time from a window's beginning to the next one. `look_period`
    is the time before a window's end during which there are looks. If alerts are cleared at once, there is one window.
    Its looks are spread over the whole horizon, and each look sees the `length` before it.
    """

    column: str
    is_key: bool
    values: tuple[Value, ...]
    starts: tuple[datetime, ...]
    length: timedelta
    period: timedelta
    look_period: timedelta

    def plan_looks(self, monitor: Monitor, *, early: bool) -> WindowPlan:
        """Return the windows with their looks. Unless `early`, a window has one look, its close."""
        every = monitor.every if early else self.look_period
        before = max(timedelta(0), self.length - self.look_period)
        return WindowPlan(
            starts=self.starts,
            first_looks=tuple(start + before + every for start in self.starts),
            length=self.length,
            every=every,
            lateness=monitor.lateness,
            looks=self.look_period // every,
        )

    def count_in_looks(self, monitor: Monitor) -> WatchedWindow:
        """Return the windows' length and hop, counted in looks, from which prices are computed."""
        looks = self.length // monitor.every
        return WatchedWindow(length=looks, hop=1 if monitor.windows.sliding else self.period // monitor.every)


def list_windows(question: Question, monitor: Monitor) -> Horizon:
    """Return the windows that begin in the horizon. Raise KH601 for windows that do not fit the horizon."""
    try:
        of_key = monitor.windows.length is None
        made = _make_key_windows(question, monitor) if of_key else _make_length_windows(question, monitor)
        _ = made.starts[0] - made.length, made.starts[-1] + max(made.length, made.look_period) + monitor.lateness
    except OverflowError:
        hint = "Write an earlier until, or a later from."
        raise refuse_windows(
            monitor, "a window begins before the year 1 or ends after the year 9999", hint=hint
        ) from None
    if made.look_period % monitor.every:
        raise refuse_windows(
            monitor,
            f"every = {write_duration(monitor.every)} does not divide the {write_duration(made.look_period)} for which "
            "a window is looked at",
            hint=f'Write every = "{write_duration(find_nearest_divisor(made.look_period, monitor.every))}".',
        )
    looks = made.length // monitor.every
    if looks > MOST_LOOKS:
        nearest = find_nearest_divisor(made.look_period, made.length / (MOST_LOOKS // 2))
        raise refuse_windows(
            monitor,
            f"a window has {looks:,} looks, more than {MOST_LOOKS:,}",
            hint=f'Write every = "{write_duration(nearest)}".',
        )
    return made


def _make_length_windows(question: Question, monitor: Monitor) -> Horizon:
    windows = monitor.windows
    assert windows.length is not None
    column = _find_time_column(question, monitor)
    if windows.length > monitor.ends - monitor.begins:
        raise refuse_windows(
            monitor,
            f"a window of {write_duration(windows.length)} is longer than the time between from and until",
            hint="Write a later until, or a shorter length.",
        )
    if monitor.clears_at_once:
        return _make_whole_horizon(column, windows.length, monitor)
    between = windows.length if windows.sliding or windows.hop is None else windows.hop
    count = -((monitor.begins - monitor.ends) // between)
    _check_count(count, monitor)
    starts = tuple(monitor.begins + index * between for index in range(count))
    stretch = windows.length if windows.sliding else between
    return Horizon(
        column=column.name,
        is_key=False,
        values=starts,
        starts=starts,
        length=windows.length,
        period=between,
        look_period=stretch,
    )


def _make_whole_horizon(column: Column, length: timedelta, monitor: Monitor) -> Horizon:
    """Return the one window of a monitor that clears at once: all looks of the horizon, each at the last stretch."""
    if column.sql_type is SqlType.DATE and monitor.begins.time() != time():
        hint = f'Write from = "{monitor.begins.date()}", or name a timestamp column.'
        raise refuse_windows(monitor, f'from is no midnight, and the column "{column.name}" has only days', hint=hint)
    whole = (monitor.ends - monitor.begins) // monitor.every * monitor.every
    return Horizon(
        column=column.name,
        is_key=False,
        values=(monitor.begins,),
        starts=(monitor.begins,),
        length=length,
        period=whole,
        look_period=whole,
    )


def _find_time_column(question: Question, monitor: Monitor) -> Column:
    """Return the stored date or timestamp by which rows are assigned to windows of a length."""
    name = monitor.windows.column
    column = _find_column(question.table, monitor)
    if column.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP) or column.derivation is not None:
        raise refuse_windows(
            monitor,
            f'the column "{name}" of type {column.declared} is no stored date or timestamp',
            hint="Name a column of the source of type date or timestamp in window.column.",
        )
    grouped = [one for one in question.keys.columns if name in question.table.include_bases([one.name])]
    if grouped:
        made = is_made_by_question(grouped[0])
        called = "an expression" if made else grouped[0].name
        instead = "." if made else f', or let its values be the windows: window = "{called}".'
        raise refuse_windows(
            monitor,
            f"sql groups by {called}, which is made of the windows' column {name}",
            detail="Each window is counted by itself, so that a group would be a part of a window.",
            hint=f"Leave it out of sql{instead}",
        )
    windows = monitor.windows
    for key, length in (("length", windows.length), ("hop", windows.hop), ("every", monitor.every)):
        if column.sql_type is SqlType.DATE and length is not None and length % timedelta(days=1):
            raise refuse_windows(
                monitor,
                f'{key} = {write_duration(length)} is no whole number of days, and the column "{name}" has only days',
                hint=f'Write {key} = "1 day", or name a timestamp column.',
            )
    return column


def is_made_by_question(column: Column) -> bool:
    """Return True for a key that the question computes, or whose values it divides into classes."""
    if isinstance(column.derivation, Lookup):
        return column.derivation.has_classes
    return column.computed or isinstance(column.derivation, Computed | MergedKeys | ValueGroups)


def _find_base(column: Column) -> str:
    return column.derivation.column if isinstance(column.derivation, Derivation) else column.name


def _find_column(table: Table, monitor: Monitor) -> Column:
    name = monitor.windows.column
    for column in table.columns:
        if column.name == name:
            return column
    times = [one.name for one in table.columns if one.sql_type in (SqlType.DATE, SqlType.TIMESTAMP)]
    known = f"Times of {table.name} are {', '.join(times)}." if times else f"{table.name} exposes no time at all."
    raise refuse_windows(monitor, f'the table "{table.name}" exposes no column "{name}"', hint=known)


def _make_key_windows(question: Question, monitor: Monitor) -> Horizon:
    column = _find_column(question.table, monitor)
    name, keys = column.name, question.keys
    if name not in keys.names:
        inside = [one for one in keys.columns if name in question.table.include_bases([one.name])]
        if any(is_made_by_question(one) for one in inside):
            raise refuse_windows(
                monitor,
                f"sql groups by an expression of {name}, whose values are to be the windows",
                hint=f"Group by {name} itself, and by no expression that reads {name} beside another column.",
            )
        raise refuse_windows(
            monitor,
            f"sql does not group by {name}, whose values are to be the windows",
            hint=f"Add {name} to SELECT and GROUP BY, or give the windows a length: "
            f'window = {{ column = "{_find_base(column)}", length = "1 day" }}.',
        )
    if column.domain is None or column.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP):
        raise refuse_windows(
            monitor,
            f'the column "{name}" of type {column.declared} has no range of times',
            hint=f"Declare {_KEY} under [tables.{question.table.name}.columns.{name}].",
        )
    domain = [find_moment(value) for value in column.domain]
    length = _find_step(column, domain, monitor)
    asked = {find_moment(value): value for value in keys.values[keys.names.index(name)]}
    if domain[0] - monitor.begins >= length or monitor.ends - domain[-1] > length:
        first, last = (f'"{value}"' for value in (column.domain[0], column.domain[-1]))
        raise refuse_windows(
            monitor,
            f"the horizon reaches beyond the values of {name}",
            hint=f"Write from = {first} or later, and an until that ends {write_duration(length)} or less after "
            f"{last}. Or declare a longer range of {name}.",
        )
    starts = tuple(sorted(one for one in asked if monitor.begins <= one < monitor.ends))
    _check_count(len(starts), monitor)
    return Horizon(
        column=name,
        is_key=True,
        values=tuple(asked[start] for start in starts),
        starts=starts,
        length=length,
        period=length,
        look_period=length,
    )


def _find_step(column: Column, domain: list[datetime], monitor: Monitor) -> timedelta:
    """Return the length of each window: the distance of the key's values."""
    steps = {later - earlier for earlier, later in pairwise(domain)}
    if column.derivation is not None:
        own = _TRUNCATED.get(find_calendar_step(column) or "")
        if own is not None and steps <= {own}:
            return own
    elif len(domain) == 1 and column.sql_type is SqlType.DATE:
        return timedelta(days=1)
    elif len(steps) == 1 and (step := steps.pop()) > timedelta(0):
        return step
    base = _find_base(column)
    raise refuse_windows(
        monitor,
        f"the values of {column.name} are no windows of equal length, one after the other",
        detail="Months, quarters and years have unequal lengths; and a value has to last until the next one begins.",
        hint=f'Give the windows a length, window = {{ column = "{base}", length = "28 days" }}, and leave '
        f"{column.name} out of sql; or declare a range with a step of days or hours.",
    )


def _check_count(count: int, monitor: Monitor) -> None:
    if count < 1:
        hint = "Write an earlier from, or a later until: only windows that begin between them are watched."
        raise refuse_windows(monitor, "no window begins between from and until", hint=hint)
    if count > MOST_WINDOWS:
        raise refuse_windows(
            monitor,
            f"the horizon has {count:,} windows, more than {MOST_WINDOWS:,}",
            hint="Write an earlier until, or longer windows.",
        )


def find_moment(value: Value) -> datetime:
    """Return the beginning of a window that is a date or a timestamp."""
    if isinstance(value, datetime):
        return value
    assert isinstance(value, date)
    return datetime.combine(value, time())
