"""A Sail on loopback, started from the wheel `pysail` and ended with whoever needs it."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_STARTED_S = 120.0  # on a busy machine


@contextmanager
def run_sail() -> Iterator[str]:
    """Run a Sail while the block runs, and yield its address. Raise TimeoutError if it does not start."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    command = [sys.executable, "-m", "pysail", "spark", "server", "--ip", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for_port(port)
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.kill()


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + _STARTED_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.05)
    raise TimeoutError("Sail did not start")
