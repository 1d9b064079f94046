"""Reports of a ledger that grows: what was folded for the last one is kept, and continued by the events since."""

import threading
from collections.abc import Sequence

from accountant.balances.dependencies import Knowledge
from accountant.events.events import GENESIS, Event, Record
from accountant.model import Limits
from accountant.reports.report import BudgetReport, Tally, report
from accountant.store.journal import Journal


class Reporter:
    """Safe to share between threads. The first report reads the whole log, each later one what is new."""

    def __init__(self, journal: Journal, *, knowledge: Knowledge) -> None:
        self._journal = journal
        self._knowledge = knowledge
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._tally = Tally()
        self._last = (0, GENESIS)

    def report(self, limits: Limits, *, analyst: str | None) -> BudgetReport:
        """The report of the newest window. Raises `LedgerUnavailable`."""
        with self._lock:
            self._continue(self._journal.events_after(*self._last))
            return report(self._tally, limits, analyst=analyst, knowledge=self._knowledge)

    def _continue(self, written: Sequence[tuple[Record, Event]]) -> None:
        try:
            for record, event in written:
                self._tally.apply(event)
                self._last = (record.id, record.hash)
        except BaseException:
            self._forget()
            raise
