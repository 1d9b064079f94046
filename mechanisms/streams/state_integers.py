"""The encoding of states as canonical sequences of whole numbers, one sequence for each state.

A state is a frozen dataclass. Its fields are whole numbers, truth values, fractions, tuples of one type, and
dataclasses of this kind. Fields are encoded in their order, a fraction as numerator and denominator in lowest terms,
and a tuple as its length and its members.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Kind = TypeVar("Kind")


def to_integers(state: object) -> tuple[int, ...]:
    """Encode a state as whole numbers.

    >>> from mechanisms.streams.grouper import GrouperState
    >>> to_integers(GrouperState(counts=(5, 6), times=(2, 1), threshold_noise=-3))
    (2, 5, 6, 2, 2, 1, -3)
    """
    return tuple(_write_value(state))


def from_integers(kind: type[Kind], numbers: Sequence[int]) -> Kind:
    """Decode a state of a type from whole numbers.

    Raises:
        ValueError: the numbers encode no state of this type. The message names none of them.
    """
    reader = iter(numbers)
    found = _read_value(kind, reader)
    if next(reader, None) is not None or to_integers(found) != tuple(numbers):
        raise ValueError("a stored state is not written as states are")
    assert isinstance(found, kind), "what is read is of its kind"
    return found


def _write_value(value: object) -> Iterator[int]:
    if isinstance(value, int):
        yield int(value)
    elif isinstance(value, Fraction):
        yield from (value.numerator, value.denominator)
    elif isinstance(value, tuple):
        yield len(value)
        for member in value:
            yield from _write_value(member)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _write_value(getattr(value, field.name))
    else:
        raise ValueError("a state is made of whole numbers, fractions, tuples and dataclasses")


def _read_value(kind: Any, numbers: Iterator[int]) -> Any:
    if kind is int:
        return _read_number(numbers)
    if kind is bool:
        return bool(_read_number(numbers))
    if kind is Fraction:
        numerator, denominator = _read_number(numbers), _read_number(numbers)
        if denominator < 1:
            raise ValueError("a stored fraction has a positive denominator")
        return Fraction(numerator, denominator)
    if get_origin(kind) is tuple:
        (member, *_) = get_args(kind)
        return tuple(_read_value(member, numbers) for _ in range(_read_number(numbers)))
    hints = get_type_hints(kind)
    return kind(*(_read_value(hints[field.name], numbers) for field in fields(kind)))


def _read_number(numbers: Iterator[int]) -> int:
    found = next(numbers, None)
    if found is None:
        raise ValueError("a stored state ends early")
    return found
