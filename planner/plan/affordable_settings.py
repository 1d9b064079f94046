"""Settings with which a question costs no more than the rest of the budget, each planned before it is suggested.

Costs fall about as tolerances and group sizes grow. So the search starts where that would be enough and halves from
there: some six calibrations for each setting, whatever the question.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import TypeAlias

from mechanisms.protocol import Calibration, Unachievable
from planner.errors import KeyholeError
from planner.plan.calibrate import choose_calibration
from planner.plan.rank import choose_ranking
from planner.plan.reduce import reduce_question
from planner.question.plan import find_joint_epsilon
from planner.question.question import Question

MOST_TOLERANCE = Decimal(50)  # percent that a hint offers: beyond, an answer says little about the threshold
MOST_MISSES = Decimal("0.2")  # false-negative rate that a hint offers: beyond, every fifth group is missed
_TENTHS = range(1, int(MOST_TOLERANCE * 10) + 1)  # tenths of a percent
_RATES = (*(Decimal(n) / 1000 for n in range(1, 10)), *(Decimal(n) / 100 for n in range(1, int(MOST_MISSES * 100) + 1)))
_ROUND = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)  # numbers that hints show, times powers of ten: steps of about 1.25
_STRIDES = 64  # how many first strides make all steps: shorter ones find a good guess sooner, and bad ones later
_LARGEST_FACTOR = 1000  # by which a hint raises a number of rows: beyond, another question was meant
_LARGEST_NUMBER = 10**9  # that a hint shows: no group has so many rows

FitTest: TypeAlias = Callable[[Question, Calibration], bool]


@dataclass(frozen=True, slots=True)
class AffordableValue:
    """A value of a setting with which the question fits.

    `text` is the value, `epsilon` the worst-case cost of the question with it, and `factor` the value divided by the
    value in force.
    """

    text: str
    epsilon: float
    factor: float


def never_fits_otherwise(_question: Question, _calibration: Calibration) -> bool:
    """Return False, the default of `CostLimit.fits_otherwise`: a question that costs more than the limit never fits."""
    return False


@dataclass(frozen=True, slots=True)
class CostLimit:
    """The limit that a question has to meet while its settings are changed.

    A question meets it if it costs at most `epsilon`, or if `fits_otherwise` returns True. `cost` is its cost with the
    settings in force.
    """

    epsilon: float
    cost: float
    fits_otherwise: FitTest = never_fits_otherwise

    @property
    def ratio(self) -> float:
        """The ratio of the present cost to the limit."""
        return self.cost / self.epsilon if self.epsilon > 0 else float("inf")


def find_smallest_tolerance(
    asked: Callable[[str], Question],
    target: CostLimit,
    *,
    now: Decimal = Decimal(10),
    form: str = "%",
    most: Decimal = MOST_TOLERANCE,
) -> AffordableValue | None:
    """Return the smallest tolerance, in percent, with which the question meets the limit, as `keyhole.tolerance` text.

    Guarantee: planned with the returned tolerance, the worst case is at most `target.epsilon`, or `fits_otherwise` is
    True. The result is None if `most` is not enough. At most 23 calibrations are made, and usually six.

    Parameters:
        asked: returns the question with a given tolerance; a refusal counts as "does not fit".
        now: the tolerance in force, in percent; it only decides where the search starts.
        form: the text behind the number: a percent sign, or that of the declared bounds.
        most: the largest percentage that is tried, `MOST_TOLERANCE` at most.
    """
    steps = min(int(most * 10), len(_TENTHS))
    if steps < 1:
        return None
    guess = _find_start(float(now) * 10 * target.ratio, steps)
    tried = _TriedSteps(target)
    tenths = _find_first_fit(
        steps, lambda step: tried.fits(step, lambda: asked(_write_percent(_TENTHS[step]) + form)), guess=guess
    )
    if tenths is None:
        return None
    return AffordableValue(
        _write_percent(_TENTHS[tenths]) + form, tried.costs[tenths], _TENTHS[tenths] / max(float(now) * 10, 1)
    )


def find_smallest_fnr(
    asked: Callable[[float], Question], target: CostLimit, *, now: float = 0.05
) -> AffordableValue | None:
    """Return the smallest false-negative rate (0.001 to 0.2) with which the question meets the limit, as text.

    Guarantee and parameters as for `find_smallest_tolerance`, with at most fourteen calibrations.
    """
    tried = _TriedSteps(target)
    rate = _find_first_fit(
        len(_RATES), lambda step: tried.fits(step, lambda: asked(float(_RATES[step]))), guess=len(_RATES) - 1
    )
    return None if rate is None else AffordableValue(str(_RATES[rate]), tried.costs[rate], float(_RATES[rate]) / now)


def find_smallest_number(
    asked: Callable[[int], Question], target: CostLimit, *, now: int, most: int = _LARGEST_NUMBER
) -> AffordableValue | None:
    """Return the smallest round number of a group's rows, above `now`, with which the question meets the limit.

    Guarantee and parameters as for `find_smallest_tolerance`, with at most twelve calibrations.

    Parameters:
        most: the largest number that a group can have.
    """
    numbers = list_round_numbers(above=now, below=min(now * _LARGEST_FACTOR, most))
    if not numbers:
        return None
    tried = _TriedSteps(target)
    guess = next((step for step, number in enumerate(numbers) if number >= now * target.ratio), len(numbers) - 1)
    found = _find_first_fit(len(numbers), lambda step: tried.fits(step, lambda: asked(numbers[step])), guess=guess)
    return None if found is None else AffordableValue(str(numbers[found]), tried.costs[found], numbers[found] / now)


def list_round_numbers(*, above: int, below: int) -> Sequence[int]:
    """Return the round numbers above `above` and up to `below`: 10, 12, 15, 20 and so on, times powers of ten."""
    found: list[int] = []
    power = 1
    while power <= below:
        found += [digits * power // 10 for digits in _ROUND if digits * power % 10 == 0]
        power *= 10
    return [number for number in dict.fromkeys(found) if above < number <= below]


def find_cost(asked: Callable[[], Question], target: CostLimit) -> float | None:
    """Return the cost of a question if it meets the limit.

    Return None if the cost is too high, or the question is refused.
    """
    tried = _TriedSteps(target)
    return tried.costs[0] if tried.fits(0, asked) else None


class _TriedSteps:
    """The steps of a search that were tried, with their costs."""

    def __init__(self, target: CostLimit) -> None:
        self._target = target
        self.costs: dict[int, float] = {}

    def fits(self, step: int, asked: Callable[[], Question]) -> bool:
        """Return True if the question of that step fits."""
        try:
            reduced = reduce_question(asked())[0]
            calibration, _ = choose_calibration(reduced)
            cost = find_joint_epsilon(calibration, choose_ranking(reduced))
        except (KeyholeError, Unachievable):
            return False
        self.costs[step] = cost
        target = self._target
        return cost <= target.epsilon or target.fits_otherwise(reduced, calibration)


def _find_start(tenths: float, steps: int) -> int:
    return min(max(ceil(min(tenths, steps)), 1), steps) - 1


def _find_first_fit(steps: int, fits: Callable[[int], bool], *, guess: int) -> int | None:
    """Return the first step that fits, or None.

    The search starts from a guess, doubles its strides and then halves them. The returned step has been tried.
    """
    low, high, stride = 0, guess, max(1, steps // _STRIDES)
    if not fits(steps - 1):  # most settings that are not enough are found out by one try
        return None
    if guess == steps - 1 or fits(guess):
        while high > low:  # step down from what fits
            below = max(high - stride, 0)
            if not fits(below):
                low = below + 1
                break
            high, stride = below, 2 * stride
    else:
        while True:  # step up from what does not
            low, high, stride = high + 1, min(high + stride, steps - 1), 2 * stride
            if high == steps - 1 or fits(high):
                break
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _write_percent(tenths: int) -> str:
    whole, tenth = divmod(tenths, 10)
    return f"{whole}.{tenth}" if tenth else f"{whole}"
