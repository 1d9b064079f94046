"""Exact discrete Laplace noise, vectorised.

The magnitude is drawn by exact inversion (mechanisms/noise/inversion.py): two random bytes decide nearly every draw.
Wide noise has too many values for one table. But the binary digits of a geometric variable are independent, so its low
digits and the rest are drawn separately. Proof: docs/proofs/discrete_laplace.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from mechanisms.certified import (
    Probability,
    list_digit_survivals,
    list_geometric_survivals,
    make_exponential,
    make_logistic,
    make_rational,
)
from mechanisms.formula import Booleans, Integers
from mechanisms.noise.inversion import Inversion, RandomBytes
from mechanisms.noise.random_bytes import draw_random_bytes
from mechanisms.protocol import Unachievable, Words
from mechanisms.side_by_side import count_threads

LEAST_RATE = Fraction(1, 1 << 48)  # noise of this rate stays far within 64-bit integers
GREATEST_RATE = Fraction(1 << 6)  # beyond, noise is zero but for less than one draw in 1e27

_DRAWS_AT_ONCE = 1 << 16  # bounds memory
_LEAST_TABLE_RATE = Fraction(1, 16)  # wider noise has its low digits drawn apart: more bytes against larger tables
_DIGITS_AT_ONCE = 6  # of the low digits: likewise
_FIRST_BITS = 8  # random bits spent on every coin: one draw in 256 needs the further ones
_FURTHER_BITS = 64  # a machine word; a coin that it does not settle has probability 2**-64


@dataclass(frozen=True, slots=True)
class _Coin:
    """A probability with its first digits computed once. They decide most comparisons."""

    probability: Probability
    first_digits: int
    next_digits: np.uint64

    @staticmethod
    def from_probability(probability: Probability) -> "_Coin":
        # a coin of probability one never ties in its first bits; its further digits are all zero
        first, further = probability.read_prefix(_FIRST_BITS), probability.read_digits(_FIRST_BITS, _FURTHER_BITS)
        return _Coin(probability=probability, first_digits=first, next_digits=np.uint64(further))


@dataclass(frozen=True, slots=True)
class _Digits:
    """The laws of the binary digits of a geometric variable: its low digits by place, and the rest from `places` on."""

    low: tuple[tuple[int, Inversion], ...]
    places: int
    rest: Inversion


@lru_cache(maxsize=256)
def _make_geometric_law(rate: Fraction) -> _Digits:
    places = _count_doublings(rate)
    parts = -(-places // _DIGITS_AT_ONCE)
    ends = [places * part // parts for part in range(parts + 1)] if parts else []
    low = tuple(
        (
            start,
            Inversion.from_survivals(list_digit_survivals(rate, doubled=start, digits=end - start), is_endless=False),
        )
        for start, end in pairwise(ends)
    )
    first = make_exponential(rate, doubled=places, most=places)
    rest = Inversion.from_survivals(list_geometric_survivals(first, rate, doubled=places), is_endless=True)
    return _Digits(low=low, places=places, rest=rest)


@lru_cache(maxsize=256)
def _make_laplace_law(rate: Fraction) -> _Digits:
    return _make_thinned_law(rate, make_logistic(rate, doubled=0, most=_count_doublings(rate), is_doubled=True))


@lru_cache(maxsize=256)
def _make_thinned_law(rate: Fraction, nonzero: Probability) -> _Digits:
    """Return the laws of the digits of the magnitude minus one.

    The law `rest` is shifted by one, so that its zero stands for a value of zero.
    """
    law = _make_geometric_law(rate)
    survivals = list_geometric_survivals(nonzero, rate, doubled=law.places)
    return _Digits(
        low=law.low, places=law.places, rest=Inversion.from_survivals(survivals, is_endless=True, tail=law.rest)
    )


def _count_doublings(rate: Fraction) -> int:
    places = 0
    while rate * (1 << places) < _LEAST_TABLE_RATE:
        places += 1
    return places


@lru_cache(maxsize=256)
def _make_rational_coin(probability: Fraction) -> _Coin:
    return _Coin.from_probability(make_rational(probability))


@lru_cache(maxsize=1024)
def _make_irrational_coin(probability: Probability) -> _Coin:
    return _Coin.from_probability(probability)


class ExactNoise:
    """An exact sampler on a stream of independent uniform bytes. `random_bytes(count)` returns the next `count` bytes.

    Parameters:
        threads: the number of threads that may draw at the same time. Use more than one only if no two calls can get
            the same bytes.
    """

    def __init__(self, random_bytes: RandomBytes, *, threads: int = 1) -> None:
        self._bytes = random_bytes
        self.threads = threads

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        """Draw `size` exact values with `P(K = j) = (1 - a) / (1 + a) * a**abs(j)`, `a = exp(-rate)`.

        Guarantee: the law is exact given uniform bytes; only integers are compared.

        Parameters:
            rate: exact, in [`LEAST_RATE`, `GREATEST_RATE`]; so magnitudes stay far below 2**62.
            size: number of draws; the result is int64 of shape (size,).

        Raises:
            Unachievable: the rate lies outside its range.

        References: docs/proofs/discrete_laplace.md.
        """
        check_rate(rate)
        return self._draw(_make_laplace_law(rate), size, signed=True)

    def draw_thinned_laplace(self, *, rate: Fraction, nonzero: Probability, size: int) -> Integers:
        """Draw `size` exact values: with exactly the probability `nonzero` a discrete Laplace draw that is not zero.

        Otherwise the value is zero. Pass the same `nonzero` object in later calls to reuse its digits.

        Guarantee, parameters and errors as for `draw_discrete_laplace`; the probability is irrational.

        References: docs/proofs/discrete_laplace.md.
        """
        check_rate(rate)
        return self._draw(_make_thinned_law(rate, nonzero), size, signed=True)

    def draw_geometric(self, *, rate: Fraction, size: int) -> Integers:
        """Draw `size` exact values with `P(G = n) = (1 - a) * a**n` for `n >= 0`, `a = exp(-rate)`; one-sided noise.

        Guarantee, parameters and errors as for `draw_discrete_laplace`.

        References: docs/proofs/discrete_laplace.md.
        """
        check_rate(rate)
        return self._draw(_make_geometric_law(rate), size, signed=False)

    def draw_bernoulli(self, *, probability: Fraction, size: int) -> Booleans:
        """Draw `size` exact values, each true with exactly `probability`, in [0, 1]."""
        return self._flip_coins(_make_rational_coin(probability), size)

    def draw_bernoulli_by_digits(self, *, probability: Probability, size: int) -> Booleans:
        """Draw `size` exact values, each true with exactly `probability`.

        Pass the same object later to reuse its digits.
        """
        return self._flip_coins(_make_irrational_coin(probability), size)

    def draw_words(self, *, size: int) -> Words:
        """Draw `size` uniform numbers from 0 to 2**64 - 1."""
        return np.frombuffer(self._bytes(8 * size), dtype="<u8")

    def _draw(self, law: _Digits, size: int, *, signed: bool) -> Integers:
        if size <= _DRAWS_AT_ONCE:
            return self._draw_block(law, size, signed=signed)
        result = np.empty(size, dtype=np.int64)
        for start in range(0, size, _DRAWS_AT_ONCE):
            stop = min(size, start + _DRAWS_AT_ONCE)
            result[start:stop] = self._draw_block(law, stop - start, signed=signed)
        return result

    def _draw_block(self, law: _Digits, size: int, *, signed: bool) -> Integers:
        rest = law.rest.draw(size, self._bytes, signed=signed)
        if not law.low:
            return rest
        magnitude = np.abs(rest)
        if signed:
            magnitude -= 1
        magnitude <<= law.places
        for place, digits in law.low:
            magnitude += digits.draw(size, self._bytes, signed=False) << place
        if signed:
            magnitude += 1
            magnitude *= np.sign(rest)
        return magnitude

    def _flip_coins(self, coin: _Coin, size: int) -> Booleans:
        drawn = np.frombuffer(self._bytes(size), dtype=np.uint8)
        result = drawn < np.uint16(coin.first_digits)
        tied = np.flatnonzero(drawn == np.uint16(coin.first_digits))
        if tied.size:
            words = np.frombuffer(self._bytes(8 * tied.size), dtype="<u8")
            result[tied] = words < coin.next_digits
            for tie in np.flatnonzero(words == coin.next_digits):
                result[tied[tie]] = self._settle_tie(coin.probability)
        return result

    def _settle_tie(self, probability: Probability) -> bool:
        start = _FIRST_BITS + _FURTHER_BITS
        while True:
            word = int.from_bytes(self._bytes(_FURTHER_BITS // 8), "big")
            digits = probability.read_digits(start, _FURTHER_BITS)
            if word != digits:
                return word < digits
            start += _FURTHER_BITS


def make_system_noise() -> ExactNoise:
    """Return noise from the operating system's cryptographic generator, the product's only source of randomness.

    Requests of many bytes are served by a cipher with a fresh key of that generator
    (docs/decisions/0032-random-bytes.md).
    """
    return ExactNoise(draw_random_bytes, threads=count_threads())


def check_rate(rate: Fraction) -> None:
    """Raise `Unachievable` for a rate outside [`LEAST_RATE`, `GREATEST_RATE`]."""
    if not LEAST_RATE <= rate <= GREATEST_RATE:
        raise Unachievable("the noise this accuracy needs lies outside the range of exact sampling")
