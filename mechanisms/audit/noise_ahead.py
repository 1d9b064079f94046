"""Noise that is drawn in advance, for audits that run one small question tens of thousands of times.

A draw of a few values costs mostly the call. So many values of each law are drawn at a time and handed out in order,
each value once.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np

from mechanisms.certified import Probability
from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Noise, Words

_MOST_AHEAD = (
    1 << 14
)  # bounds what is drawn in vain; the first time as many are drawn as are wanted, then twice as many

Drawn = TypeVar("Drawn", Integers, Booleans, Words)


@dataclass(slots=True)
class _Stock(Generic[Drawn]):
    """Drawn values of one law, unused from `first_unused` on, and the number that was drawn the last time."""

    values: Drawn
    first_unused: int
    last_batch_size: int


class NoiseAhead:
    """A source of noise whose values are drawn in advance from another source.

    Guarantee: the values have the source's laws and are as independent as the source's. None is handed out twice.
    """

    def __init__(self, source: Noise) -> None:
        self._source = source
        self._integers: dict[Hashable, _Stock[Integers]] = {}
        self._booleans: dict[Hashable, _Stock[Booleans]] = {}
        self._words: dict[Hashable, _Stock[Words]] = {}

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        """Draw from the source's `draw_discrete_laplace`."""
        return _take_values(
            self._integers,
            ("two-sided", rate),
            size,
            lambda more: self._source.draw_discrete_laplace(rate=rate, size=more),
        )

    def draw_thinned_laplace(self, *, rate: Fraction, nonzero: Probability, size: int) -> Integers:
        """Draw from the source's `draw_thinned_laplace`."""
        return _take_values(
            self._integers,
            ("thinned", rate, nonzero),
            size,
            lambda more: self._source.draw_thinned_laplace(rate=rate, nonzero=nonzero, size=more),
        )

    def draw_geometric(self, *, rate: Fraction, size: int) -> Integers:
        """Draw from the source's `draw_geometric`."""
        return _take_values(
            self._integers, ("one-sided", rate), size, lambda more: self._source.draw_geometric(rate=rate, size=more)
        )

    def draw_bernoulli(self, *, probability: Fraction, size: int) -> Booleans:
        """Draw from the source's `draw_bernoulli`."""
        return _take_values(
            self._booleans,
            probability,
            size,
            lambda more: self._source.draw_bernoulli(probability=probability, size=more),
        )

    def draw_bernoulli_by_digits(self, *, probability: Probability, size: int) -> Booleans:
        """Draw from the source's `draw_bernoulli_by_digits`."""
        return _take_values(
            self._booleans,
            probability,
            size,
            lambda more: self._source.draw_bernoulli_by_digits(probability=probability, size=more),
        )

    def draw_words(self, *, size: int) -> Words:
        """Draw from the source's `draw_words`."""
        return _take_values(self._words, "words", size, lambda more: self._source.draw_words(size=more))


def _take_values(
    stocks: dict[Hashable, _Stock[Drawn]], law: Hashable, size: int, draw: Callable[[int], Drawn]
) -> Drawn:
    stock = stocks.get(law)
    if stock is None:
        stock = stocks[law] = _Stock(values=draw(size), first_unused=0, last_batch_size=size)
    left = len(stock.values) - stock.first_unused
    if left < size:
        stock.last_batch_size = max(size - left, min(_MOST_AHEAD, 2 * stock.last_batch_size))
        stock.values = np.concatenate((stock.values[stock.first_unused :], draw(stock.last_batch_size)))
        stock.first_unused = 0
    stock.first_unused += size
    return stock.values[stock.first_unused - size : stock.first_unused]
