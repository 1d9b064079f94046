"""The witness of a ledger: a small separate file with the number and hash of the last event known to be durable.

Guarantee: a mark is written only after its event is durable, so the witness may lag behind its ledger and never leads
it. A ledger without the marked event has lost something: docs/proofs/accounting.md, theorem 11. The file has nothing
but the mark.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from accountant.errors import LedgerUnavailable
from accountant.events.digests import digest
from accountant.events.events import GENESIS

_CHECKED = 16  # hexadecimal digits of SHA-256 that tell a line that was written in part
_LINE_BYTES = len(f"{0:020} {GENESIS} {'0' * _CHECKED}\n")


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """Number and hash of an event that was durable; 0 and `GENESIS` before the first one."""

    event_number: int
    event_hash: str


NOTHING = Mark(0, GENESIS)


class Witness:
    """The record of the last durable event, in the file at `path`: two lines of fixed length.

    Writing overwrites the older line in place, so a reader always finds one whole line. A written mark survives its
    process, but is not flushed. After a power cut the mark may be as old as the oldest write that was not yet on the
    disk. By default that is half a minute on Linux.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Mark | None:
        """Return the mark, or None if there is no file.

        Raises `LedgerUnavailable` for a file that Keyhole did not write, or that cannot be read.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerUnavailable(f"its witness {self.path.name} cannot be read ({error.strerror})") from None
        marks = [mark for mark in map(_parse, _split_content(content)) if mark is not None]
        if not marks:
            raise LedgerUnavailable(f"its witness {self.path.name} is not what Keyhole wrote")
        return max(marks)

    def record_event(self, mark: Mark) -> bool:
        """Record a durable event, unless a later one is recorded. Return False if the file cannot be written.

        If another process is writing, only its mark is recorded: being one event late is better than waiting.
        """
        try:
            self._make_file(NOTHING)
            with self._lock_file(waits=False) as file:
                if file is None:
                    return True
                slots = [_parse(line) or NOTHING for line in _split_content(os.pread(file, 2 * _LINE_BYTES, 0))]
                if mark > max(slots):
                    os.pwrite(file, _format_mark(mark), _LINE_BYTES * slots.index(min(slots)))
        except OSError:
            return False
        return True

    def replace_mark(self, mark: Mark) -> None:
        """Replace the file's content by a mark, durably. Raise OSError if that fails."""
        self._make_file(mark)
        with self._lock_file(waits=True) as file:
            if file is not None:
                os.pwrite(file, 2 * _format_mark(mark), 0)
                os.ftruncate(file, 2 * _LINE_BYTES)
                os.fsync(file)

    def _make_file(self, mark: Mark) -> None:
        """Make the file durably, readable by its owner only, unless it exists."""
        if self.path.exists():
            return
        descriptor, temporary = tempfile.mkstemp(prefix=f"{self.path.name}.", dir=self.path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(2 * _format_mark(mark))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(temporary, self.path)
        finally:
            os.unlink(temporary)

    @contextmanager
    def _lock_file(self, *, waits: bool) -> Iterator[int | None]:
        file = os.open(self.path, os.O_RDWR)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
            else:
                yield file
        finally:
            os.close(file)


def _split_content(content: bytes) -> tuple[bytes, bytes]:
    return content[:_LINE_BYTES], content[_LINE_BYTES : 2 * _LINE_BYTES]


def _format_mark(mark: Mark) -> bytes:
    told = f"{mark.event_number:020} {mark.event_hash}"
    return f"{told} {digest(told.encode())[:_CHECKED]}\n".encode()


def _parse(line: bytes) -> Mark | None:
    """Return the mark in a line, or None if the line is not whole."""
    try:
        number, event_hash, _ = line.decode("ascii").split(" ")
        mark = Mark(int(number), event_hash)
    except ValueError:
        return None
    return mark if _format_mark(mark) == line else None
