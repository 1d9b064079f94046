"""Streams to run on: stand-ins of the thesis's, which are not public, and hours of real sales and taxi trips.

**The stand-ins** have the thesis's printed totals a tick: connections to an access point by five minutes, 2,846,
101,843 and 2,141,963 over 57,901 ticks. The rate of a tick is the product of a curve over the day (a hump around 13
o'clock of 3.5 hours' width, .05 at night), .3 at weekends, and a log-normal shock of 40 % that forgets half of itself
in two hours; counts are Poisson. Four weeks are drawn, 8,064 ticks. `draw_hierarchy` draws 128 such streams, popular as
one over the rank, with 646,254 over 20,000 ticks in all, in an order that has nothing to do with their size.

**Real**: sale lines by hour of Online Retail (UCI, CC BY 4.0), as shipped with the demo, returns left out; and, where
`KEYHOLE_GREEN_TAXI` names the file, trips from the busiest zone by hour.

One record is one event of one tick: the sensitivity is one.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt

from benchmarks.experiments.retail import DATA
from benchmarks.experiments.taxi import VARIABLE
from mechanisms.formula import Integers

TICKS_A_DAY = 288
TICKS = 28 * TICKS_A_DAY
PRINTED_TICKS = 57_901
TOTALS = {"Low_5": 2_846, "Med_5": 101_843, "High_5": 2_141_963}
LEAVES = 128
HIERARCHY_TICKS = 7 * TICKS_A_DAY
HIERARCHY_TOTAL, HIERARCHY_PRINTED_TICKS = 646_254, 20_000
BUSIEST_ZONE = 74
ZONE_DAYS = ("2020-04-01", "2020-12-31")

_WIDTH, _NIGHT, _WEEKEND = 3.5, 0.05, 0.3
_SHOCK, _HALF_LIFE = 0.4, 24.0  # of the logarithm's spread; ticks


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of counts and where it comes from."""

    name: str
    counts: Integers
    origin: str


def draw_stand_ins(*, seed: int, ticks: int = TICKS) -> tuple[Stream, ...]:
    """The thesis's three single streams."""
    found = []
    for place, (name, total) in enumerate(TOTALS.items()):
        rng = np.random.default_rng([seed, 5, place])
        counts = rng.poisson(total / PRINTED_TICKS * _draw_rates(rng, ticks))
        found.append(Stream(name=name, counts=counts.astype(np.int64), origin="synthetic, the printed total a tick"))
    return tuple(found)


def draw_hierarchy(*, seed: int, ticks: int = HIERARCHY_TICKS) -> Integers:
    """Counts of 128 states, shape (ticks, 128)."""
    rng = np.random.default_rng([seed, 5, 9])
    popularity = rng.permutation(1.0 / np.arange(1, LEAVES + 1))
    total = HIERARCHY_TOTAL / HIERARCHY_PRINTED_TICKS
    rates = np.column_stack([_draw_rates(rng, ticks) for _ in range(LEAVES)])
    return np.asarray(rng.poisson(total * rates * popularity / popularity.sum()), dtype=np.int64)


def count_sales_by_hour() -> Stream:
    """Online Retail's sale lines of every hour of its year."""
    return Stream(
        name="sales by hour",
        counts=_count_by_hour(DATA, "InvoiceDate", "Quantity > 0"),
        origin="real: Online Retail, UCI Machine Learning Repository, CC BY 4.0",
    )


def count_trips_by_hour() -> Stream | None:
    """The taxi trips of the busiest zone, if there is a file."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    first, last = ZONE_DAYS
    where = f"PULocationID = {BUSIEST_ZONE} AND CAST(lpep_pickup_datetime AS DATE) BETWEEN '{first}' AND '{last}'"
    return Stream(
        name="trips by hour",
        counts=_count_by_hour(Path(named), "lpep_pickup_datetime", where),
        origin="real: NYC TLC green-taxi trip records, 2020",
    )


def list_streams(*, seed: int) -> tuple[Stream, ...]:
    """The stand-ins, and the real ones that there are."""
    trips = count_trips_by_hour()
    return (*draw_stand_ins(seed=seed), count_sales_by_hour(), *((trips,) if trips else ()))


def _draw_rates(rng: np.random.Generator, ticks: int) -> npt.NDArray[np.float64]:
    """A mean of one, by the docstring's law."""
    tick = np.arange(ticks)
    hour = tick % TICKS_A_DAY / 12.0
    curve = _NIGHT + np.exp(-0.5 * ((hour - 13.0) / _WIDTH) ** 2)
    curve *= np.where(tick // TICKS_A_DAY % 7 < 5, 1.0, _WEEKEND)
    kept = 0.5 ** (1.0 / _HALF_LIFE)
    steps = rng.normal(scale=_SHOCK * np.sqrt(1.0 - kept**2), size=ticks)
    shock = np.empty(ticks)
    last = rng.normal(scale=_SHOCK)
    for place, step in enumerate(steps):
        last = kept * last + step
        shock[place] = last
    rates = curve * np.exp(shock - _SHOCK**2 / 2.0)
    week = np.arange(7 * TICKS_A_DAY)
    mean_curve = _NIGHT + np.exp(-0.5 * ((week % TICKS_A_DAY / 12.0 - 13.0) / _WIDTH) ** 2)
    mean = (mean_curve * np.where(week // TICKS_A_DAY < 5, 1.0, _WEEKEND)).mean()
    return np.asarray(rates / mean)


def _count_by_hour(path: Path, column: str, where: str) -> Integers:
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT date_diff('hour', (SELECT min({column}) FROM read_parquet($1) WHERE {where}), {column}), count(*)"
            f" FROM read_parquet($1) WHERE {where} GROUP BY ALL",
            [str(path)],
        ).fetchall()
    counts = np.zeros(1 + max(hour for hour, _ in rows), dtype=np.int64)
    for hour, number in rows:
        counts[hour] = number
    return counts
