"""ORDER BY behind a question, as a program can apply it to the answer without a database: by keys and by truths.

    SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) > 40 ORDER BY day DESC, 1

A key that is computed may be NULL, and so may a truth.
"""

from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.catalog.catalog import SqlType
from planner.errors import KeyholeError
from planner.parser.lexer import read_tokens
from planner.parser.tree import find_position, parse, read_name, strip_parentheses, write_node
from planner.scope.embedded import EmbeddedQuestion
from planner.scope.group_by import resolve_position
from planner.scope.key_classes import write_identity
from planner.scope.name_resolution import find_column

_CUTS = ("limit", "offset", "fetch", "locks")


@dataclass(frozen=True, slots=True)
class SortedColumn:
    """A column by which an answer is sorted: its index from 0 on, and True if its texts are whole numbers.

    With `has_unusual_nulls` NULL is not at PostgreSQL's default place, after the greatest value.
    """

    index: int
    is_number: bool
    descending: bool
    has_unusual_nulls: bool = False


KeyOrder: TypeAlias = tuple[SortedColumn, ...]
"""The columns by which an answer is sorted, each once, the first of them first. Empty for the key domain's order."""


def read_key_order(question: EmbeddedQuestion, statement: str) -> KeyOrder | None:
    """Return the order that a statement gives the answer to its question.

    Return None if there is other text than ORDER BY around the question. Raises KH100, KH106, KH201 and KH215 for
    expressions by which the answer cannot be sorted, with positions in the statement.
    """
    text = statement if question.origin is None else question.origin.text
    end = question.offset + len(question.text)
    behind_totals = question.unit_query is not None and question.unit_query.is_only_query
    if text[: question.offset].strip() and not behind_totals:
        return None
    if not text[end:].strip():
        return ()
    found = read_tokens(text)
    if not next(token for token in found if token.start >= end).is_word("order"):
        return None
    query = parse(text, found).tree
    order = query.args.get("order")
    if order is None or any(query.args.get(clause) for clause in _CUTS):
        return None
    columns: dict[int, SortedColumn] = {}
    try:
        for item in order.expressions:
            if (column := _read_item(item, question)) is not None:
                columns.setdefault(column.index, column)
    except KeyholeError as error:
        raise question.place_error(error) from None
    return tuple(columns.values())


def _read_item(item: exp.Ordered, question: EmbeddedQuestion) -> SortedColumn | None:
    """Return the column by which an item sorts, or None for a constant of the select list, which sorts nothing."""
    node, descending = resolve_order_item(strip_parentheses(item.this), question.tree), bool(item.args.get("desc"))
    if isinstance(node, exp.Literal | exp.Boolean | exp.Null):
        return None
    is_astray = bool(item.args.get("nulls_first")) != descending
    formulas = [write_node(one.tree) for one in question.predicates]
    shown = question.shown_keys
    if (written := write_node(node)) in formulas:
        first = len(question.columns) - len(formulas)
        first += 0 if shown is None else len(shown.items) - len(question.keys)
        place = first + formulas.index(written)
        return SortedColumn(place, is_number=False, descending=descending, has_unusual_nulls=is_astray)
    if (
        question.numbers is not None
        and contains_aggregate(node)
        and not any(one.kind == "bands" for one in question.numbers.columns)
    ):
        return None
    column = find_column(node, question.scope)
    if shown is not None:
        called = None if column is None else column.name
        known = write_identity(node, question.scope)
        for place, one in enumerate(shown.items):
            if (one.sql and known == one.text) or (not one.sql and one.name == called):
                is_whole = not one.sql and question.keys[one.key_places[0]].sql_type is SqlType.INTEGER
                return SortedColumn(place, is_number=is_whole, descending=descending, has_unusual_nulls=is_astray)
    names = [key.name for key in question.keys]
    if column is None or column.name not in names:
        raise KeyholeError(
            "KH106",
            f"{written[:80]} is neither a key nor a predicate of the answer",
            detail="Without the PostgreSQL endpoint an answer is sorted only by these.",
            hint="ORDER BY a key, or sort what comes back.",
            position=find_position(item),
        )
    is_number = column.sql_type is SqlType.INTEGER
    return SortedColumn(names.index(column.name), is_number=is_number, descending=descending)


def resolve_order_item(node: exp.Expr, select: exp.Select) -> exp.Expr:
    """Return the expression that a position or name in ORDER BY means.

    A name of the select list comes before a column of the table.
    """
    place = resolve_position(node, select, clause="ORDER BY")
    if place is not None:
        return _strip_name(select.expressions[place])
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        return node
    named = [_strip_name(shown) for shown in select.expressions if _find_output_name(shown) == read_name(node.this)]
    if len(set(map(write_node, named))) > 1:
        raise KeyholeError("KH201", f'ORDER BY "{read_name(node.this)}" is ambiguous', position=find_position(node))
    return named[0] if named else node


def _find_output_name(shown: exp.Expr) -> str:
    """Return PostgreSQL's name for a column of the answer: its alias or the column's own name, else ""."""
    if isinstance(shown, exp.Alias):
        return read_name(shown.args["alias"])
    inner = strip_parentheses(shown)
    return read_name(inner.this) if isinstance(inner, exp.Column) else ""


def _strip_name(shown: exp.Expr) -> exp.Expr:
    return strip_parentheses(shown.this if isinstance(shown, exp.Alias) else shown)
