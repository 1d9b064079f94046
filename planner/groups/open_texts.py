"""Why an expression of a text has no public values, with a spelling that has: the texts named in a CASE."""

from collections.abc import Iterable
from datetime import date

from sqlglot import exp

from planner.catalog.model import Column, SqlType
from planner.errors import KeyholeError
from planner.parser.tree import position, write_node
from planner.predicates.condition import row_condition
from planner.scope.key_classes import key_expression
from planner.scope.names import Scope, find_column
from planner.values.model import Given

_NOTHING_GIVEN = Given(parameters={}, today=date.min)


def refuse_open_texts(items: Iterable[exp.Expr], scope: Scope) -> None:
    """Refuse a computed key that reads a text of which any may be stored. Raises KH202."""
    for item in items:
        read = _find_open_text(item, scope)
        if read is None:
            continue
        node, column = read
        _refuse_test(item, scope)
        written = write_node(node)[:80]
        raise KeyholeError(
            "KH202",
            f"{write_node(item)[:80]} is not a column with a public domain",
            detail=f"Any text may stand in {column.name}, so nothing public says which values {written} has.",
            hint=f"Name the texts that you ask about: "
            f"CASE WHEN {written} IN ('A', 'B') THEN 'A or B' ELSE 'other' END.",
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
                f"{write_node(item)[:80]} is not a column with a public domain",
                detail=f"A row cannot be asked {write_node(test)[:80]}: {error.message}.",
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
