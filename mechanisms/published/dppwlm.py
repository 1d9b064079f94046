"""DPPWLM, the data-dependent progressive mechanism of MIDE (algorithms 3 and 4), on any formula.

As published: PPWLM's levels are a plan; after each look the next level is chosen from what remains of it, each interval
cut into `m_f` fine steps, to maximise the min-entropy of the losses that the expected number of undecided keys
would leave (equation 5.9). Skipped levels give their part of beta to the next look. The choice is a function of noisy
values already revealed, so the loss of a key is still that of the last level revealed for it. Each functional
follows its own plan; `u` and the shares are PPWLM's. Two gaps of the print are filled: the search starts from the level
in use; and when a fine step inside the last interval was chosen, the last look is at `eps_m` with one part of beta, as
algorithm 4 returns when there is nothing to choose from, which makes `m + 1` parts in all.

What MIDE claims but does not hold (theorem 5.6): **the false-negative rate**. The parts of beta that the looks use sum
to beta on every run, but a rule that sees the noise can carry parts over exactly when that hurts, and the union bound
holds only for looks fixed beforehand. With levels growing by 1.5 and the worst rule, beta = .05 becomes .058, .065,
.069 at 4, 6 and 10 levels, and .070, .077, .082 with three fine steps (exact dynamic programming, u = 150). The
published rule looks at all keys together, so a single one among many hardly steers it, but nothing is proved. Likewise
for false positives. So both rates of `Dppwlm`'s calibration are None.

`DppwlmBounded` (ours) is the same mechanism on smaller shares: so much smaller that the worst of all rules
(mechanisms/published/share_carryover.py) keeps the contract. That raises its levels by four to seven per cent, and both
rates are promises.

| here | MIDE |
|---|---|
| plan | B |
| fine_steps | m_f |
| parts | r |
| settled | E of the decided predicates |

References: MIDE section 5.3.3, algorithms 3 and 4, equation 5.9, theorem 5.6.

Proofs: docs/proofs/carried_shares.md, docs/proofs/gradual_release.md, docs/proofs/short_cuts.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from mechanisms.formula import Integers, list_literals
from mechanisms.protocol import Calibration, DecisionTask, FunctionalTest, Look, Noise, Outcome, Unachievable
from mechanisms.published.expected_undecided import Values, compute_undecided_chances
from mechanisms.published.min_entropy import bracket_min_entropy, compute_min_entropy_by_level
from mechanisms.published.ppwlm import (
    FIRST_EPSILON,
    LOOKS,
    calibrate_ppwlm,
    calibrate_ppwlm_test,
    check_looks,
    make_published_look,
)
from mechanisms.published.progressive_looks import Progress, decide_look_by_look, meet_contract_in_looks
from mechanisms.published.share_carryover import ZonesOf, bound_any_rule, find_zones_of_misses, make_zones_of_returns

FINE_STEPS = 3  # as published: fine steps between two coarse ones
NOTE = (
    "Error shares of skipped levels are carried over, as published: the rates asked for are aimed at, not guaranteed "
    "(a rate of 5% may become 7% at four levels)."
)

_SLACK = 1e-3  # shrinks a little further than proportion says, so that the next attempt holds
_MOST_REDUCTIONS = 12  # attempts; each is a whole computation of the worst choice of levels
_MOST_VERTICES = 20_000  # of the entropy's polytope; beyond, its bracket is compared instead
_MOST_AT_ONCE = 1 << 16  # chances of keys at candidate levels computed in one go: memory against calls
_MOST_KEYS = 20_000  # larger questions are scaled down to so many for the bracket


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameters:
    """The published parameters: `looks >= 2`, the first level, and `fine_steps >= 1` per interval."""

    looks: int = LOOKS
    first_epsilon: float = FIRST_EPSILON
    fine_steps: int = FINE_STEPS

    def __post_init__(self) -> None:
        check_looks(self.looks, self.first_epsilon)
        if self.fine_steps < 1:
            raise ValueError("an interval between two levels has at least one step")


class Dppwlm(_Parameters):
    """MIDE's data-dependent test, as published.

    Guarantee: the loss of a key is that of the looks it needed, at most `worst_case_epsilon`. No bound on either error
    rate (see above).
    """

    name = "dppwlm"
    summary = "MIDE's progressive test with data-dependent levels: error rates aimed at, not guaranteed"

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate PPWLM's schedule of looks for every functional. Raise `Unachievable` if none exists."""
        planned = calibrate_ppwlm(self.name, task, looks=self.looks, first_epsilon=self.first_epsilon)
        return replace(planned, fnr=None, fpr=None, notes=(*planned.notes, NOTE))

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every key look by look. Each level is chosen after the look before it.

        The loss per key is that of the levels that its functionals reached.
        """
        shares = [test.fnr for test in calibration.tests]
        return _decide_by_next_steps(calibration, aggregates, shares=shares, fine_steps=self.fine_steps, noise=noise)


class DppwlmBounded(_Parameters):
    """MIDE's data-dependent test on shares that its worst rule cannot overdraw.

    Guarantee: `P(not returned | formula true) <= fnr`, `P(returned | relaxed formula false) <= fpr`, per key, for any
    data and whatever levels the rule chooses; the loss of a key is that of the looks it needed, at most
    `worst_case_epsilon`.
    """

    name = "dppwlm_bounded"
    summary = "MIDE's data-dependent levels on shares reduced until both error rates hold under any choice"

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate a plan for each functional, with a bound on its worst rule. Raise `Unachievable` if none exists."""

        def calibrate(functional: int, tolerance: int, share: float) -> FunctionalTest:
            try:
                return self._bound_functional(task, functional, tolerance=tolerance, share=share).test
            except Unachievable as refusal:
                raise Unachievable(refusal.reason, functional=functional) from refusal

        def chance_missed(test: FunctionalTest, distance: int) -> float:
            return test.fnr if distance >= 1 else 1.0

        def wrong(test: FunctionalTest, distance: int) -> float:
            return test.fpr if distance <= -test.tolerance else 1.0

        return meet_contract_in_looks(
            self.name,
            task,
            parts=lambda _: self.looks,
            calibrate=calibrate,
            bound_missed_rate=chance_missed,
            bound_wrong_rate=wrong,
        )

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every key look by look. Each level is chosen after the look before it.

        The loss per key is that of the levels that its functionals reached.
        """
        task = calibration.task
        shares = [0.0] * len(calibration.tests)
        for functional in {cut.functional for cut in list_literals(task.formula)}:
            test = calibration.tests[functional]
            shares[functional] = self._bound_functional(
                task, functional, tolerance=test.tolerance, share=test.fnr
            ).used_share
        return _decide_by_next_steps(calibration, aggregates, shares=shares, fine_steps=self.fine_steps, noise=noise)

    def _bound_functional(self, task: DecisionTask, functional: int, *, tolerance: int, share: float) -> "_BoundedTest":
        return _calibrate_bounded_test(
            sensitivity=task.sensitivities[functional],
            tolerance=tolerance,
            share=share,
            looks=self.looks,
            first_epsilon=self.first_epsilon,
            fine_steps=self.fine_steps,
        )


@dataclass(frozen=True, slots=True)
class _BoundedTest:
    """A test that keeps its error share under every rule, with the smaller share for which its noise was chosen."""

    test: FunctionalTest
    used_share: float


@lru_cache(maxsize=256)
def _calibrate_bounded_test(
    *, sensitivity: int, tolerance: int, share: float, looks: int, first_epsilon: float, fine_steps: int
) -> _BoundedTest:
    """Return the test of the largest share, to a thousandth, that the worst rule does not overdraw.

    With it, the worst rule errs with probability `share` at most on either side.

    Raises:
        Unachievable: the last level lies outside the sampler's range.
    """
    used = share
    for _ in range(_MOST_REDUCTIONS):
        test = calibrate_ppwlm_test(
            sensitivity=sensitivity,
            tolerance=tolerance,
            share=used,
            looks=looks,
            first_epsilon=first_epsilon,
            functional=0,
        )
        worst = max(bound_worst_rates(test, share=used, fine_steps=fine_steps))
        if worst <= share:
            return _BoundedTest(test=replace(test, fnr=share, fpr=share), used_share=used)
        used *= share / worst * (1.0 - _SLACK)
    raise Unachievable("the levels of this tolerance lie too close together for a bound under every choice")


def bound_worst_rates(test: FunctionalTest, *, share: float, fine_steps: int) -> tuple[float, float]:
    """Bound a literal's error rates under any rule of choosing levels.

    A miss is bounded from distance 1 on, and a wrong key up to distance `-tolerance`.

    Parameters:
        test: a plan and its last level.
        share: the share that its looks divide.
    """
    levels = [*(look.rate for look in test.looks), test.rate]

    def worst(zones_of: ZonesOf) -> float:
        return bound_any_rule(
            levels,
            fine_steps=fine_steps,
            look_of=lambda rate, parts: _make_carrying_look(rate, share=share, parts=parts, looks=len(levels)),
            zones_of=zones_of,
        )

    return worst(find_zones_of_misses), worst(make_zones_of_returns(test.tolerance))


def _make_carrying_look(rate: Fraction, *, share: float, parts: int, looks: int) -> Look:
    return make_published_look(rate, share=share * parts / looks)


def _decide_by_next_steps(
    calibration: Calibration, aggregates: Integers, *, shares: Sequence[float], fine_steps: int, noise: Noise
) -> Outcome:
    def rule(functional: int) -> NextStep:
        return NextStep(
            test=calibration.tests[functional],
            share=shares[functional],
            sensitivity=calibration.task.sensitivities[functional],
            key_count=aggregates.shape[1],
            fine_steps=fine_steps,
        )

    return decide_look_by_look(calibration, aggregates, rule=rule, noise=noise)


@dataclass(slots=True)
class NextStep:
    """The rule that chooses one functional's next level, with its remaining plan.

    It counts the keys that stopped at each loss. Its looks divide `share`, or the test's own share if that is None.
    """

    test: FunctionalTest
    sensitivity: int
    key_count: int
    fine_steps: int
    share: float | None = None
    planned_rates: tuple[Fraction, ...] = ()
    keys_by_loss: dict[float, int] = field(default_factory=dict)
    undecided_keys: int = 0

    def __call__(self, progress: Progress, keys: Integers, /) -> Look | None:
        """Return the first level of the plan, then NEXTSTEPPARAMS until the last level has been used."""
        if progress.level == self.test.rate:
            return None
        if not self.planned_rates:
            self.planned_rates = (*(look.rate for look in self.test.looks), self.test.rate)
            self.keys_by_loss, self.undecided_keys = {0.0: self.key_count - keys.size}, keys.size
            return self.test.looks[0]
        self.keys_by_loss[float(progress.level * self.sensitivity)] = self.undecided_keys - keys.size
        self.undecided_keys = keys.size
        step = self._choose_step(progress, keys)
        self.planned_rates = self.planned_rates[step.beta_parts :]
        return self._make_look(step.rate, step.beta_parts)

    def _choose_step(self, progress: Progress, keys: Integers) -> "_Step":
        """Run algorithm 4.

        Return the step that leaves the greatest min-entropy, or the last of equal ones, as printed.
        """
        steps = _list_steps(self.planned_rates, sensitivity=self.sensitivity, fine_steps=self.fine_steps)
        if not steps:
            return _make_step(self.planned_rates[0], parts=1, sensitivity=self.sensitivity)
        at_once = max(1, _MOST_AT_ONCE // keys.size)
        undecided = [
            round(left)
            for start in range(0, len(steps), at_once)
            for left in self._expect_undecided(progress, keys, steps[start : start + at_once]).tolist()
        ]
        last = steps[-1].loss
        return steps[
            _find_greatest_entropy(
                [self._count_by_loss(step.loss, last, left) for step, left in zip(steps, undecided, strict=True)]
            )
        ]

    def _expect_undecided(self, progress: Progress, keys: Integers, steps: Sequence["_Step"]) -> Values:
        """Return the expected numbers of undecided keys after each step, by equation 5.9.

        A key counts as undecided while one of the functional's open literals is.
        """
        shifts = np.array([self._compute_shift(step) for step in steps])
        rates = np.array([step.float_rate for step in steps])
        chances: Values = np.zeros((len(steps), keys.size))
        for cut in progress.literals:
            threshold = cut.cut if cut.above else cut.cut + 1
            own = compute_undecided_chances(
                (progress.noisy[keys] - threshold).astype(np.float64),
                shift=shifts[:, np.newaxis],
                previous_rate=float(progress.level),
                next_rate=rates[:, np.newaxis],
            )
            chances += np.where(progress.find_undecided_keys(cut)[keys], own, 0.0)
        return np.asarray(np.minimum(chances, 1.0).sum(axis=1))

    def _compute_shift(self, step: "_Step") -> float:
        return -math.log(2.0 * self._share * step.beta_parts / self._looks) / step.float_rate

    def _count_by_loss(self, reached: float, last: float, left: int) -> dict[float, int]:
        """Return the number of keys for each loss if `left` keys stayed undecided, the print's E'."""
        levels = {**self.keys_by_loss}
        for loss, count in ((reached, self.undecided_keys - left), (last, left)):
            levels[loss] = levels.get(loss, 0) + count
        return {loss: count for loss, count in levels.items() if count}

    @property
    def _share(self) -> float:
        return self.test.fnr if self.share is None else self.share

    @property
    def _looks(self) -> int:
        return len(self.test.looks) + 1

    def _make_look(self, rate: Fraction, parts: int) -> Look:
        look = _make_carrying_look(rate, share=self._share, parts=parts, looks=self._looks)
        return replace(look, accepting=1 + look.rejecting) if rate == self.test.rate else look


@dataclass(frozen=True, slots=True)
class _Step:
    """A candidate level, its use of beta, and its loss.

    It uses the parts of beta of all levels up to its interval's upper end. The loss is that of a key that stops there.
    """

    rate: Fraction
    float_rate: float
    beta_parts: int
    loss: float


@lru_cache(maxsize=1 << 12)
def _list_steps(plan: tuple[Fraction, ...], *, sensitivity: int, fine_steps: int) -> tuple[_Step, ...]:
    """Return the candidate steps of a plan, the last level last."""
    rates = (
        (low + (high - low) * step / fine_steps, interval + 1)
        for interval, (low, high) in enumerate(pairwise(plan))
        for step in range(1, fine_steps + 1)
    )
    return tuple(_make_step(rate, parts=parts, sensitivity=sensitivity) for rate, parts in rates)


def _make_step(rate: Fraction, *, parts: int, sensitivity: int) -> _Step:
    return _Step(rate=rate, float_rate=float(rate), beta_parts=parts, loss=float(rate * sensitivity))


def _find_greatest_entropy(candidates: Sequence[dict[float, int]]) -> int:
    """Return the place of the greatest min-entropy, or the last of equal ones."""
    keys = sum(candidates[0].values())
    exact = all(_count_vertices(losses) <= _MOST_VERTICES for losses in candidates)
    best, greatest = 0, 0.0
    for place, losses in enumerate(candidates):
        if exact:
            entropy = _compute_entropy(tuple(losses.items()))
        else:
            scale = min(1.0, _MOST_KEYS / keys)
            numbers = [max(1, round(count * scale)) for count in losses.values()]
            entropy = bracket_min_entropy(np.repeat(list(losses), numbers).tolist()).upper
        if entropy >= greatest:
            best, greatest = place, entropy
    return best


@lru_cache(maxsize=1 << 14)
def _compute_entropy(counts: tuple[tuple[float, int], ...]) -> float:
    return compute_min_entropy_by_level([loss for loss, _ in counts], [count for _, count in counts])


def _count_vertices(losses: dict[float, int]) -> float:
    """Return the number of vertices that the exact method enumerates: counts on all levels but the lowest."""
    return math.prod(float(losses[loss] + 1) for loss in sorted(losses)[1:])
