"""A proxy's ledger in a process of its own: a command a line in, an answer a line out, as JSON.

`python -m tests.accountant.worker URL HOURS`: its clock is wrong by so many hours.
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from accountant.charges import Charge, Reservation, Spent
from accountant.errors import LedgerMisuse, OverBudget
from accountant.ledger import Ledger
from tests.accountant.examples import cells, charge, limits

CAP = 100
KEYS = ("k0", "k1", "k2", "k3")


def asked(table: str, epsilon_nano: int, first: int) -> Charge:
    """A charge over half of the keys, or all of them."""
    keys = KEYS if first == 0 else KEYS[first - 1 : first + 1]
    return charge(epsilon_nano, keys=cells(key=keys), table=table)


def do(ledger: Ledger, command: dict[str, Any]) -> dict[str, Any]:
    """Carry out one command."""
    what = command["do"]
    if what == "reserve":
        reservation = ledger.reserve(asked(command["table"], command["epsilon"], command["first"]), limits(CAP))
        return {"id": reservation.id}
    if what == "left":
        return {
            "left": [
                ledger.find_headroom(
                    charge(0, keys=cells(key=(key,)), table=command["table"]), limits(CAP)
                ).epsilon_nano
                for key in KEYS
            ]
        }
    reservation = Reservation(
        command["id"], asked(command["table"], command["epsilon"], command["first"]), datetime.now(UTC)
    )
    if what == "commit":
        ledger.commit(reservation, Spent.from_keys(command["losses"], unit_epsilon_nano=0), b"answer")
    else:
        ledger.release(reservation)
    return {"done": what}


def main() -> None:
    _, url, hours = sys.argv

    def clock() -> datetime:
        return datetime.now(UTC) + timedelta(hours=float(hours))

    with Ledger.open(url, clock=clock) as ledger:
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            try:
                answer = do(ledger, json.loads(line))
            except (OverBudget, LedgerMisuse) as refusal:
                answer = {"refused": type(refusal).__name__}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
