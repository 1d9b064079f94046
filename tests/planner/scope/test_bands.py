"""The owner's bands as SQL: PostgreSQL's numbers, and no group without rows in a band above that of 0."""

from decimal import Decimal

import duckdb
import pytest

from planner.catalog.catalog import BandColumn, Bands
from planner.scope.owner_bands import describe_bands, write_aggregate, write_band
from tests.worlds.retail import SALES

VALUES = (-3, -2, -1, Decimal("-0.5"), 0, Decimal("0.5"), 1, 2, 3)


@pytest.mark.parametrize("thresholds", [(1, 2), (-2, 0, 2), (-2, -1), (0,), (Decimal("0.5"),), (0, 3)])
def test_a_sum_is_in_the_band_that_width_bucket_says_and_one_of_nothing_in_that_of_zero(
    thresholds: tuple[int | Decimal, ...],
) -> None:
    numbers = tuple(map(Decimal, thresholds))
    band = write_band("v", Bands("sum", numbers)).replace("width_bucket(v, ARRAY[", "reached(v, [")
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO reached(v, t) AS len(list_filter(t, lambda one: v >= one))")
        for value in VALUES:
            found = connection.execute(f"SELECT {band} FROM (SELECT {value}::decimal(9, 2) AS v)").fetchone()
            assert found == (sum(value >= number for number in numbers),), (value, band)
        if "reached" not in band:
            nothing = connection.execute(f"SELECT {band} FROM (SELECT NULL::decimal(9, 2) AS v)").fetchone()
            assert nothing == (sum(number <= 0 for number in numbers),)


def test_an_average_is_above_its_thresholds() -> None:
    band = write_band("v", Bands("avg", (Decimal(1), Decimal(2))))
    with duckdb.connect() as connection:
        for value, expected in ((0, 0), (1, 0), (Decimal("1.5"), 1), (2, 1), (3, 2), ("NULL", 0)):
            found = connection.execute(f"SELECT {band} FROM (SELECT {value}::decimal(9, 2) AS v)").fetchone()
            assert found == (expected,)


def test_an_aggregate_is_written_with_its_qualifier_and_quotes() -> None:
    def written(aggregate: str, measure: str | None, qualifier: str = "") -> str:
        shown = BandColumn("shown", measure, Bands(aggregate, (Decimal(1),)))
        return write_aggregate(shown, SALES, qualifier=qualifier)

    assert written("sum", "amount") == "sum(amount)"
    assert written("avg", "Größe", "s.") == 'avg(s."Größe")'
    assert written("rows", None, "s.") == "count(*)"
    assert written("units", None, "s.") == "count(DISTINCT (s.customer_id, s.month))"


def test_bands_are_described_by_where_they_begin() -> None:
    numbers = (Decimal(5000), Decimal("20000.5"))
    assert describe_bands(Bands("sum", numbers)) == "0 below 5000, 1 from 5000, 2 from 20000.5"
    assert describe_bands(Bands("avg", numbers)) == "0 up to 5000, 1 above 5000, 2 above 20000.5"
