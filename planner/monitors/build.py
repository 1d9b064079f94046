"""From a monitor to its plan: read it, list its windows, find how values grow, calibrate and price.

Inputs are public.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from math import ceil
from typing import TypeVar

from mechanisms.alarm.shapes import Regime
from mechanisms.formula import list_literals
from mechanisms.standing.alarms import can_alarms_decide
from mechanisms.standing.distance import StandingDistance
from mechanisms.standing.standing_protocol import Standing
from mechanisms.standing.standing_streams import NO_BOUND
from mechanisms.threshold.one_shot import round_up_to_float
from planner.bind.grouping_bounds import count_computed_groups, list_computed_keys
from planner.catalog.catalog import Catalog, Column, Derivation, SqlType, Table, Value
from planner.catalog.key_space import KeySpace
from planner.catalog.monitor import Alert, Monitor
from planner.lower.dialects.dialect import Dialect
from planner.lower.look import may_leave_out, may_leave_out_groups
from planner.monitors.at_once import check_in_time
from planner.monitors.growth import list_regimes, stays_true_once_true
from planner.monitors.monitor_identity import identify_monitor
from planner.monitors.monitor_plan import MonitorPlan
from planner.monitors.monitor_question_refusals import (
    refuse_condition,
    refuse_table,
    refuse_windows,
    write_warning_as_policy,
)
from planner.monitors.read_question import read_question
from planner.monitors.read_trend import decide_early, find_trend, list_read_windows
from planner.monitors.stream_monitor import check_streamable
from planner.monitors.trend import Trend
from planner.monitors.watching import decide_watching
from planner.monitors.windows import Horizon, is_made_by_question, list_windows
from planner.policy.durations import write_duration
from planner.question.question import Functional, Question
from planner.question.unit_groups import count_unit_groups

_Item = TypeVar("_Item")

MOST_OPEN = 1_000_000
"""The most keys times open windows. Each has a state of some 250 bytes in the ledger's database."""
MOST_CELLS = 2**24
"""The most keys times windows of a horizon, which the ledger charges at once."""

SETTLING = timedelta(minutes=1)
"""The delay of a look if the order in which rows came matters. Transactions that add rows must be shorter."""

WINDOW = "window_start"


def plan_monitor(catalog: Catalog, monitor: Monitor, *, dialect: Dialect) -> MonitorPlan:
    """Plan everything that will be computed, decided and charged for a monitor, before any data are touched.

    Guarantee: depends on the catalog, the monitor and the dialect alone.

    Raises:
        KeyholeError: as the question itself does, KH303 for a contract that no alarm keeps, KH601 for windows, looks
            and a horizon that do not fit together, KH602 and KH603 for questions and tables that no monitor can watch.
            A stream keeps no contract and never raises KH303.
    """
    question = read_question(catalog, monitor)
    horizon = list_windows(question, monitor)
    table = catalog.find_table(question.table.name)
    assert table is not None
    question, trend = find_trend(question, horizon, monitor, dialect=dialect)
    read = horizon.values if trend is None else list_read_windows(question, horizon, trend)
    question, window_column, keys = _extend_to_horizon(question, horizon, monitor, declared=table, read=read)
    _check_size(keys, horizon, monitor, trend=trend)
    seen_by = _find_arrival_column(question, window_column, monitor)
    if monitor.clears_at_once:
        check_in_time(question, monitor)
    if trend is None:
        regimes = list_regimes(question, dialect=dialect)
        early = _is_early(question, regimes, monitor)
    else:
        regimes, early = trend.regimes, decide_early(question, trend, monitor)
    if monitor.windows.sliding and not monitor.clears_at_once:
        regimes = _check_sliding(question, regimes, monitor)
    windows = horizon.plan_looks(monitor, early=early)
    if monitor.clears_at_once or trend is not None or may_leave_out(question):
        windows = replace(windows, settling=SETTLING)
    watching = decide_watching(
        question, regimes, horizon, windows, keys=keys, monitor=monitor, early=early, trend=trend
    )
    standing = watching.standing
    return MonitorPlan(
        monitor=monitor,
        question=question,
        window_column=window_column,
        keys=keys,
        windows=windows,
        watched=horizon.count_in_looks(monitor),
        time_column=seen_by,
        counts_by_arrival=seen_by == question.table.arrival_column and seen_by != _find_time(window_column, monitor),
        standing=standing,
        trend=trend,
        regimes=regimes,
        alerts_early=early,
        ways=watching.ways,
        chosen_way=watching.chosen_way,
        epsilon_per_price=watching.per_price,
        epsilon_per_cell=watching.per_cell,
        epsilon_per_unit=_find_unit_loss(question, standing.worst_case_epsilon if trend is None else watching.per_cell),
        fingerprint=identify_monitor(
            monitor, question, windows, seen_by=seen_by, regimes=regimes, whole=watching.watches_whole, trend=trend
        ),
        warnings=(
            *map(write_warning_as_policy, question.warnings),
            *_list_warnings(question, standing, regimes, monitor, early=early, trend=trend),
        ),
        dialect=dialect,
    )


