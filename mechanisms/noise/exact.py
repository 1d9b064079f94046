"""Exact discrete Laplace noise, vectorised, from the operating system's random bits.

The binary digits of a geometric variable are independent: digit `j` of `G` with `P(G = n) = (1 - a) a^n` is one with
probability `1 / (1 + exp(rate * 2**j))`, `a = exp(-rate)`. So a draw is a handful of comparisons of uniform
random bits with known probabilities, each decided exactly (mechanisms/certified.py). Proof:
docs/proofs/discrete_laplace.md.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mechanisms.certified import Probability, exponential, logistic, rational
from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Unachievable

LEAST_RATE = Fraction(1, 1 << 48)  # noise of this rate stays far within 64-bit integers
GREATEST_RATE = Fraction(1 << 6)  # beyond, noise is zero but for less than one draw in 1e27

_DRAWS_AT_ONCE = 1 << 16  # bounds memory
_FIRST_BITS = 8  # random bits spent on every coin: one draw in 256 needs the further ones
_FURTHER_BITS = 64  # a machine word; a coin that it does not settle has probability 2**-64
_CARRY_EXPONENT = 8  # digits are drawn until the rest is worth exp(-8): fewer coins against more carries


@dataclass(frozen=True, slots=True)
class _Coins:
    """Independent coins, one per row, with the digits that decide most comparisons worked out once."""

    coins: tuple[Probability, ...]
    first: npt.NDArray[np.uint16]
    further: npt.NDArray[np.uint64]

    @staticmethod
    def of(coins: Sequence[Probability]) -> "_Coins":
        first = np.array([coin.prefix(_FIRST_BITS) for coin in coins], dtype=np.uint16)
        # a coin of probability one never ties in its first bits; its further digits are all zero
        further = np.array([coin.digits(_FIRST_BITS, _FURTHER_BITS) for coin in coins], dtype=np.uint64)
        return _Coins(coins=tuple(coins), first=first[:, np.newaxis], further=further)

    def part(self, start: int, stop: int) -> "_Coins":
        """Some of these coins, with the digits that are worked out already."""
        return _Coins(coins=self.coins[start:stop], first=self.first[start:stop], further=self.further[start:stop])


@dataclass(frozen=True, slots=True)
class _LaplaceCoins:
    """The coins of one discrete Laplace law: its digits, the carry beyond them, and being different from zero."""

    digits: int
    coins: _Coins


@lru_cache(maxsize=256)
def _laplace_coins(rate: Fraction) -> _LaplaceCoins:
    digits = 0
    while rate * (1 << digits) < _CARRY_EXPONENT:
        digits += 1
    coins = [logistic(rate, doubled=place, most=digits) for place in range(digits)]
    carry = exponential(rate, doubled=digits, most=digits)
    different_from_zero = logistic(rate, doubled=0, most=digits, twice=True)
    return _LaplaceCoins(digits=digits, coins=_Coins.of([*coins, carry, different_from_zero]))


@lru_cache(maxsize=256)
def _single_coin(probability: Fraction) -> _Coins:
    return _Coins.of([rational(probability)])


@lru_cache(maxsize=1024)
def _certified_coin(probability: Probability) -> _Coins:
    return _Coins.of([probability])


class ExactNoise:
    """Exact sampling from a stream of independent uniform bytes: `random_bytes(count)` gives the next `count`."""

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._bytes = random_bytes

    def discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        """`size` exact draws with `P(K = j) = (1 - a) / (1 + a) * a**abs(j)`, `a = exp(-rate)`.

        Guarantee: the law is exact given uniform bytes; only integers are compared.

        Parameters:
            rate: exact, in [`LEAST_RATE`, `GREATEST_RATE`]; so magnitudes stay far below 2**62.
            size: number of draws; the result is int64 of shape (size,).

        Raises:
            Unachievable: the rate lies outside its range.

        References: docs/proofs/discrete_laplace.md.
        """
        check_rate(rate)
        law = _laplace_coins(rate)
        result = np.empty(size, dtype=np.int64)
        for start in range(0, size, _DRAWS_AT_ONCE):
            stop = min(size, start + _DRAWS_AT_ONCE)
            result[start:stop] = self._laplace_block(law, stop - start)
        return result

    def geometric(self, *, rate: Fraction, size: int) -> Integers:
        """`size` exact draws with `P(G = n) = (1 - a) * a**n` for `n >= 0`, `a = exp(-rate)`; one-sided noise.

        Guarantee, parameters and errors as for `discrete_laplace`, whose digits are these.

        References: docs/proofs/discrete_laplace.md.
        """
        check_rate(rate)
        law = _laplace_coins(rate)
        coins = law.coins.part(0, law.digits + 1)
        result = np.empty(size, dtype=np.int64)
        for start in range(0, size, _DRAWS_AT_ONCE):
            stop = min(size, start + _DRAWS_AT_ONCE)
            result[start:stop] = self._geometric_block(law, self._flip(coins, stop - start))
        return result

    def bernoulli(self, *, probability: Fraction, size: int) -> Booleans:
        """`size` exact draws, each true with exactly `probability`, in [0, 1]."""
        return np.asarray(self._flip(_single_coin(probability), size)[0], dtype=np.bool_)

    def coin(self, *, probability: Probability, size: int) -> Booleans:
        """`size` exact draws, each true with exactly `probability`; pass one object again to reuse its digits."""
        return np.asarray(self._flip(_certified_coin(probability), size)[0], dtype=np.bool_)

    def _laplace_block(self, law: _LaplaceCoins, size: int) -> Integers:
        flips = self._flip(law.coins, size)
        magnitude = self._geometric_block(law, flips)
        magnitude += 1
        signs = np.frombuffer(self._bytes(-(-size // 8)), dtype=np.uint8)
        negative = np.unpackbits(signs, count=size).view(np.bool_)
        np.negative(magnitude, out=magnitude, where=negative)
        magnitude *= flips[law.digits + 1]
        return magnitude

    def _geometric_block(self, law: _LaplaceCoins, flips: Booleans) -> Integers:
        """From the flips of the digits and of the carry, in the first rows: how many carries follow is drawn here."""
        magnitude = np.zeros(flips.shape[1], dtype=np.int64)
        for place, byte in enumerate(np.packbits(flips[: law.digits], axis=0, bitorder="little")):
            magnitude += byte.astype(np.int64) << (8 * place)
        carrying = np.flatnonzero(flips[law.digits])
        carry = law.coins.part(law.digits, law.digits + 1)
        while carrying.size:
            magnitude[carrying] += 1 << law.digits
            carrying = carrying[self._flip(carry, carrying.size)[0]]
        return magnitude

    def _flip(self, coins: _Coins, size: int) -> Booleans:
        rows = len(coins.coins)
        drawn = np.frombuffer(self._bytes(rows * size), dtype=np.uint8).reshape(rows, size)
        result = drawn < coins.first
        tied_rows, tied_columns = np.nonzero(drawn == coins.first)
        if tied_rows.size:
            words = np.frombuffer(self._bytes(8 * tied_rows.size), dtype=np.uint64)
            digits = coins.further[tied_rows]
            result[tied_rows, tied_columns] = words < digits
            for tie in np.flatnonzero(words == digits):
                result[tied_rows[tie], tied_columns[tie]] = self._settle(coins.coins[tied_rows[tie]])
        return result

    def _settle(self, coin: Probability) -> bool:
        start = _FIRST_BITS + _FURTHER_BITS
        while True:
            word = int.from_bytes(self._bytes(_FURTHER_BITS // 8), "big")
            digits = coin.digits(start, _FURTHER_BITS)
            if word != digits:
                return word < digits
            start += _FURTHER_BITS


def system_noise() -> ExactNoise:
    """Noise from the operating system's cryptographic generator: the product's only source of randomness."""
    return ExactNoise(os.urandom)


def check_rate(rate: Fraction) -> None:
    """Raises `Unachievable` for a rate outside [`LEAST_RATE`, `GREATEST_RATE`]."""
    if not LEAST_RATE <= rate <= GREATEST_RATE:
        raise Unachievable("the noise this accuracy needs lies outside the range of exact sampling")
