"""What hangs instead of dying: a PostgreSQL server that was stopped or whose answers get lost, a SQLite ledger that
another process has locked."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from psycopg.conninfo import conninfo_to_dict

from proxy.shadow.wheel import make_postgres_server
from tests.made_once.copied_data import make_data

_HOLDER = """
import sqlite3, sys
holder = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=600)
holder.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


class Server:
    """A PostgreSQL of a test's own, which others need not."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url = url
        self._directory = directory

    def stop(self) -> None:
        """SIGSTOP to the server and all its sessions: connections stay open, and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT to them."""
        self._signal(signal.SIGCONT)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """While the block runs it is stopped."""
        self.stop()
        try:
            yield
        finally:
            self.go_on()

    def _signal(self, number: signal.Signals) -> None:
        parent = int((self._directory / "postmaster.pid").read_text(encoding="utf-8").split()[0])
        os.kill(parent, number)  # first, so that it starts no more of them
        for child in (int(one) for one in _list_children(parent)):
            with suppress(ProcessLookupError):
                os.kill(child, number)


def _list_children(parent: int) -> list[str]:
    return [
        one
        for task in Path(f"/proc/{parent}/task").iterdir()
        for one in (task / "children").read_text(encoding="ascii").split()
    ]


@contextmanager
def own_server(*, standby_delay: str | None = None) -> Iterator[Server]:
    """A server with the default settings of PostgreSQL, but for syncs; a standby with `standby_delay`."""
    # not below pytest's own folder, which another run of pytest closes to other users
    with tempfile.TemporaryDirectory(prefix="keyhole-") as folder:
        Path(folder).chmod(0o755)
        directory = Path(folder) / "data"
        server = make_postgres_server(directory, cleanup_mode="stop")
        make_data(server)
        with (directory / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write("fsync = off\n")
            if standby_delay is not None:
                settings.write(f"recovery_min_apply_delay = '{standby_delay}'\n")
                (directory / "standby.signal").touch()
        server.start()
        try:
            yield Server(server.get_uri(), directory)
        finally:
            server.cleanup()


@contextmanager
def locked_file(ledger_url: str) -> Iterator[None]:
    """While the block runs another process is the writer of a SQLite ledger, and does nothing."""
    file = ledger_url.removeprefix("sqlite:///")
    arguments = (sys.executable, "-c", _HOLDER, file)
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield
        finally:
            holder.kill()


class Partition:
    """A way to a server's socket on which, once it is `cut`, nothing comes back; what is sent arrives all the same."""

    def __init__(self, server_url: str, directory: Path) -> None:
        self.is_cut = False
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._there = conninfo_to_dict(server_url)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(directory / ".s.PGSQL.5432"))
        self._listening.listen()
        self.url = urlsplit(server_url)._replace(query=f"host={directory}").geturl()
        self._start(self._accept)

    def cut(self) -> None:
        """From now on nothing comes back."""
        self.is_cut = True

    def close(self) -> None:
        for one in (self._listening, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # whoever waits for it in a thread goes on, and ends
        for carrying in self._threads:
            carrying.join()
        for one in (self._listening, *self._open):
            one.close()

    def _start(self, *arguments: Any) -> None:
        thread = threading.Thread(target=arguments[0], args=arguments[1:], daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                self._open += (client, server)
                server.connect(f"{self._there['host']}/.s.PGSQL.5432")
                self._start(self._carry, client, server)
                self._start(self._carry_back, server, client)

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while content := client.recv(1 << 16):
                server.sendall(content)
            server.shutdown(socket.SHUT_WR)

    def _carry_back(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while content := server.recv(1 << 16):
                if not self.is_cut:
                    client.sendall(content)
            if not self.is_cut:
                client.shutdown(socket.SHUT_WR)


@contextmanager
def partition(server_url: str) -> Iterator[Partition]:
    """Such a way, open until it is cut."""
    with tempfile.TemporaryDirectory(prefix="keyhole-") as folder, closing(Partition(server_url, Path(folder))) as way:
        yield way
