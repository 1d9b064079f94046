"""Synthetic occupancy: visits to the rooms of a campus, hour by hour, with who came.

It stands in for the UCI occupancy data of the papers, which is not public. What it draws, in this order:

* **41 rooms** of five kinds (lecture halls, class rooms, laboratories, meeting rooms, offices), each with a capacity
  uniform in its kind's range. Kinds are dealt out in fixed numbers.
* **14 days**, Monday to Sunday twice, of **15 hours**, 7 to 22. A kind has a curve over the hours (lectures peak at
  10 and 14, laboratories in the afternoon, offices are flat from 9 to 17, meeting rooms peak at 11 and 15) and a
  factor for weekends between 0.04 and 0.35.
* Every room has a popularity (log-normal, 35 %), every room and day a shock (gamma, 25 %: a cancelled class, an
  event), every hour a shock of its own (gamma, 30 %): so counts are over-dispersed beyond Poisson on three scales.
* The visits of an hour are Poisson around `0.55 capacity * curve * weekend * popularity * shocks`; now and then (one
  room and hour in 120 on weekdays) a crowd of 0.7 to 1.3 times the capacity comes.
* Attributes per visit: student, woman, aged 18 to 24, of the building's own group, in the evening (a fact of the
  hour), each drawn with a share that the room has (beta law around the kind's mean).

One record is one visit, so every count has sensitivity one. The law is public; the seed alone makes the rows.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.experiments.measures import Measures
from mechanisms.formula import Integers

ROOMS = 41
BUILDINGS = 24
DAYS = 14
HOURS = range(7, 22)
EVENING = 18
WEDNESDAY, SATURDAY = 2, 5

_CROWDED = 1 / 120


class _Kind(NamedTuple):
    name: str
    rooms: int
    capacity: tuple[int, int]
    peaks: tuple[int, ...]
    width: float
    weekend: float
    students: float


_KINDS = (
    _Kind("lecture hall", 5, (120, 240), (10, 14), 1.8, 0.08, 0.92),
    _Kind("class room", 12, (35, 70), (10, 14), 2.4, 0.10, 0.88),
    _Kind("laboratory", 9, (20, 45), (15,), 3.2, 0.35, 0.70),
    _Kind("meeting room", 7, (12, 30), (11, 15), 2.0, 0.04, 0.35),
    _Kind("office", 8, (15, 40), (10, 13, 16), 2.6, 0.12, 0.20),
)

_FUNCTIONALS = ("visits", "by students", "by women", "aged 18 to 24", "of the own group", "in the evening")


@dataclass(frozen=True, slots=True)
class Occupancy:
    """`visits` has shape (attributes, rooms, days, hours), the first attribute all visits; `capacity` (rooms,)."""

    visits: npt.NDArray[np.int64]
    capacity: Integers


def draw_occupancy(*, seed: int, rooms: int = ROOMS, days: int = DAYS) -> Occupancy:
    """Draw the campus; the first rooms of every kind are dealt out in turn, so that any number of rooms is mixed."""
    rng = np.random.default_rng(seed)
    kinds = _deal_kinds(rooms)
    capacity = np.array([rng.integers(*kind.capacity, endpoint=True) for kind in kinds], dtype=np.int64)
    curve = np.array([_make_curve(kind) for kind in kinds])
    weekend = np.array([[1.0 if day % 7 < 5 else kind.weekend for day in range(days)] for kind in kinds])
    popularity = rng.lognormal(sigma=0.35, size=rooms)
    shock = rng.gamma(16.0, 1 / 16.0, size=(rooms, days))
    hourly = rng.gamma(11.0, 1 / 11.0, size=(rooms, days, len(HOURS)))
    expected = 0.55 * (capacity * popularity)[:, None, None] * curve[:, None, :] * (weekend * shock)[:, :, None]
    visits = rng.poisson(expected * hourly)
    crowd = rng.random(visits.shape) < _CROWDED * weekend[:, :, None]
    visits += np.where(crowd, (capacity[:, None, None] * rng.uniform(0.7, 1.3, visits.shape)).astype(np.int64), 0)
    shares = _draw_shares(kinds, rng)
    attributes = [rng.binomial(visits, share[:, None, None]) for share in shares]
    evening = visits * (np.array(HOURS) >= EVENING)
    return Occupancy(visits=np.stack([visits, *attributes, evening]).astype(np.int64), capacity=capacity)


def name_kinds(*, rooms: int) -> list[str]:
    """What kind of room each is."""
    return [kind.name for kind in _deal_kinds(rooms)]


def count_rooms_by_day(*, seed: int) -> Measures:
    """ProBE's keys: 41 rooms x 14 days, six counts of one day's visits."""
    daily = draw_occupancy(seed=seed).visits.sum(axis=3)
    return Measures(
        name="occupancy",
        origin="synthetic, benchmarks/experiments/occupancy.py",
        functionals=_FUNCTIONALS,
        aggregates=daily.reshape(len(_FUNCTIONALS), -1),
        sensitivities=(1,) * 6,
        declared=(2500, 2500, 1500, 2000, 1500, 800),
        typed=(250, 200, 120, 150, 100, 50),
        bands=(25, 20, 12, 15, 10, 5),
    )


def count_buildings_by_hour(*, seed: int, day: int, share: float) -> Integers:
    """MIDE's Q1 and Q2: per building and hour of one day, the people above `share` of its capacity; (1, keys)."""
    drawn = draw_occupancy(seed=seed, rooms=BUILDINGS)
    threshold = np.floor(share * drawn.capacity).astype(np.int64)
    above = drawn.visits[0, :, day, :] - threshold[:, None]
    return np.asarray(above.reshape(1, -1), dtype=np.int64)


def _deal_kinds(rooms: int) -> list[_Kind]:
    order = sorted((place / kind.rooms, number) for number, kind in enumerate(_KINDS) for place in range(kind.rooms))
    return [_KINDS[order[room % len(order)][1]] for room in range(rooms)]


def _make_curve(kind: _Kind) -> npt.NDArray[np.float64]:
    hours = np.array(HOURS, dtype=np.float64)
    humps = sum((np.exp(-0.5 * ((hours - peak) / kind.width) ** 2) for peak in kind.peaks), np.zeros(hours.size))
    return np.asarray(humps / humps.max())


def _draw_shares(kinds: list[_Kind], rng: np.random.Generator) -> list[npt.NDArray[np.float64]]:
    """Per attribute but the first and last, each room's share: student, woman, 18 to 24, own group."""
    students = np.array([kind.students for kind in kinds])
    means = (students, np.full(len(kinds), 0.45), 0.75 * students, 0.55 - 0.35 * students)
    return [np.asarray(rng.beta(20.0 * mean, 20.0 * (1.0 - mean))) for mean in means]
