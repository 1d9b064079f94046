"""The exact law of a progressive test: at which look, and on which side, a noisy path leaves the undecided zone.

Drawn fine to coarse, gradual release is a walk with independent steps, `z_(j-1) = z_j + W`, and `W` is zero with a
known probability, else discrete Laplace of the coarser rate. So `g_j(z) = P(undecided at looks 1 .. j-1 | z_j = z)`
follows from `g_(j-1)` by one convolution over the zone of look `j - 1`. On nested zones every `g_j` is a sum of
exponentials, at most two more per look; the probabilities below are sums of geometric series, computed in closed form
at a cost that depends on the number of looks alone. Floating point; the caller keeps a margin of `MARGIN`.

| here | the proof |
|---|---|
| unchanged | probability that W = 0 |
| incoming | g_j |
| distance | S - c for `S > c`, d + 1 - S for `S <= d` |

Proof: docs/proofs/three_zone.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, expm1, inf
from typing import TypeAlias

MARGIN = 1e-9  # relative; rounding loses some 1e-13 (docs/proofs/three_zone.md)


@dataclass(frozen=True, slots=True)
class Zone:
    """One look: its rate, and the values `low <= z <= high` that it leaves undecided."""

    rate: float
    low: int
    high: int


_Wave: TypeAlias = tuple[float, float, int, float, float, float, float]
"""`weight * exp(slope * (z - reference))`, at most `weight` in size over the zone it is used on, as noise of a rate
above `abs(slope)` meets it: weight, slope, reference, that rate plus and minus the slope, `expm1` of these two's
negatives. A plain tuple: thousands are made for one question."""


def _wave(weight: float, slope: float, reference: int, rate: float) -> _Wave:
    rise, fall = slope + rate, rate - slope
    return weight, slope, reference, rise, fall, expm1(-rise), expm1(-fall)


@dataclass(frozen=True, slots=True)
class _Incoming:
    """`g_j`: a sum of waves on `low <= z <= high`, one wave below and one above, and the rate of look `j`."""

    rate: float
    low: float
    high: float
    inside: tuple[_Wave, ...]
    below: tuple[_Wave, ...]
    above: tuple[_Wave, ...]

    @staticmethod
    def first(rate: float) -> "_Incoming":
        """`g_1`, which is one everywhere."""
        everywhere = (_wave(1.0, 0.0, 0, rate),)
        return _Incoming(rate=rate, low=-inf, high=inf, inside=everywhere, below=(), above=())

    def at_most(self, last: float, *, distance: int) -> float:
        """`P(undecided before, and z_j <= last)` at a true distance."""
        rate = self.rate
        total = _sum_waves(self.below, rate=rate, distance=distance, first=-inf, last=min(last, self.low - 1))
        total += _sum_waves(self.inside, rate=rate, distance=distance, first=self.low, last=min(last, self.high))
        if last > self.high:
            total += _sum_waves(self.above, rate=rate, distance=distance, first=self.high + 1, last=last)
        return _normal(rate) * total

    def at_least(self, first: float, *, distance: int) -> float:
        """`P(undecided before, and z_j >= first)` at a true distance, accurate where it is tiny."""
        rate = self.rate
        total = _sum_waves(self.above, rate=rate, distance=distance, first=max(first, self.high + 1), last=inf)
        total += _sum_waves(self.inside, rate=rate, distance=distance, first=max(first, self.low), last=self.high)
        if first < self.low:
            total += _sum_waves(self.below, rate=rate, distance=distance, first=first, last=self.low - 1)
        return _normal(rate) * total

    def within(self, zone: Zone, *, distance: int) -> float:
        """`P(undecided before, and z_j in the zone)`, of a zone within this one, at a true distance."""
        rate = self.rate
        return _normal(rate) * _sum_waves(self.inside, rate=rate, distance=distance, first=zone.low, last=zone.high)

    def through(self, zone: Zone, *, finer: float) -> "_Incoming":
        """`g` of the next look, of rate `finer`, when `zone` (within this one) leaves the look undecided.

        Both edges' sums over the zone are written out: they share what they are made of.
        """
        rate, low, high = self.rate, zone.low, zone.high
        further = high - low
        same = chance_unchanged(coarse=rate, fine=finer)
        spread = (1.0 - same) * _normal(rate)
        waves: list[_Wave] = []
        left = right = below = above = 0.0
        for weight, slope, reference, rise, fall, rise_step, fall_step in self.inside:
            gain = -1.0 / rise_step + exp(-fall) / -fall_step
            waves.append(_wave(weight * (same + spread * gain), slope, reference, finer))
            at_low, at_high = exp(slope * (low - reference)), exp(slope * (high - reference))
            left -= weight * at_low / expm1(rise)
            right -= weight * at_high / expm1(fall)
            part = at_low
            if further:
                part += exp(slope * (low + 1 - reference) - rate) * (expm1(-fall * further) / fall_step)
            below += weight * part
            above += weight * (at_high * (expm1(-rise * (further + 1)) / rise_step))
        waves.append(_wave(spread * left, -rate, low, finer))
        waves.append(_wave(spread * right, rate, high, finer))
        return _Incoming(
            rate=finer,
            low=low,
            high=high,
            inside=tuple(waves),
            below=(_wave(spread * below, rate, low, finer),),
            above=(_wave(spread * above, -rate, high, finer),),
        )


@dataclass(frozen=True, slots=True)
class Crossing:
    """A progressive test's early looks and the rate of its last one, with the law of leaving them."""

    zones: tuple[Zone, ...]
    last_rate: float
    _incoming: tuple[_Incoming, ...]

    @staticmethod
    def of(zones: Sequence[Zone], *, last_rate: float) -> "Crossing":
        """Parameters: early looks, coarse to fine, each zone non-empty and within the one before.

        Raises:
            ValueError: zones that are not nested, or rates that do not rise.
        """
        rates = [zone.rate for zone in zones] + [last_rate]
        nested = all(wide.low <= narrow.low and narrow.high <= wide.high for wide, narrow in pairwise(zones))
        empty = any(zone.low > zone.high for zone in zones)
        if empty or not nested or any(coarse >= fine for coarse, fine in pairwise(rates)):
            raise ValueError("zones must shrink and rates must rise from look to look")
        incoming = [_Incoming.first(rates[0])]
        for place, zone in enumerate(zones):
            incoming.append(incoming[-1].through(zone, finer=rates[place + 1]))
        return Crossing(zones=tuple(zones), last_rate=last_rate, _incoming=tuple(incoming))

    def early_rejections(self, distance: int) -> tuple[float, ...]:
        """Per early look, the probability of being decided false there."""
        return tuple(
            incoming.at_most(zone.low - 1, distance=distance)
            for zone, incoming in zip(self.zones, self._incoming, strict=False)
        )

    def early_acceptances(self, distance: int) -> tuple[float, ...]:
        """Per early look, the probability of being decided true there."""
        return tuple(
            incoming.at_least(zone.high + 1, distance=distance)
            for zone, incoming in zip(self.zones, self._incoming, strict=False)
        )

    def last_at_most(self, value: int, distance: int) -> float:
        """The probability of being undecided at all early looks, with a last noisy value of at most `value`."""
        return self._incoming[-1].at_most(value, distance=distance)

    def last_at_least(self, value: int, distance: int) -> float:
        """The probability of being undecided at all early looks, with a last noisy value of at least `value`."""
        return self._incoming[-1].at_least(value, distance=distance)

    def chances_undecided(self, distance: int) -> tuple[float, ...]:
        """Per early look, the probability of still being undecided after it."""
        return tuple(
            incoming.within(zone, distance=distance) for zone, incoming in zip(self.zones, self._incoming, strict=False)
        )


def chance_unchanged(*, coarse: float, fine: float) -> float:
    """The probability that a coarser noise equals the finer one it is drawn from, apart from chance."""
    return (expm1(-coarse) / expm1(-fine)) ** 2 * exp(coarse - fine)


def _normal(rate: float) -> float:
    return -expm1(-rate) / (1.0 + exp(-rate))


def _sum_waves(waves: Sequence[_Wave], *, rate: float, distance: int, first: float, last: float) -> float:
    """The waves' sum over `first <= z <= last`, each `z` times `exp(-rate * abs(z - distance))`."""
    below = last if last < distance else distance
    above = first if first > distance else distance + 1
    terms_below, terms_above = below - first + 1, last - above + 1
    total = 0.0
    for weight, slope, reference, rise, fall, rise_step, fall_step in waves:
        part = 0.0
        if terms_below > 0:
            part += exp(slope * (below - reference) - rate * (distance - below)) * (
                expm1(-rise * terms_below) / rise_step
            )
        if terms_above > 0:
            part += exp(slope * (above - reference) - rate * (above - distance)) * (
                expm1(-fall * terms_above) / fall_step
            )
        total += weight * part
    return total
