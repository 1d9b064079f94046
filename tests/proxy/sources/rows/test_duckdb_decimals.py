"""Decimals on DuckDB just inside their bounds: the statement neither fails nor rounds, or it is refused before data."""

import random
from decimal import Decimal
from fractions import Fraction
from math import floor

import duckdb

from planner.catalog.catalog import Column, SqlType, Table
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.measure import make_row_value
from planner.lower.row import RowSql
from tests.effort import rounds


def _table(column: Column) -> Table:
    return Table(
        name="t",
        relation="t",
        columns=(column,),
        unit=(),
        groups_per_unit=1,
        rows_per_unit=None,
        row_cap=None,
        refresh="static",
        seed="s",
    )


def _text(steps: int, scale: int) -> str:
    digits = str(abs(steps)).rjust(scale + 1, "0")
    return f"{'-' if steps < 0 else ''}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}"


def test_every_value_near_a_bound_is_exact_or_its_column_is_refused() -> None:
    """Over a thousand combinations of precision, scale, bounds and grid."""
    drawn = random.Random(4)
    exact, codes = 0, list[str]()
    with duckdb.connect() as connection:
        for _ in range(rounds(1_200, quick=400)):
            scale, precision = drawn.choice([0, 2, 5, 10, 18, 20, 30]), drawn.choice([18, 30, 38])
            bound = Decimal(drawn.choice([1, 3, 9, 99])).scaleb(drawn.randint(-3, 30))
            grid = Decimal(drawn.choice(["1", "2", "5", "0.3", "0.25"])).scaleb(drawn.randint(-12, 20))
            if scale > precision or not 1 <= bound / grid <= 2**53:
                continue
            low, high, step = Fraction(drawn.choice([Decimal(0), -bound])), Fraction(bound), Fraction(grid)
            column = Column(
                "x", SqlType.NUMERIC, f"numeric({precision},{scale})", bounds=(Decimal(0), bound), grid=grid
            )
            if low:
                column = Column("x", SqlType.NUMERIC, column.declared, bounds=(-bound, bound), grid=grid)
            try:
                value = make_row_value(RowSql(table=_table(column), dialect=DUCKDB), column)
            except KeyholeError as error:
                codes.append(error.code)
                continue
            least = Fraction(1, 10**scale)
            near = (high, high - least, high - step / 2, high - step / 2 - least, low, low + least, high / 3)
            for steps in (floor(found / least) for found in near):
                if abs(steps) >= 10**precision:
                    continue
                source = f"(SELECT CAST('{_text(steps, scale)}' AS decimal({precision}, {scale})) AS x)"
                row = connection.execute(f"SELECT {value.sql} FROM {source}").fetchone()
                expected = floor(min(max(steps * least, low), high) / step + Fraction(1, 2))
                assert row is not None
                assert row[0] * value.steps == expected, (column, steps)
                exact += 1
    assert exact > rounds(1_000, quick=300)
    assert len(codes) > 10
    assert set(codes) == {"KH203"}
