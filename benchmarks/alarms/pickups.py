"""Taxi pick-ups as they come: for each zone and day, how many there have been by the end of each hour.

`KEYHOLE_GREEN_TAXI` names the parquet file of green-taxi trips from April to December 2020, as for the experiments:
258 zones x 274 days, of which few are busy. Without it as many zones are drawn for 40 days: zone `r` has a mean of
`260 / r**1.1` pick-ups a day, spread over the hours as over a working day; each day has a gamma shock of 25 %.
"""

import os
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.experiments.taxi import VARIABLE
from mechanisms.formula import Integers

HOURS = 24
FIRST, LAST = date(2020, 4, 1), date(2020, 12, 30)

_ZONES, _DAYS = 258, 40
_NIGHT = (0.3, 0.2, 0.15, 0.15, 0.2, 0.5)  # parts of a working hour's pick-ups, from midnight on


@dataclass(frozen=True, slots=True)
class Pickups:
    """`by_hour` has shape (zones and days, hours), sums from midnight on; `origin` says whether it is real."""

    by_hour: Integers
    origin: str


def read_pickups(*, seed: int) -> Pickups:
    """The real ones where the variable names a file, else the stand-in."""
    named = os.environ.get(VARIABLE)
    if named:
        return Pickups(by_hour=_read(Path(named)), origin="real: NYC TLC green-taxi trip records, 2020")
    return Pickups(by_hour=_draw(seed), origin="synthetic stand-in, benchmarks/alarms/pickups.py")


def _draw(seed: int) -> Integers:
    rng = np.random.default_rng([seed, _ZONES])
    mean = 260.0 / np.arange(1, _ZONES + 1) ** 1.1
    hours = np.array((*_NIGHT, *(1.0,) * (HOURS - len(_NIGHT))))
    shock = rng.gamma(16.0, 1 / 16.0, size=(_ZONES, _DAYS))
    counts = rng.poisson((mean[:, np.newaxis] * shock)[:, :, np.newaxis] * hours / hours.sum())
    return np.cumsum(counts.reshape(-1, HOURS), axis=1).astype(np.int64)


def _read(path: Path) -> Integers:
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT PULocationID, CAST(lpep_pickup_datetime AS DATE) AS day, hour(lpep_pickup_datetime), count(*)"
            " FROM read_parquet(?) WHERE day BETWEEN ? AND ? GROUP BY ALL",
            [str(path), FIRST, LAST],
        ).fetchall()
    zones = {zone: place for place, zone in enumerate(sorted({row[0] for row in rows}))}
    counts = np.zeros((len(zones), (LAST - FIRST).days + 1, HOURS), dtype=np.int64)
    for zone, day, hour, count in rows:
        counts[zones[zone], (day - FIRST).days, hour] = count
    return np.cumsum(counts.reshape(-1, HOURS), axis=1)
