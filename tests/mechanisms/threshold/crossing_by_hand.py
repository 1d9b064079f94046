"""An oracle for tests: what happens to one value on its way through a chain of noises, by exact enumeration in floats.

The path from coarse to fine is a Markov chain; one step of it is a convolution with the increment's law, two recursions
over the support. Independent of the samplers and of how mechanisms calibrate.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_SPREADS = 40.0


def support(coarsest: float) -> npt.NDArray[np.int64]:
    """Noise values outside have probability below 1e-17."""
    reach = math.ceil(_SPREADS / coarsest)
    return np.arange(-reach, reach + 1)


def laplace(rate: float, noise: npt.NDArray[np.int64]) -> Values:
    a = math.exp(-rate)
    return np.asarray((1 - a) / (1 + a) * np.exp(-rate * np.abs(noise)))


def spread(weights: Values, coarse: float, fine: float) -> Values:
    """`weights` convolved with the law of the increment between the two levels."""
    a1, a2 = math.exp(-coarse), math.exp(-fine)
    stays = ((1 - a1) / (1 - a2)) ** 2 * a2 / a1
    forth = lfilter([1.0], [1.0, -a1], weights)
    back = lfilter([1.0], [1.0, -a1], weights[::-1])[::-1]
    return np.asarray(stays * weights + (1 - stays) * (1 - a1) / (1 + a1) * (forth + back - weights))


def ratio(weights: Values, law: Values) -> Values:
    return np.divide(weights, law, out=np.zeros_like(weights), where=law > 1e-250)


def outcomes(
    rates: Sequence[float], zones: Callable[[int, npt.NDArray[np.int64]], tuple[Flags, Flags]]
) -> list[tuple[float, float]]:
    """Per look, the chances of being rejected and of being accepted at it.

    `zones(look, noise)` tells which noise values reject and which accept.
    """
    noise = support(rates[0])
    law = laplace(rates[0], noise)
    alive, found = law, []
    for look, rate in enumerate(rates):
        if look:
            fine = laplace(rate, noise)
            alive, law = fine * spread(ratio(alive, law), rates[look - 1], rate), fine
        reject, accept = zones(look, noise)
        found.append((float(alive[reject].sum()), float(alive[accept].sum())))
        alive = np.where(reject | accept, 0.0, alive)
    return found


def worst_rule(
    levels: Sequence[float], *, share: float, fine_steps: int, carried: bool, tolerance: int | None = None
) -> float:
    """The greatest chance that DPPWLM errs on a key, over all rules that see its noise.

    The error is a rejection at distance 1 or, where a tolerance is given, an acceptance at minus the tolerance. Nodes
    are the candidate levels `(interval, step)`; the value of a node is the chance of a later error, given the noise
    there.
    """
    last = len(levels) - 1
    noise = support(levels[0])
    nodes = [(0, fine_steps), *((i, s) for i in range(1, last + 1) for s in range(1, fine_steps + 1))]

    def rate(node: tuple[int, int]) -> float:
        high, low = levels[node[0]], levels[max(0, node[0] - 1)]
        return low + (high - low) * node[1] / fine_steps if node[0] else high

    def zones(node: tuple[int, int], parts: int) -> tuple[Flags, Flags]:
        shift = -math.log(2 * share * (parts if carried else 1) / len(levels)) / rate(node)
        distance = 1 if tolerance is None else -tolerance
        rejected = np.asarray(noise + distance <= -math.ceil(shift))
        accepted = ~rejected if node == (last, fine_steps) else noise + distance >= math.floor(shift) + 1
        return rejected if tolerance is None else accepted, ~rejected & ~accepted

    later: dict[tuple[int, int], Values] = {}
    for node in reversed(nodes):
        best = np.zeros(noise.size)
        choices = {other: other[0] - node[0] for other in nodes if other[0] > node[0]}
        if not choices and node[1] < fine_steps:
            choices = {(last, fine_steps): 1}
        for other, parts in choices.items():
            erred, open_ = zones(other, parts)
            loss = laplace(rate(other), noise) * (erred + open_ * later[other])
            best = np.maximum(best, ratio(spread(loss, rate(node), rate(other)), laplace(rate(node), noise)))
        later[node] = best
    erred, open_ = zones(nodes[0], 1)
    return float((laplace(levels[0], noise) * (erred + open_ * later[nodes[0]])).sum())
