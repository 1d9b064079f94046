"""The number of rows to which a query is cut, as PostgreSQL reads it."""

from contextlib import suppress

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.tree import position, write_short
from planner.values.constant import Given, NotConstant, Number, Untyped
from planner.values.expressions import fold


def read_count(node: exp.Expr, given: Given) -> int | None:
    """Return the number that LIMIT says; None for NULL, which cuts nothing.

    Below 0 it counts as 0: PostgreSQL itself refuses that.

    Raises KH106 for what is no whole number, and KH109.
    """
    with suppress(NotConstant, ValueError):
        match fold(node, given):
            case None:
                return None
            case Number(value) if value.denominator == 1:
                return max(0, int(value))
            case Untyped(text):
                return max(0, int(text))
    raise KeyholeError(
        "KH106",
        f"LIMIT {write_short(node)} is no whole number",
        hint="Write LIMIT 5.",
        position=position(node),
    )
