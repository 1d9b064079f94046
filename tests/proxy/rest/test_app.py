"""REST: the same questions and refusals as everywhere, as JSON; what goes wrong inside stays inside."""

import asyncio
import io
import json
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send
from structlog.testing import capture_logs

from accountant.reports.balance_report import BudgetReport
from planner.errors import CATALOGUE, KeyholeError
from planner.policy.sections import RestSection
from planner.statements.settings import SETTINGS
from proxy.cli import check as checking
from proxy.open_policy.service import Service
from proxy.process.serve import serve_in_background
from proxy.rest.app import create_app
from proxy.rest.middleware import MOST_BODY_BYTES, HttpMiddleware
from proxy.rest.models import MOST_SQL_CHARACTERS, QuestionIn
from proxy.rest.problems import PROBLEM, choose_http_status
from tests.effort import PATIENCE_S
from tests.in_turn import in_turn
from tests.worlds.house import hurried
from tests.worlds.wards import PASSWORD, QUESTION, TOKENS, install

UNHURRIED = RestSection(
    requests_per_minute=10**6, requests_per_minute_per_address=10**6, failed_logins_per_minute=10**6
)
ADA = {"Authorization": f"Bearer {TOKENS['ada']}"}


def send(
    app: FastAPI, method: str, path: str, *, headers: dict[str, str] | None = None, **content: Any
) -> httpx.Response:
    async def sending() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://keyhole") as client:
            return await client.request(method, path, headers=ADA if headers is None else headers, **content)

    return asyncio.run(sending())


def asked(app: FastAPI, sql: str, **fields: object) -> httpx.Response:
    return send(app, "POST", "/v1/question", json={"sql": sql, **fields})


def refused(response: httpx.Response, code: str, *, status: int | None = None) -> dict[str, Any]:
    """The problem document, which is what RFC 9457 and the catalogue say."""
    document = response.json()
    assert response.headers["content-type"] == PROBLEM
    assert document["code"] == code
    assert document["status"] == response.status_code
    assert document["type"] == f"urn:keyhole:error:{code}"
    assert document["sqlstate"] == CATALOGUE[code].sqlstate
    assert document["meaning"] == CATALOGUE[code].meaning
    assert document["title"]
    assert None not in document.values()
    if status is not None:
        assert response.status_code == status
    return dict(document)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = install(tmp_path_factory.mktemp("wards"))
    checking.check(path, confirm=False)
    return path


@pytest.fixture(scope="module")
def service(policy: Path) -> Iterator[Service]:
    with Service.open(policy) as opened:
        yield opened


@pytest.fixture(scope="module")
def app(service: Service) -> FastAPI:
    return create_app(service, UNHURRIED)


@contextmanager
def own_house(directory: Path) -> Iterator[Service]:
    """A service that a test may ruin."""
    path = install(directory)
    checking.check(path, confirm=False)
    with Service.open(path) as opened:
        yield opened


def test_an_answer_has_columns_keys_and_what_they_promise(tmp_path: Path) -> None:
    with own_house(tmp_path) as service:  # that nobody has asked yet
        response = asked(create_app(service, UNHURRIED), QUESTION.format(1500), fnr=0.01, tolerance="9%")
    answer = response.json()
    assert response.status_code == 200
    assert answer["columns"] == ["ward"]
    assert answer["keys"] == [["A"]]
    assert answer["reused"] is False
    assert answer["data_version"] == "static"
    cost = answer["cost"]
    assert cost["sentence"].startswith("at most 0.")
    assert cost["group_at_most"] == pytest.approx(answer["guarantee"]["epsilon_at_most"], abs=2e-9)
    assert cost["left"][0]["of"] == "group"
    assert cost["further_questions"] >= 0
    guarantee = answer["guarantee"]
    assert guarantee["fnr"] == 0.01
    assert guarantee["fpr"] == 0.1
    assert guarantee["tolerance"] == {"count(*)": 135.0}
    assert 0 < guarantee["epsilon_at_most"] < 0.1
    assert "missed at most 1 % of the time" in guarantee["sentence"]


