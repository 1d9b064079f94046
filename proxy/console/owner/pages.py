"""The pages that an owner reads. They follow from policy and ledger, and never read private data."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from accountant.errors import LedgerError
from planner.errors import KeyholeError
from planner.policy.rules.document import describe_warnings
from proxy.console.console_refusals import refuse_missing_page
from proxy.console.login import read_form
from proxy.console.owner.budget_map import EVERY_FILTER, MapRequest, choose_map, describe_share
from proxy.console.owner.burn_lines import list_burn_rows, make_burn_document
from proxy.console.owner.overview import describe_parts, read_overview
from proxy.console.owner.question_pages import list_facts_and_losses, list_question_rows, list_waiting_rows
from proxy.console.owner.risk_page import RiskForm, read_risk
from proxy.console.owner.showing import (
    NOTHING,
    ShowPage,
    show_approvals,
    show_grants,
    show_ledger,
    show_monitors,
    show_windows,
)
from proxy.console.page import render_page
from proxy.console.parts import ConsoleParts
from proxy.open_policy.accounts import find_limits
from proxy.open_policy.service import OWNER, Service, find_ledger_url
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.owner.mistyped import Mistyped
from proxy.owner.policy_words import describe_budget, describe_table
from proxy.report.cap_arithmetic import describe_odds, list_costliest_questions
from proxy.report.heat_map import list_legend, summarise
from proxy.report.terminal import make_visible
from proxy.security.file_modes import describe_exposed_files
from proxy.security.tls import Tls, list_exposure_warnings

PLACE = "/console/owner"
_PAGE = 50  # questions of a list: as keyhole ledger list has them
_NEWEST = 5  # questions on the overview
_MOST_RISK_BYTES = 262_144  # of files that are pasted: some thousand lines, more than is worked out here
_Text = Annotated[str, Query(max_length=1000)]  # of a choice: longer than any name that people give


def add_owner_pages(router: APIRouter, parts: ConsoleParts) -> None:
    """Add the pages to the owner's router."""
    _add_overview(router, parts)
    _add_budget(router, parts)
    _add_questions(router, parts)
    _add_policy(router, parts)
    _add_risk(router, parts)
    shown: dict[str, ShowPage] = {
        "approvals": show_approvals,
        "grants": show_grants,
        "windows": show_windows,
        "monitors": partial(show_monitors, parts.labels),
        "ledger": show_ledger,
    }
    for name, show in shown.items():
        router.add_api_route(f"{PLACE}/{name}", _make_reader(parts, show), methods=["GET"])


def _make_reader(parts: ConsoleParts, show: ShowPage) -> Callable[[Request], Response]:
    def read(request: Request) -> Response:
        with parts.serving.hold_open() as service:
            try:
                return show(request, service, NOTHING)
            except LedgerError:
                raise report_unavailable_ledger() from None

    return read


def _add_overview(router: APIRouter, parts: ConsoleParts) -> None:
    def read(request: Request, missing: tuple[str, ...]) -> Response:
        with parts.serving.hold_open() as service:
            report = service.report_balances(None)
            ledger = service.ledger
            newest = ledger.read_page(analyst=None, before=None, limit=_NEWEST, only_open=False)
            number, last = ledger.owner.find_newest_event()
            return render_page(
                request,
                "owner/overview.html",
                section="owner",
                seen=read_overview(report),
                health=describe_parts(parts.ready.parts, missing),
                waiting=tuple(list_waiting_rows(ledger)),
                newest=tuple(list_question_rows(newest.questions)),
                number=number,
                last=last,
                warned=len(_list_warnings(service)),
            )

    @router.get(PLACE)
    async def show_overview(request: Request) -> Response:
        missing = await parts.ready.find_missing()
        try:
            return await asyncio.to_thread(read, request, missing)
        except LedgerError:
            raise report_unavailable_ledger() from None


def _add_budget(router: APIRouter, parts: ConsoleParts) -> None:
    @router.get(f"{PLACE}/budget")
    def show_budget(
        request: Request, table: _Text = "", keys: _Text = "", condition: _Text = EVERY_FILTER, find: _Text = ""
    ) -> Response:
        with parts.serving.hold_open() as service:
            report = service.report_balances(None)
            found = choose_map(report, MapRequest(table, keys, condition, find))
            try:
                burning = service.ledger.report_burn_down(find_limits(service.catalog, OWNER))
            except LedgerError:
                raise report_unavailable_ledger() from None
            return render_page(
                request,
                "owner/budget.html",
                section="budget",
                map=found,
                drawn=found.make_document(),
                summary=() if found.shown is None else tuple(map(make_visible, summarise([found.shown]))),
                show_share=describe_share,
                visible=make_visible,
                legend=list_legend(),
                burning=tuple(list_burn_rows(burning)),
                burnt=make_burn_document(burning),
            )


