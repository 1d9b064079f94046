"""ProBE (algorithms 1 to 4): a cheap first phase, an estimate of its wrong keys, a second phase where they are many.

Phase one walks the tree and runs every occurrence as a TSLM test with fresh noise, with a part of the false-negative
rate by Theorem 4.5; a conjunction stops once no key passes. Phase two estimates the wrong keys of each occurrence
(EstimateFPs); where they exceed their allowance, the uncertain keys are tested again with a narrower `u` and the rest
of the rate. A question is denied when its running loss would pass `most_epsilon`, when no narrower `u` would do, or
when the estimates are still too high; what ran is paid for, and what follows from noisy values is all that is told.

The uncertain region `[c - 2u, c]` of phase one is the tolerance band, so ProBE's `u` of 30 % of a range is a tolerance
of 60 % of the declared range. A narrower band always lies within it.

**What holds.** With part `p` of beta for phase one, missed keys: the first phase's `p * beta` and the second's `(1 - p)
* beta` add up, for whatever `u` the second one is given, its noise is fresh. Keys false by the tolerance: whoever is
returned was accepted by phase one, whose shares keep to `fpr`. Both speak of answers: `P(answered and missed) <= fnr`;
a denial answers nothing. Proof: docs/proofs/probe.md.

**What ProBE claims but does not hold.** That its estimate bounds the false-positive rate of every key (see
mechanisms/published/estimate_fps.py); that the loss of a denied question need not be counted. With refined noise
(`gradual`, ours: the second phase costs the larger of the two losses, not the sum) the second phase's noise is no
longer fresh given the values that chose its `u`, so missed keys are aimed at, not bounded: the calibration's `fnr` is
None.

| here | ProBE |
|---|---|
| most_epsilon | eps_max |
| share, shift | beta_i, alpha_i (u) |
| first_phase | part of beta for phase one (appendix F) |

References: ProBE sections 4 and 5, theorems 4.3, 4.5, 5.1; appendices A.4, F; docs/proofs/probe.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from mechanisms.apportionment.equal_split import split_bound_equally
from mechanisms.apportionment.probe import split_by_probe
from mechanisms.apportionment.tree import bound_tree
from mechanisms.formula import Booleans, Cut, Formula, Integers, list_literals
from mechanisms.noise.exact import LEAST_RATE
from mechanisms.noise.gradual_release import refine_noise
from mechanisms.protocol import Calibration, DecisionTask, Epsilons, FunctionalTest, Noise, Outcome, Unachievable
from mechanisms.published.estimate_fps import estimate_fps, find_uncertain_keys, narrow_tolerance
from mechanisms.published.per_occurrence import (
    calibrate_occurrences,
    compute_noisy_distances,
    evaluate_in_order,
    list_shift_weights,
    number_occurrences,
)
from mechanisms.published.tslm import calibrate_tslm_test
from mechanisms.threshold.one_shot import compute_rejection, round_up_to_float

FIRST_PHASE = Fraction(1, 2)  # the first phase's part of the rates, as published
PHASES_RESERVED = 5
"""How many times the first phase's loss is reserved where no `most_epsilon` is given."""

DENIAL_NOTE = (
    "Noisy values may deny the question after it has begun. The loss is charged all the same, and the rates are "
    "those of a wrong answer."
)
GRADUAL_NOTE = "The second phase refines noise that chose its threshold: missed groups are aimed at, not guaranteed."


