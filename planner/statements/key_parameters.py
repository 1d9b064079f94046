"""Parameters in keys: `GROUP BY width_bucket(x, 0, 100, $1)` can be read only when `$1` has a value.

The groups depend on the value, so that the statement is refused until it has one. When the parameter is bound, the
value replaces it everywhere in the statement.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from planner.catalog.catalog import Catalog
from planner.catalog.key_space import format_value
from planner.errors import KeyholeError
from planner.extract.question_text import spell_value
from planner.parser.lexer import Token, read_tokens
from planner.parser.tree import contains_type, parse
from planner.statements.classify import Statement, classify
from planner.values.constant import ArrayValue, ForeignValue, Interval, ParameterValue


@dataclass(frozen=True, slots=True)
class UnboundKeys:
    """A query that groups by parameters. It can be classified only once the parameters have values."""


def find_key_parameters(text: str) -> frozenset[int]:
    """Return the numbers of the parameters that a query groups by. Return none for other statements."""
    return _find_key_parameters(text, read_tokens(text))


def _find_key_parameters(text: str, found: tuple[Token, ...]) -> frozenset[int]:
    if not found or not (found[0].is_symbol("(") or found[0].is_word("select", "with")):
        return frozenset()
    if not any(token.kind == "parameter" for token in found):
        return frozenset()
    try:
        tree = parse(text, found).tree
    except KeyholeError:
        return frozenset()
    return frozenset(
        int(str(parameter.this.this))
        for select in tree.find_all(exp.Select)
        for item in _list_keys(select)
        for parameter in item.find_all(exp.Parameter)
    )


def _list_keys(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the grouped expressions of a SELECT, and those beside aggregates, which a position or name may mean."""
    group = select.args.get("group")
    if group is None:
        return
    yield group
    yield from (item for item in select.expressions if not contains_type(item, exp.AggFunc, exp.Query))


def classify_bound(
    text: str, catalog: Catalog, parameters: Mapping[int, ParameterValue | None], *, refusal: KeyholeError
) -> tuple[str, Statement]:
    """Classify a refused statement again, with the values of the parameters that it groups by.

    Raise `refusal` if it groups by none. Raise what `classify` raises, without positions.
    """
    written = bind_keys(text, parameters) if refusal.code == "KH202" else None
    if written is None:
        raise refusal
    try:
        return written, classify(written, catalog)
    except KeyholeError as error:
        raise error.drop_position() from None


def bind_keys(text: str, parameters: Mapping[int, ParameterValue | None]) -> str | None:
    """Return the statement with the values of the parameters that it groups by.

    Return None if it groups by none, or if a value cannot be written.

    Guarantee: a value stays one constant, whatever it is. Its quotes are doubled, and a backslash is not written, since
    its meaning depends on a setting.
    """
    found = read_tokens(text)
    wanted = _find_key_parameters(text, found)
    pieces: list[str] = []
    at = 0
    for place, token in enumerate(found):
        number = int(token.value.removeprefix("$")) if token.kind == "parameter" else 0
        if number not in wanted:
            continue
        behind = found[place + 1] if place + 1 < len(found) else None
        is_cast = (behind is not None and behind.is_symbol("::")) or (place > 1 and found[place - 2].is_word("cast"))
        if number not in parameters or (written := _write(parameters[number], is_cast=is_cast)) is None:
            return None
        pieces += (text[at : token.start], written)
        at = token.end
    return "".join((*pieces, text[at:])) if pieces else None


def _write(value: ParameterValue | None, *, is_cast: bool) -> str | None:
    """Return a parameter's value as a SQL constant. If the parameter is cast, return the text that is cast."""
    match value:
        case datetime():
            written = f"timestamp '{format_value(value)}'"
        case date():
            written = f"date '{format_value(value)}'"
        case Interval(months, days, microseconds):
            parts = ((months, "months"), (days, "days"), (microseconds, "microseconds"))
            length = " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 days"
            written = f"'{length}'" if is_cast else f"interval '{length}'"
        case int() | Decimal() if not isinstance(value, bool) and value < 0:
            written = f"({spell_value(value)})"
        case ForeignValue(is_text=False) | ArrayValue():
            return None
        case _:
            written = spell_value(value)
    return None if "\\" in written or "\0" in written else written
