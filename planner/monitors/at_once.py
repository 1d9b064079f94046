"""A monitor whose alerts are cleared at once: its demands on the table, its noise, and the prices of other ways.

Each stretch of time between two looks has noise of its own, drawn once. The noise hides a row as long as the rows of a
stretch stay the same at every look that counts them: docs/proofs/standing.md.
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
    refuse_condition,
    refuse_table,
    refuse_unreachable,
    refuse_windows,
)
from planner.policy.durations import find_nearest_divisor, write_duration
from planner.question.question import Question

MOST_STATE_BYTES = 32_000_000
"""The most bytes of the noise of all groups. They are read and written at each look, which takes some 20 ms a megabyte
and grows a log of the ledger's database."""
_MOST_ROWS = 10**9  # of a window: more would allow fewer steps a row; chosen as more than a look could read
_LARGEST = 2**62  # totals are held within it, which would make a stretch's part of them depend on the others
_LONGER = 12  # doublings of `every` that are tried, only to word a hint


def check_in_time(question: Question, monitor: Monitor) -> None:
    """Raise KH602 for sums that could overflow, and KH603 for tables without a promise on when rows come and stay."""
    table, time = question.table, monitor.windows.column
    if not table.append_only:
        raise refuse_table(
            monitor,
            f"rows of {table.name} may be changed or taken away, and noise that is drawn once hides only rows that "
            "stay",
            hint=f"Write append_only = true under [tables.{table.name}] if rows are never changed or taken away; or "
            'clears = "at the close" and windows that hop.',
        )
    if table.arrival_column is None:
        raise refuse_table(
            monitor,
            f"nothing says when rows of {table.name} came, and a late row must not count any more",
            detail="Noise on a stretch of time is drawn once. Two counts of it under the same noise would reveal their "
            "exact difference.",
            hint=f'Write arrived = "COLUMN" under [tables.{table.name}]: your promise that no row has an earlier value '
            f'than one that was there before it. It may be the time itself, arrived = "{time}", if rows come in its '
            "order, each at most lateness and a minute after its time.",
        )
    if table.arrival_column != time and table.get_column(table.arrival_column).sql_type is not SqlType.TIMESTAMP:
        raise refuse_table(
            monitor,
            f"{table.arrival_column} has only the day on which rows came, not whether they were there at a look",
            hint=f"Name a timestamp in arrived under [tables.{table.name}].",
        )
    for functional in question.functionals:
        if functional.sensitivity * _MOST_ROWS > _LARGEST:
            raise refuse_condition(
                monitor,
                f"{functional.name} has steps so fine that sums of many rows are beyond 64-bit integers",
                hint="Declare narrower bounds, or a coarser grid, for the summed column.",
            )


def calibrate_sliding_noise(question: Question, windows: WindowPlan, monitor: Monitor) -> SlidingNoise:
    """Return the cheapest noise that keeps the contract at each look of a question with sliding windows.

    Raises KH303 if no noise keeps the contract, KH601 for windows that are too long.
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
        raise refuse_unreachable(monitor, question, looks=looks, refusal=refusal, calibrate=calibrate) from None


def price_at_once(
    question: Question, standing: SlidingNoise, watched: WatchedWindow, regimes: tuple[Regime, ...]
) -> tuple[tuple[PricedWay, ...], int]:
    """Return the ways of watching sliding windows, the cheapest first, and the index of the chosen way.

    The chosen way is the cheapest one that clears alerts at once and draws no noise again at later looks.
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
    way = Way.TICK_NOISE if standing.shape.block_ticks == 1 else Way.BLOCK_NOISE
    return ways, next(place for place, one in enumerate(ways) if one.way is way)


def _check_state(question: Question, windows: WindowPlan, monitor: Monitor) -> None:
    if _count_state_bytes(question, windows) <= MOST_STATE_BYTES:
        return
    fitting = max(1, question.keys.size * MOST_STATE_BYTES // _count_state_bytes(question, windows))
    longer = (find_nearest_divisor(windows.length, windows.every * 2**doubling) for doubling in range(1, _LONGER))
    every = next(
        (one for one in longer if _count_state_bytes(question, replace(windows, every=one)) <= MOST_STATE_BYTES), None
    )
    seldom = "" if every is None else f', or write every = "{write_duration(every)}"'
    raise refuse_windows(
        monitor,
        f"the noise of {question.keys.size:,} groups for {windows.length // windows.every:,} stretches of time is more "
        f"than the {MOST_STATE_BYTES // 1_000_000} MB that may be written at each look",
        hint=f"Restrict the keys in WHERE, or group by less, to {fitting:,} groups{seldom}.",
    )


def _count_state_bytes(question: Question, windows: WindowPlan) -> int:
    shape = shape_window(windows.length // windows.every, fnr=question.accuracy.fnr, fpr=question.accuracy.fpr)
    return estimate_state_size(shape, functionals=len(question.functionals), keys=question.keys.size)
