"""The run of the published progressive tests on any formula, in which each key stops when its formula is decided.

MIDE and MiM test one threshold per key. Here every literal is tested on its functional's value, all literals of one
functional on the same one, and the formula is evaluated in three-valued logic after each look: a key is finished when
the formula is, whatever single literals say, and a functional that can no longer change it is not refined for it.

The noise is discrete where the papers' is continuous. That is sound: the shift of a look is computed from the papers'
formula with the exact rate drawn, and with `a**u = 2 beta` the tail `P(K <= -ceil(u) - 1) = a**(ceil(u) + 1) / (1 + a)`
is at most `beta`; the refined noise is exact as well (mechanisms/noise/gradual_release.py), so the loss of a key is
that of the last level revealed for it.

References: MIDE section 5.3; MiM section 3. Proofs: docs/proofs/gradual_release.md,
docs/proofs/joint_loss.md, docs/proofs/short_cuts.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias

import numpy as np

from mechanisms.formula import Booleans, Cut, Formula, Integers, list_literals
from mechanisms.keyhole.contract import OneShotKind, list_tolerances, meet_contract
from mechanisms.noise.discrete_laplace import compute_lower_tail, compute_upper_tail
from mechanisms.noise.gradual_release import refine_noise
from mechanisms.protocol import Calibration, DecisionTask, Epsilons, FunctionalTest, Look, Noise, Outcome
from mechanisms.published.tslm import compute_shift_loss, refuse_zero_tolerance
from mechanisms.three_valued import Verdicts, find_undecided_keys, settle_formula
from mechanisms.threshold.joint_loss import compute_joint_losses
from mechanisms.threshold.one_shot import compute_acceptance, compute_rejection, round_up_to_float

NEVER = 1 << 62  # a boundary beyond every aggregate and its noise

ErrorRate: TypeAlias = Callable[[FunctionalTest, int], float]

_NOTHING = Fraction(0)  # a rate at which nothing was revealed yet


def bound_false_reject(test: FunctionalTest, distance: int) -> float:
    """Bound the probability that the literal is rejected at `distance`, by the sum over all looks."""
    early = sum(compute_lower_tail(float(look.rate), look.rejecting - distance) for look in test.looks)
    return early + compute_rejection(test, distance)


def bound_false_accept(test: FunctionalTest, distance: int) -> float:
    """Bound the probability that the literal is accepted at `distance`, by the sum over all looks."""
    early = sum(compute_upper_tail(float(look.rate), look.accepting - distance) for look in test.looks)
    return early + compute_acceptance(test, distance)


def make_last_look(test: FunctionalTest) -> Look:
    """Return the final cut-off as a look that leaves nothing undecided."""
    return Look(rate=test.rate, rejecting=-test.shift, accepting=1 - test.shift)


def meet_contract_in_looks(
    mechanism: str,
    task: DecisionTask,
    *,
    parts: Callable[[int], int],
    calibrate: Callable[[int, int, float], FunctionalTest],
    bound_missed_rate: ErrorRate = bound_false_reject,
    bound_wrong_rate: ErrorRate = bound_false_accept,
) -> Calibration:
    """Calibrate with TSLM's shares of functionals. Each share is divided into equal parts for the functional's looks.

    Guarantee: by the union bound over looks and the formula's constraints, both rates hold for every key.

    Parameters:
        parts: the number of looks of a functional, the last one included.
        calibrate: returns the test for a functional, its tolerance and its share (the smaller of the two rates).
        bound_missed_rate, bound_wrong_rate: bounds on a literal's two error rates at a distance, convex beyond the
            critical ones.

    Raises:
        Unachievable: a tolerance of zero, or a rate beyond the sampler's range.
    """
    refuse_zero_tolerance(task)
    near = list_tolerances(task.formula, len(task.sensitivities))

    def find_loss(functional: int, fnr: float, fpr: float) -> tuple[float, float, float]:
        share = min(fnr, fpr) / parts(functional)
        return compute_shift_loss(sensitivity=task.sensitivities[functional], shift=near[functional] / 2, share=share)

    def one(functional: int, fnr: float, fpr: float) -> FunctionalTest:
        return calibrate(functional, near[functional], min(fnr, fpr))

    return meet_contract(
        mechanism,
        task,
        OneShotKind(
            loss=find_loss,
            calibrate=one,
            is_tied=True,
            bound_false_reject=bound_missed_rate,
            bound_false_accept=bound_wrong_rate,
        ),
    )


class Progress:
    """The values and decisions of one functional's looks so far, for all keys."""

    def __init__(self, formula: Formula, functional: int, aggregates: Integers, sensitivity: int) -> None:
        keys = aggregates.shape[1]
        self.literals = tuple(cut for cut in dict.fromkeys(list_literals(formula)) if cut.functional == functional)
        self.level = _NOTHING
        self.noisy: Integers = np.zeros(keys, dtype=np.int64)
        self.epsilon: Epsilons = np.zeros(keys)
        self.verdicts: dict[Cut, Verdicts] = {cut: np.zeros(keys, dtype=np.int8) for cut in self.literals}
        self._values = aggregates[functional]
        self._noise: Integers = np.zeros(keys, dtype=np.int64)
        self._sensitivity = sensitivity

    def find_undecided_keys(self, cut: Cut) -> Booleans:
        """Return the keys for which the literal is undecided."""
        return np.asarray(self.verdicts[cut] == 0, dtype=np.bool_)

    def take_look(self, look: Look, keys: Integers, *, noise: Noise) -> None:
        """Reveal the keys' values at the look's rate, and decide the literals that this look decides.

        The keys have taken every look before, so their noise has the rate of the current level.
        """
        if self.level == _NOTHING:
            drawn = noise.draw_discrete_laplace(rate=look.rate, size=keys.size)
        else:
            drawn = refine_noise(self._noise[keys], coarse=self.level, fine=look.rate, noise=noise)
        self.level = look.rate
        self._noise[keys] = drawn
        noisy = self._values[keys] + drawn
        self.noisy[keys] = noisy
        self.epsilon[keys] = round_up_to_float(look.rate * self._sensitivity)
        for cut in self.literals:
            if cut.above:
                accept, reject = noisy >= cut.cut + look.accepting, noisy <= cut.cut + look.rejecting
            else:
                accept, reject = noisy <= cut.cut + 1 - look.accepting, noisy >= cut.cut + 1 - look.rejecting
            before = self.verdicts[cut][keys]
            self.verdicts[cut][keys] = np.where(before == 0, np.subtract(accept, reject, dtype=np.int8), before)


