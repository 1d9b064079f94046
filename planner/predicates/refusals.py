"""What a condition on rows may not say, and what to write instead."""

import re

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


def name_spellings(node: exp.Expr, inner: exp.Expr) -> str:
    """To name the spellings of the constant that a text is compared with, in the refused condition's own words."""
    above = node if isinstance(node, exp.Condition) and node.find(exp.Literal) else node.parent
    found = None if above is None else above.find(exp.Literal)
    word = str(found.this) if found is not None and found.is_string else "kidney"
    plain = word.strip("%_ ") or "kidney"
    spelt = dict.fromkeys((plain.lower(), plain.capitalize(), plain.upper()))
    return f"Name the spellings: {write_node(inner)} IN ({', '.join(map(_quote, spelt))})."


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _like(x: str, pattern: exp.Expr) -> str:
    """LIKE in the place of a regular expression, with its longest run of letters and digits."""
    written = str(pattern.this) if isinstance(pattern, exp.Literal) and pattern.is_string else ""
    word = max(re.findall(r"\w+", written), key=len, default="fl")
    start, end = ("" if written.startswith("^") else "%"), ("" if written.endswith("$") else "%")
    return f"Write {x} LIKE {_quote(start + word + end)}."


def _instead(node: exp.Expr) -> str | None:
    match bare(node):
        case exp.TimeToStr(this=inner):
            x = write_node(inner)
            return f"Write the range: {x} >= '2011-06-01' AND {x} < '2011-07-01'."
        case exp.Upper(this=inner) | exp.Trim(this=inner):
            return name_spellings(node, inner)
        case exp.RegexpLike(this=inner, expression=pattern):
            return _like(write_node(inner), bare(pattern))
        case exp.Div(this=exp.Column() as inner, expression=divisor):
            return (
                f"Multiply the constant instead: compare {write_node(inner)} with so many times {write_node(divisor)}."
            )
        case exp.Cast(this=inner):
            return f"Compare {write_node(inner)} itself."
        case _:
            return None
