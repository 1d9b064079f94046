"""Noise whose binary digits a test chooses."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mechanisms.certified import Probability
from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Words


class ChosenDigits:
    """Hands out the binary digits of whole numbers, each with the digits it was given, one after the other."""

    def __init__(self, *numbers: tuple[int, int]) -> None:
        self.left = [bool(number >> place & 1) for number, digits in numbers for place in reversed(range(digits))]

    def draw_bernoulli(self, *, probability: Fraction, size: int) -> Booleans:
        assert probability == Fraction(1, 2)
        assert size <= len(self.left), "more digits were asked for than there should be"
        drawn, self.left = self.left[:size], self.left[size:]
        return np.array(drawn, dtype=np.bool_)

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        raise AssertionError("an alarm draws digits alone")

    def draw_thinned_laplace(self, *, rate: Fraction, nonzero: Probability, size: int) -> Integers:
        raise AssertionError("an alarm draws digits alone")

    def draw_geometric(self, *, rate: Fraction, size: int) -> Integers:
        raise AssertionError("an alarm draws digits alone")

    def draw_bernoulli_by_digits(self, *, probability: Probability, size: int) -> Booleans:
        raise AssertionError("an alarm draws digits alone")

    def draw_words(self, *, size: int) -> Words:
        raise AssertionError("an alarm draws digits alone")


def first_digits(numbers: Sequence[int], digits: int) -> ChosenDigits:
    return ChosenDigits(*((number, digits) for number in numbers))
