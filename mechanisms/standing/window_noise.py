"""The noise of a sliding window: the ticks and blocks that it is a sum of, and the law of this sum.

| here | the proof |
|---|---|
| window, block | W, B |

Proof: docs/proofs/standing.md.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mechanisms.alarm.prices import price_block_noise, price_tick_noise
from mechanisms.protocol import Unachievable

_MOST_POINTS = 1 << 17  # of a law by Fourier transform: noise that spreads further is rounded, for .2 % of the price
_REACH = 45.0  # nats: what lies beyond so many scales and standard deviations is next to nothing
_PARTS = 1 << 10  # in which a loss is split over ticks and blocks
_UNKNOWN = 1e-12  # of a chance by Fourier transform: a hundred times what its sums lose
_SLACK = 1e-9  # what floats may lose of a chance, many times over
STORED = np.dtype("<i8")
"""In which noise is kept."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NoiseShape:
    """The parts whose sum is the noise of a window of `window_looks` looks.

    If `block_ticks` is 1 they are single ticks. Otherwise they are blocks of `block_ticks` ticks, and single ticks at
    the ends. `loss_share_of_ticks` is the ticks' fraction of the loss. `term_counts` are the possible numbers of ticks
    and of blocks in a sum.
    """

    window_looks: int
    block_ticks: int
    loss_share_of_ticks: Fraction
    term_counts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Edges:
    """The blocks of a window, from first to last (exclusive), and the single ticks at its ends."""

    first: int
    last: int
    ticks: tuple[int, ...]


