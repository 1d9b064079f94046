"""Online Retail (UCI, CC BY 4.0), as shipped with the demo: sale lines by country, or product group, and day.

One record is one sale line, as in the papers: counts, also of distinct customers, have sensitivity one. Lines without
a customer and returns are left out. The fourteen trading days are 14 to 29 November 2011 without the two Saturdays.
"""

from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.experiments.measures import Measures
from mechanisms.formula import Integers

DATA = Path(__file__).parents[2] / "deploy" / "demo" / "online_retail.parquet"
ORIGIN = "real: Online Retail, UCI Machine Learning Repository"
FIRST = date(2011, 11, 14)
DAYS = tuple(day for day in (FIRST + timedelta(days=step) for step in range(16)) if day.weekday() != 5)
CENT = 100
MOST_AMOUNT, MOST_PIECES, MOST_PRICE = 100, 50, 20
ROWS = 100

COUNTRIES = (
    *("Australia", "Austria", "Bahrain", "Belgium", "Brazil", "Canada", "Channel Islands", "Cyprus"),
    *("Czech Republic", "Denmark", "EIRE", "European Community", "Finland", "France", "Germany", "Greece"),
    *("Iceland", "Israel", "Italy", "Japan", "Lebanon", "Lithuania", "Malta", "Netherlands", "Norway", "Poland"),
    *("Portugal", "RSA", "Saudi Arabia", "Singapore", "Spain", "Sweden", "Switzerland", "USA"),
    *("United Arab Emirates", "United Kingdom", "Unspecified"),
)
# the first three digits of the stock code
PRODUCT_GROUPS = (
    *("233", "232", "221", "225", "226", "229", "235", "231", "227", "234", "224", "223", "220", "219", "228"),
    *("230", "218", "207", "850", "217", "209", "211", "222", "214", "212", "849", "210", "215", "216", "851"),
    *("213", "840", "848", "824", "475", "843", "845", "206", "825", "481", "236", "359", "208"),
)

_KPIS = {
    "sales": "count(*)",
    "sales before noon": "count(*) FILTER (WHERE hour(InvoiceDate) < 12)",
    "customers": "count(DISTINCT CustomerID)",
    "invoices": "count(DISTINCT InvoiceNo)",
    "sales of 12 pieces or more": "count(*) FILTER (WHERE Quantity >= 12)",
    "sales over 20 pounds": "count(*) FILTER (WHERE Quantity * UnitPrice > 20)",
}
_NOON = {"": "TRUE", " before noon": "hour(InvoiceDate) < 12"}


def count_countries_by_day() -> Measures:
    """ProBE's sales indicators: 37 countries x 14 days, six counts of one day's sales."""
    return Measures(
        name="online retail",
        origin=ORIGIN,
        functionals=tuple(_KPIS),
        aggregates=_aggregate("Country", COUNTRIES, tuple(_KPIS.values())),
        sensitivities=(1,) * 6,
        declared=(4000, 2000, 200, 250, 1500, 1200),
        typed=(50, 25, 10, 10, 20, 15),
        bands=(5, 3, 1, 1, 2, 2),
    )


def compute_averages() -> Measures:
    """Figure 10: 43 product groups x 14 days, six averages `avg(x) > t` as sums of `x - t`, in hundredths.

    Every value is clipped to its declared range. A record changes a sum by at most the larger of `t` and `range - t`;
    the band of an average is a tenth of `t` in groups of at least 100 lines.
    """
    columns = (
        ("amount", "Quantity * UnitPrice", MOST_AMOUNT, 18),
        ("pieces", "Quantity", MOST_PIECES, 10),
        ("price", "UnitPrice", MOST_PRICE, 3),
    )
    names, expressions, sensitivities, bands = [], [], [], []
    for when, where in _NOON.items():
        for name, expression, most, threshold in columns:
            names.append(f"average {name}{when}")
            clipped = f"round({CENT} * (least({expression}, {most}) - {threshold}))"
            expressions.append(f"coalesce(sum({clipped}) FILTER (WHERE {where}), 0)")
            sensitivities.append(CENT * max(threshold, most - threshold))
            bands.append(CENT * threshold * ROWS // 10)
    return Measures(
        name="online retail, averages",
        origin=ORIGIN,
        functionals=tuple(names),
        aggregates=_aggregate("left(StockCode, 3)", PRODUCT_GROUPS, tuple(expressions)),
        sensitivities=tuple(sensitivities),
        declared=tuple(500 * sensitivity for sensitivity in sensitivities),
        typed=(0,) * len(names),
        bands=tuple(bands),
    )


@lru_cache(maxsize=2)
def _aggregate(key: str, domain: tuple[str, ...], expressions: tuple[str, ...]) -> Integers:
    found = np.zeros((len(expressions), len(domain), len(DAYS)), dtype=np.int64)
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT {key}, CAST(InvoiceDate AS DATE), {', '.join(expressions)} FROM read_parquet(?)"
            f" WHERE CustomerID IS NOT NULL AND Quantity > 0 AND CAST(InvoiceDate AS DATE) BETWEEN ? AND ?"
            f" AND {key} IN {domain} GROUP BY ALL",
            [str(DATA), DAYS[0], DAYS[-1]],
        ).fetchall()
    for value, day, *values in rows:
        found[:, domain.index(value), DAYS.index(day)] = [int(number) for number in values]
    return found.reshape(len(expressions), -1)
