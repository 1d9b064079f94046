"""Noise drawn ahead is the source's, in its order, each value once."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.audit.noise_ahead import NoiseAhead
from mechanisms.certified import Probability, make_rational
from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Words


class Counting:
    """Hands out 0, 1, 2, ... for every rate, and truths at every third place for every probability."""

    def __init__(self) -> None:
        self.drawn: dict[object, int] = {}

    def _next(self, law: object, size: int) -> Integers:
        start = self.drawn.get(law, 0)
        self.drawn[law] = start + size
        return np.arange(start, start + size, dtype=np.int64)

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        return self._next(rate, size)

    def draw_thinned_laplace(self, *, rate: Fraction, nonzero: Probability, size: int) -> Integers:
        return self._next(("thinned", rate, nonzero), size)

    def draw_geometric(self, *, rate: Fraction, size: int) -> Integers:
        return self._next(("one-sided", rate), size)

    def draw_bernoulli(self, *, probability: Fraction, size: int) -> Booleans:
        return np.asarray(self._next(probability, size) % 3 == 0)

    def draw_bernoulli_by_digits(self, *, probability: Probability, size: int) -> Booleans:
        return np.asarray(self._next(probability, size) % 3 == 0)

    def draw_words(self, *, size: int) -> Words:
        return self._next("words", size).astype(np.uint64)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 40)), max_size=60))
def test_every_value_is_handed_out_once_and_in_order(wanted: list[tuple[int, int]]) -> None:
    source = Counting()
    ahead = NoiseAhead(source)
    next_of = dict.fromkeys((1, 2, 3), 0)
    coin = make_rational(Fraction(1, 3))
    for law, size in wanted:
        places = np.arange(next_of[law], next_of[law] + size)
        drawn = ahead.draw_discrete_laplace(rate=Fraction(law), size=size)
        assert drawn.tolist() == places.tolist()
        drawn += 1  # whoever has them may write to them
        assert ahead.draw_bernoulli(probability=Fraction(1, 1 + law), size=size).tolist() == (places % 3 == 0).tolist()
        assert ahead.draw_thinned_laplace(rate=Fraction(law), nonzero=coin, size=size).tolist() == places.tolist()
        assert ahead.draw_geometric(rate=Fraction(law), size=size).tolist() == places.tolist()
        next_of[law] += size
    assert ahead.draw_bernoulli_by_digits(probability=coin, size=7).tolist() == [True, False, False] * 2 + [True]
    assert ahead.draw_words(size=3).tolist() == [0, 1, 2]
    assert ahead.draw_words(size=2).tolist() == [3, 4]
    for law, size in next_of.items():
        assert source.drawn.get(Fraction(law), 0) <= 3 * size + 40
