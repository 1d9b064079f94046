"""An attacker's beliefs about where a person is, before and after the counts of one tick, as in the thesis's chapter 4.

The attacker knows how people spread over regions at that time of day on the days before. The attacker sees everybody in
the regions that are open to him. Of the other regions he sees only what is published of their counts at one tick. His
belief about a hidden victim is equation 4.4, with its sum from z = 0.

| here | the thesis |
|---|---|
| `Attacker` | external, student, administrator: 0, 37, 39 of 64 regions are open |
| `Belief.prior`, `.posterior` | p_l, equation 4.4 |
| `count_localised_people` | people localised, above their prior's class |

Reference: PET evaluation (Ghayyur's thesis), chapter 4. Proof: docs/proofs/posterior.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.protocol import FunctionalTest, Noise
from mechanisms.risk.channels import (
    list_likelihoods_of_exact_count,
    list_likelihoods_of_key,
    list_likelihoods_of_noisy,
    list_likelihoods_without_release,
)
from mechanisms.risk.posterior import (
    CONFIDENCES,
    bound_belief_in_place,
    bound_belief_in_presence,
    find_confidence_class,
    find_joint_posterior,
    find_posterior_of_one_place,
)
from proxy.play.afford import find_affordable_test
from proxy.play.building import DAYS_A_WEEK, NOBODY, WORKING_DAYS, Building
from proxy.play.floor_plan import OPEN_TO_STUDENTS, Counts, RegionKind
from proxy.play.published import TTL_MINUTES
from proxy.play.resalted import count_resalted, tabulate_resalted

WEDNESDAY = 2  # of the days that are played, the one that is attacked
_OFFICES_OF_ADMINISTRATORS = 2  # as in the thesis: 39 open regions beside a student's 37
_NOBODY_BEFORE = 0.5  # people: a region that was always empty at that time is unlikely and not impossible

Floats = npt.NDArray[np.float64]


class Attacker(Enum):
    """An attacker who sees some regions of the building directly."""

    EXTERNAL = "external"
    STUDENT = "student"
    ADMINISTRATOR = "administrator"


class PublishedForm(Enum):
    """The form in which each region's count is published.

    It is the true count, a count with Laplace noise, Keyhole's answer, or nothing. Or it is a count of devices whose
    salt is renewed every two minutes.
    """

    TRUE = "true"
    LAPLACE = "tick_laplace"
    KEYHOLE = "keyhole"
    TTL = "ttl"
    NOTHING = "zeros"


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """An attacker's belief about one victim at one tick, over the regions closed to the attacker.

    Regions are identified by their number in the plan. `published` is the published value of each region, or None.
    `joint` is the belief from all of them together. `presence` and `place` are two bounds on the belief in the region
    where the victim is.
    """

    regions: tuple[int, ...]
    true_region: int
    people: int
    prior: Floats
    posterior: Floats
    joint: Floats
    published: tuple[float | None, ...]
    presence: float
    place: float


@dataclass(frozen=True, slots=True)
class LocalisedPeople:
    """The person-ticks of a day by class of confidence: of all hidden people, and of those above the prior's."""

    hidden_count: int
    believed_counts: tuple[int, ...]
    raised_counts: tuple[int, ...]
    ticks: int


