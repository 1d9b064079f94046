"""The rows that one look of a monitor reads: those of one window that had come by then.

Guarantee: of one unit the same groups and rows count at every look and in every window, those that came first
(docs/proofs/units_over_a_horizon.md); where each row is a unit by itself nothing is chosen.
"""

from dataclasses import replace
from datetime import datetime, time

from planner.catalog.catalog import Column, SqlType, Value
from planner.lower.scan import rewrite
from planner.monitors.monitor_plan import MonitorLook, MonitorPlan
from planner.question.as_of import AsOf, Hopping, InTime
from planner.question.condition import Compare, Condition, all_of
from planner.question.looks import look_at
from planner.question.question import Functional, Question


def look_of(plan: MonitorPlan, *, window: int, look: int) -> MonitorLook:
    """Return the `look`th look of a window, from 1 on; windows are counted from 0 on.

    Rows count by the time in them up to the look's moment. Where the table says when they arrived, they count if they
    had come by the time at which the look is made; so rows that are late by no more than `lateness` are in it.
    """
    windows = plan.windows
    moment = windows.first_looks[window] + (look - 1) * windows.every
    question = _ask_stretch(plan, moment) if plan.monitor.windows.sliding else _ask_window(plan, window, moment)
    return MonitorLook(window=window, look=look, question=question, rewritten=rewrite(question, dialect=plan.dialect))


def _ask_window(plan: MonitorPlan, window: int, moment: datetime) -> Question:
    """Return the question of one window. Its groups are among those in which a unit may count over the horizon."""
    keys, declared, name = plan.question.keys, plan.monitor.windows, plan.window_column.name
    horizon = keys.values[keys.names.index(name)]
    hopping = None
    if declared.length is not None:
        hopping = Hopping(column=declared.column, length=declared.length, hop=declared.hop or declared.length)
    as_of = AsOf(
        column=plan.seen_by,
        before=_seen_until(plan, moment),
        window=name,
        horizon=horizon,
        window_open_for=plan.windows.length + plan.windows.lateness,
        hopping=hopping,
    )
    asked = plan.question if hopping is None else replace(plan.question, keys=plan.keys)
    functionals = tuple(_in_window(one, name, window) for one in asked.functionals)
    return look_at(replace(asked, functionals=functionals), as_of, windows=(horizon[window],))


def _in_window(functional: Functional, key: str, window: int) -> Functional:
    """Return a functional with the thresholds of one window, if each has its own."""
    offsets = functional.offsets
    if offsets is None or offsets.key != key:
        return functional
    return replace(functional, offsets=replace(offsets, steps=(offsets.steps[window],)))


def _seen_until(plan: MonitorPlan, moment: datetime) -> datetime:
    """Return the moment before which a row that counts at a look was seen."""
    return moment + plan.windows.lateness if plan.arrived else moment


def _ask_stretch(plan: MonitorPlan, moment: datetime) -> Question:
    """Return the question of the rows of the last stretch of time, each row a unit by itself.

    If an alert goes at once, those rows count that had come when their time was first looked at, at this look as at all
    others.
    """
    table, windows = plan.question.table, plan.windows
    begins = moment - windows.length
    of_windows, seen = table.get_column(plan.monitor.windows.column), table.get_column(plan.seen_by)
    tests = [*plan.question.where.conjuncts(), _from(of_windows, begins), _before(of_windows, moment)]
    if plan.arrived:
        tests.append(_before(seen, _seen_until(plan, moment)))
    in_time = None
    if plan.clears_at_once and plan.arrived:
        in_time = InTime(
            column=of_windows.name,
            arrived=seen.name,
            origin=windows.starts[0] - windows.length,
            every=windows.every,
            lateness=windows.lateness,
        )
    return replace(plan.question, keys=plan.keys, where=all_of(tests), in_time=in_time)


def _before(column: Column, end: datetime) -> Condition:
    """Return the condition that a time lies before a moment."""
    return Compare(column.name, "<" if _fits(column, end) else "<=", _value(column, end))


def _from(column: Column, begin: datetime) -> Condition:
    """Return the condition that a time does not lie before a moment."""
    return Compare(column.name, ">=" if _fits(column, begin) else ">", _value(column, begin))


def _fits(column: Column, moment: datetime) -> bool:
    """Return True if a column can have the moment itself: days begin at midnight."""
    return column.sql_type is SqlType.TIMESTAMP or moment.time() == time()


def _value(column: Column, moment: datetime) -> Value:
    return moment if column.sql_type is SqlType.TIMESTAMP else moment.date()