def _add_questions(router: APIRouter, parts: ConsoleParts) -> None:
    @router.get(f"{PLACE}/questions")
    def list_questions(
        request: Request, analyst: _Text = "", before: _Text = "", only: Annotated[str, Query(max_length=10)] = ""
    ) -> Response:
        with parts.serving.hold_open() as service:
            try:
                found = service.ledger.read_page(
                    analyst=analyst or None, before=before or None, limit=_PAGE, only_open=only == "open"
                )
            except LedgerError:
                raise report_unavailable_ledger() from None
            names = [(one.name, make_visible(one.name)) for one in service.catalog.analysts]
        return render_page(
            request,
            "owner/questions.html",
            section="questions",
            rows=tuple(list_question_rows(found.questions)),
            older=found.older_count,
            analysts=names,
            analyst=analyst,
            open_only=only == "open",
        )

    @router.get(f"{PLACE}/questions/{{identity}}")
    def show_question(request: Request, identity: str) -> Response:
        given = identity.strip().lower()
        if not given.isalnum():
            raise refuse_missing_page()
        with parts.serving.hold_open() as service:
            try:
                found = service.ledger.find_questions(given)
            except LedgerError:
                raise report_unavailable_ledger() from None
        if len({one.charge.question for one in found}) != 1:
            raise refuse_missing_page()
        asked = tuple(list_facts_and_losses(one) for one in found)
        return render_page(request, "owner/question.html", section="questions", asked=asked)


def _add_policy(router: APIRouter, parts: ConsoleParts) -> None:
    @router.get(f"{PLACE}/policy")
    def show_policy(request: Request) -> Response:
        with parts.serving.hold_open() as service:
            catalog = service.catalog
            tables = [tuple(map(make_visible, describe_table(table))) for table in catalog.tables]
            budget = [*describe_budget(catalog), *describe_odds(catalog)]
            budget += [f"{found.table}: {found.sentence}" for found in list_costliest_questions(catalog)]
            return render_page(
                request,
                "owner/policy.html",
                section="policy",
                name=make_visible(service.policy.path.name),
                digest=catalog.digest,
                warned=_list_warnings(service),
                tables=tables,
                budget=[make_visible(line) for line in budget],
                views=[(make_visible(name), make_visible(view.sql)) for name, view in service.policy.views.items()],
                analysts=[_describe_analyst(service, name) for name in service.policy.analysts],
            )


def _add_risk(router: APIRouter, parts: ConsoleParts) -> None:
    at_once = asyncio.Lock()  # attackers are worked out for seconds

    def show(request: Request, wish: RiskForm) -> Response:
        problem = ""
        with parts.serving.hold_open() as service:
            try:
                try:
                    report = read_risk(service, wish)
                except Mistyped as error:
                    problem = f"{error.field}: {error.problem}"
                    report = read_risk(service, RiskForm(from_ledger=wish.from_ledger))
            except LedgerError:
                raise report_unavailable_ledger() from None
        values = {"report": report, "wish": wish, "problem": make_visible(problem)}
        return render_page(request, "owner/risk.html", section="risk", status=422 if problem else 200, **values)

    @router.get(f"{PLACE}/risk")
    def show_risk(
        request: Request, source: Annotated[str, Query(alias="from", max_length=20)] = "caps", target: _Text = ""
    ) -> Response:
        return show(request, RiskForm(from_ledger=source == "ledger", target=target))

    @router.post(f"{PLACE}/risk")
    async def take_risk(request: Request) -> Response:
        wish = RiskForm.read_fields(await read_form(request, most_bytes=_MOST_RISK_BYTES))
        async with at_once:
            return await asyncio.to_thread(show, request, wish)


def _list_warnings(service: Service) -> tuple[str, ...]:
    """Return those warnings of `keyhole check` that need no access to the source."""
    policy = service.policy
    try:
        said = [
            *describe_warnings(policy),
            *list_exposure_warnings(policy.server.host, Tls.open_from_policy(policy), now=datetime.now(UTC)),
        ]
    except KeyholeError as error:  # a certificate that is gone since it was loaded
        said = [error.message]
    said += describe_exposed_files(policy, ledger=find_ledger_url(policy))
    return tuple(map(make_visible, said))


def _describe_analyst(service: Service, name: str) -> tuple[str, str]:
    own = service.policy.analysts[name]
    caps = [
        f"a group {own.epsilon_per_predicate:g}" if own.epsilon_per_predicate is not None else "",
        f"a unit {own.epsilon_per_unit:g}" if own.epsilon_per_unit is not None else "",
    ]
    return make_visible(name), ", ".join(filter(None, caps)) or "the shared caps alone"
