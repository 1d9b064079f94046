"""Functions of numbers and texts in expressions of keys, as PostgreSQL computes them; only exact ones."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from planner.parser.tree import write_short
from planner.scope.key_arithmetic import restore_quotient
from planner.scope.key_values import (
    NUMBERS,
    NotExact,
    Raw,
    TypedValue,
    compare,
    make_exact_number,
    read_fraction,
    unify,
)
from planner.scope.text_functions import TEXT_FUNCTIONS, read_text, write_text

_Of = Callable[[exp.Expr], TypedValue]
_MOST_PLACES = 12  # decimals of round and trunc: beyond, PostgreSQL's own digits may decide
_OF_NUMBERS = (exp.Abs, exp.Sign, exp.Round, exp.Trunc, exp.WidthBucket, exp.Greatest, exp.Least)
_OF_TEXTS = (
    exp.Left,
    exp.Right,
    exp.Substring,
    exp.Trim,
    exp.Replace,
    exp.SplitPart,
    exp.Length,
)
FUNCTIONS = (*_OF_NUMBERS, *_OF_TEXTS, *TEXT_FUNCTIONS)


def apply_function(node: exp.Expr, of: _Of) -> TypedValue:
    """Return the value of a call of one of `FUNCTIONS`.

    Raise `NotExact` if it is not known exactly.
    """
    if isinstance(node, TEXT_FUNCTIONS):
        return write_text(node, of)
    return _apply_to_text(node, of) if isinstance(node, _OF_TEXTS) else _apply_to_numbers(node, of)


def _apply_to_numbers(node: exp.Expr, of: _Of) -> TypedValue:
    match node:
        case exp.Greatest() | exp.Least():
            return _choose_extreme_value(node, of)
        case exp.WidthBucket():
            return _find_bucket(node, of)
        case exp.Abs() | exp.Sign():
            found = of(node.this)
            value = read_fraction(found, node)
            if isinstance(node, exp.Abs):
                return TypedValue(found.kind, None if value is None else abs(value))
            return TypedValue("numeric", None if value is None else Fraction((value > 0) - (value < 0)))
        case _:
            return _round(node, of)


def _round(node: exp.Expr, of: _Of) -> TypedValue:
    found = of(node.this)
    found = restore_quotient(found)
    value = read_fraction(found, node)
    places = 0 if node.args.get("decimals") is None else _read_whole_number(of(node.args["decimals"]), node)
    if places is None or abs(places) > _MOST_PLACES:
        raise NotExact(write_short(node))
    if value is None:
        return TypedValue("numeric" if found.kind != "double" else "double", None)
    if found.kind == "double":
        if node.args.get("decimals") is not None:
            raise NotExact(write_short(node))  # PostgreSQL has no such function
        nearest = round(value) if isinstance(node, exp.Round) else floor(abs(value)) * (1 if value > 0 else -1)
        return TypedValue("double", Fraction(nearest))
    scaled = abs(value) * Fraction(10) ** places
    whole = floor(scaled + Fraction(1, 2)) if isinstance(node, exp.Round) else floor(scaled)
    result = Fraction(whole) / Fraction(10) ** places
    return make_exact_number(-result if value < 0 else result, "numeric", node)


def _choose_extreme_value(node: exp.Expr, of: _Of) -> TypedValue:
    found = unify([of(node.this), *map(of, node.expressions)], node)
    known = [one for one in found if one.raw is not None]
    if not known:
        return found[0]
    best = known[0]
    for one in known[1:]:
        operation = exp.GT if isinstance(node, exp.Greatest) else exp.LT
        if compare(operation, one, best, node).raw is True:
            best = one
    return best


def _find_bucket(node: exp.WidthBucket, of: _Of) -> TypedValue:
    found = of(node.this)
    value = read_fraction(found, node)
    threshold = node.args.get("threshold")
    if isinstance(threshold, exp.Array):
        edges = [read_fraction(of(edge), node) for edge in threshold.expressions]
        known = [edge for edge in edges if edge is not None]
        if len(known) < len(edges) or known != sorted(known):
            raise NotExact(write_short(node))
        return TypedValue("integer", None if value is None else sum(edge <= value for edge in known))
    if found.kind == "double":
        raise NotExact(write_short(node))  # which PostgreSQL rounds
    low, high = (read_fraction(of(node.args[name]), node) for name in ("min_value", "max_value"))
    count = _read_whole_number(of(node.args["num_buckets"]), node)
    if low is None or high is None or count is None or count < 1 or low >= high:
        raise NotExact(write_short(node))
    if value is None:
        return TypedValue("integer", None)
    if value < low or value >= high:
        return TypedValue("integer", 0 if value < low else count + 1)
    return TypedValue("integer", floor((value - low) * count / (high - low)) + 1)


def _read_whole_number(found: TypedValue, node: exp.Expr) -> int | None:
    value = read_fraction(found, node)
    if value is None:
        return None
    if value.denominator != 1:
        raise NotExact(write_short(node))
    return ceil(value)


def _apply_to_text(node: exp.Expr, of: _Of) -> TypedValue:
    text = read_text(of(node.this), node)
    if isinstance(node, exp.Length):
        return TypedValue("integer", None if text is None else len(text))
    arguments: list[Raw] = []
    for name in ("expression", "start", "length", "replacement", "delimiter", "part_index"):
        given = node.args.get(name)
        if isinstance(given, exp.Expr):
            found = of(given)
            arguments.append(_read_whole_number(found, node) if found.kind in NUMBERS else read_text(found, node))
    if text is None or None in arguments:
        return TypedValue("text", None)
    return TypedValue("text", _compute_text(node, text, arguments))


def _compute_text(node: exp.Expr, text: str, arguments: list[Raw]) -> str:
    match node, arguments:
        case exp.Left(), [int() as count]:
            return text[:count]
        case exp.Right(), [int() as count]:
            return text[-count:] if count > 0 else text[-count:] if count < 0 else ""
        case exp.Substring(), [int() as first]:
            return text[max(first - 1, 0) :]
        case exp.Substring(), [int() as first, int() as length] if length >= 0:
            return text[max(first - 1, 0) : max(first - 1 + length, 0)]
        case exp.Replace(), [str() as old, str() as new]:
            return text.replace(old, new) if old else text
        case exp.SplitPart(), [str() as delimiter, int() as index] if delimiter and index > 0:
            return dict(enumerate(text.split(delimiter), start=1)).get(index, "")
        case exp.Trim(), [] | [str()]:
            removed = str(arguments[0]) if arguments else " "
            side = str(node.args.get("position") or "BOTH").upper()
            text = text.lstrip(removed) if side in ("BOTH", "LEADING") and removed else text
            return text.rstrip(removed) if side in ("BOTH", "TRAILING") and removed else text
        case _:
            raise NotExact(write_short(node))
