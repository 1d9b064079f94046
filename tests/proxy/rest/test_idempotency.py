"""An Idempotency-Key: one question, one price, one answer, whatever breaks in between and whatever the data do."""

import asyncio
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from accountant.charges import Reservation, Spent
from accountant.errors import LedgerUnavailable
from accountant.reports.history import AskedQuestion
from proxy.cli import check as checking
from proxy.open_policy import accounts
from proxy.open_policy.service import Service
from proxy.pipeline.messages import KeySet
from proxy.rest.app import create_app
from tests.children import forked
from tests.effort import PATIENCE_S
from tests.proxy.pipeline.dying_question import KEY
from tests.proxy.rest.test_app import ADA, refused, send
from tests.worlds.house import check_once, hurried
from tests.worlds.rest_house import UNHURRIED
from tests.worlds.wards import QUESTION, TOKENS, install

BOB = {"Authorization": f"Bearer {TOKENS['bob']}"}


def live(directory: Path) -> Path:
    """A house whose data have another version at every question, so that nothing is reused."""
    path = install(directory)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('refresh = "static"', 'refresh = "live"'), encoding="utf-8")
    return check_once(path)


@contextmanager
def opened(path: Path) -> Iterator[Service]:
    with Service.open(path) as service:
        yield service


def ask(
    app: FastAPI, key: str, *, threshold: int = 1500, headers: dict[str, str] = ADA, query: str = "", **fields: Any
) -> httpx.Response:
    body = {"sql": QUESTION.format(threshold), **fields}
    return send(app, "POST", f"/v1/question{query}", headers=headers | {"Idempotency-Key": key}, json=body)


def asked(service: Service) -> list[AskedQuestion]:
    return list(service.ledger.read_history(analyst="ada"))


def test_a_repetition_on_live_data_is_the_first_answer_and_spends_nothing(tmp_path: Path) -> None:
    with opened(live(tmp_path)) as service:
        app = create_app(service, UNHURRIED)
        first = ask(app, KEY)
        assert first.status_code == 200
        assert "idempotency-replayed" not in first.headers
        again = ask(app, f'"{KEY}"')
        assert again.headers["idempotency-replayed"] == "true"
        assert again.content == first.content
        assert len(asked(service)) == 1
        other = ask(app, "another")
        assert other.json()["data_version"] != first.json()["data_version"]
        assert len(asked(service)) == 2


def test_a_repetition_outlives_the_process(tmp_path: Path) -> None:
    path = live(tmp_path)
    with opened(path) as service:
        first = ask(create_app(service), KEY)
    with opened(path) as service:
        again = ask(create_app(service), KEY, query="?page_size=1")
        assert (again.json(), again.headers["idempotency-replayed"]) == (first.json(), "true")
        assert len(asked(service)) == 1


def test_another_request_under_the_key_is_refused_and_another_analyst_has_keys_of_his_own(tmp_path: Path) -> None:
    with opened(live(tmp_path)) as service:
        app = create_app(service, UNHURRIED)
        first = ask(app, KEY)
        refused(ask(app, KEY, threshold=1501), "KH431", status=422)
        refused(ask(app, KEY, fnr=0.01), "KH431", status=422)
        refused(ask(app, KEY, reuse="on"), "KH431", status=422)
        assert len(asked(service)) == 1
        bob = ask(app, KEY, headers=BOB, threshold=1400)
        assert "idempotency-replayed" not in bob.headers
        assert first.status_code == 200


def test_only_plain_short_keys(tmp_path: Path) -> None:
    with opened(live(tmp_path)) as service:
        app = create_app(service)
        for key in ("", " ", "a" * 129, "a b", "a\tb", 'a"b', '"', "k,k", "<k>"):
            refused(ask(app, key), "KH408", status=400)
        assert not asked(service)


def test_a_refusal_that_spent_nothing_frees_the_key(tmp_path: Path) -> None:
    with opened(live(tmp_path)) as service:
        app = create_app(service, UNHURRIED)
        refused(ask(app, KEY, threshold=2), "KH302", status=403)
        refused(send(app, "POST", "/v1/question", headers=ADA | {"Idempotency-Key": KEY}, json={"sql": "x"}), "KH102")
        assert ask(app, KEY).status_code == 200