def _extend_to_horizon(
    question: Question, horizon: Horizon, monitor: Monitor, *, declared: Table, read: tuple[Value, ...]
) -> tuple[Question, Column, KeySpace]:
    """Return the question with the windows that are `read` as values of a key, that key, and the other keys.

    The key has the values of the horizon alone, if others are read as well.
    """
    keys = question.keys
    if horizon.is_key:
        place = keys.names.index(horizon.column)
        window = replace(keys.columns[place], domain=horizon.values)
        functionals = tuple(_select_windows(one, keys, place, horizon) for one in question.functionals)
        others = KeySpace(_remove_place(keys.columns, place), _remove_place(keys.values, place))
        columns = (*keys.columns[:place], replace(window, domain=read), *keys.columns[place + 1 :])
        values = (*keys.values[:place], read, *keys.values[place + 1 :])
        over = replace(question, keys=KeySpace(columns, values), functionals=functionals)
        return over, window, others
    window = _make_window_column(question, horizon, monitor)
    over = replace(question, table=_bound_windows(question, declared))
    if not monitor.clears_at_once:
        over = replace(over, keys=KeySpace((*keys.columns, window), (*keys.values, horizon.values)))
    return over, window, keys


def _bound_windows(question: Question, declared: Table) -> Table:
    """Return the question's table with a unit's groups bounded over windows that are no key of it.

    Bounds for other keys do not apply to their product with these windows. In each window a unit may be in one group
    for each value of the computed keys, or for each row that counts.
    """
    table = question.table
    most = table.rows_per_unit if table.row_cap is None else table.row_cap.rows
    several = count_computed_groups(list_computed_keys(table, question.keys.columns), most)
    return replace(table, groups_per_unit=declared.groups_per_unit * several, groups_by="")


def _remove_place(items: tuple[_Item, ...], place: int) -> tuple[_Item, ...]:
    return items[:place] + items[place + 1 :]


def _select_windows(functional: Functional, keys: KeySpace, place: int, horizon: Horizon) -> Functional:
    """Return a functional with the thresholds of the watched windows, if each window has its own."""
    offsets = functional.offsets
    if offsets is None or offsets.key != horizon.column:
        return functional
    steps = dict(zip(keys.values[place], offsets.steps, strict=True))
    return replace(functional, offsets=replace(offsets, steps=tuple(steps[value] for value in horizon.values)))


def _make_window_column(question: Question, horizon: Horizon, monitor: Monitor) -> Column:
    """Return the key column of windows of a length.

    The source has no such column. The ledger names the column by the way it is computed.
    """
    taken = {column.name for column in question.table.columns} | set(question.keys.names)
    name = WINDOW
    while name in taken:
        name += "_"
    kind = "sliding" if monitor.windows.sliding else f"every {horizon.period}"
    return Column(
        name=name,
        sql_type=SqlType.TIMESTAMP,
        declared="timestamp without time zone",
        domain=horizon.values,
        ledger=f"{horizon.column} in windows of {horizon.length} {kind} from {horizon.starts[0].isoformat()}",
    )


