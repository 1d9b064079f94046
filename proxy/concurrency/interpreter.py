"""What Python does for a process when it begins and when it ends, and nobody here needs.

Looking through all modules for garbage, while they are imported and again at the end, was a third of what a short
command cost.
"""

import atexit
import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def lasting() -> Iterator[None]:
    """What there is at the end of the block, modules for the most part, stays: it is never looked through."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def end_process(ended: SystemExit) -> NoReturn:
    """End as Python does: threads have ended, what was registered has been called, what was written is there. But what
    the process leaves is not taken apart object by object."""
    status = ended.code
    if isinstance(status, str):
        sys.stderr.write(f"{status}\n")
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))