def test_a_whole_table_is_one_key_or_none(app: FastAPI) -> None:
    """Of 3,002 rows: a false alarm has a probability below 1e-9."""
    answer = asked(app, "SELECT true FROM visits HAVING count(*) > 777").json()
    assert answer["columns"] == ["whole_table"]
    assert answer["keys"] == [["true"]]
    assert answer["count"] == 1
    assert answer["guarantee"]["wrong_groups_at_most"] == 0.1
    none = asked(app, "SELECT true FROM visits HAVING count(*) > 77777").json()
    assert (none["columns"], none["keys"], none["count"]) == (["whole_table"], [], 0)
    headers = {**ADA, "Accept": "text/csv"}
    told = send(
        app, "POST", "/v1/question", json={"sql": "SELECT true FROM visits HAVING count(*) > 777"}, headers=headers
    )
    assert told.text.splitlines() == ["whole_table", "true"]


def test_a_scorecard_has_a_column_of_truths_for_each_predicate(app: FastAPI) -> None:
    """Wards have 2,000, 500 and no visits or so: thresholds are far from them."""
    sql = "SELECT ward, count(*) > 1507 AS busy, count(*) > 91507 FROM visits GROUP BY ward"
    answer = asked(app, sql).json()
    assert answer["columns"] == ["ward", "busy", "predicate 2"]
    assert ["A", "true", "false"] in answer["keys"]
    assert {key[2] for key in answer["keys"]} == {"false"}
    assert answer["guarantee"]["predicates"] == {"busy": "count(*) > 1507", "predicate 2": "count(*) > 91507"}
    truths = [[key[0], *(truth == "true" for truth in key[1:])] for key in answer["keys"]]
    assert answer["shown"] == {"columns": ["ward", "busy", "?column?"], "rows": truths}
    assert asked(app, sql).json()["keys"] == answer["keys"]
    assert asked(app, QUESTION.format(1508)).json()["shown"] is None


def test_numbers_beside_the_keys_are_shown_as_the_request_chooses(app: FastAPI) -> None:
    sql = "SELECT ward, count(*) AS n, count(*) FROM visits GROUP BY ward HAVING count(*) > 1523 ORDER BY n DESC"
    answer = asked(app, sql).json()
    assert (answer["columns"], answer["keys"]) == (["ward"], [["A"]])
    assert answer["shown"] == {"columns": ["ward", "n", "count"], "rows": [["A", None, None]]}
    assert answer["numbers"]["columns"][0] == {"name": "n", "told": "null", "says": ""}
    assert answer["numbers"]["sentences"][0].startswith("not told: n and count are NULL")
    proved = asked(app, sql, numbers="threshold").json()
    assert (proved["shown"]["rows"], proved["reused"]) == ([["A", 1524, 1524]], True)
    assert proved["numbers"]["columns"][0]["says"] == "at least 1524"
    refused = asked(app, sql, numbers="refuse")
    assert (refused.status_code, refused.json()["code"]) == (422, "KH101")
    assert asked(app, sql, numbers="exact").json()["code"] == "KH402"


def test_a_ranking_has_places_behind_its_keys_and_truths_behind_these(app: FastAPI) -> None:
    """Of 3,000 visits and 2: another order has a probability below 1e-9."""
    sql = "SELECT ward, count(*) > 1519 AS busy FROM visits WHERE ward IN ('A', 'B') GROUP BY ward"
    sql += " ORDER BY count(*) DESC LIMIT 2"
    sent = {"sql": sql, "tolerance": "19"}
    answer = send(app, "POST", "/v1/question", json=sent).json()
    assert answer["columns"] == ["ward", "place in ranking", "busy"]
    assert answer["keys"] == [["A", "1", "true"], ["B", "2", "false"]]
    assert answer["shown"]["rows"] == [["A", True], ["B", False]]
    ranking = answer["guarantee"]["ranking"]
    assert (ranking["by"], ranking["limit"], ranking["tolerance"]) == ("count(*)", 2, 19.0)
    first = send(app, "POST", "/v1/question?page_size=1", json=sent).json()
    assert (first["keys"], first["reused"]) == (answer["keys"][:1], True)
    assert send(app, "GET", f"/v1/answer?cursor={first['next']}").json()["keys"] == answer["keys"][1:]


