"""Conditions as SQL text: in full for people, and in one canonical spelling for whatever must tell them apart."""

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


def canonical(condition: Condition) -> str:
    """Return a text that is equal exactly for conditions that differ in order, nesting and repetition alone.

    Of a list of more than `MOST_SPELLED` values it has their number and the sha256 of their texts.
    """
    return _text(condition, most=MOST_SPELLED)


def spell_condition(condition: Condition) -> str:
    """Return the condition as SQL: `canonical` with all values of all lists."""
    return _text(condition, most=None)


def write_condition(condition: Condition) -> str:
    """Return the condition as an analyst would write it: names quoted where they must be, and no needless parentheses.

    >>> write_condition(Or((Not(IsNull("age")), Compare("insured", "=", True))))
    'age IS NOT NULL OR insured'
    """
    match condition:
        case Compare(column, "=", bool(value)):
            return spell_name(column) if value else f"NOT {spell_name(column)}"
        case Compare(column, operator, value):
            return f"{spell_name(column)} {operator} {_constant(value)}"
        case Within(column, values):
            return f"{spell_name(column)} IN ({_spell_values(values)})"
        case Like(column, pattern):
            return f"{spell_name(column)} LIKE {_constant(pattern)}"
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
            return f"{spell_name(column)} NOT LIKE {_constant(pattern)}"
        case Within(column, values):
            return f"{spell_name(column)} NOT IN ({_spell_values(values)})"
        case _:
            return f"NOT ({write_condition(inner)})"


def _write_parts(parts: Iterable[Condition], *, within: type[And] | type[Or]) -> Iterable[str]:
    for part in parts:
        text = write_condition(part)
        is_several = isinstance(part, within) and f" {'OR' if within is Or else 'AND'} " in text
        yield f"({text})" if is_several else text


def _text(condition: Condition, *, most: int | None) -> str:
    match condition:
        case Compare(column, operator, value):
            return f"{_column(column)} {operator} {_constant(value)}"
        case Within(column, values):
            listed = (
                _spell_values(values)
                if most is None or len(values) <= most
                else _digest(_spell_values(values), len(values))
            )
            return f"{_column(column)} IN ({listed})"
        case Like(column, pattern):
            return f"{_column(column)} LIKE {_constant(pattern)}"
        case IsNull(column):
            return f"{_column(column)} IS NULL"
        case Not(inner):
            return f"NOT ({_text(inner, most=most)})"
        case And(parts):
            return _join_texts(" AND ", _flat(parts, And), most=most, empty="true")
        case Or(parts):
            return _join_texts(" OR ", _flat(parts, Or), most=most, empty="false")


def _join_texts(word: str, parts: Iterable[Condition], *, most: int | None, empty: str) -> str:
    texts = sorted({_text(part, most=most) for part in parts})
    if len(texts) < 2:
        return texts[0] if texts else empty
    return "(" + word.join(texts) + ")"


def _flat(parts: tuple[Condition, ...], kind: type[And] | type[Or]) -> Iterable[Condition]:
    for part in parts:
        if isinstance(part, kind):
            yield from _flat(part.conditions, kind)
        else:
            yield part


def _spell_values(values: Iterable[Value]) -> str:
    return ", ".join(sorted(_constant(value) for value in values))


@lru_cache(maxsize=64)
def _digest(listed: str, count: int) -> str:
    """Return the text that stands for a list: no constant is spelled like it."""
    return f"{count} values, sha256 {sha256(listed.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _constant(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal():
            return _plain(value)
        case datetime():
            return f"timestamp '{value.isoformat(sep=' ')}'"
        case date():
            return f"date '{value.isoformat()}'"
        case _:
            return "'" + value.replace("'", "''") + "'"


def _plain(value: Decimal) -> str:
    """Return all digits except trailing zeros.

    `normalize` would round to the context's precision and make two numbers one.
    """
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _column(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