def _check_size(keys: KeySpace, horizon: Horizon, monitor: Monitor, *, trend: Trend | None) -> None:
    beside, back = (0, 0) if trend is None else (len(trend.earlier) - 1, trend.back)
    open_at_once = 1 + beside + ceil(monitor.lateness / horizon.period)
    if keys.size * open_at_once > MOST_OPEN:
        raise refuse_windows(
            monitor,
            f"{keys.size:,} groups with {open_at_once} windows open at once are more than {MOST_OPEN:,}",
            hint="Restrict the keys in WHERE, group by less" + (", or shorten lateness." if open_at_once > 2 else "."),
        )
    if keys.size * (back + len(horizon.starts)) > MOST_CELLS:
        fitting = max(1, MOST_CELLS // keys.size - back)
        until = horizon.starts[min(fitting, len(horizon.starts)) - 1]
        raise refuse_windows(
            monitor,
            f"{keys.size:,} groups times {back + len(horizon.starts):,} windows are more than {MOST_CELLS:,}",
            hint=f'Write until = "{until.isoformat(sep=" ")}" or earlier, or longer windows.',
        )


def _find_time(column: Column, monitor: Monitor) -> str:
    """Return the stored time from which windows are made."""
    if monitor.windows.length is not None:
        return monitor.windows.column
    return column.derivation.column if isinstance(column.derivation, Derivation) else column.name


def _find_arrival_column(question: Question, window_column: Column, monitor: Monitor) -> str:
    """Return the column whose time decides from which look on a row counts. Raise KH603."""
    table = question.table
    if table.is_row_unit:
        _check_rows_stay(question, monitor)
        return table.arrival_column or _find_time(window_column, monitor)
    if monitor.windows.sliding:
        raise refuse_table(
            monitor,
            f"units of the table {table.name} have several rows, and as a sliding window moves, other rows of a unit "
            "would count",
            hint='Use windows that hop, such as { column = "'
            + monitor.windows.column
            + '", length = "24 hours", hop = "6 hours" }.',
        )
    if not table.append_only and may_leave_out_groups(question):
        raise refuse_table(
            monitor,
            f"only some of a unit's groups in {table.name} count, and if a row changes or goes, others could count",
            detail=f"Over the horizon a unit could count in more than the {table.groups_per_unit:,} groups and windows "
            "that it is charged for.",
            hint=f"Write append_only = true under [tables.{table.name}] if rows are never changed or deleted. Or write "
            f"max_groups_per_unit = {question.keys.count_reachable_groups(table)}, if that is not too expensive.",
        )
    if table.arrival_column is None and may_leave_out(question):
        chosen = "rows" if table.row_cap is not None else "groups"
        raise refuse_table(
            monitor,
            f"only some of a unit's {chosen} in {table.name} count, and later rows must not replace rows that count",
            detail="Without the order in which rows came, a new row could replace one that counted at an earlier look. "
            "Then the sum of an alarm has no bound.",
            hint=f'Write arrived = "COLUMN" under [tables.{table.name}]: your promise that no row has an earlier value '
            "than one that was there before it. It may be the time itself, "
            f'arrived = "{_find_time(window_column, monitor)}", if rows come in its order.',
        )
    return table.arrival_column or _find_time(window_column, monitor)


def _check_rows_stay(question: Question, monitor: Monitor) -> None:
    """Raise KH603 if rows may move to another group or window. Such a row would count in two and be charged for one."""
    table = question.table
    own = [column for column in question.keys.columns if any(column.name == one.name for one in table.columns)]
    names = dict.fromkeys(name for column in own for name in _list_declared_base_columns(column, table))
    if monitor.windows.length is not None:
        names[monitor.windows.column] = None
    places = {name: table.get_column(name).immutable for name in names}
    moving = [name for name, stays in places.items() if not stays]
    if table.append_only or not moving:
        return
    listed = ", ".join(f'"{name}"' for name in sorted(places))
    raise refuse_table(
        monitor,
        f"rows of {table.name} may be changed, and a row whose {' or '.join(moving)} changes would count in two "
        "groups or windows, one after the other",
        detail="Each row is charged for one.",
        hint=f"Write append_only = true under [tables.{table.name}] if rows are never changed or deleted. Or write "
        f"immutable = [{listed}], if these never change for a row.",
    )


def _list_declared_base_columns(column: Column, table: Table) -> tuple[str, ...]:
    """Return the columns of the policy from which a key is computed, or the key itself."""
    if not is_made_by_question(column):
        return (column.name,)
    return tuple(name for base in column.bases for name in _list_declared_base_columns(table.get_column(base), table))


def _is_early(question: Question, regimes: tuple[Regime, ...], monitor: Monitor) -> bool:
    """Return True if keys alert before their windows close.

    Raise KH602 if that is requested for an unsuitable condition.
    """
    if monitor.is_stream:
        check_streamable(question, monitor)
        return True
    if monitor.clears_at_once and monitor.alert is None:
        return True
    if monitor.alert is Alert.CLOSE:
        if monitor.windows.sliding:
            hint = 'Remove alert = "close", or give the windows a hop.'
            raise refuse_condition(monitor, "a sliding window closes at every look", hint=hint)
        return False
    if stays_true_once_true(question, regimes):
        return True
    if monitor.early_any and monitor.windows.sliding:
        raise refuse_condition(
            monitor,
            "its condition may become false again, and early_any does not watch windows that slide",
            detail="In a sliding window only values that grow, above their thresholds, can be watched.",
            hint="Write a hop instead of sliding.",
        )
    if monitor.early_any:
        return True
    if monitor.alert is None and not monitor.windows.sliding:
        return False
    signed = any(regime is Regime.SIGNED for regime in regimes)
    detail = (
        "A sum of values that may be negative, a mean, a ratio, and a value below its threshold may go back."
        if signed or question.table.append_only
        else "If rows may be changed or removed, each part of a condition may hold at another look."
    )
    append = f"append_only = true under [tables.{question.table.name}] if rows are never changed or taken away"
    promise = "" if signed or question.table.append_only else f"Write {append}; or "
    raise refuse_condition(
        monitor,
        "its condition may become false again before the window closes, and an alert would stay",
        detail=detail,
        hint=f'{promise}write alert = "close", decided once, when the window is over; or early_any = true, which '
        "alerts early all the same, at up to three times the price.",
    )


def _check_sliding(question: Question, regimes: tuple[Regime, ...], monitor: Monitor) -> tuple[Regime, ...]:
    if not question.table.append_only or any(regime is not Regime.GROWING for regime in regimes):
        raise refuse_condition(
            monitor,
            "a sliding window needs rows that never change, and counts and sums that no row lowers",
            hint=f"Write append_only = true under [tables.{question.table.name}] if its rows are never changed or "
            'deleted. Or write a hop in the place of sliding, such as hop = "6 hours".',
        )
    sliding = (Regime.SLIDING,) * len(regimes)
    if not can_alarms_decide(question.formula, sliding):
        raise refuse_condition(
            monitor,
            "in a sliding window each of its thresholds could be passed at another look, and never all at once",
            hint="Make a monitor of each threshold, or join them by OR; or write a hop for sliding.",
        )
    return sliding


def _find_unit_loss(question: Question, loss: float) -> float:
    """Return the loss of a unit with several rows, from the loss of one group and window."""
    if question.table.is_row_unit:
        return 0.0
    return round_up_to_float(Fraction(loss) * count_unit_groups(question))


def _list_warnings(
    question: Question,
    standing: Standing,
    regimes: tuple[Regime, ...],
    monitor: Monitor,
    *,
    early: bool,
    trend: Trend | None,
) -> Iterator[str]:
    if monitor.is_stream:
        yield NO_BOUND.rstrip(".")
    if monitor.clears_at_once and question.table.arrival_column == monitor.windows.column:
        within = write_duration(monitor.lateness + SETTLING)
        yield (
            f"rows of {question.table.name} must be there within {within} of their {monitor.windows.column}, even "
            "if their loader stood still: later rows meet noise that was used before, and show through it; name in "
            "arrived a column that the database fills, which leaves such rows out"
        )
    if trend is not None and not early and monitor.alert is None and all(trend.fills):
        yield (
            "alerts come when a window closes, as rows may still change earlier windows: with append_only = true and "
            f"arrived under [tables.{question.table.name}] they come at the look at which the condition is true"
        )
    # of several thresholds that are watched as a whole the distance would not only grow either
    halved = not isinstance(standing, StandingDistance) or len(set(list_literals(question.formula))) == 1
    if early and halved and Regime.COMING_AND_GOING in regimes:
        dearer = "streams lose epsilon at every look of a window" if monitor.is_stream else "alarms cost twice as much"
        yield (
            f"rows of {question.table.name} may be changed or removed, so {dearer}: if they never are, write "
            f"append_only = true under [tables.{question.table.name}]"
        )
    whole = monitor.is_stream or isinstance(standing, StandingDistance)
    if early and whole and not stays_true_once_true(question, regimes):
        yield "an alert stays until its window closes, although the condition may have become false again"
