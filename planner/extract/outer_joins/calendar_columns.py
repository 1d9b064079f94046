"""The columns of public lists in a SELECT, written as the keys that they are joined with."""

from collections.abc import Container, Iterator, Sequence
from datetime import datetime

from sqlglot import exp

from planner.errors import KeyholeError
from planner.extract.outer_joins.listed_keys import ListedKey
from planner.extract.outer_joins.public_lists import Listed, is_column_of
from planner.extract.subqueries.pull_up_subqueries import find_output_name, is_sorted_by
from planner.parser.clauses import Clauses, find_token
from planner.parser.edits import Edit
from planner.parser.lexer import Token, spell_name
from planner.parser.tree import (
    find_offset,
    find_position,
    locate_name,
    read_name,
    strip_parentheses,
    write_node,
    write_short,
)
from planner.values.sql_literals import quote_text

_MOST_LISTED = 500  # values that a condition writes out, of a calendar that leaves out some between its ends
_ORDERED = (exp.Group, exp.Ordered, exp.Window)
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)


def find_key(column: exp.Column, keys: Sequence[ListedKey]) -> ListedKey | None:
    """Return the key whose public list has this column. Return None if there is no such key."""
    return next((key for key in keys if is_column_of(column, key.source)), None)


def list_columns(select: exp.Select) -> Iterator[exp.Column]:
    """Yield the columns of a SELECT outside FROM and subqueries, without the outputs that ORDER BY names."""
    sources = (select.args["from_"], select.args.get("with_"), *select.args["joins"])
    hidden = {id(node) for part in sources if part is not None for node in part.walk()}
    outputs = {find_output_name(item) for item in select.expressions}
    for column in select.find_all(exp.Column):
        if id(column) in hidden or column.find_ancestor(exp.Select) is not select:
            continue
        is_plain = column.args.get("table") is None and read_name(column.this) in outputs
        if not (is_plain and is_sorted_by(column, select)):
            yield column


def is_ambiguous(select: exp.Select, keys: Sequence[ListedKey], others: Container[str]) -> bool:
    """Return True if a SELECT names a list's column without its source, and another source has such a column too."""
    return any(
        column.args.get("table") is None and find_key(column, keys) is not None and read_name(column.this) in others
        for column in list_columns(select)
    ) or len({key.source.column for key in keys}) < len(keys)


def replace_columns(
    select: exp.Select, place: Clauses, keys: Sequence[ListedKey], tokens: tuple[Token, ...]
) -> Iterator[Edit]:
    """Yield the edits that replace the lists' columns by key expressions, outside FROM and subqueries.

    Shown ones keep their names.
    """
    for column in list_columns(select):
        key = find_key(column, keys)
        if key is None:
            continue
        start = tokens[find_token(tokens, locate_name(column))].start
        end = tokens[find_token(tokens, find_offset(column.this))].end
        yield Edit.from_text(start, end, _spell_key(column, key))
    for item, (_, past) in zip(select.expressions, place.items, strict=True):
        node = strip_parentheses(item)
        while isinstance(node, exp.Cast):
            node = strip_parentheses(node.this)
        if isinstance(node, exp.Column) and (key := find_key(node, keys)) is not None:
            end = tokens[past - 1].end
            yield Edit.from_text(end, end, f" AS {spell_name(key.source.column)}")


def _spell_key(column: exp.Column, key: ListedKey) -> str:
    """Return a key in the place of a list's column, of the same type where that can be seen."""
    node: exp.Expr = column
    shown, above = key.expression, column.parent
    if isinstance(above, exp.Cast) and isinstance(shown, exp.Cast) and above.to == shown.to:
        shown = shown.this  # which is cast so in any case
    text = write_node(shown)
    if key.kind == key.source.kind and not isinstance(key.expression, exp.Extract):
        return text
    while isinstance(node.parent, exp.Paren | exp.TimestampTrunc):
        node = node.parent
    around = node.parent
    of_day = isinstance(around, exp.Cast) and around.to.this == exp.DType.DATE
    is_seen = not of_day and not isinstance(around, (*_ORDERED, *_COMPARED, exp.Extract, exp.TimeToStr))
    return f"CAST({text} AS {key.source.kind})" if is_seen else text


def write_values(key: ListedKey, expression: exp.Expr, *, is_grouped: bool = True) -> str:
    """Return the condition that restricts a key's expression to its list's values.

    Return an empty text if it has no other values.

    Parameters:
        is_grouped: the expression is grouped by. If it is not, rows in no group of the key and NULLs count as well.
    """
    wanted = set(key.source.values)
    if is_grouped and wanted >= set(key.domain):
        return ""
    if not wanted:
        return "(false)"
    called = write_node(expression)
    values = sorted(wanted)
    places = [place for place, one in enumerate(sorted(key.domain)) if one in wanted]
    if not isinstance(values[0], str) and places[-1] - places[0] == len(places) - 1:
        return f"({called} >= {write_value(values[0])} AND {called} <= {write_value(values[-1])})"
    if len(values) > _MOST_LISTED:
        raise KeyholeError(
            "KH107",
            f"the calendar leaves out some values of {write_short(expression)} between its ends",
            detail=f"At most {_MOST_LISTED} values can be listed then.",
            hint="Write a step of generate_series that leaves out none, or a shorter calendar.",
            position=find_position(key.links[0]),
        )
    return f"({called} IN ({', '.join(map(write_value, values))}))"


def write_value(value: Listed) -> str:
    """Return a value of a list as an SQL constant."""
    match value:
        case datetime():
            is_day = value == datetime(value.year, value.month, value.day)
            return f"DATE '{value.date()}'" if is_day else f"TIMESTAMP '{value}'"
        case int():
            return str(value)
        case _:
            return quote_text(value)
