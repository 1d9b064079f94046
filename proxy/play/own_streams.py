"""The owner's own table in the playground: its counts by place and time, and each way's accuracy on them.

The counts are exact and private, so only their owner may see them. Noise is drawn again for every request and charged
to nobody. This is correct only if the owner shows none of it to others.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.protocol import Noise
from proxy.play.afford import find_affordable_test
from proxy.play.floor_plan import Counts
from proxy.play.key_sets import decide_thresholds
from proxy.play.published import Publishing, Values, publish_streams

OWN_WAYS = (
    Publishing.TICK_LAPLACE,
    Publishing.PEGASUS,
    Publishing.PEGASUS_SMOOTH,
    Publishing.ZEROS,
    Publishing.KEYHOLE,
)
"""Those that need no floor plan, and nothing of how long anybody stays."""

MOST_PLACES, MOST_TIMES = 1_000, 5_000
"""Of one table: what a list on a page holds, and what PeGaSus groups in a second."""

_TICKS_DRAWN = 4_000  # of a way, over all draws: errors of few times are means over many draws, in some seconds
_MOST_DRAWS = 20  # beyond, errors stand still to the eye

Passed = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class OwnStreams:
    """The true counts `counts`, of shape (places, times).

    They count rows or privacy units, as `counted` says. A unit is in at most `groups` groups. None means that rows are
    counted, each of which is in one group.
    """

    table: str
    counted: str
    groups: int | None
    place: str
    time: str
    places: tuple[str, ...]
    times: tuple[str, ...]
    counts: Counts


@dataclass(frozen=True, slots=True, eq=False)
class PublishedPlace:
    """The published view of one place: its counts, or the times that are keys."""

    published: Values | None
    keys: Passed | None


@dataclass(frozen=True, slots=True)
class WayError:
    """The mean error of a reader who takes a place's published values as true, over `draws` draws of noise.

    `mean_error` is the error of a count, None if there are no counts. The other fields are numbers of times (hours,
    days). `missed` times are above the threshold and were not found. `within_tolerance` and `beyond_tolerance` times
    were found but are not above it: `within_tolerance` times are within the tolerance below it, and `beyond_tolerance`
    ones lower.
    """

    way: Publishing
    mean_error: float | None
    missed: float
    within_tolerance: float
    beyond_tolerance: float
    draws: int


@dataclass(frozen=True, slots=True)
class WayComparison:
    """The errors of every way on one place's counts. `tolerance` is Keyhole's, and decides `slack` for all ways."""

    tolerance: int
    ways: tuple[WayError, ...]


def publish_place(
    counts: Counts, way: Publishing, *, epsilon: Fraction, threshold: int, noise: Noise
) -> PublishedPlace:
    """Return one place's counts, of shape (times,), as a way publishes them.

    Parameters:
        epsilon: what the presence of one row or unit at one place and time loses.
        threshold: Keyhole answers at which times the count is greater.

    Raises:
        ValueError: an epsilon that is too small for any tolerance, or a way that needs a floor plan.
    """
    if way not in OWN_WAYS:
        raise ValueError("a table of one's own is published by a way that needs no floor plan")
    if way is Publishing.KEYHOLE:
        return PublishedPlace(None, decide_thresholds(find_affordable_test(epsilon), counts, threshold, noise))
    rate = epsilon if way.has_epsilon else None
    return PublishedPlace(publish_streams(counts[None, :], way, rate, noise=noise)[0], None)


def compare_ways(counts: Counts, *, epsilon: Fraction, threshold: int, noise: Noise) -> WayComparison:
    """Run every way of publishing on one place's counts, at one epsilon. Raise as `publish_place`."""
    tolerance = find_affordable_test(epsilon).tolerance
    return WayComparison(
        tolerance,
        tuple(
            _measure_way(counts, way, tolerance, epsilon=epsilon, threshold=threshold, noise=noise) for way in OWN_WAYS
        ),
    )


def _measure_way(
    counts: Counts, way: Publishing, tolerance: int, *, epsilon: Fraction, threshold: int, noise: Noise
) -> WayError:
    draws = min(_MOST_DRAWS, max(1, _TICKS_DRAWN // counts.size))
    above, beyond = counts > threshold, counts <= threshold - tolerance
    errors, sums = [], np.zeros(3)
    for _ in range(draws):
        seen = publish_place(counts, way, epsilon=epsilon, threshold=threshold, noise=noise)
        if seen.keys is not None:
            taken = seen.keys
        else:
            assert seen.published is not None, "a way shows counts or keys"
            taken = seen.published > threshold
            errors.append(float(np.abs(seen.published - counts).mean()))
        sums += [(above & ~taken).sum(), (taken & ~above & ~beyond).sum(), (taken & beyond).sum()]
    missed, slack, wrong = (sums / draws).tolist()
    return WayError(way, float(np.mean(errors)) if errors else None, missed, slack, wrong, draws)
