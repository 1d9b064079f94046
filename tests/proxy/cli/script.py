"""The `keyhole` script as it is installed, run as a child of its own."""

import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.children import forked
from tests.effort import PATIENCE_S

SCRIPT = Path(sys.executable).with_name("keyhole")


def child_on_a_terminal(*arguments: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """The script with standard error on a terminal, and what stands there in the end with all that was wiped away."""
    ours, its = pty.openpty()
    told: list[bytes] = []
    read = threading.Thread(target=lambda: told.extend(_read_until_closed(ours)))
    read.start()
    try:
        ended = forked.run(
            [SCRIPT, *arguments],
            stdout=subprocess.PIPE,
            stderr=its,
            timeout=PATIENCE_S,
            env=os.environ | {"TERM": "xterm"},
        )
    finally:
        os.close(its)
        read.join()
        os.close(ours)
    return ended, b"".join(told).decode()


def _read_until_closed(terminal: int) -> Iterator[bytes]:
    with suppress(OSError):
        while part := os.read(terminal, 1 << 16):
            yield part


def child(*arguments: str, **keywords: Any) -> subprocess.CompletedProcess[str]:
    return forked.run([SCRIPT, *arguments], capture_output=True, timeout=PATIENCE_S, **keywords)


def started_child(*arguments: str, **keywords: Any) -> subprocess.CompletedProcess[str]:
    """One that is started anew, as a shell does."""
    return subprocess.run(
        [SCRIPT, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False, **keywords
    )
