"""A question's text as the ledger keeps it: one line, one spelling, no comments, with its constants or without them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from planner.catalog.key_space import format_value
from planner.parser.lexer import Token, read_tokens, spell_name
from planner.scope.embedded import EmbeddedQuestion
from planner.values.constant import ArrayValue, ForeignValue, Interval, ParameterValue

MOST_CHARACTERS = 2_000
"""Kept of one text: a page, against megabytes that clients may send with every question and no event ever loses."""

CONSTANT = "?"  # in the place of one that is left out

_WORDS = """
all and any as asc between by case cross desc distinct else end escape except exists false fetch filter from full group
having ilike in inner intersect is join left like limit not null nulls on or order outer right select similar some then
true union using values when where with within
"""
_KEYWORDS = frozenset(_WORDS.split())
_CLAUSES = frozenset(
    ("select", "from", "where", "group", "having", "order", "limit", "fetch", "union", "intersect", "except", "with")
)
_NUMBERED = ("having", "limit", "fetch")  # clauses whose numbers are about groups, and not about rows
_NOT_CALLED = _KEYWORDS - {"filter"}  # before a parenthesis that calls nothing
_SHARES = ("percentile_cont", "percentile_disc")  # whose number is about the group and not about a row


def write_question_text(
    question: EmbeddedQuestion, parameters: Mapping[int, ParameterValue | None], *, keeps_constants: bool
) -> str:
    """Return the text of a question, with the WITH query that it reads.

    Guarantee: if it `keeps_constants`, the text is the question that was asked, unless it was cut. Otherwise it holds
    only these constants of the question: TRUE, FALSE, NULL, the number of groups that a ranking returns, and the
    numbers that groups are compared with. The latter are the numbers in HAVING outside every function and FILTER, and
    the share of a percentile. Names and aliases stay. The text is cut after `MOST_CHARACTERS`.

    Parameters:
        question: as it was found in a statement.
        parameters: what `$1`, `$2`, ... stand for.
    """
    text = question.text
    unit = question.unit_query
    if unit is not None and not question.offset <= unit.offset < question.offset + len(text):
        name = next(found.value for found in _skip_to_from(read_tokens(text)))
        text = f"WITH {spell_name(name)} AS ({unit.text}) {text}"
    words = read_tokens(text)
    pieces = [
        _spell(text, word, parameters, keeps_constants=keeps_constants, is_threshold=one)
        for word, one in zip(words, _find_thresholds(words), strict=True)
    ]
    line = "".join(_join_pieces(words, pieces))
    return line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]} ..."


def _skip_to_from(words: Sequence[Token]) -> Iterator[Token]:
    for before, word in pairwise(words):
        if before.is_word("from"):
            yield word


@dataclass(slots=True)
class _Frame:
    """The surroundings of a token: its clause, and whether it is inside a function or FILTER."""

    clause: str
    is_inside_call: bool


def _find_thresholds(words: Sequence[Token]) -> Iterator[bool]:
    """Yield for each token if it stays although it may be a constant: groups are compared with such a number."""
    frames = [_Frame("", is_inside_call=False)]
    before: Token | None = None
    for word in words:
        here = frames[-1]
        if word.is_symbol("("):
            frames.append(_Frame(here.clause, is_inside_call=here.is_inside_call or _is_called(before)))
        elif word.is_symbol(")") and len(frames) > 1:
            frames.pop()
        elif _begins_clause(word, before):
            here.clause = word.value
        yield here.clause in _NUMBERED and not here.is_inside_call
        before = word


def _begins_clause(word: Token, before: Token | None) -> bool:
    belongs = before is not None and before.is_word("within", "distinct")  # WITHIN GROUP, IS DISTINCT FROM
    return word.kind == "word" and word.value in _CLAUSES and not belongs


def _is_called(before: Token | None) -> bool:
    if before is None or not before.is_name:
        return False
    return not (before.kind == "word" and (before.value in _NOT_CALLED or before.value in _SHARES))


def _spell(
    text: str,
    word: Token,
    parameters: Mapping[int, ParameterValue | None],
    *,
    keeps_constants: bool,
    is_threshold: bool,
) -> str:
    raw = text[word.start : word.end]
    match word.kind:
        case "word":
            return word.value.upper() if word.value in _KEYWORDS else word.value
        case "label":
            return word.value
        case "string":
            return raw if keeps_constants else CONSTANT
        case "number":
            return raw if keeps_constants or is_threshold else CONSTANT
        case "parameter":
            value = parameters.get(int(raw[1:]))
            number = isinstance(value, int | Decimal)
            return spell_value(value) if keeps_constants or (is_threshold and number) else CONSTANT
        case _:
            return raw


def spell_value(value: ParameterValue | None) -> str:
    """Write a parameter's value as a constant."""
    match value:
        case ForeignValue():
            quoted = _quote(value.text)
            return quoted if value.is_text else f"{quoted}::{value.declared}"
        case Interval():
            return f"interval '{value.months} months {value.days} days {value.microseconds} microseconds'"
        case ArrayValue():
            return _quote("{" + ",".join(map(_spell_member, value.members)) + "}")
        case None:
            return "NULL"
        case bool():
            return format_value(value).upper()
        case int() | Decimal():
            return format_value(value)
        case _:
            return _quote(format_value(value))


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _spell_member(value: ParameterValue | None) -> str:
    """Return a member of an array as PostgreSQL reads it inside the array's text."""
    match value:
        case None:
            return "NULL"
        case ForeignValue():
            text = value.text
        case Interval():
            text = f"{value.months} months {value.days} days {value.microseconds} microseconds"
        case ArrayValue():
            return "{" + ",".join(map(_spell_member, value.members)) + "}"
        case _:
            text = format_value(value)
    plain = isinstance(value, bool | int | Decimal)
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _join_pieces(words: Sequence[Token], pieces: Sequence[str]) -> Iterator[str]:
    """Yield the pieces with single spaces between them. Of omitted constants in a row, yield the first."""
    before: Token | None = None
    at = 0
    while at < len(words):
        word, piece = words[at], pieces[at]
        if before is not None and _is_spaced(words, at):
            yield " "
        yield piece
        at += 1
        if piece == CONSTANT and list(pieces[at : at + 2]) == [",", CONSTANT]:
            yield ", ..."
            while list(pieces[at : at + 2]) == [",", CONSTANT]:
                at += 2
        before = word


def _is_spaced(words: Sequence[Token], at: int) -> bool:
    """Return True if a space stands before a token."""
    word, before = words[at], words[at - 1]
    if word.kind == "symbol" and word.value in (")", "]", ",", ".", "::", "[", ";"):
        return False
    if before.kind == "symbol" and before.value in ("(", "[", ".", "::"):
        return False
    if word.is_symbol("("):
        return not (before.is_name and not (before.kind == "word" and before.value in _KEYWORDS))
    if before.kind == "symbol" and before.value in ("-", "+") and at > 1:
        first = words[at - 2]
        return not (first.is_word(*_KEYWORDS) or (first.kind == "symbol" and first.value != ")"))
    return True
