"""A worker ends with its parent, however that ends, and whatever the worker's own loop does meanwhile.

Guarantee: once the parent is gone a worker ends within its grace; one that holds the interpreter's lock in a call that
does not return as `proxy/process/self_watch.py` says. A worker that was stopped goes on first (Linux), so that what was
paid for is told as far as it can be.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.connection import wait

_PR_SET_PDEATHSIG = 1  # as Linux numbers it, for good


def end_with_parent(*, grace_s: float) -> None:
    """End this process soon after its parent. A process that `multiprocessing` started calls this once."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if sys.platform == "linux":
        # of what a stopped process can be sent, the one signal that has it go on; to any other it says nothing
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)
    # the sentinel is ready, too, where the parent went before all this
    threading.Thread(target=_kill_after_parent, args=(parent.sentinel, grace_s), name="parent", daemon=True).start()


def _kill_after_parent(parent: int, grace_s: float) -> None:
    wait([parent])
    threading.Event().wait(grace_s)
    os.kill(os.getpid(), signal.SIGKILL)  # nothing that is to be done at an end can be relied on
