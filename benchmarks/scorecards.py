"""What several predicates over shared aggregates cost in one question, beside each of them asked by itself.

`python -m benchmarks.scorecards` prints three tables: ordered thresholds (bands) on one aggregate, six predicates over
three, and what groups cost that HAVING leaves out. The first two follow from thresholds and tolerances alone; the third
is a mean over 3,000 groups, 70 % of them empty, on noise of their own in each run.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mechanisms.formula import TRUE, AllOf, AnyOf, Cut, Formula, Integers
from mechanisms.noise.exact import make_system_noise
from mechanisms.protocol import DecisionTask, Mechanism
from mechanisms.registry import DEFAULT, MECHANISMS
from mechanisms.threshold.joint_loss import expose_all_functionals

SENSITIVITIES = (1, 20, 1)  # orders, amounts of at most 20, customers
ORDERS, AMOUNT, CUSTOMERS = range(3)
BANDS = ((500, 1000, 2000), (100, 200), (100, 200, 400, 800, 1600), tuple(range(100, 1100, 100)))
KEYS = 3000


def make_cut(functional: int, threshold: int) -> Cut:
    """A threshold with a tolerance of a tenth."""
    return Cut(functional=functional, cut=threshold, above=True, tolerance=threshold // 10)


SCORECARDS: dict[str, tuple[Formula, ...]] = {
    "two bands of each aggregate": (
        *(make_cut(ORDERS, threshold) for threshold in (500, 1000)),
        *(make_cut(AMOUNT, threshold) for threshold in (10_000, 20_000)),
        *(make_cut(CUSTOMERS, threshold) for threshold in (100, 200)),
    ),
    "bands and pairs joined by AND": (
        make_cut(ORDERS, 500),
        make_cut(AMOUNT, 10_000),
        make_cut(CUSTOMERS, 200),
        AllOf((make_cut(ORDERS, 500), make_cut(AMOUNT, 10_000))),
        AllOf((make_cut(ORDERS, 500), make_cut(CUSTOMERS, 200))),
        AllOf((make_cut(AMOUNT, 20_000), make_cut(CUSTOMERS, 200))),
    ),
    "bands and pairs joined by OR": (
        make_cut(ORDERS, 500),
        make_cut(AMOUNT, 10_000),
        make_cut(CUSTOMERS, 200),
        AnyOf((make_cut(ORDERS, 500), make_cut(AMOUNT, 10_000))),
        AnyOf((make_cut(ORDERS, 500), make_cut(CUSTOMERS, 200))),
        AnyOf((make_cut(AMOUNT, 20_000), make_cut(CUSTOMERS, 200))),
    ),
    "bands and pairs of both kinds": (
        make_cut(ORDERS, 1000),
        make_cut(AMOUNT, 20_000),
        AllOf((make_cut(ORDERS, 500), make_cut(AMOUNT, 20_000))),
        AnyOf((make_cut(CUSTOMERS, 100), make_cut(AMOUNT, 40_000))),
        AllOf((make_cut(ORDERS, 1000), make_cut(CUSTOMERS, 100))),
        AnyOf((make_cut(ORDERS, 2000), make_cut(CUSTOMERS, 200))),
    ),
}
HAVING: dict[str, Formula] = {
    "count(*) > 1000": make_cut(ORDERS, 1000),
    "count(DISTINCT customer_id) > 200": make_cut(CUSTOMERS, 200),
    "count(*) > 1000 AND sum(amount) > 20000": AllOf((make_cut(ORDERS, 1000), make_cut(AMOUNT, 20_000))),
}


def ask(*predicates: Formula, having: Formula = TRUE, keys: int = 1) -> DecisionTask:
    """One question with these predicates, at the usual rates."""
    return DecisionTask(
        formula=having,
        predicates=predicates,
        sensitivities=SENSITIVITIES,
        exposures=expose_all_functionals(len(SENSITIVITIES)),
        fnr=0.05,
        fpr=0.1,
        keys=keys,
    )


def price_worst_case(mechanism: Mechanism, predicates: tuple[Formula, ...]) -> tuple[float, tuple[float, ...]]:
    """The worst case of all predicates in one question, and of each asked by itself."""
    apart = (replace(ask(), formula=predicate) for predicate in predicates)
    each = tuple(mechanism.calibrate(task).worst_case_epsilon for task in apart)
    return mechanism.calibrate(ask(*predicates)).worst_case_epsilon, each


def price_mean(having: Formula, predicates: tuple[Formula, ...], orders: Integers) -> tuple[float, float, float]:
    """The mean loss of a group, with HAVING and without, and which part of the groups is returned."""
    aggregates = np.array([orders, 25 * orders, orders // 8])
    mechanism = MECHANISMS[DEFAULT]
    means = []
    for asked in (ask(*predicates, having=having, keys=KEYS), ask(*predicates, having, keys=KEYS)):
        outcome = mechanism.decide(mechanism.calibrate(asked), aggregates, noise=make_system_noise())
        means.append((float(outcome.epsilon.mean()), float(outcome.passed.mean())))
    return means[0][0], means[1][0], means[0][1]


def draw_orders() -> Integers:
    """Numbers of orders: most groups have none, some very many."""
    generator = np.random.default_rng(1)
    drawn = generator.lognormal(6.5, 1.5, KEYS).astype(np.int64)
    return np.where(generator.random(KEYS) < 0.7, 0, drawn).astype(np.int64)


def measure_bands() -> Iterator[tuple[str, tuple[int, ...], float, float, float]]:
    """Mechanism, thresholds on the number of orders, loss of all, of the sharpest, sum of all by themselves."""
    for name in (DEFAULT, "keyhole"):
        for thresholds in BANDS:
            together, each = price_worst_case(
                MECHANISMS[name], tuple(make_cut(ORDERS, threshold) for threshold in thresholds)
            )
            yield name, thresholds, together, max(each), sum(each)


def measure_scorecards() -> Iterator[tuple[str, str, float, float]]:
    """Mechanism, kind of scorecard, loss of all six predicates, sum of the six by themselves."""
    for name in (DEFAULT, "keyhole"):
        for kind, predicates in SCORECARDS.items():
            together, each = price_worst_case(MECHANISMS[name], predicates)
            yield name, kind, together, sum(each)


def main() -> None:
    """Print the tables."""
    print(f"{'mechanism':13}{'thresholds':34}{'together':>10}{'sharpest':>10}{'factor':>8}{'apart':>8}")
    for name, thresholds, together, sharpest, apart in measure_bands():
        told = ", ".join(map(str, thresholds)) if len(thresholds) < 6 else f"{len(thresholds)} from {thresholds[0]} on"
        print(f"{name:13}{told:34}{together:10.4f}{sharpest:10.4f}{together / sharpest:8.3f}{apart:8.3f}")
    print(f"\n{'mechanism':13}{'six predicates':34}{'together':>10}{'apart':>10}{'factor':>8}")
    for name, kind, together, apart in measure_scorecards():
        print(f"{name:13}{kind:34}{together:10.3f}{apart:10.3f}{together / apart:8.2f}")
    print(f"\n{'HAVING beside the last of these':44}{'returned':>10}{'mean loss':>10}{'without':>10}{'factor':>8}")
    orders = draw_orders()
    for told, having in HAVING.items():
        with_it, without, returned = price_mean(having, SCORECARDS["bands and pairs of both kinds"], orders)
        print(f"{told:44}{returned:10.2f}{with_it:10.4f}{without:10.4f}{with_it / without:8.2f}")


if __name__ == "__main__":
    main()
