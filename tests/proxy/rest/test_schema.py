"""The OpenAPI document is what the service does: schemathesis makes requests from it, right and wrong ones, and checks
statuses, media types, headers and bodies of the answers against it. All of its checks are on.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.engine.recorder import ScenarioRecorder

from proxy.open_policy.service import Service
from proxy.rest.answers import FORMS
from proxy.rest.app import create_app
from tests.effort import is_quick, rounds
from tests.worlds.rest_house import TOKEN, UNHURRIED, own_house
from tests.worlds.wards import QUESTION

# Text is not SQL and a cursor is not guessed: what the schema admits may still be refused, but only as it announces.
REFUSABLE = ["2xx", "400", "401", "403", "404", "406", "422"]
REJECTED = ["400", "401", "403", "404", "405", "406", "413", "415", "422", "431"]  # 413, 431: texts too long
CONFIGURED: dict[str, Any] = {
    "checks": {
        "positive_data_acceptance": {"expected-statuses": REFUSABLE},
        "negative_data_rejection": {"expected-statuses": REJECTED},
    },
    "generation": {"deterministic": True, "max-examples": rounds(30, quick=15), "database": "none"},
    # at quick no request for each boundary of each field: these are 560, four times the processor of the others
    "phases": {"stateful": {"enabled": False}, "coverage": {"enabled": not is_quick()}},
    "headers": {"Authorization": f"Bearer {TOKEN}"},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with own_house(tmp_path_factory.mktemp("wards")) as opened:
        yield opened


@pytest.fixture(scope="module")
def schema(service: Service) -> Any:
    config = SchemathesisConfig.from_dict(CONFIGURED)
    return schemathesis.openapi.from_asgi("/openapi.json", create_app(service, UNHURRIED), config=config)


def test_every_request_is_answered_as_announced(schema: Any) -> None:
    asked: Counter[str] = Counter()
    failures: list[str] = []
    for event in from_schema(schema).execute():
        match event:
            case events.ScenarioFinished(recorder=recorder):
                asked[recorder.label] += len(recorder.cases)
                failures += failed(recorder)
            case events.NonFatalError() | events.FatalError():
                failures.append(repr(event))
    assert not failures, "\n\n".join(failures[:20])
    assert set(asked) == {
        f"{method.upper()} {path}" for path, methods in schema.raw_schema["paths"].items() for method in methods
    }
    assert min(asked["POST /v1/question"], asked["POST /v1/explain"]) > rounds(50, quick=10)


def failed(recorder: ScenarioRecorder) -> Iterator[str]:
    for case_id, checks in recorder.checks.items():
        for check in checks:
            if check.failure_info is not None:
                request = recorder.cases[case_id].value.as_curl_command()
                yield f"{check.name}: {request}\n{check.failure_info.failure}"


@pytest.mark.parametrize("accept", FORMS)
@pytest.mark.parametrize("query", [{}, {"page_size": 1}])
def test_real_answers_are_as_announced_in_every_form(schema: Any, accept: str, query: dict[str, int]) -> None:
    """Generated text is no SQL: these are questions that are answered."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": accept}
    body = {"sql": QUESTION.format(1500)}
    operation = schema["/v1/question"]["POST"]
    case = operation.Case(body=body, query=query, media_type="application/json")
    answer = case.call_and_validate(headers=headers)
    assert (answer.status_code, answer.headers["content-type"][0].partition(";")[0]) == (200, accept)
    for path, method in (("/v1/explain", "POST"), ("/v1/budget", "GET")):
        operation = schema[path][method]
        more = {"body": body, "media_type": "application/json"} if method == "POST" else {}
        assert operation.Case(**more).call_and_validate(headers=headers).status_code == 200
