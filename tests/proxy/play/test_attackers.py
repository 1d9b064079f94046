import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from mechanisms.risk.channels import list_likelihoods_of_noisy
from mechanisms.risk.posterior import find_posterior_of_one_place
from proxy.play.attacker_beliefs import (
    AttackedDay,
    Attacker,
    PublishedChannel,
    PublishedForm,
    compute_belief,
    count_localised_people,
)
from proxy.play.building import Building, draw_building
from proxy.play.game_sessions import BuildingCache
from proxy.play.tradeoff import compute_alarm_tolerance, weigh_epsilon
from tests.seeded_noise import SeededNoise

NOON = 72


@cache
def _attacked() -> Building:
    return draw_building(seed=4, people=420, tick_minutes=10, days_known=28, days_played=7)


@pytest.mark.parametrize(("attacker", "closed"), [("external", 64), ("student", 27), ("administrator", 25)])
def test_attackers_see_as_many_regions_as_in_the_thesis(attacker: str, closed: int) -> None:
    assert len(AttackedDay(_attacked(), Attacker(attacker)).closed_regions) == closed


def test_the_empty_place_counts() -> None:
    """One person, prior .3, and noise that tells nothing: .3 with the sum from z = 0, where it would be 1 from 1."""
    seen = list_likelihoods_of_noisy(0, rate=1e-9, most=1)
    assert find_posterior_of_one_place(seen, 0.3, people=1) == pytest.approx(0.3, abs=1e-6)
    assert (seen[1] * 0.3) / (seen[1] * 0.3) == 1


@pytest.mark.parametrize("attacker", list(Attacker))
def test_beliefs_are_between_nothing_and_everything(attacker: Attacker) -> None:
    day = AttackedDay(_attacked(), attacker)
    victim = day.list_hidden_people(NOON)[0]

    def at(seen: PublishedForm, epsilon: Fraction | None, ticks: int = 1) -> float:
        found = compute_belief(
            day, PublishedChannel(seen, epsilon, ticks), victim=victim, tick=NOON, noise=SeededNoise(2)
        )
        place = found.regions.index(found.true_region)
        assert found.prior.sum() == pytest.approx(1)
        assert found.joint.sum() == pytest.approx(1)
        assert found.posterior[place] <= found.place + 1e-9
        assert found.joint[place] <= found.place + 1e-9
        assert found.presence <= found.place + 1e-12
        return float(found.posterior[place])

    nothing, everything = at(PublishedForm.NOTHING, None), at(PublishedForm.TRUE, None)
    counts = day.count_closed_regions()[:, NOON]
    assert everything == pytest.approx(
        counts[day.closed_regions.index(day.find_region(victim, NOON) or 0)] / counts.sum()
    )
    assert at(PublishedForm.LAPLACE, Fraction(1, 1000)) == pytest.approx(nothing, rel=0.02)
    assert at(PublishedForm.LAPLACE, Fraction(30)) == pytest.approx(everything, rel=1e-6)
    assert at(PublishedForm.KEYHOLE, Fraction(1, 1000)) == pytest.approx(nothing, rel=0.02)


def test_salts_that_live_two_minutes_promise_nothing_and_hide_little() -> None:
    """Whoever is counted by more salts than one makes counts larger, never smaller; and there is no bound."""
    day = AttackedDay(_attacked(), Attacker.EXTERNAL)
    counts = day.count_closed_regions()[:, NOON]
    channel = PublishedChannel(PublishedForm.TTL, None, ticks=2)
    assert channel.loss is None
    shown, released = channel.publish(counts, (0,) * counts.size, SeededNoise(0), np.random.default_rng(1))
    for count, seen, value in zip(counts.tolist(), released, shown, strict=True):
        assert value is not None
        assert count <= value <= 6 * count
        found = channel.compute_likelihood(seen, cut=0, most=int(counts.sum()))
        assert found[count] > 0
        assert not found[min(seen) + 1 :].any()  # nobody is counted less than once
    victim = day.list_hidden_people(NOON)[0]
    true, resalted, nothing = (
        compute_belief(day, PublishedChannel(seen, None, 1), victim=victim, tick=NOON, noise=SeededNoise(0)).posterior
        for seen in (PublishedForm.TRUE, PublishedForm.TTL, PublishedForm.NOTHING)
    )
    assert np.abs(resalted - true).sum() < np.abs(nothing - true).sum()


