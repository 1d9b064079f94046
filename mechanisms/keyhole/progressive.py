"""Keyhole's default mechanism: three-zone tests, and each key is charged only for the values that it revealed.

Look by look, from coarse to fine, a functional's value is refined only for the keys whose answer it can still change. A
key is finished as soon as its formula is settled. If the key is returned, its predicates must be settled as well.

Proofs: docs/proofs/three_zone.md, docs/proofs/short_cuts.md, docs/proofs/several_formulas.md.
"""

from collections.abc import Sequence

from mechanisms.formula import Integers
from mechanisms.keyhole.common_sums import calibrate_on_sums, decide_on_sums
from mechanisms.keyhole.contract import OneShotKind, list_task_tolerances, meet_contract
from mechanisms.keyhole.one_shot import find_single_thresholds, make_loss_curve
from mechanisms.keyhole.run_looks import decide_on_fresh_noise
from mechanisms.protocol import Calibration, DecisionTask, FunctionalTest, Noise, Outcome, Unachievable
from mechanisms.threshold.three_zone import (
    SCHEDULE,
    EmptyGroups,
    bound_false_accept,
    bound_false_reject,
    calibrate_three_zone,
)

STRAY_GROUPS = 0.05  # of a question's empty groups, how many early looks may return in the mean: one in twenty answers


class Progressive:
    """Three-zone tests under Keyhole's apportionment. Far keys stop early and cost little.

    Guarantee: `P(not returned | formula true) <= fnr`, `P(returned | relaxed formula false) <= fpr`, per key, for any
    data, and likewise for the value of each predicate. Exactly the looks that were taken are revealed of each key's
    functionals: the key's loss is the joint loss at the rates reached, at most `worst_case_epsilon`, zero for a
    functional never looked at.
    """

    name = "progressive"
    summary = "a few looks per key, coarse to fine: far keys stop early and cost little (default)"

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate one three-zone test per functional. Raise `Unachievable` if none exists."""
        if task.common is not None:
            short, near = _list_shortfalls(task), list_task_tolerances(task)
            return calibrate_on_sums(
                self.name,
                task,
                schedule=SCHEDULE,
                empty=lambda functional: _find_nearest_empty_groups(
                    short.get(functional, ()), near[functional], keys=task.keys
                ),
            )
        return meet_contract(self.name, task, self.make_kind(task))

    def make_kind(self, task: DecisionTask) -> OneShotKind:
        """Return the kind of three-zone test that this mechanism uses for the task's functionals."""
        near = list_task_tolerances(task)
        alone = find_single_thresholds(task)
        both = find_two_sided_functionals(task)
        short = _list_shortfalls(task)

        def calibrate(functional: int, fnr: float, fpr: float) -> FunctionalTest:
            try:
                return calibrate_three_zone(
                    sensitivity=task.sensitivities[functional],
                    tolerance=near[functional],
                    fnr=fnr,
                    fpr=fpr,
                    allow_block=functional in alone,
                    most_steps=task.limit_blocks(functional),
                    is_two_sided=functional in both,
                    empty=_find_nearest_empty_groups(short.get(functional, ()), near[functional], keys=task.keys),
                )
            except Unachievable as refusal:
                raise Unachievable(refusal.reason, functional=functional) from refusal

        return OneShotKind(
            loss=make_loss_curve(task),
            calibrate=calibrate,
            is_tied=False,
            bound_false_reject=bound_false_reject,
            bound_false_accept=bound_false_accept,
            decides_several=True,
        )

    def decide(
        self, calibration: Calibration, aggregates: Integers, *, noise: Noise, keeps_paths: bool = True
    ) -> Outcome:
        """Decide every key, look by look. `aggregates` has shape (functionals, keys), within +-2**62."""
        if calibration.task.common is not None:
            return decide_on_sums(calibration, aggregates, noise=noise, keeps_paths=keeps_paths)
        return decide_on_fresh_noise(
            calibration, aggregates, looks_at_everything=False, keeps_paths=keeps_paths, noise=noise
        )


def find_empty_groups(task: DecisionTask, functional: int, tolerance: int) -> EmptyGroups | None:
    """Return how far a group without rows, whose functionals are zero, is from passing a literal.

    Only literals that the group fails by more than the tolerance count, and the nearest of them is taken. Return None
    if there is none.
    """
    return _find_nearest_empty_groups(_list_shortfalls(task).get(functional, ()), tolerance, keys=task.keys)


def _list_shortfalls(task: DecisionTask) -> dict[int, list[int]]:
    """Return for each functional the distances from zero to its literals in all formulas.

    A distance is negative if zero passes the literal.
    """
    found: dict[int, list[int]] = {}
    for cut in task.list_literals():
        found.setdefault(cut.functional, []).append(cut.cut if cut.above else -(cut.cut + 1))
    return found


def _find_nearest_empty_groups(shortfalls: Sequence[int], tolerance: int, *, keys: int) -> EmptyGroups | None:
    distance = min((short for short in shortfalls if short > tolerance), default=None)
    return None if distance is None else EmptyGroups(distance, STRAY_GROUPS / keys)


def find_two_sided_functionals(task: DecisionTask) -> frozenset[int]:
    """Return the functionals that have literals in both directions, in one formula or in several."""
    directions = {(cut.functional, cut.above) for cut in task.list_literals()}
    return frozenset(f for f, _ in directions if {(f, True), (f, False)} <= directions)
