"""How certain an answer is: tests may know the truth, and bound the chance that noise changes any key's decision."""

from datetime import UTC, datetime

import numpy as np

from mechanisms.formula import Booleans, Cut, Formula, Integers, evaluate_formula, list_literals
from mechanisms.keyhole.common_sums import read_functionals
from mechanisms.protocol import FunctionalTest
from mechanisms.ranking.calibration import RankingCalibration
from mechanisms.ranking.overtaking import compute_swap_probability
from mechanisms.ranking.run import Ranking, number_within_partition
from planner.rankings.mean_scores import compute_scores
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.messages import Asked, KeySet, read_bare_question

# Times literals and keys (never more than 1,000 in a question here), below 1e-9.
NEGLIGIBLE = 1e-13


def asked(service: Service, sql: str, **settings: str) -> Asked:
    """A question as the first analyst puts it."""
    return Asked(
        question=read_bare_question(sql, service.catalog),
        settings={f"keyhole.{name}": value for name, value in settings.items()},
        parameters={},
        analyst=service.find_analyst(None),
        today=datetime.now(UTC).date(),
    )


def truth(service: Service, sql: str, **settings: str) -> list[tuple[str | None, ...]]:
    """The keys that pass without noise, with their predicates; insists that another answer has a probability below
    1e-9."""
    return list(certain_answer(service, asked(service, sql, **settings)).keys)


def certain_answer(service: Service, question: Asked) -> KeySet:
    """The answer without noise; insists that another one has a probability below 1e-9.

    A literal is taken to be unknown at a key where its chance to go the other way is not negligible. A formula is
    monotone in its literals, so keys are certain where all unknowns true and all unknowns false decide alike.
    """
    plan = pipeline.plan_asked_question(service, question)
    found = service.source.read_aggregates(
        plan.rewritten, plan.question.keys, functionals=len(plan.question.computed_functionals), timeout_ms=60_000
    ).values
    if plan.calibration.task.common is not None:
        found = read_functionals(plan.calibration.task.common, found)
    formulas, keys_space = plan.question.formulas, plan.question.keys
    keys = keys_space.size
    unknown = {
        cut: _unknown(cut, plan.calibration.tests[cut.functional], found[cut.functional])
        for formula in formulas
        for cut in list_literals(formula)
    }
    assert len(unknown) * keys <= 1000
    true = [_evaluated(formula, found, keys) for formula in formulas]
    for formula, decided in zip(formulas, true, strict=True):
        most = evaluate_formula(formula, lambda cut: cut.evaluate(found[cut.functional]) | unknown[cut], keys=keys)
        least = evaluate_formula(formula, lambda cut: cut.evaluate(found[cut.functional]) & ~unknown[cut], keys=keys)
        assert np.array_equal(most, decided)
        assert np.array_equal(least, decided)
    ranking = None
    ranked = plan.question.ranked
    if plan.ranking is not None and ranked is not None:
        partition = keys_space.number_values(ranked.partition)
        ranking = certain_ranking(plan.ranking, compute_scores(ranked, found), true[0], partition)
    return KeySet.from_passed(plan, true[0], true[1:], ranking)


def certain_ranking(
    calibration: RankingCalibration, values: Integers, taking_part: Booleans, partition: Integers
) -> Ranking:
    """The ranking without noise; insists that any two keys of which one is returned stand in another order, after any
    look, with a probability below 1e-9 in all."""
    found = exact_ranking(calibration, values, taking_part, partition)
    signed = -values if calibration.task.descending else values
    chance = 0.0
    for number in np.unique(partition):
        members = np.flatnonzero(taking_part & (partition == number))
        ranked = members[np.argsort(signed[members], kind="stable")]
        chance += _chance_of_another_order(calibration, signed, ranked)
    assert chance < 1e-9
    return found


def exact_ranking(
    calibration: RankingCalibration, values: Integers, taking_part: Booleans, partition: Integers
) -> Ranking:
    """The ranking without noise, partition by partition."""
    members = np.flatnonzero(taking_part)
    signed = -values if calibration.task.descending else values
    order = members[np.lexsort((signed[members], partition[members]))]
    places = number_within_partition(partition[order])
    kept = places <= calibration.task.limit
    return Ranking(ranked_keys=order[kept], places=places[kept], epsilon=np.zeros(values.size), path=None)


def _chance_of_another_order(calibration: RankingCalibration, signed: Integers, ranked: Integers) -> float:
    chance = 0.0
    for place, first in enumerate(ranked[: calibration.task.limit]):
        for behind in ranked[place + 1 :]:
            apart = int(signed[behind] - signed[first])
            assert apart > 0
            chance += compute_swap_probability(rate=float(calibration.noise_rate), distance=apart)
            for look in calibration.looks:
                chance += compute_swap_probability(rate=float(look.rate), distance=apart + look.settled_gap + 1)
    return chance


def _evaluated(formula: Formula, found: Integers, keys: int) -> Booleans:
    return evaluate_formula(formula, lambda cut: cut.evaluate(found[cut.functional]), keys=keys)


def _unknown(cut: Cut, test: FunctionalTest, values: Integers) -> Booleans:
    """Where `cut` may be decided wrongly: only if |K| reaches the shifted cut, P(|K| >= d) <= 2 exp(-rate d)."""
    inside = (values - (cut.cut + 1) if cut.above else cut.cut - values) // test.block + 1
    decided = inside + test.shift
    chance = 2 * np.exp(-float(test.rate) * (np.abs(decided) - 1.0))
    return np.asarray((chance > NEGLIGIBLE) | (cut.evaluate(values) != (decided > 0)), dtype=np.bool_)
