"""The loss of one key: the most that one privacy unit can reveal through all functionals together.

Guarantee: a record changes only the functionals of one of the sets affected together, so the loss of a key is
the largest sum of epsilons over those sets. Proof: docs/proofs/joint_loss.md. References: MATHS M6.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeVar

_Amount = TypeVar("_Amount", float, Fraction)


def joint_loss(epsilons: Sequence[_Amount], affected_together: Iterable[frozenset[int]]) -> _Amount:
    """The largest sum of `epsilons` over the given sets of functionals.

    Raises:
        ValueError: a functional with positive epsilon lies in no set.
    """
    sets = tuple(affected_together)
    covered = frozenset[int]().union(*sets)
    if any(epsilon > 0 and functional not in covered for functional, epsilon in enumerate(epsilons)):
        raise ValueError("every functional must lie in a set of functionals affected together")
    nothing = epsilons[0] * 0
    return max((sum((epsilons[f] for f in group), start=nothing) for group in sets), default=nothing)