class Probe:
    """ProBE in both phases: `probe`, `probe_naive` with equal shares, `probe_gradual` with refined noise.

    Guarantee: the loss of a key is the sum of the losses of all tests that ran for it, at most `worst_case_epsilon`.
    With refined noise the larger of both phases counts instead of their sum. Unless denied, both rates hold for every
    key, except `fnr` with refined noise.
    """

    def __init__(
        self,
        *,
        shares: Literal["optimal", "equal"] = "optimal",
        is_gradual: bool = False,
        first_phase: Fraction = FIRST_PHASE,
        most_epsilon: float | None = None,
    ) -> None:
        """Take the published parameters.

        Parameters:
            shares: by theorem 4.5, or equal for all occurrences, in both phases.
            is_gradual: refine the first phase's noise in the second.
            first_phase: the part of the false-negative rate for phase one, in (0, 1).
            most_epsilon: the loss at which a question is denied, which is what is reserved; None for five times the
                first phase's.
        """
        check_most_epsilon(most_epsilon)
        if not 0 < first_phase < 1:
            raise ValueError("the first phase's part of the rate lies between none and all of it")
        self.name = ("probe" if shares == "optimal" else "probe_naive") + ("_gradual" if is_gradual else "")
        split = "ProBE's" if shares == "optimal" else "equal"
        refined = ", refining its noise" if is_gradual else ""
        self.summary = f"two phases with {split} shares: uncertain groups are tested again{refined}"
        self._equal = shares == "equal"
        self._gradual = is_gradual
        self._first_phase = first_phase
        self._most_epsilon = most_epsilon

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate the tests of the first phase. Raise `Unachievable` if none exist, also for a tolerance of zero."""
        first = calibrate_occurrences(
            self.name,
            task,
            fnr=self._list_shares(task, task.fnr * float(self._first_phase)),
            fpr=self._list_shares(task, task.fpr),
        )
        return replace(
            first,
            worst_case_epsilon=compute_reservation(first, most_epsilon=self._most_epsilon),
            fnr=None if self._gradual else self._bound_rejections(first),
            notes=(*first.notes, DENIAL_NOTE, *((GRADUAL_NOTE,) if self._gradual else ())),
            deniable=True,
        )

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Run phase one, the estimate, and phase two if needed. `aggregates` has shape (functionals, keys)."""
        run = _TwoPhaseRun(
            calibration, aggregates, noise, is_gradual=self._gradual, second=self._list_second_shares(calibration.task)
        )
        try:
            passed = run.run_both_phases()
        except Denied:
            return Outcome(passed=np.zeros(aggregates.shape[1], dtype=np.bool_), epsilon=run.list_losses(), denied=True)
        return Outcome(passed=passed, epsilon=run.list_losses())

    def _list_shares(self, task: DecisionTask, bound: float) -> tuple[float, ...]:
        weights = list_shift_weights(task)
        if self._equal and weights:
            return split_bound_equally(bound=bound, occurrences=len(weights))
        return split_by_probe(bound=bound, weights=weights)

    def _list_second_shares(self, task: DecisionTask) -> tuple[float, ...]:
        return self._list_shares(task, task.fnr * float(1 - self._first_phase))

    def _bound_rejections(self, first: Calibration) -> float:
        """Return both phases' rejections of a true literal, over the tree."""
        tests, second = first.occurrences, self._list_second_shares(first.task)
        leaves = number_occurrences(first.task.formula)
        return bound_tree(
            leaves, lambda cut: compute_rejection(tests[cut.functional], 1) + second[cut.functional], is_fnr=True
        )[0]


class Denied(Exception):
    """The error that stops a question which has begun: it gets no answer, and its loss stays charged."""


def check_most_epsilon(most_epsilon: float | None) -> None:
    """Raise ValueError for a limit that is not positive and finite."""
    if most_epsilon is not None and not 0.0 < most_epsilon < math.inf:
        raise ValueError("a limit on the loss is positive and finite")


def compute_reservation(first: Calibration, *, most_epsilon: float | None) -> float:
    """Return the most that a key can lose: the given limit, or a multiple of the first phase's loss.

    It is zero if nothing is tested.
    """
    if not first.occurrences:
        return 0.0
    return PHASES_RESERVED * first.worst_case_epsilon if most_epsilon is None else most_epsilon


@dataclass(slots=True)
class _Node:
    """The state of one occurrence: its noisy distances, the `u` and share of its test, and its loss."""

    cut: Cut
    test: FunctionalTest
    noise: Integers
    distances: Integers
    shift: int
    share: float
    loss: Fraction
    rerun: Booleans | None = field(default=None)
    rerun_loss: Fraction = field(default=Fraction(0))

    def list_accepted(self) -> Booleans:
        return self.distances > -self.shift

    def list_losses(self) -> Epsilons:
        """Return the loss per key, each number rounded up."""
        losses = np.full(self.distances.size, round_up_to_float(self.loss))
        if self.rerun is not None:
            losses[self.rerun] = round_up_to_float(self.rerun_loss)
        return losses


