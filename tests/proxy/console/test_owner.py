"""The owner's pages over HTTP: what they show, what they decide once, and to whom they are not there."""

import html
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from accountant.charges import NANO, Wording
from accountant.errors import BalanceScope, NotApproved
from accountant.events.owner_events import Approved, Declined, Grant, Granted, Revoked, WindowOpened
from proxy.cli import main as cli
from proxy.cli.check import check
from proxy.console.owner.deciding import BY
from proxy.console.page import TABS
from proxy.open_policy.service import Service
from tests.accountant.examples import cells, charge, limits
from tests.proxy.cli.risk.hospital import install as install_hospital
from tests.worlds.console_house import SECTION, Browser, console_app, inline_code, open_house
from tests.worlds.wards import QUESTION, TOKENS, install

PAGES = [tab.href for tab in TABS["owner"]]
FORMS = ["approvals", "grants", "grants/revoke", "windows", "monitors", "ledger/verify", "measure"]
HOSTILE = "</pre><script>alert('x')</script>\x1b[2J\u202e"
MONITOR = """
[monitors.crowded]
sql = "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) > 400"
window = "day"
every = "6 hours"
from = "2026-01-01"
until = "2026-01-28"
tolerance = "10%"
analysts = ["ada"]
"""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with open_house(tmp_path) as opened:
        yield opened


