"""Any formula watched through a window: one alarm on a key's signed distance from the formula.

The distance is that of the generalised sparse vector: `S - c` or `d + 1 - S` for a literal, the least over AND and the
greatest over OR. Whole-number weights bring the functionals to nearly one sensitivity. The formula is true if the
distance is positive. One unit changes it by the largest weighted sensitivity, for any number of literals.

A key is in the answer from the look at which the alarm rings until the window closes. So the formula was true, or
nearly true, at a look, and may be false by now.

Proof: docs/proofs/standing.md.
"""

from dataclasses import dataclass, replace

import numpy as np

from mechanisms.alarm.shapes import Regime
from mechanisms.formula import Cut, Formula, Integers, list_literals
from mechanisms.protocol import DecisionTask, Epsilons, Noise, Unachievable
from mechanisms.published.sparse_vector import choose_weights, compute_signed_distance
from mechanisms.standing.alarms import StandingAlarms, calibrate_standing_alarms
from mechanisms.standing.sealed import compute_digest
from mechanisms.standing.standing_protocol import LookResult
from mechanisms.standing.standing_task import StandingTask
from mechanisms.threshold.joint_loss import expose_all_functionals


@dataclass(frozen=True, slots=True)
class StandingDistance:
    """A calibrated standing question with one alarm, or ladder, on its signed distance. It implements `Standing`.

    Guarantee: the contract of `StandingTask`, with `fnr` and `fpr` at most those of the task, for any formula. Through
    one key's window, one privacy unit loses `worst_case_epsilon` at most (docs/proofs/standing.md).

    `functional_weights` has each functional's weight. `alarm` watches the distance as its only functional. If the
    formula is a single literal, it watches the literal's own value, or its negative.
    """

    task: StandingTask
    functional_weights: tuple[int, ...]
    alarm: StandingAlarms

    @property
    def worst_case_epsilon(self) -> float:
        """The loss bound of one key and window, rounded up: that of the alarm."""
        return self.alarm.worst_case_epsilon

    @property
    def fnr(self) -> float:
        """A bound on the probability that a key is missing, as in `Standing.fnr`."""
        return self.alarm.fnr

    @property
    def fpr(self) -> float:
        """A bound on the probability that a key alerts wrongly, as in `Standing.fpr`."""
        return self.alarm.fpr

    @property
    def distance_regime(self) -> Regime:
        """The rule by which one privacy unit changes the distance."""
        (regime,) = self.alarm.task.regimes
        return regime

    def draw_state(self, *, keys: int, noise: Noise) -> bytes:
        """Draw the alarms of all keys for one window, and return the state as bytes."""
        return self.alarm.draw_state(keys=keys, noise=noise)

    def take_look(self, state: bytes, values: Integers, *, look: int, noise: Noise) -> LookResult:
        """Return the state after one look at the keys' distances, and the keys in the answer.

        The state keeps only totals of the distance, not the values.
        """
        if values.ndim != 2 or len(values) != len(self.task.sensitivities):
            raise ValueError("a look has a value of each functional for each key")
        lone = _find_only_literal(self.task.formula)
        if lone is None:
            distance = compute_signed_distance(self.task.formula, values, weights=self.functional_weights)
        else:
            distance = values[lone.functional] if lone.above else -values[lone.functional]
        return self.alarm.take_look(state, distance[np.newaxis, :], look=look, noise=noise)

    def compute_spent_losses(self, state: bytes) -> Epsilons:
        """Return each key's loss so far in this window, rounded up."""
        return self.alarm.compute_spent_losses(state)


