"""Totals and ranges of expressions as a policy declares them.

Examples are `totals = { "price * (1 - discount)" = [0, 3000000] }` and `ranges = { "returned - taken" = [0, 365] }`.

The expression of a total is multiplied out, so that spelling, order and parentheses do not matter. It is a sum of
products of columns and constants, as an aggregate of a question is.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from planner.catalog.catalog import Total
from planner.catalog.fault import Fault, Faults, suggest_nearest_name
from planner.errors import KeyholeError
from planner.parser.lexer import read_tokens
from planner.parser.tree import parse, read_name, strip_parentheses
from planner.policy.sections import Pair, TableSection

Polynomial: TypeAlias = dict[tuple[str, ...], Fraction]
"""By the names of the columns that are multiplied, in order, how many times their product is added."""

_MOST_FACTORS = 4  # as many as a question multiplies
_MOST_PRODUCTS = 64  # more than anybody writes by hand, and soon compared with each question
_NUMBER = re.compile(r"\d{1,20}(\.\d{0,20})?|\.\d{1,20}")
_RANGE_HINT = "Write an expression of a row that is a number, such as extract(epoch FROM returned - taken)."
_HINT = "Write a sum of products of measures and constants, such as price * (1 - discount)."


def read_total(text: str, ends: Pair) -> Total:
    """Parse the declared total of an expression.

    Raise a `Fault` (KH004) for an expression that is no sum of products of columns.
    """
    selected = _parse_expression(text, hint=_HINT)
    try:
        found = {names: times for names, times in _expand_products(selected).items() if times}
    except RecursionError:
        raise Fault("KH004", "is nested too deeply", hint=_HINT) from None
    if not any(found) or (len(found) == 1 and len(next(iter(found))) == 1):
        hint = "Declare per_unit of the column for its own total. " + _HINT
        raise Fault("KH004", "multiplies or adds no columns", hint=hint)
    return Total(tuple(sorted(found.items())), ends)


def _expand_products(node: exp.Expr) -> Polynomial:
    node = strip_parentheses(node)
    match node:
        case exp.Column() if not node.table:
            return {(read_name(node.this),): Fraction(1)}
        case exp.Literal() if not node.is_string and _NUMBER.fullmatch(str(node.this)):
            return {(): Fraction(str(node.this))}
        case exp.Neg():
            return _scale(_expand_products(node.this), Fraction(-1))
        case exp.Add() | exp.Sub():
            return _add(
                _expand_products(node.this),
                _scale(_expand_products(node.expression), Fraction(1 if isinstance(node, exp.Add) else -1)),
            )
        case exp.Mul():
            return _multiply(_expand_products(node.this), _expand_products(node.expression))
        case exp.Div():
            by = _expand_products(node.expression)
            if list(by) == [()] and by[()]:
                return _scale(_expand_products(node.this), 1 / by[()])
    raise Fault("KH004", "is not a sum of products", hint=_HINT)


def _scale(found: Polynomial, factor: Fraction) -> Polynomial:
    return {names: times * factor for names, times in found.items()}


def _add(left: Polynomial, right: Polynomial) -> Polynomial:
    return {names: left.get(names, Fraction(0)) + right.get(names, Fraction(0)) for names in (left | right)}


def _multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    found: Polynomial = {}
    for one, times in left.items():
        for other, factor in right.items():
            names = tuple(sorted(one + other))
            found[names] = found.get(names, Fraction(0)) + times * factor
    if len(found) > _MOST_PRODUCTS or max(map(len, found)) > _MOST_FACTORS:
        raise Fault("KH004", f"multiplies more than {_MOST_FACTORS} columns, or has too many terms", hint=_HINT)
    return found


def _parse_expression(text: str, *, hint: str) -> exp.Expr:
    """Parse an expression into a tree. Raise a `Fault` (KH004)."""
    try:
        tree = parse(f"SELECT {text}", read_tokens(f"SELECT {text}")).tree
    except KeyholeError as error:
        raise Fault("KH004", f"is no expression: {error.message}", hint=hint) from None
    selected = tree.expressions if isinstance(tree, exp.Select) else []
    if len(selected) != 1 or any(value for key, value in tree.args.items() if key != "expressions"):
        raise Fault("KH004", "is no expression", hint=hint)
    found: exp.Expr = selected[0]
    return found


def find_range_faults(place: tuple[str, ...], table: TableSection) -> Faults:
    """Find the faults in a table's ranges of expressions, except for expressions that are no numbers of a row."""
    for text, (low, high) in table.ranges.items():
        here = (*place, text)
        try:
            tree = _parse_expression(text, hint=_RANGE_HINT)
        except Fault as fault:
            yield here, fault
            continue
        read = [read_name(column.this) for column in tree.find_all(exp.Column)]
        unknown = next((one for one in read if one not in table.columns), None)
        if unknown is not None:
            hint = "Name exposed columns. " + suggest_nearest_name(unknown, list(table.columns))
            yield here, Fault("KH004", f'reads "{unknown}", which is no column', hint=hint)
        elif not read or isinstance(strip_parentheses(tree), exp.Column):
            hint = "Declare bounds of a column by itself. " + _RANGE_HINT
            yield here, Fault("KH004", "is a single column or a constant, and computes nothing", hint=hint)
        elif low >= high:
            yield here, Fault("KH004", "is no range", hint="Write [lowest, highest], such as [0, 365].")


def find_total_faults(place: tuple[str, ...], table: TableSection) -> Faults:
    """Find the faults in a table's totals of expressions."""
    seen: dict[object, str] = {}
    for text, ends in table.totals.items():
        here = (*place, text)
        try:
            total = read_total(text, ends)
        except Fault as fault:
            yield here, fault
            continue
        yield from ((here, fault) for fault in _find_faults(total, table))
        other = seen.setdefault(total.shape, text)
        if other != text:
            yield here, Fault("KH004", f'is "{other}" times a constant', hint="Keep one of them.")


def _find_faults(total: Total, table: TableSection) -> Iterator[Fault]:
    measures = [known for known, column in table.columns.items() if column.bounds is not None]
    unknown = next((one for one in sorted(total.columns) if one not in measures), None)
    if unknown is not None:
        hint = "Name measures. " + suggest_nearest_name(unknown, measures)
        yield Fault("KH004", f'reads "{unknown}", which is no measure', hint=hint)
    if table.max_rows_per_group is not None:
        hint = "Remove it: the table chooses rows, and clips no totals."
        yield Fault("KH004", "has no meaning here", hint=hint)
    elif not total.per_unit[0] <= 0 <= total.per_unit[1] or total.per_unit[0] == total.per_unit[1]:
        hint = "Include 0, the total of a unit that is absent, such as [0, 8000]."
        yield Fault("KH004", "is no range around 0", hint=hint)