def test_a_failure_after_the_reservation_is_told_again_and_not_paid_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(live(tmp_path)) as service:
        app = create_app(service, UNHURRIED)
        with monkeypatch.context() as broken, hurried(service):
            broken.setattr(service.source, "read_aggregates", broken_source)
            refused(ask(app, KEY), "KH900", status=500)
        assert len(asked(service)) == 1
        again = ask(app, KEY)
        refused(again, "KH900", status=500)
        assert again.headers["idempotency-replayed"] == "true"
        assert len(asked(service)) == 1


def test_an_answer_is_told_though_its_commit_seemed_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger's database had written it, and its word of that was lost."""
    with opened(live(tmp_path)) as service:
        app = create_app(service, UNHURRIED)
        commit = service.ledger.commit

        def unheard(*given: Any, **named: Any) -> None:
            commit(*given, **named)
            raise LedgerUnavailable

        with monkeypatch.context() as broken:
            broken.setattr(service.ledger, "commit", unheard)
            refused(ask(app, KEY), "KH502", status=503)
        again = ask(app, KEY)
        assert (again.status_code, again.json()["keys"]) == (200, [["A"]])
        assert again.headers["idempotency-replayed"] == "true"
        assert len(asked(service)) == 1


def broken_source(*_: object, **__: object) -> None:
    raise ZeroDivisionError


def test_a_denial_is_told_again(tmp_path: Path) -> None:
    """ProBE denies when too many keys are in doubt; the two wards beyond A are far from that, so it answers or denies
    once, and the repetition says the same."""
    with opened(live(tmp_path)) as service:
        app = create_app(service, UNHURRIED)
        first = ask(app, KEY, threshold=2990, mechanism="probe", tolerance=400)
        again = ask(app, KEY, threshold=2990, mechanism="probe", tolerance=400)
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert len(asked(service)) <= 1


def test_a_constant_answer_needs_no_ledger_entry(tmp_path: Path) -> None:
    with opened(live(tmp_path)) as service:
        app = create_app(service, UNHURRIED)
        sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5 OR NOT count(*) > 5"
        answers = [
            send(app, "POST", "/v1/question", headers=ADA | {"Idempotency-Key": KEY}, json={"sql": sql}) for _ in (1, 2)
        ]
        assert answers[0].json()["keys"] == [["A"], ["B"], ["[bold]C"]]
        assert answers[1].content == answers[0].content
        assert answers[1].headers["idempotency-replayed"] == "true"
        assert not asked(service)


def test_a_key_keeps_no_groups(tmp_path: Path) -> None:
    """An answer that costs nothing and is as long as the key domain would fill the ledger, key by key."""
    path = live(tmp_path)
    text = path.read_text(encoding="utf-8")
    more = json.dumps([sha256(bytes([number])).hexdigest() for number in range(99)])
    path.write_text(text.replace('"[bold]C"]', more[1:]), encoding="utf-8")
    checking.check(path, confirm=True)
    sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5 OR NOT count(*) > 5"
    with opened(path) as service:
        headers = ADA | {"Idempotency-Key": KEY}
        answer = send(create_app(service), "POST", "/v1/question", headers=headers, json={"sql": sql})
        assert len(answer.json()["keys"]) == 101
    with closing(sqlite3.connect(path.parent / "keyhole.db")) as connection:
        ((size,),) = connection.execute("SELECT length(response) FROM attempts").fetchall()
    assert size < 1000
    path.write_text(text, encoding="utf-8")
    checking.check(path, confirm=True)
    with opened(path) as service:
        again = send(create_app(service), "POST", "/v1/question", headers=headers, json={"sql": sql})
        assert "spent nothing" in refused(again, "KH432", status=409)["detail"]


def test_many_at_once_spend_once(tmp_path: Path) -> None:
    with opened(live(tmp_path)) as service:
        app = create_app(service, UNHURRIED)

        async def many() -> list[httpx.Response]:
            transport = httpx.ASGITransport(app=app)
            headers = ADA | {"Idempotency-Key": KEY}
            body = {"sql": QUESTION.format(1500)}
            async with httpx.AsyncClient(transport=transport, base_url="http://keyhole", headers=headers) as client:
                return list(await asyncio.gather(*(client.post("/v1/question", json=body) for _ in range(6))))

        answers = asyncio.run(many())
        told = {answer.content for answer in answers if answer.status_code == 200}
        assert len(told) == 1
        for answer in answers:
            if answer.status_code != 200:
                refused(answer, "KH432", status=409)
                assert answer.headers["retry-after"] == "1"
        assert ask(app, KEY).content in told
        assert len(asked(service)) == 1


