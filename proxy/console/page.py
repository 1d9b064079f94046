"""The rendering of pages. Response headers let a browser run and load only Keyhole's own files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from planner.errors import KeyholeError
from proxy.console.static_files import StaticFolder
from proxy.report.terminal import make_visible
from proxy.rest.middleware import CODE
from proxy.rest.problems import make_problem
from proxy.rest.request_refusals import HttpRefusal

FILES = "console.files"  # in the state of a request: where its page finds what it loads
PLAYGROUND = "console.playground"  # in the state of a request: whether there is one
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",  # with no-referrer a form would not say from which site it comes
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab of the navigation. It is marked on pages with the same `section`."""

    title: str
    href: str
    section: str


TABS: dict[str, tuple[Tab, ...]] = {
    "analyst": (
        Tab("Ask", "/console/ask", "ask"),
        Tab("Tables", "/console/tables", "tables"),
        Tab("History", "/console/history", "history"),
        Tab("Monitors", "/console/monitors", "monitors"),
    ),
    "owner": (
        Tab("Overview", "/console/owner", "owner"),
        Tab("Budget", "/console/owner/budget", "budget"),
        Tab("Questions", "/console/owner/questions", "questions"),
        Tab("Approvals", "/console/owner/approvals", "approvals"),
        Tab("Grants", "/console/owner/grants", "grants"),
        Tab("Windows", "/console/owner/windows", "windows"),
        Tab("Monitors", "/console/owner/monitors", "monitors"),
        Tab("Ledger", "/console/owner/ledger", "ledger"),
        Tab("Policy", "/console/owner/policy", "policy"),
        Tab("Risk", "/console/owner/risk", "risk"),
    ),
}
"""The navigation for each role, in order."""

PLAY_TABS = {
    "analyst": Tab("Playground", "/console/play", "play"),
    "owner": Tab("Playground", "/console/owner/play", "play"),
}
"""Beside them, where the policy has a playground."""

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["visible"] = make_visible


def render_page(
    request: Request, template: str, *, section: str = "", status: int = 200, **values: Any
) -> HTMLResponse:
    """Return a page: the HTML of a template, for the request's session. Every value is escaped as text."""
    role = getattr(request.state, "role", None)
    files: StaticFolder = getattr(request.state, FILES)
    tabs = TABS.get(role, ()) if role else ()
    if role in PLAY_TABS and getattr(request.state, PLAYGROUND, False):
        tabs = (*tabs, PLAY_TABS[role])
    told = {
        "role": role,
        "who": getattr(request.state, "analyst", None),
        "tabs": tabs,
        "section": section,
        "static": files.find_address,
        **values,
    }
    return HTMLResponse(_TEMPLATES.get_template(template).render(told), status_code=status, headers=HEADERS)


def render_error(request: Request, refusal: KeyholeError) -> HTMLResponse:
    """Return a refusal as a page, with its text and what to do."""
    document = make_problem(refusal, status=refusal.status if isinstance(refusal, HttpRefusal) else None)
    setattr(request.state, CODE, refusal.code)
    response = render_page(
        request, "error.html", status=document["status"], problem={"detail": None, "hint": None, **document}
    )
    if isinstance(refusal, HttpRefusal) and refusal.wait_s is not None:
        response.headers["Retry-After"] = str(refusal.wait_s)
    return response
