"""The mechanism `arc_looks`: two early looks and a last one at each literal. Looks that do not run cost nothing.

References: docs/proofs/arc.md.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from mechanisms.arc.literal_tests import LookChoice
from mechanisms.arc.look_table import decide_by_words, find_distances
from mechanisms.arc.one_look import DEFAULT_MULTIPLE, calibrate_looks
from mechanisms.formula import Booleans, Cut, Integers
from mechanisms.keyhole.key_parts import decide_in_parts
from mechanisms.protocol import Calibration, DecisionTask, Epsilons, LookTable, Noise, Outcome
from mechanisms.three_valued import Verdicts, settle_formula

EARLY = (0.1, 0.3)
"""The speeds of the early looks, as parts of the last look's speed.

In the worst case the three looks together cost a fifth more than one alone."""


class ArcLooks:
    """Arc looks, of which most keys need the first one or two alone.

    Guarantee: `P(not returned | formula true) <= fnr`, `P(returned | relaxed formula false) <= fpr`, per key, for any
    data, and likewise for the value of each predicate. The loss of a key is at most that after the looks that it has
    had (`Calibration.after_looks`).
    """

    name = "arc_looks"
    summary = "arc, with early looks: keys far from the threshold cost less"

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate three looks for each literal. Raise `Unachievable` if none exist."""
        return calibrate_looks(task, name=self.name, looks=LookChoice(DEFAULT_MULTIPLE, EARLY))

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every key by as many looks as it needs. Each has random words of its own."""
        keys = aggregates.shape[1]
        passed = np.zeros(keys, dtype=np.bool_)
        predicates = tuple(np.zeros(keys, dtype=np.bool_) for _ in calibration.task.predicates)
        epsilon = np.zeros(keys)
        losses = np.array([0.0, *(loss.epsilon for loss in calibration.after_looks)])

        def decide(part: slice) -> tuple[Epsilons, tuple[Booleans, ...]]:
            taken, values = _decide_part(calibration, aggregates[:, part], noise=noise)
            return losses[taken], values

        for part, (lost, (returned, *others)) in decide_in_parts(decide, keys, noise=noise):
            passed[part], epsilon[part] = returned, lost
            for whole, own in zip(predicates, others, strict=True):
                whole[part] = returned & own
        return Outcome(passed=passed, epsilon=epsilon, predicates=predicates)


def _decide_part(
    calibration: Calibration, aggregates: Integers, *, noise: Noise
) -> tuple[npt.NDArray[np.int64], tuple[Booleans, ...]]:
    """Return for some keys the number of looks taken, and the values of all formulas.

    A literal is looked at again in a key that is open and in which no look has decided it. A key is open until its
    formula is settled, and until all predicates are if it is returned.
    """
    keys, task = aggregates.shape[1], calibration.task
    tests = {_identify(cut): test for cut, test in zip(task.list_literals(), calibration.occurrences, strict=True)}
    known = {literal: np.zeros(keys, dtype=np.int8) for literal in tests}
    verdicts: Mapping[Cut, Verdicts] = {cut: known[_identify(cut)] for cut in task.list_literals()}
    taken = np.zeros(keys, dtype=np.int64)
    for look in range(len(calibration.after_looks)):
        settled = [settle_formula(formula, verdicts, keys=keys) for formula in task.formulas]
        is_open = settled[0] == 0
        for predicate in settled[1:]:
            is_open |= (settled[0] == 1) & (predicate == 0)
        taken += is_open
        for (functional, cut, above), test in tests.items():
            own = known[functional, cut, above]
            chosen = np.flatnonzero(is_open & (own == 0))
            table = (*test.early_tables, test.table)[look]
            assert table is not None
            distances = find_distances(table, aggregates[functional, chosen], cut=cut, above=above)
            own[chosen] = _look(table, distances, noise=noise)
    returned, *others = (settle_formula(formula, verdicts, keys=keys) == 1 for formula in task.formulas)
    return taken, (returned, *others)


def _look(table: LookTable, distances: Integers, *, noise: Noise) -> Verdicts:
    """Return the verdict of one look on each distance."""
    accepted, rejected = decide_by_words(table, distances, noise.draw_words(size=distances.size))
    return accepted.astype(np.int8) - rejected.astype(np.int8)


def _identify(cut: Cut) -> tuple[int, int, bool]:
    return cut.functional, cut.cut, cut.above
