"""The exact law of a progressive test: at which look, and on which side, a noisy path leaves the undecided zone.

Drawn fine to coarse, gradual release is a walk with independent steps, `z_(j-1) = z_j + W`, and `W` is zero with a
known probability, else discrete Laplace of the coarser rate. So `g_j(z) = P(undecided at looks 1 .. j-1 | z_j = z)`
follows from `g_(j-1)` by one convolution over the zone of look `j - 1`. On nested zones every `g_j` is a sum of
exponentials, at most two more per look; the probabilities below are sums of geometric series, computed in closed form
at a cost that depends on the number of looks alone. Floating point; the caller keeps a margin of `MARGIN`.

| here | MATHS M5, M8 |
|---|---|
| unchanged | probability that W = 0 |
| incoming | g_j |
| distance | S - c for `S > c`, d + 1 - S for `S <= d` |

References: MATHS M5, M8. Proof: docs/proofs/three_zone.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, expm1

MARGIN = 1e-9


@dataclass(frozen=True, slots=True)
class Zone:
    """One look: its rate, and the values `low <= z <= high` that it leaves undecided."""

    rate: float
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class _Wave:
    """`weight * exp(slope * (z - reference))`; at most `weight` in size over the zone it is used on."""

    weight: float
    slope: float
    reference: int

    def summed(self, *, rate: float, distance: int, first: float, last: float) -> float:
        """The sum over `first <= z <= last` of the wave times `exp(-rate * abs(z - distance))`, `abs(slope) < rate`."""
        return _summed((self,), rate=rate, distance=distance, first=first, last=last)


@dataclass(frozen=True, slots=True)
class _Incoming:
    """`g_j`: a sum of waves on `low <= z <= high`, one wave below and one above."""

    low: float
    high: float
    inside: tuple[_Wave, ...]
    below: _Wave
    above: _Wave

    def at_most(self, last: float, *, rate: float, distance: int) -> float:
        """`P(undecided before, and z_j <= last)` at a true distance."""
        total = self.below.summed(rate=rate, distance=distance, first=-math.inf, last=min(last, self.low - 1))
        total += _summed(self.inside, rate=rate, distance=distance, first=self.low, last=min(last, self.high))
        if last > self.high:
            total += self.above.summed(rate=rate, distance=distance, first=self.high + 1, last=last)
        return _normal(rate) * total

    def at_least(self, first: float, *, rate: float, distance: int) -> float:
        """`P(undecided before, and z_j >= first)` at a true distance, accurate where it is tiny."""
        total = self.above.summed(rate=rate, distance=distance, first=max(first, self.high + 1), last=math.inf)
        total += _summed(self.inside, rate=rate, distance=distance, first=max(first, self.low), last=self.high)
        if first < self.low:
            total += self.below.summed(rate=rate, distance=distance, first=first, last=self.low - 1)
        return _normal(rate) * total

    def through(self, zone: Zone, *, finer: float) -> "_Incoming":
        """`g` of the next look, of rate `finer`, when `zone` (within this one) leaves the look undecided."""
        rate = zone.rate
        same = unchanged(coarse=rate, fine=finer)
        spread = (1.0 - same) * _normal(rate)
        waves: list[_Wave] = []
        left = right = 0.0
        for wave in self.inside:
            rise, fall = wave.slope + rate, rate - wave.slope
            gain = -1.0 / math.expm1(-rise) + math.exp(-fall) / -math.expm1(-fall)
            waves.append(_Wave(weight=wave.weight * (same + spread * gain), slope=wave.slope, reference=wave.reference))
            left -= wave.weight * math.exp(wave.slope * (zone.low - wave.reference)) / math.expm1(rise)
            right -= wave.weight * math.exp(wave.slope * (zone.high - wave.reference)) / math.expm1(fall)
        waves.append(_Wave(weight=spread * left, slope=-rate, reference=zone.low))
        waves.append(_Wave(weight=spread * right, slope=rate, reference=zone.high))

        def leaking(edge: int) -> float:
            return spread * _summed(self.inside, rate=rate, distance=edge, first=zone.low, last=zone.high)

        return _Incoming(
            low=zone.low,
            high=zone.high,
            inside=tuple(waves),
            below=_Wave(weight=leaking(zone.low), slope=rate, reference=zone.low),
            above=_Wave(weight=leaking(zone.high), slope=-rate, reference=zone.high),
        )


_START = _Incoming(
    low=-math.inf,
    high=math.inf,
    inside=(_Wave(weight=1.0, slope=0.0, reference=0),),
    below=_Wave(weight=0.0, slope=0.0, reference=0),
    above=_Wave(weight=0.0, slope=0.0, reference=0),
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
        incoming = [_START]
        for place, zone in enumerate(zones):
            incoming.append(incoming[-1].through(zone, finer=rates[place + 1]))
        return Crossing(zones=tuple(zones), last_rate=last_rate, _incoming=tuple(incoming))

    def early_rejections(self, distance: int) -> tuple[float, ...]:
        """Per early look, the probability of being decided false there."""
        return tuple(
            incoming.at_most(zone.low - 1, rate=zone.rate, distance=distance)
            for zone, incoming in zip(self.zones, self._incoming, strict=False)
        )

    def early_acceptances(self, distance: int) -> tuple[float, ...]:
        """Per early look, the probability of being decided true there."""
        return tuple(
            incoming.at_least(zone.high + 1, rate=zone.rate, distance=distance)
            for zone, incoming in zip(self.zones, self._incoming, strict=False)
        )

    def last_at_most(self, value: int, distance: int) -> float:
        """The probability of being undecided at all early looks, with a last noisy value of at most `value`."""
        return self._incoming[-1].at_most(value, rate=self.last_rate, distance=distance)

    def last_at_least(self, value: int, distance: int) -> float:
        """The probability of being undecided at all early looks, with a last noisy value of at least `value`."""
        return self._incoming[-1].at_least(value, rate=self.last_rate, distance=distance)

    def undecided(self, distance: int) -> tuple[float, ...]:
        """Per early look, the probability of still being undecided after it."""
        return tuple(
            _normal(zone.rate)
            * _summed(incoming.inside, rate=zone.rate, distance=distance, first=zone.low, last=zone.high)
            for zone, incoming in zip(self.zones, self._incoming, strict=False)
        )


def unchanged(*, coarse: float, fine: float) -> float:
    """The probability that a coarser noise equals the finer one it is drawn from, apart from chance."""
    return (math.expm1(-coarse) / math.expm1(-fine)) ** 2 * math.exp(coarse - fine)


def _normal(rate: float) -> float:
    return -math.expm1(-rate) / (1.0 + math.exp(-rate))


def _summed(waves: Sequence[_Wave], *, rate: float, distance: int, first: float, last: float) -> float:
    """The sum of several waves' `summed`."""
    below = last if last < distance else distance
    above = first if first > distance else distance + 1
    terms_below, terms_above = below - first + 1, last - above + 1
    total = 0.0
    for wave in waves:
        part = 0.0
        if terms_below > 0:
            fall = wave.slope + rate
            exponent = wave.slope * (below - wave.reference) - rate * (distance - below)
            part += exp(exponent) * (expm1(-fall * terms_below) / expm1(-fall))
        if terms_above > 0:
            fall = rate - wave.slope
            exponent = wave.slope * (above - wave.reference) - rate * (above - distance)
            part += exp(exponent) * (expm1(-fall * terms_above) / expm1(-fall))
        total += wave.weight * part
    return total
