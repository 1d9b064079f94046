"""MiM section 4: false positives and false negatives of one and of two looks at equal epsilon.

Table 1 gives, per data set, how many keys lie around a far and around a near mean below the threshold of 100, and how
many pass. Here they are Poisson around those means, the passing ones Poisson around 130 and above 100. (Whether the
printed number of keys counts the passing ones differs between the rows of the table; here they come on top.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.experiments.entrants import OURS, Entrant
from benchmarks.experiments.questions import make_task
from benchmarks.experiments.runs import Case
from mechanisms.formula import Cut, Integers
from mechanisms.protocol import Knowledge
from mechanisms.published.mim import expect_false_positives_of_one_look, expect_false_positives_of_two_looks

FALSE_POSITIVES = "mim-2-3"
THRESHOLD = 100
BETA = 0.05
EPSILONS = (0.05, 0.06, 0.07, 0.08, 0.10, 0.12, 0.15, 0.20)
SAME_TOLERANCE = "mim_progressive (same tolerance)"
_PASSING_MEAN = 130


@dataclass(frozen=True, slots=True)
class Table1:
    """One row of MiM's table 1."""

    name: str
    far_mean: int
    far_keys: int
    near_mean: int
    near_keys: int
    passing: int

    @property
    def knowledge(self) -> Knowledge:
        """What MiM supposes to be public."""
        return Knowledge(
            far_keys=self.far_keys,
            far_distance=THRESHOLD - self.far_mean,
            near_keys=self.near_keys,
            near_distance=THRESHOLD - self.near_mean,
        )

    def draw_aggregates(self, *, seed: int) -> Integers:
        """The keys' values, shape (1, keys)."""
        rng = np.random.default_rng([seed, self.far_keys])
        failing = [rng.poisson(self.far_mean, self.far_keys), rng.poisson(self.near_mean, self.near_keys)]
        passing = np.maximum(rng.poisson(_PASSING_MEAN, self.passing), THRESHOLD + 1)
        values = np.concatenate([np.minimum(np.concatenate(failing), THRESHOLD), passing])
        return values.astype(np.int64).reshape(1, -1)


DATA_SETS = (
    Table1("D1", far_mean=10, far_keys=240, near_mean=25, near_keys=28, passing=2),
    Table1("D2", far_mean=10, far_keys=300, near_mean=40, near_keys=60, passing=4),
    Table1("D3", far_mean=10, far_keys=400, near_mean=40, near_keys=103, passing=3),
)


def make_cases(*, seed: int) -> Sequence[Case]:
    """Figures 2 and 3. At one epsilon two looks need the wider shift: `ln(1 / beta)`, not `ln(1 / 2 beta)`."""
    return [_make_case(row, epsilon, seed=seed) for row in DATA_SETS for epsilon in EPSILONS]


def predict_false_positives(row: Table1, epsilon: float) -> tuple[float, float]:
    """The model's expected false positives of one look and of two, equations 4 and 6 (first level as calibrated)."""
    known = row.knowledge
    first = min(-math.log(BETA) / known.near_distance, epsilon / 2)
    once = expect_false_positives_of_one_look(known, rate=epsilon, share=BETA)
    return once, expect_false_positives_of_two_looks(known, first_rate=first, rate=epsilon, share=BETA)


def _make_case(row: Table1, epsilon: float, *, seed: int) -> Case:
    once, twice = (_find_tolerance(epsilon, parts=parts) for parts in (1, 2))
    return Case(
        experiment=FALSE_POSITIVES,
        panel=row.name,
        x=epsilon,
        aggregates=row.draw_aggregates(seed=seed),
        entrants=(
            _make_entrant("mim_baseline", once),
            _make_entrant("mim_progressive", twice, row.knowledge),
            _make_entrant("mim_progressive", once, row.knowledge, label=SAME_TOLERANCE),
            *(_make_entrant(name, once) for name in OURS),
        ),
    )


def _make_entrant(name: str, tolerance: int, known: Knowledge | None = None, label: str = "") -> Entrant:
    task = make_task(Cut(0, THRESHOLD, above=True, tolerance=tolerance), (1,), fnr=BETA, fpr=BETA)
    return Entrant(label=label or name, mechanism=name, task=replace(task, knowledge=(known,)))


def _find_tolerance(epsilon: float, *, parts: int) -> int:
    """The least `2u` at which the last look costs at most `epsilon`."""
    return math.ceil(2.0 * math.log(parts / (2.0 * BETA)) / epsilon)
