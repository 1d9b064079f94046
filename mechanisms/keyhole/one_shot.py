"""Keyhole's one-shot mechanism: optimal tests under Keyhole's apportionment, with the same loss for every key.

References: docs/proofs/optimal_test.md, docs/proofs/apportionment.md, docs/proofs/several_formulas.md.
"""

from collections import Counter

import numpy as np

from mechanisms.apportionment.keyhole import LossCurve
from mechanisms.formula import Integers
from mechanisms.keyhole.common_sums import ONE_LOOK, calibrate_on_sums, decide_on_sums
from mechanisms.keyhole.contract import OneShotKind, list_task_tolerances, meet_contract
from mechanisms.keyhole.run_looks import decide_on_fresh_noise
from mechanisms.keyhole.run_once import run_on_one_value
from mechanisms.protocol import Calibration, DecisionTask, FunctionalTest, Noise, Outcome, Unachievable
from mechanisms.threshold.one_shot import calibrate_test, find_least_epsilon


class Keyhole:
    """The one-shot mechanism of least epsilon for each test and least joint loss for each question.

    Guarantee: `P(not returned | formula true) <= fnr`, `P(returned | relaxed formula false) <= fpr`, per key, for any
    data, and likewise for the value of each predicate; the loss of a key is at most `worst_case_epsilon`.
    """

    name = "keyhole"
    summary = "optimal threshold tests, error rates split over the minimal formula (one loss, known beforehand)"

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate one test per functional. Raise `Unachievable` if none exists."""
        if task.common is not None:
            return calibrate_on_sums(self.name, task, schedule=ONE_LOOK, empty=lambda _functional: None)
        return meet_contract(self.name, task, self.make_kind(task))

    def make_kind(self, task: DecisionTask) -> OneShotKind:
        """Return the kind of one-shot test that this mechanism uses for the task's functionals."""
        near = list_task_tolerances(task)
        alone = find_single_thresholds(task)

        def calibrate(functional: int, fnr: float, fpr: float) -> FunctionalTest:
            try:
                return calibrate_test(
                    sensitivity=task.sensitivities[functional],
                    tolerance=near[functional],
                    fnr=fnr,
                    fpr=fpr,
                    allow_block=functional in alone,
                    most_steps=task.limit_blocks(functional),
                )
            except Unachievable as refusal:
                raise Unachievable(refusal.reason, functional=functional) from refusal

        return OneShotKind(loss=make_loss_curve(task), calibrate=calibrate, is_tied=False, decides_several=True)

    def decide(
        self, calibration: Calibration, aggregates: Integers, *, noise: Noise, keeps_paths: bool = True
    ) -> Outcome:
        """Decide every key on one noisy value for each functional. Every key loses the worst case."""
        if calibration.task.common is not None:
            return decide_on_sums(calibration, aggregates, noise=noise, keeps_paths=keeps_paths)
        return decide_on_fresh_noise(
            calibration, aggregates, looks_at_everything=True, keeps_paths=keeps_paths, noise=noise
        )


def decide_on_one_value(calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
    """Decide by `run_on_one_value`, charging every key the worst case."""
    passed = run_on_one_value(calibration.task.formula, calibration.tests, aggregates, noise=noise)
    return Outcome(passed=passed, epsilon=np.full(passed.size, calibration.worst_case_epsilon))


def make_loss_curve(task: DecisionTask) -> LossCurve:
    """Return the loss of a functional's optimal one-shot test as a function of its pair of shares.

    Apportionment minimises it.
    """
    near = list_task_tolerances(task)
    alone = find_single_thresholds(task)

    def find_loss(functional: int, fnr: float, fpr: float) -> tuple[float, float, float]:
        return find_least_epsilon(
            sensitivity=task.sensitivities[functional],
            tolerance=near[functional],
            fnr=fnr,
            fpr=fpr,
            allow_block=functional in alone,
            most_steps=task.limit_blocks(functional),
        )

    return find_loss


def find_single_thresholds(task: DecisionTask) -> frozenset[int]:
    """Return the functionals that have one threshold in all formulas together.

    Literals in either direction may use it. The noise of these functionals may be on block indices if the task allows
    it.
    """
    thresholds = Counter(functional for functional, _ in {(cut.functional, cut.cut) for cut in task.list_literals()})
    alone = frozenset(functional for functional, count in thresholds.items() if count == 1)
    return alone if task.blocks is None else alone & task.blocks


def list_cheaper_block_prices(calibration: Calibration) -> dict[int, float]:
    """Return for each functional the epsilon of a test in blocks, if that is cheaper than its shared value.

    A block test serves one threshold, so functionals with several thresholds cannot use it. EXPLAIN prints the
    difference.
    """
    gaps: dict[int, float] = {}
    for functional, test in enumerate(calibration.tests):
        sensitivity = calibration.task.sensitivities[functional]
        if test.rate == 0 or test.block > 1 or sensitivity == 1:
            continue
        alone, _, _ = find_least_epsilon(
            sensitivity=sensitivity,
            tolerance=test.tolerance,
            fnr=test.fnr,
            fpr=test.fpr,
            allow_block=True,
        )
        if alone < test.epsilon * (1.0 - 1e-3):
            gaps[functional] = alone
    return gaps