def calibrate_distance(task: StandingTask) -> StandingDistance:
    """Calibrate the alarm of least loss on a formula's distance, or the ladder if the question is `progressive`.

    Guarantee: that of `StandingDistance` (docs/proofs/standing.md).

    Raises:
        Unachievable: a formula without literals, which needs no alarm; values of sliding windows; as `calibrate_alarm`.

    >>> from mechanisms.formula import AllOf
    >>> many, few = (Cut(0, 400, above=above, tolerance=39) for above in (True, False))
    >>> known = {"sensitivities": (1,), "exposures": expose_all_functionals(1), "least_values": (0,), "monotone": False}
    >>> def price(formula: Formula, regime: Regime) -> float:
    ...     task = StandingTask(formula, regimes=(regime,), looks=24, fnr=0.05, fpr=0.1, **known)
    ...     return round(calibrate_distance(task).worst_case_epsilon * 40, 3)
    >>> price(few, Regime.GROWING), price(few, Regime.COMING_AND_GOING), price(AllOf((many, few)), Regime.GROWING)
    (7.09, 12.741, 18.575)
    """
    literals = tuple(list_literals(task.formula))
    if not literals:
        raise Unachievable("a condition without thresholds has no distance to be watched")
    scale = choose_weights(DecisionTask(task.formula, task.sensitivities, task.exposures, fnr=task.fnr, fpr=task.fpr))
    certain = min(scale[literal.functional] for literal in literals)
    within = min(scale[literal.functional] * literal.tolerance for literal in literals)
    watched = Cut(0, certain - 1, above=True, tolerance=within + certain - 1)
    sensitivity = max(scale[one.functional] * task.sensitivities[one.functional] for one in literals)
    lone = _find_only_literal(task.formula)
    if lone is not None:
        watched = Cut(0, lone.cut if lone.above else -lone.cut - 1, above=True, tolerance=lone.tolerance)
        sensitivity = task.sensitivities[lone.functional]
    alone = replace(
        task,
        formula=watched,
        sensitivities=(sensitivity,),
        exposures=expose_all_functionals(1),
        regimes=(find_distance_regime(task),),
        least_values=(None,),
        monotone=True,
    )
    try:
        alarm = calibrate_standing_alarms(alone)
    except Unachievable as refusal:
        raise Unachievable(refusal.reason) from refusal  # of no functional alone
    return StandingDistance(
        task=task, functional_weights=scale, alarm=replace(alarm, digest=compute_digest((task, scale, alarm)))
    )


def find_distance_regime(task: StandingTask) -> Regime:
    """Return the rule by which one privacy unit changes the distance of a formula.

    Guarantee: docs/proofs/standing.md. The distance of a single literal changes as its functional does. Let several
    literals all ask for values above their cuts, or all below, and let a unit only add to the values. Then the distance
    changes in one direction, but not always by more at later looks. Any other distance may change in both directions.

    Raises:
        Unachievable: values of sliding windows.
    """
    regimes = {task.regimes[literal.functional] for literal in list_literals(task.formula)}
    if Regime.SLIDING in regimes:
        raise Unachievable("the distance of a condition is watched in windows that do not slide")
    if _find_only_literal(task.formula) is not None:
        return regimes.pop()
    if Regime.SIGNED in regimes or len({literal.above for literal in list_literals(task.formula)}) > 1:
        return Regime.SIGNED
    return Regime.COMING_AND_GOING


def list_early_mechanisms(task: StandingTask) -> tuple[StandingAlarms | StandingDistance, ...]:
    """Return the mechanisms that alert before a window closes under the contract, the cheapest first.

    If the task is `monotone`, one mechanism has an alarm for each threshold. If windows do not slide and there are
    several thresholds, another one has one alarm for the whole formula. That is cheaper if one unit changes all of the
    values. If the task is not `monotone`, only the latter is returned.

    Raises:
        Unachievable: none keeps the contract; as `calibrate_standing_alarms`, `calibrate_distance`.

    >>> from mechanisms.formula import AllOf
    >>> known = {"exposures": expose_all_functionals(2), "regimes": (Regime.GROWING,) * 2, "least_values": (0, 0)}
    >>> both = AllOf(tuple(Cut(functional, 400, above=True, tolerance=39) for functional in (0, 1)))
    >>> ways = list_early_mechanisms(StandingTask(both, (1, 1), looks=24, fnr=0.05, fpr=0.1, **known))
    >>> [(type(one).__name__, round(one.worst_case_epsilon * 40, 2)) for one in ways]
    [('StandingDistance', 12.74), ('StandingAlarms', 15.57)]
    """
    if not task.monotone:
        return (calibrate_distance(task),)
    places = {(literal.functional, literal.cut) for literal in list_literals(task.formula)}
    if len(places) < 2 or any(task.regimes[functional] is Regime.SLIDING for functional, _ in places):
        return (calibrate_standing_alarms(task),)
    found: list[StandingAlarms | StandingDistance] = []
    refusals = []
    for calibrate in (calibrate_standing_alarms, calibrate_distance):
        try:
            found.append(calibrate(task))
        except Unachievable as refusal:
            refusals.append(refusal)
    if not found:
        raise refusals[0]
    return tuple(sorted(found, key=lambda one: one.worst_case_epsilon))


def calibrate_cheapest_early(task: StandingTask) -> StandingAlarms | StandingDistance:
    """Return the cheapest of `list_early_mechanisms`.

    Raises:
        Unachievable: as `list_early_mechanisms`.
    """
    return list_early_mechanisms(task)[0]


def _find_only_literal(formula: Formula) -> Cut | None:
    """Return the formula's only literal, if nothing else is in it."""
    while not isinstance(formula, Cut):
        if len(formula.children) != 1:
            return None
        (formula,) = formula.children
    return formula
