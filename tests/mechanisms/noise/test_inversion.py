"""Inversion of a law from words of random bits: every word, ties, the end of a law."""

from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.certified import (
    Survivals,
    list_digit_survivals,
    list_geometric_survivals,
    make_exponential,
    make_logistic,
)
from mechanisms.formula import Integers
from mechanisms.noise.exact import LEAST_RATE
from mechanisms.noise.inversion import Inversion, Words
from tests.in_turn import in_turn

WORDS = np.arange(1 << 16, dtype=np.uint16)
RATES = [Fraction(1, 16), Fraction(2890371, 10**7), Fraction(1), Fraction(3), Fraction(40)]


class Script:
    """Given words at the first call, the same eight bytes for every tie, and then words that are above everything."""

    def __init__(self, words: bytes, *, further: bytes) -> None:
        self._words, self._further, self.calls = words, further, 0

    def __call__(self, count: int) -> bytes:
        self.calls += 1
        if self.calls == 1:
            assert count == len(self._words)
            return self._words
        return self._further * (count // 8) if count % 8 == 0 and self.calls == 2 else b"\xff" * count


def read(law: Inversion, words: Words, *, below: bool, signed: bool = False) -> Integers:
    """What words draw where every tie falls below, or above."""
    given = Script(words.astype("<u2").tobytes(), further=b"\0" * 8 if below else b"\xff" * 8)
    return law.draw(words.size, given, signed=signed)


def endless(rate: Fraction) -> Inversion:
    return Inversion.from_survivals(
        list_geometric_survivals(make_exponential(rate, doubled=0, most=0), rate, doubled=0), is_endless=True
    )


def decay(rate: Fraction) -> Decimal:
    return (-Decimal(rate.numerator) / Decimal(rate.denominator)).exp()


@in_turn("rate", RATES)
@in_turn("below", [False, True])
def test_every_word_of_an_endless_law_is_compared_rightly(rate: Fraction, *, below: bool) -> None:
    """Of all words as many reach each value as there are whole cells below its survival, and one more where a tie falls
    below: by decimal arithmetic of a hundred digits."""
    law = endless(rate)
    assert law.first_digits.size < 250
    drawn = read(law, WORDS, below=below)
    with localcontext() as context:
        context.prec = 100
        for least in range(1, law.first_digits.size + 1):
            cells = int(decay(rate) ** least * 2**15)
            assert (drawn >= least).sum() == 2 * (cells + below)
    assert drawn.max() <= law.first_digits.size


@pytest.mark.parametrize(("rate", "place"), [(LEAST_RATE, 0), (LEAST_RATE, 36), (Fraction(1, 1000), 0)])
@pytest.mark.parametrize("below", [False, True])
def test_every_word_of_low_digits_is_compared_rightly(rate: Fraction, place: int, *, below: bool) -> None:
    law = Inversion.from_survivals(list_digit_survivals(rate, doubled=place, digits=6), is_endless=False)
    drawn = read(law, WORDS, below=below)
    with localcontext() as context:
        context.prec = 100
        step = decay(rate * 2**place)
        for least in range(1, 64):
            cells = int((step**least - step**64) / (1 - step**64) * 2**15)
            assert (drawn >= least).sum() == 2 * (cells + below)
    assert drawn.max() == 63


@pytest.mark.parametrize("rate", RATES)
def test_the_last_digit_is_the_sign_and_nothing_else(rate: Fraction) -> None:
    nonzero = make_logistic(rate, doubled=0, most=0, is_doubled=True)
    law = Inversion.from_survivals(
        list_geometric_survivals(nonzero, rate, doubled=0), is_endless=True, tail=endless(rate)
    )
    drawn = read(law, WORDS, below=True, signed=True)
    assert np.array_equal(drawn[0::2], -drawn[1::2])
    assert np.array_equal(drawn[0::2], read(law, WORDS, below=True)[0::2])


@in_turn("rate", RATES)
@in_turn("signed", [False, True])
def test_searching_finds_what_the_table_says(rate: Fraction, *, signed: bool) -> None:
    """A few draws are searched for, many are looked up: word by word the same, ties and the end among them."""
    law = endless(rate)
    for below in (False, True):
        many = read(law, WORDS, below=below, signed=signed)
        few = [read(law, part, below=below, signed=signed) for part in np.split(WORDS, 64)]
        assert np.array_equal(many, np.concatenate(few))


def test_who_reaches_the_end_goes_on_by_the_tail() -> None:
    """A word of zeros lies below all survivals, or ties with the last, and so once more, until one lies above all."""
    law = endless(Fraction(1, 2))
    words = iter([b"\0\0"] * 3 + [b"\xff\xff"])
    drawn = law.draw(1, lambda count: bytes(8) if count == 8 else next(words), signed=False)
    assert drawn.tolist() == [3 * law.first_digits.size]


def test_a_long_tie_is_settled_by_later_digits() -> None:
    """All of 15 + 64 digits alike: the next 64 decide, with the very last of them."""
    rate = Fraction(1, 2)
    law = endless(rate)
    with localcontext() as context:
        context.prec = 100
        digits = int(decay(rate) ** 3 * 2 ** (15 + 64 + 64))
    first, further, last = digits >> 128, digits >> 64 & (1 << 64) - 1, digits & (1 << 64) - 1

    def draw(third: int) -> int:
        given = iter([(first << 1).to_bytes(2, "little"), further.to_bytes(8, "little"), third.to_bytes(8, "big")])
        return int(law.draw(1, lambda _: next(given), signed=False)[0])

    assert (draw(last - 1), draw(last + 1)) == (3, 2)


def rough(survivals: Survivals) -> Survivals:
    """The same with bounds so wide that the first precision does not tell digits apart."""

    def bounds(precision: int) -> Iterator[tuple[int, int]]:
        width = 1 << max(0, 300 - precision // 2)
        for low, high in survivals(precision):
            yield max(0, low - width), high + width

    return bounds


def test_bounds_that_do_not_decide_are_sharpened() -> None:
    survivals = list_geometric_survivals(make_exponential(Fraction(1, 3), doubled=0, most=0), Fraction(1, 3), doubled=0)
    exact, sharpened = (Inversion.from_survivals(given, is_endless=True) for given in (survivals, rough(survivals)))
    assert np.array_equal(exact.first_digits, sharpened.first_digits)
    assert np.array_equal(exact.next_digits, sharpened.next_digits)
