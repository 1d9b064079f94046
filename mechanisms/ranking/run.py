"""The run of a ranking on noisy values, coarse to fine, until each key's place is settled or beyond the limit.

At each look the keys whose order is open are in blocks, one behind the other. A block takes consecutive places. The
look sorts the keys of a block by their noisy values. A key further below the last place within the limit than the
look's gap is dropped. If two neighbours differ by more than the gap, the block is split between them. A block of one
key is settled, and so is a block beyond the limit. Only keys of the other blocks are looked at again.

Proof: docs/proofs/ranking.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms.formula import Booleans, Integers
from mechanisms.noise.gradual_release import refine_noise
from mechanisms.protocol import Epsilons, Levels, Noise, NoisePath
from mechanisms.ranking.calibration import RankingCalibration, RankingLook
from mechanisms.threshold.one_shot import round_up_to_float


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The answer of a ranking and its losses, ex post.

    If values are read off several cells, `epsilon` is the worst case of every cell.

    `ranked_keys` has the indices of the returned keys in their order, partition by partition. `places` has the place
    of each in its partition, counted from 1. `epsilon` is each key's loss, zero if no look was taken at it. `path` has
    all revealed values, or None if the caller wanted none or none were revealed.
    """

    ranked_keys: Integers
    places: Integers
    epsilon: Epsilons
    path: NoisePath | None


def rank_keys(
    calibration: RankingCalibration,
    aggregates: Integers,
    *,
    taking_part: Booleans | None,
    keeps_path: bool,
    noise: Noise,
    partition: Integers | None = None,
) -> Ranking:
    """Return the first `limit` keys of each partition in their order, or all that take part if they are fewer.

    Guarantee: the calibration's rates among the keys that take part. When one key's value changes by the sensitivity,
    the probability of everything revealed, `epsilon` included, changes by a factor of at most `exp(epsilon)`. When
    several values change, it changes by at most the product of their factors (docs/proofs/ranking.md).

    Parameters:
        aggregates: exact values, int64, shape (keys,), within +-2**62.
        taking_part: the keys that are ranked, None for all. The mask is public, or does not depend on this noise. The
            values of other keys are not read.
        partition: the number of each key's partition, counted from 0, public; None where there is one.
        keeps_path: True to return the noisy values. Then all of a unit's keys are charged (`bound_unit_loss`).

    Raises:
        ValueError: aggregates or a mask have another number of keys.
    """
    task = calibration.task
    size = task.keys * task.partitions
    if aggregates.shape != (size,) or (taking_part is not None and taking_part.shape != (size,)):
        raise ValueError("a ranking is of the keys that it was calibrated for")
    members = np.arange(size) if taking_part is None else np.flatnonzero(taking_part)
    rates = calibration.revealed_rates
    values = _NoisyValues(aggregates, rates, noise=noise)
    if partition is None or task.partitions == 1:
        ranked = rank_by_levels(calibration, members, values.reveal_level)
        places = np.arange(1, ranked.size + 1)
    else:
        ranked, places = _place_in_partitions(calibration, members, partition, values.reveal_level)
    losses = np.array([0.0, *(round_up_to_float(rate * task.sensitivity) for rate in rates)])
    shared = None if task.moved is None else np.full(size, calibration.worst_case_epsilon)
    return Ranking(
        ranked_keys=ranked,
        places=places,
        epsilon=losses[values.reached] if shared is None else shared,
        path=values.make_path() if keeps_path and values.reached.any() else None,
    )


def rank_by_levels(
    calibration: RankingCalibration, members: Integers, reveal: Callable[[int, Integers], Integers]
) -> Integers:
    """Return the first keys in their order, from revealed values alone.

    Parameters:
        members: the keys that take part, in the order of the key domain.
        reveal: returns the noisy values of some keys at a level. It is called for one level after the other, each time
            for some of the keys of the level before.
    """
    limit, descending = calibration.task.limit, calibration.task.descending
    blocks = [_Block(first_place=0, members=members)]
    for level, look in enumerate((*calibration.looks, None)):
        blocks, before = [], blocks
        for block in before:
            if block.is_open(limit):
                noisy = reveal(level, block.members)
                blocks += block.split_by_look(noisy if descending else -noisy, limit=limit, look=look)
            else:
                blocks.append(block)
    return np.concatenate([block.members for block in blocks])[:limit]


