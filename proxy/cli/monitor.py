"""`keyhole monitor`: list, start, pause, resume, end and watch the policy's monitors. For the data owner."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from accountant.monitor_model import MonitorState
from planner.catalog.key_space import quote_in_row
from planner.catalog.monitor import Monitor
from planner.monitors.build import plan_monitor
from planner.monitors.explain import explain_monitor, make_monitor_json
from planner.monitors.monitor_plan import MonitorPlan
from proxy.cli.brief_labels import ShortLivedLabels
from proxy.cli.common import (
    DEFAULT_POLICY,
    By,
    Json,
    PolicyPath,
    Why,
    open_owner_ledger,
    print_json,
    print_refusals,
    read_decider,
    read_reason,
)
from proxy.monitors.alert_json import make_alert_document, make_clearing_document
from proxy.monitors.notifications import AlertNotice, Change
from proxy.monitors.reading import ServiceMonitorReader
from proxy.monitors.start import check_startable, start_monitor
from proxy.open_policy.service import Service
from proxy.owner.decisions import MonitorChange, change_monitor
from proxy.report.ledger_tables import SHORT_ID
from proxy.report.terminal import make_visible, write_psql_table, write_row_count

Name = Annotated[str, typer.Argument(metavar="NAME", help="The monitor, as the policy calls it.")]

_POLL_S = 1.0  # how late an alert is printed, against one short read of the ledger

app = typer.Typer(
    name="monitor",
    help="Start, watch and end standing questions.",
    no_args_is_help=True,
)


@app.command("list")
def list_monitors(policy: PolicyPath = DEFAULT_POLICY, as_json: Json = False) -> None:
    """List the policy's monitors, with their next look and their cost."""
    with print_refusals(as_json=as_json), Service.open_for_reading(policy) as service:
        reading = ServiceMonitorReader(service)
        found = [reading.read_status(monitor) for monitor in service.catalog.monitors]
    if as_json:
        print_json([status.make_document() for status in found])
        return
    rows = [
        (
            status.monitor.name,
            status.state,
            f"{status.looks_made:,} of {status.looks_planned:,}",
            "" if status.next_look is None else f"{status.next_look:%Y-%m-%d %H:%M:%S}",
            f"{status.epsilon_per_group:.4f}",
            "" if status.epsilon_per_unit is None else f"{status.epsilon_per_unit:.4f}",
        )
        for status in found
    ]
    columns = ("monitor", "state", "looks", "next look (UTC)", "epsilon a group", "epsilon a unit")
    print(*write_psql_table(columns, rows), f"({write_row_count(len(rows))})", sep="\n")


@app.command()
def show(name: Name, policy: PolicyPath = DEFAULT_POLICY, as_json: Json = False) -> None:
    """Show a monitor in full."""
    with print_refusals(as_json=as_json), Service.open_for_reading(policy) as service:
        plan, monitor, reading = _plan_monitor(service, name), _find_monitor(service, name), _open_reading(service)
        status = reading.read_status(monitor)
        alerts = reading.read_alerts_for_owner(monitor).alerts if monitor.clears_at_once else None
    if as_json:
        print_json(status.make_document() | {"plan": make_monitor_json(plan)})
        return
    print(*explain_monitor(plan), "", sep="\n")
    because = f" ({make_visible(status.reason)})" if status.reason else ""
    print(f"It is {status.state}{because}; {status.looks_made:,} of {status.looks_planned:,} looks made.")
    if alerts is not None:
        standing = sum(alert.cleared_at is None for alert in alerts)
        print(f"Groups in its answer: {standing:,}; cleared again: {len(alerts) - standing:,}.")


