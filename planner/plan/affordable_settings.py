"""Settings with which a question costs no more than what is left, found by halving: each is tried before it is told."""

from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

from mechanisms.protocol import Calibration, Unachievable
from planner.errors import KeyholeError
from planner.plan.calibrate import choose_calibration
from planner.plan.reduce import reduce_question
from planner.question.model import Question

_TENTHS = range(1, 1001)  # tenths of a percent
_RATES = (*(Decimal(n) / 1000 for n in range(1, 10)), *(Decimal(n) / 100 for n in range(1, 46)))

OtherWay: TypeAlias = Callable[[Question, Calibration], bool]


def no_other_way(_question: Question, _calibration: Calibration) -> bool:
    """A question that costs more than what is left does not fit."""
    return False


def smallest_tolerance(
    asked: Callable[[str], Question], *, epsilon: float, otherwise: OtherWay = no_other_way
) -> str | None:
    """The smallest percentage tolerance with which a question costs at most `epsilon`, as `keyhole.tolerance` text.

    Guarantee: planned with the returned tolerance, the worst case is at most `epsilon`, or there is the other way; None
    when 100 % is not enough. At most eleven calibrations are made, whatever the question.

    Parameters:
        asked: the question with a given tolerance; a refusal counts as "does not fit".
        epsilon: what a key may cost.
        otherwise: whether a question, minimised and calibrated, fits although it costs more.
    """
    tenths = _find_first_fit(
        len(_TENTHS),
        lambda step: _fits(lambda: asked(_percent(_TENTHS[step])), epsilon=epsilon, otherwise=otherwise),
    )
    return None if tenths is None else _percent(_TENTHS[tenths])


def smallest_fnr(
    asked: Callable[[float], Question], *, epsilon: float, otherwise: OtherWay = no_other_way
) -> str | None:
    """The smallest false-negative rate (0.001 to 0.45) with which a question costs at most `epsilon`, as text.

    Guarantee and parameters as for `smallest_tolerance`, with at most eight calibrations.
    """
    rate = _find_first_fit(
        len(_RATES), lambda step: _fits(lambda: asked(float(_RATES[step])), epsilon=epsilon, otherwise=otherwise)
    )
    return None if rate is None else str(_RATES[rate])


def _find_first_fit(steps: int, fits: Callable[[int], bool]) -> int | None:
    """The first step that fits, looked for by halving: what is returned has been tried."""
    if not fits(steps - 1):
        return None
    low, high = 0, steps - 1
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _fits(asked: Callable[[], Question], *, epsilon: float, otherwise: OtherWay) -> bool:
    try:
        reduced, _ = reduce_question(asked())
        calibration, _ = choose_calibration(reduced)
    except (KeyholeError, Unachievable):
        return False
    return calibration.worst_case_epsilon <= epsilon or otherwise(reduced, calibration)


def _percent(tenths: int) -> str:
    whole, tenth = divmod(tenths, 10)
    return f"{whole}.{tenth}%" if tenth else f"{whole}%"
