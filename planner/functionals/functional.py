"""Maker of functionals: an aggregate and its threshold as an integer sum with grid, sensitivity and range."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import ceil, floor, gcd, lcm

from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula
from planner.aggregates.comparison import Comparison, Slack
from planner.aggregates.row_expression import SumPart
from planner.catalog.catalog import Column, Computed, Product, SqlType, Table
from planner.errors import KeyholeError
from planner.functionals.implied_totals import find_declared_range, find_implied_range
from planner.functionals.row_range import find_row_range
from planner.parser.lexer import spell_name
from planner.question.condition import NEVER, Condition
from planner.question.condition_text import write_canonical
from planner.question.question import Functional, Measure, Term
from planner.question.range_inference import narrow_range
from planner.values.decimals import convert_to_decimal

_MOST_TOGETHER = 8  # terms of which every choice is looked at: 256
LARGEST = 2**53  # steps up to which sensitivities and coefficients are exact in double precision


def find_grid(column: Column, table: Table, *, position: int | None) -> tuple[Fraction, int, int]:
    """Return the grid of a measure, and its bounds in grid steps rounded outward. Raise KH203, KH204."""
    if isinstance(column.derivation, Product):
        for factor in column.derivation.columns:
            find_grid(table.get_column(factor), table, position=position)
    if column.sql_type not in (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE):
        raise KeyholeError(
            "KH204", f'column "{column.name}" of type {column.declared} has no sum or average', position=position
        )
    step = column.grid if column.grid is not None or column.sql_type is not SqlType.INTEGER else Decimal(1)
    if column.bounds is None or step is None:
        missing = "bounds = [0, 100]" if column.bounds is None else "grid = 0.01"
        raise KeyholeError(
            "KH203",
            f"{column.name} has no declared {'bounds' if column.bounds is None else 'grid'}",
            detail="The sensitivity of a functional follows from the declared range and grid of its column.",
            hint=f"Declare {missing} under [{table.get_policy_key(column.name)}] in keyhole.toml, "
            f"or ask count(*) FILTER (WHERE {spell_name(column.name)} > 65) > 40.",
            position=position,
        )
    size, low, high = _scale_to_steps(step, *column.bounds)
    if isinstance(column.derivation, Product) and max(-low, high) > LARGEST:
        raise KeyholeError(
            "KH204",
            f"{column.name} has too many steps of its columns' grids",
            detail="A product is computed in whole steps of the product of the grids, 2^53 of them at most.",
            hint="Ask the owner to declare coarser grids or narrower bounds of these columns.",
            position=position,
        )
    return size, low, high


@lru_cache(maxsize=256)
def _scale_to_steps(step: Decimal, low: Decimal, high: Decimal) -> tuple[Fraction, int, int]:
    """Return a grid's step, and bounds in steps of it. Cached, because all aggregates of a column share the result."""
    size = Fraction(step)
    return size, floor(Fraction(low) / size), ceil(Fraction(high) / size)


