"""Online Retail (UCI, CC BY 4.0), as shipped with the demo, month by month: for each country, by the end of each day,
how many sale lines there have been in the month, and how many customers have bought.

A line is the privacy unit of the first, a customer that of the second: who has bought counts once in a month, from the
first day on, so that both only grow and one unit changes them by one. Returns are left out, and of customers the lines
that name none. 38 countries x 13 months, 31 looks each: a shorter month stays as it ended.
"""

from pathlib import Path

import duckdb
import numpy as np

from benchmarks.experiments.retail import DATA
from mechanisms.formula import Integers

DAYS = 31
ORIGIN = "real: Online Retail, UCI Machine Learning Repository, CC BY 4.0"
_LINES = "SELECT Country AS country, InvoiceDate AS moment FROM read_parquet(?) WHERE Quantity > 0"
_CUSTOMERS = (
    "SELECT Country AS country, min(InvoiceDate) AS moment FROM read_parquet(?)"
    " WHERE Quantity > 0 AND CustomerID IS NOT NULL GROUP BY country, CustomerID, date_trunc('month', InvoiceDate)"
)


def count_lines_by_day() -> Integers:
    """Shape (countries and months, days)."""
    return _add_up(_LINES, DATA)


def count_customers_by_day() -> Integers:
    """Shape (countries and months, days)."""
    return _add_up(_CUSTOMERS, DATA)


def _add_up(statement: str, path: Path) -> Integers:
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT country, date_trunc('month', moment), day(moment), count(*) FROM ({statement}) GROUP BY ALL",
            [str(path)],
        ).fetchall()
        countries = [
            one for (one,) in connection.execute("SELECT DISTINCT Country FROM read_parquet(?)", [str(path)]).fetchall()
        ]
    months = sorted({month for _, month, _, _ in rows})
    places = {country: place for place, country in enumerate(sorted(countries))}
    counts = np.zeros((len(countries), len(months), DAYS), dtype=np.int64)
    for country, month, day, number in rows:
        counts[places[country], months.index(month), day - 1] = number
    return np.cumsum(counts.reshape(-1, DAYS), axis=1)
