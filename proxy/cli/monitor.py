"""`keyhole monitor`: list, start, pause, resume, end and watch the policy's monitors. For the data owner."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from accountant.errors import MonitorStopped
from accountant.ledger import Ledger
from accountant.monitor_model import MonitorRun
from planner.monitors.build import plan_monitor
from planner.monitors.explain import explain_monitor
from planner.monitors.model import MonitorPlan
from proxy.cli.common import DEFAULT_POLICY, By, PolicyPath, Why, decided_by, owners_ledger, reason, refusals
from proxy.monitors import refusals as refused
from proxy.monitors.start import check_startable, start_monitor
from proxy.report.ledger_tables import SHORT_ID
from proxy.service.service import Service

Name = Annotated[str, typer.Argument(metavar="NAME", help="The monitor, as the policy calls it.")]

app = typer.Typer(
    name="monitor",
    help="Start, pause and end standing questions.",
    no_args_is_help=True,
)


@app.command()
def start(
    name: Name,
    why: Why,
    policy: PolicyPath = DEFAULT_POLICY,
    by: By = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Pay for a monitor's whole horizon and let its looks be made. Says what it costs, and asks."""
    said, who = reason(why), decided_by(by)
    with refusals(as_json=False), Service.open(policy) as service:
        plan = _plan(service, name)
        check_startable(service, plan)
        print("\n".join(explain_monitor(plan)), end="\n\n")
        if not yes and not _confirm():
            print("Nothing was started, and nothing is spent.")
            raise typer.Exit(1)
        run = start_monitor(service, plan, by=who, why=said)
    print(f"{name}: started ({run.run[:SHORT_ID]})")


@app.command()
def pause(name: Name, why: Why, policy: PolicyPath = DEFAULT_POLICY, by: By = None) -> None:
    """Make no looks until it is resumed. What is missed meanwhile is not made up, and stays charged."""
    with _standing(policy, name) as (ledger, run):
        ledger.monitors.pause(run.run, by=decided_by(by), why=reason(why))
    print(f"{name}: paused")


@app.command()
def resume(name: Name, why: Why, policy: PolicyPath = DEFAULT_POLICY, by: By = None) -> None:
    """Make looks again, in the windows as they were left."""
    with _standing(policy, name) as (ledger, run):
        ledger.monitors.resume(run.run, by=decided_by(by), why=reason(why))
    print(f"{name}: running")


@app.command()
def end(name: Name, why: Why, policy: PolicyPath = DEFAULT_POLICY, by: By = None) -> None:
    """Make no looks ever again. Windows that never began cost nothing; one that is open costs all of its price."""
    with _standing(policy, name) as (ledger, run):
        ledger.monitors.end(run.run, by=decided_by(by), why=reason(why))
    print(f"{name}: ended")


def _plan(service: Service, name: str) -> MonitorPlan:
    monitor = service.catalog.monitor(name)
    if monitor is None:
        known = ", ".join(one.name for one in service.catalog.monitors) or "none"
        raise typer.BadParameter(f'the policy has no monitor "{name}"; it has {known}', param_hint="NAME")
    return plan_monitor(service.catalog, monitor, dialect=service.source.dialect)


def _confirm() -> bool:
    """Whether whoever sits there says yes; nobody does where nobody sits."""
    if not sys.stdin.isatty():
        print("Say --yes to start it where nobody can be asked.", file=sys.stderr)
        return False
    return typer.confirm("Start it?")


@contextmanager
def _standing(policy: Path, name: str) -> Iterator[tuple[Ledger, MonitorRun]]:
    """The ledger, and the newest run of a monitor; what the verbs refuse, in words."""
    with refusals(as_json=False), owners_ledger(policy) as ledger:
        run = ledger.monitors.find(name)
        if run is None:
            raise refused.never_started(name)
        try:
            yield ledger, run
        except MonitorStopped as stopped:
            raise refused.not_standing(name, stopped.state) from None
