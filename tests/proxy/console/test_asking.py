"""Asking in the console is asking over REST: the same answers, prices, refusals and limits, by session and key."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from planner.errors import KeyholeError
from planner.parser.lexer import read_tokens
from planner.parser.tree import parse
from planner.policy.sections import RestSection
from proxy.cli.check import check
from proxy.console.analyst.catalog_document import make_catalog_document
from proxy.console.analyst.question_nodes import TableNames, make_formula_node
from proxy.console.analyst.question_tree import make_question_tree
from proxy.open_policy.service import Service
from tests.in_turn import in_turn
from tests.proxy.rest.test_app import ADA, send
from tests.worlds.console_house import Browser, console_app, inline_code, open_house
from tests.worlds.wards import QUESTION, TOKENS, install

KEY = "0b5f7a4e-console"
HOSTILE = "</script><img src=x onerror=alert(1)>"
MORE = f"""
[tables.houses]
public = true
relation = "houses.csv"

[tables.visits.columns."<b>x"]
expression = "date_trunc('month', day)"
comment = '{HOSTILE}'

[views.crowded]
sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1500"
comment = '{HOSTILE}'
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("wards")
    (folder / "houses.csv").write_text("ward,wing,beds\nA,east,20\nB,west,30\n[bold]C,west,10\n", encoding="ascii")
    with open_house(folder, more=MORE) as opened:
        yield opened


@pytest.fixture(scope="module")
def app(service: Service) -> FastAPI:
    return console_app(service)


@pytest.fixture
def browser(app: FastAPI) -> Browser:
    one = Browser(app)
    one.log_in()
    return one


def ask(browser: Browser, sql: str, *, key: str | None = None, **fields: Any) -> httpx.Response:
    headers = browser.own_headers | ({} if key is None else {"Idempotency-Key": key})
    return browser.post("/console/api/question", headers=headers, json={"sql": sql, **fields})


def test_an_answer_and_an_explanation_are_what_rest_tells(tmp_path: Path) -> None:
    with open_house(tmp_path) as service:  # that nobody has asked: of shared noise a new answer tells its price
        app, sql = console_app(service), QUESTION.format(1500)
        browser = Browser(app)
        browser.log_in()
        for console, rest in (("explain", "explain"), ("question", "question")):
            sent = {"sql": sql, "fnr": 0.06}
            here = browser.post(f"/console/api/{console}", json=sent)
            there = send(app, "POST", f"/v1/{rest}", json=sent)
            assert here.status_code == there.status_code == 200
            told, also = here.json(), there.json()
            if console == "explain":  # as REST has it, and drawn
                assert told.pop("picture").startswith("<svg ")
            if rest == "question":  # REST came second, and was told the stored answer
                assert (told["reused"], also["reused"]) == (False, True)
                for document in (told, also):
                    del document["reused"], document["cost"]
            assert told == also


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ward, count(*) FROM visits GROUP BY ward",
        "SELECT ward FROM visits GROUP BY ward HAVING count(*) >",
        "SELECT ward FROM nothing GROUP BY ward HAVING count(*) > 1",
        "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 2",
        "DROP TABLE visits",
    ],
)
def test_a_refusal_is_rests_word_for_word(app: FastAPI, browser: Browser, sql: str) -> None:
    for console, rest in (("explain", "explain"), ("question", "question")):
        here = browser.post(f"/console/api/{console}", json={"sql": sql})
        there = send(app, "POST", f"/v1/{rest}", json={"sql": sql})
        assert (here.status_code, here.headers["content-type"]) == (there.status_code, there.headers["content-type"])
        if here.status_code != 200:
            assert here.json() == there.json()


def test_a_double_click_pays_once(service: Service, browser: Browser) -> None:
    before = len(service.read_questions("ada"))
    sql = QUESTION.format(1400)
    first, second = (ask(browser, sql, key=KEY) for _ in range(2))
    assert first.json() == second.json()
    assert second.headers["Idempotency-Replayed"] == "true"
    assert len(service.read_questions("ada")) == before + 1
    assert ask(browser, QUESTION.format(1401), key=KEY).json()["code"] == "KH431"


