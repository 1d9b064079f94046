"""Running entrants many times and summing up what was measured, reproducibly from one seed, in two processes."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np

from benchmarks.experiments.entrants import Entrant
from mechanisms.audit.realised_rates import count_realised_rates
from mechanisms.formula import Formula, Integers, list_literals
from mechanisms.protocol import Outcome, Unachievable
from mechanisms.published.min_entropy import bracket_min_entropy
from tests.seeded_noise import SeededNoise

PROCESSES = 2
METRICS = ("epsilon_max", "epsilon_mean", "gamma", "fnr", "fpr", "fpr_contract", "missed", "false_positives")


@dataclass(frozen=True, slots=True)
class Case:
    """One point of one panel of one experiment: several entrants on the same aggregates.

    `x` is the place on the panel's axis; `with_or` whether the question has an OR.
    """

    experiment: str
    panel: str
    x: float
    aggregates: Integers
    entrants: tuple[Entrant, ...]
    with_or: bool = False


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, median and quartiles over runs; NaN where no run counts."""

    mean: float
    median: float
    low: float
    high: float

    @staticmethod
    def from_values(values: Sequence[float]) -> "Spread":
        if not values:
            return Spread(*[float("nan")] * 4)
        low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
        return Spread(mean=float(np.mean(values)), median=float(median), low=float(low), high=float(high))


@dataclass(frozen=True, slots=True)
class Measured:
    """One entrant's runs on one case.

    `denied` is the share of runs that were denied: their loss counts, their accuracy does not. `refused` says why no
    run was made. `positives` keys are true, `beyond` false beyond the tolerance. `worst_case` is the loss reserved.
    `spreads` by name of `METRICS`: the loss of the key that lost most, the mean loss of a key, the min-entropy left as
    a part of `ln keys` (1: nothing learnt), the missed share of true keys, the returned share of all false keys and of
    those false beyond the tolerance, and the counts of both.
    """

    experiment: str
    panel: str
    x: float
    label: str
    mechanism: str
    with_or: bool
    tolerances: tuple[int, ...]
    fnr_asked: float
    fpr_asked: float
    runs: int
    keys: int
    positives: int
    beyond: int
    worst_case: float
    denied: float
    refused: str
    spreads: dict[str, Spread]


def measure(cases: Sequence[Case], *, runs: int, seed: int, done: Callable[[], None] = lambda: None) -> list[Measured]:
    """Every entrant of every case, in order; `done` is called after each. The result depends on the seed alone."""
    jobs = [(case, entrant) for case in cases for entrant in case.entrants]
    found: dict[int, Measured] = {}
    with ProcessPoolExecutor(max_workers=PROCESSES) as pool:
        futures = {
            pool.submit(run_entrant, case, entrant, runs=runs, seed=seed): place
            for place, (case, entrant) in enumerate(jobs)
        }
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            done()
    return [found[place] for place in range(len(jobs))]


def run_entrant(case: Case, entrant: Entrant, *, runs: int, seed: int) -> Measured:
    """All runs of one entrant, each on noise seeded by where it stands."""
    try:
        mechanism, calibration = entrant.prepare()
    except Unachievable as refusal:
        return sum_runs(case, entrant, runs=0, worst_case=float("nan"), outcomes=[], refused=refusal.reason)
    place = f"{seed}/{case.experiment}/{case.panel}/{case.x}/{entrant.label}"
    outcomes = [
        mechanism.decide(calibration, case.aggregates, noise=SeededNoise(_seed(place, run))) for run in range(runs)
    ]
    worst_case = calibration.worst_case_epsilon
    return sum_runs(case, entrant, runs=runs, worst_case=worst_case, outcomes=outcomes, refused="")


def compute_measures(formula: Formula, aggregates: Integers, outcome: Outcome) -> dict[str, float]:
    """The metrics of one run; accuracy only where an answer was given."""
    found = {
        "epsilon_max": float(outcome.epsilon.max()),
        "epsilon_mean": float(outcome.epsilon.mean()),
        "gamma": bracket_min_entropy(outcome.epsilon.tolist()).lower / float(np.log(outcome.epsilon.size)),
    }
    if not outcome.denied:
        rates = count_realised_rates(formula, aggregates, outcome.passed)
        found |= {
            "fnr": rates.fnr,
            "fpr": rates.fpr,
            "fpr_contract": rates.fpr_beyond_tolerance,
            "missed": float(rates.missed_positives),
            "false_positives": float(rates.wrong_negatives),
        }
    return found


def sum_runs(
    case: Case, entrant: Entrant, *, runs: int, worst_case: float, outcomes: Sequence[Outcome], refused: str
) -> Measured:
    """Sum up an entrant's outcomes on a case."""
    each = [compute_measures(entrant.task.formula, case.aggregates, outcome) for outcome in outcomes]
    truth = count_realised_rates(
        entrant.task.formula, case.aggregates, np.zeros(case.aggregates.shape[1], dtype=np.bool_)
    )
    return Measured(
        experiment=case.experiment,
        panel=case.panel,
        x=case.x,
        label=entrant.label,
        mechanism=entrant.mechanism,
        with_or=case.with_or,
        tolerances=tuple(cut.tolerance for cut in list_literals(entrant.task.formula)),
        fnr_asked=entrant.task.fnr,
        fpr_asked=entrant.task.fpr,
        runs=runs,
        keys=case.aggregates.shape[1],
        positives=truth.positives,
        beyond=truth.relaxed_negatives,
        worst_case=worst_case,
        denied=sum(outcome.denied for outcome in outcomes) / max(runs, 1),
        refused=refused,
        spreads={name: Spread.from_values([run[name] for run in each if name in run]) for name in METRICS},
    )


def _seed(place: str, run: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{place}/{run}".encode()).digest()[:8], "big")
