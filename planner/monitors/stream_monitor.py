"""A monitor that a published stream mechanism watches: its conditions, loss, and the price of a contract."""

from fractions import Fraction

from mechanisms.alarm.prices import PricedWay, WatchedWindow, Way
from mechanisms.formula import list_literals
from mechanisms.protocol import Unachievable
from mechanisms.standing.standing_streams import StandingStream, watch_by_stream
from mechanisms.standing.standing_task import StandingTask
from planner.catalog.monitor import Alert, Monitor
from planner.monitors.monitor_question_refusals import refuse_condition, refuse_windows
from planner.question.question import Question

MOST_STREAMED = 1_000_000
"""The most keys times looks of a window: the numbers that a stream keeps for one window, each estimated alone."""


def check_streamable(question: Question, monitor: Monitor) -> None:
    """Raise KH602 for a question that no stream can estimate."""
    if monitor.alert is Alert.CLOSE or monitor.windows.sliding:
        hint = 'Write mechanism = "alarm", or use tumbling windows without alert = "close".'
        raise refuse_condition(
            monitor,
            f"{monitor.mechanism} can neither watch sliding windows nor alert only at a window's close",
            hint=hint,
        )
    if any(not literal.above for literal in list_literals(question.formula)):
        hint = 'Compare with > and >=, joined by AND and OR; or write mechanism = "alarm", alert = "close".'
        raise refuse_condition(
            monitor, f"{monitor.mechanism} cannot watch whether a value is below a threshold", hint=hint
        )
    if any(functional.offsets is not None for functional in question.functionals):
        hint = 'Compare with one number for all groups, or write mechanism = "alarm".'
        raise refuse_condition(
            monitor, f"{monitor.mechanism} cannot compare with a threshold that differs between groups", hint=hint
        )


def make_stream_watch(question: Question, task: StandingTask, monitor: Monitor) -> StandingStream:
    """Return the stream that watches the question.

    Raises KH601 for more numbers than a stream can keep, KH602 for noise that cannot be drawn.
    """
    if question.keys.size * task.looks > MOST_STREAMED:
        raise refuse_windows(
            monitor,
            f"{question.keys.size:,} groups times {task.looks:,} looks a window are more than the {MOST_STREAMED:,} "
            "that a stream may have",
            hint='Restrict the keys in WHERE, look less often, or write mechanism = "alarm".',
        )
    try:
        return watch_by_stream(task, name=monitor.mechanism, epsilon=Fraction(str(monitor.epsilon or 0)))
    except Unachievable as refusal:
        raise refuse_condition(
            monitor,
            f"{monitor.mechanism} with epsilon = {monitor.epsilon or 0:g}: {refusal.reason}",
            hint='Write another epsilon, or mechanism = "alarm".',
        ) from None


def price_stream(watched: WatchedWindow, *, epsilon: float, per_price: float) -> PricedWay:
    """Return a stream as a `PricedWay`. `per_price` is the epsilon of one unit of a way's price."""
    return PricedWay(Way.STREAM, epsilon / per_price, clearing_looks=watched.hop, regime=None, is_per_look=False)
