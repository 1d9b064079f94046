"""The owner's decisions in words, one for each event of the ledger."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from accountant.charges import NANO
from accountant.events.monitor_events import MonitorEnded, MonitorPaused, MonitorResumed, MonitorStarted
from accountant.events.owner_events import (
    Approved,
    Declined,
    Grant,
    Granted,
    Pruned,
    Published,
    Revoked,
    Settled,
    WindowOpened,
)
from accountant.verbs.owner import Decision
from proxy.report.ledger_tables import SHORT_ID
from proxy.report.terminal import make_visible

_CAPS = {
    "per_predicate": "of a group",
    "per_unit": "of a privacy unit",
    "per_table": "of a table",
    "analyst_per_predicate": "of a group",
    "analyst_per_unit": "of a privacy unit",
}


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One decision as text: the event's number, its time, the decision, who made it, and why."""

    number: int
    at: str
    what: str
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class GrantRow:
    """A grant that is in force, with its id and its effect in words."""

    identity: str
    words: str


def list_decision_rows(decided: Iterable[tuple[int, Decision]]) -> Iterator[DecisionRow]:
    """Yield the given decisions as rows of text, in their order."""
    for number, event in decided:
        yield DecisionRow(
            number=number,
            at=event.at.isoformat(sep=" ", timespec="seconds"),
            what=make_visible(_describe(event)),
            by=make_visible(event.by),
            why=make_visible(event.why),
        )


def list_grant_rows(grants: Mapping[str, Grant]) -> Iterator[GrantRow]:
    """Yield the grants that are in force, in words."""
    for identity, grant in grants.items():
        yield GrantRow(identity, make_visible(describe_grant(grant)))


def describe_grant(grant: Grant) -> str:
    """Return a grant in words: `+2 for the cap of a group, on visits`."""
    whose = "" if grant.analyst is None else f", {grant.analyst}'s own"
    table = "" if grant.table is None else f", on {grant.table}"
    return f"+{grant.amount_nano / NANO:g} for the cap {_CAPS[grant.scope.value]}{whose}{table}"


def _describe(event: Decision) -> str:
    match event:
        case Granted(grant=grant):
            return f"granted {describe_grant(grant)}"
        case Revoked(grant_id=identity):
            return f"revoked the grant {identity[:SHORT_ID]}"
        case Settled(reservation=reservation, untouched=untouched):
            became = "given back" if untouched else "spent for good"
            return f"settled the reservation {reservation[:SHORT_ID]}: {became}"
        case WindowOpened():
            return "opened a budget window"
        case Approved(question=question):
            return f"approved the question {question[:SHORT_ID]}"
        case Declined(question=question):
            return f"declined the question {question[:SHORT_ID]}"
        case Pruned(table=table, version=version):
            return f"removed noise paths of {table}, data version {version}"
        case Published(table=table, file=file, method=method):
            return f"published {table} as {file} ({method}); no budget covers it"
        case _:
            return _describe_monitor(event)


def _describe_monitor(event: MonitorStarted | MonitorPaused | MonitorResumed | MonitorEnded) -> str:
    match event:
        case MonitorStarted(monitor=monitor):
            return f"started the monitor {monitor}"
        case MonitorPaused(run=run):
            return f"paused the monitor of run {run[:SHORT_ID]}"
        case MonitorResumed(run=run):
            return f"resumed the monitor of run {run[:SHORT_ID]}"
        case MonitorEnded(run=run):
            return f"ended the monitor of run {run[:SHORT_ID]}"