def later(path: Path) -> None:
    """As if the first attempt had been an hour ago."""
    with closing(sqlite3.connect(path.parent / "keyhole.db")) as connection, connection:
        connection.execute("UPDATE attempts SET begun_at = '2000' || substr(begun_at, 5) WHERE begun_at > '2001'")
        connection.execute(
            "UPDATE attempts SET begun_at = strftime('%Y-%m-%dT%H:%M:%f', 'now', '-1 hour') || '000+00:00'"
        )


@pytest.mark.parametrize(
    ("moment", "at_once", "after_an_hour", "questions"),
    [
        ("before reserving", "KH432", None, 1),
        ("before the data", "KH432", "KH432", 1),
        ("before the commit", "KH432", "KH432", 1),
        ("before it is told", None, None, 1),
    ],
)
def test_whenever_the_first_dies_it_is_paid_once_at_most(
    tmp_path: Path, moment: str, at_once: str | None, after_an_hour: str | None, questions: int
) -> None:
    path = live(tmp_path)
    command = [sys.executable, "-m", "tests.proxy.pipeline.dying_question", str(path), moment]
    died = forked.run(command, check=False, cwd=Path(__file__).resolve().parents[3], timeout=PATIENCE_S)
    assert died.returncode == 9
    with opened(path) as service:
        app = create_app(service, UNHURRIED)
        for code in (at_once, after_an_hour):
            answer = ask(app, KEY)
            if code is None:
                assert answer.json()["keys"] == [["A"]]
                assert answer.json()["reused"] is False
            else:
                refused(answer, code, status=409)
            later(path)
        assert len(asked(service)) == questions
        if after_an_hour is not None:
            assert "may have spent" in answer.json()["detail"]
            assert ask(app, "a-new-key").status_code == 200


def test_a_reader_pays_once_whatever_the_version(tmp_path: Path) -> None:
    """Bob reads what ada paid for; his cap is charged for it once."""
    path = check_once(install(tmp_path))
    with opened(path) as service:
        app = create_app(service, UNHURRIED)
        ask(app, "ada-1")
        first = ask(app, KEY, headers=BOB)
        assert first.json()["reused"] is True
        spent = service.ledger.read_history(analyst="bob")
        assert len(spent) == 1
        again = ask(app, KEY, headers=BOB)
        assert again.content == first.content
        assert service.ledger.read_history(analyst="bob") == spent


def test_a_key_is_told_the_answer_that_its_analyst_came_to_hold_and_tells_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ada's answer was found for bob; before he was charged for reading it, a question of his own was answered."""
    path = install(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("epsilon_per_predicate = 0.05", "epsilon_per_predicate = 1.0"), encoding="utf-8")
    checking.check(path, confirm=False)
    with opened(path) as service:
        app, ledger = create_app(service, UNHURRIED), service.ledger
        ask(app, "ada-1")
        hers = asked(service)[0]
        caps = replace(accounts.find_limits(service.catalog, service.find_analyst("bob")), per_query_nano=None)
        his = ledger.reserve(replace(hers.charge, analyst="bob"), caps)
        read = ledger.charge_reader

        def late(*given: Any, **named: Any) -> Reservation | None:
            if his in ledger.list_open_reservations():
                spent = Spent.from_uniform(his.charge.epsilon_nano, unit_epsilon_nano=0)
                ledger.commit(his, spent, KeySet(columns=("ward",), keys=(("B",),)).to_bytes())
            return read(*given, **named)

        with monkeypatch.context() as racing, hurried(service):
            racing.setattr(ledger, "charge_reader", late)
            first = ask(app, KEY, headers=BOB)
        assert (first.status_code, first.json()["keys"]) == (200, [["B"]])
        again = ask(app, KEY, headers=BOB)
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["idempotency-replayed"] == "true"
        assert len(ledger.read_history(analyst="bob")) == 1
