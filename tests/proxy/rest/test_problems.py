"""What REST says of a request that is not as its document says: names of that document, and no others."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.rest.app import create_app
from tests.effort import examples
from tests.proxy.rest.test_app import ADA, send
from tests.worlds.rest_house import UNHURRIED, own_house

WORDS = re.compile(
    r"Field required|Extra inputs are not permitted|Input should be (?:an array|one JSON object|a finite number"
    r"|a valid (?:string|number|integer)|text, a number or null"
    r"|text, a number, true, false or null; an array is sent as its text, \{a,b\})"
    r"|(?:Array|String) should have at most [0-9]+ (?:items|characters)|not (?:text|a number) that a database can hold"
)
SENTENCE = re.compile(r"body(?:\.(?P<field>.*?)(?P<item>\.[0-9]+)?)?: (?P<words>[^:]*)", re.DOTALL)
FIELDS = ["sql", "parameters", "fnr", "fpr", "tolerance", "min_rows", "mechanism", "most_positives", "max_epsilon"]
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["\0", "1" * 100_001])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
bodies = st.dictionaries(st.sampled_from(FIELDS) | st.text(min_size=1, max_size=9), values, max_size=4) | values


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    with own_house(tmp_path_factory.mktemp("wards")) as opened:
        yield create_app(opened, UNHURRIED)


def explained(app: FastAPI, content: bytes) -> dict[str, Any]:
    headers = ADA | {"Content-Type": "application/json"}
    response = send(app, "POST", "/v1/explain", headers=headers, content=content)
    document: dict[str, Any] = response.json()
    assert response.status_code < 500
    return document


@given(body=bodies)
@example(body={"sql": "x", "parameters": [["flu", "cold"]]})
@example(body={"sql": "x", "parameters": ["\0"]})
@example(body={"sql": "x", "parameters": [1] * 1001})
@example(body={"sql": "x", "tolerance": [1]})
@example(body={"sql": "x", "tolerance": True})
@examples(150)
def test_a_wrong_body_is_refused_in_the_documents_own_names(app: FastAPI, body: object) -> None:
    document = explained(app, json.dumps(body).encode())
    if document.get("code") != "KH408":
        return
    told = SENTENCE.fullmatch(document["title"])
    assert told is not None, document["title"]
    assert WORDS.fullmatch(told["words"]), document["title"]
    fields = app.openapi()["components"]["schemas"]["QuestionIn"]["properties"]
    assert set(FIELDS) <= set(fields)
    if told["item"] is not None and told["field"] in fields:
        assert told["field"] == "parameters"
    if told["field"] is not None and told["field"] not in fields:
        assert isinstance(body, dict)
        assert told["field"] + (told["item"] or "") in body  # the client's own word


@pytest.mark.parametrize(
    ("content", "title"),
    [
        (
            b'{"sql": "x", "parameters": [1, ["flu", "cold"]]}',
            "body.parameters.1: Input should be text, a number, true, false or null; "
            "an array is sent as its text, {a,b}",
        ),
        (b'{"sql": "x", "tolerance": [1]}', "body.tolerance: Input should be text, a number or null"),
        (b'{"sql": "x", "parameters": [1e999]}', "body.parameters.0: not a number that a database can hold"),
        (b'{"sql": "x", "parameters": ["\\u0000"]}', "body.parameters.0: not text that a database can hold"),
        (b'{"sql": "x", "parameters": "flu"}', "body.parameters: Input should be an array"),
        (b"[]", "body: Input should be one JSON object"),
    ],
)
def test_what_is_told(app: FastAPI, content: bytes, title: str) -> None:
    assert explained(app, content)["title"] == title


def test_an_array_is_sent_as_its_text(app: FastAPI) -> None:
    sql = "SELECT ward FROM visits WHERE ward = ANY ($1) GROUP BY ward HAVING count(*) > 1500"
    document = explained(app, json.dumps({"sql": sql, "parameters": ["{A,B}"]}).encode())
    listed = explained(app, json.dumps({"sql": sql.replace("= ANY ($1)", "IN ('A', 'B')")}).encode())
    assert document["functionals"] == listed["functionals"]
    assert document["sql"] == listed["sql"]
