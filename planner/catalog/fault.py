"""A refusal of the policy before its place in the file is known."""

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import TypeAlias


class Fault(ValueError):
    """A fault in the policy, with its remedy.

    The policy's reader adds key, value and line, and raises a `KeyholeError`.
    """

    def __init__(self, code: str, problem: str, *, hint: str) -> None:
        super().__init__(problem)
        self.code = code
        self.problem = problem
        self.hint = hint


Faults: TypeAlias = Iterator[tuple[tuple[str, ...], Fault]]  # each with the parts of the policy key that is at fault


def suggest_nearest_name(name: str, known: Iterable[str], *, show: Callable[[str], str] = str) -> str:
    """Return a hint that names the closest of the known names, or all of them if none is close."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {show(close[0])}?"
    return f"Known here: {', '.join(show(other) for other in names)}." if names else "Nothing is known here."
