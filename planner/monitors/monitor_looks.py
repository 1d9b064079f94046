"""The rows that one look of a monitor reads: those of one window that had come by then.

Guarantee: the same groups and rows of one unit count at every look and in every window, those that came first
(docs/proofs/units_over_a_horizon.md). If each row is a unit, all rows count.
"""

from dataclasses import replace
from datetime import datetime, time

from planner.catalog.catalog import Column, SqlType, Value
from planner.lower.scan import rewrite
from planner.monitors.monitor_plan import MonitorLook, MonitorPlan
from planner.question.as_of import AsOf, Hopping, InTime
from planner.question.condition import Compare, Condition, join_all
from planner.question.looks import look_at
from planner.question.question import Functional, Question


def make_look(plan: MonitorPlan, *, window: int, look: int) -> MonitorLook:
    """Return look number `look` of a window. Looks are counted from 1, windows from 0.

    A row counts if its time is before the look's moment. If the table says when rows arrived, a row counts if it had
    arrived when the look is made. So rows that are late by no more than `lateness` are included.
    """
    windows = plan.windows
    moment = windows.first_looks[window] + (look - 1) * windows.every
    question = _ask_stretch(plan, moment) if plan.monitor.windows.sliding else _ask_window(plan, window, moment)
    return MonitorLook(window=window, look=look, question=question, rewritten=rewrite(question, dialect=plan.dialect))


def _ask_window(plan: MonitorPlan, window: int, moment: datetime) -> Question:
    """Return the question of one window, and of earlier ones that it is compared with.

    Its groups are among those in which a unit may count over the horizon.
    """
    keys, declared, name = plan.question.keys, plan.monitor.windows, plan.window_column.name
    horizon = keys.values[keys.names.index(name)]
    hopping = None
    if declared.length is not None:
        hopping = Hopping(column=declared.column, length=declared.length, hop=declared.hop or declared.length)
    as_of = AsOf(
        column=plan.time_column,
        before=_find_arrival_limit(plan, moment),
        window=name,
        horizon=horizon,
        window_open_for=plan.windows.length + plan.windows.lateness,
        hopping=hopping,
    )
    asked = plan.question if hopping is None else replace(plan.question, keys=plan.keys)
    functionals = tuple(_select_window(one, name, window) for one in asked.functionals)
    if plan.trend is not None:
        asked, functionals = replace(asked, common=()), plan.trend.sums
    places = (window,) if plan.trend is None else plan.trend.list_windows(window)
    return look_at(replace(asked, functionals=functionals), as_of, windows=tuple(horizon[place] for place in places))


def _select_window(functional: Functional, key: str, window: int) -> Functional:
    """Return a functional with the thresholds of one window, if each window has its own."""
    offsets = functional.offsets
    if offsets is None or offsets.key != key:
        return functional
    return replace(functional, offsets=replace(offsets, steps=(offsets.steps[window],)))


def _find_arrival_limit(plan: MonitorPlan, moment: datetime) -> datetime:
    """Return the moment before which a row must have come to count at a look."""
    return moment + plan.windows.lateness if plan.counts_by_arrival else moment


def _ask_stretch(plan: MonitorPlan, moment: datetime) -> Question:
    """Return the question of the rows of the last stretch of time, each row a unit by itself.

    If alerts are cleared at once, a row counts if it had come when its time was first looked at. That is the same at
    all looks.
    """
    table, windows = plan.question.table, plan.windows
    begins = moment - windows.length
    of_windows, seen = table.get_column(plan.monitor.windows.column), table.get_column(plan.time_column)
    tests = [
        *plan.question.where.list_conjuncts(),
        _make_from(of_windows, begins),
        _make_before_condition(of_windows, moment),
    ]
    if plan.counts_by_arrival:
        tests.append(_make_before_condition(seen, _find_arrival_limit(plan, moment)))
    in_time = None
    if plan.clears_at_once and plan.counts_by_arrival:
        in_time = InTime(
            column=of_windows.name,
            arrival_column=seen.name,
            origin=windows.starts[0] - windows.length,
            look_interval=windows.every,
            lateness=windows.lateness,
        )
    return replace(plan.question, keys=plan.keys, where=join_all(tests), in_time=in_time)


def _make_before_condition(column: Column, end: datetime) -> Condition:
    """Return the condition that a time lies before a moment."""
    return Compare(column.name, "<" if _has_moment(column, end) else "<=", _convert_moment(column, end))


def _make_from(column: Column, begin: datetime) -> Condition:
    """Return the condition that a time does not lie before a moment."""
    return Compare(column.name, ">=" if _has_moment(column, begin) else ">", _convert_moment(column, begin))


def _has_moment(column: Column, moment: datetime) -> bool:
    """Return True if a column can hold the moment itself: a date can hold midnight alone."""
    return column.sql_type is SqlType.TIMESTAMP or moment.time() == time()


def _convert_moment(column: Column, moment: datetime) -> Value:
    return moment if column.sql_type is SqlType.TIMESTAMP else moment.date()
