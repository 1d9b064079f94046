"""The tables of monitors: states and alerts, which the events vouch for, and leases, which are nothing but courtesy.

A state is as secret as the data. It is read by the runner of looks alone, and is in no event, report or export.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from accountant.errors import LedgerUnavailable
from accountant.events.digests import row_digest

_states = sa.Table(
    "monitor_state",
    sa.MetaData(),
    sa.Column("run", sa.Text, primary_key=True),
    sa.Column("window_number", sa.BigInteger, primary_key=True),
    sa.Column("look", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
_alerts = sa.Table(
    "monitor_alerts",
    sa.MetaData(),
    sa.Column("run", sa.Text, primary_key=True),
    *(sa.Column(name, sa.BigInteger, primary_key=True) for name in ("window_number", "key_place")),
    sa.Column("look_number", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
)
_leases = sa.Table(
    "monitor_leases",
    sa.MetaData(),
    sa.Column("monitor", sa.Text, primary_key=True),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("holder", "until", "digest")),
)
_SQLITE_NOW = "SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')"


@dataclass(frozen=True, slots=True)
class StateRow:
    """The state of one window, after its look `look`."""

    run: str
    window: int
    look: int
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, order=True)
class AlertRow:
    """A key that came into the answer; `at` as text."""

    run: str
    number: int
    window: int
    key: int
    at: str


class MonitorRows:
    """The rows inside one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def find_states(self, run: str | None, windows: Iterable[int] | None = None) -> Iterator[StateRow]:
        """The states of a run (None: of all), of some windows if so asked."""
        chosen = sa.select(_states).order_by(_states.c.run, _states.c.window_number)
        if run is not None:
            chosen = chosen.where(_states.c.run == run)
        if windows is not None:
            chosen = chosen.where(_states.c.window_number.in_(list(windows)))
        for row in self._connection.execute(chosen):
            yield StateRow(row.run, row.window_number, row.look, row.body)

    def add_state(self, state: StateRow) -> None:
        """Store the state of a window that begins."""
        row = {"run": state.run, "window_number": state.window, "look": state.look, "body": state.body}
        self._connection.execute(_states.insert(), row)

    def replace_state(self, state: StateRow, *, since: int) -> bool:
        """Put the state after a look in the place of that of look `since`; false where there is none such."""
        here = (_states.c.run == state.run) & (_states.c.window_number == state.window) & (_states.c.look == since)
        changed = self._connection.execute(_states.update().where(here).values(look=state.look, body=state.body))
        return changed.rowcount == 1

    def drop_states(self, run: str, windows: Iterable[int] | None = None) -> None:
        """Forget the states of windows that are closed; of all, where the run has ended."""
        here = _states.c.run == run
        if windows is not None:
            here &= _states.c.window_number.in_(list(windows))
        self._connection.execute(_states.delete().where(here))

    def keys_alerted(self, run: str, window: int) -> set[int]:
        """The keys that are in a window's answer."""
        here = (_alerts.c.run == run) & (_alerts.c.window_number == window)
        return set(self._connection.scalars(sa.select(_alerts.c.key_place).where(here)))

    def add_alerts(self, alerts: Iterable[AlertRow]) -> None:
        """Store alerts, for good."""
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

    def alerts(self, run: str, *, after_number: int, limit: int | None) -> tuple[list[AlertRow], bool]:
        """The alerts of a run after a look, in order: of whole looks, as few as make `limit`; whether there are more
        after them."""
        here = (_alerts.c.run == run) & (_alerts.c.look_number > after_number)
        more = False
        if limit is not None:
            numbers = sa.select(_alerts.c.look_number).where(here).order_by(_alerts.c.look_number)
            last = self._connection.scalar(numbers.offset(limit - 1).limit(1))
            if last is not None:
                rest = sa.select(_alerts.c.run).where(here, _alerts.c.look_number > last).limit(1)
                more = self._connection.execute(rest).first() is not None
                here &= _alerts.c.look_number <= last
        ordered = _alerts.c.look_number, _alerts.c.window_number, _alerts.c.key_place
        rows = self._connection.execute(sa.select(_alerts).where(here).order_by(*ordered))
        return [AlertRow(row.run, row.look_number, row.window_number, row.key_place, row.at) for row in rows], more

    def all_alerts(self) -> Iterator[AlertRow]:
        """Every alert."""
        for row in self._connection.execute(sa.select(_alerts)):
            yield AlertRow(row.run, row.look_number, row.window_number, row.key_place, row.at)

    def take_lease(self, monitor: str, *, holder: str, seconds: float) -> bool:
        """Note who looks for the next seconds, by the database's clock; false where somebody else does."""
        now = self._now()
        row = self._connection.execute(sa.select(_leases).where(_leases.c.monitor == monitor)).one_or_none()
        if row is not None and row.holder != holder and datetime.fromisoformat(row.until) > now:
            return False
        lease = {"monitor": monitor, "holder": holder, "until": (now + timedelta(seconds=seconds)).isoformat()}
        lease["digest"] = row_digest(lease.values())
        if row is None:
            self._connection.execute(_leases.insert(), lease)
        else:
            self._connection.execute(_leases.update().where(_leases.c.monitor == monitor).values(**lease))
        return True

    def give_lease_back(self, monitor: str, *, holder: str) -> None:
        """Note that the holder looks no longer; nothing where somebody else does."""
        here = (_leases.c.monitor == monitor) & (_leases.c.holder == holder)
        self._connection.execute(_leases.delete().where(here))

    def check_leases(self) -> None:
        """Raise `LedgerUnavailable` unless every row is as it was written."""
        for *cells, written in self._connection.execute(sa.select(_leases)):
            if row_digest(cells) != written:
                raise LedgerUnavailable("the lease of a monitor is not what was written")

    def _now(self) -> datetime:
        """The database's time: one for all proxies that share it."""
        if self._connection.dialect.name == "postgresql":
            found = self._connection.scalar(sa.text("SELECT clock_timestamp()"))
            assert isinstance(found, datetime)
            return found.astimezone(UTC)
        return datetime.fromisoformat(str(self._connection.scalar(sa.text(_SQLITE_NOW)))).replace(tzinfo=UTC)
