"""What each customer of Online Retail has most of: lines in a month, months, and pence in a month.

The data are shipped with the demo (UCI, CC BY 4.0). Lines without a customer are left out; returns are taken off a
month's pence, down to nothing.
"""

from dataclasses import dataclass, field
from functools import lru_cache

import duckdb
import numpy as np

from benchmarks.experiments.retail import DATA
from mechanisms.formula import Integers

_CUSTOMERS = """
WITH months AS (
    SELECT CustomerID AS customer, count(*) AS lines, sum(round(100 * Quantity * UnitPrice)) AS pence
    FROM read_parquet(?) WHERE CustomerID IS NOT NULL GROUP BY CustomerID, date_trunc('month', InvoiceDate)
)
SELECT max(lines)::BIGINT AS lines, count(*)::BIGINT AS months, greatest(max(pence), 0)::BIGINT AS pence
FROM months GROUP BY customer
"""
_ENDS = {"lines": 10**5, "months": 13, "pence": 10**11}
_TITLES = {"lines": "lines a month", "months": "months", "pence": "pence a month"}


@dataclass(frozen=True, slots=True, eq=False)
class Statistic:
    """One number of each customer, and the greatest that anybody could have, which is public."""

    name: str
    greatest: int
    values: Integers = field(repr=False)

    @property
    def units(self) -> int:
        """How many customers there are."""
        return len(self.values)

    def count_within(self, bounds: Integers) -> Integers:
        """How many customers are at each of some bounds or below."""
        return np.asarray(np.searchsorted(np.sort(self.values), bounds, side="right"), dtype=np.int64)

    def find_quantile(self, target: float) -> int:
        """The least value that so many customers are at or below."""
        return int(np.sort(self.values)[int(np.ceil(target * self.units)) - 1])


@lru_cache(maxsize=1)
def read_statistics() -> tuple[Statistic, ...]:
    """The three of them."""
    with duckdb.connect() as connection:
        found = connection.execute(_CUSTOMERS, [str(DATA)]).fetchnumpy()
    return tuple(
        Statistic(_TITLES[name], greatest, np.asarray(found[name], dtype=np.int64)) for name, greatest in _ENDS.items()
    )
