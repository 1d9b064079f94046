"""The forms of an alert that clients receive.

Guarantee: an alert contains only data of a look that the ledger has recorded, with public names and values of the
policy.
"""

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np

from accountant.monitor_model import MonitorAlert, MonitorRun
from planner.extract.virtual_relations import ALERTED_AT, CLEARED_AT, WINDOW_CLOSES, WINDOW_START
from planner.monitors.monitor_plan import MonitorPlan
from proxy.monitors.notifications import AlertNotice, ClearingNotice
from proxy.open_policy.accounts import make_label
from proxy.pipeline.virtual_rows import VirtualRow
from proxy.shadow.key_labels import KeyLabels


class AlertWriter:
    """A converter of alerts in the ledger into notices for clients."""

    def __init__(
        self, plan: MonitorPlan, run: MonitorRun, keys: tuple[str, ...], labels: KeyLabels | None = None
    ) -> None:
        """Store the plan, the run, and the column names `keys` of the answer or of its `labels`."""
        self._windows = plan.windows
        self._clears_at_once = plan.clears_at_once
        self._run = run
        self._keys = keys
        self._labels = labels
        axis = None if run.windows is None else run.windows.column
        columns = run.charge.cells.columns
        self._apart = [(name, values) for name, values in columns if name != axis]
        self._shape = tuple(len(values) for _, values in self._apart)
        self._axis = next(((name, values) for name, values in columns if name == axis), None)
        asked = [make_label(column) for column in plan.question.keys.columns]
        self._answered = asked if plan.monitor.windows.length is None or plan.clears_at_once else asked[:-1]

    def make_alert(self, alert: MonitorAlert) -> AlertNotice:
        """Return an alert as a notice.

        If the monitor clears at once, the notice has no window, because each look is then its own window.
        """
        window = None if self._clears_at_once else alert.window
        return AlertNotice(
            monitor=alert.monitor,
            number=alert.number,
            key=self._name_key_values(alert),
            window_start=None if window is None else convert_to_utc(self._windows.starts[window]),
            alerted_at=convert_to_utc(alert.at),
            window_closes=None if window is None else convert_to_utc(self._windows.find_close(window)),
            cleared_at=None if alert.cleared_at is None else convert_to_utc(alert.cleared_at),
        )

    def make_clearing(self, alert: MonitorAlert) -> ClearingNotice:
        """Return a cleared alert as a notice."""
        assert alert.cleared_number is not None
        assert alert.cleared_at is not None
        return ClearingNotice(
            monitor=alert.monitor,
            number=alert.cleared_number,
            key=self._name_key_values(alert),
            alerted_at=convert_to_utc(alert.at),
            cleared_at=convert_to_utc(alert.cleared_at),
        )

    def _name_key_values(self, alert: MonitorAlert) -> tuple[tuple[str, str | None], ...]:
        places = np.unravel_index(alert.key, self._shape) if self._shape else ()
        texts = {name: values[int(place)] for (name, values), place in zip(self._apart, places, strict=True)}
        if self._axis is not None and self._run.windows is not None:
            name, values = self._axis
            texts[name] = values[alert.window - self._run.windows.first]
        told: list[str | None] = [texts[name] for name in self._answered]
        if self._labels is not None:
            told = [column[0] for column in self._labels.apply([[text] for text in told])]
        return tuple(zip(self._keys, told, strict=True))


def make_alert_document(alert: AlertNotice) -> dict[str, Any]:
    """Return an alert as JSON, for REST and commands."""
    return {
        "monitor": alert.monitor,
        "key": dict(alert.key),
        "window": write_iso(alert.window_start),
        "window_closes": write_iso(alert.window_closes),
        "alerted_at": alert.alerted_at.isoformat(),
        "look": alert.number,
        "cleared_at": write_iso(alert.cleared_at),
    }


def make_clearing_document(cleared: ClearingNotice) -> dict[str, Any]:
    """Return a cleared alert as JSON, for REST and commands."""
    return {
        "monitor": cleared.monitor,
        "key": dict(cleared.key),
        "alerted_at": cleared.alerted_at.isoformat(),
        "cleared_at": cleared.cleared_at.isoformat(),
        "look": cleared.number,
    }


def make_relation_row(alert: AlertNotice, times: tuple[str, ...]) -> VirtualRow:
    """Return an alert's row in its monitor's relation: the key's values, then the given times."""
    moments = {
        WINDOW_START: alert.window_start,
        ALERTED_AT: alert.alerted_at,
        WINDOW_CLOSES: alert.window_closes,
        CLEARED_AT: alert.cleared_at,
    }
    return (*(text for _, text in alert.key), *(write_postgres_time(moments[name]) for name in times))


def encode_key(key: tuple[tuple[str, str | None], ...]) -> str:
    """Return a key as JSON."""
    return json.dumps(dict(key), ensure_ascii=False)


def convert_to_utc(moment: datetime) -> datetime:
    """Return a time with the time zone UTC. A time without a zone is assumed to be UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def write_postgres_time(moment: datetime | None) -> str | None:
    """Return a time as text that PostgreSQL can read, or None."""
    return None if moment is None else moment.isoformat(sep=" ")


def write_iso(moment: datetime | None) -> str | None:
    """Return a time as ISO 8601 text for JSON, or None."""
    return None if moment is None else moment.isoformat()
