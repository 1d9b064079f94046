"""ProBE-Ent (algorithm 5): a DPPWLM run per occurrence whose threshold shift is set after its first look.

The tree is walked as in ProBE. An occurrence's first look is a TSLM test with one of `m` parts of its share. If
EstimateFPs then finds its wrong keys within their allowance, the occurrence is done and undecided keys are returned;
otherwise it gives `u'`, hence the last level `eps_m = sensitivity * ln(m / (2 beta_i)) / u'`, and DPPWLM chooses the
levels in between (`m_f` fine steps). Parts of a share that an early exit has not used are divided again, by theorem
4.5, over the occurrences still to run. The uncertain region of the first look is the tolerance band, as for `probe`.

Gaps of the print that are filled: the estimate for an occurrence counts as returned what the occurrences run so far
return together; a question is denied when no narrower `u'` would do, or before its running loss could pass
`most_epsilon`. Everything that ran is charged.

**What ProBE claims but does not hold.** The false-negative rate: levels chosen from noisy values carry shares over, as
in DPPWLM (mechanisms/published/dppwlm.py), and here the last level and the shares of later occurrences follow from them
too. The false-positive rate, by EstimateFPs (mechanisms/published/estimate_fps.py). So both rates of the calibration
are None. The loss holds: levels are functions of noisy values already revealed, and noise is refined.

| here | ProBE, MIDE |
|---|---|
| looks, fine_steps | m, m_f |
| remaining | beta_rem |
| most_epsilon | eps_max |

References: ProBE section 5.3 and appendix C, algorithm 5; MIDE algorithms 3 and 4.

Proof of the loss: docs/proofs/probe.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from mechanisms.apportionment.probe import split_by_probe
from mechanisms.formula import AllOf, Booleans, Cut, Formula, Integers, list_literals
from mechanisms.noise.exact import LEAST_RATE
from mechanisms.protocol import Calibration, DecisionTask, FunctionalTest, Look, Noise, Outcome, Unachievable
from mechanisms.published.dppwlm import FINE_STEPS, NextStep
from mechanisms.published.estimate_fps import estimate_fps, narrow_tolerance
from mechanisms.published.per_occurrence import (
    calibrate_occurrences,
    compute_noisy_distances,
    evaluate_in_order,
    list_shift_weights,
    number_occurrences,
)
from mechanisms.published.ppwlm import LOOKS, make_published_look
from mechanisms.published.probe import DENIAL_NOTE, Denied, check_most_epsilon, compute_reservation
from mechanisms.published.progressive_looks import Progress, decide_look_by_look
from mechanisms.published.tslm import calibrate_tslm_test
from mechanisms.threshold.joint_loss import expose_all_functionals
from mechanisms.threshold.one_shot import round_rate_up

NOTE = "Levels and shares follow from noisy values, as published: the rates asked for are aimed at, not guaranteed."

_LEAST_FIRST_RATE = LEAST_RATE * (1 << 8)  # room for rates below the first within the sampler's range


class ProbeEnt:
    """ProBE's multi-step variant, as published.

    Guarantee: the loss of a key is that of the looks it needed, summed over occurrences, at most `worst_case_epsilon`.
    No bound on either error rate (see above).
    """

    name = "probe_ent"
    summary = "ProBE's multi-step variant with data-dependent levels: error rates aimed at, not guaranteed"

    def __init__(self, *, looks: int = LOOKS, fine_steps: int = FINE_STEPS, most_epsilon: float | None = None) -> None:
        """Take the published parameters.

        Parameters:
            looks: of an occurrence, at least two.
            fine_steps: per interval between two levels, at least one.
            most_epsilon: the loss at which a question is denied, which is what is reserved; None for five times the
                first looks'.
        """
        check_most_epsilon(most_epsilon)
        if looks < 2 or fine_steps < 1:
            raise ValueError("a progressive test has at least two looks, and a step in every interval between them")
        self._looks = looks
        self._fine_steps = fine_steps
        self._most_epsilon = most_epsilon

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate first looks that use the whole share.

        Raise `Unachievable` if none exist, also for a tolerance of zero.
        """
        shares = split_by_probe(bound=min(task.fnr, task.fpr) / self._looks, weights=list_shift_weights(task))
        first = calibrate_occurrences(self.name, task, fnr=shares, fpr=shares)
        for cut, test in zip(list_literals(task.formula), first.occurrences, strict=True):
            if test.rate < _LEAST_FIRST_RATE:
                raise Unachievable("a tolerance this wide leaves no room between looks", functional=cut.functional)
        return replace(
            first,
            worst_case_epsilon=compute_reservation(first, most_epsilon=self._most_epsilon),
            fnr=None,
            fpr=None,
            notes=(*first.notes, DENIAL_NOTE, NOTE),
            deniable=True,
        )

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every occurrence look by look, in the order of the tree.

        `aggregates` has shape (functionals, keys).
        """
        keys = aggregates.shape[1]
        run = _ProbeEntRun(calibration, aggregates, noise, looks=self._looks, fine_steps=self._fine_steps)
        try:
            passed = evaluate_in_order(run.leaves, run.run_occurrence, keys=keys)
        except Denied:
            return Outcome(passed=np.zeros(keys, dtype=np.bool_), epsilon=run.list_losses(), denied=True)
        return Outcome(passed=passed, epsilon=run.list_losses())


class _ProbeEntRun:
    """The run of one question: its occurrences so far, their loss, and the rest of beta."""

    def __init__(
        self, calibration: Calibration, aggregates: Integers, noise: Noise, *, looks: int, fine_steps: int
    ) -> None:
        task = calibration.task
        self.leaves: Formula = number_occurrences(task.formula)
        self._calibration = calibration
        self._aggregates = aggregates
        self._noise = noise
        self._looks = looks
        self._fine_steps = fine_steps
        self._literals = tuple(list_literals(task.formula))
        self._weights = list_shift_weights(task)
        self._remaining = min(task.fnr, task.fpr)
        self._most = Fraction(calibration.worst_case_epsilon)
        self._spent = Fraction(0)
        self._accepted: dict[int, Booleans] = {}
        self._progress: list[Progress] = []

    def run_occurrence(self, place: int) -> Booleans:
        """Run DPPWLM on one occurrence. Raise `Denied` if the reservation does not suffice."""
        cut = replace(self._literals[place], functional=0)
        sensitivity = self._calibration.task.sensitivities[self._literals[place].functional]
        share = split_by_probe(bound=self._remaining, weights=self._weights[place:])[0]
        first = calibrate_tslm_test(
            sensitivity=sensitivity, tolerance=cut.tolerance, share=share / self._looks, functional=0
        )
        first = replace(first, fnr=share, looks=(make_published_look(first.rate, share=share / self._looks),))
        self._charge_loss(first.rate * sensitivity)
        rule = _ResetStep(
            cut=cut,
            first_test=first,
            looks=self._looks,
            next_step=NextStep(
                test=first, sensitivity=sensitivity, key_count=self._aggregates.shape[1], fine_steps=self._fine_steps
            ),
            find_narrower=lambda distances: self._find_narrower_tolerance(place, distances, first),
            charge=lambda rate: self._charge_loss((rate - first.rate) * sensitivity),
            note_begin=self._progress.append,
        )
        values = self._aggregates[self._literals[place].functional][np.newaxis, :]
        outcome = decide_look_by_look(
            self._make_own_calibration(cut, sensitivity, first),
            values,
            rule=lambda _functional: rule,
            noise=self._noise,
        )
        self._spent -= rule.compute_unspent() * sensitivity
        self._remaining -= share * min(self._looks, rule.count_parts()) / self._looks
        self._accepted[place] = rule.list_accepted(outcome.passed)
        return self._accepted[place]

    def list_losses(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return each key's loss, rounded up: the sum of the levels revealed for it. It is at most the reservation."""
        total = np.zeros(self._aggregates.shape[1])
        for progress in self._progress:
            total += progress.epsilon
        return np.minimum(total * (1.0 + len(self._progress) * 2.0**-52), self._calibration.worst_case_epsilon)

    def _make_own_calibration(self, cut: Cut, sensitivity: int, first: FunctionalTest) -> Calibration:
        """Return a calibration of the occurrence as a separate question."""
        task = DecisionTask(
            formula=cut,
            sensitivities=(sensitivity,),
            exposures=expose_all_functionals(1),
            fnr=first.fnr,
            fpr=first.fnr,
        )
        return replace(self._calibration, task=task, tests=(first,), occurrences=())

    def _find_narrower_tolerance(self, place: int, distances: Integers, first: FunctionalTest) -> int | None:
        """Return `2u'` from EstimateFPs, None if the estimate is within its allowance.

        Raise `Denied` if no narrower tolerance exists.
        """
        so_far = _evaluate_finished_occurrences(self.leaves, {**self._accepted, place: distances > -first.shift})
        assert so_far is not None, "the occurrence itself has run"
        share = first.fnr / self._looks
        estimate = estimate_fps(distances, shift=first.shift, share=share, returned=so_far)
        excess = estimate.count_excess(fpr=self._calibration.task.fpr / len(self._literals))
        if not excess:
            return None
        tolerance = narrow_tolerance(distances, shift=first.shift, excess=excess, returned=so_far)
        if tolerance is None:
            raise Denied
        return tolerance

    def _charge_loss(self, loss: Fraction) -> None:
        """Charge a loss before anything is drawn. Raise `Denied` if the reservation does not cover it."""
        if self._spent + loss > self._most:
            raise Denied
        self._spent += loss


