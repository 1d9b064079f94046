"""Comparisons of a column with a constant, which is converted to the column's own type without changing the meaning."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import NoReturn
from uuid import UUID

from sqlglot import exp

from planner.catalog.catalog import Column, SqlType, Value
from planner.errors import KeyholeError
from planner.parser.lexer import spell_name
from planner.parser.tree import find_position, write_short
from planner.predicates.where_refusals import refuse_unlisted_expression
from planner.question.condition import NEVER, Compare, IsNull, Not
from planner.question.three_valued import UNKNOWN, Truth, make_known_unless_null
from planner.values.constant import Constant, ForeignValue, Number, Untyped, read_number, refuse_constant, round_to_real
from planner.values.datetimes import read_moment
from planner.values.decimals import convert_to_exact_decimal
from planner.values.expressions import read_truth
from planner.values.operators import OPPOSITE_OPERATORS

_INT64 = 2**63  # the end of bigint


def compare_column(column: Column, operator: str, constant: Constant, node: exp.Expr) -> Truth:
    """Return the `Truth` of `column operator constant`.

    The constant is converted to the column's own type without changing the meaning.
    """
    if constant is None:
        return UNKNOWN
    match column.sql_type:
        case SqlType.INTEGER:
            return _compare_steps(column, operator, *_convert_integer(constant, column, node))
        case SqlType.DATE:
            return _compare_steps(column, operator, *_convert_day(constant, column, node))
        case SqlType.NUMERIC | SqlType.DOUBLE:
            return _compare_simply(column, operator, _convert_decimal(constant, column, node))
        case SqlType.TIMESTAMP:
            return _compare_simply(column, operator, _convert_timestamp(constant, column, node))
        case SqlType.BOOLEAN:
            return compare_boolean(column, operator, constant, node)
        case _:
            return _compare_text(column, operator, constant, node)


_EXAMPLES = {
    SqlType.TEXT: "Compare it with text: {name} = 'a'.",
    SqlType.UUID: "Compare it with the text of a UUID: {name} = '00000000-0000-0000-0000-000000000000'.",
    SqlType.INTEGER: "Compare it with a number: {name} > 5.",
    SqlType.NUMERIC: "Compare it with a number: {name} > 1.5.",
    SqlType.DOUBLE: "Compare it with a number: {name} > 1.5.",
    SqlType.BOOLEAN: "Compare it with true or false: {name} = true.",
    SqlType.DATE: "Compare it with a date: {name} >= '2026-12-31'.",
    SqlType.TIMESTAMP: "Compare it with a timestamp: {name} >= '2026-12-31 23:59:59'.",
}


def is_real(column: Column) -> bool:
    """Return True if the column is of PostgreSQL's 4-byte type `real`, to which untyped constants are rounded."""
    return column.declared.strip().lower() in ("real", "float4")


def round_list_to_real(constant: Constant, node: exp.Expr) -> Constant:
    """Return a constant of a list compared with a `real` column, which makes all members `real`."""
    found = read_number(constant.text, node) if isinstance(constant, Untyped) else constant
    if not isinstance(found, Number):
        return constant
    nearest = round_to_real(found.value)
    if nearest is None:
        raise refuse_constant(node, f"{write_short(node)} is out of the range of real")
    return Number(Fraction(nearest), is_integral=False)


def _refuse_mismatch(column: Column, node: exp.Expr) -> NoReturn:
    raise KeyholeError(
        "KH212",
        f'the constant {write_short(node)} does not fit column "{column.name}" of type {column.declared}',
        detail="A constant is brought to the column's own type, where PostgreSQL would do so without losing anything.",
        hint=_EXAMPLES[column.sql_type].format(name=spell_name(column.name)),
        position=find_position(node),
    )


def _compare_simply(column: Column, operator: str, value: Value) -> Truth:
    return make_known_unless_null(
        column.name,
        true=Compare(column.name, operator, value),
        false=Compare(column.name, OPPOSITE_OPERATORS[operator], value),
    )


