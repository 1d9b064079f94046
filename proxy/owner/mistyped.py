"""Errors in the owner's typed text. A command reads this file before any other of the owner's."""

from dataclasses import dataclass


@dataclass
class Mistyped(Exception):
    """The error for a text typed into `field` that says nothing, or nothing that this policy has."""

    field: str
    problem: str

    def __str__(self) -> str:
        return self.problem


def read_reason(why: str) -> str:
    """Return a reason that says something. Raise `Mistyped` if it says nothing."""
    if not why.strip():
        raise Mistyped("why", "say why, for later readers of the ledger")
    return why.strip()
