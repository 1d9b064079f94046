"""The price of each way of watching a window: `epsilon * (tolerance + 1) / sensitivity`, free of scale.

All prices are for the same contract. A key with a value above the cut is missing at a look with probability at most
`fnr`. A key with a value below the cut by more than the tolerance is in the answer with probability at most `fpr`.
Alarms promise this `fpr` for all looks of a window together, the other ways for each look by itself. Prices hold for
tolerances of some dozen units and more, at which integer noise is as good as continuous noise. Below, the ways other
than alarms cost less than these prices.

An alert is cleared at the next look, or it stays until its window closes. `clearing_looks` counts these looks.
"""

import math
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np

from mechanisms.alarm.calibration import price_alarm
from mechanisms.alarm.laplace_sums import add_quantiles
from mechanisms.alarm.shapes import Regime

_MOST_LEVELS = 8  # of a tree: more pay from ten million looks on
_SPREADS = (0.25, 4.0)  # times the even width of a tree's nodes, or of blocks: where the best one is looked for


class Way(Enum):
    """A way of answering at every look of a window. Its value is the text that users read."""

    ALARM = "an alarm"
    ALARM_EACH = "an alarm for each threshold"
    ALARM_WHOLE = "an alarm on the whole condition"
    ALARM_PER_EPOCH = "an alarm for each epoch"
    ALARM_PER_HOP = "an alarm for the last hop of each window"
    CLOSE = "one question, when the window closes"
    AFRESH = "a new question at every look"
    SIGNED_TREE = "a tree of noise, added and subtracted"
    TICK_NOISE = "noise on each tick"
    BLOCK_NOISE = "noise on ticks and on blocks of them"
    STREAM = "a published stream, no bound on missed or wrong"


@dataclass(frozen=True, slots=True)
class WatchedWindow:
    """Windows and their hop, measured in looks.

    `length` is the number of looks of a window. `hop` is the number of looks after which the next window begins:
    `length` for tumbling windows, 1 for sliding ones. Any other hop must divide the length.
    """

    length: int
    hop: int

    def __post_init__(self) -> None:
        """Raise ValueError for windows that leave looks out or do not fit their hops."""
        if not 1 <= self.hop <= self.length or self.length % self.hop:
            raise ValueError("a window is a whole number of hops long")


@dataclass(frozen=True, slots=True)
class PricedWay:
    """A way of watching with its price, and the most looks for which an alert stays after its condition became false.

    `regime` is that of the way's alarm, None without an alarm. If it `is_per_look`, its `fpr` is promised for each look
    by itself, else for all looks of a window together.
    """

    way: Way
    price: float
    clearing_looks: int
    regime: Regime | None
    is_per_look: bool


def price_ways(
    window: WatchedWindow, *, fnr: float, fpr: float, clearing: int, regime: Regime, is_append_only: bool
) -> tuple[PricedWay, ...]:
    """Return the ways that clear an alert within `clearing` looks, the cheapest first.

    Parameters:
        clearing: the most looks for which an alert may stay after its condition became false.
        regime: how a unit changes the compared values within one window: growing, coming and going, or signed.
        is_append_only: rows are added, never changed or taken away: noise can be drawn for each tick once and for all.

    >>> day, asked = WatchedWindow(length=24, hop=24), {"fnr": 0.05, "fpr": 0.1, "is_append_only": True}
    >>> ways = price_ways(day, clearing=24, regime=Regime.GROWING, **asked)
    >>> [(one.way.name, round(one.price, 1)) for one in ways]
    [('ALARM', 7.1), ('SIGNED_TREE', 20.0), ('AFRESH', 93.9)]
    """
    length, at = window.length, {"fnr": fnr, "fpr": fpr}
    priced = [_answer_each_look(Way.AFRESH, price_each_look(looks=length, **at))]
    if window.hop == length:
        price = price_alarm(looks=length, regime=regime, **at)
        priced.append(_price_without_clearing(Way.ALARM, price, length, regime))
        if is_append_only:
            priced.append(_answer_each_look(Way.SIGNED_TREE, price_signed_tree(looks=length, **at)))
    elif window.hop > 1:
        price = price_hopping_alarms(window, regime=regime, **at)
        priced.append(_price_without_clearing(Way.ALARM_PER_HOP, price, window.hop, regime))
    else:
        if regime is Regime.GROWING:
            price = price_alarm(looks=length, regime=Regime.SLIDING, **at)
            priced.append(_price_without_clearing(Way.ALARM_PER_EPOCH, price, length, Regime.SLIDING))
        if is_append_only:
            priced.append(_answer_each_look(Way.TICK_NOISE, price_tick_noise(length=length, **at)))
            price, block = price_block_noise(length=length, **at)
            priced += [_answer_each_look(Way.BLOCK_NOISE, price)] * (block > 1)
    return tuple(sorted((one for one in priced if one.clearing_looks <= clearing), key=lambda one: one.price))