def test_pages_of_a_scorecard_have_the_rows_of_their_keys(app: FastAPI) -> None:
    sql = "SELECT CASE WHEN count(*) > 1509 THEN 'busy' ELSE 'calm' END AS traffic FROM visits GROUP BY ward"
    first = send(app, "POST", "/v1/question?page_size=1", json={"sql": sql}).json()
    assert (first["columns"], len(first["keys"])) == (["ward", "predicate 1"], 1)
    assert first["shown"]["columns"] == ["traffic"]
    assert first["shown"]["rows"] == [["busy" if first["keys"][0][1] == "true" else "calm"]]
    page = send(app, "GET", f"/v1/answer?cursor={first['next']}").json()
    assert page["columns"] == ["ward", "predicate 1"]
    assert "shown" not in page


def test_a_select_list_that_only_postgresql_runs_leaves_the_truths(app: FastAPI) -> None:
    answer = asked(app, "SELECT upper(ward), count(*) > 1511 AS busy FROM visits GROUP BY ward").json()
    assert answer["columns"] == ["ward", "busy"]
    assert answer["shown"] is None


def test_an_idempotent_scorecard_is_shown_again(app: FastAPI) -> None:
    sent: dict[str, Any] = {"json": {"sql": "SELECT ward, count(*) > 1513 AS busy FROM visits GROUP BY ward"}}
    headers = {**ADA, "Idempotency-Key": "a scorecard".replace(" ", "-")}
    first, again = (send(app, "POST", "/v1/question", headers=headers, **sent) for _ in range(2))
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == first.json()
    assert first.json()["shown"]["columns"] == ["ward", "busy"]


def test_a_sparse_vector_says_how_many_groups_it_returns(app: FastAPI) -> None:
    guarantee = asked(app, QUESTION.format(1504), mechanism="svt", most_positives=2).json()["guarantee"]
    assert (guarantee["fnr"], guarantee["fpr"], guarantee["most_groups"]) == (None, 0.1, 2)
    assert "at most 2 groups are returned" in guarantee["sentence"]
    assert asked(app, QUESTION.format(1500), fnr=0.01, tolerance="9%").json()["guarantee"]["most_groups"] is None


def test_a_repetition_is_the_same_answer_and_costs_nothing(app: FastAPI) -> None:
    first = asked(app, QUESTION.format(1501)).json()
    before = send(app, "GET", "/v1/budget").json()
    again = asked(app, "  select ward from visits group by ward having 1501 < count(*)").json()
    assert again == first | {"reused": True, "cost": None, "shared_noise": again["shared_noise"]}
    assert (again["shared_noise"] is None) is (first["shared_noise"] is None)
    assert send(app, "GET", "/v1/budget").json() == before


def test_parameters_are_values_and_never_text(app: FastAPI) -> None:
    sql = "SELECT ward FROM visits WHERE ward <> $2 GROUP BY ward HAVING count(*) > $1"
    assert asked(app, sql, parameters=[1502, "'; DROP TABLE visits; --"]).json()["keys"] == [["A"]]
    assert asked(app, sql, parameters=[1502.5, "A"]).json()["keys"] == []
    dated = "SELECT ward FROM visits WHERE day <= $1 GROUP BY ward HAVING count(*) > 1502"
    assert asked(app, dated, parameters=["2026-01-27"]).json()["keys"] == [["A"]]
    refused(asked(app, sql, parameters=[1502]), "KH109", status=422)


def test_a_list_is_planned_as_a_whole_and_costs_nothing(app: FastAPI) -> None:
    before = send(app, "GET", "/v1/budget").json()
    questions: list[dict[str, Any]] = [
        {"sql": QUESTION.format("$1"), "parameters": [1512], "tolerance": "4%"},
        {"sql": QUESTION.format(1513), "tolerance": 3},
        {"sql": "SELECT ward FROM visits"},
        {"sql": "SELECT count(*) FROM visits"},
    ]
    plan = send(app, "POST", "/v1/plan", json={"questions": questions, "max_epsilon": 0.4}).json()
    assert [one["fits"] for one in plan["questions"]] == [True, False, True, False]
    assert plan["questions"][3]["refused"].startswith("KH101")
    assert plan["questions"][1]["short"]
    assert plan["fit"] == 2
    assert plan["factor"] > 1
    assert [one["fits"] for one in plan["split"]["questions"]] == [True, True, True, False]
    assert plan["split"]["together"]["group_at_most"] <= 0.4
    assert send(app, "GET", "/v1/budget").json() == before
    refused(send(app, "POST", "/v1/plan", json={"questions": questions * 6}), "KH408", status=400)


