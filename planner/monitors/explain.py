"""A monitor's plan as text and as JSON: its condition, its looks, its cost and the reasons. All of it is public."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from mechanisms.alarm.prices import PricedWay, Way
from mechanisms.alarm.shapes import Regime
from mechanisms.standing.distance import StandingDistance
from mechanisms.standing.sliding_noise import SlidingNoise
from planner.explain.brief_text import VERBOSE_HINT
from planner.explain.literal_labels import spell_formula, spell_literals
from planner.explain.render import find_computed_bound
from planner.explain.rounded_numbers import spell_number, write_ceiling, write_percent
from planner.monitors.guarantee import make_promise_json, write_count, write_group_count, write_promise
from planner.monitors.monitor_looks import make_look
from planner.monitors.monitor_plan import MonitorPlan
from planner.policy.durations import write_duration
from planner.question.question import Atom

_PRICED_ALONE = frozenset({Way.SIGNED_TREE})
"""Ways that are listed only to compare prices, and that no monitor can use."""
_AT_ONCE = frozenset({Way.TICK_NOISE, Way.BLOCK_NOISE})
"""Ways of `clears = "at once"`. The cheaper one is used."""
SQL_LINES = 12  # of a look's statement; JSON has all of it

_GROWTH = {
    Regime.GROWING: "only grow while a window fills, because rows are only added: an alarm costs least",
    Regime.COMING_AND_GOING: "may fall, because rows may be changed or deleted: an alarm costs twice as much",
    Regime.SIGNED: "may fall, because rows can be negative: an alarm costs three times as much",
    Regime.SLIDING: "grow and fall again as windows slide over rows: an alarm is charged for both movements",
}
_TREND_GROWTH = {
    Regime.GROWING: "are moved one way by a row, which stays as it is: an alarm costs least",
    Regime.COMING_AND_GOING: "are moved one way by a row, which may be changed: an alarm costs twice as much",
    Regime.SIGNED: "are raised and lowered by rows of one unit: an alarm costs three times as much",
}
_DISTANCE = {
    Regime.GROWING: "Each row changes this distance in one direction: the alarm costs least",
    Regime.COMING_AND_GOING: "Each row changes this distance in one direction, by different amounts at different "
    "looks: the alarm costs twice as much",
    Regime.SIGNED: "Rows change this distance in both directions: the alarm costs three times as much",
}
_STREAM_GROWTH = {
    Regime.GROWING: "only grow while a window fills, because rows are only added: a stream loses epsilon once a window",
    Regime.COMING_AND_GOING: "may fall, because rows may be changed or deleted: a stream loses epsilon at every look",
    Regime.SIGNED: "may fall, because rows can be negative: a stream loses twice epsilon at every look but the first",
}


def explain_monitor(plan: MonitorPlan) -> tuple[str, ...]:
    """Return a monitor's plan as lines for EXPLAIN VERBOSE.

    Guarantee: a function of the plan, which follows from the policy alone.
    """
    return tuple(_write_lines(plan))


def explain_monitor_briefly(plan: MonitorPlan) -> tuple[str, ...]:
    """Return a monitor's plan as about ten lines for EXPLAIN: condition, windows, looks, price and promise.

    Guarantee: a function of the plan, which follows from the policy alone.
    """
    return tuple(_write_brief_lines(plan))


def describe_monitor(plan: MonitorPlan) -> str:
    """Return a monitor in one line for `keyhole check`: windows, looks and cost."""
    if plan.clears_at_once:
        return (
            f"{plan.keys.size:,} groups, the last {write_duration(plan.windows.length)} at each of "
            f"{plan.windows.looks:,} looks, cleared at once; at most {write_ceiling(plan.epsilon_per_cell)} epsilon a "
            "group"
        )
    looks = f"{plan.windows.looks:,} looks" if plan.alerts_early else "decided at its close"
    unit = (
        ""
        if plan.question.table.is_row_unit
        else f", at most {write_ceiling(plan.epsilon_per_unit)} a unit over the horizon"
    )
    windows = f"{len(plan.windows.starts):,} windows of {write_duration(plan.windows.length)}"
    bound = f"; {plan.monitor.mechanism}: no bound on missed or wrong" if plan.monitor.is_stream else ""
    return (
        f"{plan.keys.size:,} groups, {windows}, each {looks}; at most {write_ceiling(plan.epsilon_per_cell)} epsilon "
        "a group "
        f"and window{_write_readers(plan)}{unit}{bound}"
    )


def make_monitor_json(plan: MonitorPlan) -> dict[str, Any]:
    """Return a monitor's plan as a JSON document: the content of its text, and the full SQL of a look."""
    windows, question = plan.windows, plan.question
    first = make_look(plan, window=0, look=1)
    return {
        "monitor": plan.monitor.name,
        "condition": spell_formula(question.formula, spell_literals(question), both="AND", either="OR"),
        "thresholds": [
            {"text": atom.text, "lower": float(atom.lower), "upper": float(atom.upper)} for atom in question.atoms
        ],
        "table": question.table.name,
        "privacy_unit": question.table.unit_text,
        "grouped_by": list(plan.keys.names),
        "groups": plan.keys.size,
        "windows": {
            "column": plan.window_column.name,
            "count": len(windows.starts),
            "length_seconds": windows.length.total_seconds(),
            "first": windows.starts[0].isoformat(),
            "last": windows.starts[-1].isoformat(),
            "sliding": plan.monitor.windows.sliding,
            "earlier_read": [] if plan.trend is None else [one for one in plan.trend.earlier if one],
        },
        "clears": plan.monitor.clears.value,
        "looks": {
            "early": plan.alerts_early,
            "per_window": windows.looks,
            "in_all": windows.looks * len(windows.starts),
            "every_seconds": windows.every.total_seconds(),
            "late_seconds": windows.delay.total_seconds(),
            "first": windows.first_looks[0].isoformat(),
            "last": windows.find_close(len(windows.starts) - 1).isoformat(),
        },
        "rows_seen_by": plan.time_column,
        "growth": [regime.name.lower() for regime in plan.regimes],
        "watched_as_a_whole": isinstance(plan.standing, StandingDistance),
        "guarantee": make_promise_json(plan),
        "ways": [
            {
                "way": way.way.name.lower(),
                "meaning": way.way.value,
                "price": way.price,
                "epsilon": plan.find_way_epsilon(way),
                "clearing_looks": way.clearing_looks,
                "taken": place == plan.chosen_way,
                "served": way.way not in _PRICED_ALONE,
            }
            for place, way in enumerate(plan.ways)
        ],
        "mechanism": plan.monitor.mechanism,
        "event_epsilon": plan.monitor.epsilon,
        "fingerprint": plan.fingerprint,
        "sql": first.rewritten.sql,
        "dialect": plan.dialect.name,
        "warnings": list(plan.warnings),
    }


