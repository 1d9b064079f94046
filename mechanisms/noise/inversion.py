"""Exact inversion: a variable on 0, 1, .. drawn from one word of random bits, or from more if that does not decide.

With `U` uniform on [0, 1], the number of `k` with `U < P(N >= k)` has the law of `N`. The first digits of `U` nearly
always decide between which two of these probabilities it lies, so they are looked up in a table. If they equal the
first digits of one of the probabilities, further digits of both are compared until they differ. Proof:
docs/proofs/discrete_laplace.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np
import numpy.typing as npt

from mechanisms.certified import Survivals
from mechanisms.formula import Integers

RandomBytes = Callable[[int], bytes]
"""The next so many bytes of a stream of independent uniform ones."""

_FIRST_DIGITS = 15  # of a word of 16 bits, whose last one is left for a sign
_FURTHER_DIGITS = 64  # a machine word; what it does not settle has probability 2**-64
_PRECISION = 160  # bits: tells all digits of a first and a further word apart at once, nearly always
_TABLE_PAYS = 1 << 13  # draws at once: fewer are searched for, which takes as long as a table for some 30,000
_UNDECIDED = -(1 << 15)  # no count: those have 15 digits

Words = npt.NDArray[np.uint16]
Table = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class Inversion:
    """The distribution of a variable on 0, 1, .., with the digits that decide most draws computed once.

    `first_digits` has the first digits of `P(N >= k)` for `k = n, .., 1`, strictly rising. `next_digits` has their
    next digits. If it `is_endless`, a draw that reaches `n` is `n` plus a draw of `law_beyond`, or of this
    distribution itself if `law_beyond` is None.
    """

    survivals: Survivals
    is_endless: bool
    law_beyond: "Inversion | None"
    first_digits: Words
    next_digits: npt.NDArray[np.uint64]

    @staticmethod
    def from_survivals(survivals: Survivals, *, is_endless: bool, tail: "Inversion | None" = None) -> "Inversion":
        """Return the sampler of a distribution from its survival probabilities, which must be irrational numbers.

        Parameters:
            survivals: `P(N >= k)` for `k = 1, 2, ..`; without end if the law is endless.
            is_endless: True to stop at the first two that have the same first digits. A variable that reaches this
                value exceeds it by a variable with the distribution `law_beyond`, or with this distribution if
                `law_beyond` is None.
        """
        first: list[int] = []
        further: list[int] = []
        for digits in _list_digits(survivals):
            head = digits >> _FURTHER_DIGITS
            if first and head == first[-1]:
                assert is_endless, "a law with an end has few values"
                break
            first.append(head)
            further.append(digits - (head << _FURTHER_DIGITS))
        return Inversion(
            survivals=survivals,
            is_endless=is_endless,
            law_beyond=tail,
            first_digits=np.array(first[::-1], dtype=np.uint16),
            next_digits=np.array(further[::-1], dtype=np.uint64),
        )

    def draw(self, size: int, random_bytes: RandomBytes, *, signed: bool) -> Integers:
        """Draw `size` int64 values. If `signed`, multiply each by a fair random sign."""
        words = np.frombuffer(random_bytes(2 * size), dtype="<u2")
        if size < _TABLE_PAYS:
            return self._count_survivals(words, random_bytes, signed=signed)
        found = np.take(_make_table(self, signed=signed), words)
        result: Integers = found.astype(np.int64)
        undecided = np.flatnonzero(found == _UNDECIDED)
        if undecided.size:
            result[undecided] = self._count_survivals(words[undecided], random_bytes, signed=signed)
        return result

    def _count_survivals(self, words: Words, random_bytes: RandomBytes, *, signed: bool) -> Integers:
        """Return the values for these words, reading further bytes for the words that do not decide.

        No further byte is read for a word that decides.
        """
        counts, tied = self._compare_first_digits(words)
        places = np.flatnonzero(tied)
        if places.size:
            rows = self.first_digits.size - 1 - counts[places]
            drawn, limits = np.frombuffer(random_bytes(8 * places.size), dtype="<u8"), self.next_digits[rows]
            counts[places] += drawn < limits
            for tie in np.flatnonzero(drawn == limits):
                counts[places[tie]] += self._settle_tie(int(counts[places[tie]]) + 1, random_bytes)
        if self.is_endless:
            ended = np.flatnonzero(counts == self.first_digits.size)
            if ended.size:
                counts[ended] += (self.law_beyond or self).draw(ended.size, random_bytes, signed=False)
        return np.where(words & 1, -counts, counts) if signed else counts

    def _compare_first_digits(self, words: Words) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Return the number of survivals surely above each word, and True if the next has the same first digits."""
        digits = np.right_shift(words, 1, dtype=np.uint16)
        below: Integers = np.searchsorted(self.first_digits, digits, side="right")
        # where all lie above, this looks at the greatest, whose digits are not these
        return self.first_digits.size - below, self.first_digits[below - 1] == digits

    def _settle_tie(self, which: int, random_bytes: RandomBytes) -> bool:
        """Return True if a uniform number is below the survival `which`. So far both have the same digits."""
        known = _FIRST_DIGITS + _FURTHER_DIGITS
        while True:
            word = int.from_bytes(random_bytes(_FURTHER_DIGITS // 8), "big")
            known += _FURTHER_DIGITS
            digits = self._read_prefix(which, known) % (1 << _FURTHER_DIGITS)
            if word != digits:
                return word < digits

    def _read_prefix(self, which: int, bits: int) -> int:
        precision = max(_PRECISION, bits + 64)
        while True:
            low, high = next(islice(self.survivals(precision), which - 1, None))
            first, last = low >> (precision - bits), high >> (precision - bits)
            if first == last:
                return first
            precision *= 2


def _list_digits(survivals: Survivals) -> list[int]:
    """Return the first and further digits of the survivals.

    The list ends at the first survival with the same first digits as the one before.
    """
    precision = _PRECISION
    while True:
        found: list[int] = []
        excess = precision - _FIRST_DIGITS - _FURTHER_DIGITS
        for low, high in survivals(precision):
            digits = low >> excess
            if digits != high >> excess:
                break
            found.append(digits)
            if len(found) > 1 and found[-2] >> _FURTHER_DIGITS == digits >> _FURTHER_DIGITS:
                return found
        else:
            return found
        precision *= 2


@lru_cache(maxsize=64)
def _make_table(law: Inversion, *, signed: bool) -> Table:
    """Return a table of 128 kB with the value that each word of 16 bits decides."""
    words = np.arange(1 << 16, dtype=np.uint16)
    counts, undecided = law._compare_first_digits(words)
    if law.is_endless:
        undecided |= counts == law.first_digits.size
    if signed:
        counts = np.where(words & 1, -counts, counts)
    return np.where(undecided, _UNDECIDED, counts).astype(np.int16)