def make_functional(
    comparison: Comparison, *, table: Table, min_rows: int, where: Condition
) -> tuple[Functional, Fraction]:
    """Return the functional that decides a comparison, and the worth of one integer step in the comparison's unit.

    Guarantee: one privacy unit of `table`, bounded as declared, changes the functional by at most `sensitivity` in one
    key. Only rows that satisfy `where` count. Proof: docs/proofs/joint_loss.md.

    Raises KH203, KH005, KH204, KH208.
    """
    position = comparison.position
    grids = {
        part.column.name: find_grid(part.column, table, position=position)
        for part in comparison.summands
        if part.column is not None and part.power
    }
    terms, step = make_row_terms(comparison.summands, grids)
    off = comparison.unit_deduction
    if off and terms:  # in steps of which both what rows add and what is taken off are whole multiples
        finer = find_common_step((step, off))
        terms = tuple(replace(term, coefficient=int(term.coefficient * step / finer)) for term in terms)
        step = finer
    if not terms:
        raise KeyholeError(
            "KH204",
            f"{comparison.left_text} adds up to 0 whatever the data",
            hint="Compare a sum or count of rows with a constant.",
            position=position,
        )
    measure = comparison.measure
    alone = len(terms) == 1 and terms[0].coefficient == 1 and not terms[0].power
    if measure is Measure.UNIT_SUM and not table.is_row_unit:
        measure = Measure.UNITS if alone else measure
    elif measure not in (Measure.UNITS, Measure.VALUES):
        measure = Measure.ROWS if alone and not off else Measure.TOTAL
    mean = comparison.per_row is not None
    sensitivity, unit_range = _bound_unit(terms, measure, grids, table, where=where, is_mean=mean, position=position)
    if off:
        sensitivity, unit_range = _subtract_per_unit(int(off / step), sensitivity, unit_range)
    if sensitivity > LARGEST or any(abs(term.coefficient) > LARGEST for term in terms):
        squares = any(term.power == 2 for term in terms)
        raise KeyholeError(
            "KH208",
            f"the threshold of {comparison.left_text} is too fine for the grid of its column",
            hint="Round the threshold to a few digits"
            + (", or ask the owner to declare a coarser grid or narrower bounds." if squares else "."),
            position=position,
        )
    made = Functional(
        name=_name_functional(comparison),
        measure=measure,
        terms=terms,
        sensitivity=sensitivity,
        unit_range=unit_range,
        unit_size=convert_to_decimal(step / (comparison.per_row or 1)),
        rows=1 if comparison.per_row is None else min_rows,
        origin=convert_to_decimal(comparison.origin),
        off_each_unit=int(off / step),
        off_condition=comparison.deduction_condition,
    )
    return made, step


def _subtract_per_unit(
    number: int, sensitivity: int, unit_range: tuple[int, int] | None
) -> tuple[int, tuple[int, int]]:
    """Return sensitivity and range of a unit's sum minus a number, which is subtracted if the unit has rows that count.

    These rows may add up to nothing, for example if all values are NULL. So the range includes -number itself.
    """
    low, high = unit_range or (-sensitivity, sensitivity)
    least, most = min(0, low - number, -number), max(0, high - number, -number)
    return max(-least, most, 1), (least, most)


def _name_functional(comparison: Comparison) -> str:
    if comparison.slack is Slack.THRESHOLD:
        mean = comparison.per_row is not None or comparison.display_factor != 1
        # whether each group has a threshold of its own, which the left side names already
        own = comparison.threshold != comparison.origin
        return (
            f"{comparison.left_text} - {convert_to_decimal(comparison.threshold)}"
            if mean and not own
            else comparison.left_text
        )
    counted, *others = comparison.summands
    name = f"count(*) FILTER (WHERE {write_canonical(counted.condition)})"
    for part in others:
        name += (
            f" - {convert_to_decimal(-part.coefficient)} * count(*) FILTER (WHERE {write_canonical(part.condition)})"
        )
    return name


def make_row_terms(
    parts: Sequence[SumPart], grids: Mapping[str, tuple[Fraction, int, int]]
) -> tuple[tuple[Term, ...], Fraction]:
    """Return a row's sum as terms in whole steps, and the size of one step in the unit of the parts.

    Parameters:
        grids: the grid of every column that a part multiplies, from `find_grid`.
    """
    exact = _sum_amounts(parts, grids)
    step = find_common_step(exact.values()) or Fraction(1)
    conditions = {write_canonical(part.condition): part.condition for part in parts}
    terms = tuple(
        Term(coefficient=int(amount / step), column=column, condition=conditions[text], power=power)
        for (column, text, power), amount in exact.items()
    )
    return terms, step


_Kind = tuple[str | None, str, int]


def _sum_amounts(parts: Sequence[SumPart], grids: Mapping[str, tuple[Fraction, int, int]]) -> dict[_Kind, Fraction]:
    """Return the amount that one row or grid step of each kind adds, in the unit of the sum."""
    found: dict[_Kind, Fraction] = {}
    for part in parts:
        column = part.column.name if part.column is not None else None
        size = grids[column][0] ** part.power if part.power and column is not None else Fraction(1)
        kind = (column, write_canonical(part.condition), part.power)
        found[kind] = found.get(kind, Fraction(0)) + part.coefficient * size
    return {kind: amount for kind, amount in found.items() if amount and kind[1] != write_canonical(NEVER)}


def find_common_step(amounts: Iterable[Fraction]) -> Fraction:
    """Return the largest number of which all amounts are whole multiples."""
    step = Fraction(0)
    for amount in amounts:
        denominator = lcm(step.denominator, amount.denominator)
        step = Fraction(gcd(int(step * denominator), int(amount * denominator)), denominator)
    return step