def _write_brief_lines(plan: MonitorPlan) -> Iterator[str]:
    yield from _write_watched_lines(plan)
    yield f"  Cost: {_write_cell_cost(plan)}{_write_unit_cost(plan)}"
    yield f"  Guarantee: {write_promise(plan)}"
    for warning in plan.warnings:
        yield f"  Warning: {warning}"
    yield VERBOSE_HINT


def _write_watched_lines(plan: MonitorPlan) -> Iterator[str]:
    """Yield EXPLAIN's lines about the watched values of a monitor and the times of its looks."""
    windows, question = plan.windows, plan.question
    ends = windows.find_close(0) if plan.clears_at_once else windows.starts[-1] + windows.length
    horizon = f"from {_write_moment(windows.starts[0])} to {_write_moment(ends)}"
    groups = f"{write_count(plan.keys.size, 'group')} of {question.table.name} ({plan.keys.description})"
    yield f"Monitor {plan.monitor.name}: {groups}, nothing is spent by EXPLAIN"
    yield f"  Alerts where {spell_formula(question.formula, spell_literals(question), both='AND', either='OR')}"
    for atom in question.atoms:
        yield f"    {_write_band(atom, streamed=plan.monitor.is_stream)}"
    yield f"  Windows: {_write_windows(plan)}, {horizon}"
    yield f"  Looks: {_write_looks(plan)}"