def test_explain_is_the_plan_and_costs_nothing(app: FastAPI) -> None:
    before = send(app, "GET", "/v1/budget").json()
    plan = send(app, "POST", "/v1/explain", json={"sql": QUESTION.format(1503), "mechanism": "tslm"}).json()
    assert plan["formula"] == plan["minimised"] == "count(*) > 1503"
    assert plan["mechanism"] == "tslm"
    assert plan["keys"] == 3
    assert plan["refused"] is False
    assert plan["worst_case_epsilon"] < plan["left"]
    assert send(app, "GET", "/v1/budget").json() == before


def test_every_setting_is_a_field_and_the_other_way_round() -> None:
    fields = set(QuestionIn.model_fields) - {"sql", "parameters"}
    assert {f"keyhole.{name}" for name in fields} == {setting.name for setting in SETTINGS}


def test_an_analyst_sees_the_own_budget_alone(app: FastAPI) -> None:
    asked(app, QUESTION.format(1504))
    bob = send(app, "GET", "/v1/budget", headers={"Authorization": f"Bearer {TOKENS['bob']}"}).json()
    ada = send(app, "GET", "/v1/budget").json()
    assert bob["families"] == []
    assert [own["analyst"] for own in bob["analysts"]] in ([], ["bob"])
    assert [own["analyst"] for own in ada["analysts"]] == ["ada"]
    assert ada["families"][0]["spent_at_most"] > 0


@in_turn(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKENS['ada']}"},
        {"Authorization": TOKENS["ada"]},
        {"Authorization": "Bearer \xe9".encode()},
    ],
)
@in_turn(
    ("method", "path"), [("POST", "/v1/question"), ("POST", "/v1/explain"), ("POST", "/v1/plan"), ("GET", "/v1/budget")]
)
def test_nobody_without_a_token(app: FastAPI, method: str, path: str, headers: dict[str, Any]) -> None:
    content: dict[str, Any] = {"json": {"sql": QUESTION.format(1505)}} if method == "POST" else {}
    response = send(app, method, path, headers=headers, **content)
    refused(response, "KH401", status=401)
    assert response.headers["www-authenticate"] == "Bearer"


def test_health_and_openapi_need_no_token(app: FastAPI) -> None:
    assert send(app, "GET", "/healthz", headers={}).json() == {"status": "ok"}
    assert send(app, "GET", "/api/docs", headers={}).status_code == 200
    document = send(app, "GET", "/openapi.json", headers={}).json()
    assert set(document["paths"]) >= {"/v1/question", "/v1/answer", "/v1/explain", "/v1/plan", "/v1/budget", "/healthz"}
    for path, more in (("/v1/question", {"406", "409"}), ("/v1/explain", set())):
        responses = document["paths"][path]["post"]["responses"]
        assert set(responses) == {"200", "400", "401", "403", "408", "413", "422", "429", "431", "500", "503"} | more
        assert all(set(responses[status]["content"]) == {PROBLEM} for status in responses if status != "200")
    assert "visits" not in json.dumps(document["components"]["schemas"].get("AnswerOut"))


def test_every_code_has_a_status_that_openapi_announces(app: FastAPI) -> None:
    paths = send(app, "GET", "/openapi.json").json()["paths"]
    announced = {*paths["/v1/question"]["post"]["responses"], *paths["/v1/monitors/{name}"]["get"]["responses"]}
    assert {str(choose_http_status(KeyholeError(code, "refused"))) for code in CATALOGUE} <= announced


@pytest.mark.parametrize(
    "rewritten",
    [
        "SELECT ward FROM (SELECT ward, age FROM visits) v GROUP BY ward HAVING count(*) > {}",
        "WITH v AS (SELECT ward FROM visits) SELECT ward FROM v GROUP BY ward HAVING count(*) > {}",
    ],
)
def test_a_rewritten_question_is_answered_by_itself_and_refused_in_a_cursor(
    app: FastAPI, service: Service, rewritten: str
) -> None:
    assert asked(app, rewritten.format(1512)).json()["keys"] == [["A"]]
    before = len(service.ledger.read_history())
    for around in ("DECLARE c CURSOR FOR {}", "DECLARE c CURSOR WITH HOLD FOR {}", "PREPARE p AS {}", "EXPLAIN {}"):
        refused(asked(app, around.format(rewritten.format(1513))), "KH106", status=422)
    assert len(service.ledger.read_history()) == before


