"""PostgreSQL's lexical rules: a statement as tokens, with strings, comments and dollar quotes as the server reads them.

Statements are split and recognised by these tokens, never by the parser's reading of a text that it did not understand.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from planner.errors import KeyholeError

# PostgreSQL's lexer takes time with the square of the depth: 60,000 comments in one another hold a server for 45 s
DEEPEST_COMMENT = 32
MOST_TOKENS = 2_000_000  # some four seconds and a few hundred megabytes, by what `tokens` says of one


class NestedTooDeep(KeyholeError):
    """The error for comments nested so deeply that the text is not sent to a database, even for its message."""


class Token(NamedTuple):
    """One token. `value` is the identifier as PostgreSQL folds it, a string's content, or the text itself.

    `kind` is word, label, quoted, string, number, parameter or symbol. A label is an unquoted word that only names
    something, as after a dot or AS. `start` and `end` are 0-based character offsets.
    """

    kind: str
    value: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Return True if the token is one of these keywords and not quoted."""
        return self.kind == "word" and self.value in words

    def is_symbol(self, symbol: str) -> bool:
        """Return True if the token is this symbol."""
        return self.kind == "symbol" and self.value == symbol

    @property
    def is_name(self) -> bool:
        """Return True if the token may be an identifier."""
        return self.kind in ("word", "label", "quoted")


