"""The rows that a look at a standing question reads, and the order in which one unit's groups and rows count.

References: docs/proofs/units_over_a_horizon.md.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from planner.catalog.catalog import Column, Value


@dataclass(frozen=True, slots=True)
class Hopping:
    """Overlapping windows: each is `length` long, and one begins every `hop`, over the time column `column`.

    A row is in each window `w` of the horizon with `w <= column < w + length`.
    """

    column: str
    length: timedelta
    hop: timedelta

    @property
    def windows_of_a_row(self) -> int:
        """The number of windows that one row may be in, at most."""
        return -(-self.length // self.hop)


@dataclass(frozen=True, slots=True)
class AsOf:
    """One look at a question over the windows of a horizon. Times are UTC without a zone, and all of it is public.

    Rows count if their `column`, a timestamp or date, lies before `before`, in the windows that had not closed by then.
    A row does not count in a window if its value is `window_open_for` or more after the window's value, unless windows
    are made from `column` itself. The groups of a unit that count are those that it was in first, over all windows of
    `horizon`. Under a row cap the first rows of a group count, and the first of a column's different values. Rows of
    the same moment are ordered by md5. If something is chosen by this order, a date counts only after its day is over.

    `window` is the question's key column, whose values are the windows' beginnings. `horizon` has all of these values,
    rising. The question's key space has those that are asked for. With `hopping`, `window` is no column of the source.

    Guarantee: let rows that are added after a look have a `column` of its `before` or later. Then a unit's groups and
    rows that count at that look count at all later ones, and it counts in at most G groups of the horizon. If nothing
    is chosen (`planner.lower.look.may_leave_out`), this holds whenever rows are added.
    """

    column: str
    before: datetime
    window: str
    horizon: tuple[Value, ...] = field(hash=False)  # not hashed: there may be many
    window_open_for: timedelta
    hopping: Hopping | None = None

    def extend_to_horizon(self, column: Column) -> Column:
        """Return a table's column as this look reads it: the column of windows has the horizon as its domain."""
        return replace(column, domain=self.horizon) if column.name == self.window else column


@dataclass(frozen=True, slots=True)
class InTime:
    """The rule of a sliding monitor for late rows: a row counts only if it arrived before the first look at its time.

    Looks are at `origin` and every `look_interval` after it, and each is made `lateness` later. Take a row whose time
    `column` lies between two looks. At any look it counts only if its `arrival_column` is before the moment at which
    the later of the two is made. So the first look that sees a period fixes which rows of that period count. Only rows
    with `column` of `origin` or later are read.
    """

    column: str
    arrival_column: str
    origin: datetime
    look_interval: timedelta
    lateness: timedelta
