"""PeGaSus's Window Sum Smoother: the sum over the last ticks, with each tick counted as its group's present median.

| here | the thesis |
|---|---|
| window | w |
| `WindowGroups` | the groups of P_t that meet the window |

References: Chen's thesis, algorithm 17. Proof: docs/proofs/streams.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.streams.pegasus import PegasusState
from mechanisms.streams.stream import Tick


@dataclass(frozen=True, slots=True)
class WindowGroups:
    """The groups that overlap the window, oldest first, with their current medians and their numbers of ticks.

    Ticks of the oldest group that are no longer in the window are included. All of it is public.
    """

    medians: tuple[Fraction, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WindowSumSmoother:
    """The sum over the last `window` ticks, or over all ticks while there are fewer.

    One PeGaSus may have several of them.

    Guarantee: no loss beyond PeGaSus's own epsilon, for any windows (docs/proofs/streams.md).

    Raises:
        ValueError: a window without a tick.
    """

    window: int

    def __post_init__(self) -> None:
        """Check the window."""
        if self.window < 1:
            raise ValueError("a window has a tick or more")

    def start(self) -> WindowGroups:
        """Return the state before the first tick."""
        return WindowGroups(medians=(), sizes=())

    def advance(self, states: Sequence[WindowGroups], tick: Tick[PegasusState]) -> Tick[WindowGroups]:
        """Return the sums over the window that ends at one tick of PeGaSus, which must use the median.

        The tick's estimates are the medians of the latest groups.
        """
        after, sums = [], []
        for groups, pegasus, median in zip(states, tick.states, tick.estimates, strict=True):
            size = len(pegasus.noisy_counts)
            closed = slice(0, len(groups.sizes) - (size > 1))
            found, total = self._drop_left_groups(
                WindowGroups(medians=(*groups.medians[closed], median), sizes=(*groups.sizes[closed], size))
            )
            after.append(found)
            sums.append(total)
        return Tick(states=tuple(after), estimates=tuple(sums))

    def _drop_left_groups(self, groups: WindowGroups) -> tuple[WindowGroups, Fraction]:
        """Drop the groups that have left the window. Return the rest and the window's sum."""
        left, doubled, place = self.window, 0, len(groups.sizes)
        while place and left > 0:
            place -= 1
            inside = min(left, groups.sizes[place])
            # medians are halves of whole numbers
            doubled += int(2 * groups.medians[place]) * inside
            left -= inside
        return WindowGroups(medians=groups.medians[place:], sizes=groups.sizes[place:]), Fraction(doubled, 2)
