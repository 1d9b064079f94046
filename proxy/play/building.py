"""A building with people who move about, drawn by seed, with the number of people in each room at each tick.

It replaces the presence data of the papers, which are private. Students have weekly lectures by a timetable. Some also
have a place to work in a laboratory. Faculty and staff have an office; visitors come for a meeting. A person in the
building has an arrival and a departure. They stay at a place for some fifty minutes and then go to another one that
people of the same kind like. At weekends eight in a hundred of those come who come on weekdays.

The first day is a Monday. The last days are the ones that are played or attacked. All days before them are the past,
which everybody knows. The rules are public; only the seed determines the people.

Reference: Ghayyur's thesis, sections 3.1.1 and 4.5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proxy.play.floor_plan import Counts, FloorPlan, RegionKind, draw_floor_plan

MINUTES_A_DAY = 24 * 60  # as everywhere
DAYS_A_WEEK = 7  # from Monday
WORKING_DAYS = 5  # Monday to Friday
NOBODY = -1  # the room of who is out
BY_DAY = (9 * 60, 17 * 60)
"""Working hours, in minutes."""

_WEEKEND = 0.08  # of those who come on weekdays
_STAY_MINUTES = 50.0  # at a place, on average: longer makes counts smoother
_GROUPS = 10  # of students, each with its lectures: fewer than class rooms, so that all fit
_ATTENDING = 0.85  # of those who are in
_LATE, _LATE_BY = 0.2, 6 * 60.0  # who works late, and by how much
_OVERNIGHT = 0.03  # of those with a laboratory: still there after midnight

Rooms = npt.NDArray[np.int16]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Role:
    """`weekday_chance`: on a weekday.

    Times in minutes of the day: mean and spread. `own_place_chance`: how often at their own place.
    """

    share: float
    weekday_chance: float
    arrives: tuple[float, float]
    stays: tuple[float, float]
    own_place_chance: float
    likes: tuple[float, ...]


# likes in the order of RegionKind: class rooms, labs, lounges, corridors, offices, meeting rooms
_STUDENT = _Role(0.40, 0.72, (570, 80), (370, 110), 0.0, (0.25, 0.2, 0.35, 0.15, 0.0, 0.05))
_IN_LABORATORY = _Role(0.22, 0.75, (590, 80), (500, 100), 0.7, (0.15, 0.15, 0.4, 0.2, 0.1, 0.0))
_FACULTY = _Role(0.14, 0.75, (540, 50), (510, 90), 0.72, (0.05, 0.3, 0.2, 0.2, 0.0, 0.25))
_STAFF = _Role(0.09, 0.9, (490, 25), (520, 40), 0.8, (0.0, 0.1, 0.35, 0.3, 0.0, 0.25))
_VISITOR = _Role(0.15, 0.2, (720, 110), (100, 40), 0.0, (0.0, 0.0, 0.25, 0.3, 0.15, 0.3))
_ROLES = (_STUDENT, _IN_LABORATORY, _FACULTY, _STAFF, _VISITOR)
ROLE_NAMES = ("student", "student", "faculty", "staff", "visitor")
_WITH_LECTURES = 2  # the first two roles
_OWN_PLACE = {1: RegionKind.LAB, 2: RegionKind.OFFICE, 3: RegionKind.OFFICE}


@dataclass(frozen=True, slots=True)
class Lecture:
    """A weekly lecture of one group.

    `region` is its number in the plan. `weekday` counts from Monday 0, and the times are ticks of the day.
    """

    region: int
    weekday: int
    start: int
    stop: int
    group: int


@dataclass(frozen=True, slots=True, eq=False)
class Building:
    """A building with its people. `counts` has shape (rooms, days, ticks of a day).

    `places` (people, ticks) has the rooms of the last Wednesday, or `NOBODY` for a person who is out. The last
    `days_played` days are private; all days before them are known.
    """

    seed: int
    tick_minutes: int
    days_played: int
    plan: FloorPlan
    counts: Rooms
    lectures: tuple[Lecture, ...]
    places: Rooms
    roles: tuple[str, ...]

    @property
    def ticks_a_day(self) -> int:
        """The number of ticks of a day."""
        return MINUTES_A_DAY // self.tick_minutes

    @property
    def days_known(self) -> int:
        """The number of days in the past."""
        return int(self.counts.shape[1]) - self.days_played

    @property
    def played_counts(self) -> Rooms:
        """The counts of the private days."""
        return self.counts[:, self.days_known :]

    @property
    def known_counts(self) -> Rooms:
        """The counts of the days that everybody knows."""
        return self.counts[:, : self.days_known]

    def average_known_week(self, number: int) -> Floats:
        """Return the mean number of people at a place, by tick of the week, in the known past."""
        past = self.plan.add_up(self.known_counts, number)
        return np.asarray(past.reshape(-1, DAYS_A_WEEK * self.ticks_a_day).mean(axis=0))

    def measure_usual_occupancy(self, number: int) -> tuple[float, float]:
        """Return the mean and the standard deviation of the people at a place, over the ticks of working days.

        Only the known past is used.
        """
        past = self.plan.add_up(self.known_counts, number)
        start, stop = (minutes // self.tick_minutes for minutes in BY_DAY)
        working = past[[day for day in range(self.days_known) if day % DAYS_A_WEEK < WORKING_DAYS], start:stop]
        return float(working.mean()), float(working.std())


def draw_building(*, seed: int, people: int, tick_minutes: int, days_known: int, days_played: int) -> Building:
    """Draw the building of a seed.

    Parameters:
        seed: not negative.
        people: all who ever come; some 500 of 900 come on a weekday.
        tick_minutes: 5 or 10.
        days_known, days_played: whole weeks each, so that both begin on a Monday.

    Raises:
        ValueError: a parameter outside its range.
    """
    if tick_minutes not in (5, 10) or people < len(_ROLES) or seed < 0:
        raise ValueError("a building has people, a seed that is not negative, and ticks of 5 or 10 minutes")
    if days_known % DAYS_A_WEEK or days_played % DAYS_A_WEEK or days_played < DAYS_A_WEEK:
        raise ValueError("days known and days played are whole weeks")
    rng = np.random.default_rng((seed, people, tick_minutes, days_known, days_played))
    plan = draw_floor_plan()
    population = _Population(plan, people=people, rng=rng)
    lectures = _draw_lectures(plan, tick_minutes=tick_minutes, rng=rng)
    days = days_known + days_played
    ticks = MINUTES_A_DAY // tick_minutes
    counts = np.zeros((len(plan.rooms), days, ticks), dtype=np.int16)
    remembered = np.full((people, ticks), NOBODY, dtype=np.int16)
    for day in range(days):
        who, where = population.draw_day(day % DAYS_A_WEEK, lectures, tick_minutes=tick_minutes, rng=rng)
        _count_people(where, counts[:, day])
        if day == days - WORKING_DAYS:  # the Wednesday of the last week
            remembered[who] = where
    return Building(
        seed=seed,
        tick_minutes=tick_minutes,
        days_played=days_played,
        plan=plan,
        counts=counts,
        lectures=lectures,
        places=remembered,
        roles=tuple(ROLE_NAMES[role] for role in population.roles),
    )


class _Population:
    """The people who come, with their roles and preferences."""

    def __init__(self, plan: FloorPlan, *, people: int, rng: np.random.Generator) -> None:
        sizes = [round(people * role.share) for role in _ROLES[1:]]
        self.roles = np.repeat(np.arange(len(_ROLES)), [people - sum(sizes), *sizes]).tolist()
        role = np.array(self.roles)
        rooms = {kind: _list_rooms(plan, kind) for kind in RegionKind}
        self._own = np.zeros(people, dtype=np.int64)
        for number, kind in _OWN_PLACE.items():
            mine = np.flatnonzero(role == number)
            self._own[mine] = rng.choice(rooms[kind], size=mine.size)
        self._group = np.where(role < _WITH_LECTURES, rng.integers(0, _GROUPS, size=people), -1)
        liked = rng.lognormal(sigma=0.45, size=len(plan.rooms))
        self._cumulative = [_accumulate_likes(each.likes, rooms, liked) for each in _ROLES]
        self._comes = np.array([each.weekday_chance for each in _ROLES])[role]
        self._arrives = np.array([each.arrives for each in _ROLES])[role]
        self._stays = np.array([each.stays for each in _ROLES])[role]
        self._own_share = np.array([each.own_place_chance for each in _ROLES])[role]
        self._role = role
        self._floors: FloorPlan = plan

    def draw_day(
        self, weekday: int, lectures: Sequence[Lecture], *, tick_minutes: int, rng: np.random.Generator
    ) -> tuple[Counts, Rooms]:
        """Draw who is in the building on a day, and the room of each person at each tick.

        The room is `NOBODY` before arrival and after departure.
        """
        comes = self._comes * (1.0 if weekday < WORKING_DAYS else _WEEKEND)
        who = np.flatnonzero(rng.random(comes.size) < comes)
        ticks = MINUTES_A_DAY // tick_minutes
        minutes = np.arange(ticks) * tick_minutes
        arrives = rng.normal(*self._arrives[who].T) + _LATE_BY * (rng.random(who.size) < _LATE)
        leaves = arrives + np.maximum(30.0, rng.normal(*self._stays[who].T))
        inside = (minutes >= arrives[:, None]) & (minutes < leaves[:, None])
        overnight = (rng.random(who.size) < _OVERNIGHT) & (self._role[who] == 1)
        inside |= overnight[:, None] & (minutes < rng.uniform(30, 240, size=who.size)[:, None])
        where = self._draw_walks(who, ticks, tick_minutes=tick_minutes, rng=rng)
        where[~inside] = NOBODY
        for lecture in lectures:
            if lecture.weekday == weekday:
                there = (self._group[who] == lecture.group) & (rng.random(who.size) < _ATTENDING)
                where[there, lecture.start : lecture.stop] = self._draw_lecture_room(lecture)
        return who, where

    def _draw_lecture_room(self, lecture: Lecture) -> int:
        return int(self._floors.places[lecture.region].start)

    def _draw_walks(self, who: Counts, ticks: int, *, tick_minutes: int, rng: np.random.Generator) -> Rooms:
        """Draw a room for each person at each tick. A person stays in each room for a while."""
        drawn = rng.random((who.size, ticks))
        chosen = np.zeros(drawn.shape, dtype=np.int16)
        for role, cumulative in enumerate(self._cumulative):
            mine = self._role[who] == role
            chosen[mine] = np.searchsorted(cumulative, drawn[mine], side="right")
        at_own = rng.random(drawn.shape) < self._own_share[who][:, None]
        chosen = np.where(at_own, self._own[who][:, None].astype(np.int16), chosen)
        moves = rng.random(drawn.shape) < tick_minutes / _STAY_MINUTES
        since = np.maximum.accumulate(np.where(moves, np.arange(ticks), 0), axis=1)
        return np.take_along_axis(chosen, since, axis=1)


def _list_rooms(plan: FloorPlan, kind: RegionKind) -> Counts:
    return np.array([plan.places[number].start for number in plan.rooms if plan.places[number].kind is kind])


def _accumulate_likes(likes: tuple[float, ...], rooms: dict[RegionKind, Counts], liked: Floats) -> Floats:
    """Return the cumulative distribution, over rooms, of where a person of a role goes next.

    The last entry, which is 1, is left out.
    """
    chances = np.zeros(liked.size)
    for kind, share in zip(RegionKind, likes, strict=True):
        of_kind = rooms[kind]
        chances[of_kind] += share * liked[of_kind] / liked[of_kind].sum()
    return np.asarray(np.cumsum(chances)[:-1] / chances.sum())


def _draw_lectures(plan: FloorPlan, *, tick_minutes: int, rng: np.random.Generator) -> tuple[Lecture, ...]:
    """Draw a lecture for each group on each morning and afternoon. No class room has two at the same half of a day."""
    class_rooms = plan.list_regions_of_kind(RegionKind.CLASS_ROOM)
    found = []
    for weekday in range(WORKING_DAYS):
        for earliest in (8 * 60, 13 * 60):
            dealt = rng.permutation(class_rooms)
            for group in range(_GROUPS):
                start = earliest + 10 * int(rng.integers(0, 16))
                stop = start + int(rng.choice([50, 80, 110]))
                found.append(Lecture(int(dealt[group]), weekday, start // tick_minutes, stop // tick_minutes, group))
    return tuple(found)


def _count_people(where: Rooms, into: Rooms) -> None:
    """Add the number of people in each room at each tick to `into`, of shape (rooms, ticks)."""
    rooms, ticks = into.shape
    people, at = np.nonzero(where != NOBODY)
    into += np.bincount(where[people, at].astype(np.int64) * ticks + at, minlength=rooms * ticks).reshape(rooms, ticks)
