"""The range of one unit's total of an expression: the declared one, or the one that its columns' declared totals imply.

`sum(price * (1 - discount))` adds `price` times a number between 0 and 1 in each row. Prices are not negative, so the
total is at most the declared total of the prices, whatever the row count and the largest product.

Guarantee: a unit whose rows lie in the columns' bounds, and whose totals lie in their `per_unit` ranges, has a total in
the range. Totals are clipped to the range, so sensitivity holds for every other unit as well.

References: docs/proofs/joint_loss.md, "Totals of expressions".
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import ceil, floor, prod

from planner.catalog.catalog import Product, Table
from planner.question.condition import And, Condition, IsNull, Not, Or, join_all
from planner.question.condition_text import write_canonical
from planner.question.products import find_product_range, find_steps
from planner.question.question import Term

Range = tuple[Fraction, Fraction]
MOST_FACTORS = 8  # of all terms together: twice as many corners are looked at with each


def find_implied_range(terms: Sequence[Term], table: Table) -> tuple[int, int] | None:
    """Return the range of one unit's total in whole steps, or None if the declared totals imply none.

    Parameters:
        terms: in the steps of their columns' grids, as a functional has them.
    """
    found = [*_bound_by_common_factor(terms, table), *_bound_by_term(terms, table)]
    if not found:
        return None
    low, high = max(low for low, _ in found), min(high for _, high in found)
    return floor(min(low, Fraction(0))), ceil(max(high, Fraction(0)))


def find_declared_range(terms: Sequence[Term], table: Table) -> tuple[int, int] | None:
    """Return the range that the owner declares for one unit's total of the expression, or None if none is declared.

    Both expressions are multiplied out. They match if one is a constant times the other, and each row has a value in
    every column that the declared expression reads. A condition may leave out rows, as it may under a column's
    `per_unit`.

    Parameters:
        terms: as for `find_implied_range`.
    """
    if len({_find_counted_rows(term, table) for term in terms}) != 1 or any(term.power > 1 for term in terms):
        return None
    (_, required), *_ = (_find_counted_rows(term, table) for term in terms)
    found: dict[tuple[str, ...], Fraction] = {}
    for term in terms:
        names = tuple(sorted(_list_term_factors(term, table)))
        sized = [find_steps(table.get_column(name)) for name in names]
        size = prod((one[0] for one in sized if one is not None), start=Fraction(1))
        found[names] = found.get(names, Fraction(0)) + term.coefficient / size
    own = sorted((names, times) for names, times in found.items() if times)
    for total in table.totals:
        times = own[0][1] / total.products[0][1]
        if total.columns <= required and own == [(names, times * factor) for names, factor in total.products]:
            ends = sorted(times * Fraction(end) for end in total.per_unit)
            return floor(min(ends[0], Fraction(0))), ceil(max(ends[1], Fraction(0)))
    return None


def _bound_by_term(terms: Sequence[Term], table: Table) -> Iterator[Range]:
    """Yield the sum of the terms' own ranges, each bounded by its best factor."""
    each: list[list[Range]] = [list(_bound_by_common_factor([term], table)) for term in terms]
    if len(terms) > 1 and all(each):
        yield (
            sum((max(low for low, _ in ranges) for ranges in each), start=Fraction(0)),
            sum((min(high for _, high in ranges) for ranges in each), start=Fraction(0)),
        )


def _bound_by_common_factor(terms: Sequence[Term], table: Table) -> Iterator[Range]:
    """Yield a range for each column that is a factor of every term: its total times the largest multiplier."""
    factors = [_list_term_factors(term, table) for term in terms]
    if len({_find_counted_rows(term, table) for term in terms}) > 1 or any(not one for one in factors):
        return
    for name in dict.fromkeys(factors[0]):
        if all(name in one for one in factors):
            rest = [_remove_factor(one, name) for one in factors]
            times = _bound_multiplier([term.coefficient for term in terms], rest, table)
            total = _find_total_range(name, table, is_only_factor=not any(rest))
            if times is not None and total is not None:
                ends = [Fraction(time) * end for time in times for end in total]
                yield min(ends), max(ends)


def _list_term_factors(term: Term, table: Table) -> tuple[str, ...]:
    """Return the columns that a term multiplies, or none if it counts or adds squares."""
    return () if term.column is None or term.power != 1 else _list_factors(term.column, table)


def _find_counted_rows(term: Term, table: Table) -> tuple[str, frozenset[str]]:
    """Return the condition under which a row adds the term, and the other columns that must not be NULL."""
    parts = term.condition.conditions if isinstance(term.condition, And) else (term.condition,)
    required = {term.column} if term.column is not None else set()
    others: list[Condition] = []
    for part in parts:
        match part:
            case Not(IsNull(column)):
                required.add(column)
            case Not(Or(missing)) if all(isinstance(one, IsNull) for one in missing):
                required |= {one.column for one in missing if isinstance(one, IsNull)}
            case _:
                others.append(part)
    return write_canonical(join_all(others)), frozenset(one for name in required for one in _list_factors(name, table))


def _list_factors(name: str, table: Table) -> tuple[str, ...]:
    """Return the columns that a product multiplies, or the column itself."""
    derivation = table.get_column(name).derivation
    return derivation.columns if isinstance(derivation, Product) else (name,)


def _remove_factor(factors: Sequence[str], name: str) -> tuple[str, ...]:
    left = list(factors)
    left.remove(name)
    return tuple(left)


def _find_total_range(name: str, table: Table, *, is_only_factor: bool) -> Range | None:
    """Return the declared range of a column's total in its grid steps, widened to include the total of no rows.

    A column with values of both signs bounds only its own total, because a small total may have large parts.
    """
    column = table.get_column(name)
    steps = find_steps(column)
    if column.per_unit is None or steps is None or (steps[1] < 0 and not is_only_factor):
        return None
    low, high = (Fraction(end) / steps[0] for end in column.per_unit)
    return (min(low, Fraction(0)) if steps[1] < 0 else Fraction(0), max(high, Fraction(0)))


def _bound_multiplier(
    coefficients: Sequence[int], rest: Sequence[tuple[str, ...]], table: Table
) -> tuple[int, int] | None:
    """Return the range of a factor's multiplier in one row: a sum of products of other columns.

    It is linear in each column that no term has twice, so its ends are at corners of the columns' ranges.
    """
    names = sorted({name for one in rest for name in one})
    sized = {name: find_steps(table.get_column(name)) for name in names}
    if any(one is None for one in sized.values()):
        return None
    ranges = {name: (one[1], one[2]) for name, one in sized.items() if one is not None}
    if len(names) > MOST_FACTORS or any(len(set(one)) < len(one) for one in rest):
        each = [find_product_range([ranges[name] for name in one], list(one)) for one in rest]
        ends = [sorted((factor * low, factor * high)) for factor, (low, high) in zip(coefficients, each, strict=True)]
        return sum(low for low, _ in ends), sum(high for _, high in ends)
    values = [
        _evaluate_corner(coefficients, rest, dict(zip(names, corner, strict=True)))
        for corner in product(*(ranges[name] for name in names))
    ]
    return min(values), max(values)


def _evaluate_corner(coefficients: Sequence[int], rest: Sequence[tuple[str, ...]], at: Mapping[str, int]) -> int:
    total = 0
    for factor, names in zip(coefficients, rest, strict=True):
        total += factor * prod(at[name] for name in names)
    return total
