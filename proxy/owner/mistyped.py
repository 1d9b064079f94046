"""The error for the owner's mistyped text. It is a module of its own so that commands can import it quickly."""

from dataclasses import dataclass


@dataclass
class Mistyped(Exception):
    """The error for a text typed into `field` that is empty, or that names nothing in this policy."""

    field: str
    problem: str

    def __str__(self) -> str:
        return self.problem


def read_reason(why: str) -> str:
    """Return the typed reason, stripped. Raise `Mistyped` if it is empty."""
    if not why.strip():
        raise Mistyped("why", "say why, for later readers of the ledger")
    return why.strip()
