"""MiM's threshold shift in one or two looks, and its choice between them from public knowledge, on any formula.

As published (algorithm 1): accept `y > c - u`, `eps = sensitivity * ln(1 / (2 beta)) / u`. Algorithm 2 with two
looks, each with half of beta: keys at or below `c - u_1` are eliminated after the first at `eps_1`; the second at
`eps_2 = sensitivity * ln(1 / beta) / u` refines the same noise for the rest. Nothing is decided positive
early. The model picks the one with the fewer expected false positives at equal epsilon, from roughly known
numbers of keys far from and near to the threshold (equations 4 to 6). As for TSLM, `u` is half the tolerance and `beta`
the smaller of a functional's two shares.

What is printed but does not hold: the text states `ln(1 / beta) / eps` for the shift of algorithm 1, the algorithm
`ln(1 / (2 beta)) / eps`. The bounds on `eps_1` in equation 7 are the wrong way round: equation 5 supposes `x_1 <=
c - u_1 <= x_2`, so `eps_1 <= ln(1 / beta) / (c - x_2)`, and equation 6 falls as `eps_1` grows. Equation 6 multiplies
the two looks' chances as if their noise were independent; gradual release makes it dependent, so this is a model to
choose by, no bound. No promise rests on it.

| here | MiM |
|---|---|
| far_keys, near_keys | h_1, h_2 |
| far_distance, near_distance | c - x_1, c - x_2 |

References: MiM section 3, algorithms 1 and 2, equations 4 to 7.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from mechanisms.formula import Integers, list_literals
from mechanisms.keyhole.contract import check_task, list_tolerances
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.protocol import Calibration, DecisionTask, FunctionalTest, Knowledge, Noise, Outcome, Unachievable
from mechanisms.published.ppwlm import make_published_look
from mechanisms.published.progressive_looks import (
    NEVER,
    PlannedLooks,
    decide_look_by_look,
    make_last_look,
    meet_contract_in_looks,
)
from mechanisms.published.tslm import calibrate_tslm_test, refuse_zero_tolerance
from mechanisms.threshold.one_shot import round_rate_up, round_up_to_float

_UNINFORMED = Fraction(1, 4)  # of the last rate: where the first look stands when nothing is publicly known
_GREATEST_SHARE_OF_LAST = Fraction(1, 2)  # the first look stays well below the last


class MimBaseline:
    """MiM's single look (algorithm 1), which is TSLM. Both error rates are bounded for every key."""

    name = "mim_baseline"
    summary = "MiM's one-shot threshold shift"

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate one test per functional. Raise `Unachievable` if none exists, also for a tolerance of zero."""
        return _calibrate_looks(self.name, task, looks=lambda _: 1, knowledge={})

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide one functional after the other. No further look is taken at a key that is decided."""
        return _decide_by_plan(calibration, aggregates, noise)


class MimProgressive:
    """MiM's two looks (algorithm 2). Both error rates are bounded for every key, and far failing keys stop early."""

    name = "mim_progressive"
    summary = "MiM's two looks: far failing groups stop at a small loss"

    def __init__(self, *, knowledge: Mapping[int, Knowledge] | None = None) -> None:
        """Take `knowledge` by functional, for tasks without it.

        It sets the first level, which is otherwise a quarter of the last.
        """
        self._knowledge = dict(knowledge or {})

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate two looks per functional. Raise `Unachievable` if none exist, also for a tolerance of zero."""
        return _calibrate_looks(self.name, task, looks=lambda _: 2, knowledge=_find_knowledge(task, self._knowledge))

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every key look by look. The loss per key is that of the levels that its functionals reached."""
        return _decide_by_plan(calibration, aggregates, noise)


class Mim:
    """MiM with its selection model: one or two looks for each functional. Both error rates are bounded for every key.

    The choice uses only public knowledge, so it adds no privacy loss. A functional without public knowledge has two
    looks.
    """

    name = "mim"
    summary = "MiM: one or two looks, chosen from public knowledge"

    def __init__(self, *, knowledge: Mapping[int, Knowledge] | None = None) -> None:
        """Take `knowledge` by functional, for tasks without it. See `Knowledge`."""
        self._knowledge = dict(knowledge or {})

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate one or two looks per functional. Raise `Unachievable` if none exist, also without tolerance."""
        check_task(task)
        refuse_zero_tolerance(task)
        near = list_tolerances(task.formula, len(task.sensitivities))
        share = min(task.fnr, task.fpr)
        knowledge = _find_knowledge(task, self._knowledge)
        chosen = {
            functional: choose_looks(knowledge[functional], shift=near[functional] / 2, share=share)
            for functional in {cut.functional for cut in list_literals(task.formula)} & knowledge.keys()
        }
        return _calibrate_looks(self.name, task, looks=lambda f: chosen.get(f, 2), knowledge=knowledge)

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every key look by look. The loss per key is that of the levels that its functionals reached."""
        return _decide_by_plan(calibration, aggregates, noise)