class NextLook(Protocol):
    """The rule that chooses one functional's next look. It returns None after the last look."""

    def __call__(self, progress: Progress, keys: Integers, /) -> Look | None:
        """Return the next look, or None. `keys` are the keys that would take it, at least one."""


@dataclass(slots=True)
class PlannedLooks:
    """The rule of a schedule whose looks are all fixed beforehand."""

    looks: tuple[Look, ...]
    looks_taken: int = 0

    def __call__(self, progress: Progress, keys: Integers, /) -> Look | None:
        """Return the planned looks in their order, then None."""
        del progress, keys
        self.looks_taken += 1
        return self.looks[self.looks_taken - 1] if self.looks_taken <= len(self.looks) else None


def decide_look_by_look(
    calibration: Calibration, aggregates: Integers, *, rule: Callable[[int], NextLook], noise: Noise
) -> Outcome:
    """Take looks until the formula of every key is decided.

    The loss is the joint loss of the levels its functionals reached.

    Guarantee: the loss of a key is that of the last value revealed of each functional, at most the worst case. The
    answer is the one that full evaluation of all literals would give: a decided formula no longer changes.

    Parameters:
        aggregates: exact values, int64, shape (functionals, keys), within +-2**62.
        rule: makes the rule of a functional. The last look of each rule decides every literal.
    """
    task = calibration.task
    keys = aggregates.shape[1]
    used = sorted({cut.functional for cut in list_literals(task.formula)})
    progress = {f: Progress(task.formula, f, aggregates, task.sensitivities[f]) for f in used}
    rules = {functional: rule(functional) for functional in used}
    verdicts = {cut: own.verdicts[cut] for own in progress.values() for cut in own.literals}
    looked = True
    while looked:
        looked = False
        for functional in used:
            concerned = np.flatnonzero(find_undecided_keys(task.formula, verdicts, keys=keys)[functional])
            look = rules[functional](progress[functional], concerned) if concerned.size else None
            if look is not None:
                looked = True
                progress[functional].take_look(look, concerned, noise=noise)
    passed = settle_formula(task.formula, verdicts, keys=keys) == 1
    return Outcome(passed=passed, epsilon=_list_losses(calibration, progress, keys))


def _list_losses(calibration: Calibration, progress: dict[int, Progress], keys: int) -> Epsilons:
    lost = {functional: own.epsilon for functional, own in progress.items()}
    losses = compute_joint_losses(lost, calibration.task.exposures, keys=keys)
    return np.minimum(losses, calibration.worst_case_epsilon)
