"""The pages on which an owner decides. Each shows the last decision's result: what was done, or a refusal."""

import secrets
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request, Response

from planner.catalog.key_space import quote_in_row
from planner.catalog.monitor import Monitor
from planner.errors import KeyholeError
from planner.monitors.explain import explain_monitor
from proxy.console.owner.decided import list_decision_rows, list_grant_rows
from proxy.console.owner.ledger_commands import list_ledger_commands
from proxy.console.owner.question_pages import list_waiting_rows
from proxy.console.page import render_page
from proxy.monitors.notifications import AlertNotice
from proxy.monitors.reading import ServiceMonitorReader
from proxy.open_policy.accounts import find_limits
from proxy.open_policy.service import OWNER, Service
from proxy.owner.decisions import Cap
from proxy.report import odometer
from proxy.report.terminal import make_visible
from proxy.rest.problems import choose_http_status, make_problem
from proxy.shadow.key_labels import LabelReader

SHOWN_ALERTS = 20  # of a monitor: the newest; keyhole monitor watch prints all
SHOWN_DECISIONS = 50  # of a list: a screen or two; the ledger's export has all


@dataclass(frozen=True, slots=True)
class DecisionResult:
    """The result of a submitted form: a sentence about what was done, or the refusal.

    `typed` has the typed texts, so that the owner can correct them.
    """

    done: str = ""
    refused: KeyholeError | None = None
    mistyped: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The HTTP status of the page that shows the result."""
        if self.refused is not None:
            return choose_http_status(self.refused)
        return 422 if self.mistyped else 200

    def values(self) -> dict[str, Any]:
        """Return the result as values for a page's template."""
        refused = (
            None
            if self.refused is None
            else {"message": None, "detail": None, "hint": None, **make_problem(self.refused)}
        )
        return {"done": self.done, "refused": refused, "mistyped": self.mistyped, "typed": self.typed}


NOTHING = DecisionResult()
ShowPage = Callable[[Request, Service, DecisionResult], Response]


def show_approvals(request: Request, service: Service, result: DecisionResult) -> Response:
    """Return the page of questions that wait for approval."""
    waiting = tuple(list_waiting_rows(service.ledger))
    above = service.catalog.budget.approval_above
    own = [(one.table, one.approval_above) for one in service.catalog.budget.tables if one.approval_above is not None]
    return _render_page(request, "approvals", result, waiting=waiting, above=above, own=own)


def show_grants(request: Request, service: Service, result: DecisionResult) -> Response:
    """Return the page of the grants in force, and of the caps that a new grant could raise."""
    policy = service.policy
    return _render_page(
        request,
        "grants",
        result,
        grants=tuple(list_grant_rows(service.ledger.owner.list_grants())),
        caps=[cap.value for cap in Cap],
        tables=[(name, make_visible(name)) for name in policy.private_tables],
        analysts=[(name, make_visible(name)) for name in policy.analysts],
        once=secrets.token_hex(16),
    )


def show_windows(request: Request, service: Service, result: DecisionResult) -> Response:
    """Return the page of the budget windows, and of the risk of opening another one."""
    report = service.ledger.report_balances(find_limits(service.catalog, OWNER))
    warned = odometer.write_window_risk(
        windows=report.window_count + 1, per_predicate=service.policy.budget.epsilon_per_predicate
    )
    since = "" if report.window_opened_at is None else report.window_opened_at.isoformat(sep=" ", timespec="seconds")
    standing = [make_visible(run.monitor) for run in report.running_monitors]
    once = secrets.token_hex(16)
    values = {"windows": report.window_count, "since": since, "warned": warned, "standing": standing, "once": once}
    return _render_page(request, "windows", result, **values)


def show_monitors(labels: LabelReader | None, request: Request, service: Service, result: DecisionResult) -> Response:
    """Return the page of the policy's monitors: their progress, cost and possible actions."""
    reading = ServiceMonitorReader(service, labels)
    found = [_describe_monitor(reading, monitor) for monitor in service.catalog.monitors]
    return _render_page(request, "monitors", result, monitors=found)


def _describe_monitor(reading: ServiceMonitorReader, monitor: Monitor) -> dict[str, Any]:
    known = {"name": monitor.name, "shown": make_visible(monitor.name), "comment": make_visible(monitor.comment or "")}
    try:
        status, plan = reading.read_status(monitor), reading.plan_monitor(monitor)
        alerts = reading.read_alerts_for_owner(monitor).alerts
    except KeyholeError as error:  # keyhole check says it, too; the others can be looked at all the same
        if error.code == "KH502":
            raise
        return known | {"refused": make_visible(f"{error.code}: {error.message}")}
    return known | {
        "refused": "",
        "state": status.state,
        "reason": make_visible(status.reason),
        "contract": make_visible(status.contract),
        "looks": f"{status.looks_made:,} of {status.looks_planned:,}",
        "next": "" if status.next_look is None else f"{status.next_look:%Y-%m-%d %H:%M:%S}",
        "group": f"{status.epsilon_per_group:.4f}",
        "unit": "" if status.epsilon_per_unit is None else f"{status.epsilon_per_unit:.4f}",
        "alerts": [_describe_alert(alert) for alert in alerts[: -SHOWN_ALERTS - 1 : -1]],
        "alerted": f"{len(alerts):,} alert{'' if len(alerts) == 1 else 's'}",
        "command": make_visible(shlex.join(("keyhole", "monitor", "watch", monitor.name))),
        "more_alerts": len(alerts) > SHOWN_ALERTS,
        "plan": "\n".join(make_visible(line) for line in explain_monitor(plan)),
    }


def _describe_alert(alert: AlertNotice) -> tuple[str, str, str, str]:
    key = ", ".join(f"{name} {'NULL' if value is None else quote_in_row(value)}" for name, value in alert.key)
    window = "" if alert.window_start is None else f"{alert.window_start:%Y-%m-%d %H:%M}"
    cleared = "" if alert.cleared_at is None else f"{alert.cleared_at:%Y-%m-%d %H:%M:%S}"
    return make_visible(key), window, f"{alert.alerted_at:%Y-%m-%d %H:%M:%S}", cleared


def show_ledger(request: Request, service: Service, result: DecisionResult) -> Response:
    """Return the page of the ledger's last event and of all owner decisions."""
    number, newest = service.ledger.owner.find_newest_event()
    rows = tuple(list_decision_rows(service.ledger.owner.list_latest_decisions(limit=SHOWN_DECISIONS)))
    values = {"decided": rows, "most": SHOWN_DECISIONS, "commands": tuple(list_ledger_commands(service))}
    return _render_page(request, "ledger", result, number=number, newest=newest, **values)


def _render_page(request: Request, name: str, result: DecisionResult, **values: Any) -> Response:
    return render_page(request, f"owner/{name}.html", section=name, status=result.status, **result.values(), **values)
