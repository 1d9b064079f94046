"""The application of `keyhole play`: only the playground, on this machine, without a ledger.

There is no policy unless the owner names one. Requests must name this machine as their host; another site's name that
resolves to this machine is refused. With the owner's own table, requests also need the key of this process
(docs/decisions/0033).
"""

import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.types import Scope

from planner.errors import KeyholeError
from planner.policy.sections import RestSection
from proxy.console.console_refusals import refuse_missing_page
from proxy.console.guarded_routes import check_same_origin, is_local_host
from proxy.console.page import FILES, render_error
from proxy.console.play.open import open_sessions
from proxy.console.play.own_routes import OwnerKey, add_own_routes
from proxy.console.play.routes import BEGIN, add_play_routes
from proxy.console.static_files import PLACE, StaticFolder
from proxy.play.game_sessions import GameSessions
from proxy.play.own_streams import OwnStreams
from proxy.report.report_refusals import make_internal_error
from proxy.rest import uvicorn_server
from proxy.rest.app import StrictRequest
from proxy.rest.middleware import HttpMiddleware
from proxy.rest.request_refusals import HttpRefusal
from proxy.rest.responses import make_problem_response, make_response

MOST_BODY_BYTES = 10_000  # a hundred times an answer's
LOCAL = "local"
"""The one player of a machine, whose sessions are told apart by their keys."""

_RECEIVE_TIMEOUT_MS = 10_000  # for so little, on loopback
_HOST = "127.0.0.1"


def make_play_app(sessions: GameSessions, *, own: tuple[OwnStreams, OwnerKey] | None = None) -> FastAPI:
    """Return the application for the game sessions, their leader board and, if given, the owner's own table."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    key = None if own is None else own[1]
    router = APIRouter(route_class=_make_route_class(StaticFolder(), key), include_in_schema=False)
    add_play_routes(router, sessions, lambda _: LOCAL, begin=BEGIN, own=own is not None)
    if own is not None:
        own[1].add_login_route(router, begin=BEGIN)
        add_own_routes(router, own[0], noise=sessions.noise, begin=BEGIN)
    _add_static_routes(router)
    app.router.routes.extend(router.routes)  # `include_router` would analyse each a second time
    app.add_middleware(
        HttpMiddleware,
        most_bytes=MOST_BODY_BYTES,
        receive_timeout_ms=_RECEIVE_TIMEOUT_MS,
        pages=(),
        paths=frozenset(),
        admitted=_admit_local_requests,
        refused=make_response,
        failed=lambda: make_problem_response(make_internal_error()),
        finished=lambda _: None,
    )
    for refusal in (KeyholeError, RequestValidationError, HTTPException):
        app.add_exception_handler(refusal, _respond_to)
    return app


def _add_static_routes(router: APIRouter) -> None:
    @router.get(PLACE + "/{digest}/{name:path}")
    async def send_file(request: Request, digest: str, name: str) -> Response:
        files: StaticFolder = getattr(request.state, FILES)
        found = files.make_response(digest, name)
        if found is None:
            raise refuse_missing_page()
        return found

    @router.get("/")
    @router.get("/console")
    async def lead_to_the_game() -> Response:
        return RedirectResponse(BEGIN, status_code=303)


def _make_route_class(files: StaticFolder, key: OwnerKey | None) -> type[APIRoute]:
    class PlayRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handler = super().get_route_handler()

            async def handle_guarded(request: Request) -> Response:
                setattr(request.state, FILES, files)
                request.state.role = None
                try:
                    if request.method not in ("GET", "HEAD"):
                        check_same_origin(request)
                    if key is not None and not request.url.path.startswith(f"{PLACE}/"):
                        key.check_request(request, begin=BEGIN)
                    return await handler(StrictRequest(request.scope, request.receive))
                except KeyholeError as error:
                    if "/api/" in request.url.path:
                        raise
                    return render_error(request, error)

            return handle_guarded

    return PlayRoute


@contextmanager
def _admit_local_requests(scope: Scope) -> Iterator[None]:
    """Admit requests whose host is this machine. Raise KH408 for any other host name."""
    if not is_local_host(dict(scope["headers"]).get(b"host", b"").decode("latin-1")):
        hint = "Open it as http://127.0.0.1, with the port that keyhole play has printed."
        raise HttpRefusal("KH408", "the playground is not served under this name", hint=hint, status=421)
    yield


async def _respond_to(_: Request, error: Exception) -> Response:
    return make_response(error) or make_problem_response(make_internal_error())


def serve_playground(
    *, port: int, scores: Path, report_address: Callable[[str], None], own: OwnStreams | None = None
) -> None:
    """Serve the playground on this machine until the process ends.

    `report_address` is called with the address. The address includes the key if the owner's `own` table is served.
    Raise KH406 if the port cannot be bound.
    """
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((_HOST, port))
        except OSError as error:
            hint = "Choose another one with --port, or 0 for any that is free."
            message = f"port {port} cannot be listened on ({type(error).__name__})"
            raise KeyholeError("KH406", message, hint=hint) from None
        listening.listen()  # a browser that opens the address at once waits, and is not refused
        key = OwnerKey()
        place = BEGIN if own is None else key.make_address(BEGIN)
        report_address(f"http://{_HOST}:{listening.getsockname()[1]}{place}")
        app = make_play_app(open_sessions(scores), own=None if own is None else (own, key))
        config = uvicorn_server.make_config(app, RestSection())
        uvicorn.Server(config).run(sockets=[listening])
