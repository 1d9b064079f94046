"""Monitors as the owner declares them: a standing question, its windows, and the times of its looks."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from mechanisms.streams.stream_names import WATCHING

STREAMS = WATCHING
"""Published streams, which bound neither what is missed nor what is wrong."""
SILENT_STREAM = "zeros"
"""The stream that loses nothing, and says nothing."""
MECHANISMS = ("alarm", *STREAMS)
"""The mechanisms that may watch a standing question, the default first."""


class Alert(StrEnum):
    """The time at which a monitor may return a key: early, or at the close of the window."""

    EARLY = "early"  # at the look at which it crosses
    CLOSE = "close"  # when its window closes


class ClearRule(StrEnum):
    """The rule by which a key leaves a monitor's answer: when its window closes, or at the first look that fails."""

    AT_THE_CLOSE = "at the close"  # of its window
    AT_ONCE = "at once"  # at the first look at which it does not hold any more


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows that a monitor watches.

    `column` is a key column whose values are windows, or a time column. For a key column, `length` None means the step
    of its range. A time column's windows are `length` long and begin every `hop`; with `sliding` a window ends at every
    look.
    """

    column: str
    length: timedelta | None = None
    hop: timedelta | None = None
    sliding: bool = False


@dataclass(frozen=True, slots=True)
class Monitor:
    """A standing question over arriving data, as the policy declares it. Times are UTC without a time zone.

    From the beginning of a window, there is a look every `every`. A look is made `lateness` after its nominal time.
    `begins` and `ends` are the horizon: windows that begin within it are watched to their end, and all of them are
    charged when the monitor starts. `fnr`, `fpr` and `tolerance` have the policy's default if they are None. If
    `alert` is None, alerts are early if the formula can only become true while a window is open. `analysts` may read
    it. `epsilon` is the loss of a stream per event. It is None for alarms and for streams without loss.
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
    clears: ClearRule = ClearRule.AT_THE_CLOSE
    comment: str | None = None

    @property
    def is_stream(self) -> bool:
        """Return True if one of the published stream mechanisms watches the question."""
        return self.mechanism in STREAMS

    @property
    def clears_at_once(self) -> bool:
        """Return True if a key leaves the answer at the first look at which the formula does not hold for it."""
        return self.clears is ClearRule.AT_ONCE
