"""The error for text that the owner mistyped. This module is small, so that commands import it quickly."""

from dataclasses import dataclass


@dataclass
class Mistyped(Exception):
    """The error for a text in the field `field` that is empty, or that names nothing in this policy."""

    field: str
    problem: str

    def __str__(self) -> str:
        return self.problem


def read_reason(why: str) -> str:
    """Return the reason that the owner typed, without surrounding blanks. Raise `Mistyped` if it is empty."""
    if not why.strip():
        raise Mistyped("why", "say why, for later readers of the ledger")
    return why.strip()
