"""The forms by which an owner decides on a page. Each decision is a ledger event, with a reason and the name "console".

Guarantee: a form that is sent twice has one effect. An approval or an action on a monitor has no effect the second
time. A grant and a window carry their page's id, and the ledger has one event for each id.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from fastapi import APIRouter, Request, Response

from accountant.errors import LedgerError, LedgerMisuse, LedgerUnavailable, MonitorNotEnded
from accountant.monitor_model import MonitorState
from planner.errors import KeyholeError
from proxy.console.login import read_form
from proxy.console.owner.decided import describe_grant
from proxy.console.owner.pages import PLACE
from proxy.console.owner.showing import (
    DecisionResult,
    ShowPage,
    show_approvals,
    show_grants,
    show_ledger,
    show_monitors,
    show_windows,
)
from proxy.console.page import render_page
from proxy.console.parts import ConsoleParts
from proxy.monitors.reading import ServiceMonitorReader
from proxy.monitors.start import start_monitor
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger, report_unreadable_ledger
from proxy.owner import measure as left_out
from proxy.owner.decisions import Cap, MonitorChange, change_monitor, make_grant, read_fingerprint
from proxy.owner.mistyped import Mistyped, read_reason
from proxy.owner.verification import parse_kept_event, verify_ledger
from proxy.report.ledger_tables import SHORT_ID
from proxy.report.terminal import make_visible
from proxy.shadow.key_labels import LabelReader

BY = "console"
"""Who stands in the ledger for what was decided on a page: it has one owner, by one token."""

_MOST_REASON = 2000  # characters: a page of text; the event keeps it for good
_MEASURE_TURN_MS = 60_000  # for a place at the source, behind the analysts' questions; set, not measured
Fields = Mapping[str, str]
_LEADS_TO = {
    "start": (MonitorState.RUNNING, MonitorState.PAUSED),
    "pause": (MonitorState.PAUSED,),
    "resume": (MonitorState.RUNNING,),
    "end": (MonitorState.ENDED,),
}
"""The states in which a monitor is where a change would have it, so that a second click does nothing."""


@dataclass(frozen=True, slots=True)
class DecisionForm:
    """A form of the owner's pages: its address, the page that shows it, and the function that carries it out."""

    place: str
    show: ShowPage
    decide: Callable[[Service, Fields], str]


def add_decision_forms(router: APIRouter, parts: ConsoleParts) -> None:
    """Add the forms to the owner's router. They are handled one at a time, since each may read the whole ledger."""
    at_once = asyncio.Lock()
    for form in (
        DecisionForm("approvals", show_approvals, _decide_waiting_question),
        DecisionForm("grants", show_grants, _grant),
        DecisionForm("grants/revoke", show_grants, _revoke),
        DecisionForm("windows", show_windows, _open_window),
        DecisionForm("monitors", partial(show_monitors, parts.labels), partial(_change_monitor, parts.labels)),
        DecisionForm("ledger/verify", show_ledger, _verify),
    ):
        router.add_api_route(f"{PLACE}/{form.place}", _make_sender(parts, form, at_once), methods=["POST"])

    @router.post(f"{PLACE}/measure")
    async def measure(request: Request) -> Response:
        async with at_once:
            return await asyncio.to_thread(_measure, request, parts)


def _make_sender(parts: ConsoleParts, form: DecisionForm, at_once: asyncio.Lock) -> Callable[[Request], object]:
    def send(request: Request, fields: Fields) -> Response:
        with parts.serving.hold_open() as service:
            result = _decide(form, service, fields)
            try:
                return form.show(request, service, result)
            except LedgerError:
                raise report_unavailable_ledger() from None

    async def take(request: Request) -> Response:
        fields = await read_form(request)
        async with at_once:
            return await asyncio.to_thread(send, request, fields)

    return take


def _decide(form: DecisionForm, service: Service, fields: Fields) -> DecisionResult:
    try:
        return DecisionResult(done=form.decide(service, fields))
    except Mistyped as error:
        return DecisionResult(mistyped=make_visible(f"{error.field}: {error.problem}"), typed=fields)
    except MonitorNotEnded as error:
        return DecisionResult(mistyped=make_visible(f"{error}. No window was opened."), typed=fields)
    except LedgerMisuse as error:
        return DecisionResult(mistyped=make_visible(str(error)), typed=fields)
    except LedgerUnavailable as error:
        return DecisionResult(refused=report_unreadable_ledger(error), typed=fields)
    except LedgerError:
        return DecisionResult(refused=report_unavailable_ledger(), typed=fields)
    except KeyholeError as error:
        return DecisionResult(refused=error, typed=fields)