def test_without_a_session_scripts_are_refused_and_nothing_is_asked(service: Service) -> None:
    stranger = Browser(console_app(service))
    for path in ("explain", "question", "tree", "cheaper"):
        refused = stranger.post(f"/console/api/{path}", json={"sql": QUESTION.format(1500)})
        assert (refused.status_code, refused.json()["code"]) == (401, "KH401")
    assert stranger.get("/console/api/values?table=visits&column=ward").status_code == 401
    token = stranger.post("/console/api/question", headers={**stranger.own_headers, **ADA}, json={"sql": "x"})
    assert token.status_code == 401


def test_another_sites_page_can_ask_nothing(service: Service, browser: Browser) -> None:
    before = len(service.read_questions("ada"))
    for headers in ({}, {"Origin": "http://elsewhere.test"}, {**browser.own_headers, "Sec-Fetch-Site": "same-site"}):
        answer = browser.post("/console/api/question", headers=headers, json={"sql": QUESTION.format(1450)})
        assert (answer.status_code, answer.json()["code"]) == (403, "KH408")
    assert len(service.read_questions("ada")) == before


def test_what_analysts_ask_here_counts_in_rests_limits(service: Service) -> None:
    limits = RestSection(requests_per_minute=3)
    app = console_app(service, limits=limits)
    browser = Browser(app)
    browser.log_in()
    sent = {"sql": QUESTION.format(1500)}
    statuses = [browser.post("/console/api/explain", json=sent).status_code for _ in range(2)]
    statuses.append(send(app, "GET", "/v1/budget").status_code)
    statuses.append(browser.post("/console/api/explain", json=sent).status_code)
    assert statuses == [200, 200, 200, 429]
    assert send(app, "GET", "/v1/budget").status_code == 429


def test_levers_are_cheaper_as_explain_says(browser: Browser) -> None:
    sent = {"sql": QUESTION.format(1500)}
    now = browser.post("/console/api/explain", json=sent).json()["worst_case_epsilon"]
    levers = browser.post("/console/api/cheaper", json=sent).json()["levers"]
    assert levers
    assert {one["setting"] for one in levers} <= {"tolerance", "fnr", "fpr", "min_rows"}
    for one in levers:
        then = browser.post("/console/api/explain", json={**sent, one["setting"]: one["value"]}).json()
        assert then["worst_case_epsilon"] == one["epsilon"] < now
    assert browser.post("/console/api/cheaper", json={"sql": "SELECT 1"}).json()["code"].startswith("KH1")


def test_values_are_the_public_domain_and_nothing_else(browser: Browser) -> None:
    assert browser.get("/console/api/values?table=visits&column=ward").json() == {"values": ["A", "B", "[bold]C"]}
    for table, column in (("visits", "age"), ("visits", "nothing"), ("nothing", "ward")):
        assert browser.get(f"/console/api/values?table={table}&column={column}").status_code == 404


def aggregate(function: str, column: str | None = None, *, condition: str = "", **more: Any) -> dict[str, Any]:
    return {"function": function, "column": column, "of": "", "expression": None, "filter": condition, **more}


def leaf(function: str, column: str | None, operator: str, value: str, condition: str = "") -> dict[str, Any]:
    return {"kind": "test", **aggregate(function, column, condition=condition), "operator": operator, "value": value}


MANY, OLD = leaf("count", None, ">", "100"), leaf("avg", "age", ">=", "20.5")
TREES = [
    ("count(*) > 100", MANY),
    ("100 < count(*)", MANY),
    ("((count(*) > 100))", MANY),
    ("count(*) > 100 AND avg(age) >= 20.5", {"kind": "and", "children": [MANY, OLD]}),
    (
        "count(*) > 100 OR (avg(age) >= 20.5 AND count(*) > 100)",
        {"kind": "or", "children": [MANY, {"kind": "and", "children": [OLD, MANY]}]},
    ),
    ("NOT count(*) > 100", {"kind": "not", "child": MANY}),
    (
        "count(DISTINCT id) FILTER (WHERE age > 65) <= 7",
        leaf("count distinct", "id", "<=", "7", "age > 65"),
    ),
    ("count(*) > $1", leaf("count", None, ">", "$1")),
    ("count(*) BETWEEN 3 AND 5", {"kind": "text", "text": "count(*) BETWEEN 3 AND 5"}),
    ("sum(age) > 2 * count(*)", {"kind": "text", "text": "sum(age) > 2 * count(*)"}),
    ("sum(age * age) > 5", {**leaf("sum", None, ">", "5"), "expression": "age * age"}),
    (
        "100.0 * count(*) FILTER (WHERE age > 65) / count(age) > 40",
        {**leaf("count", None, ">", "40", "age > 65"), "factor": "100.0", "over": aggregate("count", "age")},
    ),
    (
        "sum(age) > 0.1 * (SELECT sum(age) FROM visits WHERE age > 3)",
        {**leaf("sum", "age", ">", "0.1"), "against": "total"},
    ),
    (
        "count(*) < (SELECT avg(n) FROM (SELECT ward, count(*) AS n FROM visits WHERE age > 3 GROUP BY ward) AS q)",
        {**leaf("count", None, "<", "1"), "against": "average"},
    ),
]


