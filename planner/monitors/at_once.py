"""A monitor whose alerts go at once: what it needs of its table, the noise that watches it, and what else would.

Each stretch of time between two looks has noise of its own, drawn once. That hides a row as long as the rows of a
stretch stay the same, at whatever look they are counted: docs/proofs/standing.md.
"""

from dataclasses import replace

from mechanisms.alarm.prices import PricedWay, WatchedWindow, Way, price_ways
from mechanisms.alarm.shapes import Regime
from mechanisms.formula import Formula
from mechanisms.protocol import DecisionTask, Unachievable
from mechanisms.standing.alarms import can_alarms_decide
from mechanisms.standing.sliding_noise import SlidingNoise, calibrate_sliding
from mechanisms.standing.window_noise import estimate_state_size, shape_window
from planner.catalog.catalog import SqlType
from planner.catalog.monitor import Monitor
from planner.functionals.sensitivity import find_joint_sensitivity
from planner.monitors.monitor_plan import WindowPlan
from planner.monitors.monitor_question_refusals import (
    cannot_be_watched,
    table_cannot_be_watched,
    unreachable,
    windows_do_not_fit,
)
from planner.policy.durations import find_nearest_divisor, write_duration
from planner.question.question import Question

MOST_STATE_BYTES = 32_000_000
"""Of the noise of all groups, read and written at each look: measured at some 20 ms a megabyte, and a log of the
ledger's database grows by it."""
_MOST_ROWS = 10**9  # of a window: more would allow fewer steps a row; chosen as more than a look could read
_LARGEST = 2**62  # totals are held within it, which would make a stretch's part of them depend on the others
_LONGER = 12  # doublings of `every` that are tried, only to word a hint


def check_in_time(question: Question, monitor: Monitor) -> None:
    """Refuse tables of whose rows nobody says that they stay, or when they came, and sums that could be held back.

    Raises KH602, KH603.
    """
    table, time = question.table, monitor.windows.column
    if not table.append_only:
        raise table_cannot_be_watched(
            monitor,
            f"rows of {table.name} may be changed or taken away, and noise that is drawn once hides rows that stay",
            hint=f"Write append_only = true under [tables.{table.name}] if rows are never changed or taken away; or "
            'clears = "at the close" and windows that hop.',
        )
    if table.arrival_column is None:
        raise table_cannot_be_watched(
            monitor,
            f"nothing says when rows of {table.name} came, and a late row must not count any more",
            detail="Noise on a stretch of time is drawn once. Two counts of it under the same noise would reveal their "
            "exact difference.",
            hint=f'Write arrived = "COLUMN" under [tables.{table.name}]: your promise that no row has an earlier value '
            f'than one that was there before it. It may be the time itself, arrived = "{time}", where rows come in the '
            "order of it, each by lateness and a minute after it.",
        )
    if table.arrival_column != time and table.get_column(table.arrival_column).sql_type is not SqlType.TIMESTAMP:
        raise table_cannot_be_watched(
            monitor,
            f"{table.arrival_column} says on which day rows came, and not whether they were there at a look",
            hint=f"Name a timestamp in arrived under [tables.{table.name}].",
        )
    for functional in question.functionals:
        if functional.sensitivity * _MOST_ROWS > _LARGEST:
            raise cannot_be_watched(
                monitor,
                f"{functional.name} has steps so fine that sums of many rows are beyond 64-bit integers",
                hint="Declare narrower bounds, or a coarser grid, for the summed column.",
            )


def watch_at_once(question: Question, windows: WindowPlan, monitor: Monitor) -> SlidingNoise:
    """Calibrate the noise of least loss that keeps the contract at each look of a question over the keys alone.

    Raises KH303, KH601.
    """
    looks = windows.length // windows.every

    def calibrate(formula: Formula) -> SlidingNoise:
        task = DecisionTask(
            formula=formula,
            sensitivities=tuple(functional.sensitivity for functional in question.functionals),
            exposures=find_joint_sensitivity(question).find_exposures(),
            fnr=question.accuracy.fnr,
            fpr=question.accuracy.fpr,
            keys=question.keys.size,
        )
        return calibrate_sliding(task, window=looks, looks=windows.looks)

    _check_state(question, windows, monitor)
    try:
        return calibrate(question.formula)
    except Unachievable as refusal:
        raise unreachable(monitor, question, looks=looks, refusal=refusal, calibrate=calibrate) from None


def price_at_once(
    question: Question, standing: SlidingNoise, watched: WatchedWindow, regimes: tuple[Regime, ...]
) -> tuple[tuple[PricedWay, ...], int]:
    """Return the ways of watching such windows, the cheapest first, and the place of the one that is taken.

    It is the cheapest of those that let an alert go at once with noise that is drawn once.
    """
    growing = set(regimes) == {Regime.GROWING} and can_alarms_decide(question.formula, (Regime.SLIDING,) * len(regimes))
    ways = price_ways(
        watched,
        fnr=question.accuracy.fnr,
        fpr=question.accuracy.fpr,
        clearing=watched.length if growing else 0,
        regime=Regime.GROWING,
        is_append_only=True,
    )
    way = Way.TICK_NOISE if standing.shape.block == 1 else Way.BLOCK_NOISE
    return ways, next(place for place, one in enumerate(ways) if one.way is way)


def _check_state(question: Question, windows: WindowPlan, monitor: Monitor) -> None:
    if _bytes_of(question, windows) <= MOST_STATE_BYTES:
        return
    fitting = max(1, question.keys.size * MOST_STATE_BYTES // _bytes_of(question, windows))
    longer = (find_nearest_divisor(windows.length, windows.every * 2**doubling) for doubling in range(1, _LONGER))
    every = next((one for one in longer if _bytes_of(question, replace(windows, every=one)) <= MOST_STATE_BYTES), None)
    seldom = "" if every is None else f', or write every = "{write_duration(every)}"'
    raise windows_do_not_fit(
        monitor,
        f"the noise of {question.keys.size:,} groups for {windows.length // windows.every:,} stretches of time is more "
        f"than the {MOST_STATE_BYTES // 1_000_000} MB that may be written at each look",
        hint=f"Restrict the keys in WHERE, or group by less, to {fitting:,} groups{seldom}.",
    )


def _bytes_of(question: Question, windows: WindowPlan) -> int:
    shape = shape_window(windows.length // windows.every, fnr=question.accuracy.fnr, fpr=question.accuracy.fpr)
    return estimate_state_size(shape, functionals=len(question.functionals), keys=question.keys.size)
