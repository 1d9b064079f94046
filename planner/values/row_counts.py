"""The number of rows in LIMIT, as PostgreSQL reads it."""

from contextlib import suppress

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.tree import find_position, write_short
from planner.values.constant import ConstantContext, NotConstant, Number, Untyped
from planner.values.expressions import fold_constant


def read_count(node: exp.Expr, given: ConstantContext) -> int | None:
    """Return the number in LIMIT. Return None for NULL, which limits nothing.

    A number below 0 counts as 0, because PostgreSQL itself refuses it. Raise KH106 for anything but a whole number,
    KH109 for a parameter without value.
    """
    with suppress(NotConstant, ValueError):
        match fold_constant(node, given):
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
        position=find_position(node),
    )
