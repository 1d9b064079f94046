"""The forms in which an alert is sent to clients.

Guarantee: they contain only what the ledger has of a recorded look, by the public names and values of the policy.
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
    """A converter of the ledger's alerts into notices for clients."""

    def __init__(
        self, plan: MonitorPlan, run: MonitorRun, keys: tuple[str, ...], labels: KeyLabels | None = None
    ) -> None:
        """Take `keys`, the names of the sent columns: those of the answer, or those of its `labels`."""
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
        """Return the notice of one alert.

        It has no window if the monitor clears at once, since each look is then a window of its own.
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
        """Return the notice of one alert that was cleared."""
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
    """Return an alert as JSON, as REST and commands write it."""
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
    """Return a cleared alert as JSON."""
    return {
        "monitor": cleared.monitor,
        "key": dict(cleared.key),
        "alerted_at": cleared.alerted_at.isoformat(),
        "cleared_at": cleared.cleared_at.isoformat(),
        "look": cleared.number,
    }


def make_relation_row(alert: AlertNotice, times: tuple[str, ...]) -> VirtualRow:
    """Return the alert's row in the relation of its monitor. The given times follow its keys."""
    moments = {
        WINDOW_START: alert.window_start,
        ALERTED_AT: alert.alerted_at,
        WINDOW_CLOSES: alert.window_closes,
        CLEARED_AT: alert.cleared_at,
    }
    return (*(text for _, text in alert.key), *(write_time(moments[name]) for name in times))


def encode_key(key: tuple[tuple[str, str | None], ...]) -> str:
    """Return a key as JSON."""
    return json.dumps(dict(key), ensure_ascii=False)


def convert_to_utc(moment: datetime) -> datetime:
    """Return the same moment with a time zone. A time without a zone is taken for UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def write_time(moment: datetime | None) -> str | None:
    """Return a time as text that PostgreSQL reads."""
    return None if moment is None else moment.isoformat(sep=" ")


def write_iso(moment: datetime | None) -> str | None:
    """Return a time as ISO 8601 text, for JSON."""
    return None if moment is None else moment.isoformat()
