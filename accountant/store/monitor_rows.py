"""The tables of monitors: states and alerts, which events confirm by digest, and leases, which only avoid double work.

An alert is written once, and its clearing is added once. At most one alert of a key in a window is not cleared.

A state is as secret as the data. Only the runner of looks reads it. It is in no event, report or export.
"""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from accountant.errors import LedgerUnavailable
from accountant.events.digests import digest, digest_row

_states = sa.Table(
    "monitor_state",
    sa.MetaData(),
    sa.Column("run", sa.Text, primary_key=True),
    sa.Column("window_number", sa.BigInteger, primary_key=True),
    sa.Column("look", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("salt", sa.LargeBinary, nullable=False),
)
_alerts = sa.Table(
    "monitor_alerts",
    sa.MetaData(),
    sa.Column("run", sa.Text, primary_key=True),
    *(sa.Column(name, sa.BigInteger, primary_key=True) for name in ("window_number", "key_place", "look_number")),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("cleared_number", sa.BigInteger),
    sa.Column("cleared_at", sa.Text),
)
_leases = sa.Table(
    "monitor_leases",
    sa.MetaData(),
    sa.Column("monitor", sa.Text, primary_key=True),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("holder", "until", "digest")),
)
_ALERTED = (_alerts.c.look_number, _alerts.c.window_number, _alerts.c.key_place)
_CLEARED = (_alerts.c.cleared_number, *_ALERTED[1:])
_SALT_BYTES = 16  # of which no two that anybody tries are the same
_KEYS_AT_ONCE = 500  # in one statement: what every database takes
_SQLITE_NOW = "SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')"


@dataclass(frozen=True, slots=True)
class StateRow:
    """The state of one window after its look number `look`.

    Events contain only its `digest`. The digest reveals nothing without the row, since it covers a random `salt`. A new
    salt is drawn whenever a state is written.
    """

    run: str
    window: int
    look: int
    body: bytes = field(repr=False)
    salt: bytes = field(repr=False)

    @staticmethod
    def draw_salt(run: str, window: int, look: int, body: bytes) -> "StateRow":
        """Return a row with a new random salt, to be written."""
        return StateRow(run, window, look, body, secrets.token_bytes(_SALT_BYTES))

    @property
    def digest(self) -> str:
        """Return the digest by which events know the state."""
        return digest(self.salt + self.body)


@dataclass(frozen=True, slots=True)
class AlertRow:
    """A key that came into the answer, with the look that cleared it, if any. Moments are text."""

    run: str
    number: int
    window: int
    key: int
    at: str
    cleared_number: int | None = None
    cleared_at: str | None = None


