"""Python's work for a process when it begins and when it ends, which nobody here needs.

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

_USUAL = gc.get_threshold()
# new objects between two looks for garbage: a command makes some 150,000 while it imports, and they stay. At Python's
# 700 looking through them was a twentieth of `keyhole explain`; garbage that waits is a few megabytes.
_SELDOM = 500_000


def disable_pydantic_plugins() -> None:
    """Keep pydantic from loading plugins. Call this before pydantic is imported.

    Pydantic would look for plugins in every installed package, and a plugin of another package could change a policy.
    """
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def collect_garbage_seldom() -> None:
    """Run the garbage collector less often, in a process that imports modules while it works and ends soon."""
    gc.set_threshold(_SELDOM, *_USUAL[1:])


@contextmanager
def freeze_objects() -> Iterator[None]:
    """Exclude all objects that exist at the end of the block from garbage collection. Most of them are modules.

    They are never scanned again. Later objects are scanned as usual.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*_USUAL)
        gc.enable()


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Turn garbage collection off within the block, which makes millions of objects that all stay."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def end_process(ended: SystemExit) -> NoReturn:
    """End the process as Python does: wait for threads, run exit handlers and flush output.

    Unlike Python, do not free the remaining objects one by one.
    """
    status = ended.code
    if isinstance(status, str):
        sys.stderr.write(f"{status}\n")
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))
