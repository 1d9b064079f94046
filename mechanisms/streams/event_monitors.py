"""Event monitors on released estimates: ticks at which a stream jumps or drops, and windows with too low a sum.

They read only estimates, so any number of them costs nothing beyond the mechanism that released the estimates. The
probabilities of missed and false events are not bounded.

| here | the thesis |
|---|---|
| window, delta | w, delta |
| `JumpMonitor` | the change between the ends of the window, `w - 1` ticks apart as in its formula |
| `LowSignalMonitor` | the window's sum below delta |

References: Chen's thesis, sections 5.2.2 and 5.4. Proof: docs/proofs/streams.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, Literal, TypeAlias, TypeVar

Direction: TypeAlias = Literal["jump", "drop", "either"]
MonitorState = TypeVar("MonitorState")


@dataclass(frozen=True, slots=True)
class MonitorTick(Generic[MonitorState]):
    """The states after a tick, and for each stream True if the event occurred."""

    states: tuple[MonitorState, ...]
    occurred: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class LastEstimates:
    """The estimates of the last ticks, oldest first. They are public."""

    estimates: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class TicksSeen:
    """The number of ticks so far, up to the window's length."""

    ticks: int


@dataclass(frozen=True, slots=True)
class JumpMonitor:
    """A monitor of changes. Its event is a change of the estimate by `delta` or more over a window, in one direction.

    The event does not occur before the window is full.

    Guarantee: no loss of its own (docs/proofs/streams.md).

    Raises:
        ValueError: a window of fewer than two ticks, or a delta that is not above zero.
    """

    window: int
    delta: Fraction
    direction: Direction = "either"

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.window < 2 or self.delta <= 0:
            raise ValueError("a jump takes two ticks or more, and a delta above zero")

    def start(self) -> LastEstimates:
        """Return the state before the first tick."""
        return LastEstimates(estimates=())

    def advance(self, states: Sequence[LastEstimates], estimates: Sequence[Fraction]) -> MonitorTick[LastEstimates]:
        """Advance one tick with its estimates. Return the states, and for each stream True if the event occurred.

        Return the streams in which the event occurred.

        >>> monitor = JumpMonitor(window=2, delta=Fraction(3), direction="drop")
        >>> first = monitor.advance([monitor.start()], [Fraction(9)])
        >>> monitor.advance(first.states, [Fraction(6)]).occurred
        (True,)
        """
        after, occurred = [], []
        for state, estimate in zip(states, estimates, strict=True):
            last = (*state.estimates, estimate)[-self.window :]
            after.append(LastEstimates(estimates=last))
            occurred.append(len(last) == self.window and self._is_jump(last[-1] - last[0]))
        return MonitorTick(states=tuple(after), occurred=tuple(occurred))

    def _is_jump(self, by: Fraction) -> bool:
        match self.direction:
            case "jump":
                return by >= self.delta
            case "drop":
                return -by >= self.delta
            case "either":
                return abs(by) >= self.delta


@dataclass(frozen=True, slots=True)
class LowSignalMonitor:
    """A monitor of low signals. Its event is that the estimated sum of a full window is below `delta`.

    Guarantee: no loss of its own (docs/proofs/streams.md).

    Raises:
        ValueError: a window without a tick.
    """

    window: int
    delta: Fraction

    def __post_init__(self) -> None:
        """Check the window."""
        if self.window < 1:
            raise ValueError("a window has a tick or more")

    def start(self) -> TicksSeen:
        """Return the state before the first tick."""
        return TicksSeen(ticks=0)

    def advance(self, states: Sequence[TicksSeen], sums: Sequence[Fraction]) -> MonitorTick[TicksSeen]:
        """Advance one tick with the estimated window sums of any mechanism.

        Return the states, and True for each low stream.
        """
        seen = tuple(TicksSeen(ticks=min(self.window, state.ticks + 1)) for state in states)
        occurred = (state.ticks == self.window and total < self.delta for state, total in zip(seen, sums, strict=True))
        return MonitorTick(states=seen, occurred=tuple(occurred))
