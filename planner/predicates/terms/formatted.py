"""`to_char` of a time compared with a constant text, as a condition on the part of the time that the pattern shows."""

import re
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction

from sqlglot import exp

from planner.predicates.terms.term import ColumnTerm
from planner.predicates.where_refusals import refuse_unlisted_expression
from planner.question.condition import IsNull, Not, join_any
from planner.question.three_valued import UNKNOWN, Truth, make_known_unless_null
from planner.values.constant import Constant, Number, refuse_constant
from planner.values.functions import get_text

_STEPS = {"%Y": "year", "%Y-%m": "month", "%Y%m": "month", "%Y-%m-%d": "day", "%Y%m%d": "day"}
"""Patterns that show where a step begins, in texts whose order is that of the times."""
_PARTS = {"%m": "month", "%d": "day", "%H": "hour", "%uy": "isodow", "Mon": "month"}
_NAMES = {
    "%uy": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    "Mon": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
}


def read_to_char(node: exp.TimeToStr, read: Callable[[exp.Expr], ColumnTerm]) -> ColumnTerm | None:
    """Return the term of to_char, for the patterns that are known. Return None for others.

    `read` returns the term of a function of the time. A text that the pattern never shows equals none of the results.
    Raise KH205 if such a text is compared by order.
    """
    pattern = node.args.get("format")
    form = str(pattern.this) if isinstance(pattern, exp.Literal) and "percent" not in node.meta else ""
    local = exp.cast(node.this.copy(), exp.DType.TIMESTAMP)
    if form in _STEPS:
        inner = read(exp.TimestampTrunc(this=local, unit=exp.var(_STEPS[form].upper())))
    elif form in _PARTS:
        inner = read(exp.Extract(this=exp.var(_PARTS[form].upper()), expression=local))
    else:
        return None

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if constant is None:
            return UNKNOWN
        text = get_text(constant)
        if text is None:
            raise refuse_constant(at, "to_char returns text", hint="Compare it with a constant in quotes.")
        shown = _parse_time(form, text) if form in _STEPS else _parse_number(form, text)
        if operator not in ("=", "<>") and (shown is None or form in _NAMES):
            raise refuse_unlisted_expression(
                at, "the order of these texts is not that of the times", hint="Compare the time itself."
            )
        if shown is not None:
            return inner.compare(operator, shown, at)
        name = inner.column.name
        equal = make_known_unless_null(name, true=join_any(()), false=Not(IsNull(name)))
        return equal if operator == "=" else equal.negate()

    return ColumnTerm(inner.column, compare)


def _parse_time(form: str, text: str) -> datetime | None:
    """Return the time that the pattern shows as this text."""
    if not re.fullmatch(r"[0-9-]+", text):
        return None
    try:
        found = datetime.strptime(text, form)
    except ValueError:
        return None
    return found if found.strftime(form) == text else None


def _parse_number(form: str, text: str) -> Number | None:
    """Return the number of the part that the pattern shows as this text."""
    if form in _NAMES:
        return Number(Fraction(_NAMES[form].index(text) + 1), is_integral=True) if text in _NAMES[form] else None
    return Number(Fraction(int(text)), is_integral=True) if re.fullmatch(r"[0-9]{2}", text) else None
