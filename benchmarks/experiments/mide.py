"""MIDE section 5.5: four questions with one threshold per key, thresholds high, medium and low, and the shift u.

Q1, Q2: occupancy of 24 buildings x 15 hours against their capacity, on a Wednesday and a Saturday. Q3, Q4: pick-ups of
34 zones x 14 and 16 days against the zone's busiest day of September and October. Every key has a threshold of its
own, public beforehand, so the aggregate is the count less its threshold and the cut is zero.
"""

from collections.abc import Sequence

from benchmarks.experiments import occupancy, taxi
from benchmarks.experiments.entrants import ALL_MIDE, make_entrants
from benchmarks.experiments.questions import make_task
from benchmarks.experiments.runs import Case
from mechanisms.formula import Cut, Integers

FNR = FPR = 0.05
SHIFT = 1
SHARES = (1.0, 0.8, 0.6)
SHIFTS = (1, 10, 20, 40, 80, 120, 160, 200)
QUESTIONS = ("Q1", "Q2", "Q3", "Q4")

THRESHOLDS, SHIFTED = "mide-5.6-5.7", "mide-5.8"


def count_less_share(question: str, *, share: float, seed: int) -> Integers:
    """Counts less `share` of the key's public limit, shape (1, keys)."""
    match question:
        case "Q1":
            return occupancy.count_buildings_by_hour(seed=seed, day=occupancy.WEDNESDAY, share=share)
        case "Q2":
            return occupancy.count_buildings_by_hour(seed=seed, day=occupancy.SATURDAY, share=share)
        case "Q3":
            return taxi.count_pickups(taxi.AUTUMN, seed=seed, share=share)
        case _:
            return taxi.count_pickups(taxi.WINTER, seed=seed, share=share)


def make_threshold_cases(*, seed: int) -> Sequence[Case]:
    """Figures 5.6 and 5.7: u = 1."""
    return [
        _make_case(
            THRESHOLDS, question, x=share, values=count_less_share(question, share=share, seed=seed), shift=SHIFT
        )
        for question in QUESTIONS
        for share in SHARES
    ]


def make_shifted_cases(*, seed: int) -> Sequence[Case]:
    """Figure 5.8: Q3 with the low threshold over u."""
    values = count_less_share("Q3", share=SHARES[-1], seed=seed)
    return [_make_case(SHIFTED, "Q3, low threshold", x=shift, values=values, shift=shift) for shift in SHIFTS]


def _make_case(experiment: str, panel: str, *, x: float, values: Integers, shift: int) -> Case:
    task = make_task(Cut(0, 0, above=True, tolerance=2 * shift), (1,), fnr=FNR, fpr=FPR)
    return Case(experiment=experiment, panel=panel, x=x, aggregates=values, entrants=make_entrants(ALL_MIDE, task))
