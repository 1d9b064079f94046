"""Parameters in keys: `GROUP BY width_bucket(x, 0, 100, $1)` is read once `$1` has a value.

Which groups there are depends on the value, so that such a statement is refused as long as it has none. When it is
bound it is the statement that has the value in the place of the parameter, everywhere.
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
from planner.parser.lexer import Token, tokens
from planner.parser.tree import contains, parse
from planner.statements.classify import Statement, classify
from planner.values.constant import ArrayValue, Foreign, ParameterValue, Span


@dataclass(frozen=True, slots=True)
class Unbound:
    """A query that groups by parameters: what it is follows once these have values."""


def find_key_parameters(text: str) -> frozenset[int]:
    """Return the numbers of the parameters that a statement groups by; none of a statement that is no query."""
    return _find_key_parameters(text, tokens(text))


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
    """Yield the grouped expressions of a SELECT, and those beside aggregates: a position or a name may mean these."""
    group = select.args.get("group")
    if group is None:
        return
    yield group
    yield from (item for item in select.expressions if not contains(item, exp.AggFunc, exp.Query))


def classify_bound(
    text: str, catalog: Catalog, parameters: Mapping[int, ParameterValue | None], *, refusal: KeyholeError
) -> tuple[str, Statement]:
    """Return a refused statement with the values of the parameters that it groups by, and its kind.

    Raise `refusal` if it groups by none. Raise what `classify` raises otherwise, without its position.
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

    None without any, or if one cannot be written.

    Guarantee: a value stays one constant, whatever it is: its quotes are doubled, and a backslash is not written, since
    what it means is a setting.
    """
    found = tokens(text)
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
    """Return a value as a constant; one that is cast as a text that means it."""
    match value:
        case datetime():
            written = f"timestamp '{format_value(value)}'"
        case date():
            written = f"date '{format_value(value)}'"
        case Span(months, days, microseconds):
            parts = ((months, "months"), (days, "days"), (microseconds, "microseconds"))
            length = " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 days"
            written = f"'{length}'" if is_cast else f"interval '{length}'"
        case int() | Decimal() if not isinstance(value, bool) and value < 0:
            written = f"({spell_value(value)})"
        case Foreign(is_text=False) | ArrayValue():
            return None
        case _:
            written = spell_value(value)
    return None if "\\" in written or "\0" in written else written
