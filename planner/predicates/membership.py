"""Tests of a column against a list or array of constants: IN, ANY, SOME and ALL."""

from datetime import date, datetime
from typing import cast as typed

from sqlglot import exp

from planner.catalog.catalog import SqlType
from planner.parser.lexer import spell_name
from planner.parser.tree import contains_type, strip_parentheses, write_short
from planner.predicates.column_comparison import is_real, round_list_to_real
from planner.predicates.comparison import compare_rows, compare_sides
from planner.predicates.row_scope import RowScope, combine_truths
from planner.predicates.terms.operand import read_operand
from planner.predicates.terms.term import ColumnTerm
from planner.predicates.where_refusals import refuse_subquery, refuse_unlisted_expression
from planner.question.condition import ALWAYS, NEVER, Compare, IsNull, Not, Or, Within, join_any
from planner.question.three_valued import UNKNOWN, Truth, make_constant, make_known_unless_null
from planner.values import expressions as constant
from planner.values.array_literals import read_members
from planner.values.comparisons import compare_constants
from planner.values.constant import ArrayValue, Constant, Interval, Number, Untyped, refuse_constant
from planner.values.datetimes import move_to_midnight, read_instant, read_moment
from planner.values.expressions import convert_parameter
from planner.values.parameter_casts import read_parameter_cast


def read_quantifier(node: exp.Any | exp.Anonymous) -> tuple[bool, exp.Expr] | None:
    """Read `ANY (array)` or `ALL (array)`. Return True for ALL, False for ANY or SOME, and the array.

    Return None for anything else.
    """
    if isinstance(node, exp.Any):
        return False, strip_parentheses(node.this)
    called = str(node.this).upper()
    return (called == "ALL", strip_parentheses(node.expressions[0])) if called in ("ALL", "SOME") else None


def read_quantified_comparison(
    left: exp.Expr, operator: str, array: exp.Expr, within: RowScope, *, is_for_all: bool
) -> Truth:
    """Return the `Truth` of `left operator ANY (array)`, or of ALL if it `is_for_all`, for a constant array.

    Raise KH107 for a subquery, KH205 for other arrays, KH212 for constants of a wrong type.
    """
    found = _read_elements(array, within)
    if found is None:
        return UNKNOWN
    if within.is_constant(left):
        value = within.fold_constant(left)
        truths = [compare_constants(value, operator, item, left) for item in found]
        return combine_truths(
            (UNKNOWN if one is None else make_constant(value=one) for one in truths), is_conjunction=is_for_all
        )
    compared = read_operand(left, within)
    if is_real(compared.column) and contains_type(array, exp.Parameter):
        raise refuse_unlisted_expression(
            array,
            f'an array for column "{compared.column.name}" of type real has to be written out',
            detail="Keyhole does not know if the numbers of an array in a parameter are of type real.",
            hint=f"Write {spell_name(compared.column.name)} = ANY ('{{0.5,0.25}}').",
        )
    if is_for_all and operator == "<>":
        return _is_among(compared, [(item, array) for item in found]).negate()
    if not is_for_all and operator == "=":
        return _is_among(compared, [(item, array) for item in found])
    return combine_truths((compared.compare(operator, item, array) for item in found), is_conjunction=is_for_all)


def _read_elements(array: exp.Expr, within: RowScope) -> list[Constant] | None:
    """Return the constants of an array. Return None if it is NULL. Raise KH205, KH212."""
    if array.find(exp.Query):
        raise refuse_subquery(array)
    element, computed = None, read_parameter_cast(array)
    if computed is not None and computed in within.constants.casts:
        pass  # PostgreSQL has cast the whole array
    elif isinstance(array, exp.Cast) and array.to.this == exp.DType.ARRAY and len(array.to.expressions) == 1:
        element, array = array.to.expressions[0], strip_parentheses(array.this)
    if isinstance(array, exp.Array):
        found = [within.fold_constant(item) for item in array.expressions]
    else:
        value = within.fold_constant(array)
        if value is None:
            return None
        read = _read_array(value, array, within)
        if read is None:
            shown = write_short(array)
            raise refuse_constant(array, f"{shown} is no array of one dimension", hint="Write '{1,2}' or ARRAY[1, 2].")
        found = read
    if element is None:
        return _unify_types(found, array) if isinstance(array, exp.Array) else found
    return [None if item is None else constant.cast(item, element, array) for item in found]


def _unify_types(items: list[Constant], array: exp.Array) -> list[Constant]:
    """Return the members of an ARRAY with PostgreSQL's types: quoted ones get the others' type, or text.

    Raise KH212.
    """
    if not items:
        raise refuse_constant(array, "an empty array has no type", hint="Write '{}'.")
    known = [item for item in items if item is not None and not isinstance(item, Untyped)]
    kinds = {type(item) for item in known}
    if kinds == {date, datetime}:
        kinds = {datetime}
    if len(kinds) > 1:
        raise refuse_constant(
            array, "the members of this array are of different types", hint="Write all members alike."
        )
    texts = [item.text for item in items if isinstance(item, Untyped)]
    if kinds == {Interval} and texts:
        raise refuse_constant(array, "an array of intervals that are written differently")
    whole = all(item.is_integral for item in known if isinstance(item, Number))

    def type_item(item: Constant) -> Constant:
        match item:
            case Untyped(text) if not kinds or kinds == {str}:
                return text
            case Untyped(text) if kinds == {Number}:
                return constant.cast(item, exp.DataType.build("BIGINT" if whole else "DECIMAL"), array)
            case Untyped(text) if kinds == {bool}:
                return constant.read_truth(text, array)
            case Untyped(text) if kinds == {date}:
                return read_moment(text, array).date()
            case Untyped(text) if kinds == {datetime}:
                return read_moment(text, array)
            case date() if kinds == {datetime}:
                return move_to_midnight(item)
            case _:
                return item

    return [type_item(item) for item in items]


