"""The exact law of a progressive test: the look and the side at which a noisy path leaves the undecided zone.

Drawn fine to coarse, gradual release is a walk with independent steps, `z_(j-1) = z_j + W`, and `W` is zero with a
known probability, else discrete Laplace of the coarser rate. So `g_j(z) = P(undecided at looks 1 .. j-1 | z_j = z)`
follows from `g_(j-1)` by one convolution over the zone of look `j - 1`. On nested zones every `g_j` is a sum of
exponentials, with at most two more for each look. The probabilities below are sums of geometric series in closed form.
Their cost depends only on the number of looks. They are computed in floating point, so callers keep a margin of
`MARGIN`.

| here | the proof |
|---|---|
| unchanged | probability that W = 0 |
| incoming | g_j |
| distance | S - c for `S > c`, d + 1 - S for `S <= d` |

Proof: docs/proofs/three_zone.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1, inf
from typing import NamedTuple, TypeAlias

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


def _make_wave(weight: float, slope: float, reference: int, rate: float) -> _Wave:
    rise, fall = slope + rate, rate - slope
    return weight, slope, reference, rise, fall, expm1(-rise), expm1(-fall)


class _Incoming(NamedTuple):
    """The function `g_j` on `low <= z <= high`: a sum of waves, one below and one above.

    `rate` is that of look `j`, and `normal` is the probability that noise of this rate is zero.
    """

    rate: float
    normal: float
    low: float
    high: float
    inside: tuple[_Wave, ...]
    below: tuple[_Wave, ...]
    above: tuple[_Wave, ...]

    @staticmethod
    def make_first(rate: float) -> "_Incoming":
        """Return `g_1`, which is one everywhere."""
        everywhere = (_make_wave(1.0, 0.0, 0, rate),)
        return _Incoming(rate, _compute_mass_at_zero(rate), -inf, inf, everywhere, (), ())

    def compute_at_most(self, last: float, *, distance: int) -> float:
        """Return `P(undecided before, and z_j <= last)` for a true distance."""
        rate, low, high = self.rate, self.low, self.high
        total = _sum_waves(self.below, rate, distance, -inf, last if last < low else low - 1)
        if last >= low:
            total += _sum_waves(self.inside, rate, distance, low, last if last < high else high)
        if last > high:
            total += _sum_waves(self.above, rate, distance, high + 1, last)
        return self.normal * total

    def compute_at_least(self, first: float, *, distance: int) -> float:
        """Return `P(undecided before, and z_j >= first)` for a true distance, accurate even if it is tiny."""
        rate, low, high = self.rate, self.low, self.high
        total = _sum_waves(self.above, rate, distance, first if first > high else high + 1, inf)
        if first <= high:
            total += _sum_waves(self.inside, rate, distance, first if first > low else low, high)
        if first < low:
            total += _sum_waves(self.below, rate, distance, first, low - 1)
        return self.normal * total

    def compute_within(self, zone: Zone, *, distance: int) -> float:
        """Return `P(undecided before, and z_j in the zone)` for a true distance and a zone within this one."""
        return self.normal * _sum_waves(self.inside, self.rate, distance, zone.low, zone.high)

    def pass_zone(self, zone: Zone, *, finer: float) -> "_Incoming":
        """Return `g` of the next look, of rate `finer`, if values in `zone`, within this one, stay undecided.

        The sums at both edges of the zone and the inner waves are computed in one loop, since they share terms.
        """
        rate, low, high = self.rate, zone.low, zone.high
        further = high - low
        same = compute_unchanged_chance(coarse=rate, fine=finer)
        spread = (1.0 - same) * self.normal
        waves: list[_Wave] = []
        left = right = below = above = 0.0
        for weight, slope, reference, rise, fall, rise_step, fall_step in self.inside:
            gain = -1.0 / rise_step + exp(-fall) / -fall_step
            rise_on, fall_on = slope + finer, finer - slope
            waves.append(
                (weight * (same + spread * gain), slope, reference, rise_on, fall_on, expm1(-rise_on), expm1(-fall_on))
            )
            at_low, at_high = exp(slope * (low - reference)), exp(slope * (high - reference))
            left -= weight * at_low / expm1(rise)
            right -= weight * at_high / expm1(fall)
            part = at_low
            if further:
                part += exp(slope * (low + 1 - reference) - rate) * (expm1(-fall * further) / fall_step)
            below += weight * part
            above += weight * (at_high * (expm1(-rise * (further + 1)) / rise_step))
        waves.append(_make_wave(spread * left, -rate, low, finer))
        waves.append(_make_wave(spread * right, rate, high, finer))
        outside = (_make_wave(spread * below, rate, low, finer),), (_make_wave(spread * above, -rate, high, finer),)
        return _Incoming(finer, _compute_mass_at_zero(finer), low, high, tuple(waves), *outside)


@dataclass(frozen=True, slots=True)
class Crossing:
    """The distribution of the look that decides a literal in a progressive test."""

    zones: tuple[Zone, ...]
    last_rate: float
    _incoming: tuple[_Incoming, ...]

    @staticmethod
    def from_zones(zones: Sequence[Zone], *, last_rate: float) -> "Crossing":
        """Return the distribution of the deciding look, for early looks from coarse to fine.

        Each zone is non-empty and within the zone before.

        Raises:
            ValueError: zones that are not nested, or rates that do not rise.
        """
        rates = [zone.rate for zone in zones] + [last_rate]
        incoming = [_Incoming.make_first(rates[0])]
        for zone, finer in zip(zones, rates[1:], strict=True):
            before = incoming[-1]
            if not (before.low <= zone.low <= zone.high <= before.high and before.rate < finer):
                raise ValueError("zones must shrink and rates must rise from look to look")
            incoming.append(before.pass_zone(zone, finer=finer))
        return Crossing(zones=tuple(zones), last_rate=last_rate, _incoming=tuple(incoming))

    def list_early_rejections(self, distance: int) -> tuple[float, ...]:
        """Return for each early look the probability that it decides the literal false."""
        return tuple(
            incoming.compute_at_most(zone.low - 1, distance=distance)
            for zone, incoming in zip(self.zones, self._incoming, strict=False)
        )

    def list_early_acceptances(self, distance: int) -> tuple[float, ...]:
        """Return for each early look the probability that it decides the literal true."""
        return tuple(
            incoming.compute_at_least(zone.high + 1, distance=distance)
            for zone, incoming in zip(self.zones, self._incoming, strict=False)
        )

    def compute_probability_last_at_most(self, value: int, distance: int) -> float:
        """Return the probability that no early look decides and the last noisy value is at most `value`."""
        return self._incoming[-1].compute_at_most(value, distance=distance)

    def compute_probability_last_at_least(self, value: int, distance: int) -> float:
        """Return the probability that no early look decides and the last noisy value is at least `value`."""
        return self._incoming[-1].compute_at_least(value, distance=distance)

    def list_undecided_chances(self, distance: int) -> tuple[float, ...]:
        """Return for each early look the probability that the literal is still undecided after it."""
        return tuple(
            incoming.compute_within(zone, distance=distance)
            for zone, incoming in zip(self.zones, self._incoming, strict=False)
        )


def compute_unchanged_chance(*, coarse: float, fine: float) -> float:
    """Return the probability that coarser noise of a gradual release equals the finer noise."""
    return (expm1(-coarse) / expm1(-fine)) ** 2 * exp(coarse - fine)


def _compute_mass_at_zero(rate: float) -> float:
    return -expm1(-rate) / (1.0 + exp(-rate))


def _sum_waves(waves: Sequence[_Wave], rate: float, distance: int, first: float, last: float) -> float:
    """Return the waves' sum over `first <= z <= last`, each `z` times `exp(-rate * abs(z - distance))`."""
    total = 0.0
    if last <= distance:
        terms, fallen = last - first + 1, rate * (distance - last)
        if terms > 0:
            for weight, slope, reference, rise, _, rise_step, _ in waves:
                total += weight * (exp(slope * (last - reference) - fallen) * (expm1(-rise * terms) / rise_step))
        return total
    if first > distance:
        terms, fallen = last - first + 1, rate * (first - distance)
        if terms > 0:
            for weight, slope, reference, _, fall, _, fall_step in waves:
                total += weight * (exp(slope * (first - reference) - fallen) * (expm1(-fall * terms) / fall_step))
        return total
    below, above = distance - first + 1, last - distance
    for weight, slope, reference, rise, fall, rise_step, fall_step in waves:
        part = exp(slope * (distance - reference)) * (expm1(-rise * below) / rise_step)
        part += exp(slope * (distance + 1 - reference) - rate) * (expm1(-fall * above) / fall_step)
        total += weight * part
    return total
