"""ProBE's apportionment in one phase: shares by Theorem 4.5, every occurrence a TSLM test with fresh noise."""

from mechanisms.apportionment.probe import probe_shares
from mechanisms.formula import Integers, cuts
from mechanisms.protocol import Calibration, DecisionTask, Noise, Outcome
from mechanisms.reruns import calibrate_occurrences, decide_occurrences
from mechanisms.tslm import refuse_zero_tolerance


class Probe:
    """Both rates of the contract hold by the union bound over all occurrences.

    References: ProBE, Theorems 4.3 and 4.5.
    """

    name = "probe"
    summary = "ProBE's split in one phase, every occurrence re-run"

    def calibrate(self, task: DecisionTask) -> Calibration:
        """One test per occurrence. Raises `Unachievable`, also for a tolerance of zero."""
        refuse_zero_tolerance(task)
        weights = [2 * task.sensitivities[cut.functional] / cut.tolerance for cut in cuts(task.formula)]
        return calibrate_occurrences(
            self.name,
            task,
            fnr=probe_shares(bound=task.fnr, weights=weights),
            fpr=probe_shares(bound=task.fpr, weights=weights),
        )

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Every occurrence on fresh noise; the loss is the worst case for all keys alike."""
        return decide_occurrences(calibration, aggregates, noise=noise)
