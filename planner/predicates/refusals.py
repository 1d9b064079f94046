"""What a condition on rows may not say, and what to write instead."""

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.tree import bare, position, write_node


def subquery_inside(node: exp.Expr) -> KeyholeError:
    """KH107 for a subquery where a question compares."""
    return KeyholeError("KH107", "a subquery inside a question", position=position(node))


def unlisted_refusal(
    node: exp.Expr, message: str, *, hint: str | None = None, detail: str | None = None
) -> KeyholeError:
    """KH205 for what is not on the allow-list of row conditions."""
    return KeyholeError(
        "KH205",
        message,
        detail=detail or "A row condition compares declared columns with constants; nothing in it may fail on a row.",
        hint=hint
        or "Use =, <>, <, <=, >, >=, BETWEEN, IN, LIKE or IS NULL between a column and constants, "
        "or ask the owner for a derived column.",
        position=position(node),
    )


def not_allowed(node: exp.Expr) -> KeyholeError:
    """KH205 for an expression that no condition may have."""
    return unlisted_refusal(node, f"{write_node(node)[:80]} is not allowed in a row condition")


def no_term(node: exp.Expr) -> KeyholeError:
    """KH205 for a function of a row, with what to write in its place where there is something."""
    return unlisted_refusal(node, f"{write_node(node)[:80]} is not allowed in a row condition", hint=_instead(node))


def _instead(node: exp.Expr) -> str | None:
    match bare(node):
        case exp.TimeToStr(this=inner):
            x = write_node(inner)
            return f"Write the range: {x} >= '2011-06-01' AND {x} < '2011-07-01'."
        case exp.Upper(this=inner) | exp.Trim(this=inner):
            x = write_node(inner)
            return f"Name the spellings: {x} IN ('kidney', 'Kidney')."
        case exp.RegexpLike(this=inner):
            x = write_node(inner)
            return f"Write {x} IN ('flu', 'cold') or {x} LIKE 'fl%'."
        case exp.Div(this=exp.Column() as inner):
            return f"Multiply the constant instead: {write_node(inner)} > 1000."
        case exp.Cast(this=inner):
            return f"Compare {write_node(inner)} itself."
        case _:
            return None
