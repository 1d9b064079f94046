"""Products of measures: each row's clipped and rounded values, multiplied as whole numbers of grid steps.

A product is a column like any other, with a range, a grid and rows without a value. So all proofs about sums of columns
hold for sums of products.

Guarantee: if each value lies in its range, their product lies in `find_product_range`.

Proof: docs/proofs/joint_loss.md.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from planner.catalog.catalog import Column, Computed, Product, SqlType, Table
from planner.parser.lexer import spell_name
from planner.values.decimals import convert_to_exact_decimal

MOST_FACTORS = 4  # price, quantity, discount and tax; every further one multiplies the range, and so the noise
_KINDS = (SqlType.DOUBLE, SqlType.NUMERIC, SqlType.INTEGER)  # the first that some factor has is the product's
Range = tuple[int, int]


def make_product(factors: Sequence[Column]) -> Column:
    """Return the product of columns or of products, named by its sorted factors.

    It has bounds and a grid if all factors have both.
    """
    names = sorted(name for one in factors for name in _list_factors(one))
    kind = next((kind for kind in _KINDS if any(one.sql_type is kind for one in factors)), SqlType.OTHER)
    if any(one.sql_type not in _KINDS for one in factors):
        kind = SqlType.OTHER
    wide = any(one.declared == "bigint" for one in factors)
    made = Column(
        name=" * ".join(map(spell_name, names)),
        sql_type=kind,
        declared=("bigint" if wide else "integer") if kind is SqlType.INTEGER else kind.value,
        derivation=Product(tuple(names)),
    )
    sized = [find_steps(one) for one in factors]
    if any(one is None for one in sized):
        return made
    step, ranges = Fraction(1), []
    for size, low, high in filter(None, sized):
        step *= size
        ranges.append((low, high))
    least, most = find_product_range(ranges, [one.name for one in factors])
    return replace(made, bounds=(_to_decimal(step * least), _to_decimal(step * most)), grid=_to_decimal(step))


def _to_decimal(value: Fraction) -> Decimal:
    found = convert_to_exact_decimal(value)
    assert found is not None, "grids are decimals, and so are their products"
    return found


def _list_factors(column: Column) -> tuple[str, ...]:
    return column.derivation.columns if isinstance(column.derivation, Product) else (column.name,)


def find_steps(column: Column) -> tuple[Fraction, int, int] | None:
    """Return a measure's grid, and its bounds in grid steps, rounded outward. Return None without bounds or a grid."""
    step = 1 if column.grid is None and column.sql_type is SqlType.INTEGER else column.grid
    if column.bounds is None or step is None:
        return None
    size = Fraction(step)
    return size, floor(Fraction(column.bounds[0]) / size), ceil(Fraction(column.bounds[1]) / size)


def find_product_range(ranges: Sequence[Range], names: Sequence[str]) -> Range:
    """Return the least and the greatest product of one number from each range. Equal names stand for one number.

    >>> find_product_range([(-2, 3), (4, 5)], ["a", "b"])
    (-10, 15)
    >>> find_product_range([(-2, 3), (-2, 3)], ["a", "a"])
    (0, 9)
    """
    found = (1, 1)
    for name, power in Counter(names).items():
        low, high = ranges[names.index(name)]
        ends = [low**power, high**power, *([0] if low < 0 < high else [])]
        corners = [one * end for one in found for end in (min(ends), max(ends))]
        found = min(corners), max(corners)
    return found


def add_products(table: Table, columns: Iterable[Column | None]) -> Table:
    """Return the table with the products among `columns` added, as far as it does not have them."""
    known = {column.name for column in table.columns}
    more = {
        one.name: one
        for one in columns
        if one is not None and isinstance(one.derivation, Product) and one.name not in known
    }
    return replace(table, columns=(*table.columns, *more.values())) if more else table


def remove_products(table: Table) -> Table:
    """Return the table as the policy has it, without columns that a question multiplies or computes."""
    kept = tuple(column for column in table.columns if not isinstance(column.derivation, Product | Computed))
    return table if len(kept) == len(table.columns) else replace(table, columns=kept)
