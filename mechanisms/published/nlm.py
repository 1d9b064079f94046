"""NLM, the naive Laplace mechanism: compare the noisy value with the threshold itself.

`epsilon = sensitivity * ln(1 / (2 share)) / tolerance`, accept `y > c`, discrete Laplace noise. Near the
threshold half of the keys are missed, so there is no bound on false negatives. What holds: false positives
under the contract, since at `c - tolerance` the rate is `a**(tolerance + 1) / (1 + a) <= share`; and, the
mirror image, a key that passes by more than the tolerance on every literal is missed with the contract's rate
at most.
"""

from dataclasses import replace
from fractions import Fraction

from mechanisms.formula import Integers
from mechanisms.keyhole.contract import OneShotKind, list_tolerances, meet_contract
from mechanisms.keyhole.one_shot import decide_on_one_value
from mechanisms.protocol import Calibration, DecisionTask, FunctionalTest, Noise, Outcome
from mechanisms.published.tslm import compute_shift_loss, compute_shifted_rate, refuse_zero_tolerance
from mechanisms.threshold.one_shot import compute_rejection, round_up_to_float


class Nlm:
    """MIDE's baseline without a bound on false negatives. It keeps the contract's false-positive rate.

    False positives are those of the contract.
    """

    name = "nlm"
    summary = "plain noisy comparison: no bound on missed groups near a threshold"

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate one test for each functional. The result's `fnr` is None.

        Raise `Unachievable` if none exists, also for a tolerance of zero.
        """
        refuse_zero_tolerance(task)
        near = list_tolerances(task.formula, len(task.sensitivities))

        def find_loss(functional: int, fnr: float, fpr: float) -> tuple[float, float, float]:
            return compute_shift_loss(
                sensitivity=task.sensitivities[functional], shift=near[functional], share=min(fnr, fpr)
            )

        def calibrate(functional: int, fnr: float, fpr: float) -> FunctionalTest:
            share = min(fnr, fpr)
            rate = compute_shifted_rate(shift=near[functional], share=share, functional=functional)
            return FunctionalTest(
                epsilon=round_up_to_float(rate * task.sensitivities[functional]),
                rate=rate,
                shift=0,
                tie=Fraction(0),
                fnr=share,
                fpr=share,
                tolerance=near[functional],
            )

        kind = OneShotKind(
            loss=find_loss, calibrate=calibrate, is_tied=True, bound_false_reject=_bound_missed_beyond_tolerance
        )
        calibration = meet_contract(self.name, task, kind)
        return replace(
            calibration,
            fnr=None,
            notes=(*calibration.notes, "Missed groups are bounded only beyond the tolerance above a threshold."),
        )

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every key on one noisy value for each functional. Every key loses the worst case."""
        return decide_on_one_value(calibration, aggregates, noise=noise)


def _bound_missed_beyond_tolerance(test: FunctionalTest, distance: int) -> float:
    return compute_rejection(test, distance + test.tolerance)