def _place_in_partitions(
    calibration: RankingCalibration, members: Integers, partition: Integers, reveal: Callable[[int, Integers], Integers]
) -> tuple[Integers, Integers]:
    """Return the first keys of each partition in their order, with their places in their partitions.

    With one look all partitions are sorted at once. No look is taken at a key that is alone in its partition.
    """
    within = partition[members]
    if calibration.looks:
        split = [members[within == number] for number in np.unique(within)]
        ranked = np.concatenate([rank_by_levels(calibration, one, reveal) for one in split] or [members])
        return ranked, number_within_partition(partition[ranked])
    noisy = np.zeros(members.size, dtype=np.int64)
    is_open = np.bincount(within, minlength=calibration.task.partitions)[within] > 1
    if calibration.task.limit and is_open.any():
        noisy[is_open] = reveal(0, members[is_open])
    order = np.lexsort((-noisy if calibration.task.descending else noisy, within))
    places = number_within_partition(within[order])
    kept = places <= calibration.task.limit
    return members[order][kept], places[kept]


def number_within_partition(partition: Integers) -> Integers:
    """Count the elements of each partition from 1. Elements of one partition are adjacent.

    >>> number_within_partition(np.array([4, 4, 4, 0, 2, 2])).tolist()
    [1, 2, 3, 1, 1, 2]
    """
    starts = np.flatnonzero(np.diff(partition, prepend=-1))
    lengths = np.diff(starts, append=partition.size)
    numbers: Integers = np.arange(1, partition.size + 1) - np.repeat(starts, lengths)
    return numbers


class _NoisyValues:
    """The noisy values of one run, drawn when they are needed, and the number of levels that each key has revealed."""

    def __init__(self, aggregates: Integers, rates: tuple[Fraction, ...], *, noise: Noise) -> None:
        self.reached: Levels = np.zeros(aggregates.size, dtype=np.int8)
        self._aggregates = aggregates
        self._rates = rates
        self._noise = noise
        self._noisy: list[Integers] = []

    def reveal_level(self, level: int, where: Integers) -> Integers:
        """Reveal the values of some keys at a level. The keys have revealed all coarser levels."""
        while len(self._noisy) <= level:
            self._noisy.append(np.zeros(self.reached.size, dtype=np.int64))
        exact = self._aggregates[where]
        if level == 0:
            drawn = self._noise.draw_discrete_laplace(rate=self._rates[0], size=where.size)
        else:
            coarse, fine = self._rates[level - 1 : level + 1]
            drawn = refine_noise(self._noisy[level - 1][where] - exact, coarse=coarse, fine=fine, noise=self._noise)
        noisy: Integers = exact + drawn
        self._noisy[level][where] = noisy
        self.reached[where] = level + 1
        return noisy

    def make_path(self) -> NoisePath:
        """Return all revealed values as a path."""
        never = [np.zeros(self.reached.size, dtype=np.int64)] * (len(self._rates) - len(self._noisy))
        return NoisePath(rates=self._rates, values=np.array([*self._noisy, *never]), reached=self.reached)


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Keys that take the places from `first_place` on.

    Their order is open, and they are listed in that of the key domain.
    """

    first_place: int
    members: Integers

    def is_open(self, limit: int) -> bool:
        """Return True if the order of the keys matters and is not known."""
        return self.members.size > 1 and self.first_place < limit

    def split_by_look(self, noisy: Integers, *, limit: int, look: RankingLook | None) -> "Iterator[_Block]":
        """Yield the blocks that a look leaves. The last look, which is None, leaves single keys.

        Parameters:
            noisy: the keys' noisy values, in the order of the keys. The greatest is placed first, and ties keep their
                order.
        """
        order = np.argsort(-noisy, kind="stable")
        members, ordered = self.members[order], noisy[order]
        gap, places = -1 if look is None else look.settled_gap, limit - self.first_place
        if look is not None and places < members.size:
            kept = int(np.count_nonzero(ordered >= ordered[places - 1] - gap))
            members, ordered = members[:kept], ordered[:kept]
        starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] + gap + 1) < -gap)
        for start, stop in zip(starts, (*starts[1:], members.size), strict=True):
            yield _Block(first_place=self.first_place + int(start), members=np.sort(members[start:stop]))
