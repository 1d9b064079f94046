"""A building of six floors and 64 regions, each with one room or several, and the containment of these places.

Rooms are in order of floor and region, so the rooms of a place are always a range.

Reference: Ghayyur's thesis, chapter 3 (six floors, 64 access points) and chapter 4 (64 regions and their kinds).
"""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.streams.hierarchy import Hierarchy

FLOORS = 6  # of the papers' building

Counts = npt.NDArray[np.int64]


class Level(Enum):
    """The level at which people are counted."""

    BUILDING = "building"
    FLOOR = "floor"
    REGION = "region"
    ROOM = "room"


class RegionKind(Enum):
    """The purpose of a region."""

    CLASS_ROOM = "class room"
    LAB = "lab"
    LOUNGE = "lounge"
    CORRIDOR = "corridor"
    OFFICE = "offices"
    MEETING_ROOM = "meeting room"


@dataclass(frozen=True, slots=True)
class _Share:
    kind: RegionKind
    regions: int
    rooms: int
    capacities: tuple[int, ...]  # of one room, dealt out in turn


_SHARES = (
    _Share(RegionKind.CLASS_ROOM, 14, 1, (60, 45, 80, 50)),
    _Share(RegionKind.LAB, 12, 2, (24, 30)),
    _Share(RegionKind.LOUNGE, 5, 1, (60,)),
    _Share(RegionKind.CORRIDOR, 6, 1, (40,)),
    _Share(RegionKind.OFFICE, 21, 4, (5,)),
    _Share(RegionKind.MEETING_ROOM, 6, 1, (60, 20, 25, 30)),
)

OPEN_TO_STUDENTS = frozenset({RegionKind.CLASS_ROOM, RegionKind.LAB, RegionKind.LOUNGE, RegionKind.CORRIDOR})
"""37 regions."""


@dataclass(frozen=True, slots=True)
class PlaceOfPlan:
    """A room, or a place that contains rooms: those with the numbers from `start` to before `stop`.

    `capacity` is the number of people that the fire code allows in it.
    """

    name: str
    level: Level
    start: int
    stop: int
    capacity: int
    kind: RegionKind | None
    parent: int

    @property
    def rooms(self) -> slice:
        """The range of numbers of the rooms in this place."""
        return slice(self.start, self.stop)


@dataclass(frozen=True)
class FloorPlan:
    """All places of a building: the building first, then floors, regions and rooms, each in order."""

    places: tuple[PlaceOfPlan, ...]

    @cached_property
    def rooms(self) -> tuple[int, ...]:
        """The numbers of the places that are rooms."""
        return self.list_level(Level.ROOM)

    @cached_property
    def regions(self) -> tuple[int, ...]:
        """The numbers of the places that are regions."""
        return self.list_level(Level.REGION)

    def list_level(self, level: Level) -> tuple[int, ...]:
        """Return the numbers of the places at a level."""
        return tuple(number for number, place in enumerate(self.places) if place.level is level)

    def list_regions_of_kind(self, kind: RegionKind) -> tuple[int, ...]:
        """Return the numbers of the regions of a kind."""
        return tuple(number for number in self.regions if self.places[number].kind is kind)

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The containment of places, in the form that hierarchical mechanisms use."""
        return Hierarchy(parents=tuple(place.parent for place in self.places))

    def add_up(self, of_rooms: npt.NDArray[Any], number: int) -> Counts:
        """Return the counts of one place, summed over its rooms (the first axis)."""
        return np.asarray(of_rooms[self.places[number].rooms].sum(axis=0, dtype=np.int64))


def draw_floor_plan() -> FloorPlan:
    """Return the one floor plan. A seed changes the people and their days, never the walls.

    >>> plan = draw_floor_plan()
    >>> len(plan.regions), len(plan.rooms), len(plan.list_level(Level.FLOOR)), plan.hierarchy.levels
    (64, 139, 6, 4)
    """
    dealt: list[list[tuple[_Share, int]]] = [[] for _ in range(FLOORS)]
    for share in _SHARES:
        for number in range(share.regions):
            dealt[number % FLOORS].append((share, number))
    counted = [sum(share.rooms for share, _ in floor) for floor in dealt]
    ends = list(accumulate(counted))
    floors: list[PlaceOfPlan] = []
    regions: list[PlaceOfPlan] = []
    rooms: list[PlaceOfPlan] = []
    first_region, first_room, start = 1 + FLOORS, 1 + FLOORS + sum(map(len, dealt)), 0
    for floor, content in enumerate(dealt):
        capacity = 0
        for share, number in content:
            each = share.capacities[number % len(share.capacities)]
            name = _name_region(share, number, floor)
            stop = start + share.rooms
            region = first_region + len(regions)
            whole = each * share.rooms
            regions.append(PlaceOfPlan(name, Level.REGION, start, stop, whole, share.kind, 1 + floor))
            for room in range(share.rooms):
                called = name if share.rooms == 1 else f"{name}, {'abcd'[room]}"
                rooms.append(PlaceOfPlan(called, Level.ROOM, start + room, start + room + 1, each, share.kind, region))
            start, capacity = stop, capacity + whole
        floors.append(
            PlaceOfPlan(f"Floor {floor + 1}", Level.FLOOR, ends[floor] - counted[floor], ends[floor], capacity, None, 0)
        )
    building = PlaceOfPlan("Building", Level.BUILDING, 0, start, sum(floor.capacity for floor in floors), None, -1)
    assert first_room == 1 + len(floors) + len(regions), "rooms come after what contains them"
    return FloorPlan(places=(building, *floors, *regions, *rooms))


def _name_region(share: _Share, number: int, floor: int) -> str:
    """Return a region's name: its kind, and a number that begins with the floor."""
    if share.kind is RegionKind.MEETING_ROOM and number == 0:
        return "Main conference room"
    if share.kind is RegionKind.CORRIDOR:
        return f"Corridor {floor + 1}"
    return f"{share.kind.value.capitalize()} {floor + 1}{number // FLOORS + 1:02}"
