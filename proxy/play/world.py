"""The events that are added to a building for one round: a sensor that breaks, a weekly meeting, and a crowd.

A round's world is the building with its own events. All true counts come from here.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from proxy.play.building import BY_DAY, DAYS_A_WEEK, WORKING_DAYS, Building
from proxy.play.floor_plan import Counts, RegionKind

LEAST_BY_DAY = 5.0
"""People in a region by day, on average, so that its sensor may break: in a quiet one nobody can tell when it did."""

_NIGHT = 18 * 60, 6 * 60  # minutes of a day
_FULL_MINUTES = 90  # before and after a crowd: nobody more is let in, and noise cannot tell full from over


@dataclass(frozen=True, slots=True)
class BrokenSensor:
    """A region's sensor that reports nobody from `tick` of `day` on."""

    region: int
    day: int
    tick: int


@dataclass(frozen=True, slots=True)
class WeeklyMeeting:
    """A weekly meeting: additional people in a region at some ticks of a weekday, by week."""

    region: int
    weekday: int
    start: int
    stop: int
    people: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Crowd:
    """A crowd in a region on one day, tick by tick from `start` on. It grows to the capacity, above it, and back."""

    region: int
    day: int
    start: int
    people: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlantedEvents:
    """A broken sensor, a weekly meeting and a crowd, in three regions."""

    broken: BrokenSensor
    meeting: WeeklyMeeting
    crowd: Crowd

    @property
    def regions(self) -> frozenset[int]:
        """The regions of the three events."""
        return frozenset({self.broken.region, self.meeting.region, self.crowd.region})


@dataclass(frozen=True, slots=True, eq=False)
class PrivateDays:
    """The private days of a building with the added events. Places are numbered as in the plan."""

    building: Building
    plants: PlantedEvents

    @property
    def days(self) -> int:
        """The number of days."""
        return self.building.days_played

    def count_rooms(self, number: int, day: int) -> Counts:
        """Return true counts of the rooms of a place on a day, of shape (rooms, ticks)."""
        return self._count_rooms_over_days(number, slice(day, day + 1))[:, 0]

    def count_place(self, number: int) -> Counts:
        """Return true counts of a place, of shape (days, ticks)."""
        return np.asarray(self._count_rooms_over_days(number, slice(0, self.days)).sum(axis=0))

    def count_nights(self, day: int) -> Counts:
        """Return the person-ticks of each region in the night that begins on a day, in the plan's order."""
        regions = [self.count_place(number) for number in self.building.plan.regions]
        evening, morning = (minutes // self.building.tick_minutes for minutes in _NIGHT)
        return np.array([region[day, evening:].sum() + region[day + 1, :morning].sum() for region in regions])

    def _count_rooms_over_days(self, number: int, days: slice) -> Counts:
        place = self.building.plan.places[number]
        found = self.building.played_counts[place.rooms, days].astype(np.int64)
        chosen = range(self.days)[days]
        meeting, crowd, broken = self.plants.meeting, self.plants.crowd, self.plants.broken
        for at, day in enumerate(chosen):
            if (
                day % DAYS_A_WEEK == meeting.weekday
                and (room := self._find_first_room(meeting.region, number)) is not None
            ):
                found[room, at, meeting.start : meeting.stop] += meeting.people[day // DAYS_A_WEEK]
            if day == crowd.day and (room := self._find_first_room(crowd.region, number)) is not None:
                found[room, at, crowd.start : crowd.start + len(crowd.people)] = crowd.people
            if day >= broken.day:
                silent = self.building.plan.places[broken.region]
                start, stop = max(silent.start, place.start), min(silent.stop, place.stop)
                if start < stop:
                    from_tick = broken.tick if day == broken.day else 0
                    found[start - place.start : stop - place.start, at, from_tick:] = 0
        return found

    def _find_first_room(self, region: int, number: int) -> int | None:
        """Return the position of a region's first room among a place's rooms; None if it is not among them."""
        place, room = self.building.plan.places[number], self.building.plan.places[region].start
        return room - place.start if place.start <= room < place.stop else None


def draw_planted_events(building: Building, *, number: int) -> PlantedEvents:
    """Draw the added events of a building for the round of that number, by the building's seed."""
    rng = np.random.default_rng((building.seed, building.tick_minutes, number))
    minutes = building.tick_minutes
    weeks = building.days_played // DAYS_A_WEEK
    plan = building.plan
    lively = find_lively_regions(building)
    meeting_rooms = [
        region for region in plan.list_regions_of_kind(RegionKind.MEETING_ROOM) if plan.places[region].capacity < 60
    ]
    crowded = [*plan.list_regions_of_kind(RegionKind.CLASS_ROOM), *plan.list_regions_of_kind(RegionKind.MEETING_ROOM)]
    meeting_region = int(rng.choice(meeting_rooms))
    crowd_region = int(rng.choice([region for region in crowded if region != meeting_region]))
    broken_region = int(rng.choice([region for region in lively if region not in (meeting_region, crowd_region)]))
    start = 8 * 60 + 10 * int(rng.integers(0, 54))
    meeting = WeeklyMeeting(
        region=meeting_region,
        weekday=int(rng.integers(WORKING_DAYS)),
        start=start // minutes,
        stop=(start + 60) // minutes,
        people=tuple(rng.integers(12, 20, size=weeks).tolist()),
    )
    capacity = plan.places[crowd_region].capacity
    full = [capacity] * (_FULL_MINUTES // minutes)
    over = (capacity + rng.integers(1, 8, size=int(rng.integers(75, 106)) // minutes)).tolist()
    crowd = Crowd(
        region=crowd_region,
        day=int(rng.integers(weeks)) * DAYS_A_WEEK + int(rng.integers(WORKING_DAYS)),
        start=(8 * 60 + 10 * int(rng.integers(0, 36))) // minutes,
        people=(*full, *over, *full),
    )
    working = [day for day in range(2, building.days_played - 5) if day % DAYS_A_WEEK < WORKING_DAYS]
    broken = BrokenSensor(
        region=broken_region,
        day=int(rng.choice(working)),
        tick=int(rng.integers(10 * 60 // minutes, 16 * 60 // minutes)),
    )
    return PlantedEvents(broken=broken, meeting=meeting, crowd=crowd)


@lru_cache(maxsize=4)
def find_lively_regions(building: Building) -> tuple[int, ...]:
    """Return the regions whose sensor may break: those with people during the day, on the played working days."""
    days = [day for day in range(building.days_played) if day % DAYS_A_WEEK < WORKING_DAYS]
    start, stop = (minutes // building.tick_minutes for minutes in BY_DAY)
    by_room = building.played_counts[:, days, start:stop].mean(axis=(1, 2))
    places = building.plan.places
    return tuple(number for number in building.plan.regions if by_room[places[number].rooms].sum() > LEAST_BY_DAY)
