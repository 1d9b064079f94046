"""Conditions as SQL text: in full for people, and in one canonical spelling for identities."""

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256

from planner.catalog.catalog import Value
from planner.parser.lexer import spell_name
from planner.question.condition import And, Compare, Condition, IsNull, Like, Not, Or, Within
from planner.values.operators import OPPOSITE_OPERATORS

MOST_SPELLED = 500  # values of a list in full; longer ones are a digest, so that what is stored stays short


def write_canonical(condition: Condition) -> str:
    """Return a text that is equal for two conditions exactly if they differ only in order, nesting and repetition.

    A list of more than `MOST_SPELLED` values is written as their number and the sha256 of their texts.
    """
    return _write_text(condition, most=MOST_SPELLED)


def spell_condition(condition: Condition) -> str:
    """Return the condition as SQL: `write_canonical` with all values of all lists."""
    return _write_text(condition, most=None)


def write_condition(condition: Condition) -> str:
    """Return the condition as an analyst would write it: names quoted only if needed, and no needless parentheses.

    >>> write_condition(Or((Not(IsNull("age")), Compare("insured", "=", True))))
    'age IS NOT NULL OR insured'
    """
    match condition:
        case Compare(column, "=", bool(value)):
            return spell_name(column) if value else f"NOT {spell_name(column)}"
        case Compare(column, operator, value):
            return f"{spell_name(column)} {operator} {_write_constant(value)}"
        case Within(column, values):
            return f"{spell_name(column)} IN ({_spell_values(values)})"
        case Like(column, pattern):
            return f"{spell_name(column)} LIKE {_write_constant(pattern)}"
        case IsNull(column):
            return f"{spell_name(column)} IS NULL"
        case Not(inner):
            return _write_negation(inner)
        case Or((Compare(column, low, value), Compare(other, high, same))) if (column, value) == (
            other,
            same,
        ) and OPPOSITE_OPERATORS[low] == high:
            return f"{spell_name(column)} IS NOT NULL"
        case And(parts):
            return " AND ".join(_write_parts(parts, within=Or)) or "true"
        case Or(parts):
            return " OR ".join(_write_parts(parts, within=And)) or "false"


def _write_negation(inner: Condition) -> str:
    match inner:
        case IsNull(column):
            return f"{spell_name(column)} IS NOT NULL"
        case Like(column, pattern):
            return f"{spell_name(column)} NOT LIKE {_write_constant(pattern)}"
        case Within(column, values):
            return f"{spell_name(column)} NOT IN ({_spell_values(values)})"
        case _:
            return f"NOT ({write_condition(inner)})"


def _write_parts(parts: Iterable[Condition], *, within: type[And] | type[Or]) -> Iterable[str]:
    for part in parts:
        text = write_condition(part)
        is_several = isinstance(part, within) and f" {'OR' if within is Or else 'AND'} " in text
        yield f"({text})" if is_several else text


def _write_text(condition: Condition, *, most: int | None) -> str:
    match condition:
        case Compare(column, operator, value):
            return f"{_quote_column(column)} {operator} {_write_constant(value)}"
        case Within(column, values):
            listed = (
                _spell_values(values)
                if most is None or len(values) <= most
                else _write_digest(_spell_values(values), len(values))
            )
            return f"{_quote_column(column)} IN ({listed})"
        case Like(column, pattern):
            return f"{_quote_column(column)} LIKE {_write_constant(pattern)}"
        case IsNull(column):
            return f"{_quote_column(column)} IS NULL"
        case Not(inner):
            return f"NOT ({_write_text(inner, most=most)})"
        case And(parts):
            return _join_texts(" AND ", _flatten(parts, And), most=most, empty="true")
        case Or(parts):
            return _join_texts(" OR ", _flatten(parts, Or), most=most, empty="false")


def _join_texts(word: str, parts: Iterable[Condition], *, most: int | None, empty: str) -> str:
    texts = sorted({_write_text(part, most=most) for part in parts})
    if len(texts) < 2:
        return texts[0] if texts else empty
    return "(" + word.join(texts) + ")"


def _flatten(parts: tuple[Condition, ...], kind: type[And] | type[Or]) -> Iterable[Condition]:
    for part in parts:
        if isinstance(part, kind):
            yield from _flatten(part.conditions, kind)
        else:
            yield part


def _spell_values(values: Iterable[Value]) -> str:
    return ", ".join(sorted(_write_constant(value) for value in values))


@lru_cache(maxsize=64)
def _write_digest(listed: str, count: int) -> str:
    """Return the text for a long list. No constant is spelled like it."""
    return f"{count} values, sha256 {sha256(listed.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _write_constant(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal():
            return _write_decimal(value)
        case datetime():
            return f"timestamp '{value.isoformat(sep=' ')}'"
        case date():
            return f"date '{value.isoformat()}'"
        case _:
            return "'" + value.replace("'", "''") + "'"


def _write_decimal(value: Decimal) -> str:
    """Return all digits of a number except trailing zeros.

    `normalize` would round to the context's precision and give two numbers one text.
    """
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _quote_column(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
