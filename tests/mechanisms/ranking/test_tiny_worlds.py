"""Privacy and error rates of rankings of two and three keys, by going through all of the noise that is not negligible.

What is left out is known (`missing`), and every comparison allows for it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import exp

import pytest

from mechanisms.ranking.calibration import ONE_LOOK, RankingCalibration, RankingLook, calibrate_ranking
from mechanisms.ranking.ranking_task import RankingTask
from tests.effort import cases
from tests.mechanisms.ranking.chosen_noise import Answer, Path, answer, paths_by_chance, worlds
from tests.mechanisms.ranking.law_by_hand import overtaken

TASK = RankingTask(keys=2, limit=1, descending=True, sensitivity=1, tolerance=3, fnr=0.05, fpr=0.1)
Law = dict[Answer, float]


def ranking(keys: int, limit: int, rate: Fraction, looks: Sequence[tuple[Fraction, int]] = ()) -> RankingCalibration:
    """Noise that is chosen rather than calibrated: strong enough that few values of it matter."""
    found = calibrate_ranking(replace(TASK, keys=keys, limit=limit), schedule=ONE_LOOK)
    early = tuple(RankingLook(rate=one, settled_gap=gap) for one, gap in looks)
    return replace(found, noise_rate=rate, looks=early, worst_case_epsilon=float(rate))


@cache
def all_worlds(rates: tuple[Fraction, ...], keys: int, least: float) -> tuple[tuple[tuple[Path, ...], float], ...]:
    one_key = paths_by_chance([float(rate) for rate in rates], least=least)
    return tuple(worlds(one_key, keys=keys, least=least))


def answers_law(calibration: RankingCalibration, values: Sequence[int], *, least: float) -> Law:
    law: Law = defaultdict(float)
    for paths, chance in all_worlds(calibration.revealed_rates, len(values), least):
        law[answer(calibration, values, paths)] += chance
    return law


def missing(law: Law) -> float:
    return 1.0 - sum(law.values())


LOOKS = ((Fraction(3, 2), 2),)


@pytest.mark.parametrize(
    ("values", "limit", "looks", "least"),
    [
        ((0, 0), 1, (), 1e-9),
        ((0, 1), 2, (), 1e-9),
        ((-1, 0, 0), 1, (), 1e-6),
        ((-1, 0, 0), 2, (), 1e-6),
        ((-2, 0), 1, LOOKS, 2e-6),
        ((0, -1), 2, LOOKS, 2e-6),
    ],
)
def test_an_answer_changes_by_no_more_than_the_loss_of_the_key_that_moves(
    values: tuple[int, ...], limit: int, looks: tuple[tuple[Fraction, int], ...], least: float
) -> None:
    """In both directions, for the answer together with how far each key was revealed, against the ex-post loss of it;
    and some answer comes within a half of the factor, so the claim could not be much smaller."""
    calibration = ranking(len(values), limit, Fraction(2), looks)
    epsilons = [0.0, *(float(rate) for rate in calibration.revealed_rates)]
    moved = (values[0] + 1, *values[1:])
    before, after = (answers_law(calibration, one, least=least) for one in (values, moved))
    lost = max(missing(before), missing(after))
    assert lost < 2e-3
    nearest = 0.0
    for found in before.keys() | after.keys():
        claimed = exp(epsilons[found.reached[0]])
        for ours, theirs in ((before, after), (after, before)):
            assert ours[found] <= claimed * (theirs[found] + lost)
            if theirs[found] > 0.02:
                nearest = max(nearest, ours[found] / theirs[found] / claimed)
    assert nearest > 0.5


def test_keys_stop_early_in_some_worlds_and_not_in_others() -> None:
    """What the early looks of these tests are for."""
    law = answers_law(ranking(2, 1, Fraction(2), LOOKS), (2, 0), least=1e-5)
    by_level: dict[tuple[int, ...], float] = defaultdict(float)
    for found, chance in law.items():
        by_level[found.reached] += chance
    assert set(by_level) == {(1, 1), (2, 2)}
    assert min(by_level.values()) > 0.1


@pytest.mark.parametrize(("limit", "signed"), [(1, False), (1, True), (2, False)])
def test_a_unit_in_all_keys_loses_a_keys_loss_for_each_place_where_there_is_one_look(limit: int, signed: bool) -> None:
    """Three keys, all moved at once, up, or some up and the last down: at most `limit` times the loss of one key, or
    twice that; where it is signed more than `limit` times, or the distinction would be idle."""
    rate = Fraction(3, 2)
    calibration = ranking(3, limit, rate)
    nearest, steps = 0.0, (1, 1, -1) if signed else (1, 1, 1)
    for part in ((1, 1, 1), (0, 1, 1)):
        values = (0, 0, 0)
        moved = tuple(step * one for step, one in zip(steps, part, strict=True))
        before, after = (answers_law(calibration, one, least=4e-6) for one in (values, moved))
        lost = max(missing(before), missing(after))
        assert lost < 2e-3
        claimed = exp(float(rate) * limit * (1 + signed))
        for found in before.keys() | after.keys():
            for ours, theirs in ((before, after), (after, before)):
                assert ours[found] <= claimed * (theirs[found] + lost)
                nearest = max(nearest, ours[found] / theirs[found])
    assert nearest > (exp(float(rate) * limit) if signed else 1.5)


@pytest.mark.parametrize(("keys", "limit"), [(2, 1), (3, 1), (3, 2)])
def test_the_worst_cases_are_attained_where_ties_go_the_wrong_way(keys: int, limit: int) -> None:
    """The key that should not be returned stands first in the domain, others far below; the one that should not be
    missed stands last. With one look their chances are those of the proof, which counts ties in full."""
    rate, distance, far = Fraction(3, 2), 2, 40
    calibration = ranking(keys, limit, rate)
    wrong = (-distance, *[0] * limit, *[-far] * (keys - limit - 1))
    law = answers_law(calibration, wrong, least=1e-6)
    returned = sum(chance for found, chance in law.items() if 0 in found.ranked)
    exact = float(overtaken(rate, behind=1, ahead=limit, distance=distance))
    assert returned <= exact <= returned + missing(law)
    right = (*[far] * (limit - 1), *[0] * (keys - limit), distance)
    law = answers_law(calibration, right, least=1e-6)
    missed = sum(chance for found, chance in law.items() if keys - 1 not in found.ranked)
    exact = float(overtaken(rate, behind=keys - limit, ahead=1, distance=distance))
    assert missed <= exact <= missed + missing(law)


@pytest.mark.parametrize("limit", [1, 2])
def test_early_looks_add_no_more_than_the_chance_of_a_gap(limit: int) -> None:
    """Two keys that are `distance` apart, the better one later in the domain; three keys' answers need more worlds."""
    rate, distance, (look, gap) = Fraction(2), 2, LOOKS[0]
    law = answers_law(ranking(2, limit, rate, LOOKS), (0, distance), least=2e-6)
    wrong = sum(chance for found, chance in law.items() if found.ranked[0] == 0)
    last = float(overtaken(rate, behind=1, ahead=1, distance=distance))
    early = float(overtaken(look, behind=1, ahead=1, distance=gap + 1 + distance))
    assert 0.9 * last < wrong <= last + early


