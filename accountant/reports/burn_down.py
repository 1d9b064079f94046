"""The budget spent over time, by everybody together and by each analyst."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accountant.balances.account import Account
from accountant.balances.dependencies import Knowledge
from accountant.balances.grants import apply_grants
from accountant.events.events import GENESIS, Event, Record
from accountant.events.owner_events import WindowOpened
from accountant.limits import Limits
from accountant.reports.balance_report import Tally, find_largest_key_loss
from accountant.store.deadline import Deadline
from accountant.store.journal import Journal

EVERYBODY = ""
MOST_MOMENTS = 60
"""Of a ledger of any age: a line of a chart shows no more, and each costs a look at all keys; set, not measured."""
_FIRST_GAP = timedelta(milliseconds=50)  # between two moments of a young ledger: as fast as questions are answered
_FIRST_MS = 600_000  # for the first reading, which folds the whole log, as for the first report; set, not measured


@dataclass(frozen=True, slots=True)
class SpentSoFar:
    """The loss of somebody up to a moment, in 1e-9 epsilon: on the key that lost most, and on one unit."""

    at: datetime
    largest_key_nano: int
    unit_nano: int


@dataclass(frozen=True, slots=True)
class BurnDownLine:
    """One line of the burn-down chart: an analyst's, or that of `EVERYBODY`.

    `cap_nano` and `unit_cap_nano` are the caps in force now; None means no cap. Open reservations count in `spent` at
    their worst case. Each budget window starts from zero.
    """

    analyst: str
    cap_nano: int
    unit_cap_nano: int | None
    spent: tuple[SpentSoFar, ...]


@dataclass(frozen=True, slots=True)
class BurnDown:
    """All lines, that of everybody first, and when windows were opened."""

    lines: tuple[BurnDownLine, ...]
    windows: tuple[datetime, ...]


class BurnDownReporter:
    """A maker of burn-down charts of a growing ledger. It keeps its last fold and adds the events since.

    Threads may share it. The last point of each line equals a `BudgetReport` of the same moment.
    """

    def __init__(self, journal: Journal, *, knowledge: Knowledge) -> None:
        self._journal = journal
        self._knowledge = knowledge
        self._lock = threading.Lock()
        self._drop_tally()

    def _drop_tally(self) -> None:
        self._tally = Tally()
        self._last = (0, GENESIS)
        self._at: datetime | None = None
        self._gap = _FIRST_GAP
        self._kept: list[tuple[datetime, dict[str, SpentSoFar]]] = []

    def report_all_lines(self, limits: Limits) -> BurnDown:
        """Return all lines up to now. Raise `LedgerUnavailable` if the log cannot be read."""
        self._journal.find_newest_event()
        deadline = self._journal.make_deadline() if self._last[0] else Deadline(_FIRST_MS)
        with deadline.hold_lock(self._lock):
            self._fold_new_events(self._journal.read_events_after(*self._last), limits)
            moments = [spent for _, spent in self._kept]
            if self._at is not None:
                moments.append(self._list_losses_by_analyst(self._at, limits))
            names = (EVERYBODY, *sorted(self._tally.balances.analysts))
            return BurnDown(
                lines=tuple(self._make_line(name, moments, limits) for name in names),
                windows=tuple(self._tally.window_starts),
            )

    def _make_line(self, name: str, moments: Sequence[dict[str, SpentSoFar]], limits: Limits) -> BurnDownLine:
        analyst = name or None
        caps = apply_grants(limits, self._tally.balances.grants.values(), table=None, analyst=analyst)
        cap, unit = caps.per_predicate_nano, caps.per_unit_nano
        if analyst is not None and caps.analyst_per_predicate_nano is not None:
            cap = min(cap, caps.analyst_per_predicate_nano)
        own = None if analyst is None else caps.analyst_per_unit_nano
        unit = min((one for one in (unit, own) if one is not None), default=None)
        return BurnDownLine(name, cap, unit, tuple(spent[name] for spent in moments if name in spent))

    def _fold_new_events(self, written: Sequence[tuple[Record, Event]], limits: Limits) -> None:
        try:
            for record, event in written:
                self._keep_moment(event, limits)
                self._tally.apply_event(event)
                self._last, self._at = (record.id, record.hash), event.at
        except BaseException:
            self._drop_tally()
            raise

    def _keep_moment(self, event: Event, limits: Limits) -> None:
        """Record the losses before an event as a point of the lines, if the last recorded point is old enough."""
        if self._at is None:
            return
        far = not self._kept or self._at - self._kept[-1][0] >= self._gap
        if not far and not isinstance(event, WindowOpened):
            return
        self._kept.append((self._at, self._list_losses_by_analyst(self._at, limits)))
        while len(self._kept) > MOST_MOMENTS:
            self._gap *= 2
            self._kept = self._kept[:1] + self._kept[1::2]

    def _list_losses_by_analyst(self, at: datetime, limits: Limits) -> dict[str, SpentSoFar]:
        balances = self._tally.balances
        found = {EVERYBODY: self._compute_loss_so_far(balances.shared, at, limits)}
        for name, account in balances.analysts.items():
            found[name] = self._compute_loss_so_far(account, at, limits)
        return found

    def _compute_loss_so_far(self, account: Account, at: datetime, limits: Limits) -> SpentSoFar:
        return SpentSoFar(
            at,
            find_largest_key_loss(account, self._knowledge, delta=limits.cell_delta),
            account.unit_loss.find_balance(limits.delta),
        )
