"""A ledger on a disk that is full for a while: `python -m tests.accountant.full_disk FILE`, told as JSON."""

import json
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from accountant.charges import Spent
from accountant.errors import LedgerUnavailable
from accountant.ledger import Ledger
from tests.accountant.examples import charge, limits

FILE_SIZE = resource.RLIMIT_FSIZE


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """No file may grow beyond the size that the largest has now."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(FILE_SIZE)
    size = max(file.stat().st_size for file in folder.iterdir())
    resource.setrlimit(FILE_SIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(FILE_SIZE, before)


def refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except LedgerUnavailable:
        return True
    return False


def main() -> None:
    file = Path(sys.argv[1])
    story: dict[str, object] = {}
    with Ledger.open(f"sqlite:///{file}", clock=lambda: datetime.now(UTC)) as ledger:
        held = ledger.reserve(charge(3), limits(100))
        granted = [held.id]
        with full(file.parent):
            for _ in range(2000):
                if refused(lambda: granted.append(ledger.reserve(charge(1), limits(10**6)).id)):
                    break
            story["reserve refused"] = refused(lambda: ledger.reserve(charge(1), limits(10**6)))
            story["commit refused"] = refused(
                lambda: ledger.commit(held, Spent.from_uniform(1, unit_epsilon_nano=0), b"x" * 100_000)
            )
            story["open"] = sorted(one.id for one in ledger.list_open_reservations()) == sorted(granted)
            story["left"] = ledger.find_headroom(charge(0), limits(10**6)).epsilon_nano
        story["granted"] = granted
        story["events"] = ledger.verify_everything()
        ledger.commit(held, Spent.from_uniform(1, unit_epsilon_nano=0), b"answer")
        story["left afterwards"] = ledger.find_headroom(charge(0), limits(10**6)).epsilon_nano
    print(json.dumps(story))


if __name__ == "__main__":
    main()