@pytest.mark.parametrize(
    ("limit", "values"),
    cases((1, 2), ((0, 0, 0), (-1, 0, 0), (0, 0, 1), (-1, 0, 1), (0, -1, -2), (-2, 2, 0)), quick=4),
)
def test_every_key_of_three_keeps_its_rates_with_an_early_look(limit: int, values: tuple[int, ...]) -> None:
    """With a gap so narrow that early looks are often wrong, all keys and pairs that the contract speaks of are within
    the proof's sums, for each way of standing near one another.
    Of all worlds less than one in a hundred is left out."""
    rate, look, gap, distance = Fraction(5, 2), Fraction(2), 1, 1
    law = answers_law(ranking(3, limit, rate, ((look, gap),)), values, least=1e-5)
    assert missing(law) < 8e-3
    early = float(overtaken(look, behind=3 - limit, ahead=limit, distance=gap + 1))
    wrongly_returned = early + float(overtaken(rate, behind=1, ahead=limit, distance=distance))
    wrongly_missed = early + float(overtaken(rate, behind=3 - limit, ahead=1, distance=distance))
    swapped = float(overtaken(rate, behind=1, ahead=1, distance=distance))
    swapped += float(overtaken(look, behind=1, ahead=1, distance=gap + 1 + distance))
    greatest = sorted(values, reverse=True)
    for key, value in enumerate(values):
        returned = sum(chance for found, chance in law.items() if key in found.ranked)
        if value <= greatest[limit - 1] - distance:
            assert returned <= wrongly_returned
        if value >= greatest[limit] + distance:
            assert 1.0 - missing(law) - returned <= wrongly_missed
        for other in (one for one in range(3) if values[one] >= value + distance):
            before = sum(
                chance
                for found, chance in law.items()
                if {key, other} <= set(found.ranked) and found.ranked.index(key) < found.ranked.index(other)
            )
            assert before <= swapped
