"""The documentation at /docs: the files of the built site and nothing else, under the console's headers."""

import ast
import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from proxy.console.page import HEADERS as CONSOLE_HEADERS
from proxy.open_policy.service import Service
from proxy.rest import documentation
from proxy.rest.app import create_app
from proxy.rest.documentation import SITE, find_file
from tests.in_turn import in_turn
from tests.worlds.rest_house import UNHURRIED, own_house


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with own_house(tmp_path_factory.mktemp("wards")) as opened:
        yield opened


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built site beside a secret, with links to it."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "secret.html").write_text("secret", encoding="utf-8")
    (folder / "secrets").mkdir()
    (folder / "secrets" / "inside.html").write_text("secret", encoding="utf-8")
    site = folder / "site"
    (site / "bi").mkdir(parents=True)
    for name in ("index.html", "bi/index.html", "a.css", "a.js", "a.json", "a.svg", "a.png", "a.csv", "run.py", ".env"):
        (site / name).write_text(f"text of {name}", encoding="utf-8")
    (site / "link.html").symlink_to(folder / "secret.html")
    (site / "inside.html").symlink_to(site / "index.html")
    (site / "linked").symlink_to(folder / "secrets")
    (site / "folder.html").mkdir()
    os.mkfifo(site / "pipe.html")
    return site


@pytest.fixture(scope="module")
def app(service: Service, site: Path) -> FastAPI:
    return create_app(service, UNHURRIED, site=site)


def get(app: FastAPI, path: str, **headers: str) -> httpx.Response:
    async def sending() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://keyhole") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(sending())


def status_of(app: FastAPI, path: str) -> int:
    """The status of a request whose path arrives as it stands here: clients would shorten it."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(errors="surrogatepass"),
        "query_string": b"",
        "headers": [(b"host", b"keyhole")],
    }
    asyncio.run(app(scope, receive, send))
    assert b"secret" not in b"".join(message.get("body", b"") for message in sent)
    return int(sent[0]["status"])


def test_the_site_is_served_to_everybody_as_the_requests_of_rest_are(app: FastAPI) -> None:
    assert get(app, "/docs").headers["location"] == "/docs/index.html"
    assert get(app, "/docs/").headers["location"] == "/docs/index.html"
    for name, kind in (
        ("index.html", "text/html; charset=utf-8"),
        ("bi/index.html", "text/html; charset=utf-8"),
        ("a.css", "text/css; charset=utf-8"),
        ("a.js", "text/javascript; charset=utf-8"),
        ("a.json", "application/json"),
        ("a.svg", "image/svg+xml"),
        ("a.png", "image/png"),
        ("a.csv", "text/csv; charset=utf-8"),
    ):
        answer = get(app, f"/docs/{name}")
        assert (answer.status_code, answer.text) == (200, f"text of {name}")
        assert answer.headers["content-type"] == kind


def test_a_page_has_the_headers_of_the_console_but_may_be_kept(app: FastAPI) -> None:
    headers = get(app, "/docs/index.html").headers
    assert headers["cache-control"] == "no-cache"
    assert {name: headers[name] for name in CONSOLE_HEADERS if name != "Cache-Control"} == {
        name: value for name, value in CONSOLE_HEADERS.items() if name != "Cache-Control"
    }
    assert headers["x-frame-options"] == "DENY"
    again = get(app, "/docs/index.html", **{"If-None-Match": headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy"] == headers["content-security-policy"]


ATTACKS = (
    *(
        "../secret.html",
        "bi/../../secret.html",
        "/../secret.html",
        "./index.html",
        "bi/../index.html",
        "bi//index.html",
    ),
    *("..\\secret.html", "bi\\index.html", "%2e%2e/secret.html", "..%2fsecret.html", "%252e%252e/secret.html"),
    *("/etc/passwd", "//etc/passwd", "/index.html", "C:/secret.html", "file:///etc/passwd.html", "~/x.html"),
    *("index.html\0", "index.html\0.html", "index.html/", "index.html/.", "index.html/x.html", "\udcff.html"),
    *("link.html", "inside.html", "linked/inside.html", "linked/../secret.html", "folder.html", "pipe.html"),
    *("bi", "bi/", ".", "..", "linked", "run.py", ".env", "a.CSS", "nowhere.html", "x" * 5000 + ".html", "x/" * 3000),
)


@in_turn("name", ATTACKS)
def test_nothing_else_can_be_read(app: FastAPI, site: Path, name: str) -> None:
    assert status_of(app, f"/docs/{name}") in (404, 431), name
    assert find_file(site, name) is None


def test_an_absolute_path_and_one_out_of_the_folder_are_no_files_of_the_site(app: FastAPI, site: Path) -> None:
    for name in (str(site / "index.html"), f"../{site.name}/index.html", str(site.parent / "secret.html")):
        assert find_file(site, name) is None
        assert status_of(app, f"/docs/{name}") == 404


def test_a_site_behind_a_link_is_served(site: Path, tmp_path: Path) -> None:
    """An operator may keep releases side by side; links inside the folder are what nobody follows."""
    (tmp_path / "current").symlink_to(site)
    assert find_file(tmp_path / "current", "index.html") == site.resolve() / "index.html"


def test_without_a_site_a_line_says_how_to_build_it(service: Service, tmp_path: Path) -> None:
    app = create_app(service, UNHURRIED, site=tmp_path / "nowhere")
    for path in ("/docs", "/docs/"):
        answer = get(app, path)
        assert answer.status_code == 200
        assert answer.headers["content-security-policy"] == CONSOLE_HEADERS["Content-Security-Policy"]
        assert "<code>make docs</code>" in answer.text
        assert 'href="/api/docs"' in answer.text
        assert len(answer.text.splitlines()) == 1
    assert get(app, "/docs/index.html").status_code == 404


def test_a_site_that_was_built_while_keyhole_runs_is_found(service: Service, tmp_path: Path) -> None:
    app = create_app(service, UNHURRIED, site=tmp_path)
    assert get(app, "/docs").status_code == 200
    (tmp_path / "index.html").write_text("built", encoding="utf-8")
    assert get(app, "/docs").status_code == 303
    assert get(app, "/docs/index.html").text == "built"


def test_the_requests_of_rest_are_documented_beside_it(app: FastAPI) -> None:
    answer = get(app, "/api/docs")
    assert answer.status_code == 200
    assert "swagger" in answer.text
    assert "'self' 'unsafe-inline'" in answer.headers["content-security-policy"]
    refused = get(app, "/docs/nowhere.html")
    assert refused.json()["hint"] == "/api/docs has the addresses."
    assert refused.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert not [path for path in app.openapi()["paths"] if "docs" in path]


def test_the_site_costs_nothing_before_it_is_asked_for() -> None:
    """It needs no module that REST has not loaded, and lies where the wheel takes it from."""
    path = Path(documentation.__file__)
    loaded = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
    }
    assert loaded == {"fastapi", "os", "pathlib", "starlette"}
    assert path.with_name("site") == SITE
