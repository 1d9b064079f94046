"""Functions of texts that all engines compute alike: of the ASCII letters alone where capitals count.

Of a stored text the first characters count, as in every condition. No text made of it has more than `_LONGEST`.
"""

from planner.catalog.catalog import Column, Computed, Product
from planner.catalog.row_terms import RowTerm, TermKind
from planner.predicates.computed.number_arithmetic import STORED_EXPONENT, NoTermError, TooWideError

MOST_DIGITS = 18  # of an integer that a text says: all engines hold it in 64 bits
_LONGEST = 10_000  # characters: a text that is replaced and joined stays a microsecond's work


def _text(function: str, *arguments: RowTerm, limit: int) -> RowTerm:
    if limit > _LONGEST:
        raise TooWideError
    return RowTerm(function, TermKind.TEXT, arguments, limit=limit)


def stored_text(column: Column) -> RowTerm:
    """Return a stored or looked-up text. Raise `NoTermError` for a column that is computed."""
    if isinstance(column.derivation, Product | Computed):
        raise NoTermError
    return RowTerm("column", TermKind.TEXT, value=column.name, limit=column.longest_text)


def text_constant(value: str) -> RowTerm:
    """Return a constant text. Raise `NoTermError` for what SQL's text cannot hold."""
    if "\x00" in value or len(value) > _LONGEST:
        raise NoTermError
    return RowTerm("constant", TermKind.TEXT, value=value, limit=len(value))


def number_constant(value: int) -> RowTerm:
    """Return how many characters a function takes."""
    return RowTerm("constant", TermKind.WHOLE, value=value, limit=max(abs(value), 1))


def change(function: str, text: RowTerm) -> RowTerm:
    """Return `lower`, `upper`, or the text without blanks: `trim`, `ltrim`, `rtrim`."""
    return _text(function, _of_text(text), limit=text.limit)


def part_of(function: str, text: RowTerm, *numbers: int) -> RowTerm:
    """Return `left`, `right` or `substring` by numbers of characters."""
    if any(not 0 <= one <= _LONGEST for one in numbers) or (function == "substring" and numbers[0] < 1):
        raise NoTermError
    limit = min(text.limit, numbers[-1]) if function != "substring" or len(numbers) == 2 else text.limit
    return _text(function, _of_text(text), *map(number_constant, numbers), limit=limit)


def replace_text(text: RowTerm, old: str, new: str) -> RowTerm:
    """Return the text with every `old` replaced."""
    if not old:
        raise NoTermError
    limit = max(text.limit, text.limit // len(old) * len(new) + text.limit % len(old))
    return _text("replace", _of_text(text), text_constant(old), text_constant(new), limit=limit)


def split_text(text: RowTerm, between: str, place: int) -> RowTerm:
    """Return the part of a text at a place, counted from 1, between the separators."""
    if not between or not 1 <= place <= _LONGEST:
        raise NoTermError
    return _text("split_part", _of_text(text), text_constant(between), number_constant(place), limit=text.limit)


def join_texts(left: RowTerm, right: RowTerm) -> RowTerm:
    """Return one text behind the other, NULL where one of them is."""
    return _text("||", _of_text(left), _of_text(right), limit=left.limit + right.limit)


def length_of(text: RowTerm) -> RowTerm:
    """Return how many characters the text has."""
    return RowTerm("length", TermKind.WHOLE, (_of_text(text),), limit=max(text.limit, 1))


def number_of(text: RowTerm, kind: TermKind, *, digits: tuple[int, int] = (MOST_DIGITS, 0)) -> RowTerm:
    """Return the number that a text spells: with the given digits before and behind the point, or a double.

    It is NULL where the text is no number, and where it has more digits than that. Read are decimal digits with a sign,
    blanks around and, of what is no integer, a point; of a double also an exponent. PostgreSQL reads more: NaN,
    infinities and, since 16, hexadecimal digits and underscores.
    """
    if kind is TermKind.FLOATING:
        return RowTerm("number", kind, (_of_text(text),), limit=STORED_EXPONENT)
    return RowTerm("number", kind, (_of_text(text),), scale=digits[1], limit=10 ** sum(digits) - 1)


def _of_text(term: RowTerm) -> RowTerm:
    if term.kind is not TermKind.TEXT:
        raise NoTermError
    return term