class MonitorRows:
    """Read and write access to the states, alerts and leases of monitors, inside one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def find_states(self, run: str | None, windows: Iterable[int] | None = None) -> Iterator[StateRow]:
        """Yield the states of a run (None: of all runs), of `windows` only if given."""
        chosen = sa.select(_states).order_by(_states.c.run, _states.c.window_number)
        if run is not None:
            chosen = chosen.where(_states.c.run == run)
        if windows is not None:
            chosen = chosen.where(_states.c.window_number.in_(list(windows)))
        for row in self._connection.execute(chosen):
            yield StateRow(row.run, row.window_number, row.look, row.body, row.salt)

    def add_state(self, state: StateRow) -> None:
        """Store the state of a window that begins."""
        row = {"run": state.run, "window_number": state.window, "look": state.look}
        self._connection.execute(_states.insert(), {**row, "body": state.body, "salt": state.salt})

    def replace_state(self, state: StateRow, *, since: int) -> bool:
        """Replace the state of look `since` by a newer one. Return False if there is no state of that look."""
        here = (_states.c.run == state.run) & (_states.c.window_number == state.window) & (_states.c.look == since)
        written = {"look": state.look, "body": state.body, "salt": state.salt}
        changed = self._connection.execute(_states.update().where(here).values(written))
        return changed.rowcount == 1

    def drop_states(self, run: str, windows: Iterable[int] | None = None) -> None:
        """Delete the states of closed windows, or of all windows if the run has ended."""
        here = _states.c.run == run
        if windows is not None:
            here &= _states.c.window_number.in_(list(windows))
        self._connection.execute(_states.delete().where(here))

    def find_keys_in_answer(self, run: str, window: int) -> set[int]:
        """Return the keys that are in a window's answer: alerted, and not cleared since."""
        here = (_alerts.c.run == run) & (_alerts.c.window_number == window) & _alerts.c.cleared_number.is_(None)
        return set(self._connection.scalars(sa.select(_alerts.c.key_place).where(here)))

    def add_alerts(self, alerts: Iterable[AlertRow]) -> None:
        """Store alerts. They are never deleted."""
        rows = [
            {
                "run": one.run,
                "window_number": one.window,
                "key_place": one.key,
                "look_number": one.number,
                "at": one.at,
            }
            for one in alerts
        ]
        if rows:
            self._connection.execute(_alerts.insert(), rows)

    def clear_alerts(self, run: str, window: int, keys: Sequence[int], *, number: int, at: str) -> None:
        """Record, for good, the look that cleared the alerts of some keys in a window.

        Keys that are not in the window's answer stay unchanged.
        """
        here = (_alerts.c.run == run) & (_alerts.c.window_number == window) & _alerts.c.cleared_number.is_(None)
        noted = _alerts.update().values(cleared_number=number, cleared_at=at)
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            some = _alerts.c.key_place.in_(keys[start : start + _KEYS_AT_ONCE])
            self._connection.execute(noted.where(here, some))

    def read_alerts(self, run: str, *, after: int, last: int, limit: int | None) -> tuple[list[AlertRow], int | None]:
        """Return the alerts of a run's looks after number `after`, up to number `last`, in order.

        Only whole looks are returned: the fewest that have `limit` alerts. The second part is the number of the last
        returned look if more follow, else None.
        """
        here, number = _alerts.c.run == run, _alerts.c.look_number
        end = self._find_end(
            sa.select(number.label("number")).where(here, *_filter_looks_between(number, after, last)), limit
        )
        return self._read(
            here, *_filter_looks_between(number, after, last if end is None else end), order=_ALERTED
        ), end

    def read_changes(
        self, run: str, *, after: int, last: int, limit: int | None
    ) -> tuple[list[AlertRow], list[AlertRow], int | None]:
        """Return the alerts of a run's looks after number `after`, up to number `last`, and the alerts they cleared.

        Both are in the order of looks. Only whole looks are returned: the fewest that have `limit` of both together.
        The last part is as in `read_alerts`.
        """
        here, came, went = _alerts.c.run == run, _alerts.c.look_number, _alerts.c.cleared_number
        each = [
            sa.select(number.label("number")).where(here, *_filter_looks_between(number, after, last))
            for number in (came, went)
        ]
        end = self._find_end(sa.union_all(*each), limit)
        until = last if end is None else end
        return (
            self._read(here, *_filter_looks_between(came, after, until), order=_ALERTED),
            self._read(here, *_filter_looks_between(went, after, until), order=_CLEARED),
            end,
        )

    def list_alerts(self) -> Iterator[AlertRow]:
        """Yield every alert."""
        yield from self._read(order=())

    def _read(self, *filters: sa.ColumnElement[bool], order: Sequence[sa.ColumnElement[Any]]) -> list[AlertRow]:
        rows = self._connection.execute(sa.select(_alerts).where(*filters).order_by(*order))
        return [
            AlertRow(
                row.run, row.look_number, row.window_number, row.key_place, row.at, row.cleared_number, row.cleared_at
            )
            for row in rows
        ]

    def _find_end(self, numbers: sa.SelectBase, limit: int | None) -> int | None:
        """Return the number of the look that ends a page of `limit` entries; None if nothing follows it."""
        if limit is None:
            return None
        number = numbers.subquery().c.number
        end: int | None = self._connection.scalar(sa.select(number).order_by(number).offset(limit - 1).limit(1))
        after = None if end is None else self._connection.scalar(sa.select(number).where(number > end).limit(1))
        return None if after is None else end

    def take_lease(self, monitor: str, *, holder: str, seconds: float) -> bool:
        """Acquire the lease to look at a monitor for `seconds`, by the database's clock.

        Return False if another holds it.

        A lease that ends later than one acquired now was written by a clock that was ahead. It is void.
        """
        now, length = self._read_clock(), timedelta(seconds=seconds)
        row = self._connection.execute(sa.select(_leases).where(_leases.c.monitor == monitor)).one_or_none()
        if row is not None and row.holder != holder and now < datetime.fromisoformat(row.until) <= now + length:
            return False
        lease = {"monitor": monitor, "holder": holder, "until": (now + length).isoformat()}
        lease["digest"] = digest_row(lease.values())
        if row is None:
            self._connection.execute(_leases.insert(), lease)
        else:
            self._connection.execute(_leases.update().where(_leases.c.monitor == monitor).values(**lease))
        return True

    def release_lease(self, monitor: str, *, holder: str) -> None:
        """Delete the monitor's lease if `holder` has it. Do nothing if another holder has it."""
        here = (_leases.c.monitor == monitor) & (_leases.c.holder == holder)
        self._connection.execute(_leases.delete().where(here))

    def check_leases(self) -> None:
        """Raise `LedgerUnavailable` unless every row is as it was written."""
        for *cells, written in self._connection.execute(sa.select(_leases)):
            if digest_row(cells) != written:
                raise LedgerUnavailable("the lease of a monitor is not what was written")

    def _read_clock(self) -> datetime:
        """Return the time by the database's clock, which all proxies with this database share."""
        if self._connection.dialect.name == "postgresql":
            found = self._connection.scalar(sa.text("SELECT clock_timestamp()"))
            assert isinstance(found, datetime)
            return found.astimezone(UTC)
        return datetime.fromisoformat(str(self._connection.scalar(sa.text(_SQLITE_NOW)))).replace(tzinfo=UTC)


def _filter_looks_between(number: sa.ColumnElement[int], after: int, last: int) -> tuple[sa.ColumnElement[bool], ...]:
    return number > after, number <= last