@dataclass(frozen=True, slots=True, eq=False)
class AttackedDay:
    """The attacked Wednesday: each person's region at each tick, and what the attacker knows from earlier days."""

    building: Building
    attacker: Attacker

    @property
    def closed_regions(self) -> tuple[int, ...]:
        """The regions that the attacker does not see, by number in the plan."""
        plan = self.building.plan
        if self.attacker is Attacker.EXTERNAL:
            return plan.regions
        offices = plan.list_regions_of_kind(RegionKind.OFFICE)[:_OFFICES_OF_ADMINISTRATORS]
        seen = set(offices) if self.attacker is Attacker.ADMINISTRATOR else set()
        return tuple(
            number for number in plan.regions if plan.places[number].kind not in OPEN_TO_STUDENTS and number not in seen
        )

    def count_closed_regions(self) -> Counts:
        """Return true counts of the closed regions, of shape (regions, ticks)."""
        at = self.building.days_known + WEDNESDAY
        return np.array(
            [self.building.plan.add_up(self.building.counts[:, at], number) for number in self.closed_regions]
        )

    def compute_prior(self) -> Floats:
        """Return the probability that a hidden person is in each closed region, by tick: shape (regions, ticks)."""
        days = [day for day in range(self.building.days_known) if day % DAYS_A_WEEK < WORKING_DAYS]
        known = self.building.known_counts[:, days].sum(axis=1, dtype=np.int64)
        before = np.array([self.building.plan.add_up(known, number) for number in self.closed_regions]) + _NOBODY_BEFORE
        return np.asarray(before / before.sum(axis=0))

    def find_region(self, person: int, tick: int) -> int | None:
        """Return the person's region at a tick, or None if the person is outside or seen by the attacker."""
        room = int(self.building.places[person, tick])
        if room == NOBODY:
            return None
        places = self.building.plan.places
        return next((one for one in self.closed_regions if places[one].start <= room < places[one].stop), None)

    def list_hidden_people(self, tick: int) -> tuple[int, ...]:
        """Return the people who are in a closed region at a tick."""
        return tuple(
            person for person in range(len(self.building.roles)) if self.find_region(person, tick) is not None
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PublishedChannel:
    """A way in which counts are published to an attacker.

    An attacker who waits averages `ticks` publications of the same counts. Each has noise of its own, so the attacker
    learns at most what one tick at `ticks * epsilon` would reveal.
    """

    published_form: PublishedForm
    epsilon: Fraction | None
    ticks: int

    def publish(
        self, counts: Counts, cuts: Sequence[int], noise: Noise, generator: np.random.Generator
    ) -> tuple[list[float | None], list[list[int]]]:
        """Return the published value of each region, and all releases behind that value.

        A release is a number or a truth value for each tick.

        Parameters:
            generator: draws how long people stay, which `TTL` depends on.
        """
        match self.published_form:
            case PublishedForm.TRUE:
                return [float(count) for count in counts], [[int(count)] for count in counts]
            case PublishedForm.NOTHING:
                return [None] * counts.size, [[] for _ in counts]
            case PublishedForm.LAPLACE:
                drawn = noise.draw_discrete_laplace(rate=self._epsilon, size=self.ticks * counts.size)
                released = (counts + drawn.reshape(self.ticks, -1)).T.tolist()
                return [float(np.mean(values)) for values in released], released
            case PublishedForm.TTL:
                seen = count_resalted(np.tile(counts, (self.ticks, 1)), period=TTL_MINUTES, generator=generator)
                released = seen.T.tolist()
                return [float(np.mean(values)) for values in released], released
            case PublishedForm.KEYHOLE:
                test = self._test
                drawn = noise.draw_discrete_laplace(rate=test.rate, size=self.ticks * counts.size)
                above = counts + drawn.reshape(self.ticks, -1) - np.array(cuts) + test.shift
                ties = noise.draw_bernoulli(probability=test.tie, size=above.size).reshape(above.shape)
                keys = ((above > 0) | ((above == 0) & ties)).T.astype(int).tolist()
                return [float(np.mean(values)) for values in keys], keys

    def compute_likelihood(self, released: Sequence[int], *, cut: int, most: int) -> Floats:
        """Return the likelihood of one region's release, for each true count from 0 to `most`."""
        match self.published_form:
            case PublishedForm.NOTHING:
                return list_likelihoods_without_release(most=most)
            case PublishedForm.TRUE:
                return list_likelihoods_of_exact_count(released[0], most=most)
            case PublishedForm.LAPLACE:
                each = [list_likelihoods_of_noisy(value, rate=float(self._epsilon), most=most) for value in released]
            case PublishedForm.TTL:
                each = [_compute_resalted_likelihood(value, most=most) for value in released]
            case PublishedForm.KEYHOLE:
                each = [
                    list_likelihoods_of_key(self._test, cut=cut, most=most, is_returned=bool(value)) for value in
                    released
                ]  # fmt: skip
        together = np.ones(most + 1)
        for one in each:
            together = together * one
            together = together / together.max()
        return together

    @property
    def loss(self) -> float | None:
        """The epsilon that one person loses who is present at all published ticks; None if there is no bound."""
        if self.published_form in (PublishedForm.TRUE, PublishedForm.TTL):
            return None
        return 0.0 if self.published_form is PublishedForm.NOTHING else self.ticks * float(self._epsilon)

    @property
    def _epsilon(self) -> Fraction:
        assert self.epsilon is not None, "noise has an epsilon"
        return self.epsilon

    @property
    def _test(self) -> FunctionalTest:
        return find_affordable_test(self._epsilon)


def compute_belief(day: AttackedDay, channel: PublishedChannel, *, victim: int, tick: int, noise: Noise) -> Belief:
    """Return the attacker's belief about a victim at a tick.

    Raises:
        ValueError: at that tick the victim is out, or where the attacker sees them.
    """
    true_region = day.find_region(victim, tick)
    if true_region is None:
        raise ValueError("the victim is out at that time, or in a region that the attacker sees")
    regions = day.closed_regions
    counts, prior = day.count_closed_regions()[:, tick], day.compute_prior()[:, tick]
    people = int(counts.sum())
    cuts = _choose_thresholds(day)
    shown, released = channel.publish(counts, cuts, noise, _make_stay_generator(day, tick))
    likelihoods = [
        channel.compute_likelihood(one, cut=cut, most=people) for one, cut in zip(released, cuts, strict=True)
    ]
    posterior = _combine_independent(likelihoods, prior, people)
    at = regions.index(true_region)
    loss = channel.loss
    bounds = (1.0, 1.0) if loss is None else tuple(
        bound(loss, prior=float(prior[at])) for bound in (bound_belief_in_presence, bound_belief_in_place)
    )  # fmt: skip
    return Belief(
        regions=regions,
        true_region=true_region,
        people=people,
        prior=prior,
        posterior=posterior,
        joint=find_joint_posterior(likelihoods, prior / prior.sum(), people=people),
        published=tuple(shown),
        presence=bounds[0],
        place=bounds[1],
    )


def count_localised_people(day: AttackedDay, channel: PublishedChannel, *, every: int, noise: Noise) -> LocalisedPeople:
    """Return how many hidden people are localised over the day, by class of confidence.

    Only every `every`th tick is counted.
    """
    counts, prior, cuts = day.count_closed_regions(), day.compute_prior(), _choose_thresholds(day)
    believed, raised = [0] * len(CONFIDENCES), [0] * len(CONFIDENCES)
    hidden = 0
    ticks = range(0, counts.shape[1], every)
    for tick in ticks:
        now = counts[:, tick]
        people = int(now.sum())
        if not people:
            continue
        _, released = channel.publish(now, cuts, noise, _make_stay_generator(day, tick))
        likelihoods = [
            channel.compute_likelihood(one, cut=cut, most=people) for one, cut in zip(released, cuts, strict=True)
        ]
        after = _combine_independent(likelihoods, prior[:, tick], people)
        hidden += people
        for count, then, later in zip(now.tolist(), prior[:, tick].tolist(), after.tolist(), strict=True):
            reached = find_confidence_class(later)
            believed[reached] += count
            raised[reached] += count * (reached > find_confidence_class(then))
    return LocalisedPeople(hidden, tuple(believed), tuple(raised), len(ticks))


def _make_stay_generator(day: AttackedDay, tick: int) -> np.random.Generator:
    """Return a random generator for how long people stay. The same tick always gives the same draws."""
    return np.random.default_rng((day.building.seed, tick))


def _compute_resalted_likelihood(seen: int, *, most: int) -> Floats:
    """Return the exact likelihood of a resalted count, for each true count from 0 to `most`.

    Everybody is counted at least once, so at most `seen` people are there.
    """
    table = tabulate_resalted(TTL_MINUTES, 1 << max(6, seen.bit_length()))
    found = np.zeros(most + 1)
    reach = min(most + 1, len(table))
    found[:reach] = table[:reach, seen]
    return found


def _choose_thresholds(day: AttackedDay) -> tuple[int, ...]:
    """Return the threshold of Keyhole's question about each region: half of the people that the fire code allows."""
    return tuple(day.building.plan.places[number].capacity // 2 for number in day.closed_regions)


def _combine_independent(likelihoods: Sequence[Floats], prior: Floats, people: int) -> Floats:
    return np.array(
        [
            find_posterior_of_one_place(seen, share, people=people)
            for seen, share in zip(likelihoods, prior.tolist(), strict=True)
        ]
    )
