"""Green-taxi trips by zone and day: the real file where it is given, else a synthetic stand-in of the same shape.

The trip records of New York's TLC may not be shipped with Keyhole. `KEYHOLE_GREEN_TAXI` names a parquet file with the
published columns that holds September to December 2020. Without it the same 34 zones x 122 days are drawn:

* zone `r` of 34 has a mean of `260 / r**0.65` trips a day (Zipf-like), each weekday a factor (0.80 on Sundays to 1.12
  on Fridays), every zone and day a gamma shock of 20 %; the trips are Poisson around the product: over-dispersed.
* every zone has a share of expensive fares, long trips, card payments, shared rides and large totals (beta), and the
  attributes of its trips are binomial.

One record is one trip, so every count has sensitivity one.
"""

import os
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt

from benchmarks.experiments.measures import Measures
from mechanisms.formula import Integers

VARIABLE = "KEYHOLE_GREEN_TAXI"

FIRST, LAST = date(2020, 9, 1), date(2020, 12, 31)
DAYS = (LAST - FIRST).days + 1
BASELINE = (date(2020, 9, 1), date(2020, 10, 31))
AUTUMN = (date(2020, 11, 1), date(2020, 11, 14))
WINTER = (date(2020, 12, 15), date(2020, 12, 30))
FORTNIGHT = (date(2020, 10, 5), date(2020, 10, 19))

# the 34 pick-up zones that green taxis serve most
ZONES = (
    *(74, 75, 41, 42, 244, 95, 97, 166, 65, 82, 61, 116, 130, 43, 7, 188, 25),
    *(159, 76, 33, 129, 181, 197, 213, 152, 17, 242, 35, 89, 225, 39, 69, 243, 51),
)

_FILTERS = {
    "trips": "TRUE",
    "fare over 20": "fare_amount > 20",
    "longer than 3 miles": "trip_distance > 3",
    "paid by card": "payment_type = 1",
    "paid in cash": "payment_type = 2",
    "total over 25": "total_amount > 25",
}
_MEANS = (0.36, 0.44, 0.32, 0.25, 0.37)
_WEEKDAYS = (0.98, 1.02, 1.05, 1.08, 1.12, 0.95, 0.80)


@dataclass(frozen=True, slots=True)
class Trips:
    """`counts` has shape (filters, zones, days from 1 September); `origin` says whether it is real."""

    counts: npt.NDArray[np.int64]
    origin: str
    real: bool

    def select_period(self, period: tuple[date, date]) -> npt.NDArray[np.int64]:
        """The counts of some days, both ends included."""
        return self.counts[:, :, (period[0] - FIRST).days : (period[1] - FIRST).days + 1]


def read_trips(*, seed: int) -> Trips:
    """The real trips where the variable names a file, else the stand-in."""
    return _read_trips(os.environ.get(VARIABLE), seed)


@lru_cache(maxsize=2)
def _read_trips(named: str | None, seed: int) -> Trips:
    if named:
        return Trips(counts=_read_real(Path(named)), origin="real: NYC TLC green-taxi trip records, 2020", real=True)
    stand_in = "synthetic stand-in, benchmarks/experiments/taxi.py"
    return Trips(counts=draw_synthetic(seed=seed), origin=stand_in, real=False)


def count_zones_by_day(*, seed: int) -> Measures:
    """ProBE's keys: 34 zones x 15 days, six counts of one day's trips."""
    found = read_trips(seed=seed)
    return Measures(
        name="green taxi",
        origin=found.origin,
        functionals=tuple(_FILTERS),
        aggregates=found.select_period(FORTNIGHT).reshape(len(_FILTERS), -1),
        sensitivities=(1,) * 6,
        declared=(500, 300, 300, 300, 200, 300),
        typed=(100, 30, 40, 30, 30, 30),
        bands=(10, 3, 4, 3, 3, 3),
    )


def count_pickups(period: tuple[date, date], *, seed: int, share: float) -> Integers:
    """MIDE's Q3 and Q4: per zone and day, the trips above `share` of the zone's busiest baseline day; (1, keys)."""
    found = read_trips(seed=seed)
    busiest = found.select_period(BASELINE)[0].max(axis=1)
    above = found.select_period(period)[0] - np.floor(share * busiest).astype(np.int64)[:, None]
    return np.asarray(above.reshape(1, -1), dtype=np.int64)


def draw_synthetic(*, seed: int) -> npt.NDArray[np.int64]:
    """The stand-in's counts, shape (filters, zones, days)."""
    rng = np.random.default_rng([seed, 34])
    rank = np.arange(1, len(ZONES) + 1)
    weekday = np.array([_WEEKDAYS[(FIRST.weekday() + day) % 7] for day in range(DAYS)])
    shock = rng.gamma(25.0, 1 / 25.0, size=(rank.size, DAYS))
    counts: npt.NDArray[np.int64] = rng.poisson((260.0 / rank**0.65)[:, None] * weekday * shock)
    shares = [rng.beta(12.0 * mean, 12.0 * (1.0 - mean), size=(rank.size, 1)) for mean in _MEANS]
    return np.stack([counts, *(rng.binomial(counts, share) for share in shares)]).astype(np.int64)


def _read_real(path: Path) -> npt.NDArray[np.int64]:
    counted = ", ".join(f"count(*) FILTER (WHERE {where})" for where in _FILTERS.values())
    counts = np.zeros((len(_FILTERS), len(ZONES), DAYS), dtype=np.int64)
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT PULocationID, CAST(lpep_pickup_datetime AS DATE), {counted} FROM read_parquet(?)"
            f" WHERE PULocationID IN {ZONES} AND CAST(lpep_pickup_datetime AS DATE) BETWEEN ? AND ? GROUP BY ALL",
            [str(path), FIRST, LAST],
        ).fetchall()
    for zone, day, *values in rows:
        counts[:, ZONES.index(zone), (day - FIRST).days] = values
    return counts