def test_waiting_sharpens_what_noise_hides() -> None:
    """Four hundred ticks of equal counts at eps .1 tell what a single one hides; noise is seeded."""
    day = AttackedDay(_attacked(), Attacker.EXTERNAL)
    victim = day.list_hidden_people(NOON)[0]
    true = compute_belief(
        day, PublishedChannel(PublishedForm.TRUE, None, 1), victim=victim, tick=NOON, noise=SeededNoise(0)
    ).posterior
    distances = []
    for ticks in (1, 20, 400):
        channel = PublishedChannel(PublishedForm.LAPLACE, Fraction(1, 10), ticks)
        found = compute_belief(day, channel, victim=victim, tick=NOON, noise=SeededNoise(0)).posterior
        distances.append(float(np.abs(found - true).sum()))
        assert channel.loss == pytest.approx(0.1 * ticks)
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 0.4 * distances[0]


def test_a_victim_whom_the_attacker_sees_needs_no_guess() -> None:
    day = AttackedDay(_attacked(), Attacker.STUDENT)
    seen = next(person for person in range(420) if person not in day.list_hidden_people(NOON))
    with pytest.raises(ValueError, match="the victim"):
        compute_belief(day, PublishedChannel(PublishedForm.TRUE, None, 1), victim=seen, tick=NOON, noise=SeededNoise(0))


@pytest.mark.statistical
@pytest.mark.parametrize("attacker", list(Attacker))
def test_more_people_are_raised_as_epsilon_rises(attacker: Attacker) -> None:
    """The thesis's shape: eps 5 is about as good as the counts themselves, eps .1 is far from it. A day with seeded
    noise, twelve ticks of it; it repeats itself."""
    day = AttackedDay(_attacked(), attacker)

    def raised(channel: PublishedChannel) -> float:
        found = count_localised_people(day, channel, every=12, noise=SeededNoise(6))
        assert sum(found.believed_counts) == found.hidden_count
        assert all(
            above <= everybody for above, everybody in zip(found.raised_counts, found.believed_counts, strict=True)
        )
        return sum(found.raised_counts) / found.ticks

    little, much, true = (
        raised(PublishedChannel(PublishedForm.LAPLACE, Fraction(1, 10), 1)),
        raised(PublishedChannel(PublishedForm.LAPLACE, Fraction(5), 1)),
        raised(PublishedChannel(PublishedForm.TRUE, None, 1)),
    )
    assert little < 0.5 * true
    assert much == pytest.approx(true, rel=0.25)
    assert raised(PublishedChannel(PublishedForm.NOTHING, None, 1)) == 0


def test_the_slider_says_what_an_epsilon_buys(draw: Callable[[int], Building]) -> None:
    found = weigh_epsilon(
        draw(1), _attacked(), attacker=Attacker.STUDENT, epsilon=Fraction(1), looks=24, noise=SeededNoise(0)
    )  # fmt: skip
    assert dict(found.raised_people)["true"] > 0
    assert found.tolerance == pytest.approx(math.log(24 / (4 * 0.05 * 0.1)) - 1)
    assert compute_alarm_tolerance(0.1, looks=24) == pytest.approx(69.9, abs=0.05)
    for epsilon in (Fraction(0), Fraction(11)):
        with pytest.raises(ValueError, match="epsilon"):
            weigh_epsilon(
                draw(1), _attacked(), attacker=Attacker.STUDENT, epsilon=epsilon, looks=24, noise=SeededNoise(0)
            )


def test_the_attacked_building_is_not_the_games(buildings: BuildingCache) -> None:
    attacked, played = buildings.find_attacked_building(1), buildings.find_played_building(1)
    assert (attacked.tick_minutes, played.tick_minutes) == (10, 5)
    assert (len(attacked.roles), len(played.roles)) == (420, 900)
    assert buildings.find_attacked_building(1) is attacked
