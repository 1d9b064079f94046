"""What was set beforehand about attackers, held against what they found."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.risk.attacks import KEY_SET, LAPLACE, PEGASUS, TARGETS, TRUE_COUNTS, TTL, Found, name_at_utility

INSIDERS = ("student", "administrator")
_TIMES = 1.5
_LIKE_TRUTH = 0.02
GROWING = (0.1, 1.0, 5.0)
"""The epsilons between which attackers find more; between others single classes may tell otherwise."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A claim, what was found, and whether it holds."""

    claim: str
    reached: str
    met: bool


def judge(found: Sequence[Found], over_epsilon: Sequence[Found]) -> Iterator[Bar]:
    """Every claim, by the published attack on one room at a time."""
    table = {(one.attacker, one.technique): one.one_place for one in found}
    curves = {
        (one.attacker, one.setting): one.one_place
        for one in over_epsilon
        if one.technique == LAPLACE and one.setting is not None
    }
    epsilons = [epsilon for epsilon in GROWING if any(epsilon == one for _, one in curves)]
    for attacker in INSIDERS:
        for target in TARGETS:
            private = max(table[attacker, name_at_utility(name, target)] for name in (LAPLACE, PEGASUS))
            times = table[attacker, name_at_utility(TTL, target)] / max(private, 1.0)
            claim = (
                f"{attacker}: at a utility of {100 * target:g} %, TTL helps {_TIMES:g} times as many as noise or more"
            )
            yield Bar(claim, f"{times:.2f} times", times >= _TIMES)
        truth = table[attacker, TRUE_COUNTS]
        finest = curves[attacker, epsilons[-1]]
        claim = f"{attacker}: at epsilon {epsilons[-1]:g} noise hides no more than {100 * _LIKE_TRUTH:g} % of it"
        yield Bar(claim, f"{finest:.0f} of {truth:.0f}", abs(finest - truth) <= _LIKE_TRUTH * truth)
        line = [curves[attacker, epsilon] for epsilon in epsilons]
        claim = f"{attacker}: more is found with each epsilon of {', '.join(f'{epsilon:g}' for epsilon in epsilons)}"
        yield Bar(claim, ", ".join(f"{value:.0f}" for value in line), all(low < high for low, high in pairwise(line)))
    for attacker in dict.fromkeys(one.attacker for one in found):
        keys, noisy = table[attacker, KEY_SET], table[attacker, name_at_utility(LAPLACE, TARGETS[-1])]
        claim = f"{attacker}: a key set helps less than Laplace at {100 * TARGETS[-1]:g} %"
        yield Bar(claim, f"{keys:.0f} and {noisy:.0f}", keys < noisy)
