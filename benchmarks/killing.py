"""What random kills need: a supervisor as systemd is one, servers that come back, and what there is to kill."""

import os
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from proxy.shadow.wheel import make_postgres_server

COMMAND = (sys.executable, "-c", "from proxy.cli.script import run; run()", "serve")
RESTART_S = 0.1  # before what ended is started anew: systemd's own default
END_S = 60.0  # for a Keyhole that is told to end
_UNLIMITED = resource.RLIM_INFINITY


class Supervisor:
    """Keeps `keyhole serve` running, on the same ports, as long as it does not end well.

    `statuses` counts how it ended; 0 is none on which a supervisor acts, and so is None while it was not told to end.
    """

    def __init__(self, policy: Path, *, workers: int, folder: Path) -> None:
        self.port = _find_free_port()
        self.statuses: Counter[int] = Counter()
        self.temporary = folder / "t"
        self.temporary.mkdir()
        self._command = (*COMMAND, f"--policy={policy}", f"--port={self.port}", "--rest-port=0", f"--workers={workers}")
        self._told_to_end = threading.Event()
        self._process = self._start()
        self._keeping = threading.Thread(target=self._keep)
        self._keeping.start()

    @property
    def process(self) -> int:
        """The number of the first of Keyhole's processes."""
        return self._process.pid

    @property
    def workers(self) -> list[int]:
        """Those of its workers."""
        return [one for one in _list_children(self.process) if b"spawn_main" in _read_command_line(one)]

    @property
    def shadows(self) -> list[int]:
        """Those of the shadows' servers."""
        return [one for one in _list_processes() if _is_server_in(self.temporary, _read_command_line(one))]

    @property
    def is_done(self) -> bool:
        """Whether it has ended as if it had been told to."""
        return not self._keeping.is_alive()

    def finish(self) -> int:
        """Tell it to end; the status with which it does."""
        self._told_to_end.set()
        self._process.terminate()
        self._keeping.join(END_S)
        self._process.kill()
        return self._process.wait()

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self._command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(self.temporary)},
        )

    def _keep(self) -> None:
        while True:
            status = self._process.wait()
            if self._told_to_end.is_set():
                return
            self.statuses[status] += 1
            if status == 0:
                return
            time.sleep(RESTART_S)
            self._process = self._start()


class Server:
    """A PostgreSQL that comes back, as one under a supervisor does."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._server = make_postgres_server(directory, cleanup_mode="stop")
        self._server.start()
        self.url = self._server.get_uri()
        with psycopg.connect(self.url, autocommit=True) as owner:
            owner.execute("ALTER SYSTEM SET fsync = off")  # the machine does not die
            owner.execute("SELECT pg_reload_conf()")

    def kill(self, chance: random.Random) -> None:
        """SIGKILL to the server, or to one of its sessions, with which all end."""
        server = int((self._directory / "postmaster.pid").read_text(encoding="utf-8").split()[0])
        _kill(chance.choice((server, *_list_children(server))))

    def await_return(self) -> None:
        """Return once it takes connections again."""
        while True:
            with suppress(Exception):
                self._server.start()
                psycopg.connect(self.url, connect_timeout=2).close()
                return
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it for good."""
        self._server.cleanup()


def kill_process(keyhole: Supervisor, _: random.Random) -> Callable[[], None]:
    """SIGKILL to Keyhole's first process."""
    _kill(keyhole.process)
    return _do_nothing


def kill_worker(keyhole: Supervisor, chance: random.Random) -> Callable[[], None]:
    """SIGKILL to one of several that serve, or to the only one."""
    _kill(chance.choice(keyhole.workers or [keyhole.process]))
    return _do_nothing


def kill_shadow(keyhole: Supervisor, chance: random.Random) -> Callable[[], None]:
    """SIGKILL to the shadow's server, or to one of its sessions."""
    servers = keyhole.shadows
    for server in servers[:1]:
        _kill(chance.choice((server, *_list_children(server))))
    return _do_nothing


def fill_disk(ledger: Path) -> Callable[[Supervisor, random.Random], Callable[[], None]]:
    """For Keyhole's processes the disk under a SQLite ledger is full: no file of theirs may outgrow it."""

    def fill(keyhole: Supervisor, _: random.Random) -> Callable[[], None]:
        processes = (keyhole.process, *keyhole.workers)
        most = max(file.stat().st_size for file in ledger.parent.glob(f"{ledger.name}*"))
        for process in processes:
            _limit(process, most)

        def make_room() -> None:
            for process in processes:
                _limit(process, _UNLIMITED)

        return make_room

    return fill


def kill_server(server: Server) -> Callable[[Supervisor, random.Random], Callable[[], None]]:
    """SIGKILL to a server that Keyhole asks."""

    def kill(_: Supervisor, chance: random.Random) -> Callable[[], None]:
        server.kill(chance)
        return server.await_return

    return kill


@contextmanager
def run_server(directory: Path) -> Iterator[Server]:
    """A server while the block runs."""
    server = Server(directory)
    try:
        yield server
    finally:
        server.await_return()
        server.stop()


def _do_nothing() -> None:
    pass


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _limit(process: int, most: int) -> None:
    with suppress(ProcessLookupError):
        resource.prlimit(process, resource.RLIMIT_FSIZE, (most, _UNLIMITED))


def _find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def _list_processes() -> list[int]:
    return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]


def _list_children(parent: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            found += map(int, (task / "children").read_text(encoding="ascii").split())
    return found


def _read_command_line(process: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


def _is_server_in(folder: Path, command: bytes) -> bool:
    program, *arguments = command.split(b"\0")
    return program.endswith(b"/postgres") and any(one.startswith(os.fsencode(folder)) for one in arguments)
