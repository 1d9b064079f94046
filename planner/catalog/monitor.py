"""Monitors as the owner declares them: a standing question, its windows, and when they are looked at."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from mechanisms.streams.stream_names import WATCHING

STREAMS = WATCHING
"""Published streams, which bound neither what is missed nor what is wrong."""
FREE = "zeros"
"""The stream that loses nothing, and says nothing."""
MECHANISMS = ("alarm", *STREAMS)
"""The mechanisms that may watch a standing question, the default first."""


class Alert(StrEnum):
    """When a monitor may return a key."""

    EARLY = "early"  # at the look at which it crosses
    CLOSE = "close"  # when its window closes


class Clears(StrEnum):
    """When a key goes out of the answer again."""

    AT_THE_CLOSE = "at the close"  # of its window
    AT_ONCE = "at once"  # at the first look at which it does not hold any more


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows that a monitor watches.

    `column` is a key column each of whose values is a window (`length` None: the step of its range), or a time column.
    A time column's windows are `length` long and begin every `hop`; with `sliding` a window ends at every look.
    """

    column: str
    length: timedelta | None = None
    hop: timedelta | None = None
    sliding: bool = False


@dataclass(frozen=True, slots=True)
class Monitor:
    """A question that stands while data arrive, as the policy has it. Times are UTC without saying so.

    Looks are `every` so often from the beginning of a window on; one for a moment is made `lateness` after it. `begins`
    and `ends` are the horizon: the windows that begin at the one or later and before the other are watched, each to its
    end, and are all paid for when the monitor starts. Of `fnr`, `fpr`, `tolerance` what is None
    is the policy's default. `alert` None is early where the formula can only become true. `analysts` may read it.
    `epsilon` is what a stream loses of one event, None for those that lose nothing and for alarms.
    """

    name: str
    sql: str
    windows: Windows
    every: timedelta
    lateness: timedelta
    begins: datetime
    ends: datetime
    mechanism: str
    epsilon: float | None = None
    analysts: tuple[str, ...] = ()
    fnr: float | None = None
    fpr: float | None = None
    tolerance: str | None = None
    alert: Alert | None = None
    early_any: bool = False
    progressive: bool = False
    clears: Clears = Clears.AT_THE_CLOSE
    comment: str | None = None

    @property
    def streamed(self) -> bool:
        """Return True if a published stream watches it."""
        return self.mechanism in STREAMS

    @property
    def clears_at_once(self) -> bool:
        """Return True if a key is in the answer only at those looks at which it holds."""
        return self.clears is Clears.AT_ONCE
