"""The six comparison operators: as sqlglot parses them, with sides swapped, negated, and applied to values."""

import operator as operators
from collections.abc import Callable
from typing import Any

from sqlglot import exp

OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
FLIPPED_OPERATORS = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
OPPOSITE_OPERATORS = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_KINDS = {written: kind for kind, written in OPERATORS.items()}
FLIPPED_KINDS = {kind: _KINDS[FLIPPED_OPERATORS[written]] for kind, written in OPERATORS.items()}
OPPOSITE_KINDS = {kind: _KINDS[OPPOSITE_OPERATORS[written]] for kind, written in OPERATORS.items()}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operators.eq,
    "<>": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}
