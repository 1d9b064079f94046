"""The resources that sessions use in the shadow: memory, temporary files and processor time."""

import os
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from proxy.shadow.address import ShadowAddress

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_FILE_PREFIX = "pgsql_tmp"


def measure_memory(address: ShadowAddress, processes: Iterable[int]) -> dict[int, int]:
    """Return the bytes of memory that each of these shadow processes uses.

    A process that has ended is left out. Memory is only known if the system reports it (Linux).
    """
    files = _measure_temporary_files(address.directory / "base" / _FILE_PREFIX)
    return {process: _read_own_memory(process) + files[process] for process in processes}


def is_alive(process: int) -> bool:
    """Return True if a process with this number is running."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is there, and belongs to another user
    return True


def lower_priority(process: int) -> None:
    """Let a process run only when no other process needs the processor, until it ends (Linux only)."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0))


def _read_own_memory(process: int) -> int:
    try:
        resident, shared = Path(f"/proc/{process}/statm").read_bytes().split()[1:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE_BYTES


def _measure_temporary_files(folder: Path) -> Counter[int]:
    """Return the bytes of temporary files by process. A file's name has the process number: pgsql_tmp1234.0."""
    found: Counter[int] = Counter()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            number = entry.name.removeprefix(_FILE_PREFIX).partition(".")[0]
            if number.isdecimal():
                with suppress(OSError):  # the file has gone meanwhile
                    found[int(number)] += entry.stat().st_size
    return found
