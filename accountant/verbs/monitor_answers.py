"""The alerts and clearings of a monitor's looks, read back page by page.

Guarantee: a page holds whole looks, and none after its `last_look`. A reader who asks for the looks after that one
gets everything exactly once, whatever is recorded meanwhile. Proof: docs/proofs/accounting.md, theorem 10.
"""

from datetime import datetime

from accountant.monitor_model import AlertPage, ChangePage, MonitorAlert, MonitorRun
from accountant.store.monitor_rows import AlertRow
from accountant.store.transaction import Transaction


def read_alerts(transaction: Transaction, run: MonitorRun, *, after_number: int, limit: int | None) -> AlertPage:
    """Return the alerts of the looks after number `after_number`, up to the last look of `run`."""
    rows, end = transaction.monitors.read_alerts(run.run, after=after_number, last=run.last_look, limit=limit)
    told = tuple(_make_alert(row, run) for row in rows)
    return AlertPage(told, _find_last_look(run, after_number, end), end is not None)


def read_changes(transaction: Transaction, run: MonitorRun, *, after_number: int, limit: int | None) -> ChangePage:
    """Return the alerts of the looks after number `after_number`, and the alerts that these looks cleared.

    The looks reach up to the last one of `run`.
    """
    came, went, end = transaction.monitors.read_changes(run.run, after=after_number, last=run.last_look, limit=limit)
    return ChangePage(
        alerts=tuple(_make_alert(row, run) for row in came),
        cleared=tuple(_make_alert(row, run) for row in went),
        last_look=_find_last_look(run, after_number, end),
        has_more=end is not None,
    )


def _find_last_look(run: MonitorRun, after_number: int, end: int | None) -> int:
    return max(run.last_look, after_number) if end is None else end


def _make_alert(row: AlertRow, run: MonitorRun) -> MonitorAlert:
    return MonitorAlert(
        monitor=run.monitor,
        run=run.run,
        number=row.number,
        window=row.window,
        key=row.key,
        at=datetime.fromisoformat(row.at),
        cleared_number=row.cleared_number,
        cleared_at=None if row.cleared_at is None else datetime.fromisoformat(row.cleared_at),
    )
