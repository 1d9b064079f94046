"""The identity of a monitor: everything on which its alerts and its cost depend, and the digest."""

from collections.abc import Iterator
from hashlib import sha256

from mechanisms.alarm.shapes import Regime
from planner.catalog.monitor import Monitor
from planner.monitors.monitor_plan import WindowPlan
from planner.monitors.trend import Trend
from planner.plan.question_identity import find_fingerprint
from planner.question.question import Question

FORMAT = "keyhole monitor 1"


def identify_monitor(
    monitor: Monitor,
    question: Question,
    windows: WindowPlan,
    *,
    seen_by: str,
    regimes: tuple[Regime, ...],
    whole: bool = False,
    trend: Trend | None = None,
) -> str:
    """Return the sha256 of a monitor's meaning, in hex.

    Guarantee: equal fingerprints mean the same question over the same keys and windows with the same contract (as in
    `planner.plan.question_identity.find_fingerprint`), with looks at the same moments, of rows that arrive in the same
    way. The monitor's comment and its readers are left out. Its name is included, because each monitor has random draws
    of its own.

    Parameters:
        whole: True if one alarm watches how far a group is inside the condition, instead of one for each threshold.
        trend: how the question's functionals are read off earlier windows, if they are.
    """
    lines = [*_list_lines(monitor, question, windows, seen_by, regimes), *["watched as a whole"] * whole]
    if trend is not None:
        lines += [f"weights {trend.weights!r}, rising {trend.rises!r}"]
    return sha256("\n".join(lines).encode()).hexdigest()


def _list_lines(
    monitor: Monitor, question: Question, windows: WindowPlan, seen_by: str, regimes: tuple[Regime, ...]
) -> Iterator[str]:
    yield FORMAT
    yield f"name {monitor.name}"
    yield find_fingerprint(question)
    yield f"windows {monitor.windows!r} from {windows.starts[0].isoformat()} {len(windows.starts)}"
    for start, look in zip(windows.starts, windows.first_looks, strict=True):
        yield f"{start.isoformat()} {look.isoformat()}"
    yield f"looks {windows.looks} every {windows.every} late {windows.lateness}"
    yield f"mechanism {monitor.mechanism} progressive {monitor.progressive}"
    if monitor.clears_at_once:
        yield f"clears at once, settling {windows.settling}"
    if monitor.epsilon is not None:
        yield f"epsilon {monitor.epsilon!r}"
    yield f"rows {question.table.append_only} by {seen_by!r} {question.table.arrival_column!r}"
    yield f"regimes {' '.join(regime.name for regime in regimes)}"
