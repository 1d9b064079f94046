"""The login and logout of the console: analysts by name and password or by token, the owner by the owner's token.

Guarantee: a wrong password, an unknown name, and an analyst who must use a certificate get the same answer after the
same work. Every failure counts, as in REST and at the PostgreSQL port. If an address has too many failures, its logins
are not checked.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Sequence
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from planner.catalog.catalog import Analyst
from planner.errors import KeyholeError
from proxy.console.console_refusals import refuse_unreadable_form, refuse_wrong_login, refuse_wrong_owner_token
from proxy.console.guarded_routes import (
    LOGIN,
    OWNER_LOGIN,
    check_owner_address,
    find_session,
    has_owner_session,
    read_analyst_session,
    read_owner_session,
)
from proxy.console.page import render_page
from proxy.console.parts import ConsoleParts
from proxy.console.session_cookie import ANALYST, OWNER, delete_cookie, join_credential, set_cookie
from proxy.rest.app import find_address
from proxy.rest.gate import authenticate
from proxy.rest.problems import choose_http_status
from proxy.security.mock_users import MockUsers
from proxy.security.scram import Verifier, check_password

START, OWNER_START = "/console/ask", "/console/owner"
_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 12  # of a form: a login's has four, the one about risks eleven
_MOST_FORM_BYTES = 16_384  # of a login's form, as much as a head may have; a password of 1,000 characters has 9,000
_MOST_PASSWORD_CHARACTERS = 1_000  # longer than any that is typed or generated; preparing one takes time by its length


def add_login_routes(router: APIRouter, parts: ConsoleParts) -> None:
    """Add the login page, and the routes for login and logout, to a router."""
    _add_analyst_login(router, parts)
    _add_owner_login(router, parts)


def _add_analyst_login(router: APIRouter, parts: ConsoleParts) -> None:

    @router.get("/console")
    async def begin(request: Request) -> Response:
        return RedirectResponse(LOGIN if find_session(parts, request) is None else START, status_code=303)

    @router.get(LOGIN)
    async def show_login(request: Request) -> Response:
        return render_page(
            request, "login.html", next=_choose_target(request.query_params.get("next", ""), START), problem=None
        )

    @router.post(LOGIN)
    async def log_in(request: Request) -> Response:
        form = await read_form(request)
        place = _choose_target(form.get("next", ""), START)
        try:
            analyst = await _authenticate(parts, form, address=find_address(request.scope))
        except KeyholeError as refusal:
            return render_page(request, "login.html", status=choose_http_status(refusal), next=place, problem=refusal)
        minutes = parts.section.session_minutes
        value = parts.seal.seal(ANALYST, analyst.name, credential=join_credential(analyst), minutes=minutes)
        response = RedirectResponse(place, status_code=303)
        set_cookie(request, response, ANALYST, value, minutes=minutes)
        return response

    @router.post("/console/logout")
    async def log_out(request: Request) -> Response:
        response = RedirectResponse(LOGIN, status_code=303)
        session = read_analyst_session(parts, request)
        if session is not None:
            await asyncio.to_thread(parts.ended_logins.end_session, session)
        delete_cookie(request, response, ANALYST)
        return response


def _add_owner_login(router: APIRouter, parts: ConsoleParts) -> None:
    @router.get(OWNER_LOGIN)
    async def show_owner_login(request: Request) -> Response:
        check_owner_address(parts, request)
        if has_owner_session(parts, request):
            return RedirectResponse(OWNER_START, status_code=303)
        place = _choose_target(request.query_params.get("next", ""), OWNER_START)
        return render_page(request, "owner_login.html", next=place, problem=None, is_open=_has_token(parts))

    @router.post(OWNER_LOGIN)
    async def log_owner_in(request: Request) -> Response:
        check_owner_address(parts, request)
        form = await read_form(request)
        place = _choose_target(form.get("next", ""), OWNER_START)
        try:
            credential = _authenticate_owner(parts, form.get("token", ""), address=find_address(request.scope))
        except KeyholeError as refusal:
            status, is_open = choose_http_status(refusal), _has_token(parts)
            return render_page(request, "owner_login.html", status=status, next=place, problem=refusal, is_open=is_open)
        minutes = parts.section.session_minutes
        response = RedirectResponse(place, status_code=303)
        value = parts.seal.seal(OWNER, OWNER, credential=credential, minutes=minutes)
        set_cookie(request, response, OWNER, value, minutes=minutes)
        return response

    @router.post("/console/owner/logout")
    async def log_owner_out(request: Request) -> Response:
        response = RedirectResponse(OWNER_LOGIN, status_code=303)
        session = read_owner_session(parts, request)
        if session is not None:
            await asyncio.to_thread(parts.ended_logins.end_session, session)
        delete_cookie(request, response, OWNER)
        return response


async def read_form(request: Request, *, most_bytes: int = _MOST_FORM_BYTES) -> dict[str, str]:
    """Return the fields of a short form. Raise KH408 if it is too long, invalid, or has a field twice."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise refuse_unreadable_form()
    body = await request.body()
    if len(body) > most_bytes:
        raise refuse_unreadable_form()
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"))
    except ValueError:
        raise refuse_unreadable_form() from None


