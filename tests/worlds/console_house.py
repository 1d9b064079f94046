"""The console over a small house, and a browser without a screen: it keeps cookies by path and names its site."""

import asyncio
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from planner.policy.sections import ConsoleSection, RestSection
from proxy.console.app import make_console
from proxy.open_policy.service import Service, Serving
from proxy.play.game_sessions import GameSessions
from proxy.rest.app import create_app
from proxy.security.failed_logins import FailedLogins
from proxy.security.mock_users import MockUsers
from tests.worlds.house import check_once
from tests.worlds.rest_house import UNHURRIED
from tests.worlds.wards import PASSWORD, install

OWNER_TOKEN = "an owner's own token"
SECTION = ConsoleSection(owner_token_sha256=sha256(OWNER_TOKEN.encode()).hexdigest())
SECRET = b"secret of this house"
SITE = "http://127.0.0.1"


def open_house(directory: Path, *, more: str = "") -> Service:
    """A service over the wards, whose policy says `more`."""
    path = install(directory)
    path.write_text(path.read_text(encoding="utf-8") + more, encoding="utf-8")
    return Service.open(check_once(path))


def console_app(
    service: Serving,
    section: ConsoleSection = SECTION,
    *,
    limits: RestSection = UNHURRIED,
    failures: FailedLogins | None = None,
    secret: bytes = SECRET,
    play: GameSessions | None = None,
    ended: Sequence[Path] = (),
) -> FastAPI:
    """REST with the console on it."""
    pages = make_console(section, MockUsers(secret), play, ended=ended)
    return create_app(service, limits, failures=failures, add_pages=pages)


class Browser:
    """Sends what a browser would, and follows no redirect."""

    def __init__(self, app: FastAPI, *, address: str = "127.0.0.1", site: str = SITE) -> None:
        self._app = app
        self._address = address
        self.site = site
        self.cookies = httpx.Cookies()

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.send("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.send("POST", path, **{"headers": self.own_headers, **more})

    @property
    def own_headers(self) -> dict[str, str]:
        return {"Origin": self.site, "Sec-Fetch-Site": "same-origin"}

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def once() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app, client=(self._address, 1))
            async with httpx.AsyncClient(transport=transport, base_url=self.site, cookies=self.cookies) as client:
                response = await client.request(method, path, **more)
                self.cookies = client.cookies
                return response

        return asyncio.run(once())

    def log_in(self, user: str = "ada", password: str = PASSWORD, **more: str) -> httpx.Response:
        return self.post("/console/login", data={"user": user, "password": password, **more})

    def log_owner_in(self, token: str = OWNER_TOKEN) -> httpx.Response:
        return self.post("/console/owner/login", data={"token": token})


def inline_code(page: str) -> list[str]:
    """Whatever in a page its policy would keep from running or applying."""
    page = re.sub(r'(<script type="application/json"[^>]*>)[^<]*(</script>)', r"\1\2", page)  # data, which nobody runs
    scripts = re.findall(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", page)
    return scripts + re.findall(r"<style|<[^>]*\s(?:style|on\w+)=|<[^>]*javascript:", page)