# No repetition backtracks, so that reading a client's text takes time and memory in proportion to its length.
# A name begins with a letter, an underscore or what is beyond ASCII, and goes on with digits, too. Both are written as
# what they are not: to compile a class that ends at the last character took a hundredth of `keyhole explain`.
_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\n\r\f\v]+|--[^\n\r]*)
    | (?P<block>/\*)
    | (?P<escaped>[eE]'(?:[^'\\]++|\\.|'')*+')
    | (?P<string>(?:[bBxXnN]|[uU]&)?'(?:[^']++|'')*+')
    | (?P<quoted>(?:[uU]&)?"(?:[^"]++|"")*+")
    | (?P<parameter>\$[0-9]+)
    | (?P<dollar>\$(?:[^\x00-@\[-^`{-\x7f][^\x00-/:-@\[-^`{-\x7f]*)?\$)
    | (?P<number>[0-9][0-9_]*(?:\.(?!\.)[0-9_]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][+-]?[0-9]+)?)
    | (?P<word>(?![eE]')[^\x00-@\[-^`{-\x7f][^\x00-#%-/:-@\[-^`{-\x7f]*)
    | (?P<symbol>::|:=|\.\.|[()\[\],;:.]|(?:(?!--|/\*)[+\-*/<>=~!@\#%^&|`?])+)
    """,
    re.VERBOSE | re.DOTALL,
)
_CONTINUED = re.compile(r"(?:[ \t\f\v]++|--[^\n\r]*+)*+[\n\r](?:[ \t\n\r\f\v]++|--[^\n\r]*+[\n\r])*+'")
_AFTER_AS = frozenset(
    ("not", "materialized", "select", "with", "values", "table", "execute", "insert", "update", "delete", "merge")
)
_BLOCK_EDGE = re.compile(r"/\*|\*/")


def _find_comment_end(text: str, start: int) -> int:
    depth = 0
    for edge in _BLOCK_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
        if depth > DEEPEST_COMMENT:
            problem = f"comments stand in one another more than {DEEPEST_COMMENT} deep"
            raise NestedTooDeep("KH100", problem, hint="Close the outer ones.", position=edge.end())
    raise KeyholeError("KH100", "a comment is not closed", position=start + 1)


def _fold_case(raw: str) -> str:
    """Return an unquoted word as PostgreSQL folds it."""
    return raw.lower() if raw.isascii() else re.sub("[A-Z]+", lambda found: found.group().lower(), raw)


def _read_word(raw: str, at: int, end: int, before: Token | None) -> Token:
    value = _fold_case(raw)
    if before is None:
        return Token("word", value, at, end)
    if value == "uescape" and before.kind == "quoted":
        raise _refuse_unicode_escapes(at)
    return Token("label" if _precedes_name(before, value) else "word", value, at, end)


def _read_dollar_quoted(text: str, quote: str, at: int, end: int) -> Token:
    close = text.find(quote, end)
    if close < 0:
        raise KeyholeError("KH100", "a dollar-quoted text is not closed", position=at + 1)
    return Token("string", text[end:close], at, close + len(quote))


def _precedes_name(token: Token, word: str) -> bool:
    """Return True if an unquoted word after a token is a name, even if it is a keyword elsewhere."""
    if token.kind == "symbol":
        return token.value == "."
    return token.kind == "word" and token.value == "as" and word not in _AFTER_AS


def _refuse_unicode_escapes(at: int) -> KeyholeError:
    """Return KH100 for a name with Unicode escapes, which PostgreSQL would read as another name."""
    return KeyholeError("KH100", "a name with Unicode escapes is not supported", position=at + 1)


def read_tokens(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text without comments.

    Raise KH100 for a string, name or comment that never ends, for comments nested deeper than `DEEPEST_COMMENT`, and
    for more than `MOST_TOKENS`: a token takes some hundred bytes and two microseconds.
    """
    found: list[Token] = []
    at = 0
    end = len(text)
    while at < end:
        at = at + 1 if text[at] == " " else _read_token(text, at, found)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement of a longer text. `offset` is the position of its first character in the longer text, from 0."""

    text: str
    offset: int


def split_statements(sql: str) -> tuple[StatementText, ...]:
    """Split a text into the statements between the semicolons; Return none for spaces and comments alone.

    Raise KH100 as `read_tokens` does.
    """
    found: list[StatementText] = []
    first: Token | None = None
    last: Token | None = None
    for token in read_tokens(sql):
        if token.is_symbol(";"):
            if first is not None and last is not None:
                found.append(StatementText(text=sql[first.start : last.end], offset=first.start))
            first = last = None
        else:
            first, last = first or token, token
    if first is not None and last is not None:
        found.append(StatementText(text=sql[first.start : last.end], offset=first.start))
    return tuple(found)


def reread_tokens(text: str, kept: Sequence[tuple[int, int, int]], before: tuple[Token, ...]) -> tuple[Token, ...]:
    """Return the tokens of a query after edits of its text.

    Only new text, and the words next to it, is tokenised again.

    Parameters:
        kept: the spans of the text that were there before, in order: start, end, and start in the text as it was. No
            edit lies outside the query, so that the last span continues after its end.
        before: the query's tokens before the edits.
    """
    places = {token.start: index for index, token in enumerate(before)}
    last_start, _, last_origin = kept[-1]
    past = last_start + before[-1].end - last_origin
    found: list[Token] = []
    at = before[0].start
    for start, end, origin in kept:
        moved = start - origin
        while at < min(end, past):
            index = places.get(at - moved) if at >= start else None
            at = _read_token(text, at, found)
            # what a token is may depend on the one before it and on the one after it, and on nothing else
            if index is None or found[-1] != _shift_token(before[index], moved):
                continue
            while index + 2 < len(before) and before[index + 2].end + moved <= end:
                index += 1
                found.append(_shift_token(before[index], moved))
                at = found[-1].end
    return tuple(found)


def _shift_token(token: Token, characters: int) -> Token:
    return Token(token.kind, token.value, token.start + characters, token.end + characters)


def _read_token(text: str, at: int, found: list[Token]) -> int:
    """Return the end of the token, space or comment that begins at an offset. Append a token to `found`."""
    if len(found) > MOST_TOKENS:
        raise KeyholeError("KH100", f"the text has more than {MOST_TOKENS:,} words and symbols", position=at + 1)
    match = _TOKEN.match(text, at)
    if match is None:
        if text[at] in "'\"eE":
            raise KeyholeError("KH100", "a quoted text is not closed", position=at + 1)
        raise KeyholeError("KH100", f"unexpected character {text[at]!r}", position=at + 1)
    kind, raw, end = str(match.lastgroup), match.group(), match.end()
    if kind == "block":
        return _find_comment_end(text, at)
    if kind == "dollar":
        found.append(_read_dollar_quoted(text, raw, at, end))
        return found[-1].end
    if kind == "word":
        found.append(_read_word(raw, at, end, found[-1] if found else None))
    elif kind == "quoted":
        if raw[0] in "uU" and "\\" in raw:
            raise _refuse_unicode_escapes(at)
        found.append(Token(kind, raw[raw.index('"') + 1 : -1].replace('""', '"'), at, end))
    elif kind in ("string", "escaped"):
        if kind == "escaped" and _CONTINUED.match(text, end):
            raise KeyholeError(
                "KH100",
                "an E'...' string in several pieces is not supported",
                hint="Write it as one string.",
                position=at + 1,
            )
        found.append(Token("string", raw[raw.index("'") + 1 : -1].replace("''", "'"), at, end))
    elif kind != "space":
        found.append(Token(kind, raw, at, end))
    return end


_PLAIN = re.compile(r"[a-z_][a-z0-9_]*\Z")
# reserved words of PostgreSQL that a column or table might really be called
_RESERVED_WORDS = """
all analyse analyze and any array as asc asymmetric authorization between binary both case cast
check collate collation column concurrently constraint create cross current_catalog current_date
current_role current_schema current_time current_timestamp current_user default deferrable desc
distinct do else end except false fetch for foreign freeze from full grant group having ilike in
initially inner intersect into is isnull join lateral leading left like limit localtime
localtimestamp natural not notnull null offset on only or order outer overlaps placing primary
references returning right select session_user similar some symmetric system_user table tablesample
then to trailing true union unique user using variadic verbose when where window with
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())


def quote_identifier(name: str) -> str:
    """Return the name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def spell_name(name: str) -> str:
    """Return the name as an identifier, quoted only if it must be."""
    return name if _PLAIN.match(name) and name not in _RESERVED else quote_identifier(name)
