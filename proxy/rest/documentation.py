"""The documentation at `/docs`: the built site, or instructions for building it.

`make docs` writes the site into a folder of this package. The site has only the project's pages, so no login is needed.
Files are read on request.
"""

import os
from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

BEGIN = "/docs"
REST_PAGE = "/api/docs"
"""Where FastAPI documents the requests; it was at `/docs`, which leads there."""
SITE = Path(__file__).with_name("site")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
"""The console's headers. Browsers may keep a page of the site, but ask each time whether it is the newest."""
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_UNBUILT = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Keyhole</title>'
    "<p>The documentation is not built: run <code>make docs</code> in the repository of this Keyhole. "
    f'<a href="{REST_PAGE}">REST\'s requests</a> are documented without it.</p></html>\n'
)


def add_documentation(app: FastAPI, site: Path = SITE) -> None:
    """Add the routes below `/docs` that serve the site in a folder."""

    @app.get(BEGIN, include_in_schema=False)
    def begin() -> Response:
        """Redirect to the front page."""
        if (site / "index.html").is_file():
            return RedirectResponse(f"{BEGIN}/index.html", status_code=303)
        return HTMLResponse(_UNBUILT, headers=HEADERS)

    @app.get(BEGIN + "/{name:path}", include_in_schema=False)
    def send_file(request: Request, name: str) -> Response:
        """Send a file of the site."""
        if not name:
            return begin()
        found = find_file(site, name)
        if found is None:
            raise HTTPException(404)
        try:
            return _respond(request, found)
        except FileNotFoundError:  # the site is built again just now
            raise HTTPException(404) from None


def find_file(site: Path, name: str) -> Path | None:
    """Return the site's file at an address. Return None if there is none.

    Also return None for a folder, an unknown file type, and a path through a symbolic link or out of the site's folder.
    """
    kind = os.path.splitext(name)[1]
    if kind not in _TYPES or "\0" in name or "\\" in name:
        return None
    root = os.path.realpath(site)
    path = f"{root}/{name}"
    try:
        is_there = os.path.realpath(path) == path and os.path.isfile(path)
    except (OSError, ValueError):
        return None  # too long, or no text of the file system's
    return Path(path) if is_there else None


def _respond(request: Request, path: Path) -> Response:
    state = path.stat()
    tag = f'"{state.st_mtime_ns:x}-{state.st_size:x}"'
    headers = HEADERS | {"ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(path.read_bytes(), media_type=_TYPES[path.suffix], headers=headers)
