"""Who may come in, how often and how many at once; and bodies that mean two things."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from itertools import count
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

import httpx
import psycopg
import pytest
import structlog
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from planner.catalog.catalog import Analyst
from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.sections import RestSection
from proxy.cli import check as checking
from proxy.observe.telemetry import Telemetry
from proxy.open_policy.service import Service
from proxy.process.serve import serve_in_background
from proxy.rest import strict_json as rest_json
from proxy.rest.app import create_app
from proxy.rest.gate import Gate, authenticate
from proxy.security.failed_logins import ALL_USERS, FailedLogins
from proxy.security.networks import find_network
from proxy.security.rate_limit import RateLimit
from tests.effort import PATIENCE_S
from tests.proxy.rest.test_app import ADA, refused, send
from tests.worlds.house import eventually
from tests.worlds.rest_house import TOKEN, UNHURRIED, own_house
from tests.worlds.wards import QUESTION, TOKENS, install

MANY = b'{"sql": "x", "parameters": [' + b"[]," * 5000 + b"[]]}"
EXPLAIN = {"sql": QUESTION.format(1500)}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with own_house(tmp_path_factory.mktemp("wards")) as opened:
        yield opened


@pytest.fixture
def app(service: Service) -> FastAPI:
    return create_app(service, UNHURRIED)


def analyst(name: str, token: str) -> Analyst:
    digest = sha256(token.encode()).hexdigest()
    return Analyst(name=name, verifier="", token_hash=digest, per_predicate=None, per_unit=None)


ANALYSTS = (analyst("ada", "right"), analyst("bob", "other"), Analyst("cy", "", None, None, None))


def gate_of(limits: RestSection) -> Gate:
    return Gate(limits, FailedLogins(limits.failed_logins_per_minute))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 40)), max_size=200), st.integers(1, 30))
def test_in_no_stretch_of_time_more_come_than_the_rate_allows(
    comings: list[tuple[str, float]], per_minute: int
) -> None:
    clock = Clock()
    rates = RateLimit(per_minute, clock=clock)
    admitted: dict[str, list[float]] = {"a": [], "b": [], "c": []}
    for name, later in comings:
        clock.now += later
        if rates.count_if_allowed(name) == 0:
            admitted[name].append(clock.now)
    for times in admitted.values():
        for first in range(len(times)):
            for last in range(first, len(times)):
                assert last - first + 1 <= per_minute * (1 + (times[last] - times[first]) / 60) + 1e-6


def test_whoever_waits_as_long_as_told_is_let_in() -> None:
    clock = Clock()
    rates = RateLimit(7, clock=clock)
    for _ in range(50):
        while wait := rates.count_if_allowed("a"):
            clock.now += wait
            assert rates.get_wait_s("a") == 0


def test_memory_is_bounded_however_many_come() -> None:
    rates = RateLimit(3, most_names=100)
    for number in range(1000):
        rates.count_if_allowed(str(number))
    assert len(rates) == 100


def test_who_came_last_is_counted_however_many_came_before() -> None:
    rates = RateLimit(3, most_names=100, clock=Clock())
    for number in range(1000):
        rates.count_if_allowed(str(number))
    for _ in range(3):
        rates.count_if_allowed("a")
    assert rates.get_wait_s("a") > 0
    assert rates.get_wait_s("0") == 0  # the one that came longest ago is forgotten


def test_failed_logins_lock_an_address_for_tokens_that_can_be_guessed_and_no_other_address() -> None:
    gate = gate_of(RestSection(failed_logins_per_minute=3))
    long = token_urlsafe(32)
    analysts = (*ANALYSTS, replace(ANALYSTS[0], name="eve", token_hash=sha256(long.encode()).hexdigest()))
    for _ in range(3):
        with pytest.raises(KeyholeError, match="KH401"):
            gate.login(analysts, "wrong", address="192.0.2.1")
    for token in ("right", "wrong", token_urlsafe(32)):
        with pytest.raises(KeyholeError, match="KH430"):
            gate.login(analysts, token, address="192.0.2.1")
    assert gate.login(analysts, long, address="192.0.2.1").name == "eve"
    assert gate.login(ANALYSTS, "right", address="192.0.2.2").name == "ada"


def test_failures_from_everywhere_lock_new_addresses_alone() -> None:
    gate = gate_of(RestSection(failed_logins_per_minute=1))
    gate.login(ANALYSTS, "other", address="198.51.100.1")
    failed = 0
    for number in range(100):
        with pytest.raises(KeyholeError) as caught:
            gate.login(ANALYSTS, "wrong", address=f"192.0.2.{number}")
        failed += caught.value.code == "KH401"
    assert failed == 10
    with pytest.raises(KeyholeError, match="KH430"):
        gate.login(ANALYSTS, "right", address="203.0.113.9")
    assert gate.login(ANALYSTS, "right", address="198.51.100.1").name == "ada"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("local", "local", True),
    ],
)
def test_an_address_is_what_one_host_is_given(one: str, other: str, same: bool) -> None:
    assert (find_network(one) == find_network(other)) is same


@pytest.mark.parametrize("token", ["", "wrong", "right ", "RIGHT", sha256(b"right").hexdigest()])
def test_only_the_token_itself_is_the_token(token: str) -> None:
    with pytest.raises(KeyholeError, match="KH401"):
        authenticate(ANALYSTS, token)
    assert authenticate(ANALYSTS, "right").name == "ada"


def test_too_many_requests_are_told_when_to_come_again(service: Service) -> None:
    app = create_app(service, RestSection(requests_per_minute=2))
    answers = [send(app, "GET", "/v1/budget") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    refused(answers[2], "KH430", status=429)
    assert 1 <= int(answers[2].headers["retry-after"]) <= 30
    bob = {"Authorization": f"Bearer {TOKENS['bob']}"}
    assert send(app, "GET", "/v1/budget", headers=bob).status_code == 200


def test_an_address_has_a_limit_too_but_not_for_the_health_check(service: Service) -> None:
    app = create_app(service, RestSection(requests_per_minute_per_address=2))
    assert [send(app, "GET", "/openapi.json").status_code for _ in range(3)] == [200, 200, 429]
    assert send(app, "GET", "/healthz").status_code == 200


def test_a_refused_request_costs_nothing_and_is_not_read(service: Service) -> None:
    app = create_app(service, RestSection(requests_per_minute=1))
    assert send(app, "GET", "/v1/budget").status_code == 200
    before = service.ledger.verify_everything()
    refused(send(app, "POST", "/v1/question", content=b"{"), "KH430", status=429)
    assert service.ledger.verify_everything() == before


@pytest.mark.parametrize(
    "body",
    [
        b'{"sql": "SELECT 1", "sql": "SELECT 2"}',
        b'{"sql": "x", "\\u0073ql": "y"}',
        b'{"sql": "x", "fnr": 1e400}',
        b'{"sql": "x", "fnr": -Infinity}',
        b'{"sql": "x", "parameters": [1e999999999]}',
        b'{"sql": "x", "parameters": ' + b"[" * 33 + b"]" * 33 + b"}",
        b'{"sql": "x", "parameters": [' + b'{"a":' * 150_000,
        b'"' + b'\\"' * 400_000,
        b"\xef\xbb\xbf{}",
        '{"sql": "x"}'.encode("utf-16"),
        b'{"sql": "\xed\xa0\x80"}',
        b'{"__proto__": {}, "sql": "x"}',
        b'{"sql": "x"} {"sql": "y"}',
        b'{"sql": "x",}',
        b"{'sql': 'x'}",
    ],
)
def test_a_body_with_two_meanings_or_none_is_refused(app: FastAPI, service: Service, body: bytes) -> None:
    before = service.ledger.verify_everything()
    headers = ADA | {"Content-Type": "application/json"}
    refused(send(app, "POST", "/v1/question", headers=headers, content=body), "KH408", status=400)
    assert service.ledger.verify_everything() == before


def test_what_is_wrong_with_a_body_is_said(app: FastAPI) -> None:
    headers = ADA | {"Content-Type": "application/json"}
    for body, said in (
        (b'{"sql": "x", "sql": "y"}', "twice"),
        (b"[" * 40, "nested"),
        (b'{"sql": NaN}', "number"),
        (MANY, "10,000 texts"),
    ):
        assert said in send(app, "POST", "/v1/explain", headers=headers, content=body).json()["title"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None])
def test_a_body_that_a_web_form_could_send_is_refused(app: FastAPI, kind: str | None) -> None:
    """Browsers send these to anybody without asking first."""
    headers = ADA if kind is None else ADA | {"Content-Type": kind}
    content = json.dumps(EXPLAIN).encode()
    refused(send(app, "POST", "/v1/explain", headers=headers, content=content), "KH408", status=400)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_what_is_json_is_read_as_json(value: Any) -> None:
    for escaped in (True, False):
        try:
            body = json.dumps(value, ensure_ascii=escaped).encode()
        except UnicodeEncodeError:
            continue
        assert rest_json.read_json(body) == value


@given(st.integers(1, 100))
def test_brackets_in_texts_are_no_depth(depth: int) -> None:
    assert rest_json.read_json(json.dumps(['"' + "[{" * depth + '\\"']).encode())
    nested = b"[" * depth + b"]" * depth
    if depth <= rest_json.MOST_DEPTH:
        rest_json.read_json(nested)
    else:
        with pytest.raises(KeyholeError, match="deeper"):
            rest_json.read_json(nested)


@pytest.mark.parametrize("letter", ["ＳＥＬＥＣＴ", "SELECT\u200b", "S\u0405LECT", "SELECT\u202e", "SEL\u00adECT"])
def test_letters_that_look_like_sql_are_no_sql(app: FastAPI, letter: str) -> None:
    answer = send(app, "POST", "/v1/explain", json={"sql": QUESTION.format(1500).replace("SELECT", letter)})
    assert answer.status_code in (403, 422)
    assert answer.json()["code"].startswith("KH1")


def test_pages_of_others_may_ask_only_where_the_policy_says_so(service: Service) -> None:
    origin = {"Origin": "https://lab.example.org", "Access-Control-Request-Method": "POST"}
    preflight = send(create_app(service, UNHURRIED), "OPTIONS", "/v1/question", headers=origin)
    assert not [name for name in preflight.headers if name.startswith("access-control")]
    limits = UNHURRIED.model_copy(update={"origins": ("https://lab.example.org",)})
    app = create_app(service, limits)
    preflight = send(app, "OPTIONS", "/v1/question", headers=origin)
    assert preflight.headers["access-control-allow-origin"] == "https://lab.example.org"
    assert "access-control-allow-credentials" not in preflight.headers
    other = send(app, "GET", "/v1/budget", headers=ADA | {"Origin": "https://evil.example.org"})
    assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize(
    "line",
    [
        'origins = ["*"]',
        'origins = ["null"]',
        'origins = ["https://a.example/path"]',
        'trusted_proxies = ["*"]',
        'trusted_proxies = ["proxy.example"]',
        "requests_per_minute = 0",
        "keep_alive_s = 0",
        "unheard_of = 1",
    ],
)
def test_a_policy_that_opens_too_much_is_refused(tmp_path: Path, line: str) -> None:
    path = install(tmp_path)
    path.write_text(f"{path.read_text(encoding='utf-8')}\n[server.rest]\n{line}\n", encoding="utf-8")
    with pytest.raises(KeyholeError, match="KH002"):
        Policy.load(path)


def test_the_log_names_the_request_and_nothing_that_was_sent(tmp_path: Path) -> None:
    path = install(tmp_path)
    checking.check(path, confirm=False)
    telemetry = Telemetry(log=structlog.get_logger("test"))
    with Service.open(path, telemetry=telemetry) as opened, capture_logs() as logs:
        app = create_app(opened, UNHURRIED)
        send(app, "POST", "/v1/explain", headers=ADA | {"X-Request-Id": "mine-1"}, json=EXPLAIN)
        send(app, "GET", "/SELECT%20secret?token=secret")
        send(app, "SECRET", "/v1/budget", headers={"Authorization": "Bearer secret", "X-Request-Id": "secret\t"})
    lines = [entry for entry in logs if entry["event"] == "request"]
    told = [tuple(line.get(name) for name in ("method", "path", "status", "analyst")) for line in lines]
    assert told == [("POST", "/v1/explain", 200, "ada"), ("GET", None, 404, None), (None, "/v1/budget", 405, None)]
    assert "secret" not in str(logs)
    assert "visits" not in str(logs)


def test_many_threads_of_clients_and_one_counter(service: Service) -> None:
    """The gate lives on one loop; the answers' threads do not touch it."""
    app = create_app(service, UNHURRIED)
    found: list[int] = []

    async def many() -> None:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://keyhole", headers=ADA) as client:
            answers = await asyncio.gather(*(client.get("/v1/budget") for _ in range(8)))
            found.extend(answer.status_code for answer in answers)

    thread = threading.Thread(target=lambda: asyncio.run(many()))
    thread.start()
    thread.join()
    assert found == [200] * 8


def test_both_endpoints_count_failed_logins_together(service: Service) -> None:
    """Where one network has one try of each user a minute, and ten of all."""
    with (
        serve_in_background(
            service, host="127.0.0.1", port=0, rest_port=0, rest=RestSection(failed_logins_per_minute=1)
        ) as there,
        httpx.Client(base_url=there.rest, trust_env=False, timeout=PATIENCE_S) as rest,
    ):
        users = count()

        def is_heard() -> bool:
            with suppress(psycopg.OperationalError):
                psycopg.connect(f"{there.postgresql}?user=nobody{next(users)}&password=wrong")
            return rest.get("/v1/budget", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200

        assert is_heard()
        eventually(lambda: not is_heard())
        assert next(users) >= ALL_USERS