@pytest.fixture
def owner(service: Service) -> Browser:
    return logged_in(service)


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A house in which nothing may be decided."""
    with open_house(tmp_path_factory.mktemp("still")) as opened:
        yield opened
        assert opened.ledger.owner.find_newest_event()[0] == 0


@pytest.fixture(scope="module")
def app(still: Service) -> FastAPI:
    return console_app(still)


def logged_in(service: Service) -> Browser:
    one = Browser(console_app(service))
    assert one.log_owner_in().status_code == 303
    return one


def wait_for_approval(
    service: Service, number: int, *, text: str = "SELECT ward FROM visits", analyst: str = "ada"
) -> str:
    """A question that waits; its id."""
    asked = charge(NANO, question=f"{number:064x}", analyst=analyst)
    refusal = NotApproved(question=asked.question, needed_nano=NANO, above_nano=1, declined=None)
    service.ledger.store_waiting_question(refusal, asked, Wording(text=text, guarantee="sure", fnr=None, fpr=None))
    return asked.question


def decide(browser: Browser, form: str, **fields: str) -> Any:
    return browser.post(f"/console/owner/{form}", data=fields)


def decided(service: Service) -> list[Any]:
    return list(service.ledger.owner.read_decisions())


# --- to whom they are not there


@pytest.mark.parametrize("address", [*PAGES, "/console/owner/questions/abc", "/console/owner/nowhere"])
def test_an_analyst_is_led_to_the_owners_login_as_everybody_is(app: FastAPI, address: str) -> None:
    analyst, stranger = Browser(app), Browser(app)
    assert analyst.log_in().status_code == 303
    answers = [one.get(address) for one in (analyst, stranger)]
    if address.endswith("nowhere"):
        assert [one.status_code for one in answers] == [404, 404]
        return
    assert [one.status_code for one in answers] == [303, 303]
    assert {one.headers["location"].partition("?")[0] for one in answers} == {"/console/owner/login"}
    assert {one.content for one in answers} == {b""}


@pytest.mark.parametrize("form", FORMS)
def test_nobody_but_the_owner_decides(still: Service, app: FastAPI, form: str) -> None:
    question = wait_for_approval(still, 1)
    fields = {"id": question, "decision": "approve", "why": "seen", "epsilon": "1", "cap": "predicate"}
    analyst, stranger = Browser(app), Browser(app)
    analyst.log_in()
    bodies = set()
    for one in (analyst, stranger):
        answer = decide(one, form, **fields)
        assert answer.status_code == 401
        bodies.add(re.sub(r"<header.*</header>", "", answer.text, flags=re.DOTALL))
    token = analyst.post(
        f"/console/owner/{form}",
        data=fields,
        headers={**analyst.own_headers, "Authorization": f"Bearer {TOKENS['ada']}"},
    )
    assert token.status_code == 401
    assert len(bodies) == 1
    assert decided(still) == []


@pytest.mark.parametrize("address", ["192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1", "local"])
def test_from_elsewhere_there_is_no_owners_page(still: Service, app: FastAPI, address: str) -> None:
    owner = logged_in(still)
    question = wait_for_approval(still, 1)
    away = Browser(app, address=address)
    away.cookies = owner.cookies
    for place in (*PAGES, "/console/owner/login"):
        assert away.get(place).status_code == 404
    for form in FORMS:
        assert decide(away, form, id=question, decision="approve", why="seen").status_code == 404
    assert decided(still) == []
    anywhere = Browser(console_app(still, SECTION.model_copy(update={"owner_from": "anywhere"})), address=address)
    anywhere.log_owner_in()
    assert anywhere.get(PAGES[0]).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://evil.test", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-site"},
        {"Origin": "null"},
        {"Origin": "http://evil.test"},
    ],
)
def test_another_sites_page_decides_nothing(still: Service, headers: dict[str, str]) -> None:
    owner = logged_in(still)
    question = wait_for_approval(still, 1)
    for form in FORMS:
        sent = {"id": question, "decision": "approve", "why": "seen", "epsilon": "1", "cap": "predicate", "sure": "yes"}
        assert owner.post(f"/console/owner/{form}", data=sent, headers=headers).status_code == 403
    assert decided(still) == []


# --- what they show


def test_every_page_is_there_before_anything_was_asked(still: Service) -> None:
    owner = logged_in(still)
    for address in PAGES:
        answer = owner.get(address)
        assert answer.status_code == 200, address
        assert inline_code(answer.text) == []
        assert answer.text.count("<h1>") == 1


def test_pages_say_what_the_commands_say(service: Service, owner: Browser) -> None:
    bearer = {"Authorization": f"Bearer {TOKENS['ada']}"}
    asked = owner.post("/v1/question", json={"sql": QUESTION.format(1500)}, headers=bearer)
    assert asked.json()["keys"] == [["A"]]
    (question,) = service.ledger.read_history()
    spent = f"{max(service.report_balances(None).families[0].lost_nano) / NANO:.4f}"
    overview, budget, listed = (owner.get(f"/console/owner{place}").text for place in ("", "/budget", "/questions"))
    assert "ready" in overview
    assert "ledger: there" in overview
    for page in (overview, budget, listed):
        assert spent in page
    assert "SELECT ward FROM visits GROUP BY ward HAVING count(*) &gt; 1500" in listed
    whole = owner.get(f"/console/owner/questions/{question.reservation}").text
    assert question.reservation in whole
    assert "loss of a group" in whole
    assert owner.get("/console/owner/questions/0123").status_code == 404
    assert owner.get("/console/owner/questions?analyst=bob").text.count("No question was asked") == 1


def test_no_page_but_the_one_that_measures_tells_of_rows(still: Service) -> None:
    """3,000 visits are in ward A and 2 in ward B."""
    owner = logged_in(still)
    for address in PAGES:
        assert not re.search(r"3,?002", owner.get(address).text), address
    measured = decide(owner, "measure")
    assert measured.status_code == 200
    assert "OWNER ONLY" in measured.text
    assert "3,002 rows" in measured.text
    assert owner.get("/console/owner/measure").status_code == 404


def test_no_page_shows_a_secret_of_the_policy(still: Service) -> None:
    owner = logged_in(still)
    secrets = [analyst.password for analyst in still.policy.analysts.values()]
    secrets += [str(analyst.token_sha256) for analyst in still.policy.analysts.values() if analyst.token_sha256]
    secrets.append(str(SECTION.owner_token_sha256))
    for address in PAGES:
        page = owner.get(address).text
        assert not [secret for secret in secrets if str(secret) in page]


def test_hostile_texts_stay_text(service: Service, owner: Browser) -> None:
    wait_for_approval(service, 1, text=HOSTILE, analyst="<b>ada</b>")
    service.ledger.owner.write_grant(
        Grant(scope=BalanceScope.PER_PREDICATE, amount_nano=NANO, table="<i>t</i>", analyst=None), by="<u>", why=HOSTILE
    )
    keys = cells(ward=("A", HOSTILE, "</script><script>alert(2)</script>"))
    made = service.ledger.reserve(
        charge(NANO // 10, analyst="<b>ada</b>", keys=keys), limits(4 * NANO), wording=Wording(HOSTILE, "", None, None)
    )
    for address in (*PAGES, f"/console/owner/questions/{made.id}"):
        page = owner.get(address).text
        assert "alert(" not in re.sub(r"&lt;script&gt;alert\(|u003cscript\\u003ealert\(", "", page), address
        assert not re.search(r"<(b|i|u)>", page), address
        assert "\x1b" not in page
        assert "\u202e" not in page
    found = owner.get(f"/console/owner/budget?find={'%3Cscript%3E'}&table=%22%3E%3Cscript%3E").text
    assert "<script>" not in found
    refused = decide(owner, "grants", epsilon="<script>", cap="predicate", why=HOSTILE).text
    assert "<script>" not in refused


# --- what they decide


def test_who_decides_again_sees_what_was_declined_before(service: Service) -> None:
    owner = logged_in(service)
    question = wait_for_approval(service, 1)
    decide(owner, "approvals", id=question, decision="decline", why=f"ask about quarters {HOSTILE}")
    assert "You declined it" not in owner.get("/console/owner/approvals").text
    wait_for_approval(service, 1)
    page = owner.get("/console/owner/approvals").text
    assert "You declined it before" in page
    assert "ask about quarters" in page
    assert "<script>alert" not in page
    decide(owner, "approvals", id=question, decision="approve", why="a last time")
    assert service.ledger.find_decline_reason(question) is None


@pytest.mark.parametrize(("decision", "kind"), [("approve", Approved), ("decline", Declined)])
def test_an_answer_to_a_waiting_question_is_one_event(
    service: Service, owner: Browser, decision: str, kind: type[Approved | Declined]
) -> None:
    question = wait_for_approval(service, 1)
    assert question in owner.get("/console/owner/approvals").text
    assert "1" in owner.get("/console/owner").text
    for _ in range(2):
        answer = decide(owner, "approvals", id=question, decision=decision, why=" the board agreed ")
        assert answer.status_code == 200
        assert "Done." in answer.text
    (event,) = decided(service)
    assert isinstance(event, kind)
    assert (event.by, event.why) == (BY, "the board agreed")
    assert "Nothing waits" in owner.get("/console/owner/approvals").text
    assert "the board agreed" in owner.get("/console/owner/ledger").text
    assert service.ledger.verify_everything() == 1


def test_a_grant_that_is_sent_twice_is_granted_once_and_can_be_revoked(service: Service, owner: Browser) -> None:
    once = re.findall(r'name="once" value="(\w+)"', owner.get("/console/owner/grants").text)
    fields = {"epsilon": "0.5", "cap": "predicate", "table": "visits", "analyst": "", "why": "a study"}
    for _ in range(2):
        assert "Granted +0.5" in decide(owner, "grants", once=once[0], **fields).text
    ((identity, given),) = service.ledger.owner.list_grants().items()
    assert (identity, given.amount_nano, given.table) == (once[0], NANO // 2, "visits")
    assert identity[:12] in owner.get("/console/owner/grants").text
    for _ in range(2):
        assert decide(owner, "grants/revoke", id=identity, why="over").status_code == 200
    decide(owner, "grants", once=once[0], **fields)  # the page of before, sent again
    assert [type(event) for event in decided(service)] == [Granted, Revoked]
    assert {event.by for event in decided(service)} == {BY}


@pytest.mark.parametrize(
    "wrong",
    [
        {"why": "  "}, {"why": "x" * 2001}, {"epsilon": "much"}, {"epsilon": "nan"}, {"epsilon": "-1"},
        {"epsilon": "1e9"}, {"cap": "sky"}, {"cap": "unit"}, {"cap": "table"}, {"table": "nowhere"},
        {"analyst": "nobody"}, {"once": ""}, {"once": "short"}, {"epsilon": "1e-12"},
    ],
)  # fmt: skip
def test_what_is_mistyped_is_said_and_grants_nothing(still: Service, wrong: dict[str, str]) -> None:
    owner = logged_in(still)
    right = {"epsilon": "0.5", "cap": "predicate", "table": "", "analyst": "", "why": "a study", "once": "0" * 32}
    answer = decide(owner, "grants", **(right | wrong))
    assert answer.status_code == 422
    assert "Nothing was decided" in answer.text
    assert decided(still) == []


def test_a_window_is_opened_once_and_meant(service: Service, owner: Browser) -> None:
    page = owner.get("/console/owner/windows").text
    assert "This opens window 2" in page
    (once,) = re.findall(r'name="once" value="(\w+)"', page)
    assert decide(owner, "windows", once=once, why="new rows").status_code == 422
    assert decided(service) == []
    for _ in range(2):
        assert decide(owner, "windows", once=once, why="new rows", sure="yes").status_code == 200
    (event,) = decided(service)
    assert isinstance(event, WindowOpened)
    assert event.by == BY
    assert "This is window 2" in owner.get("/console/owner/windows").text


def test_the_ledger_is_verified_and_held_against_what_was_kept(service: Service, owner: Browser) -> None:
    assert "0 events, unbroken" in decide(owner, "ledger/verify", expect="").text
    service.ledger.owner.approve_question("0" * 64, by="kim", why="seen")
    number, newest = service.ledger.owner.find_newest_event()
    assert "Nothing is missing up to event 1" in decide(owner, "ledger/verify", expect=f"{newest}:{number}").text
    lost = decide(owner, "ledger/verify", expect=f"{newest}:9")
    assert lost.status_code == 503
    assert "8 or more are missing" in lost.text
    assert decide(owner, "ledger/verify", expect="what?").status_code == 422


def test_a_wanted_risk_is_turned_into_budgets_or_said_to_be_none(still: Service) -> None:
    owner = logged_in(still)
    page = owner.get("/console/owner/risk?target=advantage+0.1").text
    assert "epsilon_per_predicate = " in page
    assert owner.get("/console/owner/risk?target=none").status_code == 422
    assert "What was spent" in owner.get("/console/owner/risk?from=ledger").text


def test_the_commands_beside_the_ledger_can_be_run_as_they_stand(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    charged = charge(NANO, question="q", analyst="ada")
    service.ledger.reserve(charged, limits(4 * NANO))
    page = logged_in(service).get("/console/owner/ledger").text
    shown = [html.unescape(one) for one in re.findall(r'<code class="copied" id="command\d">(.*?)</code>', page)]
    assert [" ".join(one.split()[1:3]) for one in shown] == [
        "ledger backup",
        "ledger export",
        "odometer --policy",
        "ledger settle",
    ]
    monkeypatch.chdir(tmp_path)
    for one in shown:
        with pytest.raises(SystemExit) as ended:
            cli.main(shlex.split(one)[1:])
        assert ended.value.code == 0, one
    assert (tmp_path / "ledger-copy.db").is_file()
    assert (tmp_path / "events.jsonl").is_file()
    assert "spent for good" in capsys.readouterr().out
    assert service.ledger.list_open_reservations() == ()


PRIOR = "room,hour,people\nER,9,40\nICU,9,20\n"


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """An owner's browser over a hospital with one stored question that can be asked and one that cannot."""
    path = install_hospital(tmp_path_factory.mktemp("hospital"))
    quoted = HOSTILE.replace("'", "''")
    lost = f"SELECT room FROM stays GROUP BY room HAVING count(*) > 20 AND max(room) > '{quoted}'"
    told = lost.replace("\x1b", "\\u001b").replace("\u202e", "\\u202e")
    path.write_text(path.read_text() + f'\n[views.lost]\nsql = "{told}"\n', encoding="utf-8")
    check(path, confirm=False)
    with Service.open(path) as opened:
        yield logged_in(opened)
        assert opened.ledger.owner.find_newest_event()[0] == 0


