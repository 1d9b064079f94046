"""Which rows a look at a standing question reads, and in which order one unit's groups and rows count.

References: docs/proofs/units_over_a_horizon.md.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from planner.catalog.catalog import Column, Value


@dataclass(frozen=True, slots=True)
class Hopping:
    """Windows that overlap: of `length`, one every `hop`, over the time column `column`.

    A row is in each window `w` of the horizon with `w <= column < w + length`.
    """

    column: str
    length: timedelta
    hop: timedelta

    @property
    def windows_of_a_row(self) -> int:
        """In how many windows one row may be."""
        return -(-self.length // self.hop)


@dataclass(frozen=True, slots=True)
class AsOf:
    """One look at a question over the windows of a horizon; times are UTC without saying so, all of it is public.

    Rows whose `column`, a timestamp or date, lies before `before` count, in the windows that had not closed by then: a
    row with a value of `window_open_for` after a window's value or later does not count in it, unless windows are made
    of `column` itself. Of one unit those groups count that it was in first, over all windows of `horizon`; under a row
    cap those rows of a group that came first, and of a column's different values those that did. Rows that came at the
    same moment are in the order of md5. Where something is chosen so, a date counts once its day is over.

    `window` is the question's key column whose values are the windows' beginnings, `horizon` all of them, rising, of
    which the question's key space has those that are asked for. With `hopping` it is no column of the source's.

    Guarantee: while rows that are added after a look have a `column` of its `before` or later, what one unit is counted
    in at that look it is counted in at all later ones, and it is counted in G groups of the horizon at most. Where
    nothing is chosen (`planner.lower.look.may_leave_out`) that holds whenever rows are added.
    """

    column: str
    before: datetime
    window: str
    horizon: tuple[Value, ...] = field(hash=False)  # not hashed: there may be many
    window_open_for: timedelta
    hopping: Hopping | None = None

    def extend_to_horizon(self, column: Column) -> Column:
        """Return a table's column as this look sees it: the domain of the windows' column is the horizon."""
        return replace(column, domain=self.horizon) if column.name == self.window else column


@dataclass(frozen=True, slots=True)
class InTime:
    """Rows that had come when the time in them was first looked at, of looks at the last stretch of time.

    Looks are at `origin` and every `every` after it, each made `lateness` later; a row with `column` in the time
    between two of them counts, at whatever look, if its `arrived` lies before the moment at which the later one is
    made. So how many rows of a stretch between two looks count is fixed from the first look on that sees it.

    Only rows with `column` of `origin` or later are asked for.
    """

    column: str
    arrived: str
    origin: datetime
    every: timedelta
    lateness: timedelta
