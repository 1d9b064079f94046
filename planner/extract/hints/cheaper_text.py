"""The text of a question with one thing changed: groups left out, a number raised, or units counted."""

from collections.abc import Sequence

from planner.catalog.catalog import Column, SqlType, Value
from planner.catalog.key_space import format_value
from planner.parser.clauses import Clauses, find_clauses_from
from planner.parser.lexer import Token, read_tokens
from planner.scope.embedded import EmbeddedQuestion

MOST_LISTED = 20  # key values in a hint: two or three lines of a terminal
_NUMBERS = (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE)


def leave_out_key_values(
    embedded: EmbeddedQuestion, column: Column, *, short: Sequence[Value], others: Sequence[Value]
) -> str | None:
    """Return the question without the groups of the key values `short`.

    Return None if its text does not allow it, or if many values would have to be named.
    """
    place = _find_clauses(embedded)
    named, how = (short, "NOT IN") if len(short) <= len(others) else (others, "IN")
    if place is None or len(named) > MOST_LISTED:
        return None
    found, where = place
    values = ", ".join(_spell_value(value, column) for value in named)
    condition = f"{embedded.scope.spell_column(column)} {how} ({values})"
    text, first = embedded.text, where.find_mark("where")
    if first is None:
        end = found[min((index for _, index in where.marks), default=where.end) - 1].end
        return f"{text[:end]} WHERE {condition}{text[end:]};"
    past = min((index for _, index in where.marks if index > first), default=where.end)
    start, end = found[first + 1].start, found[past - 1].end
    before = text[start:end]
    before = f"({before})" if any(token.is_word("or") for token in found[first:past]) else before
    return f"{text[:start]}{condition} AND {before}{text[end:]};"


def raise_number(embedded: EmbeddedQuestion, number: int, *, to: int) -> str | None:
    """Return the question with another number in HAVING. Return None unless the old one is there exactly once."""
    place = _find_clauses(embedded)
    having = None if place is None else place[1].find_mark("having")
    if place is None or having is None:
        return None
    found = [token for token in place[0] if embedded.text[token.start : token.end] == str(number)]
    if len(found) != 1 or found[0].start < place[0][having].start:
        return None
    return f"{embedded.text[: found[0].start]}{to}{embedded.text[found[0].end :]};"


def count_units(embedded: EmbeddedQuestion, unit: Column) -> str | None:
    """Return the question that counts units instead of rows. Return None if its text does not allow it."""
    place = _find_clauses(embedded)
    if place is None:
        return None
    found, text = place[0], embedded.text
    written, start = "", 0
    for word, *marks in zip(found, found[1:], found[2:], found[3:], strict=False):
        if word.is_word("count") and all(mark.is_symbol(sign) for mark, sign in zip(marks, "(*)", strict=True)):
            written += f"{text[start : word.start]}count(DISTINCT {embedded.scope.spell_column(unit)})"
            start = marks[-1].end
    return f"{written}{text[start:]};" if start else None


def _find_clauses(embedded: EmbeddedQuestion) -> tuple[tuple[Token, ...], Clauses] | None:
    """Return the tokens and clauses of a question that stands in the analyst's text as one SELECT."""
    written = embedded.set_operation is None and embedded.stored_question is None and embedded.unit_query is None
    if not written or embedded.origin is not None:
        return None
    found = read_tokens(embedded.text)
    depth = 0
    for index, token in enumerate(found):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and token.is_word("from"):
            return found, find_clauses_from(index, found)
    return None


def _spell_value(value: Value, column: Column) -> str:
    text = format_value(value)
    return text if column.sql_type in _NUMBERS or isinstance(value, bool) else "'" + text.replace("'", "''") + "'"
