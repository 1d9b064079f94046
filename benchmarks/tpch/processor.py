"""Processor seconds of this process and of PostgreSQL servers beside it: a busy machine stretches the clock alone.

A server starts a process for each session and for each parallel worker. Linux adds the time of one that has ended to
its parent's, so that nothing is lost between two readings.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

_TICKS = os.sysconf("SC_CLK_TCK")  # a second
_PARENT, _OWN, _ENDED = 1, slice(11, 13), slice(13, 15)  # places in /proc/PID/stat behind the name of the program


@dataclass(frozen=True, slots=True)
class Processor:
    """The processor time of this process and of servers, each by the number of its first process."""

    servers: tuple[int, ...]

    def measure_used_s(self) -> float:
        """Return the seconds used so far, by all of them together. Without /proc only this process is seen."""
        ticks = 0
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, IndexError, ValueError):  # it has ended meanwhile
                fields = _read_fields(folder)
                if int(folder.name) in self.servers:
                    ticks += sum(map(int, (*fields[_OWN], *fields[_ENDED])))
                elif int(fields[_PARENT]) in self.servers:
                    ticks += sum(map(int, fields[_OWN]))
        return time.process_time() + ticks / _TICKS


def find_server(connection: "psycopg.Connection[tuple[Any, ...]]") -> int:
    """Return the first process of the server behind a connection, which lies on this machine; 0 without /proc."""
    found = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert found is not None
    with suppress(OSError):
        return int(_read_fields(Path(f"/proc/{found[0]}"))[_PARENT])
    return 0


def _read_fields(folder: Path) -> list[str]:
    return (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
