"""What ways of watching a value cost, as tables: `epsilon * (tolerance + 1)`, one row one unit."""

from collections.abc import Iterator

from benchmarks.alarms import rivals
from benchmarks.alarms.replay import FNR, FPR
from mechanisms.alarm.calibration import price_alarm
from mechanisms.alarm.prices import PricedWay, WatchedWindow, price_each_look, price_signed_tree, price_ways
from mechanisms.alarm.shapes import Regime

LOOKS = (24, 168, 365, 10_000)
ALARM, AFRESH, BELOW = "accumulating alarm", "asked afresh at each", "nothing without a delta is below"
SIGNED_TREE = "tree with nodes added and subtracted, of the best degree"
WINDOWS = (
    WatchedWindow(length=24, hop=24),
    WatchedWindow(length=24, hop=12),
    WatchedWindow(length=168, hop=84),
    *(WatchedWindow(length=length, hop=1) for length in (2, 12, 24, 168, 10_000)),
)


def price_rivals(looks: int) -> dict[str, float]:
    """What each way costs at so many looks."""
    at = {"fnr": FNR, "fpr": FPR}
    return {
        AFRESH: price_each_look(looks=looks, **at),
        "binary tree": rivals.price_binary_tree(looks, **at),
        SIGNED_TREE: price_signed_tree(looks=looks, **at),
        "sparse vector as published": rivals.PUBLISHED.price(looks, **at),
        "with half of the noise, as counts all grow, and the best split": rivals.MONOTONE.price(looks, **at),
        "and one-sided noise on the looks": rivals.EXPONENTIAL.price(looks, **at),
        "and on the threshold": rivals.ONE_SIDED.price(looks, **at),
        "matrix mechanism, delta 1e-6, tolerance 100": rivals.price_matrix(looks, **at),
        ALARM: price_alarm(looks=looks, regime=Regime.GROWING, **at),
        BELOW: rivals.compute_lower_bound(looks, **at),
    }


def price_regimes() -> dict[str, tuple[float, ...]]:
    """An alarm's price by how a unit changes what is watched, for each number of looks."""
    return {
        regime.value: tuple(price_alarm(looks=looks, fnr=FNR, fpr=FPR, regime=regime) for looks in LOOKS)
        for regime in Regime
    }


def list_ways(window: WatchedWindow) -> tuple[PricedWay, ...]:
    """Each way of watching a kind of window, the cheapest first."""
    return price_ways(window, fnr=FNR, fpr=FPR, clearing=window.length, regime=Regime.GROWING, is_append_only=True)


def describe_windows() -> Iterator[str]:
    """A line for each kind of window."""
    for window in WINDOWS:
        told = (f"{one.way.value} {one.price:.1f} (clears in {one.clearing_looks})" for one in list_ways(window))
        yield f"{window.length:7}{window.hop:7}  {', '.join(told)}"