@app.command()
def watch(
    name: Name,
    policy: PolicyPath = DEFAULT_POLICY,
    after: Annotated[int, typer.Option(min=0, help="Only alerts of looks after this number.")] = 0,
    until_alert: Annotated[
        bool,
        typer.Option("--until-alert", help="End with status 0 at the first alert, with 1 if the monitor has ended."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Print alerts as they come and go, until interrupted. A Keyhole must be serving."""
    with print_refusals(as_json=as_json), Service.open_for_reading(policy) as service:
        reading, monitor = _open_reading(service), _find_monitor(service, name)
        while True:
            state = reading.read_status(monitor).state
            read = reading.read_alerts_for_owner(monitor, after=after)
            after = read.last_look
            for change in read.changes:
                print(_write_change(change, as_json=as_json), flush=True)
            if until_alert and read.alerts:
                return
            if state == MonitorState.ENDED:
                raise typer.Exit(1 if until_alert else 0)
            time.sleep(_POLL_S)


def _write_change(change: Change, *, as_json: bool) -> str:
    if isinstance(change, AlertNotice):
        told, moment, tail = make_alert_document(change), change.alerted_at, ""
    else:
        told, moment, tail = make_clearing_document(change), change.cleared_at, "  cleared"
    if as_json:
        return json.dumps(told, ensure_ascii=False)
    keys = ", ".join(
        f"{column} {'NULL' if value is None else make_visible(quote_in_row(value))}" for column, value in change.key
    )
    return f"{moment:%Y-%m-%d %H:%M:%S}  look {change.number}  {keys}{tail}"


@app.command()
def start(
    name: Name,
    why: Why,
    policy: PolicyPath = DEFAULT_POLICY,
    by: By = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Charge a monitor's whole horizon and start its looks. Asks first."""
    said, who = read_reason(why), read_decider(by)
    with print_refusals(as_json=False), Service.open(policy) as service:
        plan = _plan_monitor(service, name)
        check_startable(service, plan)
        _open_reading(service).label_keys(_find_monitor(service, name))  # nothing is paid for what cannot be shown
        print("\n".join(explain_monitor(plan)), end="\n\n")
        if not yes and not _confirm():
            print("Nothing was started, and nothing is spent.")
            raise typer.Exit(1)
        run = start_monitor(service, plan, by=who, why=said)
    print(f"{name}: started ({run.run[:SHORT_ID]})")


@app.command()
def pause(name: Name, why: Why, policy: PolicyPath = DEFAULT_POLICY, by: By = None) -> None:
    """Pause a monitor until it is resumed. Missed looks are not made later, and stay charged."""
    _change_monitor(policy, name, MonitorChange.PAUSE, by=by, why=why)
    print(f"{name}: paused")


@app.command()
def resume(name: Name, why: Why, policy: PolicyPath = DEFAULT_POLICY, by: By = None) -> None:
    """Resume a paused monitor in its open windows."""
    _change_monitor(policy, name, MonitorChange.RESUME, by=by, why=why)
    print(f"{name}: running")


@app.command()
def end(name: Name, why: Why, policy: PolicyPath = DEFAULT_POLICY, by: By = None) -> None:
    """End a monitor for good. Windows that never began cost nothing. An open window costs its whole price."""
    _change_monitor(policy, name, MonitorChange.END, by=by, why=why)
    print(f"{name}: ended")


def _change_monitor(policy: Path, name: str, change: MonitorChange, *, by: str | None, why: str) -> None:
    with print_refusals(as_json=False), open_owner_ledger(policy) as ledger:
        change_monitor(ledger, name, change, by=read_decider(by), why=read_reason(why))


def _open_reading(service: Service) -> ServiceMonitorReader:
    return ServiceMonitorReader(service, ShortLivedLabels(service))


def _plan_monitor(service: Service, name: str) -> MonitorPlan:
    return plan_monitor(service.catalog, _find_monitor(service, name), dialect=service.dialect)


def _find_monitor(service: Service, name: str) -> Monitor:
    monitor = service.catalog.find_monitor(name)
    if monitor is None:
        known = ", ".join(one.name for one in service.catalog.monitors) or "none"
        raise typer.BadParameter(f'the policy has no monitor "{name}"; it has {known}', param_hint="NAME")
    return monitor


def _confirm() -> bool:
    """Return True if a person at the terminal says yes."""
    if not sys.stdin.isatty():
        print("Say --yes to start it where nobody can be asked.", file=sys.stderr)
        return False
    return typer.confirm("Start it?")