def _compare_steps(column: Column, operator: str, below: Value | None, above: Value | None) -> Truth:
    """Return a comparison on a type with steps.

    `below` is the last value that is at most the constant, and `above` the first that is at least the constant; None
    beyond the type.
    """
    if below is not None and below == above:
        return _compare_simply(column, operator, below)
    never, exists = NEVER, Not(IsNull(column.name))
    match operator:
        case "=" | "<>":
            result = make_known_unless_null(column.name, true=never, false=exists)
            return result if operator == "=" else result.negate()
        case ">" | ">=" if above is not None:
            return _compare_simply(column, ">=", above) if below is None else _compare_simply(column, ">", below)
        case "<" | "<=" if below is not None:
            return _compare_simply(column, "<=", below) if above is None else _compare_simply(column, "<", above)
        case _:
            # the constant lies beyond the column's type, so that no value is greater (or less) than it
            return make_known_unless_null(column.name, true=never, false=exists)


def _convert_integer(constant: Constant, column: Column, node: exp.Expr) -> tuple[int | None, int | None]:
    if isinstance(constant, Untyped):
        constant = read_number(constant.text, node)
        if not constant.is_integral:
            _refuse_mismatch(column, node)
    if not isinstance(constant, Number):
        _refuse_mismatch(column, node)
    below, above = floor(constant.value), ceil(constant.value)
    if below >= _INT64:
        return _INT64 - 1, None
    if above < -_INT64:
        return None, -_INT64
    return below, above


def _convert_day(constant: Constant, column: Column, node: exp.Expr) -> tuple[date | None, date | None]:
    if isinstance(constant, Untyped):
        constant = read_moment(constant.text, node).date()
    match constant:
        case datetime():
            day = constant.date()
            if constant == datetime.combine(day, datetime.min.time()):
                return day, day
            return day, day + timedelta(days=1) if day < date.max else None
        case date():
            return constant, constant
        case _:
            _refuse_mismatch(column, node)


def _convert_decimal(constant: Constant, column: Column, node: exp.Expr) -> Decimal:
    if isinstance(constant, Untyped):
        constant = round_list_to_real(constant, node) if is_real(column) else read_number(constant.text, node)
    if not isinstance(constant, Number):
        _refuse_mismatch(column, node)
    value = convert_to_exact_decimal(constant.value)
    if value is None:
        raise KeyholeError(
            "KH212",
            f"{write_short(node)} has endlessly many decimal places",
            hint="Round it to a few places, and write it as a decimal number such as 0.333.",
            position=find_position(node),
        )
    return value


def _convert_timestamp(constant: Constant, column: Column, node: exp.Expr) -> datetime:
    match constant:
        case Untyped(text):
            return read_moment(text, node)
        case datetime():
            return constant
        case date():
            return datetime.combine(constant, datetime.min.time())
        case _:
            _refuse_mismatch(column, node)


def compare_boolean(column: Column, operator: str, constant: Constant, node: exp.Expr) -> Truth:
    """Return the `Truth` of a boolean column compared with a boolean.

    Raise KH212 for a constant of another type, KH205 for an unsupported operator.
    """
    if isinstance(constant, Untyped):
        constant = read_truth(constant.text, node)
    if not isinstance(constant, bool):
        _refuse_mismatch(column, node)
    if operator not in ("=", "<>"):
        raise refuse_unlisted_expression(node, "booleans cannot be ordered", hint="Compare them with = or <>.")
    wanted = constant if operator == "=" else not constant
    return make_known_unless_null(
        column.name, true=Compare(column.name, "=", wanted), false=Compare(column.name, "=", not wanted)
    )


def _becomes_text(constant: ForeignValue, column: Column) -> bool:
    """Return True if PostgreSQL compares such a value with the column as text.

    A `character` compared with a `character varying` makes both `character`, whose trailing blanks do not count.
    """
    if column.sql_type is not SqlType.TEXT or not constant.is_text:
        return False
    return constant.declared != "character" or column.declared.strip().lower() == "text"


def _compare_text(column: Column, operator: str, constant: Constant, node: exp.Expr) -> Truth:
    text = constant.text if isinstance(constant, Untyped) else constant
    if isinstance(constant, ForeignValue) and _becomes_text(constant, column):
        text = constant.text
    if not isinstance(text, str):
        _refuse_mismatch(column, node)
    if "\x00" in text:
        _refuse_mismatch(column, node)
    if operator not in ("=", "<>"):
        raise refuse_unlisted_expression(
            node,
            f'the order of column "{column.name}" depends on a collation',
            hint=f"Use =, <>, IN or LIKE on {spell_name(column.name)}.",
        )
    if column.sql_type is SqlType.UUID:
        try:
            text = str(UUID(text))
        except ValueError:
            _refuse_mismatch(column, node)
    return _compare_simply(column, operator, text)
