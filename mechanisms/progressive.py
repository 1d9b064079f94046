"""Keyhole's default mechanism: three-zone tests, three-valued formula, and every key charged what it revealed.

Look by look, from coarse to fine, a functional's value is refined only for the keys whose answer it can still change;
a key is finished as soon as its formula is settled.

References: MATHS M4, M5, M6, M8. Proofs: docs/proofs/three_zone.md, docs/proofs/short_cuts.md.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mechanisms.contract import OneShotKind, meet_contract, tolerances
from mechanisms.formula import Cut, Integers, cuts
from mechanisms.gradual_release import release_chain
from mechanisms.joint_loss import joint_losses
from mechanisms.keyhole import optimal_loss, single_literals
from mechanisms.protocol import Calibration, DecisionTask, Epsilons, FunctionalTest, Noise, Outcome, Unachievable
from mechanisms.three_valued import Verdicts, mattering, settled
from mechanisms.three_zone import calibrate_three_zone, missed, wrong
from mechanisms.threshold_test import at_least

_KEYS_AT_ONCE = 1 << 15


class Progressive:
    """Three-zone tests under Keyhole's apportionment; far keys stop early and cost little.

    Guarantee: `P(not returned | formula true) <= fnr`, `P(returned | relaxed formula false) <= fpr`, per key, for any
    data. Of each key's functionals exactly the looks taken are revealed: the key's loss is the joint loss at the rates
    reached, at most `worst_case_epsilon`, zero for a functional never looked at.
    """

    name = "progressive"
    summary = "a few looks per key, coarse to fine: far keys stop early and cost little (default)"

    def calibrate(self, task: DecisionTask) -> Calibration:
        """One three-zone test per functional. Raises `Unachievable`."""
        near = tolerances(task.formula, len(task.sensitivities))
        alone = single_literals(task)
        directions = {(cut.functional, cut.above) for cut in cuts(task.formula)}

        def calibrate(functional: int, fnr: float, fpr: float) -> FunctionalTest:
            try:
                return calibrate_three_zone(
                    sensitivity=task.sensitivities[functional],
                    tolerance=near[functional],
                    fnr=fnr,
                    fpr=fpr,
                    allow_block=functional in alone,
                    two_sided={(functional, True), (functional, False)} <= directions,
                )
            except Unachievable as refusal:
                raise Unachievable(refusal.reason, functional=functional) from refusal

        kind = OneShotKind(loss=optimal_loss(task), calibrate=calibrate, tied=False, missed=missed, wrong=wrong)
        return meet_contract(self.name, task, kind)

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Every key, look by look; `aggregates` has shape (functionals, keys), within +-2**62."""
        keys = aggregates.shape[1]
        passed = np.empty(keys, dtype=np.bool_)
        epsilon = np.empty(keys)
        for start in range(0, keys, _KEYS_AT_ONCE):
            block = slice(start, min(keys, start + _KEYS_AT_ONCE))
            run = _Run(calibration, aggregates[:, block], noise)
            run.finish()
            passed[block] = run.answer == 1
            epsilon[block] = run.loss()
        return Outcome(passed=passed, epsilon=epsilon)


class _Run:
    """The state of some keys between looks: each literal's verdict, and the rate each functional has reached."""

    def __init__(self, calibration: Calibration, aggregates: Integers, noise: Noise) -> None:
        self._calibration = calibration
        self._formula = calibration.task.formula
        self._noise = noise
        self._values = aggregates
        self._keys = aggregates.shape[1]
        self._literals = tuple(dict.fromkeys(cuts(self._formula)))
        self._verdicts: dict[Cut, Verdicts] = {cut: np.zeros(self._keys, dtype=np.int8) for cut in self._literals}
        used = {cut.functional for cut in self._literals}
        self._order = sorted(used, key=lambda functional: calibration.tests[functional].epsilon)
        self._reached = {functional: np.zeros(self._keys, dtype=np.int8) for functional in used}
        self._chains: dict[int, Integers] = {}
        self.answer = settled(self._formula, self._verdicts, keys=self._keys)

    def finish(self) -> None:
        """Take looks until every key's formula is settled. Tests end together: those with fewer looks start later."""
        tests = self._calibration.tests
        most = max((len(tests[functional].looks) for functional in self._order), default=0)
        for turn in range(most + 1):
            for functional in self._order:
                look = turn - (most - len(tests[functional].looks))
                if look >= 0:
                    self._look(functional, look)
        self.answer = settled(self._formula, self._verdicts, keys=self._keys)
        assert np.all(self.answer != 0), "a key's formula is still open after every look"

    def loss(self) -> Epsilons:
        """Per key, the joint loss at the rates reached, rounded up, at most the worst case."""
        task = self._calibration.task
        lost = {
            functional: _costs(self._calibration.tests[functional], task.sensitivities[functional])[reached]
            for functional, reached in self._reached.items()
        }
        worst = joint_losses(lost, task.exposures, keys=self._keys)
        return np.minimum(worst, self._calibration.worst_case_epsilon)

    def _look(self, functional: int, look: int) -> None:
        where = np.flatnonzero(mattering(self._formula, self._verdicts, keys=self._keys)[functional])
        if not where.size:
            return
        test = self._calibration.tests[functional]
        if functional not in self._chains:
            rates = [look.rate for look in test.looks] + [test.rate]
            self._chains[functional] = release_chain(rates, size=self._keys, noise=self._noise)
        self._reached[functional][where] = look + 1
        drawn = self._chains[functional][look, where]
        values = self._values[functional, where]
        last = look == len(test.looks)
        tie = self._noise.bernoulli(probability=test.tie, size=where.size) if last else None
        for cut in self._own(functional):
            noisy, origin = _noisy_distance(cut, test, values, drawn)
            if tie is None:
                zone = test.looks[look]
                high, low = noisy >= origin + zone.accepting, noisy <= origin + zone.rejecting
            else:
                high = (noisy > origin - test.shift) | ((noisy == origin - test.shift) & tie)
                low = ~high
            before = self._verdicts[cut][where]
            fresh = np.subtract(high, low, dtype=np.int8)
            self._verdicts[cut][where] = np.where(before == 0, fresh, before)

    def _own(self, functional: int) -> Sequence[Cut]:
        return [cut for cut in self._literals if cut.functional == functional]


def _noisy_distance(cut: Cut, test: FunctionalTest, values: Integers, drawn: Integers) -> tuple[Integers, int]:
    """The noisy distance of a literal and what is still to be subtracted from it; in blocks where the noise is."""
    if test.block > 1:
        offset = values - (cut.cut + 1) if cut.above else cut.cut - values
        return offset // test.block + drawn, -1
    noisy = values + drawn
    return (noisy, cut.cut) if cut.above else (-noisy, -(cut.cut + 1))


def _costs(test: FunctionalTest, sensitivity: int) -> Epsilons:
    """Epsilon by number of looks taken, the first entry for none."""
    scale = sensitivity if test.block == 1 else 1
    rates = [Fraction(0)] + [look.rate for look in test.looks] + [test.rate]
    return np.array([at_least(rate * scale) for rate in rates])
