"""`python -m benchmarks.alarms`: prices of ways to watch a value, and alarms, ladders and streams on taxi pick-ups.

Prices follow from formulas alone; the replay draws noise, and is of real data where `KEYHOLE_GREEN_TAXI` names them.
"""

from collections.abc import Iterator
from time import process_time

import numpy as np

from benchmarks.alarms import rivals
from benchmarks.alarms.beside_streams import watch_beside
from benchmarks.alarms.pickups import pickups
from benchmarks.alarms.replay import FNR, FPR, Replayed, replay
from mechanisms.alarm.calibration import AlarmTask, alarm_price, calibrate_alarm
from mechanisms.alarm.prices import WatchedWindow, afresh_price, price_ways, signed_tree_price
from mechanisms.alarm.run import draw_alarms, look_at_values
from mechanisms.alarm.shapes import Regime
from mechanisms.noise.exact import system_noise

LOOKS = (24, 168, 365, 10_000)
COLUMNS = (
    "looks",
    "below",
    "alarm",
    "afresh",
    "binary",
    "signed",
    "published",
    "monotone",
    "exponential",
    "one-sided",
    "matrix",
)
WINDOWS = (
    WatchedWindow(length=24, hop=24),
    WatchedWindow(length=24, hop=12),
    WatchedWindow(length=168, hop=84),
    *(WatchedWindow(length=length, hop=1) for length in (2, 7, 12, 24, 60, 168, 365, 10_000)),
)
CONTRACTS = ((50, 10), (100, 20), (20, 5), (50, 20))
KEYS = 10_000
BESIDE = 1_000  # windows that streams watch, spread over those that come near: more take minutes


def price_rivals(looks: int) -> tuple[float, ...]:
    """What each way costs, in the order of the columns."""
    at = {"fnr": FNR, "fpr": FPR}
    return (
        rivals.lower_bound(looks, **at),
        alarm_price(looks=looks, regime=Regime.GROWING, **at),
        afresh_price(looks=looks, **at),
        rivals.binary_tree(looks, **at),
        signed_tree_price(looks=looks, **at),
        rivals.PUBLISHED.price(looks, **at),
        rivals.MONOTONE.price(looks, **at),
        rivals.EXPONENTIAL.price(looks, **at),
        rivals.ONE_SIDED.price(looks, **at),
        rivals.matrix(looks, **at),
    )


def describe_windows() -> Iterator[str]:
    """Each way of watching each kind of window, the cheapest first."""
    for window in WINDOWS:
        ways = price_ways(window, fnr=FNR, fpr=FPR, clearing=window.length, regime=Regime.GROWING, rows_stay=True)
        told = (f"{one.way.value} {one.price:.1f} (clears in {one.clearing})" for one in ways)
        yield f"{window.length:7}{window.hop:7}  {', '.join(told)}"


def describe_replay(cut: int, tolerance: int, found: Replayed) -> str:
    """One line of the last table."""
    return (
        f"{cut:5}{tolerance:5}{found.one_question:8.3f}{found.afresh:8.2f}{found.alarm:8.3f}{found.ladder:8.3f}"
        f"{found.ladder_mean:8.3f}{found.late / max(found.true, 1):9.2%}{found.never:6} of {found.true:<6}"
        f"{found.early / max(found.true, 1):7.0%}{found.most_looks_late:6}{found.wrong:6} of {found.beyond}"
    )


def seconds_a_look() -> float:
    """Processor time of one look at many keys, counts of all sizes below the cut."""
    task = AlarmTask(
        looks=24,
        cut=1000,
        tolerance=100,
        sensitivity=1,
        fnr=FNR,
        fpr=FPR,
        regime=Regime.GROWING,
        least=0,
    )
    calibration, noise = calibrate_alarm(task), system_noise()
    states = draw_alarms(keys=KEYS, noise=noise)
    counts, looks = np.random.default_rng(1).integers(0, 900, KEYS), 3
    began = process_time()
    for look in range(1, looks + 1):
        states = look_at_values(calibration, states, counts + look, look=look, noise=noise)
    return (process_time() - began) / looks


def main() -> None:
    """Print the tables."""
    print("".join(f"{column:>12}" for column in COLUMNS))
    for looks in LOOKS:
        print(f"{looks:12}" + "".join(f"{price:12.3f}" for price in price_rivals(looks)))
    print("\nregime            " + "".join(f"{looks:>10}" for looks in LOOKS))
    for regime in Regime:
        prices = (alarm_price(looks=looks, fnr=FNR, fpr=FPR, regime=regime) for looks in LOOKS)
        print(f"{regime.value:18}" + "".join(f"{price:10.3f}" for price in prices))
    print("\n length    hop  ways", *describe_windows(), sep="\n")
    print(f"\none look at {KEYS} keys: {seconds_a_look():.2f} s of a processor")
    found = pickups(seed=1)
    print(f"\n{found.origin}: {len(found.by_hour)} windows of {found.by_hour.shape[1]} looks")
    print("  cut  tol     one  afresh   alarm  ladder    mean     late  never of true    early   by up to   wrong of")
    for cut, tolerance in CONTRACTS:
        print(describe_replay(cut, tolerance, replay(found.by_hour, cut=cut, tolerance=tolerance)))
    for cut, tolerance in CONTRACTS[:2]:
        near = found.by_hour[found.by_hour[:, -1] > cut // 2]
        some = near[:: max(1, len(near) // BESIDE)]
        print(f"\n{cut}, {tolerance}: {len(some)} windows" + " " * 22 + "epsilon    late   wrong")
        for one in watch_beside(some, cut=cut, tolerance=tolerance):
            print(f"{one.name:40}{one.epsilon:8.3f}{one.late:8.1%}{one.wrong:8.1%}")


if __name__ == "__main__":
    main()