def find_edges(shape: NoiseShape, tick: int) -> Edges:
    """Return the blocks and the single ticks that make up the window which ends with a tick.

    Ticks are numbered from 0. Negative ticks are those before the first look.

    >>> shape = NoiseShape(window_looks=7, block_ticks=3, loss_share_of_ticks=Fraction(1, 2), term_counts=((2, 3),))
    >>> find_edges(shape, 10)
    Edges(first=1, last=4, ticks=(3, 11))
    """
    begin, end = tick - shape.window_looks + 1, tick + 1
    if shape.block_ticks == 1:
        return Edges(0, 0, tuple(range(begin, end)))
    first, last = ((edge + shape.block_ticks // 2) // shape.block_ticks for edge in (begin, end))
    ends = [sorted(pair) for pair in ((begin, first * shape.block_ticks), (last * shape.block_ticks, end))]
    return Edges(first, last, tuple(place for low, high in ends for place in range(low, high)))


@lru_cache(maxsize=64)
def shape_window(window: int, *, fnr: float, fpr: float) -> NoiseShape:
    """Return the shape of noise with the least price, for windows of `window` looks.

    >>> [shape_window(window, fnr=0.05, fpr=0.1).block_ticks for window in (24, 168)]
    [1, 16]
    """
    price, block = price_block_noise(length=window, fnr=fnr, fpr=fpr)
    if block == 1 or price >= price_tick_noise(length=window, fnr=fnr, fpr=fpr):
        return NoiseShape(
            window_looks=window, block_ticks=1, loss_share_of_ticks=Fraction(1), term_counts=((window, 0),)
        )
    plain = NoiseShape(window_looks=window, block_ticks=block, loss_share_of_ticks=Fraction(1, 2), term_counts=())
    sums = {_count_terms(find_edges(plain, tick)) for tick in range(block)}
    terms = tuple(sorted(own for own in sums if not any(own != other and _covers_edges(other, own) for other in sums)))
    ticks, blocks = terms[-1]
    on_ticks, on_blocks = np.cbrt(max(ticks, 1)), np.cbrt(max(blocks, 1))
    part = Fraction(round(float(on_ticks / (on_ticks + on_blocks)) * _PARTS), _PARTS)
    return replace(plain, loss_share_of_ticks=part, term_counts=terms)


def estimate_state_size(shape: NoiseShape, *, functionals: int, keys: int) -> int:
    """Return the approximate size of a state in bytes, to within some dozen.

    A state has the noise of all ticks and blocks that a window may need.
    """
    at_a_look = find_edges(shape, 0)
    places = (
        shape.window_looks + 2 * (shape.block_ticks // 2) + (at_a_look.last - at_a_look.first) + (shape.block_ticks > 1)
    )
    return STORED.itemsize * functionals * keys * places


def _count_terms(edges: Edges) -> tuple[int, int]:
    return len(edges.ticks), edges.last - edges.first


def _covers_edges(other: tuple[int, int], own: tuple[int, int]) -> bool:
    return other[0] >= own[0] and other[1] >= own[1]


@dataclass(frozen=True, slots=True)
class Tails:
    """The probabilities that a window's noise is large, over all positions of a window's end within a block.

    Each draw is rounded to the nearest multiple of `step`, an odd number, so that the distribution of wide noise has
    few points. `rounding_error` bounds the error of the sum by this rounding. `upper_bounds[y]` is an upper bound, and
    `lower_bounds[y]` a lower bound, of the probability that the rounded sum is `y` steps or more.
    """

    step: int
    rounding_error: int
    upper_bounds: Floats
    lower_bounds: Floats

    def bound_reach_chance(self, distance: int) -> float:
        """Return the probability that the noise is at least `distance`, rounded up."""
        if distance <= 0:
            place = min(-((distance - 1 - self.rounding_error) // self.step), self.lower_bounds.size - 1)
            return min(1.0, 1.0 - float(self.lower_bounds[place]) + _SLACK)
        place = -((self.rounding_error - distance) // self.step)
        return (
            1.0
            if place < 1
            else min(1.0, float(self.upper_bounds[min(place, self.upper_bounds.size - 1)]) * (1.0 + _SLACK))
        )

    def find_upper_quantile(self, chance: float) -> int:
        """Return the least distance, 1 or more, that the noise reaches with probability `chance` at most."""
        enough = np.flatnonzero(self.upper_bounds[1:] * (1.0 + _SLACK) <= chance)
        if not enough.size:
            raise Unachievable("an error rate this small is beyond what the law of this noise is known to")
        return int(enough[0]) * self.step + self.rounding_error + 1


@lru_cache(maxsize=64)
def find_tails(shape: NoiseShape, rate: Fraction) -> Tails:
    """Return the distribution of the noise of a window.

    Noise is symmetric with one peak, so a sum of more terms has larger tails. Sums with smaller tails than others are
    left out.
    """
    rates = (float(rate * shape.loss_share_of_ticks), float(rate * (1 - shape.loss_share_of_ticks)))
    reach = max(_bound_noise(terms, rates) for terms in shape.term_counts)
    step = math.ceil(2.0 * reach / _MOST_POINTS) // 2 * 2 + 1
    points = 1 << math.ceil(math.log2(2.0 * reach / step + 2.0))
    angles = 2.0 * np.pi * np.arange(points // 2 + 1) / points
    laws = [_compute_transform(own, angles, step=step) if own else np.ones_like(angles) for own in rates]
    above, below = np.zeros(points // 2), np.ones(points // 2)
    for ticks, blocks in shape.term_counts:
        mass = np.maximum(np.fft.irfft(laws[0] ** ticks * laws[1] ** blocks, points)[: points // 2], 0.0)
        tails = np.cumsum(mass[::-1])[::-1]
        above, below = np.maximum(above, tails), np.minimum(below, tails)
    lost = max(sum(terms) for terms in shape.term_counts) * (step // 2)
    return Tails(step=step, rounding_error=lost, upper_bounds=above + _UNKNOWN, lower_bounds=below - _UNKNOWN)


def _bound_noise(terms: tuple[int, int], rates: tuple[float, float]) -> float:
    """Return a value that a sum of these ticks and blocks almost never exceeds."""
    kinds = [(count, own) for count, own in zip(terms, rates, strict=True) if count]
    spread = math.sqrt(sum(2.0 * count / own**2 for count, own in kinds))
    return _REACH / min(own for _, own in kinds) + 12.0 * spread


def _compute_transform(rate: float, angles: Floats, *, step: int) -> Floats:
    """Return the characteristic function of discrete Laplace noise that is rounded to multiples of `step`.

    The rounded law is a mass at zero, and on both sides masses that fall by the same factor from step to step.
    """
    outside = math.exp(-rate * (step // 2 + 1)) / (1.0 + math.exp(-rate))
    ratio, gap = math.exp(-rate * step), -math.expm1(-rate * step)
    turned = 2.0 * np.sin(angles / 2.0) ** 2  # 1 - cos, to the last digit
    sides = (gap - turned) / (gap**2 + 2.0 * ratio * turned)  # the sum over y >= 1 of ratio ** (y - 1) cos(y angle)
    found: Floats = 1.0 - 2.0 * outside + 2.0 * outside * gap * sides
    return found
