"""The mechanism `arc`: one look for each literal, which compares a random word with an entry of its table.

Proof: docs/proofs/arc.md.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

import numpy as np

from mechanisms.arc.literal_tests import JointLoss, Literals, LookChoice, compute_joint_loss
from mechanisms.arc.look_table import decide_by_words, find_distances
from mechanisms.formula import Booleans, Cut, Integers, evaluate_formula
from mechanisms.keyhole.contract import OneShotKind, make_idle_test, meet_contract
from mechanisms.keyhole.key_parts import decide_in_parts
from mechanisms.protocol import (
    Calibration,
    DecisionTask,
    FunctionalTest,
    KeyLoss,
    LookTable,
    Noise,
    Outcome,
    Unachievable,
)
from mechanisms.threshold.one_shot import round_up_to_float
from mechanisms.threshold.renyi import ORDERS

DEFAULT_MULTIPLE = 1.5
"""The steepest slope of a look, as a multiple of the slope of Laplace noise.

Steeper feet make the curve smaller and the pure loss larger. With rates of .05 and .1, 1.25 leaves a tenth fewer
questions, and 1.75 two per cent more."""

_INSTEAD = "progressive"
_DIGITS = 40  # of decimals, whose last one is rounded up: far more than a charge has


class Arc:
    """Arc looks, for units in many groups whose balance has a delta.

    Guarantee: `P(not returned | formula true) <= fnr`, `P(returned | relaxed formula false) <= fpr`, per key, for any
    data, and likewise for the value of each predicate. The loss of a key is at most `worst_case_epsilon`, and its
    Rényi divergences are at most `divergences`.
    """

    name = "arc"
    summary = "tests of least Rényi divergence, for units in many groups (one loss, known beforehand)"

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate one look for each literal. Raise `Unachievable` if none exists."""
        return calibrate_with_slope(task, multiple=DEFAULT_MULTIPLE)

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every key by one random word for each literal. Every key loses the worst case."""
        keys = aggregates.shape[1]
        passed = np.zeros(keys, dtype=np.bool_)
        predicates = tuple(np.zeros(keys, dtype=np.bool_) for _ in calibration.task.predicates)

        def decide(part: slice) -> tuple[Booleans, ...]:
            return _decide_part(calibration, aggregates[:, part], noise=noise)

        for part, (returned, *others) in decide_in_parts(decide, keys, noise=noise):
            passed[part] = returned
            for whole, own in zip(predicates, others, strict=True):
                whole[part] = returned & own
        return Outcome(passed=passed, epsilon=np.full(keys, calibration.worst_case_epsilon), predicates=predicates)


def calibrate_with_slope(task: DecisionTask, *, multiple: float) -> Calibration:
    """Calibrate one look for each literal, with feet of a multiple of the slope of Laplace noise.

    Guarantee: that of `Arc`.

    Parameters:
        multiple: above 1; from 1.25 to 2 for the most questions.

    Raises:
        Unachievable: no finite loss meets the contract, or another mechanism is needed for the question.
    """
    return calibrate_looks(task, name=Arc.name, looks=LookChoice(multiple))


def calibrate_looks(task: DecisionTask, *, name: str, looks: LookChoice) -> Calibration:
    """Calibrate the looks at each literal. All literals have the same number of looks.

    Guarantee: the chance that the verdict of a literal is wrong, at whatever look, is within its shares. `after_looks`
    bounds the loss of a key by the looks that it has had.

    Raises:
        Unachievable: as `calibrate_with_slope`, and if an early look would leave nothing undecided.
    """
    _refuse_other_questions(task)
    apart = Literals.from_task(task)

    def calibrate(place: int, fnr: float, fpr: float) -> FunctionalTest:
        try:
            return apart.calibrate(place, fnr, fpr, looks=looks)
        except Unachievable as refusal:
            raise Unachievable(
                refusal.reason, functional=apart.literals[place].functional, instead=_INSTEAD
            ) from refusal

    kind = OneShotKind(
        loss=apart.make_loss_curve(multiple=looks.multiple), calibrate=calibrate, is_tied=False, decides_several=True
    )
    found = meet_contract(name, apart.task, kind)
    after = _sum_looks(
        [compute_joint_loss(apart, tables) for tables in zip(*map(_list_tables, found.tests), strict=True)]
    )
    return replace(
        found,
        task=task,
        tests=_list_tests_by_functional(task, apart, found.tests),
        worst_case_epsilon=after[-1].epsilon,
        occurrences=tuple(found.tests[apart.find_place(cut)] for cut in task.list_literals()),
        divergences=after[-1].divergences,
        after_looks=after if looks.early else (),
    )


def _list_tables(test: FunctionalTest) -> tuple[LookTable, ...]:
    assert test.table is not None
    return (*test.early_tables, test.table)


def _sum_looks(losses: Sequence[JointLoss]) -> tuple[KeyLoss, ...]:
    """Return the loss of a key after each look: sums from the first look on, rounded up. Without literals it is 0."""
    pure, sums = Fraction(0), (Decimal(0),) * len(ORDERS)
    after = [] if losses else [KeyLoss(0.0, sums)]
    with localcontext(prec=_DIGITS, rounding=ROUND_CEILING):
        for one in losses:
            pure += one.pure
            sums = tuple(known + more for known, more in zip(sums, one.divergences, strict=True))
            after.append(KeyLoss(round_up_to_float(pure), sums))
    return tuple(after)


def _refuse_other_questions(task: DecisionTask) -> None:
    """Raise `Unachievable` for questions on common sums, and for predicates that need ordered answers."""
    if task.common is not None:
        raise Unachievable("arc looks add no noise to sums that conditions could share", instead=_INSTEAD)
    thresholds = Counter(functional for functional, _ in {(cut.functional, cut.cut) for cut in task.list_literals()})
    if task.predicates and max(thresholds.values(), default=0) > 1:
        raise Unachievable(
            "arc looks decide each threshold by itself, so predicates on several thresholds of one aggregate could "
            "contradict each other",
            instead=_INSTEAD,
        )


def _decide_part(calibration: Calibration, aggregates: Integers, *, noise: Noise) -> tuple[Booleans, ...]:
    """Return the values of all formulas for some keys."""
    keys = aggregates.shape[1]
    answers: dict[tuple[int, int, bool], Booleans] = {}
    for cut, test in zip(calibration.task.list_literals(), calibration.occurrences, strict=True):
        if (cut.functional, cut.cut, cut.above) not in answers:
            assert test.table is not None
            distances = find_distances(test.table, aggregates[cut.functional], cut=cut.cut, above=cut.above)
            accepted, _ = decide_by_words(test.table, distances, noise.draw_words(size=keys))
            answers[cut.functional, cut.cut, cut.above] = accepted

    def find_answer(cut: Cut) -> Booleans:
        return answers[cut.functional, cut.cut, cut.above]

    return tuple(evaluate_formula(formula, find_answer, keys=keys) for formula in calibration.task.formulas)


def _list_tests_by_functional(
    task: DecisionTask, apart: Literals, tests: tuple[FunctionalTest, ...]
) -> tuple[FunctionalTest, ...]:
    """Return for each functional the test of its most expensive literal, with the epsilon of all of them together."""
    shown = [make_idle_test(task)] * len(task.sensitivities)
    totals = dict.fromkeys(range(len(task.sensitivities)), Fraction(0))
    for cut, test in zip(apart.literals, tests, strict=True):
        totals[cut.functional] += Fraction(test.epsilon)
        if test.rate > shown[cut.functional].rate:
            shown[cut.functional] = test
    return tuple(replace(test, epsilon=round_up_to_float(totals[functional])) for functional, test in enumerate(shown))
