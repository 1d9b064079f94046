"""What stands on one side of a comparison: a column or a function of one; anything else is refused."""

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.tree import bare, position, written
from planner.predicates.column_comparison import unlisted
from planner.predicates.row_scope import RowScope
from planner.predicates.terms.model import Term
from planner.predicates.terms.operand import term
from planner.scope.names import referenced


def operand(node: exp.Expr, within: RowScope) -> Term:
    """The column, or function of one, on one side of a comparison. Raises KH205 for anything else."""
    found = term(node, within)
    if found is not None:
        return found
    if node.find(exp.Query):
        raise KeyholeError("KH107", "a subquery inside a question", position=position(node))
    column = referenced(node, within.scope)
    if column is not None:
        raise unlisted(node, f'column "{column.name}" has type {column.declared}, which row conditions cannot use')
    raise not_listed(node, f"{written(node)[:80]} is not allowed in a row condition")


def not_listed(node: exp.Expr, message: str) -> KeyholeError:
    """KH205 for a function of a row, with what to write in its place where there is something."""
    return unlisted(node, message, hint=_instead(node))


def _instead(node: exp.Expr) -> str | None:
    match bare(node):
        case exp.TimeToStr(this=inner):
            x = written(inner)
            return f"Write the range: {x} >= '2011-06-01' AND {x} < '2011-07-01'."
        case exp.Upper(this=inner) | exp.Trim(this=inner):
            x = written(inner)
            return f"Name the spellings: {x} IN ('kidney', 'Kidney')."
        case exp.RegexpLike(this=inner):
            x = written(inner)
            return f"Write {x} IN ('flu', 'cold') or {x} LIKE 'fl%'."
        case exp.Div(this=exp.Column() as inner):
            return f"Multiply the constant instead: {written(inner)} > 1000."
        case exp.Cast(this=inner):
            return f"Compare {written(inner)} itself."
        case _:
            return None
