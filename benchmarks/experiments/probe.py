"""ProBE section 6 and appendix F: 1 to 6 sub-queries, the shift, trees, beta and alpha, averages, the phase split."""

from collections.abc import Callable, Sequence
from fractions import Fraction

from benchmarks.experiments import occupancy, retail, taxi
from benchmarks.experiments.entrants import ALL_PROBE, PROBE, Entrant, make_entrants
from benchmarks.experiments.measures import Measures
from benchmarks.experiments.questions import (
    COMBINED,
    FNR,
    FPR,
    MOST_SUB_QUERIES,
    NAIVE_SHIFT,
    Setting,
    has_or,
    join_all,
    join_any,
    join_distributed,
    join_grouped,
    make_literals,
    make_task,
)
from benchmarks.experiments.runs import Case
from mechanisms.formula import Cut, Formula

SUB_QUERIES, SHIFTS, TREES = "probe-6-9", "probe-7-u", "probe-7-trees"
BETAS, ALPHAS, AVERAGES, PHASES = "probe-8-beta", "probe-8-alpha", "probe-10", "probe-table-3"

SHIFT_SHARES = (0.02, 0.05, 0.10, 0.12, 0.20, 0.30)
RATES = (0.01, 0.025, 0.05, 0.075, 0.10, 0.15)
SPLITS = tuple(Fraction(tenths, 10) for tenths in (1, 3, 5, 7, 9))
SPLIT_BETAS = (0.05, 0.005)

Combine = Callable[[Sequence[Cut]], Formula]


def make_sub_query_cases(*, seed: int) -> Sequence[Case]:
    """Figures 6 and 9."""
    found = []
    for setting in Setting:
        for measures in (
            retail.count_countries_by_day(),
            taxi.count_zones_by_day(seed=seed),
            occupancy.count_rooms_by_day(seed=seed),
        ):
            for name, combine in COMBINED.items():
                panel = f"{setting.value}: {measures.name}, {name}"
                first = 1 if name == "conjunction" else 2
                found += [
                    _make_case(SUB_QUERIES, panel, x=n, measures=measures, setting=setting, combine=combine, first=n)
                    for n in range(first, MOST_SUB_QUERIES + 1)
                ]
    return found


def make_shift_cases(*, seed: int) -> Sequence[Case]:
    """Figure 7 (a, b): three sales indicators in conjunction over u, the same u for every entrant."""
    del seed
    measures = retail.count_countries_by_day()
    found = []
    for share in SHIFT_SHARES:
        task = make_task(join_all(make_literals(measures, Setting.TRUE_RANGE, shift=share)[:3]), (1, 1, 1))
        found.append(
            Case(
                experiment=SHIFTS,
                panel="online retail, conjunction of 3",
                x=100.0 * share,
                aggregates=measures.aggregates[:3],
                entrants=make_entrants(ALL_PROBE, task),
            )
        )
    return found


def make_tree_cases(*, seed: int) -> Sequence[Case]:
    """Figure 7 (c, d): `1 or (2 and 3)` and `(1 or 2) and (1 or 3)` on sales."""
    del seed
    measures = retail.count_countries_by_day()
    return [
        _make_case(TREES, setting.value, x=x, measures=measures, setting=setting, combine=tree, first=3)
        for setting in Setting
        for x, tree in enumerate((join_grouped, join_distributed))
    ]


def make_beta_cases(*, seed: int) -> Sequence[Case]:
    """Figure 8 (a, b): a disjunction of three on taxi trips over beta."""
    return _make_or_cases(BETAS, seed=seed, rates=[(beta, beta, FPR) for beta in RATES])


def make_alpha_cases(*, seed: int) -> Sequence[Case]:
    """Figure 8 (c, d): the same over alpha."""
    return _make_or_cases(ALPHAS, seed=seed, rates=[(alpha, FNR, alpha) for alpha in RATES])


def make_average_cases(*, seed: int) -> Sequence[Case]:
    """Figure 10: averages in conjunction."""
    del seed
    measures = retail.compute_averages()
    return [
        _make_case(AVERAGES, setting.value, x=n, measures=measures, setting=setting, combine=join_all, first=n)
        for setting in Setting
        for n in range(1, MOST_SUB_QUERIES + 1)
    ]


def make_phase_cases(*, seed: int) -> Sequence[Case]:
    """Table 3: `1 or 2` on taxi trips, beta cut into the two phases in five ways."""
    measures = taxi.count_zones_by_day(seed=seed)
    found = []
    for setting in Setting:
        for beta in SPLIT_BETAS:
            task = make_task(join_any(make_literals(measures, setting)[:2]), (1, 1), fnr=beta)
            split = [
                Entrant(
                    label=f"{int(100 * part)}/{int(100 * (1 - part))}", mechanism=PROBE, task=task, first_phase=part
                )
                for part in SPLITS
            ]
            found.append(
                Case(
                    experiment=PHASES,
                    panel=setting.value,
                    x=beta,
                    aggregates=measures.aggregates[:2],
                    entrants=tuple(split),
                    with_or=True,
                )
            )
    return found


def _make_or_cases(experiment: str, *, seed: int, rates: Sequence[tuple[float, float, float]]) -> Sequence[Case]:
    measures = taxi.count_zones_by_day(seed=seed)
    return [
        _make_case(
            experiment,
            setting.value,
            x=x,
            measures=measures,
            setting=setting,
            combine=join_any,
            first=3,
            fnr=fnr,
            fpr=fpr,
        )
        for setting in Setting
        for x, fnr, fpr in rates
    ]


def _make_case(
    experiment: str,
    panel: str,
    *,
    x: float,
    measures: Measures,
    setting: Setting,
    combine: Combine,
    first: int,
    fnr: float = FNR,
    fpr: float = FPR,
) -> Case:
    """All entrants on the first functionals; where u is a part of the range, the naive one takes its published 12 %."""
    formula = combine(make_literals(measures, setting)[:first])
    task = make_task(formula, measures.sensitivities[:first], fnr=fnr, fpr=fpr)
    taking_part = make_entrants(ALL_PROBE, task)
    if setting is not Setting.TENTH:
        narrow = combine(make_literals(measures, setting, shift=NAIVE_SHIFT)[:first])
        naive = Entrant(
            label="naive (u = 12 %)",
            mechanism="naive",
            task=make_task(narrow, measures.sensitivities[:first], fnr=fnr, fpr=fpr),
        )
        taking_part = (naive, *(entrant for entrant in taking_part if entrant.mechanism != "naive"))
    return Case(
        experiment=experiment,
        panel=panel,
        x=x,
        aggregates=measures.aggregates[:first],
        entrants=taking_part,
        with_or=has_or(formula),
    )
