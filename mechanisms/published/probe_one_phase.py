"""ProBE's apportionment in one phase: shares by Theorem 4.5, every occurrence a TSLM test with fresh noise."""

from mechanisms.apportionment.probe import split_by_probe
from mechanisms.formula import Integers
from mechanisms.protocol import Calibration, DecisionTask, Noise, Outcome
from mechanisms.published.per_occurrence import calibrate_occurrences, decide_occurrences, list_shift_weights


class ProbeOnePhase:
    """ProBE in one phase. Both rates of the contract hold by the union bound over all occurrences.

    References: ProBE, Theorems 4.3 and 4.5.
    """

    name = "probe_one_phase"
    summary = "ProBE's split in one phase, every occurrence re-run"

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate one test per occurrence. Raise `Unachievable` if none exists, also for a tolerance of zero."""
        weights = list_shift_weights(task)
        return calibrate_occurrences(
            self.name,
            task,
            fnr=split_by_probe(bound=task.fnr, weights=weights),
            fpr=split_by_probe(bound=task.fpr, weights=weights),
        )

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every occurrence on fresh noise. Every key loses the worst case."""
        return decide_occurrences(calibration, aggregates, noise=noise)
