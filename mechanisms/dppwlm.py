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
for false positives. So both rates of the calibration are None; PPWLM keeps them.

| here | MIDE |
|---|---|
| plan | B |
| fine_steps | m_f |
| parts | r |
| settled | E of the decided predicates |

References: MIDE section 5.3.3, algorithms 3 and 4, equation 5.9, theorem 5.6; MATHS M8, M11.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from mechanisms.expected_undecided import Values, undecided_chances
from mechanisms.formula import Integers
from mechanisms.min_entropy import min_entropy_bracket, min_entropy_by_level
from mechanisms.ppwlm import FIRST_EPSILON, LOOKS, calibrate_ppwlm, check_looks, published_look
from mechanisms.protocol import Calibration, DecisionTask, FunctionalTest, Look, Noise, Outcome
from mechanisms.published_looks import Progress, look_by_look

FINE_STEPS = 3
NOTE = (
    "Error shares of skipped levels are carried over, as published: the rates asked for are aimed at, not guaranteed "
    "(a rate of 5% may become 7% at four levels)."
)

_MOST_VERTICES = 20_000
_MOST_KEYS = 20_000


class Dppwlm:
    """MIDE's data-dependent test, as published.

    Guarantee: the loss of a key is that of the looks it needed, at most `worst_case_epsilon`. No bound on either error
    rate (see above).
    """

    name = "dppwlm"
    summary = "MIDE's progressive test with data-dependent levels: error rates aimed at, not guaranteed"

    def __init__(
        self, *, looks: int = LOOKS, first_epsilon: float = FIRST_EPSILON, fine_steps: int = FINE_STEPS
    ) -> None:
        """The published parameters: `looks >= 2`, the first level, and `fine_steps >= 1` per interval."""
        check_looks(looks, first_epsilon)
        if fine_steps < 1:
            raise ValueError("an interval between two levels has at least one step")
        self._looks = looks
        self._first_epsilon = first_epsilon
        self._fine_steps = fine_steps

    def calibrate(self, task: DecisionTask) -> Calibration:
        """PPWLM's schedule as the plan of every functional. Raises `Unachievable`, also for a tolerance of zero."""
        planned = calibrate_ppwlm(self.name, task, looks=self._looks, first_epsilon=self._first_epsilon)
        return replace(planned, fnr=None, fpr=None, notes=(*planned.notes, NOTE))

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Every key look by look at levels chosen on the way; the loss per key is that of the levels reached."""

        def rule(functional: int) -> _NextStep:
            return _NextStep(
                test=calibration.tests[functional],
                sensitivity=calibration.task.sensitivities[functional],
                keys=aggregates.shape[1],
                fine_steps=self._fine_steps,
            )

        return look_by_look(calibration, aggregates, rule=rule, noise=noise)


@dataclass(slots=True)
class _NextStep:
    """The rule of one functional: the remaining plan, and how many keys stopped at which loss."""

    test: FunctionalTest
    sensitivity: int
    keys: int
    fine_steps: int
    plan: tuple[Fraction, ...] = ()
    settled: dict[Fraction, int] = field(default_factory=dict)
    undecided: int = 0

    def __call__(self, progress: Progress, keys: Integers, /) -> Look | None:
        """The first level of the plan, then NEXTSTEPPARAMS until the last level has been used."""
        if progress.level == self.test.rate:
            return None
        if not self.plan:
            self.plan = (*(look.rate for look in self.test.looks), self.test.rate)
            self.settled, self.undecided = {Fraction(0): self.keys - keys.size}, keys.size
            return self.test.looks[0]
        self.settled[progress.level] = self.undecided - keys.size
        self.undecided = keys.size
        step = self._next_step(progress, keys)
        self.plan = self.plan[step.parts :]
        return self._look(step.rate, step.parts)

    def _next_step(self, progress: Progress, keys: Integers) -> "_Step":
        """Algorithm 4: the step that leaves the greatest min-entropy; the later of equals, as printed."""
        steps = self._steps()
        if not steps:
            return _Step(rate=self.plan[0], parts=1)
        undecided = [round(self._still_undecided(progress, keys, step)) for step in steps]
        return steps[_greatest([self._losses(step, left) for step, left in zip(steps, undecided, strict=True)])]

    def _steps(self) -> list["_Step"]:
        return [
            _Step(rate=low + (high - low) * step / self.fine_steps, parts=interval + 1)
            for interval, (low, high) in enumerate(pairwise(self.plan))
            for step in range(1, self.fine_steps + 1)
        ]

    def _still_undecided(self, progress: Progress, keys: Integers, step: "_Step") -> float:
        """Equation 5.9, over the literals that are open: a key stays with its functional while one of them is."""
        shift = -math.log(2.0 * self._share(step.parts)) / float(step.rate)
        chances: Values = np.zeros(keys.size)
        for cut in progress.literals:
            threshold = cut.cut if cut.above else cut.cut + 1
            own = undecided_chances(
                (progress.noisy[keys] - threshold).astype(np.float64),
                shift=shift,
                previous_rate=float(progress.level),
                next_rate=float(step.rate),
            )
            chances += np.where(progress.open(cut)[keys], own, 0.0)
        return float(np.minimum(chances, 1.0).sum())

    def _losses(self, step: "_Step", left: int) -> dict[float, int]:
        """How many keys would have which loss if `left` of the undecided stayed so: E'."""
        levels = {**self.settled}
        for rate, count in ((step.rate, self.undecided - left), (self.test.rate, left)):
            levels[rate] = levels.get(rate, 0) + count
        return {float(rate * self.sensitivity): count for rate, count in levels.items() if count}

    def _share(self, parts: int) -> float:
        return self.test.fnr * parts / (len(self.test.looks) + 1)

    def _look(self, rate: Fraction, parts: int) -> Look:
        look = published_look(rate, share=self._share(parts))
        return replace(look, accepting=1 + look.rejecting) if rate == self.test.rate else look


@dataclass(frozen=True, slots=True)
class _Step:
    """A candidate level, and how many parts of beta it uses: those of the levels up to its interval's upper end."""

    rate: Fraction
    parts: int


def _greatest(candidates: Sequence[dict[float, int]]) -> int:
    """The place of the greatest min-entropy, the last of equals."""
    keys = sum(candidates[0].values())
    exact = all(_vertices(losses) <= _MOST_VERTICES for losses in candidates)
    best, greatest = 0, 0.0
    for place, losses in enumerate(candidates):
        if exact:
            entropy = min_entropy_by_level(list(losses), list(losses.values()))
        else:
            scale = min(1.0, _MOST_KEYS / keys)
            numbers = [max(1, round(count * scale)) for count in losses.values()]
            entropy = min_entropy_bracket(np.repeat(list(losses), numbers).tolist()).upper
        if entropy >= greatest:
            best, greatest = place, entropy
    return best


def _vertices(losses: dict[float, int]) -> float:
    """How many vertices the exact method enumerates: counts on all levels but the lowest."""
    return math.prod(float(losses[loss] + 1) for loss in sorted(losses)[1:])
