"""Texts of which any may be stored: the few that WHERE lists are groups, and a refusal shows a CASE that names some.

WHERE code IN ('A1', 'B2') GROUP BY code
"""

from collections.abc import Iterable
from datetime import date

from sqlglot import exp

from planner.catalog.model import Column, Parts, SqlType
from planner.errors import KeyholeError
from planner.parser.tree import position, write_node, write_short
from planner.predicates.condition import row_condition
from planner.question.condition import Compare, Condition, Within
from planner.scope.key_classes import key_expression
from planner.scope.names import Scope, find_column
from planner.values.model import Given

_NOTHING_GIVEN = Given(parameters={}, today=date.min)
_MOST_TEXTS = 1_000  # each is compared with every row's text


def refuse_open_texts(items: Iterable[exp.Expr], scope: Scope) -> None:
    """Refuse a computed key that reads a text of which any may be stored. Raises KH202."""
    for item in items:
        read = _find_open_text(item, scope)
        if read is None:
            continue
        node, column = read
        _refuse_test(item, scope)
        raise KeyholeError(
            "KH202",
            f"{write_short(item)} is not a column with a public domain",
            detail=f"Any text may stand in {column.name}, so nothing public says which values {write_short(node)} has.",
            hint=f"Name the texts that you ask about: "
            f"CASE WHEN {write_node(node)} IN ('A', 'B') THEN 'A or B' ELSE 'other' END.",
            position=position(item),
        )


def _refuse_test(item: exp.Expr, scope: Scope) -> None:
    """Refuse a condition in a key that no row can be asked, as in the order of texts. Raises KH202."""
    for test in item.find_all(exp.Predicate):
        try:
            row_condition(test, scope, _NOTHING_GIVEN)
        except KeyholeError as error:
            raise KeyholeError(
                "KH202",
                f"{write_short(item)} is not a column with a public domain",
                detail=f"A row cannot be asked {write_short(test)}: {error.message}.",
                hint=error.hint,
                position=position(test),
            ) from None


def _find_open_text(item: exp.Expr, scope: Scope) -> tuple[exp.Expr, Column] | None:
    """Return a part of a key that reads a text, and the text; None if its values are known."""
    try:
        if find_column(item, scope) is not None or key_expression(item, scope) is not None:
            return None
        for node in item.find_all(exp.Column):
            column = find_column(node, scope)
            if column is not None and column.domain is None and column.sql_type is SqlType.TEXT:
                whole = (item, node.parent or node, node)
                return next(one for one in whole if one is node or _is_compared(one, scope)), column
    except KeyholeError:
        return None
    return None


def _is_compared(node: exp.Expr, scope: Scope) -> bool:
    """Return True if WHERE may compare an expression with texts."""
    if node.find(exp.Case, exp.Predicate) is not None:
        return False
    texts = [exp.Literal.string(text) for text in "AB"]
    try:
        row_condition(exp.In(this=node.copy(), expressions=texts), scope, _NOTHING_GIVEN)
    except KeyholeError:
        return False
    return True


def list_said_texts(column: Column, said: tuple[Condition, ...]) -> Parts | None:
    """Return the groups of a column's texts that WHERE leaves, in order; None if it does not list few."""
    found: set[str] | None = None
    for one in said:
        match one:
            case Compare(name, "=", str() as text) if name == column.name:
                listed = {text}
            case Within(name, values) if name == column.name:
                listed = {value for value in values if isinstance(value, str)}
            case _:
                continue
        found = listed if found is None else found & listed
    if not found or len(found) > _MOST_TEXTS or column.sql_type is not SqlType.TEXT:
        return None
    texts = sorted(found)
    return Parts(
        column=column.name,
        kind=SqlType.TEXT,
        cuts=(),
        groups=tuple(range(len(texts))),
        nulls=None,
        shown=tuple(texts),
        tests=tuple(Compare(column.name, "=", text) for text in texts),
    )
