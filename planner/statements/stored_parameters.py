"""Parameters of stored questions: `:name` in the owner's SQL, a default in the policy, a value per session.

The owner writes `HAVING count(*) > :threshold` and `parameters = { threshold = 40 }`; an analyst may
`SET keyhole.param.crowded_wards.threshold = 60`. A value has the type of its default, and is a constant of the question
like any other: it is part of what makes two questions the same.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal

from planner.catalog.catalog import Catalog, StoredParameter, StoredQuestion, Value
from planner.catalog.key_space import format_value
from planner.parser.lexer import tokens
from planner.scope.embedded import Embedded
from planner.statements.statement_refusals import bad_parameter, unknown_parameter
from planner.values.sql_literals import text as text_literal

PREFIX = "keyhole.param."
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})")
_TRUTHS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def with_defaults(stored: StoredQuestion) -> str:
    """Return the SQL with its parameters' defaults in place, as the shadow declares the relation."""
    parts: list[str] = []
    at = 0
    for token in tokens(stored.sql):
        if token.kind == "parameter":
            parts.extend((stored.sql[at : token.start], _literal(stored.parameters[int(token.value[1:]) - 1].default)))
            at = token.end
    return "".join((*parts, stored.sql[at:]))


def _literal(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return f"({format_value(value)})"
        case date():
            return f"date '{format_value(value)}'"
        case _:
            return text_literal(value)


def settings_of(catalog: Catalog) -> Mapping[str, str]:
    """Return the session settings of all stored questions' parameters, with their defaults as text."""
    return {setting: format_value(parameter.default) for setting, parameter in _parameters(catalog)}


def meanings(catalog: Catalog) -> Mapping[str, str]:
    """Return the meaning of each of these settings, for people."""
    return {setting: _describe_parameter(setting, parameter) for setting, parameter in _parameters(catalog)}


def _describe_parameter(setting: str, parameter: StoredParameter) -> str:
    return f"parameter of the stored question {setting.split('.')[2]}, {_kind(parameter.default)}"


def _parameters(catalog: Catalog) -> Iterator[tuple[str, StoredParameter]]:
    for stored in catalog.stored_questions:
        for parameter in stored.parameters:
            yield f"{PREFIX}{stored.name}.{parameter.name}", parameter


def check(setting: str, value: str | None, catalog: Catalog) -> None:
    """Refuse an unknown parameter (KH403) or a value that is not of its type (KH402). None means the default."""
    found = dict(_parameters(catalog))
    if setting not in found:
        raise unknown_parameter(setting, found)
    if value is not None:
        _read_parameter(setting, found[setting], value)


def read_parameters(embedded: Embedded, settings: Mapping[str, str | None]) -> Mapping[int, Value | None]:
    """Return the values of a stored question's parameters by number: the session's, else the defaults. Raise KH402."""
    return {
        number: _value(f"{PREFIX}{embedded.stored}.{parameter.name}", parameter, settings)
        for number, parameter in enumerate(embedded.parameters, start=1)
    }


def _value(setting: str, parameter: StoredParameter, settings: Mapping[str, str | None]) -> Value:
    text = settings.get(setting)
    # an unset custom setting reads as empty text in PostgreSQL once it was set and rolled back
    return parameter.default if text is None or text == "" else _read_parameter(setting, parameter, text)


def _kind(default: Value) -> str:
    match default:
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case Decimal():
            return "a number"
        case date():
            return "a date"
        case _:
            return "a text"


def _read_parameter(setting: str, parameter: StoredParameter, text: str) -> Value:
    cleaned = text.strip()
    match parameter.default:
        case bool() if cleaned.lower() in _TRUTHS:
            return _TRUTHS[cleaned.lower()]
        case bool():
            pass
        case int() if _WHOLE.fullmatch(cleaned):
            return int(cleaned)
        case Decimal() if _NUMBER.fullmatch(cleaned):
            return Decimal(cleaned)
        case date():
            try:
                return date.fromisoformat(cleaned)
            except ValueError:
                pass
        case str() if "\x00" not in text:
            return text
    raise bad_parameter(
        setting,
        text,
        described=_describe_parameter(setting, parameter),
        example=text_literal(format_value(parameter.default)),
    )
