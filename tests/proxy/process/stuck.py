"""A process that ends itself where it hangs, and then hangs as it is told: for tests to wait for."""

import asyncio
import ctypes
import sys
import threading
import time
from pathlib import Path

from accountant.store.file_calls import TimedConnection
from proxy.process.self_watch import end_if_hung

LONG_S = 3_600


def hold_the_interpreter() -> None:
    ctypes.PyDLL(None).sleep(LONG_S)  # unlike CDLL, a call in which no other thread has its turn


def hold_the_event_loop() -> None:
    time.sleep(LONG_S)


def wait_for_a_file() -> None:
    file = TimedConnection(":memory:", check_same_thread=False)
    file.create_function("wait", 0, threading.Event().wait)
    threading.Thread(target=file.cursor().execute, args=("SELECT wait()",), daemon=True).start()


def wait_for_nothing() -> None:
    pass


async def hang(how: str) -> None:
    async with end_if_hung(ledger_timeout_ms=100, hung_s=2, stalled_s=0.1, beat_s=0.05):
        await asyncio.sleep(0)
        globals()[how]()
        await asyncio.to_thread(Path("/dev/stdin").read_text)  # until its parent closes it


if __name__ == "__main__":
    asyncio.run(hang(sys.argv[1]))
