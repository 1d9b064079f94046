"""The access rules of the console. Its routers check the session, the sender's site and the gate first."""

from collections.abc import Callable, Coroutine, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

from anyio.to_thread import current_default_thread_limiter
from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from planner.catalog.catalog import Analyst
from planner.errors import KeyholeError
from proxy.console.console_refusals import refuse_ended_session, refuse_missing_page, refuse_other_site
from proxy.console.page import FILES, PLAYGROUND, render_error
from proxy.console.parts import ConsoleParts
from proxy.console.session_cookie import ANALYST, OWNER, ConsoleSession, join_credential, read_cookie
from proxy.rest.app import StrictRequest, find_address
from proxy.rest.middleware import LEAVING
from proxy.rest.request_refusals import refuse_malformed, refuse_with_status

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
LOGIN, OWNER_LOGIN = "/console/login", "/console/owner/login"
_API, _EVENTS = "/api/", "/events"


def make_public_routes(parts: ConsoleParts) -> APIRouter:
    """Return a router for everybody: the login page, and the files that it loads."""

    async def check_request(request: Request) -> None:
        request.state.role = None

    return _make_router(parts, check_request, otherwise=LOGIN)


def make_analyst_routes(parts: ConsoleParts) -> APIRouter:
    """Return a router for the logged-in analyst, `request.state.analyst`. Requests are limited as REST's are."""

    async def check_request(request: Request) -> None:
        analyst = find_session(parts, request)
        if analyst is None:
            raise refuse_ended_session()
        request.state.analyst = analyst.name
        request.state.role = ANALYST
        parts.gate.count_request(analyst)
        streams = request.url.path.endswith(_EVENTS)
        request.scope[LEAVING].enter_context(
            parts.gate.take_stream(analyst) if streams else parts.gate.take_slot(analyst)
        )

    return _make_router(parts, check_request, otherwise=LOGIN)


def make_owner_routes(parts: ConsoleParts) -> APIRouter:
    """Return a router for the logged-in owner, at addresses that the policy allows."""

    async def check_request(request: Request) -> None:
        check_owner_address(parts, request)
        if not has_owner_session(parts, request):
            raise refuse_ended_session()
        request.state.role = OWNER

    return _make_router(parts, check_request, otherwise=OWNER_LOGIN)


def find_session(parts: ConsoleParts, request: Request) -> Analyst | None:
    """Return the analyst whose session a request carries, from the current policy, or None."""
    analysts = _list_analysts(parts)
    session = read_analyst_session(parts, request, analysts)
    return None if session is None else analysts[session.name]


def has_valid_session(parts: ConsoleParts, request: Request) -> bool:
    """Return True if a request's session is still valid. A long request checks this repeatedly."""
    try:
        return find_session(parts, request) is not None
    except KeyholeError:
        return False


def read_analyst_session(
    parts: ConsoleParts, request: Request, analysts: Mapping[str, Analyst] | None = None
) -> ConsoleSession | None:
    """Return the analyst's session from a request's cookie, or None if it is invalid or was ended."""
    known = _list_analysts(parts) if analysts is None else analysts

    def credential(name: str) -> str | None:
        return join_credential(known[name]) if name in known else None

    return _drop_if_ended(parts, parts.seal.open(ANALYST, read_cookie(request, ANALYST), credential_of=credential))


def read_owner_session(parts: ConsoleParts, request: Request) -> ConsoleSession | None:
    """Return the owner's session from a request's cookie, or None if it is invalid or was ended."""
    token = parts.section.owner_token_sha256
    session = parts.seal.open(OWNER, read_cookie(request, OWNER), credential_of=lambda _: token)
    return None if session is None or session.name != OWNER else _drop_if_ended(parts, session)


def has_owner_session(parts: ConsoleParts, request: Request) -> bool:
    """Return True if a request carries a valid session of the owner."""
    return read_owner_session(parts, request) is not None


def _list_analysts(parts: ConsoleParts) -> dict[str, Analyst]:
    with parts.serving.hold_open() as service:
        return {analyst.name: analyst for analyst in service.catalog.analysts}


def _drop_if_ended(parts: ConsoleParts, session: ConsoleSession | None) -> ConsoleSession | None:
    return None if session is None or parts.ended_logins.has_ended(session) else session


def check_owner_address(parts: ConsoleParts, request: Request) -> None:
    """Raise KH408, as for a missing page, if the owner's pages must not be shown to this address or host name.

    A host name that is not this machine's own means that a proxy or another name server sent the request here.
    """
    if parts.section.owner_from == "anywhere":
        return
    if not (_is_loopback(find_address(request.scope)) and is_local_host(request.headers.get("host", ""))):
        raise refuse_missing_page()


def is_local_host(host: str) -> bool:
    """Return True if a Host header names the browser's own machine, however names are resolved.

    >>> [is_local_host(host) for host in ("localhost:8432", "[::1]", "127.0.0.1.evil.example", "[")]
    [True, True, False, False]
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return name == "localhost" or _is_loopback(name)


def _is_loopback(address: str) -> bool:
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(known, "ipv4_mapped", None)
    return (mapped or known).is_loopback


def check_same_origin(request: Request) -> None:
    """Raise KH408 for a request that changes something, unless it comes from a page of this site.

    The Origin header must name this host. For encrypted or local pages, browsers also send Sec-Fetch-Site, which must
    then be `same-origin`.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        raise refuse_other_site()
    origin = request.headers.get("origin")
    if origin is None or not _is_same_host(origin, request.headers.get("host", "")):
        raise refuse_other_site()


def _is_same_host(origin: str, host: str) -> bool:
    """Return True if an origin has the requested host. The scheme may differ, since a proxy may end the encryption."""
    try:
        split = urlsplit(origin)
    except ValueError:
        return False
    return split.scheme in ("http", "https") and bool(host) and split.netloc.lower() == host.lower()


def _make_router(
    parts: ConsoleParts, check_request: Callable[[Request], Coroutine[Any, Any, None]], *, otherwise: str
) -> APIRouter:
    class GuardedConsoleRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            handler = super().get_route_handler()

            async def handle_guarded(request: Request) -> Response:
                setattr(request.state, FILES, parts.files)
                setattr(request.state, PLAYGROUND, parts.has_playground)
                current_default_thread_limiter().total_tokens = parts.threads
                try:
                    if request.method not in ("GET", "HEAD"):
                        check_same_origin(request)
                    await check_request(request)
                    return await handler(StrictRequest(request.scope, request.receive))
                except (KeyholeError, RequestValidationError, HTTPException) as error:
                    return _refuse(request, error, otherwise=otherwise)

            return handle_guarded

    return APIRouter(route_class=GuardedConsoleRoute, include_in_schema=False)


def _refuse(request: Request, error: Exception, *, otherwise: str) -> Response:
    """Return a refusal as a page, or a redirect to the login. Scripts get a problem document, as from REST."""
    if _API in request.url.path:
        raise error
    match error:
        case KeyholeError(code="KH401") if request.method in ("GET", "HEAD"):
            place = quote(request.url.path + (f"?{request.url.query}" if request.url.query else ""), safe="")
            return RedirectResponse(f"{otherwise}?next={place}", status_code=303)
        case KeyholeError():
            return render_error(request, error)
        case RequestValidationError():
            return render_error(request, refuse_malformed(error))
        case HTTPException():
            return render_error(request, refuse_with_status(error.status_code))
    raise error
