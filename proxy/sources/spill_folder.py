"""The folder in which DuckDB spills data. Each process has one, created when it is needed.

Guarantee: the folder is removed when the process ends. If the process is killed, the next process that opens a source
with the same parent folder removes it.
"""

import atexit
import os
import secrets
import shutil
import tempfile
from functools import cache
from pathlib import Path

_PREFIX = "keyhole-spill"
_TOKEN_BYTES = 8  # so that nobody else can have made the folder before


@cache
def make_spill_folder(parent: Path | None) -> Path:
    """Return the folder of this process in `parent`, or in the system's temporary folder.

    Raise OSError if the folder cannot be made.

    DuckDB creates the folder when it needs one, with the process's umask, which the `keyhole` command sets. All sources
    of a process share it: DuckDB opens a file a second time only with the same settings.
    """
    where = Path(tempfile.gettempdir()) if parent is None else parent.resolve(strict=True)
    own = f"{_PREFIX}-{_find_process_namespace()}-"
    for left in where.glob(f"{own}*"):
        number = left.name.removeprefix(own).partition("-")[0]
        if number.isdecimal() and not _is_alive(int(number)):
            shutil.rmtree(left, ignore_errors=True)
    folder = where / f"{own}{os.getpid()}-{secrets.token_hex(_TOKEN_BYTES)}"
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _find_process_namespace() -> int:
    """Return the id of the process namespace. Containers may share a folder and yet number processes separately."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0  # a system without such namespaces


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # and somebody else's
    return True