def _answer_each_look(way: Way, price: float) -> PricedWay:
    return PricedWay(way=way, price=price, clearing_looks=0, regime=None, is_per_look=True)


def _price_without_clearing(way: Way, price: float, clearing: int, regime: Regime) -> PricedWay:
    return PricedWay(way=way, price=price, clearing_looks=clearing, regime=regime, is_per_look=False)


def price_at_close(*, fnr: float, fpr: float) -> float:
    """Return the price of one question that is answered only when the window closes.

    >>> round(price_at_close(fnr=0.05, fpr=0.1), 3)
    3.912
    """
    return add_quantiles(fnr=fnr, fpr=fpr, fine=1)


def price_each_look(*, looks: int, fnr: float, fpr: float) -> float:
    """Return the price of one question at each look. A row counts in all looks of a window, and their losses add up.

    >>> round(price_each_look(looks=24, fnr=0.05, fpr=0.1), 1)
    93.9
    """
    return looks * add_quantiles(fnr=fnr, fpr=fpr, fine=1)


def price_hopping_alarms(window: WatchedWindow, *, fnr: float, fpr: float, regime: Regime) -> float:
    """Return the price of an alarm for each window, which looks during the window's last hop.

    A row is in several windows, one for each hop of a window, and loses the price of each.

    >>> round(price_hopping_alarms(WatchedWindow(length=24, hop=12), fnr=0.05, fpr=0.1, regime=Regime.GROWING), 1)
    12.8
    """
    return window.length // window.hop * price_alarm(looks=window.hop, fnr=fnr, fpr=fpr, regime=regime)


def price_tick_noise(*, length: int, fnr: float, fpr: float) -> float:
    """Return the price of noise that is drawn once for each tick's count.

    A window's value is the sum of its noisy counts.

    >>> round(price_tick_noise(length=24, fnr=0.05, fpr=0.1), 1)
    20.2
    """
    return add_quantiles(fnr=fnr, fpr=fpr, fine=length)


@lru_cache(maxsize=256)
def price_block_noise(*, length: int, fnr: float, fpr: float) -> tuple[float, int]:
    """Return the price of noise on each tick and on each block of ticks, and the best length of a block.

    A window is a run of whole blocks, with up to half a block of ticks added or subtracted at either end. Noise of
    future ticks may be subtracted. The loss is split between ticks and blocks in the ratio of the cube roots of their
    numbers.

    >>> price, block = price_block_noise(length=168, fnr=0.05, fpr=0.1)
    >>> round(price, 1), block
    (35.8, 16)
    """
    even = math.sqrt(length)
    low, high = (max(2, round(even * spread)) for spread in _SPREADS)
    found = sorted((*_find_worst_sum(length, block), block) for block in range(low, min(high, length) + 1))
    if not found:
        return price_tick_noise(length=length, fnr=fnr, fpr=fpr), 1
    # the variance is all but the price: the best is among the least three
    return min((_price_sum(made, fnr=fnr, fpr=fpr), block) for _, made, block in found[:3])


