"""All players' game sessions, in bounded memory.

A session holds what was published to it, at most six megabytes if a player looks at every place of every day. At most
`MOST_SESSIONS` exist at once, and `MOST_PER_PLAYER` of one login. A session that is over is dropped for a new one.
Buildings are drawn once for each seed, and the last few are kept.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock, RLock

import numpy as np

from mechanisms.protocol import Noise
from proxy.play.building import Building, draw_building
from proxy.play.game import GameSession, NotAllowedNow
from proxy.play.leader_board import LeaderBoard, Score

MOST_SESSIONS = 24  # six megabytes each at most
MOST_PER_PLAYER = 6  # a browser's windows; the earliest makes place
MOST_NAME = 40  # characters
SEEDS = 1 << 32  # more than anybody tries; a player cannot guess the one that is played

PEOPLE, TICK_MINUTES, DAYS_KNOWN, DAYS_PLAYED = 900, 5, 28, 21
"""Of the game's building, as in chapter 3: five-minute intervals, and three weeks to look at."""

ATTACKED_PEOPLE, ATTACKED_MINUTES, ATTACKED_KNOWN = 420, 10, 84
"""Of the building that is attacked, as in chapter 4: ten-minute intervals, and twelve weeks of past."""

_MOST_BUILDINGS = 4  # each a dozen megabytes


class BuildingCache:
    """A cache of buildings by seed. Only one building is drawn at a time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, bool], Building] = OrderedDict()
        self._lock = Lock()

    def find_played_building(self, seed: int) -> Building:
        """Return the building that is played with this seed."""
        return self._find_building(seed, attacked=False)

    def find_attacked_building(self, seed: int) -> Building:
        """Return the building for the attackers' page. It has other people and days than the game's buildings.

        So it reveals nothing about a game's people.
        """
        return self._find_building(seed, attacked=True)

    def _find_building(self, seed: int, *, attacked: bool) -> Building:
        if not 0 <= seed < SEEDS:
            raise ValueError(f"a seed is a whole number from 0 to {SEEDS - 1}")
        with self._lock:
            found = self._kept.pop((seed, attacked), None) or _draw_from_seed(seed, attacked=attacked)
            self._kept[seed, attacked] = found
            if len(self._kept) > _MOST_BUILDINGS:
                self._kept.popitem(last=False)
            return found


def _draw_from_seed(seed: int, *, attacked: bool) -> Building:
    if attacked:
        return draw_building(
            seed=seed, people=ATTACKED_PEOPLE, tick_minutes=ATTACKED_MINUTES, days_known=ATTACKED_KNOWN, days_played=7
        )
    return draw_building(
        seed=seed, people=PEOPLE, tick_minutes=TICK_MINUTES, days_known=DAYS_KNOWN, days_played=DAYS_PLAYED
    )


@dataclass(slots=True, eq=False)
class SessionEntry:
    """A session, its player, and the lock that every access takes.

    `has_shared_seed` is True if the player named the seed.
    """

    key: str
    player: str
    session: GameSession
    has_shared_seed: bool
    is_on_board: bool = False
    lock: RLock = field(default_factory=RLock)


class GameSessions:
    """All game sessions of a process.

    Parameters:
        clock: returns seconds that only increase, by which sessions are timed.
        noise: the noise that protects. Each session draws its own.
    """

    def __init__(
        self, board: LeaderBoard, *, noise: Noise, clock: Callable[[], float], buildings: BuildingCache | None = None
    ) -> None:
        self.board = board
        self.noise = noise
        self.clock = clock
        self.buildings = buildings or BuildingCache()
        self._seats: OrderedDict[str, SessionEntry] = OrderedDict()
        self._lock = Lock()

    def begin(self, player: str, *, name: str, teaching: bool, seed: int | None) -> SessionEntry:
        """Begin a new session.

        Parameters:
            player: whose login it is; the name on the board is typed.
            seed: whose building is played, None for one that nobody knows until the session has ended.

        Raises:
            NotAllowedNow: as many are being played as there may be.
            ValueError: a name that is empty or too long, a seed outside its range.
        """
        name = " ".join(name.split())
        if not 1 <= len(name) <= MOST_NAME or not name.isprintable():
            raise ValueError(f"a name has 1 to {MOST_NAME} characters that one can see")
        self._make_room_for(player)
        building = self.buildings.find_played_building(secrets.randbelow(SEEDS) if seed is None else seed)
        session = GameSession(
            name=name,
            building=building,
            teaching=teaching,
            noise=self.noise,
            generator=np.random.default_rng(),
            began=self.clock(),
        )
        seat = SessionEntry(secrets.token_urlsafe(16), player, session, has_shared_seed=seed is not None)
        with self._lock:
            self._seats[seat.key] = seat
        return seat

    def find(self, player: str, key: str) -> SessionEntry:
        """Return a game session by its key, whichever player began it.

        Raise NotAllowedNow if no session has this key.
        """
        with self._lock:
            seat = self._seats.get(key)
        if seat is None or seat.player != player:
            raise NotAllowedNow("there is no such session any more: begin another one")
        return seat

    def finish(self, seat: SessionEntry) -> None:
        """End a session. If the player has answered anything, write the result on the leader board, once."""
        with seat.lock:
            session = seat.session
            session.end(self.clock())
            if seat.is_on_board or not session.rounds_done:
                return
            seat.is_on_board = True
            at = datetime.now(UTC).isoformat(timespec="seconds")
            score = Score(session.name, session.points, session.rounds_done, session.building.seed, at)
            self.board.add(score, session.trace)

    def _make_room_for(self, player: str) -> None:
        """Delete finished sessions, and the player's own oldest one if the player has too many."""
        now = self.clock()
        with self._lock:
            seats = list(self._seats.values())
        for seat in seats:
            if seat.session.is_over(now):
                self.finish(seat)
        with self._lock:
            own = [seat for seat in self._seats.values() if seat.player == player]
            for seat in own[: max(0, len(own) - MOST_PER_PLAYER + 1)]:
                del self._seats[seat.key]
            if len(self._seats) >= MOST_SESSIONS:
                over = next((seat for seat in self._seats.values() if seat.session.is_over(now)), None)
                if over is None:
                    raise NotAllowedNow("as many play as may at once: try again in a few minutes")
                del self._seats[over.key]
