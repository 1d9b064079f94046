"""A process that has imported Keyhole and forks at request, so that a child of a test need not import it again.

`tests/children/forked.py` starts it and asks it. One request is one packet, with the child's three streams and a socket
for its end. The reply is the child's number. The end is told as `waitpid` tells it, and the child is reaped once the
socket is closed: until then its number belongs to nobody else, as that of any child.
"""

import gc
import io
import json
import multiprocessing.process
import os
import resource
import runpy
import selectors
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import types
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

READY = b"ready"
STATUS = struct.Struct("i")
MOST_BYTES = 1 << 17  # of a request: what a packet of a Unix socket has room for, everywhere
STREAMS = 3
LIMITS = tuple(sorted(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")))
# What commands and processes of the ledger import before they work; the rest each imports for itself, as it would.
_IMPORTED = (
    "proxy.cli.main",
    "proxy.cli.ask",
    "proxy.cli.owner",
    "proxy.process.serve",
    "proxy.process.single",
    "tests.accountant.conftest",
    "tests.children.shadow_template",
)


@dataclass
class _Child:
    """A process and who waits for its end; None once nobody does."""

    process: int
    waiting: socket.socket | None
    is_ended: bool = False


def serve(control: socket.socket) -> dict[str, Any] | None:
    """Fork at each request, until the other side has gone. Return the request in the child, and None in the parent."""
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        children: set[int] = set()
        while True:
            for key, _ in selector.select():
                match key.data:
                    case None:
                        packet, handed, _, _ = socket.recv_fds(control, MOST_BYTES, STREAMS + 1)
                        if not packet:
                            return None
                        request: dict[str, Any] = json.loads(packet)
                        process = _fork(selector, handed)
                        if process == 0:
                            return request
                        child = _Child(process, waiting := socket.socket(fileno=handed[STREAMS]))
                        _close(handed[:STREAMS])
                        selector.register(os.pidfd_open(process), selectors.EVENT_READ, child)
                        selector.register(waiting, selectors.EVENT_READ, child)
                        children.add(process)
                        control.sendall(STATUS.pack(process))
                    case _Child() as child if isinstance(key.fileobj, int):
                        selector.unregister(key.fileobj)
                        os.close(key.fileobj)
                        _tell_end(child)
                    case _Child(waiting=waiting) as child if waiting is not None:
                        selector.unregister(waiting)
                        waiting.close()
                        child.waiting = None
                match key.data:
                    case _Child(is_ended=True, waiting=None) as child if child.process in children:
                        children.remove(child.process)
                        os.waitpid(child.process, 0)


def _tell_end(child: _Child) -> None:
    """Say how a process ended, without reaping it."""
    ended = os.waitid(os.P_PID, child.process, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    status = ended.si_status << 8 if ended.si_code == os.CLD_EXITED else ended.si_status
    child.is_ended = True
    if child.waiting is not None:
        with suppress(OSError):
            child.waiting.sendall(STATUS.pack(status))


def _fork(selector: selectors.BaseSelector, handed: list[int]) -> int:
    """Fork, and give the child the three streams and nothing else that this process holds open. No signal arrives in
    the child before `_become` lets it."""
    everything = signal.valid_signals()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, everything)
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return process
    keys = list(selector.get_map().values())
    selector.close()
    for key in keys:  # those that are numbers alone are closed below
        if isinstance(key.fileobj, socket.socket):
            key.fileobj.close()
    for number, stream in enumerate(handed[:STREAMS]):
        os.dup2(stream, number)
    os.closerange(STREAMS, max(*handed, *(key.fd for key in keys)) + 1)
    return 0


def _close(descriptors: list[int]) -> None:
    for one in descriptors:
        os.close(one)


def _become(request: dict[str, Any]) -> None:
    """Become the child that the request describes: set what a start sets, and what an import leaves behind."""
    os.umask(request["umask"])
    for limit, (soft, hard) in zip(LIMITS, request["limits"], strict=True):
        if resource.getrlimit(limit) != (soft, hard):
            resource.setrlimit(limit, (soft, hard))
    if request["new_session"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    tempfile.tempdir = None
    multiprocessing.process.ORIGINAL_DIR = request["folder"]  # type: ignore[attr-defined]
    if (drawing := sys.modules.get("numpy.random")) is not None:
        drawing.seed()
    _open_streams()
    if request["template"] is not None:
        import_module("tests.children.shadow_template").begin_with_copy(Path(request["template"]))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _open_streams() -> None:
    """Open the three standard streams, as a start does."""
    assert sys.__stdout__ is not None
    encoding, errors = sys.__stdout__.encoding, sys.__stdout__.errors
    sys.stdin = os.fdopen(0, encoding=encoding, errors=errors, closefd=False)
    if sys.__stdout__.write_through:  # PYTHONUNBUFFERED
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(number, "wb", 0, closefd=False), encoding, on_error, write_through=True)
            for number, on_error in ((1, errors), (2, "backslashreplace"))
        )
    else:
        sys.stdout = os.fdopen(1, "w", encoding=encoding, errors=errors, closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, encoding=encoding, errors="backslashreplace", closefd=False)
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)


def _run(arguments: list[str], folder: str) -> None:
    """Run what stands after `python`: `-c` and a text, `-m` and a module, or a file."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.orig_argv = [sys.executable, *arguments]
    match arguments:
        case ["-c", text, *rest]:
            sys.argv, sys.path[0] = ["-c", *rest], ""
            exec(compile(text, "<string>", "exec"), main.__dict__)
        case ["-m", module, *rest]:
            sys.argv, sys.path[0] = ["-m", *rest], folder
            runpy._run_module_as_main(module)  # type: ignore[attr-defined]
        case [file, *_]:
            sys.argv, sys.path[0] = arguments, str(Path(file).resolve().parent)
            main.__dict__["__file__"] = file
            exec(compile(Path(file).read_bytes(), file, "exec"), main.__dict__)


def main(descriptor: int) -> None:
    """Serve on the socket that the starting process has handed down."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's: who asked for the children sees to them
    for name in _IMPORTED:
        import_module(name)
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()
    control = socket.socket(fileno=descriptor)
    control.sendall(READY)
    request = serve(control)
    if request is not None:
        _become(request)
        _run(request["arguments"], request["folder"])