@lru_cache(maxsize=256)
def price_signed_tree(*, looks: int, fnr: float, fpr: float) -> float:
    """Return the price of running sums from a window's beginning, read from a tree of noise.

    Nodes are added and subtracted. Degree and height of the tree are the cheapest ones.

    References: Andersson, Pagh, Steiner, Torkamani, "Count on your elders: Laplace vs Gaussian noise".

    >>> round(price_signed_tree(looks=24, fnr=0.05, fpr=0.1), 1)
    20.0
    """
    prices = []
    for levels in range(1, min(_MOST_LEVELS, max(1, looks.bit_length())) + 1):
        even = looks ** (1.0 / levels)
        low, high = (max(2, round(even * spread)) for spread in _SPREADS)
        nodes = min(
            _count_most_nodes(looks, degree, levels) for degree in (range(low, high + 1) if levels > 1 else (2,))
        )
        prices.append(levels * add_quantiles(fnr=fnr, fpr=fpr, fine=nodes))
    return min(prices)


def _count_most_nodes(looks: int, degree: int, levels: int) -> int:
    """Return the most nodes that a sum from the beginning needs, over all numbers of looks."""
    cost = np.arange(looks // degree ** (levels - 1) + 3)
    for level in range(levels - 2, -1, -1):
        whole, rest = np.divmod(np.arange(looks // degree**level + 3), degree)
        cost = np.minimum(rest + cost[whole], degree - rest + cost[whole + 1])
    return int(cost[: looks + 1].max())


@dataclass(frozen=True, slots=True, order=True)
class _NoiseSum:
    """The numbers of ticks and blocks that make up a window, and the ticks' part of the loss."""

    tick_count: int
    block_count: int
    loss_share_of_ticks: float


def _find_worst_sum(length: int, block: int) -> tuple[float, _NoiseSum]:
    """Return the greatest variance of a window's noise, and the sum that has it.

    The window may end anywhere in a block.
    """
    end = np.arange(block)
    begin = end - length
    before = begin % block
    blocks_at_most = (end - begin + before) // block + 1
    sums = [
        (abs(before - left * block) + abs(end - right * block), blocks_at_most - left - (1 - right))
        for left in (0, 1)
        for right in (0, 1)
    ]
    ticks, blocks = (np.array(parts) for parts in zip(*sums, strict=True))
    found = []
    part = _split_loss(block / 2, length / block)
    for _ in range(2):  # once by what there is of each on average, once by the worst sum
        variances = ticks / part**2 + blocks / (1.0 - part) ** 2
        best = np.argmin(variances, axis=0)
        worst = int(np.argmax(variances[best, end]))
        made = _NoiseSum(
            tick_count=int(ticks[best[worst], worst]),
            block_count=int(blocks[best[worst], worst]),
            loss_share_of_ticks=part,
        )
        found.append((float(variances[best[worst], worst]), made))
        part = _split_loss(made.tick_count, made.block_count)
    return min(found)


def _split_loss(ticks: float, blocks: float) -> float:
    """Return the ticks' part of the loss that makes the variance least. Both ticks and blocks get a part above zero."""
    on_ticks, on_blocks = np.cbrt(max(ticks, 1.0)), np.cbrt(max(blocks, 1.0))
    return float(on_ticks / (on_ticks + on_blocks))


def _price_sum(made: _NoiseSum, *, fnr: float, fpr: float) -> float:
    ratio = made.loss_share_of_ticks / (1.0 - made.loss_share_of_ticks)  # of the scales: less loss is more noise
    return (
        add_quantiles(fnr=fnr, fpr=fpr, fine=made.tick_count, coarse=made.block_count, ratio=ratio)
        / made.loss_share_of_ticks
    )