def test_attackers_priors_and_sensitive_values_are_held_against_stored_questions(hospital: Browser) -> None:
    wish = {"prior": PRIOR, "attacker0": "porter", "known0": "room\nER\n", "sensitive": "illness=rare:0.02"}
    answer = hospital.post("/console/owner/risk", data={**wish, "units": "200", "rows": "400"})
    assert answer.status_code == 200
    for told in ("What attackers become sure of", "porter knows 1 count", "outsider knows no count", "illness = rare"):
        assert told in answer.text
    assert "Held against busy" in answer.text
    assert 'value="porter"' in answer.text  # what was typed stays, to be changed
    assert "keyhole risk --views --private" in answer.text
    assert inline_code(answer.text) == []


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"prior": f"room,people\n{HOSTILE},3\n"}, "give a question that compares one count"),
        ({"prior": f"{HOSTILE}\n3\n"}, "has to name a place"),
        ({"prior": "room,hour,people\nER,9,9000000\nICU,9,9\n"}, "keyhole risk --prior works out"),
        ({"known0": "room\nER\n"}, "say where people usually are"),
        ({"prior": PRIOR, "known0": f"room\n{HOSTILE}\n"}, "does not stand in the prior"),
        ({"prior": PRIOR, "attacker0": "outsider", "known0": "room\n"}, "each a name of its own"),
        ({"sensitive": HOSTILE}, "say COLUMN=VALUE:SHARE"),
        ({"sensitive": "nowhere=x:0.1"}, "no private table of the policy has a column"),
        ({"units": "many"}, "a whole number"),
        ({"rows": "0"}, "a whole number"),
        ({"sql": "SELECT 1"}, "it asks nothing of a private table"),
        ({"sql": HOSTILE}, "KH1"),
        ({"target": HOSTILE}, "posterior 0.01"),
    ],
)
def test_what_is_mistyped_about_risks_is_told_beside_the_report(
    hospital: Browser, typed: dict[str, str], told: str
) -> None:
    answer = hospital.post("/console/owner/risk", data=typed)
    assert answer.status_code == 422
    assert told in answer.text
    assert "What the caps promise" in answer.text
    assert "<script>alert" not in answer.text
    assert inline_code(answer.text) == []


