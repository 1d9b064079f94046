"""`keyhole play`: the playground alone, on loopback, without a policy, a source or a ledger.

It answers browsers that ask for this machine by its own name: another site's name that leads here gets nothing.
"""

import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.types import Scope

from planner.errors import KeyholeError
from planner.policy.sections import RestSection
from proxy.console.guarded_routes import insist_same_origin
from proxy.console.page import FILES, error_page
from proxy.console.play.open import open_hall
from proxy.console.play.routes import BEGIN, add_play_routes
from proxy.console.refusals import no_such_page
from proxy.console.static_files import PLACE, StaticFolder
from proxy.play.hall import Hall
from proxy.report.refusals import internal_error
from proxy.rest import uvicorn_server
from proxy.rest.app import StrictRequest
from proxy.rest.middleware import Shell
from proxy.rest.refusals import HttpRefusal
from proxy.rest.responses import problem_response, response_to

MOST_BODY_BYTES = 10_000  # a hundred times an answer's
LOCAL = "local"
"""The one player of a machine, whose sessions are told apart by their keys."""

_RECEIVE_TIMEOUT_MS = 10_000  # for so little, on loopback
_OWN_NAMES = ("127.0.0.1", "localhost", "::1")


def play_app(hall: Hall) -> FastAPI:
    """The application over some sessions and their leader board."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    router = APIRouter(route_class=_route_class(StaticFolder()), include_in_schema=False)
    add_play_routes(router, hall, lambda _: LOCAL, begin=BEGIN)
    _add_rest(router)
    app.include_router(router)
    app.add_middleware(
        Shell,
        most_bytes=MOST_BODY_BYTES,
        receive_timeout_ms=_RECEIVE_TIMEOUT_MS,
        pages=(),
        paths=frozenset(),
        admitted=_admitted,
        refused=response_to,
        failed=lambda: problem_response(internal_error()),
        finished=lambda _: None,
    )
    for refusal in (KeyholeError, RequestValidationError, HTTPException):
        app.add_exception_handler(refusal, _respond_to)
    return app


def _add_rest(router: APIRouter) -> None:
    @router.get(PLACE + "/{digest}/{name:path}")
    async def send_file(request: Request, digest: str, name: str) -> Response:
        files: StaticFolder = getattr(request.state, FILES)
        found = files.response(digest, name)
        if found is None:
            raise no_such_page()
        return found

    @router.get("/")
    @router.get("/console")
    async def lead_to_the_game() -> Response:
        return RedirectResponse(BEGIN, status_code=303)


def _route_class(files: StaticFolder) -> type[APIRoute]:
    class PlayRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handler = super().get_route_handler()

            async def handle_guarded(request: Request) -> Response:
                setattr(request.state, FILES, files)
                request.state.role = None
                try:
                    if request.method not in ("GET", "HEAD"):
                        insist_same_origin(request)
                    return await handler(StrictRequest(request.scope, request.receive))
                except KeyholeError as error:
                    if "/api/" in request.url.path:
                        raise
                    return error_page(request, error)

            return handle_guarded

    return PlayRoute


@contextmanager
def _admitted(scope: Scope) -> Iterator[None]:
    """Requests that name this machine. Raises KH408 for any other name, which another site may have led here."""
    if not _is_own_name(dict(scope["headers"]).get(b"host", b"").decode("latin-1")):
        hint = "Open it as http://127.0.0.1, with the port that keyhole play has printed."
        raise HttpRefusal("KH408", "the playground is not served under this name", hint=hint, status=421)
    yield


def _is_own_name(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").hostname in _OWN_NAMES
    except ValueError:
        return False


async def _respond_to(_: Request, error: Exception) -> Response:
    return response_to(error) or problem_response(internal_error())


def run(*, port: int, scores: Path, told: Callable[[str], None]) -> None:
    """Serve on loopback until the process is ended; `told` is given the address. Raises KH406."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((_OWN_NAMES[0], port))
        except OSError as error:
            hint = "Choose another one with --port, or 0 for any that is free."
            message = f"port {port} cannot be listened on ({type(error).__name__})"
            raise KeyholeError("KH406", message, hint=hint) from None
        told(f"http://{_OWN_NAMES[0]}:{listening.getsockname()[1]}{BEGIN}")
        config = uvicorn_server.config(play_app(open_hall(scores)), RestSection())
        uvicorn.Server(config).run(sockets=[listening])
