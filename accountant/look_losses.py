"""The losses of one cell after each look of a question, and the check of a commit by the looks that ran.

Guarantee: a loss that passes `check_looks_that_ran` is at most the reservation, in each cell and at each order.

Proof: docs/proofs/renyi.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from accountant.errors import LedgerMisuse
from mechanisms.threshold.renyi import NO_CURVE, ORDERS, Curve


@dataclass(frozen=True, slots=True)
class LossAfterLooks:
    """The loss of one cell after some looks of a question: pure, and by Rényi curve if the question has one."""

    epsilon_nano: int
    cell_renyi: Curve | None


def check_curve(curve: Curve | None, pure_nano: int) -> None:
    """Raise `LedgerMisuse` unless a curve has a divergence for each order, none above the pure loss."""
    if curve is not None and (len(curve) != len(ORDERS) or not all(0 <= nano <= pure_nano for nano in curve)):
        raise LedgerMisuse("a curve has a divergence for each order, none above the pure loss")


def check_looks(looks: Sequence[LossAfterLooks], worst: LossAfterLooks) -> None:
    """Raise `LedgerMisuse` unless every look adds to the loss, and the last one ends at the worst case."""
    if looks[-1] != worst or len({look.cell_renyi is None for look in looks}) > 1:
        raise LedgerMisuse("the last look ends at the worst case, and each has a curve if the question has one")
    for before, after in pairwise((LossAfterLooks(0, NO_CURVE), *looks)):
        check_curve(after.cell_renyi, after.epsilon_nano)
        orders = zip(before.cell_renyi or NO_CURVE, after.cell_renyi or NO_CURVE, strict=True)
        if before.epsilon_nano >= after.epsilon_nano or any(less > more for less, more in orders):
            raise LedgerMisuse("every look adds to the loss")


def check_looks_that_ran(
    looks: Sequence[LossAfterLooks], losses: npt.NDArray[np.int64] | int, *, ran: Curve | None, reserved: Curve | None
) -> None:
    """Raise `LedgerMisuse` unless each loss is that after a look, and the unit's curve within the reserved one."""
    ends = np.array([look.epsilon_nano for look in looks], dtype=np.int64)
    if not looks or not np.array_equal(ends[np.searchsorted(ends, losses).clip(max=ends.size - 1)], losses):
        raise LedgerMisuse("what is charged in Rényi divergences is spent in full, or look by look")
    if (ran is None) != (reserved is None) or any(
        more > most for more, most in zip(ran or NO_CURVE, reserved or NO_CURVE, strict=True)
    ):
        raise LedgerMisuse("the looks that ran have a curve of units within the reserved one, if there is one")
