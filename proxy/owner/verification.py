"""The verification of the ledger: its own chain, answers and balances, and the event that its owner kept elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from accountant.ledger import Ledger
from planner.errors import KeyholeError
from proxy.owner.mistyped import Mistyped


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """The event that an earlier verification named, and its owner kept elsewhere: its number and hash."""

    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class VerifiedLedger:
    """A ledger that was read again without a fault.

    It has its newest event, the checks that its database did not allow, and the event that it was compared with.
    """

    number: int
    hash: str
    unchecked: tuple[str, ...]
    kept: KeptEvent | None

    @property
    def mark(self) -> str:
        """Return the mark to keep elsewhere."""
        return f"{self.hash}:{self.number}"

    def write_lines(self) -> Iterator[str]:
        """Yield the verdict for people."""
        yield f"{self.number:,} events, unbroken; answers, noise paths and balances are those of the events."
        yield from self.unchecked
        if self.kept is None:
            yield "Events may be missing at the end: only --expect, with what an earlier verify printed, finds that."
        else:
            yield f"Nothing is missing up to event {self.kept.number:,}, the one you kept."
        yield f"Keep this elsewhere: {self.mark}"

    def make_document(self) -> dict[str, Any]:
        """Return the verdict as a JSON document."""
        return {
            "events": self.number,
            "hash": self.hash,
            "keep": self.mark,
            "expected": self.kept is not None,
            "unchecked": list(self.unchecked),
        }


def read_kept(text: str) -> KeptEvent:
    """Return the mark that was kept, as it was shown. Raise `Mistyped` if it is none."""
    kept_hash, _, number = text.strip().partition(":")
    if len(kept_hash) != 64 or not (number.isascii() and number.isdecimal()):
        raise Mistyped("expect", "HASH:NUMBER as keyhole ledger verify prints it")
    return KeptEvent(int(number), kept_hash)


def verify_ledger(ledger: Ledger, *, kept: KeptEvent | None) -> VerifiedLedger:
    """Read everything again, to the first fault. Raise KH009 where what was kept is not there, `LedgerUnavailable`."""
    ledger.verify()
    if kept is not None:
        _check_kept(ledger, kept)
    number, newest = ledger.owner.find_newest()
    return VerifiedLedger(number, newest, ledger.owner.list_unchecked(), kept)


def _check_kept(ledger: Ledger, kept: KeptEvent) -> None:
    if kept.number == 0 or ledger.owner.has_event(kept.number, kept.hash):
        return
    newest, _ = ledger.owner.find_newest()
    if newest < kept.number:
        missing = kept.number - newest
        lost = f"the ledger ends at event {newest}, and {kept.number} were there: {missing} or more are missing"
    else:
        lost = f"event {kept.number} is another one than you kept: this ledger went another way before it"
    raise KeyholeError(
        "KH009",
        lost,
        detail="The events that are missing spent budget, and this ledger does not know it.",
        hint="Stop Keyhole and restore the newest copy; see docs/operating.md.",
    )
