"""A change to a statement's text."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """A span of the text and what replaces it; the integer 0 stands for the embedded relation."""

    start: int
    end: int
    replacement: tuple[str | int, ...]