def _read_array(value: Constant, node: exp.Expr, within: RowScope) -> list[Constant] | None:
    """Return the elements of an array, or of an array's text. Return None if it is none."""
    if isinstance(value, ArrayValue):
        return [convert_parameter(member, node, within.constants) for member in value.members]
    if not isinstance(value, Untyped):
        return None
    texts = read_members(value.text)
    return None if texts is None else [None if text is None else Untyped(text) for text in texts]


def read_membership(node: exp.Expr, within: RowScope) -> Truth:
    """Return the `Truth` of IN a list of constants or rows.

    Raise KH107 for a subquery, KH205 for other members, KH212 for constants of a wrong type.
    """
    if not node.expressions or node.args.get("query") is not None:
        raise refuse_subquery(node)
    value = strip_parentheses(node.this)
    items = [strip_parentheses(item) for item in node.expressions]
    if isinstance(value, exp.Tuple):
        if not all(isinstance(item, exp.Tuple) for item in items):
            raise refuse_unlisted_expression(node, f"{write_short(node)} compares a row with a value")
        return combine_truths(
            (compare_rows(value, typed(exp.Tuple, item), within) for item in items), is_conjunction=False
        )
    if within.is_constant(value):
        return combine_truths((compare_sides(value, "=", item, within) for item in items), is_conjunction=False)
    found = read_operand(value, within)
    if found.column.sql_type in (SqlType.DATE, SqlType.TIMESTAMP):
        _check_member_types(found, items, within)
    return _is_among(found, [(_convert_member(found, item, len(items), within), item) for item in items])


_ZONED = (exp.StrToTime, exp.UnixToTime, exp.CurrentTimestamp)


def _check_member_types(found: ColumnTerm, items: list[exp.Expr], within: RowScope) -> None:
    """Raise the refusal of a list in which quoted members would take another member's type instead of the column's."""
    values = [within.fold_constant(item) for item in items]
    texts = [value.text for value in values if isinstance(value, Untyped)]
    kept = found.is_plain and found.column.sql_type is SqlType.TIMESTAMP
    hours = not kept and any(
        read_moment(text, items[0]) != move_to_midnight(read_moment(text, items[0]).date()) for text in texts
    )
    offsets = any(read_moment(text, items[0]) != read_instant(text, items[0]) for text in texts)
    for value, item in zip(values, items, strict=True):
        zoned = not isinstance(item, exp.Literal) and _is_zoned(item)
        if (zoned and (hours or offsets)) or (isinstance(value, datetime) and hours):
            raise refuse_constant(
                item,
                "this member of the list gives the quoted ones another type",
                detail="PostgreSQL reads all quoted members of a list with the type of the others.",
                hint="Write all members alike: date '2026-12-31' or timestamp '2026-12-31 23:59:59'.",
            )


def _is_zoned(item: exp.Expr) -> bool:
    casts = (cast.to.this for cast in item.find_all(exp.Cast))
    return item.find(*_ZONED) is not None or exp.DType.TIMESTAMPTZ in casts


def _convert_member(found: ColumnTerm, item: exp.Expr, members_: int, within: RowScope) -> Constant:
    """Return a member of a list. Several members beside a `real` column are rounded to `real`."""
    value = within.fold_constant(item)
    if members_ < 2 or value is None or not is_real(found.column):
        return value
    if contains_type(item, exp.Cast, exp.Parameter):
        raise refuse_unlisted_expression(
            item,
            f'a list on column "{found.column.name}" of type real may have plain numbers only',
            hint="Write the number itself, or "
            f"{spell_name(found.column.name)} = 0.5 OR {spell_name(found.column.name)} = 0.25.",
        )
    return round_list_to_real(value, item)


def _is_among(found: ColumnTerm, items: list[tuple[Constant, exp.Expr]]) -> Truth:
    """Return the `Truth` of the test that a term equals one of some constants."""
    truths = [found.compare("=", value, at) for value, at in items]
    name = found.column.name
    values = {part.true.value for part in truths if isinstance(part.true, Compare)}
    if len(values) < 2 or not all(isinstance(part.true, Compare) or part.true == NEVER for part in truths):
        return combine_truths(truths, is_conjunction=False)
    null = IsNull(name)
    if any(part.not_false not in (null if part.true == NEVER else Or((part.true, null)), ALWAYS) for part in truths):
        return combine_truths(truths, is_conjunction=False)
    within = Within(name, tuple(sorted(values)))
    if any(part is UNKNOWN for part in truths):
        return Truth(within, NEVER, join_any((Not(within), IsNull(name))), ALWAYS)
    return make_known_unless_null(name, true=within, false=Not(within))
