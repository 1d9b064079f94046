"""The span of a drawn expression holds every value that it has, by trying all rows; and its lattice does."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import ceil, floor, trunc
from random import Random

from planner.catalog.row_terms import RowTerm, TermKind
from planner.groups.number_spans import find_span
from tests.effort import rounds

Row = dict[str, int | None]


_ROUNDED: dict[str, Callable[[Fraction], int]] = {
    "floor of": floor,
    "ceil of": ceil,
    "trunc of": trunc,
    "round of": lambda exact: trunc(exact + Fraction(1 if exact > 0 else -1, 2)),
}


def _draw(drawn: Random, depth: int) -> RowTerm:
    if depth == 0 or drawn.random() < 0.15:
        if drawn.random() < 0.3:
            return RowTerm("constant", TermKind.WHOLE, value=drawn.choice((-10, -3, 1, 2, 5, 10)), limit=10)
        return RowTerm("column", TermKind.WHOLE, value=drawn.choice("ab"), limit=2**31)
    plain = ("+", "+", "*", "*", "negate", "abs", "least", "greatest", "coalesce", "nullif", "quotient", "remainder")
    function = drawn.choice((*plain, *_ROUNDED))
    parts = tuple(_draw(drawn, depth - 1) for _ in range(1 if function in ("negate", "abs") else 2))
    return RowTerm(function, TermKind.WHOLE, parts)


def _value(term: RowTerm, row: Row) -> int | None:
    if term.function in ("column", "constant"):
        return row[str(term.value)] if term.function == "column" else int(term.value)
    found = [_value(one, row) for one in term.arguments]
    known = [one for one in found if one is not None]
    match term.function, found:
        case "coalesce", _:
            return next(iter(known), None)
        case "least" | "greatest", _:
            return (min if term.function == "least" else max)(known, default=None)
        case "nullif", [a, b]:
            return None if a == b else a
        case _ if len(known) < len(found):
            return None
        case "+", [int() as a, int() as b]:
            return a + b
        case "*", [int() as a, int() as b]:
            return a * b
        case "quotient" | "remainder" | "floor of" | "ceil of" | "trunc of" | "round of", [int() as a, int() as b]:
            if b == 0:
                return None
            if term.function in _ROUNDED:
                return _ROUNDED[term.function](Fraction(a, b))
            whole = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return whole if term.function == "quotient" else a - b * whole
        case _:
            return -known[0] if term.function == "negate" else abs(known[0])


def test_no_value_lies_outside_its_span() -> None:
    exact = 0
    for seed in range(rounds(3_000, quick=300)):
        drawn = Random(seed)
        term = _draw(drawn, 3)
        ends = {name: sorted(drawn.sample(range(-6, 9), 2)) for name in "ab"}
        required = {name: drawn.random() < 0.5 for name in "ab"}
        ranges = {name: (Fraction(low), Fraction(high)) for name, (low, high) in ends.items()}
        span = find_span(term, ranges.__getitem__, required=required.__getitem__)
        if span is None:
            continue
        values: list[list[int | None]] = [
            [*range(ends[name][0], ends[name][1] + 1), *([] if required[name] else [None])] for name in "ab"
        ]
        computed = (_value(term, {"a": a, "b": b}) for a, b in product(*values))
        found = {value for value in computed if value is not None}
        for value in found:
            assert span.low <= value <= span.high, (term, ends, value, span)
            assert value == span.offset if span.step == 0 else (value - span.offset) % span.step == 0, (term, span)
        exact += bool(found) and (span.low, span.high) == (min(found), max(found))
    assert exact > rounds(900, quick=90)