def make_bounded_sum(
    terms: tuple[Term, ...], measure: Measure, *, name: str, table: Table, where: Condition, step: Decimal
) -> Functional:
    """Return the functional that sums the given terms. Its sensitivity and range are bounded as those of a mean.

    The guarantee and the errors are those of `make_functional`.

    Parameters:
        step: the worth of one integer step in the analyst's unit.
    """
    columns = dict.fromkeys(term.column for term in terms if term.column is not None and term.power)
    grids = {column: find_grid(table.get_column(column), table, position=None) for column in columns}
    sensitivity, unit_range = _bound_unit(terms, measure, grids, table, where=where, is_mean=True, position=None)
    return Functional(
        name=name,
        measure=measure,
        terms=terms,
        sensitivity=sensitivity,
        unit_range=unit_range,
        unit_size=step,
        rows=1,
    )


def _bound_unit(
    terms: tuple[Term, ...],
    measure: Measure,
    grids: Mapping[str, tuple[Fraction, int, int]],
    table: Table,
    *,
    where: Condition,
    is_mean: bool,
    position: int | None,
) -> tuple[int, tuple[int, int] | None]:
    """Return sensitivity and unit range of a sum: per row, per capped rows, or per clipped total of one unit."""
    if measure is Measure.UNITS:
        return 1, None
    if measure is Measure.UNIT_SUM:
        low, high = find_unit_range(terms)
        return max(-low, high, 1), (low, high)
    if (
        measure is Measure.VALUES
        and terms[0].column is not None
        and table.determines(table.get_column(terms[0].column))
    ):
        return 1, None if table.row_cap is not None else (0, 1)
    ranges = {name: (low, high) for name, (_, low, high) in grids.items()}
    least, most = find_row_range(terms, ranges=ranges, table=table, among=where)
    largest = max(-least, most, 1)
    if table.is_row_unit:
        return largest, None
    if table.row_cap is not None:
        return largest * table.row_cap.rows, None
    kinds = Product | Computed
    composed = any(term.column and isinstance(table.get_column(term.column).derivation, kinds) for term in terms)
    alone = not is_mean and not composed and terms[0].power == 1
    if alone and len({(t.column, t.power, t.coefficient) for t in terms}) == 1:
        return _bound_plain_sum(terms[0], grids, table, position=position)
    known = [] if is_mean else [find_implied_range(terms, table), find_declared_range(terms, table)]
    totals = [one for one in known if one is not None]
    if table.rows_per_unit is None and totals:
        low, high = max(low for low, _ in totals), min(high for _, high in totals)
        return max(-low, high, 1), (low, high)
    if table.rows_per_unit is None:
        raise KeyholeError(
            "KH005",
            f'table "{table.name}" declares no bound on the rows of one {table.unit_text}',
            detail="A count's sensitivity is the number of rows that one privacy unit counts for in one group.",
            hint=f"Declare rows_per_unit = 20 under [tables.{table.name}] in keyhole.toml.",
            position=position,
        )
    rows = table.rows_per_unit
    low, high = least * rows, most * rows
    for narrower in (*totals, _bound_by_totals(terms, grids, table, where=where)):
        if narrower is not None:
            low, high = max(low, narrower[0]), min(high, narrower[1])
    return max(-low, high, 1), (low, high)


def find_unit_range(terms: Sequence[Term]) -> tuple[int, int]:
    """Return the least and the most that a unit can add, if it adds the coefficient of each term for which it has rows.

    Guarantee: every unit is within the range. If the conditions of one term are among those of another, a unit with
    rows for the latter has rows for the former. Apart from that, any terms may occur together.
    Proof: docs/proofs/joint_loss.md.
    """
    least, most = (sum(side(0, term.coefficient) for term in terms) for side in (min, max))
    if len(terms) > _MOST_TOGETHER:
        return least, most
    needed = [frozenset(map(write_canonical, term.condition.list_conjuncts())) for term in terms]
    wider = [frozenset(at for at, other in enumerate(needed) if other <= one) for one in needed]
    together = (frozenset(chosen) for size in range(len(terms) + 1) for chosen in combinations(range(len(terms)), size))
    added = [
        sum(terms[at].coefficient for at in chosen) for chosen in together if all(wider[at] <= chosen for at in chosen)
    ]
    return min(added), max(added)