def _evaluate_finished_occurrences(leaves: Formula, accepted: dict[int, Booleans]) -> Booleans | None:
    """Return the joint answer of the occurrences that have run, or None if none has."""
    if isinstance(leaves, Cut):
        return accepted.get(leaves.functional)
    known = [
        part
        for part in (_evaluate_finished_occurrences(child, accepted) for child in leaves.children)
        if part is not None
    ]
    if not known:
        return None
    return np.asarray((np.all if isinstance(leaves, AllOf) else np.any)(known, axis=0), dtype=np.bool_)


@dataclass(slots=True)
class _ResetStep:
    """A rule that gives the next look of one occurrence, as DPPWLM's does, with the rest planned after the first look.

    It gives no further look if no narrower `u` is needed.
    """

    cut: Cut
    first_test: FunctionalTest
    looks: int
    next_step: NextStep
    find_narrower: Callable[[Integers], int | None]
    charge: Callable[[Fraction], None]
    note_begin: Callable[[Progress], None]
    last_rate: Fraction | None = None
    progress: Progress | None = field(default=None)

    def __call__(self, progress: Progress, keys: Integers, /) -> Look | None:
        """Return the next look by DPPWLM's rule, whose plan is reset after the first look. None ends the test.

        Raise `Denied` if the reservation does not suffice.
        """
        if self.progress is None:
            self.progress = progress
            self.note_begin(progress)
            return self.next_step(progress, keys)
        if self.last_rate is None:
            tolerance = self.find_narrower(compute_noisy_distances(self.cut, progress.noisy))
            if tolerance is None:
                return None
            self._reset_plan(tolerance)
        return self.next_step(progress, keys)

    def _reset_plan(self, tolerance: int) -> None:
        """Set geometric levels up to the one that `u'` asks for.

        Raise `Denied` if the reservation does not cover them.
        """
        part = self.first_test.fnr / self.looks
        try:
            narrowed = calibrate_tslm_test(
                sensitivity=self.next_step.sensitivity, tolerance=tolerance, share=part, functional=0
            )
        except Unachievable as refusal:
            raise Denied from refusal
        self.charge(narrowed.rate)
        first, self.last_rate = self.first_test.rate, narrowed.rate
        growth = (float(self.last_rate) / float(first)) ** (1.0 / (self.looks - 1))
        rates = [first, *(round_rate_up(float(first) * growth**step) for step in range(1, self.looks - 1))]
        early = tuple(make_published_look(rate, share=part) for rate in rates)
        self.next_step.test = replace(narrowed, fnr=self.first_test.fnr, looks=early)
        self.next_step.planned_rates = (*rates, self.last_rate)

    def list_accepted(self, passed: Booleans) -> Booleans:
        """Return the accepted keys. Undecided keys count as accepted."""
        return passed if self.progress is None else passed | self.progress.find_undecided_keys(self.cut)

    def count_parts(self) -> int:
        """Return the number of parts of the share that have been used."""
        if self.last_rate is None:
            return 1
        return 1 + self.looks - len(self.next_step.planned_rates)

    def compute_unspent(self) -> Fraction:
        """Return the rate that was set aside and not reached."""
        reached = Fraction(0) if self.progress is None else self.progress.level
        return (self.first_test.rate if self.last_rate is None else self.last_rate) - reached