def _read_reason(fields: Fields) -> str:
    why = read_reason(fields.get("why", ""))
    if len(why) > _MOST_REASON:
        raise Mistyped("why", f"at most {_MOST_REASON:,} characters")
    return why


def _decide_waiting_question(service: Service, fields: Fields) -> str:
    question, why = read_fingerprint(fields.get("id", "")), _read_reason(fields)
    owner, short = service.ledger.owner, question[:SHORT_ID]
    match fields.get("decision"):
        case "approve":
            new = owner.approve_question(question, by=BY, why=why)
            return f"Question {short} {'is approved' if new else 'was approved before'}: it may be asked now."
        case "decline":
            waited = owner.decline_question(question, by=BY, why=why)
            became = "is declined" if waited else "does not wait any more"
            return f"Question {short} {became}. Whoever asks it reads why; asked again, it waits again."
    raise Mistyped("decision", "approve or decline")


def _grant(service: Service, fields: Fields) -> str:
    try:
        epsilon = float(fields.get("epsilon", ""))
    except ValueError:
        raise Mistyped("epsilon", "a number, such as 0.5") from None
    try:
        cap = Cap(fields.get("cap", ""))
    except ValueError:
        raise Mistyped("cap", "one of those that are offered") from None
    why = _read_reason(fields)
    table, analyst = fields.get("table") or None, fields.get("analyst") or None
    given = make_grant(service.policy, epsilon, cap=cap, table=table, analyst=analyst)
    identity = service.ledger.owner.write_grant(given, by=BY, why=why, once=_read_once_code(fields))
    return f"Granted {describe_grant(given)}. Its id is {identity[:SHORT_ID]}."


def _revoke(service: Service, fields: Fields) -> str:
    identity, why = fields.get("id", ""), _read_reason(fields)
    if identity not in service.ledger.owner.list_grants():
        return "That grant is not in force, so there is nothing to revoke."
    service.ledger.owner.revoke_grant(identity, by=BY, why=why)
    return f"The grant {make_visible(identity[:SHORT_ID])} is revoked. What was spent within it stays spent."


def _open_window(service: Service, fields: Fields) -> str:
    why = _read_reason(fields)
    if fields.get("sure") != "yes":
        raise Mistyped("sure", "say that you mean it: a window cannot be closed again")
    identity = service.ledger.owner.open_window(by=BY, why=why, once=_read_once_code(fields))
    return f"A budget window is open: all balances start at nothing. Its id is {identity[:SHORT_ID]}."


def _read_once_code(fields: Fields) -> str:
    once = fields.get("once", "")
    if not once:
        raise Mistyped("once", "send the form from the page that shows it")
    return once


def _change_monitor(labels: LabelReader | None, service: Service, fields: Fields) -> str:
    name, why, change = fields.get("name", ""), _read_reason(fields), fields.get("change", "")
    run = service.ledger.monitors.find_newest_run(name)
    state = None if run is None else run.state
    if change in _LEADS_TO and state in _LEADS_TO[change]:
        return f"{make_visible(name)} is {state} already: nothing was done."
    if change == "start":
        monitor = service.catalog.find_monitor(name)
        if monitor is None:
            raise Mistyped("name", "the policy has no such monitor")
        reading = ServiceMonitorReader(service, labels)
        reading.label_keys(monitor)  # nothing is paid for what cannot be shown
        started = start_monitor(service, reading.plan_monitor(monitor), by=BY, why=why)
        return f"{make_visible(name)} is started ({started.run[:SHORT_ID]}): its whole horizon is paid for."
    try:
        wanted = MonitorChange(change)
    except ValueError:
        raise Mistyped("change", "start, pause, resume or end") from None
    change_monitor(service.ledger, name, wanted, by=BY, why=why)
    became = {MonitorChange.PAUSE: "paused", MonitorChange.RESUME: "running", MonitorChange.END: "ended for good"}
    return f"{make_visible(name)} is {became[wanted]}."


def _verify(service: Service, fields: Fields) -> str:
    expected = fields.get("expect", "").strip()
    kept = parse_kept_event(expected) if expected else None
    return "\n".join(verify_ledger(service.ledger, kept=kept).write_lines())


def _measure(request: Request, parts: ConsoleParts) -> Response:
    """Return the page about rows that bounds leave out of the private data.

    This is the only page that reads private rows, and only the owner sees it.
    """
    with parts.serving.hold_open() as service, service.take_turn(analyst="", timeout_ms=_MEASURE_TURN_MS):
        found = left_out.measure_tables(service.catalog, service.source)
    tables = [tuple(map(make_visible, table.write_lines())) for table in found]
    return render_page(request, "owner/measured.html", section="policy", warning=left_out.WARNING, tables=tables)
