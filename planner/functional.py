"""From an aggregate and its threshold to a functional in integers: grid, linear form, sensitivity, range (M2, M6)."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, floor

from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula
from planner.aggregate import Aggregate
from planner.catalog import Column, SqlType, Table
from planner.column_comparison import terminating
from planner.errors import KeyholeError
from planner.question import Functional, Measure

_LARGEST = 2**53


def decimal(value: Fraction) -> Decimal:
    """The fraction as a decimal for people: exact if it ends, else to 12 digits."""
    exact = terminating(value)
    if exact is not None and len(exact.as_tuple().digits) <= 30:
        return exact
    with localcontext() as context:
        context.prec = 12
        return Decimal(value.numerator) / Decimal(value.denominator)


def functional(
    aggregate: Aggregate, *, threshold: Fraction, table: Table, min_rows: int, position: int | None
) -> Functional:
    """The functional that decides `aggregate` against `threshold`, which matters for averages alone.

    Guarantee: one privacy unit of `table`, bounded as declared, changes it by at most `sensitivity` in one key.
    Raises KH203, KH005, KH204, KH208.
    """
    match aggregate.measure:
        case Measure.ROWS:
            sensitivity, unit_range = _row_bound(table, least=0, most=1, position=position)
            return _made(aggregate, aggregate.text, sensitivity=sensitivity, unit_range=unit_range)
        case Measure.UNITS:
            return _made(aggregate, aggregate.text, sensitivity=1, unit_range=None)
        case Measure.TOTAL if aggregate.average:
            return _average(aggregate, threshold=threshold, table=table, min_rows=min_rows, position=position)
        case Measure.TOTAL:
            return _sum(aggregate, table=table, position=position)


def _made(
    aggregate: Aggregate,
    name: str,
    *,
    sensitivity: int,
    unit_range: tuple[int, int] | None,
    scale: int = 1,
    offset: int = 0,
    unit_size: Fraction = Fraction(1),
    rows: int = 1,
) -> Functional:
    return Functional(
        name=name,
        measure=aggregate.measure,
        column=aggregate.column.name if aggregate.column else None,
        condition=aggregate.condition,
        scale=scale,
        offset=offset,
        sensitivity=sensitivity,
        unit_range=unit_range,
        unit_size=decimal(unit_size),
        rows=rows,
    )


def _row_bound(table: Table, *, least: int, most: int, position: int | None) -> tuple[int, tuple[int, int] | None]:
    """Sensitivity and unit range of a sum over rows of terms between `least` and `most` (zero for rows left out)."""
    largest = max(abs(least), abs(most), 1)
    if table.row_unit:
        return largest, None
    if table.row_cap is not None:
        return largest * table.row_cap.rows, None
    if table.rows_per_unit is None:
        raise KeyholeError(
            "KH005",
            f'table "{table.name}" declares no bound on the rows of one {table.unit_text}',
            detail="A count's sensitivity is the number of rows that one privacy unit counts for in one group.",
            hint=f"Declare rows_per_unit = 20 under [tables.{table.name}] in keyhole.toml.",
            position=position,
        )
    rows = table.rows_per_unit
    return largest * rows, (min(0, least) * rows, max(0, most) * rows)


def grid(column: Column, table: Table, *, position: int | None) -> tuple[Fraction, int, int]:
    """A measure's grid, and its bounds in grid steps rounded outward. Raises KH203, KH204."""
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
            hint=f"Declare {missing} under [tables.{table.name}.columns.{column.name}] in keyhole.toml, "
            f"or ask count(*) FILTER (WHERE {column.name} > 65) > 40.",
            position=position,
        )
    size = Fraction(step)
    low, high = column.bounds
    return size, floor(Fraction(low) / size), ceil(Fraction(high) / size)


def _sum(aggregate: Aggregate, *, table: Table, position: int | None) -> Functional:
    column = aggregate.column
    assert column is not None
    size, low, high = grid(column, table, position=position)
    if table.row_unit or table.row_cap is not None:
        sensitivity, unit_range = _row_bound(table, least=low, most=high, position=position)
    else:
        if column.per_unit is None:
            raise KeyholeError(
                "KH203",
                f"{column.name} has no declared range for the total of one {table.unit_text}",
                detail="One privacy unit's total in a group is clipped to a declared range.",
                hint=f"Declare per_unit = [0, 500] under [tables.{table.name}.columns.{column.name}] in keyhole.toml.",
                position=position,
            )
        least = min(0, floor(Fraction(column.per_unit[0]) / size))
        most = max(0, ceil(Fraction(column.per_unit[1]) / size))
        sensitivity, unit_range = max(-least, most, 1), (least, most)
    return _made(aggregate, aggregate.text, sensitivity=sensitivity, unit_range=unit_range, unit_size=size)


def _average(
    aggregate: Aggregate, *, threshold: Fraction, table: Table, min_rows: int, position: int | None
) -> Functional:
    column = aggregate.column
    assert column is not None
    size, low, high = grid(column, table, position=position)
    ratio = threshold / size
    scale, offset = ratio.denominator, ratio.numerator
    least, most = scale * low - offset, scale * high - offset
    sensitivity, unit_range = _row_bound(table, least=least, most=most, position=position)
    if sensitivity > _LARGEST or scale > _LARGEST or abs(offset) > _LARGEST:
        raise KeyholeError(
            "KH208",
            f"the threshold of {aggregate.text} is too fine for the grid {column.grid or 1}",
            hint="Round the threshold to a few digits.",
            position=position,
        )
    return _made(
        aggregate,
        f"{aggregate.text} - {decimal(threshold)}",
        sensitivity=sensitivity,
        unit_range=unit_range,
        scale=scale,
        offset=offset,
        unit_size=size / scale,
        rows=min_rows,
    )


def step_of(made: Functional, aggregate: Aggregate, table: Table) -> Fraction:
    """What one integer step is worth in the analyst's unit, exactly."""
    if aggregate.measure is not Measure.TOTAL:
        return Fraction(1)
    assert aggregate.column is not None
    return grid(aggregate.column, table, position=None)[0] / made.scale


def literals(index: int, operator: str, at: Fraction, *, tolerance: int) -> Formula:
    """`S operator at` as literals on the integer S, each with the tolerance."""

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
