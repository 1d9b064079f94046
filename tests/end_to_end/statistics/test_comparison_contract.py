"""Comparisons of groups with other groups keep both their rates where groups stand at the worst place for them.

A question is drawn, and a world in which its groups just hold or just fail. All engines add up the world's rows to the
same sums. PostgreSQL says which groups hold, and which fail by the tolerance, from text that Keyhole has not seen. The
question is then decided on these sums many times, with noise of its own, and as on noise that was there.

A false alarm has a probability of at most 1e-9 for each group of each question, so of less than 5e-5 for all of them.
"""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.stats import binom

from mechanisms.formula import Integers
from mechanisms.keyhole.cell_readings import calibrate_at_rates
from mechanisms.protocol import Calibration, Noise, Unachievable
from mechanisms.registry import MECHANISMS
from mechanisms.threshold.joint_loss import list_sum_rates
from mechanisms.threshold.one_shot import round_rate_up
from planner.functionals.cell_readings import list_cell_sums
from planner.lower.scan import rewrite
from planner.plan.build import plan_question
from planner.question.plan import Plan
from planner.question.question import Functional
from planner.question.unit_groups import MOST_SPLIT
from tests.effort import PATIENCE_S, is_repeated, rounds, shares
from tests.end_to_end.statistics.drawn_comparisons import FORMS, Drawn, draw_comparison
from tests.end_to_end.statistics.placed_worlds import (
    Bounds,
    Engines,
    World,
    draw_bounds,
    list_placed_cuts,
    make_catalog,
    open_engines,
    repeat_worlds,
)
from tests.planner.asked import asked
from tests.seeded_noise import SeededNoise

FALSE_ALARM = 1e-9
_OTHER_RATES = (0.9, 0.97, 1.0, 1.3, 3.0)
SHARES = shares(16)
QUESTIONS = rounds(24, quick=12)  # of each share, a form after the other: 384 in all
DECISIONS = rounds(12_000, quick=2_000)  # of a question: an error rate of .05 that is .062 is found, at quick .085


@pytest.fixture(scope="module")
def engines(
    request: pytest.FixtureRequest, postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engines]:
    can_spark = find_spec("pyspark") is not None and find_spec("pysail") is not None
    spark_url = request.getfixturevalue("sail").url if can_spark else None
    with open_engines(postgres_url, spark_url, tmp_path_factory.mktemp("placed")) as opened:
        yield opened


@pytest.mark.parametrize("share", SHARES)
def test_both_rates_hold_for_random_comparisons_at_their_worst(engines: Engines, share: int) -> None:
    drawn = random.Random(20261130 + share if is_repeated() else None)
    found = Counter[str]()
    for number in range(QUESTIONS):
        one, bounds, plan = _draw_planned(drawn, [*FORMS][number % len(FORMS)], engines)
        sums, common = list_cell_sums(plan.question)
        world = World(drawn, bounds, one.keys)
        world.place(drawn, common, sums, list_placed_cuts(plan.calibration.task.formula))
        engines.load(world.list_rows(drawn), f"world {share} {number}")
        values = _add_up(engines, plan, sums, world)
        for calibration in _list_calibrations(drawn, plan.calibration):
            noise = SeededNoise(drawn.getrandbits(32))
            found += _check_rates(engines, one, plan, calibration, values, noise)
            found["calibrations"] += 1
    assert found["calibrations"] > QUESTIONS, found
    assert found["near a miss"] >= QUESTIONS // 4, found
    assert found["near a wrong answer"] >= QUESTIONS // 4, found


def _draw_planned(drawn: random.Random, form: str, engines: Engines) -> tuple[Drawn, Bounds, Plan]:
    """Draw a question until one compares groups: the weaker side of AND and OR may be left out."""
    while True:
        bounds = draw_bounds(drawn)
        one = draw_comparison(drawn, form, people=0 < bounds.groups <= MOST_SPLIT)
        question = asked(one.sql, parameters={}, catalog=make_catalog(bounds, one.keys), **one.settings)
        plan = plan_question(question, dialect=engines.sources[0].dialect)
        if plan.calibration.task.common is not None and plan.calibration.task.common.cells:
            return one, bounds, plan


def _add_up(engines: Engines, plan: Plan, sums: tuple[Functional, ...], world: World) -> Integers:
    """Return the sums of all groups, which every engine must have alike."""
    expected = np.array([world.add_up(one) for one in sums])
    assert [plan.question.keys.get_key(place) for place in range(len(world.groups))] == [*world.groups]
    for source in engines.sources:
        relation = engines.relations[source.dialect.name]
        there = replace(
            plan.question,
            table=replace(plan.question.table, relation=relation),
            functionals=sums,
            common=(),
        )
        read = source.read_aggregates(
            rewrite(there, dialect=source.dialect),
            plan.question.keys,
            functionals=len(sums),
            timeout_ms=int(1000 * PATIENCE_S),
        )
        assert np.array_equal(read.values, expected), source.dialect.name
    return expected


def _list_calibrations(drawn: random.Random, made: Calibration) -> Iterator[Calibration]:
    """Yield a question's own calibration, and those on noise of other rates that an earlier question left."""
    yield made
    for _ in range(rounds(3, quick=1)):
        rates = [
            round_rate_up(float(rate) * drawn.choice(_OTHER_RATES)) if rate else rate for rate in list_sum_rates(made)
        ]
        with suppress(Unachievable):  # the noise is too wide
            yield calibrate_at_rates(made, rates)


def _check_rates(
    engines: Engines, one: Drawn, plan: Plan, calibration: Calibration, values: Integers, noise: Noise
) -> Counter[str]:
    """Decide a question many times. Return how many groups err about as often as they may."""
    task = calibration.task
    assert task.common is not None
    repeated = replace(calibration, task=replace(task, common=repeat_worlds(task.common, DECISIONS)))
    decided = MECHANISMS[calibration.mechanism].decide(repeated, np.tile(values, (1, DECISIONS)), noise=noise)
    returned = decided.passed.reshape(DECISIONS, -1).sum(axis=0)
    held = engines.fetch_keys(one.sql_of_true)
    possible = engines.fetch_keys(one.sql_of_possible)
    assert held <= possible
    met = Counter[str]()
    for place, times in enumerate(returned.tolist()):
        key = plan.question.keys.get_key(place)
        if key in held:
            errors, rate, name = DECISIONS - times, task.fnr, "a miss"
        elif key not in possible:
            errors, rate, name = times, task.fpr, "a wrong answer"
        else:
            continue
        assert binom.sf(errors - 1, DECISIONS, rate) >= FALSE_ALARM, (name, key, errors / DECISIONS, rate, one)
        met[f"near {name}"] += 2 * errors > rate * DECISIONS
    return met