def _choose_target(wanted: str, otherwise: str) -> str:
    """Return the page to show after the login. It is always a page of the console."""
    plain = wanted.isascii() and wanted.isprintable() and "\\" not in wanted and "//" not in wanted
    return wanted if plain and wanted.startswith("/console/") else otherwise


async def _authenticate(parts: ConsoleParts, form: dict[str, str], *, address: str) -> Analyst:
    """Return the analyst with the token, or with the name and password, in a form. Raise KH401 and KH430."""
    token, user, password = form.get("token", ""), form.get("user", ""), form.get("password", "")
    with parts.serving.hold_open() as service:
        analysts = service.catalog.analysts
    if token:
        return _authenticate_by_token(parts, analysts, token, address=address)
    # one at a time: however many come at once, no password too many is looked at
    async with parts.password_lock:
        parts.gate.check_may_log_in(address, user=user)
        analyst = await asyncio.to_thread(find_by_password, analysts, user, password, mock_users=parts.mock_users)
        if analyst is None:
            parts.gate.note_failure(address, user=user)
            raise refuse_wrong_login()
        parts.gate.note_success(address)
        return analyst


def _authenticate_by_token(parts: ConsoleParts, analysts: Sequence[Analyst], token: str, *, address: str) -> Analyst:
    parts.gate.check_may_log_in(address)
    try:
        analyst = authenticate(analysts, token)
    except KeyholeError:
        parts.gate.note_failure(address)
        raise refuse_wrong_login() from None
    parts.gate.note_success(address)
    return analyst


def find_by_password(analysts: Sequence[Analyst], user: str, password: str, *, mock_users: MockUsers) -> Analyst | None:
    """Return the analyst with this name and password, or None. An unknown name takes the same work.

    An analyst who must use a certificate cannot log in here, since the console asks for no certificate.
    """
    stranger = mock_users.make_verifier(user, analysts)  # computed for known names, too
    found = next((analyst for analyst in analysts if analyst.name == user), None)
    known = stranger if found is None else Verifier.parse(found.verifier)
    right = check_password(password[:_MOST_PASSWORD_CHARACTERS], known) and len(password) <= _MOST_PASSWORD_CHARACTERS
    return found if right and found is not None and found.certificate_name is None else None


def _has_token(parts: ConsoleParts) -> bool:
    return parts.section.owner_token_sha256 is not None


def _authenticate_owner(parts: ConsoleParts, token: str, *, address: str) -> str:
    """Return the owner's credential if the token is the owner's. Raise KH401 and KH430."""
    parts.gate.check_may_log_in(address)
    known = parts.section.owner_token_sha256
    if not hmac.compare_digest(hashlib.sha256(token.encode()).hexdigest(), known or "") or known is None:
        parts.gate.note_failure(address)
        raise refuse_wrong_owner_token()
    parts.gate.note_success(address)
    return known