def _find_knowledge(task: DecisionTask, otherwise: Mapping[int, Knowledge]) -> Mapping[int, Knowledge]:
    """Return the task's knowledge by functional, or all of `otherwise` if the task has none at all."""
    told = {functional: knowledge for functional, knowledge in enumerate(task.knowledge) if knowledge is not None}
    return told or otherwise


def choose_looks(knowledge: Knowledge, *, shift: float, share: float) -> int:
    """Return 1 or 2: the number of looks with fewer expected false positives, at the epsilon that two looks cost.

    Parameters:
        shift: `u` of the last look, integer units, > 0.
        share: beta, below one half.
    """
    rate = -math.log(share) / shift
    first_rate = _choose_first_rate(knowledge, rate=rate, share=share)
    once = expect_false_positives_of_one_look(knowledge, rate=rate, share=share)
    twice = expect_false_positives_of_two_looks(knowledge, first_rate=first_rate, rate=rate, share=share)
    return 2 if twice < once else 1


def expect_false_positives_of_one_look(knowledge: Knowledge, *, rate: float, share: float) -> float:
    """Return the expected number of false positives after one look, by equation 4. All failing keys count as near."""
    shift = -math.log(2.0 * share) / rate
    return (knowledge.far_keys + knowledge.near_keys) * _compute_upper_tail(knowledge.near_distance - shift, rate)


def expect_false_positives_of_two_looks(knowledge: Knowledge, *, first_rate: float, rate: float, share: float) -> float:
    """Return the expected number of false positives after two looks, by equations 5 and 6.

    At the second look all of them are taken to be near.
    """
    first_shift, shift = -math.log(share) / first_rate, -math.log(share) / rate
    survivors = knowledge.far_keys * _compute_upper_tail(knowledge.far_distance - first_shift, first_rate)
    return (survivors + knowledge.near_keys) * _compute_upper_tail(knowledge.near_distance - shift, rate)


def _compute_upper_tail(bound: float, rate: float) -> float:
    """Return `P(noise > bound)` of the papers' continuous Laplace law."""
    tail = 0.5 * math.exp(-rate * abs(bound))
    return tail if bound >= 0.0 else 1.0 - tail


def _choose_first_rate(knowledge: Knowledge | None, *, rate: float, share: float) -> float:
    """Return the rate of the first look. Its shift reaches down to the near keys, the most that equation 5 allows."""
    if knowledge is None:
        return rate * float(_UNINFORMED)
    return min(-math.log(share) / knowledge.near_distance, rate * float(_GREATEST_SHARE_OF_LAST))


def _calibrate_looks(
    mechanism: str, task: DecisionTask, *, looks: Callable[[int], int], knowledge: Mapping[int, Knowledge]
) -> Calibration:
    def calibrate(functional: int, tolerance: int, share: float) -> FunctionalTest:
        sensitivity = task.sensitivities[functional]
        if looks(functional) == 1:
            return calibrate_tslm_test(sensitivity=sensitivity, tolerance=tolerance, share=share, functional=functional)
        return calibrate_two_looks(
            sensitivity=sensitivity,
            tolerance=tolerance,
            share=share,
            knowledge=knowledge.get(functional),
            functional=functional,
        )

    return meet_contract_in_looks(mechanism, task, parts=looks, calibrate=calibrate)


def calibrate_two_looks(
    *, sensitivity: int, tolerance: int, share: float, knowledge: Knowledge | None, functional: int
) -> FunctionalTest:
    """Calibrate the test of algorithm 2 with `m = 2` and `u = tolerance / 2`. Each look has half of the share.

    Raises:
        Unachievable: the last level lies outside the sampler's range.
    """
    last = max(round_rate_up(-2.0 * math.log(share) / tolerance * (1.0 + 2.0**-30)), 2 * LEAST_RATE)
    if last > GREATEST_RATE:
        raise Unachievable("error rates this small need a wider tolerance", functional=functional)
    first = round_rate_up(_choose_first_rate(knowledge, rate=float(last), share=share))
    first = max(LEAST_RATE, min(first, last * _GREATEST_SHARE_OF_LAST))
    return FunctionalTest(
        epsilon=round_up_to_float(last * sensitivity),
        rate=last,
        shift=-(-tolerance // 2),
        tie=Fraction(0),
        fnr=share,
        fpr=share,
        tolerance=tolerance,
        looks=(replace(make_published_look(first, share=share / 2), accepting=NEVER),),
    )


def _decide_by_plan(calibration: Calibration, aggregates: Integers, noise: Noise) -> Outcome:
    def rule(functional: int) -> PlannedLooks:
        test = calibration.tests[functional]
        return PlannedLooks((*test.looks, make_last_look(test)))

    return decide_look_by_look(calibration, aggregates, rule=rule, noise=noise)
