from collections.abc import Callable
from pathlib import Path

import pytest

from proxy.play.building import Building
from proxy.play.game_sessions import BuildingCache, GameSessions
from tests.worlds.play_house import BUILDINGS, Clock, open_playground


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def buildings() -> BuildingCache:
    return BUILDINGS


@pytest.fixture
def hall(tmp_path: Path, clock: Clock) -> GameSessions:
    return open_playground(tmp_path, clock)


@pytest.fixture(scope="session")
def draw() -> Callable[[int], Building]:
    """The game's building of a seed, drawn once a process."""
    return BUILDINGS.find_played_building
