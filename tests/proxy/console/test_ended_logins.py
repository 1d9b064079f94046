"""Logging out ends a login: every copy of its cookie, in every process over the same folder, and after a restart."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from proxy.console.ended_logins import EndedLogins
from proxy.console.session_cookie import ConsoleSession
from proxy.open_policy.service import Service
from proxy.process.serve import serve_in_background
from tests.worlds.console_house import Browser, console_app, open_house
from tests.worlds.wards import PASSWORD

ADA = ConsoleSession("ada", "0" * 32, 2000)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with open_house(tmp_path_factory.mktemp("wards")) as opened:
        yield opened


def test_a_copied_cookie_is_worth_nothing_after_its_login_was_ended(service: Service, tmp_path: Path) -> None:
    folder = (tmp_path / "ended",)
    first, second = console_app(service, ended=folder), console_app(service, ended=folder)  # as two processes
    browser, copy, other = Browser(first), Browser(second), Browser(first)
    browser.log_in()
    other.log_in()
    copy.cookies.update(browser.cookies)
    assert copy.get("/console/ask").status_code == 200
    browser.post("/console/logout")
    assert copy.get("/console/ask").status_code == 303
    assert copy.post("/console/api/explain", json={"sql": "SELECT 1"}).status_code == 401
    copy.cookies.update(other.cookies)
    assert copy.get("/console/ask").status_code == 200  # another login of the same analyst goes on
    anew = Browser(console_app(service, ended=folder))
    anew.cookies.update(browser.cookies)
    assert anew.get("/console/ask").status_code == 303


def test_so_is_the_owners(service: Service, tmp_path: Path) -> None:
    app = console_app(service, ended=(tmp_path / "ended",))
    browser, copy = Browser(app), Browser(app)
    browser.log_owner_in()
    copy.cookies.update(browser.cookies)
    assert copy.get("/console/owner/policy").status_code == 200
    browser.post("/console/owner/logout")
    assert copy.get("/console/owner/policy").status_code == 303


def test_whoever_has_no_session_writes_nothing(service: Service, tmp_path: Path) -> None:
    stranger = Browser(console_app(service, ended=(tmp_path / "ended",)))
    stranger.cookies.set("keyhole", "YWRh.9999999999.x.y", domain="127.0.0.1", path="/console")
    assert stranger.post("/console/logout").status_code == 303
    assert not (tmp_path / "ended").exists()


def test_a_server_keeps_what_was_ended_beside_its_secret(service: Service) -> None:
    """Over a real socket, in the folder that `keyhole serve` takes."""
    folder = Path(service.policy.path).with_suffix(".ended-logins")
    with serve_in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses:
        headers = {"Origin": addresses.rest}
        with httpx.Client(base_url=addresses.rest, headers=headers, trust_env=False) as one:
            one.post("/console/login", data={"user": "ada", "password": PASSWORD})
            one.post("/console/logout")
    (name,) = [path.name for path in folder.iterdir()]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert name.split(".")[0].isdigit()


def test_what_would_be_over_by_now_is_forgotten_and_nothing_else(tmp_path: Path) -> None:
    now = [1000.0]
    ended = EndedLogins([tmp_path / "ended"], clock=lambda: now[0])
    ended.end_session(ADA)
    (tmp_path / "ended" / "README").touch()
    now[0] = 2000.0
    later = ConsoleSession("ada", "1" * 32, 3000)
    ended.end_session(later)
    assert not ended.has_ended(ADA)  # nor is there a session any more
    assert ended.has_ended(later)
    assert len(list((tmp_path / "ended").iterdir())) == 2


def test_where_nothing_can_be_written_the_next_folder_or_this_process_remembers(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    barred = tmp_path / "file" / "ended"
    for folders in ([barred, tmp_path / "ended"], [barred], []):
        ended = EndedLogins(folders, clock=lambda: 1000.0)
        assert not EndedLogins([barred]).has_ended(ADA)
        ended.end_session(ADA)
        assert ended.has_ended(ADA)
    assert EndedLogins([barred, tmp_path / "ended"]).has_ended(ADA)


def test_logins_that_are_ended_at_once_are_all_ended(tmp_path: Path) -> None:
    sessions = [ConsoleSession("ada", f"{number:032x}", 2000 - number % 2 * 1500) for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(EndedLogins([tmp_path / "ended"], clock=lambda: 1000.0).end_session, sessions))
    afterwards = EndedLogins([tmp_path / "ended"])
    assert all(afterwards.has_ended(session) for session in sessions if session.until > 1000)