@pytest.mark.parametrize(
    ("code", "status", "sql", "at"),
    [
        ("KH100", 422, "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 'x", "'x"),
        ("KH101", 422, "SELECT ward, count(*) FROM visits GROUP BY ward", "count"),
        ("KH102", 403, "  DROP TABLE visits", "DROP"),
        ("KH103", 403, "SELECT * FROM visits", "visits"),
        ("KH104", 422, "SELECT ward FROM visits WHERE age > 5 GROUP BY ward", None),
        ("KH105", 422, "SELECT ward FROM visits HAVING count(*) > 1500", None),
        ("KH106", 422, "SELECT 1", None),
        ("KH106", 422, "  SELECT ward, extract(month FROM day) FROM visitz v GROUP BY ward, day", "visitz"),
        ("KH106", 422, "SELECT q.ward FROM (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1500) q", None),
        ("KH107", 422, "SELECT ward FROM visits JOIN visits v USING (id) GROUP BY ward HAVING count(*) > 3", None),
        ("KH108", 422, f"{QUESTION.format(1500)}; {QUESTION.format(1600)}", None),
        ("KH108", 422, " -- nothing", None),
        ("KH109", 422, QUESTION.format("$1"), "$1"),
        ("KH201", 422, "SELECT wrd FROM visits GROUP BY wrd HAVING count(*) > 3", None),
        ("KH202", 422, "SELECT id FROM visits GROUP BY id HAVING count(*) > 3", None),
        ("KH203", 422, "SELECT ward FROM visits GROUP BY ward ORDER BY avg(id) DESC LIMIT 1", "avg"),
        ("KH204", 422, "SELECT ward\nFROM visits GROUP BY ward\nHAVING stddev(age) + 1 > 3", "stddev"),
        ("KH205", 422, "SELECT ward FROM visits WHERE 1/(age-5) > 0 GROUP BY ward HAVING count(*) > 3", "1/"),
        ("KH207", 422, "SELECT ward FROM visits GROUP BY ward HAVING count(*) + 1", "count"),
        ("KH208", 422, "SELECT ward FROM visits GROUP BY ward HAVING count(*) > true", "count"),
        ("KH209", 422, "SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT (id, ward)) > 3", "count"),
        ("KH212", 422, "SELECT ward FROM visits WHERE day = 'x' GROUP BY ward HAVING count(*) > 3", None),
        ("KH208", 422, f"\n  {QUESTION.format(1500)}\nUNION {QUESTION.format('age')}", "age"),
        ("KH304", 422, f"-- both\n{QUESTION.format(1500)} EXCEPT ({QUESTION.format(0)})", "count(*) > 0"),
        ("KH302", 403, QUESTION.format(2), None),
        ("KH304", 422, QUESTION.format(0), "count"),
    ],
)
def test_refusals_are_problem_documents_with_the_position(
    app: FastAPI, code: str, status: int, sql: str, at: str | None
) -> None:
    before = send(app, "GET", "/v1/budget").json()
    for path in ("/v1/question", "/v1/explain") if status != 403 or code != "KH302" else ("/v1/question",):
        document = refused(send(app, "POST", path, json={"sql": sql}), code, status=status)
        if at is not None:
            assert sql[document["position"] - 1 :].startswith(at)
    assert send(app, "GET", "/v1/budget").json() == before


