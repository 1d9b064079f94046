"""Refusals of conditions on rows, and what to write instead."""

import re
from fractions import Fraction

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.tree import find_position, strip_parentheses, write_node, write_short
from planner.values.decimals import convert_to_decimal
from planner.values.like import escape_pattern

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}


def refuse_subquery(node: exp.Expr) -> KeyholeError:
    """Return KH107 for a subquery inside a condition."""
    return KeyholeError(
        "KH107",
        "a subquery cannot be part of this condition",
        hint="Write a constant or a parameter in its place.",
        position=find_position(node),
    )


def refuse_unlisted_expression(
    node: exp.Expr, message: str, *, hint: str | None = None, detail: str | None = None
) -> KeyholeError:
    """Return KH205 for an expression that is not on the allow-list of row conditions."""
    return KeyholeError(
        "KH205",
        message,
        detail=detail
        or "Keyhole computes arithmetic, times and texts of a row's columns: nothing that may fail on a row.",
        hint=hint or "Compare the columns themselves, or ask the owner for a derived column.",
        position=find_position(node),
    )


def refuse_expression(node: exp.Expr) -> KeyholeError:
    """Return KH205 for an expression that no condition may contain."""
    return refuse_unlisted_expression(node, f"{write_short(node)} is not allowed in a row condition")


def refuse_function(node: exp.Expr) -> KeyholeError:
    """Return KH205 for a function of a row. Its hint names a replacement if there is one."""
    return refuse_unlisted_expression(
        node, f"{write_short(node)} is not allowed in a row condition", hint=_suggest_instead(node)
    )


def refuse_several_tables(node: exp.Expr) -> KeyholeError:
    """Return KH205 for a condition that reads columns of several joined private tables."""
    return refuse_unlisted_expression(
        node,
        f"{write_short(node)} is compared with a column of another private table",
        detail="Numbers and times of different private tables can be compared, texts only within one table.",
        hint="Compare each table's columns with constants, or ask the owner for a view with both.",
    )


def refuse_division(node: exp.Div, *, drops_remainder: bool) -> KeyholeError:
    """Return KH205 for a column divided by a constant, with the equivalent comparison of the column.

    Parameters:
        drops_remainder: True if the division is one of integers.
    """
    said = f"{write_short(node)} is not allowed in a row condition"
    above, divisor = node.parent, strip_parentheses(node.expression)
    while isinstance(above, exp.Paren):
        above = above.parent
    operator = None if above is None else _OPERATORS.get(type(above))
    compared = None if above is None else strip_parentheses(above.expression) if above.args.get("expression") else None
    column, by, to = write_node(node.this), _read_plain_number(divisor), _read_plain_number(compared)
    drops_remainder = drops_remainder and not (isinstance(divisor, exp.Literal) and "." in divisor.this)
    if operator is None or not by or to is None or (drops_remainder and to.denominator > 1):
        return refuse_unlisted_expression(node, said, hint=f"Compare {column} itself with a constant.")
    least = to * by
    if not drops_remainder:
        return refuse_unlisted_expression(node, said, hint=f"Write {column} {operator} {convert_to_decimal(least)}.")
    past = convert_to_decimal(least + by)
    first = convert_to_decimal(least) if least > 0 else convert_to_decimal(1 - by)
    written = {
        "=": f"{column} >= {first} AND {column} < {past}",
        "<>": f"({column} < {first} OR {column} >= {past})",
        ">": f"{column} >= {past}",
        "<=": f"{column} < {past}",
        ">=": f"{column} >= {first}",
        "<": f"{column} < {first}",
    }
    return refuse_unlisted_expression(node, said, hint=f"Write {written[operator]}.")


def _read_plain_number(node: exp.Expr | None) -> Fraction | None:
    """Return a number written with few digits. Return None for anything else."""
    text = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
    return Fraction(text) if re.fullmatch(r"\d{1,15}(\.\d{1,15})?", text) else None


def name_spellings(node: exp.Expr, inner: exp.Expr) -> str:
    """Return a hint to list the spellings of the constant that a text is compared with, in the condition's words."""
    above = node if isinstance(node, exp.Condition) and node.find(exp.Literal) else node.parent
    found = None if above is None else above.find(exp.Literal)
    word = str(found.this) if found is not None and found.is_string else "kidney"
    if "%" in word or "_" in word:
        spelt = dict.fromkeys((word.lower(), word.title(), word.upper()))
        return f"Name the spellings: {' OR '.join(f'{write_node(inner)} LIKE {_quote(one)}' for one in spelt)}."
    plain = word.strip() or "kidney"
    spelt = dict.fromkeys((plain.lower(), plain.capitalize(), plain.upper()))
    return f"Name the spellings: {write_node(inner)} IN ({', '.join(map(_quote, spelt))})."


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _write_like(x: str, pattern: exp.Expr) -> str:
    """Return LIKE in place of a regular expression, with its longest run of letters and digits."""
    written = str(pattern.this) if isinstance(pattern, exp.Literal) and pattern.is_string else ""
    word = max(re.findall(r"\w+", written), key=len, default="fl")
    start, end = ("" if written.startswith("^") else "%"), ("" if written.endswith("$") else "%")
    return f"Write {x} LIKE {_quote(start + escape_pattern(word) + end)}."


def _suggest_instead(node: exp.Expr) -> str | None:
    match strip_parentheses(node):
        case exp.TimeToStr(this=inner):
            x = write_node(inner)
            return f"Write the range: {x} >= '2011-06-01' AND {x} < '2011-07-01'."
        case exp.Upper(this=inner) | exp.Trim(this=inner):
            return name_spellings(node, inner)
        case exp.RegexpLike(this=inner, expression=pattern) | exp.RegexpILike(this=inner, expression=pattern):
            return _write_like(write_node(inner), strip_parentheses(pattern))
        case exp.Round(this=exp.Column() as inner):
            return f"Instead you can ask: round({write_node(inner)}::numeric)."
        case exp.Cast(this=inner, to=exp.DataType(this=exp.DType.DECIMAL, expressions=[_, *_])):
            return f"Write it without the number of its digits: {write_node(inner)}::numeric."
        case exp.Cast(this=inner):
            return f"Compare {write_node(inner)} itself."
        case exp.Extract(this=part, expression=exp.Anonymous(this=called, expressions=[later, earlier])) if str(
            called
        ).lower() == "age" and part.name.lower() in ("epoch", "day"):
            apart = f"({write_node(later)})::timestamp - ({write_node(earlier)})"
            return f"Instead you can ask: extract({part.name.lower()} FROM {apart}), of days where age has months."
        case _:
            return None
