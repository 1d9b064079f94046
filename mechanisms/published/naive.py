"""The plainest published baseline: an equal split over occurrences, each a TSLM test with fresh noise."""

from mechanisms.apportionment.equal_split import split_bound_equally
from mechanisms.formula import Integers, list_literals
from mechanisms.protocol import Calibration, DecisionTask, Noise, Outcome
from mechanisms.published.per_occurrence import calibrate_occurrences, decide_occurrences
from mechanisms.published.tslm import refuse_zero_tolerance


class Naive:
    """The mechanism that splits the error rates equally over all occurrences of literals.

    Both rates of the contract hold by the union bound over all occurrences.

    References: ProBE, section 4.1.
    """

    name = "naive"
    summary = "ProBE's baseline: equal shares, every occurrence re-run"

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate one test per occurrence. Raise `Unachievable` if none exists, also for a tolerance of zero."""
        refuse_zero_tolerance(task)
        occurrences = len(list(list_literals(task.formula)))
        return calibrate_occurrences(
            self.name,
            task,
            fnr=split_bound_equally(bound=task.fnr, occurrences=occurrences) if occurrences else (),
            fpr=split_bound_equally(bound=task.fpr, occurrences=occurrences) if occurrences else (),
        )

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every occurrence on fresh noise. Every key loses the worst case."""
        return decide_occurrences(calibration, aggregates, noise=noise)
