"""A playground whose clock goes on when it is told to, over buildings that are drawn once a process."""

from pathlib import Path

from proxy.play.game_sessions import BuildingCache, GameSessions
from proxy.play.leader_board import LeaderBoard
from tests.seeded_noise import SeededNoise

BUILDINGS = BuildingCache()
SEED = 1


class Clock:
    """Seconds that go on when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def open_playground(directory: Path, clock: Clock) -> GameSessions:
    """Sessions with a leader board in a folder, and noise that is the same in each run."""
    board = LeaderBoard(directory / "play" / "board.sqlite")
    return GameSessions(board, noise=SeededNoise(1), clock=clock, buildings=BUILDINGS)