def _write_lines(plan: MonitorPlan) -> Iterator[str]:
    windows, question = plan.windows, plan.question
    yield from _write_watched_lines(plan)
    in_time = ", if they came before the look at which the time in them was first seen" * plan.clears_at_once
    seen = "when they arrived" if plan.counts_by_arrival else "the time in them"
    yield f"  Rows count by {plan.time_column}, {seen}{in_time}"
    if isinstance(plan.standing, StandingDistance):
        yield "  One alarm watches how far a group is inside the condition."
        yield f"  {_DISTANCE[plan.standing.distance_regime]}"
    if isinstance(plan.standing, SlidingNoise):
        yield f"  Each row is in one stretch of {write_duration(windows.every)}, {_write_noise(plan, plan.standing)}"
    whole = isinstance(plan.standing, StandingDistance | SlidingNoise)
    for regime in () if whole else dict.fromkeys(plan.regimes):
        names = ", ".join(
            functional.name for functional, own in zip(question.functionals, plan.regimes, strict=True) if own is regime
        )
        if plan.alerts_early:
            growth = _STREAM_GROWTH if plan.monitor.is_stream else _GROWTH if plan.trend is None else _TREND_GROWTH
            yield f"  Values of {names} {growth[regime]}"
    yield from _write_cost_lines(plan)
    yield f"  Guarantee: {write_promise(plan)}"
    for warning in plan.warnings:
        yield f"  Warning: {warning}"
    yield f"  SQL sent to the source at the first look ({plan.dialect.name}):"
    sql = make_look(plan, window=0, look=1).rewritten.sql.splitlines()
    yield from (f"    {line}" for line in sql[:SQL_LINES])
    if len(sql) > SQL_LINES:
        yield f"    ... {len(sql) - SQL_LINES} more lines"


def _write_band(atom: Atom, *, streamed: bool) -> str:
    counted = f" {atom.counted_unit}" if atom.counted_unit else ""
    if streamed:
        above = spell_number(atom.lower)
        return f"{atom.text}   holds of estimates above {above}{counted}, whose errors have no bound"
    return f"{atom.text}   may err between {spell_number(atom.lower)} and {spell_number(atom.upper)}{counted}"


def _write_windows(plan: MonitorPlan) -> str:
    windows, declared = plan.windows, plan.monitor.windows
    length, count = write_duration(windows.length), len(windows.starts)
    if plan.clears_at_once:
        return f"the last {length} by {declared.column} at every look"
    if declared.sliding:
        return f"the last {length} by {declared.column} at every look, watched in {count:,} epochs of {length}"
    if declared.hop is not None and declared.hop != declared.length:
        hop = write_duration(declared.hop)
        return f"{count:,} of {length} by {declared.column}, one every {hop}, each looked at in its last {hop}"
    return f"{count:,} of {length} by {declared.column}"


def _write_looks(plan: MonitorPlan) -> str:
    windows = plan.windows
    late = f"made {write_duration(windows.delay)} later" if windows.delay else "made at once"
    if not plan.alerts_early:
        return f"one, when a window closes, {late}"
    in_all = windows.looks * len(windows.starts)
    if plan.clears_at_once:
        return f"{in_all:,}, every {write_duration(windows.every)}, {late}; a row is in {plan.watched.length:,} of them"
    return f"{windows.looks:,} a window, every {write_duration(windows.every)}, {late}; {in_all:,} in all"


