"""What is wrong with what the owner typed. A command reads this file before any other of the owner's."""

from dataclasses import dataclass


@dataclass
class Mistyped(Exception):
    """What was typed into `field` says nothing, or nothing that this policy has."""

    field: str
    problem: str

    def __str__(self) -> str:
        return self.problem


def read_reason(why: str) -> str:
    """A reason that says something. Raises `Mistyped`."""
    if not why.strip():
        raise Mistyped("why", "say why, for whoever reads the ledger later")
    return why.strip()
