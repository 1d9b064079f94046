"""The console as a whole: its routers, added to REST's application. The router for unknown pages comes last."""

from collections.abc import Sequence
from pathlib import Path

from fastapi import APIRouter, FastAPI, Response

from planner.policy.sections import ConsoleSection
from proxy.console.analyst.asking import add_asking_pages
from proxy.console.analyst.history import add_history_pages
from proxy.console.analyst.monitor_pages import add_monitor_pages
from proxy.console.console_refusals import refuse_missing_page
from proxy.console.ended_logins import EndedLogins
from proxy.console.guarded_routes import make_analyst_routes, make_owner_routes, make_public_routes
from proxy.console.login import add_login_routes
from proxy.console.owner.deciding import add_decision_forms
from proxy.console.owner.pages import add_owner_pages
from proxy.console.parts import ConsoleParts
from proxy.console.play.routes import BEGIN as PLAY
from proxy.console.play.routes import OWNERS_BEGIN as OWNERS_PLAY
from proxy.console.play.routes import add_play_routes, name_owner, name_player
from proxy.console.session_cookie import PURPOSE, SessionSeal
from proxy.console.static_files import PLACE, StaticFolder
from proxy.play.game_sessions import GameSessions
from proxy.rest.app import AddPages, RestServices
from proxy.security.mock_users import MockUsers

BEGIN = "/console"


def make_console(
    section: ConsoleSection, mock_users: MockUsers, play: GameSessions | None = None, *, ended: Sequence[Path] = ()
) -> AddPages | None:
    """Return a function that adds the console to REST's application, or None if the policy has no console.

    `mock_users` makes login replies for unknown names. The key that seals sessions is derived from its secret. `play`
    is the playground, if there is one. `ended` are folders for the records of ended logins; the first writable one is
    used.
    """
    if not section.enabled:
        return None

    def add_pages(app: FastAPI, doors: RestServices) -> str:
        parts = ConsoleParts(
            serving=doors.serving,
            gate=doors.gate,
            limits=doors.limits,
            section=section,
            threads=doors.threads,
            monitor_reader=doors.monitor_reader,
            hub=doors.hub,
            ready=doors.ready,
            labels=doors.labels,
            mock_users=mock_users,
            seal=SessionSeal(mock_users.make_key(PURPOSE)),
            ended_logins=EndedLogins(ended),
            files=StaticFolder(),
            has_playground=play is not None,
        )
        everybody, analysts, owner, lost = (
            make_public_routes(parts),
            make_analyst_routes(parts),
            make_owner_routes(parts),
            make_public_routes(parts),
        )
        add_login_routes(everybody, parts)
        _add_files(everybody, parts)

        add_asking_pages(analysts, parts)
        add_history_pages(analysts, parts)
        add_monitor_pages(analysts, parts)

        add_owner_pages(owner, parts)
        add_decision_forms(owner, parts)
        if play is not None:
            add_play_routes(analysts, play, name_player, begin=PLAY)
            add_play_routes(owner, play, name_owner, begin=OWNERS_PLAY)

        _add_missing_page(lost)
        for router in (everybody, analysts, owner, lost):
            app.router.routes.extend(router.routes)  # `include_router` would analyse each a second time
        return BEGIN

    return add_pages


def _add_files(router: APIRouter, parts: ConsoleParts) -> None:
    @router.get(PLACE + "/{digest}/{name:path}")
    async def send_file(digest: str, name: str) -> Response:
        found = parts.files.make_response(digest, name)
        if found is None:
            raise refuse_missing_page()
        return found


def _add_missing_page(router: APIRouter) -> None:
    @router.get(BEGIN + "/{path:path}")
    async def refuse_unknown() -> Response:
        raise refuse_missing_page()
