"""Tokens of an edited text: what is read again is what changed, and the tokens are those of the whole text."""

import random

import pytest

from planner.errors import KeyholeError
from planner.parser.edits import Edit, Origin, are_disjoint
from planner.parser.lexer import Token, read_tokens, reread_tokens
from tests.planner.spec import SPEC, pairs

_NEW = (
    "",
    " ",
    "x",
    ".",
    " AS ",
    "'",
    "''",
    "E'a'",
    '"q"',
    'U&"x"',
    "--c\n",
    "/*",
    "*/",
    "5",
    "..",
    "1e",
    "<",
    "$$",
    "$1",
)
_MORE = ("(", ")", " HAVING count(*) > 3", "uescape", "\n", "é", "as")


def _all_at_once(text: str, *, start: int, past: int) -> tuple[Token, ...] | str:
    try:
        return tuple(token for token in read_tokens(" " * start + text[start:]) if token.start < past)
    except KeyholeError as error:
        return error.code


def _after_edits(edited: Origin, before: tuple[Token, ...]) -> tuple[Token, ...] | str:
    try:
        return reread_tokens(edited.text, edited.kept_spans, before)
    except KeyholeError as error:
        return error.code


@pytest.mark.parametrize("seed", range(4))
def test_tokens_after_edits_are_those_of_the_whole_text(seed: int) -> None:
    """1,000 statements of the corpus, each with up to three random edits, half of them at the edges of words."""
    drawn = random.Random(seed)
    statements = [sql for path in sorted(SPEC.glob("*.sql")) for sql, _ in pairs(path.name) if "'a" not in sql]
    checked = 0
    for sql in drawn.choices(statements, k=1000):
        before = read_tokens(sql)
        before = before[drawn.randrange(min(3, len(before))) :]
        places = [edge for token in before for edge in (token.start, token.end)]
        if drawn.random() < 0.5:
            places = list(range(before[0].start, before[-1].end + 1))
        spans = [sorted(drawn.choices(places, k=2)) for _ in range(drawn.randrange(1, 4))]
        changes = [Edit.from_text(a, b if b - a < 30 else a, drawn.choice(_NEW + _MORE)) for a, b in spans]
        if not are_disjoint(changes):
            continue
        edited = Origin(sql).edit(changes, rule="some")
        start, _, origin = edited.kept_spans[-1]
        past = start + before[-1].end - origin
        assert _after_edits(edited, before) == _all_at_once(edited.text, start=before[0].start, past=past)
        checked += 1
    assert checked > 500


def test_a_name_is_of_letters_digits_underscores_and_all_beyond_ascii() -> None:
    """Of each character of ASCII and some beyond it; a tag of dollars is such a name without dollars."""
    beyond = {"\x80", "\xaa", "é", "\uffff", "\ud800", "\U00010000", "\U0010ffff"}
    for one in {*map(chr, range(1, 128)), *beyond}:  # no text has a character 0
        first = one in beyond or one == "_" or one.isalpha()
        further = first or one.isdecimal()
        assert _is_one_word(one) == first, one
        assert _is_one_word(f"a{one}b") == (further or one == "$"), one
        assert _is_one_string(f"${one}$'${one}$") == first, one
        assert _is_one_string(f"$a{one}$'$a{one}$") == further, one


def _is_one_word(text: str) -> bool:
    return [(token.kind, token.end) for token in _read(text)] == [("word", len(text))]


def _is_one_string(text: str) -> bool:
    return len(read := _read(text)) == 1 and read[0].kind == "string"


def _read(text: str) -> tuple[Token, ...]:
    try:
        return read_tokens(text)
    except KeyholeError:
        return ()
