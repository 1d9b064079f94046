"""What docs/results/alarms.md tells of real data: taxi pick-ups by the hour, a shop's months by the day."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from benchmarks.alarms.pickups import read_pickups
from benchmarks.alarms.replay import Expected, Replayed, expect, replay
from benchmarks.alarms.retail import ORIGIN, count_customers_by_day, count_lines_by_day
from benchmarks.alarms.side_by_side import Realised, watch_all
from mechanisms.formula import Integers
from tests.seeded_noise import SeededNoise

CONTRACTS = ((50, 10), (100, 20), (20, 5), (50, 20))
LINES, CUSTOMERS = (200, 20), (20, 5)
PROCESSES = 2
REPEATED = 20  # runs of each of the shop's few windows, pooled


@dataclass(frozen=True, slots=True)
class Watched:
    """Every way of watching windows of one kind under one contract; of how many that exceed the cut, and that stay
    beyond the tolerance."""

    what: str
    origin: str
    cut: int
    tolerance: int
    windows: int
    looks: int
    true: int
    beyond: int
    ways: tuple[Realised, ...]


@dataclass(frozen=True, slots=True)
class Taxis:
    """Alarms and ladders under each contract with what is expected of the alarm, and every way under the first."""

    replayed: tuple[tuple[int, int, Replayed, Expected], ...]
    beside: Watched


@dataclass(frozen=True, slots=True)
class AboutAlarms:
    """How the results came about; processor seconds of one look at ten thousand keys."""

    seed: int
    seconds_a_look: float


def measure(*, seed: int) -> tuple[Taxis, tuple[Watched, ...]]:
    """All of it, side by side, the longest first; the results follow from the seed alone."""
    with ProcessPoolExecutor(PROCESSES) as pool:
        beside = pool.submit(watch_pickups, seed=seed)
        replayed = [pool.submit(replay_pickups, place, seed=seed) for place in range(len(CONTRACTS))]
        shops = pool.submit(watch_retail, seed=seed)
        return Taxis(tuple(one.result() for one in replayed), beside.result()), shops.result()


def replay_pickups(place: int, *, seed: int, every: int = 1) -> tuple[int, int, Replayed, Expected]:
    """Zones and days, or every so many of them, under one of the contracts."""
    (cut, tolerance), by_hour = CONTRACTS[place], read_pickups(seed=seed).by_hour[::every]
    replayed = replay(by_hour, cut=cut, tolerance=tolerance, noise=SeededNoise(seed + place))
    return cut, tolerance, replayed, expect(by_hour, cut=cut, tolerance=tolerance)


def watch_pickups(*, seed: int, every: int = 1) -> Watched:
    """Every way under the first contract."""
    found = read_pickups(seed=seed)
    return watch(
        found.by_hour[::every], CONTRACTS[0], seed=seed, what="pick-ups of a zone and day", origin=found.origin
    )


def watch_retail(*, seed: int, repeated: int = REPEATED) -> tuple[Watched, ...]:
    """Countries and months, day by day."""
    kinds = (
        ("sale lines of a country and month", count_lines_by_day(), LINES),
        ("customers of a country and month", count_customers_by_day(), CUSTOMERS),
    )
    return tuple(
        watch(np.tile(by_day, (repeated, 1)), contract, seed=seed, what=what, origin=ORIGIN, repeated=repeated)
        for what, by_day, contract in kinds
    )


def watch(
    by_look: Integers, contract: tuple[int, int], *, seed: int, what: str, origin: str, repeated: int = 1
) -> Watched:
    """All ways on the windows, each of which is there so many times."""
    cut, tolerance = contract
    return Watched(
        what=what,
        origin=origin,
        cut=cut,
        tolerance=tolerance,
        windows=len(by_look) // repeated,
        looks=by_look.shape[1],
        true=int((by_look[:, -1] > cut).sum()) // repeated,
        beyond=int((by_look[:, -1] <= cut - tolerance).sum()) // repeated,
        ways=tuple(watch_all(by_look, cut=cut, tolerance=tolerance, noise=SeededNoise(seed))),
    )