def _bound_by_totals(
    terms: tuple[Term, ...], grids: Mapping[str, tuple[Fraction, int, int]], table: Table, *, where: Condition
) -> tuple[int, int] | None:
    """Return the range of `a * sum(x) + b * count(x)` over the units within all their declared bounds.

    A unit has at most `rows_per_unit` rows, each in the range of x, with a total in `per_unit`. Return None for sums of
    another form, or if one of these bounds is not declared.
    """
    name = terms[0].column
    alike = len({(term.column, write_canonical(term.condition)) for term in terms}) == 1
    if name is None or name not in grids or not alike or any(term.power > 1 for term in terms):
        return None
    per_unit, rows = table.get_column(name).per_unit, table.rows_per_unit
    if per_unit is None or rows is None:
        return None
    size, *steps = grids[name]
    low, high = narrow_range(name, (steps[0], steps[1]), among=(where, terms[0].condition), table=table)
    least, most = min(0, floor(Fraction(per_unit[0]) / size)), max(0, ceil(Fraction(per_unit[1]) / size))
    slope, constant = (sum(term.coefficient for term in terms if term.power == power) for power in (1, 0))
    # Each edge (p, q, r) says p n + q s <= r of the number n of rows and their total s:
    # 0 <= n <= rows, low n <= s <= high n, least <= s <= most.
    edges = [(-1, 0, 0), (1, 0, rows), (low, -1, 0), (-high, 1, 0), (0, -1, -least), (0, 1, most)]
    reached = [constant * n + slope * s for n, s in _list_vertices(edges)]
    return floor(min(reached)), ceil(max(reached))


def _list_vertices(edges: Sequence[tuple[int, int, int]]) -> Iterator[tuple[Fraction, Fraction]]:
    """Yield the corners of the polygon of all (x, y) with `p x + q y <= r` for every edge (p, q, r)."""
    for (p, q, r), (other_p, other_q, other_r) in combinations(edges, 2):
        turn = p * other_q - q * other_p
        sign = 1 if turn > 0 else -1
        # Cramer's rule; both are still to be divided by |turn|
        x, y = sign * (r * other_q - q * other_r), sign * (p * other_r - r * other_p)
        if turn and all(a * x + b * y <= c * abs(turn) for a, b, c in edges):
            yield Fraction(x, abs(turn)), Fraction(y, abs(turn))


def _bound_plain_sum(
    term: Term,
    grids: Mapping[str, tuple[Fraction, int, int]],
    table: Table,
    *,
    position: int | None,
) -> tuple[int, tuple[int, int]]:
    """Return sensitivity and range of a plain sum of one column: the declared range of a unit's total, scaled."""
    assert term.column is not None
    column, size = table.get_column(term.column), grids[term.column][0]
    if column.per_unit is None:
        raise KeyholeError(
            "KH203",
            f"{column.name} has no declared range for the total of one {table.unit_text}",
            detail="One privacy unit's total in a group is clipped to a declared range.",
            hint=f"Declare per_unit = [0, 500] under [{table.get_policy_key(column.name)}] in keyhole.toml.",
            position=position,
        )
    ends = sorted(Fraction(end) / size * term.coefficient for end in column.per_unit)
    least, most = min(0, floor(ends[0])), max(0, ceil(ends[1]))
    return max(-least, most, 1), (least, most)


def make_literals(index: int, operator: str, at: Fraction, *, tolerance: int) -> Formula:
    """Return the comparison `S operator at` as literals on the integer S. Each literal has the tolerance."""

    def cut(value: int, *, above: bool) -> Cut:
        return Cut(functional=index, cut=value, above=above, tolerance=tolerance)

    below, above = floor(at), ceil(at) - 1
    match operator:
        case ">":
            return cut(below, above=True)
        case ">=":
            return cut(above, above=True)
        case "<":
            return cut(above, above=False)
        case "<=":
            return cut(below, above=False)
        case "=":
            return AllOf((cut(above, above=True), cut(below, above=False))) if at.denominator == 1 else FALSE
        case _:
            return AnyOf((cut(below, above=True), cut(above, above=False))) if at.denominator == 1 else TRUE
