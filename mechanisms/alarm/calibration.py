"""An alarm as numbers: its contract, and the least loss that keeps it, by public inputs alone.

At each look of a window the alarm adds the weight `exp(rate * value)` to a total. It rings at the first look at which
the total reaches a secret threshold, which is drawn once, before the first look. It rings at most once in a window.

| here | the proof |
|---|---|
| looks, cut, tolerance, sensitivity | N, c, tau, D |
| fnr, fpr | b, a |
| rate, floor, unit | r, lo, v |

Proof: docs/proofs/alarm.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.alarm.shapes import Regime
from mechanisms.alarm.weights import ROUNDED, compute_weight
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.protocol import Unachievable
from mechanisms.threshold.one_shot import round_up_to_float

MOST_LOOKS = 100_000
"""Of one window: a look a second for a day, or a look a minute for two months."""

_RATE_BITS = 48  # significant digits of a rate: 3e-15 above the least one, against quick exponentials
_MOST_WIDENINGS = 16  # each doubles what is added to a rate; none or one is needed
_NEGLIGIBLE = 45.0  # nats below what may be returned wrongly: values further down count as if they stood there
_MOST_NATS = 4096  # from the least value to the cut of a sliding window: totals of 6,000 bits at most


@dataclass(frozen=True, slots=True)
class AlarmTask:
    """One alarm over one window; everything in it is public.

    If a look sees a value above `cut`, the alarm has rung by then with probability at least `1 - fnr`. If no value of
    the window is above `cut - tolerance`, the alarm rings in the window with probability at most `fpr`.

    Parameters:
        looks: the most looks of a window, >= 1.
        cut: the threshold that a value must exceed, in integer units.
        tolerance: integer units, >= 0.
        sensitivity: the most one privacy unit changes the value at one look, integer units, >= 1.
        fnr, fpr: in (0, 1).
        regime: how one privacy unit changes the values.
        least_value: a lower bound of all values, None if none is known. A sliding window needs it.
    """

    looks: int
    cut: int
    tolerance: int
    sensitivity: int
    fnr: float
    fpr: float
    regime: Regime
    least_value: int | None

    def __post_init__(self) -> None:
        """Raise ValueError for a parameter outside its range."""
        if not 1 <= self.looks <= MOST_LOOKS or self.sensitivity < 1 or self.tolerance < 0:
            raise ValueError("an alarm has looks, a sensitivity, and a tolerance that is not negative")
        if not (0.0 < self.fnr < 1.0 and 0.0 < self.fpr < 1.0):
            raise ValueError("error rates lie between 0 and 1")


@dataclass(frozen=True, slots=True)
class AlarmCalibration:
    """The calibration of an alarm, fixed before any data is touched.

    The weight of a value grows with the number of steps that it lies above `lowest_value`. Values below `lowest_value`
    count as `lowest_value`. The secret threshold is a multiple of `threshold_step`. `loss` bounds the loss of one
    privacy unit by one window, or by two epochs of a sliding window. `worst_case_epsilon` is `loss` rounded up. `fnr`
    and `fpr` are the guaranteed error rates.
    """

    task: AlarmTask
    rate: Fraction
    lowest_value: int
    threshold_step: int
    loss: Fraction
    worst_case_epsilon: float
    fnr: float
    fpr: float


def price_alarm(*, looks: int, fnr: float, fpr: float, regime: Regime) -> float:
    """Return the price of an alarm without its scale: the least `epsilon * (tolerance + 1) / sensitivity`.

    If an error rate is above the matching probability of the regime's draw (`high_probability`, `low_probability`), the
    price is that of this probability.

    >>> [round(price_alarm(looks=looks, fnr=0.05, fpr=0.1, regime=Regime.GROWING), 3) for looks in (1, 24, 365)]
    [3.912, 7.09, 9.812]
    """
    shape = regime.draw_shape
    missed = shape.root * math.log(max(1.0, float(shape.high_probability) / fnr))
    wrong = math.log(max(1.0, float(shape.low_probability) / fpr)) / shape.rise
    return regime.loss_factor * (missed + wrong + math.log(looks))


def calibrate_alarm(task: AlarmTask) -> AlarmCalibration:
    """Return the least rate with which an alarm keeps its contract.

    Guarantee: the rates of `AlarmTask`, for every stream of values, and `loss` for every privacy unit that changes the
    values of a window as the regime allows (docs/proofs/alarm.md). All three are checked in whole numbers for the
    weights that are used; the rate is an exact fraction, rounded up, and a relative 1e-14 above the least one.

    Raises:
        Unachievable: error rates that no rate within the range of exact noise meets; a sliding window whose least value
            is unknown, or too far below its cut for the tolerance.

    >>> rates = {"fnr": 0.05, "fpr": 0.1, "regime": Regime.GROWING, "least_value": 0}
    >>> task = AlarmTask(looks=24, cut=400, tolerance=39, sensitivity=1, **rates)
    >>> round(calibrate_alarm(task).worst_case_epsilon, 5)
    0.17725
    """
    regime, distance = task.regime, task.tolerance + 1
    price = price_alarm(looks=task.looks, fnr=task.fnr, fpr=task.fpr, regime=regime) / regime.loss_factor
    for widening in range(_MOST_WIDENINGS):
        rate = max(LEAST_RATE, _round_rate_up(price / distance * (1.0 + 2.0 ** (widening - _RATE_BITS))))
        if rate > GREATEST_RATE:
            break
        found = fit_alarm(task, rate=rate)
        if found.fpr <= task.fpr:
            return found
    raise Unachievable("error rates this small at this tolerance need weights that grow faster than is allowed")


def fit_alarm(task: AlarmTask, *, rate: Fraction) -> AlarmCalibration:
    """Return the alarm that keeps exactly `fnr` at a given noise rate. Its `fpr` follows from the rate and `fnr`.

    Guarantee: as `calibrate_alarm`, with the `fpr` of the result (docs/proofs/alarm.md).

    Parameters:
        rate: within the range of exact noise.

    Raises:
        Unachievable: as `calibrate_alarm`.
    """
    shape = task.regime.draw_shape
    fnr = min(Fraction(task.fnr), shape.high_probability)
    floor = _choose_floor(task, rate)
    above, below = compute_weight(rate, task.cut + 1 - floor), compute_weight(rate, task.cut - task.tolerance - floor)
    unit = int(above * (fnr / shape.high_probability) ** shape.root)
    if unit == 0:
        raise Unachievable("an error rate this small needs weights of more digits than an alarm keeps")
    wrong = Fraction(1)
    if task.looks * below <= unit:
        wrong = shape.low_probability * Fraction(task.looks * below, unit) ** shape.rise
    missed = fnr if shape.root > 1 else shape.high_probability * Fraction(unit, above)
    loss = task.regime.loss_factor * rate * task.sensitivity + ROUNDED
    return AlarmCalibration(
        task=task,
        rate=rate,
        lowest_value=floor,
        threshold_step=unit,
        loss=loss,
        worst_case_epsilon=round_up_to_float(loss),
        fnr=round_up_to_float(missed),
        fpr=round_up_to_float(wrong),
    )


def _choose_floor(task: AlarmTask, rate: Fraction) -> int:
    """Return the value to which lower values are raised. All looks at it together add a negligible weight.

    The values of a sliding window may fall again after its total was large. There the floor is the least value, so that
    every value keeps its own weight.
    """
    if task.regime is not Regime.SLIDING:
        return task.cut - task.tolerance - math.ceil((math.log(task.looks) + _NEGLIGIBLE) / rate)
    if task.least_value is None or task.least_value > task.cut - task.tolerance:
        raise Unachievable("an alarm on a sliding window needs to know a value that it never falls below")
    if rate * (task.cut + 1 - task.least_value) > _MOST_NATS:
        raise Unachievable("this tolerance is too small a part of the threshold for an alarm on a sliding window")
    return task.least_value


def _round_rate_up(rate: float) -> Fraction:
    mantissa, exponent = math.frexp(rate)
    units, places = math.ceil(math.ldexp(mantissa, _RATE_BITS)), exponent - _RATE_BITS
    return Fraction(units << places) if places >= 0 else Fraction(units, 1 << -places)
