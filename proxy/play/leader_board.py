"""The leader board and the traces of ended sessions, in a SQLite file of this machine.

Players type their names, which are text; there are no accounts. Both tables keep a bounded number of rows: the board
the best, the traces the latest.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_SCORES = 500  # that are kept; a page shows twenty
MOST_TRACES = 200  # that are kept: some dozen megabytes at most

_TABLES = (
    "CREATE TABLE IF NOT EXISTS scores (id INTEGER PRIMARY KEY, name TEXT NOT NULL, points REAL NOT NULL,"
    " rounds INTEGER NOT NULL, seed INTEGER NOT NULL, ended_at TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS traces (id INTEGER PRIMARY KEY, lines TEXT NOT NULL)",
)


@dataclass(frozen=True, slots=True)
class Score:
    """One session's result; `ended_at` is a time of day in UTC, ISO 8601."""

    name: str
    points: float
    rounds: int
    seed: int
    ended_at: str


class LeaderBoard:
    """A leader board in an SQLite file, which is created if it is missing.

    Every call opens the file again, so that several processes may share it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, score: Score, trace: Sequence[Mapping[str, Any]]) -> None:
        """Write a result and its trace, and delete the rows beyond the bounds."""
        header = {"name": score.name, "points": score.points, "rounds": score.rounds, "ended_at": score.ended_at}
        lines = "\n".join(json.dumps(line) for line in ({"action": "session", **header}, *trace))
        with closing(self._open_database()) as connection, connection:
            connection.execute(
                "INSERT INTO scores (name, points, rounds, seed, ended_at) VALUES (?, ?, ?, ?, ?)",
                (score.name, score.points, score.rounds, score.seed, score.ended_at),
            )
            connection.execute("INSERT INTO traces (lines) VALUES (?)", (lines,))
            connection.execute(
                "DELETE FROM scores WHERE id NOT IN (SELECT id FROM scores ORDER BY points DESC, id LIMIT ?)",
                (MOST_SCORES,),
            )
            connection.execute(
                "DELETE FROM traces WHERE id NOT IN (SELECT id FROM traces ORDER BY id DESC LIMIT ?)", (MOST_TRACES,)
            )

    def list_best(self, limit: int) -> tuple[Score, ...]:
        """Return the best results, best first. Of equal results, the earlier one comes first."""
        with closing(self._open_database()) as connection:
            found = connection.execute(
                "SELECT name, points, rounds, seed, ended_at FROM scores ORDER BY points DESC, id LIMIT ?", (limit,)
            )
            return tuple(Score(*row) for row in found)

    def read_traces(self) -> Iterator[str]:
        """Yield every kept trace as JSON lines; each begins with a line about its session."""
        with closing(self._open_database()) as connection:
            yield from (f"{lines}\n" for (lines,) in connection.execute("SELECT lines FROM traces ORDER BY id"))

    def _open_database(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._path, timeout=10)
        with connection:
            for table in _TABLES:
                connection.execute(table)
        return connection
