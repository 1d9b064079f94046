"""A statement's text after edits, with the origin of each character, so that refusals point into the original text.

FROM (SELECT * FROM sales WHERE gift) s        as written
FROM  sales  s WHERE gift                      as Keyhole reads it
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from planner.errors import KeyholeError

_FILTER, _WRITTEN_FILTER = " FILTER (WHERE ", " FILTER(WHERE "  # as an edit has it, and as trees are written
_OVER = " OVER ("
MOST_ADDED = 20_000  # characters that edits may add: a statement that repeats itself grows by no more


class Edit(NamedTuple):
    """A span of a text, 0-based, and its replacement: texts, and integers that stand for embedded relations.

    `origin` is the offset from which the replacement was taken, if it was moved.
    """

    start: int
    end: int
    replacement: tuple[str | int, ...]
    origin: int | None = None

    @staticmethod
    def from_text(start: int, end: int, text: str, origin: int | None = None) -> "Edit":
        """Return an edit that replaces a span by a text."""
        return Edit(start, end, (text,), origin)

    @property
    def text(self) -> str:
        """The texts of the replacement, joined; embedded relations leave nothing."""
        return "".join(part for part in self.replacement if isinstance(part, str))


class _Piece(NamedTuple):
    """A piece of an edited text, which begins at `start`.

    If it `is_kept`, it was copied from offset `origin` of the earlier text. Otherwise it was inserted there.
    """

    start: int
    origin: int
    is_kept: bool


def are_disjoint(edits: Iterable[Edit]) -> bool:
    """Return True if no two of the edits overlap."""
    at = 0
    for edit in sorted(edits, key=lambda edit: edit[:2]):
        if not at <= edit.start <= edit.end:
            return False
        at = edit.end
    return True


class EditBudget:
    """A limit on the length of edited texts: the original number of characters, and `MOST_ADDED` more."""

    def __init__(self, text: str) -> None:
        self._left = len(text) + MOST_ADDED

    def reserve(self, characters: int) -> None:
        """Reserve a number of characters of the budget. Raise KH106 if too few are left."""
        self._left -= characters
        if self._left < 0:
            raise KeyholeError(
                "KH106", "this statement becomes too long when it is rewritten", hint="Write it more simply."
            )


def count_growth(edits: Iterable[Edit]) -> int:
    """Return the number of characters by which the edits make a text longer."""
    return sum(len(edit.text) - (edit.end - edit.start) for edit in edits)


@dataclass(frozen=True, slots=True)
class Origin:
    """A text, and the edits by which it was made from the original text.

    `rules` are the names of the rules that made the edits. `edits` has for each edit the pieces of its result.
    `windows` pairs each window that replaced a scalar subquery with the text of that subquery. `filters` are the
    conditions that were moved from WHERE behind aggregates.
    """

    text: str
    edits: tuple[tuple[_Piece, ...], ...] = ()
    rules: tuple[str, ...] = ()
    windows: tuple[tuple[str, str], ...] = ()
    filters: tuple[str, ...] = ()

    def edit(self, edits: Iterable[Edit], *, rule: str) -> "Origin":
        """Return the text after the edits of a rule. Raise KH106 if they overlap."""
        if not are_disjoint(edits := tuple(edits)):
            raise KeyholeError(
                "KH106", "the parts of this statement cannot be told apart", hint="Write it more simply."
            )
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
        pieces.append(_Piece(length, at, is_kept=True))
        replaced = [(edit.text, self.text[edit.start : edit.end]) for edit in edits]
        windows = [(text, written) for text, written in replaced if _OVER in text and written.startswith("(")]
        filters = dict.fromkeys(text for text, written in replaced if not written and text.startswith(_FILTER))
        return replace(
            self,
            text="".join(parts),
            edits=(*self.edits, tuple(pieces)),
            rules=(*self.rules, rule),
            windows=(*self.windows, *windows),
            filters=(*self.filters, *filters),
        )

    @property
    def kept_spans(self) -> tuple[tuple[int, int, int], ...]:
        """The spans that the last edit kept: start, end, and start in the text before it."""
        pieces = self.edits[-1]
        ends = (*(piece.start for piece in pieces[1:]), len(self.text))
        return tuple((piece.start, end, piece.origin) for piece, end in zip(pieces, ends, strict=True) if piece.is_kept)

    def find_offset(self, at: int) -> int:
        """Return the offset in the original text that corresponds to a 0-based offset in this text."""
        for pieces in reversed(self.edits):
            piece = pieces[bisect_right(pieces, at, key=lambda piece: piece.start) - 1]
            at = piece.origin + (at - piece.start if piece.is_kept else 0)
        return at

    def place_error(self, error: KeyholeError) -> KeyholeError:
        """Return the refusal for the original text: with the position in that text, and with its words."""
        position = None if error.position is None else self.find_offset(error.position - 1) + 1
        message, hint = self._spell_as_written(error.message), error.hint and self._spell_as_written(error.hint)
        for text in self.filters:  # a hint is a question of its own, whose rows they choose
            message = message.replace(text, "").replace(text.replace(_FILTER, _WRITTEN_FILTER), "")
        return KeyholeError(error.code, message, detail=error.detail, hint=hint, position=position)

    def _spell_as_written(self, words: str) -> str:
        """Return a text with subqueries in the place of the windows that stand for them."""
        for window, written in self.windows:
            words = words.replace(window, written)
        return words
