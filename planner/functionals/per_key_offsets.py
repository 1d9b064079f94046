"""Thresholds that differ between groups, as one cut: a public integer per key is subtracted from the functional.

These are MIDE's c_1 ... c_k. In integers `S > t_k` is `S > floor(t_k)`. That is `S - o_k > c` with `c` the least of all
`floor(t_k)` and `o_k = floor(t_k) - c`. The offsets are public, so sensitivities and noise are those of S itself.
"""

from fractions import Fraction
from math import ceil, floor

import numpy as np

from mechanisms.formula import Integers
from planner.aggregates.key_numbers import KeyNumbers
from planner.errors import KeyholeError
from planner.question.question import Offsets, Question
from planner.values.decimals import convert_to_decimal

LIMIT = 2**61
"""Sums are clipped here, so that they stay within an int64 after an offset of up to this size and noise."""


def make_offsets(
    own: KeyNumbers, operator: str, *, size: Fraction, left: str, position: int | None
) -> tuple[Offsets | None, Fraction]:
    """Return each group's offset, in integer steps of `size`, and the one threshold that then serves all groups.

    Guarantee: in integers, `S operator own` holds in a group exactly if `S` minus its offset compares in the same way
    with the returned threshold. The offsets are None if all are 0. Raises KH208 for an equality whose thresholds are
    whole in some groups only.

    Guarantee: in integers, `S operator own` holds in a group exactly if `S` minus its offset compares in the same way
    with the returned threshold. Return None for offsets that are all 0. Raises KH208 for an equality whose thresholds
    are whole in some groups only.
    """
    exact = [number / size for number in own.known_numbers]
    whole = sum(at.denominator == 1 for at in exact)
    if operator in ("=", "<>") and whole < len(exact):
        if whole == 0:
            return None, exact[0]
        raise KeyholeError(
            "KH208",
            f"{left} {operator} {own.text} compares with a whole number in some groups, but not in all",
            hint=f"Write NOT ({left} < {own.text} OR {left} > {own.text})."
            if operator == "="
            else f"Write {left} < {own.text} OR {left} > {own.text}.",
            position=position,
        )
    edges = [floor(at) if operator in (">", "<=") else ceil(at) for at in exact]
    least = min(edges)
    steps = tuple(edge - least for edge in edges)
    if not any(steps):
        return None, Fraction(least)
    return Offsets(own.key, steps, f"{own.text} - {convert_to_decimal(least * size)}"), Fraction(least)


def subtract_offsets(question: Question, values: Integers) -> Integers:
    """Return the functionals minus their offsets. Their cuts are compared with these.

    Guarantee: one privacy unit changes each difference by no more than the functional itself. Offsets are public, and
    clipping at `LIMIT` only brings values closer to each other. If no offset is above `LIMIT`, adding an offset again
    gives the same number, whichever offset was subtracted. So noise also serves questions with other thresholds of
    this kind. Proof: docs/proofs/reuse.md.

    Parameters:
        values: int64 of shape (functionals, keys), keys in row-major order.
    """
    if all(functional.offsets is None for functional in question.functionals) and _is_within_limit(values):
        return values
    result = np.clip(values, -LIMIT, LIMIT)
    for index, functional in enumerate(question.functionals):
        if functional.offsets is not None:
            lowered = result[index] - spread_offsets(question, functional.offsets)
            result[index] = np.clip(lowered, -2 * LIMIT, 2 * LIMIT)
    return result


def spread_offsets(question: Question, taken: Offsets) -> Integers:
    """Return the offset of each key of the question as an array, in row-major order of the keys."""
    shape = [1] * len(question.keys.shape)
    shape[question.keys.names.index(taken.key)] = -1
    steps = np.array(taken.steps, dtype=np.int64).reshape(shape)
    return np.broadcast_to(steps, question.keys.shape).reshape(-1)


def _is_within_limit(values: Integers) -> bool:
    """Return True if no value has to be clipped, so that large arrays need not be copied."""
    return values.size == 0 or (int(values.min()) >= -LIMIT and int(values.max()) <= LIMIT)
