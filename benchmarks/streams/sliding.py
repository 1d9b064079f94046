"""The values that Keyhole's sliding noise compares with thresholds: sums of windows, each with the noise of the ticks
and blocks that it is put together from, drawn once and shared by all windows.

The product shows who is in the answer and never these values; its own draws and states are those of
`mechanisms/standing/sliding_noise.py`, from which the shape of a window is taken.
"""

from fractions import Fraction

import numpy as np

from benchmarks.streams.measures import Floats
from mechanisms.formula import Integers
from mechanisms.standing.window_noise import find_edges, shape_window
from tests.seeded_noise import SeededNoise

FNR, FPR = 0.05, 0.1  # of the contract for which a window's shape is the cheapest


def choose_block(window: int) -> int:
    """How many ticks a block has; 1 where noise on ticks alone is cheaper."""
    return shape_window(window, fnr=FNR, fpr=FPR).block_ticks


def release_window_sums(counts: Integers, window: int, *, epsilon: Fraction, runs: int, seed: int) -> Floats:
    """At the ticks at which the window is full, shape (ticks - window + 1, runs); one event loses epsilon in all."""
    shape, noise = shape_window(window, fnr=FNR, fpr=FPR), SeededNoise(seed)
    ends = np.arange(window, counts.size + 1)
    begins = ends - window
    total = np.concatenate(([0], np.cumsum(counts)))
    exact = (total[ends] - total[begins])[:, np.newaxis]

    def draw(rate: Fraction, places: int) -> Integers:
        drawn = noise.draw_discrete_laplace(rate=rate, size=places * runs).reshape(places, runs)
        return np.concatenate((np.zeros((1, runs), dtype=np.int64), np.cumsum(drawn, axis=0)))

    on_ticks = draw(
        epsilon * shape.loss_share_of_ticks, counts.size + shape.block_ticks
    )  # half a block may reach beyond the end
    if shape.block_ticks == 1:
        return np.asarray(exact + on_ticks[ends] - on_ticks[begins], dtype=np.float64)
    edges = [find_edges(shape, end - 1) for end in ends.tolist()]
    first, last = (np.array(found) for found in zip(*((one.first, one.last) for one in edges), strict=True))
    on_blocks = draw(epsilon * (1 - shape.loss_share_of_ticks), int(last.max()))
    # ticks up to the first block are added, or taken away where it begins before the window; likewise at the end
    near = on_ticks[first * shape.block_ticks] - on_ticks[begins] + on_ticks[ends] - on_ticks[last * shape.block_ticks]
    return np.asarray(exact + near + on_blocks[last] - on_blocks[first], dtype=np.float64)
