"""A parent that starts a child whose main thread hangs, says the child's number, and waits: for tests to kill."""

import multiprocessing
import sys
import time

from proxy.process.orphan import end_with_parent


def hang() -> None:
    end_with_parent(grace_s=0.1)
    print(multiprocessing.current_process().pid, flush=True)
    while True:
        time.sleep(600)


if __name__ == "__main__":
    multiprocessing.get_context("spawn").Process(target=hang, daemon=True).start()
    sys.stdin.read()