@in_turn(("having", "tree"), TREES)
def test_a_text_is_read_as_the_tree_that_it_is(service: Service, having: str, tree: dict[str, Any]) -> None:
    found = make_question_tree(f"SELECT ward FROM visits WHERE age > 3 GROUP BY ward HAVING {having}", service.catalog)
    keys = [{"of": "", "name": "ward"}]
    whole = {"table": "visits", "alias": "", "joins": [], "keys": keys, "where": "age > 3", "having": tree}
    assert found == {"builds": True, "why": None, **whole, "columns": [], "ranking": None}


SAME_ROWS_OTHERWISE = [
    ("SELECT ward FROM visits GROUP BY ward", "sum(age) > 2 * (SELECT 0.1 * sum(age) FROM visits)"),
    (
        "SELECT ward FROM visits GROUP BY 1",
        "count(*) > (SELECT avg(n) FROM (SELECT ward, count(*) AS n FROM visits GROUP BY 1) AS q)",
    ),
]


@in_turn(("question", "having"), SAME_ROWS_OTHERWISE)
def test_a_comparison_that_the_builder_writes_otherwise_stays_text(
    service: Service, question: str, having: str
) -> None:
    found = make_question_tree(f"{question} HAVING {having}", service.catalog)
    assert found["having"] == {"kind": "text", "text": having}


def test_a_total_without_the_joined_rows_is_not_all_groups_together() -> None:
    """Without the text of FROM and WHERE, which joins leave empty, no subquery is one of the same rows."""
    text = "SELECT count(*) > 0.1 * (SELECT count(*) FROM visits)"
    (formula,) = parse(text, read_tokens(text)).tree.expressions
    for rows, against in (("", None), ("FROM visits", "total")):
        names = TableNames(alias="visits", own=frozenset(("ward",)), joined={}, keys=("ward",), rows=rows)
        assert make_formula_node(formula, names).get("against") == against


NUMBERS = "CASE WHEN count(*) > 100 THEN 1 ELSE 0 END"
COLUMNS = [
    ("count(*) > 100 AS many", {"kind": "formula", "name": "many", "formula": MANY}),
    (
        "width_bucket(sum(age), ARRAY[5, 50]) AS band",
        {"kind": "bucket", "name": "band", **aggregate("sum", "age"), "cuts": ["5", "50"]},
    ),
    (
        "CASE WHEN count(*) > 100 THEN 'it''s full' ELSE 'calm' END AS level",
        {
            "kind": "words",
            "name": "level",
            "bands": [{"word": "it's full", "formula": MANY}],
            "otherwise": "calm",
        },
    ),
    (
        NUMBERS,
        {"kind": "formula", "name": "", "formula": {"kind": "text", "text": NUMBERS}},
    ),
    (
        "count(*) > 2 * avg(count(*)) OVER () AS many",
        {"kind": "formula", "name": "many", "formula": {**leaf("count", None, ">", "2"), "against": "average"}},
    ),
]


@pytest.mark.parametrize(("shown", "column"), COLUMNS)
def test_a_scorecards_columns_are_drawn(service: Service, shown: str, column: dict[str, Any]) -> None:
    found = make_question_tree(f"SELECT ward, {shown} FROM visits GROUP BY ward", service.catalog)
    assert (found["builds"], found["columns"]) == (True, [column])


@pytest.mark.parametrize(
    ("window", "against"),
    [
        ("PARTITION BY ward ORDER BY day", "before"),
        ("ORDER BY day", None),  # along the wards, too
        ("PARTITION BY ward ORDER BY day DESC", None),
    ],
)
def test_a_trend_is_drawn_along_one_key_within_all_others(window: str, against: str | None) -> None:
    names = TableNames(alias="visits", own=frozenset(("ward", "age", "day")), joined={}, keys=("ward", "day"))
    text = f"SELECT sum(age) > 1.2 * lag(sum(age)) OVER ({window})"
    (formula,) = parse(text, read_tokens(text)).tree.expressions
    assert make_formula_node(formula, names).get("against") == against


