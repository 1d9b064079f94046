"""Risk targets in words, such as `advantage 0.1`, with the largest loss that meets each.

Other targets are `posterior 1% -> 5%` and `guess 100 0.05`.
"""

import math
import re
from dataclasses import dataclass

from mechanisms.risk.advantage import find_epsilon_for_advantage, find_epsilon_for_guess, find_epsilon_for_posterior
from proxy.owner.typed_figures import find_shares, read_share

_SHARE = r"(\d*\.?\d+\s*%?)"
_ADVANTAGE = re.compile(rf"advantage\s+{_SHARE}", re.ASCII)
_POSTERIOR = re.compile(rf"posterior\s+{_SHARE}\s*->\s*{_SHARE}", re.ASCII)
_GUESS = re.compile(rf"guess\s+(\d{{1,9}})\s+{_SHARE}", re.ASCII)
_MOST_CANDIDATES = 10**9  # as many as nine digits say: whoever guesses among more is right by chance alone


@dataclass(frozen=True, slots=True)
class RiskTarget:
    """A risk target in words, with the largest loss that meets it.

    `epsilon` meets the target about a unit's presence. `which_epsilon` meets the target about the group that a unit is
    in; it is None without such a target.
    """

    said: str
    epsilon: float
    which_epsilon: float | None


def parse_target(text: str) -> RiskTarget:
    """Parse a risk target. Raise ValueError with a message for the person who typed it."""
    wish = text.strip().lower()
    if found := _ADVANTAGE.fullmatch(wish):
        wanted = float(read_share(found[1]))
        said = f"the best test for presence hits at most {wanted:g} more often than it raises a false alarm"
        return RiskTarget(said, _round_epsilon_down(find_epsilon_for_advantage(wanted)), None)
    if found := _POSTERIOR.fullmatch(wish):
        before, after = float(read_share(found[1])), float(read_share(found[2]))
        epsilon = find_epsilon_for_posterior(prior=before, posterior=after)
        said = f"whoever believes it with {100 * before:g} % beforehand believes it with {100 * after:g} % at most"
        return RiskTarget(said, _round_epsilon_down(epsilon), _round_epsilon_down(epsilon / 2))
    if found := _GUESS.fullmatch(wish):
        many, success = int(found[1]), float(read_share(found[2]))
        epsilon = find_epsilon_for_guess(candidates=many, success=success)
        said = (
            f"the best guess among {many:,} equally likely values of one unit is right with {100 * success:g} % at most"
        )
        return RiskTarget(said, _round_epsilon_down(epsilon), _round_epsilon_down(epsilon))
    raise ValueError(f"say {_correct(wish)}")


def _correct(wish: str) -> str:
    """Return an accepted form of a target that cannot be parsed, with the typed numbers if there are enough."""
    found = find_shares(wish)
    if "advantage" in wish:
        return f'"advantage {found[0]}"' if len(found) == 1 else '"advantage 0.1"'
    if "posterior" in wish:
        return f'"posterior {found[0]} -> {found[1]}"' if len(found) == 2 else '"posterior 0.01 -> 0.05"'
    if "guess" in wish:
        found = find_shares(re.sub(r"(?<=\d),(?=\d{3}\b)", "", wish))
        plain = len(found) == 2 and found[0].isdecimal() and int(found[0]) < _MOST_CANDIDATES
        return f'"guess {found[0]} {found[1]}"' if plain else '"guess 100 0.05": of 100 values, right 5 % of the time'
    return '"advantage 0.1", "posterior 0.01 -> 0.05" or "guess 100 0.05"'


def _round_epsilon_down(epsilon: float) -> float:
    """Return an epsilon rounded down to four decimal places, so that the printed budget meets the target."""
    return math.floor(epsilon * 1e4 + 1e-9) / 1e4
