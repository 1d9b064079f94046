"""The verification of the ledger: its own hash chain, and an event that the owner has kept elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from accountant.ledger import Ledger
from planner.errors import KeyholeError
from proxy.owner.mistyped import Mistyped


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """The number and hash of a ledger event that the owner kept from an earlier verification."""

    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class VerifiedLedger:
    """The result of a verification that found no fault.

    `number` and `hash` are those of the newest event. `unchecked` are the checks that the database did not allow.
    """

    number: int
    hash: str
    unchecked: tuple[str, ...]
    kept_event: KeptEvent | None

    @property
    def mark(self) -> str:
        """Return the newest event's number and hash as text, which the owner keeps elsewhere."""
        return f"{self.hash}:{self.number}"

    def write_lines(self) -> Iterator[str]:
        """Yield the result in sentences."""
        yield f"{self.number:,} events, unbroken; answers, noise paths and balances are those of the events."
        yield from self.unchecked
        if self.kept_event is None:
            yield "Events may be missing at the end: only --expect, with what an earlier verify printed, finds that."
        else:
            yield f"Nothing is missing up to event {self.kept_event.number:,}, the one you kept."
        yield f"Keep this elsewhere: {self.mark}"

    def make_document(self) -> dict[str, Any]:
        """Return the result as a JSON document."""
        return {
            "events": self.number,
            "hash": self.hash,
            "keep": self.mark,
            "expected": self.kept_event is not None,
            "unchecked": list(self.unchecked),
        }


def parse_kept_event(text: str) -> KeptEvent:
    """Parse an event's number and hash from the text of `VerifiedLedger.mark`. Raise `Mistyped` for any other text."""
    kept_hash, _, number = text.strip().partition(":")
    if len(kept_hash) != 64 or not (number.isascii() and number.isdecimal()):
        raise Mistyped("expect", "HASH:NUMBER as keyhole ledger verify prints it")
    return KeptEvent(int(number), kept_hash)


def verify_ledger(ledger: Ledger, *, kept: KeptEvent | None) -> VerifiedLedger:
    """Verify the whole ledger. Raise `LedgerUnavailable` at the first fault, and KH009 if the kept event is missing."""
    ledger.verify_everything()
    if kept is not None:
        _check_kept_event(ledger, kept)
    number, newest = ledger.owner.find_newest_event()
    return VerifiedLedger(number, newest, ledger.owner.list_impossible_checks(), kept)


def _check_kept_event(ledger: Ledger, kept: KeptEvent) -> None:
    if kept.number == 0 or ledger.owner.has_event(kept.number, kept.hash):
        return
    newest, _ = ledger.owner.find_newest_event()
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