def test_a_ranking_is_drawn_with_its_direction_and_its_end(service: Service) -> None:
    written = (("DESC LIMIT 2", True, "2"), ("FETCH FIRST 3 ROWS ONLY", False, "3"), ("", False, ""))
    for order, descending, limit in written:
        found = make_question_tree(f"SELECT ward FROM visits GROUP BY ward ORDER BY count(*) {order}", service.catalog)
        assert found["ranking"] == {**aggregate("count"), "descending": descending, "limit": limit}


def test_a_join_is_drawn_whichever_way_it_is_written(service: Service) -> None:
    for join, outer in (
        ("JOIN houses h ON v.ward = h.ward", False),
        ("LEFT JOIN houses AS h ON h.ward = v.ward", True),
    ):
        sql = f"SELECT h.wing FROM visits v {join} GROUP BY h.wing HAVING max(h.beds) > 3 OR count(*) > 100"
        found = make_question_tree(sql, service.catalog)
        base = {"of": "", "name": "ward"}
        joined = {"table": "houses", "alias": "h", "sql": "h", "outer": outer, "using": False, "key": "ward"}
        assert found["joins"] == [{**joined, "base": base}]
        assert (found["alias"], found["keys"]) == ("v", [{"of": "h", "name": "wing"}])
        assert found["having"]["children"][0]["of"] == "h"
    using = "SELECT wing FROM visits JOIN houses USING (ward) GROUP BY wing HAVING count(*) > 100"
    assert make_question_tree(using, service.catalog)["joins"][0]["using"]


def test_computed_keys_are_drawn_as_their_text(service: Service) -> None:
    text = "SELECT age>10, ward FROM visits GROUP BY 2, AGE > 10 HAVING count(*) > 5"
    found = make_question_tree(text, service.catalog)
    assert (found["builds"], found["keys"]) == (
        True,
        [{"of": "", "name": "ward"}, {"of": "", "name": "AGE > 10", "sql": "AGE > 10"}],
    )
    named = "SELECT age > 10 AS old FROM visits GROUP BY 1 HAVING count(*) > 5"
    assert make_question_tree(named, service.catalog)["why"] == "It gives a key another name."


NOT_DRAWN = [
    ("SELECT ward AS w FROM visits GROUP BY ward HAVING count(*) > 5", "It gives a key another name."),
    ("SELECT ward, upper(ward) FROM visits GROUP BY ward HAVING count(*) > 5", "It shows an expression of a key."),
    ("SELECT ward FROM (SELECT * FROM visits) t GROUP BY ward HAVING count(*) > 5", "It reads a subquery."),
    ("SELECT true FROM visits HAVING count(*) > 5", "It has no keys: the whole table is one group."),
    (
        "SELECT ward FROM visits GROUP BY ward ORDER BY count(*) DESC, ward LIMIT 2",
        "It ranks by more than one aggregate or column.",
    ),
    (
        "SELECT v.ward FROM visits v, houses h WHERE v.ward = h.ward GROUP BY v.ward HAVING count(*) > 5",
        "It joins by another condition than the equality of two columns.",
    ),
    (
        "SELECT v.ward FROM visits v JOIN houses h ON v.ward = h.ward AND beds > 3 GROUP BY 1 HAVING count(*) > 5",
        "It joins by another condition than the equality of two columns.",
    ),
    (
        "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5 UNION "
        "SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 9",
        "It puts several questions together.",
    ),
]


@in_turn(("sql", "why"), NOT_DRAWN)
def test_what_the_builder_cannot_write_stays_text_and_says_why(service: Service, sql: str, why: str) -> None:
    assert make_question_tree(sql, service.catalog) == {"builds": False, "why": why}


def test_what_is_no_question_has_no_tree(service: Service) -> None:
    with pytest.raises(KeyholeError, match="KH101"):
        make_question_tree("SELECT ward, count(*) FROM visits GROUP BY ward", service.catalog)


