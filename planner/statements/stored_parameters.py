"""Parameters of stored questions: `:name` in the owner's SQL, a default in the policy, a value per session.

The owner writes `HAVING count(*) > :threshold` and `parameters = { threshold = 40 }`. An analyst may `SET
keyhole.param.crowded_wards.threshold = 60`. A value has the type of its default. It is a constant of the question like
any other, and part of the question's identity.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal

from planner.catalog.catalog import Catalog, StoredParameter, StoredQuestion, Value
from planner.catalog.key_space import format_value
from planner.parser.lexer import read_tokens
from planner.scope.embedded import EmbeddedQuestion
from planner.statements.statement_refusals import refuse_parameter_value, refuse_unknown_parameter
from planner.values.sql_literals import quote_text as text_literal

PREFIX = "keyhole.param."
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})")
_TRUTHS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def fill_in_defaults(stored: StoredQuestion) -> str:
    """Return the stored question's SQL with its parameters' defaults filled in, as the shadow declares the relation."""
    parts: list[str] = []
    at = 0
    for token in read_tokens(stored.sql):
        if token.kind == "parameter":
            parts.extend(
                (stored.sql[at : token.start], _write_literal(stored.parameters[int(token.value[1:]) - 1].default))
            )
            at = token.end
    return "".join((*parts, stored.sql[at:]))


def _write_literal(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return f"({format_value(value)})"
        case date():
            return f"date '{format_value(value)}'"
        case _:
            return text_literal(value)


def list_settings(catalog: Catalog) -> Mapping[str, str]:
    """Return the session settings of all stored questions' parameters, with their defaults as text."""
    return {setting: format_value(parameter.default) for setting, parameter in _list_parameters(catalog)}


def list_meanings(catalog: Catalog) -> Mapping[str, str]:
    """Return a description of each setting of `list_settings`, for analysts."""
    return {setting: _describe_parameter(setting, parameter) for setting, parameter in _list_parameters(catalog)}


def _describe_parameter(setting: str, parameter: StoredParameter) -> str:
    return f"parameter of the stored question {setting.split('.')[2]}, {_describe_type(parameter.default)}"


def _list_parameters(catalog: Catalog) -> Iterator[tuple[str, StoredParameter]]:
    for stored in catalog.stored_questions:
        for parameter in stored.parameters:
            yield f"{PREFIX}{stored.name}.{parameter.name}", parameter


def check_parameter(setting: str, value: str | None, catalog: Catalog) -> None:
    """Raise KH403 for an unknown parameter, and KH402 for a value of another type. None means the default."""
    found = dict(_list_parameters(catalog))
    if setting not in found:
        raise refuse_unknown_parameter(setting, found)
    if value is not None:
        _read_parameter(setting, found[setting], value)


def read_parameters(embedded: EmbeddedQuestion, settings: Mapping[str, str | None]) -> Mapping[int, Value | None]:
    """Return the values of a stored question's parameters by number: the session's, else the defaults.

    Raise KH402 for a value of another type.
    """
    return {
        number: _find_value(f"{PREFIX}{embedded.stored_question}.{parameter.name}", parameter, settings)
        for number, parameter in enumerate(embedded.parameters, start=1)
    }


def _find_value(setting: str, parameter: StoredParameter, settings: Mapping[str, str | None]) -> Value:
    text = settings.get(setting)
    # an unset custom setting reads as empty text in PostgreSQL once it was set and rolled back
    return parameter.default if text is None or text == "" else _read_parameter(setting, parameter, text)


def _describe_type(default: Value) -> str:
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
    raise refuse_parameter_value(
        setting,
        text,
        described=_describe_parameter(setting, parameter),
        example=text_literal(format_value(parameter.default)),
    )
