"""Exact binomial numbers: how many of some records are chosen, each with one probability."""

from fractions import Fraction

import numpy as np

from mechanisms.formula import Integers
from mechanisms.protocol import Noise


def draw_binomials(numbers: Integers, *, probability: Fraction, noise: Noise) -> Integers:
    """Draw, for each number of records, how many of them are chosen, each with exactly `probability`.

    The result has the shape of `numbers`.
    """
    flat = numbers.ravel()
    found = np.zeros_like(flat)
    some = np.flatnonzero(flat)
    if len(some):
        coins = noise.draw_bernoulli(probability=probability, size=int(flat.sum()))
        starts = np.concatenate(([0], np.cumsum(flat[some])[:-1]))
        found[some] = np.add.reduceat(coins, starts, dtype=np.int64)
    return found.reshape(numbers.shape)


def spread_records_evenly(numbers: Integers, *, over: int, noise: Noise) -> Integers:
    """Spread each number of records over `over` values. Every record gets each value with the same probability.

    Parameters:
        numbers: int64 of shape (groups,).

    Returns int64 of shape (groups, over), whose rows add up to `numbers`.
    """
    if over == 1:
        return numbers[:, np.newaxis]
    left = over // 2
    lower = draw_binomials(numbers, probability=Fraction(left, over), noise=noise)
    halves = (lower, left), (numbers - lower, over - left)
    return np.concatenate([spread_records_evenly(part, over=size, noise=noise) for part, size in halves], axis=1)
