"""`subprocess.Popen` and `run` for children that are Keyhole: forked from a process that has imported it already.

Such a child differs from one that is started anew in what /proc says of its command line and environment, and in that
its modules are there from the beginning. Tests of these, of what a start does to signals and of a wheel's script start
real ones, by `subprocess`. So does this module where a request names what the fork server does not do, where there is
none (on Linux alone there is), and where PYTHON... or another variable that a start reads is not as it is here.
"""

import inspect
import json
import os
import resource
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.children.fork_server import LIMITS, MOST_BYTES, READY, STATUS

_ROOT = Path(__file__).resolve().parents[2]
_SCRIPT = Path(sys.executable).with_name("keyhole")
_SERVER = "import sys; from tests.children.fork_server import main; main(int(sys.argv[1]))"
_READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "MALLOC_", "OMP_", "OPENBLAS_")
_SHADOWS = frozenset({"check", "serve"})  # commands that start one
# CPython's own names, which typeshed does not have: a Popen takes no other way of making a child
_PARAMETERS = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]
# of `_execute_child`, what is asked for where nothing is, beside streams, folder, environment and session
_USUAL: dict[str, Any] = {
    "executable": None,
    "preexec_fn": None,
    "close_fds": True,
    "pass_fds": (),
    "shell": False,
    "restore_signals": True,
    "gid": None,
    "gids": None,
    "uid": None,
    "umask": -1,
    "process_group": -1,
}


class _Server:
    """The fork server of this process, started by the first request."""

    def __init__(self, template: Callable[[], Path]) -> None:
        self._template = template
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._environment: dict[str, str] = {}

    def fork(self, request: dict[str, Any], streams: Sequence[int]) -> tuple[int, socket.socket] | None:
        """Return the child's number, and the socket that tells its end; None if it cannot be forked."""
        with self._lock:
            if self._process is None:
                self._start()
            if self._control is None or not _is_alike(self._environment, request["environment"]):
                return None
            packet = json.dumps(request | {"template": self._template_for(request["arguments"])}).encode()
            ours, its = socket.socketpair()
            with its:
                try:
                    if len(packet) > MOST_BYTES:
                        raise OSError
                    socket.send_fds(self._control, [packet], [*streams, its.fileno()])
                except OSError:
                    ours.close()
                    return None
            try:
                (process,) = STATUS.unpack(self._control.recv(STATUS.size))
            except BaseException:
                ours.close()
                self._control.close()
                self._control = None  # nobody would know which reply is whose
                raise
            return process, ours

    def close(self) -> None:
        """Let it end; what it has forked goes on."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.wait()

    def _start(self) -> None:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVER, str(its.fileno())],
                cwd=_ROOT,
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        if ours.recv(len(READY)) != READY:
            ours.close()
            return
        self._environment = dict(os.environ)
        self._control = ours

    def _template_for(self, arguments: list[str]) -> str | None:
        """Return the data that a child's shadow begins with; None for one that starts none."""
        starts_shadow = not _SHADOWS.isdisjoint(arguments)
        return str(self._template()) if starts_shadow else None


_servers: list[_Server] = []


@contextmanager
def forking(template: Callable[[], Path]) -> Iterator[None]:
    """While the block runs, children are forked, and Keyhole's shadows begin with a copy of that data. Linux alone has
    what this needs."""
    server = _Server(template)
    if sys.platform == "linux":
        _servers.append(server)
    try:
        yield
    finally:
        with suppress(ValueError):
            _servers.remove(server)
        server.close()


class Popen(subprocess.Popen[str]):
    """A child that is forked where that can be."""

    _end: socket.socket | None = None

    def _execute_child(self, *given: Any) -> None:
        asked = _PARAMETERS.bind(self, *given).arguments
        forked = self._fork(asked)
        if forked is None:
            super()._execute_child(*given)  # type: ignore[misc]
            return
        self.pid, self._end = forked
        self._child_created = True
        self._close_pipe_fds(  # type: ignore[attr-defined]
            *(asked[one] for one in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite"))
        )

    def _fork(self, asked: dict[str, Any]) -> tuple[int, socket.socket] | None:
        arguments = _after_python(asked["args"])
        is_usual = all(asked[name] == usual for name, usual in _USUAL.items() if name in asked)
        if arguments is None or not is_usual or not _servers:
            return None
        streams = [
            number if asked[name] == -1 else asked[name]
            for number, name in enumerate(("p2cread", "c2pwrite", "errwrite"))
        ]
        request = {
            "arguments": arguments,
            "folder": str(Path(asked["cwd"] or ".").resolve()),
            "environment": dict(os.environ if asked["env"] is None else asked["env"]),
            "new_session": bool(asked["start_new_session"]),
            "umask": _umask(),
            "limits": [resource.getrlimit(limit) for limit in LIMITS],
        }
        return _servers[-1].fork(request, streams)

    def _internal_poll(self, *given: Any, **named: Any) -> int | None:
        if self._end is None:
            found: int | None = super()._internal_poll(*given, **named)  # type: ignore[misc]
            return found
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):  # type: ignore[attr-defined]
            try:
                if self.returncode is None:
                    process, status = self._try_wait(os.WNOHANG)
                    if process == self.pid:
                        self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if self._end is None:
            found: tuple[int, int] = super()._try_wait(flags)  # type: ignore[misc]
            return found
        if flags & os.WNOHANG:
            waiting = select.poll()
            waiting.register(self._end, select.POLLIN)
            if not waiting.poll(0):
                return 0, 0
        told = self._end.recv(STATUS.size)
        if not told:
            raise RuntimeError("the fork server has ended before the child")
        self._end.close()
        return self.pid, STATUS.unpack(told)[0]


def run(
    arguments: Sequence[str | Path], *, capture_output: bool = False, timeout: float | None = None, **keywords: Any
) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` of such a child, in text."""
    check, given = keywords.pop("check", False), keywords.pop("input", None)
    keywords.pop("text", None)
    if capture_output:
        keywords |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if given is not None:
        keywords["stdin"] = subprocess.PIPE
    with Popen([str(one) for one in arguments], text=True, **keywords) as process:
        try:
            out, err = process.communicate(given, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    ran = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        ran.check_returncode()
    return ran


def _after_python(command: Any) -> list[str] | None:
    """Return the arguments of this Python; None if the command is not one that the fork server can run."""
    if isinstance(command, str | bytes | os.PathLike):
        return None
    match [os.fsdecode(one) for one in command]:
        case [sys.executable, "-c" | "-m" as how, what, *rest]:
            return [how, what, *rest]
        case [first, *rest] if first == str(_SCRIPT):
            return [first, *rest]
    return None


def _is_alike(here: Mapping[str, str], asked: Mapping[str, str]) -> bool:
    """Return whether the variables that a start reads are as they were when the fork server started."""
    return {name: value for name, value in here.items() if name.startswith(_READ_AT_START)} == {
        name: value for name, value in asked.items() if name.startswith(_READ_AT_START)
    }


def _umask() -> int:
    """Return this process's umask, without a moment in which it is another."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(next(line for line in status.splitlines() if line.startswith("Umask:")).split()[1], 8)
