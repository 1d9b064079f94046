"""Who comes into the console: by password or token, counted, sealed, and from this site's pages alone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.catalog import Analyst
from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.sections import ConsoleSection
from proxy.console.login import find_by_password
from proxy.console.session_cookie import ANALYST, OWNER, SessionSeal
from proxy.open_policy.service import Service
from proxy.security import scram
from proxy.security.failed_logins import FailedLogins
from proxy.security.mock_users import MockUsers
from tests.worlds.console_house import OWNER_TOKEN, SECTION, Browser, console_app, open_house
from tests.worlds.rest_house import UNHURRIED
from tests.worlds.wards import PASSWORD, TOKENS, install

FEW = UNHURRIED.model_copy(update={"failed_logins_per_minute": 2})


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with open_house(tmp_path_factory.mktemp("wards")) as opened:
        yield opened


@pytest.fixture
def app(service: Service) -> FastAPI:
    return console_app(service)


def test_a_password_opens_a_session_that_logging_out_ends(app: FastAPI) -> None:
    browser = Browser(app)
    assert browser.get("/console/ask").headers["location"] == "/console/login?next=%2Fconsole%2Fask"
    answer = browser.log_in(next="/console/ask?question=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/ask?question=1")
    assert "ada" in browser.get("/console/ask").text
    assert browser.get("/console").headers["location"] == "/console/ask"
    browser.post("/console/logout")
    assert browser.get("/console/ask").status_code == 303


def test_a_token_opens_one_too(app: FastAPI) -> None:
    browser = Browser(app)
    assert browser.post("/console/login", data={"token": TOKENS["bob"]}).status_code == 303
    assert "bob" in browser.get("/console/ask").text


def test_a_cookie_is_for_this_sites_pages_alone_and_for_no_script(app: FastAPI) -> None:
    plain = Browser(app).log_in().headers["set-cookie"]
    assert {"HttpOnly", "Path=/console", "SameSite=strict"} <= set(plain.split("; "))
    assert "Secure" not in plain
    encrypted = Browser(app, site="https://console.test").log_in().headers["set-cookie"]
    assert "Secure" in encrypted.split("; ")


@pytest.mark.parametrize(("user", "password"), [("ada", "wrong"), ("nobody", PASSWORD), ("", ""), ("ada", "x" * 2000)])
def test_a_wrong_login_says_no_more_than_that(app: FastAPI, user: str, password: str) -> None:
    answer = Browser(app).log_in(user, password)
    assert answer.status_code == 401
    assert "authentication failed" in answer.text
    assert "set-cookie" not in answer.headers


def test_who_must_show_a_certificate_has_no_login_by_password_alone() -> None:
    verifier = scram.make_verifier(PASSWORD, iterations=4096)
    mock_users = MockUsers(b"secret")
    service_analyst = replace(_analyst("ada", verifier), certificate_name="ada")
    assert find_by_password([service_analyst], "ada", PASSWORD, mock_users=mock_users) is None
    assert find_by_password([_analyst("ada", verifier)], "ada", PASSWORD, mock_users=mock_users) is not None


def _analyst(name: str, verifier: str) -> Analyst:
    return Analyst(name=name, verifier=verifier, token_hash=None, per_predicate=None, per_unit=None)


def test_failures_count_with_those_of_other_endpoints_and_then_nothing_is_looked_at(service: Service) -> None:
    failures = FailedLogins(2)
    app = console_app(service, limits=FEW, failures=failures)
    for _ in range(2):
        failures.note_failure("127.0.0.1", user="ada")  # as PostgreSQL's port does
    refused = Browser(app).log_in()
    assert refused.status_code == 429
    assert "too many failed logins" in refused.text
    assert Browser(app).log_in("bob").status_code == 303
    assert Browser(app, address="10.0.0.1").log_in().status_code == 303
    for _ in range(2):
        assert Browser(app).log_in("nobody", "guess").status_code == 401
    assert Browser(app).log_in("nobody", "guess").status_code == 429
    for _ in range(2):
        assert Browser(app).post("/console/login", data={"token": "guess"}).status_code == 401
    assert Browser(app).post("/console/login", data={"token": TOKENS["ada"]}).status_code == 429


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://elsewhere.test"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://127.0.0.1:81"},
    ],
)
def test_what_another_sites_page_sends_is_refused(app: FastAPI, headers: dict[str, str]) -> None:
    browser = Browser(app)
    assert (
        browser.post("/console/login", headers=headers, data={"user": "ada", "password": PASSWORD}).status_code == 403
    )
    browser.log_in()
    assert browser.post("/console/logout", headers=headers).status_code == 403
    assert browser.get("/console/ask").status_code == 200


@pytest.mark.parametrize(
    "place", ["https://elsewhere.test/", "//elsewhere.test", "/console//x", "/console/\\x", "/docs"]
)
def test_a_login_leads_to_the_console_alone(app: FastAPI, place: str) -> None:
    assert Browser(app).log_in(next=place).headers["location"] == "/console/ask"


def test_a_form_of_another_kind_is_refused(app: FastAPI) -> None:
    browser = Browser(app)
    assert browser.post("/console/login", json={"user": "ada", "password": PASSWORD}).status_code == 400
    headers = {**browser.own_headers, "Content-Type": "application/x-www-form-urlencoded"}
    assert browser.post("/console/login", headers=headers, content=b"user=%ff").status_code == 400
    assert browser.post("/console/login", headers=headers, content=b"a=" + b"x" * 20_000).status_code == 400
    assert browser.post("/console/login", headers=headers, content=b"&".join([b"a=1"] * 50)).status_code == 400


def test_a_session_opens_in_every_process_of_the_installation_and_in_no_other(service: Service) -> None:
    browser = Browser(console_app(service))
    browser.log_in()
    for secret, status in ((b"secret of this house", 200), (b"another", 303)):
        other = Browser(console_app(service, secret=secret))
        other.cookies = browser.cookies
        assert other.get("/console/ask").status_code == status


def test_another_password_or_token_ends_the_session(tmp_path: Path) -> None:
    with open_house(tmp_path) as service:
        browser = Browser(console_app(service))
        before = service.catalog
        for changed in ({"verifier": scram.make_verifier("other")}, {"token_hash": "0" * 64}):
            browser.log_in()
            assert browser.get("/console/ask").status_code == 200
            others = tuple(replace(one, **changed) if one.name == "ada" else one for one in before.analysts)  # type: ignore[arg-type]
            service.catalog = replace(before, analysts=others)
            assert browser.get("/console/ask").status_code == 303
            service.catalog = replace(before, analysts=tuple(one for one in before.analysts if one.name != "ada"))
            assert browser.get("/console/ask").status_code == 303
            service.catalog = before


SEAL = SessionSeal(b"key", clock=lambda: 1000.0)


@given(st.text(max_size=20), st.text(max_size=20), st.integers(1, 100))
def test_a_seal_opens_until_its_end_for_its_role_and_credential(name: str, credential: str, minutes: int) -> None:
    value = SEAL.seal(ANALYST, name, credential=credential, minutes=minutes)
    opened = SEAL.open(ANALYST, value, credential_of=lambda _: credential)
    assert opened is not None
    assert (opened.name, opened.until) == (name, 1000 + 60 * minutes)
    assert SEAL.open(OWNER, value, credential_of=lambda _: credential) is None
    assert SEAL.open(ANALYST, value, credential_of=lambda _: credential + "x") is None
    assert SEAL.open(ANALYST, value, credential_of=lambda _: None) is None
    for late, opens in ((60 * minutes - 1, opened), (60 * minutes, None)):
        seal = SessionSeal(b"key", clock=lambda late=late: 1000.0 + late)  # type: ignore[misc]
        assert seal.open(ANALYST, value, credential_of=lambda _: credential) == opens


VALUE = SEAL.seal(ANALYST, "ada", credential="c", minutes=5)


@given(st.integers(0, len(VALUE) - 2), st.characters(codec="utf-8"))
def test_a_value_with_another_character_opens_nothing(place: int, character: str) -> None:
    """The last character of a part may have bits that mean nothing: it is left out."""
    changed = VALUE[:place] + character + VALUE[place + 1 :]
    opened = SEAL.open(ANALYST, changed, credential_of=lambda _: "c")
    assert opened is None or changed == VALUE


@given(st.text(max_size=200))
def test_any_text_is_no_session(value: str) -> None:
    assert SEAL.open(ANALYST, value, credential_of=lambda _: "c") is None


def test_the_owner_has_a_session_of_its_own(app: FastAPI) -> None:
    browser = Browser(app)
    assert browser.get("/console/owner").headers["location"].startswith("/console/owner/login")
    assert browser.log_owner_in("guess").status_code == 401
    answer = browser.log_owner_in()
    assert answer.headers["location"] == "/console/owner"
    assert "Path=/console/owner" in answer.headers["set-cookie"]
    assert browser.get("/console/owner").status_code == 200
    assert browser.get("/console/ask").status_code == 303
    browser.post("/console/owner/logout")
    assert browser.get("/console/owner").status_code == 303


def test_an_analysts_session_or_token_is_no_owners(app: FastAPI) -> None:
    browser = Browser(app)
    value = browser.log_in().headers["set-cookie"].split(";")[0].partition("=")[2]
    assert browser.get("/console/owner", headers={"Cookie": f"keyhole_owner={value}"}).status_code == 303
    assert browser.log_owner_in(TOKENS["ada"]).status_code == 401


def test_the_owners_pages_are_not_there_for_other_machines(service: Service) -> None:
    for section, status in ((SECTION, 404), (SECTION.model_copy(update={"owner_from": "anywhere"}), 200)):
        browser = Browser(console_app(service, section), address="10.0.0.7")
        assert browser.get("/console/owner/login").status_code == status
        assert browser.log_owner_in().status_code == (303 if status == 200 else 404)
        assert browser.get("/console/owner").status_code == status
    for address in ("::1", "127.8.8.8", "::ffff:127.0.0.1"):
        assert Browser(console_app(service), address=address).get("/console/owner/login").status_code == 200


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8432", "10.0.0.7"])
def test_nor_are_they_under_a_name_that_somebody_elses_name_server_leads_here(service: Service, name: str) -> None:
    """To a browser such a page is of the same site as what it asks, and comes from loopback."""
    site = "http://evil.example"
    rebound = Browser(console_app(service), site=site)
    headers = {**rebound.own_headers, "Origin": f"http://{name}", "Host": name}
    assert rebound.get("/console/owner/login", headers=headers).status_code == 404
    assert rebound.post("/console/owner/login", data={"token": OWNER_TOKEN}, headers=headers).status_code == 404
    anywhere = Browser(console_app(service, SECTION.model_copy(update={"owner_from": "anywhere"})), site=site)
    assert anywhere.log_owner_in().status_code == 303
    for own in ("http://localhost:8432", "http://[::1]:8432", "http://127.0.0.2"):
        assert Browser(console_app(service), site=own).log_owner_in().status_code == 303


def test_without_a_token_the_owners_part_is_closed(service: Service) -> None:
    browser = Browser(console_app(service, ConsoleSection()))
    assert "keyhole passwd --token" in browser.get("/console/owner/login").text
    assert browser.log_owner_in("").status_code == 401
    assert browser.log_owner_in(OWNER_TOKEN).status_code == 401


@pytest.mark.parametrize(
    ("said", "fault"),
    [("x", "is not a sha256 in hex"), ("TOKEN OF ADA", "is the token of analysts.ada too")],
)
def test_a_policy_with_an_impossible_owners_token_is_refused(tmp_path: Path, said: str, fault: str) -> None:
    path = install(tmp_path)
    hash_of_ada = Policy.load(path).analysts["ada"].token_sha256
    said = said.replace("TOKEN OF ADA", hash_of_ada or "")
    text = path.read_text(encoding="utf-8") + f'\n[server.console]\nowner_token_sha256 = "{said}"\n'
    with pytest.raises(KeyholeError, match="owner_token_sha256") as caught:
        Policy.parse(text, path=path)
    assert fault in caught.value.message
