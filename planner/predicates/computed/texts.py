"""Functions of texts that all engines compute alike. Letter case concerns the ASCII letters alone.

Only the first characters of a stored text count, as in every condition. No computed text has more than `_LONGEST`.
"""

from planner.catalog.catalog import Column, Computed, Product
from planner.catalog.row_terms import RowTerm, TermKind
from planner.predicates.computed.number_arithmetic import STORED_EXPONENT, NoTermError, TooWideError

MOST_DIGITS = 18  # of an integer that a text says: all engines hold it in 64 bits
_LONGEST = 10_000  # characters: a text that is replaced and joined stays a microsecond's work


def _make_text(function: str, *arguments: RowTerm, limit: int) -> RowTerm:
    if limit > _LONGEST:
        raise TooWideError
    return RowTerm(function, TermKind.TEXT, arguments, limit=limit)


def make_stored_text(column: Column) -> RowTerm:
    """Return the term for a stored or looked-up text. Raise `NoTermError` for a column that is computed."""
    if isinstance(column.derivation, Product | Computed):
        raise NoTermError
    return RowTerm("column", TermKind.TEXT, value=column.name, limit=column.longest_text)


def make_text_constant(value: str) -> RowTerm:
    """Return the term for a constant text. Raise `NoTermError` for characters that SQL's text cannot hold."""
    if "\x00" in value or len(value) > _LONGEST:
        raise NoTermError
    return RowTerm("constant", TermKind.TEXT, value=value, limit=len(value))


def make_number_constant(value: int) -> RowTerm:
    """Return the term of a constant number of characters, the argument of a text function."""
    return RowTerm("constant", TermKind.WHOLE, value=value, limit=max(abs(value), 1))


def change_case(function: str, text: RowTerm) -> RowTerm:
    """Return the term for `lower`, `upper`, `trim`, `ltrim` or `rtrim` of a text."""
    return _make_text(function, _require_text(text), limit=text.limit)


def take_part(function: str, text: RowTerm, *numbers: int) -> RowTerm:
    """Return the term for `left`, `right` or `substring` of a text, by numbers of characters."""
    if any(not 0 <= one <= _LONGEST for one in numbers) or (function == "substring" and numbers[0] < 1):
        raise NoTermError
    limit = min(text.limit, numbers[-1]) if function != "substring" or len(numbers) == 2 else text.limit
    return _make_text(function, _require_text(text), *map(make_number_constant, numbers), limit=limit)


def replace_text(text: RowTerm, old: str, new: str) -> RowTerm:
    """Return the term for a text with every `old` replaced by `new`."""
    if not old:
        raise NoTermError
    limit = max(text.limit, text.limit // len(old) * len(new) + text.limit % len(old))
    return _make_text("replace", _require_text(text), make_text_constant(old), make_text_constant(new), limit=limit)


def split_text(text: RowTerm, between: str, place: int) -> RowTerm:
    """Return the term for one part of a text that is split at `between`. Parts are counted from 1."""
    if not between or not 1 <= place <= _LONGEST:
        raise NoTermError
    return _make_text(
        "split_part", _require_text(text), make_text_constant(between), make_number_constant(place), limit=text.limit
    )


def join_texts(left: RowTerm, right: RowTerm) -> RowTerm:
    """Return the term for the concatenation of two texts. It is NULL if one of them is NULL."""
    return _make_text("||", _require_text(left), _require_text(right), limit=left.limit + right.limit)


def measure_length(text: RowTerm) -> RowTerm:
    """Return the term for the number of characters of a text."""
    return RowTerm("length", TermKind.WHOLE, (_require_text(text),), limit=max(text.limit, 1))


def parse_number(text: RowTerm, kind: TermKind, *, digits: tuple[int, int] = (MOST_DIGITS, 0)) -> RowTerm:
    """Return the term for the number that a text spells, as a double or a numeric.

    A numeric has `digits` before and after the point. The term is NULL if the text is no number, or has more digits
    than that.

    A number has decimal digits, with a sign and blanks around it. Unless it is an integer it may have a point, and as
    a double an exponent. PostgreSQL reads more: NaN, infinities and, since 16, hexadecimal digits and underscores.
    """
    if kind is TermKind.FLOATING:
        return RowTerm("number", kind, (_require_text(text),), limit=STORED_EXPONENT)
    return RowTerm("number", kind, (_require_text(text),), scale=digits[1], limit=10 ** sum(digits) - 1)


def _require_text(term: RowTerm) -> RowTerm:
    if term.kind is not TermKind.TEXT:
        raise NoTermError
    return term
