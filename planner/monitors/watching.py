"""The choice of how a standing question is watched: alarms, a decision at the close, a stream, or noise on ticks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from mechanisms.alarm.prices import PricedWay, WatchedWindow, Way, price_at_close, price_each_look, price_ways
from mechanisms.alarm.shapes import Regime
from mechanisms.alarm.weights import ROUNDED
from mechanisms.formula import Formula
from mechanisms.protocol import DecisionTask, Exposure, Unachievable
from mechanisms.registry import MECHANISMS
from mechanisms.standing.alarms import StandingAlarms, calibrate_standing_alarms
from mechanisms.standing.close import decide_at_close
from mechanisms.standing.distance import StandingDistance, calibrate_cheapest_early, list_early_mechanisms
from mechanisms.standing.standing_protocol import Standing
from mechanisms.standing.standing_task import StandingTask
from mechanisms.threshold.one_shot import round_up_to_float
from planner.catalog.key_space import KeySpace
from planner.catalog.monitor import Monitor
from planner.functionals.sensitivity import find_joint_sensitivity
from planner.monitors.at_once import calibrate_sliding_noise, price_at_once
from planner.monitors.growth import list_leasts, stays_true_once_true
from planner.monitors.monitor_plan import WindowPlan
from planner.monitors.monitor_question_refusals import add_monitor_name, refuse_unreachable
from planner.monitors.stream_monitor import make_stream_watch, price_stream
from planner.monitors.trend import Trend
from planner.monitors.windows import Horizon
from planner.plan.calibrate import calibrate_without_common_sums
from planner.plan.plan_refusals import refuse_unreachable as plan_refusal
from planner.question.question import Question
from planner.question.unit_groups import count_unit_groups


@dataclass(frozen=True, slots=True)
class WatchDecision:
    """The chosen mechanism of a monitor, the cost of a group and window, and all ways with the index of the chosen one.

    `watches_whole`: one alarm watches the whole condition.
    """

    standing: Standing
    ways: tuple[PricedWay, ...]
    chosen_way: int
    per_price: float
    per_cell: float
    watches_whole: bool


def decide_watching(
    question: Question,
    regimes: tuple[Regime, ...],
    horizon: Horizon,
    windows: WindowPlan,
    *,
    keys: KeySpace,
    monitor: Monitor,
    early: bool,
    trend: Trend | None,
) -> WatchDecision:
    """Return the mechanism that watches a standing question, its cost, and the alternatives.

    Parameters:
        question: the standing question over the whole horizon.
        keys: the keys of one window.
        early: True if a window has looks before its close.
        trend: how the question's functionals are read off earlier windows, if they are.

    Raises:
        KeyholeError: KH303 if nothing keeps the contract, KH601, KH602, and as the question itself.
    """
    of_window = replace(question, keys=keys)
    if monitor.clears_at_once:
        return _watch_at_once(of_window, regimes, horizon, windows, monitor)
    if trend is not None:
        return _watch_trend(of_window, trend, horizon, windows, monitor, early=early)
    monotone = monitor.windows.sliding or stays_true_once_true(question, regimes)
    task = make_standing_task(of_window, regimes, looks=windows.looks, monitor=monitor, monotone=monotone)
    standing = _choose_mechanism(of_window, task, monitor, early=early)
    watched = horizon.count_in_looks(monitor)
    ways: tuple[PricedWay, ...] = ()
    taken, per_price = 0, 1.0
    plain = _list_compared_mechanisms(of_window, task, standing, monitor, early=early)
    if plain:
        # of both kinds of alarms, others are priced beside those for each threshold, between which they split rates too
        beside = next((one for one in plain if isinstance(one, StandingAlarms)), plain[0])
        ways, taken = _price_ways(question, watched, _find_alarm_regimes(beside, regimes), early=early)
        per_price = _find_cell_loss(question, horizon, beside, monitor) / ways[taken].price
        if len(plain) > 1:
            losses = [(one, _find_cell_loss(question, horizon, one, monitor)) for one in plain]
            ways, taken = _price_both_alarm_kinds(ways, taken, losses, per_price, regimes)
    per_cell = _find_cell_loss(question, horizon, standing, monitor)
    if monitor.is_stream:
        ways, taken = (price_stream(watched, epsilon=per_cell, per_price=per_price), *ways), 0
    whole = isinstance(standing, StandingDistance) or (monitor.is_stream and not monotone)
    return WatchDecision(standing, ways, taken, per_price, per_cell, watches_whole=whole)


def _watch_at_once(
    question: Question,
    regimes: tuple[Regime, ...],
    horizon: Horizon,
    windows: WindowPlan,
    monitor: Monitor,
) -> WatchDecision:
    """Return how all looks of the horizon are watched together. An event costs the same, however many looks see it."""
    standing = calibrate_sliding_noise(question, windows, monitor)
    ways, taken = price_at_once(question, standing, horizon.count_in_looks(monitor), regimes)
    loss = standing.worst_case_epsilon
    return WatchDecision(standing, ways, taken, loss / ways[taken].price, loss, watches_whole=False)


def _watch_trend(
    question: Question, trend: Trend, horizon: Horizon, windows: WindowPlan, monitor: Monitor, *, early: bool
) -> WatchDecision:
    """Return how thresholds on a window and earlier ones are watched: by an alarm for each, or when a window closes.

    Sensitivities cover all windows that read a row, so the mechanism's loss does too. An alarm's rounding is added for
    each of these windows.
    """

    def calibrate(formula: Formula) -> Standing:
        asked = replace(question, formula=formula)
        if early:
            task = make_standing_task(asked, trend.regimes, looks=windows.looks, monitor=monitor, joint=trend.exposures)
            return calibrate_standing_alarms(task, rises=all(trend.rises), constant=trend.constant)
        return decide_at_close(MECHANISMS[question.accuracy.mechanism], make_closing_task(asked, trend.exposures))

    try:
        standing = calibrate(question.formula)
    except Unachievable as refusal:
        looks = windows.looks
        raise refuse_unreachable(monitor, question, looks=looks, refusal=refusal, calibrate=calibrate) from None
    alarms = len(standing.literals) if isinstance(standing, StandingAlarms) else 0
    loss = round_up_to_float(Fraction(standing.worst_case_epsilon) + (len(trend.earlier) - 1) * alarms * ROUNDED)
    ways, taken = _price_ways(question, horizon.count_in_looks(monitor), trend.regimes, early=early)
    return WatchDecision(standing, ways, taken, loss / ways[taken].price, loss, watches_whole=False)


def make_closing_task(question: Question, exposures: tuple[Exposure, ...]) -> DecisionTask:
    """Return a question about one window that is decided at its close, with noise on sums and never on block indices.

    A unit that changes a value by a part of its sensitivity may move a block index by a whole step, in each window that
    reads its rows.
    """
    return DecisionTask(
        formula=question.formula,
        sensitivities=tuple(functional.sensitivity for functional in question.functionals),
        exposures=exposures,
        fnr=question.accuracy.fnr,
        fpr=question.accuracy.fpr,
        blocks=frozenset(),
        keys=question.keys.size,
    )


def _choose_mechanism(question: Question, task: StandingTask, monitor: Monitor, *, early: bool) -> Standing:
    """Return the mechanism that decides a window."""
    if monitor.is_stream:
        return make_stream_watch(question, task, monitor)
    return _calibrate(question, task, monitor) if early else _calibrate_close(question, monitor)


def _list_compared_mechanisms(
    question: Question, task: StandingTask, standing: Standing, monitor: Monitor, *, early: bool
) -> tuple[Standing, ...]:
    """Return the mechanisms whose prices are compared: single alarms, first the kind that is used or would be.

    Return none if a stream watches a question that no alarm can watch.
    """
    if not early:
        return (standing,)
    alone = replace(task, progressive=False)
    try:
        found = list_early_mechanisms(alone)
    except Unachievable:
        return () if monitor.is_stream else (_calibrate(question, alone, monitor),)
    return tuple(sorted(found, key=lambda one: type(one) is not type(standing)))


def _calibrate(question: Question, task: StandingTask, monitor: Monitor) -> Standing:
    try:
        return calibrate_cheapest_early(task)
    except Unachievable as refusal:

        def calibrate(formula: Formula) -> Standing:
            return calibrate_cheapest_early(replace(task, formula=formula))

        raise refuse_unreachable(monitor, question, looks=task.looks, refusal=refusal, calibrate=calibrate) from None


def _calibrate_close(question: Question, monitor: Monitor) -> Standing:
    """Return the decision of a window when it closes: the cheapest way of answering the question once."""
    try:
        calibration = calibrate_without_common_sums(question)
        return decide_at_close(MECHANISMS[calibration.mechanism], calibration.task)
    except Unachievable as refusal:
        refused = plan_refusal(question, refusal, calibrate=calibrate_without_common_sums)
        raise add_monitor_name(monitor, refused) from None


def make_standing_task(
    question: Question,
    regimes: tuple[Regime, ...],
    *,
    looks: int,
    monitor: Monitor,
    monotone: bool = True,
    joint: tuple[Exposure, ...] | None = None,
) -> StandingTask:
    """Return a monitor's question as numbers for a mechanism.

    Parameters:
        joint: the parts by which a unit changes the functionals at once, if they do not follow from the question.
    """
    return StandingTask(
        formula=question.formula,
        sensitivities=tuple(functional.sensitivity for functional in question.functionals),
        exposures=find_joint_sensitivity(question).find_exposures() if joint is None else joint,
        regimes=regimes,
        least_values=list_leasts(question, regimes),
        looks=looks,
        fnr=question.accuracy.fnr,
        fpr=question.accuracy.fpr,
        progressive=monitor.progressive,
        monotone=monotone,
    )


def _find_alarm_regimes(standing: Standing, regimes: tuple[Regime, ...]) -> tuple[Regime, ...]:
    """Return how the watched values change: the values themselves, or the distance of the whole condition."""
    return (standing.distance_regime,) if isinstance(standing, StandingDistance) else regimes


def _price_ways(
    question: Question, watched: WatchedWindow, regimes: tuple[Regime, ...], *, early: bool
) -> tuple[tuple[PricedWay, ...], int]:
    """Return the ways that would keep the contract, the cheapest first, and the index of the chosen one."""
    rates = {"fnr": question.accuracy.fnr, "fpr": question.accuracy.fpr}
    if not early:
        once = PricedWay(way=Way.CLOSE, price=price_at_close(**rates), clearing_looks=0, regime=None, is_per_look=False)
        looks = watched.length
        afresh = PricedWay(
            Way.AFRESH, price_each_look(looks=looks, **rates), clearing_looks=0, regime=None, is_per_look=True
        )
        return (once, afresh) if looks > 1 else (once,), 0
    worst = max((Regime.GROWING if one is Regime.SLIDING else one for one in regimes), key=lambda one: one.loss_factor)
    ways = price_ways(
        watched,
        **rates,
        clearing=watched.length,
        regime=worst,
        is_append_only=question.table.append_only,
    )
    return ways, next(place for place, one in enumerate(ways) if one.regime is not None)


def _price_both_alarm_kinds(
    ways: tuple[PricedWay, ...],
    taken: int,
    losses: Sequence[tuple[Standing, float]],
    per_price: float,
    regimes: tuple[Regime, ...],
) -> tuple[tuple[PricedWay, ...], int]:
    """Return the ways with both kinds of alarms in the place of one, the cheapest first, and the first kind's index."""
    alarm = ways[taken]
    both = []
    for one, loss in losses:
        way = Way.ALARM_WHOLE if isinstance(one, StandingDistance) else Way.ALARM_EACH
        regime = max(_find_alarm_regimes(one, regimes), key=lambda each: each.loss_factor)
        both.append(replace(alarm, way=way, price=loss / per_price, regime=regime))
    others = (*ways[:taken], *ways[taken + 1 :])
    made = tuple(sorted((*both, *others), key=lambda one: one.price))
    return made, made.index(both[0])


def _find_cell_loss(question: Question, horizon: Horizon, standing: Standing, monitor: Monitor) -> float:
    """Return the cost of a group and window. If windows hop, it covers all windows that a row is in."""
    if monitor.windows.sliding:
        return standing.worst_case_epsilon  # of both epochs that a row is in
    overlapping = ceil(horizon.length / horizon.period)
    if not question.table.is_row_unit:
        overlapping = min(overlapping, count_unit_groups(question))
    return round_up_to_float(Fraction(standing.worst_case_epsilon) * overlapping)
