"""The embedded PostgreSQL server that serves as the shadow. It has no data, no network, and no log of SQL."""

import os
import re
import subprocess
from pathlib import Path
from types import TracebackType

from planner.errors import KeyholeError
from proxy.shadow.address import OWNER, ShadowAddress
from proxy.shadow.binaries import PostgresPrograms, check_server_files
from proxy.shadow.wheel import (
    make_data,
    make_postgres_server,
    read_wheel_release,
    start_with_memory_limit,
    stop_immediately,
)

_LONGEST_SOCKET_PATH = 103  # what every system has room for in an address: 104 bytes with the NUL on macOS
_INFORMATION_TABLES = 4  # of the information schema; of the catalog itself nothing is noted
_LEAST_READ_LOCKS = 64  # PostgreSQL's own default
_MOST_READ_LOCKS = 500  # for 96 public tables, and some 60 MB of shared memory with the usual limits

_TRUST = "local all all trust\n"  # who may connect is said by the mode of the socket's folder
_OF_THE_MACHINE = re.compile(
    r"^(?:dynamic_shared_memory_type|(?:log_)?timezone|datestyle|lc_\w+|default_text_search_config)\s*=.*$",
    re.IGNORECASE | re.MULTILINE,
)
"""The findings of initdb. All else in the file that it writes is that PostgreSQL's maker's: libraries to load, say."""

CONFIGURATION = {
    "port": "5432",  # whatever the environment says
    # nothing here is worth a sync: it is rebuilt from the policy. It is written at each commit all the same: when a
    # session is killed the server starts again, and needs it whole
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "32MB",
    "max_wal_size": "64MB",
    "shared_buffers": "32MB",
    "max_locks_per_transaction": "128",  # so that all sessions together can lock all there is, and stop nobody
    # so that what a serializable transaction has read is one lock a table, however it was read: see `_count_read_locks`
    "max_pred_locks_per_relation": "0",
    "max_pred_locks_per_page": "0",
    "unix_socket_permissions": "0700",
    "jit": "off",
    # a session may switch it on, but there is no such library and none is loaded: compiling hears of no timeout, and
    # takes memory as it likes
    "jit_provider": "none",
    "lc_messages": "C",  # some builds are translated
    "max_parallel_workers_per_gather": "0",
    "client_connection_check_interval": "500ms",  # a client that hangs up leaves nothing running
    "log_statement": "none",
    "log_min_error_statement": "panic",  # a failed statement's text is the analyst's own business
    "log_min_messages": "fatal",
    "log_parameter_max_length_on_error": "0",
    # What is left is what no setting silences: whenever memory is short, a list of what holds it, pieces of statements
    # among them, as long and as often as an analyst likes. The collector throws away what comes after the start.
    "logging_collector": "on",
    "log_directory": "/dev",
    "log_filename": "null",
    "log_rotation_age": "0",
    "log_rotation_size": "0",
    "track_activity_query_size": "100B",
    "track_activities": "off",
    "track_counts": "off",  # which tables others read, and when; without it nothing is vacuumed, nor need be
    "password_encryption": "scram-sha-256",
}


class EmbeddedShadow:
    """A PostgreSQL server in `directory`. It is started on entry, and stopped on exit unless another process uses it.

    The server is the wheel's PostgreSQL, or that of `binaries`. Both run with the same configuration, whatever their
    own defaults are.

    The parent of `directory` must exist. As root the server runs as the operating-system user `pgserver`. This user is
    created, and every folder above `directory` is made traversable.

    The server admits `connections` at once. Each may have `session_memory_mb` of memory, and as much again of temporary
    files. All share the locks of serializable transactions. No connection can use up the locks that others need to read
    `public_tables` and the catalog.

    The socket lies inside the data directory, which only its owner may enter. This is the only access control for the
    shadow's `trust` authentication. A path too long for a socket is therefore refused (KH406); the socket is never
    moved elsewhere.
    """

    def __init__(
        self,
        directory: Path,
        *,
        connections: int = 300,
        session_memory_mb: int = 512,
        public_tables: int = 0,
        binaries: PostgresPrograms | None = None,
    ) -> None:
        self._binaries = binaries
        self._connections = connections
        self._public_tables = public_tables
        self._session_memory_mb = session_memory_mb
        self._directory = directory.expanduser().resolve()
        if len(str(self._directory / ".s.PGSQL.5432")) > _LONGEST_SOCKET_PATH:
            raise KeyholeError(
                "KH406",
                "the shadow's directory has a path too long for a Unix socket",
                hint="Choose a directory with a path of at most 89 characters.",
            )
        self._server = make_postgres_server(
            self._directory, cleanup_mode="stop", programs=None if binaries is None else binaries.directory
        )
        self.address = ShadowAddress(directory=self._directory, port=5432)

    @property
    def version(self) -> str:
        """The version of the PostgreSQL programs, as PostgreSQL writes it, such as `18.4`."""
        major, minor = read_wheel_release() if self._binaries is None else self._binaries.release
        return f"{major}.{minor}"

    def make_data(self) -> None:
        """Create the data directory if it does not exist. Raise KH406 if it cannot be created."""
        try:
            make_data(self._server)
        except (OSError, subprocess.SubprocessError):
            raise KeyholeError("KH406", "the shadow database could not be made") from None

    def start(self) -> None:
        """Create the data directory if it does not exist, and start the server if it is not running.

        Raise KH013 and KH406.
        """
        self.make_data()
        self._forget_dead_users()
        configuration = {
            **CONFIGURATION,
            "max_connections": str(self._connections),
            "max_pred_locks_per_transaction": str(_count_read_locks(self._public_tables)),
            "temp_file_limit": f"{self._session_memory_mb}MB",
        }
        lines = "".join(f"{name} = '{value}'\n" for name, value in configuration.items())
        (self._directory / "postgresql.auto.conf").write_text(lines, encoding="ascii")
        _keep_machine_settings(self._directory / "postgresql.conf")
        (self._directory / "pg_hba.conf").write_text(_TRUST, encoding="ascii")
        start_with_memory_limit(self._server, process_memory_mb=self._session_memory_mb)
        if self._binaries is not None:
            try:
                check_server_files(self.address.make_conninfo(user=OWNER, database="postgres"))
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """Stop the server, unless another process still uses it."""
        stop_immediately(self._server)

    def __enter__(self) -> "EmbeddedShadow":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _forget_dead_users(self) -> None:
        """Remove killed processes from the list of the server's users. Otherwise the server would never be stopped."""
        users = self._server.global_process_id_list
        for process in users.get_and_remove(0):
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                users.get_and_remove(process)
            except PermissionError:
                pass  # alive, and somebody else's


def _keep_machine_settings(file: Path) -> None:
    lines = _OF_THE_MACHINE.findall(file.read_text(encoding="utf-8", errors="replace"))
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _count_read_locks(public_tables: int) -> int:
    """Return how many read locks serializable transactions need for each connection.

    PostgreSQL remembers up to ten transactions for each connection. Ended ones stay while an earlier one is open. It
    has room for twice as many locks as are set. Each transaction may have read all tables.
    """
    return min(_MOST_READ_LOCKS, max(_LEAST_READ_LOCKS, 5 * (public_tables + _INFORMATION_TABLES)))
