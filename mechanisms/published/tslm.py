"""TSLM, the threshold-shift Laplace mechanism of MIDE (algorithm 1), one test per functional.

As published: `epsilon = sensitivity * ln(1 / (2 beta)) / u`, accept `y > c - u`, errors allowed in `[c - 2u,
c]`. Here that region is the tolerance band, `u = tolerance / 2`, and the noise is discrete Laplace. That is
sound: with `a**u = 2 beta` the false-negative rate at `c + 1` is `a**(ceil(u) + 1) / (1 + a) <= beta`, because
`2a <= 1 + a`, and the false-positive rate at `c - tolerance` is `a**(floor(u) + 1) / (1 + a)`, at most `a**(u +
1/2) / (1 + a) <= beta`, because `2 sqrt(a) <= 1 + a`. So `beta` is the smaller of the two shares and the whole
contract holds.

| here | MIDE |
|---|---|
| shift | alpha, u |
| share | beta |
"""

import math
from fractions import Fraction

from mechanisms.formula import Integers, list_literals
from mechanisms.keyhole.contract import OneShotKind, list_tolerances, meet_contract
from mechanisms.keyhole.one_shot import decide_on_one_value
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.protocol import Calibration, DecisionTask, FunctionalTest, Noise, Outcome, Unachievable
from mechanisms.threshold.one_shot import round_rate_up, round_up_to_float


class Tslm:
    """MIDE's one-shot test under Keyhole's apportionment. It has Keyhole's guarantees at a higher loss."""

    name = "tslm"
    summary = "MIDE's threshold-shift Laplace test, rates split over the minimal formula"

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate MIDE's one-shot test for each functional.

        Raise `Unachievable` if none exists, also for a tolerance of zero.
        """
        near = list_tolerances(task.formula, len(task.sensitivities))

        def find_loss(functional: int, fnr: float, fpr: float) -> tuple[float, float, float]:
            return compute_shift_loss(
                sensitivity=task.sensitivities[functional], shift=near[functional] / 2, share=min(fnr, fpr)
            )

        def calibrate(functional: int, fnr: float, fpr: float) -> FunctionalTest:
            return calibrate_tslm_test(
                sensitivity=task.sensitivities[functional],
                tolerance=near[functional],
                share=min(fnr, fpr),
                functional=functional,
            )

        refuse_zero_tolerance(task)
        return meet_contract(self.name, task, OneShotKind(loss=find_loss, calibrate=calibrate, is_tied=True))

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every key on one noisy value for each functional. Every key loses the worst case."""
        return decide_on_one_value(calibration, aggregates, noise=noise)


def refuse_zero_tolerance(task: DecisionTask) -> None:
    """Raise `Unachievable` if a literal has a tolerance of zero."""
    for cut in list_literals(task.formula):
        if cut.tolerance == 0:
            raise Unachievable(
                "this mechanism divides by its threshold shift, so it needs a tolerance of at least one unit",
                functional=cut.functional,
            )


def compute_shift_loss(*, sensitivity: int, shift: float, share: float) -> tuple[float, float, float]:
    """Return the loss of a published test, `sensitivity * ln(1 / (2 share)) / shift`, and its two slopes."""
    scale = sensitivity / shift
    return max(0.0, -scale * math.log(2.0 * share)), -scale, 0.0


def compute_shifted_rate(*, shift: float, share: float, functional: int) -> Fraction:
    """Return the noise rate of a published test, `ln(1 / (2 share)) / shift`, rounded up to an exact fraction.

    Raise `Unachievable` beyond the sampler's range.
    """
    rate = max(round_rate_up(max(0.0, -math.log(2.0 * share)) / shift * (1.0 + 2.0**-30)), LEAST_RATE)
    if rate > GREATEST_RATE:
        raise Unachievable("error rates this small need a wider tolerance", functional=functional)
    return rate


def calibrate_tslm_test(*, sensitivity: int, tolerance: int, share: float, functional: int) -> FunctionalTest:
    """Calibrate the published test with `u = tolerance / 2`. Both error rates are at most `share`.

    Parameters:
        sensitivity, tolerance: integer units, tolerance >= 1.
        share: the smaller of the two rates.
    """
    rate = compute_shifted_rate(shift=tolerance / 2, share=share, functional=functional)
    return FunctionalTest(
        epsilon=round_up_to_float(rate * sensitivity),
        rate=rate,
        shift=-(-tolerance // 2),
        tie=Fraction(0),
        fnr=share,
        fpr=share,
        tolerance=tolerance,
    )
