"""Settings with which a monitor costs no more than the rest of the budget, each planned before it is suggested."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from planner.catalog.catalog import Budget, Catalog
from planner.catalog.monitor import Alert, ClearRule, Monitor
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.monitors.build import plan_monitor
from planner.monitors.monitor_plan import MonitorPlan
from planner.policy.durations import find_nearest_divisor, write_duration

_Tried = TypeVar("_Tried")

_PERCENTS = tuple(range(1, 101))
_PARTS = range(99, 0, -1)  # of a stream's loss, in hundredths
_MOST_SPREAD = 4096  # times as seldom as now, at most, a monitor is tried to be looked at


def find_exceeded_cap(plan: MonitorPlan, budget: Budget) -> tuple[str, float] | None:
    """Return the first cap of the budget that a monitor alone exceeds, by the cap's key in the policy.

    Return None if the monitor fits into an empty ledger. If a unit's balance counts curves (`delta`), a sum above its
    cap may still fit, so that cap is not reported.
    """
    caps = [("epsilon_per_query", budget.per_query), ("epsilon_per_predicate", budget.per_predicate)]
    for key, cap in sorted(caps, key=lambda one: one[1]):
        if plan.epsilon_per_cell > cap:
            return f"budget.{key}", cap
    per_unit = budget.per_unit if plan.question.table.unit and budget.delta is None else None
    if per_unit is not None and plan.epsilon_per_unit > per_unit:
        return "budget.epsilon_per_unit", per_unit
    own = {caps.table: caps.per_table for caps in budget.tables if caps.per_table is not None}
    table = plan.question.table.ledger_root.table
    per_table = own.get(table, budget.per_table)
    if per_table is not None and max(plan.epsilon_per_cell, plan.epsilon_per_unit) > per_table:
        return (f"tables.{table}" if table in own else "budget") + ".epsilon_per_table", per_table
    return None


def find_fitting(
    catalog: Catalog, monitor: Monitor, *, dialect: Dialect, fits: Callable[[MonitorPlan], bool]
) -> tuple[str, ...]:
    """Return settings of a monitor's section, such as a wider tolerance.

    Each of them alone makes the monitor affordable. They are the least tolerance, the most looks, the most that a
    stream may lose for an event, a decision at the close, and alerts that stay until the close.

    Guarantee: planned with any of them, the monitor `fits`. They are a function of public inputs. None that does not
    fit is returned.

    Parameters:
        fits: returns True if a plan costs no more than it may. Of two plans that differ only in cost, the cheaper one
            fits if the other does.
    """

    def try_out(changed: Monitor) -> MonitorPlan | None:
        try:
            plan = plan_monitor(catalog, changed, dialect=dialect)
        except KeyholeError:
            return None
        return plan if fits(plan) else None

    found = []
    percent = _find_first_fitting(_PERCENTS, lambda one: try_out(replace(monitor, tolerance=f"{one}%")) is not None)
    if percent is not None:
        found.append(f'tolerance = "{percent}%"')
    every = _find_first_fitting(
        _list_spread(monitor, _find_stretch(catalog, monitor, dialect)),
        lambda one: try_out(replace(monitor, every=one)) is not None,
    )
    if every is not None and (seldom := try_out(replace(monitor, every=every))) is not None and seldom.alerts_early:
        looks = seldom.watched.length if seldom.clears_at_once else seldom.windows.looks
        found.append(f'every = "{write_duration(every)}" ({looks:,} look{"" if looks == 1 else "s"} a window)')
    if monitor.epsilon is not None:
        parts = [float(f"{monitor.epsilon * part / 100:g}") for part in _PARTS]
        less = _find_first_fitting(parts, lambda one: try_out(replace(monitor, epsilon=one)) is not None)
        if less is not None:
            found.append(f"epsilon = {less:g}")
    if monitor.alert is not Alert.CLOSE and try_out(replace(monitor, alert=Alert.CLOSE, early_any=False)) is not None:
        found.append('alert = "close"')
    if monitor.clears_at_once and try_out(replace(monitor, clears=ClearRule.AT_THE_CLOSE)) is not None:
        found.append('clears = "at the close"')
    return tuple(found)


def _find_stretch(catalog: Catalog, monitor: Monitor, dialect: Dialect) -> timedelta:
    """Return the time during which a window is looked at, or zero if there is no plan."""
    try:
        windows = plan_monitor(catalog, monitor, dialect=dialect).windows
    except KeyholeError:
        return timedelta(0)
    return windows.length if monitor.clears_at_once else windows.looks * windows.every


def _list_spread(monitor: Monitor, whole: timedelta) -> tuple[timedelta, ...]:
    """Return longer times between looks that divide the time during which a window is looked at."""
    spread = set()
    factor = 1
    while factor <= _MOST_SPREAD and monitor.every * factor <= whole:
        spread.add(find_nearest_divisor(whole, monitor.every * factor))
        factor *= 2
    return tuple(sorted(one for one in spread if one > monitor.every))


def _find_first_fitting(choices: Sequence[_Tried], fits: Callable[[_Tried], bool]) -> _Tried | None:
    """Return the first choice that fits. All later ones must fit as well."""
    low, high = 0, len(choices)
    while low < high:
        middle = (low + high) // 2
        if fits(choices[middle]):
            high = middle
        else:
            low = middle + 1
    return choices[low] if low < len(choices) else None
