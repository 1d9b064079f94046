"""A writer that does a bit of everything for ever: `python -m tests.accountant.busy URL ANALYST`."""

import sys
from itertools import count

from accountant.charges import NANO
from accountant.errors import PathTaken
from accountant.ledger import Ledger
from tests.accountant.conftest import now
from tests.accountant.examples import charge, continuing, limits, per_key

CAPS = limits(10**6 * NANO, per_unit=10**6 * NANO)


def ask(ledger: Ledger, analyst: str, path: str) -> None:
    """A question that leaves a path or continues it, and the same once more, given back."""
    found = ledger.find_paths([path], "v1").values()
    news = continuing(*(one.state for one in found), shared=NANO, known=NANO) if found else None
    asked = charge(2 * NANO, analyst=analyst, question=f"q of {analyst}", continuing=news)
    try:
        reservation = ledger.reserve(asked, CAPS)
    except PathTaken:
        # the other writer continues it, or has pruned it
        return
    spent = per_key([NANO, 0, NANO], fresh=None if news is None else [NANO, 0, 0])
    ledger.commit(reservation, spent, b"FR", paths={path: b"values", analyst: b"more"})
    ledger.release(ledger.reserve(charge(NANO, analyst=analyst), CAPS))


def main() -> None:
    _, url, analyst = sys.argv
    for round_number in count():
        # a snapshot is stored whenever it is opened or closed
        with Ledger.open(url, clock=now, snapshot_every=1) as ledger:
            for _ in range(4):
                ask(ledger, analyst, "path of both")
            if round_number % 2:
                ledger.owner.prune_paths("sales", "v1", by=analyst, why="to have it pruned")
            elif round_number % 4 == 2:
                ledger.owner.open_window(by=analyst, why="to have one opened")
        print(round_number, flush=True)


if __name__ == "__main__":
    main()