@pytest.mark.parametrize("address", ["/console/ask", "/console/tables", "/console/history", "/console/monitors"])
def test_names_and_comments_with_markup_stay_text(browser: Browser, address: str) -> None:
    text = browser.get(address).text
    assert "<img" not in re.sub(r'<img src="/console/static/[^"]+keyhole.svg"', "", text)
    assert inline_code(text) == []
    if address == "/console/tables":
        assert "&lt;/script&gt;&lt;img src=x" in text
    if address == "/console/ask":
        (data,) = re.findall(r'<script type="application/json" id="catalog">(.*?)</script>', text, re.S)
        assert json.loads(data)["stored"][0]["comment"] == HOSTILE


def test_a_value_that_would_turn_the_line_around_is_written_out(tmp_path: Path) -> None:
    path = install(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace('"[bold]C"', r'"C\u202Ed\u0007"'), encoding="utf-8")
    check(path, confirm=False)
    with Service.open(path) as service:
        browser = Browser(console_app(service))
        browser.log_in()
        text = browser.get("/console/tables").text
    assert r"<code>A</code>, <code>B</code>, <code>C\u202ed\x07</code>" in text
    assert "\u202e" not in text
    assert "\u0007" not in text


def test_the_history_has_what_was_asked_with_its_cost_for_its_analyst_alone(service: Service, browser: Browser) -> None:
    assert ask(browser, QUESTION.format(1300)).status_code == 200
    (last,) = service.read_questions("ada")[-1:]
    text = browser.get("/console/history").text
    assert "count(*) &gt; ?" in text or "count(*) &gt; 1300" in text
    assert f"{last.charge.epsilon_nano / 10**9:.4f}" in text
    other = Browser(console_app(service))
    other.post("/console/login", data={"token": TOKENS["bob"]})
    assert "None yet." in other.get("/console/history").text


def test_the_history_leads_to_what_can_be_asked_again(service: Service, browser: Browser) -> None:
    assert ask(browser, QUESTION.format(1500)).status_code == 200  # which is the stored one's text, without constants
    assert ask(browser, "SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 40000").status_code == 200
    text = browser.get("/console/history").text
    assert "keeps texts without their numbers" in text
    assert '<a href="/console/ask?stored=crowded">open the stored question crowded</a>' in text
    assert '<a href="/console/ask?table=visits">build one like it</a>' in text
    assert "ask again" not in text
    before, service.keep_text = service.keep_text, "full"
    try:
        assert ask(browser, QUESTION.format(1234)).status_code == 200
        assert re.search(r'ask\?sql=SELECT%20ward[^"]*1234">ask again', browser.get("/console/history").text)
    finally:
        service.keep_text = before


def test_a_monitor_that_one_may_not_read_is_not_there(browser: Browser) -> None:
    assert "There is none that you may read." in browser.get("/console/monitors").text
    assert browser.get("/console/monitors/crowded").status_code == 404
    assert browser.get("/console/api/monitors/crowded/events").json()["code"] == "KH605"


def test_no_page_or_answer_of_the_console_names_a_file_of_the_house(service: Service, browser: Browser) -> None:
    folder = str(Path(service.policy.path).parent)
    for address in ("/console/ask", "/console/tables", "/console/history"):
        assert folder not in browser.get(address).text


@pytest.mark.parametrize(
    ("houses", "proposed"),
    [
        ("id,ward,wing\n7,A,east\n8,B,west\n9,[bold]C,west\n", {"key": "ward", "base": "ward"}),  # by its name
        ("code,wing\nA,east\nB,west\n[bold]C,west\nD,west\n", {"key": "code", "base": "ward"}),  # by its values
        ("wing,code\neast,A\nwest,B\nnorth,[bold]C\n", {"key": "code", "base": "ward"}),  # not by what comes first
        ("wing,beds\neast,20\nnorth,30\n", {"key": "wing", "base": "ward"}),  # by its type alone
        ("since,opened\n2026-01-01 00:00:01,true\n", None),  # by nothing
    ],
)
def test_what_is_looked_up_is_proposed_by_name_then_by_values(
    tmp_path: Path, houses: str, proposed: dict[str, str] | None
) -> None:
    """`id`, of whole numbers, and `ward`, of text, are the table's own."""
    (tmp_path / "houses.csv").write_text(houses, encoding="ascii")
    with open_house(tmp_path, more='\n[tables.houses]\npublic = true\nrelation = "houses.csv"\n') as service:
        (table,) = make_catalog_document(service.catalog)["tables"]
    assert table["lookups"].get("houses") == proposed
