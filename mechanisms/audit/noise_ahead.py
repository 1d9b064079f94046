"""Noise drawn ahead: for audits that run one small question tens of thousands of times.

A draw of a few values costs its calls more than its values. So each kind of draw is made many at a time and handed out
in order, each value once.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np

from mechanisms.certified import Probability
from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Noise

_MOST_AHEAD = (
    1 << 14
)  # bounds what is drawn in vain; the first time as many are drawn as are wanted, then twice as many

Drawn = TypeVar("Drawn", Integers, Booleans)


@dataclass(slots=True)
class _Stock(Generic[Drawn]):
    """Values of one law that nobody has seen, from `first` on, and how many were drawn the last time."""

    values: Drawn
    first: int
    drawn: int


class NoiseAhead:
    """A source's draws, made ahead.

    Guarantee: values of the source's laws, independent of each other as the source's are; none is handed out twice.
    """

    def __init__(self, source: Noise) -> None:
        self._source = source
        self._integers: dict[Hashable, _Stock[Integers]] = {}
        self._booleans: dict[Hashable, _Stock[Booleans]] = {}

    def discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        """Draw from the source's `discrete_laplace`."""
        return _take(
            self._integers,
            ("two-sided", rate),
            size,
            lambda more: self._source.discrete_laplace(rate=rate, size=more),
        )

    def thinned_laplace(self, *, rate: Fraction, nonzero: Probability, size: int) -> Integers:
        """Draw from the source's `thinned_laplace`."""
        return _take(
            self._integers,
            ("thinned", rate, nonzero),
            size,
            lambda more: self._source.thinned_laplace(rate=rate, nonzero=nonzero, size=more),
        )

    def geometric(self, *, rate: Fraction, size: int) -> Integers:
        """Draw from the source's `geometric`."""
        return _take(
            self._integers, ("one-sided", rate), size, lambda more: self._source.geometric(rate=rate, size=more)
        )

    def bernoulli(self, *, probability: Fraction, size: int) -> Booleans:
        """Draw from the source's `bernoulli`."""
        return _take(
            self._booleans, probability, size, lambda more: self._source.bernoulli(probability=probability, size=more)
        )

    def coin(self, *, probability: Probability, size: int) -> Booleans:
        """Draw from the source's `coin`."""
        return _take(
            self._booleans, probability, size, lambda more: self._source.coin(probability=probability, size=more)
        )


def _take(stocks: dict[Hashable, _Stock[Drawn]], law: Hashable, size: int, draw: Callable[[int], Drawn]) -> Drawn:
    stock = stocks.get(law)
    if stock is None:
        stock = stocks[law] = _Stock(values=draw(size), first=0, drawn=size)
    left = len(stock.values) - stock.first
    if left < size:
        stock.drawn = max(size - left, min(_MOST_AHEAD, 2 * stock.drawn))
        stock.values = np.concatenate((stock.values[stock.first :], draw(stock.drawn)))
        stock.first = 0
    stock.first += size
    return stock.values[stock.first - size : stock.first]
