"""The promise of a monitor, as a sentence and as JSON. Rates and losses are upper bounds."""

from decimal import Decimal
from typing import Any

from planner.explain.guarantee import describe_tolerance
from planner.explain.rounded_numbers import spell_number, write_ceiling, write_percent
from planner.monitors.monitor_plan import MonitorPlan
from planner.policy.durations import write_duration
from planner.question.unit_groups import count_unit_groups


def write_promise(plan: MonitorPlan) -> str:
    """Return the promise of a monitor, in one sentence."""
    standing, accuracy = plan.standing, plan.question.accuracy
    loss = f"at most {spell_number(Decimal(write_ceiling(plan.epsilon_per_cell)))} epsilon a group and window"
    if plan.monitor.is_stream:
        said = (
            "no bound on missed or wrong: a group comes into the answer at the first look at which the condition, with "
            f"{describe_tolerance(accuracy.tolerance)}, holds of estimates by {plan.monitor.mechanism}, which promise "
            f"no accuracy; {loss}."
        )
        return said + _write_unit_sentence(plan)
    if plan.clears_at_once:
        within = write_duration(plan.windows.length)
        return (
            f"at each look a group that truly qualifies in the last {within} is missing at most "
            f"{write_percent(accuracy.fnr)} of the time, and one that fails even with "
            f"{describe_tolerance(accuracy.tolerance)} is in the "
            f"answer at most {write_percent(accuracy.fpr)} of the time, at each look by itself; at most "
            f"{spell_number(Decimal(write_ceiling(plan.epsilon_per_cell)))} epsilon a group over all looks, of which "
            "there are "
            f"{plan.windows.looks:,}. This holds for rows that came in time."
        )
    if plan.alerts_early:
        looks = plan.windows.looks
        missed = "a group may be missing at a look at which it truly qualifies, without a bound"
        if standing.fnr is not None:
            missed = (
                f"a group is missing at a look at which it truly qualifies at most {write_percent(accuracy.fnr)} of "
                "the time"
            )
        window = "any of the looks of as long a stretch" if plan.monitor.windows.sliding else "any look of its window"
        wrong = "one that does not may come into the answer, without a bound"
        if standing.fpr is not None:
            wrong = (
                f"one that fails at every look of a window even with {describe_tolerance(accuracy.tolerance)} comes "
                f"into the answer at {window}, {looks:,} of them, at most {write_percent(accuracy.fpr)} of the time"
            )
    else:
        missed = "a group near a threshold may be missed, without a bound"
        if standing.fnr is not None:
            rate = write_percent(accuracy.fnr)
            missed = f"a group that truly qualifies when its window closes is missed at most {rate} of the time"
        wrong = "one that does not may be returned, without a bound"
        if standing.fpr is not None:
            wrong = (
                f"one that fails then even with {describe_tolerance(accuracy.tolerance)} is returned at most "
                f"{write_percent(accuracy.fpr)} of the time"
            )
    return f"{missed}; {wrong}; {loss}.{_write_unit_sentence(plan)}"


def _write_unit_sentence(plan: MonitorPlan) -> str:
    """Return the further sentence for privacy units with several rows, or ""."""
    table = plan.question.table
    if table.is_row_unit:
        return ""
    return (
        f" This holds for aggregates after bounding each ({table.unit_text}), which counts in at most "
        f"{write_group_count(plan)} and loses at most {spell_number(Decimal(write_ceiling(plan.epsilon_per_unit)))} "
        f"epsilon over the horizon; rows without {' or '.join(table.unit)} are left out."
    )


def write_group_count(plan: MonitorPlan) -> str:
    """Return, in words, the number of groups and windows of the horizon in which one privacy unit counts."""
    most = count_unit_groups(plan.question)
    return f"{most:,} of {plan.question.keys.size:,} groups and windows"


def write_count(number: int, what: str) -> str:
    """Return a number with a noun: `1 group`, `3 groups`.

    >>> write_count(1, "group"), write_count(1200, "group")
    ('1 group', '1,200 groups')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def make_promise_json(plan: MonitorPlan) -> dict[str, Any]:
    """Return the guarantee as JSON: sentence, rates (None: no bound), the largest loss of a window and of a unit."""
    standing, accuracy = plan.standing, plan.question.accuracy
    fpr = None if standing.fpr is None else accuracy.fpr
    return {
        "sentence": write_promise(plan),
        "fnr_per_look": None if standing.fnr is None else accuracy.fnr,
        "fpr_per_window": None if plan.clears_at_once else fpr,
        "fpr_per_look": fpr if plan.clears_at_once else None,
        "tolerance": accuracy.tolerance,
        "looks_per_window": plan.watched.length if plan.clears_at_once else plan.windows.looks,
        "epsilon_per_group_and_window": plan.epsilon_per_cell,
        "epsilon_per_unit": plan.epsilon_per_unit if plan.question.table.unit else None,
    }
