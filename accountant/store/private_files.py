"""Files that only their owner may read, as they hold released answers and the noise behind them."""

import os
from contextlib import suppress
from pathlib import Path

OWNER_ALONE = 0o600  # the mode that leaves group and others nothing
OTHERS = 0o077  # what group and everybody else may do


def make_private_file(path: Path) -> None:
    """Make an empty file that its owner alone may read and write, unless there is one. Raise OSError if that fails.

    SQLite treats an empty file as a new database, and gives the files that it writes beside it the same mode.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ALONE))


def is_open_to_others(path: Path) -> bool:
    """Return True if anybody except the file's owner may read, write or run it.

    Return False if there is no such file.
    """
    try:
        return bool(path.stat().st_mode & OTHERS)
    except OSError:
        return False
