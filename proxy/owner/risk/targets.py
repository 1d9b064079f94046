"""A wanted risk in words, and the loss that keeps it: `advantage 0.1`, `posterior 0.01 -> 0.05`, `guess 100 0.05`."""

import math
import re
from dataclasses import dataclass

from mechanisms.risk.advantage import epsilon_for_advantage, epsilon_for_guess, epsilon_for_posterior

_NUMBER = r"(\d*\.?\d+)"
_ADVANTAGE = re.compile(rf"advantage\s+{_NUMBER}")
_POSTERIOR = re.compile(rf"posterior\s+{_NUMBER}\s*->\s*{_NUMBER}")
_GUESS = re.compile(rf"guess\s+(\d{{1,9}})\s+{_NUMBER}")


@dataclass(frozen=True, slots=True)
class RiskTarget:
    """A wish in words, the greatest loss of one presence that keeps it of presence, and the greatest that keeps it of
    which group a unit is in: None where it says nothing of that."""

    said: str
    epsilon: float
    which_epsilon: float | None


def parse_target(text: str) -> RiskTarget:
    """The wish that a text is. Raises ValueError, in words for whoever typed it."""
    wish = text.strip().lower()
    if found := _ADVANTAGE.fullmatch(wish):
        wanted = float(found[1])
        said = f"the best test for presence hits at most {wanted:g} more often than it raises a false alarm"
        return RiskTarget(said, _down(epsilon_for_advantage(wanted)), None)
    if found := _POSTERIOR.fullmatch(wish):
        before, after = float(found[1]), float(found[2])
        epsilon = epsilon_for_posterior(prior=before, posterior=after)
        said = f"whoever believes it with {100 * before:g} % beforehand believes it with {100 * after:g} % at most"
        return RiskTarget(said, _down(epsilon), _down(epsilon / 2))
    if found := _GUESS.fullmatch(wish):
        many, success = int(found[1]), float(found[2])
        epsilon = epsilon_for_guess(candidates=many, success=success)
        said = (
            f"the best guess among {many:,} equally likely values of one unit is right with {100 * success:g} % at most"
        )
        return RiskTarget(said, _down(epsilon), _down(epsilon))
    raise ValueError('say "advantage 0.1", "posterior 0.01 -> 0.05" or "guess 100 0.05"')


def _down(epsilon: float) -> float:
    """Four digits, rounded down: a budget that is pasted keeps the wish."""
    return math.floor(epsilon * 1e4 + 1e-9) / 1e4
