"""The loss of arc looks, read off their integers: Rényi divergences at the public orders, and the pure loss.

Guarantee: upper bounds. Ratios and powers are floats whose rounding errors are bounded and added. Logarithms are
decimals, rounded up.

Proof: docs/proofs/arc.md, "The loss of a table".
"""

from collections.abc import MutableMapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from itertools import pairwise
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mechanisms.protocol import LookTable, Words
from mechanisms.threshold.renyi import ORDERS

Divergences: TypeAlias = tuple[Decimal, ...]
"""By order, a divergence in nats, rounded up."""

_KNOWN_DIVERGENCES: MutableMapping[LookTable, dict[int, Divergences]] = WeakKeyDictionary()
_KNOWN_PURE_LOSSES: MutableMapping[LookTable, dict[int, Decimal]] = WeakKeyDictionary()
"""By table and moves, as long as the table is used."""

_Floats: TypeAlias = npt.NDArray[np.float64]

_ROUNDED_UP = Context(prec=40, rounding=ROUND_CEILING)
_LAST_DIGITS = Decimal("1e-35")  # more than a logarithm to forty digits loses
_AT_ONCE = 1 << 11  # entries whose powers fit into a processor's cache: three times as fast
_ULP = 2.0**-53  # what one operation on floats loses, as a part of its result
_FACTORS = {2: 1, 3: 2, 4: 2, 5: 4, 6: 3, 8: 4, 10: 5, 12: 6, 16: 8, 20: 10, 24: 12, 40: 20, 80: 40}
"""Each power of a ratio, in turn, and the larger of two earlier powers whose product it is."""


def compute_divergences(table: LookTable, moves: int) -> Divergences:
    """Return the largest divergences between two places of a table that are at most `moves` steps apart.

    Both directions count.

    Parameters:
        moves: at least 0. The table's own number is the most that one unit moves a value.
    """
    known = _KNOWN_DIVERGENCES.setdefault(table, {})
    if moves not in known:
        known[moves] = _find_divergences(table, moves) if moves else (Decimal(0),) * len(ORDERS)
    return known[moves]


def _find_divergences(table: LookTable, moves: int) -> Divergences:
    # of two outcomes, the farther move has the larger divergence; of three, it is tried
    tried = (moves,) if table.is_last else range(1, moves + 1)
    most = [0.0] * len(ORDERS)
    outcomes = [outcome.astype(np.float64) * 2.0**-64 for outcome in _list_outcomes(table)]
    for one in tried:
        pairs = [_pair_with_moved(outcome, one) for outcome in outcomes]
        for start in range(0, table.accepted.size, _AT_ONCE):
            part = [(low[start : start + _AT_ONCE], high[start : start + _AT_ONCE]) for low, high in pairs]
            for low, high in ((0, 1), (1, 0)):
                found = _compute_moments([pair[low] for pair in part], [pair[high] for pair in part])
                most = [max(known, more) for known, more in zip(most, found, strict=True)]
    pure = compute_pure_loss(table, moves)
    with localcontext(_ROUNDED_UP):
        return tuple(min(pure, _convert_moment(moment, order)) for moment, order in zip(most, ORDERS, strict=True))


def compute_pure_loss(table: LookTable, moves: int) -> Decimal:
    """Return the largest change of the logarithm of any outcome's probability within `moves` steps, rounded up."""
    known = _KNOWN_PURE_LOSSES.setdefault(table, {})
    if moves not in known:
        known[moves] = _find_pure_loss(table, moves)
    return known[moves]


def _find_pure_loss(table: LookTable, moves: int) -> Decimal:
    largest = 1.0
    tried = (moves,) if table.is_last else range(1, moves + 1)
    for outcome in _list_outcomes(table):
        for one in tried:
            before, after = _pair_with_moved(outcome.astype(np.float64), one)
            largest = max(largest, float((before / after).max()), float((after / before).max()))
    with localcontext(_ROUNDED_UP):
        return (Decimal(largest) * (1 + 4 * Decimal(_ULP))).ln() + _LAST_DIGITS if moves else Decimal(0)


def list_convex_divergences(table: LookTable) -> tuple[Divergences, ...]:
    """Return bounds on the divergences by 0, 1, .., `moves` steps that are convex in the number of steps.

    They are the divergences themselves if these are convex, which is tested at every order. Otherwise each step costs
    at least as much as the steps before it.
    """
    rows = [compute_divergences(table, moves) for moves in range(table.moves + 1)]
    with localcontext(_ROUNDED_UP):
        return tuple(zip(*(_raise_to_convex(column) for column in zip(*rows, strict=True)), strict=True))


def _raise_to_convex(values: Sequence[Decimal]) -> list[Decimal]:
    """Return the least of the sequences that start alike, are nowhere below and whose steps never decrease.

    >>> [int(value) for value in _raise_to_convex([Decimal(one) for one in (0, 2, 3, 9)])]
    [0, 2, 4, 9]
    """
    found, step = [values[0]], Decimal(0)
    for _, value in pairwise(values):
        step = max(step, value - found[-1])
        found.append(found[-1] + step)
    return found


def _list_outcomes(table: LookTable) -> list[Words]:
    known = [table.accepted, table.rejected]
    return known if table.is_last else [*known, np.uint64(0) - table.accepted - table.rejected]


def _pair_with_moved(values: _Floats, moves: int) -> tuple[_Floats, _Floats]:
    """Return values, and for each the one `moves` places above. Beyond the end it is the last."""
    beyond = np.full(min(moves, values.size), values[-1])
    return values, np.concatenate((values[moves:], beyond))


def _compute_moments(moved: Sequence[_Floats], still: Sequence[_Floats]) -> list[float]:
    """Return by order the largest sum of `still * (moved / still)**order` over the outcomes, as floats."""
    with np.errstate(over="ignore", under="ignore"):
        powers = [{1: one / other} for one, other in zip(moved, still, strict=True)]
        for known in powers:
            for power, larger in _FACTORS.items():
                known[power] = known[larger] * known[power - larger]
        return [
            float(np.sum([known[order] * other for known, other in zip(powers, still, strict=True)], axis=0).max())
            for order in ORDERS
        ]


def _convert_moment(moment: float, order: int) -> Decimal:
    """Return the divergence of a moment, with all that the floats may have lost."""
    if moment == float("inf"):
        return Decimal("Infinity")
    raised = Decimal(moment) * (1 + Decimal((5 * order + 16) * _ULP))
    return max(Decimal(0), (raised.ln() + _LAST_DIGITS) / (order - 1))
