"""Public numbers that one key determines, such as a room's capacity, for thresholds that differ between groups."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from planner.aggregates.row_expression import RequiredValues
from planner.values.decimals import convert_to_decimal


@dataclass(frozen=True, slots=True)
class KeyNumbers:
    """One exact number for each value of the key `key` that the question is about, in order; None for NULL.

    The numbers are the sum of `constant` and of `summands`: expressions as written, each with its factor. `columns`
    are the columns in these expressions, as spelled. Numbers that were written as a maximum or minimum are NULL in
    groups without rows of `required_values`.
    """

    key: str
    numbers: tuple[Fraction | None, ...]
    summands: tuple[tuple[Fraction, str], ...]
    columns: tuple[str, ...]
    constant: Fraction = Fraction(0)
    required_values: tuple[RequiredValues, ...] = ()

    def multiply(self, factor: Fraction) -> "KeyNumbers":
        """Return each number times a constant."""
        return replace(
            self,
            numbers=tuple(n and n * factor for n in self.numbers),
            summands=tuple((factor * size, text) for size, text in self.summands),
            constant=factor * self.constant,
        )

    def add(self, other: "KeyNumbers") -> "KeyNumbers":
        """Return these numbers plus other numbers of the same key, value by value."""
        assert self.key == other.key
        sums = (None if a is None or b is None else a + b for a, b in zip(self.numbers, other.numbers, strict=True))
        return replace(
            self,
            numbers=tuple(sums),
            summands=(*self.summands, *other.summands),
            constant=self.constant + other.constant,
            columns=tuple(dict.fromkeys((*self.columns, *other.columns))),
            required_values=tuple(dict.fromkeys((*self.required_values, *other.required_values))),
        )

    def shift(self, constant: Fraction) -> "KeyNumbers":
        """Return each number plus a constant."""
        return replace(
            self,
            numbers=tuple(None if n is None else n + constant for n in self.numbers),
            constant=self.constant + constant,
        )

    @property
    def text(self) -> str:
        """The numbers' expression as an analyst would write it."""
        sizes = [(size, text) for size, text in (*self.summands, (self.constant, "")) if size]
        if sizes and [size for size, _ in sizes] == [1]:
            return sizes[0][1] or "1"
        written = ""
        for size, text in sizes:
            sign = (" - " if size < 0 else " + ") if written else ("-" if size < 0 else "")
            enclosed = f"({text})" if " " in text else text
            factor = "" if text and abs(size) == 1 else str(convert_to_decimal(abs(size)))
            written += f"{sign}{factor}{' * ' if factor and text else ''}{enclosed}"
        return written or "0"

    def select_places(self, places: tuple[int, ...]) -> "KeyNumbers":
        """Return the numbers of the key values at some places of the key's values."""
        return replace(self, numbers=tuple(self.numbers[place] for place in places))

    @property
    def missing_places(self) -> Iterator[int]:
        """The places of the key values whose number is NULL."""
        return (place for place, number in enumerate(self.numbers) if number is None)

    @property
    def known_numbers(self) -> tuple[Fraction, ...]:
        """The numbers that are not NULL."""
        return tuple(number for number in self.numbers if number is not None)