class _TwoPhaseRun:
    """The run of one question: its occurrences so far, and the running loss, which is their sum as published."""

    def __init__(
        self,
        calibration: Calibration,
        aggregates: Integers,
        noise: Noise,
        *,
        is_gradual: bool,
        second: tuple[float, ...],
    ) -> None:
        self._calibration = calibration
        self._aggregates = aggregates
        self._keys = aggregates.shape[1]
        self._noise = noise
        self._gradual = is_gradual
        self._second = second
        self._literals = tuple(list_literals(calibration.task.formula))
        self._leaves: Formula = number_occurrences(calibration.task.formula)
        self._most = Fraction(calibration.worst_case_epsilon)
        self._spent = Fraction(0)
        self._nodes: dict[int, _Node] = {}

    def run_both_phases(self) -> Booleans:
        """Run algorithm 1. Raise `Denied` if the reservation does not suffice."""
        passed = self._evaluate_in_order(self._run_first_phase)
        excesses = self._count_excesses(passed)
        if not excesses:
            return passed
        tolerances = {place: self._find_narrower_tolerance(place, excess, passed) for place, excess in excesses.items()}
        passed = self._evaluate_in_order(lambda place: self._run_second_phase(place, tolerances.get(place), passed))
        if self._count_excesses(passed):
            raise Denied
        return passed

    def list_losses(self) -> Epsilons:
        """Return each key's loss over all that ran, rounded up, at most the reservation."""
        total = np.zeros(self._keys)
        for node in self._nodes.values():
            total += node.list_losses()
        return np.minimum(total * (1.0 + len(self._nodes) * 2.0**-52), self._calibration.worst_case_epsilon)

    def _evaluate_in_order(self, run: Callable[[int], Booleans]) -> Booleans:
        return evaluate_in_order(self._leaves, run, keys=self._keys)

    def _run_first_phase(self, place: int) -> Booleans:
        """Run TSLM on all keys for one occurrence. Raise `Denied` if the reservation does not cover it."""
        cut, test = self._literals[place], self._calibration.occurrences[place]
        loss = self._compute_loss(place, test.rate)
        self._charge_loss(loss)
        drawn = self._noise.draw_discrete_laplace(rate=test.rate, size=self._keys)
        node = _Node(
            cut=cut,
            test=test,
            noise=drawn,
            distances=compute_noisy_distances(cut, self._aggregates[cut.functional] + drawn),
            shift=test.shift,
            share=test.fnr,
            loss=loss,
        )
        self._nodes[place] = node
        return node.list_accepted()

    def _count_excesses(self, passed: Booleans) -> dict[int, int]:
        """Return the occurrences over their allowance, with the number of keys to remove."""
        allowed = self._calibration.task.fpr / max(1, len(self._literals))
        found = {}
        for place, node in self._nodes.items():
            estimate = estimate_fps(node.distances, shift=node.shift, share=node.share, returned=passed)
            found[place] = estimate.count_excess(fpr=allowed)
        return {place: excess for place, excess in found.items() if excess}

    def _find_narrower_tolerance(self, place: int, excess: int, passed: Booleans) -> int:
        node = self._nodes[place]
        tolerance = narrow_tolerance(node.distances, shift=node.shift, excess=excess, returned=passed)
        if tolerance is None:
            raise Denied
        return tolerance

    def _run_second_phase(self, place: int, tolerance: int | None, passed: Booleans) -> Booleans:
        """Run TSLM with a narrower `u` on the uncertain keys. An occurrence within its allowance is not run again."""
        node = self._nodes[place]
        if tolerance is None:
            return node.list_accepted()
        cut, test = node.cut, self._calibrate_narrower_test(place, tolerance)
        loss = self._compute_loss(place, test.rate)
        self._charge_loss(max(Fraction(0), loss - node.loss) if self._gradual else loss)
        node.rerun = find_uncertain_keys(node.distances, shift=node.shift, returned=passed)
        node.rerun_loss = max(loss, node.loss) if self._gradual else loss + node.loss
        keys = np.flatnonzero(node.rerun)
        drawn = self._redraw_noise(node, keys, test.rate)
        node.distances[keys] = compute_noisy_distances(cut, self._aggregates[cut.functional, keys] + drawn)
        node.shift = test.shift
        node.share += test.fnr
        return node.list_accepted()

    def _redraw_noise(self, node: _Node, keys: Integers, rate: Fraction) -> Integers:
        if not self._gradual:
            return self._noise.draw_discrete_laplace(rate=rate, size=keys.size)
        if rate <= node.test.rate:
            return node.noise[keys]
        return refine_noise(node.noise[keys], coarse=node.test.rate, fine=rate, noise=self._noise)

    def _calibrate_narrower_test(self, place: int, tolerance: int) -> FunctionalTest:
        cut = self._literals[place]
        try:
            test = calibrate_tslm_test(
                sensitivity=self._calibration.task.sensitivities[cut.functional],
                tolerance=tolerance,
                share=self._second[place],
                functional=cut.functional,
            )
        except Unachievable as refusal:
            raise Denied from refusal
        coarse = self._nodes[place].test.rate
        drawable = coarse + LEAST_RATE
        return replace(test, rate=drawable) if self._gradual and coarse < test.rate < drawable else test

    def _compute_loss(self, place: int, rate: Fraction) -> Fraction:
        return rate * self._calibration.task.sensitivities[self._literals[place].functional]

    def _charge_loss(self, loss: Fraction) -> None:
        """Charge a loss before anything is drawn. Raise `Denied` if the reservation does not cover it."""
        if self._spent + loss > self._most:
            raise Denied
        self._spent += loss
