"""The loss of one key: the most that one privacy unit can reveal through all functionals together.

Guarantee: a record changes the functionals by parts of their sensitivities that a mixture of the exposures covers. So
the loss of a key is the largest sum, over the exposures, of epsilons times parts. Proof: docs/proofs/joint_loss.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from mechanisms.protocol import Calibration, Epsilons, Exposure
from mechanisms.threshold.one_shot import round_up_to_float

_ULP = 2.0**-52  # a float's relative spacing: what each addition may lose


def expose_all_functionals(functionals: int) -> tuple[Exposure, ...]:
    """Return the one exposure in which one unit changes every functional by its full sensitivity.

    The joint loss is the plain sum.

    >>> compute_joint_loss([Fraction(1, 2), Fraction(1, 4)], expose_all_functionals(2))
    Fraction(3, 4)
    """
    return ((Fraction(1),) * functionals,)


def expose_functional_sets(sets: Iterable[Iterable[int]], *, functionals: int) -> tuple[Exposure, ...]:
    """Return one exposure for each set of functionals that one unit can change at once. It changes all of them in full.

    >>> [[int(part) for part in one] for one in expose_functional_sets([[0, 1], [2]], functionals=3)]
    [[1, 1, 0], [0, 0, 1]]
    """
    return tuple(tuple(Fraction(f in group) for f in range(functionals)) for group in map(frozenset, sets))


def drop_dominated_exposures(exposures: Iterable[Exposure]) -> tuple[Exposure, ...]:
    """Return the exposures without those that another exposure covers in every part. The largest come first.

    Guarantee: for all epsilons >= 0 the joint loss is the same.

    >>> half = Fraction(1, 2)
    >>> drop_dominated_exposures([(Fraction(1), Fraction(0)), (Fraction(1), half)]) == ((Fraction(1), half),)
    True
    """
    kept: list[Exposure] = []
    for one in sorted(set(exposures), key=lambda parts: (sum(parts), parts), reverse=True):
        if not any(all(mine <= other for mine, other in zip(one, larger, strict=True)) for larger in kept):
            kept.append(one)
    return tuple(kept)


def compute_joint_loss(epsilons: Sequence[Fraction], exposures: Iterable[Exposure]) -> Fraction:
    """Return the largest sum, over the exposures, of `epsilons` times their parts.

    Raises:
        ValueError: a functional with positive epsilon is in no exposure.

    A unit that counts either for the first two functionals or for the third costs the larger of 3/4 and 1, not 7/4:

    >>> exposures = expose_functional_sets([[0, 1], [2]], functionals=3)
    >>> compute_joint_loss([Fraction(1, 2), Fraction(1, 4), Fraction(1)], exposures)
    Fraction(1, 1)
    """
    known = tuple(exposures)
    check_functionals_exposed((f for f, epsilon in enumerate(epsilons) if epsilon > 0), known)
    return max(
        (sum((part * loss for part, loss in zip(one, epsilons, strict=True)), start=Fraction(0)) for one in known),
        default=Fraction(0),
    )


def compute_joint_losses(epsilons: Mapping[int, Epsilons], exposures: Iterable[Exposure], *, keys: int) -> Epsilons:
    """Return each key's joint loss over functionals, rounded up.

    A functional that is not in `epsilons` has lost nothing.

    Parameters:
        epsilons: by functional, shape (keys,), each already rounded up.
    """
    worst = np.zeros(keys)
    for exposure in exposures:
        total = np.zeros(keys)
        for functional, lost in epsilons.items():
            if exposure[functional]:
                total += round_up_to_float(exposure[functional]) * lost
        np.maximum(worst, total, out=worst)
    return worst * (1.0 + 2 * (1 + len(epsilons)) * _ULP)


def list_sum_rates(calibration: Calibration) -> tuple[Fraction, ...]:
    """Return the rate of every common sum's noise at the last look, or zero for a sum that no test reads."""
    common = calibration.task.common
    assert common is not None
    rates = [Fraction(0)] * len(common.sensitivities)
    for reading, test in zip(common.readings, calibration.tests, strict=True):
        for noise in test.cell_noises:
            rates[noise.place] = noise.rate
        if test.rate and not test.cell_noises:
            rates[reading[0][0]] = test.rate
            if test.beside is not None:
                rates[reading[1][0]] = test.beside.rate
    return tuple(rates)


def check_functionals_exposed(functionals: Iterable[int], exposures: Sequence[Exposure]) -> None:
    """Raise ValueError if a functional has no positive part in any exposure."""
    if any(not any(exposure[functional] > 0 for exposure in exposures) for functional in functionals):
        raise ValueError("every functional must be in an exposure of what one unit changes at once")