@in_turn(
    ("fields", "code"),
    [
        ({"fnr": 2}, "KH402"),
        ({"fnr": 0}, "KH402"),
        ({"tolerance": "much"}, "KH402"),
        ({"tolerance": -1}, "KH402"),
        ({"mechanism": "magic"}, "KH402"),
        ({"min_rows": 0}, "KH402"),
        ({"max_epsilon": 0}, "KH402"),
        ({"most_positives": 0}, "KH402"),
        ({"most_positives": 3}, "KH402"),
        ({"mechanism": "svt"}, "KH402"),
        ({"mechanism": "mim", "public_knowledge": "few"}, "KH402"),
        ({"most_positives": "3"}, "KH408"),
        ({"public_knowledge": 3}, "KH408"),
        ({"fnr": "0.05"}, "KH408"),
        ({"fnr": True}, "KH408"),
        ({"min_rows": 1.5}, "KH408"),
        ({"tolerance": ["10%"]}, "KH408"),
        ({"tolerance": "10%\0"}, "KH408"),
        ({"mechanism": 1}, "KH408"),
        ({"parameters": {"1": 2}}, "KH408"),
        ({"parameters": [[1]]}, "KH408"),
        ({"parameters": [1] * 1001}, "KH408"),
        ({"epsilon": 3}, "KH408"),
        ({"sql": None}, "KH408"),
        ({"sql": 1}, "KH408"),
        ({"sql": "x\0"}, "KH408"),
        ({"sql": "x" * (MOST_SQL_CHARACTERS + 1)}, "KH408"),
    ],
)
def test_wrong_fields_are_refused(app: FastAPI, fields: dict[str, object], code: str) -> None:
    response = send(app, "POST", "/v1/question", json={"sql": QUESTION.format(1500)} | fields)
    document = refused(response, code, status=400)
    if code == "KH408":
        assert document["title"].startswith(f"body.{next(iter(fields))}")


@in_turn(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"SELECT 1"',
        b"\xff\xfe",
        b'{"sql": NaN}',
        b'{"sql": "\\ud800"}',
        b'{"sql": "x", "fnr": NaN}',
        b'{"sql": "x", "parameters": [Infinity]}',
        b'{"sql": "x", "parameters": [' + b"1" * 5000 + b"]}",
        b"[" * 100_000,
    ],
)
def test_a_body_that_is_no_request_is_refused(app: FastAPI, body: bytes) -> None:
    headers = ADA | {"Content-Type": "application/json"}
    refused(send(app, "POST", "/v1/question", headers=headers, content=body), "KH408", status=400)


def test_a_field_that_there_is_not_is_named_shortly(app: FastAPI) -> None:
    document = refused(asked(app, "x", **{"f" * 900_000: 1}), "KH408", status=400)
    assert document["title"] == f"body.{'f' * 100}: Extra inputs are not permitted"


def test_a_setting_has_an_end(app: FastAPI) -> None:
    """Reading a tolerance takes time with the square of its length."""
    for name in ("tolerance", "public_knowledge", "mechanism", "reuse"):
        document = refused(asked(app, QUESTION.format(1500), **{name: " " * 900_000 + "x"}), "KH402", status=400)
        assert document["title"] == f"keyhole.{name} is longer than 10,000 characters"


def test_numbers_beyond_any_database_are_refused(app: FastAPI) -> None:
    for number in (10**400, 1e300):
        refused(asked(app, QUESTION.format("$1"), parameters=[number]), "KH212", status=422)


@pytest.mark.parametrize("declared", [True, False])
def test_a_huge_body_is_refused_declared_or_not(app: FastAPI, declared: bool) -> None:
    size = MOST_BODY_BYTES + 1

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(0, size, 10_000):
            yield b" " * 10_000

    content: Any = b" " * size if declared else chunks()
    headers = ADA | {"Content-Type": "application/json"}
    refused(send(app, "POST", "/v1/question", headers=headers, content=content), "KH408", status=413)


def test_addresses_and_methods_that_do_not_exist(app: FastAPI) -> None:
    refused(send(app, "GET", "/v1/tables"), "KH408", status=404)
    response = send(app, "GET", "/v1/question")
    refused(response, "KH408", status=405)
    assert response.headers["allow"] == "POST"


def test_budgets_run_out_with_a_hint_that_helps(tmp_path: Path) -> None:
    with own_house(tmp_path) as service:
        app = create_app(service)
        bob = {"Authorization": f"Bearer {TOKENS['bob']}"}
        first = send(app, "POST", "/v1/question", headers=bob, json={"sql": QUESTION.format(1500)})
        assert first.status_code == 200
        body: dict[str, object] = {"sql": QUESTION.format(1400)}
        document = refused(send(app, "POST", "/v1/question", headers=bob, json=body), "KH306", status=403)
        (field,) = re.findall(r'"tolerance": "[^"]*"', document["hint"])[:1]
        wanted = json.loads("{" + field + "}")
        answered = send(app, "POST", "/v1/question", headers=bob, json=body | wanted)
        assert answered.status_code == 200
        for threshold in range(1000, 2000):
            response = asked(app, QUESTION.format(threshold), fnr=1e-6, fpr=1e-6, tolerance=90, reuse="off")
            if response.status_code != 200:
                break
        document = refused(response, "KH301", status=403)
        assert "budget for 3 of 3 groups" in document["title"]


