"""The contract on the data that make it hardest: every key one unit above every threshold, or short of it by the band.

In the first case every key qualifies, in the second none does even with the tolerance; so the share of keys missed, or
returned, is what the contract bounds by beta and alpha.
"""

from collections.abc import Sequence

import numpy as np

from benchmarks.experiments.confidence import Rate, compute_missed, compute_wrong
from benchmarks.experiments.entrants import ALL_PROBE, make_entrants
from benchmarks.experiments.questions import COMBINED, make_task
from benchmarks.experiments.runs import Case, Measured
from mechanisms.formula import Cut

WORST_CASE = "worst-case"
ABOVE, BELOW = "all keys at c + 1", "all keys at c - tolerance"
KEYS = 500
THRESHOLD, TOLERANCE = 100, 10
NUMBERS = (1, 3, 6)


def make_cases(*, seed: int) -> Sequence[Case]:
    """Conjunction, disjunction and mixed questions on both kinds of data."""
    del seed
    return [
        _make_case(place, value, name, n)
        for place, value in ((ABOVE, THRESHOLD + 1), (BELOW, THRESHOLD - TOLERANCE))
        for name in COMBINED
        for n in NUMBERS
        if n > 1 or name == "conjunction"
    ]


def bound_rate(m: Measured) -> Rate:
    """The error that the data provoke."""
    return compute_missed(m) if m.panel.startswith(ABOVE) else compute_wrong(m)


def _make_case(place: str, value: int, name: str, n: int) -> Case:
    formula = COMBINED[name]([Cut(f, THRESHOLD, above=True, tolerance=TOLERANCE) for f in range(n)])
    return Case(
        experiment=WORST_CASE,
        panel=f"{place}, {name}",
        x=n,
        aggregates=np.full((n, KEYS), value, dtype=np.int64),
        entrants=make_entrants(ALL_PROBE, make_task(formula, (1,) * n)),
    )