def _write_cell_cost(plan: MonitorPlan) -> str:
    """Return the cost of one group, with the price of asking again at every look."""
    again = next((way for way in plan.ways if way.way is Way.AFRESH), None)
    beside = (
        ""
        if again is None
        else f" (a new question at every look would cost {write_ceiling(plan.find_way_epsilon(again))})"
    )
    cell = "one group over all looks" if plan.clears_at_once else "one group and window"
    return f"{cell}: at most {write_ceiling(plan.epsilon_per_cell)} epsilon{_write_readers(plan)}{beside}"


def _write_readers(plan: MonitorPlan) -> str:
    """Return the number of windows that read a row, which the cost covers, or an empty text if it is one."""
    read = 1 if plan.trend is None else len(plan.trend.earlier)
    return f", where a row counts in {read} windows" if read > 1 else ""


def _write_unit_cost(plan: MonitorPlan) -> str:
    table = plan.question.table
    if table.is_row_unit:
        return ""
    unit = f"one ({table.unit_text}) over the horizon"
    return f"; {unit}: at most {write_ceiling(plan.epsilon_per_unit)} epsilon, in at most {write_group_count(plan)}"


def _write_cost_lines(plan: MonitorPlan) -> Iterator[str]:
    yield f"  Cost: {_write_cell_cost(plan)}{_write_unit_cost(plan)}"
    if not plan.question.table.is_row_unit and (bound := find_computed_bound(plan.question)) is not None:
        yield f"  Of groups, {bound}"
    if plan.monitor.is_stream:
        rates = f"fnr {write_percent(plan.question.accuracy.fnr)} and fpr {write_percent(plan.question.accuracy.fpr)}"
        others = f", the others keep {rates}" if len(plan.ways) > 1 else ""
        yield f"  Ways of watching the groups; {plan.monitor.mechanism} keeps no rates{others}:"
    else:
        yield "  Ways of watching the groups:" if plan.alerts_early else "  Ways of deciding at the close of a window:"
    rows = [_write_way_cells(plan, place, way) for place, way in enumerate(plan.ways)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        yield "    " + "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _write_way_cells(plan: MonitorPlan, place: int, way: PricedWay) -> tuple[str, str, str]:
    taken = "-> " if place == plan.chosen_way else "   "
    clears = "an alert goes at once"
    if way.way in _PRICED_ALONE:
        clears = "an alert would go at once; no monitor can use it"
    elif way.way in _AT_ONCE and not plan.clears_at_once:
        clears = 'clears = "at once": an alert goes at once, fpr is for each look'
    elif way.way is Way.ALARM_PER_EPOCH and plan.clears_at_once:
        clears = (
            f'clears = "at the close": an alert stays up to {write_duration(_find_stretch(plan, way.clearing_looks))}'
        )
    elif way.clearing_looks:
        clears = f"an alert stays up to {write_duration(_find_stretch(plan, way.clearing_looks))}"
    rough = (
        ", with rough noise before sharp noise"
        if place == plan.chosen_way and plan.monitor.progressive and plan.alerts_early
        else ""
    )
    return (
        f"{taken}{f'{plan.monitor.mechanism}, ' if way.way is Way.STREAM else ''}{way.way.value}{rough}",
        f"epsilon {write_ceiling(plan.find_way_epsilon(way))}",
        "" if way.way is Way.CLOSE else clears,
    )


def _write_noise(plan: MonitorPlan, standing: SlidingNoise) -> str:
    """Return a clause on the noise of stretches and blocks, which is drawn once for all looks."""
    if standing.shape.block_ticks == 1:
        return "whose count gets noise once; a look adds up these noisy counts"
    block = write_duration(standing.shape.block_ticks * plan.windows.every)
    return f"and in one of {block}. The count of each gets noise once; a look adds up these noisy counts"


def _find_stretch(plan: MonitorPlan, looks: int) -> timedelta:
    return looks * plan.monitor.every


def _write_moment(moment: datetime) -> str:
    return moment.date().isoformat() if moment == datetime(moment.year, moment.month, moment.day) else str(moment)
