"""A statement's text after edits, and where each of its characters came from, so that refusals point into the original.

FROM (SELECT * FROM sales WHERE gift) s        as written
FROM  sales  s WHERE gift                      as Keyhole reads it
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from planner.errors import KeyholeError

MOST_ADDED = 20_000  # characters that edits may add: a statement that repeats itself grows by no more


class Edit(NamedTuple):
    """A span of a text, 0-based, and what replaces it: texts, and integers that stand for embedded relations.

    `origin` is where that was taken from, if it was moved.
    """

    start: int
    end: int
    replacement: tuple[str | int, ...]
    origin: int | None = None

    @staticmethod
    def of(start: int, end: int, text: str, origin: int | None = None) -> "Edit":
        """Return a span that a text replaces."""
        return Edit(start, end, (text,), origin)

    @property
    def text(self) -> str:
        """Return the text that replaces the span, without relations."""
        return "".join(part for part in self.replacement if isinstance(part, str))


class _Piece(NamedTuple):
    """A part of an edited text from `start` on: kept from `origin` on, or put in there."""

    start: int
    origin: int
    kept: bool


def apart(edits: Iterable[Edit]) -> bool:
    """Return True if each of the edits is of a span of its own."""
    at = 0
    for edit in sorted(edits, key=lambda edit: edit[:2]):
        if not at <= edit.start <= edit.end:
            return False
        at = edit.end
    return True


class Room:
    """The room for edits: the text's own number of characters, and `MOST_ADDED` more."""

    def __init__(self, text: str) -> None:
        self._left = len(text) + MOST_ADDED

    def take(self, characters: int) -> None:
        """Raise KH106 if there is no room for these."""
        self._left -= characters
        if self._left < 0:
            raise KeyholeError("KH106", "this statement says the same too often", hint="Write it more simply.")


def growth(edits: Iterable[Edit]) -> int:
    """Return the number of characters by which the edits make a text longer."""
    return sum(len(edit.text) - (edit.end - edit.start) for edit in edits)


@dataclass(frozen=True, slots=True)
class Origin:
    """A text, and the edits that led to it from another one, each as the pieces of its result; `rules` made them."""

    text: str
    edits: tuple[tuple[_Piece, ...], ...] = ()
    rules: tuple[str, ...] = ()

    def edit(self, edits: Iterable[Edit], *, rule: str) -> "Origin":
        """Return the text after the edits that a rule makes. Raise KH106 if these overlap."""
        if not apart(edits := tuple(edits)):
            raise KeyholeError("KH106", "this statement cannot be told apart", hint="Write it more simply.")
        parts: list[str] = []
        pieces: list[_Piece] = []
        at = length = 0
        for edit in sorted(edits, key=lambda edit: edit[:2]):
            for text, origin, kept in (
                (self.text[at : edit.start], at, True),
                (edit.text, edit.start if edit.origin is None else edit.origin, False),
            ):
                if text:
                    parts.append(text)
                    pieces.append(_Piece(length, origin, kept))
                    length += len(text)
            at = edit.end
        parts.append(self.text[at:])
        pieces.append(_Piece(length, at, kept=True))
        return replace(self, text="".join(parts), edits=(*self.edits, tuple(pieces)), rules=(*self.rules, rule))

    @property
    def kept(self) -> tuple[tuple[int, int, int], ...]:
        """The spans that the last edit kept: start, end, and start in the text before it."""
        pieces = self.edits[-1]
        ends = (*(piece.start for piece in pieces[1:]), len(self.text))
        return tuple((piece.start, end, piece.origin) for piece, end in zip(pieces, ends, strict=True) if piece.kept)

    def offset(self, at: int) -> int:
        """Return the offset in the text as it was written for a 0-based offset in this one."""
        for pieces in reversed(self.edits):
            piece = pieces[bisect_right(pieces, at, key=lambda piece: piece.start) - 1]
            at = piece.origin + (at - piece.start if piece.kept else 0)
        return at

    def place_error(self, error: KeyholeError) -> KeyholeError:
        """Return the refusal of this text, pointing into the one that was written."""
        position = None if error.position is None else self.offset(error.position - 1) + 1
        return KeyholeError(error.code, error.message, detail=error.detail, hint=error.hint, position=position)