def test_a_source_that_is_gone_is_told_before_anything_is_spent(tmp_path: Path) -> None:
    with own_house(tmp_path) as service:
        app = create_app(service)
        (tmp_path / "visits.csv").unlink()
        with hurried(service):
            document = refused(asked(app, QUESTION.format(1500)), "KH501", status=503)
        assert "visits" not in json.dumps(document)


def test_a_ledger_that_is_gone_is_told(tmp_path: Path) -> None:
    with own_house(tmp_path) as service:
        app = create_app(service)
        (tmp_path / "keyhole.db").write_bytes(b"nothing" * 1000)
        for path in ("keyhole.db-wal", "keyhole.db-shm"):
            (tmp_path / path).unlink(missing_ok=True)
        refused(asked(app, QUESTION.format(1500)), "KH502", status=503)
        refused(send(app, "GET", "/v1/budget"), "KH502", status=503)


SECRET = "ward A has 3000 rows"


class Buggy(Service):
    def report_balances(self, name: str | None) -> BudgetReport:
        raise ZeroDivisionError(SECRET)


def test_a_bug_is_an_internal_error_and_neither_client_nor_log_learn_its_text(tmp_path: Path) -> None:
    path = install(tmp_path)
    checking.check(path, confirm=False)
    with Buggy.open(path) as service, capture_logs() as logs:
        response = send(create_app(service), "GET", "/v1/budget")
    refused(response, "KH900", status=500)
    assert SECRET not in response.text
    assert [entry["kind"] for entry in logs if entry["log_level"] == "error"] == ["ZeroDivisionError"]
    assert SECRET not in str(logs)


def test_the_shell_ends_what_breaks_after_the_answer_began() -> None:
    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError(SECRET)

    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def sending(message: Message) -> None:
        sent.append(message)

    def never() -> Any:
        raise HTTPException(500)

    shell = HttpMiddleware(
        inner,
        most_bytes=10,
        receive_timeout_ms=1000,
        pages=(),
        paths=frozenset(),
        admitted=lambda _: nullcontext(),
        refused=lambda _: None,
        failed=never,
        finished=lambda _: None,
    )
    with capture_logs() as logs:
        asyncio.run(shell({"type": "http", "method": "GET", "path": "/", "headers": []}, receive, sending))
    assert [message["type"] for message in sent] == ["http.response.start"]
    assert SECRET not in str(logs)


def test_over_a_real_socket_both_endpoints_give_the_same_answer(policy: Path, tmp_path: Path) -> None:
    """And a bug's text reaches neither the log nor standard error of the server that serves it."""
    shutil.copytree(policy.parent, tmp_path / "copy")
    printed = io.StringIO()
    with Buggy.open(tmp_path / "copy" / "keyhole.toml") as service, redirect_stderr(printed), redirect_stdout(printed):  # noqa: SIM117
        with serve_in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses:
            body = {"sql": QUESTION.format(1506)}
            with httpx.Client(base_url=addresses.rest, headers=ADA, trust_env=False, timeout=PATIENCE_S) as client:
                assert client.get("/healthz").json() == {"status": "ok"}
                answer = client.post("/v1/question", json=body).json()
                assert client.post("/v1/question", json=body).json() == answer | {"reused": True, "cost": None}
                refused(client.post("/v1/question", content=b" " * (MOST_BODY_BYTES + 1)), "KH408", status=413)
                refused(client.get("/v1/budget"), "KH900", status=500)
            conninfo = f"host={addresses.host} port={addresses.port} user=ada dbname={addresses.database}"
            with psycopg.connect(f"{conninfo} password={PASSWORD}", autocommit=True) as connection:
                notices: list[str] = []
                connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
                cursor = connection.execute(body["sql"].encode())
                assert [list(row) for row in cursor.fetchall()] == answer["keys"]
                assert f"guarantee: {answer['guarantee']['sentence'].removesuffix('.')}" in notices
                assert any("nothing is spent" in notice for notice in notices)
    assert SECRET not in printed.getvalue()
    assert "Traceback" not in printed.getvalue()