def test_a_stored_question_that_cannot_be_planned_is_listed_with_its_code(hospital: Browser) -> None:
    page = hospital.get("/console/owner/risk").text
    assert "Stored questions that nothing is said about" in page
    assert re.search(r'<th scope="row">lost</th><td class="tight">KH2\d\d</td>', page)
    assert "<script>alert" not in page


def test_nothing_about_risks_is_told_to_another_site_or_taken_without_end(hospital: Browser) -> None:
    elsewhere = {"Origin": "http://other.test", "Sec-Fetch-Site": "cross-site"}
    assert hospital.post("/console/owner/risk", data={}, headers=elsewhere).status_code == 403
    assert hospital.post("/console/owner/risk", data={"prior": "x" * 300_000}).status_code == 400


def test_a_monitor_is_started_paused_resumed_and_ended(tmp_path: Path) -> None:
    path = install(tmp_path)
    path.write_text(path.read_text().replace('refresh = "static"', 'refresh = "live"\nappend_only = true') + MONITOR)
    check(path, confirm=False)
    with Service.open(path) as service:
        owner = logged_in(service)
        assert "Start, for" in owner.get("/console/owner/monitors").text
        for change, state in (("start", "running"), ("pause", "paused"), ("resume", "running"), ("end", "ended")):
            for _ in range(2):
                answer = decide(owner, "monitors", name="crowded", change=change, why="to see")
                assert answer.status_code == 200, answer.text
            run = service.ledger.monitors.find_newest_run("crowded")
            assert run is not None
            assert run.state == state
        assert len(service.ledger.monitors.list_runs()) == 1
        told = [event.by for _, event in service.ledger.owner.list_latest_decisions(limit=9)]
        assert told == [BY] * 4
        assert decide(owner, "monitors", name="none", change="start", why="to see").status_code == 422
        refused = decide(owner, "monitors", name="none", change="pause", why="to see")
        assert "KH606" in refused.text
        assert decide(owner, "monitors", name="crowded", change="explode", why="to see").status_code == 422


def test_a_monitor_that_cannot_be_watched_says_so_beside_the_others(tmp_path: Path) -> None:
    with open_house(tmp_path, more=MONITOR) as service:
        page = logged_in(service).get("/console/owner/monitors")
        assert page.status_code == 200
        assert "KH603" in page.text
